"""The connection by libldap against Samba: pages, references to other domains, results, and rights."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.directory.ldap.interface import BASE, SUBTREE
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError
from msmq_fast.directory.results import DirectoryOperationResult as Result
from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.security.acl import Ace, AceFlag, AceType, Acl
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.sid import Sid
from tests.support.processes.domain import NEEDS, computer, controller, make_link, make_provider
from tests.support.processes.samba import DOMAIN, PASSWORD, DomainController
from tests.support.processes.servers import until
from tests.support.worlds.directories import everything, machine, queue
from tests.support.worlds.domains import SEND_ONLY, allowed

if TYPE_CHECKING:
    from msmq_fast.directory.ldap.link import LdapLink

__all__ = ["computer", "controller"]

pytestmark = [*NEEDS, pytest.mark.long(seconds=10)]


@pytest.fixture
def link(controller: DomainController) -> LdapLink:
    return make_link(controller)


@pytest.mark.rule("SM-063")
def test_the_pages_of_a_search_are_small(
    controller: DomainController, computer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samba would return everything at once; Windows returns at most 1,000 entries."""
    import ldap

    from msmq_fast.directory.ldap.link import PAGE

    assert PAGE <= 1_000
    make_provider(controller).create(machine(computer)).result()
    place = f"CN=msmq,CN={computer},CN=Computers,{DOMAIN}"
    controller.ldif(
        "\n".join(
            f"dn: CN=q{number},{place}\nchangetype: add\nobjectClass: mSMQQueue\n"
            for number in range(2 * PAGE + 1)
        )
    )
    sizes = [0]  # of each page, and of what follows

    class Counted(ldap.ldapobject.SimpleLDAPObject):  # type: ignore[misc]
        def result3(self, *arguments: Any, **more: Any) -> Any:
            found = super().result3(*arguments, **more)
            sizes[-1] += len(found[1] or ())
            if found[0] == ldap.RES_SEARCH_RESULT:
                sizes.append(0)
            return found

    monkeypatch.setattr(ldap, "initialize", Counted)
    entries = list(make_link(controller).search(place, SUBTREE, "(objectClass=mSMQQueue)", ["cn"]))
    assert len({entry.path for entry in entries}) == 2 * PAGE + 1
    assert [size for size in sizes if size] == [PAGE, PAGE, 1]
    make_provider(controller).delete(machine(computer)).result()


def test_references_to_other_domains_are_not_followed(controller: DomainController, link: LdapLink) -> None:
    """A search at the root of the domain ends with references to parts that other servers hold. Their names
    resolve to nothing here: to follow one would fail.
    """
    import ldap

    raw = ldap.initialize(controller.url)
    raw.set_option(ldap.OPT_REFERRALS, 0)
    raw.set_option(ldap.OPT_X_TLS_CACERTFILE, str(controller.ca_file))
    raw.set_option(ldap.OPT_X_TLS_NEWCTX, 0)
    raw.start_tls_s()
    raw.simple_bind_s(controller.administrator, PASSWORD)
    found = raw.search_s(DOMAIN, ldap.SCOPE_SUBTREE, "(objectClass=site)", ["cn"])
    raw.unbind_s()
    assert [urls for path, urls in found if path is None]
    assert list(link.search(DOMAIN, SUBTREE, "(objectClass=site)", ["cn"])) == []
    assert make_provider(controller).problem == ""


@pytest.mark.rule("SM-013")
def test_results(link: LdapLink) -> None:
    absent = f"CN=absent,CN=Users,{DOMAIN}"
    present = f"CN=Administrator,CN=Users,{DOMAIN}"
    failing = {
        Result.OBJECT_NOT_FOUND: lambda: list(link.search(absent, BASE, "(objectClass=*)", ["cn"])),
        Result.OBJECT_ALREADY_EXISTS: lambda: link.add(present, {"objectClass": [b"user"]}),
        Result.ATTRIBUTE_NOT_FOUND: lambda: link.add(absent, {"objectClass": [b"noSuchClass"]}),
        Result.GENERIC_ERROR: lambda: link.add(absent, {"objectClass": [b"mSMQQueue"]}),  # not below a user
    }
    for result, operation in failing.items():
        with pytest.raises(DirectoryError) as refused:
            operation()
        assert refused.value.result is result
    for operation in (lambda: link.delete(absent), lambda: link.modify(absent, {"description": [b"x"]})):
        with pytest.raises(DirectoryError) as refused:
            operation()
        assert refused.value.result is Result.OBJECT_NOT_FOUND


