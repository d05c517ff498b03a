"""The record of an incident: told twice, late or in another order, it says the same; and the finding made of it."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from grandbo.finding_limits import BODY_LIMIT_BYTES, TITLE_LIMIT
from grandbo.hooks.drafts import Draft, DraftEvent, DraftEvidence
from grandbo.memory.finding import parse_finding
from grandbo.memory.incidents import Said, document_of_incident, fold, has_cause, is_closed, is_open_again
from grandbo.types import Moment

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def make_draft(event: DraftEvent, **said: object) -> Draft:
    """A draft of one incident."""
    return Draft(**{"event": event, "incident_id": "INC-1", "title": "Logins failed", **said})  # type: ignore[arg-type]


def at(minutes: int) -> datetime:
    """So many minutes after the start."""
    return START + timedelta(minutes=minutes)


STORY = (
    (make_draft("opened", occurred_at=Moment(START, "time")), at(1)),
    (make_draft("alert", title="", evidence=(DraftEvidence("alert", "https://a.example.com/1", "one"),)), at(2)),
    (make_draft("resolved", ended_at=Moment(at(3), "time"), cause="A certificate expired"), at(4)),
    (make_draft("reopened", title="Logins failed again"), at(5)),
    (make_draft("resolved", ended_at=Moment(at(6), "time")), at(7)),
    (make_draft("postmortem", body="Why it happened"), at(8)),
)


def told(story: tuple[tuple[Draft, datetime], ...]) -> Said:
    """The record after all of it."""
    said: Said = {}
    for draft, received_at in story:
        said = fold(said, draft, received_at)
    return said


class TestFold:
    def test_any_order_tells_the_same(self) -> None:
        """Every order of the deliveries, each told once or twice, gives the same finding."""
        expected = document_of_incident("pager", "INC-1", told(STORY))

        for order in itertools.permutations(STORY):
            assert expected == document_of_incident("pager", "INC-1", told(order))
            assert told(order) == told((*order, *order))

    def test_where_it_stands(self) -> None:
        """Closed from its first close on; open again between a reopening and the next close."""
        stands = [(is_closed(told(STORY[:n])), is_open_again(told(STORY[:n]))) for n in range(1, len(STORY) + 1)]

        assert [(False, False), (False, False), (True, False), (True, True), (True, False), (True, False)] == stands

    def test_what_is_a_cause(self) -> None:
        """One that is stated, or a published post-mortem with a text; an empty field takes nothing back."""
        closed = make_draft("resolved", body="It was restarted.")

        assert not has_cause(told(((closed, START),)))
        assert has_cause(told(((make_draft("postmortem", body="Why"), START),)))
        assert has_cause(told(((make_draft("resolved", cause="c"), START), (closed, at(1)))))

    def test_no_future_comes_out_of_it(self) -> None:
        """A sender whose clock is ahead is taken at the time of its delivery."""
        ahead = make_draft("resolved", occurred_at=Moment(at(60), "time"), ended_at=Moment(at(90), "time"))

        document = document_of_incident("pager", "INC-1", told(((ahead, START),)))

        assert (document["occurred_at"], document["ended_at"]) == ("2026-01-02T03:04:05.000000Z",) * 2


class TestDocument:
    def test_it_is_always_a_finding(self) -> None:
        """However much or little the source says; what is left out is said."""
        much = make_draft(
            "resolved",
            title="t" * 500 + "\x00\n",
            summary="s" * 9_000,
            body="ä" * 70_000,
            cause="c\x07",
            service="v" * 300,
            tags=("x" * 80, " ", "ok", "ok", *(f"t{number}" for number in range(30))),
            evidence=tuple(
                DraftEvidence("alert", uri, "l" * 400)
                for uri in ("javascript:alert(1)", "no uri", *(f"https://a.example.com/{n}" for n in range(300)))
            ),
        )
        document = document_of_incident("pager", "INC-1", told(((much, START),)))

        finding = parse_finding(document)
        assert (TITLE_LIMIT, "…") == (len(finding.title), finding.title[-1])
        assert len(finding.body.encode()) <= BODY_LIMIT_BYTES
        assert "[Cut here" in finding.body
        assert 20 == len(finding.evidence)
        assert all(item.uri.startswith("https:") for item in finding.evidence)

        little = Draft("resolved", "INC 1/ä", "")
        found = parse_finding(document_of_incident("pager", "INC 1/ä", told(((little, START),))))
        assert ("Incident INC 1/ä of pager", "urn:incident:pager:INC%201%2F%C3%A4") == (
            found.title,
            found.evidence[0].uri,
        )

    def test_links_that_are_left_out_are_counted(self) -> None:
        """A reader learns that the source has more."""
        links = tuple(DraftEvidence("alert", f"https://a.example.com/{n}") for n in range(23))

        document = document_of_incident("p", "1", told(((make_draft("resolved", evidence=links), START),)))

        assert "- The source has 3 more pieces of evidence." in document["body"]

    @pytest.mark.parametrize("precision", ["year", "month", "day"])
    def test_a_day_stays_a_day(self, precision: str) -> None:
        """No time is made up."""
        length = {"year": 4, "month": 7, "day": 10}[precision]
        draft = make_draft("resolved", occurred_at=Moment(START, precision))  # type: ignore[arg-type]

        document = document_of_incident("pager", "INC-1", told(((draft, at(5)),)))

        assert "2026-01-02"[:length] == document["occurred_at"]
