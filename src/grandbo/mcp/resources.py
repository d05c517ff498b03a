"""Resources: an entry and its history, by address."""

from __future__ import annotations

import re
from uuid import UUID

from mcp_types import ResourceTemplate

from grandbo.errors import NotFound
from grandbo.library import TenantMemory
from grandbo.mcp.answers import entry_answer, history_text

MIME_TYPE = "text/plain"
_ADDRESS = re.compile(r"grandbo://entries/([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(/history)?")

TEMPLATES = (
    ResourceTemplate(
        name="entry",
        title="An entry of the memory",
        uri_template="grandbo://entries/{id}",
        description="One entry as it stands, with its sources and its state.",
        mime_type=MIME_TYPE,
    ),
    ResourceTemplate(
        name="entry_history",
        title="The history of an entry",
        uri_template="grandbo://entries/{id}/history",
        description="Every revision of an entry: what was done, when, by what kind of author, and why.",
        mime_type=MIME_TYPE,
    ),
)


def read_resource(memory: TenantMemory, uri: str) -> str:
    """The text at an address; raises `NotFound`."""
    found = _ADDRESS.fullmatch(uri)
    if found is None:
        raise NotFound(
            "There is no such resource; there are grandbo://entries/{id} and grandbo://entries/{id}/history."
        )
    entry_id = UUID(found.group(1))
    return history_text(memory.history(entry_id)) if found.group(2) else entry_answer(memory.show_entry(entry_id)).text
