"""Section [srmp]: messages over HTTP and HTTPS; the ports are in [listen.http] and [listen.https]."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key
from msmq_fast.config.url_kinds import DIGESTS, PAIRS, PATTERNS, URL
from msmq_fast.srmp.redirection import Pair

__all__ = ["SrmpConfig"]


@dataclass(slots=True)
class SrmpConfig:
    """Section [srmp]: messages over HTTP and HTTPS; the ports are in [listen.http] and [listen.https]."""

    sending: str = key(
        kinds.choice("auto", "on", "off"),
        "auto",
        "messages may be sent to DIRECT=HTTP:// and HTTPS:// names; auto: unless the HTTP ports are off",
    )
    retry_interval: float = key(
        kinds.duration(0.1, 86_400), 20.0, "until a queue tries again whose message was not taken"
    )
    idle_timeout: float = key(
        kinds.duration(1, 86_400), 300.0, "a connection is closed on which nothing was sent for so long"
    )
    response_timeout: float = key(kinds.duration(1, 3_600), 60.0, "for the answer to a message")
    connect_timeout: float = key(kinds.duration(0.1, 600), 10.0, "for one connection")
    connections_per_host: int = key(kinds.integer(1, 1024), 8, "to one server at a time")
    ca_file: Path | None = key(  # noqa: RUF009
        kinds.PATH, None, "certificates (PEM) that servers are verified with, instead of those of the system"
    )
    proxy: str = key(name_kinds.PROXY, "", "host:port of a proxy for messages that leave; empty: none")
    proxy_bypass: tuple[str, ...] = key(
        kinds.TEXTS, (), "hosts that are reached without the proxy; *.example.org stands for all below it"
    )
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
    check_expiry: bool = key(
        kinds.FLAG,
        True,
        "messages whose time is over when they arrive are dropped, and answered with 200; "
        "else they are kept, without that limit",
    )
    expired_dead_letters: int = key(
        kinds.size(0, 1 << 40),
        16 << 20,
        "bytes of dead letters in an hour that messages of one address (IPv6: of one /64) which have expired "
        "on arrival leave here; beyond it the answer is 400, and their senders keep them",
    )
    receipts_to: tuple[str, ...] = key(
        name_kinds.HOSTS,
        (),
        "hosts (*.example.org stands for all below it) and networks that receipts go to, besides the address "
        "that their message came from; acknowledgments of messages over MS-MQQB to HTTP names go only there",
    )
    receipt_delay: float = key(
        kinds.duration(0.05, 60), 0.5, "how long a stream pauses before it is acknowledged"
    )
    receipt_delay_max: float = key(
        kinds.duration(0.05, 600), 10.0, "a stream that does not pause is acknowledged that often"
    )
    stream_lifetime: float = key(
        kinds.duration(86_400, 10 * 365 * 86_400.0),
        90 * 86_400.0,
        "a stream of which nothing came for so long is forgotten",
    )
    unfinished: int = key(
        kinds.size(0, 1 << 40), 256 << 20, "bytes of large requests that are on their way; beyond it, 500"
    )
    keep_alive: float = key(
        kinds.duration(1, 86_400), 360.0, "a connection without requests for so long is closed"
    )
