"""Names and filters for Active Directory: no value breaks out of its place, and every name is read back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.directory.ldap import names

PLACE = "CN=msmq,CN=BETA,CN=Computers,DC=corp,DC=example"
HOSTILE = st.text(st.sampled_from('ab ,+"\\<>;=#*()|&!\0\n/é𝄞%'), max_size=12) | st.text(max_size=40)


@given(HOSTILE)
def test_a_value_stays_one_part_of_a_name(name: str) -> None:
    path = names.child(name, PLACE)
    assert names.parts(path) == [name, "msmq", "BETA", "Computers", "corp", "example"]
    assert names.parent(path) == PLACE


@given(HOSTILE)
def test_a_value_stays_one_value_of_a_filter(value: str) -> None:
    found = re.fullmatch(r"\(cn=([^*()\0]*)\)", names.is_equal("cn", value), re.DOTALL)
    assert found is not None
    plain = re.sub(rb"\\([0-9a-f]{2})", lambda code: bytes.fromhex(code[1].decode()), found[1].encode())
    assert plain.decode() == value


@given(st.binary(max_size=40))
def test_octets_are_written_as_hexadecimal_digits(value: bytes) -> None:
    text = names.is_equal("objectGUID", value)
    assert bytes.fromhex(text.removeprefix("(objectGUID=").removesuffix(")").replace("\\", "")) == value
    assert text.count("\\") == len(value)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("CN=a, CN=b,DC=c", ["a", "b", "c"]),  # as MS-MQDSSM 2.2.1 writes them
        ("CN=q\\0ADEL:1,DC=c", ["q\nDEL:1", "c"]),
        ("CN=Gr\\C3\\BC\\C3\\9Fe,DC=c", ["Grüße", "c"]),
        ("CN=a+OU=b,DC=c", ["a", "c"]),
        ("CN=a=b,DC=c", ["a=b", "c"]),
    ],
)
def test_names_that_others_wrote(path: str, parts: list[str]) -> None:
    assert names.parts(path) == parts


@pytest.mark.parametrize("path", ["", "x", "CN", "=a", "CN=a,", 'CN=a"b', "CN=a\\", '"CN=a"', "CN=\\ff"])
def test_what_is_no_name_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a distinguished name"):
        names.parts(path)
