"""From settings to the provider of keys, and the keyring's making at the first start."""

from __future__ import annotations

import structlog

from grandbo.errors import ConfigurationError
from grandbo.settings import Settings
from grandbo.storage.database import Database
from grandbo.storage.keyring import KeyProvider, LocalKeyring, OpenedKeys
from grandbo.storage.kms import KmsProvider
from grandbo.storage.subject_keys import has_keys
from grandbo.storage.tenancy import all_tenants

log = structlog.get_logger(__name__)


def build_key_provider(settings: Settings) -> KeyProvider:
    """The provider that the settings name. Raises `ConfigurationError`."""
    if settings.key_provider == "local-file":
        return LocalKeyring(settings.home)
    if settings.kms_key_id is None:
        raise ConfigurationError("GRANDBO_KEY_PROVIDER is `aws-kms`: set GRANDBO_KMS_KEY_ID.")
    return KmsProvider(settings.kms_key_id, region=settings.kms_region, endpoint_url=settings.kms_url)


def give_keys(database: Database, provider: KeyProvider) -> None:
    """
    Let the database open keys of subjects.

    A keyring that is missing is made, unless there are keys that only the missing one opens: then nothing is made up,
    and what needs a key says that it is lost.
    """
    database.keys = OpenedKeys(provider)
    if not isinstance(provider, LocalKeyring) or provider.exists:
        return
    if has_keys(database, all_tenants(database)):
        log.error("keyring_missing", hint="bring it back with `grandbo keys import`")
        return
    try:
        provider.create()
    except OSError as error:
        # Without a subject nobody needs it; who registers one is told that it is missing.
        log.warning("keyring_not_made", reason=error.strerror)
