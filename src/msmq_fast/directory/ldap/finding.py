"""Asks DNS for the domain controllers of a domain (MS-ADTS 6.3.6.1, RFC 2782). Needs dnspython.

Whatever an answer says, it yields at most MAX_CONTROLLERS host names with ports: what a controller is
allowed to answer depends on the certificate or the Kerberos ticket, not on DNS.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import dns.exception
import dns.name
import dns.resolver

__all__ = ["MAX_CONTROLLERS", "Service", "find", "ordered", "query_name"]

MAX_CONTROLLERS: Final = 32
_LIFETIME: Final = 5.0  # seconds
_LDAP_PORT: Final = 389
_LABEL: Final = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LONGEST: Final = 253


@dataclass(frozen=True, slots=True)
class Service:
    """One SRV record."""

    priority: int
    weight: int
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"ldap://{self.host}" if self.port == _LDAP_PORT else f"ldap://{self.host}:{self.port}"


def query_name(domain: str, site: str = "") -> str:
    """Return the name of the SRV records of a domain's controllers, or of those of one of its sites."""
    return f"_ldap._tcp.{f'{site}._sites.' if site else ''}dc._msdcs.{domain}"


def find(domain: str, resolver: dns.resolver.Resolver | None = None, site: str = "") -> list[Service]:
    """Return the domain controllers, or those of a site, in the order in which they are to be tried. Raises
    OSError with a text for people if DNS does not name any.
    """
    name = query_name(domain, site)
    try:
        asked = resolver or dns.resolver.Resolver()
        answer = asked.resolve(_question(domain, site), "SRV", search=False, lifetime=_LIFETIME)
    except (dns.exception.DNSException, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise OSError(f"DNS does not name the domain controllers ({name}): {reason}") from None
    found = [
        Service(record.priority, record.weight, str(record.target).rstrip("."), record.port)
        for record in list(answer)[:MAX_CONTROLLERS]
    ]
    usable = [one for one in found if one.port and len(one.host) <= _LONGEST and _HOST.fullmatch(one.host)]
    if not usable:
        raise OSError(f"DNS names no usable domain controller ({name})")
    return ordered(usable)


def _question(domain: str, site: str) -> dns.name.Name:
    """Return the name to be asked. A site is one label, whatever characters its name has."""
    labels = [b"_ldap", b"_tcp", *((site.encode(), b"_sites") if site else ()), b"dc", b"_msdcs"]
    return dns.name.Name(labels).concatenate(dns.name.from_text(domain))


def ordered(
    found: Sequence[Service], uniform: Callable[[float, float], float] = random.uniform
) -> list[Service]:
    """Return the records by priority, and those of a priority at random by their weights (RFC 2782)."""
    left = sorted(found, key=lambda one: (one.priority, one.weight))
    result = []
    while left:
        same = [one for one in left if one.priority == left[0].priority]
        at = uniform(0, sum(one.weight for one in same))
        for one in same:
            at -= one.weight
            if at <= 0:
                break
        result.append(one)
        left.remove(one)
    return result
