"""The admin port, from outside: status codes, JSON, and metrics with the names that dashboards know."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from aiohttp import ClientSession, UnixConnector, web
from aiohttp.test_utils import TestClient, TestServer

from msmq_fast.admin.application import build
from msmq_fast.admin.view import Fullest, Histogram, Labelled, Resources
from msmq_fast.protocol.resources import ConnectionAttempt, OutgoingQueueInfo, QueueInfo
from msmq_fast.security.callers import Access, Caller, Callers
from msmq_fast.security.sid import Sid
from msmq_fast.security.token import Token

pytestmark = pytest.mark.smoke


class FakeView:
    def __init__(self) -> None:
        self.reason: str | None = None
        self.short = ""
        self.list = [QueueInfo("host\\private$\\orders", label="Orders", messages=3, bytes=300)]

    def ready(self) -> str | None:
        return self.reason

    def last_snapshot(self) -> int:
        return 0

    def throttled(self) -> str:
        return ""

    def resources(self) -> Resources:
        return Resources(0, 0, 0, 0, 0)

    def shortage(self) -> str:
        return self.short

    def queues(self) -> Iterable[QueueInfo]:
        return self.list

    def outgoing(self) -> Iterable[OutgoingQueueInfo]:
        return [OutgoingQueueInfo("DIRECT=OS:b\\private$\\q", state="connected", messages=5, bytes=500)]

    def fullest_queues(self, limit: int) -> Fullest[QueueInfo]:
        shown, rest = self._divided(self.queues(), limit)
        names = ("messages", "bytes", "journal_messages", "journal_bytes")
        return Fullest(shown, len(rest), self._sums(rest, names), self._oldest(rest))

    def fullest_outgoing(self, limit: int) -> Fullest[OutgoingQueueInfo]:
        shown, rest = self._divided(self.outgoing(), limit)
        names = ("messages", "bytes", "no_ack_count", "resend_count")
        return Fullest(shown, len(rest), self._sums(rest, names), self._oldest(rest))

    @staticmethod
    def _divided(queues: Iterable[Any], limit: int) -> tuple[list[Any], list[Any]]:
        ordered = sorted(queues, key=lambda queue: (-queue.messages, queue.name))
        return ordered[:limit], ordered[limit:]

    @staticmethod
    def _sums(queues: list[Any], names: tuple[str, ...]) -> dict[str, int]:
        return {name: sum(getattr(queue, name) for queue in queues) for name in names}

    @staticmethod
    def _oldest(queues: list[Any]) -> int:
        return min((queue.oldest for queue in queues if queue.oldest), default=0)

    def gauges(self) -> Mapping[str, tuple[str, float]]:
        return {"sessions": ("Open sessions", 2)}

    def totals(self) -> Mapping[str, tuple[str, float]]:
        return {"messages_in": ("Messages taken in", 7)}

    def labelled(self) -> Iterable[Labelled]:
        return [
            Labelled(
                "bulk_requests", "Requests", ("call", "status"), {("rows", "200"): 3, ("rows", "404"): 1}
            ),
            Labelled("bulk_streams", "Open", (), {(): 2}, grows=False),
        ]

    def histograms(self) -> Iterable[Histogram]:
        return [Histogram("commit_seconds", "Time of a commit", (0.001, 0.01), (4, 1, 2), 0.5)]

    def refusals(self) -> Iterable[tuple[str, str, int]]:
        return [("message", "no such queue", 2)]


@pytest.fixture
def view() -> FakeView:
    return FakeView()


USER = Sid.build(5, 21, 1, 2, 3, 1001)
KNOWN = "of the monitor"


def callers() -> Callers:
    def of_token(text: str, _: str) -> Caller | None:
        return Caller("monitor", Token(USER, frozenset((USER,)))) if text == KNOWN else None

    return Callers(Access.ADMINISTRATORS, of_token, lambda *_: None)


def from_elsewhere(
    view: FakeView, path: str, token: str = "", *, open_metrics: bool = False
) -> tuple[int, str]:
    """Ask as another computer does. A Unix socket stands for the network: it has no loopback address."""

    async def run(folder: str) -> tuple[int, str]:
        runner = web.AppRunner(build(view, 100, callers(), open_metrics=open_metrics))
        await runner.setup()
        try:
            await web.UnixSite(runner, f"{folder}/admin").start()
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with (
                ClientSession(connector=UnixConnector(f"{folder}/admin")) as session,
                session.get(f"http://msmq-fast{path}", headers=headers) as response,
            ):
                if response.status == 401:
                    assert response.headers["WWW-Authenticate"] == "Bearer"
                return response.status, await response.text()
        finally:
            await runner.cleanup()

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(folder))


def ask(view: FakeView, path: str, *, method: str = "GET", limit: int = 100) -> tuple[int, str]:
    async def run() -> tuple[int, str]:
        async with (
            TestClient(TestServer(build(view, limit, callers()))) as client,
            client.request(method, path) as response,
        ):
            return response.status, await response.text()

    return asyncio.run(run())


def test_health_and_readiness(view: FakeView) -> None:
    assert ask(view, "/livez") == (200, "ok\n")
    assert ask(view, "/readyz") == (200, "ok\n")
    view.short = "acknowledgments for 192.0.2.7 wait"
    assert ask(view, "/readyz") == (200, "ok\nacknowledgments for 192.0.2.7 wait\n")
    view.reason = "disk space is low"
    assert ask(view, "/readyz") == (503, "disk space is low\n")
    assert ask(view, "/livez")[0] == 200


MOVED = {
    "/v1/queues": "/api/v1/queues",
    "/v1/outgoing": "/api/v1/outgoing",
    "/v1/readers": "/api/v1/readers",
    "/v1/stats": "/api/v1/server/stats",
}


@pytest.mark.parametrize(("path", "new"), MOVED.items())
def test_a_former_path_names_the_new_one(view: FakeView, path: str, new: str) -> None:
    for method in ("GET", "POST"):
        status, text = ask(view, path, method=method)
        assert (status, json.loads(text)) == (410, {"error": f"{path} has moved: use {new}"})
    assert from_elsewhere(view, path)[0] == 410


def test_other_computers_need_a_token_for_metrics(view: FakeView) -> None:
    status, text = from_elsewhere(view, "/metrics")
    assert (status, "token" in json.loads(text)["error"]) == (401, True)
    assert "orders" not in text
    assert from_elsewhere(view, "/metrics", "wrong")[0] == 401
    assert from_elsewhere(view, "/metrics", KNOWN)[0] == 200
    assert from_elsewhere(view, "/metrics", open_metrics=True)[0] == 200
    assert ask(view, "/metrics")[0] == 200


def test_other_computers_may_ask_for_health(view: FakeView) -> None:
    assert from_elsewhere(view, "/livez") == (200, "ok\n")
    assert from_elsewhere(view, "/readyz") == (200, "ok\n")


def test_nothing_can_be_changed(view: FakeView) -> None:
    status, text = ask(view, "/metrics", method="DELETE")
    assert (status, json.loads(text)) == (405, {"error": "Method Not Allowed"})
    assert ask(view, "/v1/nothing")[0] == 404


def test_metrics_carry_the_names_of_windows_exporter_and_our_own(view: FakeView) -> None:
    status, text = ask(view, "/metrics")
    assert status == 200
    lines = text.splitlines()
    assert 'windows_msmq_messages_in_queue{name="host\\\\private$\\\\orders"} 3.0' in lines
    assert 'windows_msmq_bytes_in_queue{name="host\\\\private$\\\\orders"} 300.0' in lines
    assert 'windows_msmq_messages_in_journal_queue{name="host\\\\private$\\\\orders"} 0.0' in lines
    assert "msmq_fast_sessions 2.0" in lines
    assert "msmq_fast_messages_in_total 7.0" in lines
    assert 'msmq_fast_refusals_total{reason="no such queue",what="message"} 2.0' in lines
    assert "msmq_fast_outgoing_messages 5.0" in lines
    assert 'msmq_fast_bulk_requests_total{call="rows",status="404"} 1.0' in lines
    assert "msmq_fast_bulk_streams 2.0" in lines
    assert 'msmq_fast_commit_seconds_bucket{le="0.01"} 5.0' in lines
    assert 'msmq_fast_commit_seconds_bucket{le="+Inf"} 7.0' in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)


def test_metrics_of_queues_and_destinations(view: FakeView) -> None:
    view.list = [QueueInfo(f"q{n}", messages=9 - n, arrived=n, oldest=100 - n) for n in range(4)]
    failed = ConnectionAttempt(time=1, status="failed", error=0xC00E0013)
    queues = [
        OutgoingQueueInfo("DIRECT=OS:a", state="waiting", messages=4, stalled="no route", history=(failed,)),
        OutgoingQueueInfo("DIRECT=OS:b", state="connected", messages=2, no_ack_count=2, oldest=50),
        OutgoingQueueInfo("DIRECT=OS:c", state="connected", messages=1, oldest=40),
    ]
    view.outgoing = lambda: queues  # type: ignore[method-assign]
    lines = ask(view, "/metrics", limit=2)[1].splitlines()
    assert 'msmq_fast_queue_arrived_total{name="q1"} 1.0' in lines
    assert 'msmq_fast_queue_oldest_message_timestamp_seconds{name="q0"} 100.0' in lines
    assert 'msmq_fast_queue_oldest_message_timestamp_seconds{name="_other"} 97.0' in lines
    assert 'msmq_fast_destination_stalled{destination="DIRECT=OS:a"} 1.0' in lines
    assert 'msmq_fast_destination_stalled{destination="DIRECT=OS:b"} 0.0' in lines
    assert 'msmq_fast_destination_state{destination="DIRECT=OS:b",state="connected"} 1.0' in lines
    assert 'msmq_fast_destination_last_error{destination="DIRECT=OS:a",error="0xC00E0013"} 1.0' in lines
    assert 'msmq_fast_destination_unacknowledged{destination="DIRECT=OS:b"} 2.0' in lines
    assert 'msmq_fast_destination_messages{destination="_other"} 1.0' in lines
    assert 'msmq_fast_destination_oldest_message_timestamp_seconds{destination="_other"} 40.0' in lines
    assert any(line.startswith('msmq_fast_build_info{version="') for line in lines)


def test_queues_beyond_the_limit_are_summed(view: FakeView) -> None:
    view.list = [QueueInfo(f"host\\private$\\q{n}", messages=n, bytes=n * 10) for n in range(10)]
    lines = ask(view, "/metrics", limit=3)[1].splitlines()
    counted = [line for line in lines if line.startswith("windows_msmq_messages_in_queue{")]
    assert len(counted) == 4
    assert 'windows_msmq_messages_in_queue{name="_other"} 21.0' in counted
