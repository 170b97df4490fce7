"""One request to a page by a user with a session."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from msmq_fast.admin.api.api import Api
from msmq_fast.console.jobs import Jobs
from msmq_fast.console.live import Live
from msmq_fast.console.rendering import Renderer
from msmq_fast.console.sessions import Notice, Session, Sessions
from msmq_fast.security.callers import Caller

__all__ = ["THEMES", "Visit", "theme_of"]

THEMES = ("auto", "light", "dark")


def theme_of(request: web.Request) -> str:
    """Return the chosen theme, `auto` without a choice."""
    chosen = request.cookies.get("msmq-theme", "auto")
    return chosen if chosen in THEMES else "auto"


@dataclass(frozen=True, slots=True)
class Visit:
    """What a page needs: the request, the caller with the rights of this moment, and the management API.

    `live` collects what of the page can change. `follows` is whether the browser has the page already, and
    the page is rendered for its changes only; `is_live` is whether such renderings follow.
    """

    request: web.Request
    caller: Caller
    session: Session
    sessions: Sessions
    jobs: Jobs
    api: Api
    renderer: Renderer
    live: Live = field(default_factory=Live)
    follows: bool = False
    is_live: bool = False

    def get(self, name: str, default: str = "") -> str:
        """Return a parameter of the query string."""
        return self.request.query.get(name, default)

    async def form(self) -> Mapping[str, Any]:
        """Return the fields of the posted form."""
        return await self.request.post()

    async def perform(
        self,
        name: str,
        *,
        path: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """Perform an operation of the management API with the rights of the caller. Raises as Api.perform."""
        return await self.api.perform(self.caller, name, path=path, query=query, body=body)

    async def may(self, right: str, queue: str = "") -> bool:
        """Whether the caller has a right on a queue; without one, on the queue manager.

        Raises as Api.perform.
        """
        query = {"queue": queue, "rights": right} if queue else {"rights": right}
        return bool((await self.perform("access.explain", query=query))["granted"])

    def number(self, name: str) -> int:
        """Return a parameter that is a whole number; 0 if it is missing or is not one."""
        text = self.get(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0

    @property
    def observes(self) -> bool:
        """Whether the caller may look at everything: administrators and readers."""
        return self.caller.token.administrator or self.caller.token.reader

    async def administers(self) -> bool:
        """Whether the caller may administer the queue manager."""
        return await self.may("set-properties")

    async def page(self, template: str, title: str, *, status: int = 200, **values: Any) -> web.Response:
        """Return a page within the frame that all pages share."""
        server = await self.perform("server.show")
        uptime = int(time.time()) - server["started"]
        text = await self.renderer.render(
            template,
            self.live.slices,
            title=title,
            server=server,
            uptime=uptime if uptime < 60 else uptime - uptime % 60,
            caller=self.caller.name,
            observes=self.observes,
            administrator=self.caller.token.administrator,
            here=self.request.path,
            theme=theme_of(self.request),
            notices=[] if self.follows else self.session.take_notices(),
            live=self.live,
            is_live=self.is_live,
            **values,
        )
        return web.Response(text=text, status=status, content_type="text/html")

    async def confirm(
        self, title: str, text: str, facts: Mapping[str, object], *, button: str, back: str
    ) -> web.Response:
        """Return a page with a button that acts: it posts to the URL of this page. `back` is the URL of the
        page to which `Cancel` leads.
        """
        return await self.page(
            "confirm.html", title, text=text, facts=facts, button=button, back=back, url=self.request.path_qs
        )

    def back(self, url: str, notice: Notice) -> web.HTTPSeeOther:
        """Return the redirection after an action; the page shows its result."""
        self.session.tell(notice)
        return web.HTTPSeeOther(url)
