"""The version of this program."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["release"]


def release() -> str:
    """Return the version of the installed package; "unknown" for a source tree that was never installed."""
    try:
        return version("msmq-fast")
    except PackageNotFoundError:
        return "unknown"
