"""The answer of operations that import a document: what was done with each object of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from msmq_fast.admin.api.operation import Parameter
from msmq_fast.admin.api.schema import array, choice, flag, number, of, record
from msmq_fast.protocol.definitions import DefinitionChange

__all__ = ["CHANGES", "DRY_RUN", "changes_of"]

_OUTCOMES: Final = ("created", "changed", "unchanged", "deleted", "failed")

DRY_RUN: Final = Parameter("dry_run", flag("tell what would be done, and change nothing", default=False))

CHANGES: Final = record(
    "DefinitionChanges",
    {
        "items": array(
            record(
                "DefinitionChange",
                of(DefinitionChange)["properties"]
                | {"outcome": choice(_OUTCOMES), "messages": number(most=2**63)},
                about="`messages` is there for a deleted queue only: the number of its messages.",
            )
        ),
        **{outcome: number(f"objects that are {outcome}") for outcome in _OUTCOMES},
        "dry_run": flag("whether nothing was changed"),
    },
)


def changes_of(changes: Iterable[DefinitionChange], *, dry_run: bool) -> dict[str, Any]:
    """Return the answer of an import: each object with its outcome, and the number of each outcome."""
    items = [change.as_map() for change in changes]
    counts = Counter(item["outcome"] for item in items)
    return {"items": items} | {outcome: counts[outcome] for outcome in _OUTCOMES} | {"dry_run": dry_run}
