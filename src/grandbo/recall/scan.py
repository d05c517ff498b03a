"""
How much of a scope is measured: all of it, or, where it is large, what lies nearest by signature.

The choice is a function of the position, the scope and the policy of then, which a receipt states too: so an answer can
be given again exactly, whatever was written since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from grandbo.errors import ConfigurationError
from grandbo.events.models import Policy

# Measured: of the 25 nearest of 5,000 and of 31,310 real texts 0.999 are among so many, of 100,000 mixed ones 0.998.
SURVIVORS = 250
# So of more vectors twice as many survive, or four times: at least this share. Of 1,000,000 all 25 are among 2,000.
SURVIVORS_BP = 25
# How many of the best by their rarer words are looked at again, at least; more where the scope is a small part of all.
DEPTH = 1_000
# Of those, who could not come near the place so many times as far down as the list is long is left out unlooked at.
MARGIN = 2
# Postings that are read, the rarest terms first: so many, or a tenth as many as there are entries; and those of the
# rarest three whatever they are. The terms of which none is read are common.
POSTINGS = 25_000
SHARE_BP = 1_000
RAREST = 3
# Of a term that stands in so many of one in sixteen entries the rest is reckoned, within some 4 percent.
SAMPLED_FROM = 512


@dataclass(frozen=True, slots=True)
class Scan:
    """
    Up to how many entries in scope everything is measured; beyond, how much of it.

    Attributes:
        exact_up_to: None: always all, as in answers of before there were signatures.
        survivors: the vectors nearest by signature that are measured.
        depth: the best by the rarer words whose other words, and scope, are looked at.
        postings, share_bp, rarest: postings that are read, the rarest terms first: so many, or as many as this share of
            all entries in basis points, and those of the few rarest. Terms beyond are common.
        sampled_from: how frequent a term is follows from a sample of the entries where so many of the sample have it.
            None: it is counted, as in answers of before there was a sample.
        margin: of the best by the rarer words those are looked at whom the common ones could lift over the place this
            many times the candidates. None: all of them, as in answers of before.
        survivors_bp: of many vectors at least this share survives, in basis points; 0, as before: as many as of few.
        in_proportion: whether the depth grows with how much of all is out of scope; else in whole multiples, as before.
    """

    exact_up_to: int | None
    survivors: int = SURVIVORS
    depth: int = DEPTH
    postings: int = POSTINGS
    share_bp: int = SHARE_BP
    rarest: int = RAREST
    sampled_from: int | None = SAMPLED_FROM
    margin: int | None = MARGIN
    in_proportion: bool = True
    survivors_bp: int = SURVIVORS_BP

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a receipt."""
        return asdict(self)

    @classmethod
    def of_receipt(cls, parameters: dict[str, Any]) -> Scan:
        """The scan that a receipt names."""
        kept = parameters.get("scan")
        return EXACT if kept is None else cls(**{**_OF_BEFORE, **kept})


EXACT = Scan(None)
# What a receipt says nothing of was not there when it was made.
_OF_BEFORE: dict[str, Any] = {"sampled_from": None, "margin": None, "in_proportion": False, "survivors_bp": 0}

# The sets of numbers that a policy may name, each as it was when it landed, for ever: what was answered by it is
# answered so again. Other numbers are another set; `LAST_SCAN` is the number of the last, which has the numbers above.
SCANS: Mapping[int, Scan] = {
    1: Scan(
        exact_up_to=None,
        survivors=500,
        depth=1_000,
        postings=25_000,
        share_bp=1_000,
        rarest=3,
        sampled_from=512,
        margin=2,
        in_proportion=True,
        survivors_bp=25,
    ),
    2: Scan(exact_up_to=None),
}
Scanning = Callable[[Policy], Scan]


class ScanUnknown(ConfigurationError):
    """The policy scans a large scope by numbers that this Grandbo does not have; upgrade it, it will not guess."""

    code = "scan_unknown"


def scan_of(policy: Policy, sets: Mapping[int, Scan] = SCANS) -> Scan:
    """The scan that a policy asks for. Raises `ScanUnknown`: a newer version set it."""
    numbers = sets.get(policy.scan)
    if numbers is None:
        raise ScanUnknown(
            f"The policy scans a large scope by set {policy.scan}, which this Grandbo does not have; upgrade it, or "
            f"change the policy to one up to {max(sets)}.",
            scan=policy.scan,
        )
    return replace(numbers, exact_up_to=policy.exact_up_to)
