"""Renamed keys. The old names are still accepted, with a warning that states the new name.

To rename a key: change its field in `config/sections/`, and add its old name here. Remove an old name in the
second minor version after the one that renamed the key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

__all__ = ["RENAMED", "Renamed"]


def _unchanged(value: object) -> object:
    return value


@dataclass(frozen=True, slots=True)
class Renamed:
    """The new name of a key, "section.key", and the function that converts a value of the old key to one of
    the new key.
    """

    name: str
    convert: Callable[[object], object] = _unchanged


def _from_kilobytes(value: object) -> object:
    """Convert a number of KB, or its text in an environment variable, to a size; 4294967295 means
    unlimited.
    """
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return "unlimited" if value == 2**32 - 1 else f"{value} KiB"


_QUOTAS: Final = {
    "queue_manager.quota_kb": "queue_manager.quota",
    "queue_manager.journal_quota_kb": "queue_manager.journal_quota",
    "queue_manager.deadletter_quota_kb": "queue_manager.deadletter_quota",
    "queues.quota_kb": "queues.quota",
}

_INTEROP: Final = {
    "security.amb23_unsigned_sid": "unsigned_sender_id",
    "protection.amb82_names": "signature_queue_names",
    "protection.amb82_label_nul": "signature_label_includes_nul",
    "protection.amb82_absent_connector": "signature_absent_connector_is_zeros",
    "protection.amb82_all_lists": "signature_covers_all_queue_lists",
    "protection.amb82_reversed": "signature_bytes_reversed",
    "protection.amb83_salt": "short_keys_are_padded",
    "protection.amb29_plain_size": "encrypted_size_is_plain_size",
    "protection.amb27_strict_level": "provider_follows_privacy_level",
    "protection.qb402_sign_direct": "sign_to_direct_names",
    "queue_manager.da028_copy_ids": "copy_message_ids",
    "srmp.a05_literal_stream": "srmp_stream_element_is_lowercase",
    "srmp.a07_literal_expiry": "srmp_expiry_is_time_to_reach_queue",
}

_LISTEN: Final = {
    "server.host": "mqqb.host",
    "server.port": "mqqb.port",
    "server.ping_port": "mqqb.ping_port",
    "server.app_socket": "app.socket",
    "server.app_socket_mode": "app.socket_mode",
    "server.app_host": "app.host",
    "server.app_port": "app.port",
    "server.app_tls_certificate": "app.tls_certificate",
    "server.app_tls_key": "app.tls_key",
    "server.admin_host": "admin.host",
    "server.admin_port": "admin.port",
    "server.admin_tls_certificate": "admin.tls_certificate",
    "server.admin_tls_key": "admin.tls_key",
    "server.http_port": "http.port",
    "server.https_port": "https.port",
    "server.https_certificate": "https.tls_certificate",
    "server.https_key": "https.tls_key",
    "server.https_more_certificates": "https.tls_more_certificates",
    "server.https_client_ca": "https.tls_client_ca",
    "server.rpc_host": "rpc.host",
    "server.rpc_port": "rpc.port",
    "server.qm2qm_port": "rpc.qm2qm_port",
    "server.epm_port": "rpc.epm_port",
    "limits.connections": "mqqb.max_connections",
    "limits.sessions_per_address": "mqqb.max_connections_per_address",
    "limits.app_connections": "app.max_connections",
    "limits.admin_connections": "admin.max_connections",
    "srmp.connections": "http.max_connections",
    "srmp.connections_per_address": "http.max_connections_per_address",
    "rpc.connections": "rpc.max_connections",
    "rpc.connections_per_address": "rpc.max_connections_per_address",
}

RENAMED: Final[Mapping[str, Renamed]] = MappingProxyType(
    {old: Renamed(f"listen.{new}") for old, new in _LISTEN.items()}
    | {old: Renamed(f"interop.{new}") for old, new in _INTEROP.items()}
    | {old: Renamed(new, _from_kilobytes) for old, new in _QUOTAS.items()}
)
"""The renamed keys by their old name, "section.key"; for a key of a [[list]], the section is the name of the
list.
"""
