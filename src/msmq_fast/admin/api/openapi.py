"""The OpenAPI 3.1 document of the management API, made from the table of operations."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import Operation, Parameter
from msmq_fast.admin.api.operations import OPERATIONS
from msmq_fast.admin.api.schema import record, text

__all__ = ["document"]

_ERROR: Final = record(
    "Error", {"error": record("ErrorBody", {"code": text(), "message": text()}, "code", "message")}, "error"
)


def document() -> dict[str, Any]:
    """Return the document. It depends on the program alone, not on a server or a caller."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "msmq-fast management API", "version": "1"},
        "servers": [{"url": "/api/v1"}],
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    parameters = [_parameter(one, "path") for one in operation.path_parameters]
    parameters += [_parameter(one, "query") for one in operation.parameters]
    if operation.locked_by:
        parameters.append(_header("If-Match", "an ETag that the resource must still have"))
    if operation.repeatable:
        about = "a text for this request; a repeated request with it gets the first answer"
        parameters.append(_header("Idempotency-Key", about))
    content: dict[str, Any] = {"application/octet-stream": {}}
    if operation.answer is not None:
        content = {"application/json": {"schema": operation.answer}}
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.subject],
        "parameters": parameters,
        "responses": {
            str(operation.status): {"description": "done", "content": content},
            "default": {"description": "refused", "content": {"application/json": {"schema": _ERROR}}},
        },
    }
    if operation.about:
        found["description"] = operation.about
    if operation.verb:
        found["x-command"] = f"msmq-fast {operation.verb}"
    if operation.body is not None:
        found["requestBody"] = {
            "required": operation.body_required,
            "content": {"application/json": {"schema": operation.body}},
        }
    return found


def _parameter(parameter: Parameter, place: str) -> dict[str, Any]:
    schema = {key: value for key, value in parameter.schema.items() if key != "description"}
    found: dict[str, Any] = {"name": parameter.name, "in": place, "schema": schema}
    if place == "path":
        found["required"] = True
    if parameter.about:
        found["description"] = parameter.about
    return found


def _header(name: str, about: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": about, "schema": {"type": "string"}}
