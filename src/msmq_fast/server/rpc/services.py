"""The interfaces at each RPC endpoint, and the callers that each admits, according to the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from msmq_fast.config.sections import Config
from msmq_fast.protocol.resources import ReaderInfo
from msmq_fast.qm.identity.signing import Signing
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.timed import Timed
from msmq_fast.rpc.auth.acceptors import AcceptorPolicy, Acceptors
from msmq_fast.rpc.auth.context import AuthError, AuthLevel, AuthType
from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2
from msmq_fast.rpc.idl.qmmgmt import QMMGMT
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.interface import Service
from msmq_fast.rpc.limits import Limits
from msmq_fast.rpc.services.dependent.server import DependentPolicy, SupportingServer
from msmq_fast.rpc.services.openqueues import OpenQueues
from msmq_fast.rpc.services.ports import RpcPorts
from msmq_fast.rpc.services.qm2qm import Qm2QmService
from msmq_fast.rpc.services.qmcomm import QmCommService
from msmq_fast.rpc.services.qmcomm2 import QmComm2Service
from msmq_fast.rpc.services.qmmgmt import QmMgmtService
from msmq_fast.rpc.services.remoteread import RemoteReadService
from msmq_fast.security.logons import LogonLimits
from msmq_fast.security.principals import Principals
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.server.net.addresses import is_address, local_addresses

__all__ = ["ANNOTATIONS", "RpcServices", "acceptors", "limits", "principal_names"]

_LEVELS: Final = {
    "none": AuthLevel.NONE,
    "connect": AuthLevel.CONNECT,
    "packet": AuthLevel.PKT,
    "integrity": AuthLevel.INTEGRITY,
    "privacy": AuthLevel.PRIVACY,
}
_LEVEL_NAMES: Final = {level: name for name, level in _LEVELS.items()}
ANNOTATIONS: Final[dict[UUID, str]] = {
    QMCOMM.uuid: "Message Queuing - QMRT V1",
    QMCOMM2.uuid: "Message Queuing - QMRT V2",
    QMMGMT.uuid: "Message Queuing - QM Management V1",
    QM2QM.uuid: "Message Queuing - QM2QM V1",
    REMOTE_READ.uuid: "Message Queuing - RemoteRead V1",
}
"""Descriptions of the interfaces in the endpoint mapper, as on Windows; Windows has none for qmmgmt."""


class RpcServices:
    """The RPC interfaces of message queuing, and the state that they share. `timed` holds the interfaces with
    deadlines.
    """

    def __init__(
        self, config: Config, manager: QueueManager, ports: RpcPorts, signing: Signing | None
    ) -> None:
        rpc = config.rpc
        self._queues = queues = OpenQueues(manager)
        self.timed: list[Timed] = []
        self.at_rpc_port: list[Service] = []
        self.at_qm2qm_port: list[Service] = []
        self._anonymous = rpc.anonymous
        self._named_level = int(_LEVELS[rpc.named_level])
        if rpc.qmcomm:
            server = SupportingServer(manager, DependentPolicy(rpc.dependent_clients, rpc.anonymous_outgoing))
            for service in (
                QmCommService(manager, queues, server, ports),
                QmComm2Service(manager, server, signing=signing),
            ):
                self.at_rpc_port.append(self._under(rpc.qmcomm_level, service))
        if rpc.remote_read:
            reading = RemoteReadService(manager, queues, ports, cleanup=rpc.end_timeout)
            if rpc.allow_unauthenticated:
                reading.policy = replace(
                    reading.policy, minimum_level=int(AuthLevel.NONE), anonymous=rpc.anonymous
                )
                self.at_rpc_port.append(reading)
            else:
                self.at_rpc_port.append(self._under(rpc.remote_read_level, reading))
            self.timed.append(reading)
        if rpc.qmmgmt:
            self.at_rpc_port.append(self._under(rpc.qmmgmt_level, QmMgmtService(manager)))
        if rpc.qm2qm:
            self.at_qm2qm_port.append(self._under(rpc.qm2qm_level, Qm2QmService(queues, ports)))

    @property
    def open_queues(self) -> int:
        """Number of queues that remote readers have open."""
        return len(self._queues)

    def readers(self) -> Iterator[ReaderInfo]:
        """Yield the queues that programs on other computers have open for reading."""
        for remote in self._queues:
            caller = remote.caller
            yield ReaderInfo(
                queue=remote.queue.name,
                access=remote.opened.access.name.lower(),
                caller=caller.name,
                address=caller.address,
                authentication=caller.auth_type.name.lower(),
                level=_LEVEL_NAMES.get(caller.auth_level, ""),
                waiting=len(remote.pending),
                unacknowledged=len(remote.delivered),
                cursors=len(remote.cursors),
            )

    def _under(self, level: str, service: Any) -> Service:
        """Restrict the service to callers with at least the authentication level `level`, and return it."""
        policy = replace(
            service.policy,
            minimum_level=int(_LEVELS[level]),
            named_level=self._named_level,
            anonymous=self._anonymous,
        )
        service.policy = policy
        return service  # type: ignore[no-any-return]


def limits(config: Config) -> Limits:
    """Returns the limits for unauthenticated peers at one endpoint."""
    rpc = config.rpc
    return Limits(
        connections=config.listen.rpc.max_connections,
        connections_per_address=config.listen.rpc.max_connections_per_address,
        calls=rpc.calls,
        handles=rpc.handles,
        fragment=rpc.fragment,
        handshake=rpc.bind_timeout,
        slow_writer=config.limits.slow_writer_timeout,
        slow_reader=config.limits.slow_reader_timeout,
        idle=rpc.idle_timeout,
    )


def acceptors(
    config: Config,
    manager: QueueManager,
    principals: Principals,
    wall_s: Callable[[], float],
    logons: LogonLimits,
) -> Acceptors:
    """Return the object that accepts log-ons with the enabled authentication methods. Raises DeclarationError
    if the keytab is invalid.
    """
    rpc = config.rpc
    policy = AcceptorPolicy(
        ntlm=rpc.ntlm,
        anonymous=rpc.anonymous,
        keytab=rpc.keytab,
        is_own_name=_own_names(config, manager.settings.local_hosts),
        logons=logons,
    )
    try:
        if rpc.keytab is not None:
            rpc.keytab.open("rb").close()  # the libraries of Kerberos say it in more words
        return Acceptors(policy, principals, manager.settings.qualified_name, wall_s, manager.random_bytes)
    except ImportError:
        text = "rpc.keytab: Kerberos is an extra: pip install 'msmq-fast[kerberos]'"
        raise DeclarationError(text) from None
    except OSError as error:
        raise DeclarationError(f"rpc.keytab: {rpc.keytab}: {error.strerror}") from None
    except AuthError:
        raise DeclarationError(f"rpc.keytab: {rpc.keytab} holds no keys") from None


def _own_names(config: Config, known: frozenset[str]) -> Callable[[str], bool] | None:
    """Return a function that tests whether a name is one of this server; None if every name is accepted.

    Without `server.domain`, the server does not know its qualified name: only the first label of a name is
    then compared.
    """
    more, server, listen = config.rpc.target_names, config.server, config.listen
    if "*" in more:
        return None
    names = known | {name.casefold() for name in more}

    def is_own(name: str) -> bool:
        name = name.casefold().removesuffix(".")
        if name in names or name in local_addresses(listen.hosts(listen.rpc)):
            return True
        return not server.domain and not is_address(name) and name.partition(".")[0] in names

    return is_own


def principal_names(config: Config, host: str) -> dict[int, str]:
    """Return the principal name of this server for each authentication type; clients use it to authenticate
    the server.
    """
    spoken = []
    if config.rpc.ntlm:
        spoken += [AuthType.NTLM, AuthType.SPNEGO]
    if config.rpc.keytab is not None:
        spoken += [AuthType.KERBEROS, AuthType.SPNEGO]
    return dict.fromkeys((int(kind) for kind in spoken), f"host/{host}")
