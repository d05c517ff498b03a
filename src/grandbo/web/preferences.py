"""How someone wants the pages: light or dark, keys on or off. In cookies, so that it works without JavaScript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from grandbo.web.call import Values

THEMES = ("auto", "light", "dark")
KEYS = ("on", "off")
_THEME, _KEYS = "grandbo_theme", "grandbo_keys"


@dataclass(frozen=True, slots=True)
class Preferences:
    """The theme, and whether single keys do something."""

    theme: str = "auto"
    keys: str = "on"

    @classmethod
    def of(cls, cookies: Mapping[str, str]) -> Self:
        """What the cookies say; a default for what is none of ours."""
        theme, keys = cookies.get(_THEME, ""), cookies.get(_KEYS, "")
        return cls(theme if theme in THEMES else "auto", keys if keys in KEYS else "on")

    @staticmethod
    def chosen(form: Values) -> dict[str, str]:
        """The cookies to set for what was chosen."""
        theme, keys = form.get("theme", ""), form.get("keys", "")
        return ({_THEME: theme} if theme in THEMES else {}) | ({_KEYS: keys} if keys in KEYS else {})
