"""Generates the reference of the configuration from the classes in `config/sections/`.

`python -m tools.configuration` compares the three files in docs/reference with the classes and returns 1 if
they differ; with `--write` it writes them: the page, a commented example and the JSON schema.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import Field
from pathlib import Path
from typing import Any

from msmq_fast.config.renamed import RENAMED
from msmq_fast.config.schema import json_schema, purpose
from msmq_fast.config.sections import LISTS, LIVE_LISTS, SECTIONS, keys_of
from msmq_fast.config.toml_text import toml_text

DIRECTORY = Path(__file__).resolve().parent.parent / "docs" / "reference"
WIDTH = 120

INTRODUCTION = """\
<!-- Written by python -m tools.configuration --write from src/msmq_fast/config/sections. -->

# Configuration

The server reads one TOML file, environment variables and flags. The last of these that sets a key wins:

1. the default in the tables below,
2. the file that `--config FILE` or `MSMQ_FAST_CONFIG` names,
3. the variable `MSMQ_FAST_SECTION__KEY`, with two underscores between the parts of the name, for example
   `MSMQ_FAST_SERVER__NAME=ORDERS01`; separate the items of a list with commas,
4. a flag of `msmq-fast serve`.

`msmq-fast config check --config FILE` reads all of this without starting a server and reports each mistake
with its line. `msmq-fast config show` prints every value in force, and the line, variable or profile that
sets it. A mistake looks like this:

```text
msmq.toml:4: unknown key "prot" in [listen.mqqb]; did you mean "port"?
```

The server does not start with an unknown key, a value of the wrong type or a value out of range.

A file to begin with:

```toml
[server]
name = "ORDERS01"              # at most 15 characters, as Windows computer names
data = "/var/lib/msmq-fast"

[[queues]]
name = 'orders'                # short for .\\private$\\orders
label = "Incoming orders"
```

[msmq-fast.example.toml](msmq-fast.example.toml) holds every key with its default as a comment.
[msmq-fast.schema.json](msmq-fast.schema.json) is a JSON schema: an editor that knows it completes and
checks the file.

- A duration is a number of seconds, or a text with a unit: `"500ms"`, `"90 s"`, `"5m"`, `"6h"`, `"2d"`.
- A size is a number of bytes, or a text with a unit: `"64 MiB"` is 67,108,864 bytes,
  `"64 MB"` is 64,000,000 bytes.
- With port 0 the system chooses a free port, and the `ready` line shows it. `"off"` closes a listener.
- ↻ marks a key that changes while the server runs, after SIGHUP or `msmq-fast config reload`. Other keys take
  a restart.
