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
        "endpoint mapper. own: this server; external: another process, in which the ports are "
        "registered, so that the server never tries other ports; off: none",
    )
    remote_read: bool = key(
        kinds.FLAG,
        True,
        "offer RemoteRead (MS-MQRR), which Windows has used for remote reads since 2003; without it, "
        "Windows tries qm2qm",
    )
    qm2qm: bool = key(kinds.FLAG, True, "offer qm2qm (MS-MQQP), which older readers use; needs qmcomm")
    qmcomm: bool = key(kinds.FLAG, True, "offer qmcomm and qmcomm2 (MS-MQMP)")
    qmmgmt: bool = key(
        kinds.FLAG, True, "offer qmmgmt (MS-MQMR), with which tools on Windows manage this queue manager"
    )
    dependent_clients: bool = key(
        kinds.FLAG, True, "computers without a queue manager may use this one, over qmcomm"
    )
    anonymous_outgoing: bool = key(
        kinds.FLAG, False, "dependent clients may send to other computers without a log-on"
    )
    remote_read_level: str = key(
        kinds.choice(*_LEVELS), "privacy", "lowest accepted authentication level for RemoteRead"
    )
    qm2qm_level: str = key(kinds.choice(*_LEVELS), "none", "lowest accepted authentication level for qm2qm")
    qmcomm_level: str = key(
        kinds.choice(*_LEVELS), "none", "lowest accepted authentication level for qmcomm and qmcomm2"
    )
    qmmgmt_level: str = key(
        kinds.choice(*_LEVELS), "integrity", "lowest accepted authentication level for qmmgmt"
    )
    named_level: str = key(
        kinds.choice(*_LEVELS),
        "integrity",
        "lowest accepted authentication level of callers that log on, at each of these interfaces",
    )
    target_names: tuple[str, ...] = key(
        kinds.TEXTS,
        (),
        'further names of this server with which NTLM clients may log on; "*": any name',
    )
    allow_unauthenticated: bool = key(
        kinds.FLAG, False, "allow RemoteRead at every level, as AllowNonauthenticatedRpc does on Windows"
    )
    anonymous: bool = key(
        kinds.FLAG,
        True,
        "accept callers without a log-on, if the authentication level allows that; the access list of "
        "the queue then decides",
    )
    ntlm: bool = key(kinds.FLAG, True, "callers may log on with NTLM, with the passwords of the users file")
    keytab: Path | None = key(
        kinds.PATH, None, "keytab for callers that log on with Kerberos; empty: no Kerberos"
    )
    calls: int = key(kinds.integer(1, 1_000_000), 16_384, "maximum number of open calls on one connection")
    handles: int = key(
        kinds.integer(1, 1_000_000),
        16_384,
        "maximum number of context handles (open queues, unfinished reads) of the clients at one "
        "address; all clients together may have twice as many",
    )
    fragment: int = key(kinds.integer(2048, 65_528), 5840, "size of the largest fragment in bytes")
    bind_timeout: float = key(
        kinds.duration(0.1, 600), 30.0, "time within which a new connection must bind and authenticate"
    )
    idle_timeout: float = key(
        kinds.duration(1, 10**7),
        900.0,
        "a connection without open handles and calls is closed after this time",
    )
    end_timeout: float = key(
        kinds.duration(1, 86_400),
        300.0,
        "time within which a remote reader must end its read of a message (RpcCancelTimeout)",
    )
    keep_alive: float = key(
        kinds.duration(1, 86_400), 60.0, "the host of a silent connection is probed after this time"
    )
