"""A domain controller that is broken or hostile: it speaks LDAP, and answers as a test says."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.processes.servers import certify

__all__ = ["ROOT", "FakeController", "Reply", "done", "entry", "reference"]

Reply = Callable[[Any, int], Iterator[bytes]]
"""Yields the octets that answer a request: (LDAPMessage, how many searches came before)."""

ROOT: Mapping[str, Sequence[bytes]] = {
    "dsServiceName": [
        b"CN=NTDS Settings,CN=DC1,CN=Servers,CN=Default-First-Site-Name,CN=Sites,CN=Configuration,"
        b"DC=corp,DC=example"
    ],
    "defaultNamingContext": [b"DC=corp,DC=example"],
    "rootDomainNamingContext": [b"DC=corp,DC=example"],
    "configurationNamingContext": [b"CN=Configuration,DC=corp,DC=example"],
    "highestCommittedUSN": [b"1000"],
}


def _tlv(tag: int, *parts: bytes) -> bytes:
    data = b"".join(parts)
    size = len(data)
    length = bytes((size,)) if size < 128 else bytes((0x84,)) + size.to_bytes(4)
    return bytes((tag,)) + length + data


def _message(number: int, operation: bytes, controls: bytes = b"") -> bytes:
    return _tlv(0x30, _tlv(2, number.to_bytes(4)), operation, _tlv(0xA0, controls) if controls else b"")


def entry(number: int, path: str, attributes: Mapping[str, Sequence[bytes]]) -> bytes:
    listed = [
        _tlv(0x30, _tlv(4, name.encode()), _tlv(0x31, *(_tlv(4, value) for value in values)))
        for name, values in attributes.items()
    ]
    return _message(number, _tlv(0x64, _tlv(4, path.encode()), _tlv(0x30, *listed)))


def reference(number: int, url: str) -> bytes:
    return _message(number, _tlv(0x73, _tlv(4, url.encode())))


def done(
    number: int, tag: int = 0x65, code: int = 0, *, referral: str = "", cookie: bytes | None = None
) -> bytes:
    """The end of an operation, with its result, a referral, and the cookie of a page."""
    more = _tlv(0xA3, _tlv(4, referral.encode())) if referral else b""
    result = _tlv(tag, _tlv(10, bytes((code,))), _tlv(4), _tlv(4), more)
    if cookie is None:
        return _message(number, result)
    value = _tlv(0x30, _tlv(2, b"\0"), _tlv(4, cookie))
    control = _tlv(0x30, _tlv(4, b"1.2.840.113556.1.4.319"), _tlv(4, value))
    return _message(number, result, control)


class FakeController:
    """A server whose answers come from `reply`; a search of the base "" gets ROOT. `heard` has the tags of
    the requests, `raw` what was received outside of TLS.
    """

    def __init__(
        self, folder: Path, reply: Reply, *, secret: bool = True, certified: str = "127.0.0.1"
    ) -> None:
        self.ca_file = folder / "fake.pem"
        if not self.ca_file.exists():
            certify(folder / "fake.key", self.ca_file, f"subjectAltName=IP:{certified}")
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(self.ca_file, folder / "fake.key")
        self._reply = reply
        self._secret = secret
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.heard: list[str] = []
        self.raw = b""
        self.connections = 0
        scheme = "ldaps" if secret else "ldap"
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        from pyasn1.codec.ber import decoder
        from pyasn1_modules import rfc2251

        with contextlib.suppress(OSError), connection:
            if self._secret:
                connection = self._context.wrap_socket(connection, server_side=True)
            data, searches = b"", 0
            while more := connection.recv(65_536):
                data += more
                if not self._secret:
                    self.raw += more
                while len(data) > 6:
                    try:
                        message, data = decoder.decode(data, asn1Spec=rfc2251.LDAPMessage())
                    except Exception:  # the rest of it comes later
                        break
                    number = int(message["messageID"])
                    kind = message["protocolOp"].getName()
                    self.heard.append(kind)
                    if kind == "bindRequest":
                        connection.sendall(done(number, 0x61))
                    elif kind == "searchRequest" and not bytes(message["protocolOp"][kind]["baseObject"]):
                        connection.sendall(entry(number, "", ROOT) + done(number))
                    elif kind not in ("abandonRequest", "unbindRequest"):
                        for answer in self._reply(message, searches):
                            connection.sendall(answer)
                        searches += kind == "searchRequest"
