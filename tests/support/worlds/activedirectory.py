"""A domain of Active Directory in memory, at the place of a connection by LDAP.

It does what the provider can see of a domain controller (MS-ADTS 3.1.1.3, 3.1.1.5), and refuses what one
refuses: values that do not have the syntax of their attribute, several values where one is allowed, unknown
attributes and classes, entries in the wrong place, names of entries that are not there. The contract of the
provider runs on it and on Samba.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from uuid import UUID

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.controllers import Controllers
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.interface import BASE, SUBTREE
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from msmq_fast.security.acl import Ace, AceType, Acl
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import AUTHENTICATED_USERS, Sid, sid

__all__ = ["CONFIGURATION", "DOMAIN", "SCHEMA", "SITE", "ActiveDirectory"]

DOMAIN = "DC=corp,DC=example"
CONFIGURATION = f"CN=Configuration,{DOMAIN}"
SITE = f"CN=Default-First-Site-Name,CN=Sites,{CONFIGURATION}"
_SERVICES = f"CN=MsmqServices,CN=Services,{CONFIGURATION}"
_DOMAIN_SID = "S-1-5-21-7-8-9"

# Attribute → (syntax, several values, greatest length of a text or octets; 0: any). From MS-ADA1 to MS-ADA3.
SCHEMA: dict[str, tuple[str, bool, int]] = {
    "mSMQLabelEx": ("text", False, 124),
    "mSMQQueueType": ("octets", False, 16),
    "mSMQJournal": ("boolean", False, 0),
    "mSMQQueueQuota": ("integer", False, 0),
    "mSMQQueueJournalQuota": ("integer", False, 0),
    "mSMQAuthenticate": ("boolean", False, 0),
    "mSMQPrivacyLevel": ("integer", False, 0),
    "mSMQTransactional": ("boolean", False, 0),
    "MSMQ-MulticastAddress": ("text", False, 9_999),
    "mSMQBasePriority": ("integer", False, 0),
    "mSMQQueueNameExt": ("text", False, 92),
    "mSMQComputerTypeEx": ("text", False, 0),
    "mSMQOSType": ("integer", False, 0),
    "mSMQServiceType": ("integer", False, 0),
    "mSMQQuota": ("integer", False, 0),
    "mSMQJournalQuota": ("integer", False, 0),
    "mSMQForeign": ("boolean", False, 0),
    "mSMQSites": ("octets", True, 16),
    "mSMQOutRoutingServers": ("name", True, 0),
    "mSMQInRoutingServers": ("name", True, 0),
    "mSMQRoutingServices": ("boolean", False, 0),
    "mSMQDsServices": ("boolean", False, 0),
    "mSMQDependentClientServices": ("boolean", False, 0),
    "mSMQEncryptKey": ("octets", False, 0),
    "mSMQSignCertificates": ("octets", False, 1 << 20),
    "mSMQDigests": ("octets", True, 16),
    "mSMQInterval1": ("integer", False, 0),
    "mSMQInterval2": ("integer", False, 0),
    "mSMQSiteForeign": ("boolean", True, 0),
    "mSMQNt4Stub": ("integer", True, 0),
    "mSMQCost": ("integer", False, 0),
    "mSMQSite1": ("name", False, 0),
    "mSMQSite2": ("name", False, 0),
    "mSMQSiteGates": ("name", True, 0),
    "mSMQNameStyle": ("boolean", False, 0),
    "mSMQCSPName": ("text", False, 0),
    "mSMQLongLived": ("integer", False, 0),
    "mSMQVersion": ("integer", False, 0),
    "mSMQQMID": ("octets", False, 16),
    "mSMQServices": ("integer", False, 0),
    "mSMQRoutingService": ("boolean", False, 0),
    "mSMQDsService": ("boolean", False, 0),
    "mSMQDependentClientService": ("boolean", False, 0),
    "msMQ-Recipient-FormatName": ("text", False, 255),
    "description": ("text", True, 1024),
    "member": ("name", True, 0),
    "sAMAccountName": ("text", False, 256),
    "dNSHostName": ("text", False, 2048),
    "operatingSystemVersion": ("text", False, 0),
    "servicePrincipalName": ("text", True, 0),
    "nTSecurityDescriptor": ("descriptor", False, 0),
    "siteObject": ("name", False, 0),
    "nCName": ("name", False, 0),
    "systemFlags": ("integer", False, 0),
}
_KNOWN = {name.lower(): rule for name, rule in SCHEMA.items()}
_SYNTAX = _KNOWN | {
    "objectclass": ("text", True, 0),
    "objectguid": ("octets", False, 16),
    "objectsid": ("sid", False, 0),
    "cn": ("text", False, 64),
    "distinguishedname": ("name", False, 0),
    "memberof": ("name", True, 0),
    "usnchanged": ("number", False, 0),
    "whencreated": ("text", False, 0),
    "whenchanged": ("text", False, 0),
    "isdeleted": ("boolean", False, 0),
    "objectcategory": ("text", False, 0),
}

# Class → (its superclasses, the classes that an entry of it may lie below).
_CLASSES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "container": (("top",), ("container", "domainDNS")),
    "domainDNS": (("top",), ()),
    "sitesContainer": (("top",), ("container",)),
    "site": (("top",), ("sitesContainer",)),
    "crossRefContainer": (("top",), ("container",)),
    "crossRef": (("top",), ("crossRefContainer",)),
    "subnetContainer": (("top",), ("sitesContainer",)),
    "subnet": (("top",), ("subnetContainer",)),
    "serversContainer": (("top",), ("site",)),
    "server": (("top",), ("serversContainer",)),
    "mSMQSettings": (("top",), ("server",)),
    "mSMQEnterpriseSettings": (("top",), ("container",)),
    "mSMQSiteLink": (("top",), ("mSMQEnterpriseSettings",)),
    "user": (("top", "person", "organizationalPerson"), ("container", "domainDNS")),
    "computer": (("top", "person", "organizationalPerson", "user"), ("container", "domainDNS")),
    "group": (("top",), ("container", "domainDNS")),
    "msMQ-Custom-Recipient": (("top",), ("container", "domainDNS")),
    "mSMQConfiguration": (("top",), ("computer",)),
    "mSMQQueue": (("top",), ("mSMQConfiguration",)),
}
_MANDATORY = {"mSMQSiteLink": ("msmqcost", "msmqsite1", "msmqsite2")}
_PRINCIPALS = ("user", "computer", "group")
_NOT_IN_CATALOG = frozenset(  # of what is read: isMemberOfPartialAttributeSet is FALSE
    (
        "msmqquota",
        "msmqjournalquota",
        "msmqcomputertypeex",
        "operatingsystemversion",
        "msmq-recipient-formatname",
    )
)
_DEFAULT = SecurityDescriptor.build(  # the schema's for mSMQQueue: administrators everything, users RPLCLORC
    sid(f"{_DOMAIN_SID}-512"),
    sid(f"{_DOMAIN_SID}-512"),
    Acl(
        (
            Ace.build(AceType.ACCESS_ALLOWED, 0x000F_01FF, sid(f"{_DOMAIN_SID}-512")),
            Ace.build(AceType.ACCESS_ALLOWED, 0x0002_0094, AUTHENTICATED_USERS),
        )
    ),
)


@dataclass(slots=True)
class _Node:
    path: str
    attributes: dict[str, list[bytes]] = field(default_factory=dict)  # by name in lower case


Test = Callable[[_Node], bool]


class ActiveDirectory:
    """Implements `Link`. `searches` lists what was searched: (base, scope, filter). Domains that
    `other_domain` adds are in the global catalog only, as on a controller of CORP.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._nodes: dict[tuple[str, ...], _Node] = {}
        self._deleted: list[_Node] = []
        self._number = 1_000
        self.searches: list[tuple[str, int, str]] = []
        self.closed = 0  # times
        self._controllers = Controllers(["ldap://dc1.corp.example"])
        self._controllers.answered("ldap://dc1.corp.example")
        for path, kind in (
            (DOMAIN, "domainDNS"),
            (f"CN=Computers,{DOMAIN}", "container"),
            (f"CN=Users,{DOMAIN}", "container"),
            (CONFIGURATION, "container"),
            (f"CN=Partitions,{CONFIGURATION}", "crossRefContainer"),
            (f"CN=Services,{CONFIGURATION}", "container"),
            (f"CN=Sites,{CONFIGURATION}", "sitesContainer"),
            (SITE, "site"),
            (f"CN=Subnets,CN=Sites,{CONFIGURATION}", "subnetContainer"),
            (f"CN=Servers,{SITE}", "serversContainer"),
            (_SERVICES, "mSMQEnterpriseSettings"),
        ):
            self.add(path, {"objectClass": [kind.encode()]})
        self._partition("CORP", DOMAIN, 3)
        self._partition("Configuration", CONFIGURATION, 1)
        self.catalog_ready = True

    # ---- what others do in the domain

    def other_domain(self, path: str) -> None:
        """Make another domain of the forest."""
        self.add(path, {"objectClass": [b"domainDNS"]})
        self.add(f"CN=Computers,{path}", {"objectClass": [b"container"]})
        self._partition(path.partition("=")[2].partition(",")[0], path, 3)

    def _partition(self, name: str, path: str, flags: int) -> None:
        kept = {"nCName": [path.encode()], "systemFlags": [b"%d" % flags]}
        self.add(f"CN={name},CN=Partitions,{CONFIGURATION}", {"objectClass": [b"crossRef"], **kept})

    def computer(self, name: str, domain: str = DOMAIN) -> str:
        """Make a computer account; returns its distinguished name."""
        path = f"CN={name},CN=Computers,{domain}"
        host = f"{name.lower()}.corp.example".encode()
        account = {"sAMAccountName": [f"{name}$".encode()], "dNSHostName": [host]}
        self.add(path, {"objectClass": [b"computer"], **account})
        return path

    def user(self, name: str) -> tuple[str, str]:
        """Make a user account; returns its distinguished name and its SID."""
        path = f"CN={name},CN=Users,{DOMAIN}"
        self.add(path, {"objectClass": [b"user"], "sAMAccountName": [name.encode()]})
        return path, str(Sid.from_bytes(self._at(path).attributes["objectsid"][0]))

    def shown(self, path: str) -> dict[str, list[bytes]]:
        """All attributes of an entry, by name in lower case."""
        return dict(self._at(path).attributes)

    def damage(self, path: str, attribute: str, value: bytes) -> None:
        """Give an attribute a value that the domain would refuse."""
        self._at(path).attributes[attribute.lower()] = [value]

    # ---- Link

    def root(self) -> Entry:
        controller = f"CN=NTDS Settings,CN=DC1,CN=Servers,{SITE}"
        shown = {
            "dsservicename": controller,
            "defaultnamingcontext": DOMAIN,
            "rootdomainnamingcontext": DOMAIN,
            "configurationnamingcontext": CONFIGURATION,
            "highestcommittedusn": str(self._number),
            "isglobalcatalogready": str(self.catalog_ready).upper(),
        }
        return Entry("", {name: [value.encode()] for name, value in shown.items()})

    def search(
        self, base: str, scope: int, condition: str, attributes: Sequence[str], *, deleted: bool = False
    ) -> Iterator[Entry]:
        self.searches.append((base, scope, condition))
        place = self._at(base)
        if scope == BASE:
            found = [place]
        else:
            assert scope == SUBTREE
            key = _key(place.path)
            domain = _domain(place.path)
            found = [
                node
                for own, node in self._nodes.items()
                if own[-len(key) :] == key and _domain(node.path) == domain
            ]
            if deleted:
                found += [node for node in self._deleted if _domain(node.path) == domain]
        yield from self._shown(found, condition, attributes)

    def _shown(self, found: Sequence[_Node], condition: str, attributes: Sequence[str]) -> Iterator[Entry]:
        test = _Filter(condition).test
        wanted = {name.lower() for name in attributes}
        for node in found:
            self._complete(node)
            if test(node):
                kept = {name: list(values) for name, values in node.attributes.items() if name in wanted}
                yield Entry(node.path, kept)

    def add(self, path: str, attributes: Mapping[str, list[bytes]]) -> None:
        given = {name.lower(): values for name, values in attributes.items()}
        kind = given.pop("objectclass")[-1].decode()
        if kind not in _CLASSES:
            raise _refused(f"noSuchAttribute: the class {kind}")
        above, parents = _CLASSES[kind]
        if kind != "domainDNS":
            parent = self._at(names.parent(path))
            if parent.attributes["objectclass"][-1].decode() not in parents:
                raise _refused(f"namingViolation: a {kind} below {parent.path}")
        key = _key(path)
        if key in self._nodes:
            raise DirectoryError(
                DirectoryOperationResult.OBJECT_ALREADY_EXISTS, f"entryAlreadyExists: {path}"
            )
        if len(names.parts(path)[0]) > 64:
            raise _refused("constraintViolation: cn")
        self._check(given)
        missing = [name for name in _MANDATORY.get(kind, ()) if name not in given]
        if missing:
            raise _refused(f"objectClassViolation: {missing[0]} is missing")
        self._number += 1
        node = _Node(path, given)
        given["objectclass"] = [one.encode() for one in (*above, kind)]
        given["objectguid"] = [UUID(int=self._number * 0x9E37_79B9_7F4A_7C15_F39C % (1 << 128)).bytes_le]
        given["cn"] = [names.parts(path)[0].encode()]
        given["whencreated"] = [self._time()]
        given.setdefault("ntsecuritydescriptor", [_DEFAULT.encoded])
        if kind in _PRINCIPALS:
            given["objectsid"] = [sid(f"{_DOMAIN_SID}-{self._number}").data]
            given["objectcategory"] = [b"computer" if kind == "computer" else b"person"]
        self._nodes[key] = node
        self._touch(node)

    def modify(self, path: str, changes: Mapping[str, list[bytes]]) -> None:
        node = self._at(path)
        given = {name.lower(): values for name, values in changes.items()}
        self._check({name: values for name, values in given.items() if values})
        for name, values in given.items():
            if name not in _KNOWN:
                raise _refused(f"noSuchAttribute: {name}")
            node.attributes.pop(name, None)
            if values:
                node.attributes[name] = list(values)
        self._touch(node)

    def delete(self, path: str) -> None:
        key = _key(self._at(path).path)
        for own in [own for own in self._nodes if own[-len(key) :] == key]:
            node = self._nodes.pop(own)
            self._touch(node)
            kept = ("objectclass", "objectguid", "usnchanged")
            left = {name: values for name, values in node.attributes.items() if name in kept}
            self._deleted.append(_Node(node.path, left | {"isdeleted": [b"TRUE"]}))
            for other in self._nodes.values():  # the domain keeps no names of entries that are gone
                for name, values in other.attributes.items():
                    if _SYNTAX.get(name, ("",))[0] == "name":
                        values[:] = [value for value in values if _key(value.decode()) != own]

    @property
    def controllers(self) -> Controllers:
        return self._controllers

    def prefer(self) -> None:
        """There is one domain controller."""

    def catalog(self) -> _GlobalCatalog:
        return _GlobalCatalog(self)

    def close(self) -> None:
        self.closed += 1

    # ---- inside

    def _at(self, path: str) -> _Node:
        matched = re.fullmatch(r"<GUID=([0-9a-f-]{36})>", path)
        if matched is not None:
            wanted = UUID(matched[1]).bytes_le
            for node in self._nodes.values():
                if node.attributes["objectguid"] == [wanted]:
                    return node
        else:
            try:
                key = _key(path)
            except ValueError:
                raise _refused(f"invalidDNSyntax: {path}") from None
            if key in self._nodes:
                return self._nodes[key]
        raise DirectoryError(DirectoryOperationResult.OBJECT_NOT_FOUND, f"noSuchObject: {path}")

    def _complete(self, node: _Node) -> None:
        """Add the attributes that follow from others."""
        lists = [
            other.path.encode()
            for other in self._nodes.values()
            if _key(node.path) in [_key(one.decode()) for one in other.attributes.get("member", ())]
        ]
        node.attributes["distinguishedname"] = [node.path.encode()]
        node.attributes.pop("memberof", None)
        if lists:
            node.attributes["memberof"] = lists

    def _check(self, given: Mapping[str, list[bytes]]) -> None:
        for name, values in given.items():
            if name not in _KNOWN:
                raise _refused(f"noSuchAttribute: {name}")
            syntax, several, length = _KNOWN[name]
            if not values or (len(values) > 1 and not several) or len(set(values)) != len(values):
                raise _refused(f"constraintViolation: {len(values)} values of {name}")
            for value in values:
                if not self._fits(syntax, value, length):
                    raise _refused(f"invalidAttributeSyntax: {value[:40]!r} for {name}")

    def _fits(self, syntax: str, value: bytes, length: int) -> bool:
        match syntax:
            case "boolean":
                return value in (b"TRUE", b"FALSE")
            case "integer":
                return (
                    re.fullmatch(rb"-?[0-9]{1,10}", value) is not None and -(1 << 31) <= int(value) < 1 << 31
                )
            case "text":
                return 0 < len(value.decode()) <= (length or 1 << 20)
            case "octets":
                return len(value) == 16 if length == 16 else 0 < len(value) <= (length or 1 << 20)
            case "name":
                return _key(value.decode()) in self._nodes
            case _:
                try:
                    SecurityDescriptor.from_bytes(value)
                except SecurityDataError:
                    return False
                return True

    def _time(self) -> bytes:
        return time.strftime("%Y%m%d%H%M%S.0Z", time.gmtime(self._now())).encode()

    def _touch(self, node: _Node) -> None:
        self._number += 1
        node.attributes["usnchanged"] = [b"%d" % self._number]
        node.attributes["whenchanged"] = [self._time()]


