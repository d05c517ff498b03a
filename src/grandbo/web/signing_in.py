"""Getting in and out: a key or a token on a form, or the issuer's own sign-in and back; what was typed comes along."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from grandbo.errors import GrandboError, NotFound, SignInRefused, SignInStale, Unauthenticated
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.principals import looks_like_key
from grandbo.memory.sign_in import Begun
from grandbo.memory.tokens import Claims
from grandbo.web.call import Values, View, address
from grandbo.web.guarding import check_origin
from grandbo.web.sealing import Sealer
from grandbo.web.session import Sessions

CALLBACK = "/sign-in/callback"
# So long someone may take at the issuer's own sign-in.
BEGUN_SECONDS = 600
# A longer one, with the rest that a sign-in needs, fits no cookie: it waits in its tab.
NEXT_LIMIT = 2_000

_BEGUN = b"grandbo sign-in begun 1"
_CARRIED = "carried."
_STATE_SHOWN = 16


@dataclass(frozen=True, slots=True)
class Doors:
    """
    The ways in, each with its limits.

    Attributes:
        admit: what a bearer token opens.
        identify: what verified claims of an issuer open.
        attempt: something that shows whether a stranger is genuine, counted against its address where it is not.
    """

    admit: Callable[[HTTPConnection, str], TenantMemory]
    identify: Callable[[HTTPConnection, Claims], TenantMemory]
    attempt: Callable[[HTTPConnection, Callable[[], Claims]], Claims]


class SigningIn:
    """Who comes in by a browser, and how; `page` makes the answer of a view."""

    def __init__(
        self, grandbo: Grandbo, doors: Doors, page: Callable[[Request, View, TenantMemory | None], Response]
    ) -> None:
        self._grandbo = grandbo
        self._doors = doors
        self._page = page
        self._sealer = Sealer(grandbo.settings.home)
        self._sessions = Sessions(grandbo.settings.home, grandbo.clock)
        self._public_url = (grandbo.settings.public_url or "").rstrip("/")
        self.is_https = self._public_url.startswith("https:")

    def routes(self) -> list[tuple[str, Callable[[Request, Values], Response], str]]:
        """Addresses, handlers, methods."""
        own: list[tuple[str, Callable[[Request, Values], Response], str]] = [
            ("/sign-in", self._show, "GET"),
            ("/sign-in", self._send, "POST"),
            ("/sign-out", self._leave, "POST"),
        ]
        if self._grandbo.sign_in is None:
            return own
        return [
            *own,
            ("/sign-in/issuer", self._lead, "GET"),
            (CALLBACK, self._called_back, "GET"),
            ("/sign-in/other-tab", self._point_back, "GET"),
        ]

    def memory_of(self, request: Request) -> TenantMemory:
        """What the header or the cookie opens. Raises `Unauthenticated`, `Unavailable`, `RateLimited`."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._doors.admit(request, token)
        kept = self._sessions.open(request.cookies.get(self._cookie))
        if isinstance(kept, Claims):
            return self._doors.identify(request, kept)
        return self._doors.admit(request, kept or "")

    def form(
        self,
        request: Request,
        *,
        next_url: str | None,
        carried: Values | None = None,
        error: GrandboError | None = None,
        status: int = 200,
        shown: dict[str, Any] | None = None,
    ) -> Response:
        """The sign-in, with what was typed before it in hidden fields."""
        wanted = local_path(next_url)
        stays = bool(carried) or len(wanted) > NEXT_LIMIT
        issuer = self._grandbo.tokens.issuer if self._grandbo.tokens else None
        known = {
            "next": wanted,
            "carried": carried.multi_items() if carried else [],
            "error": error,
            "takes_jwt": issuer is not None,
            "issuer": urlsplit(issuer).hostname if issuer and self._grandbo.sign_in else None,
            # What is typed stands in this tab and in no other place: it must not be left.
            "in_other_tab": stays,
            "lead": address("/sign-in/issuer", next="/sign-in/other-tab" if stays else wanted),
            "signed_out": False,
            "leaving": None,
        }
        return self._page(request, View("sign_in.html", {}, known | (shown or {}), status), None)

    def set_cookie(self, response: Response, name: str, value: str, seconds: int) -> None:
        """A cookie that scripts cannot read."""
        # Lax and not strict: a link that somebody sends must open the page, and not the sign-in.
        response.set_cookie(name, value, max_age=seconds, path="/", secure=self.is_https, httponly=True, samesite="lax")

    # -- by a form -----------------------------------------------------------------------------------------------------

    def _show(self, request: Request, _form: Values) -> Response:
        shown: dict[str, Any] = {}
        if request.query_params.get("signed_out"):
            sign_in = self._grandbo.sign_in
            shown = {
                "signed_out": True,
                "leaving": sign_in.leaving(f"{self._base(request)}/sign-in") if sign_in else None,
            }
        return self.form(request, next_url=request.query_params.get("next"), shown=shown)

    def _send(self, request: Request, form: Values) -> Response:
        check_origin(request)
        next_url = local_path(form.get("next"))
        carried = ImmutableMultiDict(
            [(name.removeprefix(_CARRIED), value) for name, value in form.multi_items() if name.startswith(_CARRIED)]
        )
        try:
            if form.get("step") == "go_on":
                memory, session = self._from_other_tab(request), None
            else:
                memory, session = self._opened_by(request, "".join((form.get("token") or "").split()))
        except GrandboError as error:
            request.state.error_code = error.code
            return self.form(request, next_url=next_url, carried=carried, error=error, status=error.http_status)
        if carried:
            again = View("send_again.html", {}, {"next": next_url, "carried": carried.multi_items()})
            response = self._page(request, again, memory)
        else:
            response = RedirectResponse(next_url, 303)
        if session is not None:
            self.set_cookie(response, self._cookie, *session)
        return response

    def _opened_by(self, request: Request, token: str) -> tuple[TenantMemory, tuple[str, int]]:
        tokens = self._grandbo.tokens
        if tokens is None or looks_like_key(token):
            return self._doors.admit(request, token), self._sessions.of_key(token)
        claims = self._doors.attempt(request, lambda: tokens.verify(token))
        return self._doors.identify(request, claims), self._sessions.of_claims(claims)

    def _from_other_tab(self, request: Request) -> TenantMemory:
        try:
            return self.memory_of(request)
        except Unauthenticated:
            raise Unauthenticated("You are not signed in yet: do so in the other tab first, then go on here.") from None

    def _leave(self, request: Request, _form: Values) -> Response:
        check_origin(request)
        response = RedirectResponse("/sign-in?signed_out=1", 303)
        self._forget_cookie(response, self._cookie)
        return response

    # -- at the issuer -------------------------------------------------------------------------------------------------

    def _lead(self, request: Request, _form: Values) -> Response:
        """To the issuer; what the way back needs goes along in a cookie of this one sign-in."""
        next_url = local_path(request.query_params.get("next"))
        if len(next_url) > NEXT_LIMIT:
            next_url = "/"
        sign_in = self._grandbo.sign_in
        assert sign_in is not None
        try:
            url, begun = sign_in.begin(self._base(request) + CALLBACK)
        except GrandboError as error:
            return self._failed(request, next_url, error)
        ends_at = int(self._grandbo.clock().timestamp()) + BEGUN_SECONDS
        kept = json.dumps({**asdict(begun), "next": next_url, "ends_at": ends_at}).encode()
        response = RedirectResponse(url, 303)
        self.set_cookie(response, self._begun_cookie(begun.state), self._sealer.seal(_BEGUN, kept), BEGUN_SECONDS)
        return response

    def _called_back(self, request: Request, _form: Values) -> Response:
        answer = dict(request.query_params)
        cookie = self._begun_cookie(answer.get("state", ""))
        next_url = "/"
        try:
            begun, next_url = self._begun(request.cookies.get(cookie))
            claims = self._finished(request, begun, answer)
            self._doors.identify(request, claims)
            response: Response = RedirectResponse(next_url, 303)
            self.set_cookie(response, self._cookie, *self._sessions.of_claims(claims))
        except Unauthenticated:
            response = self._failed(
                request,
                next_url,
                SignInRefused(
                    "You are signed in at the identity provider, but it names a tenant that is not here. Ask whoever "
                    "looks after it to correct that, and begin the sign-in again.",
                    reason="tenant",
                ),
            )
        except GrandboError as error:
            response = self._failed(request, next_url, error)
        self._forget_cookie(response, cookie)
        return response

    def _finished(self, request: Request, begun: Begun, answer: dict[str, str]) -> Claims:
        sign_in = self._grandbo.sign_in
        assert sign_in is not None
        return self._doors.attempt(request, lambda: sign_in.finish(begun, answer, self._base(request) + CALLBACK))

    def _begun(self, value: str | None) -> tuple[Begun, str]:
        plain = self._sealer.open(_BEGUN, value)
        if plain is None:
            raise SignInStale
        kept = json.loads(plain)
        next_url, ends_at = local_path(kept.pop("next")), kept.pop("ends_at")
        if self._grandbo.clock().timestamp() > ends_at:
            raise SignInStale
        return Begun(**kept), next_url

    def _failed(self, request: Request, next_url: str, error: GrandboError) -> Response:
        request.state.error_code = error.code
        return self.form(request, next_url=next_url, error=error, status=error.http_status)

    def _point_back(self, request: Request, _form: Values) -> Response:
        try:
            memory = self.memory_of(request)
        except Unauthenticated:
            raise NotFound from None
        return self._page(request, View("other_tab.html", {}), memory)

    # -- cookies -------------------------------------------------------------------------------------------------------

    @property
    def _cookie(self) -> str:
        return "__Host-grandbo_session" if self.is_https else "grandbo_session"

    def _begun_cookie(self, state: str) -> str:
        # One for each sign-in: two that are begun in two tabs must not undo one another.
        shown = "".join(c for c in state[:_STATE_SHOWN] if c.isascii() and (c.isalnum() or c in "-_"))
        return f"{'__Host-' if self.is_https else ''}grandbo_sign_in_{shown}"

    def _forget_cookie(self, response: Response, name: str) -> None:
        response.delete_cookie(name, path="/", secure=self.is_https, httponly=True, samesite="lax")

    def _base(self, request: Request) -> str:
        return self._public_url or str(request.base_url).rstrip("/")


def local_path(given: str | None) -> str:
    """An address of this service to go on to; its start page for anything else."""
    if not given or not given.startswith("/") or given.startswith(("//", "/\\")) or "\\" in given:
        return "/"
    parts = urlsplit(given)
    is_plain = not parts.scheme and not parts.netloc and given.isprintable() and given.isascii()
    return given if is_plain else "/"
