"""The audit of the queue manager: administrative acts, denials and log-ons, as entries of a ring in the
store.

1. An act whose result is known when it begins is written in the batch that carries the act itself. So an act
   that was acknowledged has its entry after a crash. If the act fails after all, its entry is rewritten.
2. Any other act is written in the batch after its end.
3. A long act, such as a move of a million messages in pages, has one entry, which is rewritten with each page
   (`Progress`).
4. Denials and log-ons are written together, `DELAY` after the first of them or with the next act, whichever
   comes first. A crash loses those of the last `DELAY` seconds.
5. Each source of denials, log-ons and, unless it is an administrator, acts is limited (limits.py). Acts of
   administrators are never left out.
6. No argument may contain a secret. The log `msmq_fast.audit` has a line for each act and each refusal, too.

To audit another act, pass its completion through `recorded`. Do so in code that every interface calls: in the
queue manager for acts on queues, otherwise in the handler of the only interface that has the act.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from msmq_fast._native.tables import StoreError
from msmq_fast.protocol.resources import AuditEntry
from msmq_fast.qm.audit.limits import EntryLimits, Source
from msmq_fast.qm.audit.ring import ACT, DENIAL, LOGIN, AuditRing, Page, Record, bounded
from msmq_fast.qm.services import Services
from msmq_fast.security import acts
from msmq_fast.security.addresses import address_group
from msmq_fast.security.audit import AuditRecord
from msmq_fast.security.logons import Logon
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion

__all__ = ["DELAY", "AuditTrail", "Progress"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

DELAY: Final = 1.0
"""Seconds for which a denial or a log-on waits for others."""

_RETRY: Final = 5.0  # seconds after which entries of a failed commit are written again
_MOST_PENDING: Final = 1000  # entries that wait for a store without room


class AuditTrail:
    """Writes and reads the audit. Implements `Timed`. `entries` and `size` (bytes) limit the ring."""

    def __init__(self, services: Services, entries: int, size: int) -> None:
        self._services = services
        self._ring = AuditRing(services, entries, size)
        self._pending: deque[Record] = deque()
        self._due: float | None = None
        self._denials = EntryLimits(burst=50, interval=60.0)
        self._logons = EntryLimits(burst=20, interval=300.0)
        self._user_acts = EntryLimits(burst=200, interval=10.0)
        self._limits = (self._denials, self._logons, self._user_acts)

    def recover(self) -> None:
        """Read what the ring holds."""
        self._ring.recover()

    def page(self, start: int, look: int, *, newest_first: bool) -> Page:
        """See `AuditRing.page`."""
        return self._ring.page(start, look, newest_first=newest_first)

    # ---- acts

    def recorded(
        self,
        done: Completion[T],
        caller: Token | None,
        operation: str,
        target: str,
        result: str | Callable[[T], str] = "",
    ) -> Completion[T]:
        """Audit an act, with its result or its error. Returns `done`. `caller` is None for an act of the
        queue manager itself.

        `result` is a text if it is known now: pass the completion of a unit of the current batch then.
        """
        early: Record | None = None
        if isinstance(result, str):
            early = self.put(None, caller, operation, target, "done", result)

        def ended(done: Completion[T]) -> None:
            error = done.exception()
            if error is not None:
                text = f"failed: {error}"
                self.put(early, caller, operation, target, "failed", str(error))
            else:
                text = result if isinstance(result, str) else result(done.result())
                if not isinstance(result, str):
                    self.put(early, caller, operation, target, "done", text)
            acts.record(caller, operation, target, text or "done")

        done.add_done_callback(ended)
        return done

    def act(
        self, caller: Token | None, operation: str, target: str, detail: str = "", *, result: str = "done"
    ) -> None:
        """Audit an act that has ended."""
        self.put(None, caller, operation, target, result, detail)
        text = detail if result == "done" else f"{result}: {detail}"
        acts.record(caller, operation, target, text or "done")

    def progress(self, caller: Token | None, operation: str, target: str) -> Progress:
        """Return the entry of an act of many steps."""
        return Progress(self, caller, operation, target)

    def put(
        self,
        record: Record | None,
        caller: Token | None,
        operation: str,
        target: str,
        result: str,
        detail: str,
    ) -> Record | None:
        """Write the entry of an act into the current batch: a new one, or the newer state of `record`.
        Returns the record, None if the entry was left out.
        """
        if record is not None:
            record.entry = replace(record.entry, result=result, detail=bounded_detail(detail))
        else:
            entry = self._entry(ACT, caller, operation, target, result, detail)
            if caller is not None and not caller.administrator:
                admitted = self._user_acts.admit(_source(caller), entry, self._services.monotonic())
                if admitted is None:
                    return None
                entry = admitted
            record = Record(entry)
        if record not in self._pending:
            self._pending.append(record)
        self._write()
        return record

    # ---- denials and log-ons

    def denied(self, refusal: AuditRecord, repeated: int) -> None:
        """Audit a refused access; `repeated` is the number of equal ones before it that were not audited."""
        parts = [f"needs {', '.join(refusal.rights)}" if refusal.rights else "", refusal.reason]
        parts += [refusal.entry, refusal.detail]
        entry = AuditEntry(
            time=self._now_s(),
            kind=DENIAL,
            caller=refusal.caller,
            sid=refusal.caller_sid,
            address=refusal.address,
            operation=refusal.operation,
            object=refusal.target,
            result="denied",
            detail="; ".join(part for part in parts if part),
            more=repeated,
        )
        self._admit(self._denials, _from(refusal.address, refusal.caller_sid), bounded(entry))

    def logged_on(self, logon: Logon) -> None:
        """Audit an attempt to log on. Names of accounts that do not exist are not stored: they may be secrets
        that were typed into the wrong field.
        """
        accepted = logon.refusal is None
        entry = AuditEntry(
            time=self._now_s(),
            kind=LOGIN,
            caller=logon.account or "unknown",
            address=logon.address or "local",
            operation=f"log on with {logon.method}",
            object="the queue manager",
            result="accepted" if accepted else "refused",
            detail=logon.refusal or "",
        )
        self._admit(self._logons, _from(logon.address, logon.account), bounded(entry))

    def _admit(self, limits: EntryLimits, source: Source, entry: AuditEntry) -> None:
        now = self._services.monotonic()
        admitted = limits.admit(source, entry, now)
        if admitted is not None:
            self._pending.append(Record(admitted))
            self._due = now + DELAY if self._due is None else self._due

    # ---- deadlines

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which entries are due to be written, None if there are none."""
        due = self._due
        for limits in self._limits:
            at = limits.next_deadline()
            if at is not None and (due is None or at < due):
                due = at
        return due

    def expire(self, now: float) -> None:
        """Write the entries that are due."""
        for limits in self._limits:
            self._pending.extend(map(Record, limits.collect(now)))
        if self._pending and (self._due is None or now >= self._due):
            self._write()

    def stop(self) -> None:
        """Write everything into the current batch."""
        for limits in self._limits:
            self._pending.extend(map(Record, limits.collect(self._services.monotonic(), everything=True)))
        self._write()

    # ---- inside

    def _write(self) -> None:
        records, self._due = list(self._pending), None
        if not records:
            return

        def ended(stored: bool) -> None:
            if not stored:
                self._again(records)

        try:
            self._ring.write(records, ended)
        except (StoreError, MemoryError):  # an act does not fail because its entry does
            self._again([])
        else:
            self._pending.clear()

    def _again(self, records: list[Record]) -> None:
        """Keep the entries of a failed write for a later one."""
        self._pending.extendleft(record for record in reversed(records) if record not in self._pending)
        if len(self._pending) > _MOST_PENDING:
            lost = len(self._pending) - _MOST_PENDING
            _log.error("the store has no room: %d entries of the audit are lost", lost)
            for _ in range(lost):
                self._pending.popleft()
        self._due = self._services.monotonic() + _RETRY

    def _entry(
        self, kind: str, caller: Token | None, operation: str, target: str, result: str, detail: str
    ) -> AuditEntry:
        name, sid, address = ("the queue manager", "", "")
        if caller is not None:
            name, sid, address = str(caller), str(caller.user), caller.address
        return bounded(
            AuditEntry(
                time=self._now_s(),
                kind=kind,
                caller=name,
                sid=sid,
                address=address,
                operation=operation,
                object=target,
                result=result,
                detail=detail,
            )
        )

    def _now_s(self) -> int:
        return self._services.ledger.now_s


