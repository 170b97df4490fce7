"""A change that expects a version is made only if the settings still have it: also among changes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from msmq_fast.client import connect
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.errors import Changed
from msmq_fast.protocol.frames import Access
from msmq_fast.protocol.versions import queue_settings, version_of
from tests.support.http.api import call, ok
from tests.support.processes.servers import Server

AT_ONCE = 8


def test_of_changes_with_one_etag_at_once_one_is_made(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "raced"})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for round in range(5):
            etag = call(server, "GET", "/queues/{}", "raced").headers["ETag"]

            def change(number: int, etag: str = etag, round: int = round) -> int:
                body = {"label": f"{round} {number}"}
                headers = {"If-Match": etag}
                return call(server, "PATCH", "/queues/{}", "raced", body=body, headers=headers).status

            assert sorted(pool.map(change, range(AT_ONCE))) == [200] + [412] * (AT_ONCE - 1)


async def race(run: Callable[[int], Awaitable[Any]]) -> int:
    """Make requests on one connection at once; returns how many succeeded. The others must be Changed."""
    results = await asyncio.gather(*(run(number) for number in range(AT_ONCE)), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Changed):
            raise result
    return sum(not isinstance(result, Changed) for result in results)


async def version(connection: Connection, name: str) -> list[str]:
    return [version_of(queue_settings((await connection.admin.queues.get(name)).as_map()))]


@pytest.mark.parametrize("name", ["versioned", r".\versioned"])
def test_requests_of_the_protocol_compare_and_change_in_one_step(server: Server, name: str) -> None:
    async def run() -> None:
        async with await connect(server.endpoint) as connection:
            queues, access = connection.admin.queues, connection.admin.access
            await queues.create(name)
            first = await version(connection, name)
            assert await race(lambda n: queues.set(name, expected=first, label=f"l{n}")) == 1
            with pytest.raises(Changed, match="their version is now"):
                await queues.delete(name, expected=first)
            async with connection.open(name, Access.RECEIVE) as queue:
                with pytest.raises(Changed):
                    await queue.purge(first)
                now = await version(connection, name)
                assert await queue.purge([*first, *now]) == 0
            sddl = [version_of((await access.get(name)).sddl)]
            assert await race(lambda n: access.grant(name, f"uid:{n + 100}", "peek", expected=sddl)) == 1
            with pytest.raises(Changed):
                await queues.set(name, expected=now, label="x")
            await queues.delete(name, expected=await version(connection, name))

    asyncio.run(run())
