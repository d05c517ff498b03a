"""
Where the cutoff of a space should stand, measured on what a tenant remembers, through the look of recall.

A topic that an entry itself says, a sentence of it, is related to that entry; a topic of another world is related to
nothing here. What lies between the two is where the cutoff belongs. A sentence of an entry with that entry left aside
is a neighbour: something like it is asked, and nothing here is it. No cutoff keeps those out, and the rate says so.
"""

from __future__ import annotations

import math
import random
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from grandbo.errors import ConfigurationError, InvalidInput
from grandbo.events.models import StampInForce
from grandbo.library import TenantMemory

SEED = 20260102
RELATED = 200
LEAST = 20
DEPTH = 25
FALSE_RATE = 0.05
_FARTHEST_BP = 20_000
_WORDS = (8, 30)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
# Topics of no organisation's incidents.
OTHER_WORLDS = (
    "how long a sourdough loaf should rise before it goes into the oven",
    "which trail around the lake is best for a family with small children",
    "the goalkeeper saved two penalties in the final minutes of the match",
    "pruning roses in early spring so that they bloom through the summer",
    "a recipe for lentil soup with cumin, lemon and fresh coriander",
    "the orchestra played the slow movement with great warmth and patience",
    "choosing a tent that is light enough for a week in the mountains",
    "the museum shows watercolours of the coast from two centuries ago",
    "how to teach a young dog to walk beside you without pulling",
    "the novel follows three sisters through a long winter on the farm",
    "a train journey across the desert with a night in a sleeping car",
    "knitting a scarf from soft wool with a pattern of small leaves",
    "the cyclist broke away on the last climb and won alone",
    "planting tomatoes beside basil keeps some insects away",
    "a children's choir sang carols in the old market square",
    "which cheese goes well with pears and a glass of dry cider",
    "the whale surfaced beside the boat and dived again at once",
    "grinding coffee finely enough for a small espresso pot",
    "the actress wore a green dress at the opening of the festival",
    "painting a wooden fence before the autumn rain begins",
    "a chess opening in which black gives up a pawn for quick play",
    "the bakery on the corner sells warm rolls from six in the morning",
    "how the tides of the bay change with the phases of the moon",
    "restoring an oak table with wax and a great deal of patience",
    "the swimmer trained every morning before school for the relay",
    "a short history of the violin makers of a small Italian town",
    "picking mushrooms in a beech wood after a warm wet week",
    "the yoga class ends with ten minutes of lying quite still",
    "folding paper into cranes for a wedding in the spring",
    "the vineyard on the southern slope ripens two weeks earlier",
    "what to pack for a sailing trip along a rocky coast",
    "the ballet was danced to piano music by a living composer",
    "making marmalade from bitter oranges in the middle of winter",
    "a robin built its nest in the pocket of an old coat",
    "the marathon leads through the harbour and over both bridges",
    "learning to whistle with two fingers takes a few weeks",
    "the potter glazed the bowls in the grey of the sea",
    "a picnic under the cherry trees on the first warm Sunday",
    "the referee sent the captain off after a foul at the corner",
    "sewing curtains from heavy linen for a room with tall windows",
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Distances:
    """
    Cosine distances of topics to what they found; infinite where it was not within the first `DEPTH`.

    Attributes:
        related: of a sentence to the entry that it is from.
        neighbours: of the same sentence to the nearest other entry.
        unrelated: of a topic of another world, or of none, to the nearest entry.
    """

    related: tuple[float, ...]
    neighbours: tuple[float, ...]
    unrelated: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Rates:
    """What a cutoff would do: each a share, with the 95 % interval of the one that it is chosen by."""

    cutoff: float
    false_answers: float
    false_interval: tuple[float, float]
    lost: float
    neighbours_answered: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "cutoff": self.cutoff,
            "false_answer_rate": round(self.false_answers, 4),
            "false_answer_interval": [round(bound, 4) for bound in self.false_interval],
            "lost_rate": round(self.lost, 4),
            "neighbour_answer_rate": round(self.neighbours_answered, 4),
        }


