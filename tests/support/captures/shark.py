"""tshark with the dissector of contrib/wireshark, installed as its documentation says."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "contrib" / "wireshark" / "mqqb.lua"
SEPARATOR = "\x1f"
AGGREGATOR = "\x1e"
WRONG = "mqqb.malformed || _ws.malformed || _ws.lua.error || mqqb.count_mismatch || mqqb.ack_unsent"


@functools.cache
def _home() -> Path:
    """A home directory with the plugin in it and nothing else."""
    home = Path(tempfile.mkdtemp(prefix="msmq-shark-"))
    plugins = home / ".local" / "lib" / "wireshark" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / SCRIPT.name).symlink_to(SCRIPT)
    return home


def tshark(*arguments: str) -> str:
    """What tshark prints. AssertionError when it fails or the script does."""
    environment = {**os.environ, "HOME": str(_home())}
    environment.pop("XDG_CONFIG_HOME", None)
    done = subprocess.run(
        ["tshark", *arguments], capture_output=True, check=False, env=environment, timeout=600
    )
    errors = done.stderr.decode(errors="replace")
    assert done.returncode == 0, (done.returncode, errors)
    assert "Lua" not in errors, errors
    return done.stdout.decode(errors="surrogateescape")


def rows(
    capture: Path, fields: list[str], shown: str = "mqqb || mqqb_ping", options: tuple[str, ...] = ()
) -> list[dict[str, list[str]]]:
    """One dict for each frame that `shown` lets through: the values of each field, in order of appearance."""
    wanted = [word for field in fields for word in ("-e", field)]
    form = ["-T", "fields", "-E", "occurrence=a"]
    form += ["-E", f"separator={SEPARATOR}", "-E", f"aggregator={AGGREGATOR}"]
    printed = tshark("-r", str(capture), *options, "-Y", shown, *form, *wanted)
    return [
        {
            name: value.split(AGGREGATOR) if value else []
            for name, value in zip(fields, line.split(SEPARATOR), strict=True)
        }
        for line in printed.split("\n")
        if line
    ]


def complaints(capture: Path) -> list[str]:
    """Frames that something is wrong with: malformed packets, failures of the script, wrong counts."""
    columns = ("frame.number", "_ws.col.Info", "_ws.expert.message")
    found = rows(capture, list(columns), WRONG)
    return ["\t".join(" | ".join(row[column]) for column in columns) for row in found]
