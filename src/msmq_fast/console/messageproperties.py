"""The properties of a message in words, for its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msmq_fast.console.formats import class_name, duration, size, utc
from msmq_fast.protocol.frames import INFINITE, LONG_LIVED

__all__ = ["ACKNOWLEDGE", "shown_properties"]

_TITLES: Final = {
    "arrival_seq": "Arrival number",
    "app_specific": "AppSpecific",
    "acknowledge": "Acknowledge when",
    "journal": "Keep a copy",
}
"""The titles that do not follow from the names."""
ACKNOWLEDGE: Final = {1: "it arrives", 2: "it is received", 4: "it does not arrive", 8: "it is not received"}
"""When a sender asks for an acknowledgment, by the flag."""
_JOURNAL: Final = {1: "as a dead letter if it fails", 2: "in the journal of the sender"}
_NOTHING: Final = "–"


def shown_properties(message: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return (name, title, text) of each property of a message of the API, without bodies."""
    return [
        (name, _TITLES.get(name, name.replace("_", " ").capitalize()), _text(name, value))
        for name, value in message.items()
        if not name.endswith("_b64")
    ]


def _text(name: str, value: Any) -> str:
    if value is None or value == "":
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    match name:
        case "sent_time" | "arrived_time":
            return utc(value)
        case "time_to_reach_queue" | "time_to_be_received":
            return "no limit" if value in (INFINITE, LONG_LIVED) else duration(value)
        case "class":
            return f"{class_name(value)} ({value})"
        case "reason":
            return f"{class_name(value)} ({value})" if value else _NOTHING
        case "body_size":
            return size(value)
        case "correlation_id":
            return str(value) if value.strip("0") else _NOTHING
        case "acknowledge":
            return _flags(value, ACKNOWLEDGE)
        case "journal":
            return _flags(value, _JOURNAL)
    return str(value)


def _flags(value: int, words: Mapping[int, str]) -> str:
    """Return the words of the bits that are set, and the number."""
    found = [word for bit, word in words.items() if value & bit]
    return f"{', '.join(found)} ({value})" if found else _NOTHING
