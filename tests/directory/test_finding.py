"""Domain controllers from DNS: order, limits, and answers that are wrong or hostile."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import dns.message
import dns.rcode
import dns.resolver
import dns.rrset
import pytest

from msmq_fast.directory.ldap.controllers import FOUND_FOR, LOOK_AGAIN, Controllers
from msmq_fast.directory.ldap.finding import MAX_CONTROLLERS, Service, find, ordered

NAME = "_ldap._tcp.dc._msdcs.corp.example."
Answer = Callable[[dns.message.Message], bytes]


@contextlib.contextmanager
def answering(answer: Answer) -> Iterator[dns.resolver.Resolver]:
    """A DNS server on this computer, and a resolver that asks it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while (received := server.recvfrom(4_096))[0]:
                    server.sendto(answer(dns.message.from_wire(received[0])), received[1])

        thread = threading.Thread(target=serve)
        thread.start()
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        resolver.port = server.getsockname()[1]
        try:
            yield resolver
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                last.sendto(b"", server.getsockname())
            thread.join()


def records(*lines: str) -> Answer:
    def answer(question: dns.message.Message) -> bytes:
        made = dns.message.make_response(question)
        assert question.question[0].name.to_text() == NAME
        made.answer.append(dns.rrset.from_text(NAME, 60, "IN", "SRV", *lines))
        return made.to_wire(max_size=60_000)

    return answer


@pytest.mark.rule("DM-006")
def test_the_controllers_of_a_domain() -> None:
    lines = ("20 0 389 dc3.corp.example.", "10 1 3890 dc2.corp.example.", "0 5 389 dc1.corp.example.")
    with answering(records(*lines)) as resolver:
        assert find("corp.example", resolver) == [
            "ldap://dc1.corp.example",
            "ldap://dc2.corp.example:3890",
            "ldap://dc3.corp.example",
        ]


HOSTILE: Sequence[str] = (
    "0 0 389 .", "0 0 0 dc1.corp.example.", r"0 0 389 dc1\047\046\046\047etc.example.",
    r"0 0 389 a\032b.example.",
    r"0 0 389 dc1\063x\061y.example.", r"0 0 389 user\064evil.example.", r"0 0 389 dc\000.example.",
    r"0 0 389 \195\164.example.", "0 0 389 -dc.example.",
)  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE)
def test_names_that_are_no_host_are_not_used(line: str) -> None:
    with answering(records(line, "5 0 389 dc1.corp.example.")) as resolver:
        assert find("corp.example", resolver) == ["ldap://dc1.corp.example"]
    with (
        answering(records(line)) as resolver,
        pytest.raises(OSError, match="names no usable domain controller"),
    ):
        find("corp.example", resolver)


def test_very_many_controllers_are_limited() -> None:
    lines = [f"0 0 389 dc{number}.corp.example." for number in range(200)]
    with answering(records(*lines)) as resolver:
        assert len(find("corp.example", resolver)) == MAX_CONTROLLERS


def refused(question: dns.message.Message) -> bytes:
    made = dns.message.make_response(question)
    made.set_rcode(dns.rcode.NXDOMAIN)
    return made.to_wire()


def test_a_domain_that_dns_does_not_know() -> None:
    with answering(refused) as resolver, pytest.raises(OSError, match="DNS does not name the domain contr"):
        find("corp.example", resolver)
    for name in ("a..b", "x" * 64 + ".example", "a" * 300):
        with pytest.raises(OSError, match="DNS does not name the domain contr"):
            find(name, dns.resolver.Resolver(configure=False))


def test_weights_decide_among_equals() -> None:
    heavy, light = Service(0, 3, "heavy", 389), Service(0, 1, "light", 389)
    first = Counter(ordered([light, heavy])[0].host for _ in range(4_000))
    assert 2_700 < first["heavy"] < 3_300
    assert ordered([Service(9, 100, "last", 389), light])[0] is light


@pytest.mark.rule("DM-007")
def test_the_list_is_looked_up_again() -> None:
    now, found = [0.0], [["ldap://a"]]
    looks: list[float] = []

    def look() -> list[str]:
        looks.append(now[0])
        if not found[0]:
            raise OSError("DNS does not answer")
        return found[0]

    known = Controllers((), find=look, monotonic=lambda: now[0])
    assert known.candidates() == ["ldap://a"]
    known.answered("ldap://a")
    now[0] = FOUND_FOR - 1
    assert known.candidates() == ["ldap://a"]
    now[0] = FOUND_FOR
    found[0] = ["ldap://b", "ldap://a"]
    assert known.candidates() == ["ldap://b", "ldap://a"]
    assert (looks, known.current) == ([0, FOUND_FOR], "ldap://a")
    known.failed("ldap://a", "it is off")
    found[0] = []
    now[0] += LOOK_AGAIN
    assert known.candidates() == ["ldap://b", "ldap://a"]
    known.failed("ldap://b", "it is off")
    assert "DNS does not answer" in known.explain()
