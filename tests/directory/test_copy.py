"""The copy of a domain: what a complete reading replaces and removes, and objects in little memory."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.directory.filters import Condition, Operator, equals
from msmq_fast.directory.index import ObjectIndex
from msmq_fast.directory.ldap.compact import Compactor
from msmq_fast.directory.ldap.controllers import LONGEST_PAUSE, Controllers
from msmq_fast.directory.ldap.copy import DomainCopy
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType


def queue(number: int, label: str = "") -> DirectoryObject:
    path = f"CN=q{number},CN=msmq,CN=PC,DC=corp,DC=example"
    values = {
        IDENTIFIER: UUID(int=number * 7919 % 1_000_003),
        "Pathname": f"pc\\q{number}",
        "FullPath": path,
        "DirectoryPath": f"LDAP://{path}",
        "Label": label,
        "Security": bytes(100),
    }
    return DirectoryObject(ObjectType.QUEUE, values)


def numbers(copy: DomainCopy) -> list[str]:
    return sorted(str(item["Pathname"]) for item in copy.search(ObjectType.QUEUE, ()))


def test_a_complete_reading_removes_what_it_has_not_found() -> None:
    copy = DomainCopy()
    copy.begin()
    for number in (1, 2, 3):
        copy.put(queue(number))
    copy.end(complete=False)
    assert (copy.filled, copy.count(ObjectType.QUEUE)) == (False, 3)
    copy.begin()
    copy.put(queue(2, "new"))
    copy.put(queue(4))
    assert numbers(copy) == ["pc\\q1", "pc\\q2", "pc\\q3", "pc\\q4"]  # used meanwhile
    copy.end(complete=True)
    assert (copy.filled, numbers(copy)) == (True, ["pc\\q2", "pc\\q4"])
    assert copy.take_changed() == {ObjectType.QUEUE}
    copy.begin()
    copy.put(queue(2, "new"))
    copy.end(complete=False)
    assert copy.take_changed() == set()


def test_a_compact_object_is_equal_and_shares_what_repeats() -> None:
    compactor = Compactor()
    first, second = (compactor.compact(queue(number, "x")) for number in (1, 2))
    assert first == queue(1, "x")
    assert first != queue(1, "y")
    assert first["Security"] is second["Security"]
    assert first["DirectoryPath"] == f"LDAP://{first['FullPath']}"
    assert first.get("Quota") is None
    assert first.changed({"Label": "z"}) == queue(1, "z")
    assert first.to_json() == queue(1, "x").to_json()
    odd = queue(3).changed({"DirectoryPath": "LDAP://elsewhere"})
    assert compactor.compact(odd) == odd


def test_an_index_of_many_objects_stays_in_order() -> None:
    index = ObjectIndex(ObjectType.QUEUE)
    for number in range(2_500):
        index.put(queue(number, "even" if number % 2 == 0 else "odd"))
    for number in range(0, 2_500, 5):
        index.discard(queue(number).identifier or UUID(int=0))
    found = [item[IDENTIFIER] for item in index.search(())]
    assert (len(found), found) == (2_000, sorted(found))
    odd = list(index.search((Condition("Label", Operator.EQUALS, "odd"),)))
    assert len(odd) == 1_000
    (one,) = index.search((equals("Pathname", "PC\\Q7"),))
    assert one["Pathname"] == "pc\\q7"
    index.put(queue(7).changed({"Pathname": "pc\\renamed"}))
    assert not list(index.search((equals("Pathname", "pc\\q7"),)))


def test_controllers_are_left_alone_for_longer_and_longer() -> None:
    now = [0.0]
    known = Controllers(("ldap://a", "ldap://b"), monotonic=lambda: now[0], uniform=lambda _low, high: high)
    assert known.candidates() == ["ldap://a", "ldap://b"]
    known.failed("ldap://a", "it hangs")
    known.answered("ldap://b")
    assert (known.candidates(), known.current, known.better) == (["ldap://b"], "ldap://b", False)
    pauses = []
    for _ in range(8):
        pauses.append(known.states()[0].pause_s)
        now[0] += pauses[-1]
        assert known.better
        known.failed("ldap://a", "it hangs")
    assert pauses == [1, 2, 4, 8, 16, *[LONGEST_PAUSE] * 3]
    known.failed("ldap://b", "it is off")
    assert (known.candidates(), known.current, known.next_try()) == ([], "", 1.0)
    assert known.explain() == "ldap://a: it hangs; ldap://b: it is off (next attempt in 1 s)"
    now[0] += 1
    assert known.candidates() == ["ldap://b"]
