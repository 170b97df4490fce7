"""`msmq-fast check-config`: the former name of `config check`."""

from dataclasses import replace

from msmq_fast.cli.commands.config import CHECK

__all__ = ["COMMAND"]

COMMAND = replace(CHECK, name="check-config", hidden=True)
