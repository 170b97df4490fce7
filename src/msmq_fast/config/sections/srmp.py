"""Section [srmp]: messages over HTTP and HTTPS; the ports are in [listen.http] and [listen.https]."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key
from msmq_fast.config.url_kinds import DIGESTS, PAIRS, PATTERNS, URL

if TYPE_CHECKING:
    from msmq_fast.srmp.redirection import Pair

__all__ = ["SrmpConfig"]


@dataclass(slots=True)
class SrmpConfig:
    """Section [srmp]: messages over HTTP and HTTPS; the ports are in [listen.http] and [listen.https]."""

    sending: str = key(
        kinds.choice("auto", "on", "off"),
        "auto",
        "send messages to DIRECT=HTTP:// and DIRECT=HTTPS:// names; auto: on, unless both HTTP ports are off",
    )
    retry_interval: float = key(
        kinds.duration(0.1, 86_400), 20.0, "time before a queue retries a message that was not accepted"
    )
    idle_timeout: float = key(
        kinds.duration(1, 86_400), 300.0, "a connection is closed after this time without a message"
    )
    response_timeout: float = key(kinds.duration(1, 3_600), 60.0, "time for the answer to a message")
    connect_timeout: float = key(kinds.duration(0.1, 600), 10.0, "time for one attempt to connect")
    connections_per_host: int = key(
        kinds.integer(1, 1024), 8, "maximum number of connections to one server at the same time"
    )
    ca_file: Path | None = key(
        kinds.PATH, None, "CA certificates (PEM) that verify other servers; empty: those of the system"
    )
    proxy: str = key(name_kinds.PROXY, "", "host:port of the proxy for outgoing messages; empty: no proxy")
    proxy_bypass: tuple[str, ...] = key(
        kinds.TEXTS,
        (),
        "hosts that are reached without the proxy; *.example.org stands for all names below it",
    )
    public_host: str = key(
        kinds.TEXT,
        "",
        "host in the URLs with which other computers reach this computer; empty: "
        "server.advertised_address, or the computer name",
    )
    store_and_forward: bool = key(
        kinds.FLAG,
        False,
        "forward messages for other hosts instead of refusing them (TransparentStoreAndForward)",
    )
    inbound: tuple[Pair, ...] = key(
        PAIRS,
        (),
        'redirections of the destinations of incoming messages, "from -> to"; a * at the end of '
        '"from" stands for any rest',
    )
    outbound: tuple[Pair, ...] = key(
        PAIRS,
        (),
        'hosts to connect to for outgoing messages, "from -> to"; the messages themselves do not change',
    )
    outbound_exceptions: tuple[str, ...] = key(
        PATTERNS, (), "destinations to which outbound does not apply; a * at the end stands for any rest"
    )
    stream_receipts: tuple[Pair, ...] = key(
        PAIRS,
        (),
        'URLs to which receivers send the stream receipts for messages to a destination, "destination '
        '-> URL"',
    )
    default_stream_receipt: str = key(
        URL, "", "URL to which all other stream receipts are sent; empty: order_queue$ at the public host"
    )
    mapping: Path | None = key(
        kinds.PATH,
        None,
        "directory of mapping files (*.xml) in the format of MSMQ on Windows, read at the start",
    )
    signature_digests: tuple[str, ...] = key(
        DIGESTS,
        ("sha256", "sha512"),
        "hash algorithms of signatures that are accepted; sha1, with which MSMQ signs, and md5 are weak",
    )
    unregistered_certificates: bool = key(
        kinds.FLAG,
        False,
        "accept signatures with a certificate that is not registered here; they do not prove the "
        "identity of the sender",
    )
    verify_signatures: bool = key(
        kinds.FLAG, False, "verify signatures even if neither the queue nor its access list requires that"
    )
    send_certificate: bool = key(
        kinds.FLAG, False, "add the certificate of the sender to signed messages (KeyInfo)"
    )
    check_expiry: bool = key(
        kinds.FLAG,
        True,
        "messages that have expired when they arrive are dropped and answered with 200; false: they "
        "are accepted, and the expired time limit is ignored",
    )
    expired_dead_letters: int = key(
        kinds.size(0, 1 << 40),
        16 << 20,
        "maximum bytes of dead letters per hour for expired messages from one address (IPv6: one "
        "/64); above it the answer is 400, and the sender keeps the message",
    )
    receipts_to: tuple[str, ...] = key(
        name_kinds.HOSTS,
        (),
        "hosts (*.example.org stands for all names below it) and networks to which receipts may be "
        "sent, besides the address of the sender; acknowledgments of messages over MS-MQQB to HTTP "
        "names are sent only to these",
    )
    receipt_delay: float = key(
        kinds.duration(0.05, 60),
        0.5,
        "a stream is acknowledged once no message has arrived in it for this time",
    )
    receipt_delay_max: float = key(
        kinds.duration(0.05, 600),
        10.0,
        "a stream in which messages keep arriving is acknowledged at this interval",
    )
    stream_lifetime: float = key(
        kinds.duration(86_400, 10 * 365 * 86_400.0),
        90 * 86_400.0,
        "the state of a stream is deleted after this time without messages",
    )
    unfinished: int = key(
        kinds.size(0, 1 << 40),
        256 << 20,
        "maximum size of all large requests together that are being received; above it the answer is 500",
    )
    keep_alive: float = key(
        kinds.duration(1, 86_400), 360.0, "a connection without requests is closed after this time"
    )
