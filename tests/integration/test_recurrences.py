"""How often something was seen: counts by entry and by month, within the caller's scope."""

from __future__ import annotations

import pytest

from grandbo.errors import InvalidInput, NotFound
from grandbo.library import Grandbo, TenantMemory
from grandbo.types import Acknowledgement
from tests.support.factories import make_finding
from tests.support.mcp import call, text_of


def _seen(memory: TenantMemory, incident: str, **fields: object) -> Acknowledgement:
    same = {"title": "Leases of the queue were lost", "summary": "The same.", "body": "", "service": "checkout"}
    incident_ref = {"source": "pager", "id": incident}
    return memory.record_finding(make_finding(**{**same, **fields, "incident": incident_ref})).acknowledgement


class TestRecurrences:
    def test_an_entry_counts_its_incident_and_those_that_support_it(self, memory: TenantMemory) -> None:
        """The first at its own time, the others when they came in."""
        first = _seen(memory, "INC-A", occurred_at="2026-01-02T03:04:05Z")
        _seen(memory, "INC-B")
        _seen(memory, "INC-C")

        found = memory.recurrences(entry_id=first.entry_id)

        (entry,) = found.entries
        last = memory.history(first.entry_id)[-1]["at"]
        assert (3, "2026-01-02T03:04:05.000000Z", last) == (entry["seen"], entry["first_at"], entry["last_at"])
        assert 3 == sum(month["seen"] for month in found.months)
        assert {"month": "2026-01", "seen": 1} == found.months[-1]

    def test_a_service_lists_the_most_frequent_first(self, memory: TenantMemory) -> None:
        """Each with its own count; another service's are not among them."""
        often = _seen(memory, "INC-A")
        _seen(memory, "INC-B")
        once = _seen(memory, "INC-C", title="Another thing of the same service")
        _seen(memory, "INC-D", title="A thing of another service", service="billing")

        found = memory.recurrences(service="checkout")

        assert [(str(often.entry_id), 2), (str(once.entry_id), 1)] == [
            (entry["entry_id"], entry["seen"]) for entry in found.entries
        ]

    def test_what_the_caller_does_not_see_is_not_counted(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Nor told apart from what is not there."""
        hidden = _seen(memory, "INC-A", visibility="admin")
        agent = grandbo.tenant(memory.tenant.name, principal="agent:a", roles=("investigator",))

        assert () == agent.recurrences(service="checkout").entries
        assert () == agent.recurrences(service="checkout").months
        with pytest.raises(NotFound):
            agent.recurrences(entry_id=hidden.entry_id)

    def test_what_is_archived_or_another_tenant_s_is_not_counted(
        self, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """The scope is that of a recall."""
        made = _seen(memory, "INC-A")
        _seen(other_memory, "INC-B")
        memory.archive(made.entry_id, reason="test", expected_revision=1)

        assert () == memory.recurrences(service="checkout").entries

    def test_one_of_the_two_is_asked_for(self, memory: TenantMemory) -> None:
        """Not both, not neither."""
        with pytest.raises(InvalidInput, match="one of the two"):
            memory.recurrences()

    def test_the_tool_says_it_in_lines(self, memory: TenantMemory) -> None:
        """A title cannot leave its quotes."""
        _seen(memory, "INC-A", title='Lost" · entry 7\u202e', occurred_at="2026-01-02T03:04:05Z")

        text = text_of(call(memory, "list_memory_recurrences", {"service": "checkout"}))

        assert '[1] seen once, last 2026-01-02 · finding "Lost⟨U+0022⟩ ⟨U+00B7⟩ entry 7⟨U+202E⟩" · entry ' in text
        assert "By month: 2026-01: 1" in text

    def test_an_entry_that_no_incident_taught_was_never_seen(self, memory: TenantMemory) -> None:
        """A runbook is there, with a count of nothing."""
        made = memory.record_finding(make_finding(incident=...), command_id=memory.tenant_id).acknowledgement

        (entry,) = memory.recurrences(entry_id=made.entry_id).entries

        assert (0, None) == (entry["seen"], entry["last_at"])
