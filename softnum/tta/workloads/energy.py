"""Energy of one training iteration from a cited table of operations and accesses.

Every multiplication, addition and access of a workload is priced by a table of a 45 nm process (file energy.toml of
this package). It is the default where no simulator gives energies, and ZigZag's costs of an access come from it too.

*What stands in for what.* A format that the table does not list is charged the nearest wider entry, which is labelled:

=========================================  =================================  =======================================
format                                     multiplication                     addition
=========================================  =================================  =======================================
binary16, binary32, 8- and 32-bit fixed    its own                            its own
float of at most 8 bits                    the 8-bit integer's (errs high:    the 16-bit float's (an integer adder
                                           its significands are shorter)      has no shifters)
float of at most 16 bits, precision <= 11  the 16-bit float's                 the 16-bit float's
float of at most 32 bits, precision <= 24  the 32-bit float's                 the 32-bit float's
fixed of at most 8, 32 bits                the 8-, 32-bit integer's           the 8-, 32-bit integer's
block format                               that of its elements               that of its elements
any other of at most 8, 16, 32 bits        as the float of that width         as the float of that width
=========================================  =================================  =======================================

A table without such an entry (the lecture's has 32-bit ones alone) gives the next wider of the same kind; a format
that is wider than every entry is an error in a GEMM. Elsewhere (a loss in binary64) a multiplication of 64 bits is
charged as four of 32, of which it would be made. SRAM between the listed sizes is interpolated on logarithmic scales
(the listed energies grow about as the root of the size); below the smallest it costs as much as that, above the largest
the last two entries are continued.

Sources: M. Horowitz, "Computing's Energy Problem", ISSCC 2014; the lecture's table is table I of S. Han et al., ISCA
2016.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from softnum.formats.blocks import format
from softnum.formats.dispatch import of_format
from softnum.tta.workloads.hardware import Gemm, Hardware, read_pattern
from softnum.tta.workloads.operations import STAGES, Operation, Workload

__all__ = ["ENERGY_KINDS", "ENERGY_TABLES", "Energy", "OperationEnergy", "energy_of", "operation_energy"]

#: What energy goes into: GEMMs' multiplications and additions, all else that computes, and the two kinds of memory.
ENERGY_KINDS = ("multiply", "add", "elementwise", "sram", "dram")

#: The tables of energy.toml.
ENERGY_TABLES = ("45nm", "45nm-lecture")

_DEFAULT_SRAM = 32768  # bytes; the size that the lecture's table states


@dataclass(frozen=True)
class OperationEnergy:
    """Energy of one operation in one format, and how it is known.

    Parameters
    ----------
    entry : str
        The entry of the table: "int8", "fp16", ...
    picojoules : float
    kind : str
        "published" for the format's own entry; "proxy" for that of another in its place.
    reason : str
        Why that entry.

    Examples
    --------
    >>> operation_energy("add", "binary16").picojoules
    0.4
    """

    entry: str
    picojoules: float
    kind: str
    reason: str


@dataclass(frozen=True)
class Energy:
    """Energy of one iteration.

    Parameters
    ----------
    joules : float
        With the lower price of DRAM.
    high : float
        With the higher one; the same where the table has one price.
    by_stage : Mapping of str to float
        Joules of each stage (`STAGES`).
    by_kind : Mapping of str to float
        Joules of each kind (`ENERGY_KINDS`).
    by_layer : Mapping of str to float
        Joules of each layer.
    table : str
        Name of the table.
    source : str
        Its citation.
    assumptions : tuple of str
        What the figures rest on, with every proxy.

    Examples
    --------
    >>> gemm = Gemm("fc", "forward", 32, 10, 64, bits=32, formats=("float32", "float32"))
    >>> work = Workload("one", "a-float32", 32, (Operation("fc", "forward", "gemm", 40960, 10752, 1280, gemm=gemm),))
    >>> energy_of(work).by_kind["multiply"] == 32 * 10 * 64 * 3.7e-12
    True
    """

    joules: float
    high: float
    by_stage: Mapping[str, float]
    by_kind: Mapping[str, float]
    by_layer: Mapping[str, float] = field(repr=False)
    table: str
    source: str = field(repr=False)
    assumptions: tuple[str, ...] = field(repr=False)

    def to_table(self) -> dict:
        """The energies as plain JSON values."""
        return {
            "joules": self.joules,
            "high": self.high,
            "by_stage": dict(self.by_stage),
            "by_kind": dict(self.by_kind),
            "by_layer": dict(self.by_layer),
            "table": self.table,
            "source": self.source,
            "assumptions": list(self.assumptions),
        }


@cache
def _tables() -> Mapping:
    return tomllib.loads((Path(__file__).parents[1] / "energy.toml").read_text(encoding="utf-8"))


def _table(name: str) -> Mapping:
    if name not in ENERGY_TABLES:
        raise ValueError(f"unknown energy table {name!r}; tables: {', '.join(ENERGY_TABLES)}")
    return _tables()[name]


@cache
def _class_of(name: str, bits: int | float | None) -> tuple[str, float, str]:
    """Kind ("float" or "fixed"), the bits that an entry must have, and what the format is."""
    try:
        fmt = format(_canonical(name))
    except (ValueError, TypeError):  # a user's own: its width is all that is known
        if bits is None:
            raise ValueError(
                f"the format {name!r} is not one that softnum.format knows, and its width is not given; no energy can "
                "be looked up"
            ) from None
        return "float", bits, f"{name or 'a format without a name'} has {bits:g} bits"
    return _entry_of(fmt.element, name)


@of_format
def _entry_of(fmt, name: str) -> tuple[str, float, str]:
    precision, width = fmt.precision, fmt.bits
    # the width of the narrowest entry that is as wide and whose significand is as long
    needed = max(width, 0 if precision <= 11 else 32 if precision <= 24 else 64)
    return "float", needed, f"{name}: {width}-bit float, precision {precision}"


@_entry_of.fixed
def _fixed_entry_of(fmt, name: str) -> tuple[str, float, str]:
    return "fixed", fmt.bits, f"{name}: {fmt.bits}-bit fixed point"


def operation_energy(
    operation: str, fmt: str, *, bits: int | float | None = None, table: str = "45nm"
) -> OperationEnergy:
    """Energy of one operation in a format, or of the nearest wider one that the table lists.

    Parameters
    ----------
    operation : str
        "multiply" or "add".
    fmt : str
        Name of the format.
    bits : int or float, optional
        Width, for formats that are not softnum's own.
    table : str
        One of `ENERGY_TABLES`.

    Returns
    -------
    OperationEnergy

    Raises
    ------
    ValueError
        If the table is unknown, or no entry is as wide as the format.

    Examples
    --------
    >>> energy = operation_energy("multiply", "e5m2")
    >>> energy.entry, energy.picojoules, energy.kind
    ('int8', 0.2, 'proxy')
    >>> operation_energy("multiply", "e5m2", table="45nm-lecture").entry
    'fp32'
    """
    rows = _table(table)
    if operation not in ("multiply", "add"):
        raise ValueError(f"the operation must be multiply or add, got {operation!r}")
    kind, width, what = _class_of(fmt, bits)
    entries = {8: "int8", 32: "int32"} if kind == "fixed" else {16: "fp16", 32: "fp32"}
    if kind == "float" and operation == "multiply":
        entries = {8: "int8", **entries}
    listed = [entries[size] for size in sorted(entries) if size >= width and entries[size] in rows]
    if not listed:
        raise ValueError(
            f"{what}: the energy table {table!r} has no entry as wide as it; it has int32 and fp32 at most"
        )
    entry = listed[0]
    own = {"int8": ("fixed", 8), "int32": ("fixed", 32), "fp16": ("binary16",), "fp32": ("binary32",)}[entry]
    exact = (kind, width) == own if kind == "fixed" else _canonical(fmt) in own
    return OperationEnergy(
        entry, rows[entry][f"{operation}_pj"], "published" if exact else "proxy", f"{what}, charged as {entry}"
    )


def _canonical(name: str) -> str:
    return {"float32": "binary32", "e8m23": "binary32", "float16": "binary16", "e5m10": "binary16"}.get(name, name)


def sram_energy(size: int, table: str = "45nm") -> tuple[float, str]:
    """Picojoules of an access to SRAM of so many bytes, for each bit, and how that is known.

    >>> sram_energy(32768)
    (0.3125, '32768 bytes: published')
    """
    points = [(row["bytes"], row["pj"] / row["bits"]) for row in _table(table)["sram"]]
    for stated, picojoules in points:
        if stated == size:
            return picojoules, f"{size} bytes: published"
    if len(points) == 1 or size < points[0][0]:
        return points[0][1], f"{size} bytes: as {points[0][0]}"
    upper = next((i for i, (stated, _) in enumerate(points) if stated > size), len(points) - 1)
    (small, low), (large, high) = points[upper - 1], points[upper]
    exponent = math.log(high / low) / math.log(large / small)
    how = f"between {small} and {large}" if size < large else f"continued from {small} and {large}"
    return low * (size / small) ** exponent, f"{size} bytes: {how}"


def dram_energy(table: str = "45nm") -> tuple[float, float]:
    """Picojoules of an access to DRAM for each bit, low and high.

    >>> dram_energy("45nm-lecture")
    (20.0, 20.0)
    """
    row = _table(table)["dram"]
    return row["low_pj"] / row["bits"], row["high_pj"] / row["bits"]


def mac_energy(
    gemm: Gemm, accumulator: str | None = None, table: str = "45nm"
) -> tuple[OperationEnergy, OperationEnergy]:
    """Energy of a multiplication and an addition of a GEMM.

    The multiplier is that of the dearer operand. The accumulator is the one that is named; else of 32 bits, fixed if
    both operands are.

    >>> multiply, add = mac_energy(Gemm("fc", "forward", 1, 1, 1, 8, ("e5m2", "e5m2")), "binary16")
    >>> multiply.picojoules, add.picojoules
    (0.2, 0.4)
    """
    names = gemm.formats or ("",)
    factors = [operation_energy("multiply", name, bits=gemm.bits, table=table) for name in names]
    if accumulator is None:
        fixed = all(_class_of(name, gemm.bits)[0] == "fixed" for name in names)
        accumulator = "q16.16" if fixed else "binary32"
    return (
        max(factors, key=lambda factor: factor.picojoules),
        operation_energy("add", accumulator, table=table),
    )


def _steps(gemm: Gemm) -> int:
    """K, or what a pattern of the right operand leaves of it."""
    pattern = None if gemm.pattern is None else read_pattern(gemm.pattern)
    return gemm.k if pattern is None else gemm.k // pattern[1] * pattern[0] + min(pattern[0], gemm.k % pattern[1])


class _Prices:
    """Prices an iteration's operations by one table, and notes what had to stand in for what."""

    def __init__(self, table: str, hardware: Hardware | None, accumulator, widths: Mapping[str, float]) -> None:
        self.table, self.hardware, self.accumulator, self.widths = table, hardware, accumulator, widths
        sizes = (_DEFAULT_SRAM,) * 3 if hardware is None else hardware.sram_bytes
        self.sram, self.sram_notes = zip(*(sram_energy(size, table) for size in sizes), strict=True)
        self.proxies: dict[str, None] = {}

    def note(self, energy: OperationEnergy, what: str) -> float:
        if energy.kind == "proxy":
            self.proxies[f"{what} of {energy.reason} (proxy)"] = None
        return energy.picojoules

    def elementwise(self, name: str) -> float:
        """Picojoules of an operation outside GEMMs: of a product.

        A user's own format is as wide as the workload's tensors in it; one that no tensor has counts as 32 bits.
        """
        bits = self.widths.get(name, 32)
        kind, width, what = _class_of(name, bits)
        if width <= 32:
            return self.note(operation_energy("multiply", name, bits=bits, table=self.table), "product")
        parts = math.ceil(width / 32) ** 2
        half = operation_energy("multiply", "q16.16" if kind == "fixed" else "binary32", table=self.table)
        reason = f"{what}, charged as {parts} of {half.entry}"
        return self.note(OperationEnergy(half.entry, parts * half.picojoules, "proxy", reason), "product")

    def operation(self, operation: Operation) -> dict[str, float]:
        """Picojoules by kind, without DRAM."""
        if operation.gemm is None:
            names = operation.formats or ("binary32",)
            each = max(self.elementwise(name) for name in names)
            return {"elementwise": operation.flops * each, "sram": 2 * 8 * operation.bytes * self.sram[2]}
        gemm, steps = operation.gemm, _steps(operation.gemm)
        accumulator = self.accumulator
        if isinstance(accumulator, Mapping):
            accumulator = accumulator.get(operation.stage)
        factor, term = mac_energy(gemm, accumulator, self.table)
        macs = gemm.m * gemm.n * steps * gemm.count
        pj = {"multiply": macs * self.note(factor, "product"), "add": macs * self.note(term, "sum")}
        if self.hardware is None:
            return {**pj, "sram": 2 * 8 * operation.bytes * self.sram[0]}
        rows, columns = self.hardware.array
        m, n, k = gemm.shape
        # into SRAM once, out of it once for each fold of the array; results the other way
        words = (
            m * k + m * steps * -(-n // columns),
            steps * n + steps * n * -(-m // rows),
            2 * m * n,
        )
        bits = math.fsum(count * energy for count, energy in zip(words, self.sram, strict=True))
        return {**pj, "sram": bits * gemm.bits * gemm.count}


def energy_of(
    workload: Workload,
    table: str = "45nm",
    *,
    hardware: Hardware | None = None,
    accumulator: str | Mapping[str, str] | None = None,
) -> Energy:
    """Energy of one training iteration, from a cited table.

    Parameters
    ----------
    workload : Workload
        What the iteration consists of.
    table : str
        "45nm" (Horowitz, default) or "45nm-lecture".
    hardware : Hardware, optional
        A systolic array with its SRAM: how often operands leave SRAM, and what an access costs, then follow from it.
        Default: once, from 32 KB.
    accumulator : str or Mapping of str to str, optional
        Format of the sums, for all GEMMs or by stage. Default: 32 bits, fixed point where both operands are.

    Returns
    -------
    Energy

    Raises
    ------
    ValueError
        If the table is unknown, a GEMM's format is wider than its entries, or the workload has no operation.

    Examples
    --------
    >>> gemm = Gemm("fc", "forward", 32, 10, 64, bits=8, formats=("e5m2", "e5m2"))
    >>> work = Workload("one", "fp8", 32, (Operation("fc", "forward", "gemm", 40960, 2688, 320, gemm=gemm),))
    >>> energy = energy_of(work)
    >>> energy.assumptions[-1]
    'product of e5m2: 8-bit float, precision 3, charged as int8 (proxy)'
    >>> energy.by_kind["dram"] == 3008 * 8 * 1300 / 64 * 1e-12
    True
    """
    if not workload.operations:
        raise ValueError(f"the workload {workload.network!r} of {workload.design!r} has no operation to price")
    widths: dict[str, float] = {}
    for tensor in workload.tensors:
        widths[tensor.format] = max(tensor.bits, widths.get(tensor.format, 0))
    prices = _Prices(table, hardware, accumulator, widths)
    low, high = dram_energy(table)
    stages = {stage: [] for stage in STAGES}
    kinds = {kind: [] for kind in ENERGY_KINDS}
    layers: dict[str, list[float]] = {layer: [] for layer in workload.layers}
    extra = []
    for operation in workload.operations:
        pj = {**prices.operation(operation), "dram": 8 * operation.bytes * low}
        extra.append(8 * operation.bytes * (high - low))
        for kind, energy in pj.items():
            for group in (kinds[kind], stages[operation.stage], layers[operation.layer]):
                group.append(energy)

    def total(parts) -> float:
        return math.fsum(parts) * 1e-12

    everything = [energy for parts in kinds.values() for energy in parts]
    rows = _table(table)
    return Energy(
        total(everything),
        total([*everything, *extra]),
        {stage: total(parts) for stage, parts in stages.items()},
        {kind: total(parts) for kind, parts in kinds.items()},
        {layer: total(parts) for layer, parts in layers.items()},
        table,
        rows["citation"],
        _assumptions(prices, low, high),
    )


def _assumptions(prices: _Prices, low: float, high: float) -> tuple[str, ...]:
    if prices.hardware is None:
        sram = f"every operand and result passes through SRAM of {_DEFAULT_SRAM} bytes once (a lower bound)"
    else:
        rows, columns = prices.hardware.array
        sram = (
            f"operands leave SRAM once for every fold of the {rows} x {columns} array, results pass through it once; "
            f"SRAM of {'; '.join(dict.fromkeys(prices.sram_notes))}"
        )
    dram = f"{low:g} pJ for each bit" + (f", {high:g} at the dear end" if high > low else "")
    return (
        "energy of one iteration, without leakage, clocks, wires and registers, in a 45 nm process",
        f"every operand is read from DRAM once and every result written once ({dram})",
        sram,
        "what is no GEMM costs a multiplication in its widest operand's format for each of its operations",
        *(
            ()
            if prices.accumulator is not None
            else ("sums are kept in 32 bits, fixed point where both operands are, as no accumulator was named",)
        ),
        *prices.proxies,
    )
