"""Documents read into parts: the common templates, front matter, HTML, YAML, rules; and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grandbo.documents.cutting import parts
from grandbo.documents.files import DOCUMENT_LIMIT_BYTES, text_of
from grandbo.documents.findings import postmortem_findings, runbook_findings
from grandbo.documents.html import to_markdown
from grandbo.documents.markdown import sections
from grandbo.documents.postmortem import PostMortem, read_postmortem
from grandbo.documents.runbook import Runbook, read_runbooks
from grandbo.documents.yaml import load_all
from grandbo.errors import GrandboError, InvalidInput, LimitExceeded
from grandbo.finding_limits import BODY_LIMIT_BYTES
from grandbo.memory.finding import parse_finding

SRE = """# Shakespeare Sonnet++ Postmortem (incident #465)

**Date:** 2015-10-21

**Authors:** someone

**Status:** Complete

## Summary

Search was down for 66 minutes.

## Impact

An estimated 1.21B queries were lost.

## Root Causes

Cascading failure due to high load.

## Trigger

A latent bug triggered by a surge.

## Resolution

Traffic went to a sacrificial cluster.

## Detection

Borgmon paged.

## Action Items

| Action Item | Type | Owner | Bug |
|---|---|---|---|
| Update the playbook | mitigate | someone | n/a |
| Flux capacitor | prevent | someone | 5554823 |

## Lessons Learned

### What went well

Monitoring alerted quickly.

## Timeline

14:51 News of a new sonnet

## Supporting information

Dashboard: https://monitor.example.com/shakespeare?end=1
"""

ATLASSIAN = """# Logins failed

## Incident summary

Nobody could log in.

## Leadup

A deploy at noon.

## Fault

The session store was full.

## Blameless root cause

Nothing limited the size of a session.

## Recovery

The store was emptied.

## Corrective actions

- [ ] Limit the size, https://tickets.example.com/SEC-1
- [x] Empty the store
"""

INCIDENT_IO = """# Search returns nothing

## Summary

An empty replica was promoted.

## Timeline

### 2026-04-01 (UTC)

* [08:52] **Impact began**

## Follow-ups

* Refuse to promote an empty replica
"""

HOWIE = """# The long Tuesday

## Summary

Deploys stood still.

## Narrative

It began with a lock.

## Contributors/enablers

- The lock had no owner
- Nobody watched it

## Mitigators

A quiet day.

## Takeaways

Locks need owners.
"""

FRONT_MATTER = """---
uuid: 1f0e
url: https://example.com/vasa
title: The Vasa sank
company: Swedish navy
product: Vasa
categories: [hardware]
keywords: [ship, stability]
summary: She heeled over and sank.
start_time: 1628-08-10T15:00:00Z
end_time: 1628-08-10
---
The ship had too little ballast for its guns.
"""

LINES = """# Registry was full

**Severity:** SEV-2
**Service:** registry
**Date:** 2 March 2024
**Duration:** 3 h

The registry refused pushes.

## Conditions nobody expected

