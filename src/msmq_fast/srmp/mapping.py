"""Mapping files of MSMQ on Windows, from its directory `mapping`, so that administrators can reuse them.

Inbound redirection:

    <redirections xmlns="msmq-queue-redirections.xml"><redirection><from/><to/></redirection> …

outbound redirection and its exceptions:

    <outbound_redirections xmlns="msmq_outbound_mapping.xml">
      <redirection><destination/><through/></redirection> … <exceptions><exception/> …

stream receipts, with one URL for all other destinations:

    <StreamReceiptSetup xmlns="msmq-streamreceipt-mapping.xml">
      <setup><LogicalAddress/><StreamReceiptURL/></setup> … <default/>

Microsoft's documents give the names in the first and the third form; everything else is our reading of these
documents. So only the name of the top element, in upper or lower case, distinguishes the files.
"""

from __future__ import annotations

from typing import Final

from lxml import etree

from msmq_fast.srmp.redirection import Pair, Redirections
from msmq_fast.srmp.urls import parse_url

__all__ = ["MappingError", "read_mapping"]

MAX_SIZE: Final = 1 << 20

_INBOUND: Final = "redirections"
_OUTBOUND: Final = ("outbound_redirections", "outboundredirections")
_RECEIPTS: Final = "streamreceiptsetup"
_FROM: Final = ("from", "destination")
_TO: Final = ("to", "through")


class MappingError(ValueError):
    """An invalid mapping file; the text names the mistake and its line."""


def read_mapping(data: bytes) -> Redirections:
    """Return the redirections in a mapping file. Raises MappingError."""
    if len(data) > MAX_SIZE:
        raise MappingError(f"the file is larger than {MAX_SIZE} bytes")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )
    try:
        top = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as problem:
        raise MappingError(f"line {problem.lineno or 1}: not XML: {problem.msg}") from None
    if top.getroottree().docinfo.doctype:
        raise MappingError("line 1: a document type is not accepted")
    match _name(top):
        case name if name == _INBOUND:
            return Redirections(inbound=_pairs(top, "redirection", _FROM, _TO))
        case name if name in _OUTBOUND:
            exceptions = tuple(
                _url(each, pattern=True)
                for group in _children(top, "exceptions")
                for each in _children(group, "exception")
            )
            return Redirections(outbound=_pairs(top, "redirection", _FROM, _TO), exceptions=exceptions)
        case name if name == _RECEIPTS:
            pairs = _pairs(top, "setup", ("logicaladdress",), ("streamreceipturl",))
            defaults = [_url(each) for each in _children(top, "default")]
            return Redirections(stream_receipts=pairs, default_stream_receipt=defaults[0] if defaults else "")
    raise MappingError(
        f"line {top.sourceline}: <{_shown(top)}> is not a mapping: expected <redirections>, "
        "<outbound_redirections> or <StreamReceiptSetup>"
    )


def _shown(element: etree._Element) -> str:
    return str(etree.QName(element).localname)


def _tags(names: tuple[str, ...]) -> str:
    return " or ".join(f"<{name}>" for name in names)


def _name(element: etree._Element) -> str:
    return _shown(element).lower()


def _children(parent: etree._Element, *names: str) -> list[etree._Element]:
    return [child for child in parent.iterchildren(tag=etree.Element) if _name(child) in names]


def _pairs(
    top: etree._Element, element: str, sources: tuple[str, ...], targets: tuple[str, ...]
) -> tuple[Pair, ...]:
    pairs = []
    for entry in _children(top, element):
        source, target = _children(entry, *sources), _children(entry, *targets)
        if len(source) != 1 or len(target) != 1:
            needed = f"one {_tags(sources)} and one {_tags(targets)}"
            raise MappingError(f"line {entry.sourceline}: <{_shown(entry)}> needs {needed}")
        pairs.append(Pair(_url(source[0], pattern=True), _url(target[0])))
    return tuple(pairs)


def _url(element: etree._Element, *, pattern: bool = False) -> str:
    text = "".join(element.itertext()).strip()
    try:
        if not (pattern and text.endswith("*")):
            parse_url(text)
    except ValueError as problem:
        raise MappingError(f"line {element.sourceline}: <{_shown(element)}>: {problem}") from None
    return text
