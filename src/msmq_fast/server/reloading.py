"""Applies a changed configuration while the server runs: after SIGHUP, or at the request of an administrator.

1. The configuration is read again, as at the start. A mistake ends the reload here, without any change.
2. Each part prepares the change: it checks its keys, and returns a function that applies them. If a part
   raises an exception, the reload ends here, without any change.
3. The changes are applied. Changed keys that are not live need a restart: the result lists them.

To make a key live: mark it with `live=True` in its section, and add a part that applies it in
`Assembly.reload`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msmq_fast.admin.view import Labelled
from msmq_fast.app.auth import TokenTable
from msmq_fast.config.mistakes import ConfigError
from msmq_fast.config.origins import Origin
from msmq_fast.config.sections import LISTS, LIVE_LISTS, SECTIONS, Config, keys_of
from msmq_fast.qm.manager import QueueManager
from msmq_fast.server.credentials import token_table
from msmq_fast.server.declarations import DeclarationError, check, declare
from msmq_fast.server.runtime.logs import set_up
from msmq_fast.signals import Signal

__all__ = [
    "Load",
    "Part",
    "Reload",
    "ReloadError",
    "Reloaded",
    "differences",
    "log_settings",
    "queue_declarations",
    "user_tokens",
]

_log = logging.getLogger("msmq_fast.server")

Load = Callable[[str | None], Config]
"""Reads the configuration again: the file, or a text in its place. Raises ConfigError."""

Part = Callable[[Config], Callable[[], None]]
"""Checks the keys of one part of the server, and returns the function that applies them. Raises
DeclarationError.
"""


class ReloadError(Exception):
    """The configuration cannot be applied. `lines` say why, and which changes are nevertheless in force."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The result of a reload. Keys are "section.key", or the name of a list."""

    source: str
    changed: list[str]
    """Keys that have been applied."""
    restart: list[str]
    """Keys that have changed in the file and need a restart."""
    warnings: list[str]

    def summary(self) -> str:
        """Return the keys that have changed, without their values, which may be secrets."""
        parts = [f"changed: {', '.join(self.changed)}" if self.changed else "no change"]
        if self.restart:
            parts.append(f"after a restart: {', '.join(self.restart)}")
        return "; ".join(parts)


class Reload:
    """Reads the configuration again, and lets the parts of the server apply it. Emits `signalled` after a
    reload that SIGHUP caused.
    """

    def __init__(self, config: Config, load: Load, parts: Sequence[Part]) -> None:
        """`config` is the configuration in force; reloads update it. `load` raises ConfigError."""
        self._config = config
        self._load = load
        self._parts = parts
        self.signalled: Signal[[Reloaded | ReloadError]] = Signal()
        self.changed: set[str] = set()
        """Keys and lists that reloads have changed since the start."""
        self._applied = self._rejected = 0
        self._last_failed = False
        self.restart: list[str] = []
        """Keys and lists that the last reload found changed and that need a restart."""

    def on_signal(self) -> None:
        """Reload the configuration after SIGHUP. An invalid configuration is logged and raises no
        exception.
        """
        try:
            self.signalled(self.run("SIGHUP"))
        except ReloadError as error:
            self.signalled(error)

    def run(self, cause: str) -> Reloaded:
        """Reload the configuration and log the result; each log line begins with `cause`. Raises
        ReloadError.
        """
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
        self.restart = done.restart
        self.changed.update(done.changed)
        changed = ", ".join(done.changed) or "nothing"
        _log.info("%s: configuration read again from %s; changed: %s", cause, done.source, changed)
        for warning in done.warnings:
            _log.warning("%s: %s", cause, warning)
        if done.restart:
            _log.warning("%s: these keys changed and need a restart: %s", cause, ", ".join(done.restart))
        return done

    def labelled(self) -> Iterator[Labelled]:
        """Yield the metrics of reloads with their labels."""
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
            {(): float(len(self.restart))},
            grows=False,
        )

    def _apply(self) -> Config:
        """Run steps 1 to 3. Return the configuration that was read."""
        try:
            new = self._load(None)
            changes = [prepare(new) for prepare in self._parts]
        except ConfigError as error:
            raise ReloadError([str(mistake) for mistake in error.mistakes]) from None
        except DeclarationError as error:
            raise ReloadError([str(error)]) from None
        try:
            for change in changes:
                change()
        except DeclarationError as error:  # a queue; its part is the last one
            raise ReloadError([f"all changes except those of [[queues]] are in force: {error}"]) from None
        return new

    def _adopt(self, new: Config) -> Reloaded:
        """Copy the values of the changed live keys into the configuration in force. Return these keys, and
        the changed keys that need a restart.
        """
        changed, restart = [], []
        for name, live in differences(self._config, new):
            if not live:
                restart.append(name)
                continue
            changed.append(name)
            section, _, key = name.rpartition(".")
            held, read = (one.section(section) if section else one for one in (self._config, new))
            setattr(held, key, getattr(read, key))
            _adopt_origins(self._config.origins, new.origins, name)
        return Reloaded(new.source, changed, restart, new.warnings)


def _adopt_origins(held: dict[str, Origin], read: dict[str, Origin], name: str) -> None:
    """Replace the origins of a key, or of the entries of a list."""
    for origins, change in ((list(held), held.pop), (list(read), lambda key: held.update({key: read[key]}))):
        for key in origins:
            if key.partition("[")[0] == name:
                change(key)


def differences(old: Config, new: Config) -> Iterator[tuple[str, bool]]:
    """Yield (key, whether it can change while the server runs) for each key that differs."""
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
    """Return False if the path of a file is added or removed: that turns a function of the server on or off,
    which needs a restart.
    """
    return not (isinstance(before, Path) or isinstance(after, Path)) or None not in (before, after)


def log_settings(config: Config) -> Callable[[], None]:
    """Prepare a change of [log]: return the function that applies it."""
    return partial(set_up, config.log.level, config.log.format)


def user_tokens(tokens: TokenTable, config: Config) -> Callable[[], None]:
    """Prepare a change of [[users]]: return the function that applies it. Open connections keep their
    identity.
    """
    return partial(tokens.replace, token_table(config))


def queue_declarations(
    manager: QueueManager, touch: Callable[[], None], config: Config
) -> Callable[[], None]:
    """Prepare a change of [[queues]]: return the function that applies it. `touch` requests an iteration of
    the commit loop.
    """
    check(manager, config.queues)

    def change() -> None:
        declare(manager, config.queues)
        touch()

    return change
