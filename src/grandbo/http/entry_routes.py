"""`/v1/entries/{id}`: an entry, its history, and the verbs of its life, each on the revision it was decided on."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

import re
from collections.abc import Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from grandbo.errors import NotFound
from grandbo.http.body import read_json_body
from grandbo.http.entry_schemas import (
    ChangeDocument,
    EntriesDocument,
    EntryDocument,
    HistoryDocument,
    PastEntryDocument,
    RestorePreviewDocument,
    RevisionDifferencesDocument,
    RevisionDocument,
)
from grandbo.http.entry_verbs import VERBS, Verb, fields_of, parse_id
from grandbo.http.idempotency import REPLAYED, IdempotencyKey, command_id_of
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, one_of, problems
from grandbo.http.preconditions import ETAG, IF_MATCH, expected_number, is_held, tag_of
from grandbo.http.problems import MEDIA_TYPE
from grandbo.http.schemas import ProblemDocument, schema_of
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.differences import compare_revisions, restore_preview, revision_of
from grandbo.memory.importing import parse_json
from grandbo.memory.wishes import LARGEST_REVISION

_PREFIX = "/v1/entries/{entry_id}"
_PLAIN_REVISION = re.compile(r"[1-9][0-9]{0,9}")

_MEANING = {
    404: "There is no such entry or revision in this tenant, or it is not the caller's to see.",
    409: "The entry's state does not allow it, or the Idempotency-Key was used before with other content.",
    412: "The entry has moved on; the problem has both revisions, `expected` and `current`.",
    428: "The If-Match header is missing.",
}
_EntryId = Annotated[str, Path(json_schema_extra={"format": "uuid"})]
_RevisionNumber = Annotated[str, Path(description="Counted from 1.", examples=["1"])]
AsOfTime = Annotated[str | None, Query(description="As it stood at this time; RFC 3339 with a zone.")]
AsOfPosition = Annotated[int | None, Query(description="As it stood at this position of the log.")]
_IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", description="ETags that the caller has; 304 where one is current.")
]


def entry_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the entries of one memory."""
    routes = APIRouter()
    routes.include_router(_listing_routes(grandbo))
    routes.include_router(_reading_routes(grandbo))
    routes.include_router(_change_routes(grandbo))
    return routes


def _listing_routes(grandbo: Grandbo) -> APIRouter:
    routes = APIRouter()
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]

    @routes.get(
        "/v1/entries",
        operation_id="list_entries",
        summary="Entries of every status, as they stand or as they stood",
        response_class=JSONResponse,
        responses={200: answers(EntriesDocument, "A page."), **problems(401, 403, 421, 422, 503)},
    )
    def list_entries(
        memory: Caller,
        kind: Annotated[list[str] | None, Query(description="Only this kind; repeatable.")] = None,
        status: Annotated[list[str] | None, Query(description="Only this status; repeatable.")] = None,
        service: Annotated[str | None, Query(description="Only this service.")] = None,
        as_of: AsOfTime = None,
        as_of_position: AsOfPosition = None,
        limit: Annotated[int | None, Query(description="1 to 200; 50 unless given.")] = None,
        after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
    ) -> Response:
        """In the order of their ids: whatever is written meanwhile, each entry comes once. The past needs audit."""
        page = memory.list_entries(
            kinds=kind,
            statuses=status,
            service=service,
            as_of=as_of,
            as_of_position=as_of_position,
            limit=limit,
            after=after,
        )
        return JSONResponse(page.as_dict())

    return routes


