"""How well recall finds: a judged corpus through the real doors, measured, compared and explained."""

from grandbo.evaluation.asking import LOSS_DEPTH, Asked, ask_topics
from grandbo.evaluation.corpus import Loaded, load_corpus
from grandbo.evaluation.feedback import FromFeedback, judged_set_from_feedback
from grandbo.evaluation.inputs import JudgedSet, read_judged_set, read_topics
from grandbo.evaluation.losses import explain_losses
from grandbo.evaluation.measures import MEASURES, Interval
from grandbo.evaluation.report import Report, compare, report_of
from grandbo.recall.answer import MODES

__all__ = [
    "LOSS_DEPTH",
    "MEASURES",
    "MODES",
    "Asked",
    "FromFeedback",
    "Interval",
    "JudgedSet",
    "Loaded",
    "Report",
    "ask_topics",
    "compare",
    "explain_losses",
    "judged_set_from_feedback",
    "load_corpus",
    "read_judged_set",
    "read_topics",
    "report_of",
]
