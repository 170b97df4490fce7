"""What a domain controller says about itself, and about the domains of the forest, may be malformed."""

from __future__ import annotations

import pytest

from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.results import DirectoryError
from tests.support.worlds.activedirectory import CONFIGURATION, ActiveDirectory


class _Odd(ActiveDirectory):
    """A controller with one odd attribute of its own."""

    def __init__(self, attribute: str, value: bytes) -> None:
        super().__init__()
        self._odd = {attribute: [value]}

    def root(self) -> Entry:
        return Entry("", {**super().root().attributes, **self._odd})


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("highestcommittedusn", b"many"),
        ("highestcommittedusn", b"9" * 5_000),
        ("dsservicename", b"CN=DC1"),
        ("dsservicename", b"DC1"),
        ("defaultnamingcontext", b"DC=\xff"),
    ],
)
def test_the_reading_fails_with_one_line(attribute: str, value: bytes) -> None:
    with pytest.raises(DirectoryError, match="says about itself is malformed") as caught:
        Domain(_Odd(attribute, value)).load()
    assert len(str(caught.value)) < 1_000
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("attribute", ["systemFlags", "nCName"])
def test_a_malformed_domain_of_the_forest_does_not_stop_the_reading(attribute: str) -> None:
    world = ActiveDirectory()
    world.other_domain("DC=other,DC=example")
    (path,) = [
        entry.path
        for entry in world.search(f"CN=Partitions,{CONFIGURATION}", 2, "(objectClass=crossRef)", ["nCName"])
        if b"DC=other" in (entry.first("nCName") or b"")
    ]
    world.damage(path, attribute, b"\xff")
    assert Domain(world).load().complete
