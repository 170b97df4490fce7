"""The page that sends a message: a new one for a test, or an edited copy of one that is in a queue.

The copy is a new message: it has another identifier, no signature, and its time limits start again. A body is
edited as text if its text gives the same bytes again, else in hexadecimal.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request, refusal_of
from msmq_fast.bodies import BodyError
from msmq_fast.bodies.formats import encode
from msmq_fast.bodies.kind import VT_BSTR, WIDE_TEXT
from msmq_fast.console.messageproperties import ACKNOWLEDGE
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit
from msmq_fast.protocol.frames import INFINITE, LONG_LIVED

__all__ = ["PAGES"]

_FORMATS: Final = {
    "text": "Text, UTF-8 (also XML and JSON)",
    "utf-16": "Text, UTF-16",
    "xml": "A string, as XmlMessageFormatter of .NET writes it",
    "activex": "A string, as ActiveXMessageFormatter and COM write it",
    "binary": "A string, as BinaryMessageFormatter of .NET writes it",
    "hex": "Bytes in hexadecimal",
}
_MOST_EDITED: Final = 256 << 10  # bytes of a body in a form
_ACKNOWLEDGE: Final = {f"ack-{flag}": text for flag, text in ACKNOWLEDGE.items()}
"""The boxes for acknowledgments: `ack-` and the flag."""
_TEXTS: Final = ("label", "response_queue", "admin_queue", "correlation_id")
_NUMBERS: Final = {
    "priority": "the priority",
    "app_specific": "the application's number",
    "body_type": "the body type",
    "time_to_reach_queue": "the time to reach the queue",
    "time_to_be_received": "the time to be received",
}
_FLAGS: Final = ("recoverable", "transactional")


def _editable(body: bytes, body_type: int | None) -> tuple[str, str, str]:
    """Return the format, the text and the line ends of a body. Browsers send CR LF for each line end, so a
    body with both kinds of line ends is not edited as text.
    """
    for name, encoding in (("utf-16", "utf-16-le"), ("text", "utf-8")):
        if (name == "utf-16") is not (body_type in WIDE_TEXT):
            continue
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError:
            continue
        plain = text.replace("\r\n", "\n")
        if "\r" in plain or not all(one.isprintable() or one in "\n\t" for one in plain):
            continue
        if plain == text:
            return name, plain, "lf"
        if plain.replace("\n", "\r\n") == text:
            return name, plain, "crlf"
    return "hex", body.hex(" "), "lf"


def _values_of(message: Mapping[str, Any], target: str) -> dict[str, str]:
    """Return the values of the form for a copy of a message. Raises Refusal."""
    body = b64decode(message["body_b64"])
    if len(body) > _MOST_EDITED:
        raise bad_request(f"the body has {len(body)} bytes; the form takes at most {_MOST_EDITED}")
    format_name, text, ends = _editable(body, message["body_type"])
    values = {
        "queue": target,
        "format": format_name,
        "body": text,
        "ends": ends,
        "extension": b64decode(message["extension_b64"]).hex(" "),
    }
    values |= {name: message[name] or "" for name in ("label", "response_queue", "admin_queue")}
    values |= {name: str(message[name] or 0) for name in ("priority", "app_specific", "body_type")}
    if message["correlation_id"].strip("0"):
        values["correlation_id"] = message["correlation_id"]
    for name, default in (("time_to_reach_queue", LONG_LIVED), ("time_to_be_received", INFINITE)):
        values[name] = "" if message[name] in (default, INFINITE, None) else str(message[name])
    flags = {
        "recoverable": message["delivery"] == "recoverable",
        "transactional": message["transactional"],
        "deadletter": message["journal"] & 1,
        "journal": message["journal"] & 2,
    }
    flags |= {name: message["acknowledge"] & int(name.removeprefix("ack-")) for name in _ACKNOWLEDGE}
    return values | {name: "on" for name, on in flags.items() if on}


def _body_of(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties of `messages.send` for the body. Raises Refusal (BAD_REQUEST)."""
    name = values.get("format", "text")
    text = values.get("body", "").replace("\r\n", "\n")
    if values.get("ends") == "crlf":
        text = text.replace("\n", "\r\n")
    found: dict[str, Any] = {}
    match name:
        case "text" | "utf-16":
            body = text.encode("utf-8" if name == "text" else "utf-16-le", "surrogatepass")
            if name == "utf-16" and not values.get("body_type", "").strip("0 "):
                found["body_type"] = VT_BSTR
        case "hex":
            body = _bytes(text, "the body")
        case "xml" | "activex" | "binary":
            try:
                body, found["body_type"] = encode(text, name, type="string")
            except BodyError as error:
                raise bad_request(f"the body: {error}") from None
        case _:
            raise bad_request(f"the format must be one of {', '.join(_FORMATS)}")
    return found | {"body_b64": b64encode(body).decode()}


