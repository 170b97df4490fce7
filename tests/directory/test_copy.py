"""The copy of a domain: what a complete reading replaces and removes, and objects in little memory."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from msmq_fast.directory.filters import Condition, Operator, equals
from msmq_fast.directory.index import ObjectIndex
from msmq_fast.directory.ldap.compact import Compactor
from msmq_fast.directory.ldap.controllers import LONGEST_PAUSE, Controllers
from msmq_fast.directory.ldap.copy import DomainCopy
from msmq_fast.directory.ldap.saved import SavedCopy
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
    for after in (found[0], found[1_000], UUID(int=found[1_000].int + 1), found[-1]):
        rest = index.search((Condition(IDENTIFIER, Operator.GREATER_THAN, after),))
        assert [item[IDENTIFIER] for item in rest] == [one for one in found if one > after]
    (one,) = index.search((equals("Pathname", "PC\\Q7"),))
    assert one["Pathname"] == "pc\\q7"
    index.put(queue(7).changed({"Pathname": "pc\\renamed"}))
    assert not list(index.search((equals("Pathname", "pc\\q7"),)))
    before = index.search((Condition("Pathname", Operator.GREATER_THAN, "pc\\q8"),))
    index.put(queue(8).changed({"Pathname": "pc\\z"}))
    index.discard(queue(81).identifier or UUID(int=0))
    paths = {item["Pathname"] for item in before}
    assert ("pc\\z" in paths, "pc\\q81" in paths) == (False, True)  # as it was


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


def applied(saved: SavedCopy) -> tuple[list[DirectoryObject], dict[UUID, tuple[str, ...]]]:
    found: dict[UUID, DirectoryObject] = {}
    lists: dict[UUID, tuple[str, ...]] = {}
    for objects, gone, some in saved.load():
        found |= {item[IDENTIFIER]: item for item in objects}
        for identifier in gone:
            found.pop(identifier, None)
        lists |= some
    return sorted(found.values(), key=lambda item: str(item["Pathname"])), lists


def test_a_saved_copy_has_the_last_complete_reading_and_what_came_after(tmp_path: Path) -> None:
    path, source = tmp_path / "domain.copy", ["ldap://dc1"]
    saved = SavedCopy(path, source)
    assert applied(saved) == ([], {})
    saved.append([queue(9)], [])
    assert not path.exists()
    saved.begin()
    saved.add([Compactor().compact(queue(1, "Grüße")), queue(2)])
    lists = {UUID(int=5): ("PUBLIC=x", "DIRECT=y")}
    saved.end(lists)
    assert applied(SavedCopy(path, source)) == ([queue(1, "Grüße"), queue(2)], lists)
    assert path.stat().st_mode & 0o777 == 0o600
    saved.append([queue(3), queue(1, "new")], [UUID(int=2 * 7919)])
    assert applied(SavedCopy(path, source))[0] == [queue(1, "new"), queue(3)]
    saved.begin()
    saved.add([queue(4)])
    saved.abandon()
    assert applied(SavedCopy(path, source))[0] == [queue(1, "new"), queue(3)]
    assert applied(SavedCopy(path, ["ldap://another"])) == ([], {})


def test_what_comes_after_damage_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "domain.copy"
    saved = SavedCopy(path, [])
    saved.begin()
    saved.add([queue(1), queue(2)])
    saved.end({})
    whole = path.read_bytes()
    for size in range(0, len(whole), 13):
        path.write_bytes(whole[:size])
        found, _ = applied(saved)
        assert found == [queue(1), queue(2)][: len(found)]
    path.write_bytes(b"\xc1" + whole)
    assert applied(saved) == ([], {})
