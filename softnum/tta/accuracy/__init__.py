"""Learning curves: the records of softnum.train, and those of other frameworks."""

from softnum.tta.accuracy.records import Evaluation, Record, RecordSet, design_points, read_record, read_records
from softnum.tta.accuracy.reached import ReachedRule, direction_of

__all__ = [
    "Evaluation",
    "ReachedRule",
    "Record",
    "RecordSet",
    "design_points",
    "direction_of",
    "read_record",
    "read_records",
]
