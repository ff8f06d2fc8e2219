"""What a design's hardware is, and what it has to compute.

A design's time comes from two lists: the GEMMs of one training iteration (forward, backward_data, backward_weight) and
the hardware they run on. SRAM is stated in bytes and bandwidth in bytes per second, so that a narrower format gains
what it gains: more words in the same memory, more words per second over the same wires.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from softnum.tta.quantities import InputTypeError, bandwidth, check_keys, frequency, positive_int, positive_number
from softnum.tta.workloads.unit import UnitHardware

__all__ = ["PASSES", "DesignPoint", "Gemm", "Hardware", "kept_steps", "read_pattern"]

PASSES = ("forward", "backward_data", "backward_weight")
_BUFFERS = ("ifmap", "filter", "ofmap")


def _text(value: Fraction, scale: int, unit: str) -> str:
    scaled = value / scale
    return f"{scaled.numerator if scaled.denominator == 1 else float(scaled)} {unit}"


@dataclass(frozen=True)
class Hardware:
    """One accelerator: a systolic array of multipliers, its SRAM, its link to memory, its clock.

    Parameters
    ----------
    array : (int, int)
        Rows and columns of the array.
    sram_bytes : (int, int, int)
        Bytes of SRAM for the left operand (ifmap), the right operand (filter) and the result (ofmap).
    bandwidth : Fraction
        Bytes per second between memory and *each* of the three SRAMs; of several cores, shared by all.
    clock : Fraction
        Hertz.
    unit : UnitHardware, optional
        The figures that the design states for its multiply-add unit.
    cores : (int, int)
        How many such arrays there are, each with SRAMs of its own: those in a row share the rows of a result, those in
        a column its columns.

    Examples
    --------
    >>> table = {"array": [32, 32], "sram_bytes": {"ifmap": 65536, "filter": 65536, "ofmap": 65536},
    ...          "bandwidth": "16 GB/s", "clock": "1 GHz"}
    >>> Hardware.from_table(table).bytes_per_cycle
    Fraction(16, 1)
    """

    array: tuple[int, int]
    sram_bytes: tuple[int, int, int]
    bandwidth: Fraction
    clock: Fraction
    unit: UnitHardware | None = None
    cores: tuple[int, int] = (1, 1)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str = "[hardware]") -> Hardware:
        """Read the ``[hardware]`` table of a design file.

        Parameters
        ----------
        table : Mapping
            ``array = [rows, columns]``, ``sram_bytes = {ifmap, filter, ofmap}`` in bytes, ``bandwidth = "16 GB/s"``,
            ``clock = "1 GHz"``, and optionally ``unit``, as `UnitHardware` takes it, and ``cores = [rows, columns]``.
        where : str
            What the table is, for error messages.

        Returns
        -------
        Hardware

        Raises
        ------
        TypeError, ValueError
            If a key is missing, unknown, or its value is not of its form.
        """
        check_keys(table, ["array", "sram_bytes", "bandwidth", "clock"], ["unit", "cores"], where)
        sram = table["sram_bytes"]
        check_keys(sram, _BUFFERS, [], f"{where} sram_bytes")
        return cls(
            _rows_columns(table["array"], f"{where} array"),
            tuple(positive_int(sram[name], f"{where} sram_bytes {name}") for name in _BUFFERS),
            bandwidth(table["bandwidth"], f"{where} bandwidth"),
            frequency(table["clock"], f"{where} clock"),
            UnitHardware.from_table(table["unit"], f"{where}: unit") if "unit" in table else None,
            _rows_columns(table.get("cores", (1, 1)), f"{where} cores"),
        )

    def to_table(self) -> dict[str, Any]:
        """Return the table that `from_table` reads back, with plain JSON values."""
        return {
            "array": list(self.array),
            "sram_bytes": dict(zip(_BUFFERS, self.sram_bytes, strict=True)),
            "bandwidth": _text(self.bandwidth, 10**9, "GB/s"),
            "clock": _text(self.clock, 10**9, "GHz"),
            **({} if self.unit is None else {"unit": self.unit.to_table()}),
            **({} if self.cores == (1, 1) else {"cores": list(self.cores)}),
        }

    @property
    def cells(self) -> int:
        """Multipliers of all cores together."""
        return math.prod(self.array) * math.prod(self.cores)

    def part(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """(M, N, K) of what the first core computes of a product: no other core gets more.

        Rows and columns of the result are split evenly among the cores. K is not, so that every sum stays in one core
        and its terms in their order.

        >>> from dataclasses import replace
        >>> from softnum.tta import load_reports
        >>> hardware = load_reports().designs["a-float32"].hardware
        >>> hardware.part((32, 10, 128)), replace(hardware, cores=(2, 4)).part((32, 10, 128))
        ((32, 10, 128), (16, 3, 128))
        """
        return -(-shape[0] // self.cores[0]), -(-shape[1] // self.cores[1]), shape[2]

    @property
    def bytes_per_cycle(self) -> Fraction:
        """Bytes that each of a core's three SRAMs exchanges with memory per clock cycle."""
        return self.bandwidth / self.clock / math.prod(self.cores)

    @property
    def interval(self) -> int:
        """Clock cycles between successive multiply-adds of a cell: a step of the array."""
        return 1 if self.unit is None else self.unit.initiation_interval

    @property
    def bytes_per_step(self) -> Fraction:
        """Bytes that each of the three SRAMs exchanges with memory while each cell multiplies and adds once."""
        return self.bytes_per_cycle * self.interval

    def cycles(self, steps: int | Fraction, gemm: Gemm, dataflow: str) -> int | Fraction:
        """Clock cycles of a matrix product that takes an array of units of latency and interval 1 so many cycles.

        A step is an initiation interval long. Each fold of the array ends by as many cycles later as the products are
        late by: they come `latency_cycles` after their operands, and the simulated unit's an interval after.

        Parameters
        ----------
        steps : int or Fraction
            Cycles that the simulator counts.
        gemm : Gemm
        dataflow : str
            "os", "ws" or "is": how the product is folded.

        Examples
        --------
        >>> from softnum.tta import load_reports
        >>> from dataclasses import replace
        >>> hardware = load_reports().designs["a-float32"].hardware
        >>> slow = replace(hardware, unit=UnitHardware("data sheet", latency_cycles=5, initiation_interval=2))
        >>> gemm = Gemm("fc", "forward", 64, 32, 100, 32)  # two folds of 32 x 32
        >>> hardware.cycles(400, gemm, "os"), slow.cycles(400, gemm, "os")
        (400, 806)
        """
        if self.unit is None:
            return steps
        m, n, k = self.part(gemm.shape)
        if gemm.pattern is not None:
            k = kept_steps(k, gemm.pattern)
        rows, columns = {"os": (m, n), "ws": (k, n), "is": (k, m)}[dataflow]
        folds = -(-rows // self.array[0]) * -(-columns // self.array[1])
        return steps * self.interval + folds * self.unit.late


def _rows_columns(value: object, where: str) -> tuple[int, int]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"{where} must be [rows, columns], got {value!r}")
    return positive_int(value[0], f"{where} rows"), positive_int(value[1], f"{where} columns")


