"""The entry point `msmq-fast`: finds the verb, turns expected failures into one line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from msmq_fast.cli.arguments import build_parser
from msmq_fast.cli.streams import open_closed_streams
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.server.runtime.release import release

__all__ = ["main"]

# The module of each verb is imported when it is asked for: a short command starts without the whole server.
_VERBS = {
    "serve": "serve",
    "check-config": "serve",
    "queue": "queue",
    "outgoing": "queue",
    "stats": "queue",
    "send": "send",
    "receive": "receive",
    "ping": "ping",
    "health": "health",
    "directory": "directory",
    "export": "export",
    "import": "import_",
    "dlq": "dlq",
    "acl": "acl",
    "certificate": "key",
    "key": "key",
    "transaction": "transaction",
    "user": "user",
    "security": "security",
    "snapshot": "snapshot",
    "backup": "backup",
    "restore": "backup",
    "compact": "backup",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    open_closed_streams()
    parser = build_parser()
    parsed, unknown = parser.parse_known_args(arguments)
    if unknown:
        verb = f" {parsed.verb}" if parsed.verb else ""
        parser.prog += verb  # the help of the verb lists its options
        parser.error(f"unknown arguments: {' '.join(unknown)}")
    if parsed.version:
        print(f"msmq-fast {release()}")
        return Exit.OK
    if parsed.verb is None:
        parser.error("missing command")
    module = importlib.import_module(f"msmq_fast.cli.commands.{_VERBS[parsed.verb]}")
    run: Callable[[argparse.Namespace], int] = getattr(module, "run_" + parsed.verb.replace("-", "_"))
    try:
        code = run(parsed)
        sys.stdout.flush()
    except CommandError as error:
        print(f"msmq-fast {parsed.verb}: {error}", file=sys.stderr)
        return error.code
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing to say, and nowhere to say it.
        _discard_output()
        return Exit.FAILURE
    except OSError as error:
        _discard_output()
        what = error.filename if error.filename is not None else "cannot write the output"
        print(f"msmq-fast {parsed.verb}: {what}: {error.strerror or error}", file=sys.stderr)
        return Exit.FAILURE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return code


def _discard_output() -> None:
    """What standard output did not take must not be tried again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
