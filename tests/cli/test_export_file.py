"""Files of exported messages: what is written comes back, and nothing else is believed."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import threading
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.cli import exportfile
from msmq_fast.cli.classes import class_text
from msmq_fast.cli.commands.import_ import QueueMap
from msmq_fast.cli.exportfile import BadFile, End, ExportWriter, Header, Record, Section, read_export
from msmq_fast.client.exchange import Stored
from msmq_fast.protocol.classes import parse_class
from msmq_fast.terminal.progress import Heartbeat, Progress

FORMS = ("msgpack", "jsonl")
TEXT = st.text(max_size=20)
HEADERS = st.builds(Header, TEXT, TEXT, TEXT, st.integers(0, 2**63), st.binary(min_size=16, max_size=16))
DEFINITIONS = st.dictionaries(TEXT, st.one_of(TEXT, st.booleans(), st.integers(0, 2**32)), max_size=5)
MESSAGES = st.builds(
    Stored,
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**63),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.binary(max_size=300),
    st.integers(0, 0xFFFF),
)
QUEUES = st.lists(
    st.tuples(st.builds(Section, TEXT, DEFINITIONS), st.lists(MESSAGES, max_size=5)), max_size=4
)


def written(form: str, header: Header, queues: list[tuple[Section, list[Stored]]]) -> bytes:
    file = io.BytesIO()
    writer = ExportWriter(file, form)
    writer.header(header)
    for section, messages in queues:
        writer.section(section)
        for message in messages:
            writer.message(message)
    writer.end()
    return file.getvalue()


def read(data: bytes) -> list[Record]:
    return list(read_export(io.BytesIO(data)))


HEADER = Header("guid", "HOST", "msmq-fast 1", 1_700_000_000, bytes(16))
MESSAGE = Stored(5, 1_700_000_000_000_000, 1, 2, b"packet", 0xC001)
SAMPLE = [(Section("HOST\\private$\\q", {"kind": "user"}), [MESSAGE] * 3), (Section("other", {}), [])]


@given(st.sampled_from(FORMS), HEADERS, QUEUES)
def test_what_was_written_is_read(
    form: str, header: Header, queues: list[tuple[Section, list[Stored]]]
) -> None:
    expected: list[Record] = [header]
    for section, messages in queues:
        expected += [section, *messages]
    every = [message for _, messages in queues for message in messages]
    expected.append(End(len(queues), len(every), sum(len(message.packet) for message in every)))
    assert read(written(form, header, queues)) == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_was_cut_anywhere_is_refused(form: str) -> None:
    data = written(form, HEADER, SAMPLE)
    for length in range(len(data)):
        with pytest.raises(BadFile):
            read(data[:length])


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=300)
@given(data=st.data())
def test_a_changed_byte_is_noticed(form: str, data: st.DataObject) -> None:
    whole = written(form, HEADER, SAMPLE)
    place = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(1, 255))
    changed = whole[:place] + bytes([whole[place] ^ other]) + whole[place + 1 :]
    try:
        records = read(changed)
    except BadFile:
        return
    # What stands in the last record is not part of the checksum: white space of JSON may differ there.
    assert form == "jsonl"
    assert records == read(whole)


@pytest.mark.parametrize("form", FORMS)
def test_something_behind_the_end_is_refused(form: str) -> None:
    with pytest.raises(BadFile, match="after the end"):
        read(written(form, HEADER, SAMPLE) + b"x")


@given(st.binary(max_size=400), st.sampled_from([b"", exportfile.MAGIC, b"{", b'{"kind":"header"']))
def test_any_bytes_end_in_one_clear_error(data: bytes, start: bytes) -> None:
    with pytest.raises(BadFile):
        read(start + data)


def frames(*records: Any) -> bytes:
    """A msgpack file of these records, with an end that fits."""
    data = exportfile.MAGIC
    for record in records:
        body = record if isinstance(record, bytes) else msgpack.packb(record)
        data += struct.pack(">I", len(body)) + body
    return data


GOOD = {
    "kind": "header",
    "version": 1,
    "manager": "",
    "computer": "",
    "software": "",
    "created": 0,
    "export": b"",
}
PLACE = {"kind": "queue", "name": "q", "definition": {}}
LETTER = {
    "kind": "message",
    "lookup_id": 1,
    "arrived_us": 1,
    "abort_count": 0,
    "move_count": 0,
    "packet": b"",
    "reason": 0,
}


def closed(*records: Any) -> bytes:
    data = frames(*records)
    kinds = [record["kind"] for record in records if isinstance(record, dict)]
    end = {
        "kind": "end",
        "queues": kinds.count("queue"),
        "messages": kinds.count("message"),
        "bytes": 0,
        "sha256": hashlib.sha256(data).digest(),
    }
    return data + frames(end)[len(exportfile.MAGIC) :]


def test_the_hand_made_file_is_good() -> None:
    assert len(read(closed(GOOD, PLACE, LETTER))) == 4


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a file of exported"),
        (b"PK\x03\x04 something else", "not a file of exported"),
        (exportfile.MAGIC, "was cut"),
        (exportfile.MAGIC + b"\xff\xff\xff\xff", "4294967295 bytes; the limit"),
        (exportfile.MAGIC + struct.pack(">I", 1000) + b"x" * 10, "was cut"),
        (frames(b"\x91" * 5000 + b"\xc0"), "not a msgpack value"),
        (frames(b"\xdd\xff\xff\xff\xff"), "not a msgpack value"),
        (frames(b"\xc6\xff\xff\xff\xff"), "not a msgpack value"),
        (frames([1, 2]), "not a map"),
        (closed(PLACE), "does not begin with a header"),
        (closed(GOOD, GOOD), "second header"),
        (closed(GOOD, LETTER), "before the first queue"),
        (closed(GOOD | {"version": 2}), "version 2"),
        (closed(GOOD, {"kind": "else"}), "unknown kind of record"),
        (closed(GOOD, {"kind": ["x"]}), "unknown kind of record"),
        (closed(GOOD, PLACE, LETTER | {"packet": "text"}), "packet is missing"),
        (closed(GOOD, PLACE, LETTER | {"arrived_us": -1}), "arrived_us is missing"),
        (closed(GOOD, PLACE, LETTER | {"arrived_us": 2**64 - 1}), "arrived_us is missing"),
        (closed(GOOD, PLACE, LETTER | {"abort_count": True}), "abort_count is missing"),
        (b"{" + b"[" * 200_000 + b"\n", "not JSON"),
        (b'{"kind": ' + b"9" * 10_000 + b"}\n", "JSON|kind"),
        (b'{"kind": "header", "export_b64": "!"}\n', "not base64"),
        (b'{"kind": "header"' + b" " * (1 << 24) + b"}\n", "a line of more than"),
    ],
)
def test_a_hostile_file_gets_one_clear_error(data: bytes, why: str) -> None:
    with pytest.raises(BadFile, match=why):
        read(data)


def test_a_reader_holds_no_more_than_one_record() -> None:
    """A length alone makes nobody allocate it: what is not there is not waited for in memory."""

    class Endless(io.RawIOBase):
        asked = 0

        def read(self, size: int = -1) -> bytes:
            Endless.asked = max(Endless.asked, size)
            return exportfile.MAGIC[:size] if Endless.asked <= len(exportfile.MAGIC) else b""

    with pytest.raises(BadFile):
        list(read_export(Endless()))  # type: ignore[arg-type]
    assert Endless.asked <= exportfile.MAX_RECORD


def test_a_line_shows_what_people_look_for() -> None:
    lines = written("jsonl", HEADER, SAMPLE).splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds == ["header", "queue", "message", "message", "message", "queue", "end"]


@pytest.mark.parametrize(
    ("words", "name", "target"),
    [
        ([], "HOST\\private$\\Orders", ".\\private$\\Orders"),
        ([], "HOST\\system$;deadletter", ".\\system$;deadletter"),
        (["new"], "HOST\\private$\\orders", "new"),
        (["orders=copy"], "HOST\\private$\\ORDERS", "copy"),
        (["x\\private$\\orders=copy"], "HOST\\private$\\orders", "copy"),
        (["orders=copy"], "HOST\\private$\\others", ".\\private$\\others"),
    ],
)
def test_where_messages_go(words: list[str], name: str, target: str) -> None:
    assert QueueMap(words).target(name) == target


@pytest.mark.parametrize("words", [["a", "b"], ["a=b", "a=c"], ["a", "b=c"], ["a="], [""]])
def test_targets_that_contradict_each_other(words: list[str]) -> None:
    with pytest.raises(ValueError, match="--queue"):
        QueueMap(words)


def test_classes_by_name_and_number() -> None:
    for text in ("NACK_Q_PURGED", "q-purged", "0xC001", "49153", "MQMSG_CLASS_NACK_Q_PURGED"):
        assert parse_class(text) == 0xC001
    assert class_text(0xC001) == "NACK_Q_PURGED (the queue was purged)"
    assert class_text(0x1234) == "0x1234"
    for text in ("", "nothing", "65536", "-1"):
        with pytest.raises(ValueError, match=r"not a message class|invalid literal"):
            parse_class(text)


class _Terminal(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_for_terminals(terminal: bool) -> None:
    stream = _Terminal(terminal)
    clock: Callable[[], float] = iter(range(100)).__next__
    with Progress("export", 10, stream, clock) as progress:
        for _ in range(10):
            progress.add(1)
    shown = stream.getvalue()
    assert bool(shown) is terminal
    if terminal:
        assert shown.endswith("\n")
        assert "10/10" in shown


@pytest.mark.parametrize(("terminal", "quiet"), [(False, False), (True, False), (False, True), (True, True)])
def test_without_a_terminal_a_command_may_show_a_line_every_half_minute(terminal: bool, quiet: bool) -> None:
    """Ten minutes of a clock that only these waits move."""
    stream, now, waits = _Terminal(terminal), [0.0], []
    begun, over = threading.Event(), threading.Event()

    def wait(seconds: float) -> bool:
        assert begun.wait(30)
        now[0] += seconds
        waits.append(seconds)
        if now[0] > 600:
            over.set()
        return over.is_set()

    with (
        Heartbeat("msmq-lake audit", stream, lambda: now[0], wait, quiet=quiet),
        Progress("audit", 13, stream, lambda: 1.0) as progress,
    ):
        progress.add(4)
        begun.set()
        if not terminal and not quiet:
            assert over.wait(30)
    lines = stream.getvalue().splitlines()
    if quiet:
        assert not lines
    elif terminal:
        assert "4/13" in lines[-1]
        assert "running" not in stream.getvalue()
    else:
        assert waits == [30.0] * 21
        assert len(lines) == 20
        assert lines[0] == "msmq-lake audit: running for 30 s, 4 of 13 done"
        assert lines[-1] == "msmq-lake audit: running for 600 s, 4 of 13 done"
