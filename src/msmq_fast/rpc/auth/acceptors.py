"""The supported authentication types, and the server's side of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType
from msmq_fast.rpc.auth.mechanism import AuthCounters, Context, Mechanism
from msmq_fast.rpc.auth.ntlm import NtlmAcceptor, NtlmServer
from msmq_fast.rpc.auth.spnego import SpnegoAcceptor
from msmq_fast.rpc.auth.spnegotokens import KERBEROS, NTLM
from msmq_fast.security.logons import LogonLimits
from msmq_fast.security.principals import Principals

if TYPE_CHECKING:
    from msmq_fast.rpc.auth.kerberos import KerberosServer

__all__ = ["AcceptorPolicy", "Acceptors"]

_NETBIOS_NAME: Final = 15


@dataclass(frozen=True, slots=True)
class AcceptorPolicy:
    """Which log-ons are accepted.

    `anonymous` is whether NTLM clients may omit the name. Kerberos needs a keytab. `is_own_name` returns
    whether a name that an NTLM client requests belongs to this server; None accepts any name. `logons` limits
    failed log-ons of callers that guess passwords; None means no limit.
    """

    ntlm: bool = True
    anonymous: bool = False
    keytab: Path | None = None
    is_own_name: Callable[[str], bool] | None = None
    logons: LogonLimits | None = None


class Acceptors:
    """Makes the server's side of security contexts (implements AcceptorFactory).

    `host` is the name of this computer, `now` returns seconds since 1970.
    """

    def __init__(
        self,
        policy: AcceptorPolicy,
        principals: Principals,
        host: str,
        now: Callable[[], float],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """Raises AuthError if the keytab cannot be used, and ImportError if python-gssapi is missing."""
        self.counters = AuthCounters()
        computer = host.partition(".")[0].upper()[:_NETBIOS_NAME]
        self._ntlm = NtlmServer(
            principals,
            computer,
            host,
            policy.anonymous,
            now,
            random_bytes,
            policy.is_own_name,
            policy.logons,
        )
        self._kerberos: KerberosServer | None = None
        if policy.keytab is not None:
            from msmq_fast.rpc.auth.kerberos import KerberosServer  # an extra

            self._kerberos = KerberosServer(policy.keytab, principals)
        self._policy = policy

    def accept(self, auth_type: int, level: int, address: str) -> Context:
        """See AcceptorFactory."""
        try:
            known_level = _level(level)
            known_type, mechanism = self._mechanism(auth_type, known_level, address)
        except AuthError as error:
            self.counters.failed[error.failure] += 1
            raise
        return Context(mechanism, known_type, known_level, self.counters, address)

    def _mechanism(self, auth_type: int, level: AuthLevel, address: str) -> tuple[AuthType, Mechanism]:
        mechanisms = self._mechanisms(level, address)
        if auth_type == AuthType.NTLM and NTLM in mechanisms:
            return AuthType.NTLM, mechanisms[NTLM]()
        if auth_type == AuthType.KERBEROS and KERBEROS in mechanisms:
            return AuthType.KERBEROS, mechanisms[KERBEROS]()
        if auth_type == AuthType.SPNEGO and mechanisms:
            if level == AuthLevel.CALL:  # the answer of Windows to this level
                raise AuthError(AuthFailure.TOKEN, "SPNEGO does not support level 3")
            return AuthType.SPNEGO, SpnegoAcceptor(mechanisms)
        raise AuthError(AuthFailure.TYPE, f"authentication type {auth_type} is not supported")

    def _mechanisms(self, level: AuthLevel, address: str) -> dict[bytes, Callable[[], Mechanism]]:
        found: dict[bytes, Callable[[], Mechanism]] = {}
        if self._policy.ntlm:
            found[NTLM] = lambda: NtlmAcceptor(self._ntlm, level, address)
        if self._kerberos is not None:
            from msmq_fast.rpc.auth.kerberos import KerberosAcceptor

            server = self._kerberos
            found[KERBEROS] = lambda: KerberosAcceptor(server, level)
        return found


def _level(level: int) -> AuthLevel:
    """Return the AuthLevel for the number in a sec_trailer. Raises AuthError for a level that uses no
    security context.
    """
    if not AuthLevel.CONNECT <= level <= AuthLevel.PRIVACY:
        raise AuthError(AuthFailure.LEVEL, f"unsupported authentication level {level}")
    return AuthLevel(level)