@dataclass(frozen=True, slots=True)
class Calibration:
    """The distances of a space on a tenant's own corpus, the cutoff in force, and the one that they propose."""

    stamp: str
    distances: Distances
    in_force: Rates
    proposed: Rates
    applied_at: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values; of the distances their number and quantiles."""
        found = self.distances
        return {
            "stamp": self.stamp,
            "related": _shown(found.related),
            "not_found_rate": round(sum(map(math.isinf, found.related)) / len(found.related), 4),
            "neighbours": _shown(found.neighbours),
            "unrelated": _shown(found.unrelated),
            "in_force": self.in_force.as_dict(),
            "proposed": self.proposed.as_dict(),
            "applied_at": self.applied_at,
        }


def calibrate(
    memory: TenantMemory,
    *,
    related: Sequence[tuple[str, UUID]] | None = None,
    false_rate: float = FALSE_RATE,
    progress: Progress | None = None,
) -> Calibration:
    """
    Measure the current space on what the tenant remembers; changes nothing.

    Args:
        related: topics with the entry that each is about; sentences of the tenant's own entries unless given.
        false_rate: the share of unrelated topics that may be answered.

    Raises:
        ConfigurationError: nothing is embedded here. InvalidInput: too little to measure on.
    """
    if not memory.embeds:
        raise ConfigurationError("GRANDBO_EMBEDDER is `none`: there is no space to calibrate.")
    rng = random.Random(SEED)  # noqa: S311  # the same topics in every run, and no secret
    about = list(related) if related is not None else _sentences(_texts(memory), rng)
    if len(about) < LEAST:
        raise InvalidInput(f"There are {len(about)} topics with an entry that they are about; {LEAST} are needed.")
    elsewhere = [*OTHER_WORLDS, *_nonsense(rng)]
    total = len(about) + len(elsewhere)
    own, others, nearest = [], [], []
    stamp, cutoff = _space(memory)
    for number, (topic, entry_id) in enumerate(about, start=1):
        standing = _distances(memory, topic)
        own.append(standing.pop(entry_id, math.inf))
        others.append(min(standing.values(), default=math.inf))
        _tell(progress, number, total)
    for number, topic in enumerate(elsewhere, start=len(about) + 1):
        nearest.append(min(_distances(memory, topic).values(), default=math.inf))
        _tell(progress, number, total)
    found = Distances(tuple(own), tuple(others), tuple(nearest))
    return Calibration(stamp, found, rates_at(found, cutoff), rates_at(found, propose(found, false_rate)))


def apply(memory: TenantMemory, found: Calibration) -> Calibration:
    """Make the proposed cutoff the tenant's policy for this space; the rates stand in the reason."""
    proposed = found.proposed
    cutoff_bp = round(proposed.cutoff * 10_000)
    kept = [item for item in memory.policy().policy.stamps if item.stamp != found.stamp]
    stamps = [StampInForce(stamp=found.stamp, cutoff_bp=cutoff_bp), *kept]
    reason = (
        f"Calibrated on {len(found.distances.related)} related and {len(found.distances.unrelated)} unrelated topics: "
        f"{proposed.false_answers:.1%} of the unrelated are answered, {proposed.lost:.1%} of the related are lost."
    )
    changed = memory.change_policy({"stamps": [item.model_dump() for item in stamps]}, reason=reason)
    return Calibration(found.stamp, found.distances, found.in_force, proposed, changed.position)


