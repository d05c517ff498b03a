"""`/v1/events`, `/v1/audit/verify`, `/v1/audit/checkpoints`: the log listed, checked and signed."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

import asyncio
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response, StreamingResponse

from grandbo.errors import InvalidInput
from grandbo.events.listing import COLUMNS, EventPage
from grandbo.events.listing_lines import csv_lines, json_lines
from grandbo.http.health import Readiness
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import problems
from grandbo.library import Grandbo, TenantMemory

DEFAULT_PAGE = 100
MAX_PAGE = 1_000
LONGEST_WAIT = 60
# Between two looks at the head; nothing is held in between, neither a connection nor a thread.
LOOK_SECONDS = 0.5
# Beyond so many that wait in this process, one is answered at once, with what there is.
MOST_WAITING = 200
# Each piece of a stream takes a turn of a thread.
LINES_AT_ONCE = 500
JSON_LINES = "application/jsonl"
CSV = "text/csv"

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer", "minimum": 0}
_NUMBERS = ("position", "stream_version", "schema_version")
_OPTIONAL = ("actor", "subject_id", "correlation_id", "causation_id")
# A name would stand in the URLs that proxies log: over HTTP an actor is asked for by reference.
_Actor = Annotated[
    str | None,
    Query(
        pattern=r"^(human|agent|hook|system):[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        description="Who did it, as `type:id`.",
    ),
]
_Position = Annotated[int, Query(ge=0, lt=2**62, description="Go on behind this position: the `next` of a page.")]
_Limit = Annotated[
    int | None,
    Query(
        ge=1, le=MAX_PAGE, description=f"At most so many; {DEFAULT_PAGE} of a page, and all of a stream, unless given."
    ),
]
_Time = Annotated[str | None, Query(description="RFC 3339 with a zone, or a date. `since` is in the range.")]


def audit_routes(grandbo: Grandbo, readiness: Readiness) -> APIRouter:
    """The routes of the log of one memory."""
    routes = APIRouter(prefix="/v1")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    waiting = _Waiting(readiness)

    @routes.get(
        "/events",
        operation_id="list_events",
        summary="Events, oldest first",
        response_class=JSONResponse,
        responses={200: _page_or_stream(), **problems(401, 403, 421, 422, 503)},
    )
    async def list_events(
        request: Request,
        memory: Caller,
        actor: _Actor = None,
        event_type: Annotated[str | None, Query(alias="type", description="What was done.")] = None,
        entry: Annotated[UUID | None, Query(description="To which entry.")] = None,
        since: _Time = None,
        until: _Time = None,
        after: _Position = 0,
        limit: _Limit = None,
        bodies: Annotated[bool, Query(description="Also what was written, to who sees every tier.")] = False,
        wait: Annotated[
            int, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for the first event, where there is none.")
        ] = 0,
        form: Annotated[
            Literal["json", "jsonl", "csv"],
            Query(alias="format", description="A page; or, streamed, all up to the head of this moment."),
        ] = "json",
    ) -> Response:
        """
        Who did what, to which entry, when. Positions have no gaps, so pages miss nothing: go on `after` the `position`
        of this page, with `wait`, and each event comes once, in order. A stream that breaks off lacks its last chunk.
        """
        wanted = {"actor": actor, "event_type": event_type, "entry_id": entry, "since": since, "until": until}
        if form != "json":
            if wait:
                raise InvalidInput("wait: only a page waits; leave `format` out, or `wait`.", field="wait")
            if request.scope["http_version"] == "1.0":
                raise InvalidInput(
                    "format: over HTTP/1.0 nobody could tell a stream that broke off from a whole one; ask for it over "
                    "HTTP/1.1 (a proxy in front may have to be told), or for pages.",
                    field="format",
                )
            return await run_in_threadpool(_stream, memory, form, bodies, {**wanted, "after": after, "limit": limit})
        asked: dict[str, Any] = {**wanted, "limit": limit or DEFAULT_PAGE, "bodies": bodies}
        page = await run_in_threadpool(memory.page_of_events, **asked, after=after)
        if not page.events and wait:
            page = await waiting.for_events(memory, asked, page, wait)
        return JSONResponse(page.as_dict())

    @routes.get(
        "/audit/verify",
        operation_id="verify_log",
        summary="Whether the log is what was written",
        response_class=JSONResponse,
        responses={200: _answer("Sound, or the first bad position.", _verification()), **_audit_problems()},
    )
    def verify_log(memory: Caller, start: Annotated[int, Query(alias="from", ge=1, lt=2**62)] = 1) -> Response:
        """Every event from the position on, the head, and the checkpoints where the service has the notary's key."""
        found = memory.verify(start=start)
        return JSONResponse({"ok": found.first_bad is None, "tenants": [found.as_dict()]})

    @routes.post(
        "/audit/checkpoints",
        operation_id="sign_checkpoint",
        summary="Sign the log as it stands",
        status_code=201,
        response_class=JSONResponse,
        responses={
            201: _answer("A new checkpoint.", _checkpoint()),
            200: _answer("Nothing was appended since, and the last one says all that was asked for.", _checkpoint()),
            **_audit_problems(),
        },
    )
    def sign_checkpoint(
        memory: Caller,
        quick: Annotated[bool, Query(description="Without the projections' digest: no replay.")] = False,
    ) -> Response:
        """Keep the note where nobody who runs the database can change it."""
        signed = memory.checkpoint(projections=not quick)
        return JSONResponse(signed.as_dict(), 201 if signed.created else 200)

    return routes


