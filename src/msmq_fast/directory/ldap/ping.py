"""The LDAP ping (MS-ADTS 6.3.3): the question to a domain controller, and its answer. Neither sends nor
receives; `server.net.pinging` does. Needs pyasn1.

The answer is neither signed nor encrypted. It is therefore a hint only: it chooses between controllers and
sites that are known from elsewhere, and what it says is never shown as a fact of the domain.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntFlag
from typing import Any, Final
from uuid import UUID

from pyasn1.codec.ber import encoder
from pyasn1.codec.der import decoder
from pyasn1.error import PyAsn1Error
from pyasn1_modules import rfc2251

__all__ = [
    "MAX_ANSWER",
    "MAX_IDENTIFIER",
    "DsFlag",
    "PingAnswer",
    "PingError",
    "decode_answer",
    "encode_question",
]

MAX_ANSWER: Final = 4_096
"""Octets of an answer. Eight names of 255 octets, each with its length, are half of that."""
MAX_IDENTIFIER: Final = (1 << 31) - 1
"""The greatest message identifier (RFC 4511 4.1.1)."""

_NT_VERSION: Final = 0x0100_0006  # V5, V5EX and AVOID_NT4EMUL (6.3.1.1)
_RESPONSE_EX: Final = 23  # LOGON_SAM_LOGON_RESPONSE_EX (6.3.1.3)
_PAUSE_RESPONSE_EX: Final = 24
_HEAD: Final = struct.Struct("<HHI16s")
_TAIL: Final = 8  # octets of NtVersion, LmNtToken and Lm20Token
_MESSAGES: Final = 4  # in a datagram: the entry and the end of the search, and some patience
_NAME: Final = 255  # octets of a name (RFC 1035 2.3.4)
_POINTER: Final = 0xC0


class PingError(ValueError):
    """A datagram that does not answer the question, with the reason."""


class DsFlag(IntFlag):
    """What a domain controller is (6.3.1.2), as far as this program uses it."""

    GC = 0x0000_0004
    LDAP = 0x0000_0008
    CLOSEST = 0x0000_0080
    WRITABLE = 0x0000_0100


@dataclass(frozen=True, slots=True)
class PingAnswer:
    """NETLOGON_SAM_LOGON_RESPONSE_EX (6.3.1.9). Names that the controller does not know are ""."""

    paused: bool
    flags: DsFlag
    domain_guid: UUID
    forest: str
    domain: str
    host: str
    netbios_domain: str
    netbios_computer: str
    user: str
    controller_site: str
    client_site: str

    @property
    def usable(self) -> bool:
        """Whether the controller accepts LDAP at present."""
        return DsFlag.LDAP in self.flags and not self.paused


def encode_question(identifier: int, domain: str = "") -> bytes:
    """Return the datagram that asks about the domain with this DNS name, by default that of the
    controller.
    """
    message = rfc2251.LDAPMessage()
    message["messageID"] = identifier
    search = message["protocolOp"]["searchRequest"]
    search["baseObject"] = ""
    search["scope"] = "baseObject"
    search["derefAliases"] = "neverDerefAliases"
    search["sizeLimit"] = search["timeLimit"] = 0
    search["typesOnly"] = False
    asked = {"DnsDomain": domain.encode(), "NtVer": struct.pack("<I", _NT_VERSION)}
    condition = search["filter"]["and"]
    for number, (name, value) in enumerate((name, value) for name, value in asked.items() if value):
        condition.setComponentByPosition(number)
        condition[number]["equalityMatch"]["attributeDesc"] = name
        condition[number]["equalityMatch"]["assertionValue"] = value
    search["attributes"][0] = "Netlogon"
    return bytes(encoder.encode(message))


def decode_answer(data: bytes, identifier: int, domain: str = "") -> PingAnswer:
    """Return the answer in a datagram. Raises PingError if it is malformed, answers another question or is
    about another domain than the one that was asked for.
    """
    answer = _answer(_netlogon(data, identifier))
    if domain and answer.domain.casefold() != domain.casefold():
        raise PingError("the answer is about another domain")
    return answer


def _netlogon(data: bytes, identifier: int) -> bytes:
    """Return the value of the attribute Netlogon of a search result (3.1.1.3.1.11)."""
    if len(data) > MAX_ANSWER:
        raise PingError(f"the answer has more than {MAX_ANSWER} octets")
    rest = data
    for _ in range(_MESSAGES):
        if not rest:
            break
        try:  # lengths are definite, and strings in one piece (RFC 4511 5.1), which the rules of DER ensure
            message, rest = decoder.decode(rest, asn1Spec=rfc2251.LDAPMessage())
        except PyAsn1Error as error:
            raise PingError(f"the answer is malformed: {' '.join(str(error).split())[:80]}") from None
        if int(message["messageID"]) != identifier:
            raise PingError("the answer belongs to another question")
        operation = message["protocolOp"]
        match operation.getName():
            case "searchResEntry":
                return _value(operation["searchResEntry"])
            case "searchResDone":
                raise PingError("the controller does not serve this domain")  # 6.3.3.3
            case _:
                break
    raise PingError("the answer has no entry")


def _value(entry: Any) -> bytes:
    for attribute in entry["attributes"]:
        if bytes(attribute["type"]).lower() == b"netlogon" and len(attribute["vals"]) == 1:
            return bytes(attribute["vals"][0])
    raise PingError("the controller does not serve this domain")


def _answer(data: bytes) -> PingAnswer:
    if len(data) < _HEAD.size + _TAIL:
        raise PingError("the answer is too short")
    opcode, _zero, flags, guid = _HEAD.unpack_from(data)
    if opcode not in (_RESPONSE_EX, _PAUSE_RESPONSE_EX):
        raise PingError(f"the answer has another form (operation {opcode})")
    body = data[:-_TAIL]
    found, at = [], _HEAD.size
    for _ in range(8):
        name, at = _name(body, at)
        found.append(name)
    return PingAnswer(opcode == _PAUSE_RESPONSE_EX, DsFlag(flags), UUID(bytes_le=guid), *found)


def _name(data: bytes, at: int) -> tuple[str, int]:
    """Return the compressed name at a position, and the position behind it (6.3.7, RFC 1035 4.1.4).

    Each pointer leads further to the front than everything that was read of the name before, as an encoder
    that refers to prior names writes it: a name therefore ends, and takes at most `_NAME` octets.
    """
    labels: list[str] = []
    length, end, lowest = 0, None, at
    while True:
        size = _octet(data, at)
        if size == 0:
            return ".".join(labels), end or at + 1
        if size & _POINTER == _POINTER:
            target = (size & ~_POINTER) << 8 | _octet(data, at + 1)
            end = end or at + 2
            if target >= lowest:
                raise PingError("a compressed name does not refer to a prior one")
            at = lowest = target
            continue
        label = data[at + 1 : at + 1 + size]
        length += size + 1
        if size & _POINTER or len(label) != size or length > _NAME:
            raise PingError("a name is too long")
        labels.append(_label(label))
        at += 1 + size


def _octet(data: bytes, at: int) -> int:
    if at >= len(data):
        raise PingError("a name does not end")
    return data[at]


def _label(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise PingError("a name is not UTF-8") from None
    if not text.isprintable() or "." in text:
        raise PingError("a name has characters that no name has")
    return text
