"""What is kept for all tenants together: the list of what was erased, and the keys of subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from grandbo.errors import ConfigurationError
from grandbo.events import notes
from grandbo.memory import key_rotation, restoring
from grandbo.storage.keyring import LocalKeyring
from grandbo.storage.kms import KmsProvider

if TYPE_CHECKING:
    from grandbo.settings import Settings
    from grandbo.storage.database import Database
    from grandbo.types import Clock

log = structlog.get_logger(__name__)


class Safekeeping:
    """After a restore, and around the keyring. `Grandbo` is one of these."""

    settings: Settings
    database: Database
    _clock: Clock

    def check_erasures(self) -> list[restoring.Checked]:
        """Each erasure of the list, and whether the database has it."""
        home = self.settings.home
        return restoring.check_restored(self.database, home, notes.known_public_key(home))

    def apply_erasures(self) -> list[restoring.Checked]:
        """Apply again what a restored database lacks; gives what that was."""
        home = self.settings.home
        return restoring.apply_erasures(self.database, home, notes.known_public_key(home), clock=self._clock)

    def describe_keys(self) -> dict[str, Any]:
        """The provider of keys and its epochs; no key."""
        provider = self.database.keys.provider
        return provider.described() if isinstance(provider, LocalKeyring | KmsProvider) else {"provider": provider.name}

    def export_keys(self) -> str:
        """The keyring, keys and all, to be kept apart from the database's backups; for `local-file` alone."""
        exported = self._keyring().exported()
        log.info("keyring_exported")
        return exported

    def import_keys(self, text: str) -> None:
        """Bring an exported keyring back to where there is none."""
        self._keyring().restore(text)
        log.info("keyring_imported")

    def rotate_keys(
        self, *, destroys_old: bool = False, progress: key_rotation.Progress | None = None
    ) -> key_rotation.Rotated:
        """
        Wrap every subject's key anew in a new epoch; no event is touched.

        Args:
            destroys_old: forget the epochs before: copies of the database from before then cannot be opened any more.
        """
        rotated = key_rotation.rotate_keys(self.database, destroys_old=destroys_old, progress=progress)
        log.info("keys_rotated", epoch=rotated.epoch, wrapped=rotated.wrapped)
        return rotated

    def _keyring(self) -> LocalKeyring:
        provider = self.database.keys.provider
        if not isinstance(provider, LocalKeyring):
            raise ConfigurationError(f"The keys are wrapped by {provider.name}: there is no keyring file.")
        return provider
