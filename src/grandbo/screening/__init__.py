"""The screen that everything written passes: pure, deterministic, versioned. `docs/screening.md` has the rules."""

from grandbo.screening.rules import Signal
from grandbo.screening.screen import (
    NOT_REDACTABLE,
    OUTCOMES,
    SCREEN_VERSION,
    SIGNALS,
    Hit,
    Outcome,
    ScreenResult,
    readable,
    redacted,
    screen,
)
from grandbo.screening.uris import uri_problem

__all__ = [
    "NOT_REDACTABLE",
    "OUTCOMES",
    "SCREEN_VERSION",
    "SIGNALS",
    "Hit",
    "Outcome",
    "ScreenResult",
    "Signal",
    "readable",
    "redacted",
    "screen",
    "uri_problem",
]
