"""Runs the commands of a page as its reader types them, and compares what they print with the page.

A page has blocks of kind `console`. A line with `$ ` is a command; the lines below it, up to the next one,
are what it prints, where `…` stands for any text. A command without such lines may print anything. `serve`
starts a server, `^C` stops it, `export NAME=VALUE` sets a variable for the commands that follow.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.processes.servers import Server, command, inherited

_SHELL = re.compile(r"[|;&<>]|\$\w|^(?!msmq-fast )")


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a kind, without the indentation that they have inside a list."""
    fence = re.compile(rf"^( *)```{language}\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
    found = fence.findall(page.read_text(encoding="utf-8"))
    return [re.sub(f"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def steps(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block with the lines that the page shows below it."""
    typed: str | None = None
    shown: list[str] = []
    for line in block.splitlines():
        if line.startswith("$ ") or line == "^C":
            if typed is not None:
                yield typed, shown
            typed, shown = re.sub(r"\s{2,}#.*", "", line.removeprefix("$ ")), []
        else:
            shown.append(line)
    if typed is not None:
        yield typed, shown


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
        program = self._bin / "msmq-fast"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m msmq_fast "$@"\n')
        program.chmod(0o755)

    def follow(self, page: Path) -> int:
        """Types every command of a page; returns how many there were."""
        count = 0
        for block in blocks(page, "console"):
            for typed, shown in steps(block):
                count += 1
                code, printed = self._type(typed)
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

    def _type(self, typed: str) -> tuple[int, str]:
        if typed == "^C":
            assert self.server is not None
            return self.server.stop(), ""
        if exported := re.fullmatch(r"export (\w+)=(.*)", typed):
            self.environment[exported[1]] = exported[2].replace("$PWD", str(self.folder))
            return 0, ""
        words = shlex.split(typed)
        if words[:2] == ["msmq-fast", "serve"]:
            data = self.folder / words[words.index("--data") + 1]
            self.server = Server(data).start()
            return 0, " ".join(["ready", *(f"{name}={value}" for name, value in self.server.ready.items())])
        local = any((self.folder / word).is_file() for word in words[1:])
        if not local and not _SHELL.search(typed):
            done = command(*words[1:], environment=self.environment)
        else:
            path = f"{self._bin}:/usr/local/bin:/usr/bin:/bin"
            done = subprocess.run(
                ["bash", "-c", typed],
                cwd=self.folder,
                env={**inherited(), **self.environment, "PATH": path},
                capture_output=True,
                timeout=60,
                check=False,
            )
        return done.returncode, (done.stdout + done.stderr).decode()
