"""Users, their file, and the tokens of those who call."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from msmq_fast._native.crypto import md4
from msmq_fast.security.nthash import nt_hash
from msmq_fast.security.passwords import hash_password, verify_password
from msmq_fast.security.principals import Principals, UnsignedSid
from msmq_fast.security.sid import ADMINISTRATORS, ANONYMOUS, EVERYONE, sid
from msmq_fast.security.token import ANONYMOUS_TOKEN, EVERYONE_TOKEN, Privilege
from msmq_fast.security.users import Users, UsersFileError
from msmq_fast.security.usersfile import UsersSource, load_users, save_users

USE, IGNORE = UnsignedSid.USE, UnsignedSid.ANONYMOUS


def fixed(count: int) -> bytes:
    return bytes(range(1, count + 1))


@pytest.fixture
def users() -> Users:
    users = Users.new(fixed)
    users.add("Alice", uid=1000, groups=("operators",))
    users.add("bob", uid=None, groups=("operators", "administrators"), own_sid=sid("S-1-5-21-7-8-9-1234"))
    users.set_password("alice", "correct horse", fixed)
    return users


@pytest.fixture
def principals(users: Users) -> Principals:
    return Principals(lambda: users, own_uid=500, groups_of=lambda uid: [uid, 27])


# RFC 1320 A.5; the NT hash of "password" is in every book.
@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (b"", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        (b"abc", "a448017aaf21d8525fc10ae87aa6729d"),
        (b"message digest", "d9130a8164549fe818874806e1c7014b"),
        (b"1234567890" * 8, "e33b4ddc9c38f2199c3e7b164fcc0536"),
    ],
)
def test_md4(text: bytes, digest: str) -> None:
    assert md4(text).hex() == digest


def test_secrets(users: Users) -> None:
    assert nt_hash("password").hex() == "8846f7eaee8fb117ad06bdd830b7586c"
    alice = users.find("ALICE")
    assert alice is not None
    assert verify_password("correct horse", alice.password)
    assert not verify_password("correct horsf", alice.password)
    assert "horse" not in alice.password
    assert alice.nt_hash == nt_hash("correct horse")
    assert hash_password("x", b"a" * 16) != hash_password("x", b"b" * 16)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        "scrypt$1$8$1$AA==$AA==",
        "scrypt$16384$8$1$AA==$AAAA",
        "md5$1$1$1$AA==$" + "A" * 44,
        "scrypt$1073741824$64$64$AA==$" + "A" * 44,
    ],
)
def test_a_kept_line_that_is_none(line: str) -> None:
    assert not verify_password("", line)


def test_the_file(tmp_path: Path, users: Users) -> None:
    path = tmp_path / "users.toml"
    save_users(path, users)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_users(path) == users
    assert os.listdir(tmp_path) == ["users.toml"]
    assert "correct horse" not in path.read_text()


def test_names_that_need_quoting(tmp_path: Path) -> None:
    users = Users.new(fixed)
    for name in ('o"hara', "back\\slash", "Jürgen", "a]b=#c"):
        users.add(name, uid=None, groups=())
    save_users(tmp_path / "users.toml", users)
    assert load_users(tmp_path / "users.toml") == users


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("domain = 1", "domain"),
        ("", "domain"),
        ('domain = "S-1-5-21-1"\nnext = 1', "next"),
        ('domain = "S-1-5-21-1"\n[[users]]\nname = "a"', "sid"),
        ('domain = "S-1-5-21-1"\n[[users]]\nname = "a"\nsid = "S-1-5"', "SID"),
        ('domain = "S-1-5-21-1"\n[[users]]\nname = "a"\nsid = "S-1-5-9"\ngroups = ["x"]', "group 'x'"),
        ('domain = "S-1-5-21-1"\n[[users]]\nname = "a"\nsid = "S-1-5-9"\nnt_hash = "00"', "nt_hash"),
        ('domain = "S-1-5-21-1"\n[[users]]\nname = "a"\nsid = "S-1-5-9"\nuid = -1', "uid"),
        ('domain = "S-1-5-21-1"' + '\n[[users]]\nname = "a"\nsid = "S-1-5-9"' * 2, "twice"),
        ("domain = ", "users.toml"),
    ],
)
def test_a_wrong_file_says_so(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "users.toml").write_text(text)
    with pytest.raises(UsersFileError, match=complaint):
        load_users(tmp_path / "users.toml")


def test_changes_to_the_file_are_seen(tmp_path: Path, users: Users) -> None:
    path, errors = tmp_path / "users.toml", []
    source = UsersSource(path, Users.new(fixed), errors.append)
    assert source().users == {}
    save_users(path, users)
    assert source() == users
    users.remove("bob")
    save_users(path, users)
    assert source().find("bob") is None
    path.write_text("nonsense")
    assert source() == users
    assert source() == users
    assert len(errors) == 1
    path.unlink()
    assert source().users == {}


@pytest.mark.parametrize("name", ["alice", "OPERATORS", "everyone", "S-1-5-7", "", " a", "a\n", "x" * 105])
def test_names_that_cannot_be(users: Users, name: str) -> None:
    with pytest.raises(UsersFileError):
        users.add(name, uid=None, groups=())


def test_a_uid_or_sid_belongs_to_one(users: Users) -> None:
    with pytest.raises(UsersFileError, match="uid 1000"):
        users.add("carol", uid=1000, groups=())
    with pytest.raises(UsersFileError, match="bob"):
        users.add("carol", uid=None, groups=(), own_sid=sid("S-1-5-21-7-8-9-1234"))
    assert users.add("carol", uid=None, groups=()).sid != users.add("dave", uid=None, groups=()).sid


@pytest.mark.rule("X-44")
def test_unix_users(principals: Principals, users: Users) -> None:
    stranger = principals.of_unix(1234, "eve")
    assert str(stranger.user) == "S-1-22-1-1234"
    assert {"S-1-22-2-1234", "S-1-22-2-27", "S-1-1-0", "S-1-5-11"} <= set(map(str, stranger.sids))
    assert not stranger.administrator
    assert stranger.privileges is Privilege.NONE
    for uid in (0, 500):
        assert principals.of_unix(uid).administrator
        assert Privilege.TAKE_OWNERSHIP in principals.of_unix(uid).privileges
    alice = principals.of_unix(1000)
    assert alice.user == users.users["alice"].sid
    assert users.group_sid("operators") in alice.sids
    assert not alice.administrator


@pytest.mark.rule("X-44")
def test_programs_with_a_name(principals: Principals, users: Users) -> None:
    assert principals.of_name("BOB").user == sid("S-1-5-21-7-8-9-1234")
    assert principals.of_name("bob").administrator
    billing = principals.of_name("billing")
    assert billing.user == principals.of_name("Billing").user != principals.of_name("billing2").user
    assert not billing.administrator
    assert principals.of_name("billing", ["administrators"]).administrator
    with pytest.raises(UsersFileError):
        principals.of_name("billing", ["nonsense"])


@pytest.mark.rule("X-45")
def test_anonymous_holds_one_sid(principals: Principals) -> None:
    assert ANONYMOUS_TOKEN.sids == {ANONYMOUS}
    assert principals.of_sid(ANONYMOUS) is ANONYMOUS_TOKEN
    for token in (principals.of_unix(1), principals.of_name("x"), principals.of_sid(sid("S-1-5-21-1-1"))):
        assert EVERYONE in token.sids
        assert ANONYMOUS not in token.sids


@pytest.mark.rule("QB-258", "QB-259")
def test_senders(principals: Principals, users: Users) -> None:
    bob = sid("S-1-5-21-7-8-9-1234")
    assert principals.of_sender(0, b"", USE) is ANONYMOUS_TOKEN
    assert principals.of_sender(2, bytes(16), USE) is EVERYONE_TOKEN
    assert principals.of_sender(2, bytes(16), IGNORE) is ANONYMOUS_TOKEN
    assert principals.of_sender(2, bytes(16), IGNORE, verified=True) is EVERYONE_TOKEN
    sender = principals.of_sender(1, bob.data, IGNORE, verified=True)
    assert sender is not None
    # The groups are those of the account, but nobody proved anything: there are no privileges.
    assert sender.sids == {bob, EVERYONE, ADMINISTRATORS, users.group_sid("operators")}
    assert sender.privileges is Privilege.NONE
    stranger = principals.of_sender(1, sid("S-1-5-21-4-4-4-4444").data, USE)
    assert stranger is not None
    assert stranger.sids == {sid("S-1-5-21-4-4-4-4444"), EVERYONE}
    for malformed in (b"", bob.data[:-1], bob.data + b"\0", b"\2" + bob.data[1:]):
        assert principals.of_sender(1, malformed, USE) is None


def test_an_unsigned_sid_can_count_for_nothing(principals: Principals) -> None:
    bob = sid("S-1-5-21-7-8-9-1234")
    assert principals.of_sender(1, bob.data, IGNORE) is ANONYMOUS_TOKEN


@pytest.mark.parametrize(
    "claimed",
    [
        "S-1-1-0",
        "S-1-5-11",
        "S-1-5-18",
        "S-1-5-19",
        "S-1-5-20",
        "S-1-5-32-544",
        "S-1-5-32-545",
        "S-1-22-1-0",
        "S-1-22-2-0",
        "S-1-22-3-1-2-3-4",
        "S-1-22-4-1",
        "S-1-5-21-7-8-9-500",
        "S-1-5-21-7-8-9-512",
        "S-1-5-21-7-8-9",
        "S-1-5-21-7-8-9-1000-1000",
        "S-1-5-21-7-8-9-1234",
        "operators",
    ],
)
def test_a_claim_names_no_group_no_well_known_account_and_no_administrator(
    principals: Principals, users: Users, claimed: str
) -> None:
    account = users.sid_of(claimed)
    assert principals.of_sender(1, account.data, USE) is ANONYMOUS_TOKEN
    proven = principals.of_sender(1, account.data, USE, verified=True)
    assert proven is not None
    assert proven.user == account


def test_a_claim_names_an_ordinary_account_and_its_groups(principals: Principals, users: Users) -> None:
    alice = users.users["alice"].sid
    token = principals.of_sender(1, alice.data, USE)
    assert token is not None
    assert token.sids == {alice, EVERYONE, users.group_sid("operators")}


def test_accounts_by_name(principals: Principals, users: Users) -> None:
    assert principals.of_account("anonymous") is ANONYMOUS_TOKEN
    assert principals.of_account("Everyone") is EVERYONE_TOKEN
    assert principals.of_account("alice").user == users.users["alice"].sid
    assert principals.of_account("uid:77").user == sid("S-1-22-1-77")
    assert principals.of_account("S-1-5-21-4-4-4-4444").user == sid("S-1-5-21-4-4-4-4444")
    with pytest.raises(UsersFileError, match="mallory"):
        principals.of_account("mallory")
