"""Functions on message bodies for DataFrames and SQL.

    from msmq_fast.spark.functions import msmq_text
    rows.select(msmq_text("body", "body_type"), msmq_text.error("body", "body_type"))

Each function is an Arrow UDF. It returns null for null, and null if the bytes are not valid for the function.
In that case `FUNCTION.error` (in SQL, after `register`, `FUNCTION_error`) returns the reason; otherwise it
returns null.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.framing import framing
from msmq_fast.bodies.headers import extension_headers
from msmq_fast.bodies.identifiers import guid
from msmq_fast.bodies.kind import body_kind
from msmq_fast.bodies.netbinary import net_binary
from msmq_fast.bodies.text import text, utf16, xml
from msmq_fast.protocol.classes import name_of

Plain = Callable[..., Any]


class BodyFunction:
    """A function on columns: `function(*columns)` is the column of its values, and `function.error(*columns)`
    the column of the reasons why a value is null.

    `plain` computes the value of one row from the values of the columns; it is called only if its first
    `required` arguments are not null. `result` is the type of the value.
    """

    def __init__(self, name: str, plain: Plain, result: DataType, *, required: int = 1) -> None:
        self.name = name
        self.plain = plain
        self.result = result
        self.required = required
        self.__doc__ = plain.__doc__

    def __call__(self, *columns: Column | str) -> Column:
        """Return the column with the values of the function."""
        return cast(Column, self.value_udf(*columns))

    def error(self, *columns: Column | str) -> Column:
        """Return the column with the reason why a value is null although the arguments are not; null for rows
        that have a value.
        """
        return cast(Column, self.error_udf(*columns))

    @cached_property
    def value_udf(self) -> Any:
        """The Spark UDF that computes the values of this function from its argument columns."""
        plain, required, kind = self.plain, self.required, to_arrow_type(self.result, timezone="UTC")

        def value(*arguments: pa.Array) -> pa.Array:
            return pa.array([found for found, _ in _rows(plain, required, arguments)], kind)

        return self._udf(value, self.result, self.name)

    @cached_property
    def error_udf(self) -> Any:
        """The UDF that returns the reasons."""
        plain, required = self.plain, self.required

        def error(*arguments: pa.Array) -> pa.Array:
            return pa.array([reason for _, reason in _rows(plain, required, arguments)], pa.string())

        return self._udf(error, StringType(), self.name + "_error")

    @staticmethod
    def _udf(function: Callable[..., pa.Array], result: DataType, name: str) -> Any:
        function.__name__ = name
        return cast(Any, arrow_udf)(function, result)


def _rows(plain: Plain, required: int, arguments: tuple[pa.Array, ...]) -> list[tuple[Any, str | None]]:
    """Returns (value, reason why there is no value) for each row; both are None if a required argument is
    null.
    """
    found: list[tuple[Any, str | None]] = []
    for row in zip(*(argument.to_pylist() for argument in arguments), strict=True):
        if None in row[:required]:
            found.append((None, None))
            continue
        try:
            found.append((plain(*row), None))
        except BodyError as problem:
            found.append((None, str(problem)))
    return found


def _kind(body_type: int | None, body: bytes | None) -> str | None:
    """Return the kind of a body, one of `bodies.kind.KINDS`, from its body type and its first bytes."""
    return None if body is None else body_kind(body, body_type)


def _class_name(number: int) -> str:
    """Return the published name of a message class; for a class without such a name, 0x and four hexadecimal
    digits.

    Raises BodyError if `number` is not a 16-bit number.
    """
    if not 0 <= number <= 0xFFFF:
        raise BodyError(f"a message class must be from 0 to 65535, not {number}")
    return name_of(number)


def _headers(extension: bytes) -> dict[str, str] | None:
    """Return the headers that the extension of a message holds. For a message without headers, return None,
    not an empty map, so that a query can test `is not null`.
    """
    return extension_headers(extension) or None


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


_TEXTS: Final = ArrayType(StringType(), containsNull=False)

msmq_body_kind = BodyFunction("msmq_body_kind", _kind, StringType(), required=0)
"""msmq_body_kind(body_type, body): one of `bodies.kind.KINDS`."""

msmq_text = BodyFunction("msmq_text", text, StringType())
"""msmq_text(body, body_type): the text of a VT_BSTR, VT_LPWSTR or VT_LPSTR body; others are UTF-8."""

msmq_utf16 = BodyFunction("msmq_utf16", utf16, StringType())
"""msmq_utf16(body): the text of a UTF-16 body whose type does not declare that."""

msmq_xml = BodyFunction("msmq_xml", xml, StringType())
"""msmq_xml(body): the text of an XML body, as input for from_xml, xpath or parse_json."""

msmq_netbinary_info = BodyFunction(
    "msmq_netbinary_info",
    net_binary,
    _struct(root=StringType(), types=_TEXTS, libraries=_TEXTS, records=IntegerType(), complete=BooleanType()),
)
"""msmq_netbinary_info(body): the type names of a BinaryFormatter stream; nothing is deserialised."""

msmq_nmf = BodyFunction(
    "msmq_nmf",
    framing,
    _struct(
        version=StringType(),
        mode=StringType(),
        via=StringType(),
        encoding=StringType(),
        envelope=IntegerType(),
        envelope_size=IntegerType(),
    ),
)
"""msmq_nmf(body): the .NET framing records before a NetMsmqBinding envelope, and the offset of the
envelope.
"""

msmq_guid = BodyFunction("msmq_guid", guid, StringType())
"""msmq_guid(bytes): a GUID (16 bytes) or a message identifier (20 bytes, as a correlation_id) as text."""

msmq_class_name = BodyFunction("msmq_class_name", _class_name, StringType())
"""msmq_class_name(class): the published name of a message class."""

msmq_extension_headers = BodyFunction("msmq_extension_headers", _headers, MapType(StringType(), StringType()))
"""msmq_extension_headers(extension): the headers of NServiceBus (XML) and Rebus (JSON); null without any."""

FUNCTIONS: Final = (
    msmq_body_kind,
    msmq_text,
    msmq_utf16,
    msmq_xml,
    msmq_netbinary_info,
    msmq_nmf,
    msmq_guid,
    msmq_class_name,
    msmq_extension_headers,
)


def register(spark: SparkSession) -> None:
    """Register all functions for SQL in this session: the values as NAME, the reasons as NAME_error."""
    for function in FUNCTIONS:
        spark.udf.register(function.name, function.value_udf)
        spark.udf.register(function.name + "_error", function.error_udf)
