"""The options of the data sources and the sink: tables of their names, kinds and defaults. Options that are
not in the table are rejected.

Names are compared without regard to case, as in Spark. This module does not import PySpark.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from msmq_fast.client.bulk.http import Endpoint
from msmq_fast.protocol.units import UnitError, parse_duration, parse_size

_DAY_MS: Final = 86_400_000
_OF_CATALOG: Final = frozenset(
    ("provider", "path", "location", "owner", "comment", "collation", "external", "is_managed_location")
)
"""Properties that Spark adds to the options of a catalog table (`CREATE TABLE … USING msmq`)."""
_PREFIX: Final = "option."
"""The prefix of the options of a catalog table in the properties of the table."""
_TRUE: Final = ("true", "1", "yes", "on")
_FALSE: Final = ("false", "0", "no", "off")


class OptionError(ValueError):
    """Raised for an option that is unknown, missing, or has an invalid value. The text of the error is one
    line.
    """


class Option(NamedTuple):
    """One option.

    `kind` is text, count (an integer from 1), number (an integer from 0), integer, size (such as `64m`,
    converted to bytes), duration (such as `15m`, converted to milliseconds), pause (a duration from a
    millisecond to a day), flag, json, positions, or the allowed values separated by `|`. `default` is the
    text of the default value; None means that the option has no default. `formerly` is an old name that is
    still accepted.
    """

    name: str
    kind: str
    default: str | None = None
    about: str = ""
    formerly: str = ""


class Options(Mapping[str, Any]):
    """The options of a query, checked against a table of options: a mapping from all names in the table to
    values.

    Raises OptionError for a name that is not in the table, or a value that does not fit the option's kind.
    `repr` shows no values, because some are secret.
    """

    def __init__(self, given: Mapping[str, str], table: Sequence[Option], format_name: str) -> None:
        known = {option.name.lower(): option for option in table}
        known |= {option.formerly.lower(): option for option in table if option.formerly}
        given = _of_user(given, known)
        self.given: Final = frozenset(known[name.lower()].name for name in given if name.lower() in known)
        self._values: dict[str, Any] = {}
        for option in table:
            self._values[option.name] = None if option.default is None else _value(option, option.default)
        self._defaults: Final = dict(self._values)
        for name, text in given.items():
            option = known.get(name.lower()) or _unknown(name, known, format_name)
            self._values[option.name] = _value(option, str(text))

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Options({', '.join(sorted(self.given))})"

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Raises OptionError if one of the options `names` is set to a value other than its default. The text
        of the error is "option NAME" and `why`.
        """
        for name in names:
            if name in self.given and self._values[name] != self._defaults[name]:
                raise OptionError(f"option {name!r} {why}")

    def need(self, name: str, why: str) -> Any:
        """Returns the value of a required option. Raises OptionError if it is missing, with the text "option
        NAME is missing:" and `why`.
        """
        value = self._values[name]
        if value is None:
            raise OptionError(f"option {name!r} is missing: {why}")
        return value


CONNECTION: Final = (
    Option(
        "url",
        "text",
        None,
        "`msmq+bulk://host:port`, with TLS `https://host:port`; several with commas",
    ),
    Option("timeoutMs", "pause", "120000", "longest silence of the server during a request"),
    Option("numRetries", "number", "3", "how often a request without an answer is repeated"),
    Option("retryIntervalMs", "pause", "500", "pause before a repetition"),
    Option("auth.token", "text", None, "token; default: MSMQ_FAST_TOKEN or MSMQ_FAST_TOKEN_FILE"),
    Option("auth.tokenFile", "text", None, "file with the token, on the driver and on every executor"),
    Option(
        "tls.caFile", "text", None, "certificates to trust with https, on the driver and on every executor"
    ),
)
"""Options of all readers and writers that connect to a queue manager."""
COLUMNS: Final = (
    Option("columns", "text", "core", "for messages: `core`, `all`, or names separated by commas"),
    Option("includeBody", "flag", "true", "the column `body`"),
    Option("includeRaw", "flag", "false", "the column `raw_packet`"),
    Option("includeSecurity", "flag", "false", "the columns `sender_cert` and `signature`"),
)
"""Options of all readers of messages."""
GROUPS: Final = {"includeBody": "body", "includeRaw": "raw_packet", "includeSecurity": "signature"}
"""Options that add a group of columns to `core` and `all`, with an example column of each group."""


def check_columns(options: Options) -> None:
    """Raises OptionError if an option that adds or removes a group of columns (GROUPS) is set although
    `columns` is a list of names.
    """
    if not {"core", "all"} & {name.strip() for name in options["columns"].split(",")}:
        for option, column in GROUPS.items():
            why = f"requires columns=core or all; in a list of names, name the column ({column})"
            options.refuse([option], why)


