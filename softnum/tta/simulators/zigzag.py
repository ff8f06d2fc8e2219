"""ZigZag: what it is given.

ZigZag (the `zigzag-dse` package) is an analytical model: it searches the orders of a product's loops and the memory
levels that hold its operands, and counts cycles and energy of the best. What it is given says as nearly as it can what
SCALE-Sim is given, so that the two can be compared:

================  =====================================================================================================
cells             rows x columns, as stated; rows of the left operand run along the rows, columns of the right one
                  along the columns. The sums over k stay in their cell (*output stationary*, C innermost): the order
                  of `softnum.MadUnit`. ``systolic_dimensions``: the last results leave a cycle a cell later.
memories          one accumulator in each cell, so that the next sums wait until the last have left; one SRAM for each
                  operand and the result, as stated, half of it the double buffer; DRAM without limit, which has the
                  stated bandwidth to *each* of the three
words             `bits` of a `Gemm` (the wider operand) for operands and results; sums are as wide as they need be,
                  and never leave the cells before they are results
SRAM to cells     a word for each row, for each column, and back for each column, in each cycle
energy            a multiplication, an addition in 32 bits, and a bit of SRAM and DRAM by the cited 45 nm table
                  (`energy_of`); cells' registers and wires cost nothing, because the table has none
================  =====================================================================================================

ZigZag counts whole bits. Where a word's are not whole (8.25 of mxfp8), words have the whole bits, and sizes, bandwidths
and energies are those of as many words. Bandwidths are rounded down to whole bits a cycle.

The search is for latency (ties by energy), with ZigZag's own limits. Products with a pattern N:M are refused: ZigZag
knows none. Input files are JSON, which YAML contains. ZigZag counts accesses in whole widths of a port and drops the
rest of the last, so that the energy of a product of a few words can lack an access of each memory.

ZigZag: L. Mei, P. Houshmand, V. Jain, S. Giraldo, M. Verhelst, "ZigZag: Enlarging Joint Architecture-Mapping Design
Space Exploration for DNN Accelerators", IEEE Transactions on Computers 70(8), 2021.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from softnum.tta.workloads.energy_tables import dram_energy, mac_picojoules, sram_energy
from softnum.tta.workloads.hardware import Gemm, Hardware

__all__ = ["ZIGZAG_ASSUMPTIONS", "ZigZagMachine", "zigzag_files", "zigzag_machine"]

#: What times and energies of ZigZag rest on; listed with every result.
ZIGZAG_ASSUMPTIONS = (
    "an analytical model: the best of the loop orders that ZigZag tries, with sums kept in their cells",
    "GEMMs run one after another; each reads its operands from memory and writes its result back (no reuse between)",
    "the stated bandwidth is available to each of the three SRAMs at once; half of each SRAM is the double buffer",
    "one word size for a GEMM: the wider operand format, for results too; a cell holds one sum, which has to leave "
    "before the next begins",
    "energy: multiplications, additions and bits of SRAM and DRAM by the 45 nm table of M. Horowitz, ISSCC 2014 (DRAM "
    "at its lower figure; 32-bit sums); registers, wires, leakage and clocks cost nothing",
)

_DRAM_BITS = 10**15  # without limit


@dataclass(frozen=True)
class ZigZagMachine:
    """The array as ZigZag sees it: in bits, with the energy of each.

    Parameters
    ----------
    array : (int, int)
        Rows and columns.
    bits : int
        Of a word.
    sram_bits : (int, int, int)
        Of left operand, right operand and result.
    bits_per_cycle : int
        That each SRAM exchanges with memory.
    mac_pj : float
        Energy of a multiplication and an addition; 0 where it is not known.
    sram_pj : (float, float, float)
        Energy of a bit read from or written to each SRAM.
    dram_pj : float
        Energy of a bit read from or written to memory.

    Examples
    --------
    >>> machine = ZigZagMachine((32, 32), 16, (524288,) * 3, 128, 1.5, (0.5, 0.5, 0.5), 20.3125)
    >>> ZigZagMachine.from_table(machine.to_table()) == machine, machine.slug
    (True, 'os-32x32-16b-bw128-817d26b2')
    """

    array: tuple[int, int]
    bits: int
    sram_bits: tuple[int, int, int]
    bits_per_cycle: int
    mac_pj: float
    sram_pj: tuple[float, float, float]
    dram_pj: float

    @property
    def slug(self) -> str:
        """A file name that tells the machine."""
        digest = hashlib.sha256(json.dumps(self.to_table()).encode("utf-8")).hexdigest()[:8]
        return f"os-{self.array[0]}x{self.array[1]}-{self.bits}b-bw{self.bits_per_cycle}-{digest}"

    def to_table(self) -> dict[str, Any]:
        """The machine as plain data."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> ZigZagMachine:
        """The machine of such a table."""
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})