A weekend.
"""


def _made(text: str) -> PostMortem:
    return read_postmortem(text)


class TestTemplates:
    def test_google_sre(self) -> None:
        """Its sections are the parts; rows of a table are what is still to be done."""
        read = _made(SRE)

        assert "Shakespeare Sonnet++ Postmortem (incident #465)" == read.title
        assert "Search was down for 66 minutes." == read.summary
        assert "Cascading failure due to high load." == read.cause
        assert "An estimated 1.21B queries were lost." == read.impact
        assert ("Update the playbook · mitigate · someone · n/a", "Flux capacitor · prevent · someone · 5554823") == (
            read.open_items
        )
        assert "Borgmon paged.\n\nMonitoring alerted quickly." == read.lessons
        assert read.started is not None
        assert ("2015-10-21", "day") == (read.started.at.date().isoformat(), read.started.precision)
        assert ("https://monitor.example.com/shakespeare?end=1",) == read.links

    def test_atlassian(self) -> None:
        """The blameless root cause is the cause; an action that is ticked is done."""
        read = _made(ATLASSIAN)

        assert "Nothing limited the size of a session." == read.cause
        assert ("Limit the size, https://tickets.example.com/SEC-1",) == read.open_items

    def test_incident_io(self) -> None:
        """A timeline by days, and follow-ups."""
        read = _made(INCIDENT_IO)

        assert "An empty replica was promoted." == read.summary
        assert "### 2026-04-01 (UTC)" in read.timeline
        assert ("Refuse to promote an empty replica",) == read.open_items

    def test_howie_has_several_causes(self) -> None:
        """Contributors are the cause, all of them."""
        read = _made(HOWIE)

        assert "- The lock had no owner\n- Nobody watched it" == read.cause

    def test_front_matter(self) -> None:
        """Its fields are taken; a year in which nobody wrote YAML is a year like any other."""
        read = _made(FRONT_MATTER)

        assert ("The Vasa sank", "She heeled over and sank.", "Vasa") == (read.title, read.summary, read.service)
        assert ("ship", "stability", "hardware") == read.tags
        assert ("1f0e", "https://example.com/vasa") == (read.own_id, read.uri)
        assert read.started is not None
        assert 1628 == read.started.at.year
        assert "The ship had too little ballast for its guns." == read.body

    def test_bold_lines(self) -> None:
        """Facts in bold in front are no summary; the first paragraph is."""
        read = _made(LINES)

        assert ("registry", "SEV-2", "The registry refused pushes.") == (read.service, read.severity, read.summary)
        assert (("Conditions nobody expected", None),) == read.headings

    @pytest.mark.parametrize("text", [SRE, ATLASSIAN, INCIDENT_IO, HOWIE, LINES])
    def test_nothing_is_dropped(self, text: str) -> None:
        """Every line but the title stands in the body, under whatever heading it was."""
        body = _made(text).body

        assert [] == [line for line in text.splitlines()[1:] if line not in body]

    def test_a_hint_of_the_template_is_no_summary(self) -> None:
        """What stands in a comment was written by nobody."""
        assert "" == _made("# T\n\n## Root cause\n\n<!-- say why -->\n").cause

    def test_a_heading_within_code_is_none(self) -> None:
        """Comments of a shell script are not sections."""
        assert ["", "A"] == [section.heading for section in sections("# A\n\n```sh\n# not a heading\n```\n")]


class TestFindings:
    def test_a_finding_has_cause_sources_and_what_is_open(self) -> None:
        """Its own place comes first, then what is still to be done, then links."""
        (made,) = postmortem_findings(_made(ATLASSIAN), document_id="x", uri="https://pm.example.com/1", name="a.md")
        finding = parse_finding(made)

        assert "Nobody could log in.\n\nCause: Nothing limited the size of a session." == finding.summary
        assert [
            ("postmortem", "https://pm.example.com/1"),
            ("follow_up", "https://pm.example.com/1#follow-up-1"),
            ("link", "https://tickets.example.com/SEC-1"),
        ] == [(item.type, item.uri) for item in finding.evidence]

    def test_what_is_longer_than_an_entry_becomes_parts(self) -> None:
        """At headings, each with its place in the title and an id of its own; together they are the whole."""
        text = "# Long\n\n" + "".join(f"## Part {n}\n\n{'word ' * 6_000}\n\n" for n in range(6))
        made = postmortem_findings(_made(text), document_id="x", uri="https://pm.example.com/1", name="a.md")
        findings = [parse_finding(document) for document in made]

        assert 3 == len(findings)
        assert ["x", "x#part-2", "x#part-3"] == [finding.external_id for finding in findings]
        assert "Long (part 2 of 3)" == findings[1].title
        assert text.split() == ["#", "Long", *" ".join(finding.body for finding in findings).split()]

    def test_a_title_and_a_summary_that_are_too_long_stand_whole_in_the_body(self) -> None:
        """Shortened where there is a limit, and kept where there is room."""
        title, summary = "t" * 300, "word " * 1_500
        (made,) = postmortem_findings(
            _made(f"# {title}\n\n## Summary\n\n{summary}"), document_id="x", uri="https://a.example/1", name=""
        )

        assert parse_finding(made).title.endswith("…")
        assert title in made["body"]
        assert summary.strip() in made["body"]

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(
        st.lists(
            st.sampled_from(
                ["# a", "## Root cause", "- [ ] x", "```", "> q", "| a | b |", "|---|---|", "**Date:** 2020"]
            )
            | st.text(max_size=30),
            max_size=30,
        )
    )
    def test_any_markdown_is_read_and_keeps_its_words(self, lines: list[str]) -> None:
        """No text of whatever shape fails, and every section's source is in the document."""
        text = "\n".join(lines)

        told = "\n".join(section.source for section in sections(text)).removeprefix("\n")
        assert text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n") == told
        try:
            read = read_postmortem(text, title="t")
        except InvalidInput:
            assert text.startswith("---")
        else:
            assert postmortem_findings(read, document_id="x", uri="https://a.example/1", name="n")


