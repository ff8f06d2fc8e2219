"""SCALE-Sim: what it is given, and what its report means.

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
pattern save nothing. The other mode of 3.0.0, ``OptimizedMapping`` ("row-wise"), draws N at random for each filter, and
so is no use for a pattern that is given; and only output stationary is supported here, because only for that were the
cycles checked by hand.

SCALE-Sim: A. Samajdar, J. M. Joseph, Y. Zhu, P. Whatmough, M. Mattina, T. Krishna, "A Systematic Methodology for
Characterizing Scalability of DNN Accelerators using SCALE-Sim", ISPASS 2020.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path

from softnum.tta.hardware import Hardware, read_pattern
from softnum.tta.quantities import frequency, write_atomic
from softnum.tta.timings import IterationTime

__all__ = [
    "ASSUMPTIONS",
    "DATAFLOWS",
    "NOT_SIMULATED",
    "SPARSE_ASSUMPTIONS",
    "GemmCycles",
    "Machine",
    "machine_for",
    "read_compute_report",
    "read_scalesim",
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

_TOTAL, _COMPUTE, _STALL, _UTIL = "Total Cycles (incl. prefetch)", "Total Cycles", "Stall Cycles", "Overall Util %"
_TAIL = ["Stall Cycles", "Overall Util %", "Mapping Efficiency %", "Compute Util %"]
_HEADERS = {
    "3.0": ["LayerID", _TOTAL, _COMPUTE, *_TAIL],
    "2.x": ["LayerID", _COMPUTE, *_TAIL],
}


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

    def to_table(self) -> dict:
        """The machine as plain data; what belongs to a pattern only where there is one."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_table(cls, table: Mapping) -> Machine:
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
        is a pattern and the dataflow is not "os".

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
    words = math.floor(hardware.bytes_per_cycle * 8 / exact)
    if words < 1:
        raise ValueError(
            f"the bandwidth of {float(hardware.bytes_per_cycle):g} bytes per cycle is less than one word of {bits} "
            "bits, the least SCALE-Sim can be given; state a higher bandwidth or a lower clock"
        )
    machine = Machine(hardware.array, sram, words, dataflow)
    return machine if pattern is None else _sparse(machine, hardware, bits, pattern)


def _sparse(machine: Machine, hardware: Hardware, bits: int | float, pattern: str) -> Machine:
    """The machine as a right operand with a pattern meets it: all of the left one passes, and indices are fetched."""
    if machine.dataflow != "os":
        raise ValueError(f"a pattern ({pattern}) can be simulated with the dataflow os only, got {machine.dataflow!r}")
    kept, group = read_pattern(pattern)
    wide = Fraction(bits) + (group - 1).bit_length()
    left, right, results = machine.sram_kwords
    right = hardware.sram_bytes[1] * 8 // wide // 1024
    left = left * kept // group
    words = machine.words_per_cycle * kept // group, math.floor(hardware.bytes_per_cycle * 8 / wide)
    if min(left, right, *words) < 1:
        raise ValueError(
            f"the pattern {pattern} leaves {left} times 1024 words and {words[0]} words per cycle for left operands, "
            f"{right} and {words[1]} for right ones of {float(wide):g} bits; SCALE-Sim needs one of each: state more "
            "sram_bytes, or a higher bandwidth"
        )
    return replace(machine, sram_kwords=(left, right, results), pattern=pattern, operand_words=words)


