"""
Every error a caller can meet: a stable code, an HTTP status, a CLI exit code, and a sentence that names the way out.

The class docstring is the default message. A message never holds a secret, a topic or a stored text: it is shown to
callers and written to logs.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar


class GrandboError(Exception):
    """Something went wrong inside Grandbo; the log on stderr has the details."""

    code: ClassVar[str] = "internal_error"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 7

    def __init__(self, message: str | None = None, **details: Any) -> None:
        self.message = message or inspect.cleandoc(type(self).__doc__ or "")
        self.details = details
        super().__init__(self.message)

    def as_dict(self) -> dict[str, Any]:
        """Give ``{code, message, **details}``, the same at every door."""
        return {"code": self.code, "message": self.message, **self.details}


# -- the caller's input ------------------------------------------------------------------------------------------------


class InvalidInput(GrandboError):
    """The input does not fit; the message names the field and what is allowed there."""

    code = "invalid_input"
    http_status = 422
    exit_code = 2


class LimitExceeded(InvalidInput):
    """A field is longer than its limit; shorten it, nothing is ever cut silently."""

    code = "limit_exceeded"
    http_status = 413


class EvidenceMissing(InvalidInput):
    """A finding needs at least one piece of evidence that is not itself memory: a link to a ticket, a log, a graph."""

    code = "evidence_missing"


class KindNotRecorded(InvalidInput):
    """What is personal is remembered under its subject, and a note belongs to an investigation; neither is recorded."""

    code = "kind_not_recorded"


class SubjectMissing(InvalidInput):
    """What is about a person or a workspace names its subject: register it, and give its id or reference."""

    code = "subject_missing"


class OriginMissing(InvalidInput):
    """Give evidence, or an origin that names the conversation or the person it comes from."""

    code = "origin_missing"


class ScreenRefused(InvalidInput):
    """The text holds something that this tenant does not let in; the message names the field and the kind."""

    code = "screen_refused"


class SourceRefused(InvalidInput):
    """Evidence must not lead to a script, a file or the machine itself, nor hold a password; link a page for people."""

    code = "source_refused"


class DestinationRefused(InvalidInput):
    """The address leads into the service's own network; whoever runs it can allow that with GRANDBO_SEND_INTERNAL."""

    code = "destination_refused"


class PdfRefused(InvalidInput):
    """The PDF is encrypted, broken, without text or too much; `reason` says which, the message what to do."""

    code = "pdf_refused"


class TopicTooShort(InvalidInput):
    """The topic says too little; write a sentence: the symptom, the suspected mechanism, the component."""

    code = "topic_too_short"


class TopicIsSlug(InvalidInput):
    """The topic is a bare name; write a sentence: the symptom, the suspected mechanism, the component."""

    code = "topic_is_slug"


class NotJSON(InvalidInput):
    """The input is not valid JSON in UTF-8."""

    code = "not_json"
    http_status = 400


# -- who is asking -----------------------------------------------------------------------------------------------------


class Unauthenticated(GrandboError):
    """The credential is missing, malformed, expired, revoked or unknown; make one with `grandbo key create`."""

    code = "unauthenticated"
    http_status = 401
    exit_code = 4


class SignInStale(GrandboError):
    """This sign-in was begun in another browser, too long ago, or is over already; begin it again."""

    code = "sign_in_stale"
    http_status = 400
    exit_code = 4


class SignInRefused(GrandboError):
    """The identity provider did not let you in, or what it says of you opens nothing here; the message says which."""

    code = "sign_in_refused"
    http_status = 403
    exit_code = 4


class Forbidden(GrandboError):
    """The credential does not carry a role that may do this."""

    code = "forbidden"
    http_status = 403
    exit_code = 4


# -- what is stored ----------------------------------------------------------------------------------------------------


class NotFound(GrandboError):
    """There is no such thing in this tenant, or it is not yours to see."""

    code = "not_found"
    http_status = 404
    exit_code = 5


class TenantUnknown(NotFound):
    """There is no such tenant; `grandbo tenant list` names those that exist, `grandbo tenant create NAME` makes one."""

    code = "tenant_unknown"


class Conflict(GrandboError):
    """What is stored no longer is what the request was decided on."""

    code = "conflict"
    http_status = 409
    exit_code = 6


class SubjectOnHold(Conflict):
    """A legal hold stands on it; the message says why and who set it, `grandbo subject lift-hold` releases it."""

    code = "subject_on_hold"


class SubjectErased(Conflict):
    """The subject was erased, and nothing about it can be stored any more; register it anew if that is meant."""

    code = "subject_erased"


class TenantExists(Conflict):
    """A tenant of that name exists already."""

    code = "tenant_exists"


class CommandReused(Conflict):
    """This command id was used before with other content; use a new id, or send the first content again."""

    code = "command_reused"


