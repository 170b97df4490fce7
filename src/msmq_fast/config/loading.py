"""Reading the configuration: one TOML file, MSMQ_FAST_SECTION__KEY variables, flags."""

from __future__ import annotations

import difflib
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msmq_fast.config import kinds
from msmq_fast.config.profiles import apply_profile
from msmq_fast.config.sections import (
    LISTS,
    NEEDED,
    SECTIONS,
    Config,
    keys_of,
)
from msmq_fast.config.toml_lines import LineIndex

__all__ = ["ENVIRONMENT_PREFIX", "ConfigError", "Mistake", "load"]

ENVIRONMENT_PREFIX = "MSMQ_FAST_"


class Mistake:
    """One mistake: where it stands and what is wrong."""

    __slots__ = ("line", "text", "where")

    def __init__(self, where: str, line: int | None, text: str) -> None:
        self.where = where
        self.line = line
        self.text = text

    def __str__(self) -> str:
        place = f"{self.where}:{self.line}" if self.line is not None else self.where
        return f"{place}: {self.text}"


class ConfigError(Exception):
    """The configuration cannot be used; `mistakes` holds every reason found, not only the first."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("; ".join(str(mistake) for mistake in mistakes))
        self.mistakes = mistakes


def load(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, str]) -> Config:
    """The configuration in force.

    `flags` maps "section.key" to the text that was given on the command line. Raises ConfigError.
    """
    mistakes: list[Mistake] = []
    config = Config()
    if file is not None:
        config.source = str(file)
        config.file = file
        _read_file(config, file, mistakes)
    _read_environment(config, environment, mistakes)
    _read_flags(config, flags, mistakes)
    if not mistakes:
        missing = apply_profile(config)
        if missing is not None:
            mistakes.append(Mistake(config.source, None, missing))
        _check_together(config, mistakes)
    if mistakes:
        raise ConfigError(mistakes)
    return config


def _read_file(config: Config, file: Path, mistakes: list[Mistake]) -> None:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        mistakes.append(Mistake(str(file), None, f"cannot be read: {error.strerror or error}"))
        return
    except UnicodeDecodeError as error:
        mistakes.append(Mistake(str(file), None, f"is not UTF-8 at byte {error.start}"))
        return
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        mistakes.append(Mistake(str(file), None, f"is not valid TOML: {error}"))
        return
    lines = LineIndex(text)
    for name, content in document.items():
        if name in SECTIONS:
            if isinstance(content, dict):
                config.given |= {f"{name}.{key}" for key in content}
                _fill(getattr(config, name), content, name, 0, str(file), lines, mistakes)
            else:
                mistakes.append(
                    Mistake(str(file), lines.line("", name), f'"{name}" is a section: write [{name}]')
                )
        elif name in LISTS:
            _fill_list(config, name, content, str(file), lines, mistakes)
        else:
            known = [*SECTIONS, *LISTS]
            line = lines.line(name) or lines.line("", name)
            mistakes.append(Mistake(str(file), line, f'unknown section "{name}"{_suggest(name, known)}'))


def _fill_list(
    config: Config, name: str, content: object, where: str, lines: LineIndex, mistakes: list[Mistake]
) -> None:
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        line = lines.line(name) or lines.line("", name)
        mistakes.append(Mistake(where, line, f'"{name}" is a list of tables: write [[{name}]]'))
        return
    declared = getattr(config, name)
    for index, item in enumerate(content):
        entry = LISTS[name]()
        _fill(entry, item, name, index, where, lines, mistakes)
        mistakes.extend(
            Mistake(where, lines.line(name, index=index), f'[[{name}]] needs a "{key}"')
            for key in NEEDED[name]
            if not getattr(entry, key)
        )
        declared.append(entry)


def _fill(
    target: Any,
    content: Mapping[str, object],
    section: str,
    index: int,
    where: str,
    lines: LineIndex,
    mistakes: list[Mistake],
) -> None:
    keys = keys_of(type(target))
    for key, value in content.items():
        line = lines.line(section, key, index)
        if key not in keys:
            mistakes.append(Mistake(where, line, f'unknown key "{key}" in [{section}]{_suggest(key, keys)}'))
            continue
        try:
            setattr(target, key, keys[key].metadata["kind"].check(value))
        except ValueError as error:
            mistakes.append(Mistake(where, line, f"{section}.{key}: {error}"))


def _read_environment(config: Config, environment: Mapping[str, str], mistakes: list[Mistake]) -> None:
    known = {
        f"{ENVIRONMENT_PREFIX}{section}__{key}".upper(): (section, key)
        for section, kind in SECTIONS.items()
        for key in keys_of(kind)
    }
    for variable, text in sorted(environment.items()):
        # Variables without the double underscore (MSMQ_FAST_ENDPOINT) belong to the client.
        if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
            continue
        if variable not in known:
            mistakes.append(Mistake(variable, None, f"unknown variable{_suggest(variable, known)}"))
            continue
        _set_from_text(config, *known[variable], text, variable, mistakes)


def _read_flags(config: Config, flags: Mapping[str, str], mistakes: list[Mistake]) -> None:
    for name, text in flags.items():
        section, key = name.split(".", 1)
        _set_from_text(config, section, key, text, "--" + key.replace("_", "-"), mistakes)


def _set_from_text(
    config: Config, section: str, key: str, text: str, where: str, mistakes: list[Mistake]
) -> None:
    target = getattr(config, section)
    config.given.add(f"{section}.{key}")
    try:
        setattr(target, key, keys_of(type(target))[key].metadata["kind"].from_text(text))
    except ValueError as error:
        mistakes.append(Mistake(where, None, str(error)))


def _check_together(config: Config, mistakes: list[Mistake]) -> None:
    server = config.server
    if (server.https_certificate is None) != (server.https_key is None):
        mistakes.append(
            Mistake(config.source, None, "server.https_certificate and server.https_key go together")
        )
    if server.https_certificate is None and not isinstance(server.https_port, kinds.Preferred | None):
        mistakes.append(
            Mistake(config.source, None, "server.https_port needs https_certificate and https_key")
        )
    if config.rpc.qm2qm and not config.rpc.qmcomm:
        mistakes.append(
            Mistake(config.source, None, "rpc.qm2qm needs rpc.qmcomm: its callers open queues there")
        )
    for name in ("app", "admin"):
        certificate, key = f"{name}_tls_certificate", f"{name}_tls_key"
        if (getattr(server, certificate) is None) != (getattr(server, key) is None):
            mistakes.append(
                Mistake(config.source, None, f"server.{certificate} and server.{key} go together")
            )
    if server.app_port is not None and not config.users:
        mistakes.append(
            Mistake(config.source, None, "server.app_port needs at least one [[users]] entry with a token")
        )
    mistakes.extend(
        Mistake(config.source, None, f'user "{user.name}": give one of token, token_file and token_sha256')
        for user in config.users
        if [bool(user.token), user.token_file is not None, bool(user.token_sha256)].count(True) != 1
    )
    _check_unique("[[queues]]", [queue.name.lower() for queue in config.queues], config, mistakes)
    _check_unique("[[users]]", [user.name for user in config.users], config, mistakes)
    destinations = [route.destination.casefold() for route in config.routes]
    _check_unique("[[routes]]", destinations, config, mistakes)
    _check_unique("[[peers]]", [peer.guid.casefold() for peer in config.peers], config, mistakes)


def _check_unique(what: str, names: list[str], config: Config, mistakes: list[Mistake]) -> None:
    mistakes.extend(
        Mistake(config.source, None, f'{what} "{name}" is declared twice')
        for name, count in sorted(Counter(names).items())
        if count > 1
    )


def _suggest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1, 0.6)
    return f'; did you mean "{near[0]}"?' if near else ""
