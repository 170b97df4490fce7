"""Converts columns of the bulk API to a Spark schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql.types import StructType

from msmq_fast.protocol.columns import Column

_NAMES: Final = {"int8": "byte", "int16": "short", "int32": "integer", "int64": "long", "bool": "boolean"}


def spark_schema(columns: Iterable[Column]) -> StructType:
    """Returns the Spark schema of these columns. All columns are nullable, as in the Arrow schema."""
    schema = StructType()
    for column in columns:
        schema.add(column.name, _NAMES.get(column.kind, column.kind))
    return schema
