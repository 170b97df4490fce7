"""Shows the configuration in force, and checks a text that could replace the file."""

from __future__ import annotations

from collections.abc import Callable

from msmq_fast.config.effective import effective
from msmq_fast.config.mistakes import ConfigError, Mistake
from msmq_fast.config.sections import LIVE_LISTS, SECTIONS, Config, keys_of
from msmq_fast.protocol.configuration import ConfigCheck, ConfigMistake, ConfigPage, ConfigSetting
from msmq_fast.protocol.text import printable
from msmq_fast.server.reloading import Load, Reload, differences

__all__ = ["RunningConfiguration"]


class RunningConfiguration:
    """The configuration of one server; implements `app.service.Configuration`. `config` is the one in force,
    `reload` returns the object that changes it.
    """

    def __init__(self, config: Config, load: Load, reload: Callable[[], Reload]) -> None:
        self._config = config
        self._load = load
        self._reload = reload

    def page(self, offset: int, limit: int) -> ConfigPage:
        """Return up to `limit` settings after the first `offset` ones. Secrets are hidden."""
        settings = effective(self._config)
        reload = self._reload()
        shown = tuple(
            ConfigSetting(
                key=setting.name,
                value=setting.value,
                origin=str(setting.origin),
                live=_is_live(setting.name),
                changed=_named(setting.name, reload.changed),
                restart=_named(setting.name, reload.restart),
            )
            for setting in settings[offset : offset + limit]
        )
        return ConfigPage(self._config.source, shown, len(settings))

    def check(self, text: str) -> ConfigCheck:
        """Return what a reload would do if the file had the content `text`. Changes nothing."""
        try:
            new = self._load(text)
        except ConfigError as error:
            return ConfigCheck(mistakes=tuple(map(_mistake, error.mistakes)))
        found = list(differences(self._config, new))
        return ConfigCheck(
            warnings=tuple(new.warnings),
            changed=tuple(name for name, live in found if live),
            restart=tuple(name for name, live in found if not live),
        )


def _is_live(name: str) -> bool:
    listed, bracket, _ = name.partition("[")
    if bracket:
        return listed in LIVE_LISTS
    section, _, key = name.rpartition(".")
    return bool(keys_of(SECTIONS[section])[key].metadata["live"])


def _named(name: str, among: set[str] | list[str]) -> bool:
    """Whether a key, or the list that it belongs to, is among the names of a reload."""
    return name.partition("[")[0] in among


def _mistake(mistake: Mistake) -> ConfigMistake:
    return ConfigMistake(printable(mistake.where), mistake.line or 0, printable(mistake.text))
