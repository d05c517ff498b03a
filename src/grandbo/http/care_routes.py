"""`/v1/due`, `/v1/recurrences`, `/v1/usage`, `/v1/contradictions/detect`: looking after what is stored."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response

from grandbo.errors import InvalidInput, LimitExceeded, NotFound
from grandbo.http.body import read_json_body
from grandbo.http.care_schemas import (
    VERIFY_LIMIT,
    DetectedDocument,
    DueDocument,
    RecurrencesDocument,
    SweptDocument,
    UsageDocument,
    VerifyResultsDocument,
    VerifyRowsDocument,
)
from grandbo.http.entry_verbs import fields_in, parse_id
from grandbo.http.idempotency import IdempotencyKey, command_id_of
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.http.problems import MEDIA_TYPE
from grandbo.http.schemas import ProblemDocument, schema_of
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.importing import parse_json

_NOT_THERE: dict[int | str, dict[str, Any]] = {
    404: {
        "description": "There is no such entry in this tenant, or it is not the caller's to see.",
        "content": {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}},
    }
}


def care_routes(grandbo: Grandbo) -> APIRouter:
    """The routes that keep one memory in good order."""
    routes = APIRouter(prefix="/v1")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.get(
        "/due",
        operation_id="list_due",
        summary="What is due: overdue first",
        response_class=JSONResponse,
        responses={200: answers(DueDocument, "A page."), **problems(401, 403, 421, 422, 503)},
    )
    def list_due(
        memory: Caller,
        within: Annotated[str, Query(description="Hours, days or weeks: 48h, 7d, 2w.")] = "7d",
        limit: Annotated[int | None, Query(description="1 to 500; 50 unless given.")] = None,
        after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
    ) -> Response:
        """Reviews that are overdue or come up, expiries that come up, and expiries that the sweep has not noted."""
        return JSONResponse(memory.due(within=within, limit=limit, after=after).as_dict())

    @routes.post(
        "/due/verify",
        operation_id="verify_due",
        summary="Say of many entries that they were checked",
        response_class=JSONResponse,
        responses={
            200: answers(VerifyResultsDocument, "What became of each row."),
            **problems(400, 401, 403, 408, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(VerifyRowsDocument, "The entries, each with its reason."),
    )
    def verify(memory: Caller, body: Body, request: Request, idempotency_key: IdempotencyKey = None) -> Response:
        """A row that cannot be carried out does not stop the rest. With an Idempotency-Key a retry changes nothing."""
        command_id = command_id_of(memory, request, idempotency_key)
        rows = fields_in(VerifyRowsDocument, "To verify", parse_json(body))["rows"]
        if not isinstance(rows, list):
            raise InvalidInput("rows: it must be a list.", field="rows")
        if len(rows) > VERIFY_LIMIT:
            raise LimitExceeded(
                f"rows: {len(rows)} rows, at most {VERIFY_LIMIT} are allowed.",
                field="rows",
                limit=VERIFY_LIMIT,
                length=len(rows),
            )
        results = list(memory.verify_due(rows, command_id=command_id))
        return JSONResponse({"results": results, "failed": sum(not result["ok"] for result in results)})

    @routes.post(
        "/due/sweep",
        operation_id="sweep_expired",
        summary="Put on the record what has expired",
        response_class=JSONResponse,
        responses={200: answers(SweptDocument, "How many."), **problems(401, 403, 421, 503)},
    )
    def sweep(memory: Caller) -> Response:
        """No answer depends on it: what has expired is decided by its time."""
        return JSONResponse({"noted": memory.sweep_expired()})

    @routes.post(
        "/contradictions/detect",
        operation_id="detect_contradictions",
        summary="Look for contradictions among entries that were not compared yet",
        response_class=JSONResponse,
        responses={200: answers(DetectedDocument, "What was done, and what is left."), **problems(401, 403, 421, 503)},
    )
    def detect(memory: Caller) -> Response:
        """A finding waits as a candidate; only a person disputes. Up to 200 entries at a time."""
        return JSONResponse(memory.detect_contradictions().as_dict())

    @routes.get(
        "/recurrences",
        operation_id="list_recurrences",
        summary="How often what was learned has happened again",
        response_class=JSONResponse,
        responses={
            200: answers(RecurrencesDocument, "Counts by entry, service and month."),
            **problems(401, 403, 421, 422, 503),
            **_NOT_THERE,
        },
    )
    def recurrences(
        memory: Caller,
        entry_id: Annotated[str | None, Query(json_schema_extra={"format": "uuid"})] = None,
        service: Annotated[str | None, Query(description="Only of this service.")] = None,
    ) -> Response:
        """An occurrence is an incident: the one that taught an entry, and each that supported it since."""
        found = parse_id(entry_id)
        if entry_id is not None and found is None:
            raise NotFound
        return JSONResponse(memory.recurrences(entry_id=found, service=service))

    @routes.get(
        "/usage",
        operation_id="show_usage",
        summary="How the memory is used",
        response_class=JSONResponse,
        responses={200: answers(UsageDocument, "Counts."), **problems(401, 403, 421, 422, 503)},
    )
    def usage(
        memory: Caller, days: Annotated[int | None, Query(description="1 to 366; 30 unless given.")] = None
    ) -> Response:
        """Counts of entries, candidates and recalls within the caller's tiers, and what waits."""
        return JSONResponse(memory.usage(days=days))

    return routes
