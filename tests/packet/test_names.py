"""Path names and format names by the ABNF of MS-MQMQ 2.1, and the error that each bad name gets."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.packet.names import (
    NameKind,
    Scope,
    Suffix,
    direct_format_name,
    direct_queue_key,
    is_format_name,
    parse_format_name,
    parse_format_names,
    parse_path,
)
from msmq_fast.protocol.errors import IllegalFormatName, IllegalQueuePathName, UnsupportedFormatNameOperation

pytestmark = pytest.mark.smoke

G = "557358d1-9150-9595-4997-b6e611ea26c6"
CHARS = [chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"+,;\\']


@pytest.mark.parametrize(
    ("text", "full", "scope"),
    [
        ("orders", r"HOST\private$\orders", Scope.PRIVATE),
        (r".\private$\orders", r"HOST\private$\orders", Scope.PRIVATE),
        (r".\PRIVATE$\Orders", r"HOST\private$\Orders", Scope.PRIVATE),
        (r"other\orders", r"other\orders", Scope.PUBLIC),
        (r"other\private$\orders;retry", r"other\private$\orders;retry", Scope.PRIVATE),
        (r".\system$;DEADLETTER", r"HOST\system$;deadletter", Scope.SYSTEM),
        (r".\private$\orders;journal", r"HOST\private$\orders;JOURNAL", Scope.PRIVATE),
        ("x" * 124, "HOST\\private$\\" + "x" * 124, Scope.PRIVATE),
        ("c" * 256 + "\\q", "c" * 256 + "\\q", Scope.PUBLIC),
    ],
)
def test_path_names(text: str, full: str, scope: Scope) -> None:
    path = parse_path(text, "HOST")
    assert str(path) == full
    assert path.part.scope is scope
    assert path.key == parse_path(full.upper(), "HOST").key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\\",
        "host\\",
        "\\q",
        r"host\a\b",
        r"host\private$\a\b",
        r"host\private$",
        r"host\private$" + "\\",
        "has space",
        "semi;colon;twice",
        'quote"d',
        "plus+",
        "comma,",
        "umläut",
        "q;",
        "q;" + "s" * 33,
        "x" * 125,
        "c" * 257 + "\\q",
        "two words\\q",
        r"host\system$;nothing",
        "tab\tbed",
        "line\n",
    ],
)
def test_bad_path_names(text: str) -> None:
    if text == r"host\private$":  # a public queue may have this name
        assert parse_path(text, "HOST").part.scope is Scope.PUBLIC
        return
    with pytest.raises(IllegalQueuePathName):
        parse_path(text, "HOST")


@pytest.mark.parametrize(
    ("text", "kind", "suffix"),
    [
        (r"DIRECT=OS:host\private$\q", NameKind.DIRECT, Suffix.NONE),
        (r"direct=os:host\PRIVATE$\q;journal", NameKind.DIRECT, Suffix.JOURNAL),
        (r"DIRECT=TCP:10.0.0.7\q", NameKind.DIRECT, Suffix.NONE),
        (r"DIRECT=TCP:::1\q", NameKind.DIRECT, Suffix.NONE),
        (r"DIRECT=TCP:[fe80::1]\private$\q", NameKind.DIRECT, Suffix.NONE),
        (r"DIRECT=TCP:fe80::1%eth0\private$\q", NameKind.DIRECT, Suffix.NONE),
        (r"DIRECT=HTTP://[fe80::1%eth0]/msmq/q", NameKind.DIRECT, Suffix.NONE),
        (r"DIRECT=OS:host\SYSTEM$;DEADXACT", NameKind.DIRECT, Suffix.DEADXACT),
        (r"DIRECT=OS:host\private$\q;retry", NameKind.SUBQUEUE, Suffix.SUBQUEUE),
        ("DIRECT=HTTP://host/msmq/private$/q", NameKind.DIRECT, Suffix.NONE),
        (r"DIRECT=HTTPS://host:8443/MSMQ\q", NameKind.DIRECT, Suffix.NONE),
        ("DIRECT=HTTP://[::1]:81/msmq/q", NameKind.DIRECT, Suffix.NONE),
        (r"DIRECT=IPX:00000012:123456789abc\q", NameKind.DIRECT, Suffix.NONE),
        (r"DIRECT=SPX:00000012.123456789abc\q", NameKind.DIRECT, Suffix.NONE),
        (f"PUBLIC={G}", NameKind.PUBLIC, Suffix.NONE),
        (f"PUBLIC={G};JOURNAL", NameKind.PUBLIC, Suffix.JOURNAL),
        (f"PRIVATE={G}\\00000004", NameKind.PRIVATE, Suffix.NONE),
        (f"PRIVATE={G}\\4;JOURNAL", NameKind.PRIVATE, Suffix.JOURNAL),
        (f"MACHINE={G};DEADLETTER", NameKind.MACHINE, Suffix.DEADLETTER),
        (f"CONNECTOR={G}", NameKind.CONNECTOR, Suffix.NONE),
        (f"CONNECTOR={G};XACTONLY", NameKind.CONNECTOR, Suffix.XACTONLY),
        (f"DL={G}", NameKind.DL, Suffix.NONE),
        (f"DL={G}@example.com", NameKind.DL, Suffix.NONE),
        ("MULTICAST=239.1.2.3:65535", NameKind.MULTICAST, Suffix.NONE),
    ],
)
def test_format_names(text: str, kind: NameKind, suffix: Suffix) -> None:
    name = parse_format_name(text)
    assert (name.kind, name.suffix) == (kind, suffix)
    assert is_format_name(text)
    assert parse_format_name(str(name)) == name
    assert parse_format_name(text.upper()).key == name.key


def test_pieces_of_format_names() -> None:
    private = parse_format_name(f"PRIVATE={G}\\1F")
    assert (private.guid, private.number, str(private)) == (UUID(G), 0x1F, f"PRIVATE={G}\\0000001f")
    http = parse_format_name("DIRECT=HTTP://host/msmq/private$/q").direct
    assert http is not None
    assert (http.protocol, http.address, http.port, str(http.part)) == ("HTTP", "host", 80, r"private$\q")
    https = parse_format_name("DIRECT=https://[::1]/msmq/q").direct
    assert https is not None
    assert (https.address, https.port) == ("::1", 443)
    tcp = parse_format_name(r"DIRECT=TCP:[fe80::1]\q").direct
    assert tcp is not None
    assert tcp.address == "fe80::1"
    subqueue = parse_format_name(r"DIRECT=OS:h\private$\q;Retry").direct
    assert subqueue is not None
    assert (subqueue.part.queue, subqueue.part.subqueue) == ("q", "Retry")
    assert str(direct_format_name(parse_path("q", "HOST"))) == r"DIRECT=OS:HOST\private$\q"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "orders",
        r"host\q",
        "DIRECT=",
        r"DIRECT=host\q",
        r"DIRECT=FTP:host\q",
        r"DIRECT=TCP:host\q",
        r"DIRECT=TCP:256.0.0.1\q",
        r"DIRECT=TCP:fe80::1%" + "\ud800\\q",
        r"DIRECT=TCP:fe80::1%" + "z" * 16 + r"\q",
        r'DIRECT=TCP:fe80::1%a"b\q',
        r"DIRECT=HTTP://[fe80::1%a b]/msmq/q",
        r"DIRECT=HTTP://[host]/msmq/q",
        r"DIRECT=OS:a,b\q",
        "DIRECT=O\u017f:host\\q",
        "DIRECT=OS:host\\\u017fystem$;journal",
        "DIRECT=HTTP\u017f://host/msmq/q",
        "DIRECT=HTTP://host/m\u017fmq/q",
        "PUBL\u0131C=557358d1-9150-9595-4997-b6e611ea26c6",
        r"DIRECT=TCP:\q",
        r"DIRECT=OS:\q",
        "DIRECT=OS:host",
        "DIRECT=OS:host\\",
        r"DIRECT=OS:host\a\b",
        r"DIRECT=OS:host\SYSTEM$;OTHER",
        r"DIRECT=OS:host\q;one;two",
        r"DIRECT=OS:ho st\q",
        "DIRECT=HTTP://host/q",
        "DIRECT=HTTP:host/msmq/q",
        "DIRECT=HTTP://host:65536/msmq/q",
        "DIRECT=HTTP://host:/msmq/q",
        r"DIRECT=IPX:host\q",
        r"DIRECT=SPX:1.2\q",
        f"PUBLIC={{{G}}}",
        f"PUBLIC={G}x",
        f"PUBLIC={G};DEADLETTER",
        f"PRIVATE={G}",
        f"PRIVATE={G}\\",
        f"PRIVATE={G}\\123456789",
        f"PRIVATE={G}\\g",
        f"MACHINE={G}",
        f"MACHINE={G};XACTONLY",
        f"CONNECTOR={G};JOURNAL",
        f"DL={G}@",
        f"DL={G}@two words",
        f"DL={G};JOURNAL",
        "MULTICAST=10.0.0.1:80",
        "MULTICAST=240.0.0.1:80",
        "MULTICAST=224.0.0.1",
        "MULTICAST=224.0.0.1:65536",
        "MULTICAST=224.0.0.1:-1",
        f"OTHER={G}",
    ],
)
def test_bad_format_names(text: str) -> None:
    with pytest.raises(IllegalFormatName):
        parse_format_name(text)


def test_multiple_elements() -> None:
    names = parse_format_names(
        rf"DIRECT=OS:a\q,PUBLIC={G},MULTICAST=224.0.0.1:80,DL={G},PRIVATE={G}\4,CONNECTOR={G}"
    )
    assert [name.kind for name in names] == [3, 1, 7, 6, 2, 5]
    assert len(parse_format_names(f"MACHINE={G};JOURNAL")) == 1
    for element in (f"MACHINE={G};JOURNAL", r"DIRECT=OS:a\q;JOURNAL", r"DIRECT=OS:a\SYSTEM$;DEADLETTER"):
        with pytest.raises(UnsupportedFormatNameOperation):
            parse_format_names(rf"DIRECT=OS:b\q,{element}")
    with pytest.raises(IllegalFormatName):
        parse_format_names(r"DIRECT=OS:b\q,")


@pytest.mark.rule("QB-263")
@pytest.mark.parametrize(
    "text", [r"OS:anyalias\private$\q", r"TCP:not.an.address\PRIVATE$\Q", "HTTP://x/msmq/private$/q"]
)
def test_the_queue_part_of_a_direct_name_is_what_counts(text: str) -> None:
    assert direct_queue_key(text) == parse_path("q", "HOST").part.key
    assert direct_queue_key(text) != parse_path(r"HOST\q", "HOST").part.key


def test_text_that_is_no_direct_name_has_no_key() -> None:
    assert direct_queue_key("nonsense") == ""
    assert direct_queue_key("") == ""


@given(st.text(alphabet=CHARS, min_size=1, max_size=124))
def test_every_queue_name_of_the_grammar(queue: str) -> None:
    path = parse_path(f"host\\private$\\{queue}", "HOST")
    assert path.part.queue == queue
    name = direct_format_name(path)
    assert name.direct is not None
    assert name.direct.part == path.part
    assert parse_format_name(str(name)) == name


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_is_refused(text: str) -> None:
    for parse, refusal in (
        (parse_format_name, IllegalFormatName),
        (lambda t: parse_path(t, "H"), IllegalQueuePathName),
    ):
        try:
            parsed = parse(text)
        except refusal:
            continue
        assert str(parsed)
