"""`/v1/subscriptions`: who outside is told of events."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from collections.abc import Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse, Response

from grandbo.errors import InvalidInput
from grandbo.http.body import read_json_body
from grandbo.http.fields import read_fields
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.http.subscription_schemas import (
    MadeSubscriptionDocument,
    NewSubscriptionDocument,
    ReplaySubscriptionDocument,
    RotateSubscriptionDocument,
    SubscriptionDocument,
    SubscriptionsDocument,
    SubscriptionTestDocument,
)
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.importing import parse_json

_WRONG_BODY = (400, 401, 403, 404, 408, 413, 415, 421, 422, 503)


def subscription_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the subscriptions."""
    routes = APIRouter(prefix="/v1/subscriptions")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.get(
        "",
        operation_id="list_subscriptions",
        summary="Subscriptions, oldest first, without their secrets",
        response_class=JSONResponse,
        responses={200: answers(SubscriptionsDocument, "All of them."), **problems(401, 403, 421, 503)},
    )
    def list_subscriptions(memory: Caller) -> Response:
        """Where each stands, and what its last attempt failed of."""
        return JSONResponse({"subscriptions": [item.as_dict() for item in memory.subscriptions()]})

    @routes.post(
        "",
        operation_id="create_subscription",
        summary="Have events sent to a URL",
        status_code=201,
        response_class=JSONResponse,
        responses={
            201: answers(MadeSubscriptionDocument, "The subscription; its secret is shown this once."),
            **problems(400, 401, 403, 408, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(NewSubscriptionDocument, "Where to, and of what."),
    )
    def create_subscription(memory: Caller, body: Body) -> Response:
        """Sent again it makes another one."""
        known = ("url", "name", "event_types", "tiers", "start", "secret")
        given = _checked(read_fields(parse_json(body), known, required=("url", "name")))
        made, secret = memory.create_subscription(given.pop("url"), given.pop("name"), **given)
        return JSONResponse({**made.as_dict(), "secret": secret}, 201)

    @routes.delete(
        "/{subscription_id}",
        operation_id="remove_subscription",
        summary="Take a subscription away, with its secrets",
        status_code=204,
        response_class=Response,
        responses={204: {"description": "Nothing is sent any more."}, **problems(401, 403, 404, 421, 422, 503)},
    )
    def remove_subscription(memory: Caller, subscription_id: UUID) -> Response:
        """What is on its way at this moment arrives."""
        memory.remove_subscription(subscription_id)
        return Response(status_code=204)

    @routes.post(
        "/{subscription_id}/rotate",
        operation_id="rotate_subscription",
        summary="Give a subscription a new secret",
        response_class=JSONResponse,
        responses={
            200: answers(MadeSubscriptionDocument, "The subscription; its new secret is shown this once."),
            **problems(*_WRONG_BODY),
        },
        openapi_extra=json_body(RotateSubscriptionDocument, "A secret of one's own, and whether the old one goes on."),
    )
    def rotate_subscription(memory: Caller, subscription_id: UUID, body: Body) -> Response:
        """Each delivery is signed with both, unless `keep_previous` is false."""
        given = _checked(read_fields(parse_json(body), ("secret", "keep_previous")))
        rotated, secret = memory.rotate_subscription(subscription_id, **given)
        return JSONResponse({**rotated.as_dict(), "secret": secret})

    @routes.post(
        "/{subscription_id}/replay",
        operation_id="replay_subscription",
        summary="Tell it everything from a position on",
        response_class=JSONResponse,
        responses={200: answers(SubscriptionDocument, "Where it stands now."), **problems(*_WRONG_BODY)},
        openapi_extra=json_body(ReplaySubscriptionDocument, "From where."),
    )
    def replay_subscription(memory: Caller, subscription_id: UUID, body: Body) -> Response:
        """Back, to tell it again; or forward, past what it cannot take."""
        given = _checked(read_fields(parse_json(body), ("start",), required=("start",)))
        return JSONResponse(memory.replay_subscription(subscription_id, given["start"]).as_dict())

    def one(name: str, summary: str, document: Any = SubscriptionDocument) -> Callable[..., Any]:
        return routes.post(
            f"/{{subscription_id}}/{name}",
            operation_id=f"{name}_subscription",
            summary=summary,
            response_class=JSONResponse,
            responses={200: answers(document, "What came of it."), **problems(401, 403, 404, 421, 422, 503)},
        )

    @one("pause", "Tell it nothing for now")
    def pause_subscription(memory: Caller, subscription_id: UUID) -> Response:
        """Resumed, it goes on where it stood."""
        return JSONResponse(memory.pause_subscription(subscription_id).as_dict())

    @one("resume", "Go on where it stands")
    def resume_subscription(memory: Caller, subscription_id: UUID) -> Response:
        """One that was given up too."""
        return JSONResponse(memory.resume_subscription(subscription_id).as_dict())

    @one("test", "Send it an event that is none", SubscriptionTestDocument)
    def test_subscription(memory: Caller, subscription_id: UUID) -> Response:
        """Of the type `subscription_tested`; its place in the log stays."""
        return JSONResponse(memory.test_subscription(subscription_id))

    return routes


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        if name == "keep_previous":
            fits, wanted = isinstance(value, bool), "true or false"
        elif name == "start":
            fits, wanted = isinstance(value, int) and not isinstance(value, bool), "a whole number"
        elif name in ("event_types", "tiers"):
            fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
            wanted = "a list of texts"
        else:
            fits, wanted = isinstance(value, str), "text"
        if not fits:
            raise InvalidInput(f"{name}: it must be {wanted}.", field=name)
    return given
