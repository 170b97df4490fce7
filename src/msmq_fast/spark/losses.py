"""Handles data loss: the query fails, or continues with a warning."""

from __future__ import annotations

import logging
from typing import Final

log: Final = logging.getLogger("msmq_fast.spark")


class SourceError(RuntimeError):
    """Raised if the source cannot continue. The message is one line."""


class DataLoss(SourceError):
    """Raised if rows that the query should have read are lost, or may have been missed."""


class Losses:
    """Option `failOnDataLoss`."""

    def __init__(self, *, fail: bool) -> None:
        self._fail = fail
        self._warned: set[str] = set()

    def report(self, text: str, otherwise: str) -> None:
        """Raises DataLoss if the query is to fail, otherwise logs one warning. `otherwise` describes how the
        query continues.
        """
        if self._fail:
            raise DataLoss(f"{text}. With failOnDataLoss=false {otherwise}.")
        if text not in self._warned:
            self._warned.add(text)
            log.warning("data loss: %s; %s", text, otherwise)
