"""
Recall by brute force: an independent reckoning over plain rows, read by a superuser, with numpy and Python alone.

It shares the text's terms with the product, and nothing of its SQL: scope, both rankings, the gates and the fusion are
written down again from the design.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from psycopg.rows import dict_row

from grandbo.recall.scan import Scan
from grandbo.text import terms


@dataclass(frozen=True)
class Expected:
    """What recall must give: ids in order, what is folded into each, and the rankings behind them."""

    ids: list[UUID]
    restated: dict[UUID, list[UUID]]
    lexical: list[UUID]
    semantic: list[tuple[UUID, float]]
    eligible: int


def expected(
    conn: psycopg.Connection[Any],
    tenant_id: UUID,
    topic: str,
    vector: np.ndarray[Any, Any] | None,
    *,
    stamp: str,
    cutoff: float,
    tiers: tuple[str, ...],
    instant: datetime,
    kinds: tuple[str, ...] = (),
    service: str | None = None,
    limit: int = 5,
    words: bool = True,
    scan: Scan | None = None,
) -> Expected:
    """Rank everything in scope by brute force; with `scan`, what a large scope gives."""
    register_vector(conn)
    cursor = conn.cursor(row_factory=dict_row)
    entries = cursor.execute("SELECT * FROM grandbo.org_memory_entries WHERE tenant_id = %s", (tenant_id,)).fetchall()
    eligible = {
        row["entry_id"]
        for row in entries
        if row["visibility"] in tiers
        and row["status"] == "published"
        and row["valid_from"] <= instant < row["expires_at"]
        and (not kinds or row["kind"] in kinds)
        and (service is None or row["service"] == service)
    }
    semantic, measured = _semantic(cursor, tenant_id, eligible, vector, stamp, cutoff, scan)
    alone = vector is not None and measured == len(eligible) and not semantic
    asked = list(dict.fromkeys(terms(topic)))[:256]
    floor_bp = 5_000 if alone else 200
    if scan is None:
        ranked = _lexical(cursor, tenant_id, eligible, asked, floor_bp)
    else:
        standing = {row["entry_id"] for row in entries if row["visibility"] in tiers}
        ranked = _lexical_of_large(cursor, tenant_id, eligible, standing, asked, floor_bp, scan)
    lexical = ranked if words else []
    scores: defaultdict[UUID, float] = defaultdict(float)
    for ranking in (lexical, [(entry, (1 - distance) ** 1.5) for entry, distance in semantic]):
        mean = sum(measure for _, measure in ranking) / max(1, len(ranking))
        for rank, (entry, measure) in enumerate(ranking, start=1):
            scores[entry] += (measure / mean) ** 2 / (60 + rank)
    ordered = sorted(scores, key=lambda entry: (-scores[entry], entry))
    restated = _folded(cursor, tenant_id, ordered, {row["entry_id"]: row for row in entries})
    ids = list(restated)[:limit]
    return Expected(
        ids, {entry: restated[entry] for entry in ids}, [entry for entry, _ in lexical], semantic, len(eligible)
    )


def _folded(
    cursor: Any, tenant_id: UUID, ordered: list[UUID], entries: dict[UUID, dict[str, Any]]
) -> dict[UUID, list[UUID]]:
    """Each entry in the first before it that says the same, by a person's word or word for word."""
    linked = cursor.execute(
        "SELECT from_entry, to_entry FROM grandbo.org_memory_links"
        " WHERE tenant_id = %s AND to_position IS NULL AND link_type = 'duplicates'",
        (tenant_id,),
    ).fetchall()
    pairs = {frozenset((row["from_entry"], row["to_entry"])) for row in linked}
    folded: dict[UUID, list[UUID]] = {}
    for entry in ordered:
        row = entries[entry]
        for kept, others in folded.items():
            same_label = all(row[name] == entries[kept][name] for name in ("status", "disputed"))
            by_link = any(frozenset((entry, other)) in pairs for other in (kept, *others))
            if same_label and (by_link or _says_nothing_more(row, entries[kept])):
                others.append(entry)
                break
        else:
            folded[entry] = []
    return folded


