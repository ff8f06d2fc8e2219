"""SCALE-Sim: what it is given, and what that means.

SCALE-Sim (the `scalesim` package) simulates a systolic array cycle by cycle, one GEMM after another. It counts *words*
and knows no bits, so every figure it gets is converted from the design's bytes here and nowhere else. For operands of
`bits` bits (the wider of the two operand formats):

======================  ====================================================  ==========================================
SCALE-Sim's key         what it is (source of scalesim 3.0.0)                 what it is given
======================  ====================================================  ==========================================
``...SramSzkB``         1024 words: one word is 1 byte (``word_size = 1``)    floor(bytes * 8 / bits / 1024)
``Bandwidth``           words per cycle written from the result's SRAM        floor(bandwidth / clock * 8 / bits)
``...SRAMBankBandwidth``  words per cycle read into each operand's SRAM       the same
``ArrayHeight, Width``  rows and columns of multiply-add cells                as stated
======================  ====================================================  ==========================================

Both are whole numbers in SCALE-Sim, so they are rounded down, and a design that leaves less than one is refused. In
scalesim 3.0.0 ``Bandwidth`` alone does not set the read bandwidth: that comes from the bank keys.

*Bandwidth mode.* ``InterfaceBandwidth = USER``: the bandwidth is a limit, and the array stalls on it. ``CALC`` would
ask the opposite question (which bandwidth would avoid stalls) and make every format equally fast.

*Dataflow.* Output stationary by default: a cell keeps one accumulator and adds to it for k = 0 .. K-1, which is the
order of `softnum.MadUnit`. (Weight stationary passes partial sums from row to row and splits K by the array's height,
which would be a different sum.)

*Which cycles count.* ``Total Cycles (incl. prefetch)`` of 3.0.0: from the first operand read to the last result
written. ``Total Cycles`` alone starts when both operands are in SRAM and ends before the result is written back; for
GEMMs that fit half of the SRAM (the other half is the double buffer) it is independent of the word size. Reports of 2.x
have only that, and are marked `memory_included = False`.

*Sparsity.* A right operand with a pattern N:M along K is simulated with 3.0.0's ``SparsitySupport`` ("layer-wise", the
ratio in the topology's last column). What that does, found by reading and running it: every filter keeps the first N of
every M rows, both operands are cut down to the K' = K // M * N + min(N, K % M) rows that are left, and compute and
memory cycles are those of an M x N x K' GEMM. That is right if all columns of the right operand share one mask. If each
column has its own, as with magnitudes, the cells need all of the left operand and an index for each number of the right
one, and SCALE-Sim counts neither in cycles (only in SPARSE_REPORT.csv). So they are counted here:

- the left operand's words per cycle and SRAM are N / M of what they are, because all K columns pass for K' steps;
- a word of the right operand is ceil(log2 M) bits wider.

Cells that choose one of M left operands are assumed to cost no time. Zeros of the left operand and such without a
pattern save nothing. Output and weight stationary arrays are supported; by hand a product takes, of folds of R x C
cells, less one cycle,

- ceil(M / R) ceil(N / C) (K' + R + C - 2) cycles where results stay, so that a pattern shortens every fold, and
- ceil(K' / R) ceil(N / C) (M + 2 R + C - 2) where weights do, so that there are fewer folds: none fewer once K' <= R.

Where the left operands stay (input stationary), SCALE-Sim keeps the first N of every M, and a mask for each column
would need all M in a cell: refused. The other mode of 3.0.0, ``OptimizedMapping`` ("row-wise"), takes no heed of the
stated ratio, nor do its cycles of the numbers of zeros that it draws: it halves K whatever is asked. It is not used.

*Cores.* 3.0.0 simulates one array. Of several (``cores`` of a design) the first core's share of each product is
simulated, which is the largest: ceil(M / rows of cores) x ceil(N / columns of cores) x K, with the core's share of the
bandwidth. All cores work at once, and what several need each of them fetches.

*Waiting.* Where an operand outgrows half of its SRAM, 3.0.0's cycles are an upper bound, and a loose one. The operands
of one cycle are skewed, and may lie on both sides of where the half in use ends. It then drops that half for the next,
misses it, and fetches one half after the other, to the end of the operand and from its beginning, until it is back: for
2048 x 16 x 128 eight halves and seven fetches each time. So each result says a lower bound too: the cycles without
waiting, or those of moving each operand once (`Machine.fetches`), whichever are more.

SCALE-Sim: A. Samajdar, J. M. Joseph, Y. Zhu, P. Whatmough, M. Mattina, T. Krishna, "A Systematic Methodology for
Characterizing Scalability of DNN Accelerators using SCALE-Sim", ISPASS 2020.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.workloads.hardware import Hardware, kept_steps, read_pattern

__all__ = [
    "ASSUMPTIONS",
    "CORE_ASSUMPTION",
    "DATAFLOWS",
    "NOT_SIMULATED",
    "SPARSE_ASSUMPTIONS",
    "Machine",
    "input_files",
    "machine_for",
    "write_inputs",
]

DATAFLOWS = {"os": "output stationary", "ws": "weight stationary", "is": "input stationary"}

#: What an iteration also does and SCALE-Sim does not model; listed with every result.
NOT_SIMULATED = (
    "elementwise work: biases, activation functions and their gradients, conversions between formats",
    "the loss and its gradient",
    "the parameter update (weight decay, momentum, master weights)",
    "evaluations, and fetching the training data",
)

#: What the simulated time rests on; listed with every result.
ASSUMPTIONS = (
    "GEMMs run one after another; each reads its operands from memory and writes its result back (no reuse between)",
    "the stated bandwidth is available to each of the three SRAMs at once (SCALE-Sim has one interface for each)",
    "one word size for a GEMM: the wider operand format; results are counted in words of that size too",
    "the same clock and the same cells for every format; the accumulator's width costs nothing",
)

#: What the time of sparse products rests on; listed where there are any.
SPARSE_ASSUMPTIONS = (
    "zeros save time only where the right operand has a pattern N:M along K: then N / M of the steps; its indices are "
    "fetched with it, and the whole left operand passes",
    "cells that choose which left operand to multiply are as fast as others, and take no more area",
)

#: What the time on several cores rests on; listed where a design has them.
CORE_ASSUMPTION = (
    "cores: rows and columns of each result are split evenly, sums are not; the time is that of the largest part, with "
    "an equal share of the bandwidth; each core fetches all that it needs, and none waits for another"
)


@dataclass(frozen=True)
class Machine:
    """The array as SCALE-Sim sees it: in words.

    Parameters
    ----------
    array : (int, int)
        Rows and columns.
    sram_kwords : (int, int, int)
        SRAM of left operand, right operand and result, in units of 1024 words.
    words_per_cycle : int
        Words that each SRAM exchanges with memory per cycle.
    dataflow : str
        "os", "ws" or "is".
    pattern : str, optional
        Of the right operand: "2:4".
    operand_words : (int, int), optional
        Words per cycle of left and right operand, where there is a pattern. Default: `words_per_cycle`.

    Examples
    --------
    >>> Machine((32, 32), (64, 64, 64), words_per_cycle=16).slug
    'os-32x32-sram64k-bw16'
    >>> Machine((32, 32), (32, 51, 64), 16, pattern="2:4", operand_words=(8, 12)).slug
    'os-32x32-sram32.51.64k-bw8.12.16-2of4'
    """

    array: tuple[int, int]
    sram_kwords: tuple[int, int, int]
    words_per_cycle: int
    dataflow: str = "os"
    pattern: str | None = None
    operand_words: tuple[int, int] | None = None

    @property
    def bandwidths(self) -> tuple[int, int, int]:
        """Words per cycle of left operand, right operand and result."""
        return (*(self.operand_words or (self.words_per_cycle,) * 2), self.words_per_cycle)

    @property
    def slug(self) -> str:
        """A file name that tells the machine: "os-32x32-sram64k-bw16"."""
        sizes, words = (
            str(three[0]) if len(set(three)) == 1 else ".".join(map(str, three))
            for three in (self.sram_kwords, self.bandwidths)
        )
        name = f"{self.dataflow}-{self.array[0]}x{self.array[1]}-sram{sizes}k-bw{words}"
        return f"{name}-{self.pattern.replace(':', 'of')}" if self.pattern else name

    def to_table(self) -> dict[str, Any]:
        """The machine as plain data; what belongs to a pattern only where there is one."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def macs(self, shape: tuple[int, int, int]) -> int:
        """Multiply-adds of an (M, N, K) product on it: with a pattern, of the rows that are left of K.

        >>> Machine((4, 4), (1, 1, 1), 2, pattern="2:4").macs((1, 1, 7))
        4
        """
        m, n, k = shape
        return m * n * (k if self.pattern is None else kept_steps(k, self.pattern))

    def fetches(self, shape: tuple[int, int, int]) -> int:
        """Cycles that moving each operand of an (M, N, K) product, and its result, once takes the slowest of the links.

        >>> Machine((4, 4), (1, 1, 1), 2, pattern="2:4", operand_words=(1, 2)).fetches((10, 3, 8))
        40
        """
        (m, n, k), (left, right, results) = shape, self.bandwidths
        k = k if self.pattern is None else kept_steps(k, self.pattern)
        return max(-(-m * k // left), -(-k * n // right), -(-m * n // results))

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Machine:
        """The machine of such a table.

        >>> Machine.from_table(Machine((4, 4), (1, 1, 1), 2).to_table()).array
        (4, 4)
        """
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})


