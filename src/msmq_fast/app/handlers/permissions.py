"""Requests about access control: show an access list, change it, explain a decision."""

from __future__ import annotations

from typing import Any

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handler, Session
from msmq_fast.app.versions import EXPECTED, check_version
from msmq_fast.protocol.errors import IllegalPropertyValue, InvalidParameter, PropertyError
from msmq_fast.protocol.frames import Frame
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.security.acl import Ace, AceType
from msmq_fast.security.authorizer import MACHINE, QUEUE, ObjectKind, entry_text
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.edit import deny, grant, revoke
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.masks import parse_rights, right_names
from msmq_fast.security.sddl import parse_sddl, parse_sid, to_sddl
from msmq_fast.security.sid import Sid
from msmq_fast.security.users import Users, UsersFileError

_NAME = Field("name", str, type(None))
_ACCOUNT = Field("account", str)
_EDITS = {"grant": grant, "deny": deny, "revoke": revoke}
_EVERY_BIT = 0x0FFF_FFFF  # the generic bits stand for others
_OUTCOME = {
    AceType.ACCESS_ALLOWED: "allow",
    AceType.ACCESS_ALLOWED_OBJECT: "allow",
    AceType.ACCESS_DENIED: "deny",
    AceType.ACCESS_DENIED_OBJECT: "deny",
}


def descriptor_of(value: Any) -> SecurityDescriptor:
    """Return the security descriptor in a property value: SDDL text, or the bytes of a self-relative
    descriptor.

    Raises ILLEGAL_PROPERTY_VALUE.
    """
    try:
        if isinstance(value, str):
            return parse_sddl(value)
        if isinstance(value, bytes):
            return SecurityDescriptor.from_bytes(value)
    except SecurityDataError as error:
        raise IllegalPropertyValue(f"security: {error}") from None
    raise IllegalPropertyValue("security must be SDDL text or the bytes of a self-relative descriptor")


def _target(session: Session, name: str | None) -> tuple[Queue | None, ObjectKind]:
    """Return (queue, kind of object) for a queue name. A `name` of None stands for the queue manager itself:
    the queue is then None.
    """
    if name is None:
        return None, MACHINE
    queue = session.manager.find(name)
    if queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
        raise PropertyError(f"{name} has no access list of its own: the list of the queue manager applies")
    return queue, QUEUE


def _account(session: Session, account: str) -> Sid:
    try:
        return parse_sid(account) if len(account) == 2 else session.service.principals.sid_of(account)
    except (SecurityDataError, UsersFileError) as error:
        raise InvalidParameter(str(error)) from None


def _rights(text: str, kind: ObjectKind) -> int:
    try:
        return parse_rights(text, kind.rights)
    except ValueError as error:
        raise InvalidParameter(str(error)) from None


def _named(users: Users, sid: Sid | None) -> dict[str, str]:
    return {"sid": "" if sid is None else str(sid), "name": "" if sid is None else users.name_of(sid)}


def _entry(users: Users, index: int, ace: Ace, kind: ObjectKind) -> dict[str, Any]:
    return {
        "index": index,
        "type": _OUTCOME.get(AceType(ace.type), "other") if ace.type in tuple(AceType) else "other",
        "flags": ace.flags,
        "mask": ace.mask,
        "rights": list(right_names(kind.mapping.map(ace.mask), kind.rights)),
        "text": entry_text(ace),
    } | _named(users, ace.sid)


def _map(
    session: Session, name: str | None, descriptor: SecurityDescriptor, kind: ObjectKind
) -> dict[str, Any]:
    users = session.service.principals.users
    dacl = descriptor.dacl
    return {
        "queue": name,
        "owner": _named(users, descriptor.owner),
        "group": _named(users, descriptor.group),
        "sddl": to_sddl(descriptor),
        "descriptor": descriptor.encoded,
        "entries": None
        if dacl is None
        else [_entry(users, index, ace, kind) for index, ace in enumerate(dacl.aces)],
    }


def _show(session: Session, request_id: int, payload: memoryview) -> None:
    (name,) = arguments(payload, _NAME)
    queue, kind = _target(session, name)
    descriptor = session.manager.guard.read_permissions(session.token, queue)
    session.reply(request_id, _map(session, name, descriptor, kind))


def _edit(session: Session, request_id: int, payload: memoryview) -> None:
    name, action, account, rights, expected = arguments(
        payload, _NAME, Field("action", str), _ACCOUNT, Field("rights", str, default=""), EXPECTED
    )
    manager = session.manager
    queue, kind = _target(session, name)
    old = manager.guard.machine if queue is None else queue.security
    check_version(expected, to_sddl(old))
    if action in _EDITS:
        trustee = _account(session, account)
        everything = action == "revoke" and not rights
        mask = _EVERY_BIT if everything else _rights(rights, kind)
        given = _EDITS[action](old, trustee, mask, kind.mapping)
    elif action == "own":
        given = SecurityDescriptor.build(_account(session, account), None, None)
    elif action == "set":
        given = descriptor_of(account)
    else:
        raise InvalidParameter("action must be one of grant, deny, revoke, own, set")
    done = manager.set_security(queue, given, token=session.token)
    session.when(request_id, done, lambda new: _map(session, name, new, kind))


def _explain(session: Session, request_id: int, payload: memoryview) -> None:
    name, account, rights = arguments(payload, _NAME, _ACCOUNT, Field("rights", str))
    manager, principals = session.manager, session.service.principals
    queue, kind = _target(session, name)
    guard = manager.guard
    sees = guard.sees_permissions(session.token, queue)
    if account and not sees:
        guard.read_permissions(session.token, queue)  # refuses; callers may always ask for themselves
    owner = (guard.machine if queue is None else queue.security).owner if sees else None
    try:
        token = principals.of_account(account) if account else session.token
    except UsersFileError as error:
        raise InvalidParameter(str(error)) from None
    desired = _rights(rights, kind)
    decision = guard.explain(token, queue, desired)
    users = principals.users
    entry = None
    if sees and decision.index is not None and decision.entry is not None:
        entry = _entry(users, decision.index, decision.entry, kind)
    session.reply(
        request_id,
        {
            "queue": name,
            "caller": token.name or str(token.user),
            "sids": [_named(users, sid) for sid in sorted(token.sids, key=str)],
            "rights": list(right_names(kind.mapping.map(desired), kind.rights)),
            "granted": decision.granted,
            "reason": decision.reason.value,
            "missing": list(right_names(decision.missing, kind.rights)),
            "entry": entry,
            "owner": _named(users, owner),
        },
    )


HANDLERS: dict[int, Handler] = {
    Frame.SHOW_ACL: _show,
    Frame.EDIT_ACL: _edit,
    Frame.EXPLAIN: _explain,
}
