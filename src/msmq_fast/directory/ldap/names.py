"""Distinguished names and search filters, as text that no value can break out of (RFC 4514, RFC 4515)."""

from __future__ import annotations

from uuid import UUID

from ldap.dn import dn2str, escape_dn_chars, str2dn
from ldap.filter import escape_filter_chars

from msmq_fast.directory.paths import name_hash

_LONGEST_NAME = 63
_KEPT = 55
_HASHED = 64  # characters of a name that was shortened


def child(name: str, parent: str) -> str:
    """Return the distinguished name of the object CN=`name` below `parent`."""
    return f"CN={escape_dn_chars(name)},{parent}"


def parts(path: str) -> list[str]:
    """Return the values of a distinguished name from the object to the root, without escapes. Raises
    ValueError if the name is malformed.
    """
    try:
        return [value for rdn in str2dn(path) for _type, value, _flags in rdn[:1]]
    except Exception:  # ldap.DECODING_ERROR, which is not among the documented ones
        raise ValueError(f"{path!r} is not a distinguished name") from None


def parent(path: str) -> str:
    """Return the distinguished name of the parent object."""
    return str(dn2str(str2dn(path)[1:]))


def by_guid(identifier: UUID) -> str:
    """Return the search base that is the object with this GUID (MS-ADTS 3.1.1.3.1.2.4)."""
    return f"<GUID={identifier}>"


def is_equal(attribute: str, value: str | bytes) -> str:
    """Return the search filter that an attribute has a value. `attribute` is a constant of the program."""
    if isinstance(value, bytes):
        escaped = "".join(f"\\{byte:02x}" for byte in value)
        return f"({attribute}={escaped})"
    return f"({attribute}={escape_filter_chars(value)})"


def any_of(filters: list[str]) -> str:
    """Return the filter that one of `filters` holds."""
    return f"(|{''.join(filters)})"


def short_name(name: str) -> tuple[str, str]:
    """Return the name of a queue's object and its extension (3.1.6.1.2.5): a name of more than 63 characters
    is cut, and the rest of it is in mSMQQueueNameExt.
    """
    if len(name) <= _LONGEST_NAME:
        return name, ""
    return f"{name[:_KEPT]}-{name_hash(name)}", name[_KEPT:]


def whole_name(name: str, extension: str) -> str:
    """Return the queue name of an object's name and extension (3.1.6.11.2.1)."""
    if len(name) == _HASHED and extension:
        return name[:_KEPT] + extension
    return name
