"""Definitions: a JSON document that describes a queue manager, without messages and without secrets.

    {"msmq_fast_definitions": 1,
     "queue_manager": {"security": "O:…"},
     "queues": [{"name": ".\\\\private$\\\\orders", "label": "Orders", …, "security": "O:…"}],
     "directory": [{"object": "Site", "Identifier": "…", "Name": "north"}]}

1. A section that the document does not have is left alone. Queues have the properties of
   `resources.QueueProperties`; a property that an entry does not have is left alone, too.
2. Nothing in the document depends on the computer: names of queues begin with a dot, and there are no GUIDs
   of queues, counts or times. So an import into an empty queue manager and a second export give equal bytes.
3. Security descriptors are SDDL. They name accounts by their SIDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msmq_fast.protocol.resources import QueueProperties, Resource
from msmq_fast.protocol.text import quoted

__all__ = [
    "DIRECTORY_OBJECTS",
    "FORMAT",
    "MOST",
    "PARTS",
    "VERSION",
    "DefinitionChange",
    "Definitions",
    "name_of",
    "queue_key",
    "read_definitions",
]

FORMAT: Final = "msmq_fast_definitions"
VERSION: Final = 1
MOST: Final = 20_000  # entries of each section of a document
PARTS: Final = ("queue_manager", "queues", "directory")
DIRECTORY_OBJECTS: Final = (
    "Enterprise",
    "ConnectedNetwork",
    "Site",
    "QueueManager",
    "Queue",
    "RoutingLink",
    "DistributionList",
)
"""The types of directory objects in definitions, in an order in which they can be created. Users are not
among them: a user object belongs to registered certificates.
"""

_NAMES: Final = ("Pathname", "ComputerName", "Name", "SecurityIdentifier", "FullPath", "Identifier")
_QUEUE_KEYS: Final = frozenset(("name", *QueueProperties.__annotations__))
_MOST_SHOWN: Final = 3  # mistakes


@dataclass(frozen=True, slots=True)
class DefinitionChange(Resource):
    """What an import did, or would do, with one object."""

    object: str = ""
    """`Queue`, `QueueManager`, or another type of the directory."""
    name: str = ""
    outcome: str = ""
    """`created`, `changed`, `unchanged`, `deleted` or `failed`."""
    detail: str = ""
    """The properties that differ, or why the object failed."""
    messages: int | None = None
    """Of a deleted queue: the number of its messages."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """The sections of a document; None for a section that it does not have."""

    manager: Mapping[str, Any] | None
    queues: list[Mapping[str, Any]] | None
    directory: list[Mapping[str, Any]] | None


def name_of(entry: Mapping[str, Any]) -> str:
    """Return the name of a directory object for people: its path, name, SID or GUID; "" if it has none."""
    return next((str(entry[name]) for name in _NAMES if entry.get(name)), "")


def queue_key(name: str) -> str:
    """Return the key by which names of local queues are compared: `orders`, `.\\private$\\orders` and
    `HOST\\private$\\orders` have the same.
    """
    computer, separator, local = name.partition("\\")
    return (local if separator else f"private$\\{computer}").casefold()


def read_definitions(document: object) -> Definitions:
    """Return the sections of a document. Values of properties are not checked: the queue manager does that.

    Raises ValueError, with one line that names the first mistakes.
    """
    if not isinstance(document, Mapping) or document.get(FORMAT) != VERSION:
        raise ValueError(f'this document has no definitions: expected the key "{FORMAT}": {VERSION}')
    mistakes = [f"unknown section {quoted(str(name))}" for name in document if name not in (FORMAT, *PARTS)]
    manager = document.get("queue_manager")
    if manager is not None and not (isinstance(manager, Mapping) and set(manager) == {"security"}):
        mistakes.append('queue_manager: expected an object with the key "security"')
    queues = _entries(document, "queues", mistakes)
    directory = _entries(document, "directory", mistakes)
    mistakes += _mistakes_of_queues(queues or ())
    mistakes += _mistakes_of_objects(directory or ())
    if mistakes:
        more = len(mistakes) - _MOST_SHOWN
        rest = f"; and {more} more" if more > 0 else ""
        raise ValueError("; ".join(mistakes[:_MOST_SHOWN]) + rest)
    return Definitions(manager, queues, directory)


def _entries(
    document: Mapping[str, Any], section: str, mistakes: list[str]
) -> list[Mapping[str, Any]] | None:
    entries = document.get(section)
    if entries is None:
        return None
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        mistakes.append(f"{section}: expected a list of objects")
        return None
    if len(entries) > MOST:
        mistakes.append(f"{section}: {len(entries)} entries; the limit is {MOST}")
        return None
    return entries


def _mistakes_of_queues(entries: list[Mapping[str, Any]] | tuple[()]) -> list[str]:
    found: list[str] = []
    seen: dict[str, int] = {}
    for number, entry in enumerate(entries):
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            found.append(f"queues[{number}]: expected a name")
            continue
        unknown = [str(key) for key in entry if key not in _QUEUE_KEYS]
        if unknown:
            found.append(f"queues[{number}]: a queue has no property {quoted(unknown[0])}")
        first = seen.setdefault(queue_key(name), number)
        if first != number:
            found.append(f"queues[{number}]: queues[{first}] has the same name {quoted(name)}")
    return found


def _mistakes_of_objects(entries: list[Mapping[str, Any]] | tuple[()]) -> list[str]:
    found: list[str] = []
    for number, entry in enumerate(entries):
        kind = entry.get("object")
        if kind not in DIRECTORY_OBJECTS:
            expected = ", ".join(DIRECTORY_OBJECTS)
            found.append(f"directory[{number}].object: expected one of {expected}, got {quoted(str(kind))}")
    return found
