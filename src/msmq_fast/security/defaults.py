"""The default security descriptors of queues (MS-MQDMPR 3.1.7.1.3.1) and of the queue manager (left open by
3.1.1.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from msmq_fast.security.acl import Ace, AceType, Acl
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.masks import MachineRight, QueueRight
from msmq_fast.security.sid import ADMINISTRATORS, ANONYMOUS, EVERYONE, GUEST_RID, LOCAL_SYSTEM, Sid
from msmq_fast.security.token import Token

__all__ = ["DefaultAcl", "DefaultPolicy", "machine_descriptor", "queue_descriptor"]

_LOOK: Final = QueueRight.GET_QUEUE_PROPERTIES | QueueRight.GET_QUEUE_PERMISSIONS


class DefaultAcl(StrEnum):
    """The rights that a new queue grants to Everyone if its owner is not a domain user."""

    SPEC = "spec"
    """All rights, as in MS-MQDMPR: in a workgroup every local program has full access."""
    RESTRICTIVE = "restrictive"
    """The rights to read properties and to send; the owner and the administrators have all rights."""


def _no_domain_user(_: Sid) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class DefaultPolicy:
    """The policy of default descriptors.

    `reachable_by_srmp`: messages may arrive from anonymous senders, so Everyone and ANONYMOUS LOGON get the
    right to send. `machine`: the SID of the computer in its domain, None in a workgroup (DM-045).
    `is_domain_user` tells domain accounts from local ones (X-44).
    """

    acl: DefaultAcl = DefaultAcl.SPEC
    reachable_by_srmp: bool = True
    machine: Sid | None = None
    everyone_creates_queues: bool = False
    is_domain_user: Callable[[Sid], bool] = field(default=_no_domain_user)


def _allow(mask: int, trustee: Sid) -> Ace:
    return Ace.build(AceType.ACCESS_ALLOWED, mask, trustee)


def queue_descriptor(
    policy: DefaultPolicy, caller: Token | None, supplied: SecurityDescriptor | None = None
) -> SecurityDescriptor:
    """Create Default Queue Security Descriptor (DM-045 … DM-049).

    The parts that `supplied` has are kept byte for byte. Unless an owner is supplied, it is the caller, or
    the Administrators group if the queue manager itself creates the queue. The group is the primary group of
    the owner, or the owner if it has none.

    If the owner is not a domain user, the rights are those of a queue with the owner S-1-5-7 (DM-047). But
    S-1-5-7 is not written as the owner: every anonymous caller could then change the descriptor.
    """
    owner = caller.user if caller is not None else ADMINISTRATORS
    group = caller.primary_group if caller is not None else None
    if supplied is None:
        supplied = SecurityDescriptor()
    if supplied.owner is not None:
        owner, group = supplied.owner, None
    group = supplied.group or group or owner
    dacl = supplied.dacl if supplied.dacl is not None else _default_dacl(policy, owner)
    return SecurityDescriptor(
        owner,
        group,
        dacl,
        supplied.sacl,
        supplied.control,
        dacl_present=True,
        sacl_present=supplied.sacl_present,
        resource=supplied.resource,
    )


def _default_dacl(policy: DefaultPolicy, owner: Sid) -> Acl:
    everything = int(QueueRight.QUEUE_GENERIC_ALL)
    restrictive = policy.acl is DefaultAcl.RESTRICTIVE
    world, owner_access = int(_LOOK), everything
    if not restrictive and (owner.rid == GUEST_RID or not policy.is_domain_user(owner)):
        world, owner_access = everything, 0
    machine = int(_LOOK) if policy.machine is not None else 0
    anonymous = 0
    if policy.reachable_by_srmp:
        world |= QueueRight.WRITE_MESSAGE
        anonymous = int(QueueRight.WRITE_MESSAGE)
    granted = (
        (world, EVERYONE),
        (anonymous, ANONYMOUS),
        (machine, policy.machine or EVERYONE),
        (owner_access, owner),
        (everything if restrictive and owner != ADMINISTRATORS else 0, ADMINISTRATORS),
    )
    return Acl(tuple(_allow(mask, trustee) for mask, trustee in granted if mask))


def machine_descriptor(policy: DefaultPolicy) -> SecurityDescriptor:
    """The descriptor of the queue manager (QM-23, X-40). Administrators and the owner, which is the system,
    have all rights. Everyone has MQSEC_MACHINE_WORLD_RIGHTS, and the right to create queues if the policy
    allows it.
    """
    everything = int(MachineRight.MACHINE_GENERIC_ALL)
    world = int(MachineRight.MACHINE_WORLD_RIGHTS)
    if policy.everyone_creates_queues:
        world |= MachineRight.CREATE_QUEUE
    aces = (
        _allow(everything, ADMINISTRATORS),
        _allow(everything, LOCAL_SYSTEM),
        _allow(world, EVERYONE),
    )
    return SecurityDescriptor.build(LOCAL_SYSTEM, LOCAL_SYSTEM, Acl(aces))
