"""A second parser of UserMessage packets, in plain Python, for comparison with the native one.

It is written from MS-MQMQ 2.2.19 and 2.2.20 on its own: a cursor takes pieces off the front, and whatever
cannot be taken raises `Refused` with a word for the rule that is broken.
"""

from __future__ import annotations

import struct

LIMIT = 4 * 1024 * 1024


class Refused(Exception):
    """The packet breaks a rule; `args[0]` is the rule's name (PacketFaultCode)."""


class Cursor:
    """A window onto the packet that only moves forward."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int, rule: str) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) != count:
            raise Refused(rule)
        self.at += count
        return piece

    def unpack(self, form: str, rule: str) -> tuple[int, ...]:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form), rule))

    def pad(self, rule: str) -> None:
        self.take(-self.at % 4, rule)


def bit(value: int, index: int) -> bool:
    return bool(value >> index & 1)


def bits(value: int, first: int, count: int) -> int:
    return value >> first & (1 << count) - 1


def reference(stream: bytes) -> dict[str, int]:
    """Every field that the native parser reports, or Refused."""
    if len(stream) < 16:
        raise Refused("TRUNCATED")
    version, _, flags, magic, size, ttrq = struct.unpack("<BBH4sII", stream[:16])
    if version != 16:
        raise Refused("VERSION")
    if magic != b"LIOR":
        raise Refused("SIGNATURE")
    if size < 20 or size > LIMIT:
        raise Refused("PACKET_SIZE")
    if bit(flags, 3):
        raise Refused("INTERNAL")
    if len(stream) < size:
        raise Refused("TRUNCATED")
    found = {"base_flags": flags, "priority": bits(flags, 0, 3), "time_to_reach_queue": ttrq}
    cursor = Cursor(stream[:size])
    cursor.at = 16
    user_flags = read_user_header(cursor, found)
    if bit(user_flags, 20):
        found["transaction_offset"] = cursor.at
        (head,) = struct.unpack("<I", cursor.take(20, "TRANSACTION_SIZE")[:4])
        if bit(head, 0):
            cursor.take(16, "TRANSACTION_SIZE")
    if bit(user_flags, 19):
        read_security_header(cursor, found)
    read_properties_header(cursor, found)
    if bit(flags, 5):
        read_debug_header(cursor, found)
    if bit(user_flags, 25):
        read_srmp_headers(cursor, found)
    if bit(user_flags, 28):
        read_soap_header(cursor, found)
    if bit(user_flags, 23):
        read_multi_queue_header(cursor, found)
    left = size - cursor.at
    found["size"], found["wire_size"] = size, size
    if not bit(flags, 4):
        if left:
            raise Refused("LENGTH_MISMATCH")
    elif left == 0:
        if len(stream) < size + 16:
            raise Refused("TRUNCATED")
        found["session_offset"], found["wire_size"] = size, size + 16
    elif left == 16:
        found["session_offset"], found["size"] = size - 16, size - 16
    else:
        raise Refused("LENGTH_MISMATCH")
    return found


def read_user_header(cursor: Cursor, found: dict[str, int]) -> int:
    cursor.take(32, "USER_SIZE")
    ttbr, sent, ordinal, flags = cursor.unpack("IIII", "USER_SIZE")
    delivery, dest, admin, response = (
        bits(flags, 5, 2),
        bits(flags, 10, 3),
        bits(flags, 13, 3),
        bits(flags, 16, 3),
    )
    found |= {"time_to_be_received": ttbr, "sent_time": sent, "message_id": ordinal, "user_flags": flags}
    found |= {"delivery": delivery, "dest_type": dest, "admin_type": admin, "response_type": response}
    if delivery >= 2:
        raise Refused("DELIVERY")
    if dest in (1, 2, 4, 6):
        raise Refused("DESTINATION_TYPE")
    if admin in (1, 4):
        raise Refused("ADMIN_TYPE")
    if bit(flags, 20) and delivery == 0:
        raise Refused("TRANSACTION_EXPRESS")
    if not bit(flags, 21):
        raise Refused("NO_PROPERTIES")
    for name, kind in (("dest", dest), ("admin", admin), ("response", response)):
        start = cursor.at
        if kind == 7:
            read_direct_name(cursor, start)
        elif kind in (2, 3, 4):
            cursor.take(4, "QUEUE_NAME_SIZE")
        elif kind == 5:
            cursor.take(16, "QUEUE_NAME_SIZE")
        elif kind == 6:
            cursor.take(20, "QUEUE_NAME_SIZE")
        if cursor.at != start:
            found[f"{name}_offset"], found[f"{name}_length"] = start, cursor.at - start
    if bit(flags, 22):
        found["connector_offset"] = cursor.at
        cursor.take(16, "USER_SIZE")
    return flags


def read_direct_name(cursor: Cursor, start: int) -> None:
    (count,) = cursor.unpack("H", "QUEUE_NAME_SIZE")
    text = cursor.take(count, "QUEUE_NAME_SIZE")
    cursor.take(-(cursor.at - start) % 4, "QUEUE_NAME_SIZE")
    if count % 2 or not text.endswith(b"\0\0"):
        raise Refused("QUEUE_NAME")


def read_security_header(cursor: Cursor, found: dict[str, int]) -> None:
    found["security_offset"] = cursor.at
    flags, *sizes = cursor.unpack("HHHHII", "SECURITY_SIZE")
    if bits(flags, 0, 4) == 0 and sizes[0]:
        raise Refused("SENDER_ID")
    if sizes[3] > 65535:
        raise Refused("CERTIFICATE_SIZE")
    if sizes[4] and sizes[4] < 6:
        raise Refused("PROVIDER_SIZE")
    for name, size in zip(
        ("sender_id", "encryption_key", "signature", "certificate", "provider"), sizes, strict=True
    ):
        if size:
            found[f"{name}_offset"], found[f"{name}_length"] = cursor.at, size
            cursor.take(size, "SECURITY_SIZE")
            cursor.pad("SECURITY_SIZE")


def read_properties_header(cursor: Cursor, found: dict[str, int]) -> None:
    found["properties_offset"] = cursor.at
    acks, chars, kind, _, body_type, app, body, allocated, _, _, _, extension = cursor.unpack(
        "BBH20sIIIIIIII", "PROPERTIES_SIZE"
    )
    found |= {"ack_flags": acks & 15, "message_class": kind, "body_type": body_type, "app_specific": app}
    if chars > 250:
        raise Refused("LABEL_LENGTH")
    if "security_offset" in found and bit(cursor.data[found["security_offset"]], 5):
        end = cursor.at + 2 * chars + extension + allocated  # an encrypted body, see AMB-29
        if allocated > body and end + -end % 4 <= len(cursor.data):
            body = allocated
    for name, size, unit, rule in (
        ("label", chars, 2, "LABEL_LENGTH"),
        ("extension", extension, 1, "EXTENSION_SIZE"),
        ("body", body, 1, "BODY_SIZE"),
    ):
        if size:
            found[f"{name}_offset"] = cursor.at
            found["label_chars" if name == "label" else f"{name}_length"] = size
        cursor.take(size * unit, rule)
    cursor.pad("BODY_SIZE")


def read_debug_header(cursor: Cursor, found: dict[str, int]) -> None:
    found["debug_offset"] = cursor.at
    flags, _ = cursor.unpack("HH", "DEBUG_SIZE")
    if bits(flags, 0, 2) >= 2:
        raise Refused("DEBUG_TYPE")
    if bit(flags, 0):
        cursor.take(16, "DEBUG_SIZE")


def read_srmp_headers(cursor: Cursor, found: dict[str, int]) -> None:
    found["envelope_offset"] = cursor.at
    _, _, chars = cursor.unpack("HHI", "ENVELOPE_SIZE")
    cursor.take(2 * chars, "ENVELOPE_SIZE")
    cursor.pad("ENVELOPE_SIZE")
    found["compound_offset"] = cursor.at
    _, _, http, size, offset = cursor.unpack("HHIII", "COMPOUND_SIZE")
    cursor.take(http, "COMPOUND_SIZE")
    cursor.pad("COMPOUND_SIZE")
    if offset + size > http:
        raise Refused("COMPOUND_SIZE")
    encrypted = "security_offset" in found and bit(cursor.data[found["security_offset"]], 5)
    if size and "body_length" not in found and not encrypted:  # the body is kept where it came
        found["body_offset"] = found["compound_offset"] + 16 + offset
        found["body_length"] = size


def read_soap_header(cursor: Cursor, found: dict[str, int]) -> None:
    found["soap_offset"] = cursor.at
    number, _, chars = cursor.unpack("HHI", "SOAP_SIZE")
    if number != 800:
        raise Refused("SOAP_SECTION")
    cursor.take(2 * chars, "SOAP_SIZE")
    if cursor.data[cursor.at : cursor.at + 2] != b"\x84\x03":
        unpadded = cursor.at
        cursor.take(8, "SOAP_SIZE")
        cursor.at = unpadded
        cursor.pad("SOAP_SIZE")
    number, _, chars = cursor.unpack("HHI", "SOAP_SIZE")
    if number != 900:
        raise Refused("SOAP_SECTION")
    cursor.take(2 * chars, "SOAP_SIZE")
    cursor.pad("SOAP_SIZE")


def read_multi_queue_header(cursor: Cursor, found: dict[str, int]) -> None:
    found["mqf_offset"] = cursor.at
    for section in (100, 200, 300):
        start = cursor.at
        length, number, _, count = cursor.unpack("IHHI", "MQF_SIZE")
        if length < 12:
            raise Refused("MQF_SIZE")
        cursor.take(length - 12, "MQF_SIZE")
        cursor.pad("MQF_SIZE")
        if number != section:
            raise Refused("MQF_SECTION")
        read_elements(cursor.data[: start + length], start + 12, count)
    number, _, size = cursor.unpack("HHI", "MQF_SIZE")
    if number != 350:
        raise Refused("MQF_SECTION")
    cursor.take(size, "MQF_SIZE")
    cursor.pad("MQF_SIZE")


def read_elements(data: bytes, start: int, count: int) -> None:
    inner = Cursor(data)
    inner.at = start
    for _ in range(count):
        (kind,) = inner.unpack("H", "MQF_ELEMENT")
        if kind == 3:
            while inner.take(2, "MQF_ELEMENT") != b"\0\0":
                pass
        elif kind in (1, 2, 6):
            inner.pad("MQF_ELEMENT")
            inner.take(20 if kind == 2 else 16, "MQF_ELEMENT")
        else:
            raise Refused("MQF_ELEMENT")