- A path that begins with `~` is below the home directory of the server's user.
"""

SEE = {
    "security": "[security.md](../how-to/security.md)",
    "protection": "[signatures](../how-to/security.md#signatures)",
    "directory": "[directory.md](../how-to/directory.md)",
    "rpc": "[remote-read.md](../how-to/remote-read.md)",
    "remote": "[remote-read.md](../how-to/remote-read.md#reading-queues-of-other-computers)",
    "srmp": "[srmp.md](../how-to/srmp.md)",
    "pgm": "[pgm.md](../how-to/pgm.md)",
    "bulk": "[bulk-api.md](bulk-api.md)",
    "routes": "[routing](../how-to/routing.md#routing)",
    "peers": "[claims of queue managers](../how-to/security.md#what-queue-managers-say-of-themselves)",
    "users": "[failed log-ons](../how-to/security.md#failed-log-ons)",
}
"""Pages that say more about a section."""

VARIABLES = {
    "`MSMQ_FAST_ENDPOINT`": "the server that `send`, `receive`, `queue`, … use: `unix:/path`, "
    "`tcp://host:port` or `tls://host:port`; `--endpoint` and `--data` take precedence",
    "`MSMQ_FAST_TOKEN`, `MSMQ_FAST_TOKEN_FILE`": "the token for an endpoint over TCP, or the file of it",
    "`MSMQ_FAST_CONFIG`": "the file that `serve` and `config` read when none is given",
}
"""Variables of the client commands."""


def page() -> str:
    """Return the reference page, in Markdown."""
    parts = [INTRODUCTION]
    parts += ["\n".join(_section(f"[{name}]", name, section)) for name, section in SECTIONS.items()]
    parts += ["\n".join(_section(f"[[{name}]]", name, table)) for name, table in LISTS.items()]
    rows = [f"| {variable} | {meaning} |" for variable, meaning in VARIABLES.items()]
    client = ["## Variables of the client commands", "", "| variable | meaning |", "|---|---|", *rows, ""]
    return "\n".join([*parts, *client, *_old_names()])


def _old_names() -> Iterator[str]:
    yield "## Old names"
    yield ""
    yield "These keys and their variables have another name today. The old names are read with a warning."
    yield ""
    yield "| old name | name |"
    yield "|---|---|"
    yield from (f"| `{old}` | `{renamed.name}` |" for old, renamed in RENAMED.items())
    yield ""
    yield "The values of the old quotas are numbers of KB; 4294967295 is `unlimited` today."
    yield ""


def _section(header: str, name: str, section: type) -> Iterator[str]:
    yield f"## {header}: {purpose(section)}"
    yield ""
    for paragraph in _prose(section):
        yield textwrap.fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)
        yield ""
    if name in SEE:
        yield f"See {SEE[name]}."
        yield ""
    yield "| key | default | expected | meaning |"
    yield "|---|---|---|---|"
    for key, entry in keys_of(section).items():
        expected = entry.metadata["kind"].described.replace('"', "'")
        live = " ↻" if entry.metadata["live"] or name in LIVE_LISTS else ""
        yield f"| `{key}`{live} | `{_default(entry)}` | {expected} | {entry.metadata['about']} |"
    yield ""


def _prose(section: type) -> list[str]:
    """The paragraphs of the docstring behind its first line."""
    text = inspect.cleandoc(section.__doc__ or "")
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")[1:]]


def _default(entry: Field[Any]) -> str:
    return toml_text(entry.metadata["kind"].to_toml(entry.default))


def example() -> str:
    """Return a TOML file that changes nothing: every key is a comment with its default."""
    lines = [
        "#:schema ./msmq-fast.schema.json",  # editors with Taplo read it
        "",
        "# Configuration of msmq-fast: every key with its default. Remove the # before a key to change it.",
        "# Written by python -m tools.configuration --write.",
    ]
    for name, section in SECTIONS.items():
        lines += ["", "", f"# {_sentence(purpose(section))}", f"[{name}]", *_example_keys(section)]
    for name, table in LISTS.items():
        lines += [
            "",
            "",
            f"# {_sentence(purpose(table))} Repeat the table for each.",
            f"#[[{name}]]",
            *_example_keys(table),
        ]
    return "\n".join(lines) + "\n"


def _example_keys(section: type) -> Iterator[str]:
    for key, entry in keys_of(section).items():
        about = f"{_sentence(entry.metadata['about'])} Expected: {entry.metadata['kind'].described}."
        yield ""
        yield from (f"# {line}" for line in textwrap.wrap(about, WIDTH - 2, break_on_hyphens=False))
        yield f"#{key} = {_default(entry)}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def schema() -> str:
    """Return the JSON schema as text."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


FILES = {"configuration.md": page, "msmq-fast.example.toml": example, "msmq-fast.schema.json": schema}


def main() -> int:
    """Compare the files, or write them. Return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the files instead of comparing them")
    write = parser.parse_args().write
    stale = []
    for name, make in FILES.items():
        file, text = DIRECTORY / name, make()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(name)
            if write:
                file.write_text(text, encoding="utf-8")
    if stale and not write:
        print(f"not current: {', '.join(stale)}; run: python -m tools.configuration --write", file=sys.stderr)
    return 1 if stale and not write else 0


if __name__ == "__main__":
    sys.exit(main())
