"""Energy of one training iteration: every multiplication, addition and access of a workload, priced by a cited table.

It is the default where no simulator gives energies; `softnum.tta.workloads.energy_tables` has the tables, and which of
their entries stands in for a format that they do not list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from softnum.tta.workloads.energy_prices import ENERGY_TABLES, EnergyTable, NoEnergy, energy_table
from softnum.tta.workloads.energy_tables import (
    OperationEnergy,
    class_of,
    dram_energy,
    mac_energy,
    operation_energy,
    sram_energy,
    stated_energy,
)
from softnum.tta.workloads.hardware import Gemm, Hardware, kept_steps, read_pattern
from softnum.tta.workloads.operations import STAGES, Operation, Workload
from softnum.tta.workloads.unit import UnitHardware

__all__ = ["ENERGY_KINDS", "ENERGY_TABLES", "Energy", "OperationEnergy", "energy_of", "operation_energy"]

#: What energy goes into: GEMMs' multiplications and additions, all else that computes, and the two kinds of memory.
ENERGY_KINDS = ("multiply", "add", "elementwise", "sram", "dram")

_DEFAULT_SRAM = 32768  # bytes; the size that the lecture's table states


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

    def to_table(self) -> dict[str, Any]:
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


def _steps(gemm: Gemm) -> tuple[int, int]:
    """K, or what a pattern of the right operand leaves of it, and the bits of the index that each number then has."""
    pattern = None if gemm.pattern is None else read_pattern(gemm.pattern)
    return (gemm.k, 0) if pattern is None else (kept_steps(gemm.k, gemm.pattern), (pattern[1] - 1).bit_length())


class _Prices:
    """Prices an iteration's operations by one table, and notes what had to stand in for what."""

    def __init__(
        self,
        table: EnergyTable,
        hardware: Hardware | None,
        accumulator,
        widths: Mapping[str, float],
        unit: UnitHardware | None,
    ) -> None:
        self.table, self.hardware, self.accumulator, self.widths = table, hardware, accumulator, widths
        self.unit, self.stated = unit, stated_energy(unit, table)
        sizes = (_DEFAULT_SRAM,) * 3 if hardware is None else hardware.sram_bytes
        self.sram, self.sram_notes = zip(*(sram_energy(size, table) for size in sizes), strict=True)
        self.sram_writes = [sram_energy(size, table, write=True)[0] for size in sizes]
        self.proxies: dict[str, None] = {}

    def note(self, energy: OperationEnergy, what: str) -> float:
        if energy.kind in ("proxy", "scaled"):
            self.proxies[f"{what} of {energy.reason} ({energy.kind})"] = None
        elif energy.kind == "stated" and energy.picojoules:
            self.proxies[f"{what} of a matrix product: {energy.reason}"] = None
        return energy.picojoules

    def elementwise(self, name: str) -> float:
        """Picojoules of an operation outside GEMMs: of a product.

        One without a name is as wide as the workload's tensors in it; one that no tensor has counts as 32 bits.
        """
        bits = self.widths.get(name, 32)
        try:
            kind, width, what = class_of(name, bits)
        except NoEnergy:
            if self.stated is None:
                raise
            self.proxies[f"product of {name}, charged as the unit's (proxy)"] = None
            return self.stated.picojoules
        try:
            return self.note(operation_energy("multiply", name, bits=bits, table=self.table), "product")
        except NoEnergy:
            if width <= 32:
                raise
        parts = math.ceil(width / 32) ** 2
        half = operation_energy("multiply", "q16.16" if kind == "fixed" else "binary32", table=self.table)
        reason = f"{what}, charged as {parts} of {half.entry}"
        return self.note(OperationEnergy(half.entry, parts * half.picojoules, "proxy", reason), "product")

    def operation(self, operation: Operation) -> dict[str, float]:
        """Picojoules by kind, without DRAM."""
        if operation.gemm is None:
            names = operation.formats or ("binary32",)
            each = max(self.elementwise(name) for name in names)
            bits = 8 * operation.bytes  # which are written to it and read from it
            return {"elementwise": operation.flops * each, "sram": self.accesses(bits, bits, 2)}
        gemm, (steps, index) = operation.gemm, _steps(operation.gemm)
        accumulator = self.accumulator
        if isinstance(accumulator, Mapping):
            accumulator = accumulator.get(operation.stage)
        factor, term = mac_energy(gemm, accumulator, self.table, self.unit)
        macs = gemm.m * gemm.n * steps * gemm.count
        pj = {"multiply": macs * self.note(factor, "product"), "add": macs * self.note(term, "sum")}
        if self.hardware is None:
            bits = 8 * operation.bytes
            return {**pj, "sram": self.accesses(bits, bits, 0)}
        m, n, k = gemm.shape
        down, across = (
            _uses(size, part, cells)
            for size, part, cells in zip((m, n), self.hardware.part(gemm.shape), self.hardware.array, strict=False)
        )
        # into SRAM once in every core, out of it once for each fold of an array; results the other way. A pattern's
        # cells choose among all of the left operand, by an index that comes with each number of the right one
        numbers = (
            (m * k * across[0], m * k * across[1], gemm.bits),
            (steps * n * down[0], steps * n * down[1], gemm.bits + index),
            (m * n, m * n, gemm.bits),
        )
        sram = [self.accesses(into * bits, out * bits, place) for place, (into, out, bits) in enumerate(numbers)]
        return {**pj, "sram": math.fsum(sram) * gemm.count}

    def accesses(self, written: float, read: float, place: int) -> float:
        """Picojoules of bits written to one of the SRAMs and read from it."""
        each, other = self.sram[place], self.sram_writes[place]
        return (written + read) * each if each == other else written * other + read * each

    def dram(self, operation: Operation) -> tuple[float, float]:
        """Picojoules of what an operation reads from DRAM and writes to it, at the low price and at the high one."""
        prices = zip(dram_energy(self.table), dram_energy(self.table, write=True), strict=True)
        low, high = (
            8 * operation.bytes * each
            if each == other
            else 8 * operation.bytes_read * each + 8 * operation.bytes_written * other
            for each, other in prices
        )
        return low, high