def zigzag_machine(hardware: Hardware, gemm: Gemm) -> ZigZagMachine:
    """Convert a design's hardware to ZigZag's bits, with the energies of a GEMM's formats.

    Parameters
    ----------
    hardware : Hardware
    gemm : Gemm
        Its word size and formats.

    Returns
    -------
    ZigZagMachine

    Raises
    ------
    ValueError
        If the GEMM has a pattern, or a word does not fit SRAM twice or the bandwidth.

    Examples
    --------
    >>> from softnum.tta import load_reports
    >>> point = load_reports().designs["c-wang-fp8"]
    >>> machine = zigzag_machine(point.hardware, point.gemms[0])
    >>> machine.bits, machine.bits_per_cycle, machine.mac_pj
    (16, 128, 2.0)
    """
    where = f"the {gemm.phase} GEMM of {gemm.layer!r}"
    if gemm.pattern is not None:
        raise ValueError(f"{where} has the pattern {gemm.pattern}, which ZigZag cannot simulate; use SCALE-Sim")
    if hardware.cores != (1, 1):
        raise ValueError(
            f"{where} is to run on cores = {list(hardware.cores)}; of ZigZag only one core can be simulated"
        )
    word = Fraction(gemm.bits)
    bits = math.floor(word)
    scale = bits / word  # of as many words, of whole bits
    sram = tuple(math.floor(size * 8 * scale) for size in hardware.sram_bytes)
    bandwidth = math.floor(hardware.bytes_per_step * 8 * scale)
    if bits < 1 or bandwidth < bits or min(sram) < 2 * max(bits, 1):
        raise ValueError(
            f"{where}: words of {gemm.bits:g} bits need at least one word per cycle and two in each SRAM; the hardware "
            f"has {float(hardware.bytes_per_step):g} bytes per cycle and SRAM of {min(hardware.sram_bytes)} bytes"
        )
    mac = mac_picojoules(gemm, hardware.unit)
    wider = float(1 / scale)
    return ZigZagMachine(
        hardware.array,
        bits,
        sram,
        bandwidth,
        0.0 if mac is None else mac,
        tuple(sram_energy(size)[0] * wider for size in hardware.sram_bytes),
        dram_energy()[0] * wider,
    )


def _port(kind: str, number: int, least: int, most: int, *flows: str) -> dict[str, Any]:
    name = {"read": "r", "write": "w", "read_write": "rw"}[kind]
    return {
        "name": f"{name}_port_{number}",
        "type": kind,
        "bandwidth_min": min(least, most),
        "bandwidth_max": most,
        "allocation": list(flows),
    }


def _memory(
    size: int, operands: list[str], ports: list[dict[str, Any]], read: float, write: float, served: bool = True
) -> dict[str, Any]:
    return {
        "size": size,
        "r_cost": read,
        "w_cost": write,
        "area": 0.0,
        "latency": 1,
        "operands": operands,
        "ports": ports,
        "served_dimensions": ["D1", "D2"] if served else [],
        "force_double_buffering": served,
    }


