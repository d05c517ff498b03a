"""The verbs of an investigation: its working notes, and recall in layers that are kept apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack
from uuid import UUID

from grandbo.memory import notes
from grandbo.recall.layers import LAYER_KINDS, NOTES, Layered, check_budgets, check_layers
from grandbo.recall.window import ContextWindow, render_window
from grandbo.remembering import Asked
from grandbo.verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Callable

    from grandbo.events.models import Policy
    from grandbo.memory.notes import Note
    from grandbo.recall.answer import Answer
    from grandbo.recall.block import ContextBlock
    from grandbo.storage.database import Database
    from grandbo.types import Principal


class Investigating(Verbs):
    """Note, read back, recall by layer, close. `TenantMemory` is one of these."""

    query_topic: Callable[..., Answer]
    context_block: Callable[..., ContextBlock]

    def note(self, investigation_id: str, text: str, *, role: str | None = None) -> Note:
        """
        Note something down in an investigation; the first note begins it.

        A note is no part of the memory: nobody recalls it outside its investigation, and it goes with it.

        Args:
            role: `note` unless given; `user`, `assistant` or `tool` for the turns of a conversation.
        """
        return notes.add_note(*self._noting(), investigation_id, text, role=role, clock=self._clock())

    def notes(self, investigation_id: str) -> list[Note]:
        """The notes of an investigation, oldest first."""
        return notes.newest_notes(*self._noting(), investigation_id, clock=self._clock())

    def context_window(self, investigation_id: str, *, budget: int | None = None) -> ContextWindow:
        """The last notes of an investigation within a budget of tokens; the oldest are dropped first."""
        budgets = check_budgets(budget, (NOTES,))
        return render_window(self.notes(investigation_id), budget=budgets[NOTES])

    def close_investigation(self, investigation_id: str) -> int:
        """Forget an investigation's notes; gives how many there were."""
        return notes.close_investigation(self._database, self.tenant.tenant_id, self.principal, investigation_id)

    def recall_layers(
        self,
        topic: str,
        *,
        layers: list[str] | None = None,
        budget: int | dict[str, int] | None = None,
        investigation_id: str | None = None,
        **asked: Unpack[Asked],
    ) -> Layered:
        """
        Recall by the standing of what is given, each layer under its own heading and within its own budget.

        Args:
            layers: some of `findings`, `guidance`, `reference`, `ruled_out`, `personal`, `notes`; the first two and
                `ruled_out` unless given.
            budget: tokens for all together, 2,000 unless given, or for each layer by name.
            investigation_id: whose notes the layer `notes` gives.
        """
        chosen = check_layers(layers)
        budgets = check_budgets(budget, chosen)
        if NOTES in chosen or investigation_id is not None:
            notes.check_investigation(investigation_id)
        answers = {
            name: self.query_topic(topic, **{**asked, "kinds": list(LAYER_KINDS[name])})
            for name in chosen
            if name != NOTES
        }
        blocks: dict[str, ContextBlock | ContextWindow] = {}
        for name in chosen:
            if name == NOTES:
                blocks[name] = self.context_window(str(investigation_id), budget=budgets[name])
            else:
                blocks[name] = self.context_block(answers[name], topic, budget=budgets[name])
        return Layered(answers, blocks)

    def _noting(self) -> tuple[Database, UUID, Principal, Policy]:
        return self._database, self.tenant.tenant_id, self.principal, self._policy_now()
