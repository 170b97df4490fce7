"""One SRMP message into a queue manager."""

from __future__ import annotations

from msmq_fast.qm.access import Access
from tests.support.srmp.station import Station


def name(queue: str) -> str:
    return f".\\private$\\{queue}"


def receive(station: Station, queue: str) -> None:
    handle = station.manager.open(name(queue), Access.RECEIVE)
    station.finish(handle.receive(0).completion)
    handle.close()
