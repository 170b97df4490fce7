"""Operations on the configuration of the running server."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import Call, Operation, Parameter
from msmq_fast.admin.api.queues import LIMIT, OFFSET, PAGE, page_of
from msmq_fast.admin.api.schema import array, flag, of, record, text
from msmq_fast.protocol.configuration import ConfigCheck, ConfigSetting
from msmq_fast.protocol.frames import MAX_CONFIG

__all__ = ["OPERATIONS"]

_ALL: Final = 1000  # settings of one request to the server


async def _show(call: Call) -> dict[str, Any]:
    query, admin = call.query, call.client.admin.config
    page = await admin.page(limit=_ALL)
    found = list(page.settings)
    while len(found) < page.total:
        more = await admin.page(offset=len(found), limit=_ALL)
        if not more.settings:
            break  # a reload has shortened a list
        found += more.settings
    chosen = [
        one
        for one in found
        if query["filter"].casefold() in one.key.casefold()
        and (not query["set"] or one.origin != "default")
        and (not query["changed"] or one.changed or one.restart)
    ]
    return {"source": page.source, **page_of([one.as_map() for one in chosen], call)}


async def _check(call: Call) -> dict[str, Any]:
    return (await call.client.admin.config.check(call.body["text"])).as_map()


OPERATIONS: Final = [
    Operation(
        "config.show",
        "GET",
        "/config",
        "Show the configuration in force, with the origin of each value",
        _show,
        record(
            "ConfigPage",
            {
                "source": text("the configuration file"),
                "items": array(of(ConfigSetting)),
                **PAGE,
            },
        ),
        verb="config show",
        about="Secrets are hidden. `live` tells whether a reload applies a new value.",
        parameters=(
            Parameter("filter", text("only keys that contain this text", most=249, default="")),
            Parameter("set", flag("only keys whose value is not the default", default=False)),
            Parameter("changed", flag("only keys that changed since the start", default=False)),
            LIMIT,
            OFFSET,
        ),
    ),
    Operation(
        "config.check",
        "POST",
        "/config/check",
        "Check a text that could replace the configuration file",
        _check,
        of(ConfigCheck),
        about="The variables and flags of the running server apply, as in a reload. Nothing is changed.",
        body=record(
            "ConfigText", {"text": text("content of a configuration file (TOML)", most=MAX_CONFIG)}, "text"
        ),
    ),
]
