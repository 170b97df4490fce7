"""Arrow streams into stages: every column, its types and defaults, and streams cut anywhere."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.columns import MESSAGE_COLUMNS
from msmq_fast.qm.settings import QueueManagerSettings
from tests.bulk.uploads import Uploads, stream, uploads, workers, world
from tests.support.worlds.stages import publish

__all__ = ["uploads", "workers", "world"]
INFINITE = 0xFFFFFFFF


def test_every_column_becomes_what_it_says(uploads: Uploads) -> None:
    message = uploads.one(
        {
            "body": [b"payload"],
            "queue": ["plain"],
            "label": ["ünïcödé 😀"],
            "priority": pa.array([6], pa.int8()),
            "correlation_id": [bytes(range(20))],
            "app_specific": [0xFFFFFFFF],
            "body_type": pa.array([0x2011], pa.int32()),
            "extension": [b"ext"],
            "time_to_reach_queue": [70],
            "time_to_be_received": [80],
            "delivery": pa.array([1], pa.int8()),
            "acknowledge": pa.array([15], pa.uint8()),
            "journal": [3],
            "admin_queue": [r"DIRECT=OS:HOST\private$\admin"],
            "response_queue": [r"PUBLIC=6b29fc40-ca47-1067-b31d-00dd010662da"],
        }
    )
    assert message.body == b"payload"
    assert message.label == "ünïcödé 😀"
    assert (message.priority, message.delivery) == (6, 1)
    assert message.correlation_id == bytes(range(20))
    assert (message.app_specific, message.body_type, message.extension) == (0xFFFFFFFF, 0x2011, b"ext")
    assert (message.time_to_reach_queue, message.time_to_be_received) == (70, 80)
    assert (int(message.acknowledge), int(message.journal)) == (15, 3)
    assert message.admin_queue == parse_format_name(r"DIRECT=OS:HOST\private$\admin")
    assert message.response_queue == parse_format_name("PUBLIC=6b29fc40-ca47-1067-b31d-00dd010662da")
    assert message.source_machine == uploads.world.manager.guid
    assert message.sent_time == uploads.world.manager.ledger.now_s
    assert message.destination == parse_format_name(r"DIRECT=OS:HOST\private$\plain")


def test_columns_and_defaults_with_old_names_are_understood(uploads: Uploads) -> None:
    answers, admin = r"DIRECT=OS:HOST\private$\answers", r"DIRECT=OS:HOST\private$\admin"
    rows = {"body": [b"payload"], "ttrq_seconds": [70], "resp_format_name": [answers]}
    (message,) = uploads.messages(rows, ttbr_seconds="80", acknowledge="1", admin_format_name=admin)
    assert (message.time_to_reach_queue, message.time_to_be_received) == (70, 80)
    assert message.response_queue == parse_format_name(answers)
    assert message.admin_queue == parse_format_name(admin)


def test_what_is_missing_or_null_is_as_the_query_says_else_as_a_local_send(uploads: Uploads) -> None:
    nothing = uploads.one({"body": pa.array([None], pa.binary()), "label": pa.nulls(1), "priority": [None]})
    assert (nothing.body, nothing.body_type, nothing.label) == (b"", 0, "")
    assert (nothing.priority, nothing.delivery, int(nothing.acknowledge), int(nothing.journal)) == (
        3,
        1,
        0,
        0,
    )
    assert nothing.time_to_reach_queue == QueueManagerSettings("x").long_lived
    assert nothing.time_to_be_received == INFINITE
    assert (nothing.app_specific, nothing.extension, nothing.correlation_id) == (0, b"", bytes(20))
    words = {
        "label": "from the query",
        "priority": "5",
        "delivery": "0",
        "journal": "1",
        "app_specific": "9",
        "body_type": "30",
        "time_to_reach_queue": "7",
        "time_to_be_received": "8",
        "acknowledge": "1",
        "admin_queue": r"DIRECT=OS:HOST\private$\admin",
        "response_queue": r".\private$\answers",
    }
    first, second = uploads.messages(
        {"body": [b"1", b"2"], "label": [None, "own"], "priority": pa.array([None, 5], pa.int16())}, **words
    )
    assert (first.label, second.label) == ("from the query", "own")
    for message in (first, second):
        assert (message.priority, message.delivery, int(message.journal), message.app_specific) == (
            5,
            0,
            1,
            9,
        )
        assert (message.body_type, message.time_to_reach_queue, message.time_to_be_received) == (30, 7, 8)
        assert message.response_queue == parse_format_name(r"DIRECT=OS:HOST\private$\answers")


@pytest.mark.parametrize(
    ("body_type", "kind", "body"),
    [(None, 31, "utf-16-le"), (31, 31, "utf-16-le"), (8, 8, "utf-16-le"), (30, 30, "utf-8"), (0, 0, "utf-8")],
)
def test_text_is_written_as_its_type_wants(
    uploads: Uploads, body_type: int | None, kind: int, body: str
) -> None:
    text = "grüße, 世界 😀\0"
    columns: dict[str, Any] = {"body": [text]}
    if body_type is not None:
        columns["body_type"] = [body_type]
    message = uploads.one(columns)
    assert (message.body_type, message.body) == (kind, text.encode(body))


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_types_that_say_the_same_are_taken(uploads: Uploads, kind: pa.DataType) -> None:
    found = uploads.messages(
        {
            "body": pa.array([b"1", b"2", b"3"], pa.large_binary()),
            "label": pa.array(["a", "b", "a"]).cast(kind),
            "queue": pa.array(["plain", "plain", None]).cast(kind),
            "priority": pa.array([3, 3, 3], pa.uint64()),
            "correlation_id": pa.array([bytes(20)] * 3, pa.binary(20)),
        }
    )
    assert [(message.body, message.label) for message in found] == [(b"1", "a"), (b"2", "b"), (b"3", "a")]


def test_rows_of_the_source_may_be_written_back_as_they_are(uploads: Uploads) -> None:
    columns: dict[str, Any] = {column.name: pa.nulls(1) for column in MESSAGE_COLUMNS}
    columns |= {"body": [b"again"], "queue": ["plain"], "lookup_id": [5], "class": pa.array([0], pa.int32())}
    assert uploads.one(columns).body == b"again"


def test_slices_and_batches_of_any_size_and_bytes_in_any_pieces(uploads: Uploads) -> None:
    table = pa.table({"body": [b"%d" % n for n in range(900)], "label": [str(n) for n in range(900)]}).slice(
        100, 777
    )
    for rows, step in ((None, 1 << 20), (1, 333), (100, 1), (500, 7)):
        data = stream(table, rows)
        staged = uploads.stage(data, step=step, queue="plain", batch=str(uploads.batch))
        publish(uploads.world, batch=uploads.batch, stages=[staged.stage])
        uploads.batch += 1
        core = uploads.world.manager.find("plain").core
        assert core.messages == 777
        core.purge()
        uploads.world.run()


def test_large_bodies_are_cut_into_bounded_pieces(uploads: Uploads) -> None:
    body = Random(1).randbytes(3 << 20)
    found = uploads.messages({"body": [body, b"small", body]}, "exact")
    assert [message.body for message in found] == [body, b"small", body]


# ---- queues


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


# ---- what is refused: the whole stage, with one line


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"body": ["x", "y"], "priority": [1, 8]}, "row 1: priority is a number from 0 to 7"),
        ({"body": ["x"], "priority": [-1]}, "row 0: priority is a number from 0 to 7"),
        ({"body": ["x"], "delivery": [2]}, "row 0: delivery is 0 (express) or 1 (recoverable)"),
        ({"body": ["x"], "acknowledge": [16], "admin_queue": ["x"]}, "row 0: acknowledge is a number"),
        ({"body": ["x"], "journal": [4]}, "row 0: journal is a number from 0 to 3"),
        ({"body": ["x"], "app_specific": [1 << 32]}, "row 0: app_specific is a number from 0 to 4294967295"),
        ({"body": ["x"], "app_specific": [-1]}, "row 0: app_specific is a number from 0 to 4294967295"),
        ({"body": ["x"], "body_type": [1 << 32]}, "row 0: body_type is a number of 32 bits"),
        ({"body": ["x"], "time_to_reach_queue": [-5]}, "row 0: time_to_reach_queue is a number"),
        ({"body": ["x"], "time_to_be_received": [1 << 40]}, "row 0: time_to_be_received is a number"),
        (
            {"body": ["x"], "correlation_id": [b"19 bytes are too few"[:19]]},
            "row 0: correlation_id has 20 bytes",
        ),
        ({"body": ["x"], "label": ["é" * 250]}, "row 0: the label has more than 249 characters"),
        ({"body": ["x"] * 3, "label": ["é" * 249, "", "😀" * 125]}, "row 2: the label has more than 249"),
        ({"body": [b"x" * (4 << 20)]}, "row 0: the message is too large"),
        ({"body": ["x" * (2 << 20)]}, "row 0: the message is too large"),
        ({"body": ["x"], "extension": [b"x" * (4 << 20)]}, "row 0: the message is too large"),
        (
            {"body": ["x"], "acknowledge": [1]},
            "row 0: the row requests an acknowledgment, but has no admin_queue",
        ),
        ({"body": ["x"], "response_queue": ["DIRECT=nonsense"]}, "row 0: response_queue: "),
        (
            {"body": ["x"], "response_queue": [f"{REMOTE},{REMOTE}"]},
            "response_queue: a message can name only one",
        ),
        ({"body": ["x"], "message_id": ["{6b29fc40}\\1"]}, "row 0: message_id has the form {GUID}\\number"),
        ({"body": ["x"], "message_id": [ORIGINAL[:-2] + "4294967296"]}, "row 0: message_id has the form"),
        ({"body": ["x", "y"], "queue": ["plain", "nowhere"]}, "row 1: there is no queue nowhere"),
        ({"body": ["x", "y"], "queue": ["plain", f"{REMOTE},plain"]}, "row 1: the name means several"),
        ({"body": ["x"], "queue": ["plain;journal"]}, "row 0: a journal cannot be sent to"),
        ({"body": ["x"], "queue": ["guarded"]}, "row 0: HOST\\private$\\guarded takes signed messages only"),
        ({"body": [1]}, "column body of type int64: texts or bytes are needed"),
        ({"body": ["x"], "priority": [1.0]}, "column priority of type floating point: whole numbers"),
        ({"body": ["x"], "priority": ["1"], "label": ["x"]}, "column priority of type string: whole numbers"),
        ({"body": ["x"], "extension": ["text"]}, "column extension of type string: bytes"),
        ({"body": ["x"], "colour": [1]}, "unknown column 'colour'; a message takes acknowledge, admin_"),
        ({"label": ["x"]}, "the column body is missing"),
        ({"body": [b"x"], "label": pa.array([b"\xff"]).view(pa.string())}, "row 0: the label is not UTF-8"),
    ],
)
def test_a_row_that_cannot_be_a_message_refuses_all(
    uploads: Uploads, columns: dict[str, Any], words: str
) -> None:
    with pytest.raises((ValueError, MSMQError)) as refused:
        uploads.stage(stream(pa.table(columns)), queue="plain")
    line = getattr(refused.value, "detail", "") or str(refused.value)
    assert words in line
    assert "\n" not in line
    nothing_left(uploads.world)


def nothing_left(world: World) -> None:
    world.run()
    assert counts(world) == (0, 0, 0)
    assert world.manager.ledger.bytes == 0
    assert len(world.manager.staging) == 0
    assert not any(queue.descriptors for queue in world.manager.queues())


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"priority": "8"}, "priority must be a whole number from 0 to 7"),
        ({"colour": "red"}, "unknown parameter 'colour'"),
        ({"writer": "\x07"}, "writer holds a character that cannot be shown"),
        ({"writer": "w" * 201}, "1 to 200 printable characters"),
        ({"batch": "-1"}, "batch must be a whole number"),
        ({"transaction": "all"}, "transaction must be one of row, stage"),
        ({"label": "x" * 250}, "the label has more than 249 characters"),
        ({"transactional": "true"}, "row 0: HOST\\private$\\plain is not transactional"),
        ({"transactional": "false", "queue": "exact"}, "row 0: HOST\\private$\\exact takes transactional"),
    ],
)
def test_a_query_that_is_wrong_is_refused(uploads: Uploads, query: dict[str, str], words: str) -> None:
    with pytest.raises((Refusal, ValueError, MSMQError)) as refused:
        uploads.stage(stream(pa.table({"body": ["x"]})), **({"queue": "plain"} | query))
    assert words in str(refused.value)
    nothing_left(uploads.world)


def test_unknown_columns_may_be_passed_over(uploads: Uploads) -> None:
    assert uploads.one({"body": [b"1"], "colour": ["red"]}, unknown="ignore").body == b"1"


def test_who_may_not_send_to_a_queue_stages_nothing_for_it(uploads: Uploads) -> None:
    from msmq_fast.security.acl import Acl
    from msmq_fast.security.descriptor import SecurityDescriptor

    queue = uploads.world.manager.find("exact")
    queue.security = SecurityDescriptor.build(None, None, Acl())
    table = pa.table({"body": ["x", "y"], "queue": ["plain", "exact"]})
    with pytest.raises(MSMQError, match=r"ACCESS_DENIED.*row 1: "):
        uploads.stage(stream(table), token=EVERYONE_TOKEN)
    nothing_left(uploads.world)


def test_a_stage_is_not_greater_than_it_may_be(uploads: Uploads) -> None:
    table = pa.table({"body": [b"x" * (1 << 20)] * 11})
    with pytest.raises(InsufficientResources, match="a stage has at most 10485760 bytes: use more parts"):
        uploads.stage(stream(table, 1), queue="plain")
    nothing_left(uploads.world)


# ---- hostile streams


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: b"GET / HTTP/1.1\r\n\r\n", "is not an Arrow IPC stream"),
        (lambda data: data[:-8], "incomplete: its end-of-stream mark is missing"),
        (lambda data: data[:300], "incomplete"),
        (lambda data: data + b"more", "continues after its end"),
        (lambda data: data[-8:], "has no schema"),
        (lambda data: b"\xff\xff\xff\xff\xf8\xff\xff\x7f", "bytes"),
        (lambda data: b"", "incomplete"),
    ],
)
def test_streams_that_are_none(uploads: Uploads, change: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        uploads.stage(change(stream(pa.table({"body": ["x"]}))), queue="plain")
    nothing_left(uploads.world)


def test_compressed_streams_are_refused(uploads: Uploads) -> None:
    data = stream(pa.table({"body": ["x" * 1000]}), compression="zstd")
    with pytest.raises(ValueError, match="write it without compression"):
        uploads.stage(data, queue="plain")


def test_what_a_message_says_of_its_size_and_rows_is_bounded(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = stream(pa.table({"body": ["x" * 1000] * 50}))
    monkeypatch.setattr(ipc, "MOST_ROWS", 49)
    with pytest.raises(ValueError, match="50 rows: 49 is the limit, use smaller batches"):
        uploads.stage(data, queue="plain")
    monkeypatch.setattr(ipc, "MOST_MESSAGE_BYTES", 40_000)
    with pytest.raises(ValueError, match="40000 is the limit, use smaller batches"):
        uploads.stage(data, queue="plain")
    nothing_left(uploads.world)


def test_texts_that_rows_share_do_not_fill_the_memory(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dictionary, a view: a few bytes on the wire could be gigabytes of texts."""
    monkeypatch.setattr(stagedecode, "MOST_MESSAGE_BYTES", 1 << 20)
    text, rows = b"x" * 10_000, 200
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    views = struct.pack("<i4sii", len(text), text[:4], 0, 0) * rows
    viewed = pa.Array.from_buffers(pa.binary_view(), rows, [None, pa.py_buffer(views), pa.py_buffer(text)])
    named = pa.ExtensionArray.from_storage(pa.opaque(shared.type, "t", "v"), shared)
    for column in (shared, viewed, named):
        data = stream(pa.table({"body": column}))
        assert len(data) < 20_000
        with pytest.raises(
            ValueError, match=r"have 2000000 bytes.*: 1048576 is the limit, use smaller batches"
        ):
            uploads.stage(data, queue="plain")
        with pytest.raises(ValueError, match="1048576 is the limit"):
            uploads.stage(stream(pa.table({"body": ["x"] * rows, "queue": column})))
        few = uploads.messages({"body": column.slice(0, 3)})
        assert [message.body for message in few] == [text] * 3
    nested = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([[text]]))
    with pytest.raises(
        ValueError, match=r"column body of type .*: a dictionary holds texts, bytes or whole numbers"
    ):
        uploads.stage(stream(pa.table({"body": nested})), queue="plain")
    nothing_left(uploads.world)


