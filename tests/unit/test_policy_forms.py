"""The policy as forms: each of its values has a control."""

from __future__ import annotations

from grandbo.events.models import Policy
from grandbo.web.policy_forms import SECTIONS


def test_every_field_of_the_policy_has_a_control() -> None:
    """All but the spaces of vectors, which have a page of their own."""
    shown = {control.path[0] for section in SECTIONS for control in section.all_controls}

    assert set(Policy.model_fields) == shown | {"stamps"}
