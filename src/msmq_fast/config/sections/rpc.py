"""Section [rpc]: remote readers of the queues of this computer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds
from msmq_fast.config.kinds import key

__all__ = ["RpcConfig"]

_LEVELS = ("none", "connect", "packet", "integrity", "privacy")


@dataclass(slots=True)
class RpcConfig:
    """Section [rpc]: remote readers of the queues of this computer."""

    epm: str = key(
        kinds.choice("own", "external", "off"),
        "own",
        "the endpoint mapper: here; in another process that knows our ports, which then never move; none",
    )
    remote_read: bool = key(
        kinds.FLAG, True, "RemoteRead (MS-MQRR), with which Windows reads since 2003; false: it tries qm2qm"
    )
    qm2qm: bool = key(kinds.FLAG, True, "qm2qm (MS-MQQP), which older readers use; needs qmcomm")
    qmcomm: bool = key(kinds.FLAG, True, "qmcomm and qmcomm2 (MS-MQMP)")
    dependent_clients: bool = key(
        kinds.FLAG, True, "computers without a queue manager of their own may use this one, by qmcomm"
    )
    anonymous_outgoing: bool = key(
        kinds.FLAG, False, "of these, also callers without a name may send to other computers"
    )
    remote_read_level: str = key(
        kinds.choice(*_LEVELS), "privacy", "least authentication level of callers of RemoteRead"
    )
    qm2qm_level: str = key(kinds.choice(*_LEVELS), "none", "of callers of qm2qm")
    qmcomm_level: str = key(kinds.choice(*_LEVELS), "none", "of callers of qmcomm and qmcomm2")
    named_level: str = key(
        kinds.choice(*_LEVELS),
        "integrity",
        "least authentication level of callers with a name, at any of these interfaces",
    )
    target_names: tuple[str, ...] = key(
        kinds.TEXTS,
        (),
        'more names, besides those of the server, that NTLM clients may log on to; "*": any name',
    )
    allow_unauthenticated: bool = key(
        kinds.FLAG, False, "RemoteRead at any level, as AllowNonauthenticatedRpc has it on Windows"
    )
    anonymous: bool = key(
        kinds.FLAG, True, "callers without a name may call, where the level allows it; queues decide further"
    )
    ntlm: bool = key(kinds.FLAG, True, "callers may authenticate by NTLM, with secrets of the users file")
    keytab: Path | None = key(kinds.PATH, None, "keytab for callers that use Kerberos; empty: none may")  # noqa: RUF009
    calls: int = key(kinds.integer(1, 1_000_000), 16_384, "calls under way on one connection")
    handles: int = key(
        kinds.integer(1, 1_000_000),
        16_384,
        "context handles (open queues, unfinished reads) of the clients at one address; twice as many in all",
    )
    fragment: int = key(kinds.integer(2048, 65_528), 5840, "bytes of the largest fragment")
    bind_timeout: float = key(
        kinds.duration(0.1, 600), 30.0, "how long a connection may be without a bind, or authenticate"
    )
    idle_timeout: float = key(
        kinds.duration(1, 10**7), 900.0, "of a connection whose client has no open handle and no call"
    )
    end_timeout: float = key(
        kinds.duration(1, 86_400),
        300.0,
        "how long a reader may have a message by RemoteRead without ending the read (RpcCancelTimeout)",
    )
    keep_alive: float = key(
        kinds.duration(1, 86_400), 60.0, "how long a silent connection is trusted before its host is asked"
    )
