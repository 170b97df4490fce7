"""Requests about access control: show an access list, change it, explain a decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from msmq_fast.security.principals import Principals
from msmq_fast.security.sddl import parse_sddl, parse_sid, to_sddl
from msmq_fast.security.sid import Sid
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion

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


def _account(session: Session, account: str) -> Completion[Sid]:
    if len(account) != 2:
        return session.service.principals.resolve(account)
    try:
        return Completion.of(parse_sid(account))
    except SecurityDataError as error:
        raise InvalidParameter(str(error)) from None


def _rights(text: str, kind: ObjectKind) -> int:
    try:
        return parse_rights(text, kind.rights)
    except ValueError as error:
        raise InvalidParameter(str(error)) from None


def _named(principals: Principals, sid: Sid | None) -> dict[str, str]:
    return {"sid": "" if sid is None else str(sid), "name": "" if sid is None else principals.name_of(sid)}


def _sids(descriptor: SecurityDescriptor) -> Iterator[Sid]:
    aces = () if descriptor.dacl is None else descriptor.dacl.aces
    for found in (descriptor.owner, descriptor.group, *(ace.sid for ace in aces)):
        if found is not None:
            yield found


def _entry(principals: Principals, index: int, ace: Ace, kind: ObjectKind) -> dict[str, Any]:
    return {
        "index": index,
        "type": _OUTCOME.get(AceType(ace.type), "other") if ace.type in tuple(AceType) else "other",
        "flags": ace.flags,
        "mask": ace.mask,
        "rights": list(right_names(kind.mapping.map(ace.mask), kind.rights)),
        "text": entry_text(ace),
    } | _named(principals, ace.sid)


def _map(
    session: Session, name: str | None, descriptor: SecurityDescriptor, kind: ObjectKind
) -> dict[str, Any]:
    principals = session.service.principals
    dacl = descriptor.dacl
    return {
        "queue": name,
        "owner": _named(principals, descriptor.owner),
        "group": _named(principals, descriptor.group),
        "sddl": to_sddl(descriptor),
        "descriptor": descriptor.encoded,
        "entries": None
        if dacl is None
        else [_entry(principals, index, ace, kind) for index, ace in enumerate(dacl.aces)],
    }


def _show(session: Session, request_id: int, payload: memoryview) -> None:
    (name,) = arguments(payload, _NAME)
    queue, kind = _target(session, name)
    descriptor = session.manager.guard.read_permissions(session.token, queue)
    named = session.service.principals.learn(_sids(descriptor))
    session.when(request_id, named, lambda _: _map(session, name, descriptor, kind))


def _edit(session: Session, request_id: int, payload: memoryview) -> None:
    name, action, account, rights, expected = arguments(
        payload, _NAME, Field("action", str), _ACCOUNT, Field("rights", str, default=""), EXPECTED
    )
    manager, principals = session.manager, session.service.principals
    kind = _target(session, name)[1]

    def changed(edit: Callable[[SecurityDescriptor], SecurityDescriptor]) -> Completion[SecurityDescriptor]:
        queue, _ = _target(session, name)  # an account may have taken the domain controller a while
        old = manager.guard.machine if queue is None else queue.security
        check_version(expected, to_sddl(old))
        done = manager.set_security(queue, edit(old), token=session.token)
        return done.then(lambda new: principals.learn(_sids(new)).then(lambda _: done))

    edit = _edit_of(session, action, account, rights, kind)
    session.when(request_id, edit.then(changed), lambda new: _map(session, name, new, kind))


def _edit_of(
    session: Session, action: str, account: str, rights: str, kind: ObjectKind
) -> Completion[Callable[[SecurityDescriptor], SecurityDescriptor]]:
    """Return a function that makes the new descriptor from the old one."""
    if action in _EDITS:
        everything = action == "revoke" and not rights
        mask = _EVERY_BIT if everything else _rights(rights, kind)
        return _account(session, account).then(
            lambda trustee: Completion.of(lambda old: _EDITS[action](old, trustee, mask, kind.mapping))
        )
    if action == "own":
        return _account(session, account).then(
            lambda owner: Completion.of(lambda _: SecurityDescriptor.build(owner, None, None))
        )
    if action == "set":
        given = descriptor_of(account)
        return Completion.of(lambda _: given)
    raise InvalidParameter("action must be one of grant, deny, revoke, own, set")


def _explain(session: Session, request_id: int, payload: memoryview) -> None:
    name, account, rights = arguments(payload, _NAME, _ACCOUNT, Field("rights", str))
    manager, principals = session.manager, session.service.principals
    queue, kind = _target(session, name)
    guard = manager.guard
    sees = guard.sees_permissions(session.token, queue)
    if account and not sees:
        guard.read_permissions(session.token, queue)  # refuses; callers may always ask for themselves
    desired = _rights(rights, kind)

    def explained(token: Token) -> Completion[dict[str, Any]]:
        found = _explanation(session, name, token, desired, sees=sees)
        return principals.learn(token.sids).then(lambda _: Completion.of(found()))

    token = principals.resolve_token(account) if account else Completion.of(session.token)
    session.when(request_id, token.then(explained), lambda found: found)


def _explanation(
    session: Session, name: str | None, token: Token, desired: int, *, sees: bool
) -> Callable[[], dict[str, Any]]:
    """Return a function that makes the reply, once the names in it are known. `sees`: the caller may see the
    access list.
    """
    principals, guard = session.service.principals, session.manager.guard
    queue, kind = _target(session, name)
    decision = guard.explain(token, queue, desired)
    owner = (guard.machine if queue is None else queue.security).owner if sees else None

    def reply() -> dict[str, Any]:
        entry = None
        if sees and decision.index is not None and decision.entry is not None:
            entry = _entry(principals, decision.index, decision.entry, kind)
        return {
            "queue": name,
            "caller": token.name or str(token.user),
            "sids": [_named(principals, sid) for sid in sorted(token.sids, key=str)],
            "rights": list(right_names(kind.mapping.map(desired), kind.rights)),
            "granted": decision.granted,
            "reason": decision.reason.value,
            "missing": list(right_names(decision.missing, kind.rights)),
            "entry": entry,
            "owner": _named(principals, owner),
        }

    return reply


HANDLERS: dict[int, Handler] = {
    Frame.SHOW_ACL: _show,
    Frame.EDIT_ACL: _edit,
    Frame.EXPLAIN: _explain,
}
