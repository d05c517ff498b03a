"""The documents of a folder, in one order, each by its path within it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from grandbo.documents.files import DOCUMENT_LIMIT_BYTES, FORMATS, RUNBOOK_FORMATS, Format
from grandbo.documents.pdf import PDF_LIMIT_BYTES
from grandbo.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Found:
    """A file, and its path within the folder with `/` between the names."""

    file: Path
    path: str

    def read(self) -> bytes:
        """Its bytes, and one more than are read of a document where it has more; raises `InvalidInput`."""
        try:
            with self.file.open("rb") as source:
                return source.read(max(DOCUMENT_LIMIT_BYTES, PDF_LIMIT_BYTES) + 1)
        except OSError as error:
            raise InvalidInput(f"The file cannot be read: {error.strerror}.", field="file") from None


@dataclass(frozen=True, slots=True)
class Given:
    """A document that is no file here: its path, and its bytes."""

    path: str
    raw: bytes

    def read(self) -> bytes:
        """Its bytes."""
        return self.raw


def documents_in(root: Path, formats: Collection[Format] = RUNBOOK_FORMATS) -> list[Found]:
    """
    The documents below a folder, by path; a file given itself is the only one.

    What is hidden, what leads out of the folder and what is in none of the formats is passed over.

    Raises:
        InvalidInput: there is no such file or folder, or a name in it is not UTF-8.
    """
    if root.is_file():
        return [Found(root, named(root.name))]
    if not root.is_dir():
        raise InvalidInput("There is no such file or folder.", field="path")
    inside = root.resolve()
    found = [Found(file, named(file.relative_to(root).as_posix())) for file in _files(root, formats)]
    kept = [item for item in found if item.file.is_file() and item.file.resolve().is_relative_to(inside)]
    return sorted(kept, key=lambda item: item.path)


def _files(root: Path, formats: Collection[Format]) -> Iterator[Path]:
    for file in root.rglob("*"):
        names = file.relative_to(root).parts
        if FORMATS.get(file.suffix.lower()) in formats and not any(name.startswith(".") for name in names):
            yield file


def named(path: str) -> str:
    """The path, if it can be an identity; raises `InvalidInput`."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("The name of a file is not UTF-8; rename it.", field="path") from None
    if not path.isprintable():
        raise InvalidInput("The name of a file holds control characters; rename it.", field="path")
    return path
