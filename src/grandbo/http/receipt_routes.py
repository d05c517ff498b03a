"""`/v1/receipts`: what was answered, to whom, and the proof that it would be answered again."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from grandbo.errors import InvalidInput, NotFound
from grandbo.http.body import read_json_body
from grandbo.http.entry_schemas import ChangeDocument
from grandbo.http.entry_verbs import parse_id
from grandbo.http.idempotency import REPLAYED, IdempotencyKey, command_id_of
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.http.problems import MEDIA_TYPE
from grandbo.http.recall_schemas import ReceiptDocument, ReceiptsDocument, ReplayDocument, ReplayRequestDocument
from grandbo.http.schemas import ProblemDocument, schema_of
from grandbo.http.submission_schemas import FeedbackDocument
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.importing import parse_json
from grandbo.recall.ledger import DEFAULT_PAGE

_ReceiptId = Annotated[str, Path(json_schema_extra={"format": "uuid"})]
_MEANING = {
    404: "There is no such receipt or entry in this tenant, or it is not the caller's to see.",
    409: "The receipt cannot be replayed as things stand; the problem says why.",
}


def receipt_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the receipts of one memory."""
    routes = APIRouter(prefix="/v1/receipts")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.get(
        "",
        operation_id="list_receipts",
        summary="Receipts, newest first",
        response_class=JSONResponse,
        responses={200: answers(ReceiptsDocument, "A page."), **_problems(401, 403, 404, 421, 422, 503)},
    )
    def list_receipts(
        memory: Caller,
        entry: Annotated[UUID | None, Query(description="Only answers that held this entry: who was told.")] = None,
        limit: Annotated[int | None, Query(description="1 to 500; 50 unless given.")] = None,
        after: Annotated[UUID | None, Query(description="The `next` of the page before.")] = None,
    ) -> Response:
        """Those made for tiers that the caller sees, without matches that he does not."""
        found = memory.receipts(entry_id=entry, limit=limit, after=after)
        more = found[-1]["receipt_id"] if len(found) == (limit or DEFAULT_PAGE) else None
        return JSONResponse({"receipts": found, "next": more})

    @routes.get(
        "/{receipt_id}",
        operation_id="show_receipt",
        summary="One receipt",
        response_class=JSONResponse,
        responses={200: answers(ReceiptDocument, "The receipt."), **_problems(401, 403, 404, 421, 422, 503)},
    )
    def show_receipt(memory: Caller, receipt_id: _ReceiptId) -> Response:
        """Position, instant, principal, parameters, and what was returned. Never the topic."""
        return JSONResponse(memory.receipt(_id(receipt_id)))

    @routes.post(
        "/{receipt_id}/replay",
        operation_id="replay_receipt",
        summary="Ask again where the receipt was made, and compare",
        response_class=JSONResponse,
        responses={
            200: answers(ReplayDocument, "Equal, or what differs."),
            **_problems(400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(ReplayRequestDocument, "The topic that was asked."),
    )
    def replay_receipt(memory: Caller, receipt_id: _ReceiptId, body: Body) -> Response:
        """At the receipt's position, instant, parameters, tiers and cutoff."""
        document = parse_json(body)
        if not isinstance(document, dict) or set(document) != {"topic"}:
            raise InvalidInput("A replay is an object with topic and nothing else.", field="topic")
        return JSONResponse(memory.replay_receipt(_id(receipt_id), document["topic"]).as_dict())

    @routes.post(
        "/{receipt_id}/feedback",
        operation_id="give_feedback",
        summary="Say what became of one entry of an answer",
        response_class=JSONResponse,
        responses={
            200: answers(ChangeDocument, "It was kept, or it had been said already.") | REPLAYED,
            **_problems(400, 401, 403, 404, 408, 413, 415, 421, 422, 503),
            409: problems(409)[409],
        },
        openapi_extra=json_body(FeedbackDocument, "Which entry, and the verdict."),
    )
    def give_feedback(
        memory: Caller, receipt_id: _ReceiptId, body: Body, request: Request, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Of one's own answers; of anybody's for who may audit. Another verdict takes the place of the one before."""
        given = _feedback(parse_json(body))
        changed = memory.give_feedback(
            _id(receipt_id),
            _id(given["entry_id"]),
            given["verdict"],
            note=given.get("note"),
            command_id=command_id_of(memory, request, idempotency_key),
        )
        return JSONResponse(
            {**changed.acknowledgement.as_dict(), "appended": changed.appended},
            headers={"Idempotency-Replayed": "true"} if changed.replayed else None,
        )

    return routes


def _feedback(document: object) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise InvalidInput("Feedback is an object with entry_id, verdict and perhaps note.")
    for name in document:
        if name not in FeedbackDocument.model_fields:
            raise InvalidInput(f"{name[:100]}: known are entry_id, verdict, note.", field=name)
    for name in ("entry_id", "verdict"):
        if document.get(name) is None:
            raise InvalidInput(f"{name}: it is required.", field=name)
    return document


def _id(given: object) -> UUID:
    """What is no id is no receipt: the same answer as for one that is not there."""
    found = parse_id(given)
    if found is None:
        raise NotFound
    return found


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    known = problems(*(status for status in statuses if status not in _MEANING))
    content = {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}}
    own: dict[int | str, dict[str, Any]]
    own = {s: {"description": _MEANING[s], "content": content} for s in statuses if s in _MEANING}
    return {**known, **own}
