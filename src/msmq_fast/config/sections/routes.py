"""Tables [[routes]]: the next hops to other queue managers."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key

__all__ = ["RouteDeclaration"]


@dataclass(slots=True)
class RouteDeclaration:
    """Tables [[routes]]: the next hops to other queue managers.

    A route takes precedence over the directory. It applies to `PRIVATE=` and `PUBLIC=` names; a `DIRECT=`
    name always leads straight to its host.
    """

    destination: str = key(
        kinds.TEXT, "", 'GUID or host name of a queue manager; "*": all other queue managers'
    )
    via: tuple[str, ...] = key(
        name_kinds.HOPS,
        (),
        "host names, addresses or GUIDs of next hops, tried in this order; a port cannot be given",
    )
