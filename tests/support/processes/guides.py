"""Runs the commands of a page as its reader types them, and compares what they print with the page.

A page shows commands in blocks of three kinds. In `console`, a line with `$ ` is a command; the lines below
it, up to the next one, are what it prints, where `…` stands for any text. A command without such lines may
print anything. In `bash` and `powershell` each line is a command, apart from comments. A `\\` at the end of a
line continues the command. `serve` starts a server, `^C` stops it, `export NAME=VALUE …` sets variables for
the commands that follow.

What a page takes for granted, such as a queue that exists, is in a `Preparation`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.processes.servers import Server, command, inherited

COMMANDS = ("console", "bash", "powershell")
"""The kinds of blocks that show commands."""
_PROMPT = re.compile(r"(?:\w+)?\$ ")
_REMARK = re.compile(r"\s{2,}#.*|^#.*")
_SHELL = re.compile(r"[|;&<>]|\$\w|^(?!msmq-fast )")
_ALONE = {"MSMQ_FAST_MQQB__PEER_PORT": "9"}
"""Other hosts of a page cannot be reached, even if a queue manager uses port 1801 of this machine."""
_PASSWORD = b"a long enough secret\n"
"""What the reader types when a command asks for a password."""


@dataclass(frozen=True)
class Preparation:
    """What the reader of a page has or does beside it."""

    server: bool = False
    """A server is running at ./data, and MSMQ_FAST_ENDPOINT names it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the server and of the commands."""
    before: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Commands to type before a command of the page; those of "" before all."""
    left_out: Set[str] = frozenset()
    """The commands of the page that are not typed."""
    replace: Mapping[str, str] = field(default_factory=dict)
    """What is typed in the place of names and addresses of the page; `{admin}` is the admin port."""


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """The fenced blocks of these kinds: their language, and their text without the indentation of a list."""
    fence = re.compile(rf"^( *)```({'|'.join(languages)})\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
    found = fence.findall(page.read_text(encoding="utf-8"))
    return [(name, re.sub(f"^{indent}", "", block, flags=re.MULTILINE)) for indent, name, block in found]


def steps(language: str, block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block with the lines that the page shows below it."""
    typed: str | None = None
    shown: list[str] = []
    for line in block.replace("\\\n", " ").splitlines():
        prompt = _PROMPT.match(line)
        if language != "console" or prompt or line == "^C":
            if typed:
                yield typed, shown
            typed, shown = _REMARK.sub("", line[prompt.end() :] if prompt else line).strip(), []
        else:
            shown.append(line)
    if typed:
        yield typed, shown


def commands(page: Path) -> list[tuple[str, list[str]]]:
    """All commands of a page, each with what it prints."""
    return [step for language, block in blocks(page, *COMMANDS) for step in steps(language, block)]


def matches(printed: str, shown: list[str]) -> bool:
    """Whether lines are as shown: runs of blanks are alike, `…` is any text."""
    plain = [" ".join(line.split()) for line in printed.strip().splitlines()]
    patterns = [".*".join(map(re.escape, " ".join(line.split()).split("…"))) for line in shown]
    return len(plain) == len(patterns) and all(map(re.fullmatch, patterns, plain))


class Reader:
    """A reader at a folder with two terminals: one for the server, one for everything else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        self.server: Server | None = None
        self._bin = folder / "bin"
        self._bin.mkdir()
        for name, module in (("msmq-fast", "msmq_fast"), ("python", "")):
            program = self._bin / name
            run = f"{shlex.quote(sys.executable)} {f'-m {module} ' if module else ''}"
            program.write_text(f'#!/bin/sh\nexec {run}"$@"\n')
            program.chmod(0o755)

    def follow(self, page: Path, prepared: Preparation = Preparation()) -> int:
        """Types the commands of a page; returns how many there were."""
        self.environment.update(prepared.environment)
        if prepared.server:
            self._type("msmq-fast serve --data ./data")
            self._type("export MSMQ_FAST_ENDPOINT=unix:$PWD/data/app.sock MSMQ_FAST_SERVER__DATA=$PWD/data")
        self._prepare(prepared.before.get("", ()), prepared)
        count = 0
        for typed, shown in commands(page):
            if typed in prepared.left_out:
                continue
            self._prepare(prepared.before.get(typed, ()), prepared)
            count += 1
            code, printed = self._type(self._replaced(typed, prepared.replace))
            if shown:
                assert matches(printed, shown), f"$ {typed}\n{printed}\nis not what {page.name} shows"
            else:
                assert code == 0, f"$ {typed}\n{printed}"
        return count

    def python(self, program: str) -> str:
        """Runs a program; returns what it prints."""
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.folder,
            env={**inherited(), **self.environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def close(self) -> None:
        """Ends the server, if one runs."""
        if self.server is not None:
            self.server.kill()

    def _replaced(self, typed: str, replace: Mapping[str, str]) -> str:
        for old, new in replace.items():
            typed = typed.replace(old, new)
        if self.server is not None:
            typed = typed.replace("{admin}", str(self.server.port("admin")))
        return typed

    def _prepare(self, typed: Sequence[str], prepared: Preparation) -> None:
        for each in typed:
            code, printed = self._type(self._replaced(each, prepared.replace))
            assert code == 0, f"$ {each}\n{printed}"

    def _type(self, typed: str) -> tuple[int, str]:
        if typed == "^C":
            assert self.server is not None
            return self.server.stop(), ""
        if typed.startswith("export "):
            for assignment in typed.split()[1:]:
                name, _, value = assignment.partition("=")
                if name != "PATH":  # where the programs are is the reader's matter
                    self.environment[name] = value.replace("$PWD", str(self.folder))
            return 0, ""
        words = shlex.split(typed)
        if words[:2] == ["msmq-fast", "serve"]:
            data = self.folder / words[words.index("--data") + 1]
            self.server = Server(data, environment={**self.environment, **_ALONE}).start()
            return 0, " ".join(["ready", *(f"{name}={value}" for name, value in self.server.ready.items())])
        if not _SHELL.search(typed):
            done = command(*words[1:], environment=self.environment, stdin=_PASSWORD, cwd=self.folder)
        else:
            path = f"{self._bin}:/usr/local/bin:/usr/bin:/bin"
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", typed],
                cwd=self.folder,
                env={**inherited(), **self.environment, "PATH": path},
                input=_PASSWORD,
                capture_output=True,
                timeout=60,
                check=False,
            )
        return done.returncode, (done.stdout + done.stderr).decode()
