"""`/v1/subjects`, `/v1/memories`, `/v1/episodes`: people and workspaces, and what is remembered about them."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from grandbo.errors import NotFound
from grandbo.http.body import read_json_body
from grandbo.http.entry_verbs import parse_id
from grandbo.http.erasure_routes import ErasureDocument
from grandbo.http.fields import read_fields
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, one_of, problems
from grandbo.http.people_schemas import (
    EpisodeDocument,
    ForgetRequestDocument,
    HeldDocument,
    HoldRequestDocument,
    MemoryPreviewDocument,
    MemoryTokenDocument,
    PersonalFactDocument,
    RegisteredSubjectDocument,
    RememberedDocument,
    SubjectDocument,
    SubjectRequestDocument,
    SubjectsDocument,
)
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.held_page import render_held_page
from grandbo.memory.held_report import render_held
from grandbo.memory.importing import parse_json

_SubjectId = Annotated[str, Path(json_schema_extra={"format": "uuid"})]
_READS = (401, 403, 404, 421, 503)
_WRITES = (400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 503)
MARKDOWN = "text/markdown"


def subject_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of subjects."""
    routes = APIRouter(prefix="/v1/subjects")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    @routes.get(
        "",
        operation_id="list_subjects",
        summary="Subjects, and tombstones of those that were erased",
        response_class=JSONResponse,
        responses={200: answers(SubjectsDocument, "All of them."), **problems(401, 403, 421, 503)},
    )
    def list_subjects(memory: Caller) -> Response:
        """Oldest first, without names; for who may audit."""
        return JSONResponse({"subjects": [item.as_dict() for item in memory.subjects()]})

    @routes.post(
        "",
        operation_id="register_subject",
        summary="Register a person or a workspace",
        status_code=201,
        response_class=JSONResponse,
        responses={
            201: answers(RegisteredSubjectDocument, "It was made."),
            200: answers(RegisteredSubjectDocument, "It was known already; what is new of it is on record."),
            **problems(400, 401, 403, 408, 413, 415, 421, 422, 503),
        },
        openapi_extra=json_body(SubjectRequestDocument, "Whom."),
    )
    def register(memory: Caller, body: Body) -> Response:
        """The same reference again is the same subject."""
        required = ("kind", "reference", "name")
        given = read_fields(parse_json(body), (*required, "principals"), required=required)
        principals = given.get("principals", [])
        made = memory.register_subject(given["kind"], given["reference"], given["name"], principals=principals)
        return JSONResponse(made.as_dict(), 201 if made.created else 200)

    @routes.get(
        "/{subject_id}",
        operation_id="show_subject",
        summary="One subject with its name",
        response_class=JSONResponse,
        responses={200: answers(SubjectDocument, "The subject."), **problems(*_READS)},
    )
    def show(memory: Caller, subject_id: _SubjectId) -> Response:
        """For who may audit, and for its own principals."""
        return JSONResponse(memory.subject(_id(subject_id)).as_dict())

    @routes.get(
        "/{subject_id}/held",
        operation_id="held_about_subject",
        summary="All that is held about it",
        response_class=JSONResponse,
        responses={200: _held(), **problems(*_READS, 422)},
    )
    def held(
        memory: Caller,
        subject_id: _SubjectId,
        form: Annotated[
            Literal["json", "markdown", "html"], Query(alias="format", description="Markdown and HTML are for people.")
        ] = "json",
    ) -> Response:
        """
        Entries with all revisions, who said what, until when it is kept, to whom and when it was shown.

        For who administers, and for its own principals. Asked again it is the same.
        """
        document = memory.held(_id(subject_id))
        if form == "markdown":
            return PlainTextResponse(render_held(document), media_type=MARKDOWN)
        if form == "html":
            return HTMLResponse(render_held_page(document), headers={"Content-Security-Policy": "default-src 'none'"})
        return JSONResponse(document)

    @routes.post(
        "/{subject_id}/forget",
        operation_id="forget_subject",
        summary="Erase all that is held about it, for good",
        response_class=JSONResponse,
        responses={
            200: answers(ErasureDocument, "It is gone; or, where the policy wants two, it waits for a second person."),
            **problems(*_WRITES),
        },
        openapi_extra=json_body(ForgetRequestDocument, "Why."),
    )
    def forget(memory: Caller, subject_id: _SubjectId, body: Body) -> Response:
        """Asked again it is the same answer. 409 `subject_on_hold` says why and who."""
        given = read_fields(parse_json(body), ("reason",), required=("reason",))
        return JSONResponse(memory.forget_subject(_id(subject_id), given["reason"]).as_dict())

    @routes.post(
        "/{subject_id}/hold",
        operation_id="hold_subject",
        summary="Set a legal hold",
        response_class=JSONResponse,
        responses={200: answers(SubjectDocument, "It is held."), **problems(*_WRITES)},
        openapi_extra=json_body(HoldRequestDocument, "Why."),
    )
    def hold(memory: Caller, subject_id: _SubjectId, body: Body) -> Response:
        """One that stands already keeps the reason that it has."""
        given = read_fields(parse_json(body), ("reason",), required=("reason",))
        return JSONResponse(memory.hold_subject(_id(subject_id), given["reason"]).as_dict())

    @routes.post(
        "/{subject_id}/lift-hold",
        operation_id="lift_hold",
        summary="Release a legal hold",
        response_class=JSONResponse,
        responses={200: answers(SubjectDocument, "It is free."), **problems(*_WRITES)},
        openapi_extra=json_body(HoldRequestDocument, "Why."),
    )
    def lift(memory: Caller, subject_id: _SubjectId, body: Body) -> Response:
        """Where none stands nothing happens."""
        given = read_fields(parse_json(body), ("reason",), required=("reason",))
        return JSONResponse(memory.lift_hold(_id(subject_id), given["reason"]).as_dict())

    return routes


