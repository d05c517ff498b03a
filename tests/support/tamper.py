"""Two ways to tamper with a log: in the database, with nothing left that refuses; and in its rows, at random."""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import rfc8785

from grandbo.types import from_utc_text
from tests.support.chains import COLUMNS, HEADER, Connection, LogRow, next_row, resealed, sealed, with_envelope

_LOG = ("org_memory_events", "org_memory_heads")
_NAMES = ", ".join(COLUMNS)


def disarm(conn: Connection) -> None:
    """Take away all that protects the log: constraints, keys, triggers, row-level security. A superuser can."""
    conn.execute(
        """
        DO $$
        DECLARE k record;
        BEGIN
          FOR k IN SELECT conrelid::regclass AS tab, conname FROM pg_constraint
                   WHERE conrelid IN ('grandbo.org_memory_events'::regclass, 'grandbo.org_memory_heads'::regclass)
                     AND contype IN ('c', 'f', 'u', 'p')
                   ORDER BY contype = 'f' DESC
          LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', k.tab, k.conname); END LOOP;
        END $$
        """
    )
    for trigger in ("no_row_change", "no_stmt_change"):
        conn.execute(f"ALTER TABLE grandbo.org_memory_events DISABLE TRIGGER {trigger}")
    for table in _LOG:
        conn.execute(f"CREATE TABLE public.saved_{table} AS TABLE grandbo.{table}")


@contextmanager
def tampered(conn: Connection, change: Callable[[Connection], None]) -> Iterator[None]:
    """The log after the change, committed; afterwards the log as `disarm` saw it."""
    change(conn)
    try:
        yield
    finally:
        conn.execute("TRUNCATE grandbo.org_memory_events, grandbo.org_memory_heads")
        conn.execute(
            f"INSERT INTO grandbo.org_memory_events ({_NAMES}) SELECT {_NAMES} FROM public.saved_org_memory_events"
        )
        conn.execute(
            "INSERT INTO grandbo.org_memory_heads (tenant_id, position, hash, recorded_at)"
            " SELECT tenant_id, position, hash, recorded_at FROM public.saved_org_memory_heads"
        )


def stored_rows(conn: Connection, tenant_id: UUID) -> list[LogRow]:
    """The tenant's log as it is stored."""
    with psycopg.Cursor(conn, row_factory=psycopg.rows.dict_row) as cursor:
        cursor.execute(
            f"SELECT {_NAMES} FROM grandbo.org_memory_events WHERE tenant_id = %s ORDER BY position",
            (tenant_id,),
        )
        return cursor.fetchall()


def export_lines(rows: Sequence[LogRow]) -> list[str]:
    """The log as its export has it, one JSON object an event."""
    return [
        json.dumps(
            {
                "envelope": row["envelope"],
                "body": None if row["body"] is None else base64.b64encode(row["body"]).decode(),
                "salt": None if row["salt"] is None else row["salt"].hex(),
                "prev_hash": row["prev_hash"].hex(),
                "hash": row["hash"].hex(),
            }
        )
        for row in rows
    ]


def with_columns_of_envelope(row: LogRow) -> LogRow:
    """The row with the columns that its envelope states, as far as columns can: an insider edits both."""
    try:
        document = json.loads(row["envelope"])
    except ValueError:
        return row
    if not isinstance(document, dict):
        return row
    return {**row, **{name: _as_column(row[name], document[name]) for name in HEADER if name in document}}


def _as_column(before: object, value: object) -> object:
    try:
        match before, value:
            case datetime(), str():
                return from_utc_text(value).astimezone(UTC)
            case ((UUID() | None), str()):
                return UUID(value)
            case (UUID(), None) | (str(), str()):
                return value
    except ValueError:
        return before
    return value if type(value) is type(before) else before


