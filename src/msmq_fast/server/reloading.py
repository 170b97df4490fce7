"""SIGHUP: takes over what can change while the server runs, and names what takes a restart."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from msmq_fast.app.auth import TokenTable
from msmq_fast.config.mistakes import ConfigError
from msmq_fast.config.sections import LISTS, SECTIONS, Config, keys_of
from msmq_fast.server.credentials import token_table
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.server.runtime.logs import set_up

__all__ = ["Reload"]

_log = logging.getLogger("msmq_fast.server")
_TAKEN = frozenset({"log.level", "log.format", "queues", "users"})


class Reload:
    """Reads the configuration again. What is wrong with it is logged, and what was in force stays in force.

    In force at once: the log's level and format, the queues and users (tokens) of the configuration, and the
    files of TLS certificates under their old names. The users file needs no signal.
    """

    def __init__(
        self,
        config: Config,
        load: Callable[[], Config],
        declare: Callable[[Config], None],
        tokens: TokenTable,
        certificates: Callable[[], list[str]],
    ) -> None:
        """`load` raises ConfigError; `declare` creates and changes queues and raises DeclarationError;
        `certificates` reads them again and returns a line for each that it could not use.
        """
        self._config = config
        self._load = load
        self._declare = declare
        self._tokens = tokens
        self._certificates = certificates

    def run(self) -> None:
        """What SIGHUP does. Never raises for a configuration that cannot be used."""
        try:
            new = self._load()
            tokens = token_table(new)
        except ConfigError as error:
            for mistake in error.mistakes:
                _log.error("SIGHUP: not reloaded: %s", mistake)
            return
        except DeclarationError as error:
            _log.error("SIGHUP: not reloaded: %s", error)
            return
        self._tokens.replace(tokens)
        set_up(new.log.level, new.log.format)
        for complaint in self._certificates():
            _log.error("SIGHUP: certificate kept as it was: %s", complaint)
        try:
            self._declare(new)
        except DeclarationError as error:
            _log.error("SIGHUP: %s", error)
        waiting = [key for key in _differences(self._config, new) if key not in _TAKEN]
        _log.info("SIGHUP: configuration read again from %s", new.source)
        for warning in new.warnings:
            _log.warning("%s", warning)
        if waiting:
            _log.warning("SIGHUP: these keys changed and need a restart: %s", ", ".join(waiting))


def _differences(old: Config, new: Config) -> Iterator[str]:
    """The keys that differ: `section.key`, or the name of a list."""
    for name, section in SECTIONS.items():
        before, after = old.section(name), new.section(name)
        for key in keys_of(section):
            if getattr(before, key) != getattr(after, key):
                yield f"{name}.{key}"
    yield from (name for name in LISTS if getattr(old, name) != getattr(new, name))
