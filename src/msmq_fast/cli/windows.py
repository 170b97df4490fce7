"""Reads queue definitions that Windows exported with `Get-MsmqQueue | Export-Csv` or `… | ConvertTo-Json`.

CSV may be UTF-8 or UTF-16, with or without the `#TYPE` line, separated by commas, semicolons or tabs (the
list separator of the Windows culture). JSON may be an array or a single object, from Windows PowerShell or
PowerShell 7. Columns that do not describe how to create a queue are ignored.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any
from uuid import UUID

from msmq_fast.packet.names import QueuePart, Scope, parse_format_name, parse_queue_part
from msmq_fast.protocol.errors import MSMQError

__all__ = ["Definition", "Definitions", "read_definitions"]

UNLIMITED_KB = 0xFFFF_FFFF
MAX_LABEL = 124

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SEPARATORS = ",;\t"
_NAMES = ("QueueName", "Path", "FormatName", "Name")
# Queues of Windows' own that every queue manager has, or that stand for other things than messages.
_OWN_QUEUES = frozenset(("order_queue$", "notify_queue$", "admin_queue$", "mqis_queue$"))
_MULTICAST = re.compile(r"([0-9.]{7,15}):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Definition:
    """One queue: `path` as `.\\private$\\orders`, `properties` by their names in the application protocol.

    `row` counts from 1 without the headings; `columns` maps each property to the column that it came from.
    """

    row: int
    path: str
    properties: dict[str, Any]
    columns: dict[str, str]


@dataclass(slots=True)
class Definitions:
    """The contents of a file. `found`: the queues. `skipped`: the rows that define no queue to create, as
    (row, name, reason). `mistakes`: one line for each mistake.
    """

    found: list[Definition] = field(default_factory=list)
    skipped: list[tuple[int, str, str]] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)


class _Mistake(ValueError):
    """Raised if a row is invalid; the text begins with the name of the column."""


def read_definitions(data: bytes) -> Definitions:
    """Return all definitions in the file. Do not use `found` while there are `mistakes`."""
    result = Definitions()
    try:
        rows = list(_rows(_text(data)))
    except ValueError as error:
        result.mistakes.append(str(error))
        return result
    seen: dict[str, int] = {}
    for row, where, values in rows:
        try:
            _take(result, seen, row, values)
        except _Mistake as error:
            result.mistakes.append(f"{where}, {error}")
    return result


def _text(data: bytes) -> str:
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(
            "the file is neither UTF-8 nor UTF-16 with a byte order mark: export it with -Encoding UTF8"
        )
    return text


# ---- rows


def _rows(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield, for each row, its number, its position in the file (text for messages about mistakes), and its
    values by column.
    """
    if text.lstrip()[:1] in ("[", "{"):
        yield from _json_rows(text)
    else:
        yield from _csv_rows(text)


def _json_rows(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}: not JSON: {error.msg}") from None
    if isinstance(document, dict) and isinstance(document.get("value"), list) and "Count" in document:
        document = document["value"]  # how Windows PowerShell writes an array that was an object before
    entries = document if isinstance(document, list) else [document]
    for row, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise ValueError(f"object {row}: expected the properties of a queue")
        yield row, f"object {row}", {str(name): value for name, value in entry.items()}


