"""The configuration in force, each value with its origin (`msmq-fast config show`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msmq_fast.config.origins import DEFAULT, Origin
from msmq_fast.config.sections import LISTS, SECTIONS, Config, keys_of
from msmq_fast.config.toml_text import toml_text

__all__ = ["HIDDEN", "Setting", "effective"]

HIDDEN: Final = "(hidden)"
"""The text that is shown instead of a secret."""

_DERIVED: Final[Mapping[str, Callable[[Config], object]]] = {
    "server.name": lambda config: config.name,
    "server.data": lambda config: str(config.data),
    "listen.app.socket": lambda config: str(config.app_socket or "off"),
    "listen.http.host": lambda config: list(config.listen.hosts(config.listen.http)),
    "listen.https.host": lambda config: list(config.listen.hosts(config.listen.https)),
    "listen.rpc.host": lambda config: list(config.listen.hosts(config.listen.rpc)),
    "security.users_file": lambda config: str(config.users_file),
    "protection.key_file": lambda config: str(config.key_file),
}
"""Keys for which an empty value stands for a computed default, and the function that computes it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The value of one key. `name` is "section.key" or "list[index].key", `value` is a TOML value."""

    name: str
    value: object
    origin: Origin

    def __str__(self) -> str:
        return f"{self.name} = {toml_text(self.value)}"


def effective(config: Config) -> list[Setting]:
    """Return every key with its value in force and its origin, in the order of the configuration reference.

    If the empty value of a key stands for a computed default, as for server.name, the result holds the
    computed value. Secrets are hidden.
    """
    found = [
        setting
        for name, section in SECTIONS.items()
        for setting in _settings(config, config.section(name), section, name)
    ]
    for name, table in LISTS.items():
        for index, entry in enumerate(getattr(config, name)):
            found += _settings(config, entry, table, f"{name}[{index}]")
    return found


def _settings(config: Config, held: object, section: type, prefix: str) -> Iterator[Setting]:
    for key, entry in keys_of(section).items():
        name, value = f"{prefix}.{key}", getattr(held, key)
        shown: Any = entry.metadata["kind"].to_toml(value)
        if entry.metadata["secret"] and value:
            shown = HIDDEN
        elif name in _DERIVED:
            shown = _DERIVED[name](config)
        yield Setting(name, shown, config.origins.get(name, DEFAULT))
