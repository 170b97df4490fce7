"""Access and share modes of open queues, and which of them exclude one another (ST-6, DM-081 … DM-083)."""

from __future__ import annotations

from enum import IntEnum


class Access(IntEnum):
    """The access modes with which a queue can be open (QueueAccessType, 1.21)."""

    RECEIVE = 0x01
    SEND = 0x02
    MOVE = 0x04
    PEEK = 0x20
    RECEIVE_ADMIN = 0x81
    PEEK_ADMIN = 0xA0

    @property
    def receives(self) -> bool:
        return self in (Access.RECEIVE, Access.RECEIVE_ADMIN)

    @property
    def peeks(self) -> bool:
        """Whether the mode allows peeking but not receiving."""
        return self in (Access.PEEK, Access.PEEK_ADMIN)

    @property
    def admin(self) -> bool:
        """Whether the mode opens an outgoing queue for administration."""
        return self in (Access.RECEIVE_ADMIN, Access.PEEK_ADMIN)


class Share(IntEnum):
    """The share modes (QueueShareMode): whether other handles may receive while this handle is open."""

    DENY_NONE = 0
    DENY_RECEIVE = 1


def excludes(open_access: Access, open_share: Share, access: Access, share: Share) -> bool:
    """Whether a handle that is open with `open_access` and `open_share` prevents another handle of the same
    queue from being opened with `access` and `share`.
    """
    if open_access.receives:
        if share is Share.DENY_RECEIVE:
            return True
        return open_share is Share.DENY_RECEIVE and access.receives
    return open_share is Share.DENY_RECEIVE and open_access.peeks and access.receives
