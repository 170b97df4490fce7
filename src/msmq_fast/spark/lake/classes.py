"""Spark expressions for the names and numbers of message classes, such as NACK_RECEIVE_TIMEOUT for 0xC002."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmq_fast.protocol.classes import MessageClass

if TYPE_CHECKING:
    from pyspark.sql import Column

ORDER_ACK = 0x00FF
"""The class of messages by which a receiver reports the progress of a transactional sequence."""

NEGATIVE = 0x8000
"""Classes from here on are negative acknowledgments."""


def _names() -> dict[int, str]:
    return {int(value): value.name for value in MessageClass}


def failure_name() -> Column:
    """Returns a column with the name of the message class that tells why the message of an event failed: the
    reason in the event, else the event's class if that is a negative acknowledgment; else null.
    """
    from pyspark.sql import functions as F

    names = F.create_map(*(F.lit(part) for pair in _names().items() for part in pair))
    negative = F.when(F.col("class") >= NEGATIVE, F.col("class"))
    return F.coalesce(F.nullif("reason", F.lit("")), names[negative], F.format_string("0x%04X", negative))


def failure_code() -> Column:
    """Returns a column with the number of the class of `failure_name`; null if the name is unknown."""
    from pyspark.sql import functions as F

    codes = F.create_map(*(F.lit(part) for value, name in _names().items() for part in (name, value)))
    return F.coalesce(
        codes[F.nullif("reason", F.lit(""))], F.when(F.col("class") >= NEGATIVE, F.col("class"))
    )
