"""Counters of hardware: utilisation and stalls of kernels and layers, and what ``perf stat`` counted."""

from softnum.tta.counters.kernels import KernelCounters, kernel_counters, read_ncu_counters
from softnum.tta.counters.layers import MeasuredLayers, MeasuredPart, measured_layers, read_kernel_layers
from softnum.tta.counters.perf import PerfEvent, PerfStat, read_perf_stat

__all__ = [
    "KernelCounters",
    "MeasuredLayers",
    "MeasuredPart",
    "PerfEvent",
    "PerfStat",
    "kernel_counters",
    "measured_layers",
    "read_kernel_layers",
    "read_ncu_counters",
    "read_perf_stat",
]
