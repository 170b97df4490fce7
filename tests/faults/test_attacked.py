"""The witness of the hostile tests: content with a server that is well, and with no other."""

from __future__ import annotations

import sys
import time

import pytest

from tests.support.hostile.attacked import attacked
from tests.support.hostile.hostile_witness import Witness


def test_a_server_that_is_well() -> None:
    with attacked() as scene:
        time.sleep(0.5)
        report = scene.check()
        print(report)
        assert report.sent.keys() == {"peer", "program", "newcomer"}


def spoiled(module: str, change: str) -> tuple[str, ...]:
    """The program of a server in which something of a module was changed."""
    code = f"import sys, {module} as module; {change}; from msmq_fast.cli.main import main; sys.exit(main())"
    return (sys.executable, "-c", code)


@pytest.mark.parametrize(
    ("module", "change", "complaint"),
    [
        pytest.param(
            "msmq_fast.server.runtime.loop",
            "module.CommitLoop._expire = lambda self: None",
            "deadline: took longer",
            marks=pytest.mark.long(seconds=10),
        ),
        pytest.param(
            "msmq_fast.mqqb.orderack",
            "module.OrderAcks._acknowledge = lambda self, stream: None",
            "newcomer: took longer",
            marks=pytest.mark.long(seconds=10),
        ),
        pytest.param(
            "msmq_fast.server.admin.view",
            "module.ServerView.ready = lambda self: 'no'",
            "readyz: .*503",
            marks=pytest.mark.long(seconds=10),
        ),
    ],
)
def test_a_server_of_which_one_thing_does_not_work(module: str, change: str, complaint: str) -> None:
    with (
        pytest.raises(AssertionError, match=complaint),
        attacked(patience=4, program=spoiled(module, change)) as scene,
    ):
        scene.check()


@pytest.mark.long(seconds=20)
def test_a_server_whose_round_trips_are_long() -> None:
    """The time of a delivery is that of the server; the reader does not fall behind the senders."""
    change = (
        "own = module.CommitLoop._run; module.CommitLoop._run = lambda self: (time.sleep(0.1), own(self))"
    )
    with attacked(program=spoiled("msmq_fast.server.runtime.loop", f"import time; {change}")) as scene:
        time.sleep(10)
        report = scene.check()
    assert report.took["delivery"]["p50"] < 4 * report.took["program"]["p50"]


@pytest.mark.long(seconds=10)
def test_a_server_that_ends_with_another_code() -> None:
    with (
        pytest.raises(AssertionError, match="ended the server with 3"),
        attacked(
            program=spoiled("msmq_fast.cli.main", "own = module.main; module.main = lambda: own() or 3")
        ) as scene,
    ):
        scene.check()


def test_messages_that_are_lost_or_come_twice_or_out_of_order() -> None:
    for received, lost, complaints in (
        ([1, 2, 3], 0, []),
        ([1, 3], 1, []),
        ([1, 2, 2, 3], 0, ["peer: messages came twice"]),
        ([1, 3, 2], 0, ["peer: messages came out of order"]),
    ):
        witness = Witness("127.0.0.1", 0, 0, "", 1)
        witness.sent["peer"] = 3
        witness.received["peer"] = received
        assert (witness.missing(), witness.trouble) == ({"peer": lost}, complaints)
