"""Resources for operators about the configuration of a running server, like those in `protocol.resources`."""

from __future__ import annotations

from dataclasses import dataclass, field

from msmq_fast.protocol.resources import Resource

__all__ = ["ConfigCheck", "ConfigMistake", "ConfigPage", "ConfigSetting"]


@dataclass(frozen=True, slots=True)
class ConfigSetting(Resource):
    """A key of the configuration with the value in force."""

    key: str = ""
    """`section.key`, or `list[index].key`."""
    value: object = ""
    """A TOML value; `(hidden)` for a secret."""
    origin: str = ""
    """`default`, the profile, the variable, the flag, or the file with the line that sets the value."""
    live: bool = False
    """Whether `config reload` applies a new value; otherwise it takes a restart."""
    changed: bool = False
    """Whether the value, or an entry of its list, has changed since the start of the server."""
    restart: bool = False
    """Whether the last reload found another value that takes a restart."""


@dataclass(frozen=True, slots=True)
class ConfigPage(Resource):
    """One page of the configuration in force, in the order of the configuration reference."""

    source: str = ""
    """The configuration file; `defaults` if there is none."""
    settings: tuple[ConfigSetting, ...] = field(default=(), metadata={"of": ConfigSetting})
    total: int = 0
    """Number of settings on all pages."""


@dataclass(frozen=True, slots=True)
class ConfigMistake(Resource):
    """A mistake in a configuration."""

    where: str = ""
    """The file, variable or flag."""
    line: int = 0
    """The line of the file; 0 if it is not known."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class ConfigCheck(Resource):
    """What a reload of a configuration file with another content would do."""

    mistakes: tuple[ConfigMistake, ...] = field(default=(), metadata={"of": ConfigMistake})
    """All mistakes; if there is one, the server would not use the file."""
    warnings: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Keys and lists that would change at once."""
    restart: tuple[str, ...] = ()
    """Keys and lists that would change after a restart."""
