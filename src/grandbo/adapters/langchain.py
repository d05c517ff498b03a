"""A LangChain retriever over the memory: recall through the one seam, each match as a document."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from grandbo.library import TenantMemory
from grandbo.recall.block import EVIDENCE_NOT_INSTRUCTION
from grandbo.recall.budget import MAX_BUDGET


class GrandboRetriever(BaseRetriever):
    """
    Documents of what the memory has on a topic, best first.

    The content of each is its item of the context block: a header that says what it is worth, and quoted lines with
    hidden characters spelled out. An empty list is an honest one; ask `query_topic` to learn why.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: TenantMemory
    asked: dict[str, Any] = Field(default_factory=dict, description="What narrows: limit, kinds, service, context.")
    budget: int = MAX_BUDGET

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        del run_manager  # nothing runs below that it would follow
        answer = self.memory.query_topic(query, **self.asked)
        block = self.memory.context_block(answer, query, budget=self.budget)
        return [
            Document(
                page_content="\n".join([EVIDENCE_NOT_INSTRUCTION, *item.lines]),
                metadata={
                    "entry_id": str(item.match.entry_id),
                    "revision": item.match.revision,
                    "position": item.match.position,
                    "kind": item.match.kind,
                    "disputed": item.match.disputed,
                    "score": item.match.score,
                    "lexical": item.match.lexical.as_dict() if item.match.lexical else None,
                    "semantic": item.match.semantic.as_dict() if item.match.semantic else None,
                    "receipt_id": str(answer.receipt_id),
                },
            )
            for item in block.items
        ]
