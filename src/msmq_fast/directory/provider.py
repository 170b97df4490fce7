"""The interface of a directory, which every provider implements.

Operations are asynchronous: they return a Completion, which fails with a DirectoryError. A provider with all
objects in this process resolves reads at once; a provider that asks a server resolves them when the server
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol
from uuid import UUID

from msmq_fast.directory.filters import Filter, Sort
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion

Join = Callable[[UUID], object]
"""The effect of a directory change on this queue manager.

A provider in the queue manager's own store calls it inside the unit of work of the change, so that either
both are committed or neither. Any other provider calls it after the directory has accepted the change. The
argument is the identifier of the object. If it raises, the operation fails with that error; in the first case
the change is also undone.
"""


class DirectoryProvider(Protocol):
    """The seven operations of MS-MQDMPR 3.1.7.1.18 to 3.1.7.1.24, and two of MS-MQDSSM.

    `attributes` limits an operation to the attributes with these names; None means all attributes that are
    set. `join` makes the change of this queue manager that belongs to a change of the directory; see `Join`.
    An operation fails with GenericError if a value does not fit its attribute.
    """

    changed: Signal[[ObjectType]]
    """Emitted when other programs have changed objects of a type, as far as the provider notices that."""

    @property
    def integrated(self) -> bool:
        """DirectoryIntegrated: False in a workgroup."""

    @property
    def keeps_copy(self) -> bool:
        """Whether reads are answered from a copy while the directory is not connected."""

    @property
    def is_authority(self) -> bool:
        """Whether the directory chooses the identifiers of objects, and its values win over those of a queue
        manager. An object is then never created again, since that would change its identifier.
        """

    @property
    def server(self) -> str:
        """The name of the directory in change notifications."""

    @property
    def directory_servers(self) -> Sequence[str]:
        """DirectoryServerList: the names of the computers that answer for the directory, that in use first.
        Empty if the directory is in this process.
        """

    @property
    def problem(self) -> str:
        """What an operator should know, such as why the directory cannot be reached; "" if all is well."""

    def start(self) -> Completion[None]:
        """Begin to use the directory. Resolves when reads can be answered, which may take as long as no
        server of the directory answers.
        """

    def close(self) -> None:
        """Stop using the directory."""

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""

    def expire(self, now: float) -> None:
        """Do what is due at the time `now`."""

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]:
        """Create an object. Resolves to its GUID once it is durable.

        Fails with ObjectAlreadyExists if another object has its unique key. The directory sets FullPath,
        DirectoryPath, CreateTime and ModifyTime.
        """

    def delete(self, item: DirectoryObject, *, join: Join | None = None) -> Completion[None]:
        """Delete the object with the identifier, path or unique key of `item`. Fails with ObjectNotFound if
        there is none.
        """

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]:
        """Read the first object, in the order of GUIDs, that meets all conditions.

        Fails with ObjectNotFound, or with AttributeNotFound if the object lacks a requested attribute.
        `force` bypasses the provider's cache.
        """

    def begin(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        order: Sequence[Sort] = (),
        *,
        owner: object = None,
    ) -> Completion[int]:
        """Start an enumeration of the objects as they are now. Resolves to its handle. Close it with
        `end(handle)`; `release(owner)` closes all enumerations of an owner.
        """

    def next(self, handle: int) -> Completion[DirectoryObject]:
        """Read the next object. After the last one, every call fails with EndOfData."""

    def end(self, handle: int) -> Completion[None]:
        """End an enumeration."""

    def release(self, owner: object) -> None:
        """End every enumeration of an owner, for example of a lost connection."""

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]:
        """Change the object with the identifier, path or unique key of `item`. Fails with ObjectNotFound if
        there is none.

        Attributes that are fixed after creation, and those that the directory sets itself, are left
        unchanged.
        """

    def resolve_list(self, identifier: UUID, domain: str = "") -> Completion[tuple[str, ...]]:
        """Read the format names of a distribution list, which may be lists themselves. Fails with
        ObjectNotFound.
        """

    def machine_sid(self, computer: str) -> Completion[str]:
        """Read the SID of a computer account. Fails with ObjectNotFound or AttributeNotFound."""
