"""SoapHeader and SoapBody of a message, as texts (MS-MQDMPR 3.1.1.12, MC-MQSRM 3.1.5.1.1)."""

from __future__ import annotations

import re
from typing import Final, Literal

from msmq_fast.packet.user_message import UserMessagePacket

__all__ = ["child_of_root", "soap_part"]

_DEEPEST: Final = 512  # nested elements, as in src/_native/columnsoap.pyx

_S: Final = r"[ \t\r\n]"
_NAME: Final = r"[^ \t\r\n<>/=\"']++"
# Only sets of characters are repeated possessively: with groups, Python before 3.11.5 finds the wrong end.
_TOKEN: Final = re.compile(
    r"(?P<text>[^<]++)"
    r"|<\?.*?\?>"
    r"|<!--.*?--(?P<comment>>?)"
    r"|(?P<data><!\[CDATA\[).*?\]\]>"
    rf"|</(?P<end>{_NAME}){_S}*+>"
    rf"|<(?![!?])(?P<start>{_NAME})"
    rf"(?:{_S}++{_NAME}{_S}*+={_S}*+(?:\"[^\"<]*+\"|'[^'<]*+'))*{_S}*+(?P<empty>/?)>",
    re.DOTALL,
)


def soap_part(packet: UserMessagePacket, name: Literal["Header", "Body"]) -> str | None:
    """Returns the SOAP header or body of a message as XML text; None if the message has none.

    If the message has an SRMP envelope, the result is the element `name` of the envelope, tags included.
    Otherwise it is the text in the SoapHeader (MS-MQMQ 2.2.20.7).
    """
    if packet.envelope is not None:
        return child_of_root(packet.envelope.envelope, name)
    if packet.soap is not None:
        return packet.soap.header if name == "Header" else packet.soap.body
    return None


def child_of_root(xml: str, name: str) -> str | None:
    """Returns the first child element of the root with this local name, as it is written in `xml`.

    Returns None if there is no such child, if start tags and end tags do not match, or if there is a document
    type. Entities, characters and namespaces are not checked.
    """
    names: list[str] = []  # of the elements that are open
    rooted, start, end = False, -1, -1
    at = 1 if xml.startswith("\ufeff") else 0
    while at < len(xml):
        token = _TOKEN.match(xml, at)
        if token is None:
            return None
        match token.lastgroup:
            case "text":
                if not names and token["text"].strip(" \t\r\n"):
                    return None
            case "data":
                if not names:
                    return None
            case "comment":
                if not token["comment"]:  # it has two hyphens inside
                    return None
            case "end":
                if not names or names.pop() != token["end"]:
                    return None
            case "empty":
                if (rooted and not names) or len(names) == _DEEPEST:
                    return None
                rooted = True
                if len(names) == 1 and start < 0 and token["start"].rpartition(":")[2] == name:
                    start = at
                if not token["empty"]:
                    names.append(token["start"])
        at = token.end()
        if start >= 0 and end < 0 and len(names) == 1:
            end = at
    return xml[start:end] if end >= 0 and not names else None