class _Waiting:
    """Those who wait for an event. Only the head is looked at until it has moved."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self._count = 0

    async def for_events(self, memory: TenantMemory, asked: dict[str, Any], page: EventPage, wait: int) -> EventPage:
        """The first page that holds something, or the last that held nothing when the time was over."""
        if self._count >= MOST_WAITING:
            return page
        ends_at = time.monotonic() + wait
        self._count += 1
        try:
            while not page.events and not self._readiness.is_stopping and time.monotonic() < ends_at:
                await asyncio.sleep(min(LOOK_SECONDS, max(ends_at - time.monotonic(), 0)))
                if await run_in_threadpool(memory.head_position) > page.position:
                    page = await run_in_threadpool(memory.page_of_events, **asked, after=page.position)
        finally:
            self._count -= 1
        return page


def _stream(memory: TenantMemory, form: str, bodies: bool, wanted: dict[str, Any]) -> Response:
    """The answer begins once the first lines are there: what goes wrong before is told as a problem."""
    found = memory.events(**wanted, bodies=bodies)
    pieces = _pieces(json_lines(found) if form == "jsonl" else csv_lines(found, bodies=bodies))
    return StreamingResponse(chain([next(pieces, "")], pieces), media_type=JSON_LINES if form == "jsonl" else CSV)


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    rest = iter(lines)
    while piece := "".join(islice(rest, LINES_AT_ONCE)):
        yield piece


def _audit_problems() -> dict[int | str, dict[str, Any]]:
    return problems(401, 403, 421, 422, 503)


def _answer(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _page_or_stream() -> dict[str, Any]:
    streams = {form: {"schema": {"type": "string"}} for form in (JSON_LINES, CSV)}
    answer = _answer("A page; or, with `format`, its events as lines.", _page())
    return {**answer, "content": {**answer["content"], **streams}}


def _page() -> dict[str, Any]:
    fields = {
        name: _NUMBER if name in _NUMBERS else _or_null(_TEXT) if name in _OPTIONAL else _TEXT for name in COLUMNS
    }
    bodies = {
        "body_state": {"type": "string", "enum": ["kept", "erased", "encrypted"]},
        "body": _or_null({"type": "object"}),
    }
    return _object(
        {"events": {"type": "array", "items": _object(fields, bodies)}, "next": _or_null(_NUMBER), "position": _NUMBER}
    )


def _verification() -> dict[str, Any]:
    fault = _object({"position": _NUMBER, "what": _TEXT})
    tenant = _object({"tenant_id": _TEXT, "events": _NUMBER, "head": _NUMBER, "first_bad": _or_null(fault)})
    return _object({"ok": {"type": "boolean"}, "tenants": {"type": "array", "items": tenant}})


def _checkpoint() -> dict[str, Any]:
    texts = dict.fromkeys(("tenant_id", "origin", "root", "note"), _TEXT)
    lines = {"type": "array", "items": _TEXT}
    return _object({**texts, "size": _NUMBER, "extensions": lines, "created": {"type": "boolean"}})
