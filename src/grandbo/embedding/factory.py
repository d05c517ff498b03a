"""From settings to an embedder."""

from __future__ import annotations

from pathlib import Path

from grandbo.embedding.embedder import Embedder
from grandbo.embedding.provider import Provider
from grandbo.errors import EmbedderMisconfigured
from grandbo.settings import Settings


def build_embedder(settings: Settings) -> Embedder | None:
    """
    Give the embedder that the settings ask for, or None for `none` (words only).

    No model is loaded and nothing is sent yet. Raises `EmbedderMisconfigured` for settings that can never work.
    """
    if settings.embedder == "none":
        return None
    return Embedder(_provider(settings))


def _provider(settings: Settings) -> Provider:
    # Imported here: one process needs one provider, and each brings heavy libraries.
    if settings.embedder == "local":
        from grandbo.embedding.local import LocalProvider

        return LocalProvider(
            model=Path(settings.embedder_model) if settings.embedder_model else None,
            sha256=settings.embedder_model_sha256,
            threads=settings.embedder_threads,
            cutoff_bp=settings.embedder_cutoff_bp,
        )
    if settings.embedder == "bedrock":
        from grandbo.embedding.bedrock import BedrockProvider

        return BedrockProvider(
            model=settings.embedder_model,
            region=settings.embedder_region,
            endpoint_url=settings.embedder_url,
            timeout=settings.embedder_timeout,
            cutoff_bp=settings.embedder_cutoff_bp,
        )
    if not settings.embedder_model:
        raise EmbedderMisconfigured("GRANDBO_EMBEDDER_MODEL must name the model for `openai`.")
    from grandbo.embedding.openai_compatible import OpenAICompatibleProvider

    api_key = settings.embedder_api_key
    return OpenAICompatibleProvider(
        model=settings.embedder_model,
        url=settings.embedder_url,
        api_key=api_key.get_secret_value() if api_key else None,
        timeout=settings.embedder_timeout,
        cutoff_bp=settings.embedder_cutoff_bp,
    )
