"""The JSON of every command, as files in goldens/: its keys, their order and the kinds of their values.

MSMQ_FAST_WRITE_GOLDENS=1 writes the files anew. What differs from run to run is replaced by its kind.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.cli.tree import ROOT
from msmq_fast.client import sync
from msmq_fast.protocol.errors import TransactionSequence
from msmq_fast.terminal.commands import Command, parse, walk
from tests.support.processes.servers import Server, command

GOLDENS = Path(__file__).parent / "goldens"
GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
SID = re.compile(r"S-1-(?:5-21|22)(?:-\d+)+")
SNAPSHOT = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{32}-[0-9a-f]{8}")
DATE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?")
ZERO = "00000000-0000-0000-0000-000000000000"
VOLATILE = {
    "token", "asked", "descriptor", "subject", "issuer", "lookup_id", "arrival_seq", "event_time", "feed_seq",
    "created", "modified", "began", "sent_time", "arrived_time", "time",
    "seconds",
    "rate", "incarnation", "next_attempt", "attempts", "oldest", "last_error",
    "last_error_time", "before", "after", "feed_next", "port", "sent", "journal_quota_kb",
    "digest", "certificate_b64", "blob_b64", "sender_id_b64", "registered", "not_after", "history", "user",
    "uid", "identifier", "size", "caller", "sids", "openings", "next_hops", "text", "owner", "quota_kb",
    "number", "since", "closed", "qm_guid",
}  # fmt: skip

WITHOUT = {
    "serve", "help", "completion", "config schema", "domain status", "domain join", "domain leave",
    "domain explain",
}  # fmt: skip
"""Commands without JSON. The goldens of all but `serve` are text files, or the published schema. Those of
`domain` need a domain: tests/directory/test_domain_servers.py reads their JSON.
"""
SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "msmq-fast.schema.json"


def plain(value: Any, key: str = "", *, counters: bool = False) -> Any:
    """A value without what differs from run to run."""
    if isinstance(value, dict):
        return {name: plain(item, name, counters=counters) for name, item in value.items()}
    if key in VOLATILE or (counters and isinstance(value, int)):
        return "" if value in ("", 0, None, []) and not counters else f"<{type(value).__name__}>"
    if isinstance(value, list):
        return [plain(item, counters=counters) for item in value]
    if isinstance(value, str):
        value = GUID.sub(lambda found: found[0] if found[0] == ZERO else "<guid>", value)
        value = re.sub(r"<guid>\}\\\d+", r"<guid>}\\<number>", value)
        value = re.sub(r"<guid>\\[0-9a-f]{8}", r"<guid>\\<number>", value)
        value = DATE.sub("<date>", SID.sub("<sid>", SNAPSHOT.sub("<snapshot>", value)))
        return re.sub(r"(?:/[\w.-]+)*/(msmq-\w+|tmp\w*|pytest-[\w/.-]+)/", "<path>/", value)
    return value


class Goldens:
    """Runs commands of one server and compares their JSON with the files."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.wrong: list[str] = []
        self.seen: set[str] = set()
        self.commands: set[str] = set()

    def check(
        self, name: str, *words: str, stdin: bytes | None = None, counters: bool = False, local: bool = False
    ) -> list[Any]:
        """The JSON lines of a command; `local` ones do not talk to the server. Without a name
        they are not compared.
        """
        if local:
            done = command(*words, "--json", stdin=stdin, environment={"MSMQ_FAST_SERVER__NAME": "ALPHA"})
            assert done.returncode == 0, done
            lines = [json.loads(line) for line in done.stdout.splitlines()]
        else:
            lines = self._server.ok(*words, stdin=stdin)
        self.commands.add(parse(ROOT, words)[1].command)
        if not name:
            return lines
        file = GOLDENS / f"{name}.json"
        text = "".join(json.dumps(plain(line, counters=counters), indent=1) + "\n" for line in lines)
        self.seen.add(file.name)
        if os.environ.get("MSMQ_FAST_WRITE_GOLDENS"):
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            self.wrong.append(f"{file.name}:\n{text}")
        return lines


def test_the_json_of_every_command(server: Server, tmp_path: Path) -> None:
    goldens = Goldens(server)
    check = goldens.check
    queues(check)
    messages(check, tmp_path)
    outgoing(check)
    operation(check, server, tmp_path)
    access(check, server, tmp_path)
    directory(check, tmp_path)
    audit(check, tmp_path)
    sessions(check, server)
    assert not goldens.wrong, "\n".join(goldens.wrong)
    every = {prog.partition(" ")[2] for node, prog in walk(ROOT, ROOT.name) if isinstance(node, Command)}
    assert {name for name in every - goldens.commands if not name.startswith("lake ")} == WITHOUT
    assert goldens.seen == {file.name for file in GOLDENS.glob("*.json")}


