"""`/v1/keys` and `/v1/tenant`: the credentials of one's own tenant, and which tenant that is."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from grandbo.http.body import read_json_body
from grandbo.http.fields import read_document
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.http.schemas import SAYING, Document
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.importing import parse_json
from grandbo.memory.policy import ROLES, require_some
from grandbo.memory.principals import MAX_PAGE, ApiKey, parse_life

DEFAULT_PAGE = 50

_Kind = Literal["human", "agent", "hook"]
_Role = Literal["admin", "auditor", "reviewer", "investigator", "companion", "hook"]


class NewKeyDocument(Document):
    """Who will hold the key, and what it may do."""

    model_config = ConfigDict(extra="forbid", title="NewKey", strict=True)

    principal: str = Field(min_length=1, max_length=100, pattern=SAYING, description="The holder's name.")
    type: _Kind
    roles: list[_Role] = Field(
        min_length=1, max_length=len(ROLES), description="None that may do or see more than you."
    )
    expires_in: Annotated[str, Field(pattern="^[1-9][0-9]{0,4}[hdw]$", examples=["90d"])] | None = Field(
        default=None, description="How long it works, at most 3650d; until it is revoked where it is omitted."
    )
    read_only: bool | None = Field(default=False, description="It writes nothing, whatever its roles allow.")


class KeyDocument(Document):
    """A key without its secret."""

    model_config = ConfigDict(extra="forbid", title="Key")

    key_id: str
    principal: str
    type: str
    roles: list[str]
    read_only: bool
    created_at: str
    revoked_at: str | None
    expires_at: str | None


class MadeKeyDocument(KeyDocument):
    """A key with its secret, which is shown this once."""

    model_config = ConfigDict(extra="forbid", title="MadeKey")

    secret: str


class KeysDocument(Document):
    """A page of keys."""

    model_config = ConfigDict(extra="forbid", title="Keys")

    keys: list[KeyDocument]
    next: str | None


class TenantDocument(Document):
    """The tenant that the credential belongs to."""

    model_config = ConfigDict(extra="forbid", title="Tenant")

    tenant_id: str = Field(json_schema_extra={"format": "uuid"})
    name: str


KEY_DOCUMENTS: tuple[type[BaseModel], ...] = (NewKeyDocument, MadeKeyDocument, KeysDocument, TenantDocument)


def key_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the keys of one tenant."""
    routes = APIRouter(prefix="/v1/keys")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.get(
        "",
        operation_id="list_keys",
        summary="Keys, oldest first, without their secrets",
        response_class=JSONResponse,
        responses={200: answers(KeysDocument, "A page."), **problems(401, 403, 421, 422, 503)},
    )
    def list_keys(
        memory: Caller,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = DEFAULT_PAGE,
        after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
    ) -> Response:
        """Those that open nothing any more included."""
        found = memory.keys(limit=limit, after=after)
        more = found[-1].key_id if len(found) == limit else None
        return JSONResponse({"keys": [key.as_dict() for key in found], "next": more})

    @routes.post(
        "",
        operation_id="create_key",
        summary="Make a key",
        status_code=201,
        response_class=JSONResponse,
        responses={
            201: answers(MadeKeyDocument, "The key; its secret is shown this once."),
            **problems(400, 401, 403, 408, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(NewKeyDocument, "Whom it is for."),
    )
    def create_key(memory: Caller, body: Body) -> Response:
        """Only a digest of the secret is kept. Sent again it makes another key: revoke the one that was lost."""
        made, secret = _made(memory, parse_json(body))
        return JSONResponse({**made.as_dict(), "secret": secret}, 201)

    @routes.delete(
        "/{key_id}",
        operation_id="revoke_key",
        summary="Revoke a key, at once and for good",
        status_code=204,
        response_class=Response,
        responses={204: {"description": "It opens nothing any more."}, **problems(401, 403, 404, 421, 422, 503)},
    )
    def revoke_key(memory: Caller, key_id: str) -> Response:
        """Again it changes nothing."""
        memory.revoke_key(key_id)
        return Response(status_code=204)

    return routes


def tenant_routes(grandbo: Grandbo) -> APIRouter:
    """The route that tells a caller where he is."""
    routes = APIRouter(prefix="/v1/tenant")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]

    @routes.get(
        "",
        operation_id="show_tenant",
        summary="The tenant that the credential belongs to",
        response_class=JSONResponse,
        responses={200: answers(TenantDocument, "Its id and name."), **problems(401, 403, 421, 503)},
    )
    def show_tenant(memory: Caller) -> Response:
        """There are others; a credential sees its own."""
        require_some(memory.principal)
        return JSONResponse(memory.tenant.as_dict())

    return routes


def _made(memory: TenantMemory, document: object) -> tuple[ApiKey, str]:
    wanted = read_document(NewKeyDocument, document)
    life = parse_life(wanted.expires_in) if wanted.expires_in is not None else None
    return memory.create_key(
        wanted.principal, wanted.type, tuple(wanted.roles), expires_in=life, read_only=bool(wanted.read_only)
    )
