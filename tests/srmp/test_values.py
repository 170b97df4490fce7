"""The text values of SRMP."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.srmp.values import (
    END_OF_TIME,
    Nonconforming,
    read_base64,
    read_date,
    read_guid,
    read_message_id,
    read_number,
    read_stream_id,
    write_date,
    write_message_id,
    write_stream_id,
)
from tests.support.srmp.texts import GUID

U32, U64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


@pytest.mark.rule("SR-031")
@given(st.integers(0, END_OF_TIME))
def test_dates(seconds: int) -> None:
    text = write_date(seconds)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert text == moment.isoformat().replace("-", "").replace(":", "").removesuffix("+0000")
    assert read_date(f"\n {text}\t") == seconds


@pytest.mark.rule("SR-031")
@pytest.mark.parametrize(
    "text",
    [
        *("2007-06-19T21:06:54Z", "20070619T210654Z", "20070619t210654", "20070619 210654", ""),
        *("20070619T240000", "20070230T000000", "20070619T2106", "120070619T210654", "20071319T210654"),
        "٢٠070619T210654",
    ],
)
def test_what_is_no_date(text: str) -> None:
    with pytest.raises(Nonconforming):
        read_date(text)


def test_dates_of_other_centuries_are_read_and_those_sent_fit_into_32_bits() -> None:
    assert read_date("16010101T000000") < 0
    assert read_date("99991231T235959") > END_OF_TIME
    assert write_date(-5) == "19700101T000000"
    assert write_date(1 << 40) == write_date(END_OF_TIME) == "20380119T031407"


@pytest.mark.rule("SR-030")
def test_guids() -> None:
    assert read_guid(f" {GUID.upper()} ") == UUID(GUID)
    for text in (f"{{{GUID}}}", GUID.replace("-", ""), f"urn:uuid:{GUID}", GUID[:-1], f"{GUID}0", ""):
        with pytest.raises(Nonconforming):
            read_guid(text)


@pytest.mark.rule("SR-032")
@given(st.integers(0, U64), st.sampled_from(["", "0", "00000"]))
def test_numbers(value: int, zeros: str) -> None:
    assert read_number(f"\r\n{zeros}{value} ") == value


@pytest.mark.rule("SR-032")
@pytest.mark.parametrize(
    "text", ["-1", "+1", "", " ", "1.0", "1e3", "0x10", "1 2", "1_000", "²", "٣", str(U64 + 1), "9" * 5000]
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(Nonconforming):
        read_number(text)


def test_numbers_have_limits() -> None:
    assert read_number("7", 7) == 7
    with pytest.raises(Nonconforming, match="0 to 7"):
        read_number("8", 7)


@pytest.mark.rule("SR-049")
@given(st.uuids(), st.integers(0, U32))
def test_message_identifiers(guid: UUID, ordinal: int) -> None:
    text = write_message_id(guid, ordinal)
    assert text == f"uuid:{ordinal}@{guid}"
    assert read_message_id(f" {text} ") == (guid, ordinal)
    assert read_message_id(f"uuid:{ordinal}@{str(guid).upper()}") == (guid, ordinal)


@pytest.mark.rule("SR-049")
@pytest.mark.parametrize(
    "text",
    [
        *(f"uuid:@{GUID}", f"uuid:1{GUID}", f"uuid:1@{{{GUID}}}", f"1@{GUID}", "uuid:1@", ""),
        *(f"uuid:{U32 + 1}@{GUID}", f"uuid:1@{GUID}x", f"UUID:1@{GUID}", f"uuid:-1@{GUID}"),
    ],
)
def test_what_is_no_message_identifier(text: str) -> None:
    with pytest.raises(Nonconforming):
        read_message_id(text)


@pytest.mark.rule("SR-073")
@given(st.uuids(), st.integers(0, U64))
def test_stream_identifiers(guid: UUID, sequence: int) -> None:
    text = write_stream_id(guid, sequence)
    assert text == f"uid:{guid}\\{sequence}"
    assert read_stream_id(text) == (guid, sequence)


@pytest.mark.rule("SR-073")
def test_the_stream_identifier_of_the_specification() -> None:
    guid, sequence = read_stream_id(r"uid:4a85b192-3ccd-4ba2-a0ac-7f0a11be1b08\4839986701558349830")
    assert str(guid) == "4a85b192-3ccd-4ba2-a0ac-7f0a11be1b08"
    assert sequence & U32 == 6
    assert sequence >> 32 == datetime(2005, 9, 16, 19, 0, 19, tzinfo=UTC).timestamp()


@pytest.mark.rule("SR-073")
@pytest.mark.parametrize(
    "text",
    [
        *(f"uid:{GUID}/1", f"uid:{GUID}", f"{GUID}\\1", f"uid:{{{GUID}}}\\1", f"uid:{GUID}\\{U64 + 1}"),
        *(f"uid:{GUID}\\-1", "uid:\\1", f"uuid:{GUID}\\1"),
    ],
)
def test_what_is_no_stream_identifier(text: str) -> None:
    with pytest.raises(Nonconforming):
        read_stream_id(text)


@pytest.mark.rule("SR-084")
def test_base64() -> None:
    assert read_base64("AAAAAAAAAAAAAAAAAAAAAAEA\r\n AAA=", 20) == bytes(16) + b"\1\0\0\0"
    for text in ("AAAA", "A", "AAAAAAAAAAAAAAAAAAAAAAEAAAA", "AAAAAAAAAAAAAAAAAAAAAAEAAAA?", "", "é"):
        with pytest.raises(Nonconforming):
            read_base64(text, 20)


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=("Nd",))))
def test_what_strangers_write_stays_on_one_short_line(text: str) -> None:
    with pytest.raises(Nonconforming) as refused:
        read_number(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 60 * 10 + 80
