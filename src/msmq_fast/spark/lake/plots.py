"""Line and bar plots as SVG text, for an HTML page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from html import escape
from typing import Final, NamedTuple

from msmq_fast.spark.lake.reporttext import visible

WIDTH: Final = 920
HEIGHT: Final = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 24, 26
COLOURS: Final = ("#3366cc", "#dc7a1e", "#1b9e77", "#c0392b", "#7b52ab", "#8c6d31", "#17889b", "#d6589f")
Point = tuple[datetime, float]


def line_plot(
    series: Mapping[str, Sequence[Point]], *, unit: str, steps: bool = False, spans: timedelta | None = None
) -> str:
    """Returns a plot over time with one line per series of points (time, value).

    `steps`: each value is drawn as a horizontal line to the time of the next value, the last one to the end.
    `spans`: each value is drawn as a horizontal line of this duration; where no value is valid, there is a
    gap. By default, the points are connected.
    """
    points = [point for line in series.values() for point in line]
    if not points:
        return '<p class="none">no data</p>'
    first, last = min(point[0] for point in points), max(point[0] for point in points)
    last += spans or timedelta()
    if last - first < timedelta(minutes=1):
        last = first + timedelta(minutes=1)
    low = min(0.0, *(point[1] for point in points))
    ticks = _ticks(low, max(point[1] for point in points))
    frame = _Frame(first, last, ticks[0], ticks[-1])
    parts = [frame.grid(ticks, unit)]
    for index, (name, line) in enumerate(series.items()):
        if steps:
            paths = [_held(line, last)]
        else:
            paths = [sorted(line)] if spans is None else _pieces(sorted(line), spans)
        parts.append(_line(frame, name, paths, COLOURS[index % len(COLOURS)]))
    return _svg(HEIGHT, parts) + _legend(list(series))


def bar_plot(bars: Sequence[tuple[str, float]]) -> str:
    """Returns a plot of horizontal bars, each with its name and value."""
    if not bars:
        return '<p class="none">none</p>'
    most = max(max(value for _, value in bars), 1)
    parts = []
    for index, (name, value) in enumerate(bars):
        y = index * 26
        width = max(1.0, (WIDTH - 460) * value / most)
        parts.append(
            f'<text class="axis" x="320" y="{y + 17}" text-anchor="end">{_text(name)}</text>'
            f'<rect x="330" y="{y + 4}" width="{width:.1f}" height="18" fill="{COLOURS[0]}"/>'
            f'<text class="axis" x="{336 + width:.1f}" y="{y + 17}">{_short(value)}</text>'
        )
    return _svg(26 * len(bars) + 4, parts)


class Bar(NamedTuple):
    """A day in a plot of days. `parts`: pairs of a number and its meaning, from the bottom to the top. A
    meaning is `good`, `warn`, `bad` or `info`, a class of the style of the page.
    """

    label: str
    parts: Sequence[tuple[float, str]]


def day_plot(bars: Sequence[Bar]) -> str:
    """Returns a plot with one vertical bar per day; the first day and some others are named."""
    height, top, bottom = 120, 14, 20
    most = max((sum(value for value, _ in bar.parts) for bar in bars), default=0) or 1
    step = (WIDTH - _LEFT - _RIGHT) / max(len(bars), 1)
    shown, width = max(1, math.ceil(len(bars) / 10)), min(step * 0.8, 40)
    parts = [
        f'<text class="axis" x="{_LEFT - 6}" y="{top + 4}" text-anchor="end">{_short(most)}</text>',
        f'<line class="grid" x1="{_LEFT}" y1="{height - bottom}" '
        f'x2="{WIDTH - _RIGHT}" y2="{height - bottom}"/>',
    ]
    for index, bar in enumerate(bars):
        middle, y = _LEFT + step * (index + 0.5), float(height - bottom)
        title = f"{bar.label}: " + ", ".join(f"{value:,.0f}" for value, _ in bar.parts)
        drawn = ""
        for value, meaning in bar.parts:
            size = max((height - top - bottom) * value / most, 1.0 if value else 0.0)
            y -= size
            drawn += (
                f'<rect class="bar {meaning}" x="{middle - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" '
                f'height="{size:.1f}"/>'
            )
        parts.append(f"<g><title>{_text(title)}</title>{drawn}</g>")
        if index % shown == 0:
            place = f'x="{middle:.1f}" y="{height - 5}" text-anchor="middle"'
            parts.append(f'<text class="axis" {place}>{_text(bar.label[5:])}</text>')
    return _svg(height, parts)


class _Frame:
    """Maps times and values to coordinates of the picture."""

    def __init__(self, first: datetime, last: datetime, low: float, high: float) -> None:
        self._first = first
        self._span = (last - first).total_seconds()
        self._low = low
        self._range = high - low

    def x(self, time: datetime) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (time - self._first).total_seconds() / self._span

    def y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * (value - self._low) / self._range

    def grid(self, ticks: Sequence[float], unit: str) -> str:
        parts = [f'<text class="axis" x="0" y="11">{_text(unit)}</text>']
        for tick in ticks:
            y = self.y(tick)
            parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}"/>')
            label = _short(tick)
            parts.append(
                f'<text class="axis" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
            )
        for index in range(7):
            time = self._first + timedelta(seconds=self._span * index / 6)
            anchor = ("start", "middle", "end")[(index > 0) + (index == 6)]
            shown = time.strftime("%H:%M" if self._span >= 600 else "%H:%M:%S")
            place = f'x="{self.x(time):.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}"'
            parts.append(f'<text class="axis" {place}>{shown}</text>')
        return "".join(parts)


def _text(text: str) -> str:
    """Returns a text without markup, in which no character is hidden."""
    return escape(visible(text))


def _held(line: Sequence[Point], last: datetime) -> list[Point]:
    """Returns the corners of a step line through the points `line`, up to the time `last`."""
    path: list[Point] = []
    for time, value in sorted(line):
        if path:
            path.append((time, path[-1][1]))
        path.append((time, value))
    return [*path, (last, path[-1][1])] if path and path[-1][0] < last else path


def _pieces(line: Sequence[Point], spans: timedelta) -> list[list[Point]]:
    """Returns a horizontal segment of the duration `spans` for each point; segments that adjoin in time are
    joined to one line.
    """
    pieces: list[list[Point]] = []
    for time, value in line:
        level = [(time, value), (time + spans, value)]
        if pieces and pieces[-1][-1][0] == time:
            pieces[-1] += level
        else:
            pieces.append(level)
    return pieces


def _line(frame: _Frame, name: str, paths: Sequence[Sequence[Point]], colour: str) -> str:
    drawn = "".join(
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" points="{points}"/>'
        for path in paths
        for points in [" ".join(f"{frame.x(time):.1f},{frame.y(value):.1f}" for time, value in path)]
    )
    time, value = paths[-1][-1]
    dot = f'<circle cx="{frame.x(time):.1f}" cy="{frame.y(value):.1f}" r="2.5" fill="{colour}"/>'
    return f"<g><title>{_text(name)}</title>{drawn}{dot}</g>"


def _ticks(low: float, high: float) -> list[float]:
    """Returns round numbers for an axis, from `low` or less to `high` or more."""
    span = max(high - low, 1e-9)
    raw = span / 4
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw)
    start = math.floor(low / step)
    return [step * index for index in range(start, math.ceil(max(high, low + step) / step) + 1)]


def _short(value: float) -> str:
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 10 or (abs(value) >= size and value % (size / 10) == 0):
            return f"{value / size:.4g}{suffix}"
    return f"{value:.4g}"


def _legend(names: Sequence[str]) -> str:
    items = (
        f'<span><i style="background:{COLOURS[index % len(COLOURS)]}"></i>{_text(name)}</span>'
        for index, name in enumerate(names)
    )
    return f'<p class="legend">{"".join(items)}</p>'


def _svg(height: int, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
