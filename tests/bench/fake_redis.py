"""As much of Redis as `peer_load` asks for: `python fake_redis.py --port N --unixsocket PATH …`."""

from __future__ import annotations

import argparse
import asyncio
from asyncio import StreamReader, StreamWriter


class Stream:
    """Entries of one stream, of which one group of consumers reads each once."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.unread: list[bytes] = []
        self.arrived = asyncio.Event()

    def add(self, body: bytes) -> bytes:
        entry = b"%d-0" % (len(self.entries) + 1)
        self.entries[entry] = body
        self.unread.append(entry)
        self.arrived.set()
        return entry

    async def read(self) -> bytes:
        while not self.unread:
            self.arrived.clear()
            await self.arrived.wait()
        taken, self.unread = self.unread[:256], self.unread[256:]
        items = b"".join(
            b"*2\r\n%s*2\r\n%s%s" % (bulk(entry), bulk(b"b"), bulk(self.entries[entry])) for entry in taken
        )
        return b"*1\r\n*2\r\n%s*%d\r\n%s" % (bulk(b"bench"), len(taken), items)


def bulk(data: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(data), data)


async def command(reader: StreamReader) -> list[bytes]:
    line = await reader.readuntil(b"\r\n")
    if line[:1] != b"*":
        return line.split()
    words = []
    for _ in range(int(line[1:])):
        size = int((await reader.readuntil(b"\r\n"))[1:])
        words.append((await reader.readexactly(size + 2))[:-2])
    return words


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--unixsocket")
    given, _ = parser.parse_known_args()
    stream = Stream()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            while True:
                words = await command(reader)
                if words[0] == b"XGROUP":
                    writer.write(b"+OK\r\n")
                elif words[0] == b"XADD":
                    writer.write(bulk(stream.add(words[-1])))
                elif words[0] == b"XREADGROUP":
                    writer.write(await stream.read())
                else:
                    writer.write(b":%d\r\n" % len(words[2:]))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    await asyncio.start_unix_server(serve, given.unixsocket)
    server = await asyncio.start_server(serve, "127.0.0.1", given.port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
