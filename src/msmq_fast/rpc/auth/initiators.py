"""The client's side of authentication: a security context for a type, a level and an account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType
from msmq_fast.rpc.auth.mechanism import AuthCounters, Context, Mechanism
from msmq_fast.rpc.auth.ntlm import NtlmInitiator, NtlmUser
from msmq_fast.rpc.auth.spnego import SpnegoInitiator
from msmq_fast.rpc.auth.spnegotokens import KERBEROS, NTLM

__all__ = ["Credentials", "initiate"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """The account that logs on. Without a user, NTLM logs on anonymously, and Kerberos uses the account of
    the process.

    NTLM uses `nt_hash`, if it is set, in place of the password. Kerberos uses the first of these that is set:
    the password, the keytab, the credentials cache (as in KRB5CCNAME); `user` is then a principal, and
    `domain` its realm.
    """

    user: str = ""
    domain: str = ""
    password: str = field(default="", repr=False)
    nt_hash: bytes = field(default=b"", repr=False)
    keytab: Path | None = None
    ccache: str = ""
    kerberos: bool = False  # whether SPNEGO offers it

    @property
    def principal(self) -> str:
        """The Kerberos principal, `user@REALM`; empty for the default principal."""
        return f"{self.user}@{self.domain}" if self.user and self.domain else self.user


def initiate(
    auth_type: AuthType,
    level: AuthLevel,
    target: str,
    credentials: Credentials,
    counters: AuthCounters,
    now: Callable[[], float],
    random_bytes: Callable[[int], bytes],
) -> Context:
    """Return a security context, whose first step takes an empty token. `target` is the server's SPN,
    `service/host`.

    `now` returns seconds since 1970. Raises AuthError if the type is not supported, and ImportError if
    python-gssapi is missing.
    """

    def ntlm() -> Mechanism:
        user = NtlmUser(credentials.user, credentials.domain, credentials.password, credentials.nt_hash)
        return NtlmInitiator(user, level, target, now, random_bytes)

    def kerberos() -> Mechanism:
        from msmq_fast.rpc.auth.kerberos import KerberosInitiator, KerberosUser  # an extra

        user = KerberosUser(
            credentials.principal, credentials.password, credentials.keytab, credentials.ccache
        )
        return KerberosInitiator(user, level, target)

    mechanism: Mechanism
    if auth_type == AuthType.NTLM:
        mechanism = ntlm()
    elif auth_type == AuthType.KERBEROS:
        mechanism = kerberos()
    elif auth_type == AuthType.SPNEGO:
        offers = {KERBEROS: kerberos()} if credentials.kerberos else {}
        mechanism = SpnegoInitiator({**offers, NTLM: ntlm()})
    else:
        raise AuthError(AuthFailure.TYPE, f"authentication type {auth_type} is not supported")
    return Context(mechanism, auth_type, level, counters)
