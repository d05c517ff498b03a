"""
Applicability: which target system an entry is about, and from which version to which. `worker >=4,<7`

Version order is that of `packaging`. So that the database can compare versions before it ranks anything, a version is
written as bytes that sort as the version does, and a specification as ranges `[from, until)` of such bytes. A local
label (`4.1+build7`) does not count. `<7` leaves out the pre-releases of 7 and `>4` the post-releases of 4, as
everywhere in Python packaging; where the version named is itself one of those, the plain order holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from grandbo.errors import InvalidInput, LimitExceeded
from grandbo.text import check_text

APPLICABILITY_LIMIT = 16
CONTEXT_LIMIT = 32
TEXT_LIMIT = 200
RANGES_LIMIT = 64

WANTED = "name a system and its versions, such as `worker >=4,<7`, or a system alone"
_ITEM = re.compile(r"([A-Za-z0-9][A-Za-z0-9._/-]{0,63})(?:\s*([<>=!~].*)|\s+\*)?")
_SYSTEM = re.compile(r"[a-z0-9][a-z0-9._/-]{0,63}")

_FIRST = b""
_BEYOND = b"\xff"

Range = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Applies:
    """One system, and the versions of it as a specification; all of them where it is empty."""

    system: str
    versions: str

    def __str__(self) -> str:
        return f"{self.system} {self.versions}" if self.versions else self.system


def parse_applies(given: object) -> Applies:
    """
    Read `worker >=4,<7`.

    Raises:
        InvalidInput: no system, versions that `packaging` cannot read, or a range in which no version can lie.
    """
    if not isinstance(given, str):
        raise _refused(WANTED)
    check_text(given, "applicability", limit=TEXT_LIMIT, single_line=True)
    match = _ITEM.fullmatch(given.strip())
    if match is None:
        raise _refused(WANTED)
    system, written = match.group(1).lower(), (match.group(2) or "").strip()
    try:
        # Sorted and spelled one way: equal specifications are equal text.
        versions = ",".join(sorted(str(specifier) for specifier in SpecifierSet(written)))
        found = ranges(versions)
    except (InvalidSpecifier, InvalidVersion):
        raise _refused(f"`{written}` is no range of versions; {WANTED}") from None
    if not found:
        raise _refused(f"no version can be `{written}`")
    return Applies(system, versions)


def parse_applicability(given: object) -> tuple[Applies, ...]:
    """Read a list of them, each once. Several of one system stand for any of them."""
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list | tuple):
        raise _refused(f"it must be a list; {WANTED}")
    if len(given) > APPLICABILITY_LIMIT:
        raise LimitExceeded(
            f"applicability: {len(given)} items, at most {APPLICABILITY_LIMIT} are allowed.",
            field="applicability",
            limit=APPLICABILITY_LIMIT,
            length=len(given),
        )
    return tuple(dict.fromkeys(parse_applies(item) for item in given))


def parse_context(given: object) -> dict[str, str]:
    """
    Read `{system: version}`: what the asker runs. A version that is none is kept, and excludes what it bears on.

    Raises:
        InvalidInput: with the field `context`.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput("context: it must map systems to versions, such as {worker: 5.2}.", field="context")
    if len(given) > CONTEXT_LIMIT:
        raise InvalidInput(f"context: at most {CONTEXT_LIMIT} systems are allowed.", field="context")
    context: dict[str, str] = {}
    for system, version in given.items():
        name = system.lower() if isinstance(system, str) else ""
        if not _SYSTEM.fullmatch(name) or name in context:
            raise InvalidInput(
                "context: a system is named once, with 1 to 64 letters, digits, dots, dashes, slashes or underscores.",
                field="context",
            )
        if not isinstance(version, str) or not version.strip():
            raise InvalidInput(f"context: give the version of {name} as text, such as `5.2`.", field="context")
        context[name] = check_text(version.strip(), "context", limit=TEXT_LIMIT, single_line=True)
    return context


def key_of(version: str) -> bytes | None:
    """Bytes that sort as the version does; None where it is no version."""
    try:
        return _key(Version(version))
    except InvalidVersion:
        return None


