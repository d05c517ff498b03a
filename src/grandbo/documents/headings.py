"""What a heading of a post-mortem stands for, whichever of the common templates it comes from."""

from __future__ import annotations

import re
from typing import Literal

Part = Literal["summary", "impact", "cause", "background", "resolution", "timeline", "follow_ups", "lessons", "facts"]

_SYNONYMS: dict[Part, str] = {
    "summary": (
        "summary|incident summary|executive summary|overview|tl;dr|tldr|synopsis|abstract|what happened|description|"
        "incident description|incident overview|timeline summary|at a glance|introduction|problem|the incident"
    ),
    "impact": (
        "impact|customer impact|user impact|business impact|impact assessment|impacted users|who was affected|"
        "impacts|effects|affected services|scope|severity and impact|users affected"
    ),
    "cause": (
        "root cause|root causes|cause|causes|blameless root cause|identified cause|contributing factors|"
        "contributing factor|contributing causes|contributing conditions|contributors|contributors/enablers|enablers|"
        "root cause analysis|root cause(s)|what caused it|why it happened|why did it happen|technical cause|rca|"
        "cause of the incident|cause of the problem|analysis|diagnosis"
    ),
    "background": "trigger|triggers|fault|leadup|lead-up|five whys|5 whys|the five whys|background|context",
    "resolution": (
        "resolution|recovery|mitigation|mitigators|fix|the fix|how it was fixed|how we fixed it|remediation|solution|"
        "resolution and recovery|mitigation and resolution|restoration|workaround"
    ),
    "timeline": "timeline|chronology|narrative|sequence of events|detailed timeline|incident timeline|events",
    "follow_ups": (
        "action items|actions|follow-ups|follow ups|followups|follow-up|followup|follow-up actions|corrective actions|"
        "next steps|todo|to do|todos|remediation items|preventive measures|preventative measures|improvements|"
        "action points|tasks|what we will do|future work|prevention|follow up actions|backlog|proposed improvements|"
        "proposal improvements|resulting action|resulting actions"
    ),
    "lessons": (
        "lessons|lessons learned|lessons learnt|takeaways|what went well|what went wrong|things that went well|"
        "things that went poorly|what could have gone better|where we got lucky|what went badly|retrospective|"
        "detection|response|escalation|risks|difficulties in handling|recurrence|backlog check|conclusion|conclusions"
    ),
    "facts": "date|status|severity|service|services|metadata|details|incident details|duration|key facts",
}
_EXACT: dict[str, Part] = {name: part for part, names in _SYNONYMS.items() for name in names.split("|")}
# In this order, for headings that say more than the name: `Root cause of the outage`, `Timeline of 2 May`.
_PATTERNS: tuple[tuple[str, Part], ...] = (
    (r"\broot causes?\b|\bcontributing\b", "cause"),
    (r"\btime ?line\b", "timeline"),
    (r"\baction items?\b|\bfollow[- ]?ups?\b|\bcorrective actions?\b|\bnext steps?\b", "follow_ups"),
    (r"\blessons?\b|\bwent (?:well|wrong|poorly|badly)\b|\bgo(?: so)? well\b|\bgot lucky\b", "lessons"),
    (r"\bimpact\b", "impact"),
    (r"\bresolution\b|\bmitigations?\b", "resolution"),
    (r"\bsummary\b", "summary"),
)
_WITHIN = tuple((re.compile(pattern), part) for pattern, part in _PATTERNS)
_NUMBER = re.compile(r"^\s*\d{1,3}(?:[.):]\d{1,3})*[.):]?\s+")
# Longer than any name of a part; the rest of a heading is not looked at.
_LOOKED_AT = 200
_ASIDE = re.compile(r"\([^)]*\)")
_EDGES = re.compile(r"^[^\w]+|[^\w)]+$")


def part_of(heading: str) -> Part | None:
    """The part of a post-mortem that stands below a heading; None for a heading of no template."""
    exact = named_part(heading)
    plain = _ASIDE.sub("", heading[:_LOOKED_AT].casefold())
    return exact or next((part for pattern, part in _WITHIN if pattern.search(plain)), None)


def named_part(heading: str) -> Part | None:
    """The same of a heading that is the name of a part and nothing more."""
    plain = " ".join(_NUMBER.sub("", heading[:_LOOKED_AT]).casefold().replace("\u2019", "'").split())
    names = (_EDGES.sub("", plain), _EDGES.sub("", _ASIDE.sub("", plain)).strip())
    return next((_EXACT[name] for name in names if name in _EXACT), None)