def random_log(chance: random.Random, tenant_id: UUID, length: int) -> list[LogRow]:
    """An honest log: several streams, subjects under keys, erasures whose bodies are gone."""
    rows: list[LogRow] = []
    streams: dict[UUID, int] = {}
    subjects = [uuid.UUID(int=chance.getrandbits(128), version=4) for _ in range(2)]
    for _ in range(length):
        stream = chance.choice(list(streams)) if streams and chance.random() < 0.5 else uuid.uuid4()
        subject = chance.choice(subjects) if chance.random() < 0.2 else None
        change: dict[str, Any] = {"stream_id": stream, "subject_id": subject}
        if rows and chance.random() < 0.2:
            gone = {chance.choice(rows)["stream_id"]}
            change |= {"event_type": "entry_erased", "subject_id": None, "body": _erasure(gone)}
            if chance.random() < 0.4:
                stream = chance.choice(rows)["stream_id"]
                own = [row["position"] for row in rows if row["stream_id"] == stream]
                named = chance.sample(own, chance.randint(1, len(own)))
                change |= {"stream_id": stream, "body": _erasure(set(), named)}
            if chance.random() < 0.5:
                stream = chance.choice(subjects)
                change |= {"event_type": "subject_erased", "stream_id": stream, "body": _erasure(set())}
        elif subject is not None:
            change["body"] = b"\x01" + chance.randbytes(40)
        streams[stream] = streams.get(stream, 0) + 1
        before = rows[-1] if rows else None
        change["stream_version"] = streams[stream]
        change["recorded_at"] = (before["recorded_at"] if before else next_row(tenant_id)["recorded_at"]) + timedelta(
            microseconds=chance.randrange(3)
        )
        rows.append(next_row(tenant_id, before, **change))
    return _with_bodies_removed(chance, rows)


def mutant(chance: random.Random, rows: Sequence[LogRow]) -> list[LogRow]:
    """The log with one thing wrong, or with a rewriting that an insider could make; it may still be a correct log."""
    made = [dict(row) for row in rows]
    at = chance.randrange(len(made))
    kind = chance.choice(_MUTATIONS)
    return kind(chance, made, at)


def _erasure(streams: set[UUID], positions: Sequence[int] = ()) -> bytes:
    said: dict[str, Any] = {"reason": "request", "streams": sorted(map(str, streams))}
    return rfc8785.dumps(said | ({"positions": sorted(positions)} if positions else {}))


def _with_bodies_removed(chance: random.Random, rows: list[LogRow]) -> list[LogRow]:
    for erasure in rows:
        if erasure["event_type"] not in ("entry_erased", "subject_erased") or chance.random() < 0.3:
            continue
        said = json.loads(erasure["body"])
        streams, positions = set(said["streams"]), said.get("positions", [])
        for row in rows[: erasure["position"] - 1]:
            of_subject = erasure["event_type"] == "subject_erased" and row["subject_id"] == erasure["stream_id"]
            is_erasure = row["event_type"] in ("entry_erased", "subject_erased")
            is_named = row["stream_id"] == erasure["stream_id"] and row["position"] in positions
            if not is_erasure and (of_subject or is_named or str(row["stream_id"]) in streams):
                row["body"] = row["salt"] = None
    return rows


def _flip(chance: random.Random, data: bytes) -> bytes:
    at, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
    return data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]


