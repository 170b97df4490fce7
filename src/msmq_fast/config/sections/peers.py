"""Tables [[peers]]: the permitted addresses of other queue managers."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import name_kinds
from msmq_fast.config.kinds import key

__all__ = ["PeerDeclaration"]


@dataclass(slots=True)
class PeerDeclaration:
    """Tables [[peers]]: the permitted addresses of other queue managers.

    The server does not verify the GUID that a peer sends if the GUID has no entry.
    """

    guid: str = key(name_kinds.GUID, "", "GUID of the queue manager")
    addresses: tuple[str, ...] = key(
        name_kinds.ADDRESSES,
        (),
        "IP addresses of the queue manager; a peer with another address may not use its GUID",
    )