class _GlobalCatalog(ActiveDirectory):
    """The objects of all domains of a forest, with some of their attributes. Nothing can be changed."""

    def __init__(self, forest: ActiveDirectory) -> None:
        self.__dict__ = forest.__dict__  # the same objects

    def search(
        self, base: str, scope: int, condition: str, attributes: Sequence[str], *, deleted: bool = False
    ) -> Iterator[Entry]:
        self.searches.append((f"catalog:{base}", scope, condition))
        wanted = [name for name in attributes if name.lower() not in _NOT_IN_CATALOG]
        found = list(self._nodes.values())
        if base:
            place = self._at(base)
            key = _key(place.path)
            found = [node for node in found if _key(node.path)[-len(key) :] == key] if scope else [place]
        return self._shown([*found, *(self._deleted if deleted else ())], condition, wanted)

    def add(self, path: str, attributes: Mapping[str, list[bytes]]) -> None:
        raise _refused("unwillingToPerform: the global catalog cannot be changed")

    def modify(self, path: str, changes: Mapping[str, list[bytes]]) -> None:
        raise _refused("unwillingToPerform: the global catalog cannot be changed")

    def delete(self, path: str) -> None:
        raise _refused("unwillingToPerform: the global catalog cannot be changed")


def _domain(path: str) -> str:
    return path[path.find("DC=") :]


