"""Tells when something has changed in the domain, by the notification control of Active Directory (MS-ADTS
3.1.1.3.4.1.9): a search that does not end, and returns each entry that changes.

What has changed is then read by the numbers of changes (uSNChanged), so that nothing is lost between two
connections. The watch is at the domain controller that the link uses, since changes come to another one
later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import ldap
from ldap.controls import RequestControl

from msmq_fast.directory.ldap.connecting import LdapSettings, connected
from msmq_fast.directory.ldap.controllers import Controllers
from msmq_fast.directory.ldap.interface import BASE, SUBTREE
from msmq_fast.directory.ldap.schema import CLASSES

__all__ = ["LdapWatch"]

_NOTIFICATION: Final = "1.2.840.113556.1.4.528"
_SHOW_DELETED: Final = "1.2.840.113556.1.4.417"
_LOOK: Final = 2.0  # seconds after which a silent watch looks whether the link has moved
_PAUSE: Final = 10.0  # seconds from a failure to the next attempt
_GATHER: Final = 0.2  # seconds between two notices, for which all changes between them are gathered
_CLASSES: Final = frozenset(
    name.lower().encode()
    for name in (*CLASSES.values(), "computer", "group", "msMQ-Group", "msMQ-Custom-Recipient")
)


class LdapWatch:
    """Watches a domain in a thread of its own. `changed` is called there for each batch of changes of objects
    that message queuing uses.
    """

    def __init__(self, settings: LdapSettings, controllers: Controllers) -> None:
        self._settings = settings
        self._controllers = controllers
        self._closed = threading.Event()
        self._watching = False

    @property
    def watching(self) -> bool:
        """Whether changes are noticed at once, as far as is known."""
        return self._watching

    def start(self, changed: Callable[[], None]) -> None:
        """Begin to watch."""
        threading.Thread(target=self._run, args=(changed,), name="directory-watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching, within seconds."""
        self._closed.set()

    def _run(self, changed: Callable[[], None]) -> None:
        while not self._closed.is_set():
            url = self._controllers.current
            if not url:
                self._closed.wait(_LOOK)
                continue
            try:
                self._watch(url, changed)
            except ldap.LDAPError:  # the link says in its own log what is wrong with the controller
                self._closed.wait(_PAUSE)
            finally:
                self._watching = False

    def _watch(self, url: str, changed: Callable[[], None]) -> None:
        connection = connected(url, self._settings)
        try:
            for base in _bases(connection):
                connection.search_ext(
                    base,
                    SUBTREE,
                    "(objectClass=*)",
                    ["objectClass"],
                    serverctrls=[
                        RequestControl(_NOTIFICATION, True, None),
                        RequestControl(_SHOW_DELETED, True, None),
                    ],
                )
            self._watching = True
            changed()  # what came before the watch
            while not self._closed.is_set() and self._controllers.current == url:
                if self._seen(connection, _LOOK):
                    self._closed.wait(_GATHER)
                    while self._seen(connection, 0):
                        continue
                    changed()
        finally:
            connection.unbind_ext()

    def _seen(self, connection: Any, seconds: float) -> bool:
        """Return whether an object of message queuing changes within the time."""
        try:
            kind, found, _number, _controls = connection.result3(ldap.RES_ANY, all=0, timeout=seconds)
        except ldap.TIMEOUT:
            return False
        if kind == ldap.RES_SEARCH_RESULT:  # the controller has ended the search
            raise ldap.UNAVAILABLE
        return any(
            value.lower() in _CLASSES
            for path, attributes in found or ()  # None: a poll that finds nothing
            if path is not None
            for value in attributes.get("objectClass", ())
        )


def _bases(connection: Any) -> Sequence[str]:
    (found,) = connection.search_s(
        "", BASE, "(objectClass=*)", ["defaultNamingContext", "configurationNamingContext"]
    )
    return [values[0].decode() for values in found[1].values()]
