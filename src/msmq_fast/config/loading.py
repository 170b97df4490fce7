"""Reads the configuration: one TOML file, MSMQ_FAST_SECTION__KEY variables, flags.

1. The sources are read one after the other: file, variables, flags. A later source overrides an earlier one.
2. An old name of a key (`config/renamed.py`) is replaced by the new one, with a warning.
3. The kind of the key checks the value; mistakes are collected, and reading continues.
4. If there are no mistakes, the security profile sets those of its keys that no source has set, and keys that
   depend on each other are checked.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msmq_fast.config.checks import check_together
from msmq_fast.config.flags import FLAG_OF
from msmq_fast.config.mistakes import ConfigError, Mistake, suggestion
from msmq_fast.config.origins import Origin, Source
from msmq_fast.config.profiles import apply_profile
from msmq_fast.config.renamed import RENAMED
from msmq_fast.config.sections import LISTS, NEEDED, SECTIONS, Config, keys_of
from msmq_fast.config.toml_lines import LineIndex

__all__ = ["ENVIRONMENT_PREFIX", "load", "variable"]

ENVIRONMENT_PREFIX = "MSMQ_FAST_"
_LARGEST = 8 << 20  # bytes of a file
_GROUPS = {name.partition(".")[0] for name in SECTIONS if "." in name}


def load(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, str], text: str | None = None
) -> Config:
    """Return the configuration in force.

    `flags` maps "section.key" to the text given on the command line. `text`, if it is given, replaces the
    content of the file. Raises ConfigError with all mistakes.
    """
    mistakes: list[Mistake] = []
    config = Config()
    if file is None and text is not None:
        file = Path("the text")
    if file is not None:
        config.source = str(file)
        config.file = file
        _FileReader(config, file, mistakes, text).read()
    _read_environment(config, environment, mistakes)
    _read_flags(config, flags, mistakes)
    if not mistakes:
        missing = apply_profile(config)
        if missing is not None:
            mistakes.append(Mistake(config.source, None, missing))
        mistakes += check_together(config)
    if mistakes:
        raise ConfigError(mistakes)
    return config


def variable(name: str) -> str:
    """Return the name of the environment variable that sets the key `name`, "section.key"."""
    return ENVIRONMENT_PREFIX + name.replace(".", "__").upper()


class _FileReader:
    """Reads a file into `config`, and adds the mistakes in the file to `mistakes`."""

    def __init__(self, config: Config, file: Path, mistakes: list[Mistake], text: str | None) -> None:
        """`text`, if it is given, is the content of the file."""
        self._config = config
        self._file = file
        self._text = text
        self._mistakes = mistakes
        self._lines = LineIndex("")
        self._spelled: dict[str, str] = {}  # how each key that was set is spelled in the file

    def read(self) -> None:
        """Read the whole file; never raises."""
        document = self._document()
        for name, content in document.items():
            if name in LISTS:
                self._list(name, content)
            elif name in _GROUPS:
                self._group(name, content)
            else:
                self._section(name, content)

    def _document(self) -> dict[str, Any]:
        try:
            content = self._content()
            if len(content) > _LARGEST:
                self._wrong(None, f"is larger than {_LARGEST >> 20} MiB")
                return {}
            text = content.decode("utf-8")
        except OSError as error:
            self._wrong(None, f"cannot be read: {error.strerror or error}")
        except UnicodeDecodeError as error:
            self._wrong(None, f"is not UTF-8 at byte {error.start}")
        else:
            try:
                document = tomllib.loads(text)
            except tomllib.TOMLDecodeError as error:
                self._wrong(None, f"is not valid TOML: {error}")
            else:
                self._lines = LineIndex(text)
                return document
        return {}

    def _content(self) -> bytes:
        """Return the content of the file, cut off after _LARGEST + 1 bytes."""
        if self._text is not None:
            return self._text.encode()
        with self._file.open("rb") as file:
            return file.read(_LARGEST + 1)

    def _group(self, name: str, content: object) -> None:
        if isinstance(content, dict):
            for inner, table in content.items():
                self._section(f"{name}.{inner}", table)
            return
        first = next(section for section in SECTIONS if section.startswith(f"{name}."))
        self._wrong(self._lines.line("", name), f'"{name}" is a group: write [{first}]')

    def _section(self, name: str, content: object) -> None:
        if name not in SECTIONS:
            line = self._lines.line(name) or self._lines.line(*_halves(name))
            close = suggestion(name, [*SECTIONS, *LISTS])
            self._wrong(line, f'unknown section "{name}"{close}')
        elif not isinstance(content, dict):
            self._wrong(self._lines.line(*_halves(name)), f'"{name}" is a section: write [{name}]')
        else:
            for key, value in content.items():
                line = self._lines.line(name, key) or self._lines.line(*_halves(name))
                self._key(name, key, value, line)

    def _key(self, section: str, key: str, value: object, line: int | None) -> None:
        old = f"{section}.{key}"
        renamed = RENAMED.get(old)
        name = renamed.name if renamed is not None else old
        if renamed is None and key not in keys_of(SECTIONS[section]):
            self._unknown(section, key, keys_of(SECTIONS[section]), line)
            return
        if self._spelled.setdefault(name, old) != old:
            self._wrong(line, f'"{old}" and "{self._spelled[name]}" are the same key: remove the old name')
            return
        if renamed is not None:
            value = renamed.convert(value)
            self._warn(line, old, name)
        target, attribute = _target(self._config, name)
        try:
            setattr(target, attribute, keys_of(type(target))[attribute].metadata["kind"].check(value))
        except ValueError as error:
            self._wrong(line, f"{old}: {error}")
        self._config.origins[name] = Origin(Source.FILE, str(self._file), line)

    def _list(self, name: str, content: object) -> None:
        if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
            line = self._lines.line(name) or self._lines.line("", name)
            self._wrong(line, f'"{name}" is a list of tables: write [[{name}]]')
            return
        if name == "users":
            command = "msmq-fast user token NAME"
            remark = (
                f'"[[users]]" is an old place for tokens: add the users to the users file with "{command}"'
            )
            self._config.warnings.append(str(Mistake(str(self._file), self._lines.line(name), remark)))
        for index, item in enumerate(content):
            entry = LISTS[name]()
            for key, value in item.items():
                self._list_key(name, index, entry, key, value)
            for key in NEEDED[name]:
                if not getattr(entry, key):
                    self._wrong(self._lines.line(name, index=index), f'[[{name}]] needs a "{key}"')
            getattr(self._config, name).append(entry)

    def _list_key(self, name: str, index: int, entry: object, key: str, value: object) -> None:
        keys = keys_of(type(entry))
        line = self._lines.line(name, key, index)
        old = f"{name}.{key}"
        renamed = RENAMED.get(old)
        if renamed is not None:
            key, value = renamed.name.rpartition(".")[2], renamed.convert(value)
            self._warn(line, old, renamed.name)
        if key not in keys:
            self._unknown(name, key, keys, line)
            return
        try:
            setattr(entry, key, keys[key].metadata["kind"].check(value))
        except ValueError as error:
            self._wrong(line, f"{old}: {error}")
        self._config.origins[f"{name}[{index}].{key}"] = Origin(Source.FILE, str(self._file), line)

    def _unknown(self, section: str, key: str, keys: Mapping[str, object], line: int | None) -> None:
        """Report a key that the section does not have. If the key resembles an old name of another key, the
        report suggests the new name of that key.
        """
        old = {name.rpartition(".")[2]: new.name for name, new in RENAMED.items() if _within(name, section)}
        close = suggestion(key, [*keys, *old])
        for name, new in old.items():
            close = close.replace(f'"{name}"', f'"{new}"')
        header = f"[[{section}]]" if section in LISTS else f"[{section}]"
        self._wrong(line, f'unknown key "{key}" in {header}{close}')

    def _wrong(self, line: int | None, text: str) -> None:
        self._mistakes.append(Mistake(str(self._file), line, text))

    def _warn(self, line: int | None, old: str, new: str) -> None:
        remark = Mistake(str(self._file), line, f'"{old}" is an old name of "{new}": use the new name')
        self._config.warnings.append(str(remark))


def _read_environment(config: Config, environment: Mapping[str, str], mistakes: list[Mistake]) -> None:
    known = {variable(name): name for name in _names()}
    old = {variable(name): new for name, new in RENAMED.items() if _halves(name)[0] in SECTIONS}
    for spelled, text in sorted(environment.items()):
        # Variables without the double underscore (MSMQ_FAST_ENDPOINT) belong to the client.
        if not spelled.startswith(ENVIRONMENT_PREFIX) or "__" not in spelled:
            continue
        origin = Origin(Source.VARIABLE, spelled)
        if spelled in known:
            _set_from_text(config, known[spelled], text, origin, mistakes)
        elif spelled in old:
            renamed = old[spelled]
            new = variable(renamed.name)
            if new in environment:
                mistakes.append(Mistake(spelled, None, f"{new} is the same key: remove the old name"))
                continue
            config.warnings.append(f"{spelled} is an old name of {new}: use the new name")
            _set_from_text(config, renamed.name, str(renamed.convert(text)), origin, mistakes)
        else:
            close = suggestion(spelled, [*known, *old])
            for name, renamed in old.items():
                close = close.replace(f'"{name}"', f'"{variable(renamed.name)}"')
            mistakes.append(Mistake(spelled, None, f"unknown variable{close}"))


def _names() -> Iterator[str]:
    """Yield all keys, as "section.key"."""
    for section, kind in SECTIONS.items():
        yield from (f"{section}.{key}" for key in keys_of(kind))


def _read_flags(config: Config, flags: Mapping[str, str], mistakes: list[Mistake]) -> None:
    for name, text in flags.items():
        _set_from_text(config, name, text, Origin(Source.FLAG, FLAG_OF[name]), mistakes)


def _set_from_text(config: Config, name: str, text: str, origin: Origin, mistakes: list[Mistake]) -> None:
    target, key = _target(config, name)
    config.origins[name] = origin
    try:
        setattr(target, key, keys_of(type(target))[key].metadata["kind"].from_text(text))
    except ValueError as error:
        mistakes.append(Mistake(origin.name, None, str(error)))


def _target(config: Config, name: str) -> tuple[Any, str]:
    """Return (section object, name of the field in it) of the key `name`, "section.key"."""
    section, key = _halves(name)
    return config.section(section), key


def _halves(name: str) -> tuple[str, str]:
    section, _, key = name.rpartition(".")
    return section, key


def _within(name: str, section: str) -> bool:
    return _halves(name)[0] == section
