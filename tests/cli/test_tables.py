"""What people read: times of day, and a head also over an empty table."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys

import pytest

from msmq_fast.terminal.output import Form, short_size, show, show_table

ROW = {"created": 1_795_499_426, "resend_time": 0, "messages": 1_795_499_426}


def test_people_see_times_of_day(capsys: pytest.CaptureFixture[str]) -> None:
    show(ROW, Form.TABLE)
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["created:", "2026-11-24T05:50:26Z"],
        ["resend_time:"],
        ["messages:", "1795499426"],
    ]
    show_table([ROW, {"created": "unknown"}], ("created", "messages"), Form.TABLE)
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["CREATED", "MESSAGES"],
        ["2026-11-24T05:50:26Z", "1795499426"],
        ["unknown"],
    ]


def test_programs_see_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    show(ROW, Form.JSON)
    show_table([ROW], ("created",), Form.JSON)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [ROW, ROW]


def test_raw_values_stay_in_their_columns(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = {"label": "a\tb\nc\x1b[31m", "name": "q", "empty": None, "flag": True}
    show_table([hostile], ("name", "label", "empty", "flag"), Form.RAW)
    show(hostile, Form.RAW)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("\t") == ["q", r"a\x09b\x0ac\x1b[31m", "", "yes"]
    assert lines[1:] == ["label\ta\\x09b\\x0ac\\x1b[31m", "name\tq", "empty", "flag\tyes"]


def test_the_last_column_folds_to_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = [{"name": "q", "rights": "get-properties, set-properties, receive, send"}, {"name": "other"}]
    show_table(rows, ("name", "rights"), Form.TABLE, fold=True)
    assert capsys.readouterr().out.splitlines() == [
        "NAME   RIGHTS",
        "q      get-properties, set-properties,",
        "       receive, send",
        "other",
    ]
    show_table(rows, ("name", "rights"), Form.RAW, fold=True)
    assert capsys.readouterr().out.splitlines()[0] == f"q\t{rows[0]['rights']}"


def on_terminal(**environment: str) -> bytes:
    """What a command prints on a terminal."""
    leader, follower = pty.openpty()
    program = "from msmq_fast.terminal.output import *; show_table([{'name': 'q'}], ('name',), Form.TABLE)"
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=follower, env={**inherited, **environment}
    )
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):
        while data := os.read(leader, 4096):
            shown += data
    os.close(leader)
    assert process.wait(30) == 0
    return shown


def test_only_terminals_have_colours() -> None:
    assert on_terminal(TERM="xterm") == b"\x1b[1mNAME\x1b[0m\r\nq\r\n"
    assert on_terminal(TERM="dumb") == b"NAME\r\nq\r\n"
    assert on_terminal() == b"NAME\r\nq\r\n"
    assert on_terminal(TERM="xterm", NO_COLOR="1") == b"NAME\r\nq\r\n"


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (200 << 10, "200 KiB"),
        (3 << 40, "3.0 TiB"),
    ],
)
def test_sizes_for_people_are_short(size: int, shown: str) -> None:
    assert short_size(size) == shown
