"""The parameters of a request, from the query or from a JSON object in the body, checked before use."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from msmq_fast.bulk.errors import Refusal, bad_request

__all__ = ["ARROW_TYPE", "MAX_NUMBER", "Fields", "body_fields", "pieces", "query_fields", "stretch"]

ARROW_TYPE: Final = "application/vnd.apache.arrow.stream"
MAX_NUMBER: Final = (1 << 63) - 1
"""The largest allowed number of an arrival, event, delivery, epoch or batch: the largest that fits a signed
64-bit column.
"""

PATIENCE: Final = 60.0  # seconds in which something of a body in JSON has to come
MAX_BODY: Final = 4 << 20  # bytes of a request in JSON
MAX_TEXT: Final = 2048
_DIGITS: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_MISSING: Final = object()


class Fields:
    """The parameters by name. Every accessor raises Refusal (BAD_REQUEST) if a value is invalid; `done`
    raises it if the request holds unknown parameters.
    """

    def __init__(self, values: Mapping[str, Any], *, as_text: bool) -> None:
        """`as_text`: whether numbers and flags are text, as in a query."""
        self._values = dict(values)
        self._as_text = as_text
        self._known: set[str] = set()

    def __contains__(self, name: str) -> bool:
        self._known.add(name)
        return name in self._values

    def text(self, name: str, default: str | None = None, *, empty: bool = False) -> str:
        """Return the text in parameter `name`, at most 2,048 characters. The parameter is required if
        `default` is None.
        """
        value = self._take(name, default)
        if not isinstance(value, str) or len(value) > MAX_TEXT or not (value or empty):
            raise bad_request(f"{name} must be a text of 1 to {MAX_TEXT} characters")
        if not value.isprintable():
            raise bad_request(f"{name} must not hold characters that cannot be printed")
        return value

    def number(self, name: str, default: int | None = None, *, low: int = 0, high: int = MAX_NUMBER) -> int:
        """Return the whole number in parameter `name`, from `low` to `high`. The parameter is required if
        `default` is None.
        """
        value = self._take(name, default)
        if self._as_text and isinstance(value, str) and _DIGITS.fullmatch(value):
            value = int(value)
        if type(value) is not int or not low <= value <= high:
            raise bad_request(f"{name} must be a whole number from {low} to {high}")
        return value

    def optional_number(self, name: str, *, low: int = 0, high: int = MAX_NUMBER) -> int | None:
        """Return a number; None if the parameter is missing or null."""
        if name not in self or self._values[name] is None:
            return None
        return self.number(name, low=low, high=high)

    def flag(self, name: str, default: bool) -> bool:
        """Return a flag: 1 or 0 in a query, true or false in JSON."""
        value = self._take(name, default)
        if self._as_text and isinstance(value, str):
            value = {"1": True, "true": True, "0": False, "false": False}.get(value.lower(), value)
        if not isinstance(value, bool):
            raise bad_request(f"{name} must be {'1 or 0' if self._as_text else 'true or false'}")
        return value

    def choice(self, name: str, words: Iterable[str], default: str | None = None) -> str:
        """Return a value that must be one of `words`."""
        value = self._take(name, default)
        known = tuple(words)
        if value not in known:
            raise bad_request(f"{name} must be one of {', '.join(known)}")
        return str(value)

    def texts(self, name: str, most: int) -> list[str]:
        """Return a list of at most `most` texts."""
        values = self._take(name, None)
        if not isinstance(values, list) or len(values) > most:
            raise bad_request(f"{name} must be a list of at most {most} texts")
        for value in values:
            if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
                raise bad_request(f"{name} must hold texts of 1 to {MAX_TEXT} characters only")
        return values

    def objects(self, name: str, most: int) -> list[Fields]:
        """Return a list of at most `most` JSON objects."""
        values = self._take(name, None)
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise bad_request(f"{name} must be a list of JSON objects")
        if len(values) > most:
            raise bad_request(f"{name} must hold at most {most} JSON objects")
        return [Fields(value, as_text=False) for value in values]

    def done(self) -> None:
        """Raise Refusal (BAD_REQUEST) if the request holds a parameter that no accessor has read."""
        for name in self._values:
            if name not in self._known:
                known = ", ".join(sorted(self._known)) or "none"
                raise bad_request(f"unknown parameter {name[:100]!r}; known here: {known}")

    def _take(self, name: str, default: Any) -> Any:
        self._known.add(name)
        value = self._values.get(name, _MISSING)
        if value is not _MISSING:
            return value
        if default is None:
            raise bad_request(f"{name} is missing")
        return default


def stretch(fields: Fields) -> tuple[int, int]:
    """Return the values of the parameters `from` and `to`. Raises Refusal if `to` is less than `from`."""
    start, stop = fields.number("from"), fields.number("to")
    if stop < start:
        raise bad_request(f"from is {start} and to is {stop}: to must not be less than from")
    return start, stop


def query_fields(request: web.Request, several: Iterable[str] = ()) -> Fields:
    """Return the parameters in the query of a request. A name may occur only once; a name in `several` may
    occur more often, and its value is a list.
    """
    values: dict[str, Any] = {}
    lists = frozenset(several)
    for name, value in request.query.items():
        if name in lists:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise bad_request(f"the parameter {name[:100]!r} is given twice")
        else:
            values[name] = value
    return Fields(values, as_text=True)


async def pieces(request: web.Request, patience: float) -> AsyncIterator[bytes]:
    """Yield the body of a request as it arrives. Raises Refusal (BAD_REQUEST) if the body ends early, does
    not match its headers, or if no data arrives for `patience` seconds.
    """
    while True:
        try:
            async with asyncio.timeout(patience):
                piece, chunk_ends = await request.content.readchunk()  # `readany` would join chunks
        except TimeoutError:
            raise bad_request(f"the client sent no data for {patience:g} s") from None
        except (web.RequestPayloadError, HttpProcessingError, ConnectionError) as error:
            raise bad_request(f"the body ended early: {' '.join(str(error).split())}") from None
        if piece:
            yield piece
        elif request.content.at_eof() or not chunk_ends:  # an empty body reports a chunk end each time
            return


async def body_fields(request: web.Request) -> Fields:
    """Return the JSON object in the body of a request. Raises Refusal (BAD_REQUEST or TOO_LARGE)."""
    if request.content_type != "application/json":
        raise bad_request("the body must be JSON, with Content-Type: application/json")
    body = bytearray()
    async for part in pieces(request, PATIENCE):
        body += part
        if len(body) > MAX_BODY:
            raise Refusal("TOO_LARGE", f"a JSON request may have at most {MAX_BODY} bytes")
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise bad_request("the body must be a JSON object")
    return Fields(values, as_text=False)
