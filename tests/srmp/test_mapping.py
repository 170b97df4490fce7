"""Mapping files of MSMQ on Windows."""

import pytest

from msmq_fast.srmp.mapping import MappingError, read_mapping
from msmq_fast.srmp.redirection import Pair, Redirections
from tests.srmp.mappings import INBOUND, OUTBOUND, RECEIPTS

pytestmark = pytest.mark.smoke


def test_inbound() -> None:
    assert read_mapping(INBOUND) == Redirections(
        inbound=(
            Pair("http://www.example.com/msmq/orders*", "http://inner/msmq/private$/orders"),
            Pair("http://www.example.com/msmq/a&b", "http://inner/msmq/q"),
        )
    )


def test_outbound() -> None:
    assert read_mapping(OUTBOUND) == Redirections(
        outbound=(Pair("http://far.example.com/*", "http://relay"),),
        exceptions=("http://far.example.com/msmq/direct", "https://*"),
    )


def test_stream_receipts() -> None:
    assert read_mapping(RECEIPTS) == Redirections(
        stream_receipts=(
            Pair("http://far.example.com/*", "http://nat.example.com/msmq/private$/order_queue$"),
        ),
        default_stream_receipt="https://nat.example.com/msmq/private$/order_queue$",
    )


def test_a_sample_without_entries_says_nothing() -> None:
    empty = b'<redirections xmlns="msmq-queue-redirections.xml"><!-- <redirection/> --></redirections>'
    assert read_mapping(empty) == Redirections()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "line 1: not XML"),
        (b"<redirections>", "line 1: not XML"),
        (b"<config>\n</config>", "line 1: <config> is not a mapping: expected <redirections>"),
        (
            b"<redirections>\n<redirection><from>http://a/*</from></redirection></redirections>",
            "line 2: <",
        ),
        (
            b"<redirections>\n<redirection>\n<from>a</from><to>http://b</to></redirection></redirections>",
            "line 3: <from>: expected a URL",
        ),
        (
            b"<redirections><redirection><from>*</from><to>ftp://b</to></redirection></redirections>",
            "line 1: <to>: expected a URL",
        ),
        (
            b'<!DOCTYPE redirections [<!ENTITY e SYSTEM "file:///etc/passwd">]><redirections>&e;</redirections>',
            "line 1: a document type",
        ),
        (b" " * (1 << 20) + b"<redirections/>", "larger than"),
    ],
)
def test_what_cannot_be_used(data: bytes, says: str) -> None:
    with pytest.raises(MappingError) as caught:
        read_mapping(data)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
