"""The cutoff, measured on a tenant's own memory: what is proposed, what it would do, and that it becomes policy."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grandbo.errors import ConfigurationError, Forbidden, InvalidInput
from grandbo.evaluation.calibration import Distances, apply, calibrate, propose, rates_at, wilson
from grandbo.library import Grandbo, TenantMemory
from grandbo.sample import sample_lines
from tests.support.cli import Cli
from tests.support.embedding_servers import EmbeddingServer, Reply, Request, openai_reply
from tests.support.http import make_token
from tests.support.postgres import TestDatabase
from tests.support.providers import HashedWords

_distance = st.floats(0.0, 2.0)
_many = st.lists(_distance, min_size=20, max_size=80).map(tuple)


@pytest.fixture
def filled(memory: TenantMemory) -> TenantMemory:
    """Sixty real incidents, embedded."""
    memory.import_lines(list(sample_lines())[:60], "finding")
    memory.embed()
    return memory


def _hashed(request: Request) -> Reply:
    """What a provider answers that hashes words."""
    return openai_reply(HashedWords().embed(request.body["input"], "document").tolist())


class TestProposing:
    @given(_many, _many)
    def test_it_never_answers_more_falsely_than_was_allowed(
        self, related: tuple[float, ...], unrelated: tuple[float, ...]
    ) -> None:
        """Whatever the distances, unless nothing at all lies below."""
        found = Distances(related, related, unrelated)
        proposed = propose(found, 0.05)

        assert 0.0001 <= proposed <= 2.0
        assert rates_at(found, proposed).false_answers <= 0.05 or 0.0001 == proposed

    @given(_many, _many)
    def test_a_wider_cutoff_loses_less_and_answers_more(
        self, related: tuple[float, ...], unrelated: tuple[float, ...]
    ) -> None:
        """The rates go one way each."""
        found = Distances(related, related, unrelated)
        narrow, wide = rates_at(found, 0.4), rates_at(found, 0.8)

        assert narrow.false_answers <= wide.false_answers
        assert narrow.lost >= wide.lost

    def test_between_two_worlds_it_stands_in_the_middle(self) -> None:
        """Nothing is lost, nothing is answered falsely; what was not found at all does not move it."""
        found = Distances((0.2,) * 99 + (math.inf,), (0.5,) * 100, (0.8,) * 50)

        assert 0.5 == propose(found)
        assert (0.0, 0.0) == (rates_at(found, 0.5).false_answers, rates_at(found, 0.5).lost)

    @pytest.mark.parametrize(("hits", "total", "low", "high"), [(0, 80, 0.0, 0.0458), (4, 80, 0.0196, 0.1216)])
    def test_the_interval_is_wilson_s(self, hits: int, total: int, low: float, high: float) -> None:
        """Against the published formula, reckoned elsewhere; none in eighty is not none for ever."""
        assert (low, high) == pytest.approx(wilson(hits, total), abs=1e-4)


class TestCalibrating:
    def test_it_measures_proposes_and_becomes_policy(self, filled: TenantMemory) -> None:
        """The same twice; applied, recall goes by it, and says so."""
        found, again = calibrate(filled), calibrate(filled)

        assert found == again
        assert found.proposed.false_answers <= 0.05
        before = filled.policy().policy
        applied = apply(filled, found)
        stamps = filled.policy().policy.stamps
        assert [(found.stamp, round(found.proposed.cutoff * 10_000))] == [(s.stamp, s.cutoff_bp) for s in stamps]
        assert applied.applied_at == filled.policy().position
        assert found.proposed.cutoff == filled.query_topic("the disk was full and nobody was told").searched.cutoff
        assert before.model_dump(exclude={"stamps"}) == filled.policy().policy.model_dump(exclude={"stamps"})

    def test_too_little_to_measure_on(self, memory: TenantMemory) -> None:
        """It says how much is needed."""
        with pytest.raises(InvalidInput, match="20 are needed"):
            calibrate(memory)

    def test_without_a_model_there_is_no_space(self, database: TestDatabase, memory: TenantMemory) -> None:
        """And it says so."""
        with Grandbo.open(settings=database.settings(embedder="none")) as opened, pytest.raises(ConfigurationError):
            calibrate(opened.tenant(memory.tenant_id))

    def test_who_may_only_ask_may_not_apply(self, grandbo: Grandbo, filled: TenantMemory) -> None:
        """The cutoff is policy."""
        found = calibrate(filled)
        with pytest.raises(Forbidden):
            apply(grandbo.authenticate(make_token(filled, "investigator")), found)

    def test_at_the_command_line(self, database: TestDatabase, memory: TenantMemory) -> None:
        """Measured through a provider, shown, and only with --apply in force."""
        with EmbeddingServer(_hashed) as provider:
            cli = Cli(
                GRANDBO_DATABASE_URL=database.service,
                GRANDBO_EMBEDDER="openai",
                GRANDBO_EMBEDDER_MODEL="hashed-words",
                GRANDBO_EMBEDDER_URL=provider.url,
                GRANDBO_EMBEDDER_API_KEY="key",
                GRANDBO_TENANT=memory.tenant.name,
            )
            lines = b"".join(line for line in list(sample_lines())[:40]).decode()
            cli("import", "-", "--kind", "finding", stdin=lines)
            cli("embed", "--wait")

            shown = cli("calibrate")
            applied = json.loads(cli("calibrate", "--apply", "--json").out)

        assert (0, True, "Nothing was changed" in shown.err) == (shown.code, "neighbours" in shown.out, True)
        assert applied["applied_at"] == memory.policy().position
        assert applied["proposed"]["false_answer_rate"] <= 0.05
