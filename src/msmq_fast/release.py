"""Which version of the program this is."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["release"]


def release() -> str:
    """The version of the installed package; "unknown" for a source tree that was never installed."""
    try:
        return version("msmq-fast")
    except PackageNotFoundError:
        return "unknown"
