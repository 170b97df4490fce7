"""Reads objects of the directory, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msmq_fast.client.connection import Connection

__all__ = ["all_entries"]


async def all_entries(
    connection: Connection, kind: str, where: Sequence[Sequence[Any]] = ()
) -> list[dict[str, Any]]:
    """Return all entries of a type that meet the conditions `where`, as `DirectoryAdmin.all` takes them."""
    entries: list[dict[str, Any]] = []
    while page := await connection.admin.directory.all(
        kind, entries[-1]["Identifier"] if entries else "", where=where
    ):
        entries += page
    return entries
