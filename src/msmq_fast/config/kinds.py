"""The kinds of values that a configuration key may hold. Each kind defines how a value is read from TOML and
from text.

`check` takes a TOML value, `from_text` the text of an environment variable or a flag. Both return the value
that the server uses, and raise ValueError with a text such as "expected a GUID, got …". `to_toml` is the
inverse of `check`, and `schema` is the JSON schema of the values that `check` takes, for editors.

The kinds do not use pydantic, because every client command without an endpoint reads the configuration, and
importing pydantic and building the models of the sections would take longer than the rest of such a command.

To add a key:

1. Add a field to the dataclass of its section in `config/sections/`: `name: type = key(kind, default,
   about)`. The key can then be set in the file and in the variable MSMQ_FAST_SECTION__KEY, and a mistake in
   its value is reported with the line.
2. Use the value where the server is assembled, usually in `server/assembly.py`.
3. Regenerate the reference: `python -m tools.configuration --write`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from uuid import UUID

from msmq_fast.protocol.text import quoted
from msmq_fast.protocol.units import parse_duration, parse_size, shown_duration, shown_size

__all__ = [
    "FLAG",
    "GIB",
    "GUID",
    "KIB",
    "MIB",
    "NETWORKS",
    "PATH",
    "PATHS",
    "SHA256",
    "SOCKET",
    "TEXT",
    "TEXTS",
    "TEXTS_SCHEMA",
    "TIB",
    "Kind",
    "Preferred",
    "choice",
    "duration",
    "file_mode",
    "fraction",
    "integer",
    "key",
    "port",
    "quota",
    "size",
]

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
_UNLIMITED = 2**32 - 1  # KB, as PROPID_Q_QUOTA has it


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value. `described` completes the sentence "expected …"."""

    described: str
    check: Callable[[object], Any]
    from_text: Callable[[str], Any]
    schema: Mapping[str, object]
    to_toml: Callable[[Any], object] = lambda value: value


def key(kind: Kind, default: Any, about: str, *, secret: bool = False, live: bool = False) -> Any:
    """Return the dataclass field of a key, with its kind, its default and a short description (`about`).

    The value of a `secret` key is never shown. A `live` key can change while the server runs
    (`server/reloading.py`).
    """
    metadata = {"kind": kind, "about": about, "secret": secret, "live": live}
    return field(default=default, metadata=metadata)


