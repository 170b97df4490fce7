"""`msmq-fast queue`: manages the queues of this queue manager."""

from msmq_fast.terminal.commands import Group, Modules

__all__ = ["COMMAND"]

_HERE = "msmq_fast.cli.commands.queue"

COMMAND = Group(
    name="queue",
    help="create, list, show, change and delete queues",
    commands=Modules(
        {
            "create": f"{_HERE}.create",
            "list": f"{_HERE}.list",
            "find": f"{_HERE}.find",
            "show": f"{_HERE}.show",
            "set": f"{_HERE}.set",
            "delete": f"{_HERE}.delete",
            "purge": f"{_HERE}.purge",
            "move": f"{_HERE}.move",
            "copy": f"{_HERE}.copy",
            "import": f"{_HERE}.import_",
        }
    ),
)
