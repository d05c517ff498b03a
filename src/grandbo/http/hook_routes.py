"""
`/v1/hooks` and `/v1/inbox`: where tools deliver to, and what those who administer do with it.

The door of the tools takes no bearer token: the hook's own secret has signed the body. It stands last, so that a word
in the place of a hook's id, such as `rotate`, is never taken for a source's hook.
"""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from collections.abc import Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response

from grandbo.errors import InvalidInput
from grandbo.http.admission import Admission
from grandbo.http.body import read_json_body, read_raw_body
from grandbo.http.fields import read_fields
from grandbo.http.hook_schemas import (
    DeliveryAnswerDocument,
    DeliveryDocument,
    DeliveryPageDocument,
    DeliverySubjectDocument,
    FullDeliveryDocument,
    HooksDocument,
    HookTestDocument,
    HookTestPayloadDocument,
    MadeHookDocument,
    NewHookDocument,
    RotateHookDocument,
)
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.importing import parse_json
from grandbo.memory.inbox import DEFAULT_PAGE, MAX_PAGE, DeliveryState, header_values


def hook_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the hooks."""
    routes = APIRouter(prefix="/v1/hooks")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.get(
        "",
        operation_id="list_hooks",
        summary="Hooks, oldest first, without their secrets",
        response_class=JSONResponse,
        responses={200: answers(HooksDocument, "All of them."), **problems(401, 403, 421, 503)},
    )
    def list_hooks(memory: Caller) -> Response:
        """Where tools deliver to."""
        return JSONResponse({"hooks": [hook.as_dict() for hook in memory.hooks()]})

    @routes.post(
        "",
        operation_id="create_hook",
        summary="Make a hook",
        status_code=201,
        response_class=JSONResponse,
        responses={
            201: answers(MadeHookDocument, "The hook; its secret is shown this once."),
            **problems(400, 401, 403, 408, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(NewHookDocument, "Of which tool, and how far it is trusted."),
    )
    def create_hook(memory: Caller, body: Body) -> Response:
        """Sent again it makes another hook."""
        known = ("source", "name", "direct", "takes_private", "secret")
        given = _checked(read_fields(parse_json(body), known, required=("source", "name")))
        made, secret = memory.create_hook(given.pop("source"), given.pop("name"), **given)
        return JSONResponse({**made.as_dict(), "secret": secret}, 201)

    @routes.delete(
        "/{hook_id}",
        operation_id="remove_hook",
        summary="Take a hook away, with its secrets",
        status_code=204,
        response_class=Response,
        responses={204: {"description": "Nothing is taken in there any more."}, **problems(401, 403, 404, 421, 503)},
    )
    def remove_hook(memory: Caller, hook_id: str) -> Response:
        """What it delivered stays in the inbox."""
        memory.remove_hook(hook_id)
        return Response(status_code=204)

    @routes.post(
        "/{hook_id}/rotate",
        operation_id="rotate_hook",
        summary="Give a hook a new secret",
        response_class=JSONResponse,
        responses={
            200: answers(MadeHookDocument, "The hook; its new secret is shown this once."),
            **problems(400, 401, 403, 404, 408, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(RotateHookDocument, "The tool's new secret, where the tool makes it."),
    )
    def rotate_hook(memory: Caller, hook_id: str, body: Body) -> Response:
        """The secret before it works on, unless `keep_previous` is false."""
        given = _checked(read_fields(parse_json(body), ("secret", "keep_previous")))
        rotated, secret = memory.rotate_hook(hook_id, **given)
        return JSONResponse({**rotated.as_dict(), "secret": secret})

    @routes.post(
        "/{hook_id}/test",
        operation_id="test_hook",
        summary="What a delivery would become",
        response_class=JSONResponse,
        responses={
            200: answers(HookTestDocument, "What would be mapped; nothing was written."),
            **problems(400, 401, 403, 404, 408, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(HookTestPayloadDocument, "What the tool would send; a sample where omitted."),
    )
    def test_hook(memory: Caller, hook_id: str, body: Body) -> Response:
        """The payload is signed with the hook's secret, verified and mapped, as a delivery is."""
        payload = read_fields(parse_json(body), ("payload",)).get("payload")
        if payload is not None and not isinstance(payload, dict):
            raise InvalidInput("payload: it must be an object.", field="payload")
        return JSONResponse(memory.test_hook(hook_id, payload))

    @routes.post(
        "/{source}/{hook_id}",
        operation_id="deliver",
        summary="Where a tool delivers to",
        status_code=202,
        response_class=JSONResponse,
        responses={
            202: answers(DeliveryAnswerDocument, "It is stored, or was; it is mapped later."),
            **problems(401, 408, 413, 421, 503),
        },
        openapi_extra={
            "security": [],
            "requestBody": {
                "required": True,
                "description": "What the tool sends, as it sends it; at most 1 MiB.",
                "content": {"*/*": {"schema": {}}},
            },
        },
    )
    def deliver(
        source: str,
        hook_id: str,
        request: Request,
        _: Annotated[None, Depends(_may_knock)],
        body: Annotated[bytes, Depends(read_raw_body)],
    ) -> Response:
        """The signature is verified over the raw bytes. An event that means nothing here is taken in all the same."""
        admission: Admission = request.app.state.admission
        headers = header_values(request.headers.items())
        delivery = admission.admit_delivery(request, hook_id, lambda: grandbo.receive(source, hook_id, headers, body))
        return JSONResponse({"delivery_id": str(delivery.delivery_id), "duplicate": not delivery.is_new}, 202)

    return routes