def ranges(versions: str) -> tuple[Range, ...]:
    """
    The specification as disjoint ranges `[from, until)` in ascending order; none where no version can lie in it.

    Raises:
        InvalidSpecifier, InvalidVersion
    """
    held: tuple[Range, ...] = ((_FIRST, _BEYOND),)
    for specifier in SpecifierSet(versions):
        held = _both(held, _ranges_of(specifier))
    if len(held) > RANGES_LIMIT:
        raise InvalidSpecifier(versions)
    return held


def ranges_by_system(applicability: Iterable[Applies]) -> list[tuple[str, bytes, bytes]]:
    """All ranges with their systems, in a fixed order."""
    found = {(item.system, low, high) for item in applicability for low, high in ranges(item.versions)}
    return sorted(found)


def _ranges_of(specifier: Specifier) -> tuple[Range, ...]:
    operator, written = specifier.operator, specifier.version
    if operator == "===":
        raise InvalidSpecifier(str(specifier))
    if written.endswith(".*"):
        inside = _prefix(Version(written[:-2]))
        return (inside,) if operator == "==" else _without(inside)
    version = Version(written)
    if version.local is not None:
        raise InvalidVersion(written)
    key = _key(version)
    match operator:
        case "==":
            return ((key, _after(key)),)
        case "!=":
            return _without((key, _after(key)))
        case ">=":
            return ((key, _BEYOND),)
        case "<=":
            return ((_FIRST, _after(key)),)
        case ">":
            return ((_after_posts(version) if _is_final(version) else _after(key), _BEYOND),)
        case "<":
            return ((_FIRST, _key(Version(f"{version.base_version}.dev0")) if _is_final(version) else key),)
    # ~=
    low, high = _prefix(Version(f"{version.epoch}!" + ".".join(map(str, version.release[:-1]))))
    return _both(((key, _BEYOND),), ((low, high),))


def _is_final(version: Version) -> bool:
    return not version.is_prerelease and not version.is_postrelease


def _prefix(version: Version) -> Range:
    *rest, last = version.release
    following = ".".join(map(str, [*rest, last + 1]))
    low = Version(f"{version.epoch}!{'.'.join(map(str, version.release))}.dev0")
    return _key(low), _key(Version(f"{version.epoch}!{following}.dev0"))


def _without(inside: Range) -> tuple[Range, ...]:
    return ((_FIRST, inside[0]), (inside[1], _BEYOND))


def _both(one: tuple[Range, ...], other: tuple[Range, ...]) -> tuple[Range, ...]:
    cuts = ((max(a, c), min(b, d)) for a, b in one for c, d in other)
    return tuple(sorted(cut for cut in cuts if cut[0] < cut[1]))


def _after(key: bytes) -> bytes:
    # No key begins with another, so nothing lies between this and its key.
    return key + b"\x00"


def _after_posts(version: Version) -> bytes:
    return _release(version) + b"\x02\x02"


def _key(version: Version) -> bytes:
    """Epoch, release, pre, post, dev, as `packaging` compares them; each part says whether it is there."""
    pre, post, dev = version.pre, version.post, version.dev
    if pre is not None:
        pre_key = b"\x01" + {"a": b"\x01", "b": b"\x02", "rc": b"\x03"}[pre[0]] + _number(pre[1])
    else:
        # A development release of nothing else comes before every pre-release.
        pre_key = b"\x00" if post is None and dev is not None else b"\x02"
    post_key = b"\x00" if post is None else b"\x01" + _number(post)
    dev_key = b"\x01" if dev is None else b"\x00" + _number(dev)
    return _release(version) + pre_key + post_key + dev_key


def _release(version: Version) -> bytes:
    release = list(version.release)
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    return _number(version.epoch) + b"".join(b"\x01" + _number(part) for part in release) + b"\x00"


def _number(value: int) -> bytes:
    """Its length, then its bytes: a longer number is a larger one."""
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "big")


def _refused(message: str) -> InvalidInput:
    return InvalidInput(f"applicability: {message}.", field="applicability")
