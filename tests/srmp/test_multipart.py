"""Multipart bodies: parts are as long as they say."""

from __future__ import annotations

from email import policy
from email.message import EmailMessage

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmq_fast.srmp.multipart import MAX_PARTS, boundary_of, build, read_fields, split
from msmq_fast.srmp.values import Nonconforming
from tests.support.timing import processor_time

B = b"MSMQ - SOAP boundary, 26500"
D = b"--" + B

contents = st.lists(
    st.lists(
        st.sampled_from(
            [b"", b"\r\n", b"\0", D, D + b"--", D + b"\r\n", b"--", b"abc", b"\n", b" ", b"\xff"]
        ),
        max_size=6,
    ).map(b"".join),
    min_size=1,
    max_size=4,
)


@pytest.mark.rule("SR-037")
@given(contents, st.sampled_from([B, b"x", b"'()+_,-./:=?"]))
@example([D + b"\r\n" + D + b"--"], B)
def test_parts_may_hold_anything_even_delimiters(parts: list[bytes], boundary: bytes) -> None:
    body = build(boundary, [(b"application/octet-stream", b"c%d@x" % at, p) for at, p in enumerate(parts)])
    found = split(boundary, body)
    assert [part.content for part in found] == parts
    assert [part.fields[b"content-id"] for part in found] == [b"c%d@x" % at for at in range(len(parts))]
    assert all(body[part.offset : part.offset + len(part.content)] == part.content for part in found)


@pytest.mark.rule("SR-037")
def test_what_is_written_has_no_line_break_in_front_of_delimiters_and_one_behind_the_last() -> None:
    assert build(B, [(b"text/xml; charset=UTF-8", b"", b"<a/>"), (b"application/x", b"body@g", b"12")]) == (
        D + b"\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-Length: 4\r\n\r\n<a/>"
        + D + b"\r\nContent-Type: application/x\r\nContent-Length: 2\r\nContent-Id: body@g\r\n\r\n12"
        + D + b"--\r\n"
    )  # fmt: skip


@pytest.mark.rule("SR-037")
@pytest.mark.parametrize("line_end", [b"\r\n", b"\n", b""])
def test_a_line_break_in_front_of_a_delimiter_does_no_harm(line_end: bytes) -> None:
    body = D + b"\r\nContent-Length: 2\r\n\r\n12" + line_end + D + b"--"
    assert [part.content for part in split(B, body)] == [b"12"]


def test_parts_of_mime_libraries_have_no_length() -> None:
    message = EmailMessage(policy=policy.HTTP)
    for content in (b"<a/>", b"line\r\nline\r\n", b""):
        message.add_attachment(content, "application", "x", cte="8bit")
    message.set_boundary("b0")
    body = message.as_bytes().partition(b"\r\n\r\n")[2]
    assert [part.content for part in split(b"b0", body)] == [b"<a/>", b"line\r\nline\r\n", b""]


def test_without_length_and_line_break_the_delimiter_ends_a_part() -> None:
    body = D + b"\r\nA: b\r\n\r\nxy" + D + b"\r\n\r\nz" + D + b"--"
    assert [part.content for part in split(B, body)] == [b"xy", b"z"]


def test_delimiters_on_lines_of_their_own_come_first() -> None:
    body = D + b"\r\n\r\nx" + D + b"y\r\n" + D + b"\r\nContent-Length: 1\r\n\r\nz" + D + b"--"
    assert [part.content for part in split(B, body)] == [b"x" + D + b"y", b"z"]


def test_what_stands_around_the_parts_is_no_part() -> None:
    body = b"for old readers\r\n" + D + b" \t\r\n\r\n12\r\n" + D + b"--\r\nand an end"
    assert [part.content for part in split(B, body)] == [b"12"]


