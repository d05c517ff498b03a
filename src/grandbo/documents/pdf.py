"""
The text of a PDF, with its headings marked as Markdown has them; the extra `grandbo[pdf]`.

A PDF is a program of a kind: one can be made that takes all memory or never ends. So it is read in a process of its
own, within limits of time and memory, and what it does to that process stays there.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from importlib.util import find_spec

from grandbo.documents.headings import named_part
from grandbo.errors import LimitExceeded, PdfRefused

PDF_LIMIT_BYTES = 8 * 1024 * 1024
PAGE_LIMIT = 300
TEXT_LIMIT = 1024 * 1024
SECONDS = 20
_MEMORY_BYTES = 1024 * 1024 * 1024
# A line that is the name of a part and nothing more is its heading; longer than this it is a sentence.
_HEADING_LIMIT = 60
_BULLETS = ("\u2022", "\u25cf", "\u25aa", "\u2023", "\u25e6")
_REASONS = {
    "encrypted": "The PDF is encrypted; take its password off, or export its text.",
    "broken": "The PDF cannot be read; export its text as Markdown or HTML.",
    "pages": f"The PDF has more than {PAGE_LIMIT} pages; split it.",
    "length": f"The PDF holds more than {TEXT_LIMIT} characters; split it.",
    "no_text": "The PDF holds no text, only pictures of it; export its text as Markdown or HTML.",
    "limits": f"The PDF takes more than {SECONDS} seconds, or too much memory, to read; export its text.",
    "not_installed": "To read PDFs install grandbo[pdf]; or export its text as Markdown or HTML.",
}


def text_of_pdf(raw: bytes) -> str:
    """
    The text as Markdown: the first line as title, lines that name a part of a post-mortem as headings.

    Raises:
        LimitExceeded: more than 8 MiB. PdfRefused: for each of the reasons above, named in `reason`.
    """
    if len(raw) > PDF_LIMIT_BYTES:
        raise LimitExceeded(
            f"The PDF has {len(raw)} bytes, at most {PDF_LIMIT_BYTES} are read; split it.",
            limit=PDF_LIMIT_BYTES,
            length=len(raw),
        )
    if find_spec("pypdf") is None:
        raise _refused("not_installed")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", __name__], input=raw, capture_output=True, timeout=SECONDS, check=False
        )
        told = json.loads(done.stdout) if done.returncode == 0 else {"reason": "limits"}
    except (subprocess.TimeoutExpired, ValueError):
        told = {"reason": "limits"}
    if "reason" in told:
        raise _refused(told["reason"])
    return as_markdown(told["text"])


def as_markdown(text: str) -> str:
    """Plain text with its title, headings and bullets marked. Pure; no line is left out."""
    lines = []
    has_title = False
    for line in text.replace("\r", "\n").splitlines():
        plain = line.strip()
        if not has_title and plain:
            has_title = True
            lines.append(f"# {plain}")
        elif plain and len(plain) <= _HEADING_LIMIT and not plain.endswith(".") and named_part(plain.rstrip(":")):
            lines += ["", f"## {plain.rstrip(':')}", ""]
        elif plain.startswith(_BULLETS):
            lines.append(f"- {plain[1:].strip()}")
        else:
            lines.append(plain)
    return "\n".join(lines)


def _refused(reason: str) -> PdfRefused:
    return PdfRefused(_REASONS[reason], reason=reason, field="file")


def _extract(raw: bytes) -> dict[str, str]:
    """What the process of its own does."""
    import logging

    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError, PyPdfError

    logging.disable()
    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted:
            return {"reason": "encrypted"}
        if len(reader.pages) > PAGE_LIMIT:
            return {"reason": "pages"}
        pages, length = [], 0
        for page in reader.pages:
            pages.append(page.extract_text())
            length += len(pages[-1])
            if length > TEXT_LIMIT:
                return {"reason": "length"}
    except FileNotDecryptedError:
        return {"reason": "encrypted"}
    except MemoryError:
        return {"reason": "limits"}
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OSError):
        return {"reason": "broken"}
    text = "\n\n".join(pages)
    return {"text": text} if text.strip() else {"reason": "no_text"}


def _main() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    sys.stdout.write(json.dumps(_extract(sys.stdin.buffer.read())))


if __name__ == "__main__":
    _main()
