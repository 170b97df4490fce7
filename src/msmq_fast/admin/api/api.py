"""Performs operations: checks a request against the table, and calls the handler as the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msmq_fast.admin.api.errors import bad_request
from msmq_fast.admin.api.gateway import Gateway
from msmq_fast.admin.api.operation import Call, Parameter, expected_of
from msmq_fast.admin.api.operations import BY_NAME
from msmq_fast.admin.api.schema import check
from msmq_fast.admin.view import View
from msmq_fast.protocol.text import quoted
from msmq_fast.security.callers import Caller

__all__ = ["Api"]


class Api:
    """The operations of one server, for the HTTP router and for the console."""

    def __init__(self, gateway: Gateway, view: View) -> None:
        self._gateway = gateway
        self._view = view

    async def perform(
        self,
        caller: Caller,
        name: str,
        *,
        path: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        version: str | None = None,
    ) -> Any:
        """Perform the operation `name` for `caller`; returns what its JSON twin answers, or a Download.

        `query` maps names of parameters to values, which may be texts as in a query string; those of
        parameters that may be repeated are lists. `version` is the ETag that the resource must still have, in
        the form of an If-Match header.
        Raises Refusal, MSMQError, TimeoutError.
        """
        operation = BY_NAME[name]
        if operation.body is None:
            if body is not None:
                raise bad_request(f"{operation.method} of this path takes no body")
        elif body is not None or operation.body_required:
            body = check(operation.body, body, "the body")
        given_path = _parameters(operation.path_parameters, path or {})
        given_query = _parameters(operation.parameters, query or {})
        async with asyncio.timeout(operation.patience), self._gateway.client(caller) as client:
            expected = None if version is None else expected_of(version)
            return await operation.handler(
                Call(caller, client, self._view, given_path, given_query, body, expected)
            )


def _parameters(known: tuple[Parameter, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    by_name = {parameter.name: parameter for parameter in known}
    for name in given:
        if name not in by_name:
            some = f"it takes {', '.join(by_name)}" if by_name else "it takes none"
            raise bad_request(f"unknown parameter {quoted(name)}: {some}")
    found: dict[str, Any] = {}
    for name, parameter in by_name.items():
        if name not in given:
            found[name] = parameter.schema.get("default", [] if parameter.many else None)
        elif parameter.many:
            values = given[name] if isinstance(given[name], list | tuple) else [given[name]]
            found[name] = check(
                parameter.schema, [_read(parameter.schema["items"], one, name) for one in values], name
            )
        else:
            found[name] = check(parameter.schema, _read(parameter.schema, given[name], name), name)
    return found


def _read(schema: Mapping[str, Any], value: Any, name: str) -> Any:
    """Return the value of a parameter that may be given as text."""
    if not isinstance(value, str):
        return value
    match schema["type"]:
        case "integer":
            if not (value.isascii() and value.isdigit() and len(value) <= 20):
                raise bad_request(f"{name} must be a whole number, not {quoted(value)}")
            return int(value)
        case "boolean":
            if value not in ("true", "false"):
                raise bad_request(f"{name} must be true or false, not {quoted(value)}")
            return value == "true"
    return value
