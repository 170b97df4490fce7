"""Filters that Spark passes to a reader. The reader applies them to record batches before it passes these to
Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

from msmq_fast.protocol.columns import Column

_COMPARE: Final[dict[type, Callable[[Any, Any], Any]]] = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}
_NUMBERS: Final = ("int8", "int16", "int32", "int64")


class Conditions:
    """The filters that the reader applies: comparisons of strings and whole numbers, and tests for null.
    Spark applies all other filters.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._kinds = {column.name: column.kind for column in columns}
        self._filters: list[Filter] = []

    def take(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        """Keeps the filters that this class can apply, and yields the others, which Spark applies."""
        self._filters = []
        for one in filters:
            if self._usable(one):
                self._filters.append(one)
            else:
                yield one

    def _usable(self, one: Filter) -> bool:
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        kind = self._kinds.get(attribute[0]) if len(attribute) == 1 else None
        if kind is None:
            return False
        if isinstance(one, IsNull | IsNotNull):
            return True
        values = one.value if isinstance(one, In) else (getattr(one, "value", None),)
        plain = str if kind == "string" else int if kind in _NUMBERS else None
        if plain is None or not (isinstance(one, In) or type(one) in _COMPARE):
            return False
        return all(type(value) is plain for value in values)

    def may_hold(self, column: str, value: str | None) -> bool:
        """Return whether rows with the value `value` in a column can match all filters."""
        for one in self._filters:
            if getattr(one, "attribute", ()) != (column,):
                continue
            if isinstance(one, EqualTo) and value != one.value:
                return False
            if isinstance(one, In) and value not in one.value:
                return False
        return True

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows of a batch that match all filters."""
        for one in self._filters:
            if batch.num_rows:
                column = batch.column(getattr(one, "attribute", ("",))[0])
                batch = batch.filter(_mask(one, column))
        return batch


def _mask(one: Filter, column: pa.Array) -> Any:
    if isinstance(one, IsNull):
        return pc.is_null(column)
    if isinstance(one, IsNotNull):
        return pc.is_valid(column)
    if isinstance(one, In):
        return pc.is_in(column, pa.array(list(one.value), column.type))
    return _COMPARE[type(one)](column, pa.scalar(getattr(one, "value", None), column.type))
