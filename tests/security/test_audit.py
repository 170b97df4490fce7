"""Refusals are recorded: counted always, written without repeating themselves."""

from __future__ import annotations

import logging

import pytest

from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.security.audit import MAX_KEYS, Audit, AuditRecord, log_record
from msmq_fast.security.authorizer import MACHINE, QUEUE, Authorizer
from msmq_fast.security.masks import MachineRight, QueueRight, parse_rights, right_names
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.security.sid import EVERYONE, sid
from msmq_fast.security.token import ANONYMOUS_TOKEN, Token

BOB = Token(sid("S-1-5-21-1-2-3-1001"), frozenset((sid("S-1-5-21-1-2-3-1001"), EVERYONE)), "bob")


class Log:
    """An audit with a clock and a list."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lines: list[tuple[AuditRecord, int]] = []
        self.audit = Audit(lambda: self.now, lambda record, repeated: self.lines.append((record, repeated)))


@pytest.fixture
def log() -> Log:
    return Log()


def record(name: str = "orders", detail: str = "") -> AuditRecord:
    return AuditRecord("bob", "S-1-5-7", name, "send", ("MQSEC_WRITE_MESSAGE",), "because", "", detail)


def test_the_same_refusal_is_written_once_in_a_while_and_always_counted(log: Log) -> None:
    for number in range(50):
        log.audit.refused(record(detail=f"message {number}"))
    assert [(entry.detail, repeated) for entry, repeated in log.lines] == [("message 0", 0)]
    assert log.audit.total == log.audit.counts["send"] == 50
    log.audit.refused(record("others"))
    assert len(log.lines) == 2
    log.now += 10
    log.audit.refused(record())
    assert log.lines[-1][1] == 49


def test_what_was_left_out_is_told_in_the_end(log: Log) -> None:
    for number in range(3):
        log.audit.refused(record(detail=f"message {number}"))
    log.audit.flush()
    assert len(log.lines) == 1
    log.now += 10
    log.audit.flush()
    assert [(entry.detail, repeated) for entry, repeated in log.lines[1:]] == [("message 2", 1)]
    log.audit.refused(record())
    log.audit.refused(record())
    log.audit.flush(everything=True)
    assert len(log.lines) == 4


def test_memory_is_bounded(log: Log) -> None:
    for number in range(MAX_KEYS + 10):
        for _ in range(2):
            log.audit.refused(record(str(number)))
    # Nothing was lost by forgetting: each forgotten refusal had its repetition told.
    assert len(log.lines) == MAX_KEYS + 10 + 10


def test_a_log_line_says_everything(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "msmq_fast.audit"):
        log_record(record(detail="{guid}\\7"), 4)
    (line,) = caplog.messages
    for part in ("send", "orders", "bob", "MQSEC_WRITE_MESSAGE", "because", "{guid}\\7", "4 more"):
        assert part in line
    assert caplog.records[0].fields["sid"] == "S-1-5-7"  # type: ignore[attr-defined]


def test_a_refusal_raises_and_names_the_entry(log: Log) -> None:
    authorizer = Authorizer(log.audit)
    descriptor = parse_sddl("D:(D;;DC;;;S-1-5-21-1-2-3-1001)(A;;KA;;;WD)")
    authorizer.check(BOB, descriptor, QueueRight.WRITE_MESSAGE, QUEUE, "orders", "open for sending")
    with pytest.raises(AccessDenied, match="MQSEC_PEEK_MESSAGE"):
        authorizer.check(BOB, descriptor, QueueRight.RECEIVE_MESSAGE, QUEUE, "orders", "open for receiving")
    ((entry, _),) = log.lines
    assert entry.entry == "entry 0: (D;;DC;;;S-1-5-21-1-2-3-1001)"
    assert entry.caller == "bob (S-1-5-21-1-2-3-1001)"
    assert entry.rights == ("MQSEC_PEEK_MESSAGE",)


def test_decisions_are_kept_apart(log: Log) -> None:
    authorizer = Authorizer(log.audit)
    first, second = parse_sddl("D:(A;;DC;;;WD)"), parse_sddl("D:(A;;CC;;;WD)")
    for _ in range(2):
        assert authorizer.allows(BOB, first, 2, QUEUE)
        assert not authorizer.allows(BOB, second, 2, QUEUE)
        assert not authorizer.allows(ANONYMOUS_TOKEN, first, 2, QUEUE)
        assert not authorizer.allows(BOB, first, 3, QUEUE)
        assert authorizer.allows(BOB, parse_sddl("D:(A;;GR;;;WD)"), 0x80, MACHINE)
        assert not authorizer.allows(BOB, parse_sddl("D:(A;;GR;;;WD)"), 0x80, QUEUE)
    assert log.audit.total == 0


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("send", 4), ("receive,send", 7), ("MQSEC_WRITE_MESSAGE", 4), ("peek_message", 2), ("0x2b", 0x2B),
        ("all", 0xF003F), ("take-ownership", 0x80000), ("queue_generic_read", 0x2002B),
    ],
)  # fmt: skip
def test_rights_by_name(text: str, mask: int) -> None:
    assert parse_rights(text, QueueRight) == mask


@pytest.mark.parametrize("text", ["", "fly", "0x1ffffffff", "0xzz", "create-queue"])
def test_no_rights(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rights(text, QueueRight)


def test_names_of_rights() -> None:
    assert right_names(0x20000007, QueueRight) == (
        "MQSEC_DELETE_MESSAGE",
        "MQSEC_PEEK_MESSAGE",
        "MQSEC_WRITE_MESSAGE",
        "0x20000000",
    )
    assert right_names(0x84, MachineRight) == ("MQSEC_CREATE_QUEUE", "MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE")