def test_many_small_batches_behind_a_great_dictionary_do_not_fill_the_memory() -> None:
    """What each batch needs is copied for it, for one at a time."""
    words = pa.array([b"x" * (1 << 20)])
    small = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), words)
    data = stream(pa.table({"body": pa.chunked_array([small] * 50)}), 1)
    assert len(data) < 2 << 20
    tracemalloc.start()
    try:
        assert sum(message.dictionary is None for message in ipc.MessageCutter().feed(data)) == 50
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_very_many_columns_are_looked_through_once() -> None:
    columns = {f"column {number}": pa.array([], pa.null()) for number in range(20_000)}
    data = stream(pa.table({"body": pa.array([], pa.binary())} | columns))
    cutter, decoder = ipc.MessageCutter(), stagedecode.StageDecoder(strict=False)
    begun = time.process_time()
    assert not list(cutter.feed(data))
    decoder.check_schema(schema_of(cutter))
    assert time.process_time() - begun < 1.5


def test_changed_bytes_never_harm(uploads: Uploads) -> None:
    """Whatever comes, there is a stage or one line that says why not."""
    damage(uploads, 7, 200)


@pytest.mark.long(seconds=60)
def test_very_many_changed_bytes_never_harm(uploads: Uploads) -> None:
    damage(uploads, 8, 6000)


