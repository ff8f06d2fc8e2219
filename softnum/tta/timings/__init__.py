"""Times of iterations, read from the files of simulators, profilers and benchmarks."""

from softnum.tta.timings.iteration import KINDS, IterationTime
from softnum.tta.timings.tables import read_timings

__all__ = ["KINDS", "IterationTime", "read_timings"]
