"""Log-ons to the web console: passwords of the users file, tokens, and users of this machine."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Callable, Mapping
from typing import Final

from msmq_fast.app.auth import TokenTable
from msmq_fast.console.logons import Logon, LogonRefused
from msmq_fast.logfields import logged
from msmq_fast.security.callers import Caller, CallerRefused, Callers
from msmq_fast.security.logons import WRONG, LogonLimits
from msmq_fast.security.logons import Logon as Attempt
from msmq_fast.security.passwords import SALT_SIZE, hash_password, verify_password
from msmq_fast.security.principals import Principals
from msmq_fast.security.users import UsersFileError
from msmq_fast.security.webpages import Ends

__all__ = ["ConsoleLogons"]

_log = logging.getLogger("msmq_fast.audit")

_LONGEST_SECRET: Final = 1024  # characters
_AT_ONCE: Final = 2  # passwords that are verified at the same time; each takes 16 MiB and a thread
# How the audit names what an attempt to log on gives.
_PASSWORD: Final = "a password at the console"  # noqa: S105
_TOKEN: Final = "a token at the console"  # noqa: S105
_LOCAL: Final = "the account of this computer at the console"
_REFUSED: Final = "The name or the password is wrong, or there were too many attempts. Try again later."
_TOKEN_REFUSED: Final = "The token is wrong, or there were too many attempts. Try again later."  # noqa: S105


class ConsoleLogons:
    """Implements `console.logons.Logons` for one server.

    `local_callers` decides on users of this machine; `limits` slows down guessing; `random_bytes(n)` returns
    n unpredictable bytes.
    """

    def __init__(
        self,
        principals: Principals,
        tokens: TokenTable,
        limits: LogonLimits,
        local_callers: Callers,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._principals = principals
        self._tokens = tokens
        self._limits = limits
        self._local = local_callers
        self._turns = asyncio.Semaphore(_AT_ONCE)
        # An attempt with an unknown name takes as long as one with a known name.
        self._nobodys_password = hash_password("", random_bytes(SALT_SIZE))

    async def by_password(self, name: str, password: str, address: str) -> Logon:
        """Return the log-on of a user of the users file. Raises LogonRefused."""
        user = self._principals.users.find(name)
        line = user.password if user is not None and user.password else self._nobodys_password
        account = "" if user is None else user.name
        matches = False
        if not self._limits.bars(account, address):
            async with self._turns:
                matches = await asyncio.to_thread(verify_password, password[:_LONGEST_SECRET], line)
        proven = matches and user is not None and bool(user.password)
        reason = self._limits.admit(account, address, proven=proven, method=_PASSWORD)
        if reason is not None or user is None:
            _record(
                f"refused a log-on to the console as {name[:104]!r} from {address}: {reason or WRONG}",
                address,
            )
            raise LogonRefused(_REFUSED)
        return _accepted(self._of_name(user.name, (), _REFUSED), "password", _digest(line), address)

    async def by_token(self, token: str, address: str) -> Logon:
        """Return the log-on of the owner of a token. Raises LogonRefused."""
        identity = self._tokens.identify(token[:_LONGEST_SECRET], address, _TOKEN)
        if identity is None:
            _record(f"refused a log-on to the console with a token from {address}", address)
            raise LogonRefused(_TOKEN_REFUSED)
        caller = self._of_name(identity.name, identity.groups, _TOKEN_REFUSED)
        return _accepted(caller, "token", _digest(token), address)

    def local(self, headers: Mapping[str, str], ends: Ends | None) -> Logon:
        """Return the log-on of the Unix user at the other end of a loopback connection. Raises
        LogonRefused.
        """
        address = "" if ends is None else ends.client[0]
        try:
            caller = self._local.identify(
                {name: text for name, text in headers.items() if name.lower() != "authorization"},
                address,
                ends,
            )
        except CallerRefused as error:
            self._limits.attempted(Attempt("", address, _LOCAL, str(error)))
            raise LogonRefused(f"{error}.") from None
        self._limits.attempted(Attempt(caller.name, address, _LOCAL))
        return _accepted(caller, "local", b"", "this machine")

    def renewed(self, logon: Logon) -> Caller | None:
        """Return the caller with the rights of this moment; None if the proof is no longer valid."""
        caller = logon.caller
        try:
            if logon.how == "local" and caller.uid is not None:
                return Caller(caller.name, self._principals.of_unix(caller.uid, caller.name), caller.uid)
            if logon.how == "token":
                identity = self._tokens.owner_of(logon.proof)
                if identity is None or identity.name != caller.name:
                    return None
                return self._of_name(identity.name, identity.groups, "")
            user = self._principals.users.find(caller.name)
            if user is None or not hmac.compare_digest(_digest(user.password), logon.proof):
                return None
            return self._of_name(user.name, (), "")
        except LogonRefused:
            return None

    def _of_name(self, name: str, groups: tuple[str, ...], refusal: str) -> Caller:
        try:
            return Caller(name, self._principals.of_name(name, groups), None, groups)
        except UsersFileError:  # a group that is no longer in the users file
            raise LogonRefused(refusal) from None


def _accepted(caller: Caller, how: str, proof: bytes, address: str) -> Logon:
    _log.info("%s logged on to the console (%s) from %s", caller.name, how, address)
    return Logon(caller, how, proof)


def _record(text: str, address: str) -> None:
    _log.warning("%s", text, extra=logged(peer=address))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
