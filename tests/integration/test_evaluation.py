"""Evaluation: judged topics through the real doors, with figures that can be checked by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from uuid import uuid4

import pytest

from grandbo.errors import Forbidden, InvalidInput
from grandbo.evaluation import (
    MODES,
    Asked,
    JudgedSet,
    Report,
    ask_topics,
    compare,
    explain_losses,
    judged_set_from_feedback,
    load_corpus,
    read_judged_set,
    report_of,
)
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.importing import parse_line
from grandbo.sample import sample_lines
from tests.support.cli import Cli, write_lines
from tests.support.postgres import TestDatabase

SIGNED = "dfds-pm2019-009"
TOPICS = {
    "starved": "Kubernetes network infrastructure IP starvation in the cluster",
    "unheard": "warm knitting patterns for baby socks",
    "short": "socks",
}


def _quiet(_phase: str, _done: int, _total: int) -> None:
    """Progress that nobody reads."""


def _files(folder: Path, topics: dict[str, str], judgements: str) -> tuple[Path, Path, Path]:
    corpus, qrels = folder / "corpus.jsonl", folder / "qrels.tsv"
    corpus.write_bytes(b"".join(sample_lines()[:40]))
    qrels.write_text(judgements)
    asked = write_lines(folder / "topics.jsonl", [{"id": name, "text": text} for name, text in topics.items()])
    return corpus, asked, qrels


@pytest.fixture
def judged(tmp_path: Path) -> JudgedSet:
    """Forty incidents of the sample, three topics, one of which has an answer there."""
    judgements = f"query_id\tdoc_id\trelevance\nstarved\t{SIGNED}\t1\nunheard\tno-such-document\t1\n"
    return read_judged_set(*_files(tmp_path, TOPICS, judgements))


class TestFiles:
    def test_a_document_that_is_not_there_is_no_answer(self, judged: JudgedSet) -> None:
        """A topic whose relevant documents are all missing counts among those that have no answer."""
        assert {"starved": frozenset({SIGNED})} == judged.relevant
        assert list(TOPICS) == list(judged.topics)
        assert 40 == len(judged.documents)

    def test_judgements_have_three_columns_or_four_and_need_no_header(self, tmp_path: Path) -> None:
        """TREC's iteration column may be there; a relevance of nought is a judgement of irrelevance."""
        judgements = f"starved 0 {SIGNED} 2\nstarved 0 dfds-pm2019-010 0\n"

        judged = read_judged_set(*_files(tmp_path, TOPICS, judgements))

        assert {"starved": frozenset({SIGNED})} == judged.relevant

    @pytest.mark.parametrize(
        ("topics", "judgements", "wanted"),
        [
            ({}, "a b 1\n", "holds no topic"),
            (TOPICS, "a b 1\nno judgement\n", "line 2: it must be topic, document and relevance"),
            (TOPICS, "a b 1\na b many\n", "line 2: it must be topic, document and relevance"),
        ],
    )
    def test_what_cannot_be_read_is_named(
        self, tmp_path: Path, topics: dict[str, str], judgements: str, wanted: str
    ) -> None:
        """An error says which file and line, and what belongs there."""
        with pytest.raises(InvalidInput, match=wanted):
            read_judged_set(*_files(tmp_path, topics, judgements))

    def test_a_document_of_old_has_its_control_characters_taken_out(self, tmp_path: Path) -> None:
        """The import would refuse the line, and a corpus is measured, not mended by hand."""
        corpus, topics, qrels = _files(tmp_path, TOPICS, "a b 1\n")
        write_lines(
            corpus, [{"id": "a", "title": "Disk\x08full", "text": "It\x1b[0m filled\nup.", "summary": "So\x07!"}]
        )

        found = parse_line(read_judged_set(corpus, topics, qrels).documents["a"], "finding")

        assert ("Disk full", "It [0m filled\nup.", "So !") == (found.title, found.body, found.summary)

    def test_an_id_stands_once(self, tmp_path: Path) -> None:
        """Two topics of one id would share a judgement."""
        corpus, topics, qrels = _files(tmp_path, TOPICS, "a b 1\n")
        write_lines(topics, [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}])

        with pytest.raises(InvalidInput, match=r"topics\.jsonl, line 2: it needs an id of its own"):
            read_judged_set(corpus, topics, qrels)


RELEVANT = {"one": frozenset({"a"}), "two": frozenset({"a", "b"}), "none": frozenset({"z"})}
ANSWERS = {
    "one": Asked(("x", "a"), True, None),
    "two": Asked(("b", "v", "w", "x", "y", "a"), True, None),
    "none": Asked((), False, "nothing_matched"),
    "off": Asked(("x",), True, None),
    "off too": Asked((), False, "nothing_matched"),
}