@pytest.mark.parametrize("words", [("help",), *(("completion", shell) for shell in ("bash", "zsh", "fish"))])
def test_the_text_of_commands_without_json(words: tuple[str, ...]) -> None:
    done = command(*words, environment={"COLUMNS": "80"})
    assert done.returncode == 0
    file = GOLDENS / f"{'-'.join(words)}.txt"
    if os.environ.get("MSMQ_FAST_WRITE_GOLDENS"):
        file.write_bytes(done.stdout)
    assert done.stdout == file.read_bytes()


def test_the_schema_is_the_published_one() -> None:
    assert json.loads(command("config", "schema").stdout) == json.loads(SCHEMA.read_text(encoding="utf-8"))


def queues(check: Any) -> None:
    check("queue-create", "queue", "create", "orders", "--journal", "--label", "Orders", "--quota", "1GiB")
    check("queue-create-transactional", "queue", "create", "payments", "--transactional")
    check("queue-list", "queue", "list")
    check("queue-list-all", "queue", "list", "--all")
    check("queue-show", "queue", "show", "orders")
    check("queue-set", "queue", "set", "orders", "--no-journal")
    check("", "queue", "create", "other")


def messages(check: Any, tmp_path: Path) -> None:
    check("send", "send", "orders", "--body", "<order/>", "--label", "one", "--recoverable")
    check("send-count", "send", "orders", "--body", "x", "--count", "9")
    (first,) = check("peek", "peek", "orders")
    check("trace", "trace", first["message_id"])
    check("receive", "receive", "orders")
    check("", "send", "payments", "--body", "pay", "--transaction")
    check("receive-transaction", "receive", "payments", "--transaction")
    check("queue-copy", "queue", "copy", "orders", "other", "--limit", "2")
    check("queue-move", "queue", "move", "orders", "other", "--limit", "2")
    file = str(tmp_path / "orders.msgs")
    check("export", "export", "orders", "--output", file)
    check("import", "import", file, "--queue", "imported")
    check("queue-purge", "queue", "purge", "orders")
    check("", "send", "orders", "--body", "late", "--dead-letter", "--ttbr", "0s")
    check("dlq-list", "dlq", "list", "--limit", "1")
    check("dlq-resubmit", "dlq", "resubmit", "--limit", "1")
    definitions = tmp_path / "queues.csv"
    definitions.write_text('"QueueName","Transactional","Label"\n"private$\\legacy","False","old"\n')
    check("queue-import", "queue", "import", str(definitions))
    check("queue-delete", "queue", "delete", "orders")


def outgoing(check: Any) -> None:
    name = r"DIRECT=TCP:127.0.0.77\private$\far"
    check("", "send", name, "--body", "x", "--recoverable")
    check("outgoing-pause", "outgoing", "pause", name)
    check("outgoing-list", "outgoing", "list")
    check("outgoing-show", "outgoing", "show", name)
    check("outgoing-purge", "outgoing", "purge", name)
    check("outgoing-resume", "outgoing", "resume", name)
    check("outgoing-kick", "outgoing", "kick", name)
    check("outgoing-delete", "outgoing", "delete", name)
    check("route-explain", "route", "explain", name)


def operation(check: Any, server: Server, tmp_path: Path) -> None:
    check("stats", "stats", counters=True)
    check("status", "status", counters=True)
    check("top", "top", "--count", "1")
    check("snapshot", "snapshot", str(tmp_path / "snapshot"), counters=True)
    check("backup-create", "backup", "create", str(tmp_path / "online"), counters=True)
    own = ("--data", str(server.data))
    (tmp_path / "former").mkdir()
    check("backup", "backup", str(tmp_path / "former" / "backup"), *own, local=True, counters=True)
    offline = ("backup", "create", str(tmp_path / "backup"), "--offline", *own)
    check("backup", *offline, local=True, counters=True)
    data = ("--data", str(tmp_path / "data"))
    check("restore", "restore", str(tmp_path / "backup"), *data, local=True, counters=True)
    check("compact", "compact", *data, local=True, counters=True)
    check("compact", "store", "compact", *data, local=True, counters=True)
    again = ("--data", str(tmp_path / "again"))
    check("backup-restore", "backup", "restore", str(tmp_path / "online"), *again, local=True, counters=True)
    (tmp_path / "objects").mkdir()
    url = f"file://{tmp_path / 'objects'}"
    check("backup-push", "backup", "push", str(tmp_path / "online"), url, local=True, counters=True)
    check("backup-list", "backup", "list", url, local=True, counters=True)
    check("backup-pull", "backup", "pull", url, str(tmp_path / "pulled"), local=True, counters=True)
    kept = ("--data", str(tmp_path / "again"), "--if-missing")
    check("backup-restore-kept", "backup", "restore", url, *kept, local=True)
    check("", "backup", "push", str(tmp_path / "backup"), url, local=True)
    check("backup-prune", "backup", "prune", url, "--keep", "1", local=True)
    check("config-check", "config", "check", local=True)
    check("config-check", "check-config", local=True)
    settings = check("", "config", "show", local=True)
    assert [*settings[0]] == ["key", "value", "origin"]
    check("config-reload", "config", "reload")
    health = tmp_path / "health.toml"
    health.write_text(f'[listen.admin]\nhost = "127.0.0.1"\nport = {server.port("admin")}\n')
    check("health", "health", "--config", str(health), local=True)
    bundle = ("support-bundle", str(tmp_path / "bundle.tar.gz"), "--config", str(health))
    check("support-bundle", *bundle, "--endpoint", server.endpoint, local=True, counters=True)
    check("security-review", "security", "review", local=True)
    check("ping", "ping", server.ready["ping"].split(",")[0], local=True)
    # The transaction is gone when its block ends.
    with sync.connect(server.endpoint) as connection, suppress(TransactionSequence), connection.transaction():
        (open_one,) = check("transaction-list", "transaction", "list")
        check("transaction-abort", "transaction", "abort", open_one["identifier"])
    with sync.connect(server.endpoint) as connection:
        transaction = connection.transaction()
        transaction.__enter__()
        transaction.prepare()  # what is prepared outlives its connection
    (prepared,) = check("transaction-list-prepared", "transaction", "list")
    check("transaction-commit", "transaction", "commit", prepared["identifier"])


