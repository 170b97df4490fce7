"""Sends messages over HTTP and HTTPS: connects outgoing queues, connections and timers."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

from msmq_fast.config.sections import Config, SrmpConfig
from msmq_fast.logfields import Fields
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.outgoing.resending import OutgoingSequences
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.server.net.addresses import source_address
from msmq_fast.server.net.connections import Share
from msmq_fast.server.runtime.clock import SystemClock
from msmq_fast.server.runtime.loop import CommitLoop
from msmq_fast.server.runtime.refusals import RefusalCounters
from msmq_fast.server.srmp.pool import Pool, PoolSettings, Proxy, Request
from msmq_fast.srmp.channel import ChannelContext, Encode, HttpChannel
from msmq_fast.srmp.returnpath import ReturnPaths
from msmq_fast.srmp.sending import Report
from msmq_fast.srmp.transfer import Timers, Transfer
from msmq_fast.srmp.urls import Url

__all__ = ["SrmpSending", "sends_http"]


class SrmpSending:
    """Sends the messages of outgoing queues with HTTP names; implements `server.outgoing.Carrier`."""

    def __init__(
        self,
        config: Config,
        manager: QueueManager,
        sequences: OutgoingSequences,
        encode: Encode[Request],
        connect_to: Callable[[Url], Url],
        report: Report | None,
        clock: SystemClock,
        loop: asyncio.AbstractEventLoop,
        commit_loop: CommitLoop,
        refused: RefusalCounters,
        share: Share,
    ) -> None:
        """`encode` makes a request from a message. `connect_to(url)` returns the URL with the host and port
        to which the server connects to send a message to `url`. `report` is called for traced messages.
        `share` counts and limits the connections.
        """
        settings = config.srmp
        self._refused = refused
        timers = Timers(settings.retry_interval, settings.idle_timeout, settings.response_timeout)
        self.pool = Pool(
            loop,
            PoolSettings(
                tls=_verifying(settings.ca_file),
                per_host=settings.connections_per_host,
                connect_timeout=settings.connect_timeout,
                proxy=_proxies(settings),
                source=source_address(config.listen.mqqb.host),
                paths=ReturnPaths(settings.receipts_to),
            ),
            clock.monotonic,
            commit_loop.touch,
            share,
            lambda execute: Transfer(execute, timers),
        )
        self.transfer = self.pool.transfer
        self._of_channels = ChannelContext(
            self.transfer,
            manager,
            sequences,
            encode,
            connect_to,
            clock.monotonic,
            clock.wall_s,
            commit_loop.touch,
            self._given_up,
            report,
        )
        self._channels: dict[OutgoingQueue, HttpChannel[Request]] = {}
        self.given_up: Counter[str] = Counter()
        commit_loop.add(self)

    # -------------------------------------------------------------------------------- outgoing queues

    def channel_of(self, queue: OutgoingQueue) -> HttpChannel[Request]:
        """Return the channel of an outgoing queue."""
        channel = self._channels.get(queue)
        if channel is None:
            channel = self._channels[queue] = HttpChannel(queue, self._of_channels)
        return channel

    def removed(self, queue: OutgoingQueue) -> None:
        """Withdraw the channel of an outgoing queue that was deleted."""
        channel = self._channels.pop(queue, None)
        if channel is not None:
            channel.stop_waiting()
            self.transfer.withdraw(channel)

    def _given_up(self, reason: str, description: str, fields: Fields) -> None:
        self._refused.refuse("message", reason, description, about=lambda: fields)

    # -------------------------------------------------------------------------------- timers

    def next_deadline(self) -> float | None:
        """Return the time, in monotonic seconds, at which `expire` is due."""
        return self.transfer.next_deadline()

    def expire(self, now: float) -> None:
        """Handle all deadlines that are due."""
        self.transfer.expire(now)

    def stop(self) -> None:
        """Close all connections; unanswered requests are sent again after the next start."""
        self.pool.close()


def sends_http(config: Config) -> bool:
    """Return whether this server sends over HTTP (SrmpHttpSupport). A port that is enabled counts even if it
    cannot be opened, so that sending does not depend on other programs of this computer.
    """
    listen = config.listen
    if config.srmp.sending == "auto":
        https = listen.https.port is not None and listen.https.tls_certificate is not None
        return listen.http.port is not None or https
    return config.srmp.sending == "on"


def _verifying(ca_file: Path | None) -> ssl.SSLContext:
    """Return a TLS context that always verifies servers. Raises DeclarationError if the file is invalid."""
    try:
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except OSError as error:  # an SSLError is one
        reason = getattr(error, "reason", None) or error.strerror
        raise DeclarationError(f"srmp.ca_file: {ca_file}: certificates cannot be loaded: {reason}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _proxies(settings: SrmpConfig) -> Callable[[str], Proxy | None]:
    if not settings.proxy:
        return lambda host: None
    name, _, port = settings.proxy.rpartition(":")
    proxy = Proxy(name.strip("[]"), int(port))
    bypass = [pattern.casefold() for pattern in settings.proxy_bypass]

    def choose(host: str) -> Proxy | None:
        return None if any(fnmatchcase(host.casefold(), pattern) for pattern in bypass) else proxy

    return choose