@pytest.mark.rule("SM-019")
def test_a_wrong_password_and_an_address_where_nothing_listens(controller: DomainController) -> None:
    from msmq_fast.directory.ldap.connecting import LdapSettings
    from msmq_fast.directory.ldap.link import LdapLink

    wrong = LdapSettings([controller.url], controller.administrator, "wrong", controller.ca_file)
    for settings in (wrong, LdapSettings(["ldap://127.0.20.99"], "a", "b", controller.ca_file)):
        with pytest.raises(DirectoryError) as refused:
            LdapLink(settings).root()
        assert refused.value.result is Result.NOT_CONNECTED


@pytest.mark.rule("SM-080", "SM-081")
def test_what_an_account_without_rights_may(controller: DomainController, computer: str) -> None:
    owner = make_provider(controller)
    owner.create(machine(computer)).result()
    owner.create(queue(rf"{computer}\q", Label="kept")).result()
    controller.user("powerless")
    provider = make_provider(controller, "powerless@CORP.EXAMPLE")
    (found,) = [item for item in _queues(provider) if item["Label"] == "kept"]
    for denied in (
        provider.create(queue(rf"{computer}\mine")),
        provider.write(found.changed({"Label": "mine"}), ("Label",)),
        provider.delete(found),
    ):
        error = denied.exception()
        assert isinstance(error, DirectoryError)
        assert error.result is Result.GENERIC_ERROR
        assert isinstance(error.for_applications(), AccessDenied)
    (left,) = [item for item in _queues(make_provider(controller)) if computer.lower() in item["Pathname"]]
    assert left["Label"] == "kept"
    owner.delete(machine(computer)).result()


@pytest.mark.rule("SM-058", "SM-064", "SM-081")
def test_rights_in_the_domain_are_those_of_the_queue(
    controller: DomainController, link: LdapLink, computer: str
) -> None:
    """An account with all rights below CN=msmq manages the queues there. A user that may send to a queue and
    read its properties may not change its object.
    """
    owner = make_provider(controller)
    owner.create(machine(computer)).result()
    place = f"CN=msmq,CN={computer},CN=Computers,{DOMAIN}"
    keeper = _sid(link, controller.user(f"keeper-{computer}"))
    _grant(link, place, keeper)
    own = make_provider(controller, f"keeper-{computer}@CORP.EXAMPLE")
    made = own.create(queue(rf"{computer}\q", Label="kept", Security=SEND_ONLY)).result()
    named = DirectoryObject(ObjectType.QUEUE, {IDENTIFIER: made})
    own.write(named.changed({"Label": "changed", "Security": SEND_ONLY})).result()
    controller.user(f"sender-{computer}")
    sender = make_provider(controller, f"sender-{computer}@CORP.EXAMPLE")
    (found,) = [item for item in _queues(sender) if item.identifier == made]
    assert found["Label"] == "changed"
    assert allowed(found["Security"]) == allowed(SEND_ONLY)
    for denied in (sender.write(found.changed({"Label": "mine"}), ("Label",)), sender.delete(found)):
        error = denied.exception()
        assert isinstance(error, DirectoryError)
        assert isinstance(error.for_applications(), AccessDenied)
    own.delete(named).result()
    owner.delete(machine(computer)).result()


def _sid(link: LdapLink, path: str) -> Sid:
    (entry,) = link.search(path, BASE, "(objectClass=*)", ["objectSid"])
    return Sid.from_bytes(entry.attributes["objectsid"][0])


def _grant(link: LdapLink, path: str, who: Sid) -> None:
    """Give an account all rights to an entry and to what is created below it."""
    (entry,) = link.search(path, BASE, "(objectClass=*)", ["nTSecurityDescriptor"])
    old = SecurityDescriptor.from_bytes(entry.attributes["ntsecuritydescriptor"][0])
    assert old.dacl is not None
    full = Ace.build(AceType.ACCESS_ALLOWED, 0x000F_01FF, who, AceFlag.CONTAINER_INHERIT)
    new = replace(old, dacl=Acl((full, *old.dacl.aces), 4))
    link.modify(path, {"nTSecurityDescriptor": [new.encoded]})


