"""Messages that leave by HTTP and HTTPS: outgoing queues, connections, timers put together."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.outgoing.resending import OutgoingSequences
from msmq_fast.qm.queues.outgoing import Channel, ConnectionStatus, OutgoingQueue
from msmq_fast.server.addresses import source_address
from msmq_fast.server.clock import SystemClock
from msmq_fast.server.config import Config
from msmq_fast.server.connections import Share
from msmq_fast.server.counters import RefusalCounters
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.server.loop import CommitLoop
from msmq_fast.server.srmppool import Pool, PoolSettings, Proxy, Request
from msmq_fast.server.srmpsendingconfig import SrmpSendingConfig
from msmq_fast.srmp.channel import Encode, Sender
from msmq_fast.srmp.returnpath import ReturnPaths
from msmq_fast.srmp.sending import Report
from msmq_fast.srmp.transfer import Outgoing, Timers, Transfer
from msmq_fast.srmp.urls import Url

__all__ = ["SrmpSending", "sends_http"]

_log = logging.getLogger("msmq_fast.srmp")


class SrmpSending:
    """Carries the outgoing queues with HTTP names (`server.outgoing.Carrier`)."""

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
        """`encode` makes requests of messages, `connect_to` says whose host is dialled for a URL, `report`
        hears of traced messages, `share` counts the connections.
        """
        settings = config.srmp
        self._monotonic = clock.monotonic
        self._touch = commit_loop.touch
        self._refused = refused
        self._encode = encode
        self._manager = manager
        self._sender = Sender(manager, sequences, connect_to, clock.wall_s, self._given_up, report)
        timers = Timers(settings.retry_interval, settings.idle_timeout, settings.response_timeout)
        self.pool = Pool(
            loop,
            PoolSettings(
                tls=_verifying(settings.ca_file),
                per_host=settings.connections_per_host,
                connect_timeout=settings.connect_timeout,
                proxy=_proxies(settings),
                source=source_address(config.server.host),
                paths=ReturnPaths(settings.receipts_to),
            ),
            clock.monotonic,
            commit_loop.touch,
            share,
            lambda execute: Transfer(execute, timers),
        )
        self.transfer = self.pool.transfer
        self._sources: dict[OutgoingQueue, Outgoing[Request] | None] = {}
        self.given_up: Counter[str] = Counter()
        commit_loop.add(self)

    # -------------------------------------------------------------------------------- outgoing queues

    def channel_of(self, queue: OutgoingQueue) -> Channel:
        """The channel of an outgoing queue."""
        return _HttpChannel(self, queue)

    def has_work(self, queue: OutgoingQueue) -> None:
        """Messages are available."""
        source = self._source_of(queue)
        if source is not None:
            self.transfer.submit(source, self._monotonic())
        self._touch()

    def held(self, queue: OutgoingQueue, on_hold: bool) -> None:
        """A queue was paused or resumed."""
        source = self._source_of(queue)
        if source is None:
            return
        if on_hold:
            self.transfer.hold(source)
        else:
            self.transfer.release(source, self._monotonic())
        self._touch()

    def removed(self, queue: OutgoingQueue) -> None:
        """A queue exists no more."""
        source = self._sources.pop(queue, None)
        if source is not None:
            source.stop_waiting()
            self.transfer.withdraw(source)

    def _source_of(self, queue: OutgoingQueue) -> Outgoing[Request] | None:
        if queue not in self._sources:
            try:
                self._sources[queue] = self._sender.source(queue, self._encode)
            except ValueError as error:
                self._sources[queue] = None
                queue.note(ConnectionStatus.UNKNOWN_FAILURE, self._sender.unix_time(), detail=str(error))
                _log.warning("nothing can be sent to %s: %s", queue.name, error)
        return self._sources[queue]

    def _given_up(self, reason: str, description: str) -> None:
        self._refused.refuse("message", reason, description)

    # -------------------------------------------------------------------------------- timers

    def next_deadline(self) -> float | None:
        """Monotonic seconds."""
        return self.transfer.next_deadline()

    def expire(self, now: float) -> None:
        """Run what is due."""
        self.transfer.expire(now)

    def stop(self) -> None:
        """End all connections; what was not answered is sent again by the next run."""
        self.pool.close()


class _HttpChannel:
    """One outgoing queue."""

    def __init__(self, sending: SrmpSending, queue: OutgoingQueue) -> None:
        self._sending = sending
        self._queue = queue

    def has_work(self) -> None:
        self._sending.has_work(self._queue)

    def held(self, on_hold: bool) -> None:
        self._sending.held(self._queue, on_hold)


def sends_http(config: Config) -> bool:
    """SrmpHttpSupport of the sending side. A port that is on counts, also if it cannot be had: what may be
    sent must not depend on what else runs on this computer.
    """
    server = config.server
    if config.srmp.sending == "auto":
        https = server.https_port is not None and server.https_certificate is not None
        return server.http_port is not None or https
    return config.srmp.sending == "on"


def _verifying(ca_file: Path | None) -> ssl.SSLContext:
    """Servers are verified, always. Raises DeclarationError: the file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except OSError as error:  # an SSLError is one
        reason = getattr(error, "reason", None) or error.strerror
        raise DeclarationError(f"srmp.ca_file: {ca_file}: no certificates to verify with: {reason}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _proxies(settings: SrmpSendingConfig) -> Callable[[str], Proxy | None]:
    if not settings.proxy:
        return lambda host: None
    name, _, port = settings.proxy.rpartition(":")
    proxy = Proxy(name.strip("[]"), int(port))
    bypass = [pattern.casefold() for pattern in settings.proxy_bypass]

    def choose(host: str) -> Proxy | None:
        return None if any(fnmatchcase(host.casefold(), pattern) for pattern in bypass) else proxy

    return choose
