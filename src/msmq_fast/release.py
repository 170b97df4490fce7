"""The version of this program."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["release"]

_DISTRIBUTIONS = ("msmq-fast", "msmq-fast-spark")


def release() -> str:
    """Return the version of the installed package; "unknown" for a source tree that was never installed."""
    for name in _DISTRIBUTIONS:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "unknown"
