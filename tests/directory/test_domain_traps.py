"""Where a provider for Active Directory is easily wrong: each trap with the test that falls into it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.directory.filters import equals
from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.interface import BASE, SUBTREE
from msmq_fast.directory.ldap.provider import LdapDirectory
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, generic
from msmq_fast.directory.results import DirectoryOperationResult as Result
from msmq_fast.protocol.errors import AccessDenied
from tests.support.worlds.activedirectory import CONFIGURATION, DOMAIN, SITE, ActiveDirectory
from tests.support.worlds.directories import OTHER, machine, queue, result_of, site
from tests.support.worlds.domains import DomainWorld, Inline

QUEUE, MANAGER = ObjectType.QUEUE, ObjectType.QUEUE_MANAGER
PLACE = f"CN=msmq,CN=BETA,CN=Computers,{DOMAIN}"
CLASSES = ("mSMQQueue", "mSMQConfiguration", "user", "site", "mSMQSiteLink", "mSMQEnterpriseSettings")
QUOTAS = st.sampled_from((0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)) | st.integers(0, 0xFFFF_FFFF)
HOSTILE = (
    "*", "*)(objectClass=*", "a)(cn=*", "(|(cn=*))", "\\2a", "a,CN=Users", "a+b=c", "#a", " a", "a ", 'a"b',
    "a<b>;c", "a/b", "ä€𝄞", "a\\,b", "CN=x", "=", "%00", "\0", "a\nb", "&(x=y)", "!(x=y)", "x>=1",
)  # fmt: skip


@pytest.fixture
def world() -> DomainWorld:
    found = DomainWorld()
    found.home("BETA")
    return found


class Scripted(ActiveDirectory):
    """A domain that refuses the next operations as a test says."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[DirectoryError | None] = []
        self.written: list[tuple[str, set[str]]] = []  # (name, attributes) of each modification

    def _next(self) -> None:
        error = self.refusals.pop(0) if self.refusals else None
        if error is not None:
            raise error

    def search(
        self, base: str, scope: int, condition: str, attributes: Sequence[str], *, deleted: bool = False
    ) -> Iterator[Entry]:
        self._next()
        return super().search(base, scope, condition, attributes, deleted=deleted)

    def modify(self, path: str, changes: Mapping[str, list[bytes]]) -> None:
        self.written.append((path, {name.lower() for name in changes}))
        super().modify(path, changes)


# ---- 1: integers are signed


@pytest.mark.rule("SM-050")
@settings(max_examples=30)
@given(QUOTAS)
def test_an_integer_above_31_bits_is_a_negative_one(number: int) -> None:
    world = DomainWorld()
    world.home("BETA")
    made = world.directory.create(queue(r"BETA\q", Quota=number, JournalQuota=number)).result()
    shown = world.memory.shown(f"CN=q,{PLACE}")
    signed = number - (1 << 32) if number > 0x7FFF_FFFF else number
    assert shown["msmqqueuequota"] == shown["msmqqueuejournalquota"] == [b"%d" % signed]
    world.restart()
    assert world.directory.read(QUEUE, (equals(IDENTIFIER, made),)).result()["Quota"] == number


# ---- 2: Booleans are texts, also where MS-MQDSSM says 0x01, and GUIDs are octets in the order of Windows


@pytest.mark.rule("SM-051")
@pytest.mark.parametrize("value", [b"1", b"0", b"true", b"yes", b""])
def test_a_boolean_is_true_or_false_in_capitals(world: DomainWorld, value: bytes) -> None:
    """The domain refuses other texts. If it has one, that object is malformed, and is passed over."""
    with pytest.raises(DirectoryError, match="invalidAttributeSyntax"):
        world.memory.add(f"CN=q,{PLACE}", {"objectClass": [b"mSMQQueue"], "mSMQJournal": [value]})
    world.directory.create(queue(r"BETA\q")).result()
    world.memory.damage(f"CN=q,{PLACE}", "mSMQJournal", value)
    found = Domain(world.memory).load()
    assert found.problems == [f"CN=q,{PLACE}: mSMQJournal: expected TRUE or FALSE"]
    assert [item for item in found.objects if item.kind is QUEUE] == []


# ---- 3: lengths


