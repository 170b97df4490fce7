"""Kerberos (RFC 4121, MS-KILE 3.4.5) through GSS-API, in its DCE style of three legs. Needs python-gssapi.

Acceptors use only the keytab: no network, no name service, no replay cache. The third leg proves that the
initiator is present now; a replayed AP-REQ does not prove that. Therefore a context without the third leg is
rejected. In a domain, acceptors read the SIDs of the caller from the PAC in its ticket. Initiators query the
KDC, and block meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from gssapi import MechType, NameType
from gssapi import raw as gss
from gssapi.raw import GSSError, IOVBufferType

from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, Buffer
from msmq_fast.rpc.auth.mechanism import Identity
from msmq_fast.rpc.auth.pac import PacError, logon_of
from msmq_fast.rpc.auth.spnegotokens import KERBEROS, unframed
from msmq_fast.security.domainaccounts import DomainLogon, DomainLogonRefused
from msmq_fast.security.principals import Principals
from msmq_fast.security.token import Token

__all__ = ["KerberosAcceptor", "KerberosInitiator", "KerberosServer", "KerberosUser"]

_AP_REQ: Final = b"\1\0"  # TOK_ID (RFC 4121 4.1)
_TRAILER_SIZE: Final = 8
_LOGON_INFO: Final = b"urn:mspac:logon-info"
_NO_PAC: Final = "the ticket has no PAC, or its PAC has a wrong signature or is that of another user"
_AES_BLOCK: Final = 16
# With RC4 (RFC 4757) the library counts a confounder of 8 bytes, which a MIC does not have.
_RC4_WRAP: Final = 45
_RC4_MIC: Final = 37

_DCE: Final = gss.RequirementFlag.dce_style
_CONFIDENTIALITY: Final = gss.RequirementFlag.confidentiality
_INTEGRITY: Final = gss.RequirementFlag.integrity
_ASKED: Final = (
    _DCE
    | _CONFIDENTIALITY
    | _INTEGRITY
    | gss.RequirementFlag.mutual_authentication
    | gss.RequirementFlag.replay_detection
    | gss.RequirementFlag.out_of_sequence_detection
)


@contextmanager
def _failing_as(failure: AuthFailure) -> Iterator[None]:
    try:
        yield
    except GSSError as error:
        raise AuthError(failure, f"Kerberos: {' '.join(str(error).split())}") from None


def _pdus(
    buffer: memoryview, header_size: int
) -> Iterator[tuple[memoryview, memoryview, memoryview, memoryview]]:
    """Yield header, stub, sec_trailer and token of consecutive PDUs. Raises ValueError."""
    at = 0
    while at < len(buffer):
        head = buffer[at : at + header_size]
        order: Literal["little", "big"] = "little" if len(head) >= 16 and head[4] & 0x10 else "big"
        length = int.from_bytes(head[8:10], order)
        token = length - int.from_bytes(head[10:12], order)
        if at + length > len(buffer) or token - _TRAILER_SIZE < header_size:
            raise ValueError("the lengths in a PDU do not match")
        pdu = buffer[at : at + length]
        trailer = token - _TRAILER_SIZE
        yield head, pdu[header_size:trailer], pdu[trailer:token], pdu[token:]
        at += length


def _check_strength(flags: int, level: AuthLevel) -> None:
    needed = int(_DCE)
    if level >= AuthLevel.CALL:
        needed |= _CONFIDENTIALITY if level == AuthLevel.PRIVACY else _INTEGRITY
    if flags & needed != needed:
        raise AuthError(
            AuthFailure.WEAK,
            "Kerberos: the algorithms that both sides support are too weak for the authentication level",
        )


class _KerberosMechanism:
    """The base of acceptor and initiator: protects messages after the last leg of the authentication."""

    _context: Any = None  # gss.SecurityContext; what python-gssapi declares for it differs by function
    _done = False

    @property
    def complete(self) -> bool:
        """Whether all legs of the authentication are done."""
        return self._done

    def signature_size(self, *, privacy: bool) -> int:
        """Return the size of a token in bytes. It depends on the cipher: with AES and SHA-1 it is 28, or 76
        with privacy.
        """
        with _failing_as(AuthFailure.SIGNATURE):
            if privacy:
                stub = (IOVBufferType.data, False, bytes(_AES_BLOCK))
                sealed = gss.IOV(IOVBufferType.header, stub, std_layout=False)
                gss.wrap_iov_length(self._context, sealed)
                return len(sealed[0].value or b"")
            signed = gss.IOV((IOVBufferType.data, False, b"\0"), IOVBufferType.mic_token, std_layout=False)
            gss.get_mic_iov_length(self._context, signed)
            size = len(signed[1].value or b"")
            return _RC4_MIC if size == _RC4_WRAP else size

    def make_mic(self, data: bytes) -> bytes:
        """See Mechanism."""
        with _failing_as(AuthFailure.SIGNATURE):
            mic: bytes = gss.get_mic(self._context, data)
        return mic

    def check_mic(self, data: bytes, mic: bytes) -> None:
        """See Mechanism."""
        with _failing_as(AuthFailure.SIGNATURE):
            gss.verify_mic(self._context, data, mic)

    def protect(
        self, header: Buffer, stub: Buffer, trailer: Buffer, *, privacy: bool, sign_header: bool
    ) -> tuple[bytes, bytes]:
        """See Protection."""
        if not privacy:
            return bytes(stub), self.make_mic(_signed(header, stub, trailer, sign_header))
        parts = _sealed((IOVBufferType.header, True, None), header, stub, trailer, sign_header)
        with _failing_as(AuthFailure.SIGNATURE):
            encrypted = gss.wrap_iov(self._context, parts, confidential=True)
        if not encrypted:
            raise AuthError(AuthFailure.WEAK, "Kerberos: the mechanism did not encrypt the data")
        return _data(parts), parts[0].value or b""

    def unprotect(
        self,
        header: Buffer,
        stub: Buffer,
        trailer: Buffer,
        token: Buffer,
        *,
        privacy: bool,
        sign_header: bool,
    ) -> bytes:
        """See Protection."""
        if not privacy:
            self.check_mic(_signed(header, stub, trailer, sign_header), bytes(token))
            return bytes(stub)
        parts = _sealed((IOVBufferType.header, False, bytes(token)), header, stub, trailer, sign_header)
        with _failing_as(AuthFailure.SIGNATURE):
            result = gss.unwrap_iov(self._context, parts)
        if not result.encrypted:
            raise AuthError(AuthFailure.SIGNATURE, "Kerberos: a PDU is not encrypted")
        return _data(parts)

    def protect_pdus(
        self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool, sign_header: bool
    ) -> None:
        """See Protection."""
        for head, stub, trailer, token in _pdus(memoryview(buffer), header_size):
            sealed, made = self.protect(head, stub, trailer, privacy=privacy, sign_header=sign_header)
            if len(made) != len(token):
                raise ValueError("the token is larger than its room in the PDU")
            if privacy:
                stub[:] = sealed
            token[:] = made

    def unprotect_pdus(
        self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool, sign_header: bool
    ) -> None:
        """See Protection."""
        try:
            for head, stub, trailer, token in _pdus(memoryview(buffer), header_size):
                clear = self.unprotect(head, stub, trailer, token, privacy=privacy, sign_header=sign_header)
                if privacy:
                    stub[:] = clear
        except ValueError as error:
            raise AuthError(AuthFailure.SIGNATURE, f"Kerberos: {error}") from None


def _signed(header: Buffer, stub: Buffer, trailer: Buffer, sign_header: bool) -> bytes:
    return b"".join((header, stub, trailer)) if sign_header else bytes(stub)


def _sealed(
    token: tuple[IOVBufferType, bool, bytes | None],
    header: Buffer,
    stub: Buffer,
    trailer: Buffer,
    sign_header: bool,
) -> gss.IOV:
    data = (IOVBufferType.data, False, bytes(stub))
    if not sign_header:
        return gss.IOV(token, data, std_layout=False)
    before = (IOVBufferType.sign_only, False, bytes(header))
    behind = (IOVBufferType.sign_only, False, bytes(trailer))
    return gss.IOV(token, before, data, behind, std_layout=False)


def _data(parts: gss.IOV) -> bytes:
    return next(part.value or b"" for part in parts if part.type == IOVBufferType.data)


class KerberosServer:
    """The state that all acceptors share: the keys of a keytab, and the accounts of principals."""

    def __init__(self, keytab: Path, principals: Principals) -> None:
        """Raises AuthError if the keytab cannot be read or has no keys."""
        store: dict[bytes | str, bytes | str] = {b"keytab": f"FILE:{keytab}".encode(), b"rcache": b"none:"}
        with _failing_as(AuthFailure.LOGON):
            acquired = gss.acquire_cred_from(store, mechs=[MechType.kerberos], usage="accept")
        self.credentials = acquired.creds
        self.principals = principals


class KerberosAcceptor(_KerberosMechanism):
    """The server's side of a log-on with Kerberos."""

    blocking = False

    def __init__(self, server: KerberosServer, level: AuthLevel) -> None:
        self._server = server
        self._level = level
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity:
        """See Mechanism."""
        if self._identity is None:
            raise RuntimeError("the log-on is not complete")
        return self._identity

    def step(self, token: bytes) -> bytes:
        """Process the AP-REQ at the first leg, the initiator's AP-REP at the last."""
        with _failing_as(AuthFailure.LOGON):
            # In DCE style the library takes an AP-REQ without framing only; some clients send one with it.
            result = gss.accept_sec_context(
                unframed(token, KERBEROS, _AP_REQ),
                acceptor_creds=self._server.credentials,
                context=self._context,
            )
            self._context = result.context
            if not result.more_steps:
                _check_strength(int(result.flags), self._level)
                if int(result.flags) & int(gss.RequirementFlag.anonymity):  # RFC 8062: an anonymous ticket
                    raise AuthError(AuthFailure.LOGON, "Kerberos: anonymous callers are not accepted")
                initiator = _name(result.initiator_name)
                realm = _name(gss.inquire_context(self._context, target_name=True).target_name)
                caller = self._token(result.initiator_name, initiator, realm.rpartition("@")[2])
                self._identity = Identity(initiator, caller)
                self._done = True
        return result.token or b""

    def _token(self, name: gss.Name | None, initiator: str, realm: str) -> Token:
        """Return the token of the caller. A member of a domain accepts only tickets whose PAC a domain
        controller of its domain has signed.
        """
        principals = self._server.principals
        if principals.domain is None:
            return principals.of_principal(initiator, realm)
        try:
            return principals.of_domain_user(initiator, realm, _logon(name))
        except (PacError, DomainLogonRefused) as error:
            raise AuthError(AuthFailure.LOGON, f"Kerberos: {initiator}: {error}") from None


