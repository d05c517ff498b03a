"""
Postings: which terms an entry has, and how much each weighs in it. The lexical signal.

A weight is the term-frequency part of BM25, in thousandths, as an integer: sums of integers do not depend on the
order in which the server adds them, so a ranking can be given again exactly. Rarity is counted at recall, within the
caller's scope: what he may not see must not move what he sees.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events import models
from grandbo.events.erasures import EntryKept
from grandbo.events.log import RecordedEvent
from grandbo.storage.database import Step
from grandbo.storage.tables import entries, terms
from grandbo.storage.tenancy import TENANT, of_tenant
from grandbo.text import term_counts

K1 = 1.2
B = 0.75
# A constant, not the corpus' mean: a mean would make one entry's weights depend on all the others.
TYPICAL_LENGTH = 250
# No term weighs as much, however often it stands in however short a text.
MOST_WEIGHT = round(1000 * (K1 + 1))
FIELD_WEIGHTS = {"title": 3, "tags": 3, "service": 2, "summary": 2, "body": 1}

# One text with spaces, not an array: the server splits it faster than the driver builds one. No term has a space.
TERMS = sa.func.string_to_array(sa.bindparam("terms", type_=sa.Text), " ", type_=pg.ARRAY(sa.Text))
_WEIGHTS = sa.cast(
    sa.func.string_to_array(sa.bindparam("weights", type_=sa.Text), " ", type_=pg.ARRAY(sa.Text)), pg.ARRAY(sa.Integer)
)
_posting = (
    sa.func.unnest(TERMS, _WEIGHTS)
    .table_valued(sa.column("term", sa.Text), sa.column("weight", sa.Integer), name="posting")
    .render_derived()
)

INSERT = sa.insert(terms).from_select(
    ["tenant_id", "entry_id", "term", "from_position", "weight", "visibility"],
    sa.select(
        TENANT,
        sa.bindparam("entry_id", type_=sa.Uuid),
        _posting.c.term,
        sa.bindparam("from_position", type_=sa.BigInteger),
        _posting.c.weight,
        sa.bindparam("visibility", type_=sa.Text),
    ),
)


_LIVE = sa.and_(
    of_tenant(terms), terms.c.entry_id == sa.bindparam("entry_id", type_=sa.Uuid), terms.c.to_position.is_(None)
)


def _of_row(column: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    its_row = sa.and_(of_tenant(entries), entries.c.entry_id == sa.bindparam("entry_id", type_=sa.Uuid))
    return sa.select(column).where(its_row).scalar_subquery()


# The entry's row has its tier and its terms until the entries' projector replaces it, which comes after this one: the
# postings are found through their one index, by tier and term, instead of by reading all of the tenant's.
_OF_ENTRY = sa.and_(
    terms.c.visibility == _of_row(entries.c.visibility),
    terms.c.term == sa.any_(sa.cast(_of_row(entries.c.terms), pg.ARRAY(sa.Text))),
)
_CLOSE = sa.update(terms).where(_LIVE, _OF_ENTRY).values(to_position=sa.bindparam("from_position", type_=sa.BigInteger))
_REOPEN = sa.insert(terms).from_select(
    ["tenant_id", "entry_id", "term", "from_position", "weight", "visibility"],
    sa.select(
        terms.c.tenant_id,
        terms.c.entry_id,
        terms.c.term,
        terms.c.to_position,
        terms.c.weight,
        sa.bindparam("visibility", type_=sa.Text),
    ).where(
        of_tenant(terms),
        terms.c.entry_id == sa.bindparam("entry_id", type_=sa.Uuid),
        terms.c.to_position == sa.bindparam("from_position", type_=sa.BigInteger),
        _OF_ENTRY,
    ),
)

# What carries a text that is found by its words.
Indexed = models.EntryRecorded | models.TextChanged | EntryKept


def project(event: RecordedEvent) -> list[Step]:
    """Open the postings of a new text; close those of the text before it, or of the tier before it."""
    key = {"tenant_id": event.header.tenant_id, "entry_id": event.header.stream_id, "from_position": event.position}
    match event.data:
        case models.EntryRecorded() as recorded:
            return [_opened(key, recorded)]
        case models.TextChanged() as changed:
            return [(_CLOSE, key), _opened(key, changed)]
        case models.EntryReclassified() as reclassified:
            return [(_CLOSE, key), (_REOPEN, {**key, "visibility": reclassified.visibility})]
        case _:
            return []


def opened_terms(event: RecordedEvent, text: Indexed) -> Step:
    """Open the postings of a text from this event on."""
    header = event.header
    key = {"tenant_id": header.tenant_id, "entry_id": header.stream_id, "from_position": event.position}
    return _opened(key, text)


def _opened(key: dict[str, Any], text: Indexed) -> Step:
    weights = term_weights(text)
    params = {
        **key,
        "visibility": text.visibility,
        "terms": " ".join(weights),
        "weights": " ".join(map(str, weights.values())),
    }
    return INSERT, params


@lru_cache(maxsize=16)
def term_weights(entry: Indexed) -> dict[str, int]:
    """Weight of each term, in thousandths, terms in order. Remembered: the entry's own row lists the terms too."""
    frequency: Counter[str] = Counter()
    length = 0
    fields = {
        "title": entry.title,
        "tags": " ".join(entry.tags),
        "service": entry.service,
        "summary": entry.summary,
        "body": entry.body,
    }
    for name, text in fields.items():
        counts = term_counts(text)
        length += counts.total()
        for term, count in counts.items():
            frequency[term] += count * FIELD_WEIGHTS[name]
    damping = K1 * (1 - B + B * length / TYPICAL_LENGTH)
    return {term: round(1000 * tf * (K1 + 1) / (tf + damping)) for term, tf in sorted(frequency.items())}
