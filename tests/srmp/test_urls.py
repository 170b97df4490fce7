"""URLs of queues: their pieces, what is local, which queue they name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.packet.names import QueuePart, Scope
from msmq_fast.srmp.urls import OwnUrls, authority, parse_url, queue_parts
from tests.support.worlds.queue_manager import World


@pytest.mark.rule("SR-004")
@pytest.mark.parametrize(
    ("text", "scheme", "host", "port", "path"),
    [
        ("http://host/msmq/private$/q", "http", "host", 80, "/msmq/private$/q"),
        ("HTTPS://Host.Example.NET/msmq/q", "https", "host.example.net", 443, "/msmq/q"),
        ("http://host:8080\\msmq\\private$\\q", "http", "host", 8080, "\\msmq\\private$\\q"),
        ("https://[2001:DB8::0:1]:4443/msmq/q?a=b", "https", "2001:db8::1", 4443, "/msmq/q?a=b"),
        ("http://host", "http", "host", 80, "/"),
        ("http://host?x", "http", "host", 80, "/?x"),
    ],
)
def test_pieces(text: str, scheme: str, host: str, port: int, path: str) -> None:
    url = parse_url(text)
    assert (url.text, url.scheme, url.host, url.port, url.path) == (text, scheme, host, port, path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ftp://host/msmq/q",
        "MSMQ:MULTICAST=234.1.1.1:8001",
        "http:///msmq/q",
        "http://user@host/msmq/q",
        "http://host:0/msmq/q",
        "http://host:65536/msmq/q",
        "http://host:/msmq/q",
        "http://[::1/msmq/q",
        "http://[1.2.3.4:]/msmq/q",
        "http://ho st/msmq/q",
        "http://host/msmq/q\r\nX: y",
        "http://host/msmq/q\x00",
        "http://host/" + "a" * 8192,
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_url(text)


@given(st.text(max_size=60))
def test_any_text_is_a_url_or_refused(text: str) -> None:
    for prefix in ("", "http://", "http://h/msmq/"):
        try:
            url = parse_url(prefix + text)
        except ValueError:
            continue
        queue_parts(url)
        assert url.target.isascii()
        assert not set(url.target) & set(" \r\n\\")


def test_authority() -> None:
    assert authority("http", "host", 80) == "host"
    assert authority("http", "host", 443) == "host:443"
    assert authority("https", "::1", 8443) == "[::1]:8443"
    assert parse_url("https://[::1]:443/msmq/q").authority == "[::1]"


def test_target_of_a_request_line() -> None:
    url = parse_url("http://host\\msmq\\private$\\grüne äpfel%20?a=b")
    assert url.target == "/msmq/private$/gr%C3%BCne%20%C3%A4pfel%20?a=b"


def _parts(path: str) -> list[str]:
    return [str(part) for part in queue_parts(parse_url(f"http://host{path}"))]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/msmq/private$/q", ["private$\\q"]),
        ("/MSMQ/PRIVATE$/Q", ["private$\\Q"]),
        ("\\msmq\\private$\\q", ["private$\\q"]),
        ("/msmq/q", ["q"]),
        ("/msmq/private%24/gr%75n", ["private$\\grun"]),
        ("/msmq/private$/a%21b", ["private$\\a!b", "private$\\a%21b"]),
        ("/msmq/private$/a%FF", ["private$\\a%FF"]),
        ("/msmq/q?SenderStream=1", ["q?SenderStream=1", "q"]),
        ("/msmq/", []),
        ("/msmq", []),
        ("/other/q", []),
        ("/msmq/private$/a/b", []),
        ("/msmq/system$;deadletter", []),
        ("/msmq/private$/q;journal", []),
        ("/msmq/private$/q;sub", []),
        ("/msmq/private$/a%5Cb", ["private$\\a%5Cb"]),
    ],
)
def test_what_a_path_may_name(path: str, parts: list[str]) -> None:
    assert _parts(path) == parts


def test_a_query_belongs_to_the_name_if_there_is_such_a_queue() -> None:
    """A-87: the whole is tried first."""
    world = World()
    plain, odd = world.create("receipts"), world.create("receipts?a=b")
    own = OwnUrls(world.manager.registry, "host")
    assert own.queue(parse_url("http://x/msmq/private$/receipts?a=b")) is odd
    assert own.queue(parse_url("http://x/msmq/private$/RECEIPTS?a=c")) is plain
    assert own.queue(parse_url("http://x/msmq/private$/other?a=c")) is None


@pytest.mark.rule("SR-145")
def test_what_is_this_computer() -> None:
    own = OwnUrls(World(aliases=frozenset({"www.example.com"})).manager.registry, "host")
    own.listen("http", (8080,))
    own.listen("https", (8443,))

    def local(base: str) -> bool:
        return own.is_local(parse_url(f"{base}/msmq/private$/q"))

    assert all(
        local(base)
        for base in (
            "http://HOST",
            "http://host.example.net",
            "http://localhost:8080",
            "https://10.0.0.7:8443",
            "http://[::1]",
            "https://WWW.example.com",
            "http://host:8443",
        )
    )
    assert not any(
        local(base)
        for base in ("http://other", "http://host:8081", "http://10.0.0.8", "https://host.example.org")
    )


def test_the_order_queue_of_others_to_send_to() -> None:
    """A-49: the public host, a slash, and the port unless it is that of the scheme."""
    own = OwnUrls(World().manager.registry, "Host.example.net")
    assert own.order_queue("https") == "https://Host.example.net/MSMQ/PRIVATE$/order_queue$"
    own.listen("http", (8080, 8081))
    assert own.order_queue("http") == "http://Host.example.net:8080/MSMQ/PRIVATE$/order_queue$"
    assert own.order_queue("https") == own.order_queue("http"), "nobody listens for https"
    own.listen("https", (443,))
    assert own.order_queue("https") == "https://Host.example.net/MSMQ/PRIVATE$/order_queue$"
    literal = OwnUrls(World().manager.registry, "[2001:DB8::1]")
    assert literal.order_queue("http") == "http://[2001:db8::1]/MSMQ/PRIVATE$/order_queue$"


def test_the_order_queue_is_there() -> None:
    own = OwnUrls(World().manager.registry, "host")
    queue = own.queue(parse_url(own.order_queue("http")))
    assert queue is not None
    assert queue.key == QueuePart(Scope.PRIVATE, "order_queue$").key
    assert not queue.transactional