def _reading_routes(grandbo: Grandbo) -> APIRouter:
    routes = APIRouter(prefix=_PREFIX)
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]

    @routes.get(
        "",
        operation_id="show_entry",
        summary="An entry as it stands, or as it stood",
        response_class=JSONResponse,
        responses={
            200: one_of(
                (EntryDocument, PastEntryDocument), "The entry; of the past, with its moment and without an ETag."
            )
            | {"headers": ETAG},
            304: {"description": "The caller has the current revision.", "headers": ETAG},
            **_problems(401, 403, 404, 421, 422, 503),
        },
    )
    def show(
        memory: Caller,
        entry_id: _EntryId,
        as_of: AsOfTime = None,
        as_of_position: AsOfPosition = None,
        if_none_match: _IfNoneMatch = None,
    ) -> Response:
        """Its ETag is its revision: what a change has to name in If-Match. The past needs the act audit."""
        if as_of is not None or as_of_position is not None:
            return JSONResponse(memory.show_entry(_id(entry_id), as_of=as_of, as_of_position=as_of_position))
        entry = memory.show_entry(_id(entry_id))
        tag = tag_of(entry["revision"])
        if if_none_match is not None and is_held(tag, if_none_match):
            return Response(status_code=304, headers={"ETag": tag})
        return JSONResponse(entry, headers={"ETag": tag})

    @routes.get(
        "/history",
        operation_id="show_entry_history",
        summary="Every revision, oldest first: who, what, when, why",
        response_class=JSONResponse,
        responses={200: answers(HistoryDocument, "The history."), **_problems(401, 403, 404, 421, 503)},
    )
    def history(memory: Caller, entry_id: _EntryId) -> Response:
        """Revisions from when the entry stood above the caller's tiers are left out."""
        revisions = memory.history(_id(entry_id))
        return JSONResponse({"entry_id": revisions[0]["entry_id"], "revisions": revisions})

    @routes.get(
        "/revisions/{revision}",
        operation_id="show_entry_revision",
        summary="An entry as it was at one revision",
        response_class=JSONResponse,
        responses={200: answers(RevisionDocument, "The revision."), **_problems(401, 403, 404, 421, 503)},
    )
    def show_revision(memory: Caller, entry_id: _EntryId, revision: _RevisionNumber) -> Response:
        """With the event that made it, its author and its reason."""
        if not _PLAIN_REVISION.fullmatch(revision):
            raise NotFound
        return JSONResponse(revision_of(memory.history(_id(entry_id)), int(revision)))

    @routes.get(
        "/differences",
        operation_id="show_entry_differences",
        summary="What is different from one revision to another, word by word",
        response_class=JSONResponse,
        responses={
            200: answers(RevisionDifferencesDocument, "The fields that are not the same."),
            **_problems(401, 403, 404, 421, 422, 503),
        },
    )
    def differences(
        memory: Caller,
        entry_id: _EntryId,
        earlier: Annotated[int, Query(alias="from", ge=1, le=LARGEST_REVISION)],
        later: Annotated[int, Query(alias="to", ge=1, le=LARGEST_REVISION)],
    ) -> Response:
        """In either direction; a revision above the caller's tiers is as absent as one that never was."""
        return JSONResponse(compare_revisions(memory.history(_id(entry_id)), earlier, later).as_dict())

    @routes.get(
        "/restore-preview",
        operation_id="preview_entry_restore",
        summary="What a restore would change; nothing is written",
        response_class=JSONResponse,
        responses={
            200: answers(RestorePreviewDocument, "The differences, word by word.") | {"headers": ETAG},
            **_problems(401, 403, 404, 409, 421, 422, 503),
        },
    )
    def preview(
        memory: Caller, entry_id: _EntryId, revision: Annotated[int, Query(ge=1, le=LARGEST_REVISION)]
    ) -> Response:
        """The answer's ETag, sent as If-Match, makes sure that the restore does what was previewed."""
        found = _id(entry_id)
        state, would = memory.preview(memory.restore_wish(found, revision, reason="preview"))
        previewed = restore_preview(memory.history(found), state, would)
        return JSONResponse(previewed.as_dict(), headers={"ETag": tag_of(state.revision)})

    return routes


def _change_routes(grandbo: Grandbo) -> APIRouter:
    routes = APIRouter(prefix=_PREFIX)
    # In this order: who may not enter is told so before the body is read.
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]

    def change_of(verb: Verb) -> Callable[..., Response]:
        def change(
            memory: Caller, body: Body, request: Request, entry_id: _EntryId, idempotency_key: IdempotencyKey = None
        ) -> Response:
            options = {
                "expected_revision": expected_number(request),
                "command_id": command_id_of(memory, request, idempotency_key),
            }
            given = fields_of(verb, parse_json(body))
            changed = verb.act(memory, _id(entry_id), given, options)
            acknowledged = changed.acknowledgement
            headers = {"ETag": tag_of(acknowledged.revision)}
            if changed.replayed:
                headers["Idempotency-Replayed"] = "true"
            return JSONResponse({**acknowledged.as_dict(), "appended": changed.appended}, headers=headers)

        return change

    for verb in VERBS:
        routes.post(
            f"/{verb.name}",
            operation_id=f"{verb.name}_entry",
            summary=verb.summary,
            description="Durable when answered. The same Idempotency-Key with the same content is the first "
            "acknowledgement again, with `Idempotency-Replayed: true`.",
            response_class=JSONResponse,
            responses={
                200: answers(ChangeDocument, "It was done, or there was nothing to change.")
                | {"headers": ETAG | REPLAYED["headers"]},
                **_problems(400, 401, 403, 404, 408, 409, 412, 413, 415, 421, 422, 428, 503),
            },
            openapi_extra={**json_body(verb.document, "What is wanted, and why."), "parameters": [IF_MATCH]},
        )(change_of(verb))
    return routes


def _id(value: str) -> UUID:
    """What is no id is no entry: the same answer as for one that is not there."""
    found = parse_id(value)
    if found is None:
        raise NotFound
    return found


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Declare these statuses as problems, in the words of these routes where they mean something of their own."""
    own = [status for status in statuses if status in _MEANING]
    content = {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}}
    return problems(*(status for status in statuses if status not in own)) | {
        status: {"description": _MEANING[status], "content": content} for status in own
    }
