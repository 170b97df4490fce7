"""Public queues move from the embedded directory into a domain and back, also if an attempt is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.directory.members import domain, environment, known
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import DomainController
from tests.support.processes.servers import Server, command, inherited, until

__all__ = ["controller"]

pytestmark = [*NEEDS, pytest.mark.long(seconds=40)]

QUEUES = 40


def plan(server: Server) -> dict[str, str]:
    """What --dry-run says: the outcome by the name of the object."""
    done = command(
        "domain", "join", "--migrate", "--dry-run", "--data", str(server.data), "--json",
        environment=server.environment,
    )  # fmt: skip
    assert done.returncode == 0, done
    return {row["name"]: row["outcome"] for row in map(json.loads, done.stdout.splitlines())}


def test_there_and_back(controller: DomainController, tmp_path: Path) -> None:
    path = controller.computer("MOVER")
    alone = {"MSMQ_FAST_SERVER__NAME": "MOVER"}
    before = Server(tmp_path / "data", environment=alone).start()
    for number in range(QUEUES):
        before.ok("queue", "create", rf"MOVER\q{number}", "--label", f"Label {number}", "--journal")
    before.ok("directory", "create", "Site", "Name=elsewhere")
    before.ok("send", r"MOVER\q7", "--body", "kept", "--recoverable")
    old = str(before.ok("queue", "show", r"MOVER\q7")[0]["guid"])
    assert before.stop() == 0

    given = environment(controller, "MOVER")
    server = Server(tmp_path / "data", environment=given)
    code, _, complaint = domain(server, "join", "--dry-run")
    assert (code, "--dry-run belongs to --migrate" in complaint) == (2, True), complaint
    planned = plan(server)
    assert [planned[rf"MOVER\q{number}"] for number in range(QUEUES)] == ["created"] * QUEUES
    assert planned["elsewhere"] == "left"
    assert not controller.search("(objectClass=mSMQConfiguration)", "cn", base=path)

    words = ["domain", "join", "--migrate", "--data", str(server.data)]
    process = subprocess.Popen(
        [sys.executable, "-m", "msmq_fast", *words], env={**inherited(), **given}, stdout=subprocess.PIPE
    )
    until(lambda: controller.search("(objectClass=mSMQQueue)", "cn", base=path), timeout=30)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGKILL, "the migration was quicker than the kill"
    assert set(plan(server).values()) == {"created", "unchanged", "left"}

    joined: dict[str, Any]
    code, joined, complaint = domain(server, "join", "--migrate")
    assert (code, joined["moved"]) == (0, QUEUES), complaint
    assert domain(server, "join", "--migrate")[1] == joined | {"new": False, "moved": 0}
    entries = controller.search("(objectClass=mSMQQueue)", "mSMQLabelEx", base=path)
    assert {one["mSMQLabelEx"][0] for one in entries} == {b"Label %d" % number for number in range(QUEUES)}

    server.start()
    new = str(server.ok("queue", "show", r"MOVER\q7")[0]["guid"])
    assert new != old
    until(lambda: known(server, new), timeout=30)
    assert server.ok("queue", "show", r"MOVER\q7")[0]["journal"]
    server.ok("send", f"PUBLIC={new}", "--body", "more")
    assert len(server.ok("receive", r"MOVER\q7", "--count", "2")) == 2
    assert len(server.ok("receive", f"PUBLIC={new};JOURNAL", "--count", "2")) == 2
    server.ok("send", r"MOVER\q7", "--body", "back", "--recoverable")
    assert server.stop() == 0

    code, _, complaint = domain(server, "leave", "--yes")
    assert code == 0, complaint
    after = Server(tmp_path / "data", environment=alone).start()
    found = after.ok("queue", "find", "--computer", "MOVER")
    assert len(found) == QUEUES
    assert new in {one["guid"] for one in found}
    assert len(after.ok("receive", f"PUBLIC={new}")) == 1
    assert after.stop() == 0


def test_a_dry_run_creates_nothing(controller: DomainController, tmp_path: Path) -> None:
    """Neither a store that is missing, nor a file beside one that is there."""
    path = controller.computer("DRY")
    given = environment(controller, "DRY")
    server = Server(tmp_path / "data", environment=given)
    assert plan(server) == {}
    assert list(tmp_path.iterdir()) == []
    alone = {"MSMQ_FAST_SERVER__NAME": "DRY"}
    before = Server(tmp_path / "data", environment=alone).start()
    before.ok("queue", "create", r"DRY\q")
    assert before.stop() == 0
    files = sorted(tmp_path.rglob("*"))
    assert plan(server) == {r"DRY\q": "created"}
    assert sorted(tmp_path.rglob("*")) == files
    assert not controller.search("(objectClass=mSMQConfiguration)", "cn", base=path)
