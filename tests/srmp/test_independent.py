"""The independent reader takes what Windows sent, and refuses what nobody may send."""

import base64
import json
from pathlib import Path
from xml.parsers import expat

import pytest

from tests.support.srmp.independent import Misread, Sent, read, read_request

EXAMPLES = {
    each["name"]: base64.b64decode(each["wire_b64"])
    for each in json.loads(Path(__file__).with_name("vectors").joinpath("examples.json").read_text())
}


def sent(raw: bytes) -> Sent:
    return read(read_request(raw))


@pytest.mark.parametrize("name", ["simple-no-msmq", "simple-with-msmq", "pgm-multicast-message"])
def test_what_windows_sent(name: str) -> None:
    message = sent(EXAMPLES[name])
    assert message.fields["path/to"] in EXAMPLES[name].decode("latin-1")
    assert message.body
    assert message.extension is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b'"MSMQMessage"', b"MSMQMessagee!"),
        (b"First Message--MSMQ", b"First Messag\r\n--MSMQ"),
        (b"boundary, 53287--\r\n", b"boundary, 53287----"),
        (b"se:mustUnderstand", b"se:mustunderstand"),
        (b"/srmp/", b"/sRmp/"),
        (b"<se:Body></se:Body>", b"<se:Body>.</se:Bod>"),
        (b"20070609T164419", b"2007-06-09T1644"),
        (b"mqsender label</action>", b"mqsender</action>      "),
    ],
)
def test_what_is_not_so(old: bytes, new: bytes) -> None:
    raw = EXAMPLES["simple-no-msmq"]
    assert raw.count(old) >= 1
    with pytest.raises((Misread, expat.ExpatError)):
        sent(raw.replace(old, new, 1))


def test_order_matters() -> None:
    raw = EXAMPLES["simple-with-msmq"]
    with pytest.raises(Misread, match="out of order"):
        sent(
            raw.replace(b"<Class>0</Class><Priority>3</Priority>", b"<Priority>3</Priority><Class>0</Class>")
        )
