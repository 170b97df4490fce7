"""Resolves host names that peers chose, for receipts.

A lookup occupies one of a few threads for as long as the name server takes, which the peer may control. So
receipts use only one lookup at a time, and peer addresses take turns: a thread is left for the names that
programs and the configuration chose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from msmq_fast.packet.text import is_address
from msmq_fast.security.addresses import address_group

__all__ = ["PeerLookups"]


class PeerLookups:
    """Lookups for peers, one at a time. `resolve(host, port)` returns the addresses of a host; `timeout` is
    in seconds for each lookup.
    """

    def __init__(self, resolve: Callable[[str, int], Awaitable[list[str]]], timeout: float) -> None:
        self._resolve = resolve
        self._timeout = timeout
        self._one = asyncio.Semaphore(1)
        self._groups: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, peer: str, host: str, port: int) -> list[str]:
        """Return the addresses of a host that a message from the address `peer` named. Raises TimeoutError,
        and whatever `resolve` raises.
        """
        if is_address(host):
            return [host]
        group = address_group(peer)
        lock = self._groups.get(group)
        if lock is None:
            lock = self._groups[group] = asyncio.Lock()
        async with lock, self._one:
            return await asyncio.wait_for(self._resolve(host, port), self._timeout)
