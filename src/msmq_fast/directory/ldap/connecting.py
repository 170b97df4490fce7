"""Opens the connection to a domain controller and logs on, through libldap, so that a controller which hangs
stops neither the event loop nor this thread for ever.

1. A log-on by Kerberos keeps the GIL: with a controller or a KDC that hangs, the whole server would stand
   still. So the controller has to answer a question first, and the ticket is fetched by python-gssapi, which
   releases the GIL. The log-on itself then takes milliseconds.
2. libldap has no time-out for the TLS handshake of ldaps://. So each attempt has a thread, which is abandoned
   after a time; the same controller is not tried again until its thread has ended.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import ldap
import ldap.sasl

from msmq_fast.directory.ldap.interface import BASE

__all__ = ["LdapSettings", "connected"]

_log = logging.getLogger(__name__)

_LOGON_S: Final = 2.0
"""Seconds of a log-on by Kerberos, within which the whole server may stand still."""
_STEPS: Final = 3  # each of which may take as long as a connection: to connect, to begin TLS, to log on


@dataclass(frozen=True, slots=True)
class LdapSettings:
    """How to reach the domain. `urls` are tried in their order. Without `user`, the computer's Kerberos
    credentials are used (GSSAPI, with signing unless the connection has TLS). Of the times, in seconds,
    `connect_s` is that of a connection, and of the question by which an operation begins, and `search_s` that
    of the next entry of a search: of all queues, a domain controller collects the GUIDs before the first one.
    """

    urls: Sequence[str]
    user: str = ""
    password: str = ""
    ca_file: Path | None = None
    connect_s: float = 5.0
    operation_s: float = 10.0
    search_s: float = 60.0


class _Attempt:
    """One attempt to log on at `url`, in a thread of its own."""

    def __init__(self, url: str, settings: LdapSettings) -> None:
        self._url = url
        self._settings = settings
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._abandoned = False
        self._connection: Any = None
        self._error: Exception | None = None

    def run(self) -> None:
        connection: Any = None
        error: Exception | None = None
        try:
            connection = _log_on(self._url, self._settings)
        except Exception as problem:  # is raised where the result is waited for
            error = problem
        with self._lock:
            self._connection, self._error = connection, error
            abandoned = self._abandoned
        self._ended.set()
        if abandoned:
            with _hanging_lock:
                _hanging.discard(self._url)
            if connection is not None:
                with contextlib.suppress(ldap.LDAPError):
                    connection.unbind_s()

    def result(self) -> Any:
        """Return the connection. Raises LDAPError."""
        self._ended.wait(_STEPS * self._settings.connect_s)
        with self._lock:
            self._abandoned = self._connection is None and self._error is None
            if self._abandoned:
                with _hanging_lock:
                    _hanging.add(self._url)
        if self._abandoned:
            raise ldap.TIMEOUT({"desc": "the connection is not established in time"})
        if self._error is not None:
            raise self._error
        return self._connection


_hanging: set[str] = set()  # URLs to which an attempt hangs
_hanging_lock = threading.Lock()


def connected(url: str, settings: LdapSettings) -> Any:
    """Return a connection to a domain controller that has logged on. Raises LDAPError."""
    with _hanging_lock:
        if url in _hanging:
            raise ldap.TIMEOUT({"desc": "an earlier connection still hangs"})
    attempt = _Attempt(url, settings)
    threading.Thread(target=attempt.run, name="directory-connect", daemon=True).start()
    return attempt.result()


def _log_on(url: str, settings: LdapSettings) -> Any:
    secret = url.startswith("ldaps:")
    connection = ldap.initialize(url)
    connection.set_option(ldap.OPT_REFERRALS, 0)
    connection.set_option(ldap.OPT_NETWORK_TIMEOUT, settings.connect_s)
    connection.set_option(ldap.OPT_TIMEOUT, settings.connect_s)
    connection.set_option(ldap.OPT_X_SASL_NOCANON, 1)
    if settings.ca_file is not None:
        connection.set_option(ldap.OPT_X_TLS_CACERTFILE, str(settings.ca_file))
    connection.set_option(ldap.OPT_X_TLS_REQUIRE_CERT, ldap.OPT_X_TLS_DEMAND)
    connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)
    if settings.user:
        if not secret:  # a password never travels in clear
            connection.start_tls_s()
        connection.simple_bind_s(settings.user, settings.password)
    else:
        if secret:  # Active Directory refuses signing inside TLS
            connection.set_option(ldap.OPT_X_SASL_SSF_MAX, 0)
        else:
            connection.set_option(ldap.OPT_X_SASL_SSF_MIN, 1)
        connection.search_s("", BASE, "(objectClass=*)", ["supportedSASLMechanisms"])
        _fetch_ticket(urlsplit(url).hostname or "")
        connection.set_option(ldap.OPT_TIMEOUT, min(_LOGON_S, settings.connect_s))
        connection.sasl_interactive_bind_s("", ldap.sasl.gssapi())
    connection.set_option(ldap.OPT_TIMEOUT, settings.operation_s)
    return connection


@cache
def _complain() -> None:
    _log.warning(
        "a log-on by Kerberos stops all work of the server while the domain controller does not answer: "
        "install msmq-fast[ldap,kerberos]"
    )


def _fetch_ticket(host: str) -> None:
    """Put a ticket for the domain controller into the credentials cache, where the log-on finds it. Raises
    LDAPError if there is none. Without python-gssapi, the log-on fetches the ticket itself, and the server
    stands still meanwhile.
    """
    try:
        from gssapi import MechType, NameType
        from gssapi import raw as gss
    except ImportError:
        _complain()
        return
    try:
        target = gss.import_name(f"ldap@{host}".encode(), NameType.hostbased_service)
        credentials = gss.acquire_cred(None, mechs=[MechType.kerberos], usage="initiate").creds
        gss.init_sec_context(target, creds=credentials, mech=MechType.kerberos)
    except gss.GSSError as error:
        raise ldap.LOCAL_ERROR({"desc": "Kerberos", "info": " ".join(str(error).split())}) from None
