"""Metrics of conditions that an operator acts on: readiness, dead letters, snapshots, certificates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msmq_fast.admin.view import Labelled
from msmq_fast.protocol.classes import MessageClass, is_negative, message_class

if TYPE_CHECKING:
    from msmq_fast.server.credentials import TlsFiles

__all__ = ["conditions"]

_REASONS = [kind.name for kind in MessageClass if is_negative(kind)]
_OTHER = "OTHER"  # classes without a name: peers choose them, so they have one label in all


def conditions(
    *,
    ready: bool,
    dead_letters: Mapping[int, int],
    snapshot_s: int | None,
    failed_snapshots: int,
    tls: Iterable[TlsFiles],
) -> Iterator[Labelled]:
    """Yield the metrics. `dead_letters`: number by message class. `snapshot_s`: Unix seconds of the last
    snapshot; None if the server knows of none.
    """
    yield Labelled("ready", "1 while /readyz answers 200", (), {(): int(ready)}, grows=False)
    # Every reason has a value from the start on: a rate needs the value before the first increase.
    counts: Counter[str] = Counter(dict.fromkeys(_REASONS, 0))
    for number, count in dead_letters.items():
        kind = message_class(number)
        counts[kind.name if isinstance(kind, MessageClass) else _OTHER] += count
    yield Labelled(
        "dead_letters",
        "Messages that became dead letters, by the class of the reason, also those without room",
        ("reason",),
        {(reason,): count for reason, count in counts.items()},
    )
    yield Labelled(
        "last_snapshot_timestamp_seconds",
        "Time of the last snapshot that the server has made, or has found in its object storage; absent if "
        "there is none",
        (),
        {} if snapshot_s is None else {(): snapshot_s},
        grows=False,
    )
    yield Labelled("failed_snapshots", "Snapshots that failed or were cancelled", (), {(): failed_snapshots})
    yield Labelled(
        "certificate_expiry_timestamp_seconds",
        "End of the validity of the certificate in use, by the configuration key that names it",
        ("key",),
        {(name,): end for files in tls for name, end in files.expiries()},
        grows=False,
    )
