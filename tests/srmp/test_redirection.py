"""Redirection: which URL stands for which, and what follows from it."""

import pytest

from msmq_fast.srmp.redirection import Pair, Redirections, Redirector, matches
from msmq_fast.srmp.urls import OwnUrls, parse_url
from tests.support.worlds.queue_manager import World


def _redirector(**redirections: object) -> tuple[World, Redirector]:
    world = World()
    own = OwnUrls(world.manager.registry, "host.example.net")
    own.listen("http", (80,))
    own.listen("https", (8443,))
    return world, Redirector(own, Redirections(**redirections))  # type: ignore[arg-type]


@pytest.mark.rule("SR-114")
def test_a_star_at_the_end_stands_for_any_rest() -> None:
    assert matches("http://h/msmq/*", "http://h/msmq/private$/q")
    assert matches("http://h/msmq/*", "HTTP://H\\MSMQ\\q")
    assert matches("http://h/msmq/*", "http://h/msmq/")
    assert matches("*", "http://h/msmq/q")
    assert not matches("http://h/msmq/*", "http://h/msmq")
    assert not matches("http://h/msmq/*", "https://h/msmq/q")
    assert not matches("http://h/msmq/", "http://h/msmq/q"), "without a star the whole is compared"
    assert not matches("msmq/*", "http://h/msmq/q"), "not anywhere in it"
    assert not matches("http://*/msmq/q", "http://h/msmq/q"), "a star elsewhere is a star"


def test_messages_for_this_computer() -> None:
    world, redirector = _redirector()
    queue = world.create("orders")
    found = redirector.destination("http://HOST/msmq/private$/orders")
    assert (found.local, found.queue, found.forward) == (True, queue, False)
    missing = redirector.destination("http://HOST/msmq/private$/none")
    assert (missing.local, missing.queue, missing.forward) == (True, None, False)
    with pytest.raises(ValueError, match="URL"):
        redirector.destination("MSMQ:MULTICAST=234.1.1.1:8001")


def test_system_queues_are_no_destinations_but_that_of_stream_receipts() -> None:
    _, redirector = _redirector()
    order = redirector.destination("http://host/MSMQ/PRIVATE$/order_queue$").queue
    assert order is not None
    assert order.name.lower().endswith("order_queue$")
    for name in ("private$/notify_queue$", "system$;deadletter", "journal", "private$/orders;journal"):
        assert redirector.destination(f"http://host/msmq/{name}").queue is None


@pytest.mark.rule("SR-112")
def test_messages_for_others_are_refused_unless_they_shall_be_passed_on() -> None:
    assert Redirections().transparent is False
    url = "http://elsewhere/msmq/private$/q"
    assert not _redirector()[1].destination(url).forward
    found = _redirector(transparent=True)[1].destination(url)
    assert (found.url.text, found.local, found.queue, found.forward) == (url, False, None, True)


@pytest.mark.rule("SR-147")
def test_a_public_name_leads_to_a_queue_here() -> None:
    """A-51: redirected before the host is looked at, so that nothing has to be passed on."""
    world, redirector = _redirector(
        inbound=(
            Pair("http://www.example.com/msmq/orders", "http://host/msmq/private$/first"),
            Pair("http://www.example.com/msmq/*", "http://host/msmq/private$/second"),
            Pair("*", "http://inner:8080/msmq/private$/third"),
        )
    )
    first, second = world.create("first"), world.create("second")
    assert redirector.destination("http://www.example.com/msmq/ORDERS").queue is first
    assert redirector.destination("http://www.example.com/msmq/other").queue is second
    away = redirector.destination("http://host/msmq/private$/first")
    assert (away.url.host, away.url.port, away.local, away.forward) == ("inner", 8080, False, True)


@pytest.mark.rule("SR-222")
def test_another_host_to_connect_to() -> None:
    _, redirector = _redirector(
        outbound=(
            Pair("http://far.example.com/*", "https://relay:8443/msmq"),
            Pair("http://bare.example.com", "http://relay2"),
        )
    )
    relay = redirector.connect_to(parse_url("http://FAR.example.com/msmq/q"))
    assert (relay.scheme, relay.host, relay.port) == ("https", "relay", 8443)
    assert redirector.connect_to(parse_url("http://bare.example.com/msmq/q")).host == "relay2"
    assert redirector.connect_to(parse_url("http://near.example.com/msmq/q")).host == "near.example.com"


@pytest.mark.rule("SR-223")
def test_exceptions_of_that() -> None:
    _, redirector = _redirector(
        outbound=(Pair("*", "http://relay/msmq"),),
        exceptions=("http://near.example.com/*", "http://host2/msmq/q", "http://bare.example.com"),
    )
    assert redirector.connect_to(parse_url("http://near.example.com/msmq/q")).host == "near.example.com"
    assert redirector.connect_to(parse_url("http://host2/msmq/q")).host == "host2"
    assert redirector.connect_to(parse_url("http://host2/msmq/other")).host == "relay"
    assert redirector.connect_to(parse_url("http://bare.example.com/msmq/q")).host == "bare.example.com"


@pytest.mark.rule("SR-206", "SR-207", "SR-113")
def test_where_stream_receipts_are_to_go() -> None:
    _, plain = _redirector()
    assert (
        plain.receipts_to("HTTPS://far/msmq/q") == "https://host.example.net:8443/MSMQ/PRIVATE$/order_queue$"
    )
    assert plain.receipts_to("http://far/msmq/q") == "http://host.example.net/MSMQ/PRIVATE$/order_queue$"
    mapped = "http://nat.example.com/msmq/private$/order_queue$"
    _, replaced = _redirector(stream_receipts=(Pair("http://far/*", mapped),))
    assert replaced.receipts_to("http://FAR/msmq/q") == mapped
    assert replaced.receipts_to("http://near/msmq/q") == plain.receipts_to("http://near/msmq/q")
    other = "https://nat.example.com/MSMQ/PRIVATE$/order_queue$"
    _, both = _redirector(stream_receipts=(Pair("http://far/*", mapped),), default_stream_receipt=other)
    assert both.receipts_to("http://far/msmq/q") == mapped
    assert both.receipts_to("http://near/msmq/q") == other
