"""What tells a client which issuer gives tokens for this service (RFC 9728); only where an issuer is configured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from pydantic import AnyHttpUrl, ValidationError
from starlette.routing import Route

from grandbo.errors import ConfigurationError
from grandbo.library import Grandbo
from grandbo.memory.policy import ROLES


@dataclass(frozen=True, slots=True)
class Resource:
    """The service as a protected resource: its URL, and its issuer."""

    url: AnyHttpUrl
    issuer: AnyHttpUrl

    @classmethod
    def of(cls, grandbo: Grandbo, path: str, public_url: str | None) -> Self | None:
        """None without an issuer. Raises `ConfigurationError` for a public URL that is none."""
        if grandbo.tokens is None:
            return None
        settings = grandbo.settings
        base = settings.public_url or public_url or f"http://{settings.http_host}:{settings.http_port}"
        try:
            return cls(AnyHttpUrl(base.rstrip("/") + path), AnyHttpUrl(grandbo.tokens.issuer))
        except ValidationError:
            raise ConfigurationError(
                "GRANDBO_PUBLIC_URL must be an address such as https://memory.example.com."
            ) from None

    @property
    def metadata_url(self) -> str:
        """Where it is told."""
        return str(build_resource_metadata_url(self.url))

    def routes(self) -> list[Route]:
        """The route that tells it, to whoever asks."""
        return create_protected_resource_routes(self.url, [self.issuer], scopes_supported=list(ROLES))
