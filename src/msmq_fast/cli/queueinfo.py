"""Queue properties as people read them. Programs get the keys and numbers of the protocol unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msmq_fast.protocol.units import shown_size

__all__ = ["PRIVACY", "UNLIMITED", "brief", "readable"]

PRIVACY: Final = ("none", "optional", "body")
"""The names of the values of `privacy_level`."""
UNLIMITED: Final = 2**32 - 1
"""The quota in KB that means "unlimited"."""
_QUOTAS: Final = {"quota_kb": "quota", "journal_quota_kb": "journal_quota"}
_NO_TYPE: Final = "00000000-0000-0000-0000-000000000000"


def readable(queue: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that `queue show` prints for people: without empty ones, sizes with units, and
    names in place of numeric codes.
    """
    shown: dict[str, Any] = {}
    for key, value in queue.items():
        if key in _QUOTAS:
            shown[_QUOTAS[key]] = "unlimited" if value == UNLIMITED else shown_size(value * 1024)
        elif key == "privacy_level":
            shown["privacy"] = PRIVACY[value] if 0 <= value < len(PRIVACY) else value
        elif key == "incoming":
            for stream in value:
                title = f"stream {stream['sender']}"
                shown[title] = f"{stream['format_name']}, up to number {stream['sequence_number']}"
        elif value not in ("", [], _NO_TYPE):
            shown[key] = value
    return shown


def brief(queue: Mapping[str, Any]) -> str:
    """Return a queue in one line: its name, and the properties that differ from the default."""
    words = [word for word in ("transactional", "journal", "authenticated") if queue.get(word)]
    if queue.get("quota_kb", UNLIMITED) != UNLIMITED:
        words.append(f"quota {shown_size(queue['quota_kb'] * 1024)}")
    return f"{queue['name']} ({', '.join(words)})" if words else str(queue["name"])
