"""
Vectors: the semantic signal. Each row carries the scope of its entry, so that a scan needs no join.

A vector belongs to a text, named by its digest. The statement takes it only while the entry still has that text: a
vector that comes late, for a text that was replaced, lands nowhere, live and in every replay alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sqlalchemy as sa

from grandbo.events import models
from grandbo.events.log import RecordedEvent
from grandbo.events.models import EmbeddedWindow
from grandbo.storage.database import Step
from grandbo.storage.tables import embeddings, entries
from grandbo.storage.tenancy import of_tenant
from grandbo.storage.vectors import Vector, signature_of, stands_by_key, stored_length

_ENTRY = sa.bindparam("entry_id", type_=sa.Uuid)
_STAMP = sa.bindparam("stamp", type_=sa.Text)
_POSITION = sa.bindparam("at_position", type_=sa.BigInteger)
_VECTOR = sa.bindparam("vector", type_=Vector())
SCOPE = ("status", "visibility", "kind", "service", "valid_from", "expires_at")

_has_this_text = sa.and_(
    of_tenant(entries),
    entries.c.entry_id == _ENTRY,
    entries.c.text_digest == sa.bindparam("text_digest", type_=sa.LargeBinary),
)

CLOSE = (
    sa.update(embeddings)
    .where(
        of_tenant(embeddings),
        embeddings.c.stamp == _STAMP,
        embeddings.c.entry_id == _ENTRY,
        stands_by_key(embeddings),
        sa.exists(sa.select(sa.literal_column("1")).select_from(entries).where(_has_this_text)),
    )
    .values(to_position=_POSITION)
)

INSERT = sa.insert(embeddings).from_select(
    [
        "tenant_id",
        "stamp",
        "entry_id",
        "window_no",
        "from_position",
        "text_digest",
        "window_start",
        "window_end",
        *SCOPE,
        "vector",
        "signature",
    ],
    sa.select(
        entries.c.tenant_id,
        _STAMP,
        entries.c.entry_id,
        sa.bindparam("window_no", type_=sa.Integer),
        _POSITION,
        entries.c.text_digest,
        sa.bindparam("window_start", type_=sa.Integer),
        sa.bindparam("window_end", type_=sa.Integer),
        *(entries.c[name] for name in SCOPE),
        _VECTOR,
        signature_of(_VECTOR),
    ).where(_has_this_text),
)


_CLOSE_OTHER_TEXTS = (
    sa.update(embeddings)
    .where(
        of_tenant(embeddings),
        embeddings.c.entry_id == _ENTRY,
        embeddings.c.to_position.is_(None),
        embeddings.c.text_digest != sa.bindparam("text_digest", type_=sa.LargeBinary),
    )
    .values(to_position=_POSITION)
)
_CARRY_SCOPE = (
    sa.update(embeddings)
    .where(
        of_tenant(embeddings),
        of_tenant(entries),
        embeddings.c.entry_id == _ENTRY,
        entries.c.entry_id == _ENTRY,
        embeddings.c.to_position.is_(None),
    )
    .values({name: entries.c[name] for name in SCOPE})
)


def project(event: RecordedEvent) -> list[Step]:
    """Replace the vectors of one text in one space, close those of a text that is no more, carry the entry's scope."""
    key: dict[str, Any] = {
        "tenant_id": event.header.tenant_id,
        "entry_id": event.header.stream_id,
        "at_position": event.position,
    }
    match event.data:
        case models.EntryEmbedded() as embedded:
            key |= {"stamp": embedded.stamp, "text_digest": bytes.fromhex(embedded.text_digest)}
            length = stored_length(embedded.native_dimensions)
            return [(CLOSE, key), *((INSERT, {**key, **_window(window, length)}) for window in embedded.windows)]
        case models.TextChanged() as changed:
            key["text_digest"] = bytes.fromhex(changed.text_digest)
            return [(_CLOSE_OTHER_TEXTS, key), (_CARRY_SCOPE, key)]
        case models.EntryChanged():
            return [(_CARRY_SCOPE, key)]
        case _:
            return []


def _window(window: EmbeddedWindow, length: int) -> dict[str, Any]:
    native = window.decoded()
    vector = np.zeros(length, dtype=np.float32)
    vector[: native.size] = native
    return {"window_no": window.window, "window_start": window.start, "window_end": window.end, "vector": vector}
