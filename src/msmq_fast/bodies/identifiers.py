"""Identifiers as text."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.bodies.errors import BodyError


def guid(data: bytes) -> str:
    """Return the text of an identifier: a GUID for 16 bytes, a message identifier `{guid}\\ordinal` for 20
    bytes.

    The text of a correlation id therefore equals the `message_id` of the message that it refers to. Raises
    BodyError for any other size.
    """
    if len(data) == 16:
        return str(UUID(bytes_le=bytes(data)))
    if len(data) == 20:
        return f"{{{UUID(bytes_le=bytes(data[:16]))}}}\\{int.from_bytes(data[16:], 'little')}"
    raise BodyError(
        f"an identifier must have 16 bytes (GUID) or 20 bytes (message identifier), not {len(data)}"
    )
