"""`/v1/entries/{id}/impact` and `/v1/sources/impact`: what rests on it, and putting all of it away."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from grandbo.errors import NotFound
from grandbo.http.body import read_json_body
from grandbo.http.entry_schemas import ReasonDocument
from grandbo.http.entry_verbs import fields_in, parse_id
from grandbo.http.idempotency import REPLAYED, IdempotencyKey, command_id_of
from grandbo.http.impact_schemas import (
    ImpactDocument,
    ImpactQuarantineDocument,
    ImpactReleaseDocument,
    SourceDocument,
    SourceReasonDocument,
)
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.http.problems import MEDIA_TYPE
from grandbo.http.schemas import ProblemDocument, schema_of
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.containment import Contained
from grandbo.memory.impact import Seed
from grandbo.memory.importing import parse_json

_EntryId = Annotated[str, Path(json_schema_extra={"format": "uuid"})]
_MEANING = {
    404: "There is no such entry in this tenant, or it is not the caller's to see.",
    409: "More rests on it than one command may touch, or the Idempotency-Key was used before with other content.",
}
_VERBS: dict[str, tuple[str, type[BaseModel]]] = {
    "quarantine": ("Put all that rests on it away, in one command", ImpactQuarantineDocument),
    "release": ("Let out what the quarantine of this impact put away", ImpactReleaseDocument),
}


def impact_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the impacts of one memory."""
    routes = APIRouter(prefix="/v1")
    # In this order: who may not enter is told so before the body is read.
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]
    impact = answers(ImpactDocument, "Members with reasons, who was told, and what may be affected.")

    @routes.get(
        "/entries/{entry_id}/impact",
        operation_id="show_entry_impact",
        summary="All that rests on an entry, and who was told any of it",
        response_class=JSONResponse,
        responses={200: impact, **_problems(401, 403, 404, 409, 421, 503)},
    )
    def entry_impact(memory: Caller, entry_id: _EntryId) -> Response:
        """By evidence, corroboration, link, and what those who were told recorded for the same incident."""
        return JSONResponse(memory.impact(_entry(entry_id)))

    @routes.post(
        "/sources/impact",
        operation_id="show_source_impact",
        summary="All that rests on a source, and who was told any of it",
        response_class=JSONResponse,
        responses={200: impact, **_problems(400, 401, 403, 408, 409, 413, 415, 421, 422, 503)},
        openapi_extra=json_body(SourceDocument, "The URI, exactly as the evidence names it."),
    )
    def source_impact(memory: Caller, body: Body) -> Response:
        """Begins at every entry whose evidence names the URI. It is in the body, so that no log of URLs has it."""
        given = fields_in(SourceDocument, "The impact of a source", parse_json(body))
        return JSONResponse(memory.source_impact(given["uri"]))

    def of_entry(verb: str) -> Callable[..., Response]:
        def change(
            memory: Caller, body: Body, request: Request, entry_id: _EntryId, idempotency_key: IdempotencyKey = None
        ) -> Response:
            command_id = command_id_of(memory, request, idempotency_key)
            given = fields_in(ReasonDocument, f"To {verb}", parse_json(body))
            return _answer(_ACTS[verb](memory, _entry(entry_id), given["reason"], command_id))

        return change

    def of_source(verb: str) -> Callable[..., Response]:
        def change(memory: Caller, body: Body, request: Request, idempotency_key: IdempotencyKey = None) -> Response:
            command_id = command_id_of(memory, request, idempotency_key)
            given = fields_in(SourceReasonDocument, f"To {verb}", parse_json(body))
            return _answer(_ACTS[verb](memory, Seed.source(given["uri"]), given["reason"], command_id))

        return change

    for verb in _VERBS:
        routes.post(
            f"/entries/{{entry_id}}/impact/{verb}",
            operation_id=f"{verb}_entry_impact",
            **_declared(verb, ReasonDocument, 404),
        )(of_entry(verb))
        routes.post(
            f"/sources/impact/{verb}",
            operation_id=f"{verb}_source_impact",
            **_declared(verb, SourceReasonDocument),
        )(of_source(verb))
    return routes


_ACTS: dict[str, Callable[..., Contained]] = {
    "quarantine": lambda memory, seed, reason, command_id: memory.quarantine_impact(
        seed, reason=reason, command_id=command_id
    ),
    "release": lambda memory, seed, reason, command_id: memory.release_impact(
        seed, reason=reason, command_id=command_id
    ),
}


def _declared(verb: str, document: type[BaseModel], *statuses: int) -> dict[str, Any]:
    summary, answered = _VERBS[verb]
    return {
        "summary": summary,
        "description": "Durable when answered. The same Idempotency-Key with the same content is the first "
        "acknowledgement again, with `Idempotency-Replayed: true`.",
        "response_class": JSONResponse,
        "responses": {
            200: answers(answered, "It was done, or there was nothing to change.") | REPLAYED,
            **_problems(400, 401, 403, 408, 409, 413, 415, 421, 422, 503, *statuses),
        },
        "openapi_extra": json_body(document, "Why; it stands in the history of each entry."),
    }


def _answer(contained: Contained) -> Response:
    headers = {"Idempotency-Replayed": "true"} if contained.replayed else None
    return JSONResponse(contained.as_dict(), headers=headers)


def _entry(value: str) -> Seed:
    """What is no id is no entry: the same answer as for one that is not there."""
    found = parse_id(value)
    if found is None:
        raise NotFound
    return Seed(found)


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}}
    own: dict[int | str, dict[str, Any]]
    own = {status: {"description": _MEANING[status], "content": content} for status in statuses if status in _MEANING}
    return problems(*(status for status in statuses if status not in own)) | own
