"""Dependent clients create, look at, change and delete private queues (MS-MQMP 3.1.4.5 … 3.1.4.11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.rpc.faults import RPC_X_BAD_STUB_DATA, RpcFault
from msmq_fast.rpc.idl.mqmq import PROPVARIANT, QUEUE_FORMAT
from msmq_fast.rpc.idl.qmcomm import OBJECT_FORMAT, QMCOMM
from msmq_fast.rpc.services.dependent.server import DependentPolicy
from msmq_fast.rpc.services.queueformat import name_of
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.sddl import parse_sddl, to_sddl
from msmq_fast.security.token import Privilege
from tests.support.rpc.dependents import NOBODY, ORDERS, Dependent, DependentWorld, queue_object
from tests.support.rpc.peers import ADMIN, ALICE, caller

PROPERTY, QUEUE_EXISTS, INVALID_PARAMETER = 0xC00E0002, 0xC00E0005, 0xC00E0006
QUEUE_NOT_FOUND, ACCESS_DENIED, ILLEGAL_OPERATION = 0xC00E0003, 0xC00E0025, 0xC00E0064
ILLEGAL_QUEUE_PATHNAME, ILLEGAL_PROPERTY_VALUE = 0xC00E0014, 0xC00E0018
PROPERTY_NOTALLOWED, ILLEGAL_SECURITY_DESCRIPTOR = 0xC00E003E, 0xC00E0021
UNSUPPORTED_FORMATNAME_OPERATION, SECURITY_DESCRIPTOR_TOO_SMALL = 0xC00E0020, 0xC00E0023
PRIVILEGE_NOT_HELD = 0xC00E0026
TYPE = UUID("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
EMPTY, NULL, I2, I4, UI1, UI4, LPWSTR, CLSID = 0, 1, 2, 3, 17, 19, 31, 72
NEW = r"DIRECT=OS:HOST\private$\new"
SDDL = f"O:{ALICE}G:{ALICE}D:(A;;CCLC;;;WD)(A;;CC;;;{ALICE})"


@pytest.fixture(params=[False, True], ids=["ndr", "ndr64"])
def remote(request: pytest.FixtureRequest) -> DependentWorld:
    return DependentWorld(ndr64=request.param)


def variant(vt: int, value: Any = None) -> Any:
    return PROPVARIANT(vt, 0, 0, 0, value)


def create(
    client: Dependent,
    path: str = r".\private$\new",
    properties: dict[int, Any] | None = None,
    *,
    kind: int = 1,
    descriptor: bytes | None = None,
) -> int:
    """R_QMCreateObjectInternal; the result."""
    given = {103: variant(LPWSTR, path)} if properties is None else properties
    results = client.call(
        "create_object_internal",
        dwObjectType=kind,
        lpwcsPathName=path,
        SDSize=0 if descriptor is None else len(descriptor),
        pSecurityDescriptor=descriptor,
        cp=len(given),
        aProp=list(given),
        apVar=list(given.values()),
    )
    return int(results.result)


def change(client: Dependent, properties: dict[int, Any], text: str = ORDERS) -> int:
    """R_QMSetObjectProperties; the result."""
    results = client.call(
        "set_object_properties",
        pObjectFormat=queue_object(text),
        cp=len(properties),
        aProp=list(properties),
        apVar=list(properties.values()),
    )
    return int(results.result)


def look(client: Dependent, asked: dict[int, int], text: str = ORDERS) -> Any:
    """R_QMGetObjectProperties."""
    return client.call(
        "get_object_properties",
        pObjectFormat=queue_object(text),
        cp=len(asked),
        aProp=list(asked),
        apVar=[variant(vt, _some(vt)) for vt in asked.values()],
    )


def _some(vt: int) -> Any:
    return {I2: 0, I4: 0, UI1: 0, UI4: 0, LPWSTR: None, CLSID: None}.get(vt)


def values(results: Any) -> list[tuple[int, Any]]:
    assert results.result == 0, hex(results.result)
    return [(one.vt, one._varUnion) for one in results.apVar]


@pytest.mark.rule("MP-050", "MP-221")
def test_a_private_queue_is_created_and_stays(remote: DependentWorld) -> None:
    client = remote.dependent()
    given = {
        102: variant(CLSID, TYPE),
        103: variant(LPWSTR, r"HOST\private$\new"),
        104: variant(UI1, 1),
        105: variant(UI4, 1000),
        106: variant(I2, -5),
        107: variant(UI4, 2000),
        108: variant(LPWSTR, "a label"),
        111: variant(UI1, 1),
        112: variant(UI4, 2),
        113: variant(UI1, 1),
    }
    assert create(client, r"HOST\private$\new", given) == 0
    remote.world.crash()
    queue = remote.world.manager.find("new")
    properties = queue.properties
    assert (properties.type, properties.label, properties.base_priority) == (TYPE, "a label", -5)
    assert (properties.quota_kb, properties.journal_quota_kb) == (1000, 2000)
    assert (properties.journaling, properties.authenticated, properties.transactional) == (True, True, True)
    assert int(properties.privacy) == 2


@pytest.mark.rule("MP-050")
def test_the_answer_to_a_creation_waits_for_the_disk(remote: DependentWorld) -> None:
    client = remote.dependent()
    path = r".\private$\new"
    run, remote.world.run = remote.world.run, lambda: None  # type: ignore[method-assign]
    given = {"cp": 1, "aProp": [103], "apVar": [variant(LPWSTR, path)]}
    call = client.qmcomm.begin(
        "create_object_internal",
        dwObjectType=1,
        lpwcsPathName=path,
        SDSize=0,
        pSecurityDescriptor=None,
        **given,
    )
    remote.world.manager.before_submit()
    assert not call.done
    run()
    assert call.results.result == 0


@pytest.mark.rule("MP-051")
@pytest.mark.parametrize(
    ("path", "properties", "kind", "result"),
    [
        (r".\private$\new", None, 2, INVALID_PARAMETER),
        (r".\new", None, 1, ILLEGAL_QUEUE_PATHNAME),
        (r"OTHER\private$\new", None, 1, ILLEGAL_QUEUE_PATHNAME),
        (r".\private$\new;sub", None, 1, ILLEGAL_QUEUE_PATHNAME),
        (r".\private$\new;journal", None, 1, ILLEGAL_QUEUE_PATHNAME),
        (r".\system$;deadxact", None, 1, ILLEGAL_QUEUE_PATHNAME),
        ("new", None, 1, ILLEGAL_QUEUE_PATHNAME),
        ("", None, 1, ILLEGAL_QUEUE_PATHNAME),
        (r".\private$\new", {103: variant(LPWSTR, r".\private$\other")}, 1, ILLEGAL_PROPERTY_VALUE),
        (r".\private$\new", {103: variant(LPWSTR)}, 1, ILLEGAL_PROPERTY_VALUE),
        (r".\private$\new", {101: variant(CLSID, TYPE)}, 1, PROPERTY_NOTALLOWED),
        (r".\private$\new", {109: variant(I4, 1)}, 1, PROPERTY_NOTALLOWED),
        (r".\private$\new", {115: variant(CLSID, TYPE)}, 1, PROPERTY),
        (r".\private$\new", {0: variant(EMPTY)}, 1, PROPERTY),
        (r".\private$\new", {105: variant(I4, 1)}, 1, PROPERTY),
        (r".\private$\new", {104: variant(UI1, 2)}, 1, ILLEGAL_PROPERTY_VALUE),
        (r".\private$\new", {112: variant(UI4, 3)}, 1, ILLEGAL_PROPERTY_VALUE),
        (r".\private$\new", {108: variant(LPWSTR, "x" * 125)}, 1, ILLEGAL_PROPERTY_VALUE),
    ],
)
def test_what_is_wrong_creates_nothing(
    path: str, properties: dict[int, Any] | None, kind: int, result: int
) -> None:
    remote = DependentWorld()
    before = len(list(remote.world.manager.queues()))
    assert create(remote.dependent(), path, properties, kind=kind) == result
    assert len(list(remote.world.manager.queues())) == before


@pytest.mark.rule("MP-051")
def test_a_property_is_given_once(remote: DependentWorld) -> None:
    results = remote.dependent().call(
        "create_object_internal",
        dwObjectType=1,
        lpwcsPathName=r".\private$\new",
        SDSize=0,
        pSecurityDescriptor=None,
        cp=2,
        aProp=[108, 108],
        apVar=[variant(LPWSTR, "one"), variant(LPWSTR, "two")],
    )
    assert results.result == PROPERTY


@pytest.mark.rule("MP-052")
def test_a_queue_that_exists_stays_as_it_is(remote: DependentWorld) -> None:
    client = remote.dependent()
    assert create(client, r".\private$\ORDERS", {108: variant(LPWSTR, "mine")}) == QUEUE_EXISTS
    assert remote.world.manager.find("orders").label == ""


@pytest.mark.rule("MP-053")
def test_the_descriptor_of_a_new_queue(remote: DependentWorld) -> None:
    assert create(remote.dependent(caller())) == ACCESS_DENIED
    client = remote.dependent()
    assert create(client) == 0
    default = remote.world.manager.find("new").security
    assert default.owner == ALICE
    assert default.dacl is not None
    assert create(client, r".\private$\mine", descriptor=parse_sddl(SDDL).encoded) == 0
    assert "(A;;CC;;;" in to_sddl(remote.world.manager.find("mine").security)
    assert create(client, r".\private$\bad", descriptor=b"nonsense") == ILLEGAL_SECURITY_DESCRIPTOR


@pytest.mark.rule("MP-006", "MP-070", "MP-080", "MP-075", "MP-060", "MP-065")
def test_each_operation_asks_for_its_right(remote: DependentWorld) -> None:
    remote.world.create("closed", security=parse_sddl("O:BAG:BAD:(A;;CCLC;;;WD)"))
    client, text = remote.dependent(caller()), r"DIRECT=OS:HOST\private$\closed"
    assert change(client, {108: variant(LPWSTR, "mine")}, text) == ACCESS_DENIED
    assert look(client, {108: NULL}, text).result == ACCESS_DENIED
    assert client.call("delete_object", pObjectFormat=queue_object(text)).result == ACCESS_DENIED
    assert permissions(client, 4, 1000, text).result == ACCESS_DENIED
    assert set_permissions(client, 4, parse_sddl(SDDL).encoded, text) == ACCESS_DENIED
    assert create(remote.dependent(NOBODY)) == ACCESS_DENIED


# ---- properties


@pytest.mark.rule("MP-075", "MP-221")
def test_all_properties_of_a_queue(remote: DependentWorld) -> None:
    client = remote.dependent()
    remote.world.create("all", label="L", quota_kb=7, journaling=True, multicast_address="234.1.1.1:8001")
    queue = remote.world.manager.find("all")
    remote.world.advance(5)
    remote.world.finish(remote.world.manager.set_properties(queue, label="L"))
    text = r"DIRECT=OS:HOST\private$\all"
    asked = dict.fromkeys((*range(101, 114), 124, 125, 126), NULL)
    created = queue.created
    assert queue.modified == created + 5
    assert values(look(client, asked, text)) == [
        (CLSID, queue.guid),
        (CLSID, UUID(int=0)),
        (LPWSTR, r"HOST\private$\all"),
        (UI1, 1),
        (UI4, 7),
        (I2, 0),
        (UI4, 0xFFFFFFFF),
        (LPWSTR, "L"),
        (I4, created),
        (I4, queue.modified),
        (UI1, 0),
        (UI4, 1),
        (UI1, 0),
        (LPWSTR, r"HOST.example.net\private$\all"),
        (LPWSTR, "234.1.1.1:8001"),
        (EMPTY, None),
    ]


@pytest.mark.rule("MP-075", "MP-085")
def test_a_queue_by_any_of_its_names(remote: DependentWorld) -> None:
    client = remote.dependent()
    manager = remote.world.manager
    private = f"PRIVATE={manager.guid}\\{manager.find('orders').private_number:x}"
    for text in (ORDERS, r"DIRECT=TCP:10.0.0.7\private$\orders", private):
        assert values(look(client, {103: LPWSTR}, text)) == [(LPWSTR, r"HOST\private$\orders")]


@pytest.mark.rule("MP-076")
@pytest.mark.parametrize(
    ("asked", "result"),
    [
        ({105: UI4}, 0),
        ({105: NULL}, 0),
        ({105: I4}, PROPERTY),
        ({105: EMPTY}, PROPERTY),
        ({103: LPWSTR, 108: CLSID}, PROPERTY),
        ({115: NULL}, PROPERTY),
    ],
)
def test_the_types_of_what_is_asked(asked: dict[int, int], result: int) -> None:
    assert look(DependentWorld().dependent(), asked).result == result


@pytest.mark.rule("MP-080")
def test_properties_change_and_stay(remote: DependentWorld) -> None:
    client = remote.dependent()
    given = {108: variant(LPWSTR, "new"), 104: variant(UI1, 1), 125: variant(LPWSTR, "234.1.1.1:8001")}
    assert change(client, given) == 0
    assert change(client, {125: variant(EMPTY)}) == 0
    remote.world.crash()
    properties = remote.world.manager.find("orders").properties
    assert (properties.label, properties.journaling, properties.multicast_address) == ("new", True, "")


@pytest.mark.rule("MP-080")
@pytest.mark.parametrize(
    ("given", "result"),
    [
        ({108: variant(LPWSTR, "mine"), 105: variant(I4, 1)}, PROPERTY),
        ({108: variant(LPWSTR, "mine"), 113: variant(UI1, 1)}, PROPERTY_NOTALLOWED),
        ({108: variant(LPWSTR, "mine"), 103: variant(LPWSTR, "x")}, PROPERTY_NOTALLOWED),
        ({108: variant(LPWSTR, "mine"), 111: variant(UI1, 9)}, ILLEGAL_PROPERTY_VALUE),
    ],
)
def test_one_wrong_property_changes_nothing(given: dict[int, Any], result: int) -> None:
    remote = DependentWorld()
    assert change(remote.dependent(), given) == result
    assert remote.world.manager.find("orders").label == ""


# ---- which queue


@pytest.mark.rule("MP-007", "MP-075", "MP-080", "MP-070", "MP-060", "MP-065")
@pytest.mark.parametrize(
    ("text", "result"),
    [
        (r"DIRECT=OS:HOST\private$\nosuch", QUEUE_NOT_FOUND),
        (r"DIRECT=OS:OTHER\private$\orders", QUEUE_NOT_FOUND),
        ("PRIVATE=11111111-2222-3333-4444-555555555555\\1", QUEUE_NOT_FOUND),
        (r"DIRECT=OS:HOST\SYSTEM$;DEADLETTER", UNSUPPORTED_FORMATNAME_OPERATION),
        (r"DIRECT=OS:HOST\private$\orders;journal", UNSUPPORTED_FORMATNAME_OPERATION),
    ],
)
def test_only_private_queues_of_this_computer(text: str, result: int) -> None:
    remote = DependentWorld()
    client = remote.dependent()
    assert look(client, {108: NULL}, text).result == result
    assert change(client, {108: variant(LPWSTR, "x")}, text) == result
    assert client.call("delete_object", pObjectFormat=queue_object(text)).result == result
    found = permissions(client, 4, 1000, text)
    assert (found.result, found.pSecurityDescriptor, found.lpnLengthNeeded) == (result, bytes(1000), 0)
    assert set_permissions(client, 4, parse_sddl(SDDL).encoded, text) == result


@pytest.mark.rule("MP-075")
def test_an_object_without_a_name(remote: DependentWorld) -> None:
    nothing = OBJECT_FORMAT(1, None)
    assert remote.dependent().call("delete_object", pObjectFormat=nothing).result == INVALID_PARAMETER


@pytest.mark.rule("MP-070")
def test_a_queue_is_deleted_for_good(remote: DependentWorld) -> None:
    remote.world.send(b"one")
    assert remote.dependent().call("delete_object", pObjectFormat=queue_object()).result == 0
    remote.world.crash()
    with pytest.raises(Exception, match="QUEUE_NOT_FOUND"):
        remote.world.manager.find("orders")


@pytest.mark.rule("MP-085", "MP-086")
def test_the_format_name_of_a_path(remote: DependentWorld) -> None:
    client = remote.dependent()
    unknown = OBJECT_FORMAT(1, QUEUE_FORMAT(0, 0, 0, None))

    def ask(path: str, given: Any = unknown) -> Any:
        return client.call("object_path_to_object_format", lpwcsPathName=path, pObjectFormat=given)

    for path in (r".\private$\orders", r"HOST\PRIVATE$\Orders", r"host.example.net\private$\orders"):
        found = ask(path)
        assert found.result == 0
        name = name_of(found.pObjectFormat.pQueueFormat)
        assert str(name) == str(remote.world.manager.find("orders").format_name(remote.world.manager.guid))
    assert ask(r".\private$\nosuch").result == QUEUE_NOT_FOUND
    assert ask(r"OTHER\private$\orders").result == ILLEGAL_QUEUE_PATHNAME
    assert ask(r".\private$\orders", OBJECT_FORMAT(1, None)).result == INVALID_PARAMETER
    assert ask(r".\private$\orders", queue_object()).result == INVALID_PARAMETER


# ---- permissions


def permissions(client: Dependent, parts: int, room: int, text: str = ORDERS) -> Any:
    """R_QMGetObjectSecurityInternal."""
    return client.call(
        "get_object_security_internal",
        pObjectFormat=queue_object(text),
        RequestedInformation=parts,
        nLength=room,
    )


def set_permissions(client: Dependent, parts: int, descriptor: bytes | None, text: str = ORDERS) -> int:
    """R_QMSetObjectSecurityInternal; the result."""
    results = client.call(
        "set_object_security_internal",
        pObjectFormat=queue_object(text),
        SecurityInformation=parts,
        SDSize=len(descriptor or b""),
        pSecurityDescriptor=descriptor,
    )
    return int(results.result)


@pytest.mark.rule("MP-065", "MP-066")
def test_the_parts_of_a_descriptor(remote: DependentWorld) -> None:
    client = remote.dependent()
    remote.world.create("mine", security=parse_sddl(SDDL))
    text = r"DIRECT=OS:HOST\private$\mine"
    whole = to_sddl(remote.world.manager.find("mine").security)
    for parts, expected in ((7, whole), (1, whole[: whole.index("G:")]), (4, whole[whole.index("D:") :])):
        found = permissions(client, parts, 1000, text)
        assert found.result == 0
        assert len(found.pSecurityDescriptor) == 1000
        needed = found.lpnLengthNeeded
        assert to_sddl(SecurityDescriptor.from_bytes(found.pSecurityDescriptor[:needed])) == expected
        assert permissions(client, parts, needed, text).result == 0
        small = permissions(client, parts, needed - 1, text)
        assert (small.result, small.lpnLengthNeeded) == (SECURITY_DESCRIPTOR_TOO_SMALL, needed)
        assert small.pSecurityDescriptor == bytes(needed - 1)
        none = permissions(client, parts, 0, text)
        assert (none.result, none.lpnLengthNeeded) == (SECURITY_DESCRIPTOR_TOO_SMALL, needed)


@pytest.mark.rule("MP-060", "MP-065")
@pytest.mark.parametrize("parts", [0, 0x10, 0x80000004])
def test_parts_that_there_are_not(parts: int) -> None:
    client = DependentWorld().dependent()
    assert permissions(client, parts, 1000).result == INVALID_PARAMETER
    assert set_permissions(client, parts, parse_sddl(SDDL).encoded) == INVALID_PARAMETER


@pytest.mark.rule("MP-060")
def test_only_the_parts_that_are_named_change(remote: DependentWorld) -> None:
    client = remote.dependent()
    before = remote.world.manager.find("orders").security
    assert set_permissions(client, 4, parse_sddl(SDDL).encoded) == 0
    remote.world.crash()
    after = remote.world.manager.find("orders").security
    assert (after.owner, after.group) == (before.owner, before.group)
    assert "(A;;CC;;;" in to_sddl(after)


@pytest.mark.rule("MP-060")
@pytest.mark.parametrize(
    ("parts", "descriptor"),
    [(4, b"nonsense"), (4, None), (1, parse_sddl("D:").encoded), (2, parse_sddl("D:").encoded)],
)
def test_a_descriptor_that_lacks_what_is_to_be_set(parts: int, descriptor: bytes | None) -> None:
    remote = DependentWorld()
    before = remote.world.manager.find("orders").security
    assert set_permissions(remote.dependent(), parts, descriptor) == ILLEGAL_SECURITY_DESCRIPTOR
    assert remote.world.manager.find("orders").security is before


@pytest.mark.rule("MP-065")
def test_the_audit_list_is_for_administrators(remote: DependentWorld) -> None:
    remote.world.create("mine", security=parse_sddl(f"O:{ALICE}D:(A;;GA;;;{ALICE})"))
    mine = r"DIRECT=OS:HOST\private$\mine"
    assert permissions(remote.dependent(caller()), 8, 1000, mine).result == PRIVILEGE_NOT_HELD
    audit = "S:(AU;SA;CC;;;WD)"
    remote.world.create("audited", security=parse_sddl(SDDL + audit))
    auditor = replace(ADMIN, token=replace(ADMIN.token, privileges=Privilege.SECURITY))
    found = permissions(remote.dependent(auditor), 8, 1000, r"DIRECT=OS:HOST\private$\audited")
    given = SecurityDescriptor.from_bytes(found.pSecurityDescriptor[: found.lpnLengthNeeded])
    assert to_sddl(given) == audit


# ---- ranges


def _properties(count: int, **values: Any) -> dict[str, Any]:
    return {"cp": count, "aProp": [105] * count, "apVar": [variant(NULL)] * count} | values


def _descriptor(size: int) -> dict[str, Any]:
    return {"SDSize": size, "pSecurityDescriptor": bytes(size)}


@pytest.mark.rule("MP-004")
@pytest.mark.parametrize(
    ("name", "least", "most", "given"),
    [
        ("create_object_internal", 1, 128, lambda count: _properties(count, lpwcsPathName=NEW)),
        ("create_object_internal", 0, 524_288, lambda size: _properties(1) | _descriptor(size)),
        ("set_object_security_internal", 0, 524_288, _descriptor),
        ("get_object_security_internal", 0, 524_288, lambda size: {"nLength": size}),
        ("get_object_properties", 1, 128, _properties),
        ("set_object_properties", 1, 128, _properties),
        ("get_tm_whereabouts", 0, 131_072, lambda size: {"cbBufSize": size}),
        ("enlist_transaction", 0, 131_072, lambda size: {"cbCookie": size, "pbCookie": bytes(size)}),
        (
            "handle_to_format_name",
            0,
            524_288,
            lambda size: {
                "dwFormatNameRPCBufferLen": size,
                "lpwcsFormatName": bytes(2 * size),
                "pdwLength": size,
            },
        ),
    ],
)
def test_a_number_is_within_its_range(
    name: str, least: int, most: int, given: Callable[[int], dict[str, Any]]
) -> None:
    codec = QMCOMM.op(name)
    common = {"pObjectFormat": queue_object(), "pUow": bytes(16), "lpwcsPathName": NEW}
    common = {key: value for key, value in common.items() if key in codec.Args.__slots__}

    def decode(number: int) -> None:
        stub = codec.encode_request(codec.Args(**(common | given(number))), ndr64=False)
        codec.decode_request(stub, ndr64=False)

    for number in (least, most):
        decode(number)
    for number in (least - 1, most + 1):
        if number >= 0:
            with pytest.raises(RpcFault) as fault:
                decode(number)
            assert fault.value.status == RPC_X_BAD_STUB_DATA


@pytest.mark.rule("MP-003")
def test_nothing_of_this_without_dependent_clients() -> None:
    remote = DependentWorld(policy=DependentPolicy(enabled=False))
    client = remote.dependent()
    assert create(client) == ILLEGAL_OPERATION
    assert look(client, {108: NULL}).result == ILLEGAL_OPERATION
    assert change(client, {108: variant(LPWSTR, "x")}) == ILLEGAL_OPERATION
    assert client.call("delete_object", pObjectFormat=queue_object()).result == ILLEGAL_OPERATION
    assert permissions(client, 4, 10).result == ILLEGAL_OPERATION
    assert set_permissions(client, 4, b"x") == ILLEGAL_OPERATION
    unknown = OBJECT_FORMAT(1, QUEUE_FORMAT(0, 0, 0, None))
    path = client.call(
        "object_path_to_object_format", lpwcsPathName=r".\private$\orders", pObjectFormat=unknown
    )
    assert path.result == ILLEGAL_OPERATION
