"""A domain controller that costs little processor time: `python -m bench.replay CONTROLLER CA_FILE FOLDER`.

On one machine, the work of a domain controller takes processor time from the messages beside it, which the
controller of a real domain does not. This program stands between a server and the controller, and passes on
what they say. The answers to paged searches it also keeps, and gives them itself when the same search comes
again. From the second complete reading on, the controller is therefore idle, and a page of 500 entries costs
2 ms here.

The first line of its output is the URL to use, with FOLDER/replay.pem as the CA.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.support.processes.servers import certify

__all__ = ["Replay", "main", "messages"]

_HOST: Final = "127.0.0.1"
_CHUNK: Final = 1 << 18  # bytes
_PAGED: Final = b"1.2.840.113556.1.4.319"
_NO_COOKIE: Final = b"\x04\x00"  # at the end of the request for a first page
_SEARCH_DONE: Final = 0x65

_Key = tuple[bytes, int]


def messages(data: bytearray) -> Iterator[tuple[int, bytes, bytes]]:
    """Take the complete LDAP messages from the beginning of `data`. Yields for each its number, what follows
    the number, and the whole.
    """
    while len(data) > 6:
        length, at = data[1], 2
        if length & 0x80:
            at += length & 0x7F
            length = int.from_bytes(data[2:at])
        if len(data) < at + length:
            return
        whole = bytes(data[: at + length])
        del data[: at + length]
        begin = at + 2 + whole[at + 1]
        yield int.from_bytes(whole[at + 2 : begin]), whole[begin:], whole


def _numbered(number: int, rest: bytes) -> bytes:
    return b"\x30\x84" + (6 + len(rest)).to_bytes(4) + b"\x02\x04" + number.to_bytes(4) + rest


class Replay:
    """Stands before a domain controller at the host `controller`, which speaks LDAP over TLS at `port`."""

    def __init__(self, controller: str, ca_file: Path, folder: Path, port: int = 636) -> None:
        key, certificate = folder / "replay.key", folder / "replay.pem"
        certify(key, certificate, f"subjectAltName=IP:{_HOST}")
        self._controller = controller
        self._port = port
        self._outwards = ssl.create_default_context(cafile=str(ca_file))
        self._inwards = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._inwards.load_cert_chain(certificate, key)
        self._kept: dict[_Key, list[bytes]] = {}

    async def listen(self) -> asyncio.Server:
        """Listen on a port of its own, for servers."""
        return await asyncio.start_server(self._serve, _HOST, 0, ssl=self._inwards)

    async def _serve(self, reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(server):
            answers, controller = await asyncio.open_connection(
                self._controller, self._port, ssl=self._outwards
            )
            waiting: dict[int, tuple[_Key, list[bytes]]] = {}
            passing = asyncio.create_task(self._answers(answers, server, waiting))
            try:
                await self._requests(reader, server, controller, waiting)
            finally:
                passing.cancel()
                controller.close()

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        server: asyncio.StreamWriter,
        controller: asyncio.StreamWriter,
        waiting: dict[int, tuple[_Key, list[bytes]]],
    ) -> None:
        asked: Counter[bytes] = Counter()  # a controller may give all pages of a search the same cookie
        data = bytearray()
        while more := await reader.read(_CHUNK):
            data += more
            for number, request, whole in messages(data):
                if _PAGED not in request:
                    controller.write(whole)
                    continue
                if request.endswith(_NO_COOKIE):
                    asked.clear()
                key = (request, asked[request])
                asked[request] += 1
                kept = self._kept.get(key)
                if kept is not None:
                    server.write(b"".join(_numbered(number, rest) for rest in kept))
                else:
                    waiting[number] = (key, [])
                    controller.write(whole)
            await controller.drain()
            await server.drain()

    async def _answers(
        self,
        answers: asyncio.StreamReader,
        server: asyncio.StreamWriter,
        waiting: dict[int, tuple[_Key, list[bytes]]],
    ) -> None:
        data = bytearray()
        with contextlib.suppress(OSError), contextlib.closing(server):
            while more := await answers.read(_CHUNK):
                data += more
                for number, answer, whole in messages(data):
                    if number in waiting:
                        key, found = waiting[number]
                        found.append(answer)
                        if answer[0] == _SEARCH_DONE:
                            self._kept[key] = found
                            del waiting[number]
                    server.write(whole)
                await server.drain()


async def _run(controller: str, ca_file: Path, folder: Path) -> None:
    async with await Replay(controller, ca_file, folder).listen() as listening:
        print(f"ldaps://{_HOST}:{listening.sockets[0].getsockname()[1]}", flush=True)
        await listening.serve_forever()


def main(arguments: Sequence[str]) -> None:
    """Run until the process is killed."""
    controller, ca_file, folder = arguments
    asyncio.run(_run(controller, Path(ca_file), Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