class TestCutting:
    @settings(max_examples=80, deadline=None, derandomize=True)
    @given(st.text(max_size=2_000), st.integers(16, 300))
    def test_the_parts_fit_and_are_the_text(self, text: str, limit: int) -> None:
        """Nothing is lost and nothing is too long, wherever the cuts fall."""
        cut = parts(text, limit)

        assert all(len(part.encode()) <= limit for part in cut)
        assert "".join(text.split("\n")) == "".join("".join(cut).split("\n"))


class TestRunbooks:
    def test_markdown(self) -> None:
        """The first heading is the title, `Meaning` the summary; alerts are tags, versions are applicability."""
        fields = b"---\napplies_to: [QueueStalled, 'worker >=4,<7']\nservice: billing\n---\n"
        raw = fields + b"# Queue stalled\n\n## Meaning\n\nIt waits.\n"
        (made,) = runbook_findings(
            read_runbooks(raw, "a/queue.md")[0], path="a/queue.md", collection="ops", uri="", service=""
        )
        finding = parse_finding(made)

        assert ("Queue stalled", "It waits.", "billing") == (finding.title, finding.summary, finding.service)
        assert (("QueueStalled",), ["worker <7,>=4"]) == (finding.tags, [str(item) for item in finding.applicability])
        assert ("runbooks:ops", "a/queue.md") == (made["incident"]["source"], made["external_id"])
        assert "urn:grandbo:document:ops:a/queue.md" == finding.evidence[0].uri

    def test_html_is_sanitised(self) -> None:
        """Scripts and styles are gone, what people read is there."""
        head = b"<html><head><title>Restart</title></head><body><script>alert(1)</script><h2>Steps</h2>"
        raw = head + b"<p onclick='x()'>Do <b>it</b>: <a href='javascript:x()'>here</a></p></body></html>"
        (made,) = read_runbooks(raw, "restart.html")

        assert ("Restart", "## Steps\n\nDo **it**: here") == (made.title, made.body)

    def test_prometheus_rules(self) -> None:
        """Each alert is a runbook of its own; the same alert twice has two ids; recording rules say nothing."""
        raw = b"""
groups:
- name: queue
  rules:
  - record: a:b
    expr: sum(x)
  - alert: QueueStalled
    expr: rate(x[5m]) == 0
    for: 10m
    labels: {severity: critical, service: billing}
    annotations: {summary: It stalls, description: Nothing is consumed, runbook_url: 'https://runbooks.example.com/q'}
  - alert: QueueStalled
    expr: rate(x[1h]) == 0
"""
        made = read_runbooks(raw, "rules/queue.rules")

        assert ["QueueStalled", "QueueStalled-2"] == [runbook.part for runbook in made]
        assert ("It stalls", "billing", "https://runbooks.example.com/q") == (
            made[0].summary,
            made[0].service,
            made[0].uri,
        )
        assert "```promql\nrate(x[5m]) == 0\n```" in made[0].body

    def test_the_rules_of_an_operator(self) -> None:
        """A `PrometheusRule` holds the same groups."""
        raw = b"kind: PrometheusRule\nspec:\n  groups:\n  - name: g\n    rules:\n    - {alert: A, expr: '1'}\n"

        assert ["A"] == [runbook.title for runbook in read_runbooks(raw, "rule.yaml")]

    def test_yaml(self) -> None:
        """A title and steps are a runbook; a field of no known name is kept under its name."""
        raw = b"title: Restart it\nsummary: When it hangs\nsteps:\n- stop\n- start: [a, b]\nrollback: none\n"
        (made,) = read_runbooks(raw, "r.yml")

        assert ("Restart it", "When it hangs") == (made.title, made.summary)
        assert "## Steps\n\n- stop\n- start:" in made.body.replace("- \n  - start:", "- start:")
        assert "## Rollback\n\nnone" in made.body

    def test_an_index_page_is_called_like_its_folder(self) -> None:
        """`README.md` says nothing of what it is about."""
        assert "disk full" == read_runbooks(b"Some text.", "ops/disk-full/README.md")[0].title


