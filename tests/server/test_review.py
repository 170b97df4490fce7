"""`msmq-fast security review`: what a configuration opens, and that the named key closes it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from msmq_fast.config.loading import load
from msmq_fast.config.sections import SECTIONS, keys_of
from msmq_fast.server.review import Opening, State, review, summary
from tests.support.processes.servers import Server, command, data_directory

HARDENED = {"MSMQ_FAST_SECURITY__PROFILE": "hardened", "MSMQ_FAST_MQQB__ALLOW": "10.0.0.0/8"}


def found(subject: str, **variables: str) -> Opening:
    """One opening under a configuration; `section__key` names a variable."""
    environment = {f"MSMQ_FAST_{name}".upper(): text for name, text in variables.items()}
    (opening,) = [one for one in review(load(None, environment, {})) if one.subject == subject]
    return opening


@pytest.mark.parametrize(
    ("subject", "opened", "closed"),
    [
        ("MS-MQQB (TCP)", {}, {"mqqb__allow": "10.0.0.0/8"}),
        ("MS-MQQB (TCP)", {}, {"listen__mqqb__host": "127.0.0.1"}),
        ("MS-MQQB (TCP)", {}, {"listen__mqqb__port": "off"}),
        ("ping (UDP)", {}, {"listen__mqqb__ping_port": "off"}),
        ("multicast (PGM)", {"pgm__enabled": "true"}, {}),
        ("messages over HTTP", {"listen__http__port": "80"}, {}),
        ("remote read (RPC)", {}, {"listen__rpc__port": "off"}),
        ("remote read (RPC)", {}, {"rpc__anonymous": "false"}),
        ("remote read, older (qm2qm)", {}, {"rpc__qm2qm": "false"}),
        ("RPC endpoint mapper", {}, {"rpc__epm": "off"}),
        ("admin port", {"listen__admin__host": "192.0.2.1"}, {}),
        ("reading, changing and deleting new queues", {"security__default_queue_acl": "spec"}, {}),
        ("creating queues", {"security__everyone_creates_queues": "true"}, {}),
        ("sending to new queues", {}, {"security__anonymous_may_send": "false"}),
        ("sending to new queues", {}, {"mqqb__allow": "10.0.0.0/8"}),
        ("passing messages on (router)", {"mqqb__router": "true"}, {"mqqb__router": "false"}),
        ("passing messages on (HTTP)", {"srmp__store_and_forward": "true"}, {}),
        ("log-ons (RPC)", {"rpc__named_level": "connect"}, {"rpc__named_level": "privacy"}),
        ("log-ons (RPC)", {"rpc__target_names": "*"}, {"rpc__target_names": "orders01"}),
        ("bulk API", {"bulk__access": "loopback"}, {"bulk__access": "administrators"}),
        (
            "signatures over HTTP: unregistered certificates",
            {"srmp__unregistered_certificates": "true"},
            {},
        ),
        ("sender id of unsigned messages", {"interop__unsigned_sender_id": "use"}, {}),
        ("reasons of refusals", {"mqqb__insecure_nacks": "true"}, {}),
        ("quota of all messages", {"queue_manager__quota": "unlimited"}, {}),
        ("quota of each dead-letter queue", {"queue_manager__deadletter_quota": "unlimited"}, {}),
        ("quota of computer journal", {"queue_manager__journal_quota": "unlimited"}, {}),
    ],
)
def test_what_is_open_and_what_closes_it(
    subject: str, opened: dict[str, str], closed: dict[str, str]
) -> None:
    before, after = found(subject, **opened), found(subject, **closed)
    assert before.state is State.OPEN
    assert after.state is not State.OPEN
    assert before.key
    name = next(iter(closed or opened)).replace("__", ".")
    other = ("listen.mqqb.host", "listen.mqqb.port", "pgm.enabled", "rpc.epm", "rpc.qm2qm", "mqqb.allow")
    assert name in before.key or name in other


@pytest.mark.parametrize(
    ("subject", "variables", "word"),
    [
        ("signatures: hashes", {"protection__accept_hashes": "sha512,md5,sha1"}, "md5, sha1"),
        ("signatures: versions", {"protection__accept_msmq1": "true"}, "MSMQ 1.0"),
        ("encryption: key pairs", {"protection__providers": "base,advanced"}, "base"),
        ("signatures over HTTP: hashes", {"srmp__signature_digests": "sha256,sha1"}, "sha1"),
        ("encryption: key pairs", {"protection__rsa_bits": "1024"}, "RSA 1024"),
    ],
)
def test_weak_algorithms_are_named(subject: str, variables: dict[str, str], word: str) -> None:
    assert word in found(subject, **variables).what
    strong = {"protection__providers": "advanced"}
    assert found(subject, **strong).state is State.CLOSED


def test_each_key_exists_and_what_decides_already_is_no_advice() -> None:
    for environment in ({}, HARDENED):
        for one in review(load(None, environment, {})):
            named = re.findall(r"\b([a-z_]+(?:\.[a-z]+)??)\.([a-z0-9_]+)\b(?!\.)", one.key)
            assert named or one.key == "msmq-fast acl revoke", one
            assert all(key in keys_of(SECTIONS[section]) for section, key in named), one
            assert one.state is not State.CLOSED or " = " not in one.key, one


def test_remote_read_without_encryption_or_to_other_computers_is_open() -> None:
    variables = {"rpc__allow_unauthenticated": "true", "rpc__anonymous_outgoing": "true"}
    for subject in ("remote read without encryption", "sending to other computers (RPC)"):
        assert found(subject, **variables).state is State.OPEN


def test_tokens_in_clear_text_are_open(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(
        '[listen.admin]\nhost = "0.0.0.0"\n[listen.app]\nport = 1803\nhost = "0.0.0.0"\n'
        '[[users]]\nname = "a"\ntoken = "t"\n'
    )
    open_now = {one.subject for one in review(load(file, {}, {})) if one.state is State.OPEN}
    assert {"programs (TCP)", "bulk API", "admin port", "short tokens"} <= open_now


def test_the_hardened_profile_leaves_nothing_open() -> None:
    config = load(None, HARDENED, {})
    assert [one for one in review(config) if one.state is State.OPEN] == []
    assert summary(config) == "security: hardened profile, open: nothing"
    shown = command("security", "review", environment=HARDENED).stdout.decode()
    assert re.search(r"^OPEN .*\n\n  nothing\n\nLIMITED ", shown, re.MULTILINE)


def test_the_verb_shows_what_a_server_with_that_configuration_logs(tmp_path: Path) -> None:
    variables = {
        "MSMQ_FAST_LISTEN__MQQB__HOST": "127.0.56.40",
        "MSMQ_FAST_SECURITY__EVERYONE_CREATES_QUEUES": "true",
    }
    with data_directory() as data:
        server = Server(data, host="127.0.56.40", environment=variables)
        server.start()
        try:
            (line,) = [text for text in server.log.read_text().splitlines() if "security: " in text]
        finally:
            server.kill()
        done = command("security", "review", "--data", str(data), environment=variables)
        assert done.returncode == 0
        shown = done.stdout.decode().splitlines()
        assert f"{shown[0]}; see msmq-fast security review" in line
        assert "creating queues" in shown[0]
        assert "to close or limit it: security.everyone_creates_queues = false" in done.stdout.decode()
        entry = json.loads(command("security", "review", "--json", environment=variables).stdout)["openings"]
        states = {one["subject"]: one["state"] for one in entry}
        assert states["creating queues"] == "open"
        assert states["MS-MQQB (TCP)"] == "limited"  # a loopback address
