"""The sets of numbers by which a large scope is scanned, and what a policy of before they were policy says."""

from __future__ import annotations

import pytest

from grandbo.events.models import PolicyChanged, TenantCreated
from grandbo.events.registry import parse_body
from grandbo.memory.policy import DEFAULT_POLICY, LAST_SCAN
from grandbo.recall.scan import SCANS, Scan, ScanUnknown, scan_of
from tests.support.events import FORMS, golden_body

# Whoever changes one of these changes answers that were given. Other numbers are the next set.
LANDED = {
    1: {
        "exact_up_to": None,
        "survivors": 500,
        "depth": 1_000,
        "postings": 25_000,
        "share_bp": 1_000,
        "rarest": 3,
        "sampled_from": 512,
        "margin": 2,
        "in_proportion": True,
        "survivors_bp": 25,
    },
    2: {
        "exact_up_to": None,
        "survivors": 250,
        "depth": 1_000,
        "postings": 25_000,
        "share_bp": 1_000,
        "rarest": 3,
        "sampled_from": 512,
        "margin": 2,
        "in_proportion": True,
        "survivors_bp": 25,
    },
}
BEFORE = [("tenant_created", n) for n in range(1, 5)] + [("policy_changed", n) for n in range(1, 4)]


class TestSets:
    def test_one_that_landed_stays_as_it_is(self) -> None:
        """Each set is there, with its numbers, whatever came after it."""
        assert LANDED == {number: numbers.as_dict() for number, numbers in SCANS.items()}

    def test_a_policy_may_name_each_and_a_new_tenant_has_the_last(self) -> None:
        """They are numbered without gaps up to the one that the policy knows as the last."""
        assert list(range(1, LAST_SCAN + 1)) == sorted(SCANS)
        assert LAST_SCAN == DEFAULT_POLICY.scan

    @pytest.mark.parametrize("number", SCANS)
    def test_a_scan_is_the_set_from_the_size_on_that_the_policy_names(self, number: int) -> None:
        """And a receipt that states it gives the same again."""
        scan = scan_of(DEFAULT_POLICY.model_copy(update={"exact_up_to": 7, "scan": number}))

        assert {**LANDED[number], "exact_up_to": 7} == scan.as_dict()
        assert scan == Scan.of_receipt({"scan": scan.as_dict()})

    def test_one_of_the_future_is_refused(self) -> None:
        """Never some other set in its place."""
        with pytest.raises(ScanUnknown) as refused:
            scan_of(DEFAULT_POLICY.model_copy(update={"scan": LAST_SCAN + 1}))

        assert {"scan": LAST_SCAN + 1} == refused.value.details


@pytest.mark.parametrize(("event_type", "version"), BEFORE)
@pytest.mark.parametrize("form", FORMS)
def test_a_policy_of_before_scans_as_the_program_did(event_type: str, version: int, form: str) -> None:
    """By the first set, beyond 10,000 entries."""
    body = parse_body(event_type, version, golden_body(event_type, version, form), position=1)

    assert isinstance(body, TenantCreated | PolicyChanged)
    assert (10_000, 1) == (body.policy.exact_up_to, body.policy.scan)
