"""The SRMP front end of one server: sending and receiving over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from msmq_fast._native.framing import parse
from msmq_fast.admin.view import Labelled
from msmq_fast.config.sections import Config
from msmq_fast.mqqb.trace import Reports
from msmq_fast.server.front_end import Bound, FrontEnd, Runtime
from msmq_fast.server.mqqb.listener import MqqbListener
from msmq_fast.server.srmp.listener import HTTP, HTTPS, SrmpListener
from msmq_fast.server.srmp.names import redirector, verifier
from msmq_fast.server.srmp.receiving import SrmpReceiving
from msmq_fast.server.srmp.sending import SrmpSending, sends_http
from msmq_fast.server.tracing.tracer import Tracer
from msmq_fast.srmp.compose import Spelling
from msmq_fast.srmp.outgoing import Requests
from msmq_fast.srmp.sending import Report, StreamReceipts
from msmq_fast.srmp.signature import outgoing_signature
from msmq_fast.srmp.urls import Url

__all__ = ["Srmp"]


class Srmp(FrontEnd):
    """The receiving and the sending half of SRMP: `receiving` is None if the server does not listen for HTTP,
    `sending` is None if it does not send over HTTP.
    """

    def __init__(self, runtime: Runtime, mqqb: MqqbListener) -> None:
        """Raises DeclarationError or ListenError if a file or setting in the configuration cannot be used."""
        config, manager, clock = runtime.config, runtime.manager, runtime.clock
        loop, commit_loop, acceptors = runtime.loop, runtime.commit_loop, runtime.acceptors
        refused, security = runtime.refusals, runtime.security
        settings = config.srmp
        self.report = None if mqqb.reports is None else _sent(mqqb.reports)
        self.redirector = redirector(settings, manager.registry, manager.settings)
        self.requests = Requests(
            self.redirector.receipts_to,
            partial(outgoing_signature, with_certificate=settings.send_certificate),
            Spelling(
                "stream" if config.interop.srmp_stream_element_is_lowercase else "Stream",
                config.interop.srmp_expiry_is_time_to_reach_queue,
            ),
            None if runtime.tracer is None else partial(_departing, runtime.tracer),
        )
        self.sending: SrmpSending | None = None
        if sends_http(config):
            self.sending = SrmpSending(
                config,
                manager,
                mqqb.sequences,
                self.requests,
                self.redirector.connect_to,
                self.report,
                clock,
                loop,
                commit_loop,
                refused,
                acceptors.table.outgoing.share("outgoing http connection"),
            )
        self.receiving = SrmpReceiving(
            config,
            manager,
            self.redirector,
            mqqb.session_context.history,
            StreamReceipts(manager.guid, mqqb.sequences),
            verifier(settings, security.certificates, security.turns, clock.monotonic),
            security.turns,
            None if mqqb.reports is None else _arrived(mqqb.reports),
            refused,
            manager.changes.changed,
            runtime.tracer,
        )
        commit_loop.add(self.receiving)
        self.listener = SrmpListener(
            config, self.receiving.pipeline.handle, clock.monotonic, commit_loop.touch, refused, acceptors
        )

    @property
    def connections(self) -> int:
        """Number of connections to other computers."""
        return 0 if self.sending is None else self.sending.pool.connections

    async def listen(self, bound: Bound) -> None:
        for name in (HTTP, HTTPS):
            self.redirector.own.listen(name, [each.getsockname()[1] for each in bound.get(name, [])])
        self.listener.listen(bound)

    def set_limits(self, config: Config) -> None:
        self.listener.set_limits(config)

    def labelled(self) -> Iterator[Labelled]:
        return self.listener.labelled()

    async def stop(self) -> None:
        """Close the connections to other computers; incoming ones close once their pending answers are
        sent.
        """
        self.listener.stop_accepting()
        if self.sending is not None:
            self.sending.stop()


def _arrived(reports: Reports) -> Callable[[bytes], None]:
    return lambda packet: reports.arrived(parse(packet))


def _sent(reports: Reports) -> Report:
    return lambda packet, address: reports.sent(parse(packet), address)


def _departing(tracer: Tracer, packet: bytes, url: Url) -> list[tuple[bytes, bytes]]:
    """Return the header fields with the trace context of a message that leaves over HTTP."""
    message = parse(packet)
    at, length = message.extension_offset, message.extension_length
    context = tracer.departing(message.source, message.message_id, packet[at : at + length], url.text)
    if context is None:
        return []
    state = [(b"tracestate", context.state.encode("ascii"))] if context.state else []
    return [(b"traceparent", context.traceparent.encode("ascii")), *state]