class RevisionStale(Conflict):
    """The entry has moved on since the revision this was decided on; look at both and decide again."""

    code = "revision_stale"
    http_status = 412


class PolicyStale(Conflict):
    """The policy has changed since; read it again and decide anew."""

    code = "policy_stale"
    http_status = 412


class CandidateStale(Conflict):
    """The candidate was amended since the version this was decided on; look at it again."""

    code = "candidate_stale"
    http_status = 412


class CandidateDecided(Conflict):
    """Somebody decided on the candidate first."""

    code = "candidate_decided"


class IllegalTransition(Conflict):
    """The entry's state does not allow this; the message says what it allows."""

    code = "illegal_transition"


class StampNotReady(Conflict):
    """The space of vectors cannot be put into force, or out of it, as things stand; the message says why."""

    code = "stamp_not_ready"


class ImpactTooLarge(Conflict):
    """More entries rest on this than one command may touch; start nearer to the ends, at entries that rest on it."""

    code = "impact_too_large"


# -- configuration -----------------------------------------------------------------------------------------------------


class ConfigurationError(GrandboError):
    """A setting is wrong; the message names it."""

    code = "configuration_error"
    http_status = 503
    exit_code = 3


class DatabaseUnsafe(ConfigurationError):
    """The database login could bypass row-level security; connect as an ordinary role (see `grandbo doctor`)."""

    code = "database_unsafe"


class DatabaseBehind(ConfigurationError):
    """The database schema is older than this Grandbo; run `grandbo migrate`."""

    code = "database_behind"


class NotDistributable(ConfigurationError):
    """The tables cannot be distributed: there is no Citus, or something does not fit; nothing was changed."""

    code = "not_distributable"


class ErasureMissing(ConfigurationError):
    """The database holds what was erased: it was restored from before. Run `grandbo restore-check --apply` first."""

    code = "erasure_missing"


class DatabaseNewer(ConfigurationError):
    """The database schema is newer than this Grandbo; upgrade Grandbo, it will not guess."""

    code = "database_newer"


# -- what is down ------------------------------------------------------------------------------------------------------


class RateLimited(GrandboError):
    """Too many requests in a short time; wait as long as Retry-After says, then send it again."""

    code = "rate_limited"
    http_status = 429
    exit_code = 7

    def __init__(self, message: str | None = None, *, retry_after: float, **details: Any) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after


class QuotaExceeded(GrandboError):
    """There is too much of this already; make room first."""

    code = "quota_exceeded"
    http_status = 429
    exit_code = 6


class Unavailable(GrandboError):
    """A part that is needed cannot be reached at the moment; try again."""

    code = "unavailable"
    http_status = 503
    exit_code = 7


class DatabaseUnavailable(Unavailable):
    """The database cannot be reached; nothing was stored, sending the same request again is safe."""

    code = "database_unavailable"


class TenantBusy(Unavailable):
    """Another write held this tenant for too long; sending the same request again is safe."""

    code = "tenant_busy"


class EmbeddedServerError(Unavailable):
    """The embedded PostgreSQL server did not start; the message has the end of its log."""

    code = "embedded_server_failed"


class EmbedderError(GrandboError):
    """The embedding provider failed."""

    code = "embedder_failed"
    http_status = 503


class EmbedderTransient(EmbedderError):
    """The embedding provider is throttling, slow or down; the text stays in the backlog and is tried again."""

    code = "embedder_transient"

    def __init__(self, message: str | None = None, *, retry_after: float | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.retry_after = retry_after


class EmbedderRefused(EmbedderError):
    """The embedding provider will never accept this text, or gave a vector that cannot be one."""

    code = "embedder_refused"


class EmbedderMisconfigured(EmbedderError):
    """The embedding provider refuses the credentials, the model or the endpoint."""

    code = "embedder_misconfigured"
    exit_code = 3


class MomentUnknown(InvalidInput):
    """The log does not reach that moment; the message says what it reaches."""

    code = "moment_unknown"


class TopicMismatch(InvalidInput):
    """This is not the topic that the receipt was made for, letter by letter; give the one that was asked."""

    code = "topic_mismatch"


class ReceiptNotReplayable(Conflict):
    """The receipt cannot be replayed as things stand; the message says why."""

    code = "receipt_not_replayable"


class ReceiptBeyondTiers(Forbidden):
    """What the receipt rests on now stands above your tiers; have it replayed by someone who sees them all."""

    code = "receipt_beyond_tiers"


class LogDamaged(GrandboError):
    """The log does not verify; nothing is projected from it until it is understood."""

    code = "log_damaged"
    exit_code = 1


class EventUnreadable(LogDamaged):
    """An event in the log cannot be read by this version; the message names its position and type."""

    code = "event_unreadable"