@pytest.mark.rule("SM-052")
@pytest.mark.parametrize(("length", "result"), [(124, Result.SUCCESS), (125, Result.GENERIC_ERROR)])
def test_a_label_has_124_characters(world: DomainWorld, length: int, result: Result) -> None:
    made = world.directory.create(queue(r"BETA\q", Label="é" * length))
    assert result_of(made) is result
    if result is Result.GENERIC_ERROR:
        assert str(made.exception()) == "the label has 125 characters; a domain keeps at most 124"
        world.directory.create(queue(r"BETA\q")).result()
        changed = world.directory.write(queue(r"BETA\q", Label="é" * length))
        assert result_of(changed) is Result.GENERIC_ERROR


@pytest.mark.rule("SM-053", "SM-054")
@settings(max_examples=30)
@given(
    st.text(st.sampled_from("ab#<>=/~$."), min_size=1, max_size=124),
    st.sampled_from(("", "q" * 40, "#" * 30, "q" * 54 + "#")),
)
def test_a_long_name_is_cut_and_read_back(text: str, before: str) -> None:
    """mSMQQueueNameExt has at most 92 characters, and cn at most 64."""
    name = (before + text)[:124]
    world = DomainWorld()
    world.home("BETA")
    made = world.directory.create(queue(rf"BETA\{name}"))
    assert made.exception() is None
    (entry,) = world.memory.search(PLACE, SUBTREE, "(objectClass=mSMQQueue)", ["cn", "mSMQQueueNameExt"])
    short, rest = entry.first("cn") or b"", entry.first("mSMQQueueNameExt")
    counted = len(name) + sum(name.count(special) for special in "#<>=/")
    if counted <= 63:
        assert (short.decode(), rest) == (name, None)
    else:
        assert len(short.decode()) <= 64
        assert rest is not None
    world.restart()
    found = world.directory.read(QUEUE, (equals("Pathname", rf"beta\{name}"),)).result()
    assert found.identifier == made.result()
    assert found["Pathname"] == rf"beta\{name}".lower()
    assert found["QualifiedPathname"] == rf"beta.corp.example\{name}".lower()
    again = world.directory.create(queue(rf"BETA\{name}"))
    assert result_of(again) is Result.OBJECT_ALREADY_EXISTS
    world.directory.delete(queue(rf"BETA\{name}")).result()
    assert world.objects() == []


# ---- 4: search bases


@pytest.mark.rule("SM-062")
def test_objects_of_computers_are_searched_in_the_domain_and_others_in_the_configuration(
    world: DomainWorld,
) -> None:
    """MS-MQDSSM 3.1.6.15 says the configuration for queues, too, where there are none."""
    world.memory.searches.clear()
    Domain(world.memory).load()
    bases = {
        kind: {base for base, _scope, text in world.memory.searches if f"objectClass={kind})" in text}
        for kind in (
            "mSMQQueue",
            "mSMQConfiguration",
            "user",
            "site",
            "mSMQSiteLink",
            "mSMQEnterpriseSettings",
        )
    }
    assert bases == {
        "mSMQQueue": {DOMAIN},
        "mSMQConfiguration": {DOMAIN},
        "user": {DOMAIN},
        "site": {CONFIGURATION},
        "mSMQSiteLink": {CONFIGURATION},
        "mSMQEnterpriseSettings": {CONFIGURATION},
    }
    assert all(scope == SUBTREE for _base, scope, _text in world.memory.searches)


@pytest.mark.rule("SM-002")
def test_a_computer_is_found_wherever_it_lies(world: DomainWorld) -> None:
    unit = f"CN=Servers of Berlin,CN=Computers,{DOMAIN}"
    world.memory.add(unit, {"objectClass": [b"container"]})
    world.memory.add(f"CN=DELTA,{unit}", {"objectClass": [b"computer"], "sAMAccountName": [b"DELTA$"]})
    world.directory.create(machine("DELTA")).result()
    made = world.directory.create(queue(r"delta\q")).result()
    found = world.directory.read(QUEUE, (equals("Pathname", r"DELTA\q"),)).result()
    assert (found.identifier, found["FullPath"]) == (made, f"CN=q,CN=msmq,CN=DELTA,{unit}")
    world.directory.delete(queue(r"DELTA\q")).result()


# ---- 5: reads by GUID


