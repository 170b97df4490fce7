"""`msmq-fast store`: maintains the files of a data directory."""

from dataclasses import replace

from msmq_fast.cli.commands.compact import COMMAND as COMPACT
from msmq_fast.terminal.commands import Group, members

__all__ = ["COMMAND"]

COMMAND = Group(
    name="store",
    help="maintain the store of a data directory",
    commands=members(replace(COMPACT, hidden=False)),
)
