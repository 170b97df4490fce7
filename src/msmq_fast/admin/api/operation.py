"""The operations of the management API, as data.

The router, the OpenAPI document, the console and the tests read the same table. To add an operation: 1. write
its handler in the module of its subject; 2. add an `Operation` to the OPERATIONS of that module.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.admin.api.schema import Schema, text
from msmq_fast.protocol.versions import version_of

if TYPE_CHECKING:
    from msmq_fast.admin.view import View
    from msmq_fast.client.connection import Connection
    from msmq_fast.security.callers import Caller

__all__ = [
    "OUTGOING",
    "QUEUE",
    "Call",
    "Download",
    "Handler",
    "Operation",
    "Parameter",
    "etag_of",
    "expected_of",
]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operation. `path`, `query` and `body` are checked against the table.

    `expected` are the versions of which the resource must have one, None if any will do.

    `client` is a connection to the queue manager with the identity of the caller. `view` is what the admin
    port shows of the server.
    """

    caller: Caller
    client: Connection
    view: View
    path: Mapping[str, Any]
    query: Mapping[str, Any]
    body: Any = None
    expected: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Download:
    """An answer that is not JSON: bytes to store as a file with this name."""

    content: bytes
    name: str


Handler = Callable[[Call], Awaitable[Any]]
"""Returns a dict or a list of JSON values, or a Download."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter in the path or in the query string. A parameter with `many` may be given several times;
    its value is a list.
    """

    name: str
    schema: Schema
    many: bool = False

    @property
    def about(self) -> str:
        """The text that describes the parameter."""
        return str(self.schema.get("description", ""))


QUEUE: Final = Parameter(
    "queue",
    text(
        r"path or format name of a queue: `.\private$\orders`, short `orders`; `orders;journal`, "
        r"`orders;later` (a subqueue), `.\system$;deadletter`. Percent-encode it",
        least=1,
        most=1024,
    ),
)

OUTGOING: Final = Parameter(
    "name", text("format name of the destination, percent-encoded", least=1, most=1024)
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API.

    - `name`: `SUBJECT.VERB`, unique.
    - `path`: below `/api/v1`; `{NAME}` stands for the path parameter of that name.
    - `verb`: the command of msmq-fast that does the same; "" if there is none.
    - `body`: the schema of the JSON body; None if the operation takes no body.
    - `answer`: the schema of the answer; None for a Download.
    - `version`: for reads whose answer has an ETag: returns the part of the answer that the ETag covers.
    - `locked_by`: for changes that obey If-Match: the name of the read with that ETag. The handler passes
      `expected` of its call with the request to the queue manager, which compares and changes in one step.
    - `patience`: the seconds after which the operation is given up.
    """

    name: str
    method: str
    path: str
    summary: str
    handler: Handler
    answer: Schema | None
    verb: str = ""
    about: str = ""
    path_parameters: tuple[Parameter, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None
    body_required: bool = True
    status: int = 200
    version: Callable[[Any], Any] | None = None
    locked_by: str = ""
    patience: float = 60.0

    @property
    def changes(self) -> bool:
        """Whether the operation may change something."""
        return self.method != "GET"

    @property
    def repeatable(self) -> bool:
        """Whether an Idempotency-Key makes a repeated request return the first answer."""
        return self.method == "POST"

    @property
    def subject(self) -> str:
        """The first word of the name, which groups operations."""
        return self.name.partition(".")[0]


def etag_of(operation: Operation, answer: Any) -> str:
    """Return the ETag of an answer of a read that has a `version`: the version of its settings, quoted."""
    assert operation.version is not None  # noqa: S101 - the caller asks reads with a version only
    return f'"{version_of(operation.version(answer))}"'


def expected_of(given: str) -> tuple[str, ...] | None:
    """Return the versions that an If-Match header names; None for `*`, which means any version."""
    tags = tuple(tag.strip() for tag in given.split(","))
    if "*" in tags:
        return None
    return tuple(tag[1:-1] for tag in tags if len(tag) > 1 and tag[0] == tag[-1] == '"')
