"""Recording a finding, end to end."""

from __future__ import annotations

from grandbo.library import TenantMemory
from tests.support.factories import make_finding


class TestRecordFinding:
    def test_the_same_finding_again_is_the_first_acknowledgement_again(self, memory: TenantMemory) -> None:
        """A hook that retries gets what it got before, and the log does not grow."""
        finding = make_finding()
        first = memory.record_finding(finding)

        again = memory.record_finding(finding)

        assert first.acknowledgement == again.acknowledgement
        assert (False, True) == (first.replayed, again.replayed)
        assert first.acknowledgement.position == memory.verify().head

    def test_it_is_found_by_words_at_once(self, memory: TenantMemory) -> None:
        """What was acknowledged is found by the next statement, before any vector exists."""
        ack = memory.record_finding(make_finding()).acknowledgement

        answer = memory.query_topic("consumers lost their leases")

        assert [ack.entry_id] == [match.entry_id for match in answer.matches]

    def test_rebuild_equals_live(self, memory: TenantMemory) -> None:
        """A replay of the log gives the rows that are there."""
        memory.record_finding(make_finding())
        memory.embed()

        assert memory.check_rebuild().ok
