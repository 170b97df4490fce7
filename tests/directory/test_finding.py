"""Domain controllers from DNS and by LDAP pings: order, limits, and answers that are wrong or hostile."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

import dns.message
import dns.rcode
import dns.resolver
import pytest

from msmq_fast.directory.ldap.controllers import FOUND_FOR, LOOK_AGAIN, Controllers
from msmq_fast.directory.ldap.finding import MAX_CONTROLLERS, Service, find, ordered
from msmq_fast.directory.ldap.locating import MAX_PINGED, Locator
from msmq_fast.directory.ldap.ping import DsFlag, PingAnswer, decode_answer
from tests.support.worlds import pings
from tests.support.worlds.dnsserver import answering, records


def urls(resolver: dns.resolver.Resolver, site: str = "") -> list[str]:
    return [one.url for one in find("corp.example", resolver, site)]


@pytest.mark.rule("DM-006")
def test_the_controllers_of_a_domain() -> None:
    lines = ("20 0 389 dc3.corp.example.", "10 1 3890 dc2.corp.example.", "0 5 389 dc1.corp.example.")
    with answering(records(*lines)) as resolver:
        assert urls(resolver) == [
            "ldap://dc1.corp.example",
            "ldap://dc2.corp.example:3890",
            "ldap://dc3.corp.example",
        ]


def test_the_controllers_of_a_site() -> None:
    """Its name is one label, whatever it has."""
    with answering(records("0 0 389 dc1.corp.example.", North=["0 0 389 dc2.corp.example."])) as resolver:
        assert urls(resolver, "North") == ["ldap://dc2.corp.example"]
        for site in ("South", "a.b", "x" * 64, "_sites.dc._msdcs.corp.example. "):
            with pytest.raises(OSError, match="DNS does not name the domain contr"):
                urls(resolver, site)


HOSTILE: Sequence[str] = (
    "0 0 389 .", "0 0 0 dc1.corp.example.", r"0 0 389 dc1\047\046\046\047etc.example.",
    r"0 0 389 a\032b.example.",
    r"0 0 389 dc1\063x\061y.example.", r"0 0 389 user\064evil.example.", r"0 0 389 dc\000.example.",
    r"0 0 389 \195\164.example.", "0 0 389 -dc.example.",
)  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE)
def test_names_that_are_no_host_are_not_used(line: str) -> None:
    with answering(records(line, "5 0 389 dc1.corp.example.")) as resolver:
        assert urls(resolver) == ["ldap://dc1.corp.example"]
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


def test_a_second_thread_waits_for_the_first_look() -> None:
    """The reading of the domain and the watch of its changes begin at the same time."""
    second: list[list[str]] = []
    thread = threading.Thread(target=lambda: second.append(known.candidates()))

    def look() -> list[str]:
        thread.start()
        thread.join(0.2)  # it would end at once if it did not wait
        return ["ldap://a"]

    known = Controllers((), find=look)
    assert known.candidates() == ["ldap://a"]
    thread.join(10)
    assert second == [["ldap://a"]]


class Pings:
    """Controllers that answer pings: host → answer. `asked` lists the hosts of each time."""

    def __init__(self, **answers: PingAnswer) -> None:
        self.answers = answers
        self.asked: list[list[str]] = []

    def __call__(self, urls: Sequence[str], domain: str) -> tuple[dict[str, PingAnswer], dict[str, str]]:
        assert domain == "corp.example"
        hosts = [url.removeprefix("ldap://") for url in urls]
        self.asked.append(hosts)
        found = {f"ldap://{host}": self.answers[host] for host in hosts if host in self.answers}
        return found, {url: "no answer" for url in urls if url not in found}


def answered(site: str = "", *, flags: int = pings.FLAGS & ~DsFlag.CLOSEST) -> PingAnswer:
    names = (*pings.NAMES[:7], site)
    return decode_answer(pings.answer(1, pings.structure(names, flags=flags)), 1)


def hosts(locator: Locator) -> list[str]:
    return [url.removeprefix("ldap://") for url in locator.find()]


ALL = [f"{priority} 0 389 {host}." for priority, host in enumerate(("a", "b", "c", "d"))]


def test_controllers_of_the_own_site_come_first() -> None:
    """The site is not known before the first answer, and is asked about first from then on."""
    asked = Pings(a=answered("North"), b=answered("North"), c=answered("North"), d=answered("North"))
    with answering(records(*ALL, North=["5 0 389 d.", "9 0 389 e."])) as resolver:
        locator = Locator("corp.example", asked, resolver=resolver)
        assert locator.source() == "DNS: _ldap._tcp.dc._msdcs.corp.example"
        assert hosts(locator) == ["d", "a", "b", "c", "e"]
        assert asked.asked == [["a", "b", "c", "d"], ["e"]]
        assert locator.site == "North"
        assert locator.source() == (
            "DNS: _ldap._tcp.North._sites.dc._msdcs.corp.example, then _ldap._tcp.dc._msdcs.corp.example"
        )
        assert hosts(locator) == ["d", "a", "b", "c", "e"]
        assert asked.asked[2:] == [["d", "e", "a", "b", "c"]]


def test_this_computer_has_moved() -> None:
    asked = Pings(a=answered("North"), b=answered("North"))
    sites = {"North": ["0 0 389 a."], "South": ["0 0 389 b."]}
    with answering(records(*ALL, **sites)) as resolver:
        locator = Locator("corp.example", asked, resolver=resolver)
        assert hosts(locator)[:2] == ["a", "b"]
        asked.answers = {"a": answered("South"), "b": answered("South")}
        assert hosts(locator)[:2] == ["b", "a"]
        assert locator.site == "South"
        asked.answers = {"a": answered(), "b": answered()}
        assert hosts(locator)[:2] == ["b", "a"]  # in no site: that of before


def test_those_that_answer_come_first() -> None:
    """Then those that accept no changes, then those that do not answer: a network may not let pings pass."""
    closest = answered(flags=pings.FLAGS)
    read_only = answered(flags=pings.FLAGS & ~DsFlag.WRITABLE)
    stopped = answered(flags=pings.FLAGS & ~DsFlag.LDAP)
    with answering(records(*ALL, "8 0 389 e.")) as resolver:
        asked = Pings(b=read_only, c=answered(), d=closest, e=stopped)
        assert hosts(Locator("corp.example", asked, resolver=resolver)) == ["d", "c", "b", "a", "e"]
        silent = Locator("corp.example", Pings(), resolver=resolver)
        assert hosts(silent) == ["a", "b", "c", "d", "e"]


def test_a_controller_with_the_global_catalog_comes_before_its_equals() -> None:
    plain, catalog = answered(flags=pings.FLAGS & ~DsFlag.CLOSEST & ~DsFlag.GC), answered()
    same = [f"0 0 389 {host}." for host in ("a", "b", "c")]
    with answering(records(*same, "1 0 389 d.")) as resolver:
        asked = Pings(a=plain, b=plain, c=catalog, d=catalog)
        found = hosts(Locator("corp.example", asked, resolver=resolver))
    assert (found[0], set(found[1:3]), found[3]) == ("c", {"a", "b"}, "d")


def test_a_site_that_only_dns_knows_serves_without_the_others() -> None:
    asked = Pings(a=answered("North"))
    lines = {"all": ALL}

    def answer(question: dns.message.Message) -> bytes:
        return records(*lines["all"], North=["0 0 389 a."])(question)

    with answering(answer) as resolver:
        locator = Locator("corp.example", asked, resolver=resolver)
        assert hosts(locator)[0] == "a"
        lines["all"] = []
        assert hosts(locator) == ["a"]


def test_only_some_are_asked() -> None:
    asked = Pings()
    with answering(records(*[f"{number} 0 389 h{number}." for number in range(30)])) as resolver:
        found = hosts(Locator("corp.example", asked, resolver=resolver))
    assert (len(found), [len(one) for one in asked.asked]) == (30, [MAX_PINGED])


def test_chance_alone_does_not_change_the_order() -> None:
    """Else the connection would move once a day for nothing."""
    same = [f"0 0 389 h{number}." for number in range(8)]
    asked = Pings(**{f"h{number}": answered() for number in range(8)})
    with answering(records(*same)) as resolver:
        locator = Locator("corp.example", asked, resolver=resolver)
        first = hosts(locator)
        assert all(hosts(locator) == first for _ in range(5))
        del asked.answers[first[0]]
        assert hosts(locator)[-1] == first[0]
