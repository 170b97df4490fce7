"""Session acknowledgment: counting and confirming one window, and the header that says so."""

from __future__ import annotations

from typing import Any

import pytest

from bench.micro import MESSAGES
from msmq_fast._native.window import ReceiveWindow, SendWindow, session_header

pytestmark = pytest.mark.benchmark(group=f"window, {MESSAGES} messages")


@pytest.mark.parametrize("recoverable", [False, True], ids=["express", "recoverable"])
def test_one_window(benchmark: Any, recoverable: bool) -> None:
    received, sent = ReceiveWindow(), SendWindow()

    def one_window() -> bytes:
        header = b""
        for done in range(1, MESSAGES + 1):
            number = received.count_message(recoverable)
            if recoverable:
                received.disposed(number)
            if done % 32 == 0:
                header = session_header(received, sent)
        return header

    assert len(benchmark(one_window)) == 16
    assert received.unacknowledged == 0
