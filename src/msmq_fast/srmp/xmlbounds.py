"""Checks XML from unauthenticated peers before a parser builds a tree from it."""

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
    """Return the root element of a document in UTF-8, without its comments.

    Raises Nonconforming if the document is too large, deeper than 256 elements (libxml2 checks this), not
    well-formed, not UTF-8, or has a document type or a processing instruction.

    Before parsing, this function counts the bytes `<` and `=`: every tag has a `<`, every attribute a `=`.
    Texts may contain these bytes too, but not so often that the limits are exceeded. The text `<!DOCTYPE` is
    refused even in a CDATA section, where it would be harmless, so that no entity is ever declared.
    """
    if len(xml) > MAX_ENVELOPE:
        raise Nonconforming(f"the envelope has more than {MAX_ENVELOPE} bytes")
    if xml.count(b"<") > MAX_TAGS or xml.count(b"=") > MAX_ATTRIBUTES:
        raise Nonconforming("the envelope has too many elements or attributes")
    if b"<!DOCTYPE" in xml:
        raise Nonconforming("the envelope has a document type")
    try:
        root = etree.fromstring(xml, _PARSER)
    except (etree.XMLSyntaxError, ValueError) as problem:
        raise Nonconforming(f"not well-formed XML in UTF-8: {str(problem)[:200]!a}") from None
    if b"<?" in xml and root.xpath("boolean(//processing-instruction())"):
        raise Nonconforming("the envelope has a processing instruction")
    return root
