"""Flow control: when the queue manager accepts no messages (MS-MQDMPR 3.1.7.2.5, 3.1.7.2.6, X-38)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from msmq_fast._native.ledger import Ledger

_log = logging.getLogger(__name__)

MEMORY_FULL = "express messages fill their share of memory"
_ENOUGH, _FULL = 0, 2  # Ledger.memory


class FlowControl:
    """Records the reasons why the queue manager accepts no messages at the moment.

    As long as there is a reason, messages are refused as if a quota were used up (DM-096): programs get
    INSUFFICIENT_RESOURCES, sessions close without an acknowledgment.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._reasons: dict[str, None] = {}
        self._short = self._full = False
        self._watchers: list[Callable[[bool], object]] = []
        self.began = 0  # how often flow control began

    def watch(self, on_shortage: Callable[[bool], object]) -> None:
        """Register a function that is called when resources run short.

        `on_shortage(True)` is called when resources begin to run short, before any message is refused
        (immediately, if they are already short); `on_shortage(False)` is called when resources are sufficient
        again.
        """
        if on_shortage not in self._watchers:
            self._watchers.append(on_shortage)
        if self._short:
            on_shortage(True)

    def limit_memory(self, limit: int) -> None:
        """Set the limit for express messages in memory.

        Above `limit` bytes no messages are accepted until express messages use less than seven eighths of the
        limit. The watchers are called at fifteen sixteenths of the limit.
        """
        self._ledger.express_low = limit - limit // 8
        self._ledger.express_mid = limit - limit // 16
        self._ledger.express_high = limit

    def begin(self, reason: str) -> None:
        """Begin Flow Control for a reason: accept no messages (DM-211). A repeated call with the same reason
        has no effect.
        """
        if reason not in self._reasons:
            self._reasons[reason] = None
            self.began += 1
            self._apply()

    def end(self, reason: str) -> None:
        """End Flow Control for this reason (DM-212). Messages are accepted again when no reason is left."""
        if reason in self._reasons:
            del self._reasons[reason]
            self._apply()

    @property
    def why(self) -> str | None:
        """The reason why no messages are accepted; None if messages are accepted."""
        if self._ledger.memory == _FULL:
            return MEMORY_FULL
        return next(iter(self._reasons), None)

    def _apply(self) -> None:
        self._ledger.throttled = bool(self._reasons)
        self._tell()

    def memory_changed(self, level: int) -> None:
        """Update the flow control after a change of `Ledger.memory`, the level of memory use by express
        messages.
        """
        used = self._ledger.express_bytes
        if level == _FULL:
            self.began += 1
            _log.error("%s: %d bytes, the server accepts no messages", MEMORY_FULL, used)
        elif self._full:
            _log.info("memory is sufficient again: %d bytes of express messages", used)
        self._full = level == _FULL
        self._tell()

    def _tell(self) -> None:
        short = bool(self._reasons) or self._ledger.memory != _ENOUGH
        if short != self._short:
            self._short = short
            for on_shortage in self._watchers:
                on_shortage(short)
