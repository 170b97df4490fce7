"""Output of the lake's commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msmq_fast.terminal.output import Form, show


def print_result(result: dict[str, Any], form: Form, *, text: Callable[[dict[str, Any]], str]) -> None:
    """Print the result of a command: for people, the line that `text` returns; in other forms, the object."""
    if form is Form.TABLE:
        print(text(result), flush=True)
    else:
        show(result, form)
