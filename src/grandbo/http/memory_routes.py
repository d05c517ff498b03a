"""`/v1/findings` and `/v1/recall`: from a credential and a body to a verb of the library, and back."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request, Security
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from grandbo.errors import GrandboError, InvalidInput
from grandbo.http.admission import Admission
from grandbo.http.body import read_json_body
from grandbo.http.errors import IdempotencyKeyMissing
from grandbo.http.idempotency import REPLAYED, IdempotencyKey, command_id_of
from grandbo.http.metrics import Metrics
from grandbo.http.openapi import answers, json_body, one_of, problems
from grandbo.http.recall_schemas import AnswerDocument, DifferenceDocument, RecallDocument
from grandbo.http.rendered_schemas import RenderedAnswerDocument
from grandbo.http.schemas import AcknowledgementDocument, FindingDocument
from grandbo.http.submission_schemas import NewEntryDocument
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.finding import parse_finding
from grandbo.memory.importing import parse_json
from grandbo.memory.record import Recorded
from grandbo.recall.answer import Answer
from grandbo.recall.block import ContextBlock
from grandbo.recall.budget import check_budget
from grandbo.recall.difference import Difference

_AS_OF_FIELDS = ("as_of_position", "as_of", "valid_at", "as_role")
PASSED_ON = ("limit", "service", "namespace", "context", "mode", "statuses", "incident", *_AS_OF_FIELDS, "at_least")
_RECALL_FIELDS = ("topic", "kinds", "kind", *PASSED_ON, "diff", "render", "budget")

T = TypeVar("T")

_bearer = HTTPBearer(auto_error=False, scheme_name="bearer", description="An API key made with `grandbo key create`.")


def caller_of(grandbo: Grandbo) -> Callable[..., TenantMemory]:
    """What opens the memory that a request's bearer token is for."""

    def caller(
        request: Request, credential: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
    ) -> TenantMemory:
        admission: Admission = request.app.state.admission
        return admission.admit(grandbo, request, credential.credentials if credential else "")

    return caller


def memory_routes(grandbo: Grandbo, metrics: Metrics) -> APIRouter:
    """The routes of one memory."""
    routes = APIRouter(prefix="/v1")

    # In this order: who may not enter is told so before the body is read.
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]
    recorded_answers: dict[int | str, dict[str, Any]] = {
        201: answers(AcknowledgementDocument, "It was appended: a new entry, or support for one."),
        200: answers(AcknowledgementDocument, "It was known already; nothing was appended.") | REPLAYED,
        **problems(400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 503),
    }

    @routes.post(
        "/findings",
        operation_id="record_finding",
        summary="Record what an incident taught",
        status_code=201,
        response_class=JSONResponse,
        responses=recorded_answers,
        openapi_extra=json_body(FindingDocument, "The finding; at most 256 KiB."),
    )
    def record_finding(
        memory: Caller, body: Body, request: Request, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """
        Durable when answered. The same finding of the same incident, or the same Idempotency-Key with the same content,
        is the first acknowledgement again, with `Idempotency-Replayed: true`.
        """
        return _record(memory, metrics, lambda: parse_json(body), request, idempotency_key)

    @routes.post(
        "/entries",
        operation_id="record_entry",
        summary="Record an entry of any kind",
        status_code=201,
        response_class=JSONResponse,
        responses=recorded_answers,
        openapi_extra=json_body(NewEntryDocument, "A finding that names its kind; at most 256 KiB."),
    )
    def record_entry(memory: Caller, body: Body, request: Request, idempotency_key: IdempotencyKey = None) -> Response:
        """As `POST /v1/findings`, but that the kind has to be said."""
        return _record(memory, metrics, lambda: _with_kind(parse_json(body)), request, idempotency_key)

    @routes.post(
        "/recall",
        operation_id="recall",
        summary="Ask for evidence on a topic",
        response_class=JSONResponse,
        responses={
            200: one_of(
                [AnswerDocument, RenderedAnswerDocument, DifferenceDocument],
                "The answer; with `render`, its block too; with `diff`, the answer then and today.",
            ),
            **problems(400, 401, 403, 408, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(RecallDocument, "The topic and filters that only narrow; at most 64 KiB."),
    )
    def recall(memory: Caller, body: Body) -> Response:
        """Evidence that is relevant, permitted, in date and cited; an honest reason where there is none."""
        given, block = _counted(lambda: _ask(memory, parse_json(body)), metrics.recall)
        answer = given.then if isinstance(given, Difference) else given
        metrics.recall("matched" if answer.matches else "empty", answer.searched.empty_reason)
        return JSONResponse(given.as_dict() | ({"rendered": block.as_dict()} if block else {}))

    return routes


def _record(
    memory: TenantMemory, metrics: Metrics, read: Callable[[], object], request: Request, idempotency_key: str | None
) -> Response:
    def record() -> Recorded:
        finding = parse_finding(read())
        command_id = command_id_of(memory, request, idempotency_key)
        if command_id is None and finding.incident is None:
            raise IdempotencyKeyMissing
        return memory.record_finding(finding, command_id=command_id)

    recorded = _counted(record, metrics.finding)
    metrics.finding(_finding_outcome(recorded))
    return JSONResponse(
        recorded.acknowledgement.as_dict(),
        201 if recorded.appended else 200,
        {"Idempotency-Replayed": "true"} if recorded.replayed else None,
    )


def _with_kind(document: object) -> object:
    if isinstance(document, dict) and document.get("kind") is None:
        raise InvalidInput("kind: it is required.", field="kind")
    return document


def _ask(memory: TenantMemory, document: object) -> tuple[Answer | Difference, ContextBlock | None]:
    if not isinstance(document, dict):
        raise InvalidInput("A recall is an object with at least topic.")
    for name in document:
        if name not in _RECALL_FIELDS:
            known = ", ".join(_RECALL_FIELDS)
            raise InvalidInput(f"{name[:100]}: there is no such field; known are {known}.", field=name)
    given = {name: value for name, value in document.items() if value is not None}
    if "topic" not in given:
        raise InvalidInput("topic: it is required.", field="topic")
    if "kind" in given and "kinds" in given:
        raise InvalidInput("kind: it means the same as kinds; give one of the two.", field="kind")
    diff, render = _flag(given, "diff"), _flag(given, "render")
    if diff and render:
        raise InvalidInput("render: one answer is rendered, diff compares two; give one of them.", field="render")
    if "budget" in given and not render:
        raise InvalidInput("budget: it says how long the block of render may be; give both.", field="budget")
    budget = check_budget(given.get("budget"))
    asked: Any = {name: given.get(name) for name in PASSED_ON}
    asked["kinds"] = given.get("kinds", given.get("kind"))
    if diff:
        return memory.query_topic_diff(given["topic"], **asked), None
    answer = memory.query_topic(given["topic"], **asked)
    return answer, memory.context_block(answer, given["topic"], budget=budget) if render else None


def _flag(given: dict[str, Any], name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise InvalidInput(f"{name}: it must be true or false.", field=name)
    return value


def _finding_outcome(recorded: Recorded) -> str:
    if recorded.replayed:
        return "replayed"
    if not recorded.appended:
        return "known"
    return "created" if recorded.acknowledgement.created else "corroborated"


def _counted(work: Callable[[], T], count: Callable[[str], None]) -> T:
    try:
        return work()
    except GrandboError as error:
        count("refused" if error.http_status < 500 else "failed")
        raise
    except Exception:
        count("failed")
        raise
