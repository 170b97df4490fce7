"""Uploaded rows: the queue of each, its transaction, and the identifiers of replays."""

from __future__ import annotations

import pyarrow as pa
import pytest

from msmq_fast._native.stagecodec import REPLAY_TAG
from msmq_fast.packet import Message
from msmq_fast.packet.user import TransactionHeader
from msmq_fast.protocol.errors import MSMQError
from tests.bulk.uploads import ORIGINAL, REMOTE, Uploads, stream, uploads, workers, world
from tests.support.worlds.queue_manager import World
from tests.support.worlds.stages import publish

__all__ = ["uploads", "workers", "world"]


def test_each_row_goes_to_its_queue_and_is_what_that_takes(uploads: Uploads) -> None:
    world = uploads.world
    names = [r".\private$\plain", "exact", REMOTE, None, r"DIRECT=OS:host\private$\exact"]
    table = pa.table({"body": [b"0", b"1", b"2", b"3", b"4"], "queue": names, "priority": [7] * 5})
    staged = uploads.stage(stream(table), queue="plain")
    publish(world, stages=[staged.stage])
    assert world.bodies("plain") == [b"0", b"3"]
    assert world.bodies("exact") == [b"1", b"4"]
    far = [Message.from_packet(packet) for packet in packets(world, REMOTE)]
    assert [message.body for message in far] == [b"2"]
    assert isinstance(far[0].transaction, TransactionHeader)
    assert world.manager.find(REMOTE).core.sequence.next_number == 2


def packets(world: World, name: str) -> list[bytes]:
    found: list[bytes] = []
    core = world.manager.find(name).core
    for key in core.positions.keys():  # noqa: SIM118 - no mapping
        core.peek(key, lambda message, _status: found.append(message.packet))
        world.store.reader.complete()
    return found


def test_what_goes_elsewhere_is_transactional_unless_told_otherwise(uploads: Uploads) -> None:
    message = uploads.one({"body": [b"1"], "priority": [6]}, REMOTE, transactional="false")
    assert (message.transaction, message.priority) == (None, 6)


def test_a_stage_may_be_one_transaction(uploads: Uploads) -> None:
    found = uploads.messages({"body": [b"%d" % n for n in range(5000)]}, "exact", transaction="stage")
    headers = [message.transaction for message in found]
    assert [header.first for header in headers if header] == [True] + [False] * 4999
    assert [header.last for header in headers if header] == [False] * 4999 + [True]
    assert len({header.transaction_id for header in headers if header}) == 1


# ---- replays


def test_the_identifier_of_an_original_is_noted_once(uploads: Uploads) -> None:
    columns = {"body": [b"1", b"2"], "message_id": [ORIGINAL, None], "extension": [b"own", None]}
    first, second = uploads.messages(columns)
    assert first.extension == b"own" + REPLAY_TAG + ORIGINAL.encode()
    assert second.extension == b""
    assert first.source_machine == uploads.world.manager.guid
    again = uploads.one({"body": [b"1"], "message_id": [ORIGINAL[:-1] + "8"], "extension": [first.extension]})
    assert again.extension == first.extension
    assert uploads.one(
        columns | {"body": [b"1"], "message_id": [ORIGINAL], "extension": [b"x"]}, message_id="ignore"
    )


def test_the_identifier_of_an_original_is_kept_if_that_is_asked_for(uploads: Uploads) -> None:
    message = uploads.one({"body": [b"1"], "message_id": [ORIGINAL]}, message_id="keep")
    assert f"{{{message.source_machine}}}\\{message.message_id}" == ORIGINAL
    assert message.extension == b""
    uploads.world.crash()
    with pytest.raises(MSMQError, match="row 0: a message for another computer cannot keep"):
        uploads.one({"body": [b"1"], "message_id": [ORIGINAL]}, REMOTE, message_id="keep")
