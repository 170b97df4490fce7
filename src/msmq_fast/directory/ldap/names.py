"""Distinguished names and search filters, as text that no value can break out of (RFC 4514, RFC 4515)."""

from __future__ import annotations

import re
from uuid import UUID

from msmq_fast.directory.paths import name_hash

_LONGEST_NAME = 63
_KEPT = 55
_HASH = 9  # characters that take the place of the rest: a dash, and the hash
_BACKSLASH = "\\"
_SPECIAL = frozenset("\n/#><=")
_ESCAPED = {character: f"\\{character}" for character in '",+;<>=\\'}
_ESCAPED |= {chr(code): f"\\{code:02X}" for code in (*range(32), 127)}
_PART = re.compile(  # of a name with several attributes, the first counts
    r"""\s*[A-Za-z][\w.-]*=((?:[^\\",+;<>]|\\.)*)(?:\+(?:[^\\,]|\\.)*)?(,|$)""", re.DOTALL
)
_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_FILTER = {character: f"\\{ord(character):02x}" for character in "*()\\\0"}


def child(name: str, parent: str) -> str:
    """Return the distinguished name of the object CN=`name` below `parent`."""
    return f"CN={escaped(name)},{parent}"


def escaped(value: str) -> str:
    """Return a value for a distinguished name (RFC 4514 2.4), in the form that Active Directory returns."""
    text = "".join(_ESCAPED.get(character, character) for character in value)
    if text[:1] in (" ", "#"):
        text = f"\\{text}"
    if value.endswith(" ") and len(value) > 1:
        text = f"{text[:-1]}\\ "
    return text


def parts(path: str) -> list[str]:
    """Return the values of a distinguished name from the object to the root, without escapes. Raises
    ValueError if the name is malformed.
    """
    found = []
    at, more = 0, ","
    while more:
        matched = _PART.match(path, at)
        if matched is None:
            raise ValueError(f"{path!r} is not a distinguished name")
        value, more = matched.groups()
        found.append(_plain(value, path) if "\\" in value else value)
        at = matched.end()
    return found


def _plain(value: str, path: str) -> str:
    """Return a value of a distinguished name without its escapes."""
    kept = value.encode()
    data = _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()) if found[1] else found[2], kept)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path!r} is not a distinguished name: it is not UTF-8") from None


def parent(path: str) -> str:
    """Return the distinguished name of the parent object, "" for the root. Raises ValueError if the name is
    malformed.
    """
    matched = _PART.match(path)
    if matched is None:
        raise ValueError(f"{path!r} is not a distinguished name")
    return path[matched.end() :].lstrip()


def domain_of(path: str) -> str:
    """Return the distinguished name of the domain of an object, "" if it is in none. Raises ValueError if the
    name is malformed.
    """
    while path and path[:3].upper() != "DC=":
        path = parent(path)
    return path


def by_guid(identifier: UUID) -> str:
    """Return the search base that is the object with this GUID (MS-ADTS 3.1.1.3.1.2.4)."""
    return f"<GUID={identifier}>"


def is_equal(attribute: str, value: str | bytes) -> str:
    """Return the search filter that an attribute has a value. `attribute` is a constant of the program."""
    if isinstance(value, bytes):
        escaped = "".join(f"\\{byte:02x}" for byte in value)
        return f"({attribute}={escaped})"
    return f"({attribute}={''.join(_FILTER.get(character, character) for character in value)})"


def any_of(filters: list[str]) -> str:
    """Return the filter that one of `filters` holds."""
    return f"(|{''.join(filters)})"


def short_name(name: str) -> tuple[str, str]:
    """Return the name of a queue's object and its extension (3.1.6.1.2.5): a name of more than 63 characters,
    backslashes before special characters included, is cut, and the rest of it is in mSMQQueueNameExt.
    """
    text = "".join(f"\\{character}" if character in _SPECIAL else character for character in name)
    if len(text) <= _LONGEST_NAME:
        return name, ""
    return f"{text[:_KEPT].replace(_BACKSLASH, '')}-{name_hash(text)}", text[_KEPT:]


def whole_name(name: str, extension: str) -> str:
    """Return the queue name of an object's name and extension (3.1.6.11.2.1), without backslashes."""
    kept = name[:-_HASH] if extension else name
    return f"{kept}{extension}".replace(_BACKSLASH, "")