def _mismatch(described: str, value: object) -> ValueError:
    shown = quoted(value) if isinstance(value, str) else repr(value)
    return ValueError(f"expected {described}, got {shown}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _mismatch("text", value)
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _mismatch("true or false", value)
    return value


def _flag_text(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("true", "1", "yes", "on"):
        return True
    if lowered in ("false", "0", "no", "off"):
        return False
    raise _mismatch("true or false", text)


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _mismatch("a text or a list of texts", value)
    return tuple(value)


def _texts_text(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _guid(value: object) -> str:
    text = _text(value)
    try:
        return str(UUID(text)) if text else ""
    except ValueError:
        raise _mismatch("a GUID", value) from None


def _digest(value: object) -> str:
    text = _text(value)
    if text and not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise _mismatch(_DIGEST, value)
    return text.lower()


def _path(value: object) -> Path | None:
    text = _text(value)
    if "\0" in text:
        raise _mismatch("a path", value)
    try:
        return Path(text).expanduser() if text else None
    except RuntimeError:
        raise ValueError(f"expected a path, got {quoted(text)}: there is no such user") from None


def _all_paths(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        _path(text)
    return texts


def _socket(value: object) -> str:
    if value != "off":
        _path(value)
    return _text(value)


def _networks(value: object) -> tuple[str, ...]:
    return _canonical(_texts(value))


def _canonical(texts: tuple[str, ...]) -> tuple[str, ...]:
    found = []
    for text in texts:
        try:
            found.append(str(ip_network(text)))
        except ValueError as error:
            raise ValueError(f"expected addresses or networks such as 10.1.0.0/16, got {error}") from None
    return tuple(found)


TEXTS_SCHEMA: Mapping[str, object] = {"type": ["string", "array"], "items": {"type": "string"}}
"""The JSON schema of keys that hold a text or a list of texts."""

NETWORKS = Kind(
    "a list of addresses or networks such as 10.1.0.0/16",
    _networks,
    lambda text: _canonical(_texts_text(text)),
    TEXTS_SCHEMA,
    list,
)
TEXT = Kind("text", _text, _text, {"type": "string"})
FLAG = Kind("true or false", _flag, _flag_text, {"type": "boolean"})
TEXTS = Kind("a text or a list of texts", _texts, _texts_text, TEXTS_SCHEMA, list)
GUID = Kind("a GUID", _guid, _guid, {"type": "string", "pattern": "^([0-9a-fA-F{}-]{32,38})?$"})
_DIGEST = "64 hexadecimal digits"
SHA256 = Kind(_DIGEST, _digest, _digest, {"type": "string", "pattern": "^([0-9a-fA-F]{64})?$"})
PATHS = Kind(
    "a path or a list of paths",
    lambda value: _all_paths(_texts(value)),
    lambda text: _all_paths(_texts_text(text)),
    TEXTS_SCHEMA,
    list,
)
SOCKET = Kind('a path, or "off"', _socket, _socket, {"type": "string"})
PATH = Kind("a path", _path, _path, {"type": "string"}, lambda value: "" if value is None else str(value))


def _whole_number(described: str, text: str) -> int:
    try:
        return int(text.strip(), 10)
    except ValueError:
        raise _mismatch(described, text) from None


def integer(low: int, high: int) -> Kind:
    """Return the kind of keys whose value is a whole number from `low` to `high`, both included."""
    described = f"a whole number from {low} to {high}"

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _mismatch(described, value)
        return value

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Kind(described, check, lambda text: check(_whole_number(described, text)), schema)


class Preferred(int):
    """A default port: the server listens there if the port is free, and starts without this listener if
    not.
    """


def port(*, optional: bool = True) -> Kind:
    """Return the kind of keys whose value is a port number. 0 lets the system choose a port. With `optional`,
    "off" is also allowed; its value is None.
    """
    described = "a port number from 0 to 65535" + (' or "off"' if optional else "")

    def check(value: object) -> int | None:
        if optional and value == "off":
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 65535:
            raise _mismatch(described, value)
        return value

    def from_text(text: str) -> int | None:
        if optional and text.strip().lower() == "off":
            return None
        return check(_whole_number(described, text))

    number: dict[str, object] = {"type": "integer", "minimum": 0, "maximum": 65535}
    schema = {"anyOf": [number, {"const": "off"}]} if optional else number
    return Kind(described, check, from_text, schema, lambda value: "off" if value is None else int(value))


def size(low: int, high: int) -> Kind:
    """Return the kind of keys whose value is a size from `low` to `high` bytes, written as a number or with
    a unit.
    """
    described = f'a size from {shown_size(low)} to {shown_size(high)}, such as 1048576 or "64 MiB"'

    def check(value: object) -> int:
        if isinstance(value, str):
            value = parse_size(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _mismatch(described, value)
        return value

    schema = {"type": ["integer", "string"], "minimum": low, "maximum": high}
    return Kind(described, check, check, schema, shown_size)


def quota(*, auto: bool = False) -> Kind:
    """Return the kind of keys whose value is a quota. A quota limits the bytes of messages; it is written as
    a size or "unlimited", and with `auto` also as "auto".

    The value is in KB (1024 bytes, rounded up), the unit of MSMQ; 4294967295 stands for "unlimited" and None
    for "auto".
    """
    words = ["auto", "unlimited"] if auto else ["unlimited"]
    largest = (_UNLIMITED - 1) * KIB
    described = f'a size up to {shown_size(largest)}, such as "10 GiB", or '
    described += " or ".join(f'"{word}"' for word in words)

    def check(value: object) -> int | None:
        if isinstance(value, str) and value.strip().lower() in words:
            return None if value.strip().lower() == "auto" else _UNLIMITED
        if isinstance(value, str):
            value = parse_size(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
            raise _mismatch(described, value)
        return -(-value // KIB)

    def to_toml(kilobytes: int | None) -> object:
        if kilobytes is None:
            return "auto"
        return "unlimited" if kilobytes == _UNLIMITED else shown_size(kilobytes * KIB)

    schema = {"type": ["integer", "string"], "minimum": 0, "maximum": largest}
    return Kind(described, check, check, schema, to_toml)


def duration(low: float, high: float) -> Kind:
    """Return the kind of keys whose value is a duration from `low` to `high` seconds, written as a number or
    with a unit: ms, s, m, h, d.
    """
    described = f'a duration from {shown_duration(low)} to {shown_duration(high)}, such as 90 or "5m"'

    def check(value: object) -> float:
        if isinstance(value, str):
            value = parse_duration(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise _mismatch(described, value)
        return float(value)

    schema = {"type": ["number", "string"], "minimum": low, "maximum": high}
    return Kind(described, check, check, schema, shown_duration)


def fraction() -> Kind:
    """Return the kind of keys whose value is a number from 0 to 1, both included."""
    described = "a number from 0 to 1"

    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise _mismatch(described, value)
        return float(value)

    def from_text(text: str) -> float:
        try:
            return check(float(text))
        except ValueError:
            raise _mismatch(described, text) from None

    return Kind(described, check, from_text, {"type": "number", "minimum": 0, "maximum": 1})


def choice(*words: str) -> Kind:
    """Return the kind of keys whose value must be one of `words`."""
    described = "one of " + ", ".join(f'"{word}"' for word in words)

    def check(value: object) -> str:
        word = str(value) if isinstance(value, int) else value  # 2048 without quotation marks
        if not isinstance(word, str) or word not in words:
            raise _mismatch(described, value)
        return word

    def to_toml(word: str) -> object:
        return int(word) if word.isdecimal() else word

    schema = {"enum": list(dict.fromkeys([*map(to_toml, words), *words]))}
    return Kind(described, check, lambda text: check(text.strip().lower()), schema, to_toml)


def file_mode() -> Kind:
    """Return the kind of keys whose value is the permissions of a socket file, in octal as text."""
    described = 'file permissions in octal such as "0600" or "0660"'

    def check(value: object) -> int:
        if not isinstance(value, str) or not re.fullmatch(r"0?[0-7]{3}", value):
            raise _mismatch(described, value)
        return int(value, 8)

    schema = {"type": "string", "pattern": "^0?[0-7]{3}$"}
    return Kind(described, check, check, schema, lambda value: f"{value:04o}")
