"""The directory as a JSON document."""

from __future__ import annotations

import json

import pytest

from msmq_fast.directory.document import Outcome, document_of, entry_of, put, read_document
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError
from tests.directory.samples import SAMPLES
from tests.support.worlds.directories import OTHER, Events, World, everything, queue, site


def filled() -> World:
    world = World()
    for kind, values in SAMPLES.items():
        world.finish(world.directory.create(DirectoryObject(kind, values)))
    return world


def all_of(world: World) -> list[DirectoryObject]:
    return [item for kind in ObjectType for item in everything(world.directory, kind)]


def imported(world: World, document: object) -> list[Outcome]:
    items, mistakes = read_document(json.loads(json.dumps(document)))
    assert mistakes == []
    events = Events(world.directory).events
    return [world.finish(put(events, item)) for item in items]


def test_everything_goes_out_and_comes_back() -> None:
    first, second = filled(), World()
    document = document_of(all_of(first))
    assert imported(second, document) == [Outcome.CREATED] * len(ObjectType)
    assert all_of(second) == all_of(first)
    second.now += 100
    assert imported(second, document) == [Outcome.UNCHANGED] * len(ObjectType)


def test_an_import_corrects_what_differs() -> None:
    world = filled()
    document = document_of(all_of(world))
    (stored,) = world.objects()
    world.finish(world.directory.write(stored.changed({"Label": "other", "Quota": 3})))
    outcomes = imported(world, document)
    assert sorted(outcomes) == [Outcome.CHANGED] + [Outcome.UNCHANGED] * (len(ObjectType) - 1)
    assert world.objects()[0]["Label"] == "Ö"


def test_objects_without_identifier_are_found_by_their_key() -> None:
    world = World()
    link = entry_of(DirectoryObject(ObjectType.ROUTING_LINK, SAMPLES[ObjectType.ROUTING_LINK]))
    entries = [
        {"object": "Site", "Name": "north"},
        link,
        link | {"Site1Identifier": str(OTHER), "ActualCost": 9},
        {"object": "queue", "Pathname": r"BETA\q", "PrivacyLevel": "Body"},
    ]
    document = {"msmq_fast_directory": 1, "objects": entries}
    assert imported(world, document) == [Outcome.CREATED] * 4
    assert imported(world, document) == [Outcome.UNCHANGED] * 4
    assert world.objects()[0]["PrivacyLevel"] == 2


def test_some_types_only() -> None:
    document = document_of(all_of(filled()))
    items, mistakes = read_document(document, [ObjectType.SITE, ObjectType.USER])
    assert [item.kind for item in items] == [ObjectType.SITE, ObjectType.USER]
    assert mistakes == []


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ("text", "objects[0]: expected a JSON object with the attributes of a directory object"),
        ({"Name": "x"}, 'objects[0]: "object": expected one of QueueManager, Queue,'),
        ({"object": "Site"}, "objects[0]: Name: required for a Site without an Identifier"),
        ({"object": "Site", "Name": "x", "Nmae": "y"}, "objects[0]: a Site has no attribute 'Nmae'"),
        ({"object": "Site", "Name": 5}, "objects[0]: Name: expected text, got 5"),
        (
            {"object": "Site", "Name": "x", "Identifier": "5"},
            'objects[0]: Identifier: expected a GUID, got "5"',
        ),
        ({"object": "Site", "Name": "x", "Security": "%"}, 'Security: expected bytes in base64, got "%"'),
        ({"object": "User", "SecurityIdentifier": "S-1"}, "SecurityIdentifier: expected a SID such as"),
        (
            {"object": "Queue", "Pathname": "a\\b", "PrivacyLevel": "Full"},
            "expected one of None, Optional, Body",
        ),
        ({"object": "Queue", "Pathname": "a\\b", "Quota": 2**32}, "whole number from 0 to 4294967295"),
        (
            {"object": "Queue", "Pathname": "a\\b", "Journaling": 1},
            "Journaling: expected true or false, got 1",
        ),
        (
            {"object": "User", "SecurityIdentifier": "S-1-5-7", "CertificateDigestList": ["AAAA"]},
            "CertificateDigestList: expected an MD5 digest of 16 bytes",
        ),
        (
            {"object": "QueueManager", "ComputerName": "a", "SiteIdentifierList": "x"},
            "SiteIdentifierList: expected a list, each a GUID",
        ),
    ],
)
def test_each_mistake_has_its_line(entry: object, line: str) -> None:
    items, mistakes = read_document({"msmq_fast_directory": 1, "objects": [entry, {"object": "Enterprise"}]})
    assert [item.kind for item in items] == [ObjectType.ENTERPRISE]
    assert len(mistakes) == 1
    assert line in mistakes[0]


@pytest.mark.parametrize("document", [None, [], {}, {"msmq_fast_directory": 2, "objects": []}])
def test_what_is_no_document(document: object) -> None:
    assert read_document(document)[1] == [
        'this is not a directory document: expected the first key "msmq_fast_directory": 1'
    ]
    assert read_document({"msmq_fast_directory": 1})[1] == ['"objects": expected a list']


def test_one_identifier_twice() -> None:
    entry = entry_of(site("a", Identifier=OTHER))
    _, mistakes = read_document({"msmq_fast_directory": 1, "objects": [entry, entry]})
    assert mistakes == ["objects[1]: objects[0] has the same Identifier"]


def test_what_never_changes_is_refused_in_words() -> None:
    world = World()
    identifier = world.finish(world.directory.create(queue(r"BETA\q", Transactional=False)))
    events = Events(world.directory).events
    done = put(events, queue(r"BETA\q", Identifier=identifier, Transactional=True))
    with pytest.raises(
        DirectoryError, match="Transactional of an existing Queue cannot be changed: it is False"
    ):
        world.finish(done)
