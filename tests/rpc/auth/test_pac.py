"""SIDs of Kerberos callers: what a PAC says is read, what is forged or malformed is refused. impacket writes
the PACs and the tickets; no key distribution centre is asked.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType, SecurityContext
from msmq_fast.rpc.auth.initiators import Credentials, initiate
from msmq_fast.rpc.auth.mechanism import AuthCounters
from msmq_fast.rpc.auth.pac import PacError, logon_of
from msmq_fast.security.principals import Principals, SenderType, UnsignedSid
from msmq_fast.security.sid import sid
from msmq_fast.security.token import Token
from msmq_fast.security.users import Users
from tests.support.domainaccounts import DOMAIN, WrittenAccounts
from tests.support.rpc.mutations import mutate
from tests.support.rpc.parties import NOW, acceptors, counting, shake_hands
from tests.support.rpc.tickets import DOMAIN_SID, REALM, SERVICE, Domain, Logon

with_tickets = [pytest.mark.needs(modules=["gssapi", "impacket"]), pytest.mark.long(seconds=1)]


def rids(numbers: list[int], domain: str = DOMAIN_SID) -> set[str]:
    return {f"{domain}-{number}" for number in numbers}


# ---- the structure


@settings(max_examples=30, deadline=None)
@given(
    user=st.text(
        st.characters(codec="utf-16-le", max_codepoint=0xFFFF, exclude_characters="\0"), max_size=20
    ),
    groups=st.lists(st.integers(0, 2**32 - 1), max_size=20),
    extra=st.lists(st.sampled_from(["S-1-18-1", "S-1-5-21-7-8-9-1500", "S-1-5-32-544"]), max_size=3),
    resources=st.lists(st.integers(0, 2**32 - 1), max_size=5),
)
def test_what_impacket_writes_is_read(
    user: str, groups: list[int], extra: list[str], resources: list[int]
) -> None:
    given = Logon(user=user, groups=groups, extra=extra)
    if resources:
        given.resource_domain, given.resource_groups = "S-1-5-21-4-5-6", resources
    found = logon_of(given.encoded())
    assert (str(found.user), str(found.domain)) == (f"{DOMAIN_SID}-1102", DOMAIN_SID)
    assert found.name == (f"CORP\\{user}" if user.isprintable() else ascii(f"CORP\\{user}"))
    wanted = rids([*groups, 513]) | set(extra) | rids(resources, "S-1-5-21-4-5-6")
    assert {str(one) for one in found.groups} == wanted
    assert found.primary_group == DOMAIN.child(513)


GOOD = Logon(extra=["S-1-18-1"], resource_domain="S-1-5-21-4-5-6", resource_groups=[1200]).encoded()


@settings(max_examples=300, deadline=None)
@example(seed=0)
@given(seed=st.integers(0, 2**32))
def test_mutated_octets_are_read_or_refused(seed: int) -> None:
    """A log-on or one clear error; memory in proportion to the octets."""
    random = Random(seed)
    data = mutate(GOOD, random)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        try:
            found = logon_of(data)
        except PacError as error:
            assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
        else:
            assert found.name.isprintable()
        assert tracemalloc.get_traced_memory()[1] - before < 50_000 + 100 * len(data)
    finally:
        tracemalloc.stop()


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=600))
def test_any_octets_are_refused(data: bytes) -> None:
    with pytest.raises(PacError):
        logon_of(data)
    with pytest.raises(PacError):
        logon_of(GOOD[:16] + data)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: b"", "has 0 bytes; 16 to 65535 are allowed"),
        (lambda: GOOD + bytes(70_000), "are allowed"),
        (lambda: b"\2" + GOOD[1:], "does not begin with the header"),
        (lambda: GOOD[:1] + b"\0" + GOOD[2:], "does not begin with the header"),
        (lambda: GOOD[:-8], "names"),
        (lambda: GOOD[:16] + bytes(4), "names"),
        (lambda: Logon(groups=list(range(3_000))).encoded(), "range"),
    ],
)
def test_what_is_wrong_is_named(wrong: Callable[[], bytes], words: str) -> None:
    with pytest.raises(PacError, match=words):
        logon_of(wrong())


# ---- which groups count


def token_of(logon: Logon, users: Users) -> Token:
    principals = Principals(lambda: users, own_uid=0, domain=WrittenAccounts())
    return principals.of_domain_user(f"alice@{REALM}", REALM, logon_of(logon.encoded()))


def test_groups_of_this_computer_are_not_the_domains_to_give() -> None:
    """Administrators, our Readers, and the SIDs of the users file; well-known groups of other domains."""
    users = Users.new(counting())
    users.add("operator", uid=None, groups=["operators"])
    foreign = ["S-1-5-21-7-8-9-512", "S-1-5-32-544", "S-1-22-4-1", "S-1-5-18", "S-1-1-0"]
    local = [str(users.group_sid("operators")), str(users.sid_of("operator"))]
    kept = ["S-1-5-21-7-8-9-1500", "S-1-18-1", f"{DOMAIN_SID}-512"]
    token = token_of(Logon(extra=foreign + local + kept), users)
    found = {str(one) for one in token.sids}
    assert found >= set(kept) | rids([1102, 1103, 513])
    assert not found & ({*foreign, *local} - {"S-1-1-0"})
    assert not token.administrator
    assert not token.reader
    assert (token.name, str(token.user)) == ("CORP\\alice", f"{DOMAIN_SID}-1102")


def test_an_account_of_the_users_file_keeps_its_rights() -> None:
    users = Users.new(counting())
    users.add("alice", uid=None, groups=["administrators"])
    token = token_of(Logon(), users)
    assert token.administrator
    assert users.sid_of("alice") in token.sids
    assert token.user == DOMAIN.child(1102)


# ---- tickets


@pytest.fixture
def domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Domain:
    made = Domain(tmp_path)
    monkeypatch.setenv("KRB5_CONFIG", str(made.config))
    return made


def log_on(
    domain: Domain,
    pac: bytes | None,
    monkeypatch: pytest.MonkeyPatch,
    accounts: WrittenAccounts | None,
    auth_type: AuthType = AuthType.KERBEROS,
    user: str = "alice",
) -> SecurityContext:
    """Log on with a ticket; returns the server's side."""
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{domain.ticket(pac, user)}")
    server = acceptors(Users.new(counting()), keytab=domain.keytab, domain=accounts)
    context = server.accept(auth_type, AuthLevel.PRIVACY, "")
    client = initiate(
        auth_type, AuthLevel.PRIVACY, SERVICE, Credentials(kerberos=True), AuthCounters(), lambda: NOW,
        counting(3),
    )  # fmt: skip
    shake_hands(client, context)
    return context


