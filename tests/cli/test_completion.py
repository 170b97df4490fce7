"""Completion: what may come next, and the scripts of the shells that ask for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.cli.main import main
from msmq_fast.cli.tree import ROOT
from msmq_fast.protocol.exits import Exit
from msmq_fast.terminal.completion import Candidate, answer, candidates, split_line
from tests.support.processes.servers import Server, data_directory


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA").start()
        try:
            running.ok("queue", "create", "orders")
            running.ok("queue", "create", "zebra")
            running.ok("queue", "create", r".\prices")
            yield running
        finally:
            running.kill()


def words(line: str) -> list[str]:
    found = candidates(ROOT, split_line(line), lambda argument, _: [Candidate(f"<{argument.value}>")])
    return [candidate.word for candidate in found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("msmq-fast rec", ["receive"]),
        ("msmq-fast queue cr", ["create"]),
        ("msmq-fast queue create --tr", ["--transactional"]),
        ("msmq-fast queue create q --privacy ", ["none", "optional", "body"]),
        ("msmq-fast queue create q --privacy=b", ["--privacy=body"]),
        ("msmq-fast send q --file ", [":files"]),
        ("msmq-fast backup ", ["create", "restore", "push", "pull", "list", "prune"]),
        ("msmq-fast backup create ", [":directories"]),
        ("msmq-fast queue show ", ["<NAME>"]),
        ("msmq-fast queue move a ", ["<TARGET>"]),
        ("msmq-fast queue move --limit 5 ", ["<SOURCE>"]),
        ("msmq-fast queue show q ", []),
        ("msmq-fast export a ", ["<QUEUE>"]),
        ("msmq-fast help outg", ["outgoing"]),
        ("msmq-fast lake aud", ["audit"]),
        ("msmq-fast nonsense ", []),
        ("msmq-fast completion z", ["zsh"]),
    ],
)
def test_what_may_come_next(line: str, expected: list[str]) -> None:
    assert words(line) == expected


def test_hidden_commands_are_not_offered() -> None:
    offered = words("msmq-fast ")
    assert "complete" not in offered
    assert {"queue", "send", "completion", "lake"} < set(offered)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("msmq-fast", [""]),
        ("msmq-fast queue ", ["queue", ""]),
        (r"msmq-fast queue show '.\pri", ["queue", "show", r".\pri"]),
        (r"msmq-fast queue show .\\pri", ["queue", "show", r".\pri"]),
        ('msmq-fast send q --label "a b', ["send", "q", "--label", "a b"]),
        ("msmq-fast send q --label 'a b' ", ["send", "q", "--label", "a b", ""]),
    ],
)
def test_a_line_that_is_not_finished_has_words(line: str, expected: list[str]) -> None:
    assert split_line(line) == expected


def test_names_are_written_as_the_shell_needs_them() -> None:
    found = [Candidate(r".\system$;journal", "system")]
    assert answer("bash", found, "", "msmq-fast peek ") == [r".\\system\$\;journal"]
    assert answer("bash", found, r".\s", r"msmq-fast peek '.\s") == [r".\system$;journal"]
    assert answer("bash", [Candidate("DIRECT=TCP:1.2.3.4")], "DIRECT=TCP:1") == ["1.2.3.4"]
    assert answer("zsh", [Candidate("tcp://a:1", "there")], "") == [r"tcp\://a\:1:there"]
    assert answer("fish", found, "") == [".\\system$;journal\tsystem"]


def test_names_of_queues_come_from_the_server(server: Server) -> None:
    shown = server.run("complete", "fish", "queue", "show", "").stdout.decode().splitlines()
    assert {"orders\tqueue", ".\\prices\tqueue", ".\\system$;deadletter\tdeadletter"} < set(shown)
    explicit = server.run("complete", "fish", "queue", "show", "--endpoint", "unix:/nowhere", "or")
    assert (explicit.returncode, explicit.stdout, explicit.stderr) == (Exit.OK, b"", b"")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == Exit.OK
    assert f"msmq-fast complete {shell}" in capsys.readouterr().out


PROGRAMS = {
    "bash": """
source <(msmq-fast completion bash)
compopt() { echo "compopt $*"; }
ask() { COMP_LINE=$1; COMP_POINT=${#1}; _msmq_fast; printf '%s\\n' "${COMPREPLY[@]}"; }
ask "msmq-fast rec"; ask "msmq-fast peek zeb"; ask "msmq-fast send --file "
""",
    "zsh": """
compdef() { }
_files() { print files }
_describe() { print -l -- $found }
source <(msmq-fast completion zsh)
ask() { words=("$@"); CURRENT=$#; _msmq_fast }
ask msmq-fast rec; ask msmq-fast peek zeb; ask msmq-fast send --file ''
""",
    "fish": """
msmq-fast completion fish | source
complete -C 'msmq-fast rec'; complete -C 'msmq-fast peek zeb'; complete -C 'msmq-fast send --file /etc/hostn'
""",
}
SHOWN = {
    "bash": ["receive", "zebra", "compopt -o default", ""],
    "zsh": ["receive:remove messages from a queue and print them", "zebra:queue", "files"],
    "fish": ["receive\tremove messages from a queue and print them", "zebra\tqueue", "/etc/hostname"],
}


@pytest.mark.parametrize(
    "shell", [pytest.param(shell, marks=pytest.mark.needs(shell)) for shell in ("bash", "zsh", "fish")]
)
def test_the_shell_completes(server: Server, tmp_path: Path, shell: str) -> None:
    program = tmp_path / "msmq-fast"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m msmq_fast "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "MSMQ_FAST_ENDPOINT": server.endpoint,
    }
    done = subprocess.run([shell, "-c", PROGRAMS[shell]], capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines() == SHOWN[shell]
