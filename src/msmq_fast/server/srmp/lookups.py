"""Resolves host names that peers chose, for receipts.

A lookup occupies one of a few threads until the name server answers, and the peer may control that name
server. Therefore only one lookup for receipts runs at a time, and the addresses of peers take turns. The
other threads remain free for names from programs and from the configuration.
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
