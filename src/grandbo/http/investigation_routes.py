"""`/v1/investigations/{id}`, `/v1/context`: working notes, and recall in layers that are kept apart."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import JSONResponse, Response

from grandbo.errors import InvalidInput
from grandbo.http.body import read_json_body
from grandbo.http.fields import read_fields
from grandbo.http.investigation_schemas import (
    ClosedDocument,
    ContextDocument,
    LayeredDocument,
    NotedDocument,
    NoteDocument,
    WindowDocument,
)
from grandbo.http.memory_routes import PASSED_ON, caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.importing import parse_json
from grandbo.recall.budget import MAX_BUDGET, MIN_BUDGET
from grandbo.recall.layers import LAYERS

_Investigation = Annotated[str, Path(description="Any id; the first note begins it.", examples=["INC-7"])]
_CONTEXT_FIELDS = tuple(name for name in PASSED_ON if not name.startswith(("as_", "valid_")))


def investigation_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the investigations of one memory."""
    routes = APIRouter(prefix="/v1")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.post(
        "/investigations/{investigation_id}/notes",
        operation_id="add_note",
        summary="Note something down",
        status_code=201,
        response_class=JSONResponse,
        responses={
            201: answers(NotedDocument, "It is noted."),
            **problems(400, 401, 403, 408, 413, 415, 421, 422, 429, 503),
        },
        openapi_extra=json_body(NoteDocument, "What to note."),
    )
    def add_note(memory: Caller, body: Body, investigation_id: _Investigation) -> Response:
        """No part of the memory, and recalled nowhere but in its investigation."""
        given = read_fields(parse_json(body), ("text", "role"), required=("text",))
        return JSONResponse(memory.note(investigation_id, given["text"], role=given.get("role")).as_dict(), 201)

    @routes.get(
        "/investigations/{investigation_id}/window",
        operation_id="show_window",
        summary="The last notes within a budget of tokens",
        response_class=JSONResponse,
        responses={200: answers(WindowDocument, "The window."), **problems(401, 403, 421, 422, 503)},
    )
    def window(
        memory: Caller,
        investigation_id: _Investigation,
        budget: Annotated[int | None, Query(description=f"{MIN_BUDGET} to {MAX_BUDGET}; 2000 unless given.")] = None,
    ) -> Response:
        """The oldest are dropped first, long ones clipped with a mark; empty where nothing is noted."""
        return JSONResponse(memory.context_window(investigation_id, budget=budget).as_dict())

    @routes.delete(
        "/investigations/{investigation_id}",
        operation_id="close_investigation",
        summary="Forget its notes",
        response_class=JSONResponse,
        responses={200: answers(ClosedDocument, "They are gone."), **problems(401, 403, 421, 422, 503)},
    )
    def close(memory: Caller, investigation_id: _Investigation) -> Response:
        """Again changes nothing."""
        forgotten = memory.close_investigation(investigation_id)
        return JSONResponse({"investigation_id": investigation_id, "forgotten": forgotten})

    @routes.post(
        "/context",
        operation_id="recall_layers",
        summary="Recall in layers that are kept apart",
        response_class=JSONResponse,
        responses={
            200: answers(LayeredDocument, "The layers."),
            **problems(400, 401, 403, 408, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(ContextDocument, "The topic and the layers."),
    )
    def context(memory: Caller, body: Body) -> Response:
        """Each layer under its own heading and within its own budget."""
        known = ("topic", "layers", "budget", "investigation_id", *_CONTEXT_FIELDS)
        given = read_fields(parse_json(body), known, required=("topic",))
        if isinstance(given.get("layers"), list) and not all(name in LAYERS for name in given["layers"]):
            raise InvalidInput(f"layers: name some of {', '.join(LAYERS)}.", field="layers")
        return JSONResponse(memory.recall_layers(given.pop("topic"), **given).as_dict())

    return routes
