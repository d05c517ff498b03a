"""Versions as bytes, specifications as ranges."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from grandbo.applicability import Applies, key_of, parse_applicability, parse_applies, parse_context, ranges
from grandbo.errors import GrandboError, InvalidInput, LimitExceeded

_number = st.integers(min_value=0, max_value=3) | st.sampled_from([9, 10, 99, 255, 256, 65_536])
_release = st.lists(_number, min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
_epoch = st.sampled_from(["", "", "", "1!"])
_pre = st.sampled_from(["", "", "", "a1", "b2", "rc1", "rc10"])
_post = st.sampled_from(["", "", "", ".post1", ".post12"])
_dev = st.sampled_from(["", "", "", ".dev0", ".dev3"])
_versions = st.tuples(_epoch, _release, _pre, _post, _dev).map("".join)
_finals = st.tuples(_epoch, _release).map("".join)


@st.composite
def _specifications(draw: st.DrawFn) -> str:
    parts = []
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        operator = draw(st.sampled_from(["==", "!=", "<=", ">=", "<", ">", "~=", "==*", "!=*"]))
        final = draw(_finals)
        if operator.endswith("*"):
            parts.append(f"{operator[:-1]}{final}.*")
        elif operator == "~=":
            parts.append(f"~={final}.0" if "." not in final else f"~={final}")
        elif operator in ("<", ">"):
            parts.append(operator + final)
        else:
            parts.append(operator + draw(_versions))
    return ",".join(parts)


def _holds(versions: str, version: str) -> bool:
    key = key_of(version)
    assert key is not None
    return any(low <= key < high for low, high in ranges(versions))


class TestKeys:
    @given(_versions, _versions)
    @settings(max_examples=800, derandomize=True)
    def test_keys_sort_as_versions_do(self, one: str, other: str) -> None:
        """Bytes compare exactly as `packaging` compares the versions they stand for."""
        first, second = key_of(one), key_of(other)
        assert first is not None
        assert second is not None
        assert (Version(one) < Version(other), Version(one) == Version(other)) == (first < second, first == second)

    @pytest.mark.parametrize("text", ["banana", "", "4..1", "v", "4 5"])
    def test_what_is_no_version_has_no_key(self, text: str) -> None:
        """Text that `packaging` does not read as a version has no key."""
        assert key_of(text) is None


class TestRanges:
    @given(_specifications(), _versions)
    @settings(max_examples=600, derandomize=True)
    def test_ranges_hold_what_the_specification_holds(self, versions: str, version: str) -> None:
        """A version lies in the ranges of a specification exactly when `packaging` says that it matches."""
        assert SpecifierSet(versions).contains(version, prereleases=True) == _holds(versions, version)

    def test_a_local_label_does_not_count(self) -> None:
        """A build of a version is that version."""
        assert _holds(">=4.1,<4.2", "4.1+build7")


class TestParsing:
    @pytest.mark.parametrize(
        ("given_text", "shown"),
        [
            ("worker >=4,<7", "worker <7,>=4"),
            ("worker>=4, <7", "worker <7,>=4"),
            ("Payments-API ==2.*", "payments-api ==2.*"),
            ("kafka", "kafka"),
            ("kafka *", "kafka"),
        ],
    )
    def test_one_spelling(self, given_text: str, shown: str) -> None:
        """However it is written, what means the same is stored as the same text."""
        assert shown == str(parse_applies(given_text))
        assert parse_applies(shown) == parse_applies(given_text)

    @pytest.mark.parametrize(
        "text",
        ["", ">=4", "worker >=banana", "worker >=7,<4", "worker ===4", "worker 4", "a b", "w >=4+local", 7, None],
    )
    def test_what_cannot_be_read_is_refused(self, text: object) -> None:
        """Unparsable versions, ranges that hold nothing and missing systems are refused with what to write."""
        with pytest.raises(InvalidInput) as caught:
            parse_applies(text)
        assert "applicability" == caught.value.details["field"]

    def test_each_once_and_not_too_many(self) -> None:
        """The same item twice is one item; seventeen are too many."""
        assert (Applies("worker", ">=4"),) == parse_applicability(["worker >=4", "worker>=4"])
        with pytest.raises(LimitExceeded):
            parse_applicability([f"s{n}" for n in range(17)])

    @pytest.mark.parametrize(
        "context", [{"": "1"}, {"a b": "1"}, {"w": 5}, {"w": ""}, {"w": "1", "W": "2"}, ["w"], {"w": "\0"}]
    )
    def test_a_context_that_is_none_is_refused(self, context: object) -> None:
        """Systems need names and versions need to be text."""
        with pytest.raises(GrandboError):
            parse_context(context)

    def test_an_unparsable_version_is_kept_in_a_context(self) -> None:
        """What the asker runs may be called anything; that it is no version is said in the answer."""
        assert {"worker": "banana"} == parse_context({"Worker": " banana "})