class Progress:
    """The entry of an act of many steps on messages: each step rewrites it in the batch after the step."""

    def __init__(self, trail: AuditTrail, caller: Token | None, operation: str, target: str) -> None:
        self._trail = trail
        self._of = caller, operation, target
        self._record: Record | None = None
        self._messages = 0
        self._stepped = self._ended = False

    def step(self, messages: int) -> None:
        """Add the messages of a step, and write the entry."""
        self._messages += messages
        self._put("done", self._detail())

    def end(self, error: Exception | None = None) -> None:
        """Log the act, which has ended; with `error`, mark its entry as failed. Later calls do nothing."""
        if self._ended:
            return
        self._ended = True
        text = self._detail()
        if error is not None:
            self._put("failed", f"{error}; {text}")
            text = f"failed: {error}; {text}"
        elif not self._stepped:
            return  # nothing was done
        acts.record(*self._of, text)

    def _put(self, result: str, detail: str) -> None:
        if self._record is not None or not self._stepped:
            self._record = self._trail.put(self._record, *self._of, result, detail)
        self._stepped = True

    def _detail(self) -> str:
        return f"messages: {self._messages}"


def bounded_detail(text: str) -> str:
    """Return the text as an entry holds it in `detail`."""
    return bounded(AuditEntry(detail=text)).detail


def _from(address: str, sid: str) -> Source:
    """Return the source of an entry. A message without an authenticated connection names its sender as it
    likes: all such senders are one source.
    """
    return (address_group(address), sid) if address else ("", "")


def _source(caller: Token) -> Source:
    return address_group(caller.address), str(caller.user)
