"""PDFs made by hand: pages of lines, in a font that every reader has."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence

from pypdf import PdfReader, PdfWriter


def make_pdf(*pages: Sequence[str]) -> bytes:
    """A PDF with these lines on these pages."""
    objects: list[bytes] = [b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"]
    kids = []
    for lines in pages:
        shown = "".join(f"({line}) Tj 0 -16 Td " for line in lines)
        stream = f"BT /F1 12 Tf 60 760 Td {shown}ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        kids.append(len(objects) + 1)
        objects.append(
            b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 1 0 R >> >> >>" % (len(pages) * 2 + 2, len(objects))
        )
    named = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects.append(b"<< /Type /Pages /Kids [%s] /Count %d >>" % (named, len(kids)))
    objects.append(b"<< /Type /Catalog /Pages %d 0 R >>" % len(objects))
    return _written(objects)


def encrypted(raw: bytes) -> bytes:
    """The same under a password."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(raw)))
    writer.encrypt("a word that nobody knows", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def bomb(megabytes: int) -> bytes:
    """One page whose content is nothing but blanks, so many of them, packed small."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b" " * 1_000_000) for _ in range(megabytes)) + packer.flush()
    return _written(
        [
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
            b"<< /Type /Page /Parent 3 0 R /MediaBox [0 0 612 792] /Contents 1 0 R >>",
            b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>",
            b"<< /Type /Catalog /Pages 3 0 R >>",
        ]
    )


def _written(objects: Sequence[bytes]) -> bytes:
    """The last of the objects is the catalogue."""
    out = b"%PDF-1.7\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    tail = b"trailer << /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(objects), len(out))
    return out + head + tail