@pytest.mark.parametrize(
    ("head", "content"),
    [
        (b"A: b\r\n\r\n", b"\r\nx"),
        (b"A: b\n\r\n", b"\r\nx"),
        (b"A: b\n\n", b"\r\n\r\nx"),
        (b"A: b\r\n\n", b"A: c\r\n\r\nx"),
        (b"A: b\r\n" + b"C: d\r\n" * 100 + b"\r\n", b"x"),
    ],
)
def test_the_first_empty_line_ends_a_head(head: bytes, content: bytes) -> None:
    for _ in range(2):  # also one that is known already
        (part,) = split(b"b", b"--b\r\n" + head + content + b"\r\n--b--")
        assert (part.fields[b"a"], part.content) == (b"b", content)


def test_fields_in_any_spelling() -> None:
    head = b"CONTENT-length : 2 \r\ncontent-type: a/b;\r\n  charset=x\r\nContent-Length: 7"
    assert read_fields(head) == {b"content-length": b"2", b"content-type": b"a/b; charset=x"}


@pytest.mark.parametrize(
    "body",
    {
        "empty": b"",
        "no delimiter": b"12",
        "only a start": D,
        "text behind the delimiter": D + b"0\r\n\r\n12" + D + b"--",
        "no close": D + b"\r\nContent-Length: 2\r\n\r\n12",
        "no close without length": D + b"\r\n\r\n12",
        "too short a length": D + b"\r\nContent-Length: 1\r\n\r\n12" + D + b"--",
        "too long a length": D + b"\r\nContent-Length: 3\r\n\r\n12" + D + b"--",
        "a length behind the end": D + b"\r\nContent-Length: 9999999999\r\n\r\n12" + D + b"--",
        "a negative length": D + b"\r\nContent-Length: -2\r\n\r\n12" + D + b"--",
        "two numbers": D + b"\r\nContent-Length: 2, 2\r\n\r\n12" + D + b"--",
        "no empty line": D + b"\r\nContent-Length: 2\r\n12" + D + b"--",
        "no field": D + b"\r\nContent-Length\r\n\r\n12" + D + b"--",
        "an odd name": D + b"\r\nA B: 2\r\n\r\n12" + D + b"--",
        "a long head": D + b"\r\nA: " + b"x" * 20_000 + b"\r\n\r\n" + D + b"--",
        "many parts": (D + b"\r\n\r\n") * (MAX_PARTS + 1) + D + b"--",
    }.items(),
    ids=lambda item: item[0],
)
def test_what_is_refused(body: tuple[str, bytes]) -> None:
    with pytest.raises(Nonconforming):
        split(B, body[1])


@pytest.mark.parametrize("boundary", [b"", b"x" * 257])
def test_boundaries_have_a_size(boundary: bytes) -> None:
    with pytest.raises(Nonconforming, match="boundary"):
        split(boundary, b"--" + boundary + b"--")


@given(st.binary(max_size=60), st.integers(0, 200), st.integers(0, 3))
def test_no_damage_makes_more_than_a_refusal(noise: bytes, at: int, cut: int) -> None:
    body = build(B, [(b"text/xml", b"", b"<a/>"), (b"a/b", b"body@g", b"x" * 40)])
    body = body[:at] + noise + body[at + cut :]
    try:
        parts = split(B, body)
    except Nonconforming:
        return
    assert sum(len(part.content) for part in parts) <= len(body)


@pytest.mark.parametrize("part", [D + b"\r\n\r\n", D + b"\r\n\r\nx"])
def test_a_large_body_of_delimiters_takes_no_time(part: bytes) -> None:
    body = part * 100_000
    with processor_time() as spent, pytest.raises(Nonconforming):
        split(B, body)
    assert spent.seconds < 1


def test_the_boundary_that_a_body_starts_with() -> None:
    assert boundary_of(b"\r\n" + D + b"\t\r\nx") == B
    assert boundary_of(b"--b\nx") == b"b"
    for body in (b"", b"<a/>", b"--\r\n", D, b"--" + b"x" * 400 + b"\r\n"):
        with pytest.raises(Nonconforming):
            boundary_of(body)
