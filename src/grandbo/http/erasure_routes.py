"""`/v1/erasures`: one asks, another confirms, and the certificate."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Path
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from grandbo.errors import InvalidInput, NotFound
from grandbo.events.erasures import ErasureReason
from grandbo.http.body import read_json_body
from grandbo.http.entry_schemas import Id, Time
from grandbo.http.entry_verbs import parse_id
from grandbo.http.fields import read_fields
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.http.schemas import Document
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.erasing_revisions import REVISIONS_LIMIT
from grandbo.memory.importing import parse_json

_ErasureId = Annotated[str, Path(json_schema_extra={"format": "uuid"})]


class ErasureRequestDocument(Document):
    """Which entry, and why as a code; words could hold what is to go."""

    model_config = ConfigDict(extra="forbid", title="ErasureRequest")

    entry_id: Id
    reason: ErasureReason
    keeps_current: bool | None = False
    revisions: Annotated[list[Annotated[int, Field(ge=1)]], Field(max_length=REVISIONS_LIMIT)] | None = Field(
        default=None, description="These revisions alone; a tombstone stands in the place of each."
    )


class StillInDocument(Document):
    """Another revision, and its fields in which some of the same words stand."""

    model_config = ConfigDict(extra="forbid", title="StillIn")

    revision: int = Field(ge=1)
    fields: list[str]


class ErasureDocument(Document):
    """A request for an entry or a subject, and once it is confirmed what went and the certificate."""

    model_config = ConfigDict(extra="forbid", title="Erasure")

    erasure_id: Id
    entry_id: Id | None
    subject_id: Id | None
    state: Literal["requested", "erased", "certified"]
    reason: ErasureReason
    keeps_current: bool
    revisions: list[int] | None
    still_in: list[StillInDocument] | None = Field(
        description="Of an erasure of single revisions: in which others some of the same words stand."
    )
    requested_by: str
    requested_at: Time
    confirmed_by: str | None
    erased_at: Time | None
    position: int | None
    hash: str | None
    outcome: dict[str, Any] | None
    certificate: str | None


class ErasuresDocument(Document):
    """All of them, oldest first."""

    model_config = ConfigDict(extra="forbid", title="Erasures")

    erasures: list[ErasureDocument]


ERASURE_DOCUMENTS: tuple[type[BaseModel], ...] = (ErasureRequestDocument, ErasureDocument, ErasuresDocument)


def erasure_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of erasure."""
    routes = APIRouter(prefix="/v1/erasures")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.get(
        "",
        operation_id="list_erasures",
        summary="Requests, and what became of them",
        response_class=JSONResponse,
        responses={200: answers(ErasuresDocument, "All of them."), **problems(401, 403, 421, 503)},
    )
    def list_erasures(memory: Caller) -> Response:
        """Oldest first; for who may audit."""
        return JSONResponse({"erasures": [item.as_dict() for item in memory.erasures()]})

    @routes.post(
        "",
        operation_id="request_erasure",
        summary="Ask for an entry to be erased",
        status_code=201,
        response_class=JSONResponse,
        responses={
            201: answers(ErasureDocument, "It waits for a second person."),
            **problems(400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(ErasureRequestDocument, "Which entry, and why."),
    )
    def request(memory: Caller, body: Body) -> Response:
        """Nothing is erased before somebody else has confirmed it."""
        known = ("entry_id", "reason", "keeps_current", "revisions")
        given = read_fields(parse_json(body), known, required=("entry_id", "reason"))
        entry = parse_id(given["entry_id"])
        if entry is None:
            raise InvalidInput("entry_id: it must be the id of an entry, a UUID.", field="entry_id")
        keeps = given.get("keeps_current", False)
        if not isinstance(keeps, bool):
            raise InvalidInput("keeps_current: it must be true or false.", field="keeps_current")
        named = given.get("revisions", [])
        if not isinstance(named, list):
            raise InvalidInput("revisions: it must be a list of numbers.", field="revisions")
        asked = memory.request_erasure(entry, given["reason"], keeps_current=keeps, revisions=named)
        return JSONResponse(asked.as_dict(), 201)

    @routes.post(
        "/{erasure_id}/confirm",
        operation_id="confirm_erasure",
        summary="Erase it, for good",
        response_class=JSONResponse,
        responses={200: answers(ErasureDocument, "It is gone."), **problems(401, 403, 404, 409, 421, 503)},
    )
    def confirm(memory: Caller, erasure_id: _ErasureId) -> Response:
        """By somebody else than who asked. Confirmed again it is the same answer."""
        return JSONResponse(memory.confirm_erasure(_id(erasure_id)).as_dict())

    @routes.delete(
        "/{erasure_id}",
        operation_id="cancel_erasure",
        summary="Take a request back",
        status_code=204,
        response_class=Response,
        responses={204: {"description": "It waits no more."}, **problems(401, 403, 404, 421, 503)},
    )
    def cancel(memory: Caller, erasure_id: _ErasureId) -> Response:
        """One that was not confirmed yet."""
        memory.cancel_erasure(_id(erasure_id))
        return Response(status_code=204)

    return routes


def _id(given: str) -> UUID:
    found = parse_id(given)
    if found is None:
        raise NotFound("There is no such request in this tenant.")
    return found
