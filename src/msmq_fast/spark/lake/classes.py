"""Names of message classes in Spark expressions: 0xC002 is NACK_RECEIVE_TIMEOUT."""

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
    """Returns the name of the reason why the message of an event failed: the reason in the event, else its
    class if that is negative.
    """
    from pyspark.sql import functions as F

    names = F.create_map(*(F.lit(part) for pair in _names().items() for part in pair))
    negative = F.when(F.col("class") >= NEGATIVE, F.col("class"))
    return F.coalesce(F.nullif("reason", F.lit("")), names[negative], F.format_string("0x%04X", negative))


def failure_code() -> Column:
    """Returns that reason as a number; null if its name is unknown."""
    from pyspark.sql import functions as F

    codes = F.create_map(*(F.lit(part) for value, name in _names().items() for part in (name, value)))
    return F.coalesce(
        codes[F.nullif("reason", F.lit(""))], F.when(F.col("class") >= NEGATIVE, F.col("class"))
    )
