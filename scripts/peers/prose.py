"""The words of docs/peers.md: of the systems, and of how they were measured. `scripts/tell_peers.py` adds figures."""

from __future__ import annotations

NAMES = {
    "grandbo": "**Grandbo**",
    "floor": "by hand",
    "langgraph": "LangGraph `PostgresStore`",
    "langchain": "LangChain `PGVectorStore`, hybrid",
    "llamaindex": "LlamaIndex `PGVectorStore`, hybrid",
    "llamaindex-fused": "the same, fused by `QueryFusionRetriever`",
    "pghybrid": "pghybrid",
    "mem0": "mem0, `infer=False`",
    "memgres": "memgres",
    "eventsourcing": "eventsourcing, PostgreSQL recorder",
}
# Where a name stands in a sentence.
SHORT = {
    "grandbo": "Grandbo",
    "floor": "by hand",
    "langgraph": "LangGraph",
    "langchain": "LangChain",
    "llamaindex": "LlamaIndex",
    "llamaindex-fused": "LlamaIndex fused",
    "pghybrid": "pghybrid",
    "mem0": "mem0",
    "memgres": "memgres",
    "eventsourcing": "eventsourcing",
}
# What is in the numbers of each, and what is not.
HOLDS = {
    "grandbo": (
        "words and meaning in one statement under row-level security; tenant, tier, status, kind and validity as scope;"
        " counts of what is eligible and of what lies beyond the cutoff; what restates a match folded; a receipt",
        "an event in the tenant's hash chain, what screening finds, the projections (entry, revision, postings),"
        " idempotency; the vector is a second event, which the worker brings",
    ),
    "floor": (
        "the same two rankings over a copy of Grandbo's own postings and vectors; no tenant, tier, validity or count",
        "one row of text and vector; no words, no history",
    ),
    "langgraph": (
        "meaning alone, within a namespace",
        "a row and its vector; an item written again is overwritten without a trace",
    ),
    "langchain": (
        "meaning, then words, in two round trips; words must all be in an entry; both lists fused by rank; no tenant"
        " where there is but one",
        "one row with vector and words; no history",
    ),
    "llamaindex": (
        "meaning, then words, in two statements; what words found besides stands behind the k by meaning, so they"
        " change nothing among the first k; no tenant where there is but one",
        "one row with vector and words; no history",
    ),
    "llamaindex-fused": ("both lists fused by rank in Python; its answers are measured, not its speed", ""),
    "pghybrid": (
        "both rankings in one statement, fused by rank; no tenant where there is but one",
        "it brings none: the row is the caller's own INSERT, its words a generated column",
    ),
    "mem0": (
        "meaning, a boost by words, a filter by user; spaCy, which it would take words' stems from, is not there,"
        " because its model is fetched when it is first used",
        "a row and its vector, and a second record in SQLite; without a language model nothing is drawn from the text",
    ),
    "memgres": (
        "meaning, by an index that is approximate, and words in two statements, fused by rank; a namespace; its"
        " counting of reads is switched off",
        "a row, its words and its vector, and a hash-chained history of each memory",
    ),
    "eventsourcing": ("", "an event of an aggregate, numbered; no chain, nothing derived from it"),
}
# What keeps one tenant's entries from another's where all are in one store.
APART = {
    "grandbo": "row-level security, and the tenant in every statement",
    "floor": "tables of its own for each tenant that is asked",
    "langgraph": "a namespace",
    "langchain": "`filter` on a metadata column; the index on it is one's own to make, and was made",
    "llamaindex": "`MetadataFilters`, with `indexed_metadata_keys`",
    "pghybrid": "`filter_columns`, with the index that its migration makes",
    "mem0": "`user_id`, in a document; it makes no index on it",
    "memgres": "a user and a namespace each, by id; whom a token stands for was looked up before",
}
NONE_OF_THEM = (
    "In these numbers none of the others runs under row-level security, chains the memory as a whole, leaves a receipt,"
    " answers as of a past moment, waits for a review, or says why an answer is empty. memgres chains and verifies the"
    " history of each memory, mem0 keeps a history beside, and LangGraph, mem0 and memgres can let items expire."
    " In the other direction: with Grandbo one cannot overwrite an item by its key, store anything but text, do without"
    " a tenant, or bring a vector of one's own."
)

