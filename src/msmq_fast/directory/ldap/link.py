"""The connection to a domain controller, through libldap. Every call blocks: use a thread of its own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import ldap
from ldap.controls import RequestControl, SimplePagedResultsControl

from msmq_fast.directory.ldap.connecting import LdapSettings, connected
from msmq_fast.directory.ldap.controllers import Controllers
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.interface import BASE
from msmq_fast.directory.ldap.worker import REST_S
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from msmq_fast.protocol.errors import AccessDenied

__all__ = ["LdapLink", "catalog_url"]

T = TypeVar("T")

PAGE: Final = 500
"""Entries a page. Windows returns at most 1,000 to a search without pages."""

_AT_ONCE: Final = 4
"""Entries that are taken from libldap between two rests."""

LARGEST_PAGE: Final = 10_000
"""Entries and references that a domain controller may return in one page, whatever was asked for."""
PAGE_S: Final = 120.0
"""Seconds that one page may take, which is read as it arrives."""
MAX_PAGES: Final = 10_000
MAX_EMPTY_PAGES: Final = 1_000
"""Pages without entries in a row: a controller returns some while it looks for what meets the filter."""

_CATALOG_PORTS: Final = {"ldap": 3268, "ldaps": 3269}
_SECURITY_FLAGS: Final = "1.2.840.113556.1.4.801"
_TREE_DELETE: Final = "1.2.840.113556.1.4.805"
_SHOW_DELETED: Final = "1.2.840.113556.1.4.417"
_OWNER_GROUP_DACL: Final = 7
_DACL: Final = 4

_NOT_CONNECTED: Final = (
    ldap.SERVER_DOWN,
    ldap.TIMEOUT,
    ldap.TIMELIMIT_EXCEEDED,
    ldap.BUSY,
    ldap.UNAVAILABLE,
    ldap.CONNECT_ERROR,
    ldap.LOCAL_ERROR,
    ldap.INVALID_CREDENTIALS,
    ldap.STRONG_AUTH_REQUIRED,
)
_RESULTS: Final[Mapping[type[Exception], DirectoryOperationResult]] = {
    ldap.NO_SUCH_OBJECT: DirectoryOperationResult.OBJECT_NOT_FOUND,
    ldap.NO_SUCH_ATTRIBUTE: DirectoryOperationResult.ATTRIBUTE_NOT_FOUND,
    ldap.ALREADY_EXISTS: DirectoryOperationResult.OBJECT_ALREADY_EXISTS,
}


class LdapLink:
    """A connection by libldap, opened at the first operation and again after a failure.

    Every operation of the domain begins with `root`. That asks the next domain controller if one does not
    answer; other operations fail then, since they may have been performed.
    """

    def __init__(self, settings: LdapSettings, controllers: Controllers | None = None) -> None:
        self._settings = settings
        self._controllers = controllers or Controllers(settings.urls)
        self._connection: Any = None
        self._url = ""
        self._opened = 0  # connections so far
        self._catalog: LdapLink | None = None

    @property
    def settings(self) -> LdapSettings:
        """How the domain is reached."""
        return self._settings

    @property
    def controllers(self) -> Controllers:
        return self._controllers

    def root(self) -> Entry:
        opened = self._connection is not None
        try:
            return self._root()
        except DirectoryError as error:
            if not opened or error.result is not DirectoryOperationResult.NOT_CONNECTED:
                raise
        return self._root()

    def _root(self) -> Entry:
        with self._guarded() as connection:
            connection.set_option(ldap.OPT_TIMEOUT, self._settings.connect_s)
            try:
                found = connection.search_s("", BASE, "(objectClass=*)", ["*", "+"])
            finally:
                connection.set_option(ldap.OPT_TIMEOUT, self._settings.operation_s)
        if not found:
            self._lost("the domain controller shows no rootDSE")
            raise _not_connected("the domain controller shows no rootDSE")
        return _entry(*found[0])

    def catalog(self) -> LdapLink:
        url = catalog_url(self._url)
        if self._catalog is None or self._catalog.controllers.urls != (url,):
            self._close_catalog()
            self._catalog = LdapLink(self._settings, Controllers([url]))
        return self._catalog

    def _close_catalog(self) -> None:
        catalog, self._catalog = self._catalog, None
        if catalog is not None:
            catalog.close()

    def prefer(self) -> None:
        if self._controllers.better:
            self.close()

    def search(
        self, base: str, scope: int, condition: str, attributes: Sequence[str], *, deleted: bool = False
    ) -> Iterator[Entry]:
        of_root = not base and scope == BASE  # rootDSE, which has no descriptor
        controls = [] if of_root else [_security_flags(_OWNER_GROUP_DACL)]
        if deleted:
            controls.append(RequestControl(_SHOW_DELETED, True, None))
        wanted = list(attributes)
        if scope == BASE:
            number = self._ask(base, scope, condition, wanted, controls)
            yield from self._page(number, self._opened)[0]
            return
        paged = SimplePagedResultsControl(True, size=PAGE, cookie="")
        number = self._ask(base, scope, condition, wanted, [*controls, paged])
        opened = self._opened
        pages = empty = 0
        while True:
            entries, answers = self._page(number, opened)
            pages, empty = pages + 1, 0 if entries else empty + 1
            if pages >= MAX_PAGES or empty >= MAX_EMPTY_PAGES:
                raise self._endless("a search")
            cookies = [
                one.cookie for one in answers if one.controlType == SimplePagedResultsControl.controlType
            ]
            more = bool(cookies and cookies[0])
            if more:  # the domain controller collects the next page while this one is decoded
                paged.cookie = cookies[0]
                number = self._ask(base, scope, condition, wanted, [*controls, paged])
            try:
                yield from entries
            except GeneratorExit:
                if more and opened == self._opened:
                    self._abandon(number)
                raise
            if not more:
                return

    def _ask(
        self, base: str, scope: int, condition: str, attributes: list[str], controls: list[RequestControl]
    ) -> int:
        """Begin a search. Returns its number."""
        with self._guarded() as connection:
            return int(connection.search_ext(base, scope, condition, attributes, serverctrls=controls))

    def _page(self, number: int, opened: int) -> tuple[list[Entry], list[Any]]:
        """Return the entries of the search with a number, and the controls of its result. `opened` says which
        connection it belongs to: another operation may have lost that. Entries are taken from libldap one by
        one, since other threads have no turn while it makes objects of them.
        """
        if self._connection is None or opened != self._opened:
            raise _not_connected("the connection was lost while entries were read")
        entries: list[Entry] = []
        deadline, count = time.monotonic() + PAGE_S, 0
        while True:
            with self._guarded() as connection:
                kind, found, _number, answers = connection.result3(
                    number, all=0, timeout=self._settings.search_s
                )
            if kind == ldap.RES_SEARCH_RESULT:
                return entries, list(answers)
            count += len(found)
            if count % _AT_ONCE == 0:
                time.sleep(REST_S)
            if count > LARGEST_PAGE or time.monotonic() > deadline:
                raise self._endless("a page of a search")
            entries += [_entry(path, kept) for path, kept in found if path is not None]  # None: a reference

    def _abandon(self, number: int) -> None:
        """Tell the domain controller that nothing waits for a search."""
        if self._connection is not None:
            with contextlib.suppress(ldap.LDAPError):
                self._connection.abandon(number)

    def _endless(self, what: str) -> DirectoryError:
        """Leave the domain controller; returns the error to raise."""
        reason = f"the domain controller does not end {what}"
        self._lost(reason)
        return _not_connected(reason)

    def add(self, path: str, attributes: Mapping[str, list[bytes]]) -> None:
        self._run(
            lambda connection: connection.add_ext_s(
                path, list(attributes.items()), serverctrls=[_security_flags(_DACL)]
            )
        )

    def modify(self, path: str, changes: Mapping[str, list[bytes]]) -> None:
        replaced = [(ldap.MOD_REPLACE, name, values or None) for name, values in changes.items()]
        self._run(
            lambda connection: connection.modify_ext_s(path, replaced, serverctrls=[_security_flags(_DACL)])
        )

    def delete(self, path: str) -> None:
        tree = RequestControl(_TREE_DELETE, True, None)
        self._run(lambda connection: connection.delete_ext_s(path, serverctrls=[tree]))

    def close(self) -> None:
        self._close_catalog()
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.unbind_s()
            except ldap.LDAPError:
                return  # it was closed already

    def _run(self, operation: Callable[[Any], T]) -> T:
        with self._guarded() as connection:
            return operation(connection)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[Any]:
        """The connection, for one operation. Raises DirectoryError instead of LDAPError."""
        if self._connection is None:
            self._open()
        try:
            yield self._connection
        except ldap.LDAPError as error:
            found = _as_directory_error(error)
            if isinstance(error, _NOT_CONNECTED):
                self._lost(str(found))
            raise found from None

    def _lost(self, reason: str) -> None:
        self.close()
        self._controllers.failed(self._url, reason)

    def _open(self) -> None:
        for url in self._controllers.candidates():
            try:
                self._connection = connected(url, self._settings)
            except ldap.LDAPError as error:
                self._controllers.failed(url, str(_as_directory_error(error)))
            else:
                self._url = url
                self._opened += 1
                self._controllers.answered(url)
                return
        raise _not_connected(self._controllers.explain())


def catalog_url(url: str) -> str:
    """Return the URL of the global catalog of the controller with a URL."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{_CATALOG_PORTS[parts.scheme]}"


