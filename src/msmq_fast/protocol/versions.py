"""Versions of settings: short texts that differ if the settings differ. Server and clients compute the same.

A client that reads settings and then changes them passes the version that it read. The queue manager compares
it with the current one in the same step as it makes the change, so no other change can come in between.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2s
from typing import Any

from msmq_fast.protocol.resources import QueueProperties

__all__ = ["queue_settings", "version_of"]


def queue_settings(queue: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the version of a queue covers, from the map of the queue: its properties and its GUID, but
    no counts.
    """
    return {name: queue[name] for name in (*QueueProperties.__annotations__, "guid") if name in queue}


def version_of(settings: Any) -> str:
    """Return the version of settings, which are values of JSON: 24 hexadecimal digits."""
    covered = json.dumps(settings, sort_keys=True)
    return blake2s(covered.encode(), digest_size=12).hexdigest()