HEAD = """# Peers

Grandbo beside the systems that people would pick instead, each driven as its own documents say.
`scripts/bench --peers --json > FILE` measured speed, `scripts/bench --peers-judged … --json > FILE` what is found,
`scripts/tell_peers.py FILE…` wrote this page. `scripts/setup peers` installs the others into an environment of their
own, with pinned versions; no part of Grandbo needs any of them.
{note}
All keep what they hold in databases of their own on one embedded server, with the same settings, no parallel plans, and
fsync on:
{named}.

Every text has the same vector for everybody, made before, so no number holds a model's time. Titles have none of their
own where times are measured; they would be 25 more look-ups in a recall of Grandbo's. Each runs in a process of its own
and times its own calls; the table at the end says what they do within them, and what not. Absolute times belong to the
machine, two shared cores.
"""

RECALL = """## Sooner: recall

Milliseconds. One tenant, the first {k}, {topics} topics. A store grows from one size to the next. All are asked in
turn, {runs} times, each time begun by another: the median over the runs of each run's median and 95th of a hundred, in
parentheses the least and the most of the runs' medians. Each list holds {listed} before it is fused, where one may say.
*Of exact*: of the {k} nearest by exact cosine, the share that is found by meaning alone, for Grandbo as far as its
cutoff.

| |{head}
|{rule}
{rows}
{elsewhere}
Medians, as multiples of Grandbo's:

{ahead}

{approximate} memgres asks an index that is approximate (HNSW; it has no other way), all others measure every vector;
PostgreSQL ranks every entry that has the words.
"""

ELSEWHERE = """
{mark} Measured in another run, on stores of their own.
"""

CROWD = """## Sooner: many tenants

Milliseconds. {tenants} tenants of {entries} entries, all of them in one store of each system and kept apart by the
means that its own documents give. The first {k}; {topics} topics, asked of {asked} of the tenants in turn. All are
asked in turn, {runs} times, each time begun by another: medians over the runs, in parentheses the least and the most of
the runs' medians. *Of exact*: of the {k} nearest by exact cosine, the share that is found by meaning alone; of one
tenant, asked all the topics.

| | p50 (runs) | p95 | of exact | kept apart by |
|---|---|---|---|---|
{rows}

Medians, as multiples of Grandbo's: {ahead}

Of the first {k} that Grandbo gives where all is measured, its answers held {of_exact:.3f}.

Each tenant has the texts of the first, under titles with its number, and the vectors drawn for them. Grandbo's first
went through its log; its others are copies of the projected rows of the first, with those titles and vectors, and are
only read. mem0 was filled through its store, memgres by its own writes, and its index over vectors was made when all
were there. That index is one of all tenants: where the server asks it, of the few nearest that it gives those of the
namespace are kept.
"""

DATA = """**The data.** Entries of about 62 words from the shipped sample incidents, topics of nine; vectors of 384
numbers, mixed from {vectors} real ones as in [sizes.md](sizes.md). A word of them is in many entries, so those that
rank by any word rank much of the memory.
"""

WRITE = """## Sooner: an acknowledged write

Milliseconds until it is durable, one entry a call, into a memory of {entries}; {writes} writes a writer, in turn,
{runs} times. Writers are threads of one process.

| | one writer: p50 (runs) | p95 | a second | four writers: p50 (runs) | p95 | a second |
|---|---|---|---|---|---|---|
{rows}

One writer, medians, as multiples of Grandbo's: {ahead}

Grandbo's writers of one tenant wait for each other, because its positions have no gaps; those of different tenants do
not ([sizes.md](sizes.md#writing)).
"""

LOG = """## The log alone

Events a second; the same documents. An append of Grandbo's brings the projections with it, an append of the other's
nothing but the event. In batches: Grandbo's import against a hundred events a call. Read: every event in order.

| | append, one writer: ms (runs) | a second | four writers | in batches | read | verified | rebuilt |
|---|---|---|---|---|---|---|---|
{rows}
"""

FINDING = """## Finding more

Judged sets, development halves ([evaluation.md](evaluation.md)). Grandbo as `grandbo eval` measures it: with its
refusals, its screening, its folding and its cutoff, and with the vectors of titles that its worker makes. The others
hold each window of a document as one item, with the vector that Grandbo has for it; they are asked for {items} items,
and their lists are as deep before they are fused: of 25, 50 and 120 that suited them best on incidents (of alerts
pghybrid finds more with 120, a Recall@5 of 0.860). A document stands where its first item stands. Means with 95 %
intervals; Grandbo minus each, topic by topic, resampled in pairs. All others answer any topic at all, also one of
another world; Grandbo's cutoff, which keeps those out, is in its numbers. A topic of duplicates is the title of a
report, and what is to be found are reports of the same fault.

{tables}"""

SET = """### {name}: {topics} topics, {documents} documents, {items} windows

| | Recall@5 | Grandbo minus it | nDCG@10 | Grandbo minus it |
|---|---|---|---|---|
{rows}

{ahead}
"""

FOOT = """## What each does in these numbers

| | recall | write |
|---|---|---|
{held}

{none}
"""
