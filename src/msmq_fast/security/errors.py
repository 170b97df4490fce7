"""Errors in security data."""

__all__ = ["SddlError", "SecurityDataError"]


class SecurityDataError(ValueError):
    """Raised if a SID, an ACL, a descriptor, or other security data is malformed; the text says where."""


class SddlError(SecurityDataError):
    """Raised if a descriptor string is malformed; the text says where."""
