"""The page about dead letters: why each message failed, in a sentence."""

from __future__ import annotations

from collections import Counter

from aiohttp import web

from msmq_fast.console.formats import REASONS
from msmq_fast.console.pages.messages import browse
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_QUEUES = {"express": ".\\system$;deadletter", "transactional": ".\\system$;deadxact"}


async def _show(visit: Visit) -> web.Response:
    kind = visit.get("kind", "express")
    kind = kind if kind in _QUEUES else "express"
    queue = _QUEUES[kind]
    found = await browse(visit, queue)
    reasons = Counter(int(one["reason"] or one["class"]) for one in found["items"])
    return await visit.page(
        "deadletters.html",
        "Dead letters",
        kind=kind,
        kinds=_QUEUES,
        queue=queue,
        found=found,
        reasons=reasons.most_common(),
        label=visit.get("label"),
        message_class=visit.get("class"),
        classes=REASONS,
    )


PAGES = [("GET", "/deadletters", _show)]
