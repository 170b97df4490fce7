"""Former names of commands: they work, and neither help nor completion shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmq_fast.cli.tree import ROOT
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.commands import parse, walk
from tests.cli.operators import running
from tests.support.processes.servers import command


@pytest.mark.parametrize(
    "words",
    [
        "acl own orders --user alice",
        "key show --own",
        "key import file",
        "key forget guid",
        "check-config",
        "snapshot /backup/monday --rate 5MiB",
        "backup /backup/monday --data data",
        "backup --data data /backup/monday",
        "restore /backup/monday",
        "compact --data data",
    ],
)
def test_former_names_are_hidden_and_work(words: str) -> None:
    _, arguments = parse(ROOT, words.split())
    shown = {prog.partition(" ")[2] for _, prog in walk(ROOT, ROOT.name)}
    assert arguments.command not in shown - {"backup"}


def test_the_group_has_the_name_of_its_former_command(tmp_path: Path) -> None:
    with running() as server:
        server.ok("queue", "create", "orders")
        for number, words in enumerate((("backup",), ("backup", "create", "--offline"))):
            target = tmp_path / str(number)
            done = command(*words, str(target), "--data", str(server.data))
            assert done.returncode == Exit.OK, done.stderr
            assert (target / "data.mdb").exists()
        done = server.run("backup", "create", str(tmp_path / "2"), "--offline", "--rate", "5MiB")
        assert done.returncode == Exit.USAGE
    done = command("backup", "--help")
    assert done.stdout.startswith(b"usage: msmq-fast backup COMMAND")
    assert command("backup").returncode == Exit.USAGE
