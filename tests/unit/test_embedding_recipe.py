"""The text recipe and the stamp."""

from __future__ import annotations

import re
from importlib import resources
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from grandbo.embedding import DIMENSIONS, RECIPE, Stamp, Window, windows
from grandbo.errors import EmbedderRefused

PROSE = (
    "The checkout service began to time out after the deploy. Its connection pool had been halved by mistake, "
    "so that every request waited for a free connection. Operators raised the limit and the queue drained. "
)
TITLE = "Checkout latency rose after the connection pool was halved"

words = st.text(st.characters(codec="utf-8"), max_size=12)
ideographs = st.text(st.sampled_from("支付服务超时数据库连接池耗尽。，\u304b\u3099カタ"), max_size=300)
texts = st.lists(st.one_of(words, ideographs), max_size=600).map(" ".join) | st.text(max_size=4000)


def visible(text: str) -> str:
    return "".join(text.split())


def tokens(text: str) -> int:
    content = resources.files("grandbo").joinpath("data", "minilm-tokenizer.json").read_text("utf-8")
    tokenizer = Tokenizer.from_str(content)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return len(tokenizer.encode(text).ids)


class TestWindows:
    def test_short_text(self) -> None:
        """A text that fits stays whole, with the title in front."""
        assert [Window(0, 0, 14, f"{TITLE}\nPool was small")] == windows(TITLE, "Pool was small")

    def test_blank_text(self) -> None:
        """A blank text still gives the title."""
        assert [Window(0, 0, 0, TITLE)] == windows(f" {TITLE}\n", " \n\t ")

    def test_blank_title(self) -> None:
        """A blank title puts nothing in front."""
        assert [Window(0, 1, 5, "pool")] == windows(" ", " pool ")

    def test_nothing_at_all(self) -> None:
        """Nothing to embed is refused rather than sent to a model that answers anyway."""
        with pytest.raises(EmbedderRefused):
            windows(" ", "\n")

    @settings(max_examples=80, deadline=None)
    @given(texts)
    def test_everything_is_covered(self, text: str) -> None:
        """The windows hold every visible character once and in order, at most 12 of them, and point into the text."""
        cut = windows("Title", text)

        assert visible(text) == "".join(visible(text[window.start : window.end]) for window in cut)
        assert list(range(len(cut))) == [window.index for window in cut]
        assert 1 <= len(cut) <= 12
        for window in cut:
            part = text[window.start : window.end]
            assert part.strip() == part
            assert (f"Title\n{part}" if part else "Title") == window.text
        assert all(one.end <= other.start for one, other in pairwise(cut))

    @settings(max_examples=25, deadline=None)
    @given(texts)
    def test_deterministic(self, text: str) -> None:
        """The same text gives the same windows."""
        assert windows("Title", text) == windows("Title", text)

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.sampled_from(["pool", "db-01", "timeout,", "Ärger.", "a"]), min_size=1, max_size=2500))
    def test_spaced_words_stay_whole(self, listed: list[str]) -> None:
        """A text with spaces is never cut within a word."""
        text = " ".join(listed)

        assert listed == [word for window in windows("", text) for word in window.text.split()]

    def test_prose(self) -> None:
        """Prose comes in windows of about 150 words that end with a sentence and fit the model."""
        cut = windows(TITLE, PROSE * 20)

        assert all(100 <= len(window.text.split()) <= 180 for window in cut[:-1])
        assert all(window.text.endswith(".") for window in cut)
        assert max(tokens(window.text) for window in cut) <= 256

    def test_lines(self) -> None:
        """Lines without a full stop are kept whole too."""
        lines = [f"{number} pool acquire timed out while waiting for a connection" for number in range(100)]
        cut = windows(TITLE, "\n".join(lines))

        assert lines == [line for window in cut for line in window.text.removeprefix(f"{TITLE}\n").split("\n")]

    @pytest.mark.parametrize(
        "sentence",
        [
            "数据库连接池耗尽导致支付服务超时。",
            "データベースの接続プールが枯渇したため、決済サービスがタイムアウトした。",
            "2026-11-29T23:05:01Z ERROR [db-primary-01.eu-west] acquire() timed out after 30000ms (waiters=812)\n",
            "Пул соединений исчерпан, платежный сервис отвечает с задержкой. ",
        ],
        ids=["chinese", "japanese", "log", "russian"],
    )
    def test_dense_text_fits_the_model(self, sentence: str) -> None:
        """A script without spaces, or a log, gets windows short enough for 256 tokens that end with a sentence."""
        cut = windows("支付服务超时", sentence * (1500 // len(sentence)))

        assert 1 < len(cut) <= 12
        assert max(tokens(window.text) for window in cut) <= 256
        assert all(window.text[-1] == sentence.strip()[-1] for window in cut)

    def test_accents_stay_with_their_letter(self) -> None:
        """A long word is not cut between a letter and its combining mark."""
        text = "か\u3099" * 3000

        assert all(not text[window.start : window.end].startswith("\u3099") for window in windows("t", text))

    def test_very_long_text(self) -> None:
        """A text too long for 12 usual windows gets 12 or fewer larger ones, and loses nothing."""
        text = PROSE * 400
        cut = windows(TITLE, text)

        assert 10 <= len(cut) <= 12
        assert visible(text) == "".join(visible(text[window.start : window.end]) for window in cut)

    def test_long_title(self) -> None:
        """A long title is kept whole and leaves less room for the text."""
        title = "pool exhausted " * 20
        cut = windows(title, PROSE * 10)

        assert all(window.text.startswith(title.strip()) for window in cut)
        assert max(tokens(window.text) for window in cut) <= 256

    def test_short_remainder(self) -> None:
        """A few words left over join the last window instead of making one that is nearly all title."""
        text = " ".join(["pool"] * 160)

        assert 1 == len(windows("", text))

    def test_recipe_is_frozen(self) -> None:
        """The windows of this recipe's name never move: stored vectors were made from them."""
        starts = [window.start for window in windows(TITLE, PROSE * 12 + "数据库连接池耗尽。" * 40)]

        assert "title-window-150w-v1" == RECIPE
        assert [0, 778, 1506, 2277, 2628] == starts


def make_stamp(**overrides: str | int) -> Stamp:
    fields: dict[str, str | int] = {
        "provider": "local",
        "model": "all-minilm-l6-v2",
        "revision": "8199be6f",
        "native_dimensions": 384,
        "recipe": RECIPE,
        "cutoff_bp": 6500,
    }
    return Stamp(**{**fields, **overrides})  # type: ignore[arg-type]  # the tests know which is which


class TestStamp:
    def test_id(self) -> None:
        """The id reads provider, model, revision, dimensions, recipe."""
        assert "local/all-minilm-l6-v2@8199be6f/384/title-window-150w-v1" == make_stamp().id

    def test_cutoff_is_not_identity(self) -> None:
        """Another cutoff is another stamp of the same space."""
        assert make_stamp(cutoff_bp=7000).id == make_stamp().id
        assert make_stamp(cutoff_bp=7000) != make_stamp()

    @pytest.mark.parametrize(
        "changed",
        [{"provider": "openai"}, {"model": "x"}, {"revision": "x"}, {"native_dimensions": 768}, {"recipe": "x"}],
        ids=lambda changed: next(iter(changed)),
    )
    def test_everything_else_is(self, changed: dict[str, str | int]) -> None:
        """Any other difference is another space."""
        assert make_stamp(**changed).id != make_stamp().id

    @given(st.text(max_size=150), st.text(max_size=150), st.text(max_size=150))
    def test_id_is_plain_and_short(self, model: str, revision: str, recipe: str) -> None:
        """Whatever the names, the id is at most 200 characters of the allowed ones."""
        stamp = make_stamp(model=model, revision=revision, recipe=recipe)

        assert re.fullmatch(r"[a-z0-9@/._:-]{1,200}", stamp.id)

    @pytest.mark.parametrize(
        ("one", "other"),
        [("BAAI/bge", "baai/bge"), ("a b", "a-b"), ("x" * 120, "x" * 121), ("a@b", "a-b"), ("", "-")],
    )
    def test_names_do_not_collide(self, one: str, other: str) -> None:
        """Two models whose names look alike after cleaning still differ."""
        assert make_stamp(model=one).id != make_stamp(model=other).id

    @pytest.mark.parametrize("dimensions", [0, -1, DIMENSIONS + 1])
    def test_impossible_dimensions(self, dimensions: int) -> None:
        """Dimensions that cannot be stored make no stamp."""
        with pytest.raises(ValueError, match="native_dimensions"):
            make_stamp(native_dimensions=dimensions)

    @pytest.mark.parametrize("cutoff_bp", [0, 20_001])
    def test_impossible_cutoff(self, cutoff_bp: int) -> None:
        """A cutoff outside the range of a cosine distance makes no stamp."""
        with pytest.raises(ValueError, match="cutoff_bp"):
            make_stamp(cutoff_bp=cutoff_bp)
