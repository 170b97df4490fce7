"""Values of arguments that several verbs take."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta


def day_argument(text: str) -> date:
    """A day in UTC: YYYY-MM-DD, today or yesterday."""
    if text in ("today", "yesterday"):
        return datetime.now(UTC).date() - timedelta(days=text == "yesterday")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a day is YYYY-MM-DD, today or yesterday, not {text!r}") from None


def number_argument(low: int, high: int = 100_000) -> Callable[[str], int]:
    """A whole number between two."""

    def parsed(text: str) -> int:
        if text.isascii() and text.isdecimal() and len(text) <= 18 and low <= int(text) <= high:
            return int(text)
        raise argparse.ArgumentTypeError(f"a number from {low} to {high} is wanted, not {text!r}")

    return parsed


def seconds_argument(text: str) -> float:
    """Seconds, not negative; up to 10 years."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if 0 <= value <= 315_360_000:
        return value
    raise argparse.ArgumentTypeError(f"seconds from 0 on are wanted, not {text!r}")
