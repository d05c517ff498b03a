"""
Keys of subjects wrapped by AWS KMS: one symmetric KMS key, an encryption context for each subject.

What KMS gives back names its own key, so a key that was wrapped under another one is still opened after
`GRANDBO_KMS_KEY_ID` has changed; `grandbo keys rotate` then wraps all of them under the new one.
"""

from __future__ import annotations

import threading
from importlib.util import find_spec
from typing import Any

from grandbo.errors import ConfigurationError
from grandbo.key_errors import KeyProviderDown, KeyWrong
from grandbo.storage.keyring import KeyContext

_REFUSED = frozenset({"InvalidCiphertextException", "IncorrectKeyException"})


class KmsProvider:
    """AWS KMS behind a boto3 client, which is made at first use; safe to share between threads."""

    name = "aws-kms"

    def __init__(
        self,
        key_id: str,
        *,
        region: str | None = None,
        endpoint_url: str | None = None,
        timeout: float = 3.0,
        client: Any = None,
    ) -> None:
        """Credentials, and the region if not given, come from where boto3 looks for them."""
        if client is None and find_spec("boto3") is None:
            raise ConfigurationError('AWS KMS needs boto3: `pip install "grandbo[bedrock]"`.')
        self._key_id = key_id
        self._region = region
        self._endpoint_url = endpoint_url
        self._timeout = timeout
        self._client = client
        self._lock = threading.Lock()

    def epoch(self, highest: int) -> int:
        """That of the tenant's other keys: KMS itself needs none."""
        return highest or 1

    def next_epoch(self, highest: int) -> int:
        """The one behind it."""
        return highest + 1

    def wrap(self, context: KeyContext, key: bytes) -> bytes:
        """KMS `Encrypt`."""
        wrapped: bytes = self._call("encrypt", KeyId=self._key_id, Plaintext=key, **_bound(context))["CiphertextBlob"]
        return wrapped

    def unwrap(self, context: KeyContext, wrapped: bytes) -> bytes:
        """KMS `Decrypt`; raises `KeyWrong`, `KeyProviderDown`."""
        key: bytes = self._call("decrypt", CiphertextBlob=wrapped, **_bound(context))["Plaintext"]
        return key

    def described(self) -> dict[str, Any]:
        """The provider and the key that new ones are wrapped under."""
        return {"provider": self.name, "key_id": self._key_id}

    def _call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer: dict[str, Any] = getattr(self._connected(), operation)(**arguments)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "unknown"))
            raise (KeyWrong if code in _REFUSED else KeyProviderDown)(reason=code) from None
        except BotoCoreError as error:
            raise KeyProviderDown(reason=type(error).__name__) from None
        return answer

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                import boto3
                from botocore.config import Config

                config = Config(
                    connect_timeout=self._timeout, read_timeout=self._timeout, retries={"total_max_attempts": 2}
                )
                self._client = boto3.client(
                    "kms", region_name=self._region, endpoint_url=self._endpoint_url, config=config
                )
            return self._client


def _bound(context: KeyContext) -> dict[str, Any]:
    """What KMS must be told again to open it: a key that was moved to another row is not opened."""
    bound = {"grandbo:tenant": str(context.tenant_id), "grandbo:subject": str(context.subject_id)}
    return {"EncryptionContext": bound}