def machine_for(hardware: Hardware, bits: int | float, *, dataflow: str = "os", pattern: str | None = None) -> Machine:
    """Convert a design's bytes to SCALE-Sim's words.

    Parameters
    ----------
    hardware : Hardware
        Array, SRAM in bytes, bandwidth in bytes per second, clock.
    bits : int or float
        Bits of one word; not whole where the words of a block share a scale.
    dataflow : str
        "os" (default), "ws" or "is".
    pattern : str, optional
        Of the right operand along K, like "2:4".

    Returns
    -------
    Machine

    Raises
    ------
    ValueError
        If less than 1024 words of SRAM or less than one word per cycle would be left, the dataflow is unknown, or there
        is a pattern and the dataflow is "is".

    Examples
    --------
    >>> from softnum.tta import Hardware
    >>> table = {"array": [32, 32], "sram_bytes": {"ifmap": 65536, "filter": 65536, "ofmap": 65536},
    ...          "bandwidth": "16 GB/s", "clock": "1 GHz"}
    >>> machine = machine_for(Hardware.from_table(table), bits=16)
    >>> machine.sram_kwords, machine.words_per_cycle, machine.dataflow
    ((32, 32, 32), 8, 'os')
    >>> machine_for(Hardware.from_table(table), bits=8, pattern="2:4").bandwidths
    (8, 12, 16)
    """
    if dataflow not in DATAFLOWS:
        raise ValueError(f"unknown dataflow {dataflow!r}; SCALE-Sim knows {', '.join(DATAFLOWS)}")
    exact = Fraction(bits)
    sram = tuple(size * 8 // exact // 1024 for size in hardware.sram_bytes)
    if min(sram) < 1:
        raise ValueError(
            f"sram_bytes {min(hardware.sram_bytes)} hold less than 1024 words of {bits} bits, the least SCALE-Sim can "
            f"be given; state at least {math.ceil(128 * exact)} bytes"
        )
    words = math.floor(hardware.bytes_per_step * 8 / exact)
    if words < 1:
        raise ValueError(
            f"the bandwidth of {float(hardware.bytes_per_step):g} bytes per cycle{_each(hardware)} is less than one "
            f"word of {bits} bits, the least SCALE-Sim can be given; state a higher bandwidth or a lower clock"
        )
    machine = Machine(hardware.array, sram, words, dataflow)
    return machine if pattern is None else _sparse(machine, hardware, bits, pattern)


def _each(hardware: Hardware) -> str:
    count = math.prod(hardware.cores)
    return f" of each of {count} cores" if count > 1 else ""


def _sparse(machine: Machine, hardware: Hardware, bits: int | float, pattern: str) -> Machine:
    """The machine as a right operand with a pattern meets it: all of the left one passes, and indices are fetched."""
    if machine.dataflow == "is":
        raise ValueError(
            f"a pattern ({pattern}) cannot be simulated with the dataflow is: cells that keep left operands would need "
            "all of a group, and SCALE-Sim gives them those of one mask; use os or ws"
        )
    kept, group = read_pattern(pattern)
    wide = Fraction(bits) + (group - 1).bit_length()
    left, right, results = machine.sram_kwords
    right = hardware.sram_bytes[1] * 8 // wide // 1024
    left = left * kept // group
    words = machine.words_per_cycle * kept // group, math.floor(hardware.bytes_per_step * 8 / wide)
    if min(left, right, *words) < 1:
        raise ValueError(
            f"the pattern {pattern} leaves {left} times 1024 words and {words[0]} words per cycle for left operands, "
            f"{right} and {words[1]} for right ones of {float(wide):g} bits; SCALE-Sim needs one of each: state more "
            "sram_bytes, or a higher bandwidth"
        )
    return replace(machine, sram_kwords=(left, right, results), pattern=pattern, operand_words=words)


def input_files(machine: Machine, shapes: Sequence[tuple[int, int, int]]) -> dict[str, str]:
    """SCALE-Sim's three input files: names and texts of ``run.cfg``, ``topology.csv`` and ``layout.csv``.

    The layout is unused (both custom-layout switches are off), but 3.0.0 insists on the file. Every row ends in a
    comma, because SCALE-Sim drops the last cell of each.

    >>> print(input_files(Machine((32, 32), (64, 64, 64), 16), [(32, 128, 64)])["topology.csv"], end="")
    Layer, M, N, K,
    gemm0, 32, 128, 64,
    """
    bank = "".join(
        f"{name}CustomLayout = False\n{name}SRAMBankBandwidth = {words}\n"
        f"{name}SRAMBankNum = 1\n{name}SRAMBankPort = 1\n"
        for name, words in zip(("Ifmap", "Filter"), machine.bandwidths[:2], strict=True)
    )
    sizes = "".join(
        f"{name}SramSzkB = {size}\n"
        for name, size in zip(("Ifmap", "Filter", "Ofmap"), machine.sram_kwords, strict=True)
    )
    # the offsets only have to keep the three address ranges apart
    largest = max(max(m * k, k * n, m * n) for m, n, k in shapes)
    config = (
        "[general]\nrun_name = run\n\n"
        "[architecture_presets]\n"
        f"ArrayHeight = {machine.array[0]}\nArrayWidth = {machine.array[1]}\n{sizes}"
        f"IfmapOffset = 0\nFilterOffset = {largest}\nOfmapOffset = {2 * largest}\n"
        f"Dataflow = {machine.dataflow}\nBandwidth = {machine.words_per_cycle}\n"
        "ReadRequestBuffer = 64\nWriteRequestBuffer = 64\n\n"
        f"[layout]\n{bank}\n"
        f"[sparsity]\n{_SPARSITY if machine.pattern else _DENSE}\n"
        "[run_presets]\nInterfaceBandwidth = USER\nUseRamulatorTrace = False\n"
    )
    ratio = f" {machine.pattern}," if machine.pattern else ""
    rows = [f"gemm{i}, {m}, {n}, {k},{ratio}\n" for i, (m, n, k) in enumerate(shapes)]
    layout = [f"gemm{i}, {'1, ' * 20}\n" for i in range(len(shapes))]
    header = f"Layer, M, N, K,{' Sparsity,' if ratio else ''}\n"
    return {
        "run.cfg": config,
        "topology.csv": "".join([header, *rows]),
        "layout.csv": "".join(["Layer, " + "factor, " * 20 + "\n", *layout]),
    }


def write_inputs(folder: str | os.PathLike[str], machine: Machine, shapes: Sequence[tuple[int, int, int]]) -> None:
    """Write SCALE-Sim's three input files: ``run.cfg``, ``topology.csv`` and ``layout.csv``.

    Parameters
    ----------
    folder : path-like
        Where to write.
    machine : Machine
        The array, in words.
    shapes : sequence of (int, int, int)
        (M, N, K) of each GEMM.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_inputs(folder, Machine((32, 32), (64, 64, 64), 16), [(32, 128, 64)])
    ...     print(pathlib.Path(folder, "topology.csv").read_text(), end="")
    Layer, M, N, K,
    gemm0, 32, 128, 64,
    """
    for name, text in input_files(machine, shapes).items():
        write_atomic(Path(folder, name), text)


_DENSE = "SparsitySupport = false\n"
# the seed is of the other mapping, and 3.0.0 insists on it
_SPARSITY = (
    "SparsitySupport = true\nSparseRep = ellpack_block\nOptimizedMapping = false\nRandomNumberGeneratorSeed = 0\n"
)
