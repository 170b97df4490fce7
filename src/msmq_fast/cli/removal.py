"""The removal of selected messages, which `queue purge` and `outgoing purge` share."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable

from msmq_fast.cli.confirm import asks, confirm
from msmq_fast.cli.transfer import BATCH, Run
from msmq_fast.client.exchange import Done

__all__ = ["Remove", "remove_selected", "selects"]

Remove = Callable[[int, int, int, bool], Awaitable[Done]]
"""Removes one batch: after, upto, limit, dry run."""

_SELECTION = (
    "label", "message_class", "older", "newer", "since", "until", "lookup_ids", "id", "correlation_id",
    "priority", "limit",
)  # fmt: skip
"""What `transfer.add_filter` adds. An option that is missing here would purge the whole queue."""


def selects(arguments: argparse.Namespace) -> bool:
    """Return whether the command line selects messages, or only asks what would happen."""
    return arguments.dry_run or any(getattr(arguments, name) is not None for name in _SELECTION)


async def remove_selected(arguments: argparse.Namespace, what: str, total: int, remove: Remove) -> int:
    """Remove messages batch by batch, print the totals, and return the exit code. Asks at a terminal, with
    the number of the selected messages. `what` names the queue, `total` is the number of its messages.
    """
    if asks(arguments) and not arguments.dry_run:
        confirm(f"purge {what}: the selection", await _selected(arguments, remove))
    run = Run("purge", arguments, total)
    with run.progress:
        await run.repeat(lambda after, upto, limit: remove(after, upto, limit, arguments.dry_run))
    return run.show()


async def _selected(arguments: argparse.Namespace, remove: Remove) -> int:
    """Return how many messages would be removed."""
    count = after = upto = 0
    finished = False
    while not finished and (arguments.limit is None or count < arguments.limit):
        left = BATCH if arguments.limit is None else min(arguments.limit - count, BATCH)
        done = await remove(after, upto, left, True)
        count += done.count
        after, upto, finished = done.next, done.upto, done.finished
    return count
