"""What goes wrong between an HTTP server and what stands behind it: answers that say to try again, before or
after the message was taken, and answers that are slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from msmq_fast.srmp.http.request import Handler, HttpRequest
from msmq_fast.store.completion import Completion

from .timeline import ComputerLoop


@dataclass
class WebTrouble:
    """Chances, for each request."""

    unheard: float = 0.0  # 500, and the message was not looked at
    unsaid: float = 0.0  # 500, though the message was taken
    slow: float = 0.0  # the answer takes up to `longest` seconds
    longest: float = 100.0
    seen: int = 0  # how often

    def calm(self) -> None:
        """No more of it."""
        self.unheard = self.unsaid = self.slow = 0.0


class TroubledFront:
    """A handler around the one of a server."""

    def __init__(self, handler: Handler, trouble: WebTrouble, loop: ComputerLoop, random: Random) -> None:
        self._handler = handler
        self._trouble = trouble
        self._loop = loop
        self._random = random

    def __call__(self, request: HttpRequest) -> Completion[int]:
        trouble, chance = self._trouble, self._random.random()
        if chance < trouble.unheard:
            trouble.seen += 1
            return Completion.of(500)
        completion = self._handler(request)
        chance -= trouble.unheard
        if chance < trouble.unsaid:
            trouble.seen += 1
            return self._later(completion, 0.0, 500)
        if chance - trouble.unsaid < trouble.slow:
            trouble.seen += 1
            return self._later(completion, self._random.uniform(0.0, trouble.longest))
        return completion

    def _later(self, completion: Completion[int], delay: float, status: int = 0) -> Completion[int]:
        later: Completion[int] = Completion()

        def answer(done: Completion[int]) -> None:
            meant = status or (500 if done.exception() is not None else done.result())
            self._loop.call_later(delay, later.resolve, meant)

        completion.add_done_callback(answer)
        return later
