"""How well recall finds: a judged corpus through the real doors, measured, compared and explained."""

from grandbo.evaluation.asking import LOSS_DEPTH, Asked, ask_topics
from grandbo.evaluation.corpus import Loaded, load_corpus
from grandbo.evaluation.inputs import JudgedSet, read_judged_set
from grandbo.evaluation.losses import explain_losses
from grandbo.evaluation.measures import MEASURES, Interval
from grandbo.evaluation.report import Report, compare, report_of
from grandbo.recall.answer import MODES

__all__ = [
    "LOSS_DEPTH",
    "MEASURES",
    "MODES",
    "Asked",
    "Interval",
    "JudgedSet",
    "Loaded",
    "Report",
    "ask_topics",
    "compare",
    "explain_losses",
    "load_corpus",
    "read_judged_set",
    "report_of",
]
