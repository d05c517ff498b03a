"""The fields of a body that a route reads by itself; what they may hold is for the verb to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from grandbo.errors import InvalidInput

Shape = TypeVar("Shape", bound=BaseModel)


def read_fields(document: object, known: Sequence[str], *, required: Sequence[str] = ()) -> dict[str, Any]:
    """
    The named fields of a body, without those that are null.

    Raises:
        InvalidInput: not an object, a field that is not known, or one that is missing.
    """
    if not isinstance(document, dict):
        raise InvalidInput(f"The body is an object with at least {', '.join(required)}.")
    for name in document:
        if name not in known:
            raise InvalidInput(f"{name[:100]}: there is no such field; known are {', '.join(known)}.", field=name)
    given = {name: value for name, value in document.items() if value is not None}
    for name in required:
        if name not in given:
            raise InvalidInput(f"{name}: it is required.", field=name)
    return given


def read_document(shape: type[Shape], document: object) -> Shape:
    """What a body says, in a declared shape. Raises `InvalidInput` with the first thing that does not fit."""
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise InvalidInput(f"{where[:100]}: {first['msg']}.", field=where) from None