@lru_cache(maxsize=4096)
def _key(path: str) -> tuple[str, ...]:
    return tuple(part.casefold() for part in names.parts(path))


def _refused(detail: str) -> DirectoryError:
    return DirectoryError(DirectoryOperationResult.GENERIC_ERROR, f"the domain controller answered: {detail}")


class _Filter:
    """A search filter (RFC 4515), read from its text. `test` says whether an entry meets it. A filter that is
    no filter is refused, as a client refuses to send it.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.test = self._read()
        if self._at != len(text):
            raise AssertionError(f"not a filter: {text!r}")

    def _take(self, expected: str) -> None:
        if self._text[self._at : self._at + 1] != expected:
            raise AssertionError(f"not a filter: {self._text!r} at {self._at}")
        self._at += 1

    def _read(self) -> Test:
        self._take("(")
        kind = self._text[self._at : self._at + 1]
        if kind in ("&", "|"):
            self._at += 1
            parts = []
            while self._text[self._at : self._at + 1] == "(":
                parts.append(self._read())
            self._take(")")
            every = all if kind == "&" else any
            return lambda node: every([part(node) for part in parts])
        matched = re.compile(r"([A-Za-z][\w-]*)(>=|=)((?:[^()\\*]|\\[0-9a-f]{2})*|\*)\)").match(
            self._text, self._at
        )
        assert matched is not None, f"not a filter: {self._text!r} at {self._at}"
        self._at = matched.end()
        return _comparison(matched[1].lower(), matched[2], matched[3])


def _comparison(name: str, operator: str, text: str) -> Test:
    assert name in _SYNTAX, f"the schema has no attribute {name}"
    if text == "*":
        return lambda node: bool(node.attributes.get(name))
    plain = re.sub(rb"\\([0-9a-f]{2})", lambda code: bytes.fromhex(code[1].decode()), text.encode())
    if operator == ">=":
        return lambda node: any(int(value) >= int(plain) for value in node.attributes.get(name, ()))
    normal = _NORMAL.get(_SYNTAX[name][0], bytes)
    try:
        wanted = normal(plain)
    except ValueError:
        return lambda _node: False
    return lambda node: any(normal(value) == wanted for value in node.attributes.get(name, ()))


def _as_sid(value: bytes) -> object:
    return sid(value.decode()).data if value.startswith(b"S-") else value


_NORMAL: Mapping[str, Callable[[bytes], object]] = {
    "text": lambda value: value.decode().casefold(),
    "name": lambda value: _key(value.decode()),
    "integer": int,
    "number": int,
    "sid": _as_sid,
}
