"""The aiohttp application of the web console, which the admin port serves under /ui.

Every request passes, in this order: the host name, forged requests, the session, the page. Each answer gets
the headers of `guard.HEADERS`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Collection
from importlib import resources
from typing import Final
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from msmq_fast.admin.api.api import Api
from msmq_fast.admin.api.errors import Refusal, refusal_of
from msmq_fast.console.formats import in_words, sentence
from msmq_fast.console.forms import is_small
from msmq_fast.console.guard import HEADERS, is_forged, is_known_host, is_own_origin
from msmq_fast.console.jobs import Jobs
from msmq_fast.console.live import Live
from msmq_fast.console.logons import Logon, LogonRefused, Logons
from msmq_fast.console.pages import LIVE, PAGES
from msmq_fast.console.rendering import Renderer
from msmq_fast.console.sessions import Notice, Session, Sessions
from msmq_fast.console.slices import Slices
from msmq_fast.console.streams import Ended, Streams
from msmq_fast.console.visit import THEMES, Visit, theme_of
from msmq_fast.logfields import logged
from msmq_fast.security.callers import Caller
from msmq_fast.security.webpages import connection_ends

__all__ = ["CONSOLE_PATH", "build_console"]

CONSOLE_PATH: Final = "/ui"
_TYPES: Final = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_OF_QUEUES: Final = {"/queue": "get-properties", "/messages": "peek", "/message": "peek"}
"""The right that each of these pages needs on the queue that its query string names."""
_WITHOUT_SESSION: Final = tuple(f"{CONSOLE_PATH}/{page}" for page in ("login", "logout", "theme"))
_log = logging.getLogger("msmq_fast.admin")
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def build_console(api: Api, logons: Logons, sessions: Sessions, names: Collection[str]) -> web.Application:
    """Return the application. `names` are the names of this machine besides localhost, in lower case."""
    console = _Console(api, logons, sessions, names)
    application = web.Application(middlewares=[console.boundary])
    routes = application.router
    routes.add_get("/static/{file}", console.static)
    routes.add_get("/login", console.show_login)
    routes.add_post("/login", console.login)
    routes.add_post("/logout", console.logout)
    routes.add_post("/theme", console.theme)
    routes.add_get("/live", console.live, allow_head=False)
    application.on_shutdown.append(console.close)
    for method, path, page in PAGES:
        routes.add_route(method, path, console.handler(page))
    return application


class _Console:
    def __init__(self, api: Api, logons: Logons, sessions: Sessions, names: Collection[str]) -> None:
        self._api = api
        self._logons = logons
        self._sessions = sessions
        self._names = names
        self._renderer = Renderer()
        self._files = dict(_static_files())
        self._streams = Streams()
        self._jobs = Jobs()
        # Only pages that a browser reads: a stream must not act.
        self._live = {
            f"{CONSOLE_PATH}{path}": page for method, path, page in PAGES if method == "GET" and path in LIVE
        }

    async def close(self, _: web.Application) -> None:
        """End streams and jobs, because the server stops."""
        await self._streams.close()
        await self._jobs.close()

    @web.middleware
    async def boundary(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Apply the rules of the guard, and give each answer its headers."""
        try:
            if not is_known_host(request.headers.get("Host", ""), self._names):
                response: web.StreamResponse = await self._error(
                    request, 403, "The Host header names another computer. Use the name of this one."
                )
            elif is_forged(request.method, request.headers):
                response = await self._error(request, 403, "The request comes from a page of another site.")
            elif request.path in _WITHOUT_SESSION and not is_small(request):
                response = await self._error(request, 413, "The form is too large.")
            else:
                response = await handler(request)
        except web.HTTPRedirection as redirection:
            response = redirection
        except web.HTTPException as error:
            response = await self._error(request, error.status, f"{error.reason}.")
        except ConnectionResetError:
            raise
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None:
                _log.exception(
                    "%s %s failed", request.method, request.path, extra=logged(peer=request.remote or "")
                )
            text = "Internal error; see the log of the server." if refusal is None else f"{refusal}"
            response = await self._error(request, 500 if refusal is None else refusal.status, text)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def handler(self, page: Callable[[Visit], Awaitable[web.StreamResponse]]) -> _Handler:
        """Return the handler of a page: it needs a session."""

        async def handle(request: web.Request) -> web.StreamResponse:
            session = self._sessions.find(request.cookies.get(_cookie_name(request), ""))
            caller = None if session is None else self._logons.renewed(session.logon)
            if session is None or caller is None:
                following = request.path_qs if request.method == "GET" else ""
                raise web.HTTPSeeOther("/ui/login?" + urlencode({"next": following}))
            visit = self._visit(request, caller, session, Live(), follows=False)
            try:
                return await page(visit)
            except web.HTTPException:
                raise
            except Exception as error:
                refusal = refusal_of(error)
                if refusal is None:
                    raise
                if request.method == "GET":
                    return await _refused(visit, refusal)
                raise visit.back(
                    _page_before(request), Notice("failed", sentence(in_words(str(refusal))))
                ) from None

        return handle

    def _visit(
        self, request: web.Request, caller: Caller, session: Session, live: Live, *, follows: bool
    ) -> Visit:
        return Visit(
            request,
            caller.at(request.remote or ""),
            session,
            self._sessions,
            self._jobs,
            self._api,
            self._renderer,
            live,
            follows,
            is_live=request.path in self._live,
        )

    # ---- updates of open pages

    async def live(self, request: web.Request) -> web.StreamResponse:
        """Stream the changes of the page in `page`; with `poll`, return all of it that can change."""
        session = self._sessions.look_at(request.cookies.get(_cookie_name(request), ""))
        if session is None:
            return web.json_response({"ended": True}, status=401)
        address, since = request.query.get("page", ""), request.query.get("since", "0")
        page = self._live.get(address.partition("?")[0])
        if page is None or not (since.isascii() and since.isdigit() and len(since) <= 12):
            raise web.HTTPNotFound
        render = self._renders(request.clone(rel_url=address), page)
        if "poll" in request.query:
            return await self._streams.once(render, int(since))
        return await self._streams.follow(request, session.number, render, int(since))

    def _renders(
        self, request: web.Request, page: Callable[[Visit], Awaitable[web.StreamResponse]]
    ) -> Callable[[Live], Awaitable[None]]:
        """Return the function that renders the page of a stream as its session allows at that moment."""

        async def render(live: Live) -> None:
            session = self._sessions.look_at(request.cookies.get(_cookie_name(request), ""))
            caller = None if session is None else self._logons.renewed(session.logon)
            if session is None or caller is None:
                raise Ended
            await page(self._visit(request, caller, session, live, follows=True))

        return render

    # ---- pages without a session

    async def static(self, request: web.Request) -> web.Response:
        """Return a style sheet, a script or a picture of the console."""
        found = self._files.get(request.match_info["file"])
        if found is None:
            raise web.HTTPNotFound
        content, kind = found
        return web.Response(body=content, content_type=kind, headers={"Cache-Control": "public, max-age=300"})

    async def show_login(self, request: web.Request) -> web.Response:
        """Return the page for the log-on."""
        return await self._login_page(request, "")

    async def login(self, request: web.Request) -> web.Response:
        """Begin a session, and go to the page that was asked for."""
        form = await request.post()
        how, name, secret = (str(form.get(field, "")) for field in ("how", "name", "secret"))
        if how != "local" and not _is_private(request):
            return await self._login_page(
                request, "Passwords and tokens need HTTPS, or a browser on the computer of the server.", 403
            )
        try:
            logon = await self._logon(request, how, name, secret)
        except LogonRefused as error:
            return await self._login_page(request, str(error), 403)
        self._sessions.close(request.cookies.get(_cookie_name(request), ""))
        answer = web.HTTPSeeOther(_own_page(str(form.get("next", ""))))
        _set_cookie(request, answer, _cookie_name(request), self._sessions.open(logon, request.remote or ""))
        return answer

    async def _logon(self, request: web.Request, how: str, name: str, secret: str) -> Logon:
        address = request.remote or ""
        if how == "local":
            # The rules for local callers refuse every Origin; the one of the console's own page is right.
            own = is_own_origin(request.headers)
            headers = {key: text for key, text in request.headers.items() if not (own and key == "Origin")}
            return self._logons.local(headers, connection_ends(request.transport))
        if not secret:
            raise LogonRefused("Enter the password of the user, or a token without a user name.")
        if name:
            return await self._logons.by_password(name, secret, address)
        return await self._logons.by_token(secret, address)

    async def logout(self, request: web.Request) -> web.Response:
        """End the session."""
        self._sessions.close(request.cookies.get(_cookie_name(request), ""))
        answer = web.HTTPSeeOther("/ui/login")
        answer.del_cookie(_cookie_name(request), path="/", secure=request.secure, httponly=True)
        return answer

    async def theme(self, request: web.Request) -> web.Response:
        """Change the theme, and return to the page."""
        form = await request.post()
        answer = web.HTTPSeeOther(_own_page(str(form.get("next", ""))))
        chosen = str(form.get("theme", ""))
        _set_cookie(request, answer, "msmq-theme", chosen if chosen in THEMES else "auto", 365 * 86400)
        return answer

    async def _login_page(self, request: web.Request, error: str, status: int = 200) -> web.Response:
        text = await self._renderer.render(
            "login.html",
            Slices(),
            title="Log on",
            error=error,
            theme=theme_of(request),
            following=_own_page(request.query.get("next", "")),
            local=connection_ends(request.transport) is not None,
        )
        return web.Response(text=text, status=status, content_type="text/html")

    async def _error(self, request: web.Request, status: int, text: str) -> web.Response:
        page = await self._renderer.render(
            "error.html", Slices(), title="Not possible", text=text, status=status, theme=theme_of(request)
        )
        return web.Response(text=page, status=status, content_type="text/html")


