"""The page about definitions: download them as a file, and import a file after a preview.

1. The form takes a file or a pasted text. The preview (a dry run) lists what an import would do, object by
   object, and changes nothing.
2. The button of the preview posts the document again, with a digest of the list. If the import would do
   something else by then, nothing is imported, and the new list is shown.
3. To delete queues with more than `TYPED_ABOVE` messages, the name of the computer must be typed.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request, denied, refusal_of
from msmq_fast.console.formats import count, plural, sentence
from msmq_fast.console.pages.batches import TYPED_ABOVE
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit
from msmq_fast.protocol.definitions import read_definitions
from msmq_fast.protocol.text import noun_of

__all__ = ["PAGES"]

_LARGEST: Final = 4 << 20  # bytes of a document; the form of the preview has it in base64
_ROWS: Final = 500  # of a preview
_NAMED: Final = 20  # objects that failed, in a notice
_OUTCOMES: Final = ("created", "changed", "deleted", "unchanged", "failed")
_WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")  # where a word begins in the name of a type
_PROPERTIES: Final = {
    "quota_kb": "quota",
    "journal_quota_kb": "journal quota",
    "security": "access list",
}
_NAME: Final = re.compile(r"[^A-Za-z0-9.-]")  # what the name of a file does not take over from a computer's


@dataclass(frozen=True, slots=True)
class _Document:
    """What a form asks to import."""

    content: bytes
    delete: bool

    @classmethod
    async def of(cls, visit: Visit) -> _Document:
        """Return the document of the posted form: of its file, its text, or its hidden field. Raises Refusal
        (BAD_REQUEST) for a document that is too large or missing.
        """
        form = await visit.form()
        file, text, hidden = form.get("file"), str(form.get("text", "")), str(form.get("document", ""))
        if isinstance(file, web.FileField):
            content = file.file.read(_LARGEST + 1)
        elif hidden:
            try:
                content = b64decode(hidden, validate=True)
            except ValueError:
                raise bad_request("the form is damaged; choose the file again") from None
        else:
            content = text.encode(errors="surrogatepass")
        if not content.strip():
            raise bad_request(
                "choose a file that `msmq-fast definitions export` has written, or paste its text"
            )
        if len(content) > _LARGEST:
            raise bad_request(
                f"the document is larger than {_LARGEST >> 20} MiB; import it with "
                "`msmq-fast definitions import FILE`"
            )
        return cls(content, "delete" in form)

    def parsed(self) -> dict[str, Any]:
        """Return the document as the API takes it. Raises Refusal (BAD_REQUEST)."""
        try:
            found: dict[str, Any] = json.loads(self.content)
            read_definitions(found)
        except json.JSONDecodeError as error:
            raise bad_request(f"line {error.lineno} is not JSON: {error.msg}") from None
        except UnicodeDecodeError:
            raise bad_request("the document is not UTF-8") from None
        except RecursionError:
            raise bad_request("the document is too deeply nested") from None
        except ValueError as error:
            raise bad_request(str(error)) from None
        return found

    async def perform(self, visit: Visit, *, dry_run: bool) -> dict[str, Any]:
        """Import the document, or find out what that would do. Raises as Api.perform."""
        query = {"dry_run": dry_run, "delete": self.delete}
        done: dict[str, Any] = await visit.perform("definitions.import", query=query, body=self.parsed())
        return done


def _digest(done: Mapping[str, Any]) -> str:
    """Return the digest of what an import would do; messages come and go, so their numbers do not count."""
    rows = [[one[name] for name in ("object", "name", "outcome", "detail")] for one in done["items"]]
    return sha256(json.dumps(rows).encode()).hexdigest()


def _row(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the preview, with words in place of the names of types and properties."""
    detail = item["detail"]
    if item["outcome"] == "changed":
        names = (name.strip() for name in detail.split(","))
        detail = ", ".join(_PROPERTIES.get(name, name.replace("_", " ")) for name in names)
    return {**item, "object": _WORD.sub(" ", item["object"]).lower(), "detail": detail}


