"""Takes over a changed configuration while the server runs: after SIGHUP, or when an administrator asks.

1. The configuration is read again, as at the start. A mistake ends it here, and nothing has changed.
2. Each part prepares: it checks what it needs, and returns a function that changes what is in force. A part
   that raises ends it here, and nothing has changed.
3. The changes are made. Keys that differ and are not live take a restart: they are named.

To make a key live: mark it with `live=True` in its section, and give `Assembly` a part that takes it over.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msmq_fast.admin.view import Labelled
from msmq_fast.app.auth import TokenTable
from msmq_fast.config.mistakes import ConfigError
from msmq_fast.config.sections import LISTS, LIVE_LISTS, SECTIONS, Config, keys_of
from msmq_fast.qm.manager import QueueManager
from msmq_fast.server.credentials import token_table
from msmq_fast.server.declarations import DeclarationError, check, declare
from msmq_fast.server.runtime.logs import set_up

__all__ = ["Part", "Reload", "ReloadError", "Reloaded", "log_settings", "queue_declarations", "user_tokens"]

_log = logging.getLogger("msmq_fast.server")

Part = Callable[[Config], Callable[[], None]]
"""Prepares a change and returns the function that makes it. Raises DeclarationError."""


class ReloadError(Exception):
    """The configuration cannot be taken over; `lines` say why, and what has changed all the same."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The result of a reload. Keys are "section.key", or the name of a list."""

    source: str
    changed: list[str]
    """Keys that are in force now."""
    restart: list[str]
    """Keys that differ from what is in force until a restart."""
    warnings: list[str]


class Reload:
    """Reads the configuration again and hands it to the parts."""

    def __init__(self, config: Config, load: Callable[[], Config], parts: Sequence[Part]) -> None:
        """`config` is in force, and is kept up to date; `load` raises ConfigError."""
        self._config = config
        self._load = load
        self._parts = parts
        self._applied = self._rejected = 0
        self._last_failed = False
        self._restart: list[str] = []

    def on_signal(self) -> None:
        """Handles SIGHUP. Never raises for a configuration that cannot be used."""
        with contextlib.suppress(ReloadError):
            self.run("SIGHUP")

    def run(self, cause: str) -> Reloaded:
        """Take it over, and log what came of it; `cause` begins each line. Raises ReloadError."""
        try:
            done = self._adopt(self._apply())
        except ReloadError as error:
            self._rejected += 1
            self._last_failed = True
            for line in error.lines:
                _log.error("%s: not reloaded: %s", cause, line)
            raise
        self._applied += 1
        self._last_failed = False
        self._restart = done.restart
        changed = ", ".join(done.changed) or "nothing"
        _log.info("%s: configuration read again from %s; changed: %s", cause, done.source, changed)
        for warning in done.warnings:
            _log.warning("%s: %s", cause, warning)
        if done.restart:
            _log.warning("%s: these keys changed and need a restart: %s", cause, ", ".join(done.restart))
        return done

    def labelled(self) -> Iterator[Labelled]:
        """For the metrics."""
        yield Labelled(
            "config_reloads_total",
            "Reloads of the configuration, by result.",
            ("result",),
            {("applied",): float(self._applied), ("rejected",): float(self._rejected)},
        )
        yield Labelled(
            "config_last_reload_successful",
            "Whether the last reload was applied; 1 also before the first one.",
            (),
            {(): float(not self._last_failed)},
            grows=False,
        )
        yield Labelled(
            "config_restart_keys",
            "Keys of the configuration that the last reload found changed and that need a restart.",
            (),
            {(): float(len(self._restart))},
            grows=False,
        )

    def _apply(self) -> Config:
        """Steps 1 to 3; the configuration that was read."""
        try:
            new = self._load()
            changes = [prepare(new) for prepare in self._parts]
        except ConfigError as error:
            raise ReloadError([str(mistake) for mistake in error.mistakes]) from None
        except DeclarationError as error:
            raise ReloadError([str(error)]) from None
        try:
            for change in changes:
                change()
        except DeclarationError as error:  # a queue; its part is the last one
            raise ReloadError([f"all but the queues is in force: {error}"]) from None
        return new

    def _adopt(self, new: Config) -> Reloaded:
        """Note the live keys in the configuration in force, and tell them from the others."""
        changed, restart = [], []
        for name, live in _differences(self._config, new):
            if not live:
                restart.append(name)
                continue
            changed.append(name)
            section, _, key = name.rpartition(".")
            held, read = (one.section(section) if section else one for one in (self._config, new))
            setattr(held, key, getattr(read, key))
        return Reloaded(new.source, changed, restart, new.warnings)


def _differences(old: Config, new: Config) -> Iterator[tuple[str, bool]]:
    """The keys that differ, and whether each can change while the server runs."""
    for name, section in SECTIONS.items():
        before, after = old.section(name), new.section(name)
        for key, entry in keys_of(section).items():
            values = getattr(before, key), getattr(after, key)
            if values[0] != values[1]:
                yield f"{name}.{key}", entry.metadata["live"] and _same_kind(*values)
    for name in LISTS:
        if getattr(old, name) != getattr(new, name):
            yield name, name in LIVE_LISTS


def _same_kind(before: object, after: object) -> bool:
    """A file that is named for the first time, or no more, begins or ends something: that takes a restart."""
    return not (isinstance(before, Path) or isinstance(after, Path)) or None not in (before, after)


def log_settings(config: Config) -> Callable[[], None]:
    """The part for [log]."""
    return partial(set_up, config.log.level, config.log.format)


def user_tokens(tokens: TokenTable, config: Config) -> Callable[[], None]:
    """The part for [[users]]; connections that are open keep their identity."""
    return partial(tokens.replace, token_table(config))


def queue_declarations(
    manager: QueueManager, touch: Callable[[], None], config: Config
) -> Callable[[], None]:
    """The part for [[queues]]. `touch` asks for a turn of the commit loop."""
    check(manager, config.queues)

    def change() -> None:
        declare(manager, config.queues)
        touch()

    return change
