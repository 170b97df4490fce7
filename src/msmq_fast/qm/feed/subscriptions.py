"""Named readers of the event feed: the store keeps each reader's position, and the feed keeps their events.

Events are kept for a subscription beyond the configured age and size, up to its own `max_lag_bytes`. Beyond
that, events that it has not read are deleted, and its position is lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from msmq_fast.packet.malformed import Malformed
from msmq_fast.protocol.errors import InsufficientResources
from msmq_fast.protocol.text import quoted
from msmq_fast.qm.records import followed_by
from msmq_fast.qm.services import Services
from msmq_fast.store import decode
from msmq_fast.store.completion import Completion
from msmq_fast.store.feed import Feed
from msmq_fast.store.schema import MetaName

__all__ = [
    "MOST_SUBSCRIPTIONS",
    "SlotDropped",
    "Subscription",
    "SubscriptionNotFound",
    "Subscriptions",
    "check_name",
]

MOST_SUBSCRIPTIONS: Final = 256
DEFAULT_MAX_LAG: Final = 1 << 30
LARGEST_LAG: Final = 1 << 46

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class SubscriptionNotFound(Exception):
    """HTTP status 404: there is no subscription with this name."""


class SlotDropped(Exception):
    """HTTP status 410: a subscription lagged too far behind, and the event at its position was deleted from
    the feed.
    """


def check_name(name: str) -> str:
    """Returns a subscription name unchanged. Raises ValueError if it is not valid."""
    if _NAME.fullmatch(name) is None:
        raise Malformed(
            f"{quoted(name)} is not a valid subscription name: use up to 64 letters, digits, dots, dashes and"
            " underscores, the first a letter or digit"
        )
    return name


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription and its position in the feed.

    `position`: number of the first event that the reader has not confirmed. `created` and `changed` are in
    Unix seconds.
    """

    name: str
    position: int
    max_lag_bytes: int
    created: int
    changed: int
    lag_events: int = 0
    dropped: bool = False

    @property
    def lag_bytes(self) -> int:
        """Size in bytes of the events that the reader has not confirmed."""
        return self.lag_events * decode.FEED_ENTRY.size


