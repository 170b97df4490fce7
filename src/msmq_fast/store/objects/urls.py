"""URLs of object storage. The configuration checks them, so this module imports nothing of the package."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

__all__ = ["NAME", "SCHEMES", "checked_url", "is_url", "split_name"]

SCHEMES: Final = ("s3", "gs", "az", "file")
NAME: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{32}-[0-9a-f]{8}")
"""The name of a snapshot: its time in UTC, the GUID of its queue manager, and a part of its checksum."""

_LONGEST: Final = 1000
_EXAMPLE: Final = "expected a URL such as s3://bucket/path, gs://…, az://container/path or file:///path"


def is_url(text: str) -> bool:
    """Whether a word of the command line is meant as a URL, and not as the path of a directory."""
    return "://" in text


def checked_url(text: str) -> str:
    """Return the URL without a slash at its end. Raises ValueError if snapshots cannot be stored there."""
    if len(text) > _LONGEST or not text.isprintable() or "\\" in text:
        raise ValueError(f"{_EXAMPLE}, of at most {_LONGEST} printable characters")
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise ValueError(f'{_EXAMPLE}, got "{parts.scheme}:…"')
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Not quoted: it may contain a secret.
        raise ValueError(f"{_EXAMPLE}: credentials and options come from the environment, not from the URL")
    if any(part in (".", "..") for part in parts.path.split("/")):
        raise ValueError(f'{_EXAMPLE} without "." and "..", got "{text}"')
    if (not parts.path.strip("/") or parts.netloc) if parts.scheme == "file" else not parts.netloc:
        raise ValueError(f'{_EXAMPLE}, got "{text}"')
    return text.rstrip("/")


def split_name(url: str) -> tuple[str, str | None]:
    """Split a URL into the place and the name of a snapshot in it; None if the URL names no snapshot.

    Raises ValueError as `checked_url`.
    """
    place, _, last = checked_url(url).rpartition("/")
    if NAME.fullmatch(last):
        return checked_url(place), last
    return checked_url(url), None
