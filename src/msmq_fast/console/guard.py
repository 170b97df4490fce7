"""Rules for requests to the console that come before everything else: host names, and pages of other sites.

1. The `Host` header names this machine, or is an IP address. A page that uses DNS rebinding sends the name of
   its own host.
2. A request that can change something must come from a page of the console. Browsers say so in
   `Sec-Fetch-Site`. For a request without that header, `Origin` must have the host of the `Host` header. A
   request without both is refused: programs use the management API.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

__all__ = ["HEADERS", "is_forged", "is_known_host", "is_own_origin"]

_SAFE = ("GET", "HEAD", "OPTIONS")

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types msmq",
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: with it, browsers send `Origin: null` with the forms of the console's own pages.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""The headers of every answer of the console."""


def is_known_host(host: str, names: Collection[str]) -> bool:
    """Whether a `Host` header means this machine: localhost, an IP address, or one of `names`, which
    are in lower case.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost" or name in names:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_own_origin(headers: Mapping[str, str]) -> bool:
    """Whether `Origin` has the host and port of the `Host` header."""
    try:
        origin = urlsplit(headers.get("Origin", ""))
    except ValueError:
        return False
    return origin.scheme in ("http", "https") and origin.netloc.lower() == headers.get("Host", "").lower()


def is_forged(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a request may be one that a page of another site made the browser send."""
    if method in _SAFE:
        return False
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site.lower() not in ("same-origin", "none")
    return not is_own_origin(headers)