def propose(found: Distances, false_rate: float = FALSE_RATE) -> float:
    """
    The cutoff, in steps of a basis point: as wide as the false answers allow, and no wider than the related need.

    Where the two worlds lie apart it stands in the middle between them.
    """
    unrelated = sorted(found.unrelated)
    allowed = math.floor(len(unrelated) * false_rate)
    # The first that may not be answered any more; what is exactly at the cutoff is not.
    widest = unrelated[min(allowed, len(unrelated) - 1)]
    near = sorted(distance for distance in found.related if distance < math.inf)
    needed = near[math.ceil(len(near) * 0.99) - 1] if near else 0.0
    wanted = (needed + widest) / 2 if needed < widest < math.inf else min(widest, max(needed, 0.0001))
    return min(max(math.floor(wanted * 10_000), 1), _FARTHEST_BP) / 10_000


def rates_at(found: Distances, cutoff: float) -> Rates:
    """What a cutoff does to each kind of topic."""
    false = sum(distance < cutoff for distance in found.unrelated)
    return Rates(
        cutoff,
        false / len(found.unrelated),
        wilson(false, len(found.unrelated)),
        sum(cutoff <= distance < math.inf for distance in found.related) / len(found.related),
        sum(distance < cutoff for distance in found.neighbours) / len(found.neighbours),
    )


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson's score; it never leaves 0 to 1, and is not empty at either end."""
    z = 1.959964
    share, square = hits / total, z * z / total
    middle, spread = share + square / 2, z * math.sqrt(share * (1 - share) / total + square / total / 4)
    return max((middle - spread) / (1 + square), 0.0), min((middle + spread) / (1 + square), 1.0)


def _space(memory: TenantMemory) -> tuple[str, float]:
    """The space that recall uses, and its cutoff now."""
    searched = memory.query_topic(OTHER_WORLDS[0]).searched
    if searched.stamp is None or searched.cutoff is None:
        raise ConfigurationError("Recall goes by words alone at the moment; calibrate when the model is there.")
    return searched.stamp, searched.cutoff


def _distances(memory: TenantMemory, topic: str) -> dict[UUID, float]:
    """Of the nearest entries to a topic, the gates open."""
    standings = memory.look_through(topic, DEPTH).standings
    return {entry_id: item.distance for entry_id, item in standings.items() if item.distance is not None}


def _texts(memory: TenantMemory) -> list[tuple[UUID, str]]:
    """What the tenant's published entries say below their titles."""
    found, after = [], None
    while True:
        page = memory.list_entries(statuses=["published"], limit=200, after=after).as_dict()
        found += [(UUID(entry["entry_id"]), f"{entry['summary']}\n{entry['body']}") for entry in page["entries"]]
        after = page["next"]
        if after is None:
            return found


def _sentences(texts: Sequence[tuple[UUID, str]], rng: random.Random) -> list[tuple[str, UUID]]:
    """A sentence of each of some entries: one that could be asked."""
    found = []
    for entry_id, text in rng.sample(texts, len(texts)):
        fitting = [sentence for sentence in _SENTENCE.split(text) if _could_be_asked(sentence)]
        if fitting:
            found.append((" ".join(rng.choice(fitting).split()), entry_id))
        if len(found) == RELATED:
            break
    return found


def _could_be_asked(sentence: str) -> bool:
    words = sentence.split()
    return _WORDS[0] <= len(words) <= _WORDS[1] and len(sentence) <= 190 and sum(map(str.isalpha, words)) >= _WORDS[0]


def _nonsense(rng: random.Random) -> Iterator[str]:
    """As many sentences of the words of other worlds in no order: each word is known, none says anything."""
    words = sorted({word for topic in OTHER_WORLDS for word in topic.split() if word.isalpha() and len(word) > 3})
    for _ in OTHER_WORLDS:
        yield " ".join(rng.sample(words, 10))


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress:
        progress(done, total)


def _shown(distances: Sequence[float]) -> dict[str, Any]:
    near = sorted(distance for distance in distances if distance < math.inf)
    if len(near) < 2:
        return {"topics": len(distances), "p05": None, "median": None, "p95": None}
    cuts = statistics.quantiles(near, n=20)
    told = {"p05": cuts[0], "median": statistics.median(near), "p95": cuts[-1]}
    return {"topics": len(distances), **{name: round(value, 4) for name, value in told.items()}}
