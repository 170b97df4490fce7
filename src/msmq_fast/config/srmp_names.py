"""The part of section [srmp] of the configuration that is about names and signatures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msmq_fast.config import kinds
from msmq_fast.config.kinds import TEXTS, Kind, key
from msmq_fast.config.srmp_sending import SrmpSendingConfig
from msmq_fast.srmp.redirection import Pair
from msmq_fast.srmp.urls import parse_url

__all__ = ["SrmpNamesConfig"]

_ARROW: Final = "->"
_DIGESTS: Final = ("sha1", "md5", "sha256", "sha512")


def _pattern(text: str) -> str:
    if not text.endswith("*"):
        parse_url(text)
    return text


def _pair(text: str) -> Pair:
    source, arrow, target = (piece.strip() for piece in text.partition(_ARROW))
    try:
        if not arrow:
            raise ValueError
        parse_url(target)
        return Pair(_pattern(source), target)
    except ValueError:
        raise ValueError(
            f'expected "http://from/msmq/queue -> http://to/msmq/queue", the first with or without a * at '
            f'its end, got "{text}"'
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
            parse_url(text)
        except ValueError as problem:
            raise ValueError(f'{problem}, got "{text}"') from None
    return text


def _digests(value: object) -> tuple[str, ...]:
    for text in TEXTS.check(value):
        if text not in _DIGESTS:
            raise ValueError(f'expected some of {", ".join(_DIGESTS)}, got "{text}"')
    return tuple(TEXTS.check(value))


PAIRS: Final = Kind(
    'redirections such as "http://from/* -> http://to"',
    _pairs,
    lambda text: _pairs(list(TEXTS.from_text(text))),
)
PATTERNS: Final = Kind(
    "URLs, each with or without a * at its end",
    _patterns,
    lambda text: _patterns(list(TEXTS.from_text(text))),
)
URL: Final = Kind("http://host/msmq/private$/queue or the like", _url, _url)
DIGESTS: Final = Kind(
    "some of sha1, md5, sha256, sha512", _digests, lambda text: _digests(list(TEXTS.from_text(text)))
)


@dataclass(slots=True)
class SrmpNamesConfig(SrmpSendingConfig):
    """Which URLs stand for others, and whose signatures are believed."""

    public_host: str = key(
        kinds.TEXT, "", "host in the URLs at which others reach this computer; empty: advertised or own name"
    )
    store_and_forward: bool = key(
        kinds.FLAG, False, "messages for other hosts are passed on, not refused (TransparentStoreAndForward)"
    )
    inbound: tuple[Pair, ...] = key(
        PAIRS, (), 'destinations of messages that arrive, "from -> to"; a * at the end of from is any rest'
    )
    outbound: tuple[Pair, ...] = key(
        PAIRS, (), 'to which host to connect for messages that leave, "from -> to"; they stay as they are'
    )
    outbound_exceptions: tuple[str, ...] = key(
        PATTERNS, (), "destinations that outbound does not apply to; a * at the end is any rest"
    )
    stream_receipts: tuple[Pair, ...] = key(
        PAIRS, (), 'where stream receipts of messages to a URL are to be sent, "destination -> URL"'
    )
    default_stream_receipt: str = key(
        URL, "", "where those of all others are to be sent; empty: to order_queue$ at the public host"
    )
    mapping: Path | None = key(  # noqa: RUF009
        kinds.PATH, None, "directory of mapping files (*.xml) as MSMQ on Windows has them; read at the start"
    )
    signature_digests: tuple[str, ...] = key(
        DIGESTS,
        ("sha256", "sha512"),
        "hash algorithms in signatures that are believed; also sha1, which MSMQ signs with, and md5",
    )
    unregistered_certificates: bool = key(
        kinds.FLAG,
        False,
        "take signatures whose certificate is in the message but not registered here; they prove no sender",
    )
    verify_signatures: bool = key(
        kinds.FLAG, False, "look at signatures also where neither the queue nor its list ask for one"
    )
    send_certificate: bool = key(
        kinds.FLAG, False, "put the certificate of the sender into signed messages (KeyInfo)"
    )
    a05_literal_stream: bool = key(
        kinds.FLAG, False, "the stream element of what is sent is named stream, not Stream"
    )
    a07_literal_expiry: bool = key(
        kinds.FLAG, False, "expiresAt is the time to reach the queue, not the time to be received"
    )
