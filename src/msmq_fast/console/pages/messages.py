"""Pages about messages: those of a queue, one message, and its body as a file."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp import web

from msmq_fast.admin.api.errors import Refusal, bad_request
from msmq_fast.bodies import BodyError
from msmq_fast.bodies.headers import extension_headers
from msmq_fast.console.bodyviews import DECODERS, BodyView, hex_lines, view_body
from msmq_fast.console.formats import sentence
from msmq_fast.console.messageproperties import shown_properties
from msmq_fast.console.pages.batches import dead_letters_of, filters_of, selecting
from msmq_fast.console.visit import Visit
from msmq_fast.protocol.classes import MessageClass

__all__ = ["PAGES", "browse_or_complain"]

_MOST_EXTENSION = 8 << 10  # bytes that are shown in hexadecimal
_MOST_HEADERS = 256 << 10  # bytes of an extension that are read as headers

# Bodies are decoded outside of the event loop: strangers send them. One thread is enough, since the threads
# would wait for each other.
_DECODERS = ThreadPoolExecutor(1, "console-bodies")


async def _browse(visit: Visit, queue: str) -> dict[str, Any]:
    """Return the page of messages that the query string selects. Raises as Api.perform."""
    query = selecting(filters_of(visit))
    query |= {name: visit.get(name) for name in ("after", "upto") if visit.get(name)}
    found: dict[str, Any] = await visit.perform("messages.list", path={"queue": queue}, query=query)
    return found


async def _list(visit: Visit) -> web.Response:
    name = visit.get("queue")
    found, error = await browse_or_complain(visit, name)
    return await visit.page(
        "messages.html",
        f"Messages of {name}",
        status=400 if error else 200,
        queue=name,
        found=found,
        error=error,
        rights=await visit.perform("queues.rights", path={"queue": name}),
        dead=bool(dead_letters_of(name)),
        filters=filters_of(visit),
        classes=MessageClass,
    )


async def browse_or_complain(visit: Visit, queue: str) -> tuple[dict[str, Any], str]:
    """Return (the page of messages, ""); a page without messages and what is wrong with the filter if it is.
    Raises as Api.perform.
    """
    try:
        return await _browse(visit, queue), ""
    except Refusal as refusal:
        if refusal.status != 400 or not filters_of(visit):
            raise
        return {"items": [], "finished": True, "locked": 0}, sentence(str(refusal))


async def _message(visit: Visit) -> dict[str, Any]:
    path = {"queue": visit.get("queue"), "lookup_id": visit.get("id")}
    found: dict[str, Any] = await visit.perform("messages.show", path=path)
    return found


async def _show(visit: Visit) -> web.Response:
    message = await _message(visit)
    body, extension = b64decode(message["body_b64"]), b64decode(message["extension_b64"])
    rights = await visit.perform("queues.rights", path={"queue": visit.get("queue")})
    view, headers, trouble = await asyncio.get_running_loop().run_in_executor(
        _DECODERS, _decode, body, message["body_type"], extension, visit.get("decoder")
    )
    return await visit.page(
        "message.html",
        message["label"] or "Message without a label",
        queue=visit.get("queue"),
        message=message,
        rights=rights,
        dead=bool(dead_letters_of(visit.get("queue"))),
        properties=shown_properties(message),
        view=view,
        decoders={name: title for name, (title, _) in DECODERS.items()},
        headers=headers,
        trouble=trouble,
        extension="\n".join(hex_lines(extension[:_MOST_EXTENSION], 0)),
    )


def _decode(
    body: bytes, body_type: int, extension: bytes, decoder: str
) -> tuple[BodyView, dict[str, str], str]:
    """Return (view of the body, headers in the extension, why there are none)."""
    view = view_body(body, body_type, decoder)
    if len(extension) > _MOST_HEADERS:
        return view, {}, f"an extension of more than {_MOST_HEADERS} bytes is not read as headers"
    try:
        return view, extension_headers(extension), ""
    except BodyError as error:
        return view, {}, str(error)


async def _download(visit: Visit) -> web.Response:
    part = visit.get("part", "body")
    if part in ("body", "packet"):
        path = {"queue": visit.get("queue"), "lookup_id": visit.get("id")}
        found = await visit.perform(f"messages.{part}", path=path)
        content, name = found.content, found.name
    elif part == "extension":
        message = await _message(visit)
        content, name = b64decode(message["extension_b64"]), f"extension-{int(message['lookup_id'])}.bin"
    else:
        raise bad_request("part must be body, extension or packet")
    return web.Response(
        body=content,
        content_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


PAGES = [("GET", "/messages", _list), ("GET", "/message", _show), ("GET", "/message/download", _download)]
