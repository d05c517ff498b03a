"""`/v1/candidates`: proposals, the queue, and what people decide, each on the version it was decided on."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from collections.abc import Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from grandbo.errors import InvalidInput, NotFound
from grandbo.http.body import read_json_body
from grandbo.http.candidate_schemas import (
    CandidateChangesDocument,
    CandidateDocument,
    CandidateReasonDocument,
    CandidatesDocument,
    DecidedDocument,
    ProposalDocument,
)
from grandbo.http.entry_verbs import parse_id
from grandbo.http.errors import IdempotencyKeyMissing
from grandbo.http.fields import read_fields
from grandbo.http.idempotency import REPLAYED, IdempotencyKey, command_id_of
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.http.preconditions import ETAG, IF_MATCH, expected_number, tag_of
from grandbo.http.problems import MEDIA_TYPE
from grandbo.http.schemas import ProblemDocument, schema_of
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.candidacy import Decided
from grandbo.memory.importing import parse_json
from grandbo.memory.reviewing import cursor_behind, read_cursor

_MEANING = {
    404: "There is no such candidate or entry in this tenant, or it is not the caller's to see.",
    409: "Someone decided first, its state does not allow it, or the Idempotency-Key was used with other content.",
    412: "The candidate or the entry has moved on; the problem has both versions.",
    428: "The If-Match header is missing.",
    429: "Too many proposals of this principal wait already, or too many requests came in a short time.",
}
_CandidateId = Annotated[str, Path(json_schema_extra={"format": "uuid"})]
_VERBS: dict[str, tuple[str, type[BaseModel]]] = {
    "amend": ("Replace fields; approvals that it had are void", CandidateChangesDocument),
    "approve": ("Let it in as an entry of its own", CandidateChangesDocument),
    "merge": ("Let it in as a correction of an entry", CandidateChangesDocument),
    "reject": ("Decide against it", CandidateReasonDocument),
    "withdraw": ("Take one's own proposal back", CandidateReasonDocument),
    "reopen": ("Undo the decision, and what it put into the memory", CandidateReasonDocument),
}
_FIELDS: dict[str, tuple[str, ...]] = {
    "amend": ("reason", "changes", "into"),
    "approve": ("reason", "changes"),
    "merge": ("reason", "changes", "into", "expected_revision"),
    "reject": ("reason",),
    "withdraw": ("reason",),
    "reopen": ("reason",),
}


def candidate_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the candidates of one memory."""
    routes = APIRouter(prefix="/v1/candidates")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.get(
        "",
        operation_id="list_candidates",
        summary="The queue: the riskiest first, of these the oldest",
        response_class=JSONResponse,
        responses={200: answers(CandidatesDocument, "A page."), **_problems(401, 403, 421, 422, 503)},
    )
    def list_candidates(
        memory: Caller,
        status: Annotated[str, Query(description="pending, approved, rejected or withdrawn.")] = "pending",
        kind: Annotated[str | None, Query(description="Only this kind.")] = None,
        mine: Annotated[bool, Query(description="Only what the caller proposed.")] = False,
        limit: Annotated[int | None, Query(description="1 to 500; 50 unless given.")] = None,
        after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
    ) -> Response:
        """
        Who may only propose sees his own; who may govern sees those within his tiers. What is personal is seen by
        whose it is, and by who administers where none of them could decide on it.
        """
        found = memory.candidates(status=status, kind=kind, mine=mine, limit=limit, after=read_cursor(after))
        return JSONResponse({"candidates": found, "next": cursor_behind(found, limit)})

    @routes.post(
        "",
        operation_id="propose_candidate",
        summary="Propose an entry; it waits for a person",
        status_code=201,
        response_class=JSONResponse,
        responses={
            201: answers(DecidedDocument, "It waits."),
            200: answers(DecidedDocument, "It was proposed before.") | REPLAYED,
            **_problems(400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 429, 503),
        },
        openapi_extra=json_body(ProposalDocument, "What the entry would say, and where it comes from."),
    )
    def propose(memory: Caller, body: Body, request: Request, idempotency_key: IdempotencyKey = None) -> Response:
        """Never recalled before a person has approved it. Without an incident the Idempotency-Key is required."""
        given = read_fields(parse_json(body), ("candidate", "origin", "into", "reason"), required=("candidate",))
        candidate = given["candidate"]
        if not isinstance(candidate, dict):
            raise InvalidInput("candidate: it must be an object as a finding is.", field="candidate")
        command_id = command_id_of(memory, request, idempotency_key)
        if command_id is None and not candidate.get("incident"):
            raise IdempotencyKeyMissing
        options = {"origin": _object(given.get("origin"), "origin"), "into": _entry(given.get("into"))}
        decided = memory.propose(candidate, reason=given.get("reason", ""), command_id=command_id, **options)
        return _answer(decided, 201 if decided.appended else 200)

    @routes.get(
        "/{candidate_id}",
        operation_id="show_candidate",
        summary="A candidate with all that a reviewer needs",
        response_class=JSONResponse,
        responses={
            200: answers(CandidateDocument, "The candidate.") | {"headers": ETAG},
            **_problems(401, 403, 404, 421, 503),
        },
    )
    def show(memory: Caller, candidate_id: _CandidateId) -> Response:
        """Its ETag is its version: what a decision has to name in If-Match."""
        found = memory.candidate(_id(candidate_id))
        return JSONResponse(found, headers={"ETag": tag_of(found["version"])})

    def decision_of(verb: str) -> Callable[..., Response]:
        def decide(
            memory: Caller,
            body: Body,
            request: Request,
            candidate_id: _CandidateId,
            idempotency_key: IdempotencyKey = None,
        ) -> Response:
            given = read_fields(parse_json(body), _FIELDS[verb], required=("reason",))
            options: dict[str, Any] = {
                "expected_version": expected_number(request),
                "command_id": command_id_of(memory, request, idempotency_key),
                **given,
            }
            if "changes" in options:
                options["changes"] = _object(options["changes"], "changes")
            if "into" in options:
                options["into"] = _entry(options["into"])
            if verb == "amend":
                options.setdefault("changes", {})
            return _answer(getattr(memory, f"{verb}_candidate")(_id(candidate_id), **options), 200)

        return decide

    for verb, (summary, document) in _VERBS.items():
        routes.post(
            f"/{{candidate_id}}/{verb}",
            operation_id=f"{verb}_candidate",
            summary=summary,
            description="Durable when answered. The same Idempotency-Key with the same content is answered as before.",
            response_class=JSONResponse,
            responses={
                200: answers(DecidedDocument, "The candidate as it is now.") | {"headers": ETAG | REPLAYED["headers"]},
                **_problems(400, 401, 403, 404, 408, 409, 412, 413, 415, 421, 422, 428, 503),
            },
            openapi_extra={**json_body(document, "What is decided, and why."), "parameters": [IF_MATCH]},
        )(decision_of(verb))
    return routes


def _answer(decided: Decided, status: int) -> Response:
    headers = {"ETag": tag_of(decided.version)}
    if decided.replayed:
        headers["Idempotency-Replayed"] = "true"
    return JSONResponse(decided.as_dict(), status, headers)


def _object(value: Any, field: str) -> dict[str, Any] | None:
    if value is not None and not isinstance(value, dict):
        raise InvalidInput(f"{field}: it must be an object.", field=field)
    return value


def _entry(value: object) -> UUID | None:
    if value is None:
        return None
    found = parse_id(value)
    if found is None:
        raise InvalidInput("into: it must be the id of an entry, a UUID.", field="into")
    return found


def _id(given: str) -> UUID:
    """What is no id is no candidate: the same answer as for one that is not there."""
    found = parse_id(given)
    if found is None:
        raise NotFound("There is no such candidate in this tenant.")
    return found


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}}
    own = {status: {"description": _MEANING[status], "content": content} for status in statuses if status in _MEANING}
    return problems(*(status for status in statuses if status not in _MEANING)) | own
