"""Pages about the certificates of a user, and the public keys of queue managers."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request, denied, refusal_of
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_LARGEST: Final = 256 << 10  # bytes of a file with keys


def _user(visit: Visit) -> dict[str, str]:
    user = visit.get("user").strip()[:256]
    return {"user": user} if user else {}


def _page_of(visit: Visit) -> str:
    return link("keys", user=visit.get("user"))


async def _show(visit: Visit) -> web.Response:
    certificates: list[dict[str, Any]] = []
    error = ""
    try:
        certificates = await visit.perform("certificates.list", query=_user(visit))
    except Exception as failure:
        refusal = refusal_of(failure)
        if refusal is None:
            raise
        error = str(refusal)
    return await visit.page(
        "keys.html",
        "Certificates and keys",
        user=visit.get("user"),
        certificates=certificates,
        error=error,
        keys=await visit.perform("keys.list"),
    )


async def _create(visit: Visit) -> web.Response:
    made = await visit.perform("certificates.create", query=_user(visit))
    raise visit.back(_page_of(visit), Notice("done", f"Certificate {made['identifier']} is made."))


async def _register(visit: Visit) -> web.Response:
    form = await visit.form()
    content, key = (str(form.get(name, "")).strip() for name in ("certificate", "private_key"))
    if not content:
        raise bad_request("paste the certificate: it begins with -----BEGIN CERTIFICATE-----")
    body = {"certificate_b64": b64encode(content.encode()).decode()} | ({"private_key": key} if key else {})
    made = await visit.perform("certificates.add", query=_user(visit), body=body)
    raise visit.back(_page_of(visit), Notice("done", f"The certificate of {made['subject']} is registered."))


async def _confirm(visit: Visit) -> web.Response:
    identifier = visit.get("id")
    found = await visit.perform("certificates.list", query=_user(visit))
    one = next((one for one in found if one["identifier"] == identifier), None)
    if one is None:
        raise visit.back(_page_of(visit), Notice("failed", "There is no such certificate any more."))
    facts = {"User": one["name"] or one["user"], "Subject": one["subject"], "Valid until": one["not_after"]}
    return await visit.confirm(
        "Remove a certificate",
        "This removes the certificate and its private key. Messages of the user are no longer signed with "
        "it.",
        facts,
        button="Remove the certificate",
        back=_page_of(visit),
    )


async def _remove(visit: Visit) -> web.Response:
    await visit.perform("certificates.remove", path={"identifier": visit.get("id")}, query=_user(visit))
    raise visit.back(_page_of(visit), Notice("done", "The certificate is removed."))


async def _add_keys(visit: Visit) -> web.Response:
    file = (await visit.form()).get("file")
    content = file.file.read(_LARGEST + 1) if isinstance(file, web.FileField) else b""
    if len(content) > _LARGEST:
        raise bad_request(f"the file is larger than {_LARGEST} bytes; it must be the output of peer-key list")
    try:
        rows = [json.loads(line) for line in content.decode().splitlines() if line.strip()]
        own = [{"guid": str(row["guid"]), "blob_b64": str(row["blob_b64"])} for row in rows if row["own"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        own = []
    if not own:
        raise bad_request("choose a file that `msmq-fast peer-key list --own --json` has written there")
    for row in own:
        await visit.perform("keys.add", body=row)
    names = ", ".join(row["guid"] for row in own)
    raise visit.back(link("keys"), Notice("done", f"The public keys of {names} are added."))


async def _confirm_keys(visit: Visit) -> web.Response:
    if not await visit.administers():
        raise denied("you do not have the right to remove the keys of queue managers")
    return await visit.confirm(
        "Remove public keys",
        "Messages to this queue manager can no longer be encrypted until its keys are added again.",
        {"Queue manager": visit.get("guid")},
        button="Remove the keys",
        back=link("keys"),
    )


async def _remove_keys(visit: Visit) -> web.Response:
    await visit.perform("keys.remove", path={"guid": visit.get("guid")})
    text = f"The public keys of {visit.get('guid')} are removed."
    raise visit.back(link("keys"), Notice("done", text))


PAGES = [
    ("GET", "/keys", _show),
    ("POST", "/keys/create", _create),
    ("POST", "/keys/register", _register),
    ("GET", "/keys/certificate", _confirm),
    ("POST", "/keys/certificate", _remove),
    ("POST", "/keys/peer/add", _add_keys),
    ("GET", "/keys/peer", _confirm_keys),
    ("POST", "/keys/peer", _remove_keys),
]
