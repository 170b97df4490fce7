"""The grammar of the command line, and what wrong arguments look like."""

from __future__ import annotations

import argparse
from uuid import UUID

import pytest

from msmq_fast.cli.tree import ROOT
from msmq_fast.config.flags import SERVE_FLAGS
from msmq_fast.config.sections import SECTIONS, keys_of
from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake.main import main as lake_main
from msmq_fast.terminal.commands import parse
from msmq_fast.terminal.output import Form

pytestmark = pytest.mark.smoke


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as caught:
        parse(ROOT, arguments)
    assert caught.value.code == Exit.USAGE
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    return shown


def parsed(*words: str) -> argparse.Namespace:
    return parse(ROOT, words)[1]


def test_every_serve_flag_sets_a_key_that_exists() -> None:
    arguments = parsed("serve")
    for flag, name in SERVE_FLAGS.items():
        section, _, key = name.rpartition(".")
        assert key in keys_of(SECTIONS[section])
        assert getattr(arguments, flag) is None


def test_the_contract_of_the_verbs() -> None:
    sent = parsed(
        *(
            "send DIRECT=OS:b\\private$\\q --body x --label l --priority 7 --recoverable --count 3"
            " --ttrq 5 --ttbr 6 --journal --deadletter --admin-queue a --ack reach,nack-receive"
            " --response-queue r --app-specific 9 --body-type 8"
            f" --extension 0102 --correlation-id {'ab' * 20} --xact --json --endpoint unix:/x".split(" ")
        )
    )
    assert (sent.priority, sent.count, sent.ttrq, sent.ack) == (7, 3, 5.0, {"reach", "nack-receive"})
    assert (sent.extension, sent.correlation_id) == (b"\x01\x02", b"\xab" * 20)
    assert parsed("send", "q", "-").stdin == "-"
    received = parsed(
        "receive", "q", "--peek", "--count", "5", "--timeout", "1.5", "--lookup-id", "7", "--next"
    )
    assert (received.peek, received.count, received.timeout, received.lookup_id, received.next) == (
        True,
        5,
        1.5,
        7,
        True,
    )
    for action in ("create", "show", "set", "delete", "purge"):
        assert parsed("queue", action, "q").name == "q"
    for action in ("show", "pause", "resume", "purge"):
        assert parsed("outgoing", action, "f").name == "f"
    for words in (["queue", "list"], ["outgoing", "list"], ["ping", "h:1"], ["stats"], ["check-config", "f"]):
        assert parsed(*words, "--json").form is Form.JSON


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["send", "q", "--priority", "8"], "8 is not between 0 and 7"),
        (["send", "q", "--body", "a", "--file", "b"], "not allowed with"),
        (["send", "q", "--extension", "xyz"], "'xyz' is not hexadecimal"),
        (["send", "q", "--correlation-id", "ab"], "20 bytes"),
        (["send", "q", "--ack", "reach,never"], "'never' is not one of reach"),
        (["receive", "q", "--timeout", "soon"], 'invalid duration "soon"'),
        (["queue", "create"], "required: NAME"),
        (["nonsense"], "unknown command"),
    ],
)
def test_wrong_arguments_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    assert expected in complaint(capsys, *arguments)


@pytest.mark.parametrize(
    "words", ["", "audot", "audit", "audit --lake l --day 2026-13-01", "verify --lake l --jsn"]
)
def test_msmq_lake_says_what_is_wrong_in_one_line_too(capsys: pytest.CaptureFixture[str], words: str) -> None:
    with pytest.raises(SystemExit) as caught:
        lake_main(words.split())
    assert caught.value.code == Exit.USAGE
    shown = capsys.readouterr().err
    assert shown.startswith("msmq-lake")
    assert shown.count("\n") == 1


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("queue move a b --older 60 --newer 120", "queue move a b --older-than 1m --newer-than 2m"),
        ("queue copy a b --anew", "queue copy a b --restart"),
        ("import f --anew", "import f --restart"),
        ("send q --xact --deadletter", "send q --transaction --dead-letter"),
        ("receive q --xact --timeout 1.5", "receive q --transaction --timeout 1500ms"),
        ("queue create q --quota 1024", "queue create q --quota 1MiB"),
        ("send q --ttrq 60 --ttbr 3600", "send q --ttrq 1m --ttbr 1h"),
    ],
)
def test_former_spellings_work(former: str, present: str) -> None:
    assert vars(parsed(*former.split())) == vars(parsed(*present.split()))


def test_former_spellings_are_not_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("queue", "copy", "--help")
    page = capsys.readouterr().out
    assert "--restart" in page
    assert "--anew" not in page


def test_a_correlation_id_may_be_the_identifier_of_a_message() -> None:
    guid = "00112233-4455-6677-8899-aabbccddeeff"
    arguments = parsed("send", "q", "--correlation-id", rf"{{{guid}}}\258")
    assert arguments.correlation_id == UUID(guid).bytes_le + b"\x02\x01\x00\x00"
