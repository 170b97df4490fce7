"""Generates the table of the names that the properties of messages and queues have behind each door.

`python -m tools.names` compares docs/reference/names.md with the code and returns 1 if they differ; with
`--write` it writes the page. A property has one name everywhere (tests/server/test_names.py); a door may
spell it in its own way:

- `--json` marks base64 with `_b64`;
- Python has `message_class`, since `class` is a keyword;
- the application protocol has positions, whose names in its document have spaces;
- options of Spark are in camel case.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from msmq_fast.client.bulk.client import QueueBounds
from msmq_fast.client.message import Message, ReceivedMessage
from msmq_fast.protocol.columns import MESSAGE_COLUMNS
from msmq_fast.protocol.resources import MessageInfo, QueueInfo
from msmq_fast.spark.sink import OPTIONS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "names.md"
PROTOCOL = ROOT / "docs" / "reference" / "application-protocol.md"

HEAD = """\
<!-- Written by python -m tools.names --write. -->

# Names of properties

A property of a message or of a queue has one name in every interface. JSON marks base64 with `_b64`, Python
writes `message_class` because `class` is a keyword, and the options of the Spark sink are in camel case.
"""

NOT_PROPERTIES = {
    *("decoded", "flags", "headers", "id", "recoverable", "tag", "text", "to_json", "to_message", "value"),
    *("use_dead_letter_queue", "use_journal_queue", "of", "of_text"),
}
"""Of the client's classes: other views of the same properties, and what is done with a message."""

ONLY_OF_SPARK = {
    *("auth.token", "auth.tokenFile", "ignoreUnknownColumns", "jobId", "keepMessageId", "maxStageBytes"),
    *("numRetries", "queue", "retryIntervalMs", "semantics", "timeoutMs", "tls.caFile", "transaction"),
    *("transactional", "url", "writerEpoch", "writerId"),
}
"""Options of the sink that are about writing, not about a message."""


def message_doors() -> dict[str, dict[str, str]]:
    """Return, for each door, how it spells each property of a message."""
    public = [name for name in (*vars(Message), *vars(ReceivedMessage)) if not name.startswith("_")]
    options = [option.name for option in OPTIONS if option.name not in ONLY_OF_SPARK]
    return {
        "`--json`": {name.removesuffix("_b64"): name for name in MessageInfo.__annotations__},
        "application protocol": {name.replace(" ", "_"): name for name in _positions()},
        "client": {_of_python(name): name for name in public if name not in NOT_PROPERTIES},
        "column in bulk": {column.name: column.name for column in MESSAGE_COLUMNS},
        "option of the Spark sink": {re.sub("([A-Z])", r"_\1", name).lower(): name for name in options},
    }


def queue_doors() -> dict[str, dict[str, str]]:
    """Return the same for a queue."""
    return {
        "`--json`, admin API, application protocol": _same(f.name for f in dataclasses.fields(QueueInfo)),
        "bounds in bulk": _same(field.name for field in dataclasses.fields(QueueBounds)),
    }


def _same(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in names}


def _of_python(name: str) -> str:
    return "class" if name == "message_class" else name


def _positions() -> list[str]:
    """Return the fields of the arrays that SEND and MESSAGE carry, by the document of the protocol."""
    text = PROTOCOL.read_text(encoding="utf-8")
    sections = [
        text.partition("\n## 4.")[2].partition("\n## 5.")[0],
        text.partition("\n### 5.1")[2].partition("\n### 5.2")[0],
    ]
    return [name for part in sections for name in re.findall(r"^\| \d+ \| ([a-z ]+) \|", part, re.MULTILINE)]


def page() -> str:
    """Return the page, in Markdown."""
    parts = [HEAD]
    for title, doors in (("Messages", message_doors()), ("Queues", queue_doors())):
        names = sorted({name for door in doors.values() for name in door})
        parts += [f"## {title}", "", f"| property | {' | '.join(doors)} |", "|---" * (len(doors) + 1) + "|"]
        parts += [_row(name, doors) for name in names]
        parts += [""]
    return "\n".join(parts)


def _row(name: str, doors: Mapping[str, Mapping[str, str]]) -> str:
    cells = [f"`{door[name]}`" if name in door else "" for door in doors.values()]
    return f"| {' | '.join([f'`{name}`', *cells])} |".replace("|  |", "| |").replace("|  |", "| |")


def main(arguments: list[str]) -> int:
    """Compare or write the page; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.names", description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the page")
    if parser.parse_args(arguments).write:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        print(f"{PAGE.relative_to(ROOT)} is not what the code has: run python -m tools.names --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
