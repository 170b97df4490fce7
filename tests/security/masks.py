"""Accounts and access masks."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.security.oracle import Entry, Object

DOMAIN = "S-1-5-21-1-2-3"
ALICE, BOB, STAFF = f"{DOMAIN}-1000", f"{DOMAIN}-1001", f"{DOMAIN}-1100"
WORLD, ANON, AUTH, ADMINS, OWNER = "S-1-1-0", "S-1-5-7", "S-1-5-11", "S-1-5-32-544", "S-1-3-4"
SIDS = [ALICE, BOB, STAFF, WORLD, ANON, AUTH, ADMINS, OWNER, "S-1-5-10", "S-1-5-18"]
BITS = [1, 2, 4, 8, 0x10, 0x20, 0x10000, 0x20000, 0x40000, 0x80000, 0x80000000, 0x40000000, 0x10000000]
masks = st.lists(st.sampled_from(BITS), max_size=5).map(lambda bits: sum(set(bits)))
entries = st.builds(
    Entry,
    kind=st.sampled_from(("A", "D")),
    mask=masks,
    sid=st.sampled_from(SIDS),
    inherit_only=st.sampled_from((False, False, False, True)),
)
object_entries = st.builds(
    Entry,
    kind=st.sampled_from(("OA", "OD")),
    mask=masks,
    sid=st.sampled_from(SIDS),
    guid=st.sampled_from(("", "00000000-0000-0000-0000-000000000001")),
)
objects = st.builds(
    Object,
    owner=st.sampled_from(SIDS),
    entries=st.none() | st.lists(entries | object_entries, max_size=8).map(tuple),
)