def _accelerator(machine: ZigZagMachine) -> dict[str, Any]:
    rows, columns = machine.array
    bits, link = machine.bits, machine.bits_per_cycle
    # a register of one word: ZigZag takes a wider one for two, and lets sums leave during the next
    memories = {
        "accumulator": _memory(
            bits,
            ["O"],
            [
                _port(kind, number, bits, bits, f"O, {flow}")
                for kind, number, flow in (("read", 1, "tl"), ("read", 2, "th"), ("write", 1, "fh"), ("write", 2, "fl"))
            ],
            0.0,
            0.0,
            served=False,
        )
    }
    # an access moves as many bits as its port is wide, and is priced by that: reads of one width, writes of one width
    for name, operand, words, size, picojoules in zip(
        ("ifmap", "filter"), ("I1", "I2"), machine.array, machine.sram_bits, machine.sram_pj, strict=False
    ):
        ports = [
            _port("read", 1, bits, words * bits, f"{operand}, tl"),
            _port("write", 1, bits, link, f"{operand}, fh"),
        ]
        memories[name] = _memory(size, [operand], ports, picojoules * words * bits, picojoules * link)
    ports = [
        _port("read", 1, bits, link, "O, th", "O, tl"),
        _port("write", 1, bits, columns * bits, "O, fl", "O, fh"),
    ]
    picojoules = machine.sram_pj[2]
    memories["ofmap"] = _memory(machine.sram_bits[2], ["O"], ports, picojoules * link, picojoules * columns * bits)
    ports = [
        _port("read_write", 1, bits, link, "I1, fh", "I1, tl"),
        _port("read_write", 2, bits, link, "I2, fh", "I2, tl"),
        _port("read_write", 3, bits, link, "O, fh", "O, tl", "O, fl", "O, th"),
    ]
    cost = machine.dram_pj * link
    memories["dram"] = {**_memory(_DRAM_BITS, ["I1", "I2", "O"], ports, cost, cost), "force_double_buffering": False}
    return {
        "name": "softnum",
        "memories": memories,
        "operational_array": {
            "unit_energy": machine.mac_pj,
            "unit_area": 1.0,
            "dimensions": ["D1", "D2"],
            "sizes": [rows, columns],
            "systolic_dimensions": ["D1", "D2"],
        },
    }


def zigzag_files(machine: ZigZagMachine, shape: tuple[int, int, int]) -> dict[str, str]:
    """ZigZag's three input files for one product: names and texts.

    Parameters
    ----------
    machine : ZigZagMachine
    shape : (int, int, int)
        (M, N, K).

    Returns
    -------
    dict of str to str
        ``accelerator.yaml``, ``workload.yaml`` and ``mapping.yaml``.

    Examples
    --------
    >>> machine = ZigZagMachine((32, 32), 16, (524288,) * 3, 128, 1.5, (0.5, 0.5, 0.5), 20.3125)
    >>> json.loads(zigzag_files(machine, (32, 128, 64))["workload.yaml"])[0]["loop_sizes"]
    [64, 32, 128]
    """
    m, n, k = shape
    rows, columns = machine.array
    layer = {
        "id": 0,
        "name": "gemm",
        "operator_type": "Gemm",
        "equation": "O[d][k]+=I[d][c]*W[c][k]",
        "dimension_relations": [],
        "loop_dims": ["C", "D", "K"],
        "loop_sizes": [k, m, n],
        "operand_precision": {"I": machine.bits, "W": machine.bits, "O": machine.bits, "O_final": machine.bits},
        "operand_source": {"I": 0, "W": 0},
    }
    mapping = {
        "name": "default",
        "spatial_mapping": {"D1": [f"D, {rows}"], "D2": [f"K, {columns}"]},
        **({"temporal_ordering": [["C", "*"]]} if k > 1 else {}),  # of a loop that is none ZigZag finds no order
        "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
    }
    tables = {"accelerator.yaml": _accelerator(machine), "workload.yaml": [layer], "mapping.yaml": [mapping]}
    return {name: json.dumps(table, indent=1) + "\n" for name, table in tables.items()}
