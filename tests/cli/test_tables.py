"""What people read: times of day, and a head also over an empty table."""

from __future__ import annotations

import json

import pytest

from msmq_fast.terminal.output import Form, show, show_table

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
