"""Creates, changes and deletes private queues for dependent clients (MS-MQMP 3.1.4.5 … 3.1.4.11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntFlag
from typing import TYPE_CHECKING, Any

from msmq_fast.packet.names import Scope
from msmq_fast.protocol.errors import (
    IllegalPropertyValue,
    IllegalQueuePathName,
    InvalidParameter,
    QueueNotFound,
    UnsupportedFormatNameOperation,
    error,
)
from msmq_fast.protocol.text import printable
from msmq_fast.qm.queues.queue import QueueKind
from msmq_fast.rpc.services.dependent.properties import Variant, read, to_create, to_set
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.token import Privilege

if TYPE_CHECKING:
    from msmq_fast.packet.names import FormatName
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.queue import Queue
    from msmq_fast.security.token import Token
    from msmq_fast.store.completion import Completion

__all__ = ["DependentObjects", "SecurityInformation"]


class SecurityInformation(IntFlag):
    """SECURITY_INFORMATION (MS-MQMQ 2.2.3): selects parts of a security descriptor."""

    OWNER = 1
    GROUP = 2
    DACL = 4
    SACL = 8


class DependentObjects:
    """Operations on private queues of this computer, with the client's token.

    In addition to the errors named below, each operation raises ACCESS_DENIED and SERVICE_NOT_AVAILABLE.
    """

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager

    # ---- queues

    def create(
        self, token: Token, path: str, descriptor: bytes | None, given: Sequence[tuple[int, Variant]]
    ) -> Completion[Any]:
        """R_QMCreateObjectInternal: creates a queue; resolved when the queue is durable.

        Raises what properties.to_create and QueueAdmin.create raise, ILLEGAL_QUEUE_PATHNAME if the path is
        not that of a private queue of this computer, and ILLEGAL_SECURITY_DESCRIPTOR.
        """
        values, named = to_create(given)
        part = self._part(path)
        if named is not None and self._part(named) != part:
            raise IllegalPropertyValue("PROPID_Q_PATHNAME differs from the path of the queue to be created")
        security = None if descriptor is None else _descriptor(descriptor)
        return self._manager.create_queue(f".\\{part}", token=token, security=security, **values)

    def delete(self, token: Token, name: FormatName) -> Completion[None]:
        """R_QMDeleteObject: deletes a queue; resolved when the deletion is durable."""
        queue = self._find(name)
        return self._manager.delete_queue(queue.name, token=token)

    def format_name(self, path: str) -> FormatName:
        """R_QMObjectPathToObjectFormat: returns the private format name of an existing queue. Raises
        QUEUE_NOT_FOUND.
        """
        queue = self._manager.registry.by_key(self._part(path).key)
        if queue is None:
            raise QueueNotFound(f"there is no queue {printable(path)}")
        return queue.format_name(self._manager.guid)

    # ---- properties

    def properties(self, token: Token, name: FormatName, asked: Sequence[tuple[int, int]]) -> list[Variant]:
        """R_QMGetObjectProperties: returns the values of the properties `asked`, which are pairs of number
        and VARTYPE.
        """
        queue = self._find(name)
        self._manager.guard.read_properties(token, queue)
        return read(self._manager, queue, asked)

    def set_properties(
        self, token: Token, name: FormatName, given: Sequence[tuple[int, Variant]]
    ) -> Completion[None]:
        """R_QMSetObjectProperties: sets properties; resolved when durable. Raises what properties.to_set
        raises.
        """
        values = to_set(given)
        return self._manager.set_properties(self._find(name), token=token, **values)

    # ---- permissions

    def permissions(self, token: Token, name: FormatName, parts: int) -> bytes:
        """R_QMGetObjectSecurityInternal: returns the `parts` of a queue's descriptor, as a self-relative
        descriptor.

        Raises INVALID_PARAMETER if `parts` is invalid, PRIVILEGE_NOT_HELD if it includes the SACL and the
        caller is not an administrator.
        """
        wanted = _parts(parts)
        queue = self._find(name)
        descriptor = self._manager.guard.read_permissions(token, queue)
        if wanted & SecurityInformation.SACL and not token.privileges & Privilege.SECURITY:
            raise error("MQ_ERROR_PRIVILEGE_NOT_HELD", "only an administrator may use the SACL")
        return _selected(descriptor, wanted).encoded

    def set_permissions(
        self, token: Token, name: FormatName, parts: int, descriptor: bytes | None
    ) -> Completion[None]:
        """R_QMSetObjectSecurityInternal: replaces the `parts` of a queue's descriptor; resolved when durable.

        Raises ILLEGAL_SECURITY_DESCRIPTOR if the given descriptor is invalid, or lacks one of the parts.
        """
        wanted = _parts(parts)
        queue = self._find(name)
        given = _descriptor(descriptor or b"")
        lacking = (
            (wanted & SecurityInformation.OWNER and given.owner is None)
            or (wanted & SecurityInformation.GROUP and given.group is None)
            or (wanted & SecurityInformation.DACL and not given.dacl_present)
            or (wanted & SecurityInformation.SACL and not given.sacl_present)
        )
        if lacking:
            raise error(
                "MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR", "the descriptor lacks a part that is to be set"
            )
        return self._manager.set_properties(queue, token=token, security=_selected(given, wanted))

    # ---- inside

    def _part(self, path: str) -> Any:
        if "\\" not in path:
            raise IllegalQueuePathName(f"{printable(path)} does not name a computer")
        part = self._manager.registry.part_of_path(path)
        if part.scope is not Scope.PRIVATE or part.subqueue or part.journal:
            raise IllegalQueuePathName(f"{printable(path)} is not the path of a private queue")
        return part

    def _find(self, name: FormatName) -> Queue:
        """Returns the private queue of this computer with a name.

        Raises QUEUE_NOT_FOUND, and UNSUPPORTED_FORMATNAME_OPERATION if the name is not that of a private
        queue.
        """
        target = self._manager.registry.resolve(str(name))
        queue = self._manager.registry.find(target) if target.local else None
        if queue is None:
            raise QueueNotFound(f"there is no queue {name} on this computer")
        if queue.kind is not QueueKind.PRIVATE:
            raise UnsupportedFormatNameOperation(f"{name} is not a private queue")
        return queue


def _parts(given: int) -> SecurityInformation:
    if not given or given & ~sum(SecurityInformation):
        raise InvalidParameter(
            f"SECURITY_INFORMATION 0x{given:08X} is not a valid selection of parts of a descriptor"
        )
    return SecurityInformation(given)


def _descriptor(data: bytes) -> SecurityDescriptor:
    try:
        return SecurityDescriptor.from_bytes(data)
    except SecurityDataError as problem:
        raise error("MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR", str(problem)) from None


def _selected(whole: SecurityDescriptor, parts: SecurityInformation) -> SecurityDescriptor:
    """Returns a copy of the descriptor `whole` that has only its `parts`."""
    dacl, sacl = bool(parts & SecurityInformation.DACL), bool(parts & SecurityInformation.SACL)
    return replace(
        whole,
        owner=whole.owner if parts & SecurityInformation.OWNER else None,
        group=whole.group if parts & SecurityInformation.GROUP else None,
        dacl=whole.dacl if dacl else None,
        dacl_present=whole.dacl_present and dacl,
        sacl=whole.sacl if sacl else None,
        sacl_present=whole.sacl_present and sacl,
    )