def _logon(name: gss.Name | None) -> DomainLogon:
    """Return the log-on that the PAC of a ticket describes. Raises PacError."""
    if name is None:
        raise PacError("the ticket names no user")
    try:
        found = gss.get_name_attribute(name, _LOGON_INFO)
    except GSSError:  # the library hides a PAC that it has rejected
        raise PacError(_NO_PAC) from None
    if not found.authenticated or len(found.values) != 1:
        raise PacError(_NO_PAC)
    return logon_of(found.values[0])


def _name(name: gss.Name | None) -> str:
    return gss.display_name(name).name.decode("utf-8", "replace").rstrip("\0") if name is not None else ""


@dataclass(frozen=True, slots=True)
class KerberosUser:
    """The account that logs on, with a password, keytab or credentials cache; without these, the account of
    the process.
    """

    principal: str = ""
    password: str = field(default="", repr=False)
    keytab: Path | None = None
    ccache: str = ""

    def acquire(self) -> gss.Creds | None:
        """Return the GSS credentials of the account; None for the defaults of the library. May block. Raises
        GSSError.
        """
        name = gss.import_name(self.principal.encode(), NameType.user) if self.principal else None
        mechanisms = [MechType.kerberos]
        if name is not None and self.password:
            secret = self.password.encode("utf-8", "surrogatepass")
            return gss.acquire_cred_with_password(name, secret, mechs=mechanisms, usage="initiate").creds
        store: dict[bytes | str, bytes | str] = {}
        if self.keytab is not None:
            # Tickets stay in memory, and serve later connections, too.
            store[b"client_keytab"] = f"FILE:{self.keytab}".encode()
            store[b"ccache"] = f"MEMORY:msmq-fast:{self.keytab}:{self.principal}".encode()
        if self.ccache:
            store[b"ccache"] = self.ccache.encode()
        if not store and name is None:
            return None
        return gss.acquire_cred_from(store or None, name, mechs=mechanisms, usage="initiate").creds