def _uses(size: int, part: int, cells: int) -> tuple[int, int]:
    """Cores that a side of a result is split among, and the folds of all their arrays."""
    whole, rest = divmod(size, part)
    return whole + bool(rest), whole * -(-part // cells) + -(-rest // cells)


def energy_of(
    workload: Workload,
    table: str | EnergyTable = "45nm",
    *,
    hardware: Hardware | None = None,
    accumulator: str | Mapping[str, str] | None = None,
    unit: UnitHardware | None = None,
) -> Energy:
    """Energy of one training iteration, from a cited table.

    Parameters
    ----------
    workload : Workload
        The operations of the iteration.
    table : str or EnergyTable
        "45nm" (Horowitz, default), "45nm-lecture" or "aladdin-40nm" (Accelergy's), or what `read_energy_table` read.
    hardware : Hardware, optional
        A systolic array with its SRAM, which determines how often operands leave SRAM and what an access costs.
        Default: once, from 32 KB.
    accumulator : str or Mapping of str to str, optional
        Format of the sums, for all GEMMs or by stage. Default: 32 bits, fixed point where both operands are.
    unit : UnitHardware, optional
        The figures that the design states for its multiply-add unit. Default: those of `hardware`.

    Returns
    -------
    Energy

    Raises
    ------
    ValueError
        If the table is unknown, a GEMM's format is wider than its entries, there is no substitute for it (a posit, a
        user-defined format or function) and no `unit` states an energy, or the workload has no operation.

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
        raise ValueError(
            f"the workload {workload.network!r} of {workload.design!r} has no operation whose energy could be computed"
        )
    widths: dict[str, float] = {}
    for tensor in workload.tensors:
        widths[tensor.format] = max(tensor.bits, widths.get(tensor.format, 0))
    unit = hardware.unit if unit is None and hardware is not None else unit
    table = energy_table(table).at(None if hardware is None else hardware.clock)
    prices = _Prices(table, hardware, accumulator, widths, unit)
    low, high = dram_energy(table)
    stages = {stage: [] for stage in STAGES}
    kinds = {kind: [] for kind in ENERGY_KINDS}
    layers: dict[str, list[float]] = {layer: [] for layer in workload.layers}
    extra = []
    for operation in workload.operations:
        cheap, dear = prices.dram(operation)
        pj = {**prices.operation(operation), "dram": cheap}
        extra.append(dear - cheap)
        for kind, energy in pj.items():
            for group in (kinds[kind], stages[operation.stage], layers[operation.layer]):
                group.append(energy)

    def total(parts) -> float:
        return math.fsum(parts) * 1e-12

    everything = [energy for parts in kinds.values() for energy in parts]
    return Energy(
        total(everything),
        total([*everything, *extra]),
        {stage: total(parts) for stage, parts in stages.items()},
        {kind: total(parts) for kind, parts in kinds.items()},
        {layer: total(parts) for layer, parts in layers.items()},
        table.name,
        table.citation,
        _assumptions(prices, low, high),
    )


def _assumptions(prices: _Prices, low: float, high: float) -> tuple[str, ...]:
    if prices.hardware is None:
        sram = f"every operand and result passes through SRAM of {_DEFAULT_SRAM} bytes once (a lower bound)"
    else:
        rows, columns = prices.hardware.array
        every = "" if prices.hardware.cores == (1, 1) else "enter the SRAM of every core that needs them and "
        sram = (
            f"operands {every}leave SRAM once for every fold of the {rows} x {columns} array, results pass through it "
            f"once; SRAM of {'; '.join(dict.fromkeys(prices.sram_notes))}"
        )
    written = dram_energy(prices.table, write=True)[0]
    dram = f"{low:g} pJ for each bit" + (f" read, {written:g} written" if written != low else "")
    dram += f", {high:g} at the dear end" if high > low else ""
    if prices.table.dram is None:
        dram += f", of the table {prices.table.rest}"
    return (
        f"energy of one iteration, without leakage, clocks, wires and registers, in {prices.table.process}",
        *prices.table.notes,
        f"every operand is read from DRAM once and every result written once ({dram})",
        sram,
        "what is no GEMM costs a multiplication in its widest operand's format for each of its operations",
        *(
            ()
            if prices.accumulator is not None or (prices.unit is not None and prices.unit.energy_pj is not None)
            else ("sums are kept in 32 bits, fixed point where both operands are, as no accumulator was named",)
        ),
        *prices.proxies,
    )
