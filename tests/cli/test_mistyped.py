"""A command line that is mistyped: one line that names the command and what is close to it."""

from __future__ import annotations

import pytest

from msmq_fast.cli.arguments import build_parser
from msmq_fast.cli.main import main
from msmq_fast.protocol.exits import Exit


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            "recieve orders",
            "msmq-fast: unknown verb 'recieve': did you mean 'receive'? (see msmq-fast --help)",
        ),
        (
            "receive orders --follow",
            "msmq-fast receive: unknown arguments: --follow (see msmq-fast receive --help)",
        ),
        ("", "msmq-fast: missing command (see msmq-fast --help)"),
        ("acl show q --user", None),
    ],
)
def test_one_line_says_what_is_wrong(
    line: str, complaint: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    shown = capsys.readouterr().err
    assert ended.value.code == Exit.USAGE
    assert shown.count("\n") == 1
    if complaint is not None:
        assert shown == complaint + "\n"


def test_options_are_not_abbreviated() -> None:
    """--dead-letter would be taken for --dead-letter-queue and eat the next word."""
    with pytest.raises(SystemExit):
        build_parser().parse_args(["send", "q", "--dead-letter-q", "x"])
    _, unknown = build_parser().parse_known_args(["send", "q", "--body", "x", "--dead-letter"])
    assert unknown == ["--dead-letter"]
