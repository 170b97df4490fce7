"""Opens queues of other computers: by RemoteRead, or by qm2qm if RemoteRead is not registered (MS-MQRR
3.2.4.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar
from uuid import UUID

from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.errors import MachineNotFound, MSMQError
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.reading.remote import RemoteQueue
from msmq_fast.rpc.client.binding import Binding, BindingEnvironment
from msmq_fast.rpc.client.connection import Credentials
from msmq_fast.rpc.client.endpoint import Mapper
from msmq_fast.rpc.client.errors import EndpointNotRegistered, refusal
from msmq_fast.rpc.client.qm2qm import Qm2QmSession
from msmq_fast.rpc.client.reader import QueueReader, Shared
from msmq_fast.rpc.client.remoteread import OPEN_TIMEOUT, Opening, RemoteReadSession, failed
from msmq_fast.rpc.client.sessions import QueueSession, RequestIds
from msmq_fast.rpc.client.settling import Settling
from msmq_fast.rpc.faults import RpcFault
from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.ndr.operations import InterfaceTable
from msmq_fast.rpc.services.ports import PortType
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion

__all__ = ["ReaderSettings", "RemoteQueues"]

T = TypeVar("T")

_EPT_S_NOT_REGISTERED: Final = 0x000006D9
_PORT_METHODS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    REMOTE_READ.name: ("get_server_port", {}),
    QMCOMM.name: ("get_rtqm_server_port", {"fIP": int(PortType.IP_HANDSHAKE)}),
    QM2QM.name: ("get_port", {"dwPortType": int(PortType.IP_READ)}),
}


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """Settings for reading other computers."""

    client: UUID  # GUID of this queue manager
    credentials: Credentials | None = None  # None: anonymous
    mapper_port: int = 135
    port: int = 0  # of RemoteRead; 0: query the endpoint mapper
    port_methods: bool = False  # query each interface for its port, as Server 2003 and older do
    routing_server: bool = False
    workgroup: bool = True


class RemoteQueues:
    """Opens queues of other computers for reading (implements qm.reading.remote.RemoteReader)."""

    def __init__(
        self,
        environment: BindingEnvironment,
        settings: ReaderSettings,
        locate: Callable[[FormatName], str],
        allow: Callable[[Token | None, FormatName], None],
        cursor_number: Callable[[], int],
    ) -> None:
        """`locate` returns the host name or address of the computer that has a queue, "" if it is unknown.

        `allow` raises ACCESS_DENIED if a caller may not read a queue. `cursor_number` returns a number for a
        new cursor.
        """
        self.settings = settings
        self.shared = Shared(RequestIds(), cursor_number)
        self._environment = environment
        self._locate = locate
        self._allow = allow

    def open(
        self, name: FormatName, access: Access, share: Share, token: Token | None
    ) -> Completion[RemoteQueue]:
        """Open a queue for receiving or peeking."""
        settings = self.settings
        try:
            self._allow(token, name)
            host = self._locate(name)
        except MSMQError as refused:
            return failed(refused)
        if not host:
            return failed(MachineNotFound(f"the computer of {name} is unknown"))
        opening = Opening(name, access, share, settings.client, settings.routing_server, settings.workgroup)
        opened: Completion[RemoteQueue] = Completion()

        def answered(done: Completion[QueueSession]) -> None:
            failure = done.exception()
            if failure is not None:
                opened.fail(refusal(failure, host))
                return
            reader = QueueReader(
                done.result(),
                host,
                access,
                self.shared,
                lambda lookup_id: self._settle(host, opening, lookup_id),
            )
            opened.resolve(reader)

        self._session(host, opening).add_done_callback(answered)
        return opened

    def _settle(self, host: str, opening: Opening, lookup_id: int) -> Completion[bool]:
        if not lookup_id:
            return Completion.of(True)
        looking = replace(opening, access=Access.PEEK, share=Share.DENY_NONE)
        settling = Settling(
            lookup_id, lambda: self._session(host, looking), self._environment.timers, self.shared.ids
        )
        return settling.removed

    # ---- which interface

    def _session(self, host: str, opening: Opening) -> Completion[QueueSession]:
        if self.settings.port:
            return self._remote_read(host, self.settings.port, opening)
        mapper = Mapper(self._environment, host, self.settings.mapper_port, OPEN_TIMEOUT)
        session: Completion[QueueSession] = _caught(
            mapper.find(REMOTE_READ).then(lambda port: self._remote_read(host, port, opening)),
            _not_registered,
            lambda: self._qm2qm(host, mapper, opening),
        )
        session.add_done_callback(lambda _: mapper.close())
        return session

    def _remote_read(self, host: str, port: int, opening: Opening) -> Completion[QueueSession]:
        binding = self._bind(REMOTE_READ, host, port)
        session: Completion[Any] = binding.then(
            lambda bound: _kept(RemoteReadSession.open(bound, opening), bound)
        )
        return session

    def _qm2qm(self, host: str, mapper: Mapper, opening: Opening) -> Completion[QueueSession]:
        """Opens the queue by qm2qm.

        The calls of qm2qm need handles that qmcomm returns, so the other computer must serve both interfaces.
        """

        def bound(qmcomm: Binding, qm2qm: Binding) -> Completion[Any]:
            return _kept(Qm2QmSession.open(qmcomm, qm2qm, opening), qmcomm, qm2qm)

        def second(qmcomm: Binding) -> Completion[Any]:
            found = mapper.find(QM2QM).then(lambda port: self._bind(QM2QM, host, port))
            return _kept(found, qmcomm).then(lambda qm2qm: bound(qmcomm, qm2qm))

        return mapper.find(QMCOMM).then(lambda port: self._bind(QMCOMM, host, port)).then(second)

    def _bind(self, table: InterfaceTable, host: str, port: int) -> Completion[Binding]:
        """Open a binding for an interface at `port`. If the port method of the interface returns another
        port, open it there instead.
        """
        credentials = self.settings.credentials
        binding = Binding(self._environment, table, host, port, credentials)
        if not self.settings.port_methods:
            return Completion.of(binding)
        name, parameters = _PORT_METHODS[table.name]

        def rebind(results: Any) -> Completion[Binding]:
            endpoint = results.result
            if endpoint in (0, port):
                return Completion.of(binding)
            binding.close()
            return Completion.of(Binding(self._environment, table, host, endpoint, credentials))

        asked: Completion[Any] = binding.call(name, timeout=OPEN_TIMEOUT, **parameters)
        return _kept(asked, binding).then(rebind)


def _kept(opened: Completion[T], *bindings: Binding) -> Completion[T]:
    """Returns `opened`, and closes the bindings if `opened` fails."""

    def close(done: Completion[T]) -> None:
        if done.exception() is not None:
            for binding in bindings:
                binding.close()

    opened.add_done_callback(close)
    return opened


def _caught(
    first: Completion[T], which: Callable[[Exception], bool], instead: Callable[[], Completion[T]]
) -> Completion[T]:
    """Return a completion with the result of `first`, or, if `first` fails with an exception for which
    `which` returns True, with the result of `instead()`.
    """
    result: Completion[T] = Completion()

    def pass_on(done: Completion[T]) -> None:
        failure = done.exception()
        if failure is None:
            result.resolve(done.result())
        else:
            result.fail(failure)

    def ended(done: Completion[T]) -> None:
        failure = done.exception()
        if failure is not None and which(failure):
            instead().add_done_callback(pass_on)
        else:
            pass_on(done)

    first.add_done_callback(ended)
    return result


def _not_registered(failure: Exception) -> bool:
    """Return whether the failure is EPT_S_NOT_REGISTERED, the only one after which the fallback is tried."""
    if isinstance(failure, EndpointNotRegistered):
        return True
    return isinstance(failure, RpcFault) and failure.status == _EPT_S_NOT_REGISTERED
