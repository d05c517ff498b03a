"""Prometheus rule files: each alert is guidance of its own, with the runbook that it names as its source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grandbo.documents.frontmatter import field_text


def is_rule_file(document: Any) -> bool:
    """Whether a YAML document is a rule file, plain or as the `PrometheusRule` of an operator."""
    return bool(_groups(document))


def alerts(document: Any) -> Iterator[dict[str, Any]]:
    """
    The alerting rules as `{name, labels, annotations, text}`; recording rules say nothing to people.

    `text` is Markdown: what the annotations say, then the expression.
    """
    for group in _groups(document):
        rules = group.get("rules")
        for rule in rules if isinstance(rules, list) else ():
            if isinstance(rule, dict) and isinstance(rule.get("alert"), str) and rule["alert"].strip():
                yield _alert(rule, field_text(group, "name"))


def _groups(document: Any) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        return []
    spec = document.get("spec") if document.get("kind") == "PrometheusRule" else document
    groups = spec.get("groups") if isinstance(spec, dict) else None
    return [group for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []


def _alert(rule: dict[str, Any], group: str) -> dict[str, Any]:
    labels, annotations = (_texts(rule.get(name)) for name in ("labels", "annotations"))
    expression = field_text(rule, "expr")
    told = [f"{name}: {said}" for name, said in annotations.items() if name not in ("summary", "runbook_url")]
    facts = [f"- group: {group}"] if group else []
    facts += [f"- for: {said}"] if (said := field_text(rule, "for")) else []
    facts += [f"- {name}: {said}" for name, said in labels.items()]
    blocks = [*told, "\n".join(facts), f"```promql\n{str(rule.get('expr', '')).strip()}\n```" if expression else ""]
    return {
        "name": " ".join(rule["alert"].split()),
        "labels": labels,
        "annotations": annotations,
        "text": "\n\n".join(filter(None, blocks)),
    }


def _texts(value: Any) -> dict[str, str]:
    """The members that are texts or numbers."""
    if not isinstance(value, dict):
        return {}
    named = {str(name): str(said).strip() for name, said in value.items() if isinstance(said, str | int | float)}
    return {name: said for name, said in named.items() if said}
