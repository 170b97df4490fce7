"""A DNS server on this computer that knows the SRV records of a domain's controllers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence

import dns.message
import dns.rcode
import dns.resolver
import dns.rrset

__all__ = ["NAME", "Answer", "answering", "records"]

NAME = "_ldap._tcp.dc._msdcs.corp.example."
Answer = Callable[[dns.message.Message], bytes]


@contextlib.contextmanager
def answering(answer: Answer, host: str = "127.0.0.1", port: int = 0) -> Iterator[dns.resolver.Resolver]:
    """A DNS server on this computer, and a resolver that asks it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((host, port))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while (received := server.recvfrom(4_096))[0]:
                    server.sendto(answer(dns.message.from_wire(received[0])), received[1])

        thread = threading.Thread(target=serve)
        thread.start()
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers = [host]
        resolver.port = server.getsockname()[1]
        try:
            yield resolver
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"", server.getsockname())
            thread.join()


def records(*lines: str, **sites: Sequence[str]) -> Answer:
    """The controllers of the domain, and those of sites. Sites without controllers have no records."""
    kept: dict[str, Sequence[str]] = {NAME: lines}
    for site, of_site in sites.items():
        kept[f"_ldap._tcp.{site}._sites.dc._msdcs.corp.example."] = of_site

    def answer(question: dns.message.Message) -> bytes:
        made = dns.message.make_response(question)
        name = question.question[0].name.to_text()
        if kept.get(name):
            made.answer.append(dns.rrset.from_text(name, 60, "IN", "SRV", *kept[name]))
        else:
            made.set_rcode(dns.rcode.NXDOMAIN)
        return made.to_wire(max_size=60_000)

    return answer