def _edit_bytes(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    names = [name for name in ("body", "salt", "prev_hash", "hash") if rows[at][name]]
    name = chance.choice(names)
    rows[at][name] = _flip(chance, rows[at][name])
    return rows


def _remove_body(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    for name in chance.choice((("body",), ("salt",), ("body", "salt"))):
        rows[at][name] = None
    return rows


def _edit_envelope_text(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    text: str = rows[at]["envelope"]
    where = chance.randrange(len(text))
    put = chance.choice(("", "0", "9", "f", " ", '"', "}", "\u00e9", "null", "true", "1.0", "\\u0031"))
    text = text[:where] + put + text[where + chance.randrange(2) :]
    rows[at] = with_envelope(rows[at], text) if chance.random() < 0.5 else {**rows[at], "envelope": text}
    return rows


def _edit_envelope_value(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    """Another value, another type, a key more or fewer; hashes fit, and so do all that follow."""
    document = json.loads(rows[at]["envelope"])
    name = chance.choice(sorted(document))
    match chance.randrange(4):
        case 0:
            document[name] = chance.choice((None, True, False, 0, 1, 2, -1, "", "1", [], {}, str(uuid.uuid4())))
        case 1:
            del document[name]
        case 2:
            document["extra"] = None
        case _:
            document[name] = document[chance.choice(sorted(document))]
    rows[at] = with_envelope(rows[at], rfc8785.dumps(document).decode())
    return _relinked(rows, at)


def _relinked(rows: list[LogRow], at: int) -> list[LogRow]:
    for index in range(at + 1, len(rows)):
        row = {**rows[index], "prev_hash": rows[index - 1]["hash"]}
        rows[index] = with_envelope(row, row["envelope"])
    return rows


def _edit_column(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    """A column and its envelope together, sealed; sometimes all that follows is sealed anew as well."""
    row = rows[at]
    if row["body"] is None:
        return _remove_body(chance, rows, at)
    change = chance.choice(
        (
            {"stream_version": row["stream_version"] + chance.choice((-1, 1, 5))},
            {"stream_id": chance.choice(rows)["stream_id"]},
            {"event_id": chance.choice(rows)["event_id"]},
            {"command_id": chance.choice(rows)["command_id"]},
            {"command_index": 1},
            {"recorded_at": row["recorded_at"] + timedelta(seconds=chance.choice((-1, 1)))},
            {"occurred_at": row["occurred_at"] + timedelta(seconds=1)},
            {"tenant_id": uuid.uuid4()},
            {"position": row["position"] + 1},
            {"principal": chance.choice(("human:zoe", f"agent:{uuid.uuid4()}", ""))},
            {"event_type": chance.choice(("entry_archived", "Entry", "entry_erased", "subject_erased"))},
            {"body": chance.choice((b"{}", b"[]", b"\xff", b'{"streams":1}', b'{"streams":[1]}'))},
            {"subject_id": uuid.uuid4()},
        )
    )
    rows[at] = sealed(row, **change)
    return _relinked(rows, at) if chance.random() < 0.7 else rows


def _insert(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    rows.insert(at, next_row(rows[0]["tenant_id"], rows[at - 1] if at else None))
    return rows


def _delete(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    del rows[at]
    return rows


def _duplicate(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    rows.insert(chance.randrange(len(rows) + 1), dict(rows[at]))
    return rows


def _swap(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    other = chance.randrange(len(rows))
    rows[at], rows[other] = rows[other], rows[at]
    return rows


def _splice(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    """An event of another tenant's log in place of one's own; sometimes relabelled and sealed anew."""
    foreign = uuid.uuid4()
    rows[at] = next_row(foreign, rows[at - 1] if at else None)
    if chance.random() < 0.5:
        rows[at] = sealed(rows[at], tenant_id=rows[at - 1]["tenant_id"])
    return _relinked(rows, at) if chance.random() < 0.5 else rows


def _rewrite(chance: random.Random, rows: list[LogRow], at: int) -> list[LogRow]:
    """Everything from here on is sealed anew with another event in place: an insider's perfect rewriting."""
    if any(row["body"] is None for row in rows[at:]):
        return _edit_bytes(chance, rows, at)
    rows[at] = sealed(rows[at], body=b'{"n":-1}')
    return [*rows[:at], *resealed(rows[at:])]


_MUTATIONS = (
    _edit_bytes,
    _remove_body,
    _edit_envelope_text,
    _edit_envelope_value,
    _edit_column,
    _insert,
    _delete,
    _duplicate,
    _swap,
    _splice,
    _rewrite,
)