@pytest.mark.rule("SM-065")
def test_an_object_is_found_by_its_guid_as_a_search_base(world: DomainWorld) -> None:
    """The search of MS-MQDSSM 3.1.6.19, below an empty base, finds nothing at port 389."""
    made = world.directory.create(queue(r"BETA\q")).result()
    world.memory.searches.clear()
    world.directory.write(DirectoryObject(QUEUE, {IDENTIFIER: made, "Label": "x"})).result()
    base, scope, _ = next(one for one in world.memory.searches if one[0].startswith("<"))
    assert (base, scope) == (f"<GUID={made}>", BASE)
    world.directory.delete(DirectoryObject(QUEUE, {IDENTIFIER: made})).result()
    assert world.objects() == []


@pytest.mark.rule("SM-066")
def test_a_guid_goes_before_a_path(world: DomainWorld) -> None:
    first, second = (world.directory.create(queue(rf"BETA\{name}")).result() for name in "ab")
    both = {IDENTIFIER: first, "FullPath": f"CN=b,{PLACE}"}
    world.directory.delete(DirectoryObject(QUEUE, both)).result()
    assert [item.identifier for item in world.objects()] == [second]


# ---- 6: filters


@pytest.mark.rule("SM-061")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_value_is_never_a_part_of_a_filter_or_of_a_name(world: DomainWorld, name: str) -> None:
    """The domain in memory refuses a filter that is none, and has no entry that a name does not name."""
    world.directory.create(queue(r"BETA\other", Label="victim")).result()
    assert result_of(world.directory.machine_sid(name)) is Result.OBJECT_NOT_FOUND
    for item in (machine(name), queue(f"{name}\\q"), queue(f"BETA\\{name}")):
        assert result_of(world.directory.delete(item)) is not Result.SUCCESS
        assert result_of(world.directory.write(item)) is not Result.SUCCESS
    world.directory.create(site(name))
    made = world.directory.create(queue(f"BETA\\{name}", Label=name))
    if made.exception() is None:
        (found,) = [item for item in world.objects() if item["Label"] == name]
        assert found["Pathname"].casefold() == f"beta\\{name}".casefold()
        world.directory.delete(found).result()
    assert [item["Label"] for item in world.objects()] == ["victim"]


@pytest.mark.rule("SM-061")
@settings(max_examples=30)
@given(st.text(max_size=30))
def test_no_text_breaks_out_of_a_filter(text: str) -> None:
    world = DomainWorld()
    world.home("BETA")
    world.directory.create(queue(r"BETA\victim", Label="victim")).result()
    assert result_of(world.directory.machine_sid(text)) is (
        Result.SUCCESS if text.casefold() in ("beta", "beta.corp.example") else Result.OBJECT_NOT_FOUND
    )
    made = world.directory.create(queue("BETA\\a" + text, Label="mine"))
    world.restart()
    assert len(world.objects()) == (1 if made.exception() else 2)
    user = DirectoryObject(ObjectType.USER, {"SecurityIdentifier": "S-1-5-21-1-2-3-4"})
    assert result_of(world.directory.create(user)) is Result.OBJECT_NOT_FOUND


# ---- 7: what a queue manager needs, and brings with it


@pytest.mark.rule("SM-022")
def test_a_queue_manager_has_a_site_and_a_server_has_settings(world: DomainWorld) -> None:
    world.account("ROUTER")
    made = world.directory.create(machine("ROUTER", RoutingServer=True)).result()
    own = world.directory.read(MANAGER, (equals(IDENTIFIER, made),)).result()
    here = world.directory.read(ObjectType.SITE, (equals("FullPath", SITE),)).result().identifier
    assert own["SiteIdentifierList"] == (here,)
    settings = world.memory.shown(f"CN=MSMQ Settings,CN=ROUTER,CN=Servers,{SITE}")
    assert settings["msmqqmid"] == [made.bytes_le]
    assert result_of(world.directory.create(DirectoryObject(MANAGER, {}))) is Result.GENERIC_ERROR


def settings_of(world: DomainWorld) -> dict[str, list[bytes]]:
    """Where the domain has MSMQ Settings, and their services."""
    found = world.memory.search(CONFIGURATION, SUBTREE, "(objectClass=mSMQSettings)", ["mSMQServices"])
    return {entry.path: list(entry.attributes["msmqservices"]) for entry in found}


