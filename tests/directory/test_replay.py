"""The controller that `bench.domain` measures with: what it has answered once, it answers by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.replay import Replay, messages
from tests.directory.fakecontroller import FakeController, done, entry

BASE_DN = "DC=corp,DC=example"
PAGES = 3


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 50))
def test_messages_are_found_wherever_the_stream_is_cut(values: list[bytes], size: int) -> None:
    sent = [entry(number, "CN=q", {"cn": [value]}) for number, value in enumerate(values, start=1)]
    data, found = bytearray(), []
    stream = b"".join(sent)
    for begin in range(0, len(stream), size):
        data += stream[begin : begin + size]
        found += list(messages(data))
    assert [(number, whole) for number, _, whole in found] == list(enumerate(sent, start=1))
    assert all(whole.endswith(rest) and rest[0] == 0x64 for _, rest, whole in found)
    assert not data


@pytest.mark.long(seconds=2)
@pytest.mark.needs(modules=("ldap",))
def test_the_second_reading_does_not_reach_the_controller(tmp_path: Path) -> None:
    """All pages have the same cookie, as Samba's have."""
    from msmq_fast.directory.ldap.connecting import LdapSettings
    from msmq_fast.directory.ldap.interface import SUBTREE
    from msmq_fast.directory.ldap.link import LdapLink

    def reply(message: Any, searches: int) -> Iterator[bytes]:
        number = int(message["messageID"])
        yield entry(number, f"CN=q{searches},{BASE_DN}", {"cn": [b"q%d" % searches]})
        yield done(number, cookie=b"same" if searches < PAGES - 1 else b"")

    controller = FakeController(tmp_path, reply)
    port = int(controller.url.rpartition(":")[2])

    def read(url: str) -> list[str]:
        link = LdapLink(LdapSettings([url], "a@corp.example", "secret", tmp_path / "replay.pem"))
        paths = [one.path for one in link.search(BASE_DN, SUBTREE, "(cn=*)", ["cn"])]
        link.close()
        return paths

    async def read_twice() -> list[list[str]]:
        async with await Replay("127.0.0.1", controller.ca_file, tmp_path, port).listen() as listening:
            url = f"ldaps://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            return [await asyncio.to_thread(read, url) for _ in range(2)]

    found = asyncio.run(read_twice())
    controller.close()
    assert found[0] == [f"CN=q{number},{BASE_DN}" for number in range(PAGES)]
    assert found[1] == found[0]
    assert controller.heard.count("searchRequest") == PAGES
    assert controller.heard.count("bindRequest") == 2
