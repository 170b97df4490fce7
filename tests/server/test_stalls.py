"""A turn of the event loop that takes long makes the server not ready for a while."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

import pytest

from msmq_fast.server.runtime.stalls import LONGEST, StallWatch
from tests.support.processes.servers import Server, data_directory, until


def test_a_long_turn_is_reported_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    now = used = 100.0
    watch = StallWatch(lambda: now, lambda: used)
    assert watch.next_deadline() == 101.0
    now, used = 101.0, 101.0  # busy, in short turns
    watch.expire(now)
    assert watch.why_not_ready is None
    now, used = 200.0, 101.5  # other processes had the processor
    watch.expire(now)
    assert watch.why_not_ready is None
    assert caplog.text == ""
    now, used = now + 3.0, used + LONGEST + 0.5
    watch.expire(now)
    assert watch.why_not_ready == "the event loop was busy for 2.5 s in one turn"
    assert "2.5 s" in caplog.text
    now += 9.9
    watch.expire(now)
    assert watch.why_not_ready
    now += 0.1
    assert watch.why_not_ready is None


def test_the_lag_is_counted_in_bins_of_powers_of_two() -> None:
    now = 100.0
    watch = StallWatch(lambda: now, lambda: 0.0)
    for late in (0.0, 0.0015, 0.003, 60.0):
        now = watch.next_deadline() + late
        watch.expire(now)
    counts, total = watch.lag()
    assert [index for index, count in enumerate(counts) if count] == [0, 1, 2, len(counts) - 1]
    assert total == pytest.approx(60.0045)


STALLING = """
import sys, time
from msmq_fast.server.runtime import stalls
calls = 0
def expire(self, now, look=stalls.StallWatch.expire):
    global calls
    look(self, now)
    calls += 1
    ends = time.thread_time() + (2.1 if calls == 1 else 0)
    while time.thread_time() < ends: pass
stalls.StallWatch.expire = expire
from msmq_fast.cli.main import main
sys.exit(main())
"""


@pytest.mark.long(seconds=6)
def test_readyz_of_a_server_whose_loop_stood_still() -> None:
    with data_directory() as data:
        server = Server(data, host="127.0.42.61")
        server.program = (sys.executable, "-c", STALLING)
        try:
            server.start()
            url = f"http://127.0.0.1:{server.port('admin')}/readyz"

            def refused() -> str:
                try:
                    urllib.request.urlopen(url, timeout=20).close()
                except urllib.error.HTTPError as error:
                    return error.read().decode() if error.code == 503 else ""
                return ""

            reason = until(refused, timeout=30, what="503 of /readyz")
            assert reason.startswith("the event loop was busy for 2.")
            assert server.stop() == 0
        finally:
            server.kill()
