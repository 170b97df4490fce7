"""Starts a server (store, recovery, queues, listeners, ready line), runs it, and stops it in the reverse
order. The service manager learns of each step.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from enum import Enum

from msmq_fast.config.sections import Config
from msmq_fast.server.assembly import Assembly
from msmq_fast.server.reloading import Load
from msmq_fast.server.runtime.notify import ServiceManager

__all__ = ["Ending", "serve"]

_log = logging.getLogger("msmq_fast.server")

_COLLECT_AFTER = 50_000  # container objects made and not freed between two collections of the youngest


class Ending(Enum):
    """The reasons why a server stops."""

    SIGNAL = "signal"
    STORE_FAILED = "store failed"


class _Stop:
    """Waits for the first reason to stop. The first signal calls `prepare`, a second one calls `force`."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, prepare: Callable[[], None], force: Callable[[], None]
    ) -> None:
        self._reason: asyncio.Future[Ending] = loop.create_future()
        self._prepare = prepare
        self._force = force
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)

    def _signalled(self, number: signal.Signals) -> None:
        if self._reason.done():
            _log.warning("second signal: ending at once")
            self._force()
        else:
            # The stop itself begins a few turns of the loop later. A sync that hangs the loop before that
            # would keep it from the second signal.
            self._prepare()
            _log.info("%s: draining", signal.Signals(number).name)
            self.because(Ending.SIGNAL)

    def because(self, ending: Ending) -> None:
        """Stop for the reason `ending`, unless the server already stops for another one."""
        if not self._reason.done():
            self._reason.set_result(ending)

    async def wait(self) -> Ending:
        """Wait for a reason to stop, and return it."""
        return await asyncio.shield(self._reason)


async def serve(
    config: Config,
    announce: Callable[[str], None],
    force: Callable[[], None],
    load: Load,
) -> Ending:
    """Run a server until a signal stops it or the disk fails. SIGHUP reloads the configuration.

    `announce` is called with the ready line; `force` ends the process at once; `load` reads the configuration
    again. Raises StoreError, ListenError and DeclarationError, all of them with one line
    for people.
    """
    for warning in config.warnings:
        _log.warning("%s", warning)
    loop = asyncio.get_running_loop()
    stop = _Stop(loop, lambda: assembly.prepare_to_stop(), force)
    assembly = Assembly(config, loop, on_store_failure=lambda: stop.because(Ending.STORE_FAILED), load=load)
    service_manager = ServiceManager(os.environ, time.monotonic, assembly.why_not_ready)
    try:
        service_manager.starting()
        await assembly.start()
        _quieten_collector()
        loop.add_signal_handler(signal.SIGHUP, service_manager.reload, assembly.reload().on_signal)
        announce(assembly.ready_line())
        service_manager.ready()
        assembly.add_timed(service_manager)
        _log.info("ready")
        ending = await stop.wait()
    except BaseException:
        assembly.abandon()
        raise
    if ending is Ending.STORE_FAILED:
        # The content of the disk is unknown: acknowledge nothing more, write nothing more.
        assembly.abandon()
        return ending
    service_manager.stopping()
    overdue = loop.call_later(config.server.drain_timeout, _overdue, force)
    try:
        await assembly.stop()
    finally:
        overdue.cancel()
    _log.info("stopped")
    return ending


def _quieten_collector() -> None:
    """Exclude existing objects from garbage collection, and make collections rare: message objects never form
    cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 50)


def _overdue(force: Callable[[], None]) -> None:
    _log.error("draining took too long: ending at once")
    force()


def announce_on_stdout(line: str) -> None:
    """Print the ready line. If that fails, the server continues, and its later exit code is not affected: the
    line is written without the buffer of `sys.stdout`, which would be flushed again at exit.
    """
    with contextlib.suppress(OSError, ValueError):
        os.write(sys.stdout.fileno(), f"{line}\n".encode())
