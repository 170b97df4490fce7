"""Events of OpenLineage about the commands of the lake: what a run reads and writes, its begin and its end.

The form is that of the public specification, https://openlineage.io/spec/2-0-2/OpenLineage.json. Events are
posted to an HTTP service such as Marquez, or appended to a file, one a line. A service that does not answer
delays a command by at most TIMEOUT_S for each event, and never ends it.

To describe a further command, add its tables to _TABLES, and what else it reads or writes to `datasets`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from msmq_fast.release import release

__all__ = ["Dataset", "Lineage", "datasets", "lineage_of", "lineage_target"]

TIMEOUT_S: Final = 5.0
_SPEC: Final = "https://openlineage.io/spec"
_EVENT_SCHEMA: Final = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_ERROR_SCHEMA: Final = f"{_SPEC}/facets/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet"
_TYPE_SCHEMA: Final = f"{_SPEC}/facets/2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet"
_PATH: Final = "/api/v1/lineage"
"""The path of services that speak OpenLineage, if the address has none."""
_KEY: Final = "OPENLINEAGE_API_KEY"
_NAMESPACE: Final = "OPENLINEAGE_NAMESPACE"

_BRONZE: Final = ("bronze/events", "bronze/messages", "bronze/bodies", "bronze/counters")
_SILVER: Final = ("silver/events", "silver/lifecycle")
_GOLD: Final = (
    "gold/coverage",
    "gold/counters",
    "gold/duplicates",
    "gold/latency",
    "gold/nack_by_class",
    "gold/poison",
    "gold/queue_minute",
    "gold/reconciliation",
    "gold/sequence_gaps",
    "gold/undelivered",
)
_TABLES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "archive": ((), _BRONZE),
    "audit": (("bronze/events", "bronze/messages", "bronze/counters"), (*_SILVER, *_GOLD)),
    "report": (_GOLD, ()),
    "compact": (_BRONZE, (*_BRONZE, "silver/events")),
    "verify": ((*_BRONZE, *_SILVER, *_GOLD), ()),
    "migrate": ((), (*_BRONZE, *_SILVER, *_GOLD)),
    "replay": (("bronze/messages", "bronze/bodies"), ()),
}
"""The tables of the lake that each command reads and writes."""


class Dataset(NamedTuple):
    """A queue, a feed, a table or a file, by the two parts of its name."""

    namespace: str
    name: str


def lineage_target(text: str) -> str:
    """Parse where events go: an address with http:// or https://, or a path."""
    parts = urlsplit(text)
    if "://" in text and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise argparse.ArgumentTypeError(f"expected http://HOST:PORT, https://HOST or a file, not {text!r}")
    return text


def datasets(verb: str, arguments: argparse.Namespace) -> tuple[list[Dataset], list[Dataset]]:
    """Return what a command with these arguments reads, and what it writes."""
    read, written = _TABLES.get(verb, ((), ()))
    lake = str(getattr(arguments, "lake", ""))
    inputs = [_stored(lake, table) for table in read]
    outputs = [_stored(lake, table) for table in written]
    urls = getattr(arguments, "url", None) or ()
    servers = [
        _server(url) for text in ([urls] if isinstance(urls, str) else urls) for url in text.split(",")
    ]
    if verb == "archive":
        contents = [part.strip() for part in arguments.content.split(",") if part.strip()]
        inputs += [Dataset(server, content) for server in servers for content in contents]
    elif verb == "settle":
        outputs += [Dataset(server, arguments.subscription) for server in servers]
    elif verb in ("replay", "import"):
        outputs += [Dataset(server, arguments.to) for server in servers]
    inputs += [_stored(path) for path in getattr(arguments, "files", ())]
    outputs += [_stored(path) for name in ("html", "markdown") if (path := getattr(arguments, name, None))]
    return inputs, outputs


def _server(url: str) -> str:
    parts = urlsplit(url.strip())
    return f"msmq://{parts.netloc}" if parts.netloc else f"msmq:{url.strip()}"


def _stored(place: str, table: str = "") -> Dataset:
    """Return the name of a file, or of a table below the directory `place`."""
    parts = urlsplit(place)
    if parts.scheme and parts.scheme != "file":
        namespace, path = f"{parts.scheme}://{parts.netloc}", parts.path
    else:
        namespace, path = "file", str(Path(parts.path).resolve())
    return Dataset(namespace, f"{path.rstrip('/')}/{table}".rstrip("/"))


@dataclass
class Lineage:
    """The events of one run of a command: `start`, then `end` with the error, if there was one."""

    target: str
    job: str
    inputs: Iterable[Dataset] = ()
    outputs: Iterable[Dataset] = ()
    streaming: bool = False
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    run: str = field(default_factory=lambda: str(uuid.uuid4()))

    def start(self) -> None:
        """Report that the run begins."""
        self._send("START", {})

    def end(self, error: str | None) -> None:
        """Report that the run has ended, with the line about its error if it has failed."""
        if error is None:
            self._send("COMPLETE", {})
        else:
            facet = self._facet(_ERROR_SCHEMA) | {"message": error, "programmingLanguage": "PYTHON"}
            self._send("FAIL", {"errorMessage": facet})

    def abort(self) -> None:
        """Report that the run was interrupted."""
        self._send("ABORT", {})

    def _send(self, kind: str, facets: dict[str, Any]) -> None:
        processing = "STREAMING" if self.streaming else "BATCH"
        job_type = {"processingType": processing, "integration": "MSMQ-FAST", "jobType": "COMMAND"}
        event = {
            "eventType": kind,
            "eventTime": self.now().isoformat(),
            "producer": _producer(),
            "schemaURL": _EVENT_SCHEMA,
            "run": {"runId": self.run, "facets": facets},
            "job": {
                "namespace": os.environ.get(_NAMESPACE) or "msmq-fast",
                "name": self.job,
                "facets": {"jobType": self._facet(_TYPE_SCHEMA) | job_type},
            },
            "inputs": [each._asdict() for each in self.inputs],
            "outputs": [each._asdict() for each in self.outputs],
        }
        try:
            if "://" in self.target:
                _post(self.target, json.dumps(event).encode())
            else:
                with Path(self.target).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(event) + "\n")
        except (OSError, http.client.HTTPException) as error:
            what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            print(
                f"msmq-lake: the lineage event {kind} was not delivered to {self.target}: {what}",
                file=sys.stderr,
            )

    def _facet(self, schema: str) -> dict[str, Any]:
        return {"_producer": _producer(), "_schemaURL": schema}


def lineage_of(verb: str, arguments: argparse.Namespace) -> Lineage | None:
    """Return the lineage of a run of the command `verb`, None if it was not asked for."""
    if arguments.lineage is None:
        return None
    inputs, outputs = datasets(verb, arguments)
    job = f"msmq-lake.{verb}" + (f".{arguments.name}" if verb == "archive" else "")
    return Lineage(arguments.lineage, job, inputs, outputs, streaming=getattr(arguments, "follow", False))


def _producer() -> str:
    return f"urn:msmq-fast:lake:{release()}"


def _post(target: str, body: bytes) -> None:
    """Post one event. Raises OSError if the service cannot be reached or refuses it."""
    parts = urlsplit(target)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    path = parts.path.rstrip("/") or _PATH
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get(_KEY):
        headers["Authorization"] = f"Bearer {key}"
    try:
        connection.request("POST", f"{path}?{parts.query}" if parts.query else path, body, headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    if status >= 300:
        raise OSError(f"HTTP status {status}")
