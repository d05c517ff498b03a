"""How much a finding may hold, and the tag of what is still to be done."""

from __future__ import annotations

TITLE_LIMIT = 200
SUMMARY_LIMIT = 4_000
BODY_LIMIT_BYTES = 64 * 1024
EVIDENCE_LIMIT = 20
TAGS_LIMIT = 16
TAG_LIMIT = 64
NAME_LIMIT = 200
URI_LIMIT = 2_000

FOLLOW_UP = "follow_up"
