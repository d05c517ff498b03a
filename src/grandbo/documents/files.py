"""From the bytes of a file to its text: what is no text, or too much of it, is refused with the reason."""

from __future__ import annotations

from typing import Literal

from grandbo.errors import InvalidInput, LimitExceeded

Format = Literal["markdown", "html", "yaml", "pdf"]
DOCUMENT_LIMIT_BYTES = 1024 * 1024
FORMATS: dict[str, Format] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "markdown",
    ".html": "html",
    ".htm": "html",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".rules": "yaml",
    ".pdf": "pdf",
}
RUNBOOK_FORMATS: frozenset[Format] = frozenset({"markdown", "html", "yaml"})
POSTMORTEM_FORMATS: frozenset[Format] = frozenset({"markdown", "html", "pdf"})
PDF_MAGIC = b"%PDF-"
_MAGIC = {
    PDF_MAGIC: "a PDF; export its text as Markdown or HTML, or give it a name that ends with .pdf",
    b"PK\x03\x04": "a ZIP archive or an office document; export its text as Markdown or HTML",
    b"\x1f\x8b": "compressed; unpack it first",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"GIF8": "an image",
    b"\xd0\xcf\x11\xe0": "an office document; export its text as Markdown or HTML",
    b"\x7fELF": "a program",
}


def format_of(name: str, default: Format | None = None) -> Format:
    """
    The format that a file's name stands for.

    Raises:
        InvalidInput: for a name that stands for none, where there is no default.
    """
    suffix = "." + name.lower().rpartition(".")[2]
    found = FORMATS.get(suffix, default)
    if found is None:
        raise InvalidInput(f"The name must end with one of {', '.join(FORMATS)}.", field="file")
    return found


def text_of(raw: bytes) -> str:
    """
    The text, with `\\n` at the ends of its lines and without a byte order mark.

    Raises:
        LimitExceeded: more than 1 MiB. InvalidInput: no text, by its first bytes or by what is in it.
    """
    if len(raw) > DOCUMENT_LIMIT_BYTES:
        raise LimitExceeded(
            f"The document has {len(raw)} bytes, at most {DOCUMENT_LIMIT_BYTES} are read; split it.",
            limit=DOCUMENT_LIMIT_BYTES,
            length=len(raw),
        )
    for magic, what in _MAGIC.items():
        if raw.startswith(magic):
            raise InvalidInput(f"This is no text, it is {what}.", field="file")
    if b"\x00" in raw:
        raise InvalidInput("This is no text, it holds null bytes.", field="file")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The document is not UTF-8 at byte {error.start}.", field="file") from None
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise InvalidInput("The document is empty.", field="file")
    return text
