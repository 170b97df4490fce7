"""Compares the version of settings that a request expects with the current one."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.app.arguments import Field
from msmq_fast.protocol.errors import Changed
from msmq_fast.protocol.versions import version_of

__all__ = ["EXPECTED", "check_version"]

EXPECTED: Final = Field("expected", list, type(None), default=None)
"""The versions of which the settings must have one; nil: any."""


def check_version(expected: list[Any] | None, settings: Any) -> None:
    """Raise Changed unless `expected` is None or holds the version of the settings. Call it in the step that
    makes the change.
    """
    if expected is None:
        return
    current = version_of(settings)
    if current not in expected:
        raise Changed(f"the settings have changed: their version is now {current}; read them again")
