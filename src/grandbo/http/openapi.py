"""The OpenAPI document: generated from the routes, then made true where the generator cannot know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from grandbo.http.problems import MEDIA_TYPE
from grandbo.http.schemas import ProblemDocument, schema_of

_MEANING = {
    400: "The body is not JSON, or a header is missing or malformed.",
    401: "The credential is missing, malformed, expired, revoked or unknown.",
    403: "The credential's roles may not do this.",
    404: "There is no such thing in this tenant, or it is not the caller's to see.",
    408: "The body did not arrive in time.",
    409: "The command id was used before with other content.",
    413: "The body or a field is over its limit; the problem names it.",
    415: "The body is not declared as JSON in UTF-8.",
    429: "Too many requests in a short time, or too many proposals pending; Retry-After says when to try again.",
    421: "The server does not answer under this host name.",
    422: "A field does not fit; the problem names it and what is allowed.",
    500: "A fault of the server; its log has the request id.",
    503: "The database or another needed part cannot be reached; Retry-After says when to try again.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Declare these as problems; where a credential is needed too many may be met, a fault of the server anywhere."""
    return {
        status: {"description": _MEANING[status], "content": {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}}}
        for status in sorted({*statuses, *((429,) if 401 in statuses else ()), 500})
    }


def answers(document: Any, description: str) -> dict[str, Any]:
    """Declare a JSON answer."""
    return {"description": description, "content": {"application/json": {"schema": schema_of(document)}}}


def one_of(documents: Sequence[Any], description: str) -> dict[str, Any]:
    """Declare a JSON answer that has one of several shapes."""
    shapes = {"anyOf": [schema_of(document) for document in documents]}
    return {"description": description, "content": {"application/json": {"schema": shapes}}}


def json_body(document: Any, description: str) -> dict[str, Any]:
    """Declare a JSON body that the route reads by itself."""
    return {
        "requestBody": {
            "required": True,
            "description": description,
            "content": {"application/json": {"schema": schema_of(document)}},
        }
    }


def install_document(app: FastAPI, documents: Sequence[type[BaseModel]]) -> None:
    """Serve the document in its true form, with the bodies that its routes refer to."""
    generate = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(generate(), documents)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # the way that FastAPI documents for extending it


def _completed(document: dict[str, Any], documents: Sequence[type[BaseModel]]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    _, defined = models_json_schema(
        [(model, "validation") for model in documents], ref_template="#/components/schemas/{model}"
    )
    components["schemas"] = {_public(name): _renamed(schema) for name, schema in sorted(defined["$defs"].items())}
    for operation in _operations(document):
        for status, response in operation["responses"].items():
            if status >= "400":
                _as_problem(response, status)
            else:
                _answer_headers(response)
    return document


def _operations(document: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for path in document["paths"].values():
        yield from path.values()


def _as_problem(response: dict[str, Any], status: str) -> None:
    """The generator leaves a second entry, of its own kind of error, beside the declared one."""
    response["content"] = {MEDIA_TYPE: {"schema": schema_of(ProblemDocument)}}
    _answer_headers(response)
    if status == "401":
        response["headers"]["WWW-Authenticate"] = _header("`Bearer`, with the realm.")
    if status in ("429", "503"):
        response["headers"]["Retry-After"] = _header("Seconds to wait.", {"type": "integer", "minimum": 1})


def _answer_headers(response: dict[str, Any]) -> None:
    response.setdefault("headers", {})["X-Request-Id"] = _header("The id that the server's log has for this request.")


def _header(description: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"description": description, "schema": schema or {"type": "string"}}


def _public(name: str) -> str:
    return name.removesuffix("Document")


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: f"#/components/schemas/{_public(item.rpartition('/')[2])}" if key == "$ref" else _renamed(item)
            for key, item in value.items()
        }
    return [_renamed(item) for item in value] if isinstance(value, list) else value
