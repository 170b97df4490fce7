"""Requests about certificates of users and keys of queue managers (section 3.4 of the protocol)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import InvalidParameter, UnsupportedOperation, error
from msmq_fast.protocol.frames import Frame
from msmq_fast.qm.identity.certificates import Certificates, KeptCertificate
from msmq_fast.qm.identity.keyring import Keyring
from msmq_fast.security.blobs import read_key_list
from msmq_fast.security.certificates import described, from_file
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.rsakeys import from_pem
from msmq_fast.security.sid import Sid
from msmq_fast.security.users import UsersFileError
from msmq_fast.store.completion import Completion

_USER = Field("user", str)


def _certificates(session: Session) -> Certificates:
    found = session.service.certificates
    if found is None:
        raise UnsupportedOperation("this server does not store certificates")
    return found


def _keyring(session: Session) -> Keyring:
    found = session.service.keyring
    if found is None:
        raise UnsupportedOperation("this server does not store encryption keys")
    return found


def _whose(session: Session, account: str, operation: str) -> tuple[Sid, str]:
    """Return (SID, name) of an account; "" is the account of the caller. Raises AccessDenied for another
    account, unless the caller is an administrator; `operation` names the operation for the audit.
    """
    principals = session.service.principals
    if not account:
        return session.token.user, session.token.name or str(session.token.user)
    try:
        user = principals.sid_of(account)
    except (UsersFileError, SecurityDataError) as problem:
        raise InvalidParameter(str(problem)) from None
    if user != session.token.user and not session.token.administrator:
        raise session.manager.guard.authorizer.refuse(
            session.token,
            f"the certificates of {account}",
            operation,
            "only an administrator may use the certificates of another user",
        )
    return user, principals.users.name_of(user) or account


def _shown(session: Session, user: Sid, kept: KeptCertificate, registered: list[bytes]) -> dict[str, Any]:
    return {
        "user": str(user),
        "name": session.service.principals.users.name_of(user),
        "identifier": str(kept.identifier),
        "digest": kept.digest.hex(),
        "internal": kept.internal,
        "signs": kept.signs,
        "registered": kept.certificate in registered,
        "certificate": kept.certificate,
    } | described(kept.certificate)


def _list(session: Session, request_id: int, payload: memoryview) -> None:
    (account,) = arguments(payload, Field("user", str, type(None)))
    certificates = _certificates(session)
    if account is None:
        session.manager.guard.administer(session.token, "list all certificates")
        users = certificates.users()
    else:
        users = [_whose(session, account, "list certificates")[0]]
    rows = []
    for user in users:
        registered = certificates.registered(user)
        rows += [_shown(session, user, kept, registered) for kept in certificates.of(user)]
    session.reply(request_id, rows)


def _answer(session: Session, request_id: int, user: Sid, done: Completion[KeptCertificate]) -> None:
    certificates = _certificates(session)
    session.when(request_id, done, lambda kept: _shown(session, user, kept, certificates.registered(user)))


def _create(session: Session, request_id: int, payload: memoryview) -> None:
    (account,) = arguments(payload, _USER)
    user, name = _whose(session, account, "create certificate")
    done = _certificates(session).create(user, name)
    session.manager.audit.recorded(done, session.token, "create certificate", f"user {name}", _identified)
    _answer(session, request_id, user, done)
    session.hold(done)  # later requests may sign with it


def _add(session: Session, request_id: int, payload: memoryview) -> None:
    account, certificate, key = arguments(
        payload, _USER, Field("certificate", bytes), Field("private key", bytes, type(None))
    )
    user, _ = _whose(session, account, "register certificate")
    try:
        done = _certificates(session).add(
            user, from_file(certificate), None if key is None else from_pem(key)
        )
    except SecurityDataError as problem:
        raise error("MQ_ERROR_INVALID_CERTIFICATE", str(problem)) from None
    session.manager.audit.recorded(done, session.token, "register certificate", f"user {user}", _identified)
    _answer(session, request_id, user, done)


def _identified(kept: KeptCertificate) -> str:
    return f"certificate {kept.identifier}"


def _remove(session: Session, request_id: int, payload: memoryview) -> None:
    account, identifier = arguments(payload, _USER, Field("identifier", str))
    user, _ = _whose(session, account, "remove certificate")
    done = _certificates(session).remove(user, _guid(identifier))
    session.manager.audit.recorded(
        done, session.token, "remove certificate", f"user {user}", lambda _: f"certificate {identifier}"
    )
    session.when(request_id, done, lambda _: None)


def _show_keys(session: Session, request_id: int, payload: memoryview) -> None:
    arguments(payload)
    keyring = _keyring(session)
    rows = [_keys(session.manager.guid, keyring.encryption_list, own=True)]
    rows += [_keys(guid, blob, own=False) for guid, blob in sorted(keyring.peers.items())]
    session.reply(request_id, rows)


def _keys(guid: UUID, blob: bytes, *, own: bool) -> dict[str, Any]:
    entries = [{"provider": entry.provider, "bits": entry.key.bits} for entry in read_key_list(blob)]
    return {"guid": str(guid), "own": own, "keys": entries, "blob": blob}


def _tell_keys(session: Session, request_id: int, payload: memoryview) -> None:
    guid, blob = arguments(payload, Field("guid", str), Field("keys", bytes, type(None)))
    session.manager.guard.administer(session.token, "tell the keys of another queue manager")
    manager = _guid(guid)
    if manager == session.manager.guid:
        raise InvalidParameter(
            "guid must be that of another queue manager: the keys of this one cannot be set"
        )
    try:
        done = _keyring(session).tell(manager, blob)
    except SecurityDataError as problem:
        raise InvalidParameter(str(problem)) from None
    operation = "forget public keys" if blob is None else "import public keys"
    session.manager.audit.recorded(done, session.token, operation, f"queue manager {manager}")
    session.when(request_id, done)


def _guid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidParameter(f"{text!r} is not a GUID") from None


HANDLERS: dict[int, Handler] = {
    Frame.LIST_CERTIFICATES: _list,
    Frame.CREATE_CERTIFICATE: _create,
    Frame.ADD_CERTIFICATE: _add,
    Frame.REMOVE_CERTIFICATE: _remove,
    Frame.SHOW_KEYS: _show_keys,
    Frame.TELL_KEYS: _tell_keys,
}
