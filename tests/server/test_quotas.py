"""The quotas of the queue manager: finite by default, as configured else."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from msmq_fast.config.loading import load
from msmq_fast.qm.settings import UNLIMITED
from msmq_fast.server.quotas import computer_quota, deadletter_quota, journal_quota
from msmq_fast.server.settings import queue_manager_settings
from tests.support.processes.servers import Server, data_directory

GIB = 1 << 20  # KB


def disk(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    figures = SimpleNamespace(f_blocks=size // 4096, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: figures)


@pytest.mark.parametrize(
    ("size", "expected"), [(4 << 30, 8), (64 << 30, 32), (1 << 40, 512), (1 << 60, 4096)]
)
def test_by_default_half_of_the_disk_but_at_least_8_gib(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int, expected: int
) -> None:
    disk(monkeypatch, size)
    config = load(None, {"MSMQ_FAST_SERVER__DATA": str(tmp_path / "not" / "made" / "yet")}, {})
    quota = computer_quota(config)
    assert quota == min(expected * GIB, UNLIMITED - 1)
    assert journal_quota(config) == deadletter_quota(config) == quota // 8
    settings = queue_manager_settings(config)
    assert (settings.quota_kb, settings.journal_quota_kb, settings.deadletter_quota_kb) == (
        quota,
        quota // 8,
        quota // 8,
    )


def test_what_is_configured_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, 1 << 40)
    config = load(None, {"MSMQ_FAST_QUEUE_MANAGER__QUOTA": "8000 KiB"}, {})
    assert (computer_quota(config), journal_quota(config), deadletter_quota(config)) == (8000, 1000, 1000)
    config = load(None, {"MSMQ_FAST_QUEUE_MANAGER__QUOTA": "unlimited"}, {})
    assert (computer_quota(config), journal_quota(config), deadletter_quota(config)) == (UNLIMITED,) * 3
    names = {
        "MSMQ_FAST_QUEUE_MANAGER__JOURNAL_QUOTA": "1",
        "MSMQ_FAST_QUEUE_MANAGER__DEADLETTER_QUOTA": "2 KiB",
        "MSMQ_FAST_QUEUE_MANAGER__QUOTA": "auto",
    }
    config = load(None, names, {})
    assert (computer_quota(config), journal_quota(config), deadletter_quota(config)) == (512 * GIB, 1, 2)


def test_dead_letters_beyond_their_quota_are_dropped_and_counted() -> None:
    expired = ("--body", "x" * 3000, "--recoverable", "--deadletter", "--ttbr", "0", "--count", "20")
    with data_directory() as data:
        server = Server(data, host="127.0.56.20")
        server.start()
        try:
            server.ok("queue", "create", "orders")
            assert server.stop() == 0
            # A quota that is set later holds as well, though the queue is stored with another one.
            server.environment["MSMQ_FAST_QUEUE_MANAGER__DEADLETTER_QUOTA"] = "16 KiB"
            server.start()
            server.ok("send", "orders", *expired)
            found = server.ok("dlq", "list")
            assert 0 < len(found) < 6
            assert server.ok("stats")[0]["discarded_copies"] == 20 - len(found)
            assert server.ok("queue", "show", "orders")[0]["messages"] == 0
        finally:
            server.kill()
