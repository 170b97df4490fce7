"""`msmq-fast key`: the former name of `peer-key`."""

from msmq_fast.cli.commands.peer_key import FORMER

__all__ = ["COMMAND"]

COMMAND = FORMER
