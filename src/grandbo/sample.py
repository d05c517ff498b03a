"""The sample that ships with the package: real incidents under licences that allow it; `data/NOTICE.md` names them."""

from __future__ import annotations

from importlib import resources

TOPICS = (
    "nobody could sign in because the identity provider's signing key was past its end date",
    "new workloads could not be scheduled since the subnet had no free addresses left",
    "the relational store refused writes after its volume filled up with old rows",
    "machines were overwhelmed when hundreds of students arrived at the same moment for a class",
    "attackers slipped a self-spreading program into our published libraries",
)
"""Asked in other words than the incidents that answer them."""


def sample_lines() -> list[bytes]:
    """The incidents, one JSON object a line."""
    content = resources.files("grandbo").joinpath("data", "sample-incidents.jsonl").read_bytes()
    return content.splitlines(keepends=True)