class KerberosInitiator(_KerberosMechanism):
    """The client's side of a log-on with Kerberos. `target` is an SPN, `service/host`."""

    def __init__(self, user: KerberosUser, level: AuthLevel, target: str) -> None:
        self._user = user
        self._level = level
        self._target = target
        self._credentials: gss.Creds | None = None

    @property
    def blocking(self) -> bool:
        """Whether the next step blocks: the first one asks the KDC."""
        return self._context is None

    @property
    def identity(self) -> Identity:
        """Raises RuntimeError: only acceptors know the identity of the caller."""
        raise RuntimeError("only an acceptor has a caller, not an initiator")

    def step(self, token: bytes) -> bytes:
        """Process an empty token at the first leg, then the acceptor's AP-REP."""
        with _failing_as(AuthFailure.LOGON):
            if self._context is None:
                self._credentials = self._user.acquire()
            service, _, host = self._target.partition("/")
            result = gss.init_sec_context(
                gss.import_name(f"{service}@{host}".encode(), NameType.hostbased_service),
                creds=self._credentials,
                context=self._context,
                mech=MechType.kerberos,
                flags=_ASKED,
                input_token=token or None,
            )
            self._context = result.context
            if not result.more_steps:
                _check_strength(int(result.flags), self._level)
                self._done = True
        return result.token or b""
