"""The comparison with peers: what is reckoned from times and answers, and the page that is told from the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripts.bench_floor import FLOOR_QUERY, in_schema
from scripts.peers.comparing import exactness, over_runs, shared, turned
from scripts.peers.crowd import renamed
from scripts.peers.floor_sql import schema_of
from scripts.peers.judging import compared
from scripts.peers.protocol import Known, Text, load_texts, save_texts
from scripts.tell_peers import page_of, together

from grandbo.evaluation import Asked


def timed(median: float) -> dict[str, Any]:
    """A time as the bench tells it."""
    return {"median": median, "low": median - 1, "high": median + 1}


def speed(**medians: float) -> dict[str, Any]:
    """Figures of one size: the median of each system."""
    recall = {name: {"p50": timed(each), "p95": timed(2 * each), "exact": 1.0} for name, each in medians.items()}
    recall["grandbo"]["of_exact"] = 0.9975
    return {
        "recall": {"5000": recall},
        "versions": {"mem0": {"mem0ai": "2.2.1"}},
        "server": "PostgreSQL 18.6, pgvector 0.8.6",
        "python": "3.11.7",
        "k": 10,
        "topics": 40,
        "runs": 3,
        "listed": 25,
        "real_vectors": 297,
        "writes": 60,
    }


def crowded(**medians: float) -> dict[str, Any]:
    """Figures of a run that measured many tenants and nothing else."""
    run = speed(**medians)
    systems = run.pop("recall")["5000"]
    return run | {"crowd": {"tenants": 20, "entries": 5_000, "asked": 8, "topics": 40, "systems": systems}}


class TestExactness:
    """One dimension a corner: entry n lies in the direction of axis n, and the topic leans on the first ones most."""

    VECTORS = np.eye(12, dtype=np.float32)
    TOPIC = Text("t0", "topic", np.array([2.0**-each for each in range(12)], np.float32) * 0.866)

    def test_the_nearest_are_all_of_it(self) -> None:
        """The first ten by cosine, in any order."""
        found = [f"entries-{number}" for number in reversed(range(10))]

        assert 1.0 == exactness(self.VECTORS, [self.TOPIC], [found])

    def test_what_is_farther_does_not_count(self) -> None:
        """One of ten is not among the nearest, and one is named twice."""
        found = [f"entries-{number}" for number in (0, 0, 1, 2, 3, 4, 5, 6, 7, 11)]

        assert 0.8 == exactness(self.VECTORS, [self.TOPIC], [found])

    def test_beyond_the_cutoff_nothing_is_wanted(self) -> None:
        """Two lie nearer than .65; who gives only those misses nothing, and who gives none misses both."""
        assert 1.0 == exactness(self.VECTORS, [self.TOPIC], [["entries-0", "entries-1"]], 0.65)
        assert 0.0 == exactness(self.VECTORS, [self.TOPIC], [[]], 0.65)


class TestReckoning:
    def test_a_time_is_the_median_of_the_runs_medians(self) -> None:
        """With the least and the most of them; one slow answer moves no median."""
        runs = [[0.001, 0.002, 0.9], [0.003, 0.003, 0.003], [0.004, 0.005, 0.006]]

        assert {"median": 3.0, "low": 2.0, "high": 5.0} == over_runs(runs)["p50"]

    def test_each_run_is_begun_by_another(self) -> None:
        """And holds everybody once."""
        order = [turned(dict.fromkeys("abcdef"), run) for run in range(3)]  # type: ignore[arg-type]

        assert ["a", "c", "e"] == [run[0] for run in order]
        assert all(sorted(run) == list("abcdef") for run in order)

    def test_what_is_shared_is_told_of_all_topics_together(self) -> None:
        """Three of four wanted answers were given."""
        assert 0.75 == shared([["a", "b"], ["c", "d"]], [["b", "a"], ["c", "x"]])

    def test_systems_are_compared_topic_by_topic(self) -> None:
        """A system that finds one of two topics lies half behind one that finds both, in pairs."""
        relevant = {"t1": frozenset({"a"}), "t2": frozenset({"b"})}
        both = {"t1": Asked(("a",), True, None), "t2": Asked(("b",), True, None)}
        one = {"t1": Asked(("a",), True, None), "t2": Asked(("x",), True, None)}

        found = compared({"grandbo": both, "mem0": one}, relevant)

        assert 1.0 == found["grandbo"]["recall@5"]["of"]["mean"]
        assert 0.0 == found["grandbo"]["ndcg@10"]["grandbo_minus"]["high"]
        assert (0.5, 0.5) == (
            found["mem0"]["recall@5"]["of"]["mean"],
            found["mem0"]["recall@5"]["grandbo_minus"]["mean"],
        )

    def test_texts_and_vectors_are_the_same_on_the_other_side(self, tmp_path: Path) -> None:
        """What is saved is read again by its span, line breaks and all, and is known by its text."""
        texts = [Text(f"e{number}", f"line\n{number} …", np.full(3, number, np.float32)) for number in range(4)]
        save_texts(tmp_path / "entries", texts)
        known = Known()

        read = load_texts(tmp_path / "entries", 1, 3)
        known.add(read)

        assert ["e1", "e2"] == [each.id for each in read]
        assert [2.0, 2.0, 2.0] == known.of("line\n2 …").tolist()
        with pytest.raises(KeyError):
            known.of("line\n3 …")

    def test_what_was_stored_is_forgotten(self) -> None:
        """A million vectors are not kept by each of eight processes; what was not stored stays known."""
        texts = [Text(f"e{number}", f"line {number}", np.full(3, number, np.float32)) for number in range(2)]
        known = Known()
        known.add(texts)

        known.forget(texts[:1])

        assert [1.0, 1.0, 1.0] == known.of("line 1").tolist()
        with pytest.raises(KeyError):
            known.of("line 0")

    def test_an_entry_of_another_tenant_differs_in_its_title(self) -> None:
        """So its text has a vector of its own; the words behind the title stay."""
        entry = Text("tenant-0003-7", "Disk full\nA volume filled up.", np.zeros(3, np.float32), {"title": "Disk full"})

        other = renamed(entry, 3)

        assert ("Disk full 3\nA volume filled up.", "Disk full 3") == (other.text, other.title)
        assert "tenant-0003-7" == other.id

    def test_the_floor_of_another_tenant_is_in_tables_of_its_own(self) -> None:
        """No name of the usual schema is left in what is asked there."""
        asked = in_schema(FLOOR_QUERY, schema_of("tenant-0003"))

        assert "floor_tenant_0003.vectors" in asked
        assert " floor." not in asked


class TestPage:
    def test_losses_are_told_as_plainly_as_wins(self) -> None:
        """Who is sooner stands before who is later, each with its multiple."""
        page = page_of(speed(grandbo=20.0, langgraph=10.0, mem0=50.0))

        assert "sooner than Grandbo: LangGraph 0.50 \u00d7; later: mem0 2.50 \u00d7." in page
        assert "| **Grandbo** | 20.0 (19.0 to 21.0) | 40.0 | 1.000 |" in page
        assert "0.998 at 5,000" in page

    def test_a_part_that_was_not_measured_is_left_out(self) -> None:
        """No heading without figures, and nobody is described who is in none."""
        page = page_of(speed(grandbo=20.0, mem0=50.0), note="A trial.")

        assert "## Sooner: recall" in page
        assert "## Finding more" not in page
        assert "pghybrid" not in page
        assert "**A trial.**" in page

    def test_many_tenants_are_told_without_anything_else(self) -> None:
        """With what keeps them apart, who is sooner, and how the data were made."""
        page = page_of(together([crowded(grandbo=20.0, langgraph=30.0, mem0=10.0)]))

        assert "20 tenants of 5,000 entries" in page
        assert "| LangGraph `PostgresStore` | 30.0 (29.0 to 31.0) | 60.0 | 1.000 | a namespace |" in page
        assert "sooner than Grandbo: mem0 0.50 \u00d7; later: LangGraph 1.50 \u00d7." in page
        assert "## Sooner: recall" not in page
        assert "from 297 real ones" in page

    def test_what_is_not_told_apart_is_said_to_be_so(self) -> None:
        """An interval that holds zero is neither a win nor a loss."""

        def of(low: float, high: float) -> dict[str, Any]:
            minus = {"mean": (low + high) / 2, "low": low, "high": high}
            return {"recall@5": {"of": {"mean": 0.5, "low": 0.4, "high": 0.6}, "grandbo_minus": minus}}

        systems = {"grandbo": of(0, 0), "mem0": of(0.01, 0.2), "memgres": of(-0.2, -0.01), "pghybrid": of(-0.1, 0.1)}
        one = {"documents": 1_092, "items": 2_500, "topics": 72, "systems": systems}

        page = page_of({"finding": {"items": 50, "sets": {"incidents": one}, "versions": {}}})

        assert "Recall@5: more than mem0; less than memgres; 1 not told apart." in page
        assert "| memgres | 0.500 [0.400, 0.600] | \u22120.105 [\u22120.200, \u22120.010] |" in page


class TestTogether:
    def test_a_size_of_another_run_is_marked(self) -> None:
        """It stands in the same table, in the order of sizes; writes are told of the run that has them."""
        write = {name: {"p50": timed(4.0), "p95": timed(8.0), "per_second": timed(200.0)} for name in ("1", "4")}
        main = speed(grandbo=20.0, mem0=50.0) | {"write": {"grandbo": write, "mem0": write}}
        large = speed(grandbo=100.0, mem0=400.0)
        large["recall"] = {"100000": large["recall"]["5000"]}
        large["topics"] = 4

        page = page_of(together([main, large, crowded(grandbo=1.0, mem0=2.0)]))

        assert "| 5,000: p50 (runs) | p95 | of exact | 100,000\u2020: p50 (runs) |" in page
        assert "\u2020 Measured in another run" in page
        assert "- 100,000\u2020 entries: sooner than Grandbo: none; later: mem0 4.00 \u00d7." in page
        assert "into a memory of 5,000; 60 writes" in page
        assert "the first 10, 40 topics" in page
        assert "## Sooner: many tenants" in page

    def test_nothing_is_marked_where_all_is_of_one_run(self) -> None:
        """Judged sets and tenants of other runs change nothing about sizes."""
        page = page_of(together([crowded(grandbo=1.0, mem0=2.0), speed(grandbo=20.0, mem0=50.0)]))

        assert "\u2020" not in page

    def test_judged_sets_of_several_runs_stand_beside_each_other(self) -> None:
        """A set that was measured again takes the place of the one before; speed stays what it was."""
        one, other = (
            {"finding": {"items": 50, "sets": sets, "versions": {name: {name: "1"}}}}
            for sets, name in (({"incidents": 1, "alerts": 1}, "mem0"), ({"duplicates": 2, "alerts": 2}, "memgres"))
        )

        figures = together([speed(grandbo=1.0), one, other])

        assert {"incidents": 1, "alerts": 2, "duplicates": 2} == figures["finding"]["sets"]
        assert {"mem0", "memgres"} == set(figures["finding"]["versions"])
        assert 40 == figures["topics"]
