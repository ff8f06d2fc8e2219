"""What a design's hardware is, what it has to compute, and the equal-area variant.

A design's time comes from two lists: the GEMMs of one training iteration (forward, backward_data, backward_weight) and
the hardware they run on. SRAM is stated in bytes and bandwidth in bytes per second, so that a narrower format gains
what it gains: more words in the same memory, more words per second over the same wires.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

from softnum.tta.quantities import InputTypeError, bandwidth, check_keys, frequency, positive_int, positive_number

__all__ = [
    "PASSES",
    "DesignPoint",
    "Gemm",
    "Hardware",
    "MultiplierArea",
    "equal_area",
    "multiplier_areas",
]

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
        Bytes per second between memory and *each* of the three SRAMs.
    clock : Fraction
        Hertz.

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

    @classmethod
    def from_table(cls, table: Mapping, where: str = "[hardware]") -> Hardware:
        """Read the ``[hardware]`` table of a design file.

        Parameters
        ----------
        table : Mapping
            ``array = [rows, columns]``, ``sram_bytes = {ifmap, filter, ofmap}`` in bytes, ``bandwidth = "16 GB/s"``,
            ``clock = "1 GHz"``.
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
        check_keys(table, ["array", "sram_bytes", "bandwidth", "clock"], [], where)
        array = table["array"]
        if not isinstance(array, (list, tuple)) or len(array) != 2:
            raise ValueError(f"{where} array must be [rows, columns], got {array!r}")
        sram = table["sram_bytes"]
        check_keys(sram, _BUFFERS, [], f"{where} sram_bytes")
        return cls(
            (positive_int(array[0], f"{where} array rows"), positive_int(array[1], f"{where} array columns")),
            tuple(positive_int(sram[name], f"{where} sram_bytes {name}") for name in _BUFFERS),
            bandwidth(table["bandwidth"], f"{where} bandwidth"),
            frequency(table["clock"], f"{where} clock"),
        )

    def to_table(self) -> dict:
        """Return the table that `from_table` reads back, with plain JSON values."""
        return {
            "array": list(self.array),
            "sram_bytes": dict(zip(_BUFFERS, self.sram_bytes, strict=True)),
            "bandwidth": _text(self.bandwidth, 10**9, "GB/s"),
            "clock": _text(self.clock, 10**9, "GHz"),
        }

    @property
    def bytes_per_cycle(self) -> Fraction:
        """Bytes that each of the three SRAMs exchanges with memory per clock cycle."""
        return self.bandwidth / self.clock


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
        Of both operands, "2:4" where there are at most two numbers other than 0 in every four along K, else "dense";
        empty if both are dense.

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

    @classmethod
    def from_table(cls, table: Mapping, where: str = "GEMM") -> Gemm:
        """Read ``{"layer", "pass", "M", "N", "K", "bits"}`` and optionally ``"formats"``, a list of format names, and
        ``"count"`` and ``"sparsity"``, like ``["dense", "2:4"]``.

        Examples
        --------
        >>> Gemm.from_table({"layer": "fc1", "pass": "forward", "M": 32, "N": 128, "K": 64, "bits": 8}).k
        64
        """
        check_keys(table, ["layer", "pass", "M", "N", "K", "bits"], ["formats", "count", "sparsity"], where)
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
        return cls(str(table["layer"]), table["pass"], m, n, k, bits, tuple(formats), count, tuple(sparsity))

    def to_table(self) -> dict:
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
    """What a simulator needs to know about a design: its hardware and the GEMMs of one iteration.

    Parameters
    ----------
    name : str
        Name of the design.
    hardware : Hardware
        What it runs on.
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
    def from_table(cls, table: Mapping, where: str = "design") -> DesignPoint:
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

    def to_table(self) -> dict:
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


@dataclass(frozen=True)
class MultiplierArea:
    """Silicon area of one multiplier, with its source.

    Parameters
    ----------
    name : str
        Name of the entry in areas.toml.
    um2 : float
        Area in square micrometres.
    kind : str
        "published" for the multiplier itself; "proxy" for the area of another multiplier used in its place.
    reason : str
        The source, and for a proxy why it stands in and on which side it errs.

    Examples
    --------
    >>> area = multiplier_areas()["float32"]
    >>> area.name, area.um2, area.kind
    ('float32', 7700.0, 'published')
    """

    name: str
    um2: float
    kind: str
    reason: str


@cache
def multiplier_areas() -> Mapping[str, MultiplierArea]:
    """Return the cited table of multiplier areas, one entry for each format name (file areas.toml of this package).

    Returns
    -------
    Mapping of str to MultiplierArea

    Examples
    --------
    >>> multiplier_areas()["float32"].um2, multiplier_areas()["e5m2"].kind
    (7700.0, 'proxy')
    """
    data = _area_file()
    published = {
        name: MultiplierArea(name, float(row["um2"]), "published", data["source"]["citation"])
        for name, row in data["published"].items()
    }
    areas = {}
    for name, row in data["formats"].items():
        base = published[row["area_of"]]
        kind, reason = ("proxy", row["reason"]) if row["proxy"] else ("published", row["reason"])
        areas[name] = MultiplierArea(name, base.um2, kind, f"area of {base.name}: {reason}")
    return areas


def area_source() -> str:
    """Return the citation of the published multiplier areas."""
    return _area_file()["source"]["citation"]


@cache
def _area_file() -> dict:
    return tomllib.loads((Path(__file__).parents[1] / "areas.toml").read_text(encoding="utf-8"))


def equal_area(
    points: Iterable[DesignPoint], baseline: str
) -> tuple[list[DesignPoint], dict[str, str], dict[str, MultiplierArea]]:
    """Scale each design's array so that its multipliers take the area that the baseline's multipliers take.

    An assumption, not a measurement: nothing but multiplier area enters (no adders, accumulators, registers, wires, no
    change of clock). A design is charged for its widest multiplier, because one array computes all its GEMMs. The ratio
    of rows to columns is kept and both are rounded down.

    Parameters
    ----------
    points : iterable of DesignPoint
        The designs on their stated hardware.
    baseline : str
        Name of the design whose array sets the area.

    Returns
    -------
    scaled : list of DesignPoint
        The designs whose formats are all in the table, on scaled arrays.
    left_out : dict of str to str
        Name and reason of each design that is left out, because the table has no area for one of its formats.
    areas : dict of str to MultiplierArea
        Per scaled design, the area that was used.

    Raises
    ------
    ValueError
        If the baseline is not among the designs, or its formats are not in the table.

    Examples
    --------
    >>> from softnum.tta import load_reports
    >>> scaled, left_out, areas = equal_area(load_reports().designs.values(), "a-float32")
    >>> scaled[1].name, scaled[1].hardware.array, areas[scaled[1].name].um2
    ('b-binary16', (69, 69), 1640.0)
    """
    points = list(points)
    by_name = {point.name: point for point in points}
    if baseline not in by_name:
        near = difflib.get_close_matches(baseline, by_name, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"baseline {baseline!r} is not among the designs {', '.join(by_name)}{hint}")
    table, left_out, areas = multiplier_areas(), {}, {}
    for point in points:
        unknown = [name for name in point.formats if name not in table]
        if unknown or not point.formats:
            what = ", ".join(unknown) if unknown else "its unnamed operand formats"
            left_out[point.name] = f"no multiplier area is known for {what}"
        else:
            areas[point.name] = max((table[name] for name in point.formats), key=lambda area: area.um2)
    if baseline not in areas:
        raise ValueError(f"baseline {baseline!r} cannot set the area: {left_out[baseline]}")
    rows, columns = by_name[baseline].hardware.array
    budget = rows * columns * areas[baseline].um2
    scaled = []
    for name, area in areas.items():
        hardware = by_name[name].hardware
        factor = math.sqrt(budget / area.um2 / (hardware.array[0] * hardware.array[1]))
        array = tuple(max(1, math.floor(side * factor + 1e-9)) for side in hardware.array)
        scaled.append(replace(by_name[name], hardware=replace(hardware, array=array)))
    return scaled, left_out, areas