def _queues(provider: Any) -> list[Any]:
    return everything(provider, ObjectType.QUEUE)


@pytest.mark.parametrize("scheme", ["ldap", "ldaps"])
def test_the_global_catalog(controller: DomainController, computer: str, scheme: str) -> None:
    """At its own port of the same controller, with the connection protected in the same way."""
    from msmq_fast.directory.ldap.domain import Domain
    from msmq_fast.directory.ldap.forest import Catalog
    from msmq_fast.directory.ldap.link import LdapLink

    owner = make_provider(controller)
    owner.create(machine(computer)).result()
    made = owner.create(queue(rf"{computer}\q", Label="kept")).result()
    url = f"{scheme}://{controller.address}"
    link = LdapLink(replace(make_link(controller).settings, urls=[url]))
    link.root()
    wanted = ["objectGUID", "mSMQLabelEx", "nTSecurityDescriptor"]
    condition = "(&(objectClass=mSMQQueue)(cn=q)(mSMQLabelEx=kept))"
    (entry,) = link.catalog().search("", SUBTREE, condition, wanted)
    assert (entry.identifier, entry.first("mSMQLabelEx")) == (made, b"kept")
    assert entry.first("nTSecurityDescriptor")
    (again,) = link.catalog().search(f"<GUID={made}>", BASE, "(objectClass=*)", wanted)
    assert again.path == entry.path
    port = {"ldap": 3268, "ldaps": 3269}[scheme]
    assert link.catalog().controllers.current == f"{scheme}://{controller.address}:{port}"
    for catalog, state in {Catalog.YES: "read from the global", Catalog.AUTO: "the forest has one"}.items():
        domain = Domain(link, catalog=catalog)
        loaded = domain.load()
        assert [item.identifier for item in loaded.objects].count(made) == 1
        assert state in domain.forest_state
        changed = domain.changes(loaded.controller, loaded.usn - 1)
        assert not changed.complete
    owner.delete(machine(computer)).result()


@contextmanager
def dropped(address: str, port: int) -> Iterator[None]:
    """Nothing that is sent to a port arrives, as behind a firewall."""
    table = f"inet msmq_{address.replace('.', '_')}"
    rule = f"type filter hook input priority 0; ip daddr {address} tcp dport {port} drop"
    given = f"table {table} {{\nchain input {{\n{rule}\n}}\n}}\n"
    subprocess.run(["nft", "-f", "-"], input=given, text=True, check=True)
    try:
        yield
    finally:
        subprocess.run(["nft", "delete", "table", *table.split()], check=True)


@pytest.mark.needs("nft")
def test_a_firewall_before_the_global_catalog(controller: DomainController, computer: str) -> None:
    """The own domain is read all the same, when the catalog was never reached and when it was."""
    from msmq_fast.directory.ldap.domain import Domain
    from msmq_fast.directory.ldap.forest import Catalog
    from msmq_fast.directory.ldap.link import LdapLink

    owner = make_provider(controller)
    owner.create(machine(computer)).result()
    made = owner.create(queue(rf"{computer}\q")).result()
    domain = Domain(LdapLink(replace(make_link(controller).settings, connect_s=1.0)), catalog=Catalog.YES)
    url = f"{controller.url}:3268"
    with dropped(controller.address, 3268):
        loaded = domain.load()
        assert [item.identifier for item in loaded.objects].count(made) == 1
        assert domain.forest_state == f"not read: the global catalog does not answer: {loaded.missing}"
        assert loaded.missing.startswith(f"{url}: "), loaded.missing
        assert domain.changes(loaded.controller, loaded.usn).missing == loaded.missing
    until(lambda: not domain.load().missing)  # it is left alone for a second
    assert domain.forest_state.startswith("read from the global catalog: ")
    with dropped(controller.address, 3268):
        with pytest.raises(DirectoryError) as lost:
            domain.changes(loaded.controller, loaded.usn)
        assert lost.value.result is Result.NOT_CONNECTED
        assert domain.changes(loaded.controller, loaded.usn).missing.startswith(f"{url}: ")
    owner.delete(machine(computer)).result()
