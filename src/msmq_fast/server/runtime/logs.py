"""Logs to stderr: text for people, or one JSON object per line for programs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from msmq_fast.protocol.text import printable

__all__ = ["JsonFormatter", "TextFormatter", "set_up"]

_SECRET_WORDS = ("token", "password", "secret", "key")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def _stamp(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.")
        + f"{int(record.msecs):03d}Z"
    )


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the structured fields of a record; a field whose name suggests a secret is redacted."""
    given = getattr(record, "fields", None)
    if not isinstance(given, dict):
        return {}
    return {
        name: "***" if any(word in name.lower() for word in _SECRET_WORDS) else value
        for name, value in given.items()
        if value not in ("", None)
    }


class JsonFormatter(logging.Formatter):
    """Formats a record as one line with a JSON object: ts, level, logger, message, then the fields of the
    record.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        entry: dict[str, object] = {
            "ts": _stamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in _fields(record).items():
            entry.setdefault(name, value)
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """Formats a record as text: time, level, logger, message. Control characters are escaped, so that a name
    from a peer cannot start a new line.

    The lines of a traceback are indented, so that text from a peer in a traceback cannot look like a log
    line.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        message = printable(record.getMessage())
        line = f"{_stamp(record)} {record.levelname.lower():7} {record.name}: {message}"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n    {printable(part)}" for part in trace.split("\n"))
        return line


def set_up(level: str, style: str, stream: TextIO | None = None) -> None:
    """Configure the package's loggers. `style` is "text" or "json"."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level])
    logging.getLogger("aiohttp").setLevel(max(logging.WARNING, _LEVELS[level]))
    logging.getLogger("asyncio").setLevel(max(logging.WARNING, _LEVELS[level]))
