"""`msmq-fast check-config`: another name of `config check`."""

from dataclasses import replace

from msmq_fast.cli.commands.config import CHECK

__all__ = ["COMMAND"]

COMMAND = replace(
    CHECK, name="check-config", help="read a configuration and explain its mistakes (config check)"
)
