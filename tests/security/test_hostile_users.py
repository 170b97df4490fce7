"""Any users file is one, or is wrong for a reason of one line: the server reads it while it runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.config.toml_text import toml_text
from msmq_fast.security.users import UsersFileError
from msmq_fast.security.usersfile import load_users, save_users

DOMAIN = "S-1-5-21-1-2-3"
SIDS = st.integers(1000, 1009).map(lambda number: f"{DOMAIN}-{number}")
ODD_SIDS = st.sampled_from((DOMAIN, "S-1-5-32-544", "S-1-", "S-1-5-21-99999999999", "s-1-5-18"))
NAMES = st.sampled_from(("alice", "ALICE", "bob", "carol", "operators", "administrators", " a", "S-1-5-18"))
DIGESTS = st.sampled_from(("ab" * 32, "AB" * 32, "cd" * 32))
BAD_DIGESTS = st.sampled_from(("ab" * 16, "xy" * 32))
SCALARS = (
    SIDS
    | NAMES
    | DIGESTS
    | st.text(max_size=12)
    | st.booleans()
    | st.integers(-(1 << 65), 1 << 65)
    | st.floats()
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3)
KEYS = {
    "": ("domain", "next_rid", "groups", "users", "other"),
    "[[groups]]": ("name", "sid", "other"),
    "[[users]]": ("name", "sid", "uid", "groups", "password", "nt_hash", "tokens", "other"),
}
UNUSUAL = {"": ("groups", "users", "other"), "[[groups]]": ("other",), "[[users]]": ("other",)}
GOOD = {"domain": st.just(DOMAIN), "name": NAMES, "sid": SIDS}
GOOD |= {"groups": st.lists(st.sampled_from(("administrators", "users", "operators")), max_size=2)}
GOOD |= {
    "uid": st.integers(0, 3),
    "tokens": st.lists(DIGESTS, max_size=9),
    "next_rid": st.integers(0, 1 << 33),
}


@st.composite
def tables(draw: st.DrawFn) -> str:
    """A file that has what it needs, and one value in ten of any kind; now and then a key too many."""
    lines = []
    rare = st.integers(0, 9).map(lambda drawn: drawn == 9)
    for header in ("", *draw(st.lists(st.sampled_from(("[[groups]]", "[[users]]")), max_size=5))):
        lines.append(header)
        for key in KEYS[header]:
            needed = key in ("domain", "name", "sid")
            if draw(rare) if needed else not draw(rare if key in UNUSUAL[header] else st.booleans()):
                continue
            value = draw(VALUES if draw(rare) else GOOD.get(key, VALUES))
            lines.append(f"{key} = {toml_text(value)}")
    return "\n".join(lines) + "\n"


def read(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "users.toml"
        file.write_bytes(content)
        try:
            users = load_users(file)
        except UsersFileError as error:
            shown = str(error)
        else:
            shown = ""
            save_users(file, users)
            assert load_users(file) == users
        assert "\n" not in shown


@given(tables())
def test_any_values(text: str) -> None:
    read(text.encode())


@given(st.binary(max_size=60))
def test_any_bytes(content: bytes) -> None:
    read(content)


def test_a_file_that_is_too_large_is_wrong() -> None:
    with pytest.raises(UsersFileError, match="/dev/zero: is larger than 16 MiB"):
        load_users(Path("/dev/zero"))
