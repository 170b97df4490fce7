"""Errors in security data."""

__all__ = ["SddlError", "SecurityDataError"]


class SecurityDataError(ValueError):
    """A SID, an ACL or a descriptor is malformed; the text says where."""


class SddlError(SecurityDataError):
    """A descriptor string is malformed; the text says where."""
