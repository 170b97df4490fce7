"""Handles data loss: the query fails, or continues with a warning."""

from __future__ import annotations

import logging
from typing import Final

log: Final = logging.getLogger("msmq_fast.spark")


class SourceError(RuntimeError):
    """Raised if the data source cannot continue. The text of the error is one line."""


class DataLoss(SourceError):
    """Raised if rows that the query should have read are lost, or may have been missed."""


class Losses:
    """Reports lost rows according to the option `failOnDataLoss`."""

    def __init__(self, *, fail: bool) -> None:
        self._fail = fail
        self._warned: set[str] = set()

    def report(self, text: str, otherwise: str) -> None:
        """Raises DataLoss if failOnDataLoss is true; otherwise logs a warning, but each `text` only once.
        `text` describes the loss; `otherwise` describes how the query continues without failOnDataLoss.
        """
        if self._fail:
            raise DataLoss(f"{text}. With failOnDataLoss=false {otherwise}.")
        if text not in self._warned:
            self._warned.add(text)
            log.warning("data loss: %s; %s", text, otherwise)