def _says_nothing_more(row: dict[str, Any], kept: dict[str, Any]) -> bool:
    if any(row[name] != kept[name] for name in ("kind", "service", "namespace", "applicability")):
        return False

    def words(text: str) -> list[str]:
        around = ".,;:!\"'`*_()[]{}\u2018\u2019\u201c\u201d"
        plain = (word.strip(around) for word in unicodedata.normalize("NFKC", text).casefold().split())
        return [word for word in plain if word not in ("", "a", "an", "the")]

    same_words = all(words(row[name]) == words(kept[name]) for name in ("title", "summary"))
    return same_words and (not row["body"].strip() or words(row["body"]) == words(kept["body"]))


def _semantic(
    cursor: Any,
    tenant_id: UUID,
    eligible: set[UUID],
    vector: Any,
    stamp: str,
    cutoff: float,
    scan: Scan | None,
) -> tuple[list[tuple[UUID, float]], int]:
    if vector is None:
        return [], 0
    rows = cursor.execute(
        "SELECT entry_id, window_no, vector FROM grandbo.org_memory_embeddings"
        " WHERE tenant_id = %s AND stamp = %s AND to_position IS NULL",
        (tenant_id, stamp),
    ).fetchall()
    rows = [row for row in rows if row["entry_id"] in eligible]
    embedded = {row["entry_id"] for row in rows}
    if scan is not None:
        of_topic = _signature(np.asarray(vector, dtype=np.float32))

        def apart(row: dict[str, Any]) -> tuple[int, UUID, int]:
            bits = int((_signature(row["vector"].to_numpy()) != of_topic).sum())
            return bits, row["entry_id"], row["window_no"]

        survivors = scan.survivors
        while survivors < len(embedded) * scan.survivors_bp / 10_000:
            survivors *= 2
        rows = sorted(rows, key=apart)[:survivors]
    topic = np.asarray(vector, dtype=np.float64)
    nearest: dict[UUID, float] = {}
    for row in rows:
        if row["entry_id"] in eligible:
            other = np.asarray(row["vector"].to_numpy(), dtype=np.float64)
            distance = 1 - float(topic @ other) / float(np.linalg.norm(topic) * np.linalg.norm(other))
            nearest[row["entry_id"]] = min(distance, nearest.get(row["entry_id"], 9.0))
    listed = sorted(((distance, entry) for entry, distance in nearest.items() if distance < cutoff))[:25]
    titles = _titles(cursor, tenant_id, topic, stamp)
    ranked = sorted((min(distance, titles.get(entry, 9.0)), entry) for distance, entry in listed)
    return [(entry, distance) for distance, entry in ranked], len(embedded)


def _titles(cursor: Any, tenant_id: UUID, topic: np.ndarray[Any, Any], stamp: str) -> dict[UUID, float]:
    """How far the title alone of each entry is, where it has a vector."""
    rows = cursor.execute(
        "SELECT entry_id, vector FROM grandbo.org_memory_embeddings"
        " WHERE tenant_id = %s AND stamp = %s AND to_position IS NULL",
        (tenant_id, stamp.rpartition("/")[0] + "/title-v1"),
    ).fetchall()
    vectors = {row["entry_id"]: np.asarray(row["vector"].to_numpy(), dtype=np.float64) for row in rows}
    return {
        entry: 1 - float(topic @ vector) / float(np.linalg.norm(topic) * np.linalg.norm(vector))
        for entry, vector in vectors.items()
    }


