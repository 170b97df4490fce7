"""The configuration: one module per section; `config/loading.py` fills them."""

from __future__ import annotations

import os
import socket
from dataclasses import Field, dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from msmq_fast.config import name_kinds
from msmq_fast.config.origins import Origin
from msmq_fast.config.sections.audit import AuditConfig
from msmq_fast.config.sections.backup import BackupConfig
from msmq_fast.config.sections.bulk import BulkConfig
from msmq_fast.config.sections.directory import DirectoryConfig
from msmq_fast.config.sections.interop import InteropConfig
from msmq_fast.config.sections.limits import LimitsConfig
from msmq_fast.config.sections.listen import (
    ListenAdmin,
    ListenApp,
    ListenConfig,
    ListenHttp,
    ListenHttps,
    ListenMqqb,
    ListenRpc,
)
from msmq_fast.config.sections.log import LogConfig
from msmq_fast.config.sections.mqqb import MqqbConfig
from msmq_fast.config.sections.peers import PeerDeclaration
from msmq_fast.config.sections.pgm import PgmConfig
from msmq_fast.config.sections.protection import ProtectionConfig
from msmq_fast.config.sections.queue_manager import QueueManagerConfig
from msmq_fast.config.sections.queues import QueueDeclaration
from msmq_fast.config.sections.remote import RemoteConfig
from msmq_fast.config.sections.routes import RouteDeclaration
from msmq_fast.config.sections.rpc import RpcConfig
from msmq_fast.config.sections.security import SecurityConfig
from msmq_fast.config.sections.server import ServerConfig
from msmq_fast.config.sections.srmp import SrmpConfig
from msmq_fast.config.sections.store import StoreConfig
from msmq_fast.config.sections.tracing import TracingConfig
from msmq_fast.config.sections.users import UserDeclaration

__all__ = [
    "LISTS",
    "LIVE_LISTS",
    "NEEDED",
    "SECTIONS",
    "AuditConfig",
    "BackupConfig",
    "BulkConfig",
    "Config",
    "DirectoryConfig",
    "InteropConfig",
    "LimitsConfig",
    "ListenAdmin",
    "ListenApp",
    "ListenConfig",
    "ListenHttp",
    "ListenHttps",
    "ListenMqqb",
    "LogConfig",
    "MqqbConfig",
    "PeerDeclaration",
    "PgmConfig",
    "ProtectionConfig",
    "QueueDeclaration",
    "QueueManagerConfig",
    "RemoteConfig",
    "RouteDeclaration",
    "RpcConfig",
    "SecurityConfig",
    "ServerConfig",
    "SrmpConfig",
    "StoreConfig",
    "TracingConfig",
    "UserDeclaration",
    "default_computer_name",
    "default_data_directory",
    "keys_of",
]


def default_data_directory() -> Path:
    """Return /var/lib/msmq-fast for root, and a directory in the user's home for every other user."""
    if os.geteuid() == 0:
        return Path("/var/lib/msmq-fast")
    home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "msmq-fast"


def default_computer_name() -> str:
    """Return the first label of the host name, cut to 15 characters: the limit of Windows computer names."""
    return socket.gethostname().split(".", 1)[0][: name_kinds.LONGEST_COMPUTER_NAME] or "localhost"


@dataclass(slots=True)
class Config:
    """The whole configuration. `source` is the name of the file that was read, for messages to people."""

    server: ServerConfig = field(default_factory=ServerConfig)
    listen: ListenConfig = field(default_factory=ListenConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    backup: BackupConfig = field(default_factory=BackupConfig)
    queue_manager: QueueManagerConfig = field(default_factory=QueueManagerConfig)
    security: SecurityConfig = field(default_factory=SecurityConfig)
    protection: ProtectionConfig = field(default_factory=ProtectionConfig)
    mqqb: MqqbConfig = field(default_factory=MqqbConfig)
    directory: DirectoryConfig = field(default_factory=DirectoryConfig)
    rpc: RpcConfig = field(default_factory=RpcConfig)
    remote: RemoteConfig = field(default_factory=RemoteConfig)
    srmp: SrmpConfig = field(default_factory=SrmpConfig)
    pgm: PgmConfig = field(default_factory=PgmConfig)
    bulk: BulkConfig = field(default_factory=BulkConfig)
    interop: InteropConfig = field(default_factory=InteropConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    log: LogConfig = field(default_factory=LogConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    tracing: TracingConfig = field(default_factory=TracingConfig)
    queues: list[QueueDeclaration] = field(default_factory=list)
    users: list[UserDeclaration] = field(default_factory=list)
    routes: list[RouteDeclaration] = field(default_factory=list)
    peers: list[PeerDeclaration] = field(default_factory=list)
    source: str = "defaults"
    file: Path | None = None
    origins: dict[str, Origin] = field(default_factory=dict)  # by "section.key", or "list[index].key"
    warnings: list[str] = field(default_factory=list)  # one line for each old name that was read

    def section(self, name: str) -> Any:
        """Return the section with this name, such as "log" or "listen.app"."""
        return attrgetter(name)(self)

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.server.data or default_data_directory()

    @property
    def name(self) -> str:
        """The computer name."""
        return self.server.name or default_computer_name()

    @property
    def users_file(self) -> Path:
        """The path of the users file."""
        return self.security.users_file or self.data / "users.toml"

    @property
    def key_file(self) -> Path:
        """The path of the file with the key that encrypts private keys in the store."""
        return self.protection.key_file or self.data / "secrets.key"

    @property
    def app_socket(self) -> Path | None:
        """The path of the Unix socket for programs; None if the socket is off."""
        socket = self.listen.app.socket
        if socket == "off":
            return None
        return Path(socket).expanduser() if socket else self.data / "app.sock"


SECTIONS: dict[str, type] = {
    "server": ServerConfig,
    "listen.mqqb": ListenMqqb,
    "listen.app": ListenApp,
    "listen.admin": ListenAdmin,
    "listen.http": ListenHttp,
    "listen.https": ListenHttps,
    "listen.rpc": ListenRpc,
    "store": StoreConfig,
    "backup": BackupConfig,
    "queue_manager": QueueManagerConfig,
    "security": SecurityConfig,
    "protection": ProtectionConfig,
    "mqqb": MqqbConfig,
    "directory": DirectoryConfig,
    "rpc": RpcConfig,
    "remote": RemoteConfig,
    "srmp": SrmpConfig,
    "pgm": PgmConfig,
    "bulk": BulkConfig,
    "interop": InteropConfig,
    "limits": LimitsConfig,
    "log": LogConfig,
    "audit": AuditConfig,
    "tracing": TracingConfig,
}

LISTS: dict[str, type] = {
    "queues": QueueDeclaration,
    "users": UserDeclaration,
    "routes": RouteDeclaration,
    "peers": PeerDeclaration,
}
"""Sections that are lists of tables."""

LIVE_LISTS = frozenset(("queues", "users", "routes", "peers"))
"""Lists whose changes take effect when a running server reads its configuration again."""

NEEDED: dict[str, tuple[str, ...]] = {
    "queues": ("name",),
    "users": ("name",),
    "routes": ("destination", "via"),
    "peers": ("guid", "addresses"),
}
"""Required keys of each table of a list."""


def keys_of(section: type) -> dict[str, Field[Any]]:
    """Return the keys of one section, in the order of the documentation."""
    return {entry.name: entry for entry in fields(section)}