def personal_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of what is remembered about subjects."""
    routes = APIRouter(prefix="/v1")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]
    refusals = problems(*_WRITES, 429)

    @routes.post(
        "/memories",
        operation_id="remember",
        summary="Have something remembered about a subject",
        status_code=202,
        response_class=JSONResponse,
        responses={202: answers(MemoryPreviewDocument, "It waits for a person."), **refusals},
        openapi_extra=json_body(PersonalFactDocument, "What, and about whom."),
    )
    def remember(memory: Caller, body: Body) -> Response:
        """Says what would be stored, about whom, by whom and until when, and gives the token that a person confirms."""
        return JSONResponse(memory.remember(parse_json(body)).as_dict(), 202)

    @routes.post(
        "/memories/workspace",
        operation_id="remember_workspace",
        summary="Have something remembered about a workspace",
        response_class=JSONResponse,
        responses={
            200: answers(RememberedDocument, "It is stored: the policy lets it in."),
            202: answers(MemoryPreviewDocument, "It waits for a person."),
            **refusals,
        },
        openapi_extra=json_body(PersonalFactDocument, "What, and about which workspace."),
    )
    def remember_workspace(memory: Caller, body: Body) -> Response:
        """At once where the tenant's policy says so, else as of a person."""
        document = memory.remember_workspace(parse_json(body)).as_dict()
        return JSONResponse(document, 200 if document["stored"] else 202)

    @routes.post(
        "/memories/confirm",
        operation_id="confirm_memory",
        summary="Store what waits under a token",
        response_class=JSONResponse,
        responses={200: answers(RememberedDocument, "It is stored."), **refusals},
        openapi_extra=json_body(MemoryTokenDocument, "The token."),
    )
    def confirm(memory: Caller, body: Body) -> Response:
        """Only a person may: the subject's own, or one that governs. Again it is the first answer."""
        given = read_fields(parse_json(body), ("token",), required=("token",))
        return JSONResponse(memory.confirm_memory(given["token"]).as_dict())

    @routes.post(
        "/memories/refuse",
        operation_id="refuse_memory",
        summary="Drop what waits under a token",
        status_code=204,
        response_class=Response,
        responses={204: {"description": "Nothing waits any more."}, **refusals},
        openapi_extra=json_body(MemoryTokenDocument, "The token."),
    )
    def refuse(memory: Caller, body: Body) -> Response:
        """Whoever has the token may."""
        memory.refuse_memory(read_fields(parse_json(body), ("token",), required=("token",))["token"])
        return Response(status_code=204)

    @routes.post(
        "/episodes",
        operation_id="record_episode",
        summary="Record what came of a session of work",
        response_class=JSONResponse,
        responses={200: answers(RememberedDocument, "It is stored."), **refusals},
        openapi_extra=json_body(EpisodeDocument, "The episode."),
    )
    def episode(memory: Caller, body: Body) -> Response:
        """Where the tenant takes episodes in. Told again it is a correction."""
        return JSONResponse(memory.record_episode(parse_json(body)).as_dict())

    return routes


def _held() -> dict[str, Any]:
    described = one_of([HeldDocument], "All of it.")
    described["content"] |= {kind: {"schema": {"type": "string"}} for kind in (MARKDOWN, "text/html")}
    return described


def _id(given: str) -> UUID:
    found = parse_id(given)
    if found is None:
        raise NotFound("There is no such subject in this tenant.")
    return found