def kept_steps(k: int, pattern: str) -> int:
    """How many of K terms a pattern "N:M" leaves.

    >>> kept_steps(7, "2:4")
    4
    """
    kept, group = read_pattern(pattern)
    return k // group * kept + min(kept, k % group)


def read_pattern(text: object) -> tuple[int, int] | None:
    """N and M of a pattern "N:M" with 1 <= N < M; None if it is none.

    >>> read_pattern("2:4"), read_pattern("4:2")
    ((2, 4), None)
    """
    found = re.fullmatch(r"([1-9]\d{0,3}):([1-9]\d{0,3})", text) if isinstance(text, str) else None
    pair = (int(found[1]), int(found[2])) if found else (0, 0)
    return pair if 0 < pair[0] < pair[1] else None


@dataclass(frozen=True)
class Gemm:
    """A matrix product of an iteration, (M, K) @ (K, N), and how often it is computed.

    Parameters
    ----------
    layer : str
        Name of the layer it belongs to.
    phase : str
        "forward", "backward_data" or "backward_weight".
    m, n, k : int
        Sizes; K is the length of the sums.
    bits : int or float
        Bits of one operand word; the wider of the two where they differ, because the simulator knows one word size. Of
        a block format with an element's share of the scale of a full block: 8.25 of mxfp8.
    formats : tuple of str
        Names of the operands' formats, for the multiplier areas; empty where unknown.
    count : int
        How many products of this kind an iteration computes, one after another.
    sparsity : tuple of str
        The patterns of both operands: "2:4" if at most two of every four numbers along K are nonzero, else "dense";
        empty if both are dense.
    function : str
        Name of the user-defined function that multiplies, if the unit is custom; else empty.

    Examples
    --------
    >>> Gemm("fc1", "forward", 32, 128, 64, bits=8).shape
    (32, 128, 64)
    >>> Gemm("fc1", "forward", 32, 128, 64, bits=8, sparsity=("dense", "2:4")).pattern
    '2:4'
    """

    layer: str
    phase: str
    m: int
    n: int
    k: int
    bits: int | float
    formats: tuple[str, ...] = ()
    count: int = 1
    sparsity: tuple[str, ...] = ()
    function: str = ""

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str = "GEMM") -> Gemm:
        """Read ``{"layer", "pass", "M", "N", "K", "bits"}`` and optionally ``"formats"``, a list of format names, and
        ``"count"``, ``"sparsity"``, like ``["dense", "2:4"]``, and ``"function"``.

        Examples
        --------
        >>> Gemm.from_table({"layer": "fc1", "pass": "forward", "M": 32, "N": 128, "K": 64, "bits": 8}).k
        64
        """
        check_keys(table, ["layer", "pass", "M", "N", "K", "bits"], ["formats", "count", "sparsity", "function"], where)
        if table["pass"] not in PASSES:
            raise ValueError(f"{where} has the unknown pass {table['pass']!r}; passes: {', '.join(PASSES)}")
        formats = table.get("formats", ())
        if isinstance(formats, str) or not all(isinstance(name, str) for name in formats):
            raise InputTypeError(f"{where} formats must be a list of format names, got {formats!r}")
        sparsity = table.get("sparsity", ())
        right = isinstance(sparsity, (list, tuple)) and len(sparsity) in (0, 2)
        if not right or not all(text == "dense" or read_pattern(text) for text in sparsity):
            raise ValueError(
                f'{where} sparsity must be that of both operands, "dense" or "N:M" with 1 <= N < M, got {sparsity!r}'
            )
        m, n, k = (positive_int(table[key], f"{where} {key}") for key in ("M", "N", "K"))
        bits = positive_number(table["bits"], f"{where} bits")
        count = positive_int(table.get("count", 1), f"{where} count")
        function = table.get("function", "")
        if not isinstance(function, str):
            raise InputTypeError(f"{where} function must be the name of a user's function, got {function!r}")
        return cls(str(table["layer"]), table["pass"], m, n, k, bits, tuple(formats), count, tuple(sparsity), function)

    def to_table(self) -> dict[str, Any]:
        """Return the table that `from_table` reads back, with plain JSON values; a count of 1 is left out."""
        return {
            "layer": self.layer,
            "pass": self.phase,
            "M": self.m,
            "N": self.n,
            "K": self.k,
            **({"count": self.count} if self.count > 1 else {}),
            "bits": self.bits,
            "formats": list(self.formats),
            **({"sparsity": list(self.sparsity)} if self.sparsity else {}),
            **({"function": self.function} if self.function else {}),
        }

    @property
    def pattern(self) -> str | None:
        """The pattern of the right operand, of which a simulator makes use; None if it is dense."""
        return None if self.sparsity[1:] in ((), ("dense",)) else self.sparsity[1]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(M, N, K)."""
        return self.m, self.n, self.k


@dataclass(frozen=True)
class DesignPoint:
    """A design as a simulator needs it: its hardware and the GEMMs of one iteration.

    Parameters
    ----------
    name : str
        Name of the design.
    hardware : Hardware
        The hardware that it runs on.
    gemms : tuple of Gemm
        Every GEMM of one training iteration, forward and backward.

    Examples
    --------
    >>> from softnum.tta import load_reports
    >>> point = load_reports().designs["c-wang-fp8"]
    >>> point.hardware.array, point.gemms[0].shape, point.formats
    ((32, 32), (32, 128, 64), ('e6m9', 'e5m2'))
    """

    name: str
    hardware: Hardware
    gemms: tuple[Gemm, ...]

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str = "design") -> DesignPoint:
        """Read ``{"name", "hardware": {...}, "gemms": [{...}, ...]}``.

        Raises
        ------
        TypeError, ValueError
            If a key is missing, unknown, or its value is not of its form, or there is no GEMM.
        """
        check_keys(table, ["name", "hardware", "gemms"], [], where)
        where = f"{where} {table['name']!r}"
        gemms = tuple(Gemm.from_table(row, f"{where}: GEMM {i}") for i, row in enumerate(table["gemms"]))
        if not gemms:
            raise ValueError(f"{where} has no GEMM; list every GEMM of one training iteration")
        return cls(str(table["name"]), Hardware.from_table(table["hardware"], f"{where}: [hardware]"), gemms)

    def to_table(self) -> dict[str, Any]:
        """Return the table that `from_table` reads back, with plain JSON values."""
        return {
            "name": self.name,
            "hardware": self.hardware.to_table(),
            "gemms": [gemm.to_table() for gemm in self.gemms],
        }

    @property
    def formats(self) -> tuple[str, ...]:
        """Names of every operand format, in order of first appearance."""
        return tuple(dict.fromkeys(name for gemm in self.gemms for name in gemm.formats))

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the users' functions that multiply, in order of first appearance."""
        return tuple(dict.fromkeys(gemm.function for gemm in self.gemms if gemm.function))
