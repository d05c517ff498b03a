"""What keeps a subject's data from being read or written: its key cannot be had. Everything else goes on."""

from __future__ import annotations

from grandbo.errors import GrandboError


class KeyUnavailable(GrandboError):
    """The key of this subject's data cannot be had; everything that is not about a subject goes on."""

    code = "key_unavailable"
    http_status = 503


class KeyLost(KeyUnavailable):
    """The keyring is not in GRANDBO_HOME; bring back what `grandbo keys export` wrote: `grandbo keys import FILE`."""

    code = "key_lost"


class KeyWrong(KeyUnavailable):
    """The keyring, or the KMS key, is not the one that wrapped this key; bring the right one back."""

    code = "key_wrong"


class KeyEpochGone(KeyUnavailable):
    """The epoch that this key was wrapped in was destroyed by a rotation; only an export of before can open it."""

    code = "key_epoch_gone"


class KeyProviderDown(KeyUnavailable):
    """AWS KMS does not answer, or refuses; the details say what it said. Try again, or look at its permissions."""

    code = "key_provider_down"
