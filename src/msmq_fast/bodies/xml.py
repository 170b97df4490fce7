"""Bodies of .NET's XmlMessageFormatter, that is, of XmlSerializer: encodes simple values; decodes simple
values, and classes as dicts.

Decoding uses no schema: the names of the elements decide.

1. An element with the name of a simple type (`int`, `string`, `dateTime`), or with such an `xsi:type`, is a
   value of that type; `xsi:nil` is None. An element is a list if its name begins with `ArrayOf`, or if all of
   its children have the name of the same simple type.
2. Any other element with children or attributes is a dict keyed by the names of the children. The value of a
   repeated name is a list; the key of an attribute is `@` and its name; the key of text beside children is
   `#text`. The dict of the root, and that of an element with an `xsi:type`, also holds the class name as
   `__class__`.
3. Any other element is its text.

Document type declarations are rejected, so no entity is expanded; the depth is bounded.
"""

from __future__ import annotations

from typing import Any, Final
from xml.parsers import expat

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.text import xml as xml_text
from msmq_fast.bodies.types import ARRAY, TYPES, SimpleType, simple_type
from msmq_fast.bodies.xmlvalues import from_text, to_text

CLASS: Final = "__class__"
"""The key under which the dict of an object holds the name of its class."""

MAX_DEPTH: Final = 100
_XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
_XSD: Final = "http://www.w3.org/2001/XMLSchema"
_DECLARATION: Final = '<?xml version="1.0"?>\r\n'
_SPACES: Final = f' xmlns:xsi="{_XSI}" xmlns:xsd="{_XSD}"'
_BY_ELEMENT: Final = {kind.xml: kind for kind in TYPES.values() if kind.xml is not None}


def encode(value: Any, name: str) -> bytes:
    """Return the document that XmlSerializer of .NET Framework writes on Windows for a value of the type
    `name`.

    Raises BodyError if XmlSerializer has no element for the type, or the value does not have the type.
    """
    if not name.endswith(ARRAY):
        return (_DECLARATION + _element(_writable(name), value)).encode()
    kind = _writable(name.removesuffix(ARRAY))
    root = f"ArrayOf{_element_name(kind)[0].upper()}{_element_name(kind)[1:]}"
    if not value:
        return f"{_DECLARATION}<{root}{_SPACES} />".encode()
    lines = [f"  {_nil(kind) if item is None else _element(kind, item)}\r\n" for item in value]
    return f"{_DECLARATION}<{root}{_SPACES}>\r\n{''.join(lines)}</{root}>".encode()


def _element_name(kind: SimpleType) -> str:
    if kind.xml is None:
        raise BodyError(f"the formatter xml does not write {kind.name}: send it as a string or a number")
    return kind.xml


def _writable(name: str) -> SimpleType:
    kind = simple_type(name)
    _element_name(kind)
    return kind


def _nil(kind: SimpleType) -> str:
    if kind.name not in ("string", "bytes"):
        raise BodyError(f"an array of {kind.name} must not hold None")
    return f'<{kind.xml} xsi:nil="true" />'


def _element(kind: SimpleType, value: Any) -> str:
    text = to_text(value, kind)
    return f"<{kind.xml}>{text}</{kind.xml}>" if text else f"<{kind.xml} />"


def decode(body: bytes) -> tuple[Any, list[str]]:
    """Return (value of a document, notes). The notes name elements that could not be decoded as the type that
    their name states.

    Raises BodyError if the bytes are not one XML document, declare a document type or are nested too deeply.
    """
    reader = _Reader()
    return reader.read(xml_text(body)), reader.notes


class _Element:
    __slots__ = ("attributes", "children", "name", "text", "type_name")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = _local(name)
        self.type_name: str | None = None  # local part of xsi:type
        self.attributes: dict[str, str] = {}
        self.children: list[tuple[str, Any]] = []
        self.text: list[str] = []
        for key, value in attributes.items():
            if key == _XSI + " type":
                self.type_name = value.rpartition(":")[2]
            else:
                self.attributes[key] = value


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


class _Reader:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self._open: list[_Element] = []
        self._root: Any = None

    def read(self, document: str) -> Any:
        parser = expat.ParserCreate("utf-8", " ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        try:
            parser.Parse(document.encode("utf-8", "replace"), True)
        except expat.ExpatError as error:
            raise BodyError(f"the body is not XML: {error}") from None
        return self._root

    @staticmethod
    def _refuse(*_: object) -> None:
        raise BodyError("the document has a document type declaration: that is not allowed")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise BodyError(f"elements are nested more than {MAX_DEPTH} deep")
        self._open.append(_Element(name, attributes))

    def _text(self, data: str) -> None:
        self._open[-1].text.append(data)

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        value = self._value(element, root=not self._open)
        if self._open:
            self._open[-1].children.append((element.name, value))
        else:
            self._root = value

    def _value(self, element: _Element, *, root: bool) -> Any:
        if element.attributes.get(_XSI + " nil") in ("true", "1"):
            return None
        text = "".join(element.text)
        attributes = {"@" + _local(key): value for key, value in element.attributes.items()}
        if not element.children and not attributes:
            kind = _BY_ELEMENT.get(element.type_name or element.name)
            if kind is not None:
                return self._simple(element.name, text, kind)
            if element.type_name is None and not element.name.startswith("ArrayOf"):
                if root:
                    self._note(f"the root element is {element.name[:60]}")
                return text
        if _is_list(element):
            return [value for _, value in element.children]
        return _fields(element, attributes, text, root=root)

    def _simple(self, name: str, text: str, kind: SimpleType) -> Any:
        try:
            return from_text(text, kind)
        except BodyError as error:
            self._note(f"element {name[:60]}: {error}")
            return text

    def _note(self, text: str) -> None:
        if len(self.notes) < 20:
            self.notes.append(text)


def _is_list(element: _Element) -> bool:
    if element.attributes:
        return False
    if element.name.startswith("ArrayOf"):
        return True
    names = {name for name, _ in element.children}
    return len(names) == 1 and names.pop() in _BY_ELEMENT


def _fields(element: _Element, attributes: dict[str, str], text: str, *, root: bool) -> dict[str, Any]:
    groups: dict[str, list[Any]] = {}
    for name, value in element.children:
        groups.setdefault(name, []).append(value)
    fields: dict[str, Any] = {}
    if root or element.type_name is not None:
        fields[CLASS] = element.type_name or element.name
    fields.update(attributes)
    for name, values in groups.items():
        fields.setdefault(name, values[0] if len(values) == 1 else values)
    if text.strip(" \t\r\n"):
        fields["#text"] = text
    return fields
