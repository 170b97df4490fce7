"""SRMP envelopes as text, in pieces that tests leave out, double or spoil. Written here by hand, so that no
code of the product is its own witness.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GUID = "caf195ea-615c-4264-ae08-11a4e60194c0"
OTHER = "32221eda-9376-46df-b6ed-783091123831"
SE = "http://schemas.xmlsoap.org/soap/envelope/"
RP = "http://schemas.xmlsoap.org/rp/"
SRMP = "http://schemas.xmlsoap.org/srmp/"
DS = "http://www.w3.org/2000/02/xmldsig#"
UNDERSTAND = 'se:mustUnderstand="1"'

ACTION = "<action>MSMQ:hello</action>"
TO = "<to>http://machine2/msmq/private$/q</to>"
ID = f"<id>uuid:20503@{GUID}</id>"
SENT = 1184814700  # 20070719T031140
DATES = "<expiresAt>20380119T031407</expiresAt><sentAt>20070719T031140</sentAt>"
URL = "http://machine1/MSMQ/private$/receipts"
STREAM_ID = f"<streamId>uid:{OTHER}\\4839986701558349830</streamId>"
START = f"<start><sendReceiptsTo>{URL}</sendReceiptsTo></start>"

VECTORS = Path(__file__).parents[2] / "srmp" / "vectors"


def path(content: str = ACTION + TO + ID, attributes: str = UNDERSTAND) -> str:
    return f'<path xmlns="{RP}" {attributes}>{content}</path>'


def properties(content: str = DATES, attributes: str = UNDERSTAND) -> str:
    return f"<properties {attributes}>{content}</properties>"


def services(content: str, attributes: str = UNDERSTAND) -> str:
    return f"<services {attributes}>{content}</services>"


def stream(content: str = f"{STREAM_ID}<current>1</current>{START}", attributes: str = UNDERSTAND) -> str:
    return f"<Stream {attributes}>{content}</Stream>"


MSMQ_PARTS = {
    "Class": "0",
    "Priority": "3",
    "BodyType": "0",
    "SourceQmGuid": GUID,
    "TTrq": "20070723T031140",
}


def msmq(extra: str = "", **values: str | None) -> str:
    """The required elements; a value of None leaves one out. `extra` comes in front of SourceQmGuid."""
    parts = {**MSMQ_PARTS, **values}
    text = "".join(
        (extra if name == "SourceQmGuid" else "") + ("" if value is None else f"<{name}>{value}</{name}>")
        for name, value in parts.items()
    )
    return f'<Msmq xmlns="msmq.namespace.xml">{text}</Msmq>'


def envelope(*headers: str, body: str = "<se:Body></se:Body>") -> bytes:
    """The envelope with these header elements; without any: path and properties."""
    header = "".join(headers) or path() + properties()
    return (
        f'<se:Envelope xmlns:se="{SE}" xmlns="{SRMP}"><se:Header>{header}</se:Header>{body}</se:Envelope>'
    ).encode()


def full(*headers: str) -> bytes:
    """Path, properties, these elements, Msmq."""
    return envelope(path(), properties(), *headers, msmq())


def examples() -> dict[str, dict[str, Any]]:
    """The whole messages of the specification, by name."""
    return {each["name"]: each for each in json.loads((VECTORS / "examples.json").read_text())}


def fragments() -> dict[str, dict[str, str]]:
    """The elements that the specification prints, and the message of 1.3.12, by name."""
    return {each["name"]: each for each in json.loads((VECTORS / "fragments.json").read_text())}
