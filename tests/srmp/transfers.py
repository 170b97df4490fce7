"""An outgoing queue of SRMP and the server it posts to."""

from __future__ import annotations

from collections.abc import Callable

from msmq_fast.srmp.endpoint import Endpoint, Progress

SERVER = Endpoint("http", "server.test", 80)


class Queue:
    """An outgoing queue whose messages are texts."""

    def __init__(self, *messages: str, endpoint: Endpoint = SERVER) -> None:
        self.messages = list(messages)
        self.where = endpoint
        self.under_way: str | None = None
        self.done: list[tuple[str, bool]] = []
        self.heard: list[Progress] = []
        self.pauses: list[float] = []
        self.waiting = False  # the Stream Receipt Wait Timer runs
        self.settled: Callable[[int], None] | None = None
        self.ready = True

    def endpoint(self) -> Endpoint:
        return self.where

    def waits(self) -> bool:
        return bool(self.messages)

    def may_continue(self, settled: Callable[[int], None]) -> bool:
        self.settled = settled
        return self.ready

    def take(self) -> str | None:
        assert self.under_way is None, "one request under way at most"
        if not self.messages:
            return None
        self.under_way = self.messages.pop(0)
        return self.under_way

    def _end(self) -> str:
        ended, self.under_way = self.under_way, None
        assert ended is not None
        return ended

    def accepted(self) -> None:
        self.done.append((self._end(), True))

    def rejected(self) -> None:
        self.done.append((self._end(), False))

    def returned(self) -> None:
        self.messages.insert(0, self._end())

    def transmitted(self, now: float) -> None:
        self.waiting = True

    def stop_waiting(self) -> None:
        self.waiting = False

    def scheduled(self, wait: float) -> None:
        self.pauses.append(wait)

    def progress(self, progress: Progress, address: str, detail: str) -> None:
        self.heard.append(progress)
