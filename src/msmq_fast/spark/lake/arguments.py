"""Parsers for arguments that several commands of the lake have."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime, timedelta


def day_argument(text: str) -> date:
    """Returns the day in UTC that `text` names: YYYY-MM-DD, today or yesterday."""
    if text in ("today", "yesterday"):
        return datetime.now(UTC).date() - timedelta(days=text == "yesterday")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a day is YYYY-MM-DD, today or yesterday, not {text!r}") from None
