"""A PGM source and a PGM receiver in virtual time, and a record of what they send."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from msmq_fast.srmp.pgm.model import Datagram, Group, Tsi
from msmq_fast.srmp.pgm.packets import Data, Nak, Spm, decode, encode_data, encode_nak, encode_spm
from msmq_fast.srmp.pgm.receiver import Receiver
from msmq_fast.srmp.pgm.settings import PgmSettings
from msmq_fast.srmp.pgm.source import Source

GROUP = Group("234.1.1.1", 8001)
TSI = Tsi(bytes.fromhex("14afba74bd7a"), 0xC001)
SOURCE_IP, RECEIVER_IP, OTHER_IP = "192.0.2.10", "192.0.2.20", "192.0.2.30"

Message = Spm | Data | Nak


class Sent(NamedTuple):
    at: float
    message: Message
    datagram: Datagram

    @property
    def size(self) -> int:
        """Octets of the IP datagram."""
        return len(self.datagram.payload) + (24 if self.datagram.router_alert else 20)


def nak(*sequences: int, tsi: Tsi = TSI) -> bytes:
    return encode_nak(Nak(tsi, GROUP.port, sequences, SOURCE_IP, GROUP.address))


def ncf(*sequences: int, tsi: Tsi = TSI) -> bytes:
    return encode_nak(Nak(tsi, GROUP.port, sequences, SOURCE_IP, GROUP.address, confirmed=True))


class Sending:
    """A source whose clock runs only in `run`."""

    def __init__(self, settings: PgmSettings | None = None, *, first: int = 1, now: float = 0.0) -> None:
        self.now = now
        self.log: list[Sent] = []
        self.finished: list[int] = []
        self.settings = settings or PgmSettings()
        self.source = Source(
            self.settings, TSI, GROUP, SOURCE_IP, Random(1), self.finished.append, first=first
        )

    def step(self) -> list[Sent]:
        sent = []
        for datagram in self.source.packets(self.now):
            message = decode(datagram.payload)
            assert message is not None
            sent.append(Sent(self.now, message, datagram))
        self.log += sent
        return sent

    def run(self, seconds: float) -> list[Sent]:
        """What is sent in this time."""
        until, begin = self.now + seconds, len(self.log)
        while (deadline := self.source.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.step()
        self.now = until
        return self.log[begin:]

    def send(self, *apdus: bytes) -> None:
        for apdu in apdus:
            self.source.send(apdu)

    def hear(self, packet: bytes, *, multicast: bool = False) -> None:
        self.source.on_packet(packet, RECEIVER_IP, self.now, multicast=multicast)


def spms(sent: list[Sent]) -> list[Spm]:
    return [one.message for one in sent if isinstance(one.message, Spm)]


def odata(sent: list[Sent]) -> list[Data]:
    return [one.message for one in sent if isinstance(one.message, Data) and not one.message.repair]


def rdata(sent: list[Sent]) -> list[Data]:
    return [one.message for one in sent if isinstance(one.message, Data) and one.message.repair]


def naks(sent: list[Sent]) -> list[Nak]:
    return [one.message for one in sent if isinstance(one.message, Nak)]


class Receiving:
    """A receiver whose clock runs only in `run`, and the packets of a source that the test makes up."""

    def __init__(self, settings: PgmSettings | None = None, *, seed: int = 1) -> None:
        self.now = 0.0
        self.log: list[Sent] = []
        self.delivered: list[bytes] = []
        self.settings = settings or PgmSettings()
        self.receiver = Receiver(
            self.settings, GROUP, Random(seed), lambda apdu, tsi, ip: self.delivered.append(apdu)
        )
        self._spm = 0

    def hear(self, packet: bytes, source_ip: str = SOURCE_IP) -> None:
        self.receiver.on_packet(packet, source_ip, self.now)
        self.step()

    def data(
        self,
        sequence: int,
        text: bytes | None = None,
        *,
        trail: int = 1,
        repair: bool = False,
        source_ip: str = SOURCE_IP,
        tsi: Tsi = TSI,
    ) -> None:
        octets = b"%d" % sequence if text is None else text
        self.hear(
            encode_data(Data(tsi, GROUP.port, sequence, trail, octets, repair=repair)), source_ip=source_ip
        )

    def spm(
        self,
        lead: int,
        *,
        trail: int = 1,
        fin: bool = False,
        rst: int | None = None,
        path: str = SOURCE_IP,
        source_ip: str = SOURCE_IP,
        tsi: Tsi = TSI,
    ) -> None:
        self._spm += 1
        self.hear(
            encode_spm(Spm(tsi, GROUP.port, self._spm, trail, lead, path, fin, rst)), source_ip=source_ip
        )

    def step(self) -> None:
        for datagram in self.receiver.packets(self.now):
            message = decode(datagram.payload)
            assert message is not None
            self.log.append(Sent(self.now, message, datagram))

    def run(self, seconds: float) -> list[Sent]:
        """What is sent in this time."""
        until, begin = self.now + seconds, len(self.log)
        while (deadline := self.receiver.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.step()
        self.now = until
        return self.log[begin:]

    def unicast(self) -> list[tuple[float, tuple[int, ...]]]:
        """When which sequence numbers were asked for."""
        return [
            (one.at, one.message.sequences)
            for one in self.log
            if isinstance(one.message, Nak) and one.datagram.destination != GROUP.address
        ]
