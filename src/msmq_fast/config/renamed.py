"""Keys that have another name today. The old names are still read, with a warning that says the new one.

To rename a key: change its field in `config/sections/`, and add its old name here. Remove an old name with
the second minor version after the one that renamed it.
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
    """The new name of a key, "section.key", and how a value of the old key is written for the new one."""

    name: str
    convert: Callable[[object], object] = _unchanged


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

RENAMED: Final[Mapping[str, Renamed]] = MappingProxyType(
    {old: Renamed(f"interop.{new}") for old, new in _INTEROP.items()}
)
"""By the old name, "section.key"; the section of a [[list]] is its name."""
