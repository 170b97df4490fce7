"""The interface of a directory, which every provider implements.

Operations are asynchronous: they return a Completion that fails with a DirectoryError. A provider in this
process resolves reads at once; one that asks a server resolves them when the server has answered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol
from uuid import UUID

from msmq_fast.directory.filters import Filter, Sort
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.store.completion import Completion

Join = Callable[[UUID], object]
"""What a change of the directory causes in this queue manager.

A provider that lives in the queue manager's own store calls it inside the unit of work that keeps the change,
so that both are kept or neither. Any other provider calls it when the directory has agreed. It is given the
identifier of the object; what it raises ends the operation, and in the first case undoes it.
"""


class DirectoryProvider(Protocol):
    """The seven operations of MS-MQDMPR 3.1.7.1.18 to 3.1.7.1.24, and two of MS-MQDSSM.

    `attributes` are the names that an operation is limited to; None stands for all that are set. A value that
    does not fit its attribute ends an operation with GenericError.
    """

    @property
    def integrated(self) -> bool:
        """DirectoryIntegrated: False in a workgroup."""

    @property
    def server(self) -> str:
        """By which name change notifications call the directory."""

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]:
        """Create an object; its GUID when it is durable.

        ObjectAlreadyExists: another one has its unique key. The directory sets FullPath, DirectoryPath,
        CreateTime and ModifyTime.
        """

    def delete(self, item: DirectoryObject, *, join: Join | None = None) -> Completion[None]:
        """Delete the object with the identifier, path or unique key of `item`; ObjectNotFound."""

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]:
        """The first object, by GUID, that meets all conditions.

        ObjectNotFound; AttributeNotFound: it lacks an attribute that was asked for. `force` goes past
        whatever the provider remembers.
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
        """Start an enumeration of the objects as they are now; a handle, which `release(owner)` ends too."""

    def next(self, handle: int) -> Completion[DirectoryObject]:
        """The next object; EndOfData, again and again, behind the last one."""

    def end(self, handle: int) -> Completion[None]:
        """End an enumeration."""

    def release(self, owner: object) -> None:
        """End every enumeration of an owner, such as a connection that broke."""

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]:
        """Change an object; ObjectNotFound.

        What is fixed once the object exists, and what the directory itself sets, is left as it is.
        """

    def resolve_list(self, identifier: UUID, domain: str = "") -> Completion[tuple[str, ...]]:
        """The format names of a distribution list, lists among them; ObjectNotFound."""

    def machine_sid(self, computer: str) -> Completion[str]:
        """The SID of a computer account; ObjectNotFound, AttributeNotFound."""
