"""The operations on a domain (MS-MQDSSM 3.1.6). Every call blocks, and all calls come from one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.controllers import Controllers
from msmq_fast.directory.ldap.descriptors import of_machine
from msmq_fast.directory.ldap.entries import Entry, PathIndex, decoded, encoded, encoded_computer
from msmq_fast.directory.ldap.forest import Catalog, Forest
from msmq_fast.directory.ldap.interface import BASE, SUBTREE, Link
from msmq_fast.directory.ldap.lists import Lists
from msmq_fast.directory.ldap.requests import Proceed
from msmq_fast.directory.ldap.schema import (
    CLASSES,
    COMPUTER_FIELDS,
    LABEL_LENGTH,
    SID,
    wanted_attributes,
)
from msmq_fast.directory.ldap.settings import SERVICE_TYPE, SETTLED, delete_settings, write_settings
from msmq_fast.directory.ldap.siting import Nearness, OwnSite, find_site
from msmq_fast.directory.objects import RULES, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic, not_found
from msmq_fast.security.sid import sid

__all__ = ["Changes", "Domain"]

_BATCH: Final = 5
"""Objects that are handed over at once."""
_COMPUTERS_AT_ONCE: Final = 100
_MAX_IN_DOUBT: Final = 1_000
_COMPUTER_ATTRIBUTES: Final = [
    "objectGUID",
    "servicePrincipalName",
    *(one.attribute for one in COMPUTER_FIELDS),
]
_IN_CONFIGURATION: Final = (ObjectType.SITE, ObjectType.ROUTING_LINK, ObjectType.ENTERPRISE)
_ORDER: Final = (  # objects that others refer to come first
    ObjectType.SITE,
    ObjectType.QUEUE_MANAGER,
    ObjectType.ROUTING_LINK,
    ObjectType.ENTERPRISE,
    ObjectType.QUEUE,
    ObjectType.USER,
)
_MADE: Final = (ObjectType.QUEUE_MANAGER, ObjectType.QUEUE, ObjectType.SITE, ObjectType.ROUTING_LINK)
"""The types of objects that are created and deleted (3.1.6.1, 3.1.6.2)."""


@dataclass(slots=True)
class Changes:
    """Objects of the domain, and how to go on from here.

    `complete` says that `objects` are all objects of the domain. `usn` is the position in the changes of the
    domain controller `controller`, for `Domain.changes`. `lists_changed` says that the members of lists may
    have changed, of which `lists` has none then. `problems` has a line for each malformed entry. `missing`
    says why other domains were not read, which should have been.
    """

    controller: str
    usn: int
    complete: bool
    objects: list[DirectoryObject] = field(default_factory=list)
    gone: list[UUID] = field(default_factory=list)
    lists: dict[UUID, tuple[str, ...]] = field(default_factory=dict)
    lists_changed: bool = False
    problems: list[str] = field(default_factory=list)
    missing: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """What the domain controller says about itself."""

    own: Entry  # rootDSE
    controller: str
    domain: str
    configuration: str
    root: str
    site: str
    usn: int


def _proceed() -> None:
    """Nothing withdraws an operation of a command."""


def _go_on() -> None:
    """Nothing else waits while a command reads."""


class Domain:
    """The domain behind a link. A failed operation raises DirectoryError. `nearness` helps to find the site
    of this computer, and `catalog` says whether other domains of the forest are read.
    """

    def __init__(self, link: Link, nearness: Nearness | None = None, catalog: Catalog = Catalog.AUTO) -> None:
        self._link = link
        self._forest = Forest(link, catalog)
        self._nearness = nearness
        self._known = PathIndex()
        self._computers: dict[str, Entry] = {}  # by distinguished name in lower case
        self._in_doubt: dict[str, None] = {}  # names of queues whose creators may not have heard of them

    @property
    def controllers(self) -> Controllers:
        """The domain controllers that may be asked."""
        return self._link.controllers

    @property
    def forest_state(self) -> str:
        """Whether objects of other domains are read, and why, for people."""
        return self._forest.state

    # ---- reading

    def load(
        self,
        each: Callable[[list[DirectoryObject]], None] | None = None,
        begin: Callable[[str], None] | None = None,
        turn: Callable[[], None] = _go_on,
    ) -> Changes:
        """Read all objects of the domain that message queuing uses. `each` is given them in batches; without
        it they are in the result. `begin` is told the domain controller before. `turn` is called after each
        object, 0.1 ms of work or so.
        """
        self._link.prefer()
        place = self._place()
        if begin is not None:
            begin(place.controller)
        self._forest.look(place.own, place.domain, place.configuration)
        found = Changes(place.controller, place.usn, complete=True, missing=self._forest.missing)
        self._known = PathIndex()
        self._computers.clear()
        grouped: set[str] = set()
        for kind in _ORDER:
            entries = self._entries(kind, place, 0)
            if kind in (ObjectType.SITE, ObjectType.QUEUE_MANAGER):
                entries = list(entries)
                for entry in entries:
                    self._known.note(entry)
            if kind is ObjectType.QUEUE_MANAGER:
                self._read_computers(entries, place)
            for entry in entries:
                self._decode(kind, entry, place, found)
                turn()
                grouped.update(path.decode() for path in entry.attributes.get("memberof", ()))
                if each is not None and len(found.objects) >= _BATCH:
                    each(found.objects)
                    found.objects = []
        found.lists = Lists(self._forest, place.domain).all(grouped, found.problems)
        return found

    def changes(
        self,
        controller: str,
        usn: int,
        each: Callable[[list[DirectoryObject]], None] | None = None,
        begin: Callable[[str], None] | None = None,
        turn: Callable[[], None] = _go_on,
    ) -> Changes:
        """Read what has changed since an earlier reading. If another domain controller answers now,
        everything is read again, as by `load`: each counts changes for itself. So it is if the controller was
        set back. A reading of changes gives no turns: it would undo what operations change meanwhile.
        """
        place = self._place()
        if place.controller != controller or place.usn < usn:
            return self.load(each, begin, turn)
        self._forest.check()
        found = Changes(place.controller, place.usn, complete=False, missing=self._forest.missing)
        if place.usn == usn:
            return found
        for kind in _ORDER:
            entries = list(self._entries(kind, place, usn + 1))
            if kind in (ObjectType.SITE, ObjectType.QUEUE_MANAGER):
                for entry in entries:
                    self._known.note(entry)
            if kind is ObjectType.QUEUE_MANAGER:
                self._read_computers(entries, place)
            for entry in entries:
                self._decode(kind, entry, place, found)
        self._follow_computers(place, usn + 1, found)
        found.lists_changed = Lists(self._forest, place.domain).changed(usn + 1)
        found.gone = list(self._deleted(place, usn + 1))
        return found

    def _follow_computers(self, place: _Place, usn: int, found: Changes) -> None:
        """Read the queue managers and queues of computers that have changed: their names and keys are
        attributes of the computer (3.1.6.11.1).
        """
        condition = f"(&(objectClass=computer)(uSNChanged>={usn}))"
        for computer in list(self._forest.search(place.domain, condition, _COMPUTER_ATTRIBUTES)):
            key = computer.path.casefold()
            known = self._computers.get(key)
            if known is None or known == computer:  # one without queue manager, or a log-on
                continue
            self._computers[key] = computer
            base = names.child("msmq", computer.path)
            for kind in (ObjectType.QUEUE_MANAGER, ObjectType.QUEUE):
                of_class = f"(objectClass={CLASSES[kind]})"
                wanted = wanted_attributes(kind)
                for entry in self._forest.below(base, place.domain, SUBTREE, of_class, wanted):
                    self._decode(kind, entry, place, found)

    def _place(self) -> _Place:
        root = self._link.root()

        def text(attribute: str) -> str:
            value = root.first(attribute)
            if value is None:
                raise generic(f"the domain controller does not say its {attribute}")
            return value.decode()

        try:
            controller = text("dsServiceName")
            return _Place(
                root,
                controller,
                text("defaultNamingContext"),
                text("configurationNamingContext"),
                text("rootDomainNamingContext"),
                names.parts(controller)[3],
                int(text("highestCommittedUSN")),
            )
        except (ValueError, IndexError) as error:
            reason = f"what the domain controller says about itself is malformed: {error}"
            raise generic(_one_line(reason)) from None

    def _entries(self, kind: ObjectType, place: _Place, usn: int) -> Iterable[Entry]:
        conditions = [f"(objectClass={CLASSES[kind]})"]
        if kind is ObjectType.USER:
            conditions += ["(objectCategory=person)", "(mSMQDigests=*)"]
        if usn:
            conditions.append(f"(uSNChanged>={usn})")
        condition = f"(&{''.join(conditions)})"
        if kind in _IN_CONFIGURATION:
            return self._link.search(place.configuration, SUBTREE, condition, wanted_attributes(kind))
        return self._forest.search(place.domain, condition, wanted_attributes(kind))

    def _deleted(self, place: _Place, usn: int) -> Iterator[UUID]:
        """Yield the GUIDs of deleted objects, as far as this account may see them."""
        classes = names.any_of([f"(objectClass={CLASSES[kind]})" for kind in _ORDER])
        condition = f"(&(isDeleted=TRUE)(uSNChanged>={usn}){classes})"
        for search in (
            self._forest.search(place.domain, condition, ["objectGUID"], deleted=True),
            self._link.search(place.configuration, SUBTREE, condition, ["objectGUID"], deleted=True),
        ):
            try:
                for entry in search:
                    self._known.forget(entry.identifier)
                    yield entry.identifier
            except DirectoryError as error:
                if error.result is DirectoryOperationResult.NOT_CONNECTED:
                    raise

    def _read_computers(self, machines: Iterable[Entry], place: _Place) -> None:
        paths = [names.parent(entry.path) for entry in machines]
        for begin in range(0, len(paths), _COMPUTERS_AT_ONCE):
            named = [
                names.is_equal("distinguishedName", path)
                for path in paths[begin : begin + _COMPUTERS_AT_ONCE]
            ]
            condition = f"(&(objectClass=computer){names.any_of(named)})"
            for entry in self._forest.search(place.domain, condition, _COMPUTER_ATTRIBUTES):
                self._computers[entry.path.casefold()] = entry

    def _computer_of(self, kind: ObjectType, entry: Entry) -> Entry | None:
        levels = {ObjectType.QUEUE: 2, ObjectType.QUEUE_MANAGER: 1}.get(kind, 0)
        path = entry.path
        for _ in range(levels):
            path = names.parent(path)
        return self._computers.get(path.casefold()) if levels else None

    def _decode(self, kind: ObjectType, entry: Entry, place: _Place, found: Changes) -> None:
        try:
            found.objects.append(self._decoded(kind, entry, place))
        except ValueError as error:
            found.problems.append(_one_line(f"{entry.path}: {error}"))

    def _decoded(self, kind: ObjectType, entry: Entry, place: _Place) -> DirectoryObject:
        return decoded(kind, entry, self._known, self._computer_of(kind, entry), place.root)

    def members(self, identifier: UUID) -> tuple[str, ...]:
        """Return the format names of a distribution list, with those of the lists in it (3.1.6.9)."""
        lists = Lists(self._forest, self._place().domain)
        return lists.members(lists.find(identifier))

    # ---- changing

    def create(self, item: DirectoryObject, proceed: Proceed = _proceed) -> DirectoryObject:
        """Create an object (3.1.6.1). Returns it as the domain has it now: the domain chooses its GUID.
        `proceed` is called before the domain is changed. A queue that an earlier call created, but did not
        tell its caller, is taken over.
        """
        place = self._place()
        kind = item.kind
        values = dict(item.values)
        _check(kind, values)
        if kind is ObjectType.USER:
            return self._enter_user(values, place, proceed)
        if kind not in _MADE:
            raise generic(f"a {kind.title} is not created in a domain by message queuing", kind)
        if kind is ObjectType.QUEUE_MANAGER and not values.get("SiteIdentifierList"):
            site = self._own_site(place).entry
            self._known.note(site)
            values["SiteIdentifierList"] = (site.identifier,)
        path, more = self._new_path(kind, values, place)
        attributes = {"objectClass": [CLASSES[kind].encode()]} | more
        attributes |= self._encoded(kind, values, creating=True)
        account: dict[str, list[bytes]] = {}
        if kind is ObjectType.QUEUE_MANAGER:
            account = encoded_computer(values)
            attributes["nTSecurityDescriptor"] = self._with_computer(
                path, attributes.get("nTSecurityDescriptor")
            )
        proceed()
        if kind is ObjectType.QUEUE:
            return self._create_queue(path, attributes, values, place, proceed)
        try:
            self._link.add(path, attributes)
        except DirectoryError as error:
            present = error.result is DirectoryOperationResult.OBJECT_ALREADY_EXISTS
            if not (present and kind is ObjectType.QUEUE_MANAGER):
                raise  # a queue manager that is there already is the same one (3.1.6.1.1.2)
        made = self._entry(path, kind)
        if kind in (ObjectType.SITE, ObjectType.QUEUE_MANAGER):
            self._known.note(made)
        if kind is ObjectType.SITE:
            self._link.add(
                names.child("Servers", path), {"objectClass": [b"serversContainer"]}
            )  # for the queue managers of the site
        if kind is ObjectType.QUEUE_MANAGER:
            if account:
                self._link.modify(names.parent(made.path), account)
            self._read_computers([made], place)
            write_settings(self._link, made, values, self._known, place.configuration)
        return self._decoded(kind, made, place)

    def _create_queue(
        self,
        path: str,
        attributes: Mapping[str, list[bytes]],
        values: Mapping[str, Any],
        place: _Place,
        proceed: Proceed,
    ) -> DirectoryObject:
        """Create a queue. Its name is in doubt until its creator has an answer. A queue that the domain has
        already is taken over if its name is in doubt.
        """
        doubtful = path in self._in_doubt
        if len(self._in_doubt) >= _MAX_IN_DOUBT:
            del self._in_doubt[next(iter(self._in_doubt))]
        self._in_doubt[path] = None
        present: DirectoryError | None = None
        try:
            self._link.add(path, attributes)
        except DirectoryError as error:
            if not doubtful and error.result is not DirectoryOperationResult.NOT_CONNECTED:
                del self._in_doubt[path]
            if not doubtful or error.result is not DirectoryOperationResult.OBJECT_ALREADY_EXISTS:
                raise
            present = error
        made = self._decoded(ObjectType.QUEUE, self._entry(path, ObjectType.QUEUE), place)
        if present is not None:
            if made["Transactional"] != values.get("Transactional", False):  # which cannot be changed
                raise present
            made = self.write(made, values, proceed)
        proceed()
        del self._in_doubt[path]
        return made

    def _with_computer(self, machine: str, security: list[bytes] | None) -> list[bytes]:
        """Return nTSecurityDescriptor of the queue manager `machine`, with the rights of its computer."""
        computer = names.parent(machine)
        for entry in self._link.search(computer, BASE, "(objectClass=computer)", ["objectSid"]):
            try:
                own = sid(SID.decode(entry.attributes.get("objectsid", ())))
                return [of_machine(own, security[0] if security else None)]
            except (ValueError, IndexError) as error:
                raise generic(f"{computer}: {error}", ObjectType.QUEUE_MANAGER) from None
        raise not_found(ObjectType.QUEUE_MANAGER, f"there is no computer {computer}")

    def _encoded(
        self, kind: ObjectType, values: Mapping[str, Any], *, creating: bool
    ) -> dict[str, list[bytes]]:
        try:
            return encoded(kind, values, self._known, creating=creating)
        except ValueError as error:
            raise generic(str(error), kind) from None

    def write(
        self, item: DirectoryObject, values: Mapping[str, Any], proceed: Proceed = _proceed
    ) -> DirectoryObject:
        """Change the attributes `values` of the object that `item` identifies (3.1.6.7). Returns it as the
        domain has it now. `proceed` is called before the domain is changed.
        """
        place = self._place()
        kind = item.kind
        _check(kind, values)
        entry = self._find(item, place)
        old = self._decoded(kind, entry, place).values
        merged = dict(values)
        if SERVICE_TYPE & set(values):
            merged = {name: old[name] for name in SERVICE_TYPE if name in old} | merged
        changes = self._encoded(kind, merged, creating=False)
        account = encoded_computer(values) if kind is ObjectType.QUEUE_MANAGER else {}
        security = changes.pop("nTSecurityDescriptor", None)
        proceed()
        if changes:
            self._link.modify(entry.path, changes)
        if security and kind is ObjectType.QUEUE_MANAGER:
            security = self._with_computer(entry.path, security)
        if security:
            self._link.modify(entry.path, {"nTSecurityDescriptor": security})
        if kind is ObjectType.QUEUE_MANAGER:
            if account:
                self._link.modify(names.parent(entry.path), account)
            if SETTLED & set(values):
                settled = dict(old) | dict(values)
                write_settings(self._link, entry, settled, self._known, place.configuration)
            self._read_computers([entry], place)
        return self._decoded(kind, self._entry(entry.path, kind), place)

    def delete(self, item: DirectoryObject, proceed: Proceed = _proceed) -> UUID:
        """Delete an object with what is below it (3.1.6.2). Returns its GUID. A user loses its certificates
        only. `proceed` is called before the domain is changed.
        """
        place = self._place()
        if item.kind not in (*_MADE, ObjectType.USER):
            raise generic(f"a {item.kind.title} of a domain is not deleted by message queuing", item.kind)
        entry = self._find(item, place)
        proceed()
        if item.kind is ObjectType.USER:
            self._link.modify(entry.path, {"mSMQDigests": [], "mSMQSignCertificates": []})
            return entry.identifier
        if item.kind is ObjectType.QUEUE_MANAGER:
            delete_settings(self._link, entry.identifier, place.configuration)
        self._link.delete(entry.path)
        self._known.forget(entry.identifier)
        return entry.identifier

    def own_site(self, configured: UUID | None = None) -> OwnSite:
        """Return the site of this computer; see `siting`. `configured` is that of the configuration."""
        return self._own_site(self._place(), configured)

    def _own_site(self, place: _Place, configured: UUID | None = None) -> OwnSite:
        return find_site(
            self._link, place.configuration, place.site, nearness=self._nearness, configured=configured
        )

    def computer_sid(self, computer: str) -> str:
        """Return the SID of a computer account."""
        place = self._place()
        entry = self._computer(computer, place)
        found = entry.attributes.get("objectsid")
        if not found:
            raise generic(f"the computer {computer} has no SID")
        return str(SID.decode(found))

    def _new_path(
        self, kind: ObjectType, values: Mapping[str, Any], place: _Place
    ) -> tuple[str, dict[str, list[bytes]]]:
        """Return the name of a new object, and the attributes that belong to its name."""
        match kind:
            case ObjectType.QUEUE:
                computer, _, name = str(values["Pathname"]).partition("\\")
                parent = names.child("msmq", self._computer(computer, place).path)
                short, rest = names.short_name(name)
                return names.child(short, parent), {"mSMQQueueNameExt": [rest.encode()]} if rest else {}
            case ObjectType.QUEUE_MANAGER:
                return names.child("msmq", self._computer(values["ComputerName"], place).path), {}
            case ObjectType.SITE:
                return names.child(values["Name"], f"CN=Sites,{place.configuration}"), {}
            case ObjectType.ROUTING_LINK:
                name = f"{values['Site1Identifier'].hex}{values['Site2Identifier'].hex}"
                return names.child(name, _services(place)), {}
            case ObjectType.ENTERPRISE:
                return _services(place), {}
            case _:
                raise generic(f"a {kind.title} of a domain has no name that message queuing gives", kind)

    def _computer(self, name: str, place: _Place) -> Entry:
        named = names.any_of(
            [
                names.is_equal("sAMAccountName", f"{name}$"),
                names.is_equal("cn", name),
                names.is_equal("dNSHostName", name),
            ]
        )
        condition = f"(&(objectClass=computer){named})"
        for entry in self._link.search(place.domain, SUBTREE, condition, _COMPUTER_ATTRIBUTES):
            return entry
        raise not_found(ObjectType.QUEUE_MANAGER, f"the domain has no computer {name}")

    def _find(self, item: DirectoryObject, place: _Place) -> Entry:
        """Return the entry of the object with the identifier, path or unique key of `item`."""
        kind = item.kind
        path = item.get("FullPath") or str(item.get("DirectoryPath") or "").removeprefix("LDAP://")
        if item.identifier is not None:
            path = names.by_guid(item.identifier)
        elif not path and kind is ObjectType.USER and item.get("SecurityIdentifier"):
            return self._user(item["SecurityIdentifier"], place)
        elif not path:
            missing = [name for name in RULES[kind].required if item.get(name) is None]
            if missing:
                raise generic(f"the {kind.title} is not identified: {missing[0]} is missing", kind)
            path = self._new_path(kind, item.values, place)[0]
        return self._entry(path, kind)

    def _entry(self, path: str, kind: ObjectType) -> Entry:
        condition = f"(objectClass={CLASSES[kind]})"
        try:
            for entry in self._link.search(path, BASE, condition, wanted_attributes(kind)):
                return entry
        except DirectoryError as error:
            if error.result is not DirectoryOperationResult.OBJECT_NOT_FOUND:
                raise
        raise not_found(kind, f"there is no {kind.title} {path}")

    # ---- users

    def _user(self, identifier: str, place: _Place) -> Entry:
        condition = f"(&(objectClass=user){names.is_equal('objectSid', identifier)})"
        for entry in self._link.search(place.domain, SUBTREE, condition, wanted_attributes(ObjectType.USER)):
            return entry
        raise not_found(ObjectType.USER, f"the domain has no account {identifier}")

    def _enter_user(self, values: Mapping[str, Any], place: _Place, proceed: Proceed) -> DirectoryObject:
        """Enter the certificates of an account that the domain has already."""
        entry = self._user(values["SecurityIdentifier"], place)
        if entry.first("mSMQDigests") is not None:
            raise DirectoryError(
                DirectoryOperationResult.OBJECT_ALREADY_EXISTS,
                f"the account {values['SecurityIdentifier']} has certificates already",
                kind=ObjectType.USER,
            )
        proceed()
        self._link.modify(entry.path, encoded(ObjectType.USER, values, self._known, creating=False))
        return self._decoded(ObjectType.USER, self._entry(entry.path, ObjectType.USER), place)


def _services(place: _Place) -> str:
    return f"CN=MsmqServices,CN=Services,{place.configuration}"


def _one_line(text: str) -> str:
    """Return a text for the log. Names and values come from the domain, where others choose them."""
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text[:500])


def _check(kind: ObjectType, values: Mapping[str, Any]) -> None:
    """Check what Active Directory would refuse without saying which attribute is wrong."""
    if kind is ObjectType.CONNECTED_NETWORK:
        raise generic("a domain has no connected networks", kind)
    label = values.get("Label") or ""
    if kind is ObjectType.QUEUE and len(label) > LABEL_LENGTH:
        raise generic(f"the label has {len(label)} characters; a domain keeps at most {LABEL_LENGTH}", kind)
