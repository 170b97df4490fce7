"""Redirection: replaces URLs by other URLs (MC-MQSRM 3.1.1.1, 3.1.5.1.3, 3.1.7.2.4, 3.1.7.9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.system import ORDER
from msmq_fast.srmp.urls import OwnUrls, Url, parse_url

__all__ = ["Destination", "Pair", "Redirections", "Redirector", "matches"]

_ACCEPTING = (QueueKind.PUBLIC, QueueKind.PRIVATE)


def matches(pattern: str, url: str) -> bool:
    """Return whether a URL is equal to `pattern`, or begins with it if `pattern` ends with `*` (SR-114).
    Ignores case, and treats slashes and backslashes alike.
    """
    wanted, given = _plain(pattern), _plain(url)
    return given.startswith(wanted[:-1]) if wanted.endswith("*") else given == wanted


def _plain(text: str) -> str:
    return text.replace("\\", "/").casefold()


@dataclass(frozen=True, slots=True)
class Pair:
    """One redirection from `source`, which may end with `*`, to the URL `target` (From and To)."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Redirections:
    """The redirections that the administrator has configured; in each list, the first match applies."""

    inbound: tuple[Pair, ...] = ()
    outbound: tuple[Pair, ...] = ()
    exceptions: tuple[str, ...] = ()  # of outbound
    stream_receipts: tuple[Pair, ...] = ()
    default_stream_receipt: str = ""  # empty: the own order queue
    transparent: bool = False  # TransparentStoreAndForward: messages for others are passed on

    def __add__(self, more: Redirections) -> Redirections:
        """Return the redirections of `self`, followed by those of `more`."""
        return Redirections(
            self.inbound + more.inbound,
            self.outbound + more.outbound,
            self.exceptions + more.exceptions,
            self.stream_receipts + more.stream_receipts,
            self.default_stream_receipt or more.default_stream_receipt,
            self.transparent or more.transparent,
        )


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination of an arrived message.

    `local`: `url` names this computer; `queue` is the queue that it names, None if there is no such queue or
    it takes no messages. `forward`: the message must be forwarded to `url`. The only system queue that can be
    a destination is order_queue$, for stream receipts.
    """

    url: Url
    local: bool
    queue: Queue | None
    forward: bool


class Redirector:
    """Applies the redirections."""

    def __init__(self, own: OwnUrls, redirections: Redirections) -> None:
        self.own = own
        self._redirections = redirections

    def destination(self, to: str) -> Destination:
        """Returns the destination of a message for the URL `to`: redirects the URL, then looks it up (A-51).

        Raises ValueError if `to` is not a URL.
        """
        target = _first(self._redirections.inbound, to)
        url = parse_url(to if target is None else target)
        if not self.own.is_local(url):
            return Destination(url, False, None, target is not None or self._redirections.transparent)
        queue = self.own.queue(url)
        if queue is not None and queue.kind not in _ACCEPTING and queue.key != ORDER.part.key:
            queue = None
        return Destination(url, True, queue, False)

    def connect_to(self, url: Url) -> Url:
        """Return the URL to whose host and port to connect to send a message to `url`. The URL in the message
        does not change (SR-222, SR-223).

        A redirection applies if it matches the whole URL, or only the part with scheme, host and port.
        """
        texts = (url.text, f"{url.scheme}://{url.authority}")
        if any(matches(each, text) for each in self._redirections.exceptions for text in texts):
            return url
        for pair in self._redirections.outbound:
            if any(matches(pair.source, text) for text in texts):
                return parse_url(pair.target)
        return url

    def receipts_to(self, destination: str) -> str:
        """Returns the URL to which receivers send stream receipts for messages to the URL `destination`
        (SR-206, SR-207).
        """
        found = _first(self._redirections.stream_receipts, destination)
        scheme = "https" if destination[:6].lower() == "https:" else "http"
        return found or self._redirections.default_stream_receipt or self.own.order_queue(scheme)


def _first(pairs: Iterable[Pair], url: str) -> str | None:
    return next((pair.target for pair in pairs if matches(pair.source, url)), None)
