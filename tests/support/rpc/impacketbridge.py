"""Our values as impacket's objects and back, guided by the declared types."""

from __future__ import annotations

import struct
from itertools import count
from typing import Any
from uuid import UUID

from impacket.dcerpc.v5.ndr import NDRCALL, NDRPOINTERNULL

from msmq_fast.rpc.ndr.record import Record
from msmq_fast.rpc.ndr.types import (
    ArrayOf,
    Bytes,
    ContextHandle,
    NdrType,
    Ptr,
    StringType,
    Struct,
    UnionOf,
    Uuid,
    WChars,
)
from tests.support.rpc.impacketstubs import Fields

_SLACK = bytes(16)
"""impacket does not look at the tag of a union unless more than four bytes are left."""


def encode(fields: Fields, kinds: dict[str, NdrType], values: Record, *, ndr64: bool) -> bytes:
    """The stub of a request or a response, made by impacket."""
    call = _call(fields)(isNDR64=ndr64)
    referents = count(0x20000, 4)
    for name, _ in fields:
        _set(call.fields, name, kinds[name], values, referents, ndr64)
    stub: bytes = call.getData()
    return stub


def decode(fields: Fields, kinds: dict[str, NdrType], stub: bytes, *, ndr64: bool) -> dict[str, Any]:
    """The parameters in a stub as impacket reads them."""
    call = _call(fields)(stub + _SLACK, isNDR64=ndr64)
    values: dict[str, Any] = {}
    for name, _ in fields:
        values[name] = _get(call.fields[name], kinds[name], values)
    return values


def _call(fields: Fields) -> Any:
    return type("Call", (NDRCALL,), {"structure": fields})


def _set(
    target: dict[str, Any], name: str, kind: NdrType, scope: Record, referents: Any, ndr64: bool
) -> None:
    value = getattr(scope, name)
    if isinstance(kind, UnionOf):
        tag = getattr(scope, kind.switch)
        target[name]["tag"] = tag
        arm = kind.arms[tag]
        if arm is not None:
            _fill(target[name].fields, "arm", arm, value, scope, referents, ndr64)
    else:
        _fill(target, name, kind, value, scope, referents, ndr64)


def _fill(
    target: dict[str, Any], name: str, kind: NdrType, value: Any, scope: Record, referents: Any, ndr64: bool
) -> None:
    """Put a value into the object that is `target[name]`."""
    thing = target[name]
    match kind:
        case Ptr():
            if value is None:
                target[name] = NDRPOINTERNULL(isNDR64=ndr64)
            else:
                thing.fields["ReferentID"] = next(referents)
                _fill(thing.fields, "Data", _target(kind), value, scope, referents, ndr64)
        case Struct():
            for field, field_kind in kind.fields.items():
                _set(thing.fields, field, field_kind, value, referents, ndr64)
        case Uuid():
            thing.fields["Data"] = value.bytes_le
        case ContextHandle():
            handle = value or bytes(20)
            thing.fields["attributes"], thing.fields["uuid"] = struct.unpack("<I16s", handle)
        case ArrayOf(element, shape):
            items = []
            for item in value:
                holder = {"item": _item(thing, ndr64)}
                _fill(holder, "item", element, item, scope, referents, ndr64)
                items.append(holder["item"])
            _fill_array(thing, items, getattr(scope, shape.size) if isinstance(shape.size, str) else None)
        case Bytes(shape):
            _fill_array(thing, value, getattr(scope, shape.size) if isinstance(shape.size, str) else None)
        case WChars(shape):
            units = list(struct.unpack(f"<{len(value) // 2}H", value))
            _fill_array(thing, units, getattr(scope, shape.size) if isinstance(shape.size, str) else None)
        case StringType(wide, shape):
            encoded = (value + "\0").encode("utf-16-le" if wide else "latin-1")
            thing.fields["Data"] = encoded
            if not shape.conformant:
                thing.fields["ActualCount"] = None
            elif isinstance(shape.size, str):
                thing.fields["MaximumCount"] = getattr(scope, shape.size)
        case _:
            thing.fields["Data"] = value


def _fill_array(thing: Any, items: Any, maximum: int | None) -> None:
    thing["Data"] = items
    thing.fields["MaximumCount"] = maximum


def _item(array: Any, ndr64: bool) -> Any:
    """An element; those of primitive types are given by their code."""
    return array.item(isNDR64=ndr64)


def _get(thing: Any, kind: NdrType, scope: dict[str, Any]) -> Any:
    match kind:
        case Ptr():
            if isinstance(thing, NDRPOINTERNULL) or thing.fields["ReferentID"] == 0:
                return None
            return _get(thing.fields["Data"], _target(kind), scope)
        case Struct():
            values: dict[str, Any] = {}
            for field, field_kind in kind.fields.items():
                values[field] = _get(thing.fields[field], field_kind, values)
            return kind(**values)
        case UnionOf():
            tag = thing["tag"]
            assert tag == scope[kind.switch]
            arm = kind.arms[tag]
            return None if arm is None else _get(thing.fields["arm"], arm, scope)
        case Uuid():
            return UUID(bytes_le=thing.fields["Data"])
        case ContextHandle():
            handle = struct.pack("<I16s", thing.fields["attributes"], thing.fields["uuid"])
            return handle if any(handle) else None
        case ArrayOf(element):
            return [_get(item, element, scope) for item in thing.fields["Data"]]
        case Bytes():
            return b"".join(thing.fields["Data"])
        case WChars():
            return struct.pack(f"<{len(thing.fields['Data'])}H", *thing.fields["Data"])
        case StringType(wide):
            data = thing.fields["Data"]
            raw = data if isinstance(data, bytes) else b"".join(data)
            return raw.decode("utf-16-le" if wide else "latin-1").removesuffix("\0")
        case _:
            return thing.fields["Data"]


def _target(kind: Ptr) -> NdrType:
    return kind.target if isinstance(kind.target, NdrType) else kind.target()
