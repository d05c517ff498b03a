"""Settings: every `GRANDBO_*` variable, its type, default and purpose. `docs/settings.md` is held to this."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import structlog
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from grandbo.errors import ConfigurationError

log = structlog.get_logger(__name__)

# What is no setting any more, and what to do instead.
REMOVED = {"GRANDBO_EXACT_UP_TO": "It is each tenant's policy: `grandbo policy set exact_up_to=… --reason …`."}

KeyProviderName = Literal["local-file", "aws-kms"]
EmbedderName = Literal["local", "bedrock", "openai", "none"]


def default_home() -> Path:
    """
    Where the embedded database and keys live unless `GRANDBO_HOME` says otherwise.

    As root it is a folder under /var/lib: the server runs as an unprivileged account, which cannot reach root's home.
    """
    if os.geteuid() == 0:
        return Path("/var/lib/grandbo")
    data_home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data_home) / "grandbo"


def warn_of_removed() -> None:
    """Log which variables are set and read no more, with what to do instead: they stop no start."""
    given = {name.upper() for name, value in os.environ.items() if value}
    for variable in sorted(given & REMOVED.keys()):
        log.warning("setting_removed", variable=variable, mend=REMOVED[variable])


class Settings(BaseSettings):
    """Read from the environment; nothing here comes from a request."""

    # An empty variable is an unset one: a home of "" would be whatever folder the process happens to stand in.
    model_config = SettingsConfigDict(env_prefix="GRANDBO_", env_ignore_empty=True, extra="ignore", frozen=True)

    home: Path = Field(default_factory=default_home, description="Embedded database, keys, erasure list.")
    database_url: SecretStr | None = Field(
        default=None, description="Your own PostgreSQL 15+ with pgvector 0.8+. Unset: Grandbo starts its own server."
    )
    replica_url: SecretStr | None = Field(
        default=None, description="A read replica of the database; recall is asked there where it is far enough."
    )
    admin_database_url: SecretStr | None = Field(
        default=None,
        description="A login that may create roles and extensions; only `grandbo migrate` and `grandbo up` use it.",
    )
    key_provider: KeyProviderName = Field(
        default="local-file",
        description="What wraps the keys of subjects: `local-file` (keyring.json in `GRANDBO_HOME`) or `aws-kms`.",
    )
    kms_key_id: str | None = Field(default=None, description="Key id, ARN or alias of the KMS key, for `aws-kms`.")
    kms_region: str | None = Field(default=None, description="AWS region of the KMS key; else where boto3 looks.")
    kms_url: str | None = Field(default=None, description="Endpoint of KMS, where it is not the region's own.")
    tenant: str | None = Field(default=None, description="Tenant name or id used when `--tenant` is not given.")

    pool_size: int = Field(default=8, ge=1, le=200, description="Database connections at most, per process.")
    pool_timeout: float = Field(default=10.0, gt=0, le=300, description="Seconds to wait for a free connection.")
    lock_timeout_ms: int = Field(default=5_000, ge=10, le=60_000, description="Longest wait for a tenant's head lock.")

    embedder: EmbedderName = Field(default="local", description="`local`, `bedrock`, `openai` or `none` (words only).")
    embedder_model: str | None = Field(
        default=None, description="Model name for `bedrock` and `openai`; for `local` a folder with another model.onnx."
    )
    embedder_model_sha256: str | None = Field(
        default=None,
        description="SHA-256 that the local model file must have, when `GRANDBO_EMBEDDER_MODEL` names one.",
    )
    embedder_url: str | None = Field(default=None, description="Base URL of an OpenAI-compatible or Bedrock endpoint.")
    embedder_api_key: SecretStr | None = Field(default=None, description="Bearer token for `openai`.")
    embedder_region: str | None = Field(default=None, description="AWS region for `bedrock`.")
    embedder_cutoff_bp: int | None = Field(
        default=None, ge=1, le=20_000, description="Largest cosine distance of a match, in basis points."
    )
    embedder_timeout: float = Field(default=5.0, gt=0, le=120, description="Seconds to wait for the provider.")
    embedder_threads: int = Field(default=1, ge=1, le=16, description="Threads of the local model.")

    http_host: str = Field(default="127.0.0.1", description="Address that `grandbo up` listens on.")
    http_port: int = Field(default=8420, ge=0, le=65_535, description="Port that `grandbo up` listens on; 0 picks one.")
    http_allowed_hosts: str = Field(
        default="", description="Further host names that HTTP answers under, with commas; loopback names always are."
    )
    api_key: SecretStr | None = Field(
        default=None, description="Key that `grandbo mcp` acts with, and whose tenant it serves."
    )
    public_url: str | None = Field(
        default=None, description="The base URL that callers know the service by; stands in what tells them of OIDC."
    )
    oidc_issuer: str | None = Field(
        default=None, description="Issuer whose JWTs are taken as bearer tokens, as their `iss` has it. Unset: none."
    )
    oidc_audience: str | None = Field(default=None, description="What the `aud` of such a token must name.")
    oidc_jwks_url: str | None = Field(
        default=None, description="Where the issuer's keys are. Unset: what its openid-configuration says."
    )
    oidc_tenant_claim: str = Field(default="tenant", description="Claim with the tenant's name or id.")
    oidc_roles_claim: str = Field(
        default="roles", description="Claim with the roles; those that do not exist give nothing."
    )
    oidc_type_claim: str = Field(
        default="principal_type", description="Claim that says `human` or `agent`; `human` where it is missing."
    )
    oidc_client_id: str | None = Field(
        default=None, description="The pages' client id at the issuer: they lead to its sign-in. Unset: they do not."
    )
    oidc_client_secret: SecretStr | None = Field(
        default=None, description="The pages' secret at the issuer. Unset: a public client, by PKCE alone."
    )
    oidc_scopes: str = Field(default="openid profile", description="What the pages ask the issuer for.")
    oidc_session_minutes: int = Field(
        default=60, ge=5, le=720, description="Minutes until the pages ask the issuer anew who someone is."
    )
    rate_limit: str = Field(
        default="1200/minute", description="Requests that one principal may make, per process; `off` for no limit."
    )
    auth_failure_limit: str = Field(
        default="120/minute",
        description="Refused credentials that one client address may send, per process; `off` for no limit.",
    )
    hook_rate_limit: str = Field(
        default="1200/minute", description="Deliveries that one hook may make, per process; `off` for no limit."
    )
    inbox_days: int = Field(
        default=30, ge=1, le=3_650, description="Days for which the body of a mapped delivery is kept."
    )
    send_internal: bool = Field(
        default=False, description="Let subscriptions send to private and loopback addresses, and without TLS."
    )
    mcp_read_only: bool = Field(
        default=False, description="Offer agents no tool that writes, whatever their roles allow."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(default="INFO", description="Least level logged.")

    @classmethod
    def load(cls, **overrides: object) -> Settings:
        """
        Read the environment; what is given here goes before it.

        A wrong value, or a name that is no setting, is a `ConfigurationError` that names the variable, never its value.
        """
        given = {name: value for name, value in overrides.items() if value is not None}
        for variable in (f"GRANDBO_{name.upper()}" for name in given if name not in cls.model_fields):
            mend = REMOVED.get(variable, "See `grandbo config show` for the names.")
            raise ConfigurationError(f"{variable} is no setting. {mend}")
        try:
            return cls(**given)  # type: ignore[arg-type]  # validated right here
        except ValidationError as error:
            problems = "; ".join(
                f"GRANDBO_{'_'.join(str(part) for part in item['loc']).upper()}: {item['msg']}"
                for item in error.errors(include_input=False, include_url=False, include_context=False)
            )
            raise ConfigurationError(f"Settings are wrong: {problems}") from None
