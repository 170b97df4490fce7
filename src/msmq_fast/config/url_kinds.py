"""The kinds of configuration keys that hold URLs and digests.

The URL parser is imported only when the first URL is read: its import loads the queue manager, and most
client commands need only the path of the socket from the configuration.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msmq_fast.config import kinds
from msmq_fast.config.kinds import TEXTS, TEXTS_SCHEMA, Kind

if TYPE_CHECKING:
    from msmq_fast.srmp.redirection import Pair

__all__ = ["DIGESTS", "LDAP", "OBJECTS", "PAIRS", "PATTERNS", "URL"]

_ARROW: Final = "->"
_LDAP: Final = re.compile(r"ldaps?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?/?")
_DIGESTS: Final = ("sha1", "md5", "sha256", "sha512")


def _check_url(text: str) -> None:
    """Raise ValueError unless the text is a valid URL."""
    from msmq_fast.srmp.urls import parse_url

    parse_url(text)


def _pattern(text: str) -> str:
    if not text.endswith("*"):
        _check_url(text)
    return text


def _pair(text: str) -> Pair:
    from msmq_fast.srmp.redirection import Pair

    source, arrow, target = (piece.strip() for piece in text.partition(_ARROW))
    try:
        if not arrow:
            raise ValueError
        _check_url(target)
        return Pair(_pattern(source), target)
    except ValueError:
        raise ValueError(
            f'expected "http://from/msmq/queue -> http://to/msmq/queue" (the first URL may end with a *), '
            f'got "{text}"'
        ) from None


def _pairs(value: object) -> tuple[Pair, ...]:
    return tuple(_pair(text) for text in TEXTS.check(value))


def _patterns(value: object) -> tuple[str, ...]:
    for text in TEXTS.check(value):
        try:
            _pattern(text)
        except ValueError:
            raise ValueError(
                f'expected URLs such as "http://host/msmq/queue" or "http://host/*", got "{text}"'
            ) from None
    return tuple(TEXTS.check(value))


def _url(value: object) -> str:
    text = str(kinds.TEXT.check(value))
    if text:
        try:
            _check_url(text)
        except ValueError as problem:
            raise ValueError(f'{problem}, got "{text}"') from None
    return text


def _objects(value: object) -> str:
    from msmq_fast.store.objects.urls import checked_url

    text = str(kinds.TEXT.check(value))
    return checked_url(text) if text else ""


def _ldap(value: object) -> tuple[str, ...]:
    found = tuple(TEXTS.check(value))
    for text in found:
        if not _LDAP.fullmatch(text):
            raise ValueError(f'expected ldap://HOST or ldaps://HOST, with or without :PORT, got "{text}"')
    return found


def _digests(value: object) -> tuple[str, ...]:
    for text in TEXTS.check(value):
        if text not in _DIGESTS:
            raise ValueError(f'expected one or more of {", ".join(_DIGESTS)}, got "{text}"')
    return tuple(TEXTS.check(value))


PAIRS: Final = Kind(
    'a text or a list of texts such as "http://from/* -> http://to"',
    _pairs,
    lambda text: _pairs(list(TEXTS.from_text(text))),
    TEXTS_SCHEMA,
    lambda pairs: [f"{pair.source} {_ARROW} {pair.target}" for pair in pairs],
)
PATTERNS: Final = Kind(
    "a text or a list of texts: URLs, each with or without a * at its end",
    _patterns,
    lambda text: _patterns(list(TEXTS.from_text(text))),
    TEXTS_SCHEMA,
    list,
)
URL: Final = Kind("a URL such as http://host/msmq/private$/queue", _url, _url, {"type": "string"})
LDAP: Final = Kind(
    'a text or a list of texts: URLs such as "ldap://dc1.corp.example"',
    _ldap,
    lambda text: _ldap(list(TEXTS.from_text(text))),
    TEXTS_SCHEMA,
    list,
)
OBJECTS: Final = Kind(
    "a URL such as s3://bucket/path, gs://…, az://container/path or file:///path",
    _objects,
    _objects,
    {"type": "string"},
)
DIGESTS: Final = Kind(
    "a list of some of sha1, md5, sha256, sha512",
    _digests,
    lambda text: _digests(list(TEXTS.from_text(text))),
    TEXTS_SCHEMA,
    list,
)
