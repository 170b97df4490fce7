"""Headers that messaging frameworks store in the extension of a message.

NServiceBus writes an XML document ArrayOfHeaderInfo, in which each HeaderInfo element has a Key and a Value
(documented under "Native integration" of its MSMQ transport). Rebus writes a JSON object of strings.
"""

from __future__ import annotations

import json
from typing import Final
from xml.parsers import expat

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.text import text

_MAX_HEADERS: Final = 4096


def extension_headers(extension: bytes) -> dict[str, str]:
    """Return the headers as a dict in their order; {} for an empty extension. If a name is repeated, the last
    value counts.

    Raises BodyError if the extension holds neither the XML of NServiceBus nor the JSON of Rebus.
    """
    if not extension.strip(b"\0"):
        return {}
    found = text(extension.rstrip(b"\0") + bytes(_odd(extension)), None).lstrip("\ufeff \t\r\n")
    if found.startswith("<"):
        return _Reader().read(found)
    if found.startswith(("{", "[")):
        return _json(found)
    raise BodyError("the extension holds neither XML nor JSON headers")


def _odd(extension: bytes) -> int:
    """Return 1 if a UTF-16 text lacks its last byte, because trailing zeros of the extension were cut off;
    else 0.
    """
    wide = extension.startswith((b"\xff\xfe", b"\xfe\xff"))
    return len(extension.rstrip(b"\0")) % 2 if wide else 0


def _json(found: str) -> dict[str, str]:
    try:
        value = json.loads(found)
    except (ValueError, RecursionError) as error:
        raise BodyError(f"the headers are not JSON: {error}") from None
    if isinstance(value, list):  # the form of a serialised dictionary: [{"Key": …, "Value": …}, …]
        try:
            value = {item["Key"]: item["Value"] for item in value}
        except (TypeError, KeyError):
            raise BodyError(
                "the headers are a JSON list, but its entries do not have Key and Value"
            ) from None
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise BodyError("the headers are JSON, but not an object whose values are strings")
    if len(value) > _MAX_HEADERS:
        raise BodyError(f"there are more than {_MAX_HEADERS} headers")
    try:
        return {
            _clean(name): _clean(one) if isinstance(one, str) else "" if one is None else json.dumps(one)
            for name, one in value.items()
        }
    except RecursionError:
        raise BodyError("the headers are nested too deeply") from None


def _clean(found: str) -> str:
    r"""Replace unpaired surrogates, which JSON can escape (\ud800) and no column can hold."""
    return found.encode("utf-8", "replace").decode()


class _Reader:
    """Reads an ArrayOfHeaderInfo document. Rejects entity declarations, so that no entity is expanded."""

    def __init__(self) -> None:
        self._path: list[str] = []
        self._key = self._value = ""
        self._headers: dict[str, str] = {}

    def read(self, document: str) -> dict[str, str]:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._refuse
        parser.StartDoctypeDeclHandler = self._refuse
        try:
            parser.Parse(document.encode("utf-8", "replace"), True)
        except expat.ExpatError as error:
            raise BodyError(f"the headers are not XML: {error}") from None
        return self._headers

    @staticmethod
    def _refuse(*_: object) -> None:
        raise BodyError("the headers have a document type declaration: that is not allowed")

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        self._path.append(name.rpartition(":")[2])
        if len(self._path) == 1 and self._path[0] != "ArrayOfHeaderInfo":
            raise BodyError(f"the headers are an XML document {self._path[0][:60]}, not ArrayOfHeaderInfo")
        if len(self._path) == 2:
            self._key = self._value = ""

    def _end(self, _name: str) -> None:
        if self._path == ["ArrayOfHeaderInfo", "HeaderInfo"]:
            if len(self._headers) >= _MAX_HEADERS:
                raise BodyError(f"there are more than {_MAX_HEADERS} headers")
            self._headers[self._key] = self._value
        self._path.pop()

    def _text(self, data: str) -> None:
        if self._path[1:] == ["HeaderInfo", "Key"]:
            self._key += data
        elif self._path[1:] == ["HeaderInfo", "Value"]:
            self._value += data