class TestTickets:
    pytestmark = with_tickets

    @pytest.mark.parametrize("auth_type", [AuthType.KERBEROS, AuthType.SPNEGO])
    def test_the_groups_of_the_caller_are_in_its_token(
        self, domain: Domain, monkeypatch: pytest.MonkeyPatch, auth_type: AuthType
    ) -> None:
        caller = log_on(domain, domain.pac(Logon()), monkeypatch, WrittenAccounts(), auth_type).caller
        assert caller.name == f"alice@{REALM}"
        assert caller.token.name == "CORP\\alice"
        assert {str(one) for one in caller.token.sids} >= rids([1102, 1103, 513])

    def test_a_caller_in_1000_groups(self, domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
        groups = list(range(2000, 3000))
        caller = log_on(domain, domain.pac(Logon(groups=groups)), monkeypatch, WrittenAccounts()).caller
        assert {str(one) for one in caller.token.sids} >= rids(groups)

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ("stripped", "no PAC"),
            ("signed with another key", "wrong signature"),
            ("a group added", "wrong signature"),
            ("of another user", "another user"),
            ("foreign domain", "which is not this server's"),
            ("no octets", "Kerberos"),
            ("garbage", "Kerberos"),
            ("domain not known", "the SID of the domain is not known"),
        ],
    )
    def test_other_tickets_are_refused(
        self, domain: Domain, monkeypatch: pytest.MonkeyPatch, wrong: str, words: str
    ) -> None:
        accounts = WrittenAccounts(known=wrong != "domain not known")
        pac: bytes | None = domain.pac(Logon())
        assert pac is not None
        match wrong:
            case "stripped":
                pac = None
            case "signed with another key":
                pac = domain.pac(Logon(), key=bytes(32))
            case "a group added":
                before, after = (1103).to_bytes(4, "little"), (512).to_bytes(4, "little")
                assert pac.count(before) == 1
                pac = pac.replace(before, after)
            case "of another user":
                pac = domain.pac(Logon(), client="bob")
            case "foreign domain":
                pac = domain.pac(Logon(domain="OTHER", domain_sid="S-1-5-21-7-8-9"))
            case "no octets":
                pac = b""
            case "garbage":
                pac = bytes(range(256))
        with pytest.raises(AuthError, match=words) as refused:
            log_on(domain, pac, monkeypatch, accounts)
        assert refused.value.failure is AuthFailure.LOGON
        assert "\n" not in str(refused.value)

    def test_a_server_without_domain_does_not_look_at_it(
        self, domain: Domain, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for pac in (None, domain.pac(Logon()), domain.pac(Logon(), key=bytes(32))):
            caller = log_on(domain, pac, monkeypatch, None).caller
            assert caller.token.name == f"alice@{REALM}"
            assert not {str(one) for one in caller.token.sids} & rids([1102, 1103, 513])


def test_a_claimed_group_is_not_a_sender() -> None:
    """The SID of a message is no proof of anything: not of a group of the domain either."""
    accounts = Users.new(counting())
    principals = Principals(
        lambda: accounts, own_uid=0, domain=WrittenAccounts({1103: "Sales", 1102: "alice"})
    )
    for rid, anonymous in ((1103, True), (1102, False)):
        token = principals.of_sender(SenderType.SID, DOMAIN.child(rid).data, UnsignedSid.USE)
        assert token is not None
        assert (token.user == sid("S-1-5-7")) == anonymous
