"""The benchmark of sizes: room on the disk, and the page that is told from the figures of several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripts.bench_copies import NoRoom, check_room
from scripts.bench_sizes import LEAST_FOUND
from scripts.tell_sizes import WANTED, page_of, together

TIMES = {"p10": 1.0, "median": 2.0, "p90": 3.0}


def recall(entries: int, **more: Any) -> dict[str, Any]:
    """The row of one size."""
    row = {"entries": entries, "scan": "exact", "recall_ms": TIMES, "floor_ms": TIMES, "ratio": 1.0}
    if entries > 10_000:
        found = {
            "meaning_found_at_25": 0.991,
            "words_found_at_25": 1.0,
            "exact_ms": TIMES,
            "uncounted_ms": TIMES,
            "after_event_ms": TIMES,
        }
        row |= {"scan": "signatures", **found}
    return row | more


def whole() -> dict[str, Any]:
    """The figures of a run of everything."""
    return {
        "real_vectors": 297,
        "logged": 5_000,
        "recall": [recall(500), recall(20_000)],
        "crowds": [recall(5_000, tenants=20)],
        "write_ms": {"500": TIMES},
        "writers": {"1 tenant, 1 writers": {**TIMES, "per_second": 90}},
        "replay": [{"entries": 500, "events": 1_000, "verify_s": 0.1, "rebuild_s": 1.0}],
        "bytes_an_entry": {"total": 22_000, "org_memory_terms": {"rows": 1, "out_of_line": 2, "indexes": 3}},
    }


class TestRoom:
    def test_what_would_not_fit_is_refused_before_it_is_written(self, tmp_path: Path) -> None:
        """It says how much it would take; what fits gives that too."""
        assert 8.1 < check_room(tmp_path, 14_000, 5_000, 40) < 8.2
        with pytest.raises(NoRoom, match=r"10,000,000 entries would take about 241 GB; .* at most 40 GB .*--room"):
            check_room(tmp_path, 14_000, 10_000_000, 40)


class TestPage:
    def test_what_was_measured_alone_stands_beside_the_rest(self) -> None:
        """In the order of sizes, marked, and with what it took to make."""
        made = {"written_s": 900, "vacuumed_s": 50, "gigabytes": 14.2}
        large = {"real_vectors": 297, "recall": [recall(1_000_000, made=made)]}
        many = {"real_vectors": 297, "crowds": [recall(5_000, tenants=200, made=made)]}

        page = page_of(together([whole(), many, large]), "a note")

        rows = [
            line.partition(" | ")[0]
            for line in page.splitlines()
            if "| all vectors |" in line or "| signatures |" in line
        ]
        assert [
            "| 500",
            "| 20,000",
            "| 1,000,000 †",
            "| 5,000, in each of 20 tenants",
            "| 5,000, in each of 200 tenants †",
        ] == rows
        assert "| 1,000,000 † | 0.991 | 1.0 |" in page
        assert "200 tenants of 5,000: 14.2 GB, written in 15 minutes, vacuumed and analysed in 50 seconds." in page

    def test_what_is_found_too_little_is_said_plainly(self) -> None:
        """By which list, at which size, of how many topics; nothing is said where nothing falls short."""
        assert LEAST_FOUND == WANTED
        figures = whole()
        figures["recall"].append(recall(1_000_000, topics=8, meaning_found_at_25=0.945))

        page = page_of(together([figures]), "")

        assert "**Less than the 0.99 that is wanted: of 1,000,000 entries 0.945 by meaning, asked 8 topics.**" in page
        assert "Less than" not in page_of(together([whole()]), "")

    def test_a_run_of_everything_is_a_page_by_itself(self) -> None:
        """Nothing in it is marked; a file from before there were several crowds is read too."""
        figures = whole()
        figures["crowd"] = figures.pop("crowds")[0]

        page = page_of(together([figures]), "")

        assert "†" not in page
        assert "| 5,000, in each of 20 tenants | all vectors |" in page