class TestFigures:
    def _report(self) -> Report:
        judged = JudgedSet({}, frozenset(), dict.fromkeys(ANSWERS, ""), RELEVANT)
        return report_of(judged, {"words": ANSWERS, "hybrid": ANSWERS})

    def test_the_measures_are_those_computed_by_hand(self) -> None:
        """Recall counts what is found, nDCG where, MRR the first; an empty answer scores nothing."""
        of_two = (1 + 1 / math.log2(7)) / (1 + 1 / math.log2(3))
        wanted = {
            "recall@5": (1 + 0.5 + 0) / 3,
            "recall@10": (1 + 1 + 0) / 3,
            "ndcg@10": (1 / math.log2(3) + of_two + 0) / 3,
            "mrr@10": (0.5 + 1 + 0) / 3,
            "answer_rate": 2 / 3,
            "false_answer_rate": 1 / 2,
        }

        found = {name: value.mean for name, value in self._report().summary()["words"].items() if value}

        assert pytest.approx(wanted) == found

    def test_an_interval_holds_its_mean_and_repeats(self) -> None:
        """The seed is fixed: the same scores give the same interval, and a difference to oneself is none."""
        report = self._report()
        recall = report.summary()["words"]["recall@5"]
        gain = report.gains()["words"]["recall@5"]

        assert recall is not None
        assert recall.low < recall.mean < recall.high
        assert recall == self._report().summary()["words"]["recall@5"]
        assert gain is not None
        assert (0.0, 0.0, 0.0, 3) == (gain.mean, gain.low, gain.high, gain.topics)

    def test_a_saved_run_is_compared_topic_by_topic(self) -> None:
        """Only topics that both runs asked count, each against itself."""
        before = Report.of_document(json.loads(json.dumps(self._report().as_dict())))
        better = {**ANSWERS, "one": Asked(("a",), True, None)}
        judged = JudgedSet({}, frozenset(), dict.fromkeys(better, ""), RELEVANT)

        gained = compare(report_of(judged, {"words": better}), before)["words"]["mrr@10"]

        assert gained is not None
        assert pytest.approx(0.5 / 3) == gained.mean
        assert 3 == gained.topics

    def test_another_file_is_no_saved_run(self) -> None:
        """What was not saved by this command is refused."""
        with pytest.raises(InvalidInput, match="--save"):
            Report.of_document({"scores": {}})


class TestRecallOfTheSample:
    def test_topics_are_asked_in_every_mode(self, grandbo: Grandbo, memory: TenantMemory, judged: JudgedSet) -> None:
        """The judged incident is found by words, by meaning and by both; what is no topic is answered by nobody."""
        loaded = load_corpus(memory, judged, progress=_quiet)
        investigator = grandbo.tenant(memory.tenant_id, principal="agent:evaluation", roles=("investigator",))

        answers = ask_topics(investigator, judged, loaded, progress=_quiet)

        assert (40, 0, {}) == (len(loaded.entry_of), loaded.refused, loaded.hidden)
        assert {SIGNED} == {answers[mode]["starved"].documents[0] for mode in MODES}
        assert {(False, "topic_too_short")} == {
            (answers[mode]["short"].answered, answers[mode]["short"].why_empty) for mode in MODES
        }

    def test_a_loss_is_explained(self, memory: TenantMemory, judged: JudgedSet) -> None:
        """An answer that was gated, one that was archived and one never stored are told apart."""
        loaded = load_corpus(memory, judged, progress=_quiet)
        archived = loaded.entry_of["dfds-pm2019-010"]
        memory.archive(archived, reason="It is out of the way.", expected_revision=1)
        loaded = load_corpus(memory, judged, progress=_quiet)
        relevant = frozenset({SIGNED, "dfds-pm2019-010", "never-imported"})
        unanswered = JudgedSet(judged.documents, judged.runbooks, judged.topics, {"unheard": relevant})
        answers = {"unheard": Asked((), False, "nothing_matched")}

        lost = explain_losses(memory, unanswered, loaded, answers)["unheard"]

        assert {"dfds-pm2019-010": "archived", "never-imported": "not_stored", SIGNED: "beyond_cutoff"} == {
            place.document: place.why for place in lost
        }

    def test_too_few_shared_words_are_told_from_too_far_a_meaning(
        self, memory: TenantMemory, judged: JudgedSet
    ) -> None:
        """By words alone the floor is what keeps an entry out that shares a word, and no cutoff has a part in it."""
        loaded = load_corpus(memory, judged, progress=_quiet)
        memory.change_policy({"lexical_floor_bp": 10_000}, reason="Every word must be there.")
        topics = {"partly": "Hellman knitting patterns for babies in the garden"}
        shares_a_word = JudgedSet(
            judged.documents, judged.runbooks, topics, {"partly": frozenset({"dfds-pm2019-010", SIGNED})}
        )
        answers = ask_topics(memory, shares_a_word, loaded, ["words"], progress=_quiet)["words"]

        places = explain_losses(memory, shares_a_word, loaded, answers, "words")["partly"]

        assert "below_floor" == {place.document: place.why for place in places}["dfds-pm2019-010"]
        assert "beyond_cutoff" not in {place.why for place in places}

    def test_what_is_found_is_no_loss(self, memory: TenantMemory, judged: JudgedSet) -> None:
        """A relevant document among the first five needs no explanation."""
        loaded = load_corpus(memory, judged, progress=_quiet)
        answers = ask_topics(memory, judged, loaded, ["words"], progress=_quiet)["words"]

        assert {} == explain_losses(memory, judged, loaded, answers)

    def test_a_look_stays_within_the_tiers(self, grandbo: Grandbo, memory: TenantMemory, judged: JudgedSet) -> None:
        """With the gates open too, an investigator's lists hold nothing above what he sees."""
        loaded = load_corpus(memory, judged, progress=_quiet)
        hidden = loaded.entry_of[SIGNED]
        memory.reclassify(hidden, visibility="admin", reason="It is for few.", expected_revision=1)
        investigator = grandbo.tenant(memory.tenant_id, principal="agent:evaluation", roles=("investigator",))

        assert hidden in memory.look_through(TOPICS["starved"], 100).standings
        assert hidden not in investigator.look_through(TOPICS["starved"], 100).standings


