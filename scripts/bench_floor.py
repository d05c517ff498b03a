"""
The floor: what a careful person would write by hand over the same vectors and postings.

Its tables are in the schema `floor`; those of further tenants in others (`in_schema`).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg

# The same ranking, without tenants, tiers, validity or counts.
FLOOR_QUERY = """
WITH posting AS MATERIALIZED (SELECT term, entry_id, weight FROM floor.terms WHERE term = ANY(%(terms)s)),
rarity AS (
  SELECT term, ln(1 + ((SELECT count(*) FROM floor.entries) - count(*) + 0.5) / (count(*) + 0.5)) AS rarity
    FROM posting GROUP BY term),
lexical AS (
  SELECT entry_id, row_number() OVER (ORDER BY sum(rarity * weight) DESC, entry_id) AS rank
    FROM posting JOIN rarity USING (term) GROUP BY entry_id ORDER BY rank LIMIT 25),
semantic AS (
  SELECT entry_id, row_number() OVER (ORDER BY distance, entry_id) AS rank
    FROM (SELECT entry_id, min(distance) AS distance
            FROM (SELECT entry_id, vector OPERATOR(extensions.<=>) %(vector)s AS distance FROM floor.vectors OFFSET 0) d
           GROUP BY entry_id ORDER BY 2, 1 LIMIT 25) nearest),
fused AS (
  SELECT entry_id, coalesce(1.0 / (60 + lexical.rank), 0) + coalesce(1.0 / (60 + semantic.rank), 0) AS score
    FROM lexical FULL JOIN semantic USING (entry_id) ORDER BY score DESC, entry_id LIMIT %(k)s)
SELECT * FROM fused JOIN floor.entries USING (entry_id) ORDER BY score DESC, entry_id
"""

# The nearest by meaning alone.
NEAREST_QUERY = """
SELECT entry_id FROM floor.vectors
 GROUP BY entry_id ORDER BY min(vector OPERATOR(extensions.<=>) %(vector)s), entry_id LIMIT %(k)s
"""

TABLES = (
    "CREATE TABLE floor.vectors (entry_id uuid, vector extensions.vector)",
    "ALTER TABLE floor.vectors ALTER COLUMN vector SET STORAGE PLAIN",
    "CREATE TABLE floor.terms (term text, entry_id uuid, weight int)",
    "CREATE TABLE floor.entries (entry_id uuid, title text, summary text, evidence jsonb)",
)
COPIES = (
    "INSERT INTO floor.vectors SELECT entry_id, vector FROM grandbo.org_memory_embeddings WHERE tenant_id = %s",
    "INSERT INTO floor.terms SELECT term, entry_id, weight FROM grandbo.org_memory_terms WHERE tenant_id = %s",
    "INSERT INTO floor.entries SELECT entry_id, title, summary, evidence FROM grandbo.org_memory_entries"
    " WHERE tenant_id = %s",
)
KEYS = (
    "ALTER TABLE floor.terms ADD PRIMARY KEY (term, entry_id)",
    "ALTER TABLE floor.entries ADD PRIMARY KEY (entry_id)",
)


def make_floor(conn: psycopg.Connection[Any], tenant_id: UUID, schema: str = "floor") -> None:
    """Copy what a tenant has into plain tables."""
    conn.execute(f"CREATE SCHEMA {schema}")
    for table in TABLES:
        conn.execute(in_schema(table, schema))
    for copy in COPIES:
        conn.execute(in_schema(copy, schema), (tenant_id,))
    for key in KEYS:
        conn.execute(in_schema(key, schema))
    conn.execute(in_schema("VACUUM ANALYZE floor.vectors, floor.terms, floor.entries", schema))


def in_schema(statement: str, schema: str) -> str:
    """A statement of the floor, over the tables of another schema."""
    return statement.replace("floor.", f"{schema}.")
