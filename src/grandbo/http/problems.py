"""Every error as `application/problem+json` (RFC 9457), with a stable `code`, and without a value that was sent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from grandbo.errors import EmbedderTransient, GrandboError, InvalidInput, RateLimited
from grandbo.http.errors import MethodNotAllowed, RouteUnknown
from grandbo.logs import describe_exception

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:grandbo:problem:"
RETRY_AFTER_SECONDS = 2
# A body of nothing but unknown fields would otherwise get an answer many times its size.
ERRORS_SHOWN = 20
_NAME_SHOWN = 100
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")

log = structlog.get_logger(__name__)


def challenge(metadata_url: str | None) -> str:
    """What a 401 says of how to come in; with where to read which issuer gives tokens, where there is one."""
    return 'Bearer realm="grandbo"' + (f', resource_metadata="{metadata_url}"' if metadata_url else "")


def problem(
    error: GrandboError, request_id: str, headers: Mapping[str, str] | None = None, *, status: int | None = None
) -> Response:
    """The answer that says what went wrong, where, and what to do; `status` goes before the error's own."""
    status = status or error.http_status
    extra = dict(headers or {})
    if status == 401:
        extra.setdefault("WWW-Authenticate", challenge(None))
    if status == 503 or isinstance(error, RateLimited):
        extra["Retry-After"] = str(_retry_after(error))
    body = {
        **_details(error),
        "type": TYPE_PREFIX + error.code,
        "title": error.code.replace("_", " ").capitalize(),
        "status": status,
        "code": error.code,
        "detail": error.message,
        "request_id": request_id,
    }
    # ASCII only: a field's name may hold half a surrogate pair, which has no bytes in UTF-8.
    content = json.dumps(body, ensure_ascii=True, default=str).encode("ascii")
    return Response(content, status, extra, MEDIA_TYPE)


def unexpected(error: Exception, request_id: str) -> Response:
    """A failure of ours: logged by type and place, told to the caller by request id alone."""
    log.error("request_failed", request_id=request_id, **describe_exception(error))
    return problem(GrandboError("This is a fault of the server; its log has this request id."), request_id)


def broken_off(error: Exception, request_id: str, state: dict[str, Any]) -> int:
    """The status that an answer comes to which has begun and cannot be ended; logged, because nothing can be told."""
    # What a route raises by then is wrapped by the router, which finds that it cannot answer it.
    known = next((one for one in (error, error.__cause__) if isinstance(one, GrandboError)), None)
    if known is None:
        log.error("request_failed", request_id=request_id, **describe_exception(error))
        return GrandboError.http_status
    state["error_code"] = known.code
    log.warning("answer_broken_off", request_id=request_id, code=known.code)
    return known.http_status


def install_handlers(app: FastAPI, metadata_url: str | None = None) -> None:
    """Answer in this form to whatever routes and router raise."""

    def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, GrandboError)
        request.state.error_code = error.code
        headers = {"WWW-Authenticate": challenge(metadata_url)} if error.http_status == 401 else None
        return problem(error, request_id_of(request), headers)

    def routers(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        made = _routers_error(error.status_code)
        request.state.error_code = made.code
        allowed = {"Allow": ", ".join(_methods(request))} if error.status_code == MethodNotAllowed.http_status else {}
        return problem(made, request_id_of(request), {**(error.headers or {}), **allowed}, status=error.status_code)

    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        request.state.error_code = InvalidInput.code
        return problem(_explained(error), request_id_of(request))

    app.add_exception_handler(GrandboError, ours)
    app.add_exception_handler(HTTPException, routers)
    app.add_exception_handler(RequestValidationError, invalid)


def request_id_of(request: Request) -> str:
    """The id that the outermost layer gave this request."""
    return str(request.state.request_id)


def _methods(request: Request) -> list[str]:
    """All methods of an address: the router names those of the first route alone, where each has one of its own."""
    scope = {"type": "http", "path": request.url.path, "root_path": "", "headers": []}
    routes = request.app.router.routes

    def takes(method: str) -> bool:
        return any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)

    return [method for method in _METHODS if takes(method)]


def _details(error: GrandboError) -> dict[str, Any]:
    details = dict(error.details)
    field = details.get("field")
    if isinstance(field, str):
        details["field"] = _shortened(field)
        details.setdefault("errors", [{"field": field, "code": error.code, "message": error.message}])
    errors = details.get("errors")
    if isinstance(errors, list):
        details["errors"] = [{**item, "field": _shortened(item["field"])} for item in errors[:ERRORS_SHOWN]]
        if len(errors) > ERRORS_SHOWN:
            details["errors_omitted"] = len(errors) - ERRORS_SHOWN
    return details


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_SHOWN else name[:_NAME_SHOWN] + "…"


def _retry_after(error: GrandboError) -> int:
    asked = error.retry_after if isinstance(error, EmbedderTransient | RateLimited) else None
    return RETRY_AFTER_SECONDS if asked is None else max(1, math.ceil(asked))


def _routers_error(status: int) -> GrandboError:
    if status == RouteUnknown.http_status:
        return RouteUnknown()
    if status == MethodNotAllowed.http_status:
        return MethodNotAllowed()
    return InvalidInput("The request cannot be served as it is.") if status < 500 else GrandboError()


def _explained(error: RequestValidationError) -> InvalidInput:
    problems = [
        {"field": ".".join(str(part) for part in item["loc"]), "code": InvalidInput.code, "message": str(item["msg"])}
        for item in error.errors()
    ]
    first = problems[0]
    return InvalidInput(f"{first['field']}: {first['message']}.", field=first["field"], errors=problems)
