"""What the lake's verbs print."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def print_result(result: dict[str, Any], *, as_json: bool, text: Callable[[dict[str, Any]], str]) -> None:
    """One JSON object on one line, or the line that `text` makes of it."""
    print(json.dumps(result, default=str) if as_json else text(result), flush=True)
