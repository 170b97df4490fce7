"""A domain controller that costs no processor time: `python -m bench.replay CONTROLLER CA_FILE FOLDER`.

On one machine, the work of a domain controller takes processor time from the messages beside it, which the
controller of a real domain does not. This program stands between a server and the controller, and passes on
what they say. The answers to paged searches it also keeps, and gives them itself when the same search comes
again. From the second complete reading on, the controller is therefore idle, as if it were another machine.

The first line of its output is the URL to use, with FOLDER/replay.pem as the CA.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.support.processes.servers import certify

__all__ = ["Replay", "main", "messages"]

_HOST: Final = "127.0.0.1"
_PORT: Final = 636
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
    """Listens on a port of its own for the server; `controller` is the address of the controller."""

    def __init__(self, controller: str, ca_file: Path, folder: Path) -> None:
        key, certificate = folder / "replay.key", folder / "replay.pem"
        certify(key, certificate, f"subjectAltName=IP:{_HOST}")
        self._controller = controller
        self._outwards = ssl.create_default_context(cafile=str(ca_file))
        self._inwards = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._inwards.load_cert_chain(certificate, key)
        self._listener = socket.create_server((_HOST, 0))
        self._kept: dict[_Key, list[bytes]] = {}
        self.url = f"ldaps://{_HOST}:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        """Serve connections, each in a thread of its own, for ever."""
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            self._inwards.wrap_socket(plain, server_side=True) as server,
            socket.create_connection((self._controller, _PORT)) as raw,
            self._outwards.wrap_socket(raw, server_hostname=self._controller) as controller,
        ):
            waiting: dict[int, tuple[_Key, list[bytes]]] = {}
            answers = (controller, server, waiting)
            threading.Thread(target=self._answers, args=answers, daemon=True).start()
            asked: Counter[bytes] = Counter()  # a controller may give all pages of a search the same cookie
            data = bytearray()
            while more := server.recv(_CHUNK):
                data += more
                for number, request, whole in messages(data):
                    if _PAGED not in request:
                        controller.sendall(whole)
                        continue
                    if request.endswith(_NO_COOKIE):
                        asked.clear()
                    key = (request, asked[request])
                    asked[request] += 1
                    kept = self._kept.get(key)
                    if kept is not None:
                        server.sendall(b"".join(_numbered(number, rest) for rest in kept))
                    else:
                        waiting[number] = (key, [])
                        controller.sendall(whole)

    def _answers(
        self, controller: ssl.SSLSocket, server: ssl.SSLSocket, waiting: dict[int, tuple[_Key, list[bytes]]]
    ) -> None:
        with contextlib.suppress(OSError):
            data = bytearray()
            while more := controller.recv(_CHUNK):
                data += more
                for number, answer, whole in messages(data):
                    if number in waiting:
                        key, found = waiting[number]
                        found.append(answer)
                        if answer[0] == _SEARCH_DONE:
                            self._kept[key] = found
                            del waiting[number]
                    server.sendall(whole)
            server.shutdown(socket.SHUT_RDWR)


def main(arguments: Sequence[str]) -> None:
    """Run until the process is killed."""
    controller, ca_file, folder = arguments
    replay = Replay(controller, Path(ca_file), Path(folder))
    print(replay.url, flush=True)
    replay.run()


if __name__ == "__main__":
    main(sys.argv[1:])