def _bytes(text: str, what: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise bad_request(f"{what} must be pairs of hexadecimal digits, such as 0d 0a") from None


def _properties(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of `messages.send` for the values of a form. Raises Refusal (BAD_REQUEST)."""
    found: dict[str, Any] = {name: values[name] for name in _TEXTS if values.get(name)}
    for name, what in _NUMBERS.items():
        text = values.get(name, "").strip()
        if text:
            if not (text.isascii() and text.isdigit() and len(text) <= 10):
                raise bad_request(f"{what} must be a whole number")
            found[name] = int(text)
    found |= {name: name in values for name in _FLAGS}
    found["journal"] = ("deadletter" in values) + 2 * ("journal" in values)
    found["acknowledge"] = sum(int(name.removeprefix("ack-")) for name in _ACKNOWLEDGE if name in values)
    if values.get("extension", "").strip():
        found["extension_b64"] = b64encode(_bytes(values["extension"], "the extension")).decode()
    return found | _body_of(values)


async def _form(visit: Visit, values: Mapping[str, str], error: str = "", status: int = 200) -> web.Response:
    source = visit.get("from")
    rights = await visit.perform("queues.rights", path={"queue": source}) if source else {"receive": False}
    return await visit.page(
        "send.html",
        "Edit and send as a new message" if source else "Send a message",
        status=status,
        values=values,
        error=error,
        source=source,
        original=visit.get("id"),
        deletes=rights["receive"],
        formats=_FORMATS,
        acknowledge=_ACKNOWLEDGE,
    )


async def _show(visit: Visit) -> web.Response:
    source = visit.get("from")
    if not source:
        return await _form(visit, {"queue": visit.get("queue"), "format": "text", "priority": "3"})
    path = {"queue": source, "lookup_id": visit.get("id")}
    message = await visit.perform("messages.show", path=path)
    dead = message["reason"] and message["destination_queue"]
    return await _form(visit, _values_of(message, message["destination_queue"] if dead else source))


async def _send(visit: Visit) -> web.Response:
    values = {name: str(value) for name, value in (await visit.form()).items()}
    queue = values.get("queue", "").strip()
    try:
        if not queue:
            raise bad_request("enter the queue to which to send the message")
        sent = await visit.perform("messages.send", path={"queue": queue}, body=_properties(values))
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise
        return await _form(visit, values, str(refusal), refusal.status)
    notice = Notice("done", f"The message {sent['message_id']} is sent to {queue}.")
    source = visit.get("from")
    if source and "delete" in values:
        try:
            path = {"queue": source, "lookup_id": visit.get("id")}
            await visit.perform("messages.remove", path=path)
            notice = Notice("done", f"{notice.text} The original is deleted.")
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            notice = Notice("partial", notice.text, (f"The original stays: {refusal}",))
    raise visit.back(link("messages", queue=source) if source else link("send", queue=queue), notice)


PAGES = [("GET", "/send", _show), ("POST", "/send", _send)]
