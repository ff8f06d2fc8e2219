"""Times of iterations, read from the files of simulators, profilers and benchmarks."""

from softnum.tta.timings.formats import FORMATS, TimingFormat, gather_timings, read_timings
from softnum.tta.timings.tables import write_timings
from softnum.tta.timings.warmup import mean_interval, mser5
from softnum.tta.workloads.iteration import KINDS, IterationTime

__all__ = [
    "FORMATS",
    "KINDS",
    "IterationTime",
    "TimingFormat",
    "gather_timings",
    "mean_interval",
    "mser5",
    "read_timings",
    "write_timings",
]
