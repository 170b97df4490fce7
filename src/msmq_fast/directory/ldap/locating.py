"""Finds the domain controllers that are best for this computer (MS-ADTS 6.3.6.1). Needs dnspython and pyasn1.

1. DNS names the controllers of the site of this computer, as far as that is known, and all of the domain.
   Each list is in the order of priorities and weights (RFC 2782).
2. The first ones of both get an LDAP ping. If an answer shows that this computer is in another site than was
   thought, the controllers of that site are looked up and asked, too.
3. Those that accept changes come first, then others that answer; all others follow, since a network may not
   let the ping pass. Among equals, the own site counts, then the priority, then whether a controller has the
   global catalog.

The next look begins with the site of this one. An order in which nothing but chance differs from the last one
is not taken, since to leave a controller costs a complete reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Final

import dns.resolver

from msmq_fast.directory.ldap.finding import Service, find, query_name
from msmq_fast.directory.ldap.ping import DsFlag, PingAnswer

__all__ = ["MAX_PINGED", "Locator"]

MAX_PINGED: Final = 10
"""Controllers that are asked at once."""

Answers = tuple[dict[str, PingAnswer], dict[str, str]]
Ping = Callable[[Sequence[str], str], Answers]
"""Sends LDAP pings: URLs, and the DNS name of the domain → answers in the order in which they come, and the
reasons of those that give none. It blocks.
"""


@dataclass(frozen=True, slots=True)
class _Class:
    """What decides about the place of a controller, except chance."""

    rank: int  # 0: answers and accepts changes, 1: answers, 2: does not answer
    elsewhere: bool
    priority: int
    lacks_catalog: bool


class Locator:
    """The domain controllers of a domain, for `Controllers`. All calls come from one thread at a time."""

    def __init__(self, domain: str, ping: Ping, *, resolver: dns.resolver.Resolver | None = None) -> None:
        self._domain = domain
        self._resolver = resolver
        self._ping = ping
        self._site = ""
        self._last: dict[str, _Class] = {}
        self._order: list[str] = []

    @property
    def site(self) -> str:
        """The site in which a domain controller saw this computer at the last look, "" if none did."""
        return self._site

    def source(self) -> str:
        """Return which DNS records name the controllers."""
        names = [query_name(self._domain, self._site)] if self._site else []
        return f"DNS: {', then '.join([*names, query_name(self._domain)])}"

    def find(self) -> list[str]:
        """Return the URLs of the domain controllers in the order in which they are to be tried. Raises
        OSError, with a text for people, if DNS does not name any.
        """
        near = self._of_site(self._site)
        try:
            everywhere = find(self._domain, self._resolver)
        except OSError:
            if not near:
                raise
            everywhere = []
        answers = self._asked([*near, *everywhere], {})
        site = _client_site(answers)
        if site and site != self._site:
            near = self._of_site(site)
            answers = self._asked(near, answers)
        self._site = site or self._site
        return self._sorted(near, everywhere, answers)

    def _of_site(self, site: str) -> list[Service]:
        if not site:
            return []
        try:
            return find(self._domain, self._resolver, site)
        except OSError:  # a site without controllers has no records
            return []

    def _asked(self, services: Sequence[Service], known: dict[str, PingAnswer]) -> dict[str, PingAnswer]:
        urls = [url for url in dict.fromkeys(one.url for one in services) if url not in known]
        return known | self._ping(urls[:MAX_PINGED], self._domain)[0] if urls else known

    def _sorted(
        self, near: Sequence[Service], everywhere: Sequence[Service], answers: Mapping[str, PingAnswer]
    ) -> list[str]:
        of_site = {one.url for one in near}
        classes: dict[str, _Class] = {}
        for one in [*near, *everywhere]:
            if one.url in classes:
                continue
            answer = answers.get(one.url)
            rank, flags = 2, DsFlag(0)
            if answer is not None and answer.usable:
                rank, flags = 0 if DsFlag.WRITABLE in answer.flags else 1, answer.flags
            elsewhere = one.url not in of_site and DsFlag.CLOSEST not in flags
            classes[one.url] = _Class(rank, elsewhere, one.priority, DsFlag.GC not in flags)
        if classes != self._last:
            self._last = classes
            self._order = sorted(classes, key=lambda url: astuple(classes[url]))
        return list(self._order)


def _client_site(answers: Mapping[str, PingAnswer]) -> str:
    return next((one.client_site for one in answers.values() if one.client_site), "")
