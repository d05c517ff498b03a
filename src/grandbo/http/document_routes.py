"""`/v1/documents`: post-mortems and runbooks, uploaded."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

import base64
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse, Response

from grandbo.errors import InvalidInput
from grandbo.http.body import read_json_body
from grandbo.http.document_schemas import (
    FollowReportDocument,
    PostMortemReportDocument,
    UploadedPostMortemDocument,
    UploadedRunbooksDocument,
)
from grandbo.http.fields import read_fields
from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import answers, json_body, problems
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.importing import parse_json

# A PDF of 8 MiB as base64, or a document of 1 MiB in escapes.
UPLOAD_LIMIT_BYTES = 12 * 1024 * 1024
_FLAGS = ("record", "preview")


def document_routes(grandbo: Grandbo) -> APIRouter:
    """The routes of the documents."""
    routes = APIRouter(prefix="/v1/documents")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]
    Body = Annotated[bytes, Depends(read_json_body)]
    wrong = problems(400, 401, 403, 408, 409, 413, 415, 421, 422, 503)

    @routes.post(
        "/postmortems",
        operation_id="upload_postmortem",
        summary="Take in a post-mortem",
        response_class=JSONResponse,
        responses={200: answers(PostMortemReportDocument, "What became of it, or would."), **wrong},
        openapi_extra=json_body(UploadedPostMortemDocument, "The document; at most 12 MiB."),
    )
    def upload_postmortem(memory: Caller, body: Body) -> Response:
        """The same again changes nothing; a changed one changes what it made. Try it with `preview`."""
        known = ("name", "text", "base64", "uri", "visibility", *_FLAGS)
        given = _checked(read_fields(parse_json(body), known, required=("name",)))
        raw = _bytes_of(given)
        report = memory.import_postmortem(
            raw,
            given["name"],
            uri=given.get("uri", ""),
            record=given.get("record", False),
            visibility=given.get("visibility"),
            dry_run=given.get("preview", False),
        )
        return JSONResponse(report.as_dict())

    @routes.post(
        "/runbooks",
        operation_id="upload_runbooks",
        summary="Take in runbooks",
        response_class=JSONResponse,
        responses={200: answers(FollowReportDocument, "What became of each, or would."), **wrong},
        openapi_extra=json_body(UploadedRunbooksDocument, "The files; at most 12 MiB."),
    )
    def upload_runbooks(memory: Caller, body: Body) -> Response:
        """A file is known again by its path and collection. One that is refused does not stop the rest."""
        known = ("files", "collection", "base_uri", "service", "visibility", "preview")
        given = read_fields(parse_json(body), known, required=("files", "collection"))
        files = given.pop("files")
        _checked(given)
        report = memory.import_runbook_files(
            _files_of(files),
            collection=given["collection"],
            base_uri=given.get("base_uri", ""),
            service=given.get("service", ""),
            visibility=given.get("visibility"),
            dry_run=given.get("preview", False),
        )
        return JSONResponse(report.as_dict())

    return routes


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        wanted: type = bool if name in _FLAGS else str
        if not isinstance(value, wanted):
            raise InvalidInput(f"{name}: it must be {'true or false' if wanted is bool else 'text'}.", field=name)
    return given


def _bytes_of(given: dict[str, Any]) -> bytes:
    if ("text" in given) == ("base64" in given):
        raise InvalidInput("text: give the document as text, or a PDF as base64.", field="text")
    if "text" in given:
        return _encoded(given["text"])
    try:
        return base64.b64decode(given["base64"], validate=True)
    except ValueError:
        raise InvalidInput("base64: it is not base64.", field="base64") from None


def _files_of(files: object) -> list[tuple[str, bytes]]:
    if not isinstance(files, list):
        raise InvalidInput("files: it must be a list.", field="files")
    found = []
    for item in files:
        file = _checked(read_fields(item, ("name", "text"), required=("name", "text")))
        found.append((file["name"], _encoded(file["text"])))
    return found


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("text: it holds half of a surrogate pair.", field="text") from None
