"""Tables for people and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.measure import Figures, Measurement

__all__ = ["Check", "as_json", "details", "facts_line", "grid", "table", "verdicts", "write_json"]

# Figure, heading, factor, format.
_COLUMNS = (
    ("in_per_s", "in/s", 1.0, ",.0f"),
    ("out_per_s", "out/s", 1.0, ",.0f"),
    ("in_mb_per_s", "MB/s", 1.0, ",.0f"),
    ("ack_p50_us", "ack p50 ms", 1e-3, ",.3f"),
    ("ack_p99_us", "p99", 1e-3, ",.3f"),
    ("ack_p999_us", "p99.9", 1e-3, ",.3f"),
    ("end_to_end_p50_us", "e2e p50 ms", 1e-3, ",.3f"),
    ("end_to_end_p99_us", "p99", 1e-3, ",.3f"),
    ("large_in_mb_per_s", "large MB/s", 1.0, ",.0f"),
    ("server_cpu_us_per_message", "cpu µs/msg", 1.0, ",.1f"),
    ("server_cores", "cores", 1.0, ".2f"),
    ("generator_cores", "gen cores", 1.0, ".2f"),
    ("server_rss_mib", "RSS MiB", 1.0, ",.0f"),
    ("server_rss_anon_mib", "anon", 1.0, ",.0f"),
    ("fsyncs_per_s", "fsync/s", 1.0, ",.0f"),
    ("messages_per_fsync", "msgs/fsync", 1.0, ",.1f"),
    ("disk_lone_p50_us", "disk 1.3 KB ms", 1e-3, ",.3f"),
    ("disk_lone_p99_us", "p99", 1e-3, ",.3f"),
    ("disk_batch_p50_us", "306 KB", 1e-3, ",.3f"),
)


@dataclass(frozen=True, slots=True)
class Check:
    """A figure and the bound that it must keep: at least `bound`, or at most if `upper` is set."""

    name: str
    value: float
    bound: float
    unit: str
    upper: bool = False

    @property
    def passed(self) -> bool:
        """Whether the bound is kept."""
        return self.value < self.bound if self.upper else self.value >= self.bound

    def __str__(self) -> str:
        verdict = "pass" if self.passed else "MISS"
        relation = "under" if self.upper else "at least"
        return f"{verdict}  {self.name}: {self.value:,.3g} {self.unit}, wanted {relation} {self.bound:,.6g}"


def grid(rows: Sequence[Sequence[str]]) -> str:
    """Rows of as many cells each as aligned text; the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def table(measurements: Sequence[Measurement]) -> str:
    """One row a measurement, medians; columns that no measurement has are left out. The commands follow."""
    shown = [column for column in _COLUMNS if any(column[0] in m.figures for m in measurements)]
    rows = [["", *(heading for _, heading, _, _ in shown)]]
    for measurement in measurements:
        figures = measurement.figures
        rows.append(
            [measurement.name, *(_cell(figures, name, factor, form) for name, _, factor, form in shown)]
        )
    commands = "\n".join(f"  {m.name}: {m.command}" for m in measurements)
    runs = ", ".join(sorted({str(len(m.runs)) for m in measurements}))
    return f"{grid(rows)}\nmedians of {runs} runs\n{commands}"


def details(measurement: Measurement) -> str:
    """Every figure of one measurement, a line each, and the command."""
    lines = [f"{name}: {value:,.4g}" for name, value in measurement.figures.items()]
    return "\n".join([measurement.name, *(f"  {line}" for line in lines), f"  {measurement.command}"])


def _cell(figures: Figures, name: str, factor: float, form: str) -> str:
    return format(figures[name] * factor, form) if name in figures else "–"


def verdicts(checks: Sequence[Check]) -> str:
    """One line a check."""
    return "\n".join(str(check) for check in checks)


def facts_line(facts: dict[str, Any]) -> str:
    """The machine in one line."""
    sync = facts["fdatasync_us"]
    return (
        f"{facts['processor']}, {facts['cores']} cores, Linux {facts['kernel']}, {facts['file_system']}, "
        f"fdatasync {sync['p50']:.0f} µs (p99 {sync['p99']:.0f}), write {facts['write_mb_s']:.0f} MB/s, "
        f"loopback {facts['loopback_round_trip_us']:.0f} µs, Python {facts['python']}, "
        f"load {facts['load_average']}"
    )


def as_json(
    facts: dict[str, Any], measurements: Sequence[Measurement], checks: Sequence[Check] = ()
) -> dict[str, Any]:
    """Everything, in plain types."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": facts,
        "measurements": [m.as_json() for m in measurements],
        "checks": [
            {
                "name": check.name,
                "value": check.value,
                "bound": check.bound,
                "unit": check.unit,
                "upper": check.upper,
                "passed": check.passed,
            }
            for check in checks
        ],
    }


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Writes the document, indented."""
    path.write_text(json.dumps(document, indent=1) + "\n")
