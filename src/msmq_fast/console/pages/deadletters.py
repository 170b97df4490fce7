"""The page about dead letters: why each message failed, in a sentence."""

from __future__ import annotations

from collections import Counter

from aiohttp import web

from msmq_fast.console.formats import REASONS
from msmq_fast.console.pages.batches import DEAD_LETTERS, filters_of
from msmq_fast.console.pages.messages import browse_or_complain
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]


async def _show(visit: Visit) -> web.Response:
    kind = visit.get("kind", "express")
    kind = kind if kind in DEAD_LETTERS else "express"
    queue = DEAD_LETTERS[kind]
    found, error = await browse_or_complain(visit, queue)
    rights = await visit.perform("queues.rights", path={"queue": queue})
    reasons = Counter(int(one["reason"] or one["class"]) for one in found["items"])
    return await visit.page(
        "deadletters.html",
        "Dead letters",
        status=400 if error else 200,
        error=error,
        kind=kind,
        kinds=DEAD_LETTERS,
        queue=queue,
        found=found,
        rights=rights,
        reasons=reasons.most_common(),
        filters=filters_of(visit),
        classes=REASONS,
    )


PAGES = [("GET", "/deadletters", _show)]
