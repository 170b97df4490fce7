"""Deadlines of multicast: what raises holds up neither the other receivers nor what is sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from msmq_fast.server.pgm.listener import PgmListener
from msmq_fast.server.pgm.sending import PgmSending


class Due:
    """A receiver or source whose deadline has passed."""

    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken
        self.ran = 0

    def next_deadline(self) -> float:
        return 0.0

    def expire(self, _: float) -> None:
        self.ran += 1
        if self.broken:
            raise RuntimeError("broken")

    def packets(self, _: float) -> list[Any]:
        return []


def test_receivers_and_what_is_sent_have_their_turn_behind_a_receiver_that_raises() -> None:
    listener = cast(Any, object.__new__(PgmListener))
    first, second, sending = Due(broken=True), Due(), []  # type: ignore[var-annotated]
    listener._changed, listener._look_again = False, None
    listener._receivers = {bytes(6): first, bytes(5) + b"\1": second}
    listener._sockets = SimpleNamespace(interfaces=())
    listener.sending = SimpleNamespace(expire=sending.append, flush=sending.append)
    with pytest.raises(ExceptionGroup):
        listener.expire(7.0)
    assert (first.ran, second.ran, sending) == (1, 1, [7.0, 7.0])


def test_sources_and_queues_have_their_turn_behind_one_that_raises() -> None:
    sending = cast(Any, object.__new__(PgmSending))
    first, second = Due(broken=True), Due()
    sending._sources = {1: (first, None), 2: (second, None)}
    sending._feeds = {}
    sending._retries = {"broken": 0.0, "sound": 0.0}
    tried: list[str] = []

    def connect(queue: str, _: float) -> None:
        tried.append(queue)
        if queue == "broken":
            raise RuntimeError("no way")

    sending._connect = connect
    with pytest.raises(ExceptionGroup):
        sending.expire(7.0)
    assert (first.ran, second.ran, tried) == (1, 1, ["broken", "sound"])
    assert sending._retries["broken"] > 7.0, "it is tried again"
    assert "sound" not in sending._retries
