"""Security profiles: groups of defaults (`security.profile`). The value of a key that the user sets takes
precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msmq_fast.config.origins import Origin, Source
from msmq_fast.config.sections import Config

__all__ = ["PROFILES", "apply_profile"]

# docs/how-to/security.md lists what stands here; tests/server/test_profiles.py compares them.
PROFILES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "windows": MappingProxyType({}),
        "hardened": MappingProxyType(
            {
                "security.anonymous_may_send": False,
                "interop.unsigned_sender_id": "anonymous",
                "security.default_queue_acl": "restrictive",
                "security.everyone_creates_queues": False,
                "protection.providers": ("advanced",),
                "protection.accept_msmq1": False,
                "protection.accept_hashes": ("sha512",),
                "mqqb.insecure_nacks": False,
                "listen.mqqb.ping_port": None,
                "listen.http.port": None,
                "listen.https.port": None,
                "listen.rpc.port": None,
                "listen.rpc.qm2qm_port": None,
                "listen.rpc.epm_port": None,
                "listen.app.port": None,
                "rpc.anonymous": False,
                "bulk.access": "token",
            }
        ),
    }
)


def apply_profile(config: Config) -> str | None:
    """Set each key of the profile that no source has set.

    Returns None, or an error text if the profile requires a key that is not set.
    """
    for name, value in PROFILES[config.security.profile].items():
        if name not in config.origins:
            section, _, key = name.rpartition(".")
            setattr(config.section(section), key, value)
            config.origins[name] = Origin(Source.PROFILE, f"profile {config.security.profile}")
    if config.security.profile == "hardened" and not config.mqqb.allow:
        return (
            'security.profile = "hardened" needs mqqb.allow: the addresses or networks of the queue managers '
            "that may open sessions"
        )
    return None
