"""The routes of the pages: a credential in a cookie or a header, a handler, and what it gives as HTML or JSON."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl

import anyio.to_thread
import structlog
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from grandbo.errors import GrandboError, InvalidInput, Unauthenticated
from grandbo.library import Grandbo, TenantMemory
from grandbo.logs import describe_exception
from grandbo.memory.policy import may
from grandbo.web import screens
from grandbo.web.call import Answer, Call, Download, Handler, Page, Redirect, Values, View, address
from grandbo.web.guarding import HEADERS, check_origin
from grandbo.web.jobs import Jobs
from grandbo.web.names import Names
from grandbo.web.preferences import Preferences
from grandbo.web.rendering import STATIC, environment
from grandbo.web.signing_in import Doors, SigningIn, local_path

FIELDS_LIMIT = 2_000
_FORM = "application/x-www-form-urlencoded"
_STATIC_SECONDS = 31_536_000

log = structlog.get_logger(__name__)


class Web:
    """The pages over one open memory."""

    def __init__(self, grandbo: Grandbo, doors: Doors) -> None:
        self._signing_in = SigningIn(grandbo, doors, self._page)
        self._templates = environment()
        self.jobs = Jobs(grandbo.clock)

    def routes(self) -> list[BaseRoute]:
        """All addresses of the pages, their twins and what they are made with."""
        made: list[BaseRoute] = []
        for page in screens.PAGES:
            made += self._routes_of(page)
        made += [self._route(path, answer, [method]) for path, answer, method in self._signing_in.routes()]
        made.append(self._route("/preferences", self._prefer, ["POST"]))
        made.append(Mount("/static", _Files(directory=STATIC)))
        return made

    # -- pages ---------------------------------------------------------------------------------------------------------

    def _routes_of(self, page: Page) -> list[BaseRoute]:
        made: list[BaseRoute] = []
        if page.show is not None:
            twin = "/index.json" if page.path == "/" else f"{page.path}.json"
            # The twin first: an id in the address takes in whatever stands behind it.
            made.append(self._route(twin, self._showing(page.show), ["GET"]))
            made.append(self._route(page.path, self._showing(page.show), ["GET"]))
        if page.send is not None:
            made.append(self._route(page.path, self._sending(page.send), ["POST"]))
        return made

    def _route(self, path: str, answer: Callable[[Request, Values], Response], methods: list[str]) -> Route:
        async def endpoint(request: Request) -> Response:
            request.scope["route"] = route
            try:
                form = await _form(request) if request.method == "POST" else _NO_FORM
                response = await anyio.to_thread.run_sync(answer, request, form)
            except GrandboError as error:
                response = await anyio.to_thread.run_sync(self._problem, request, error, None)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        route = Route(path, endpoint, methods=methods, include_in_schema=False)
        return route

    def _showing(self, handler: Handler) -> Callable[[Request, Values], Response]:
        def show(request: Request, form: Values) -> Response:
            try:
                memory = self._signing_in.memory_of(request)
            except Unauthenticated as error:
                if _is_twin(request):
                    return self._problem(request, error, None)
                wanted = _url_of(request)
                return RedirectResponse(address("/sign-in", next=wanted if wanted != "/" else None), 303)
            return self._answered(request, memory, lambda: handler(self._call(request, memory, form)))

        return show

    def _sending(self, handler: Handler) -> Callable[[Request, Values], Response]:
        def send(request: Request, form: Values) -> Response:
            check_origin(request)
            try:
                memory = self._signing_in.memory_of(request)
            except Unauthenticated:
                # The session has ended while someone typed: what was typed goes along to the sign-in and back.
                return self._signing_in.form(request, next_url=request.url.path, carried=form, status=401)
            return self._answered(request, memory, lambda: handler(self._call(request, memory, form)))

        return send

    def _call(self, request: Request, memory: TenantMemory, form: Values) -> Call:
        query = ImmutableMultiDict(request.query_params.multi_items())
        return Call(memory, self.jobs, request.path_params, query, form)

    def _answered(self, request: Request, memory: TenantMemory, work: Callable[[], Answer]) -> Response:
        try:
            return self._response_of(request, memory, work())
        except GrandboError as error:
            return self._problem(request, error, memory)
        except Exception as error:  # noqa: BLE001  # a person gets a page that says so, and the log has type and place
            log.error("page_failed", request_id=str(request.state.request_id), **describe_exception(error))
            told = GrandboError("This is a fault of the server; its log has the details.")
            return self._problem(request, told, memory)

    def _response_of(self, request: Request, memory: TenantMemory, given: Answer) -> Response:
        if isinstance(given, Redirect):
            return RedirectResponse(given.to, 303)
        if isinstance(given, Download):
            named = f'attachment; filename="{given.name}"'
            return Response(given.content, headers={"Content-Disposition": named}, media_type=given.media_type)
        if _is_twin(request):
            return JSONResponse(dict(given.data), given.status)
        return self._page(request, given, memory)

    def _page(self, request: Request, view: View, memory: TenantMemory | None) -> Response:
        principal = memory.principal if memory else None
        around = {
            "tenant": memory.tenant.name if memory else None,
            "principal": principal,
            "may": (lambda act: principal is not None and may(principal, act)),
            "path": request.url.path,
            "twin": _twin_of(request) if request.method == "GET" else None,
            "preferences": Preferences.of(request.cookies),
            "done": request.query_params.get("done"),
            "refresh": view.refresh,
            "data": view.data,
            "now_url": _url_of(request),
            "names": Names(memory, view.data),
        }
        text = self._templates.get_template(view.template).render({**view.data, **view.shown, **around})
        return Response(text, view.status, media_type="text/html")

    def _problem(self, request: Request, error: GrandboError, memory: TenantMemory | None) -> Response:
        request.state.error_code = error.code
        told = error.as_dict()
        if _is_twin(request):
            return JSONResponse(told, error.http_status)
        view = View("problem.html", told, {"status": error.http_status}, error.http_status)
        return self._page(request, view, memory)

    def _prefer(self, request: Request, form: Values) -> Response:
        check_origin(request)
        response = RedirectResponse(local_path(form.get("next")), 303)
        for name, value in Preferences.chosen(form).items():
            self._signing_in.set_cookie(response, name, value, _STATIC_SECONDS)
        return response


class _Files(StaticFiles):
    """What pages are made with. The address names the content, so a browser may keep it for good."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            response = Response(status_code=error.status_code)
        if response.status_code == 200 and b"v=" in scope.get("query_string", b""):
            response.headers["Cache-Control"] = f"public, max-age={_STATIC_SECONDS}, immutable"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return response


_NO_FORM: Values = ImmutableMultiDict([])


async def _form(request: Request) -> Values:
    """The fields of a form. Raises `InvalidInput`, `LimitExceeded`, `BodyTimeout`."""
    stated = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if stated != _FORM and body:
        raise InvalidInput(f"A form is sent as {_FORM}.")
    try:
        return ImmutableMultiDict(
            parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_LIMIT)
        )
    except ValueError:
        raise InvalidInput("The form is not in UTF-8, or has too many fields.") from None


def _is_twin(request: Request) -> bool:
    return request.url.path.endswith(".json")


def _url_of(request: Request) -> str:
    query = request.url.query
    return request.url.path + (f"?{query}" if query else "")


def _twin_of(request: Request) -> str:
    path = "/index" if request.url.path == "/" else request.url.path
    query = request.url.query
    return f"{path}.json" + (f"?{query}" if query else "")
