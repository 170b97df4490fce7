"""A domain controller that is broken, or of which an attacker has taken the place: nothing is told to it that
it could use, and nothing that it says takes endless time or memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.directory.ldap.accounts import Accounts
from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.ldap.interface import SUBTREE
from msmq_fast.directory.results import DirectoryError
from msmq_fast.directory.results import DirectoryOperationResult as Result
from msmq_fast.security.sid import sid
from tests.directory.fakecontroller import FakeController, Reply, done, entry, reference

if TYPE_CHECKING:
    from msmq_fast.directory.ldap.link import LdapLink

pytestmark = [pytest.mark.needs("openssl", modules=("ldap",)), pytest.mark.long(seconds=10)]

PASSWORD = "correct horse battery"  # noqa: S105 - of nobody
PLACE = "CN=msmq,CN=ALPHA,CN=Computers,DC=corp,DC=example"
QUEUE = {"objectClass": [b"mSMQQueue"], "objectGUID": [bytes(range(16))], "mSMQLabelEx": [b"x"]}


def silent(message: Any, searches: int) -> Iterator[bytes]:
    """Every search finds nothing."""
    yield done(int(message["messageID"]))


def asked(message: Any) -> str:
    """The filter of a search as text, more or less."""
    return str(message["protocolOp"]["searchRequest"]["filter"].prettyPrint())


def queues(*found: bytes) -> Reply:
    """The search for queues finds these, every other one nothing."""

    def reply(message: Any, searches: int) -> Iterator[bytes]:
        if "mSMQQueue" in asked(message) and "memberOf" not in asked(message):
            yield from found
        yield done(int(message["messageID"]))

    return reply


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., FakeController]]:
    started: list[FakeController] = []

    def serve(reply: Reply = silent, name: str = "fake", **more: Any) -> FakeController:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        started.append(FakeController(folder, reply, **more))
        return started[-1]

    yield serve
    for one in started:
        one.close()


def link(controller: FakeController, ca_file: Path | None = None, connect_s: float = 5.0) -> LdapLink:
    from msmq_fast.directory.ldap.connecting import LdapSettings
    from msmq_fast.directory.ldap.link import LdapLink

    trusted = ca_file or controller.ca_file
    return LdapLink(LdapSettings([controller.url], "alpha@CORP", PASSWORD, trusted, connect_s=connect_s))


@pytest.mark.parametrize("code", [0, 2, 53])
def test_no_password_without_tls(serve: Callable[..., FakeController], code: int) -> None:
    """The answer to StartTLS is a refusal, or a success that no TLS follows."""

    def stripped(message: Any, searches: int) -> Iterator[bytes]:
        yield done(int(message["messageID"]), 0x78, code)

    controller = serve(stripped, secret=False)
    with pytest.raises(DirectoryError) as refused:
        link(controller, connect_s=1.0).root()
    assert refused.value.result is Result.NOT_CONNECTED
    assert controller.heard[:1] == ["extendedReq"]
    assert "bindRequest" not in controller.heard
    assert PASSWORD.encode() not in controller.raw


def test_a_certificate_of_another_authority(serve: Callable[..., FakeController]) -> None:
    controller, other = serve(), serve(name="other")
    with pytest.raises(DirectoryError) as refused:
        link(controller, other.ca_file).root()
    assert refused.value.result is Result.NOT_CONNECTED
    assert not controller.heard


def test_a_certificate_of_another_host(serve: Callable[..., FakeController]) -> None:
    controller = serve(certified="127.0.0.77")
    with pytest.raises(DirectoryError) as refused:
        link(controller).root()
    assert refused.value.result is Result.NOT_CONNECTED
    assert not controller.heard


def test_nobody_is_asked_elsewhere(serve: Callable[..., FakeController]) -> None:
    foreign = serve(name="foreign", secret=False)

    def referring(message: Any, searches: int) -> Iterator[bytes]:
        number = int(message["messageID"])
        yield reference(number, f"{foreign.url}/DC=corp,DC=example")
        yield done(number, code=10 if searches % 2 else 0, referral=f"{foreign.url}/DC=corp,DC=example")

    found = link(serve(referring))
    assert list(found.search(PLACE, SUBTREE, "(objectClass=mSMQQueue)", ["cn"])) == []
    with pytest.raises(DirectoryError):
        list(found.search(PLACE, SUBTREE, "(objectClass=mSMQQueue)", ["cn"]))
    assert (foreign.connections, foreign.heard) == (0, [])


def pages_without_end(message: Any, searches: int) -> Iterator[bytes]:
    yield done(int(message["messageID"]), cookie=b"more")


def a_page_without_end(message: Any, searches: int) -> Iterator[bytes]:
    number = int(message["messageID"])
    block = entry(number, f"CN=q,{PLACE}", {"cn": [b"q"]}) * 1_000
    while True:
        yield block


@pytest.mark.parametrize("reply", [pages_without_end, a_page_without_end])
def test_a_search_that_does_not_end(serve: Callable[..., FakeController], reply: Reply) -> None:
    found = link(serve(reply))
    began = time.monotonic()
    with pytest.raises(DirectoryError, match="does not end") as refused:
        for _ in found.search(PLACE, SUBTREE, "(objectClass=mSMQQueue)", ["cn"]):
            pass
    assert refused.value.result is Result.NOT_CONNECTED
    assert time.monotonic() - began < 60
    assert found.controllers.states()[0].pause_s > 0


def test_an_entry_with_a_million_values_or_a_huge_descriptor_is_passed_over(
    serve: Callable[..., FakeController],
) -> None:
    def reply(message: Any, searches: int) -> Iterator[bytes]:
        number = int(message["messageID"])
        if "mSMQQueue" in asked(message) and "memberOf" not in asked(message):
            yield entry(number, f"CN=many,{PLACE}", QUEUE | {"memberOf": [b"CN=g,DC=x"] * 1_000_000})
            yield entry(number, f"CN=huge,{PLACE}", QUEUE | {"nTSecurityDescriptor": [bytes(16 << 20)]})
            yield entry(number, f"CN=two\r\nlines,{PLACE}", QUEUE)
            yield entry(number, f"CN=good,{PLACE}", QUEUE)
        yield done(number)

    began = time.monotonic()
    found = Domain(link(serve(reply))).load()
    assert [item["Pathname"] for item in found.objects if item.get("Pathname")] == ["alpha\\good"]
    assert len(found.problems) == 3
    assert "a domain controller returns at most 5000" in found.problems[0]
    assert "cannot have 16777216 bytes" in found.problems[1]
    assert not any(set(line) & set("\r\n") for line in found.problems)
    assert time.monotonic() - began < 60


def test_a_user_in_a_million_groups(serve: Callable[..., FakeController]) -> None:
    """Its groups are not known; those that a server of its own gives do not count (see accepted_groups)."""
    domain = sid("S-1-5-21-1-2-3")
    user = domain.child(1102)

    def reply(message: Any, searches: int) -> Iterator[bytes]:
        number = int(message["messageID"])
        base = bytes(message["protocolOp"]["searchRequest"]["baseObject"])
        if base == b"DC=corp,DC=example" and "sAMAccountName" not in str(message.prettyPrint()):
            yield entry(number, base.decode(), {"objectSid": [domain.data]})
        elif base.startswith(b"CN=Partitions"):
            yield entry(number, base.decode(), {"nETBIOSName": [b"CORP"], "dnsRoot": [b"corp.example"]})
        elif base.startswith(b"<SID="):
            yield entry(number, "CN=u", {"tokenGroups": [domain.child(2_000).data] * 1_000_000})
        else:
            yield entry(number, "CN=u", {"objectSid": [user.data], "sAMAccountName": [b"u"]})
        yield done(number)

    accounts = Accounts(link(serve(reply)))
    with pytest.raises(DirectoryError, match="more than 5000 groups") as refused:
        accounts.logon(user)
    assert refused.value.result is Result.GENERIC_ERROR
