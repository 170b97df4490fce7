"""XML of strangers: what is refused before a parser builds anything of it."""

from __future__ import annotations

from typing import Any, Final

from lxml import etree

from msmq_fast.srmp.values import Nonconforming

__all__ = ["MAX_ENVELOPE", "parse_xml"]

MAX_ENVELOPE: Final = 64 * 1024  # bytes
MAX_TAGS: Final = 8192  # start tags and end tags
MAX_ATTRIBUTES: Final = 4096

_PARSER: Final = etree.XMLParser(
    encoding="utf-8",
    resolve_entities=False,
    no_network=True,
    load_dtd=False,
    dtd_validation=False,
    huge_tree=False,
    recover=False,
    remove_comments=True,
)


def parse_xml(xml: bytes) -> Any:
    """The root element of a document in UTF-8, without its comments.

    Nonconforming: too large, deeper than 256 elements (libxml2 sees to that), not well-formed, not UTF-8,
    with a document type or a processing instruction.

    What is counted first are bytes that every tag or attribute must have; text may have them too, but not
    so many. A document type is refused even where the same text in a CDATA section would be harmless: no
    entity is ever declared.
    """
    if len(xml) > MAX_ENVELOPE:
        raise Nonconforming(f"an envelope of more than {MAX_ENVELOPE} bytes")
    if xml.count(b"<") > MAX_TAGS or xml.count(b"=") > MAX_ATTRIBUTES:
        raise Nonconforming("an envelope with too many elements or attributes")
    if b"<!DOCTYPE" in xml:
        raise Nonconforming("an envelope with a document type")
    try:
        root = etree.fromstring(xml, _PARSER)
    except (etree.XMLSyntaxError, ValueError) as problem:
        raise Nonconforming(f"not well-formed XML in UTF-8: {str(problem)[:200]!a}") from None
    if b"<?" in xml and root.xpath("boolean(//processing-instruction())"):
        raise Nonconforming("an envelope with a processing instruction")
    return root
