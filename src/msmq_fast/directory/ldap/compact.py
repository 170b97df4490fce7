"""Directory objects in little memory, for the copy of a domain with very many queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.values import Value

__all__ = ["Compactor"]

_REPEATED: Final = (
    "Security",
    "Type",
    "Quota",
    "JournalQuota",
    "SiteIdentifierList",
    "OperatingSystemVersion",
    "QueueManagerVersion",
)
_PATH, _FROM_PATH, _PREFIX = "FullPath", "DirectoryPath", "LDAP://"


class _Values(Mapping[str, Value]):
    """The attributes of one object: a tuple, and the positions in it, which many objects share. The value of
    DirectoryPath follows from FullPath and is not kept.
    """

    __slots__ = ("_places", "_row")

    def __init__(self, places: Mapping[str, int], row: tuple[Value, ...]) -> None:
        self._places = places
        self._row = row

    def __getitem__(self, name: str) -> Value:
        value = self._row[self._places[name]]
        return _PREFIX + str(value) if name == _FROM_PATH else value

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self._places else default

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Values) and other._places is self._places:
            return self._row == other._row
        return super().__eq__(other)


class Compactor:
    """Makes objects compact: objects with the same attributes share their names, and equal values of
    attributes that often repeat, such as security descriptors, are kept once.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, ...], dict[str, int]] = {}
        self._shared: dict[Value, Value] = {}

    def compact(self, item: DirectoryObject) -> DirectoryObject:
        """Return an equal object that needs less memory."""
        values = dict(item.values)
        names = tuple(values)
        path = values.pop(_FROM_PATH, None)
        if path is not None and path != _PREFIX + str(values.get(_PATH)):
            return item
        places = self._places.get(names)
        if places is None:
            places = {name: place for place, name in enumerate(values)}
            if path is not None:
                places[_FROM_PATH] = places[_PATH]
            self._places[names] = places
        for name in _REPEATED:
            if name in values:
                values[name] = self._shared.setdefault(values[name], values[name])
        return DirectoryObject.trusted(item.kind, _Values(places, tuple(values.values())))