def damage(uploads: Uploads, seed: int, count: int) -> None:
    table = pa.table(
        {
            "body": ["héllo", None, "x" * 50],
            "queue": pa.array(["plain", "exact", None]).dictionary_encode(),
            "label": ["L", None, "é"],
            "priority": pa.array([7, None, 2], pa.int8()),
            "message_id": [ORIGINAL, None, None],
            "extension": [b"ext", None, b""],
            "acknowledge": [0, 1, None],
            "admin_queue": [None, REMOTE, None],
        }
    )
    lines: set[str] = set()
    good, random, taken = stream(table), Random(seed), 0
    for _ in range(count):
        data = bytearray(good)
        for _ in range(random.randint(1, 4)):
            data[random.randrange(len(data))] = random.choice((0, 1, 127, 128, 255, random.randrange(256)))
        try:
            staged = uploads.stage(bytes(data), queue="plain", step=random.choice((97, 5000)))
        except (ValueError, MSMQError) as refused:
            lines.add(str(refused))
        else:
            taken += 1
            assert uploads.world.finish(uploads.world.manager.staging.discard([staged.stage])) == 1
    assert 0 < taken < count
    assert all(lines)
    nothing_left(uploads.world)


@pytest.mark.parametrize(
    ("kind", "length", "offset", "validity", "values", "data"),
    [
        ("int", 3, 0, None, bytes(16), None),
        ("int", 2, 1, None, bytes(16), None),
        ("int", 9, 0, bytes(1), bytes(72), None),
        ("int", 1, 0, None, None, None),
        ("int", 1, (1 << 64) - 1, None, bytes(8), None),
        ("text", 1, 0, None, bytes(4), b""),
        ("text", 1, 0, None, (0).to_bytes(4, "little") + (5).to_bytes(4, "little"), b"four"),
        ("binary", 2, 0, None, b"\0\0\0\0\4\0\0\0\3\0\0\0", b"four"),
        ("binary", 1, 0, None, b"\xff\xff\xff\xff\4\0\0\0", b"four"),
        ("binary", 1, 0, None, b"\0\0\0\0\4\0\0\0", None),
        ("float", 1, 0, None, bytes(8), None),
    ],
)
def test_buffers_that_do_not_hold_what_they_should_are_refused(
    kind: str, length: int, offset: int, validity: bytes | None, values: bytes | None, data: bytes | None
) -> None:
    with pytest.raises(ValueError):
        Column(kind, length, offset, validity, values, data)


