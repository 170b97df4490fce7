"""All envelopes and elements of the specification are read."""

from __future__ import annotations

import base64
import re

from lxml import etree

from msmq_fast.srmp.reading import read_envelope
from tests.srmp.reading import SIGNED_INFO, VALUE, signed
from tests.support.srmp.texts import (
    ACTION,
    DATES,
    ID,
    RP,
    START,
    STREAM_ID,
    TO,
    envelope,
    examples,
    fragments,
    full,
    msmq,
    path,
    properties,
    services,
    stream,
)


def test_all_envelopes_of_the_specification() -> None:
    count = 0
    for name, example in examples().items():
        wire = base64.b64decode(example["wire_b64"])
        at = wire.find(b"<se:Envelope")
        if at < 0:
            continue
        xml = wire[at : wire.index(b"</se:Envelope>") + 14]
        found = read_envelope(xml)
        tree = etree.fromstring(xml)
        assert found.to == tree.findtext(f".//{{{RP}}}to"), name
        assert found.is_receipt == ("receipt" in name and "request" not in name), name
        assert (found.stream is not None) == name.startswith("stream-message"), name
        count += 1
    text = fragments()["overview-typical-message"]["text"]
    cut = text[text.index("<se:Envelope") : text.index("</se:Envelope>") + 14]
    assert read_envelope(cut.encode()) == read_envelope(_example("simple-with-msmq"))
    assert count + 1 == 13


def _example(name: str) -> bytes:
    wire = base64.b64decode(examples()[name]["wire_b64"])
    return wire[wire.index(b"<se:Envelope") : wire.index(b"</se:Envelope>") + 14]


def _placed(name: str, text: str) -> bytes:
    """An element of sections 2.2.4 to 2.2.7 in an envelope that is otherwise sound."""
    tag = re.match(r"<(\w+)", text)
    assert tag is not None
    kept = {"action": ACTION, "to": TO, "id": ID}
    dates = {"expiresAt": DATES[:38], "sentAt": DATES[38:]}
    match tag[1]:
        case "action" | "to" | "id" as element:
            return envelope(path("".join((kept | {element: text}).values())), properties(), msmq())
        case "rev":
            return envelope(path(ACTION + TO + ID + text), properties(), msmq())
        case "expiresAt" | "sentAt" as element:
            return envelope(path(), properties("".join((dates | {element: text}).values())), msmq())
        case "durable" | "deliveryReceiptRequest" | "commitmentReceiptRequest":
            return full(services(text))
        case "streamId" | "start":
            other = START if tag[1] == "streamId" else STREAM_ID
            return full(stream(f"{text}<current>1</current>{other}"))
        case "current" | "previous":
            return full(stream(STREAM_ID + text + ("<current>42</current>" if tag[1] == "previous" else "")))
        case "deliveryReceipt" | "commitmentReceipt" | "streamReceipt":
            return full(text)
        case "Class" | "Priority" | "BodyType" | "SourceQmGuid" | "TTrq" as element:
            value = etree.fromstring(text).text
            return envelope(path(), properties(), msmq(**{element: value}))
        case "SignatureMethod" | "DigestMethod" | "DigestValue" as element:
            return envelope(
                path(),
                properties(),
                msmq(),
                signed(re.sub(rf"<{element}.*?</{element}>", text, SIGNED_INFO) + VALUE),
            )
        case "SignatureValue":
            return envelope(path(), properties(), msmq(), signed(SIGNED_INFO + text))
        case _:
            return envelope(path(), properties(), msmq(text))


def test_all_elements_of_the_specification() -> None:
    count = 0
    for name, fragment in fragments().items():
        if not name.startswith("element-"):
            continue
        count += 1
        xml = _placed(name, fragment["text"])
        found = repr(read_envelope(xml))
        for value in etree.fromstring(fragment["text"]).itertext():
            for word in value.split():
                if not re.fullmatch(r"\d{8}T\d{6}|positive|[A-Za-z0-9+/]{27,}=+", word):
                    assert repr(word.removeprefix("MSMQ:")).strip("'") in found or _number(word) in found, (
                        name
                    )
    assert count == 41


def _number(word: str) -> str:
    """What becomes of a stream identifier."""
    return word.rpartition("\\")[2]
