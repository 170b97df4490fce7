"""Converts queue properties by number (MS-MQMP 3.1.1.12, MS-MQMQ 2.3.1) to and from the properties of a
Queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.errors import IllegalPropertyValue, PropertyError, error

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.queue import Queue

__all__ = ["PropId", "VarType", "Variant", "read", "to_create", "to_set"]


class VarType(IntEnum):
    """The values of VARTYPE (MS-MQMQ 2.2.12) that queue properties have."""

    EMPTY = 0
    NULL = 1
    I2 = 2
    I4 = 3
    UI1 = 17
    UI4 = 19
    LPWSTR = 31
    CLSID = 72


class PropId(IntEnum):
    """The queue properties PROPID_Q_… (MS-MQMQ 2.3.1) of the table in MS-MQMP 3.1.1.12."""

    INSTANCE = 101
    TYPE = 102
    PATHNAME = 103
    JOURNAL = 104
    QUOTA = 105
    BASEPRIORITY = 106
    JOURNAL_QUOTA = 107
    LABEL = 108
    CREATE_TIME = 109
    MODIFY_TIME = 110
    AUTHENTICATE = 111
    PRIV_LEVEL = 112
    TRANSACTION = 113
    PATHNAME_DNS = 124
    MULTICAST_ADDRESS = 125
    ADS_PATH = 126


@dataclass(frozen=True, slots=True)
class Variant:
    """The value of a property: a VARTYPE, and an int, str, UUID or None."""

    type: int
    value: Any = None


@dataclass(frozen=True, slots=True)
class _Property:
    """One queue property. `name` is its name in QueueProperties, empty if a program cannot set the property.
    `of` returns its value for a queue.
    """

    type: VarType
    of: Callable[[QueueManager, Queue], Any]
    name: str = ""
    given: Callable[[Any], Any] = lambda value: value
    settable: bool = True  # otherwise only at creation
    may_lack: bool = False  # VT_EMPTY means that there is no value


def _flag(value: int) -> bool:
    if value not in (0, 1):
        raise IllegalPropertyValue(f"{value} is neither 0 nor 1")
    return bool(value)


def _qualified(manager: QueueManager, queue: Queue) -> str:
    return f"{manager.settings.qualified_name}\\{queue.part}"


_TABLE: Final = {
    PropId.INSTANCE: _Property(VarType.CLSID, lambda _, queue: queue.guid),
    PropId.TYPE: _Property(VarType.CLSID, lambda _, queue: queue.properties.type, "type"),
    PropId.PATHNAME: _Property(VarType.LPWSTR, lambda _, queue: queue.name),
    PropId.JOURNAL: _Property(
        VarType.UI1, lambda _, queue: int(queue.properties.journaling), "journaling", _flag
    ),
    PropId.QUOTA: _Property(VarType.UI4, lambda _, queue: queue.properties.quota_kb, "quota_kb"),
    PropId.BASEPRIORITY: _Property(
        VarType.I2, lambda _, queue: queue.properties.base_priority, "base_priority"
    ),
    PropId.JOURNAL_QUOTA: _Property(
        VarType.UI4, lambda _, queue: queue.properties.journal_quota_kb, "journal_quota_kb"
    ),
    PropId.LABEL: _Property(VarType.LPWSTR, lambda _, queue: queue.properties.label, "label"),
    PropId.CREATE_TIME: _Property(VarType.I4, lambda _, queue: queue.created),
    PropId.MODIFY_TIME: _Property(VarType.I4, lambda _, queue: queue.modified),
    PropId.AUTHENTICATE: _Property(
        VarType.UI1, lambda _, queue: int(queue.properties.authenticated), "authenticated", _flag
    ),
    PropId.PRIV_LEVEL: _Property(VarType.UI4, lambda _, queue: int(queue.properties.privacy), "privacy"),
    PropId.TRANSACTION: _Property(
        VarType.UI1,
        lambda _, queue: int(queue.properties.transactional),
        "transactional",
        _flag,
        settable=False,
    ),
    PropId.PATHNAME_DNS: _Property(VarType.LPWSTR, _qualified),
    PropId.MULTICAST_ADDRESS: _Property(
        VarType.LPWSTR,
        lambda _, queue: queue.properties.multicast_address,
        "multicast_address",
        may_lack=True,
    ),
    PropId.ADS_PATH: _Property(VarType.LPWSTR, lambda _, queue: queue.directory_path, may_lack=True),
}


def _property(number: int) -> _Property:
    found = _TABLE.get(number)  # type: ignore[call-overload]  # PropId is an int
    if found is None:
        raise PropertyError(f"there is no queue property {number}")
    return found  # type: ignore[no-any-return]


def to_create(given: Iterable[tuple[int, Variant]]) -> tuple[dict[str, Any], str | None]:
    """Returns (arguments for QueueManager.create_queue, path name from PROPID_Q_PATHNAME or None).

    Raises PROPERTY for an unknown or repeated property or a wrong type, PROPERTY_NOTALLOWED for a property
    that cannot be given at creation, and ILLEGAL_PROPERTY_VALUE.
    """
    values: dict[str, Any] = {}
    path: str | None = None
    for number, variant in _distinct(given):
        if number == PropId.PATHNAME:
            path = str(_checked(_property(number), number, variant))
        else:
            values |= _given(number, variant)
    return values, path


def to_set(given: Iterable[tuple[int, Variant]]) -> dict[str, Any]:
    """Returns the arguments of QueueManager.set_properties. Raises what `to_create` raises."""
    values: dict[str, Any] = {}
    for number, variant in _distinct(given):
        if not _property(number).settable:
            raise error(
                "MQ_ERROR_PROPERTY_NOTALLOWED", f"{PropId(number).name} cannot be changed after creation"
            )
        values |= _given(number, variant)
    return values


def read(manager: QueueManager, queue: Queue, asked: Iterable[tuple[int, int]]) -> list[Variant]:
    """Returns the values of the properties `asked`, which are pairs of number and VARTYPE.

    A VARTYPE must be that of the property, or VT_NULL, which stands for any type. Raises PROPERTY for an
    unknown property or another type.
    """
    values: list[Variant] = []
    for number, type_ in asked:
        known = _property(number)
        if type_ not in (known.type, VarType.NULL):
            raise PropertyError(f"the queue property {number} has the type {known.type}, not {type_}")
        value = known.of(manager, queue)
        lacking = known.may_lack and not value
        values.append(Variant(VarType.EMPTY) if lacking else Variant(known.type, value))
    return values


def _distinct(given: Iterable[tuple[int, Variant]]) -> Iterable[tuple[int, Variant]]:
    seen: set[int] = set()
    for number, variant in given:
        if number in seen:
            raise PropertyError(f"the queue property {number} is given twice")
        seen.add(number)
        yield number, variant


def _given(number: int, variant: Variant) -> dict[str, Any]:
    known = _property(number)
    if not known.name:
        raise error("MQ_ERROR_PROPERTY_NOTALLOWED", f"{PropId(number).name} cannot be given")
    return {known.name: known.given(_checked(known, number, variant))}


def _checked(known: _Property, number: int, variant: Variant) -> Any:
    if known.may_lack and variant.type == VarType.EMPTY:
        return ""
    if variant.type != known.type:
        raise PropertyError(f"the queue property {number} has the type {known.type}, not {variant.type}")
    if variant.value is None:
        raise IllegalPropertyValue(f"the queue property {number} has no value")
    return variant.value
