"""Learning curves: the records of softnum.train, and those of other frameworks."""

from softnum.tta.accuracy.reached import DIRECTIONS, ReachedRule, direction_of
from softnum.tta.accuracy.reading import ACCURACY_FORMATS, AccuracyFormat, read_accuracy
from softnum.tta.accuracy.records import Evaluation, Record, RecordSet, design_points, read_record, read_records

__all__ = [
    "ACCURACY_FORMATS",
    "AccuracyFormat",
    "DIRECTIONS",
    "Evaluation",
    "ReachedRule",
    "Record",
    "RecordSet",
    "design_points",
    "direction_of",
    "read_accuracy",
    "read_record",
    "read_records",
]
