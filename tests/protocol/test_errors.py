"""HRESULTs, their classes, packet faults and message classes."""

import re
from pathlib import Path

import pytest

from msmq_fast.packet import MessageClass, MSMQError, PacketFault
from msmq_fast.protocol.classes import about_receiving, is_negative, message_class
from msmq_fast.protocol.errors import AccessDenied, IOTimeout, PacketFaultCode, QueueNotFound, code_of, error
from msmq_fast.protocol.hresults import HRESULTS

pytestmark = pytest.mark.smoke

DECLARATIONS = Path(__file__).parents[2] / "src" / "_native" / "framing.pxd"


def test_all_published_codes_are_there() -> None:
    assert len(HRESULTS) == 146  # 145 and MQ_OK
    assert len(set(HRESULTS.values())) == 146
    assert all(code == 0 or code >> 16 in (0x400E, 0xC00E) for code in HRESULTS)


@pytest.mark.parametrize(
    ("name", "code", "cls"),
    [
        ("MQ_ERROR_QUEUE_NOT_FOUND", 0xC00E0003, QueueNotFound),
        ("MQ_ERROR_ACCESS_DENIED", 0xC00E0025, AccessDenied),
        ("MQ_ERROR_IO_TIMEOUT", 0xC00E001B, IOTimeout),
        ("MQ_ERROR_DTC_CONNECT", 0xC00E004C, MSMQError),
    ],
)
def test_error_finds_the_class_of_a_code(name: str, code: int, cls: type[MSMQError]) -> None:
    assert code_of(name) == code
    for found in (error(code, "why"), error(name, "why")):
        assert type(found) is cls
        assert (found.code, found.name, found.detail) == (code, name, "why")
        assert str(found) == f"{name} (0x{code:08X}): why"


def test_codes_of_classes_and_unknown_codes() -> None:
    assert QueueNotFound("x").code == 0xC00E0003
    assert MSMQError().name == "MQ_ERROR"
    assert error(0xE0000001).name == "0xE0000001"
    for cls in MSMQError.__subclasses__():
        if "default_code" in vars(cls):  # other classes, those of the client, say the code of another error
            assert type(error(cls.default_code)) is cls


@pytest.mark.rule("X-79")
def test_codes_are_published_ones_or_marked_as_our_own() -> None:
    for cls in MSMQError.__subclasses__():
        code = cls.default_code
        assert code in HRESULTS or code & 0x20000000, cls  # the C bit of an HRESULT
        assert code & 0x80000000 or code in HRESULTS, cls


def test_fault_codes_are_those_of_the_native_parser() -> None:
    native = dict(re.findall(r"FAULT_(\w+) = (\d+)", DECLARATIONS.read_text()))
    assert {code.name: str(code.value) for code in PacketFaultCode} == native
    assert all(code.text for code in PacketFaultCode)
    fault = PacketFault(PacketFaultCode.MQF_SIZE)
    assert fault.code.label == "mqf-size"
    assert "mqf-size" in str(fault)


def test_message_classes() -> None:
    assert message_class(0x8001) is MessageClass.NACK_DELETED
    assert message_class(0x01FF) == 0x01FF
    assert is_negative(MessageClass.NACK_Q_PURGED)
    assert about_receiving(MessageClass.ACK_RECEIVE)
    assert not is_negative(MessageClass.ACK_RECEIVE)
    assert not about_receiving(MessageClass.NACK_BAD_DST_Q)


def _subclasses(cls: type[MSMQError]) -> set[type[MSMQError]]:
    found = set(cls.__subclasses__())
    return found.union(*(_subclasses(sub) for sub in found)) if found else found


@pytest.mark.rule("X-79")
def test_no_error_has_a_code_that_others_could_take_for_one_of_theirs() -> None:
    """A code is a published one, with its meaning, or has the C bit of a vendor's own."""
    for cls in {MSMQError, *_subclasses(MSMQError)}:
        assert cls.default_code in HRESULTS or cls.default_code & 0x20000000, cls
    assert all(code == 0 or not code & 0x20000000 for code in HRESULTS)
