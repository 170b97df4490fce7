"""The deep queue: memory, start-up, receive rate and disk space with very many messages in one queue."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench import appload
from bench.measure import Figures, Measurement, command_line
from bench.process import disk_bytes
from bench.report import Check
from bench.server import Server

__all__ = ["checks", "run"]

_QUEUES = ("deep", "shallow")
_RSS_ANON_MIB, _READY_S, _RECEIVE_SHARE = 300.0, 3.0, 0.8
_DISK_SHARE = 0.1  # the event feed stays: two entries of 56 bytes for each message


def _note(text: str) -> None:
    print(f"  deep: {text}", file=sys.stderr)


def _receive_after_restart(server: Server, queue: str, count: int) -> Figures:
    """Both rates are taken from a server that was just started, so its body cache is empty in both cases."""
    server.stop()
    server.start()
    return appload.receive(server, queue, count)


def run(arguments: Sequence[str], directory: Path, *, messages: int, body: int) -> Measurement:
    """Fills, restarts, receives all, compacts; one run, since it takes minutes."""
    part = max(1, min(messages // 20, 50_000))
    figures: Figures = {"messages": messages}
    with Server(directory, queues=_QUEUES) as server:
        appload.fill(server, "shallow", part, body)
        shallow = _receive_after_restart(server, "shallow", part)["out_per_s"]
        empty = disk_bytes(server.data)
        _note(f"shallow receive {shallow:,.0f}/s")
        filled = appload.fill(server, "deep", messages, body)
        full = server.sample()
        figures |= {
            "in_per_s": filled["in_per_s"],
            "full_rss_anon_mib": full.rss_anon / 2**20,
            "full_rss_mib": full.rss / 2**20,
            "full_disk_mib": disk_bytes(server.data) / 2**20,
        }
        _note(f"filled at {filled['in_per_s']:,.0f}/s, RssAnon {figures['full_rss_anon_mib']:.0f} MiB")
        figures["stop_s"] = server.stop()
        server.start()
        started = server.sample()
        figures |= {"ready_s": server.ready_s, "ready_rss_anon_mib": started.rss_anon / 2**20}
        _note(f"ready in {server.ready_s:.2f} s, RssAnon {figures['ready_rss_anon_mib']:.0f} MiB")
        deep = appload.receive(server, "deep", part)["out_per_s"]
        rest = appload.receive(server, "deep", messages - part)["out_per_s"]
        figures |= {
            "shallow_out_per_s": shallow,
            "deep_out_per_s": deep,
            "out_per_s": rest,
            "deep_share": deep / shallow,
            "emptied_rss_anon_mib": server.sample().rss_anon / 2**20,
        }
        _note(f"deep receive {deep:,.0f}/s, the rest {rest:,.0f}/s")
        server.stop()
        before = disk_bytes(server.data)
        server.run("compact", "--data", str(server.data))
        after = disk_bytes(server.data)
        figures |= {
            "empty_disk_mib": empty / 2**20,
            "received_disk_mib": before / 2**20,
            "compacted_disk_mib": after / 2**20,
            "compacted_share": after / before,
        }
        _note(f"compact: {before / 2**20:,.0f} MiB to {after / 2**20:,.0f} MiB")
    return Measurement(f"deep queue, {messages:,} × {body} B", command_line(arguments), [figures])


def checks(measurement: Measurement) -> list[Check]:
    """The bounds of a deep queue."""
    found = measurement.figures
    memory = max(found["full_rss_anon_mib"], found["ready_rss_anon_mib"])
    return [
        Check("RssAnon with the deep queue", memory, _RSS_ANON_MIB, "MiB", upper=True),
        Check("start-up to ready", found["ready_s"], _READY_S, "s", upper=True),
        Check("receive rate, deep / shallow", found["deep_share"], _RECEIVE_SHARE, "of the shallow rate"),
        Check("disk after compact", found["compacted_share"], _DISK_SHARE, "of before", upper=True),
    ]
