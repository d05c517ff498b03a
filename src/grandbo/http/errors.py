"""Errors that only an HTTP caller can meet."""

from __future__ import annotations

from grandbo.errors import InvalidInput, NotFound, Unavailable


class IdempotencyKeyMissing(InvalidInput):
    """The finding names no incident, so a retry could not be told from a new one; send an Idempotency-Key header."""

    code = "idempotency_key_missing"
    http_status = 400


class IdempotencyKeyInvalid(InvalidInput):
    """The Idempotency-Key header must be given once and hold a UUID, or 1 to 200 printable ASCII characters."""

    code = "idempotency_key_invalid"
    http_status = 400


class PreconditionRequired(InvalidInput):
    """Say which revision this was decided on: send the entry's ETag in an If-Match header."""

    code = "precondition_required"
    http_status = 428


class IfMatchInvalid(InvalidInput):
    """The If-Match header must be given once and hold one revision in quotes, such as "3": the entry's ETag."""

    code = "if_match_invalid"
    http_status = 400


class UnsupportedMediaType(InvalidInput):
    """Send JSON in UTF-8, uncompressed, with the header Content-Type: application/json."""

    code = "unsupported_media_type"
    http_status = 415


class BodyTimeout(InvalidInput):
    """The body did not arrive in time; send it again, nothing was stored."""

    code = "body_timeout"
    http_status = 408


class HostNotAllowed(InvalidInput):
    """This server does not answer under that host name; call it by the address it was told to listen on."""

    code = "host_not_allowed"
    http_status = 421


class RouteUnknown(NotFound):
    """There is nothing at this address; /openapi.json lists what there is."""

    code = "route_unknown"


class MethodNotAllowed(InvalidInput):
    """This address does not take that method; the Allow header names those it takes."""

    code = "method_not_allowed"
    http_status = 405


class NotReady(Unavailable):
    """Not ready to serve; the reasons name what is missing."""

    code = "not_ready"