def endpoints(options: Options) -> list[Endpoint]:
    """Returns the endpoints of the queue managers in the option `url`. Raises OptionError if it contains no
    address, an address twice, or an invalid one.
    """
    text = options.need("url", "give the address of the queue manager as msmq+bulk://host:port")
    found = [part.strip().rstrip("/") for part in text.split(",") if part.strip()]
    if not found:
        raise OptionError("option 'url' names no queue manager; write msmq+bulk://host:port")
    if len(set(found)) < len(found):
        raise OptionError("option 'url' has the same address twice")
    if options["auth.token"] is not None and options["auth.tokenFile"] is not None:
        raise OptionError("options 'auth.token' and 'auth.tokenFile' cannot be combined")
    try:
        found_at = [
            Endpoint(
                url,
                token=options["auth.token"],
                token_file=options["auth.tokenFile"],
                ca_file=options["tls.caFile"],
                timeout_ms=options["timeoutMs"],
                retries=options["numRetries"],
                retry_interval_ms=options["retryIntervalMs"],
            )
            for url in found
        ]
    except ValueError as error:
        raise OptionError(f"option 'url': {error}") from None
    if not any(endpoint.address()[2] for endpoint in found_at):
        options.refuse(
            ["tls.caFile"], "requires https:// in option 'url': other connections are not encrypted"
        )
    return found_at


def _of_user(given: Mapping[str, str], known: Mapping[str, Option]) -> dict[str, str]:
    """Returns the options without what Spark adds for a table of a catalog (recognised by its `provider`).

    Spark passes the properties of the table, its TBLPROPERTIES too, and each option twice: by its name, and
    with the prefix `option.`. So a name without such a twin is an option only if it is `known`.
    """
    if "provider" not in {name.lower() for name in given}:
        return dict(given)
    written = {name[len(_PREFIX) :]: text for name, text in given.items() if name.lower().startswith(_PREFIX)}
    plain = {name: text for name, text in given.items() if not name.lower().startswith(_PREFIX)}
    options = {name.lower() for name in written} | known.keys()
    ours = {name: text for name, text in plain.items() if name.lower() in options - _OF_CATALOG}
    return ours | written


def _unknown(name: str, known: Mapping[str, Option], format_name: str) -> Option:
    if name.lower() == "path":
        raise OptionError(f"format {format_name!r} takes no path: call load(), save() or start() without one")
    close = difflib.get_close_matches(name.lower(), known, 1, 0.5)
    hint = f"did you mean {known[close[0]].name!r}?" if close else f"there are {_names(known)}"
    raise OptionError(f"format {format_name!r} has no option {name!r}; {hint}")


def _names(known: Mapping[str, Option]) -> str:
    return ", ".join(sorted(option.name for option in known.values()))


def _value(option: Option, text: str) -> Any:
    text = text.strip() if option.kind != "text" else text
    try:
        return _READ[option.kind](text) if option.kind in _READ else _choice(option.kind, text)
    except UnitError as error:
        raise OptionError(f"option {option.name!r}: {error}") from None
    except ValueError as error:
        shown = "" if option.name.startswith("auth.") else f", not {text!r}"
        raise OptionError(f"option {option.name!r} must be {error}{shown}") from None


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("an integer") from None


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise ValueError("an integer from 1")
    return int(text)


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError("an integer from 0")
    return int(text)


def _size(text: str) -> int:
    size = parse_size(text)
    if size < 1:
        raise ValueError("a size of at least one byte, such as 64 MiB")
    return size


def _duration(text: str) -> int:
    return round(parse_duration(text, bare="ms") * 1000)


def _pause(text: str) -> int:
    milliseconds = _duration(text)
    if not 1 <= milliseconds <= _DAY_MS:
        raise ValueError("a duration from 1 millisecond to a day, such as 30s or 500")
    return milliseconds


def _flag(text: str) -> bool:
    if text.lower() in _TRUE or text.lower() in _FALSE:
        return text.lower() in _TRUE
    raise ValueError("true or false")


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError("a JSON object")
    return value


def _positions(text: str) -> str | dict[str, Any]:
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    try:
        return _json(text)
    except ValueError:
        raise ValueError('earliest, latest, or JSON such as {"orders": 1200}') from None


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not empty")
    return text


def _choice(kind: str, text: str) -> str:
    choices = kind.split("|")
    for choice in choices:
        if text.lower() == choice.lower():
            return choice
    raise ValueError(" or ".join(choices))


_READ: Final = {
    "positions": _positions,
    "text": _text,
    "integer": _integer,
    "count": _count,
    "number": _number,
    "size": _size,
    "duration": _duration,
    "pause": _pause,
    "flag": _flag,
    "json": _json,
}
