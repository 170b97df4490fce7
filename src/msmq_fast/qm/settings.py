"""Settings of a queue manager: its names and limits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

UNLIMITED = 0xFFFFFFFF  # of quotas in KB


class DirectoryMode(StrEnum):
    """The kind of directory."""

    EMBEDDED = "embedded"  # in the queue manager's own store
    WORKGROUP = "workgroup"  # nowhere: there are no public queues
    DOMAIN = "domain"  # in Active Directory


@dataclass(frozen=True, slots=True)
class QueueManagerSettings:
    """Settings of a queue manager: identity (DM-002), quotas in KB (X-30, DA-024), memory limits in bytes."""

    computer_name: str
    domain: str = ""  # DNS suffix; the qualified name is computer_name.domain (DM-004)
    aliases: frozenset[str] = frozenset()  # other names of this computer
    advertised: str = ""  # host name or address under which others reach this computer, if not its own name
    addresses: frozenset[str] = frozenset()  # local IP addresses, as text
    quota_kb: int = UNLIMITED
    journal_quota_kb: int = UNLIMITED
    deadletter_quota_kb: int = UNLIMITED  # for each dead-letter queue
    cache_bytes: int = 64 << 20
    express_memory: int = 1 << 40  # bytes of express messages above which no messages are accepted
    feed: bool = True
    long_lived: int = 345_600  # seconds of TimeToReachQueue for messages without one
    own_copy_ids: bool = True  # each copy of a message for several queues has its own identifier (DA-028)
    hardened: bool = False  # messages are sent only by HTTP
    http: bool = False  # SrmpHttpSupport: messages may be sent to HTTP and HTTPS names
    multicast: bool = False  # SrmpPgmSupport: messages may be sent to MULTICAST names
    insecure_nacks: bool = False  # SendInsecureNacks (QB-083)
    purge_batch: int = 1000  # messages deleted from the store in one unit (DU-08)
    expire_batch: int = 1000
    transaction_idle: float = 600.0  # seconds after which an idle transaction is aborted
    stage_lifetime: float = 3600.0  # seconds after which an unpublished stage is deleted
    writer_lifetime: float = 7_776_000.0  # seconds after which an idle writer is forgotten
    outgoing_idle: float = 0.0  # seconds after which an idle outgoing queue is deleted; 0: never
    answers_per_address: int = 100  # outgoing queues for acknowledgments to one unreached address
    metric_queues: int = 100  # queues with a history of their own (QueueSeries)
    history_length: int = 10  # entries of a ConnectionHistory
    log_lines: int = 5  # lines per second of the log of messages
    audit_entries: int = 10_000  # of the ring of the audit; acts have one half
    audit_size: int = 8 << 20  # bytes of the ring
    directory: DirectoryMode = DirectoryMode.EMBEDDED
    routing_server: bool = False  # forwards messages for other queue managers (QM-18)
    site: UUID | None = None  # Site of this computer, entered at the first start (DM-005)
    sites_interval: float = 43_200.0  # seconds between two readings of the sites
    gates_interval: float = 3_600.0  # seconds between two readings of the site gates

    @property
    def qualified_name(self) -> str:
        """QualifiedComputerName: computer name, dot and domain; without a domain only the computer name,
        without the dot.
        """
        return f"{self.computer_name}.{self.domain}" if self.domain else self.computer_name

    @property
    def known_as(self) -> str:
        """The host name by which other computers reach the queues of this one."""
        return self.advertised or self.computer_name

    @property
    def local_hosts(self) -> frozenset[str]:
        """All names and addresses that denote this computer, case-folded."""
        names = {".", "localhost", self.computer_name, self.qualified_name, "127.0.0.1", "::1"}
        return frozenset(name.casefold() for name in names | self.aliases | self.addresses)


def quota_bytes(kilobytes: int) -> int:
    """Converts a quota from KB to bytes for native code; 0xFFFFFFFF KB means unlimited."""
    return 0xFFFF_FFFF_FFFF_FFFF if kilobytes >= UNLIMITED else kilobytes * 1024