def test_columns_and_places_that_do_not_fit_are_refused() -> None:
    builder = RowBuilder(bytes(16), 60, {})
    here = Destination(bytes(16), 7, b"\4\0a\0\0\0\0\0", False, lambda text: (7, b""), True)
    body = Column("binary", 1, 0, None, b"\0\0\0\0\4\0\0\0", b"four")
    number = Column("int", 1, 0, None, (5).to_bytes(8, "little"), None)
    assert len(builder.build(1, {"body": body}, 0, [here], None)) == 1
    for arguments in (
        (2, {"body": body}, 0, [here], None),
        (1, {"body": body}, 0, [here], number),
        (1, {"body": number}, 0, [here], None),
        (1, {"body": body}, 0, [], None),
        (1, {"body": body}, 0, [here], None, number, ["one"]),
    ):
        with pytest.raises(ValueError):
            builder.build(*arguments)  # type: ignore[arg-type]


def test_pieces_are_small(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by the pieces of a batch, not by the batch."""
    monkeypatch.setattr(stagedecode, "_SLICE_BYTES", 10_000)
    cutter, decoder = ipc.MessageCutter(), stagedecode.StageDecoder(strict=True)
    (message,) = cutter.feed(stream(pa.table({"body": [b"x" * 1000] * 100})))
    decoder.check_schema(schema_of(cutter))
    sizes = [rows.count for rows in decoder.decode(message)]
    assert sum(sizes) == 100
    assert max(sizes) <= 10


def test_rows_for_very_many_queues(uploads: Uploads) -> None:
    world = uploads.world
    names = [rf"DIRECT=TCP:10.9.9.{n % 250}\private$\q{n}" for n in range(300)]
    staged = uploads.stage(stream(pa.table({"body": names * 2, "queue": names * 2})))
    publish(world, stages=[staged.stage])
    assert all(world.bodies(name) == [name.encode("utf-16-le")] * 2 for name in names)