@pytest.mark.rule("SM-006", "SM-044", "SM-045", "SM-046", "SM-047")
def test_settings_follow_the_services_and_the_sites(world: DomainWorld) -> None:
    here = world.directory.read(ObjectType.SITE, (equals("FullPath", SITE),)).result().identifier
    there = world.directory.create(site("north")).result()
    places = [f"CN=MSMQ Settings,CN=ROUTER,CN=Servers,{SITE}"]
    places.append(f"CN=MSMQ Settings,CN=ROUTER,CN=Servers,CN=north,CN=Sites,{CONFIGURATION}")
    world.account("ROUTER")
    both = (here, there, OTHER)  # a site that is not there is left out
    made = world.directory.create(machine("ROUTER", SiteIdentifierList=both)).result()

    def write(**values: object) -> dict[str, list[bytes]]:
        world.directory.write(DirectoryObject(MANAGER, {IDENTIFIER: made, **values})).result()
        return settings_of(world)

    assert settings_of(world) == {}
    assert write(RoutingServer=True) == {place: [b"1"] for place in places}
    assert write(RemoteAccessServer=True) == {place: [b"17"] for place in places}
    assert write(DirectoryServer=True, DirectoryServerType=4) == {place: [b"25"] for place in places}
    assert write(SiteIdentifierList=(there,)) == {places[1]: [b"25"]}
    assert write(RoutingServer=False, DirectoryServer=False) == {}
    assert write(SupportingServer=True, RemoteAccessServer=False) == {places[1]: [b"0"]}
    world.directory.delete(DirectoryObject(MANAGER, {IDENTIFIER: made})).result()
    assert settings_of(world) == {}


# ---- 8: deleting, and writing a descriptor


@pytest.mark.rule("SM-036")
def test_a_queue_manager_is_deleted_with_its_queues(world: DomainWorld) -> None:
    world.directory.create(queue(r"BETA\q")).result()
    world.directory.delete(machine("BETA")).result()
    world.restart()
    assert world.objects() == []
    assert world.objects(MANAGER) == []
    assert result_of(world.directory.delete(machine("BETA"))) is Result.OBJECT_NOT_FOUND


@pytest.mark.rule("SM-048", "SM-064")
def test_a_descriptor_is_written_in_a_request_of_its_own() -> None:
    memory = Scripted()
    provider = LdapDirectory(Domain(memory), Inline(), time.monotonic)
    provider.start().result()
    memory.computer("BETA")
    provider.create(machine("BETA")).result()
    found = provider.read(QUEUE, (equals(IDENTIFIER, provider.create(queue(r"BETA\q")).result()),)).result()
    memory.written.clear()
    provider.write(found.changed({"Label": "x"}), ("Label", "Security")).result()
    assert memory.written == [(f"CN=q,{PLACE}", {"msmqlabelex"}), (f"CN=q,{PLACE}", {"ntsecuritydescriptor"})]


# ---- 9: answers at once


@pytest.mark.rule("SM-016", "SM-017")
def test_nothing_is_known_before_the_first_reading() -> None:
    memory = Scripted()
    gone = DirectoryError(Result.NOT_CONNECTED, "no domain controller")
    memory.refusals = [gone]
    provider = LdapDirectory(Domain(memory), Inline(), time.monotonic)
    provider.start()
    assert result_of(provider.begin(QUEUE)) is Result.NOT_CONNECTED
    memory.refusals = [gone]
    assert result_of(provider.read(QUEUE)) is Result.NOT_CONNECTED
    assert result_of(provider.read(QUEUE)) is Result.OBJECT_NOT_FOUND  # it asks again
    assert result_of(provider.begin(QUEUE)) is Result.SUCCESS


@pytest.mark.rule("SM-070", "SM-071", "SM-072")
def test_lists_with_queues_aliases_lists_and_themselves(world: DomainWorld) -> None:
    first = world.directory.create(queue(r"BETA\first")).result()
    memory, users = world.memory, f"CN=Users,{DOMAIN}"
    memory.add(
        f"CN=alias,{users}",
        {"objectClass": [b"msMQ-Custom-Recipient"], "msMQ-Recipient-FormatName": [b"DIRECT=OS:x\\y"]},
    )
    inner, outer, person = (f"CN={name},{users}" for name in ("inner", "outer", "person"))
    memory.user("person")
    memory.add(inner, {"objectClass": [b"group"], "member": [f"CN=alias,{users}".encode(), person.encode()]})
    memory.add(outer, {"objectClass": [b"group"], "member": [f"CN=first,{PLACE}".encode(), inner.encode()]})
    memory.modify(inner, {"member": [f"CN=alias,{users}".encode(), outer.encode()]})
    for path in (inner, outer):
        (entry,) = memory.search(path, BASE, "(objectClass=group)", ["objectGUID"])
        assert set(world.directory.resolve_list(entry.identifier).result()) == {
            f"PUBLIC={first}",
            "DIRECT=OS:x\\y",
        }
    assert result_of(world.directory.resolve_list(first)) is Result.OBJECT_NOT_FOUND  # not a list