class TestRefused:
    @pytest.mark.parametrize(
        ("raw", "error"),
        [
            (b"%PDF-1.7 ...", InvalidInput),
            (b"\x89PNG\r\n", InvalidInput),
            (b"PK\x03\x04", InvalidInput),
            (b"a\x00b", InvalidInput),
            (b"\xff\xfe", InvalidInput),
            (b"  \n", InvalidInput),
            (b"x" * (DOCUMENT_LIMIT_BYTES + 1), LimitExceeded),
        ],
    )
    def test_what_is_no_text_or_too_much(self, raw: bytes, error: type[GrandboError]) -> None:
        """Told by its bytes, whatever its name says."""
        with pytest.raises(error):
            text_of(raw)

    @pytest.mark.parametrize(
        "text",
        [
            "a: !!python/object/apply:os.system ['true']",
            "a: &a [x]\nb: [*a, *a]",
            "[" * 5_000,
            "a: [",
            "a: 1__0:99:99:99e999x\nb: !!int x",
            "? [a]\n: b",
        ],
    )
    def test_yaml_runs_and_expands_nothing(self, text: str) -> None:
        """Tags of a language, aliases, depth and nonsense are refused, with where, and what is taken instead."""
        with pytest.raises(InvalidInput, match=r"plain values, without tags and aliases\.$|nested too deeply"):
            load_all(text)

    @pytest.mark.parametrize(
        ("raw", "name"),
        [
            (b"# Only a title\n", "a.md"),
            (b"a: 1\n", "a.yaml"),
            (b"- 1\n", "a.yml"),
            (b"text", "a.exe"),
            (b"%PDF-1.7", "a.pdf"),
            (b"- a\n" * 20_001, "a.md"),
            (b"---\n- a\n---\ntext\n", "a.md"),
            (b"<p>" + b"<div>" * 2_000 + b"x", "a.html"),
            (b"<div>" * 20_001, "a.html"),
        ],
    )
    def test_what_holds_no_runbook(self, raw: bytes, name: str) -> None:
        """It is refused with the reason, never with a crash."""
        with pytest.raises(GrandboError):
            read_runbooks(raw, name)

    def test_placeholders_and_empty_headings_of_a_template_are_left_out(self) -> None:
        """Nobody filled them in, so nobody said anything."""
        html = "<h1>T</h1><h2>Empty</h2><h2>Said</h2><p>{{ incident.title }} words {% if a %}</p><h3>Also empty</h3>"

        assert ["# T", "## Said", "words"] == [line.strip() for line in to_markdown(html).split("\n") if line]

    def test_a_body_always_fits_an_entry(self) -> None:
        """One line of a megabyte is cut into parts too."""
        runbook = Runbook("T", "", "é" * 400_000)
        made = runbook_findings(runbook, path="p.md", collection="c", uri="", service="")

        assert all(len(document["body"].encode()) <= BODY_LIMIT_BYTES for document in made)
        assert 400_000 == sum(document["body"].count("é") for document in made)
