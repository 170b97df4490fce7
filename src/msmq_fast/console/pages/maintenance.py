"""The page for snapshots of the store, the support bundle, and reading the configuration again."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from msmq_fast.admin.api.errors import bad_request, denied
from msmq_fast.console.formats import size
from msmq_fast.console.rendering import link
from msmq_fast.console.sessions import Notice
from msmq_fast.console.visit import Visit

__all__ = ["PAGES"]

_MIB: Final = 1 << 20
_MOST_MIB: Final = 4095  # a second


def _for_administrators(visit: Visit) -> None:
    """Refuse other callers. Raises Refusal (ACCESS_DENIED)."""
    if not visit.caller.token.administrator:
        raise denied("snapshots and support bundles are for administrators")


async def _show(visit: Visit) -> web.Response:
    _for_administrators(visit)
    return await visit.page(
        "maintenance.html", "Backup and support", snapshots=await visit.perform("server.snapshots")
    )


async def _snapshot(visit: Visit) -> web.Response:
    form = await visit.form()
    directory, rate = str(form.get("directory", "")).strip(), str(form.get("rate", "")).strip()
    body: dict[str, Any] = {"directory": directory}
    if not directory.startswith("/"):
        raise bad_request("the directory must be an absolute path, such as /var/backups/msmq/today")
    if rate:
        if not (rate.isascii() and rate.isdigit() and len(rate) < 5 and 0 < int(rate) <= _MOST_MIB):
            raise bad_request(f"the rate must be a whole number of MiB a second, from 1 to {_MOST_MIB}")
        body["bytes_per_second"] = int(rate) * _MIB
    if (await visit.perform("server.snapshots"))["running"]:
        raise bad_request("another snapshot is being made; try again when it is done")

    async def work() -> Notice:
        made = await visit.perform("server.snapshot", body=body)
        return Notice("done", f"The snapshot in {directory} is complete: {size(made['size'])}.")

    if not visit.jobs.begin(visit.session, f"The snapshot in {directory}", work()):
        raise bad_request("too many actions are under way; try again when one has ended")
    text = f"The snapshot in {directory}. The first page that you open after its end shows the result."
    raise visit.back(link("maintenance"), Notice("begun", text))


async def _bundle(visit: Visit) -> web.Response:
    _for_administrators(visit)
    found = await visit.perform("server.bundle")
    return web.Response(
        body=found.content,
        content_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{found.name}"'},
    )


async def _reload(visit: Visit) -> web.Response:
    done = await visit.perform("server.reload")
    changed = ", ".join(done["changed"])
    details = [f"{key} takes effect with the next start" for key in done["restart"]]
    text = f"The configuration was read again{f'; changed: {changed}' if changed else ''}."
    notice = Notice("done", text, (*details, *done["warnings"]))
    raise visit.back(link("maintenance"), notice)


PAGES = [
    ("GET", "/maintenance", _show),
    ("POST", "/maintenance/snapshot", _snapshot),
    ("GET", "/maintenance/bundle", _bundle),
    ("POST", "/maintenance/reload", _reload),
]