def write_inputs(folder: str | os.PathLike, machine: Machine, shapes: Sequence[tuple[int, int, int]]) -> None:
    """Write SCALE-Sim's three input files: ``run.cfg``, ``topology.csv`` and ``layout.csv``.

    The layout is unused (both custom-layout switches are off), but 3.0.0 insists on the file. Every row ends in a
    comma, because SCALE-Sim drops the last cell of each.

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
    folder = Path(folder)
    write_atomic(folder / "run.cfg", config)
    header = f"Layer, M, N, K,{' Sparsity,' if ratio else ''}\n"
    write_atomic(folder / "topology.csv", "".join([header, *rows]))
    write_atomic(folder / "layout.csv", "".join(["Layer, " + "factor, " * 20 + "\n", *layout]))


_DENSE = "SparsitySupport = false\n"
# the seed is of the other mapping, and 3.0.0 insists on it
_SPARSITY = (
    "SparsitySupport = true\nSparseRep = ellpack_block\nOptimizedMapping = false\nRandomNumberGeneratorSeed = 0\n"
)


@dataclass(frozen=True)
class GemmCycles:
    """One row of a COMPUTE_REPORT.csv.

    Parameters
    ----------
    cycles : int
        Cycles of the GEMM: with operand reads and result writes where `memory_included`, else of the array alone.
    stalls : int
        Cycles the array waited for memory.
    memory_included : bool
        Whether `cycles` covers the first reads and the last writes (3.0) or not (2.x).

    Examples
    --------
    >>> GemmCycles(cycles=1201, stalls=0, memory_included=True).cycles
    1201
    """

    cycles: int
    stalls: int
    memory_included: bool


def read_compute_report(
    path: str | os.PathLike,
    *,
    shapes: Sequence[tuple[int, int, int]] | None = None,
    array: tuple[int, int] | None = None,
    text: str | None = None,
) -> list[GemmCycles]:
    """Read SCALE-Sim's COMPUTE_REPORT.csv, of 2.x or 3.0.

    Parameters
    ----------
    path : path-like
        The report.
    shapes : sequence of (int, int, int), optional
        (M, N, K) of the GEMMs that were simulated. If given, there must be one row each.
    array : (int, int), optional
        Rows and columns. If given with `shapes`, each row's utilisation is checked against its cycles, so that a report
        of another network or another array is found out.
    text : str, optional
        The report's contents, if they are already in memory; `path` is then only its name in messages.

    Returns
    -------
    list of GemmCycles
        One for each GEMM, in order.

    Raises
    ------
    FileNotFoundError
        If there is no report: SCALE-Sim writes it at the end of a run.
    ValueError
        If it is truncated, malformed or of other GEMMs; the message names file, line and the way out.

    Examples
    --------
    >>> header = "LayerID, Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, Compute Util %,\\n"
    >>> read_compute_report("mine.csv", text=header + "0, 1000, 0, 50.0, 100.0, 50.0,\\n")
    [GemmCycles(cycles=1000, stalls=0, memory_included=False)]
    """
    again = "run the simulation again"
    if text is None:
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(
                f"no SCALE-Sim report {str(path)!r}; SCALE-Sim writes COMPUTE_REPORT.csv at the end of a run: "
                f"the run did not finish, or the path is not <top path>/<run_name>/COMPUTE_REPORT.csv; {again}"
            )
        text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    header = [cell.strip() for cell in next(csv.reader(lines[:1]), [])]
    version = next((name for name, columns in _HEADERS.items() if header == [*columns, ""]), None)
    if version is None:
        raise ValueError(
            f"{path}, line 1: not the header of a SCALE-Sim compute report: {lines[0] if lines else ''!r}; expected "
            f"{', '.join(_HEADERS['3.0'])}, (3.0) or the same without {_TOTAL!r} (2.x)"
        )
    if not text.endswith("\n"):
        raise ValueError(f"{path}, line {len(lines)}: the last line is cut off: {lines[-1]!r}; {again}")
    columns = _HEADERS[version]
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        where = f"{path}, line {number}"
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(columns) + 1 or cells[-1]:
            raise ValueError(f"{where}: expected {len(columns)} values and a final comma, got {line!r}; {again}")
        row = dict(zip(columns, cells, strict=False))
        if row["LayerID"] != str(number - 2):
            raise ValueError(
                f"{where}: expected LayerID {number - 2}, got {row['LayerID']!r}; rows are missing; {again}"
            )
        rows.append(_gemm_cycles(where, row, again))
    if not rows:
        raise ValueError(f"{path}, line 1: no rows follow the header; the run did not finish; {again}")
    if shapes is not None:
        _check_shapes(path, rows, shapes, array, again)
    return [row for row, _, _ in rows]


def _gemm_cycles(where: str, row: dict[str, str], again: str) -> tuple[GemmCycles, int, float]:
    numbers = {}
    for column, cell in row.items():
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        whole = column in (_TOTAL, _COMPUTE, _STALL)
        if not math.isfinite(number) or number < 0 or (whole and number != int(number)):
            kind = "a whole number" if whole else "a number"
            raise ValueError(f"{where}: {column} must be {kind} from 0 up, got {cell!r}; {again}")
        numbers[column] = int(number) if whole else number
    compute = numbers[_COMPUTE]
    total = numbers.get(_TOTAL, compute)
    if compute < 1 or total < compute:
        raise ValueError(f"{where}: {total} cycles in all and {compute} of the array cannot be right; {again}")
    return GemmCycles(total, numbers[_STALL], _TOTAL in numbers), compute, numbers[_UTIL]


def _check_shapes(path, rows, shapes, array, again: str) -> None:
    if len(rows) != len(shapes):
        raise ValueError(
            f"{path}, line {len(rows) + 1}: {len(rows)} GEMMs where {len(shapes)} were to be simulated: the report is "
            f"truncated or of another network; {again}"
        )
    if array is None:
        return
    for number, ((_, compute, utilisation), (m, n, k)) in enumerate(zip(rows, shapes, strict=True), start=2):
        expected = 100 * m * n * k / (compute * array[0] * array[1])
        if not math.isclose(utilisation, expected, rel_tol=1e-6):
            raise ValueError(
                f"{path}, line {number}: {_UTIL} is {utilisation:g} where a {m} x {n} x {k} GEMM in {compute} cycles "
                f"on {array[0]} x {array[1]} cells gives {expected:g}: the report is of another GEMM or array; {again}"
            )


def read_scalesim(
    path: str | os.PathLike, *, design: str, clock: str, shapes: Sequence[tuple[int, int, int]] | None = None
) -> IterationTime:
    """Read the time of one iteration from a COMPUTE_REPORT.csv of your own SCALE-Sim run.

    Parameters
    ----------
    path : path-like
        The report of a run over every GEMM of one training iteration, forward and backward.
    design : str
        Name of the design the time is for.
    clock : str
        The array's clock, such as "1 GHz".
    shapes : sequence of (int, int, int), optional
        (M, N, K) of the GEMMs; if given, their number is checked.

    Returns
    -------
    IterationTime
        The sum over the GEMMs.

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_compute_report`, or if the clock is not a frequency.

    Examples
    --------
    >>> import tempfile
    >>> header = "LayerID, Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, Compute Util %,\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "COMPUTE_REPORT.csv")
    ...     _ = file.write_text(header + "0, 1000, 0, 50.0, 100.0, 50.0,\\n")
    ...     read_scalesim(file, design="mine", clock="1 GHz").seconds
    1e-06
    """
    hertz = frequency(clock)
    rows = read_compute_report(path, shapes=shapes)
    cycles = sum(row.cycles for row in rows)
    detail = {
        "cycles": cycles,
        "stall_cycles": sum(row.stalls for row in rows),
        "memory_included": rows[0].memory_included,
        "clock_hz": float(hertz),
    }
    return IterationTime(design, float(cycles / hertz), 1, f"SCALE-Sim report {path}", detail)
