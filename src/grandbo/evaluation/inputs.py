"""A judged set: a corpus and topics as JSON Lines, and who belongs to whom as TREC qrels."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grandbo.errors import InvalidInput, NotJSON
from grandbo.finding_limits import TITLE_LIMIT
from grandbo.memory.importing import parse_json, read_lines
from grandbo.text import storable


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """
    Documents by id, as lines that the import takes; topics by id; and for each topic the ids that answer it.

    A topic without an entry in `relevant` has no answer in this corpus.
    """

    documents: dict[str, bytes]
    runbooks: frozenset[str]
    topics: dict[str, str]
    relevant: dict[str, frozenset[str]]

    @property
    def kinds(self) -> list[str]:
        """The kinds that its documents become: what else a tenant holds is not asked."""
        has = {"runbook": bool(self.runbooks), "finding": len(self.runbooks) < len(self.documents)}
        return [kind for kind, is_there in has.items() if is_there]


def read_judged_set(corpus: Path, topics: Path, qrels: Path, *, topic_field: str = "text") -> JudgedSet:
    """
    Read the three files.

    A document needs `id` and `title`; its text is `body`, or `text` where there is none, and with `applies_to` it is a
    runbook. A topic needs `id` and the field named by `topic_field`. Judgements are `topic doc relevance` or
    `topic iteration doc relevance`, separated by white space, with or without a header; 1 and more is relevant. What
    is judged relevant and is not in the corpus counts as not there.

    Raises:
        InvalidInput, NotJSON: a line that cannot be read, with its file and number; an id given twice; no topic.
    """
    documents: dict[str, bytes] = {}
    runbooks = set()
    for number, row in _rows(corpus):
        name = _id(row, corpus, number, documents)
        documents[name] = json.dumps(_importable(row, name)).encode()
        if "applies_to" in row:
            runbooks.add(name)
    asked = read_topics(topics, topic_field=topic_field)
    judged = _judged(qrels)
    relevant = {name: frozenset(judged.get(name, ())) & documents.keys() for name in asked}
    return JudgedSet(documents, frozenset(runbooks), asked, {name: ids for name, ids in relevant.items() if ids})


def read_topics(path: Path, *, topic_field: str = "text") -> dict[str, str]:
    """
    Topics by id, from JSON Lines with `id` and the field named by `topic_field`.

    Raises:
        InvalidInput, NotJSON: a line that cannot be read, with its number; an id given twice; no topic.
    """
    asked: dict[str, str] = {}
    for number, row in _rows(path):
        name = _id(row, path, number, asked)
        text = row.get(topic_field)
        if not isinstance(text, str):
            raise InvalidInput(f"{path.name}, line {number}: a topic needs the field {topic_field}.", field="topics")
        asked[name] = text
    if not asked:
        raise InvalidInput(f"{path.name} holds no topic.", field="topics")
    return asked


def _importable(row: dict[str, Any], name: str) -> dict[str, Any]:
    """The row with what a record must have: a title of a title's length, texts that can be stored, and a source."""
    title, body, summary = row.get("title"), row.get("body") or row.get("text") or "", row.get("summary")
    document = {
        **row,
        "title": storable(title, single_line=True)[:TITLE_LIMIT] if isinstance(title, str) else title,
        "body": storable(body) if isinstance(body, str) else body,
        "summary": storable(summary) if isinstance(summary, str) else summary,
        "source": row.get("source") or "evaluation",
    }
    if not (row.get("source_url") or row.get("evidence")):
        document["evidence"] = [{"type": "document", "uri": f"urn:evaluation:{len(name)}", "label": name[:100]}]
    return document


def _rows(path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(read_lines(read_file(path).splitlines()), start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except NotJSON as error:
            raise NotJSON(f"{path.name}, line {number}: {error.message}") from None
        if not isinstance(row, dict):
            raise InvalidInput(f"{path.name}, line {number}: it must be a JSON object.")
        yield number, row


def read_file(path: Path) -> bytes:
    """The bytes of a file that the caller named; raises `InvalidInput` where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path.name}: it cannot be read ({type(error).__name__}).") from None


def _id(row: dict[str, Any], path: Path, number: int, known: Iterable[str]) -> str:
    name = row.get("id")
    if not isinstance(name, str) or not name or name in known:
        raise InvalidInput(f"{path.name}, line {number}: it needs an id of its own, as text.", field="id")
    return name


def _judged(path: Path) -> dict[str, set[str]]:
    judged: dict[str, set[str]] = {}
    for number, line in enumerate(read_file(path).decode("utf-8", "replace").splitlines(), start=1):
        cells = line.split()
        if not cells or (number == 1 and not cells[-1].lstrip("-").isdecimal()):
            continue
        if len(cells) not in (3, 4) or not cells[-1].lstrip("-").isdecimal():
            raise InvalidInput(f"{path.name}, line {number}: it must be topic, document and relevance.", field="qrels")
        if int(cells[-1]) > 0:
            judged.setdefault(cells[0], set()).add(cells[-2])
    return judged
