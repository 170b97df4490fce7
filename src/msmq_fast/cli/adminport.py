"""Requests to the admin port of the server on this machine, at the address that the configuration names."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, TypeVar

from msmq_fast.protocol.exits import CommandError, Exit

if TYPE_CHECKING:
    from msmq_fast.config.sections import Config

__all__ = ["first_answer", "get"]

T = TypeVar("T")


def first_answer(config: Config, port: int, ask: Callable[[str], T]) -> tuple[str, T]:
    """Call `ask` with each address of the admin port, until one call raises neither OSError nor
    HTTPException. Returns (that address with the port, the result of the call).

    Raises CommandError if no address answers, or if the configuration leaves the port to the system.
    """
    if port == 0:
        raise CommandError(
            Exit.USAGE,
            "listen.admin.port is 0: this command cannot know which port the system chose; set a fixed port",
        )
    complaints = []
    for host in config.listen.admin.host:
        reached = _reached(host)
        where = f"[{reached}]:{port}" if ":" in reached else f"{reached}:{port}"
        try:
            return where, ask(reached)
        except (OSError, http.client.HTTPException) as error:
            complaints.append(f"{where}: {getattr(error, 'strerror', None) or error}")
    raise CommandError(Exit.UNREACHABLE, "; ".join(complaints) or "listen.admin.host is empty")


def _reached(host: str) -> str:
    """Return the address at which this machine reaches a listener that is bound to `host`: a loopback address
    if `host` is a wildcard address.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "::1"
    return str(address)


def get(config: Config, host: str, port: int, path: str, timeout: float, limit: int) -> tuple[int, bytes]:
    """Return (HTTP status, the first `limit` bytes of the body) of a GET request. `timeout` in seconds bounds
    each step of the connection. Raises OSError and HTTPException.
    """
    connection: http.client.HTTPConnection
    if config.listen.admin.tls_certificate is not None:
        # The certificate names the host that others use, not this address; no secret is sent.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(limit)
    finally:
        connection.close()