def _entry(path: str, attributes: Mapping[str, list[bytes]]) -> Entry:
    return Entry(path, {name.lower(): values for name, values in attributes.items()})


def _security_flags(flags: int) -> RequestControl:
    """The control that says which parts of nTSecurityDescriptor are meant (MS-ADTS 3.1.1.3.4.1.11)."""
    return RequestControl(_SECURITY_FLAGS, True, bytes((0x30, 3, 2, 1, flags)))


def _not_connected(detail: str) -> DirectoryError:
    return DirectoryError(DirectoryOperationResult.NOT_CONNECTED, detail)


def _as_directory_error(error: ldap.LDAPError) -> DirectoryError:
    """The DirectoryError of a result code (2.2.6)."""
    facts = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    detail = " ".join(f"{facts.get('desc', '')}: {facts.get('info', '')}".split()).strip(": ")
    detail = f"the domain controller answered: {detail or type(error).__name__}"
    if "Ticket expired" in detail:  # libkrb5 does not say why it has no newer one
        detail += "; there is no new ticket for the keytab: has the password of the account changed?"
    if isinstance(error, _NOT_CONNECTED):
        return _not_connected(detail)
    if isinstance(error, ldap.INSUFFICIENT_ACCESS):
        return DirectoryError(DirectoryOperationResult.GENERIC_ERROR, detail, refusal=AccessDenied(detail))
    return DirectoryError(_RESULTS.get(type(error), DirectoryOperationResult.GENERIC_ERROR), detail)