# ---- 10: errors


@pytest.mark.rule("SM-080")
def test_a_refusal_for_want_of_rights_has_an_hresult_of_its_own(world: DomainWorld) -> None:
    memory = Scripted()
    provider = LdapDirectory(Domain(memory), Inline(), time.monotonic)
    provider.start().result()
    denied = AccessDenied("no right")
    memory.refusals = [DirectoryError(Result.GENERIC_ERROR, "no right", refusal=denied)]
    error = provider.create(machine("BETA")).exception()
    assert isinstance(error, DirectoryError)
    assert error.for_applications() is denied
    memory.refusals = [generic("other")]
    error = provider.create(machine("BETA")).exception()
    assert isinstance(error, DirectoryError)
    assert error.for_applications().code == 0xC00E0043


# ---- 12: what a domain does not keep


@pytest.mark.rule("SM-021", "SM-024", "SM-026")
@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        (QUEUE, "Scope", {"Pathname": r"BETA\q", "Scope": 1}),
        (MANAGER, "ConnectedNetworkIdentifierList", {"ComputerName": "BETA"}),
        (ObjectType.SITE, "PrimarySiteController", {"Name": "Default-First-Site-Name"}),
        (ObjectType.SITE, "PublicSigningKeyList", {"Name": "Default-First-Site-Name"}),
    ],
)
def test_to_ask_for_an_attribute_that_is_not_kept_is_an_error(
    world: DomainWorld, kind: ObjectType, name: str, values: dict[str, object]
) -> None:
    item, asked = DirectoryObject(kind, values), (name, *(one for one in values if one != name))
    directory = world.directory
    for done in (
        directory.create(item, asked),
        directory.write(item, asked),
        directory.read(kind, (), (name,)),
        directory.begin(kind, (), (name,)),
    ):
        assert result_of(done) is Result.GENERIC_ERROR
    assert result_of(directory.read(kind, (), ())) is (
        Result.OBJECT_NOT_FOUND if kind is QUEUE else Result.SUCCESS
    )


@pytest.mark.rule("SM-020", "SM-031", "SM-040", "SM-042", "SM-043")
def test_there_are_no_connected_networks(world: DomainWorld) -> None:
    kind = ObjectType.CONNECTED_NETWORK
    network = DirectoryObject(kind, {"Name": "lan"})
    directory = world.directory
    for done in (
        directory.create(network),
        directory.write(network),
        directory.delete(network),
        directory.read(kind),
        directory.begin(kind),
    ):
        assert result_of(done) is Result.GENERIC_ERROR


@pytest.mark.rule("SM-007", "SM-010", "SM-031")
def test_the_enterprise_is_never_created_or_deleted(world: DomainWorld) -> None:
    enterprise = world.directory.read(ObjectType.ENTERPRISE).result()
    assert enterprise["Name"] == DOMAIN
    for done in (world.directory.create(enterprise), world.directory.delete(enterprise)):
        assert result_of(done) is Result.GENERIC_ERROR
    world.directory.write(enterprise.changed({"DefaultTimeToLive": 9}), ("DefaultTimeToLive",)).result()
    world.restart()
    assert world.directory.read(ObjectType.ENTERPRISE).result()["DefaultTimeToLive"] == 9


def test_what_is_deleted_elsewhere_leaves_the_copy(world: DomainWorld) -> None:
    made = world.directory.create(queue(r"BETA\q")).result()
    world.memory.delete(f"CN=q,{PLACE}")
    wanted = (equals(IDENTIFIER, made),)
    assert result_of(world.directory.read(QUEUE, wanted, force=True)) is Result.OBJECT_NOT_FOUND
    assert world.provider.count(QUEUE) == 0
