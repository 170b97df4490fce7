"""`msmq-fast security`: shows what the configuration permits to which callers."""

from __future__ import annotations

import argparse
from typing import Final

from msmq_fast.cli.endpoint import add_configuration, configured
from msmq_fast.protocol.exits import Exit
from msmq_fast.server.review import NOBODY, State, review, rows, summary
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import Form, add_output, show, show_table
from msmq_fast.terminal.parser import Parser

__all__ = ["COMMAND"]

_COLUMNS: Final = ("state", "subject", "to", "what", "key")
_HEADINGS: Final = {
    State.OPEN: "OPEN to unauthenticated callers, to all users of this computer, or by a broken method",
    State.LIMITED: "LIMITED to the callers that the configuration names, or by a quota",
    State.CLOSED: "CLOSED to all except owners, administrators and the user of the server",
}


def _add_review(parser: Parser) -> None:
    add_configuration(parser)
    add_output(parser)


def _review(arguments: argparse.Namespace) -> int:
    config = configured(arguments)
    if arguments.form is Form.JSON:
        show({"profile": config.security.profile, "openings": rows(config)}, arguments.form)
        return Exit.OK
    if arguments.form is Form.RAW:
        show_table(rows(config), _COLUMNS, arguments.form)
        return Exit.OK
    print(summary(config))
    found = review(config)
    for state, heading in _HEADINGS.items():
        print(f"\n{heading}")
        if all(opening.state is not state for opening in found):
            print("\n  nothing")
        for opening in found:
            if opening.state is state:
                to = "" if opening.to == NOBODY else f", for {opening.to}"
                print(f"\n  {opening.subject}{to}: {opening.what}")
                print(
                    f"    {'decided by' if state is State.CLOSED else 'to close or limit it:'} {opening.key}"
                )
    return Exit.OK


COMMAND = Group(
    name="security",
    help="show what the configuration permits to which callers",
    commands=members(
        Command(
            name="review",
            help="list each listener, right, quota and algorithm, with the configuration key that restricts "
            "it",
            description="Reads the configuration as a server would; no server has to run.",
            run=_review,
            add_arguments=_add_review,
            examples=(
                Example("--config /etc/msmq-fast.toml", "what this configuration opens"),
                Example("--json | jq '.openings[] | select(.state == \"open\")'", "only what is open"),
            ),
        ),
    ),
)
