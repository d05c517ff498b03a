"""`/v1/policy`: what the tenant decides for itself, as it is in force, and changed on the state it was decided on."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from grandbo.errors import InvalidInput
from grandbo.http.body import read_json_body
from grandbo.http.idempotency import IdempotencyKey, command_id_of
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.http.preconditions import ETAG, IF_MATCH, expected_number, tag_of
from grandbo.http.problems import MEDIA_TYPE
from grandbo.http.schemas import SAYING_TEXT, ProblemDocument, schema_of
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.govern import REASON_LIMIT
from grandbo.memory.importing import parse_json

_MEANING = {
    409: "Entries stand in a tier that would go, or the Idempotency-Key was used before with other content.",
    412: "The policy has changed since; the problem has both positions.",
    428: "The If-Match header is missing.",
}


class PolicyChangeDocument(BaseModel):
    """The fields to replace, and why; in `roles`, `expiry_days`, `review_days` the named keys. Null leaves a field."""

    model_config = ConfigDict(extra="forbid", title="PolicyChange")

    changes: dict[str, Any] = Field(min_length=1)
    reason: str = Field(min_length=1, max_length=REASON_LIMIT, pattern=SAYING_TEXT)


class PolicyInForceDocument(BaseModel):
    """The whole policy, and the event that states it."""

    model_config = ConfigDict(extra="forbid", title="PolicyInForce")

    position: int = Field(ge=1)
    changed_at: str
    policy: dict[str, Any]


POLICY_DOCUMENTS: tuple[type[BaseModel], ...] = (PolicyChangeDocument, PolicyInForceDocument)


def policy_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the policy of one memory."""
    routes = APIRouter(prefix="/v1/policy")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.get(
        "",
        operation_id="show_policy",
        summary="The policy in force",
        response_class=JSONResponse,
        responses={
            200: answers(PolicyInForceDocument, "The policy.") | {"headers": ETAG},
            **problems(401, 403, 421, 503),
        },
    )
    def show(memory: Caller) -> Response:
        """Its ETag is the position of the event that states it."""
        found = memory.policy()
        return JSONResponse(found.as_dict(), headers={"ETag": tag_of(found.position)})

    @routes.patch(
        "",
        operation_id="change_policy",
        summary="Change the policy",
        response_class=JSONResponse,
        responses={
            200: answers(PolicyInForceDocument, "The policy as it is now.") | {"headers": ETAG},
            **_problems(400, 401, 403, 408, 409, 412, 413, 415, 421, 422, 428, 503),
        },
        openapi_extra={**json_body(PolicyChangeDocument, "What shall be other, and why."), "parameters": [IF_MATCH]},
    )
    def change(memory: Caller, body: Body, request: Request, idempotency_key: IdempotencyKey = None) -> Response:
        """One event with the whole policy as it is from there on."""
        options = {
            "expected_position": expected_number(request),
            "command_id": command_id_of(memory, request, idempotency_key),
        }
        changes, reason = _wanted(parse_json(body))
        found = memory.change_policy(changes, reason=reason, **options)
        return JSONResponse(found.as_dict(), headers={"ETag": tag_of(found.position)})

    return routes


def _wanted(document: object) -> tuple[dict[str, Any], str]:
    if not isinstance(document, dict) or set(document) - {"changes", "reason"}:
        raise InvalidInput("A change of the policy is an object with changes and reason, and no more.")
    changes = document.get("changes")
    if not isinstance(changes, dict):
        raise InvalidInput("changes: it must be an object of the fields to replace.", field="changes")
    reason: str = document.get("reason", "")
    return changes, reason


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    content = {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}}
    own = {status: {"description": _MEANING[status], "content": content} for status in statuses if status in _MEANING}
    return problems(*(status for status in statuses if status not in _MEANING)) | own