def access(check: Any, server: Server, tmp_path: Path) -> None:
    check("acl-grant", "acl", "grant", "other", "--user", "everyone", "--right", "receive")
    check("acl-show", "acl", "show", "other")
    check("acl-explain", "acl", "explain", "other", "--user", "everyone", "--right", "receive")
    for action in ("deny", "revoke"):
        check(f"acl-{action}", "acl", action, "other", "--user", "anonymous", "--right", "send")
    for action in ("chown", "own"):
        check("acl-chown", "acl", action, "other", "--user", "uid:1000")
    check("acl-set", "acl", "set", "other", "--sddl", "O:WDG:WDD:(A;;GA;;;WD)")
    data = ("--data", str(tmp_path / "data"))
    check("user-add", "user", "add", "alice", "--group", "staff", *data, stdin=b"a secret\n", local=True)
    check("user-token", "user", "token", "alice", *data, local=True)
    check("user-passwd", "user", "passwd", "alice", *data, stdin=b"another secret\n", local=True)
    check("user-list", "user", "list", *data, local=True)
    check("user-remove", "user", "remove", "alice", *data, local=True)
    (made,) = check("certificate-create", "certificate", "create")
    check("certificate-list", "certificate", "list")
    check("certificate-remove", "certificate", "remove", made["identifier"])
    check("peer-key-list", "key", "show", "--own")
    (own,) = check("peer-key-list", "peer-key", "list", "--own")
    other = tmp_path / "other.keys"
    other.write_text(json.dumps({**own, "guid": "00112233-4455-6677-8899-aabbccddeeff"}))
    for group, add, remove in (("key", "import", "forget"), ("peer-key", "add", "remove")):
        check("peer-key-add", group, add, str(other))
        check("peer-key-remove", group, remove, "00112233-4455-6677-8899-aabbccddeeff")
    key, certificate = str(tmp_path / "alice.key"), str(tmp_path / "alice.pem")
    request = f"req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=alice -keyout {key} -out {certificate}"
    subprocess.run(["openssl", *request.split()], check=True, capture_output=True)
    check("certificate-register", "certificate", "register", certificate)


def directory(check: Any, tmp_path: Path) -> None:
    check("directory-create", "directory", "create", "Site", "Name=Berlin")
    check("directory-show", "directory", "show", "Site", "Berlin")
    check("directory-set", "directory", "set", "Site", "Berlin", "ForeignSite=true")
    check("directory-list", "directory", "list", "Site")
    file = str(tmp_path / "directory.json")
    check("directory-export", "directory", "export", file, "--type", "Site")
    check("directory-import", "directory", "import", file)
    check("", "directory", "create", "Queue", r"Pathname=THERE\found", "Label=Found")
    check("queue-find", "queue", "find", "--label", "found")
    check("", "directory", "delete", "Queue", r"THERE\found")
    check("directory-delete", "directory", "delete", "Site", "Berlin")
    definitions = tmp_path / "definitions.json"
    check("definitions-export", "definitions", "export", str(definitions), counters=True)
    definitions.write_text('{"msmq_fast_definitions": 1, "queues": [{"name": "defined"}]}')
    check("definitions-import", "definitions", "import", str(definitions))


def audit(check: Any, tmp_path: Path) -> None:
    check("audit-list", "audit", "list", "--operation", "directory", "--limit", "1")
    check("audit-export", "audit", "export", str(tmp_path / "audit.jsonl"), "--operation", "set prop")


def sessions(check: Any, server: Server) -> None:
    with sync.connect(server.endpoint) as connection:
        (listed,) = check("session-list", "session", "list", "--kind", "program", "--limit", "1")
        assert listed["number"] == connection.admin.sessions.page("program").sessions[0].number
        check("session-close", "session", "close", str(listed["number"]))
    assert check("", "session", "readers") == []