class Subscriptions:
    """The subscriptions of a queue manager.

    Changes are made in the order of the calls; the returned completions are resolved when a change is
    durable.
    """

    def __init__(self, services: Services, feed: Feed) -> None:
        self._services = services
        self._records = services.records
        self._ledger = services.ledger
        self._feed = feed
        self._all: dict[str, Subscription] = {}

    def load(self) -> None:
        """Read the stored subscriptions at start."""
        for key, value in self._records.metas(MetaName.SUBSCRIPTION):
            try:
                found = _decoded(key.decode(), value)
            except (ValueError, TypeError, KeyError) as error:
                self._services.report_corrupt(
                    "subscription", f"the subscription {quoted(repr(key))} is damaged: {error!r}"
                )
                continue
            self._all[found.name] = found

    def __len__(self) -> int:
        return len(self._all)

    # ---- looking

    def listed(self) -> list[Subscription]:
        """Returns all subscriptions with their lag, sorted by name."""
        return [self._seen(self._all[name]) for name in sorted(self._all)]

    def get(self, name: str) -> Subscription:
        """Returns a subscription, even one that was dropped because its events were deleted. Raises
        SubscriptionNotFound; ValueError for an invalid name.
        """
        found = self._all.get(check_name(name))
        if found is None:
            raise SubscriptionNotFound(f"there is no subscription {name}")
        return self._seen(found)

    def alive(self, name: str) -> Subscription:
        """Returns a subscription whose position is still in the feed.

        Raises what `get` raises, and SlotDropped if events that it has not read were deleted.
        """
        found = self.get(name)
        if found.dropped:
            first, _ = self._feed.bounds()
            raise SlotDropped(
                f"the subscription {name} at event {found.position} lagged more than"
                f" {found.max_lag_bytes} bytes behind: events before {first} were deleted. Create it again"
            )
        return found

    def _seen(self, subscription: Subscription) -> Subscription:
        first, following = self._feed.bounds()
        lag = max(following - max(subscription.position, first), 0)
        return replace(subscription, lag_events=lag, dropped=subscription.position < first)

    # ---- changing

    def create(
        self, name: str, position: int | None = None, max_lag_bytes: int | None = None
    ) -> Completion[Subscription]:
        """Create a subscription that begins at the event number `position`, by default at the oldest kept
        event.

        If the subscription exists, change its position or limit; None keeps the present value. A dropped
        subscription becomes valid again. Raises ValueError for an invalid name, an invalid limit, or a
        position outside the feed; INSUFFICIENT_RESOURCES if there are MOST_SUBSCRIPTIONS.
        """
        before = self._all.get(check_name(name))
        first, following = self._feed.bounds()
        if before is not None and before.position < first:
            before = None
        if position is None:
            position = first if before is None else before.position
        if not first <= position <= following:
            raise Malformed(
                f"{position} is not a position in the feed: it must be from {first} to {following}"
            )
        if max_lag_bytes is None:
            max_lag_bytes = DEFAULT_MAX_LAG if before is None else before.max_lag_bytes
        if not 0 < max_lag_bytes <= LARGEST_LAG:
            raise Malformed(f"max_lag_bytes must be from 1 to {LARGEST_LAG}, not {max_lag_bytes}")
        if name not in self._all and len(self._all) >= MOST_SUBSCRIPTIONS:
            raise InsufficientResources(f"there are {MOST_SUBSCRIPTIONS} subscriptions; drop one first")
        now = self._ledger.now_s
        return self._write(
            Subscription(name, position, max_lag_bytes, now if before is None else before.created, now)
        )

    def commit(self, name: str, position: int) -> Completion[Subscription]:
        """Confirm every event before `position`. A position lower than the current one has no effect.

        Raises what `alive` raises, and ValueError if `position` is after the next event to be written.
        """
        found = self.alive(name)
        _, following = self._feed.bounds()
        if position > following or position < 0:
            raise Malformed(
                f"position {position} does not exist yet: the next event has the number {following}"
            )
        if position <= found.position:
            # After this barrier, all earlier changes are durable.
            return followed_by(self._records.unit(lambda: None), found)
        return self._write(replace(found, position=position, changed=self._ledger.now_s))

    def drop(self, name: str) -> Completion[bool]:
        """Delete a subscription; resolved with whether it existed. Raises ValueError for an invalid name."""
        key = MetaName.SUBSCRIPTION + check_name(name).encode()
        done = self._records.unit(lambda: self._records.delete_meta(key))
        return followed_by(done, self._all.pop(name, None) is not None)

    def _write(self, subscription: Subscription) -> Completion[Subscription]:
        before = self._all.get(subscription.name)
        key = MetaName.SUBSCRIPTION + subscription.name.encode()
        record = {
            "position": subscription.position,
            "max_lag_bytes": subscription.max_lag_bytes,
            "created": subscription.created,
            "changed": subscription.changed,
        }
        done = self._records.unit(lambda: self._records.set_meta(key, record))
        self._all[subscription.name] = subscription
        done.add_done_callback(lambda done: self._undo(subscription, before) if done.exception() else None)
        return followed_by(done, self._seen(subscription))

    def _undo(self, subscription: Subscription, before: Subscription | None) -> None:
        """Undo a change that the store rejected."""
        if self._all.get(subscription.name) is subscription:
            if before is None:
                del self._all[subscription.name]
            else:
                self._all[subscription.name] = before

    # ---- for the feed

    def keep_from(self) -> int | None:
        """Number of the oldest event that must be kept for the subscriptions that are within their
        `max_lag_bytes`; None if no event must be kept.
        """
        return min(
            (
                found.position
                for found in self.listed()
                if not found.dropped and found.lag_bytes <= found.max_lag_bytes
            ),
            default=None,
        )


def _decoded(name: str, record: dict[str, Any]) -> Subscription:
    return Subscription(
        check_name(name),
        int(record["position"]),
        int(record["max_lag_bytes"]),
        int(record["created"]),
        int(record["changed"]),
    )
