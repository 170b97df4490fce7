"""A command line that is mistyped: one line that names the command and what is close to it."""

from __future__ import annotations

import pytest

from msmq_fast.cli.main import main
from msmq_fast.protocol.exits import Exit


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            "recieve orders",
            "msmq-fast: unknown command 'recieve': did you mean 'receive'? (see msmq-fast --help)",
        ),
        (
            "receive orders --cuont 5",
            "msmq-fast receive: unknown option '--cuont': did you mean '--count'? "
            "(see msmq-fast receive --help)",
        ),
        (
            "receive orders --zzz",
            "msmq-fast receive: unknown option '--zzz' (see msmq-fast receive --help)",
        ),
        (
            "receive orders --priority 3",
            "msmq-fast receive: unknown option '--priority' (see msmq-fast receive --help)",
        ),
        (
            "receive orders more",
            "msmq-fast receive: unexpected argument 'more' (see msmq-fast receive --help)",
        ),
        (
            "queue creat orders",
            "msmq-fast queue: unknown command 'creat': did you mean 'create'? (see msmq-fast queue --help)",
        ),
        (
            "purge orders",
            "msmq-fast: unknown command 'purge': did you mean 'queue purge'? (see msmq-fast --help)",
        ),
        ("--verison", "msmq-fast: unknown option '--verison' (see msmq-fast --help)"),
        ("queue", "msmq-fast queue: missing command (see msmq-fast queue --help)"),
        (
            "queue create q --privacy bdy",
            "msmq-fast queue create: argument --privacy: invalid choice 'bdy': did you mean 'body'? "
            "(see msmq-fast queue create --help)",
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


def test_options_are_not_abbreviated(capsys: pytest.CaptureFixture[str]) -> None:
    """The shortest spelling of an option would change its meaning with the next option."""
    with pytest.raises(SystemExit):
        main(["send", "q", "--dead-letter-q", "x"])
    assert "unknown option '--dead-letter-q'" in capsys.readouterr().err
