"""Operations on users and groups of the users file."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import Call, Operation
from msmq_fast.admin.api.queues import LIMIT, OFFSET, PAGE
from msmq_fast.admin.api.schema import array, of, record
from msmq_fast.protocol.accounts import GroupInfo, UserInfo

__all__ = ["OPERATIONS"]


async def _users(call: Call) -> dict[str, Any]:
    return await _page(call, "users")


async def _groups(call: Call) -> dict[str, Any]:
    return await _page(call, "groups")


async def _page(call: Call, kind: str) -> dict[str, Any]:
    offset, limit = call.query["offset"], call.query["limit"]
    page = await call.client.admin.users.page(kind, offset=offset, limit=limit)
    return {"items": page.as_map()[kind], "total": page.total, "offset": offset, "limit": limit}


OPERATIONS: Final = [
    Operation(
        "users.list",
        "GET",
        "/users",
        "List the users of the users file, with their last log-on",
        _users,
        record("UserPage", {"items": array(of(UserInfo)), **PAGE}),
        about="No answer has a password, a token or a hash. `msmq-fast user` changes the file on the machine "
        "of the server.",
        parameters=(LIMIT, OFFSET),
    ),
    Operation(
        "groups.list",
        "GET",
        "/groups",
        "List the groups of the users file",
        _groups,
        record("GroupPage", {"items": array(of(GroupInfo)), **PAGE}),
        parameters=(LIMIT, OFFSET),
    ),
]
