"""The verbs `serve` and `check-config`."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from msmq_fast.cli.endpoint import configuration, load_configuration
from msmq_fast.cli.session import show
from msmq_fast.config.flags import SERVE_FLAGS
from msmq_fast.config.sections import Config
from msmq_fast.protocol.exits import CommandError, Exit

__all__ = ["run_check_config", "run_serve"]


def run_check_config(arguments: argparse.Namespace) -> int:
    """`msmq-fast check-config`: says what is wrong, or what would be in force."""
    config = configuration(arguments.config_flag or arguments.config, {})
    for warning in config.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    show(
        {
            "config": config.source,
            "profile": config.security.profile,
            "name": config.name,
            "data": str(config.data),
            "port": config.listen.mqqb.port,
            "queues": [queue.name for queue in config.queues],
            "users": [user.name for user in config.users],
        },
        as_json=arguments.json,
    )
    return Exit.OK


def run_serve(arguments: argparse.Namespace) -> int:
    """`msmq-fast serve`."""
    given = {key: getattr(arguments, name) for name, key in SERVE_FLAGS.items()}
    flags = {key: text for key, text in given.items() if text is not None}
    config = configuration(arguments.config, flags)
    # A terminal that closes must not end the server, not even while it starts.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return _serve(config, lambda: load_configuration(arguments.config, flags))


def _serve(config: Config, load: Callable[[], Config]) -> int:
    # Imported late: check-config shall not need the native modules.
    import uvloop

    from msmq_fast.server.declarations import DeclarationError
    from msmq_fast.server.lifecycle import Ending, announce_on_stdout, serve
    from msmq_fast.server.net.sockets import ListenError
    from msmq_fast.server.runtime.logs import set_up
    from msmq_fast.store.errors import StoreError, StoreLockedError

    set_up(config.log.level, config.log.format)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            ending = runner.run(serve(config, announce_on_stdout, _end_at_once, load))
    except (ListenError, StoreLockedError) as error:
        raise CommandError(Exit.IN_USE, str(error)) from None
    except (StoreError, DeclarationError) as error:
        raise CommandError(Exit.FAILURE, str(error)) from None
    if ending is Ending.STORE_FAILED:
        raise CommandError(Exit.FAILURE, f"{_store(config.data)}: the disk failed; the log says how")
    return Exit.OK


def _store(directory: Path) -> str:
    return f"the store in {directory}"


def _end_at_once() -> None:
    """End without running anything more; what was acknowledged is on the disk already."""
    sys.stderr.flush()
    os._exit(Exit.FAILURE)