def _signature(vector: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Above the middle, the upper and the lower quartile of the numbers of a normalised vector."""
    quartile = np.float32(0.6745 / math.sqrt(vector.size))
    return np.concatenate([vector > 0, vector > quartile, vector > -quartile])


def _postings(cursor: Any, tenant_id: UUID, among: set[UUID], asked: list[str]) -> dict[str, dict[UUID, int]]:
    rows = cursor.execute(
        "SELECT term, entry_id, weight FROM grandbo.org_memory_terms"
        " WHERE tenant_id = %s AND to_position IS NULL AND term = ANY(%s)",
        (tenant_id, asked),
    ).fetchall()
    postings: dict[str, dict[UUID, int]] = {term: {} for term in asked}
    for row in rows:
        if row["entry_id"] in among:
            postings[row["term"]][row["entry_id"]] = row["weight"]
    return postings


def _reckoned(found: dict[UUID, int], sampled_from: int | None) -> int:
    """How many entries have a term: of a frequent one, sixteen times as many as have it of one in sixteen."""
    sampled = sum(entry.bytes[-1] < 16 for entry in found)
    return 16 * sampled if sampled_from is not None and sampled >= sampled_from else len(found)


def _rarities(frequency: dict[str, int], whole: int) -> dict[str, int]:
    return {
        term: max(1, round(1000 * math.log(1 + (whole - count + 0.5) / (count + 0.5))))
        for term, count in frequency.items()
    }


def _scores(
    postings: dict[str, dict[UUID, int]], rarity: dict[str, int], counted: set[str]
) -> tuple[dict[UUID, int], dict[UUID, int]]:
    """What the entries' postings of the terms that are counted add up to, and what they share of the topic's weight."""
    score: defaultdict[UUID, int] = defaultdict(int)
    shared: defaultdict[UUID, int] = defaultdict(int)
    for term in counted:
        for entry, weight in postings[term].items():
            score[entry] += rarity[term] * weight
            shared[entry] += rarity[term]
    return score, shared


def _lexical(
    cursor: Any, tenant_id: UUID, eligible: set[UUID], asked: list[str], floor_bp: int
) -> list[tuple[UUID, int]]:
    postings = _postings(cursor, tenant_id, eligible, asked)
    rarity = _rarities({term: len(found) for term, found in postings.items()}, len(eligible))
    whole = sum(rarity.values())
    score, shared = _scores(postings, rarity, set(asked))
    kept = [entry for entry in score if shared[entry] * 10_000 >= whole * floor_bp]
    return [(entry, score[entry]) for entry in sorted(kept, key=lambda entry: (-score[entry], entry))[:25]]


def _lexical_of_large(
    cursor: Any,
    tenant_id: UUID,
    eligible: set[UUID],
    standing: set[UUID],
    asked: list[str],
    floor_bp: int,
    scan: Scan,
) -> list[tuple[UUID, int]]:
    postings = _postings(cursor, tenant_id, standing, asked)
    frequency = {term: _reckoned(found, scan.sampled_from) for term, found in postings.items()}
    rarity = _rarities(frequency, len(standing))
    by_rarity = sorted(asked, key=lambda term: (frequency[term], term))
    most = max(scan.postings, len(standing) * scan.share_bp / 10_000)
    read = accumulate(frequency[term] for term in by_rarity)
    rare = {
        term
        for place, (term, so_far) in enumerate(zip(by_rarity, read, strict=True))
        if place < scan.rarest or so_far <= most
    }
    partly, _ = _scores(postings, rarity, rare)
    share = len(standing) / max(1, len(eligible))
    depth = min(20_000, math.ceil(scan.depth * share) if scan.in_proportion else scan.depth * math.ceil(share))
    best = sorted(partly, key=lambda entry: (-partly[entry], entry))[:depth]
    if scan.margin is not None:
        place = 25 * scan.margin * depth // scan.depth
        last = partly[best[place - 1]] if place <= len(best) else 0
        most = 2200 * sum(rarity[term] for term in asked if term not in rare)
        best = [entry for entry in best if partly[entry] + most >= last]
    deep = set(best)
    score, shared = _scores(postings, rarity, set(asked))
    whole = sum(rarity.values())
    kept = [entry for entry in deep & eligible if shared[entry] * 10_000 >= whole * floor_bp]
    return [(entry, score[entry]) for entry in sorted(kept, key=lambda entry: (-score[entry], entry))[:25]]
