"""`/v1/stamps`: the spaces of vectors, how complete each is, and which of them recall uses."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from grandbo.http.body import read_json_body
from grandbo.http.fields import read_document
from grandbo.http.idempotency import IdempotencyKey, command_id_of
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.http.policy_routes import PolicyInForceDocument
from grandbo.http.preconditions import ETAG, IF_MATCH, expected_number, tag_of
from grandbo.http.problems import MEDIA_TYPE
from grandbo.http.schemas import SAYING, SAYING_TEXT, Document, ProblemDocument, schema_of
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.govern import REASON_LIMIT
from grandbo.memory.importing import parse_json
from grandbo.memory.policies import PolicyInForce

_MEANING = {
    409: "The space cannot be put into force, or out of it, or the Idempotency-Key was used with other content.",
    412: "The policy has changed since; the problem has both positions.",
    428: "The If-Match header is missing.",
}


class StampDocument(Document):
    """A space of vectors; `place` among those in force, null for one that recall does not use."""

    model_config = ConfigDict(extra="forbid", title="Stamp")

    stamp: str
    place: int | None
    cutoff_bp: int | None
    is_own: bool = Field(description="Whether the process that answers embeds in it.")
    is_filling: bool = Field(description="Whether it gets vectors that recall does not use yet.")
    entries: int
    embedded: int
    pending: int
    dead: int


class StampsDocument(Document):
    """All spaces, those in force first."""

    model_config = ConfigDict(extra="forbid", title="Stamps")

    stamps: list[StampDocument]


class StampUseDocument(Document):
    """Which space to put into force, and why."""

    model_config = ConfigDict(extra="forbid", title="StampUse", strict=True)

    stamp: str = Field(min_length=1, max_length=200, pattern=SAYING)
    cutoff_bp: int | None = Field(default=None, ge=1, le=20_000, description="Largest distance of a match.")
    reason: str = Field(min_length=1, max_length=REASON_LIMIT, pattern=SAYING_TEXT)


class StampRetireDocument(Document):
    """Which space to take out of force, and why."""

    model_config = ConfigDict(extra="forbid", title="StampRetire", strict=True)

    stamp: str = Field(min_length=1, max_length=200, pattern=SAYING)
    reason: str = Field(min_length=1, max_length=REASON_LIMIT, pattern=SAYING_TEXT)


STAMP_DOCUMENTS: tuple[type[BaseModel], ...] = (
    StampDocument,
    StampsDocument,
    StampUseDocument,
    StampRetireDocument,
)


def stamp_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the spaces of one memory."""
    routes = APIRouter(prefix="/v1/stamps")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]
    changed: dict[int | str, dict[str, Any]] = {
        200: answers(PolicyInForceDocument, "The policy as it is now.") | {"headers": ETAG},
        **_problems(400, 401, 403, 404, 408, 409, 412, 413, 415, 421, 422, 428, 503),
    }

    @routes.get(
        "",
        operation_id="list_stamps",
        summary="The spaces of vectors",
        response_class=JSONResponse,
        responses={200: answers(StampsDocument, "The spaces."), **problems(401, 403, 421, 503)},
    )
    def list_stamps(memory: Caller) -> Response:
        """How complete each is, and whether recall uses it. They are changed on the ETag of the policy."""
        found = [space.as_dict() for space in memory.stamps()]
        return JSONResponse({"stamps": found})

    @routes.post(
        "/use",
        operation_id="use_stamp",
        summary="Put a space into force",
        response_class=JSONResponse,
        responses=changed,
        openapi_extra={**json_body(StampUseDocument, "Which space."), "parameters": [IF_MATCH]},
    )
    def use(memory: Caller, body: Body, request: Request, idempotency_key: IdempotencyKey = None) -> Response:
        """Before the others; every entry must have its vectors there. If-Match is the position of the policy."""
        options = _options(memory, request, idempotency_key)
        asked = read_document(StampUseDocument, parse_json(body))
        return _answer(memory.use_stamp(asked.stamp, reason=asked.reason, cutoff_bp=asked.cutoff_bp, **options))

    @routes.post(
        "/retire",
        operation_id="retire_stamp",
        summary="Take a space out of force",
        response_class=JSONResponse,
        responses=changed,
        openapi_extra={**json_body(StampRetireDocument, "Which space."), "parameters": [IF_MATCH]},
    )
    def retire(memory: Caller, body: Body, request: Request, idempotency_key: IdempotencyKey = None) -> Response:
        """When no process embeds in it any more. If-Match is the position of the policy."""
        options = _options(memory, request, idempotency_key)
        asked = read_document(StampRetireDocument, parse_json(body))
        return _answer(memory.retire_stamp(asked.stamp, reason=asked.reason, **options))

    return routes


def _options(memory: TenantMemory, request: Request, idempotency_key: str | None) -> dict[str, Any]:
    return {
        "expected_position": expected_number(request),
        "command_id": command_id_of(memory, request, idempotency_key),
    }


def _answer(changed: PolicyInForce) -> Response:
    return JSONResponse(changed.as_dict(), headers={"ETag": tag_of(changed.position)})


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}}
    own = {status: {"description": _MEANING[status], "content": content} for status in statuses if status in _MEANING}
    return problems(*(status for status in statuses if status not in _MEANING)) | own