async def _refused(visit: Visit, refusal: Refusal) -> web.Response:
    """Return the page that says why another one is not shown, and which page tells more about a right that
    is missing.
    """
    path = visit.request.path.removeprefix(CONSOLE_PATH)
    owner = (visit.get("queue") or visit.get("name")).partition(";")[0]
    # The dead-letter queues and the machine journal have the access list of the queue manager.
    queue = owner if path in _OF_QUEUES and not owner.lower().endswith("system$") else ""
    return await visit.page(
        "refused.html",
        "Not possible",
        status=refusal.status,
        text=sentence(_missing(str(refusal)) or str(refusal)),
        denied=refusal.code == "ACCESS_DENIED",
        queue=queue,
        right=_OF_QUEUES.get(path, ""),
    )


def _missing(text: str) -> str:
    """Return which rights a refusal names, in words; "" if it names none."""
    rights = [in_words(name) for name in re.findall(r"\bMQSEC_\w+", text)]
    return f"you do not have {' and '.join(rights)}" if rights else ""


def _page_before(request: web.Request) -> str:
    """Return the page with the form that was posted: an action may have no page of its own."""
    try:
        came_from = urlsplit(request.headers.get("Referer", ""))
    except ValueError:
        return request.path_qs
    page = came_from.path + (f"?{came_from.query}" if came_from.query else "")
    is_own = came_from.netloc.lower() == request.host.lower() and page == _own_page(page)
    return page if is_own else request.path_qs


def _cookie_name(request: web.Request) -> str:
    return "__Host-msmq" if request.secure else "msmq"


def _set_cookie(
    request: web.Request, answer: web.Response, name: str, value: str, seconds: int | None = None
) -> None:
    answer.set_cookie(
        name, value, path="/", httponly=True, secure=request.secure, samesite="Strict", max_age=seconds
    )


def _is_private(request: web.Request) -> bool:
    """Whether secrets cross no network in clear text."""
    return request.secure or connection_ends(request.transport) is not None


def _own_page(url: str) -> str:
    """Return the URL if it is one of the console, else that of its first page."""
    own = url.startswith("/ui/") and url.isprintable() and "\\" not in url.partition("?")[0]
    return url if own and not url.startswith("/ui/login") else "/ui/queues"


def _static_files() -> list[tuple[str, tuple[bytes, str]]]:
    folder = resources.files("msmq_fast.console") / "static"
    return [
        (file.name, (file.read_bytes(), _TYPES[file.name.rpartition(".")[2]]))
        for place in (folder, folder / "vendor")
        for file in place.iterdir()
        if file.is_file() and file.name.rpartition(".")[2] in _TYPES
    ]