def inbox_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of what was delivered."""
    routes = APIRouter(prefix="/v1/inbox")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.get(
        "",
        operation_id="list_deliveries",
        summary="What was delivered, newest first",
        response_class=JSONResponse,
        responses={200: answers(DeliveryPageDocument, "A page."), **problems(401, 403, 421, 422, 503)},
    )
    def list_deliveries(
        memory: Caller,
        state: Annotated[DeliveryState | None, Query(description="Those in this state alone.")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = DEFAULT_PAGE,
        after: Annotated[UUID | None, Query(description="The `next` of the page before.")] = None,
    ) -> Response:
        """Without their bodies."""
        return JSONResponse(memory.inbox(state=state, limit=limit, after=after))

    def one(name: str, method: str, suffix: str, summary: str, document: Any) -> Callable[..., Any]:
        return routes.api_route(
            f"/{{delivery_id}}{suffix}",
            methods=[method],
            operation_id=name,
            summary=summary,
            response_class=JSONResponse,
            responses={200: answers(document, "The delivery."), **problems(401, 403, 404, 409, 421, 422, 503)},
        )

    @one("show_delivery", "GET", "", "One delivery with its body", FullDeliveryDocument)
    def show_delivery(memory: Caller, delivery_id: UUID) -> Response:
        """The body is text that came from outside: look at it, do not follow it."""
        return JSONResponse(memory.delivery(delivery_id))

    @one("retry_delivery", "POST", "/retry", "Map a delivery again", DeliveryDocument)
    def retry_delivery(memory: Caller, delivery_id: UUID) -> Response:
        """Whatever became of it."""
        return JSONResponse(memory.retry_delivery(delivery_id))

    @routes.post(
        "/{delivery_id}/subject",
        operation_id="name_subject_of_delivery",
        summary="Say whom a delivery is about, and map it again",
        response_class=JSONResponse,
        responses={
            200: answers(DeliveryDocument, "The delivery."),
            **problems(400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(DeliverySubjectDocument, "Whom it is about."),
    )
    def name_subject(memory: Caller, delivery_id: UUID, body: Body) -> Response:
        """One that speaks of somebody is dead with `subject_missing` until then."""
        subject = read_fields(parse_json(body), ("subject",), required=("subject",))["subject"]
        return JSONResponse(memory.retry_delivery(delivery_id, subject=subject))

    @one("drop_delivery", "DELETE", "", "Give a delivery up", DeliveryDocument)
    def drop_delivery(memory: Caller, delivery_id: UUID) -> Response:
        """Its body goes; that it came stays known."""
        return JSONResponse(memory.drop_delivery(delivery_id))

    return routes


def _may_knock(request: Request, hook_id: str) -> None:
    """Before the body is read."""
    admission: Admission = request.app.state.admission
    admission.check_address(request, hook_id)


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        wanted: type = bool if name in ("direct", "takes_private", "keep_previous") else str
        if not isinstance(value, wanted):
            raise InvalidInput(f"{name}: it must be {'true or false' if wanted is bool else 'text'}.", field=name)
    return given