class TestFromFeedback:
    """Topics are judged by what people found of their answers, which no receipt tells by itself."""

    @pytest.fixture
    def asked(self, grandbo: Grandbo, memory: TenantMemory, judged: JudgedSet) -> JudgedSet:
        """The sample, and the first topic asked; one entry of its answer helped two askers, another did not help."""
        load_corpus(memory, judged, progress=_quiet)
        for name in ("ann", "bob"):
            asker = grandbo.tenant(memory.tenant_id, principal=f"agent:{name}", roles=("investigator",))
            answer = asker.query_topic(TOPICS["starved"], mode="words", limit=2)
            grandbo.receipts.flush()
            asker.give_feedback(answer.receipt_id, answer.matches[0].entry_id, "helped")
            asker.give_feedback(answer.receipt_id, answer.matches[1].entry_id, "irrelevant")
        return judged

    def test_what_helped_is_relevant(self, memory: TenantMemory, asked: JudgedSet) -> None:
        """A topic nobody judged is counted and not asked; so is a verdict on another topic."""
        helped = memory.query_topic(TOPICS["starved"], mode="words").matches[0]
        set_of_all = judged_set_from_feedback(memory, {name: TOPICS[name] for name in ("starved", "unheard")})
        scores = report_of(
            set_of_all.judged,
            ask_topics(memory, set_of_all.judged, set_of_all.loaded, ["words"], progress=_quiet),
        ).scores["words"]

        assert {"starved": frozenset({str(helped.entry_id)})} == set_of_all.judged.relevant
        assert {"verdicts": 4, "unrecognised": 0, "unjudged": 1, "without_help": 0} == set_of_all.as_dict()
        assert {"starved": 1.0} == scores["recall@5"] == scores["mrr@10"]

    def test_a_rotated_key_makes_no_difference(self, memory: TenantMemory, asked: JudgedSet) -> None:
        """Verdicts on receipts of every epoch count."""
        memory.rotate_receipt_key()
        answer = memory.query_topic(TOPICS["starved"], mode="words", limit=2)
        memory.give_feedback(answer.receipt_id, answer.matches[1].entry_id, "helped")

        assert 5 == judged_set_from_feedback(memory, {"starved": TOPICS["starved"]}).verdicts

    def test_another_wording_is_another_topic(self, memory: TenantMemory, asked: JudgedSet) -> None:
        """The HMAC is of the very words; what it cannot recognise is not guessed at."""
        with pytest.raises(InvalidInput, match="word for word"):
            judged_set_from_feedback(memory, {"other": TOPICS["starved"].upper()})

    def test_a_reviewer_is_not_told_of_what_he_may_not_see(
        self, grandbo: Grandbo, memory: TenantMemory, asked: JudgedSet
    ) -> None:
        """Verdicts on an entry above one's tiers are not there, and who may not audit gets none at all."""
        helped = memory.query_topic(TOPICS["starved"], mode="words").matches[0].entry_id
        memory.reclassify(helped, visibility="admin", reason="It is for few.", expected_revision=1)
        reviewer = grandbo.tenant(memory.tenant_id, principal="human:rita", roles=("reviewer",))
        investigator = grandbo.tenant(memory.tenant_id, principal="agent:ann", roles=("investigator",))

        assert helped in memory.judged_by_feedback({"starved": TOPICS["starved"]}).verdicts["starved"]
        assert helped not in reviewer.judged_by_feedback({"starved": TOPICS["starved"]}).verdicts.get("starved", {})
        with pytest.raises(Forbidden):
            investigator.judged_by_feedback({"starved": TOPICS["starved"]})


