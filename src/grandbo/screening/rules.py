"""
The patterns of the screen, as data: secrets by format and by context, and words that address whoever reads them.

In the syntax of RE2, which takes time linear in the text whatever the text is. The first group that matched is the
hit, or else the whole match. Whoever changes a rule raises `SCREEN_VERSION`, and adds to the tests a text that must be
found, a neighbour that must not be, and for a new kind its row in `docs/screening.md`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Signal = Literal[
    "secrets", "instructions", "smuggled", "hidden", "entropy", "personal", "hosts", "mixed_script", "size"
]


class Rule(NamedTuple):
    """
    A pattern, the kind of what it finds, and the signal that the kind belongs to.

    `words`: lower-case text, some of which is in everything that the pattern matches; none: look at every text.
    """

    signal: Signal
    kind: str
    pattern: str
    words: tuple[str, ...] = ()


_Rows = tuple[tuple[str, str] | tuple[str, str, tuple[str, ...]], ...]

# Found by what stands before it.
_BY_CONTEXT: _Rows = (
    (
        "url-credentials",
        r"""(?i)\b[a-z][a-z0-9+.-]{1,30}://[^\s:/@"'<>]{0,80}:([^\s@/"'<>]{3,200})@[^\s"'<>]+""",
        ("://",),
    ),
    (
        "aws-secret",
        r"""(?i)(?:secret|aws)[a-z _-]{0,30}(?:key)?["' :=]{1,6}(?:is +|= *)?([a-z0-9/+]{40})(?:[^a-z0-9/+=]|$)""",
        ("secret", "aws"),
    ),
    (
        "keyed-hex",
        r"""(?i)(?:api|app|access|secret|auth|token)[ _-]?(?:key|token|id)?["' :=]{1,5}(?:is +)?"""
        r"""([0-9a-f]{32,64})(?:[^0-9a-f]|$)""",
        ("api", "app", "access", "secret", "auth", "token"),
    ),
    (
        "keyed-opaque",
        r"""(?i)(?:api[ _-]?key|secret(?:[ _-]?key)?|access[ _-]?key|auth[ _-]?token|session[ _-]?token|"""
        r"""client[ _-]?secret|token)["' :=]{1,5}(?:is +)?["']?([a-z0-9_/+.=~-]{20,})""",
        ("key", "secret", "token"),
    ),
    (
        "password-kv",
        r"""(?i)(?:password|passwd|pwd|passphrase)["']?\s{0,3}[:=]\s{0,3}["']?([^\s"',;]{6,})""",
        ("passw", "pwd", "passphrase"),
    ),
    (
        "password-prose",
        r"""(?i)\b(?:password|passphrase|passwd)\b(?: for \S+)? (?:is|was|to|=|:) +["']?([^\s"']{6,})""",
        ("passw", "passphrase"),
    ),
    (
        "http-authorization",
        r"""(?i)\b(?:authorization["']?\s*[:=]\s*["']?)?(?:bearer|basic)\s+([a-z0-9._~+/=-]{16,})""",
        ("bearer", "basic"),
    ),
    ("telegram", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}\b", (":aa",)),
    ("otpauth", r"(?i)otpauth://[a-z]+/\S*secret=([A-Z2-7]{16,})", ("otpauth",)),
    ("azure-account-key", r"(?i)AccountKey=([A-Za-z0-9+/]{60,}={0,2})", ("accountkey",)),
    ("aws-session", r"\b(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)[A-Za-z0-9+/]{60,}={0,2}", ("iqojb3jpz2lu", "fwogzxivyxdz")),
    ("pem", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", ("private key",)),
)
# Found by its own form.
_BY_FORMAT: _Rows = (
    ("aws-access-key-id", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b", ("akia", "asia", "abia", "acca")),
    (
        "github",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    (
        "gitlab",
        r"\bgl(?:pat|ptt|dt|rt|cbt|soat|ft)-[A-Za-z0-9_-]{20,}",
        ("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glsoat-", "glft-"),
    ),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}", ("eyj",)),
    (
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Z0-9]{6,}/[A-Z0-9]{6,}/[A-Za-z0-9]{16,}",
        ("hooks.slack.com",),
    ),
    ("slack-token", r"\bxox[abeoprs]-(?:[0-9A-Za-z]+-){1,4}[0-9A-Za-z]{16,}", ("xox",)),
    ("stripe", r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}", ("sk_", "rk_")),
    ("google-api-key", r"\bAIza[A-Za-z0-9_-]{35}", ("aiza",)),
    ("sendgrid", r"\bSG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}", ("sg.",)),
    ("twilio", r"\b(?:SK|AC)[0-9a-f]{32}\b", ("sk", "ac")),
    ("npm", r"\bnpm_[A-Za-z0-9]{36}\b", ("npm_",)),
    ("pypi", r"\bpypi-AgE[A-Za-z0-9_-]{50,}", ("pypi-age",)),
    ("openai", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}T3BlbkFJ[A-Za-z0-9_-]{20,}", ("t3blbkfj",)),
    ("anthropic", r"\bsk-ant-(?:api|admin)[0-9]{2}-[A-Za-z0-9_-]{80,}", ("sk-ant-",)),
    ("huggingface", r"\bhf_[A-Za-z]{34}\b", ("hf_",)),
    ("vault", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}", ("hvs.", "hvb.", "hvr.")),
    ("age-key", r"\bAGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}\b", ("age-secret-key",)),
    ("grandbo", r"\bgbk_[A-Za-z0-9]+_[A-Za-z0-9_-]{20,}", ("gbk_",)),
)
_FILLER = r"(?:(?:all|any|the|your|my|our|these|those|every|of)\s+){0,4}"
_INSTRUCTIONS: _Rows = (
    (
        "override",
        rf"(?i)\b(?:ignore|disregard|forget|override|bypass)\s+{_FILLER}"
        r"(?:previous|prior|above|preceding|earlier|foregoing|existing|system|safety)\s+(?:\w+\s+){0,2}"
        r"(?:instructions?|prompts?|rules?|directives?|guidelines?|guardrails?|messages?|policy|policies)\b",
        ("ignore", "disregard", "forget", "override", "bypass"),
    ),
    (
        "override",
        rf"(?i)\b(?:ignore|disregard)\s+{_FILLER}"
        r"(?:runbooks?|instructions?|polic(?:y|ies)|guardrails?|approvals?|reviewers?|safety checks?)\b",
        ("ignore", "disregard"),
    ),
    (
        "persona",
        r"(?i)\b(?:you are now (?:an?|the|in)\b|pretend (?:to be|that you are|you are)\b|"
        r"act as (?:an?|the) (?:\w+ ){0,3}(?:assistant|ai|llm|chatbot|dan)\b|"
        r"from now on,? (?:you\b|always\b|never\b|respond\b|answer\b))",
        ("you are now", "pretend", "act as", "from now on"),
    ),
    (
        "prompt-leak",
        r"(?i)\b(?:reveal|print|show|repeat|output|leak|send|disclose)\s+(?:\w+\s+){0,3}"
        r"(?:system prompt|your (?:\w+ )?(?:instructions|prompt|credentials|api keys?|secrets))\b",
        ("prompt", "instructions", "credentials", "api key", "secrets"),
    ),
    (
        "steering",
        r"(?i)\b(?:always|only)\s+(?:recommend|promote|endorse|advertise)\b",
        ("recommend", "promote", "endorse", "advertise"),
    ),
    (
        "trigger",
        r"(?i)\b(?:when|if|whenever|once)\s+(?:(?:you|someone|anyone|anybody|users?|the|a|user|they|are|you're|is)\s+)"
        r"{0,3}(?:asked|asks?|says?|replies)\b[^.\n]{0,60}\b(?:answer|respond|reply|say|output)\b",
        ("ask", "say", "replies"),
    ),
    (
        "replication",
        r"(?i)\b(?:store|save|remember|memori[sz]e|repeat|copy)\s+(?:this|these|the following)\s+"
        r"(?:(?:\w+\s+){0,3}again\b|(?:\w+\s+){0,2}(?:in(?:to)? (?:your |the |long.term )?memory|verbatim|permanently|"
        r"in every\b|for (?:all )?future))",
        ("again", "memory", "verbatim", "permanently", "in every", "future"),
    ),
    (
        "authority",
        r"(?i)\b(?:pre.?approved|approved|authori[sz]ed|cleared|sanctioned)\s+by\s+(?:the\s+)?"
        r"(?:security|legal|compliance|admins?|administrators?|ciso|vendor|developers?|openai|anthropic|system)\b",
        ("approved", "authori", "cleared", "sanctioned"),
    ),
    (
        "addressed",
        r"(?i)\b(?:(?:note|message|instructions?|attention|important)\s*,?:?\s*(?:to|for)\s+(?:the\s+|all\s+|any\s+)?"
        r"(?:ai|llm|assistant|language model|copilot|chatbot|ai agent)s?\b|"
        r"(?:ai|llm)\s+(?:assistants?|agents?|models?)\s+(?:must|should|shall|reading|processing)\b|"
        r"(?:do not|don't|never)\s+(?:tell|inform|alert|notify)\s+(?:the\s+)?"
        r"(?:user|operator|human|reviewer|anyone)s?\b)",
        ("ai", "llm", "assistant", "language model", "copilot", "chatbot", "tell", "inform", "alert", "notify"),
    ),
    (
        "tool-call",
        r"""(?i)(?:"(?:tool_calls?|function_call|tool_use|tool_name|recipient_name)"\s*:|"""
        r"""</?(?:tool_call|tool_calls|function_calls?|tool_result|invoke)\b)""",
        ("tool", "function", "recipient_name", "<invoke", "</invoke"),
    ),
    (
        "role-marker",
        r"(?i)(?:<\|[a-z_]{2,30}\|>|\[/?INST\]|<</?SYS>>|"
        r"</?(?:system|assistant|developer|instructions?)\s*>|</(?:memory|human|prompt)\s*>|"
        r"<</?(?:END|GRANDBO-DATA)\b)",
        ("<|", "inst]", "<<", "</", "<system", "<assistant", "<developer", "<instruction"),
    ),
    (
        "role-marker",
        r"(?im)(?:^\s{0,8}(?:#{2,4}\s*instructions?\s*:|(?:assistant|developer)\s*:\s|system\s*:\s+you\b))",
        ("instruction", "assistant", "developer", "system"),
    ),
)
# Only candidates: what they find is looked at again in code.
_PERSONAL: _Rows = (
    ("email", r"(?i)[a-z0-9._%+-]{1,64}@(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}\b", ("@",)),
    (
        "phone",
        r"(?:\+[1-9][0-9]{0,2}[ .()/-]{0,2}(?:[0-9]{1,5}[ .()/-]{1,2}){1,5}[0-9]{2,8}\b|\+[1-9][0-9]{8,14}\b|"
        r"\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[ .-][0-9]{4}\b)",
    ),
    ("card", r"\b[3-6](?:[ -]?[0-9]){12,18}\b"),
    ("iban", r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"),
    ("us-ssn", r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b"),
    (
        "birth-date",
        r"(?i)\b(?:dob|born(?: on)?|date of birth)\s{0,3}[:=]?\s{0,3}"
        r"([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}[./-][0-9]{1,2}[./-](?:19|20)[0-9]{2})\b",
        ("dob", "born", "date of birth"),
    ),
    # What somebody is like, in the present tense: what somebody did once is part of what happened.
    (
        "trait",
        r"(?i)\b(?:(?:this|that|our|the|one|every)\s+(?:[\w-]+\s+){0,2}(?:engineer|developer|programmer|colleague|"
        r"co-?worker|teammate|employee|contractor|intern|manager)|he|she)\s+(?:tends\s+to\b|"
        r"is\s+known\s+(?:to|for)\b|has\s+a\s+habit\s+of\b|(?:always|never|usually|often|rarely|seldom|constantly|"
        r"routinely|habitually|sometimes)\s+[a-z]+(?:[^s\W]s|sses|shes|ches|xes)\b)",
        (
            "tends",
            "known",
            "habit",
            "always",
            "never",
            "usually",
            "often",
            "rarely",
            "seldom",
            "constantly",
            "routinely",
            "sometimes",
        ),
    ),
)
_HOSTS: _Rows = (
    ("ip-address", r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b"),
    (
        "internal-host",
        r"(?i)\b(?:[a-z0-9-]{1,63}\.){1,6}(?:internal|corp|intranet|lan|home\.arpa)\b",
        (".internal", ".corp", ".intranet", ".lan", ".home"),
    ),
)
RULES: tuple[Rule, ...] = (
    *(Rule("secrets", *rule) for rule in (*_BY_FORMAT, *_BY_CONTEXT)),
    *(Rule("instructions", *rule) for rule in _INSTRUCTIONS),
    *(Rule("personal", *rule) for rule in _PERSONAL),
    *(Rule("hosts", *rule) for rule in _HOSTS),
)
CONTEXT_KINDS = frozenset(rule[0] for rule in _BY_CONTEXT) - {"pem", "telegram", "aws-session"}
# A value that says it is none.
PLACEHOLDER = (
    r"(?i)^(?:[<\[{(]|```|\$|%|\*+$|x{4,}|your|example|changeme|redacted|placeholder|none$|null$|true$|false$|required|"
    r"rotation|rotated|policy|expired|reset|wrong|correct|incorrect|changed|stored|invalid|missing)"
)
