"""LDAP pings on the network: which answers count, when they are asked for again, and when it is enough."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Sequence

import pytest

from msmq_fast.directory.ldap.ping import PingError
from msmq_fast.server.net.pinging import NetworkNearness, Patience, endpoints, ping
from tests.support.worlds import pings
from tests.support.worlds.pings import controller

QUICK = Patience(0.05, 0.3, 0.1)
PATIENT = Patience(0.05, 20, 0)


def asked(*urls: str, patience: Patience = PATIENT) -> tuple[list[str], dict[str, str]]:
    answers, reasons = ping(urls, "corp.example", patience=patience)
    return list(answers), reasons


def right(identifier: int) -> Sequence[bytes]:
    return [pings.answer(identifier)]


def test_an_answer() -> None:
    with controller(right) as url:
        answers, reasons = ping([url], "corp.example")
        assert (answers[url].client_site, reasons) == ("North", {})
        assert NetworkNearness("corp.example").site(url) == "North"
        assert str(NetworkNearness().address(url)) == "127.0.0.1"


def test_a_question_is_repeated_with_the_same_identifier() -> None:
    seen: list[int] = []

    def late(identifier: int) -> Sequence[bytes]:
        seen.append(identifier)
        return right(identifier) if len(seen) == 3 else ()

    with controller(late) as url:
        assert asked(url) == ([url], {})
    assert len(set(seen)) == 1


def test_identifiers_are_not_predictable() -> None:
    seen: set[int] = set()

    def noted(identifier: int) -> Sequence[bytes]:
        seen.add(identifier)
        return right(identifier)

    with controller(noted) as url:
        for _ in range(20):
            asked(url)
    assert len(seen) == 20
    assert max(seen) - min(seen) > 1 << 20


LYING: dict[str, Callable[[int], Sequence[bytes]]] = {
    "another question": lambda identifier: [pings.answer(identifier ^ 1)],
    "another domain": lambda identifier: [pings.answer(identifier, pings.structure(("evil.example",) * 8))],
    "garbage": lambda identifier: [b"\xff" * 100],
    "nothing": lambda identifier: [b""],
    "too much": lambda identifier: [pings.answer(identifier) + bytes(5_000)],
    "very often": lambda identifier: [b"?"] * 100,
}


@pytest.mark.parametrize("lie", LYING)
def test_lies_are_no_answers(lie: str) -> None:
    with controller(LYING[lie]) as url:
        answers, reasons = asked(url, patience=QUICK)
        assert (answers, list(reasons)) == ([], [url])
        assert "answer" in reasons[url]


def test_a_lie_before_the_answer_is_passed_over_and_a_second_answer_is_not_read() -> None:
    other = pings.structure((*pings.NAMES[:7], "South"))

    def twice(identifier: int) -> Sequence[bytes]:
        return [b"?", pings.answer(identifier ^ 5), *right(identifier), pings.answer(identifier, other)]

    with controller(twice) as url:
        answers, _ = ping([url], "corp.example", patience=PATIENT)
        assert answers[url].client_site == "North"


def test_an_answer_from_another_address_does_not_count() -> None:
    with controller(right, foreign=True) as url:
        assert asked(url, patience=QUICK) == ([], {url: "no answer"})


def test_where_nothing_listens() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"ldap://127.0.0.1:{closed.getsockname()[1]}"
    assert asked(url) == ([], {url: "Connection refused"})
    assert endpoints("") == []
    assert asked("ldap://a..b", patience=PATIENT) == ([], {"ldap://a..b": "its name is not known"})
    with pytest.raises(PingError, match="Connection refused"):
        NetworkNearness().site(url)


def test_many_are_asked_at_once_and_the_silent_ones_are_not_waited_for() -> None:
    with contextlib.ExitStack() as opened:
        silent = opened.enter_context(controller(lambda identifier: ()))
        good = [opened.enter_context(controller(right)) for _ in range(3)]
        answers, reasons = asked(silent, *good, patience=Patience(0.05, 60, 0.2))
        assert set(answers) == set(good)
        assert reasons == {silent: "no answer"}


def test_one_address_of_a_controller_is_enough() -> None:
    with controller(right) as url, controller(lambda identifier: ()) as other:
        answers, _ = ping(["x"], patience=PATIENT, resolve=lambda _: [*endpoints(other), *endpoints(url)])
        assert list(answers) == ["x"]


def test_the_port_of_a_controller() -> None:
    ports = {
        "ldap://127.0.0.1": 389,
        "ldaps://127.0.0.1": 389,
        "ldaps://127.0.0.1:3636": 389,
        "ldap://127.0.0.1:3890": 3890,
        "ldap://[::1]": 389,
    }
    for url, port in ports.items():
        ((_, address),) = endpoints(url)
        assert address[1] == port