class TestCommand:
    @pytest.fixture
    def cli(self, database: TestDatabase) -> Cli:
        """The command line on the tests' database, by words."""
        return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none")

    def test_it_measures_saves_and_compares(self, cli: Cli, tmp_path: Path) -> None:
        """In a tenant that was named; the second run finds the corpus there and is equal to the first."""
        corpus, topics, qrels = _files(tmp_path, TOPICS, f"starved {SIGNED} 1\n")
        files = ("--corpus", corpus, "--topics", topics, "--qrels", qrels, "--tenant", f"eval-{uuid4().hex[:8]}")
        saved = tmp_path / "saved.json"

        first = cli("eval", *files, "--json", "--save", saved, "--explain")
        second = cli("eval", *files, "--compare", saved)

        assert (0, 0) == (first.code, second.code)
        assert ["words"] == list(first.document["summary"])
        assert 1.0 == first.document["summary"]["words"]["recall@5"]["mean"]
        assert {"words": {}} == first.document["losses"]
        assert "scores" not in first.document
        assert "now minus before" in second.out
        assert "words\t+0.000 [+0.000, +0.000]" in second.out
        assert "Asking: 3 of 3" in second.err

    def test_verdicts_are_judgements(self, cli: Cli, tmp_path: Path) -> None:
        """Given on the command line, they are what the tenant's own memory is measured by."""
        corpus, topics, qrels = _files(tmp_path, TOPICS, f"starved {SIGNED} 1\n")
        tenant = ("--tenant", f"eval-{uuid4().hex[:8]}")
        cli("eval", "--corpus", corpus, "--topics", topics, "--qrels", qrels, *tenant)
        answer = cli("recall", TOPICS["starved"], *tenant, "--json").document
        cli("feedback", answer["receipt_id"], answer["matches"][0]["entry_id"], "helped", *tenant)

        report = cli("eval", "--from-feedback", "--topics", topics, *tenant, "--json").document
        told = cli("eval", "--from-feedback", "--topics", topics, *tenant)

        assert 1 == report["corpus"]["feedback"]["verdicts"]
        assert 1.0 == report["summary"]["words"]["mrr@10"]["mean"]
        assert "Judged by 1 verdicts" in told.out

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            (("--from-feedback",), "tenant"),
            (("--from-feedback", "--tenant", "x", "--qrels", "q.tsv"), "from-feedback"),
            ((), "corpus"),
            (("--corpus", "c.jsonl"), "qrels"),
        ],
    )
    def test_what_does_not_go_together_is_told(
        self, cli: Cli, tmp_path: Path, options: tuple[str, ...], named: str
    ) -> None:
        """Judgements come from a file or from verdicts, and verdicts from a tenant."""
        _, topics, _ = _files(tmp_path, TOPICS, "")

        refused = cli("eval", "--topics", topics, *options, "--json")

        assert 2 == refused.code
        assert refused.error["message"].startswith(f"{named}: ")

    def test_no_topic_is_kept(self, cli: Cli, tmp_path: Path) -> None:
        """A saved run has ids and figures; what was asked is in no file."""
        corpus, topics, qrels = _files(tmp_path, TOPICS, f"starved {SIGNED} 1\n")
        saved = tmp_path / "saved.json"

        cli("eval", "--corpus", corpus, "--topics", topics, "--qrels", qrels, "--save", saved, "--explain",
            "--tenant", f"eval-{uuid4().hex[:8]}")  # fmt: skip

        assert "starved" in saved.read_text()
        assert TOPICS["starved"] not in saved.read_text()

    def test_a_file_that_is_not_there_is_named(self, cli: Cli, tmp_path: Path) -> None:
        """Nothing is started for it."""
        corpus, topics, qrels = _files(tmp_path, TOPICS, "a b 1\n")
        corpus.unlink()

        refused = cli("eval", "--corpus", corpus, "--topics", topics, "--qrels", qrels, "--json")

        assert (2, "corpus.jsonl: it cannot be read (FileNotFoundError).") == (refused.code, refused.error["message"])

    def test_a_home_and_a_tenant_are_two_places(self, cli: Cli, tmp_path: Path) -> None:
        """Only one of them can be where the corpus goes."""
        corpus, topics, qrels = _files(tmp_path, TOPICS, "a b 1\n")

        refused = cli("eval", "--corpus", corpus, "--topics", topics, "--qrels", qrels, "--tenant", "x", "--home",
                      tmp_path / "home", "--json")  # fmt: skip

        assert (2, "invalid_input") == (refused.code, refused.error["code"])
