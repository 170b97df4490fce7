"""The verb `security`: what the configuration opens to whom."""

from __future__ import annotations

import argparse
from typing import Final

from msmq_fast.cli.endpoint import configuration
from msmq_fast.cli.session import show
from msmq_fast.protocol.exits import Exit
from msmq_fast.server.review import NOBODY, State, review, rows, summary

__all__ = ["run_security"]

_HEADINGS: Final = {
    State.OPEN: "OPEN to callers who prove nothing, to all users of this computer, or by a broken method",
    State.LIMITED: "LIMITED to those whom the configuration names, or in how much",
    State.CLOSED: "CLOSED to all but owners, administrators and the user of the server",
}


def run_security(arguments: argparse.Namespace) -> int:
    """`msmq-fast security review`: reads the configuration as a server would; none has to run."""
    flags = {"server.data": arguments.data} if arguments.data else {}
    config = configuration(arguments.config, flags)
    if arguments.json:
        show({"profile": config.security.profile, "openings": rows(config)}, as_json=True)
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
