"""The verb `security`: what the configuration opens to whom."""

from __future__ import annotations

import argparse

from msmq_fast.cli.endpoint import configuration
from msmq_fast.cli.exits import Exit
from msmq_fast.cli.session import show
from msmq_fast.server.review import State, review, rows, summary

__all__ = ["run_security"]


def run_security(arguments: argparse.Namespace) -> int:
    """`msmq-fast security review`: reads the configuration as a server would; none has to run."""
    flags = {"server.data": arguments.data} if arguments.data else {}
    config = configuration(arguments.config, flags)
    if arguments.json:
        show({"profile": config.security.profile, "openings": rows(config)}, as_json=True)
        return Exit.OK
    print(summary(config))
    for opening in review(config):
        print(f"\n{opening.state:<8} {opening.subject}, for {opening.to}: {opening.what}")
        if opening.state is not State.CLOSED:
            print(f"{'':8} close or limit it with {opening.key}")
    return Exit.OK
