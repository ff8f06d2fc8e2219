"""Learning curves: the records of softnum.train, and those of other frameworks."""

from softnum.tta.accuracy.records import Evaluation, Record, RecordSet, design_points, read_record, read_records

__all__ = ["Evaluation", "Record", "RecordSet", "design_points", "read_record", "read_records"]
