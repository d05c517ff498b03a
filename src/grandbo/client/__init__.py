"""A thin client of the HTTP API, with the library's own verbs: `from grandbo.client import Client`."""

from __future__ import annotations

from grandbo.client.client import Client
from grandbo.client.hook_sender import HookSender
from grandbo.client.transport import ApiError

__all__ = ["ApiError", "Client", "HookSender"]
