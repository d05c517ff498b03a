"""`ETag`, `If-Match`, `If-None-Match`: which state of a thing a request was decided on; a tag is a number in quotes."""

from __future__ import annotations

import re
from typing import Any

from fastapi import Request

from grandbo.http.errors import IfMatchInvalid, PreconditionRequired

_TAG = '"[1-9][0-9]{0,18}"'

ETAG: dict[str, Any] = {
    "ETag": {"description": "The state it is in, in quotes.", "schema": {"type": "string", "pattern": f"^{_TAG}$"}}
}
IF_MATCH: dict[str, Any] = {
    "name": "If-Match",
    "in": "header",
    "required": True,
    "description": "The state that this was decided on: the ETag that was read.",
    "schema": {"type": "string", "pattern": f"^{_TAG}$", "examples": ['"3"']},
}


def tag_of(number: int) -> str:
    """The tag of a revision, or of a position."""
    return f'"{number}"'


def expected_number(request: Request) -> int:
    """What the request names in If-Match. Raises `PreconditionRequired`, `IfMatchInvalid`."""
    stated = request.headers.getlist("if-match")
    if not stated:
        raise PreconditionRequired(field="If-Match")
    if len(stated) > 1 or not re.fullmatch(_TAG, stated[0]):
        raise IfMatchInvalid(field="If-Match")
    return int(stated[0].strip('"'))


def is_held(tag: str, stated: str) -> bool:
    """Whether the caller of If-None-Match has this state."""
    held = {item.strip().removeprefix("W/") for item in stated.split(",")}
    return tag in held or stated.strip() == "*"
