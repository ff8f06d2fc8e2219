"""What runs learn, and how well: a task gives a run its iterations, their losses and the measure of held-out data."""

from softnum.train.tasks.adversarial import Adversarial
from softnum.train.tasks.classification import Classification
from softnum.train.tasks.control import Control
from softnum.train.tasks.detection import Detection
from softnum.train.tasks.language import LanguageModelling
from softnum.train.tasks.recommendation import Recommendation
from softnum.train.tasks.task import Task, Update
from softnum.train.tasks.translation import Translation

__all__ = [
    "Adversarial", "Classification", "Control", "Detection", "LanguageModelling", "Recommendation", "Task",
    "Translation", "Update",
]  # fmt: skip
