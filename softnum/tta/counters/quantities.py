"""The counters of Nsight Compute that softnum reads: their names on both pages, and their units.

Names of metrics, sections and stall reasons: "Metrics Guide", "Statistical Sampler: Warp Scheduler States" and
"Sections and Rules" in docs.nvidia.com/nsight-compute/ProfilingGuide; titles of the details page are those of the
section files that come with Nsight Compute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

__all__ = [
    "CYCLES",
    "DRAM_BYTES",
    "DRAM_RATE",
    "FREQUENCY",
    "LATENCY",
    "REGISTERS",
    "SHARES",
    "STALLS",
    "Quantity",
    "unit_of",
]


def _pipe(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple(("", f"sm__{name}.avg.pct_of_peak_sustained_{over}") for over in ("elapsed", "active")
                 for name in names)  # fmt: skip


@dataclass(frozen=True)
class Quantity:
    """A counter by the name that softnum gives it.

    Parameters
    ----------
    key, title : str
    metrics : tuple of (str, str)
        (start of the section's title, metric), the first that is there counts; a section of "" is any.
    """

    key: str
    title: str
    metrics: tuple[tuple[str, str], ...]


_LIGHT, _OCCUPANCY = "GPU Speed Of Light", "Occupancy"

#: percentages of what the device can sustain, of a launch
SHARES = (
    Quantity("sm", "SM", (
        ("", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        (_LIGHT, "Compute (SM) Throughput"), (_LIGHT, "SM [%]"),
    )),
    Quantity("tensor", "Tensor", _pipe("pipe_tensor_cycles_active", "inst_executed_pipe_tensor")),
    # a part of it: products of floats by HMMA instructions, without those by warp groups, of integers and of binary64
    Quantity("hmma", "Tensor HMMA", _pipe("pipe_tensor_op_hmma_cycles_active", "inst_executed_pipe_tensor_op_hmma")),
    Quantity("fma", "FMA", _pipe("pipe_fma_cycles_active", "inst_executed_pipe_fma")),
    Quantity("fp64", "FP64", _pipe("pipe_fp64_cycles_active", "inst_executed_pipe_fp64")),
    Quantity("dram", "DRAM", (
        ("", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
        ("", "dram__throughput.avg.pct_of_peak_sustained_elapsed"),
        (_LIGHT, "DRAM Throughput"),
    )),
    Quantity("l2", "L2", (
        ("", "lts__throughput.avg.pct_of_peak_sustained_elapsed"), (_LIGHT, "L2 Cache Throughput"),
    )),
    Quantity("occupancy", "Occupancy", (
        ("", "sm__warps_active.avg.pct_of_peak_sustained_active"), (_OCCUPANCY, "Achieved Occupancy"),
    )),
    Quantity("theoretical", "Theoretical occupancy", (
        ("", "sm__maximum_warps_per_active_cycle_pct"), (_OCCUPANCY, "Theoretical Occupancy"),
    )),
)  # fmt: skip

REGISTERS = Quantity(
    "registers", "Registers", (("", "launch__registers_per_thread"), ("Launch Statistics", "Registers Per Thread"))
)
CYCLES = Quantity("cycles", "Cycles", (("", "gpc__cycles_elapsed.max"), (_LIGHT, "Elapsed Cycles")))
FREQUENCY = Quantity("frequency", "Clock", (("", "gpc__cycles_elapsed.avg.per_second"), (_LIGHT, "SM Frequency")))
DRAM_BYTES = Quantity("dram_bytes", "DRAM bytes", (("", "dram__bytes.sum"),))
DRAM_RATE = Quantity("dram_rate", "DRAM bytes a second", (("", "dram__bytes.sum.per_second"),))
LATENCY = Quantity("latency", "Warp cycles per instruction", (
    ("", "smsp__average_warp_latency_per_inst_issued.ratio"),
    ("Warp State Statistics", "Warp Cycles Per Issued Instruction"),
))  # fmt: skip

#: Families of stall reasons, of which the first that a launch has counts: the pattern of their names and their unit.
#: Each family's parts are of one whole, the cycles of all warps: per instruction that was issued, in percent of the
#: cycles in which a warp is active, or in samples.
STALLS = (
    (re.compile(r"smsp__average_warps_issue_stalled_(?!.*_not_issued)(\w+)_per_issue_active\.ratio"), "cycles"),
    (re.compile(r"smsp__average_warp_latency_issue_stalled_(\w+)\.ratio"), "cycles"),
    (re.compile(r"smsp__warp_issue_stalled_(\w+)_per_warp_active\.pct"), "percent"),
    (re.compile(r"smsp__pcsamp_warps_issue_stalled_(?!.*_not_issued)(\w+)"), "samples"),
)

_UNIT = re.compile(r"([KMGT]?)(byte|cycle|[hH]z)(?:/([num]?)s(?:econd)?)?")
_PREFIXES = {"": 0, "K": 3, "M": 6, "G": 9, "T": 12, "m": -3, "u": -6, "n": -9}


def unit_of(text: str) -> tuple[str, Fraction] | None:
    """Return (unit without prefixes, its scale) of bytes, cycles and their rates; None of others.

    >>> unit_of("Kbyte"), unit_of("cycle/nsecond"), unit_of("Gbyte/s"), unit_of("%")
    (('byte', Fraction(1000, 1)), ('hz', Fraction(1000000000, 1)), ('byte/second', Fraction(1000000000, 1)), None)
    """
    found = _UNIT.fullmatch(text)
    if found is None:
        return None
    prefix, name, per = found.groups()
    name = "hz" if name in ("hz", "Hz") or (name, per is not None) == ("cycle", True) else name
    power = _PREFIXES[prefix] - _PREFIXES[per or ""]
    return f"{name}/second" if name == "byte" and per is not None else name, Fraction(10) ** power
