"""Requests about the audit: administrative acts, denials and log-ons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msmq_fast.client.subject import Subject
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.resources import AuditEntry

__all__ = ["AuditAdmin", "AuditPage"]


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of the audit. `next` is the number with which the next page begins."""

    entries: list[AuditEntry]
    next: int
    finished: bool


class AuditAdmin(Subject):
    """The audit of the queue manager. Administrators and readers may list it."""

    async def page(
        self,
        start: int = 0,
        *,
        newest_first: bool = False,
        kind: str = "",
        caller: str = "",
        operation: str = "",
        object: str = "",
        since: int = 0,
        until: int = 0,
    ) -> AuditPage:
        """Return one page of entries, from number `start` on; `start` 0 is the oldest entry, or with
        `newest_first` the newest one. A page can be empty although more pages follow.

        `kind` is `act`, `denial` or `login`; `caller`, `operation` and `object` are parts of the texts, in
        any case, and `caller` may be a SID; `since` and `until` are seconds since 1970. An empty value or 0
        selects everything. Raises InvalidParameter, AccessDenied.
        """
        wanted: dict[str, Any] = {
            "kind": kind,
            "caller": caller,
            "operation": operation,
            "object": object,
            "since": since,
            "until": until,
        }
        given = {name: value for name, value in wanted.items() if value}
        page = await self._link.request(Frame.LIST_AUDIT, [given, newest_first, start])
        entries = [AuditEntry.from_map(entry) for entry in page["entries"]]
        return AuditPage(entries, page["next"], page["finished"])
