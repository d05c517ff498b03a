"""The verbs that take in documents: post-mortems and runbooks. `TenantMemory` is one of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from grandbo.documents.files import PDF_MAGIC, POSTMORTEM_FORMATS, format_of, text_of
from grandbo.documents.findings import POSTMORTEMS, postmortem_findings, runbook_findings
from grandbo.documents.folders import Found, Given, documents_in, named
from grandbo.documents.html import html_title, to_markdown
from grandbo.documents.pdf import text_of_pdf
from grandbo.documents.postmortem import PostMortem, read_postmortem
from grandbo.documents.runbook import read_runbooks
from grandbo.errors import EvidenceMissing, GrandboError, InvalidInput
from grandbo.finding_limits import NAME_LIMIT
from grandbo.memory.following import Follower, FollowReport
from grandbo.memory.policy import may
from grandbo.text import check_text
from grandbo.types import digest_of
from grandbo.verbs import Verbs

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class PostMortemReport(FollowReport):
    """What became of post-mortems, and how their headings were understood."""

    preview: list[dict[str, Any]] = field(default_factory=list)
    headings: list[dict[str, str | None]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """With the findings that were made of them, and the part that each heading was taken for; null for none."""
        return {**FollowReport.as_dict(self), "headings": self.headings, "preview": self.preview}


class Documenting(Verbs):
    """
    Import of documents. The same document again changes nothing; a changed one changes the entry that it made.
    """

    def import_postmortem(
        self,
        raw: bytes,
        name: str = "",
        *,
        uri: str = "",
        record: bool = False,
        visibility: str | None = None,
        dry_run: bool = False,
    ) -> PostMortemReport:
        """
        Take in a post-mortem in Markdown, HTML or PDF: as a candidate, or with `record` as a finding.

        Args:
            name: of its file: tells the format, and people what it is.
            uri: where it stands; else what its front matter says. A finding needs one.

        Raises:
            InvalidInput, LimitExceeded, PdfRefused, EvidenceMissing: it cannot be read, or has no place that could be
                cited.
        """
        report = PostMortemReport()
        documents = self._postmortem(raw, name, uri, report, needs_uri=record)
        self._take_in(documents, report, record, self._follower(visibility, dry_run, strict=True))
        return report

    def import_runbooks(
        self,
        paths: Iterable[Path],
        *,
        collection: str = "",
        base_uri: str = "",
        service: str = "",
        visibility: str | None = None,
        dry_run: bool = False,
        archive_vanished: bool = False,
        progress: Progress | None = None,
    ) -> FollowReport:
        """
        Take in runbooks: Markdown, HTML, YAML, Prometheus rules; files and whole folders.

        Args:
            collection: keeps the paths of several folders apart; the folder's own name unless given.
            base_uri: put in front of the path, it gives the address at which people read the file.
            service: of those that name none.
            archive_vanished: put away the entries of documents that are no more; they are listed in any case where
                one whole folder was given.
        """
        given = list(paths)
        if not given:
            raise InvalidInput("Name at least one file or folder.", field="path")
        report = FollowReport()
        follower = self._follower(visibility, dry_run)
        total = sum(len(documents_in(path)) for path in given)
        for path in given:
            found = documents_in(path)
            own = _collection(path, collection)
            documents, present = self._runbooks(found, own, base_uri, service, report)
            source = f"runbooks:{own}"
            follower.follow(documents, source, report, _counting(progress, total))
            if path.is_dir() and len(given) == 1:
                unread = [item["document"] for item in report.errors]
                follower.vanished(present, unread, source, report, archive=archive_vanished)
        self._changed()
        return report

    def sync(
        self,
        path: Path,
        *,
        postmortems: bool = False,
        record: bool = False,
        collection: str = "",
        base_uri: str = "",
        visibility: str | None = None,
        dry_run: bool = False,
        archive_vanished: bool = False,
        progress: Progress | None = None,
    ) -> FollowReport:
        """
        Bring the memory to what a folder holds: what is new goes in, what changed is corrected, what vanished is
        listed and, with `archive_vanished`, put away. Run it as often as you like.

        Args:
            postmortems: the folder holds post-mortems, which become candidates, or with `record` findings; else
                runbooks.
        """
        if not path.is_dir():
            raise InvalidInput("There is no such folder.", field="path")
        if not postmortems:
            return self.import_runbooks(
                [path],
                collection=collection,
                base_uri=base_uri,
                visibility=visibility,
                dry_run=dry_run,
                archive_vanished=archive_vanished,
                progress=progress,
            )
        report = PostMortemReport()
        follower = self._follower(visibility, dry_run)
        found = documents_in(path, POSTMORTEM_FORMATS)
        own = _collection(path, collection)
        present: list[str] = []
        for place, item in enumerate(found, start=1):
            try:
                uri = _joined(base_uri, item.path)
                documents = self._postmortem(
                    item.read(), item.path, uri, report, needs_uri=record, own_id=f"{own}/{item.path}"
                )
            except GrandboError as error:
                report.refuse(item.path, error)
            else:
                present += [document["external_id"] for document in documents]
                self._take_in(documents, report, record, follower)
            if progress:
                progress(place, len(found))
        gone = (present, [f"{own}/{item['document']}" for item in report.errors], POSTMORTEMS, report)
        if may(self.principal, "record"):
            follower.vanished(*gone, archive=archive_vanished, within=f"{own}/")
        follower.unsupported(*gone, within=f"{own}/")
        return report

    def import_runbook_files(
        self,
        files: Sequence[tuple[str, bytes]],
        *,
        collection: str,
        base_uri: str = "",
        service: str = "",
        visibility: str | None = None,
        dry_run: bool = False,
    ) -> FollowReport:
        """
        Take in runbooks that are no files here, each as its path and its bytes. What is not given has not vanished.

        Raises:
            InvalidInput: none, no collection, or a path that cannot be one.
        """
        if not files or not collection.strip():
            raise InvalidInput("Give at least one file, and the collection that they are of.", field="files")
        found = [Given(_path(name), raw) for name, raw in files]
        report = FollowReport()
        own = check_text(collection, "collection", limit=NAME_LIMIT // 2, single_line=True)
        documents, _ = self._runbooks(found, own, base_uri, service, report)
        self._follower(visibility, dry_run).follow(documents, f"runbooks:{own}", report)
        self._changed()
        return report

    def _postmortem(
        self, raw: bytes, name: str, uri: str, report: PostMortemReport, *, needs_uri: bool, own_id: str = ""
    ) -> list[dict[str, Any]]:
        kind = format_of(name, "markdown") if name else "markdown"
        if kind == "yaml":
            raise InvalidInput("A post-mortem is Markdown, HTML or PDF; YAML is for runbooks.", field="file")
        is_pdf = raw.startswith(PDF_MAGIC) and kind == "pdf"
        if kind == "pdf" and not is_pdf:
            raise InvalidInput("This is no PDF, whatever its name says.", field="file")
        text = text_of(text_of_pdf(raw).encode() if is_pdf else raw)
        title = html_title(text) if kind == "html" else ""
        read = read_postmortem(to_markdown(text) if kind == "html" else text, title=title or Path(name).stem)
        place = uri or read.uri
        if needs_uri and not place:
            raise EvidenceMissing(
                "A finding needs the place where the post-mortem stands: give --uri, or `url` in its front matter.",
                field="uri",
            )
        if not read.title.strip():
            raise InvalidInput("The post-mortem has no title; begin it with a heading.", field="title")
        document_id = own_id or read.own_id or place or f"title:{digest_of([read.title, _day(read)])[:32]}"
        report.headings += [{"heading": heading, "part": part} for heading, part in read.headings]
        documents = postmortem_findings(read, document_id=document_id, uri=place, name=name)
        report.preview += documents
        return documents

    def _take_in(
        self, documents: list[dict[str, Any]], report: PostMortemReport, record: bool, follower: Follower
    ) -> None:
        (follower.follow if record else follower.propose)(documents, POSTMORTEMS, report)
        self._changed()

    def _runbooks(
        self, found: Sequence[Found | Given], collection: str, base_uri: str, service: str, report: FollowReport
    ) -> tuple[list[dict[str, Any]], list[str]]:
        """The findings of all files, and their ids; a file that cannot be read is refused and the rest goes on."""
        documents: list[dict[str, Any]] = []
        for item in found:
            try:
                for runbook in read_runbooks(item.read(), item.path):
                    place = {"path": item.path, "collection": collection, "uri": _joined(base_uri, item.path)}
                    documents += runbook_findings(runbook, **place, service=service)
            except GrandboError as error:
                report.refuse(item.path, error)
        return documents, [document["external_id"] for document in documents]

    def _follower(self, visibility: str | None, dry_run: bool, *, strict: bool = False) -> Follower:
        who = (self._database, self.tenant.tenant_id, self.principal, self._policy_now())
        return Follower(*who, visibility=visibility, preview=dry_run, strict=strict, clock=self._clock())


def _collection(path: Path, given: str) -> str:
    """What keeps the documents of one folder apart from those of another."""
    own = path.resolve()
    name = given or (own.name if own.is_dir() else own.parent.name) or "documents"
    return check_text(name, "collection", limit=NAME_LIMIT // 2, single_line=True)


def _path(name: str) -> str:
    """A path as a folder would give it: it is the identity of what comes of the file."""
    parts = name.split("/")
    if not name or name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise InvalidInput("name: it must be a path such as queue/restart.md.", field="name")
    return named(check_text(name, "name", limit=NAME_LIMIT, single_line=True))


def _joined(base_uri: str, path: str) -> str:
    return f"{base_uri.rstrip('/')}/{quote(path)}" if base_uri else ""


def _day(read: PostMortem) -> str:
    return read.started.at.date().isoformat() if read.started else ""


def _counting(progress: Progress | None, total: int) -> Callable[[FollowReport], None] | None:
    # A file may hold several documents, so what is done may be more than there are files.
    return None if progress is None else lambda report: progress(report.read, max(total, report.read))