def _doomed(done: Mapping[str, Any]) -> int:
    """Return the number of messages in the queues that an import deletes."""
    return sum(one.get("messages") or 0 for one in done["items"] if one["outcome"] == "deleted")


async def _page(visit: Visit, *, status: int = 200, error: str = "", text: str = "") -> web.Response:
    return await visit.page("definitions.html", "Definitions", status=status, error=error, text=text)


async def _show(visit: Visit) -> web.Response:
    if not await visit.administers():
        raise denied("definitions are for administrators of the queue manager")
    return await _page(visit)


async def _export(visit: Visit) -> web.Response:
    document = await visit.perform("definitions.export")
    server = await visit.perform("server.show")
    # As `msmq-fast definitions export` writes it, so that two exports can be compared.
    content = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    name = f"{_NAME.sub('_', server['name'])}-definitions.json"
    return web.Response(
        body=content.encode(),
        content_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


async def _preview(visit: Visit) -> web.Response:
    try:
        document = await _Document.of(visit)
        done = await document.perform(visit, dry_run=True)
    except Exception as error:
        refusal = refusal_of(error)
        if refusal is None or refusal.status != 400:
            raise
        return await _page(
            visit, status=400, error=sentence(str(refusal)), text=str((await visit.form()).get("text", ""))
        )
    return await _plan(visit, document, done)


async def _plan(
    visit: Visit, document: _Document, done: Mapping[str, Any], *, error: str = "", status: int = 200
) -> web.Response:
    rows = [_row(one) for one in done["items"] if one["outcome"] != "unchanged"]
    rows.sort(key=lambda one: one["outcome"] != "failed")  # what fails first
    messages = _doomed(done)
    return await visit.page(
        "definitions_preview.html",
        "Import definitions",
        status=status,
        error=error,
        rows=rows[:_ROWS],
        more=max(0, len(rows) - _ROWS),
        counts={name: done[name] for name in _OUTCOMES if done[name]},
        acts=done["created"] + done["changed"] + done["deleted"],
        messages=messages,
        typed=messages > TYPED_ABOVE,
        delete=document.delete,
        document=b64encode(document.content).decode(),
        plan=_digest(done),
    )


async def _import(visit: Visit) -> web.Response:
    document = await _Document.of(visit)
    form = await visit.form()
    planned = await document.perform(visit, dry_run=True)
    if _digest(planned) != form.get("plan"):
        error = "The server has changed since the preview: nothing was imported. This is the new preview."
        return await _plan(visit, document, planned, error=error, status=412)
    name = (await visit.perform("server.show"))["name"]
    if _doomed(planned) > TYPED_ABOVE and str(form.get("typed", "")).strip() != name:
        error = f"The typed name must be {name}; nothing was imported."
        return await _plan(visit, document, planned, error=error, status=400)
    done = await document.perform(visit, dry_run=False)
    raise visit.back(link("definitions"), _notice(done))


def _notice(done: Mapping[str, Any]) -> Notice:
    acted = [name for name in ("created", "changed", "deleted") if done[name]]
    parts = [f"{plural(done[name], 'object')} {noun_of(done[name], 'is', 'are')} {name}" for name in acted]
    text = f"{', '.join(parts)}." if parts else "No object is changed."
    failed = [_row(one) for one in done["items"] if one["outcome"] == "failed"]
    details = [f"{one['object']} {one['name']}: {one['detail']}" for one in failed[:_NAMED]]
    if len(failed) > _NAMED:
        details.append(f"and {count(len(failed) - _NAMED)} further objects")
    kind = "done" if not failed else "partial" if acted else "failed"
    return Notice(kind, text, tuple(details))


PAGES = [
    ("GET", "/definitions", _show),
    ("GET", "/definitions/export", _export),
    ("POST", "/definitions/preview", _preview),
    ("POST", "/definitions/import", _import),
]
