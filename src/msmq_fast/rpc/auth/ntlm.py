"""NTLM (MS-NLMP): the acceptor and the initiator. NTLMv2 only, with extended session security.

The proof is checked over the bytes as received, never over a blob that is rebuilt from its parts.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msmq_fast._native.ntlm import hmac_md5
from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, Buffer
from msmq_fast.rpc.auth.mechanism import Identity
from msmq_fast.rpc.auth.ntlmmessages import (
    Authenticate,
    AvFlags,
    AvId,
    Challenge,
    Flags,
    NtlmV2Response,
    pack_av_pairs,
    pack_negotiate,
    parse_av_pairs,
    parse_negotiate,
)
from msmq_fast.rpc.auth.ntlmsession import SIGNATURE_SIZE, NtlmSession, ntowf_v2, rc4_key
from msmq_fast.security.logons import WRONG, LogonLimits
from msmq_fast.security.nthash import nt_hash
from msmq_fast.security.principals import Principals
from msmq_fast.security.token import ANONYMOUS_TOKEN
from msmq_fast.security.users import User

__all__ = ["NtlmAcceptor", "NtlmInitiator", "NtlmServer", "NtlmUser", "host_of"]

_KEY_SIZE: Final = 16
_CHALLENGE_SIZE: Final = 8
_NO_KEY: Final = bytes(_KEY_SIZE)
_V1_RESPONSE: Final = 24
# MaxLifetime (MS-NLMP 3.1.1.1) of a time stamp, in 100 ns. The value is that of Windows.
_LIFETIME: Final = 36 * 3600 * 10_000_000
_EPOCH: Final = 116_444_736_000_000_000  # 1970 as FILETIME

_OFFERED: Final = (
    Flags.UNICODE
    | Flags.SIGN
    | Flags.SEAL
    | Flags.NTLM
    | Flags.ALWAYS_SIGN
    | Flags.EXTENDED_SESSIONSECURITY
    | Flags.VERSION
    | Flags.KEY_128
    | Flags.KEY_EXCH
    | Flags.KEY_56
)

_ASKED: Final = _OFFERED | Flags.REQUEST_TARGET | Flags.TARGET_INFO


def _filetime(now: float) -> int:
    return _EPOCH + int(now * 10_000_000)


def host_of(target: str) -> str:
    """Return the host in a service principal name: `class/host`, `class/host:port`,
    `class/host/service@REALM`.

    A name without a class is `host`, `host$@REALM` or `DOMAIN\\host$`.
    """
    _, slash, rest = target.partition("/")
    host = (
        (rest if slash else target).partition("/")[0].partition("@")[0].rpartition("\\")[2].removesuffix("$")
    )
    name, colon, port = host.rpartition(":")
    if colon and port.isdigit() and (":" not in name or name.endswith("]")):
        host = name
    return host.removeprefix("[").removesuffix("]")


def _check_strength(flags: Flags, level: AuthLevel) -> None:
    """Raise AuthError if the negotiated algorithms are too weak to protect messages at a level."""
    if level < AuthLevel.CALL:
        return
    needed = Flags.SEAL if level == AuthLevel.PRIVACY else Flags.SIGN | Flags.SEAL
    if (
        not flags & needed
        or Flags.EXTENDED_SESSIONSECURITY not in flags
        or not flags & (Flags.KEY_128 | Flags.KEY_56)
    ):
        raise AuthError(
            AuthFailure.WEAK,
            "NTLM: the algorithms that both sides support are too weak for the authentication level",
        )


@dataclass(frozen=True, slots=True)
class NtlmServer:
    """The state that all acceptors share. `now` returns seconds since 1970; `computer` and `host` are the
    names of this server.

    `is_own_name` and `logons` are those of `AcceptorPolicy`.
    """

    principals: Principals
    computer: str
    host: str
    anonymous: bool
    now: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    is_own_name: Callable[[str], bool] | None = None
    logons: LogonLimits | None = None

    def find(self, name: str) -> User | None:
        """Return the account that a client names, `user` or `user@anything`. None if there is no such
        account, or if it has no NT hash.
        """
        users = self.principals.users
        user = users.find(name) or users.find(name.partition("@")[0])
        return user if user is not None and user.nt_hash else None

    def target_info(self) -> bytes:
        """Return the AV pairs of a challenge. This server belongs to no domain, so the domain names are its
        own names (3.2.5.1.1).
        """
        computer, host = self.computer.encode("utf-16-le"), self.host.encode("utf-16-le")
        pairs: dict[int, bytes] = {
            AvId.NB_DOMAIN_NAME: computer,
            AvId.NB_COMPUTER_NAME: computer,
            AvId.DNS_DOMAIN_NAME: host,
            AvId.DNS_COMPUTER_NAME: host,
            AvId.TIMESTAMP: _filetime(self.now()).to_bytes(8, "little"),
        }
        return pack_av_pairs(pairs)


class _NtlmMechanism:
    """The base of acceptor and initiator: protects messages once the session key is known."""

    _session: NtlmSession | None = None
    blocking = False

    @property
    def complete(self) -> bool:
        """Whether all legs of the authentication are done."""
        return self._session is not None

    def signature_size(self, *, privacy: bool) -> int:
        """Return the size of a signature, which is always 16 bytes."""
        return SIGNATURE_SIZE

    @property
    def _keys(self) -> NtlmSession:
        if self._session is None:
            raise AuthError(AuthFailure.SIGNATURE, "NTLM: the security context is not complete")
        return self._session

    def make_mic(self, data: bytes) -> bytes:
        """See Mechanism."""
        return self._keys.make_mic(data)

    def check_mic(self, data: bytes, mic: bytes) -> None:
        """See Mechanism."""
        self._keys.check_mic(data, mic)

    # With extended session security a signature covers every part of a PDU, whether header signing was
    # agreed on or not (MS-NLMP 3.4.6.1).

    def protect(
        self, header: Buffer, stub: Buffer, trailer: Buffer, *, privacy: bool, sign_header: bool
    ) -> tuple[bytes, bytes]:
        """See Protection."""
        return self._keys.protect(header, stub, trailer, privacy=privacy)

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
        return self._keys.unprotect(header, stub, trailer, token, privacy=privacy)

    def protect_pdus(
        self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool, sign_header: bool
    ) -> None:
        """See Protection."""
        self._keys.protect_pdus(buffer, header_size, privacy=privacy)

    def unprotect_pdus(
        self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool, sign_header: bool
    ) -> None:
        """See Protection."""
        self._keys.unprotect_pdus(buffer, header_size, privacy=privacy)


class NtlmAcceptor(_NtlmMechanism):
    """The server's side of a log-on with NTLM. A rejected client does not learn the reason, not even from the
    duration of the log-on.
    """

    def __init__(self, server: NtlmServer, level: AuthLevel, address: str) -> None:
        self._server = server
        self._level = level
        self._address = address
        self._negotiate = self._challenge = b""
        self._server_challenge = b""
        self._flags = Flags(0)
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity:
        """See Mechanism."""
        if self._identity is None:
            raise RuntimeError("the log-on is not complete")
        return self._identity

    def step(self, token: bytes) -> bytes:
        """Process NEGOTIATE at the first leg, AUTHENTICATE at the second (3.2.5.1)."""
        if self._challenge:
            self._authenticate(token)
            return b""
        flags = parse_negotiate(token)
        if Flags.UNICODE not in flags:
            raise AuthError(AuthFailure.TOKEN, "NTLM: the client does not support Unicode")
        self._flags = (flags & _OFFERED) | Flags.NTLM | Flags.ALWAYS_SIGN
        _check_strength(self._flags, self._level)
        self._negotiate = token
        self._server_challenge = self._server.random_bytes(_CHALLENGE_SIZE)
        self._challenge = Challenge(
            self._flags | Flags.REQUEST_TARGET | Flags.TARGET_TYPE_SERVER | Flags.TARGET_INFO,
            self._server_challenge,
            self._server.computer,
            self._server.target_info(),
        ).pack()
        return self._challenge

    def _authenticate(self, token: bytes) -> None:
        message = Authenticate.parse(token)
        self._flags &= message.flags
        _check_strength(self._flags, self._level)
        if not message.user and not message.nt_response and message.lm_response in (b"", b"\0"):
            if not self._server.anonymous:
                raise AuthError(AuthFailure.LOGON, "NTLM: anonymous callers are not accepted")
            self._session = NtlmSession(self._flags, self._session_key(message, _NO_KEY), server=True)
            self._identity = Identity("", ANONYMOUS_TOKEN)
            return
        if len(message.nt_response) <= _V1_RESPONSE:
            raise AuthError(AuthFailure.LOGON, "NTLM: the client logs on with LM or NTLMv1")
        response = NtlmV2Response.parse(message.nt_response)
        user, base_key = self._log_on(message, response)
        session_key = self._session_key(message, base_key)
        if AvFlags.MIC in response.flags:
            mic, covered = Authenticate.split_mic(token)
            expected = hmac_md5(session_key, self._negotiate, self._challenge, covered)
            if not hmac.compare_digest(mic, expected):
                raise AuthError(AuthFailure.LOGON, "NTLM: wrong MIC: the messages were changed in transit")
        self._session = NtlmSession(self._flags, session_key, server=True)
        self._identity = Identity(user.name, self._server.principals.of_name(user.name))

    def _log_on(self, message: Authenticate, response: NtlmV2Response) -> tuple[User, bytes]:
        """Verify the response. Return (account, SessionBaseKey). Raises AuthError, whose text does not reveal
        the reason.
        """
        user = self._server.find(message.user)
        # An account that does not exist takes the same time, with a random hash.
        decoy = self._server.random_bytes(_KEY_SIZE)
        secret = decoy if user is None else user.nt_hash
        proven: bytes | None = None
        for domain in (message.domain, ""):  # some clients leave the domain out here (3.2.5.1.2)
            key = ntowf_v2(secret, message.user, domain)
            proof = hmac_md5(key, self._server_challenge, response.blob)
            if hmac.compare_digest(proof, response.proof):
                proven = hmac_md5(key, proof)
        apart = abs(response.timestamp - _filetime(self._server.now()))
        good = proven is not None and user is not None and apart <= _LIFETIME
        logons = self._server.logons
        if logons is not None:
            refused = logons.admit(
                "" if user is None else user.name, self._address, proven=good, method="NTLM"
            )
        else:
            refused = None if good else WRONG
        if refused is not None or proven is None or user is None:
            why = "" if refused == WRONG else f": {refused}"
            raise AuthError(AuthFailure.LOGON, f"NTLM: {message.user!r} cannot log on{why}")
        self._check_target(response)
        return user, proven

    def _check_target(self, response: NtlmV2Response) -> None:
        """Check that the client wanted to log on to this server: its proof covers the name of a server. If
        that is another name, another server is relaying the client's messages to this one (MS-NLMP
        3.2.5.1.2). Raises AuthError.
        """
        target = response.pairs.get(AvId.TARGET_NAME, b"").decode("utf-16-le", "replace")
        is_own_name = self._server.is_own_name
        if target and is_own_name is not None and not is_own_name(host_of(target)):
            raise AuthError(
                AuthFailure.LOGON,
                f"NTLM: the client asked for {target!r}, which is not a name of this server "
                "(server.aliases, rpc.target_names)",
            )

    def _session_key(self, message: Authenticate, base_key: bytes) -> bytes:
        """Return the ExportedSessionKey. With NTLMv2, the key exchange key is the SessionBaseKey
        (3.4.5.1).
        """
        protects = self._flags & (Flags.SIGN | Flags.SEAL)
        if Flags.KEY_EXCH not in self._flags or not (protects or message.session_key):
            return base_key
        if len(message.session_key) != _KEY_SIZE:
            raise AuthError(AuthFailure.TOKEN, "NTLM: the message has no session key")
        return rc4_key(base_key, message.session_key)


@dataclass(frozen=True, slots=True)
class NtlmUser:
    """The account that logs on, with a password or its NT hash. Without a name, the log-on is anonymous."""

    name: str = ""
    domain: str = ""
    password: str = field(default="", repr=False)
    hashed: bytes = field(default=b"", repr=False)

    @property
    def secret(self) -> bytes:
        """The NT hash."""
        return self.hashed or nt_hash(self.password)


class NtlmInitiator(_NtlmMechanism):
    """The client's side of a log-on with NTLM.

    `target` is the SPN of the server if the SPN is known; the client's proof covers `target`.
    """

    def __init__(
        self,
        user: NtlmUser,
        level: AuthLevel,
        target: str,
        now: Callable[[], float],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._user = user
        self._level = level
        self._target = target
        self._now = now
        self._random = random_bytes
        self._negotiate = b""

    @property
    def identity(self) -> Identity:
        """Raises RuntimeError: only acceptors know the identity of the caller."""
        raise RuntimeError("only an acceptor has a caller, not an initiator")

    def step(self, token: bytes) -> bytes:
        """Process an empty token at the first leg, CHALLENGE at the second (3.1.5.1)."""
        if self._negotiate:
            return self._answer(token)
        self._negotiate = pack_negotiate(_ASKED)
        return self._negotiate

    def _answer(self, token: bytes) -> bytes:
        challenge = Challenge.parse(token)
        flags = challenge.flags & _ASKED
        _check_strength(flags, self._level)
        if not self._user.name:
            return self._finish(token, flags | Flags.ANONYMOUS, b"\0", b"", _NO_KEY, mic=False)
        pairs = parse_av_pairs(challenge.target_info) if challenge.target_info else {}
        if self._level >= AuthLevel.CALL and not {AvId.NB_COMPUTER_NAME, AvId.NB_DOMAIN_NAME} <= pairs.keys():
            raise AuthError(AuthFailure.TOKEN, "NTLM: the server does not send its names")
        stamp = pairs.get(AvId.TIMESTAMP, b"")
        mic = len(stamp) == 8
        timestamp = int.from_bytes(stamp, "little") if mic else _filetime(self._now())
        if mic:
            known = int.from_bytes(pairs.get(AvId.FLAGS, b"")[:4], "little")
            pairs[AvId.FLAGS] = (known | AvFlags.MIC).to_bytes(4, "little")
            pairs[AvId.CHANNEL_BINDINGS] = bytes(16)
            pairs[AvId.TARGET_NAME] = self._target.encode("utf-16-le")
        client_challenge = self._random(_CHALLENGE_SIZE)
        blob = NtlmV2Response.make_blob(timestamp, client_challenge, pairs)
        key = ntowf_v2(self._user.secret, self._user.name, self._user.domain)
        proof = hmac_md5(key, challenge.server_challenge, blob)
        # Without a time stamp from the server, there is an LMv2 response, too (3.1.5.1.2).
        lm = hmac_md5(key, challenge.server_challenge, client_challenge) + client_challenge
        return self._finish(
            token, flags, bytes(24) if mic else lm, proof + blob, hmac_md5(key, proof), mic=mic
        )

    def _finish(
        self, challenge: bytes, flags: Flags, lm: bytes, nt: bytes, base_key: bytes, *, mic: bool
    ) -> bytes:
        session_key, sent = base_key, b""
        if Flags.KEY_EXCH in flags:
            session_key = self._random(_KEY_SIZE)
            sent = rc4_key(base_key, session_key)
        message = Authenticate(flags, lm, nt, self._user.domain, self._user.name, "", sent).pack()
        if mic:
            code = hmac_md5(session_key, self._negotiate, challenge, message)
            message = Authenticate.with_mic(message, code)
        self._session = NtlmSession(flags, session_key, server=False)
        return message
