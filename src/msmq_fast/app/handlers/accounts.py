"""The request that lists the users and groups of the users file (section 8.7 of the protocol)."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.accounts import ACCOUNT_KINDS, AccountPage, GroupInfo, UserInfo
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.frames import Frame
from msmq_fast.security.users import User

_MAX_PAGE: Final = 1000


def _list(session: Session, request_id: int, payload: memoryview) -> None:
    kind, offset, limit = arguments(
        payload,
        Field("kind", str, default="users"),
        Field("offset", int, default=0),
        Field("limit", int, maximum=_MAX_PAGE, default=100),
    )
    session.manager.guard.read_everything(session.token, "list the users")
    if kind not in ACCOUNT_KINDS:
        raise InvalidParameter(f"kind must be one of {', '.join(ACCOUNT_KINDS)}")
    if limit == 0:
        raise InvalidParameter(f"limit must be from 1 to {_MAX_PAGE}")
    accounts = session.service.principals.users
    last = offset + limit
    if kind == "users":
        users = [user for _, user in sorted(accounts.users.items())]
        page = AccountPage(users=tuple(_user(session, user) for user in users[offset:last]), total=len(users))
    else:
        members = Counter(name.casefold() for user in accounts.users.values() for name in user.groups)
        groups = [
            GroupInfo(name, str(sid), members[key]) for key, (name, sid) in sorted(accounts.groups.items())
        ]
        page = AccountPage(groups=tuple(groups[offset:last]), total=len(groups))
    session.reply(request_id, page.as_map())


def _user(session: Session, user: User) -> UserInfo:
    last = session.service.last_logons(user.name)
    return UserInfo(
        name=user.name,
        sid=str(user.sid),
        uid=user.uid,
        groups=user.groups,
        password=bool(user.password),
        tokens=len(user.tokens),
        last_logon=0 if last is None else last.time_s,
        last_address="" if last is None else last.address,
        last_method="" if last is None else last.method,
    )


HANDLERS: dict[int, Handler] = {Frame.LIST_USERS: _list}
