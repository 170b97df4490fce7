"""Identifiers as people read them."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.bodies.errors import BodyError


def guid(data: bytes) -> str:
    """16 bytes: the GUID; 20 bytes: an identifier of a message, `{guid}\\ordinal`, as in `message_id`.

    So the correlation_id of an acknowledgment or of an answer joins with the message it is about. BodyError:
    any other size.
    """
    if len(data) == 16:
        return str(UUID(bytes_le=bytes(data)))
    if len(data) == 20:
        return f"{{{UUID(bytes_le=bytes(data[:16]))}}}\\{int.from_bytes(data[16:], 'little')}"
    raise BodyError(f"a GUID has 16 bytes and a message identifier 20, not {len(data)}")