def _csv_rows(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    lines = text.splitlines(keepends=True)
    skipped = 0
    separator = ""
    while skipped < len(lines):
        line = lines[skipped].strip()
        if line.lower().startswith("sep=") and len(line) == 5:
            separator = line[4]
        elif line and not line.startswith("#TYPE"):
            break
        skipped += 1
    if skipped == len(lines):
        raise ValueError("the file is empty")
    separator = separator or max(_SEPARATORS, key=lines[skipped].count)
    reader = csv.reader(io.StringIO("".join(lines[skipped:]), newline=""), delimiter=separator)
    headings = [heading.strip() for heading in next(reader)]
    if not {heading.casefold() for heading in headings} & {name.casefold() for name in _NAMES}:
        raise ValueError(
            f"line {skipped + 1}: expected one of the columns {', '.join(_NAMES)}, "
            f"got {', '.join(headings)[:200]}"
        )
    row = 0
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        row += 1
        where = f"row {row} (line {skipped + reader.line_num})"
        if len(cells) > len(headings):
            raise ValueError(f"{where}: {len(cells)} values for {len(headings)} columns")
        yield row, where, dict(zip(headings, cells, strict=False))


# ---- one queue


def _take(result: Definitions, seen: dict[str, int], row: int, values: Mapping[str, Any]) -> None:
    folded = {name.casefold(): (name, value) for name, value in values.items()}
    part, shown = _part(folded)
    reason = _no_queue(part)
    if reason:
        result.skipped.append((row, shown, reason))
        return
    first = seen.setdefault(part.key, row)
    if first != row:
        raise _Mistake(f"{shown}: row {first} has a queue with the same name")
    properties: dict[str, Any] = {}
    columns: dict[str, str] = {}
    for name, (columns_of, convert) in _PROPERTIES.items():
        for column in columns_of:
            heading, given = folded.get(column.casefold(), (column, None))
            if given is None or given == "":
                continue
            try:
                value = convert(given)
            except ValueError as error:
                raise _Mistake(f"column {heading}: {error}") from None
            if name in properties and properties[name] != value:
                raise _Mistake(f"column {heading}: contradicts column {columns[name]}")
            properties[name], columns[name] = value, heading
    if properties.get("transactional") and properties.get("multicast_address"):
        raise _Mistake(
            f"column {columns['multicast_address']}: a transactional queue has no multicast address"
        )
    result.found.append(Definition(row, f".\\{part}", properties, columns))


def _part(folded: Mapping[str, tuple[str, Any]]) -> tuple[QueuePart, str]:
    """Return (the queue's name without the computer, the name as it is in the file)."""
    for name in _NAMES:
        heading, value = folded.get(name.casefold(), ("", None))
        if isinstance(value, str) and value.strip():
            text = value.strip()
            part = _name(text, with_computer=name == "Path")
            if part is None:
                raise _Mistake(f"column {heading}: {text!r} is not a valid queue name")
            return part, text
    raise _Mistake(f"columns {', '.join(_NAMES)}: the queue has no name")


def _name(text: str, *, with_computer: bool) -> QueuePart | None:
    if text.casefold().startswith("formatname:"):
        text = text[11:]
    if "=" in text.partition("\\")[0]:
        try:
            direct = parse_format_name(text).direct
        except MSMQError:
            return None
        return None if direct is None else direct.part
    computer, separator, rest = text.partition("\\")
    if separator and computer.casefold() != "private$" and (with_computer or "\\" in rest or computer == "."):
        text = rest
    elif with_computer:
        return None
    return parse_queue_part(text)


def _no_queue(part: QueuePart) -> str:
    if part.scope is Scope.SYSTEM or part.journal:
        return "a system queue or journal"
    if part.subqueue:
        return "a subqueue: it is created when messages are moved to it"
    if part.queue.casefold() in _OWN_QUEUES:
        return "one of the queue manager's own queues"
    return ""


# ---- values


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().casefold()
    if text in ("true", "1", "-1"):
        return True
    if text in ("false", "0"):
        return False
    raise ValueError(f"expected True or False, got {value!r}")


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(str(value).strip(), 10)
    except ValueError:
        raise ValueError(f"expected a whole number, got {value!r}") from None


def _quota(value: object) -> int:
    number = _integer(value)
    if number == -1:
        return UNLIMITED_KB
    if not 0 <= number <= UNLIMITED_KB:
        raise ValueError(f"expected KB from 0 to {UNLIMITED_KB}, got {number}")
    return number


def _base_priority(value: object) -> int:
    number = _integer(value)
    if not -0x8000 <= number <= 0x7FFF:
        raise ValueError(f"expected a number from -32768 to 32767, got {number}")
    return number


def _privacy(value: object) -> int:
    names = {"none": 0, "optional": 1, "body": 2, "0": 0, "1": 1, "2": 2}
    found = None if isinstance(value, bool) else names.get(str(value).strip().casefold())
    if found is None:
        raise ValueError(f"expected None, Optional or Body, got {value!r}")
    return found


def _label(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {value!r}")
    if len(value) > MAX_LABEL:
        raise ValueError(f"a label has at most {MAX_LABEL} characters, not {len(value)}")
    return value


def _multicast(value: object) -> str:
    found = _MULTICAST.fullmatch(str(value).strip())
    try:
        if found is not None and IPv4Address(found[1]).is_multicast and int(found[2]) <= 0xFFFF:
            return found[0]
    except ValueError:
        pass
    raise ValueError(f"expected a multicast address and port such as 234.1.1.1:8001, got {value!r}")


def _guid(value: object) -> str:
    try:
        return str(UUID(str(value).strip()))
    except ValueError:
        raise ValueError(f"expected a GUID, got {value!r}") from None


# The properties of the application protocol, and the columns that give them.
_PROPERTIES: dict[str, tuple[tuple[str, ...], Callable[[object], Any]]] = {
    "label": (("Label",), _label),
    "transactional": (("Transactional", "IsTransactional"), _flag),
    "journal": (("UseJournalQueue", "Journaling", "JournalingEnabled"), _flag),
    "quota_kb": (("MaximumQueueSize", "QueueQuota", "Quota"), _quota),
    "journal_quota_kb": (("MaximumJournalSize", "JournalQuota"), _quota),
    "authenticated": (("Authenticate", "Authenticated"), _flag),
    "privacy_level": (("EncryptionRequired", "PrivacyLevel"), _privacy),
    "base_priority": (("BasePriority",), _base_priority),
    "multicast_address": (("MulticastAddress",), _multicast),
    "type": (("Category", "ServiceTypeGuid"), _guid),
}
