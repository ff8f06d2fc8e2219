"""What one training iteration consists of: the one table that time, memory, network and energy are computed from.

A network that softnum trains becomes a workload (`softnum.train.workload`), and so does one that only exists as a list
of layers (`softnum.tta.architectures`). Whatever asks a question of an iteration reads this and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from softnum.tta.quantities import InputTypeError, check_keys, positive_int, positive_number
from softnum.tta.workloads.hardware import PASSES, DesignPoint, Gemm

__all__ = ["STAGES", "TENSOR_CLASSES", "Operation", "StoredTensor", "Workload", "workload_of_gemms"]

#: Stages of an iteration: the passes of a GEMM, and the optimiser's update.
STAGES = (*PASSES, "update")

#: What memory holds during training: the classes of the TBD suite's memory profiler, with gradient maps apart.
TENSOR_CLASSES = ("weights", "weight_gradients", "feature_maps", "gradient_maps", "optimiser_state", "workspace")


def _whole(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputTypeError(f"{what} must be an integer, got {value!r}")
    if value < 0:
        raise ValueError(f"{what} must not be negative, got {value}")
    return value


def _rows(table: Mapping[str, Any], key: str, where: str) -> list[Any] | tuple[Any, ...]:
    rows = table.get(key, ())
    if not isinstance(rows, (list, tuple)):
        raise InputTypeError(f"{where}: {key} must be a list, got {rows!r}")
    return rows


@dataclass(frozen=True)
class Operation:
    """One operation of an iteration.

    Parameters
    ----------
    layer : str
        Name of its layer.
    stage : str
        "forward", "backward_data", "backward_weight" or "update".
    kind : str
        "gemm" for a matrix product, else what it does: "relu", "batch_norm", "pooling", "softmax", "sgd", ...
    flops : int
        Floating-point operations; a multiplication and an addition are two.
    bytes_read, bytes_written : int
        Bytes moved between memory and the processor if every operand is read once and every result written once.
    formats : tuple of str
        Names of the operands' formats; the widest decides a device's peak.
    gemm : Gemm or None
        Its matrix product; None where there is none.

    Examples
    --------
    >>> Operation("relu1", "forward", "relu", flops=4096, bytes_read=16384, bytes_written=16384).intensity
    0.125
    """

    layer: str
    stage: str
    kind: str
    flops: int
    bytes_read: int
    bytes_written: int
    formats: tuple[str, ...] = ()
    gemm: Gemm | None = None

    def __post_init__(self) -> None:
        where = f"operation {self.kind!r} of layer {self.layer!r}"
        if self.stage not in STAGES:
            raise ValueError(f"{where} has the unknown stage {self.stage!r}; stages: {', '.join(STAGES)}")
        for what in ("flops", "bytes_read", "bytes_written"):
            _whole(getattr(self, what), f"{where}: {what}")

    @property
    def bytes(self) -> int:
        """Bytes moved."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """Arithmetic intensity, FLOPs per byte; infinite if nothing is moved."""
        return self.flops / self.bytes if self.bytes else float("inf")

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str = "operation") -> Operation:
        """Read what `to_table` returns."""
        check_keys(
            table, ["layer", "stage", "kind", "flops", "bytes_read", "bytes_written"], ["formats", "gemm"], where
        )
        gemm, formats = table.get("gemm"), tuple(_rows(table, "formats", where))
        if not all(isinstance(name, str) for name in formats):
            raise InputTypeError(f"{where}: formats must be names, got {list(formats)}")
        return cls(
            str(table["layer"]),
            table["stage"],
            str(table["kind"]),
            *(_whole(table[key], f"{where} {key}") for key in ("flops", "bytes_read", "bytes_written")),
            formats,
            None if gemm is None else Gemm.from_table(gemm, f"{where}: GEMM"),
        )

    def to_table(self) -> dict[str, Any]:
        """Return the table that `from_table` reads back, with plain JSON values."""
        return {
            "layer": self.layer,
            "stage": self.stage,
            "kind": self.kind,
            "flops": self.flops,
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "formats": list(self.formats),
            **({} if self.gemm is None else {"gemm": self.gemm.to_table()}),
        }


@dataclass(frozen=True)
class StoredTensor:
    """A tensor that memory holds during training.

    Parameters
    ----------
    layer : str
        The layer it belongs to.
    name : str
        What it is: "weight", "bias", "output", "momentum", ...
    tensor_class : str
        One of `TENSOR_CLASSES`.
    elements : int
    bits : int or float
        Bits of one element; of a block format with its share of the scale of a full block.
    format : str
        Name of its format.
    per_sample : bool
        Whether the number of elements grows with the batch (as feature maps do); `elements` is of the whole batch.
    stage : str
        The stage that writes it.
    live : (int, int) or None
        The first and the last of a workload's operations during which it is held, by their numbers. None where nothing
        but its class says how long it is held: `softnum.tta.memory_of` has the rule of each class.
    shape : tuple of int or None
        Of a parameter's gradient, where it is known: what compressions of gradients go by.

    Examples
    --------
    >>> StoredTensor("fc1", "weight", "weights", 8192, 8, "e5m2").bytes
    8192
    """

    layer: str
    name: str
    tensor_class: str
    elements: int
    bits: int | float
    format: str = ""
    per_sample: bool = False
    stage: str = "forward"
    live: tuple[int, int] | None = None
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        where = f"tensor {self.name!r} of layer {self.layer!r}"
        if self.tensor_class not in TENSOR_CLASSES:
            raise ValueError(f"{where} has the unknown class {self.tensor_class!r}; one of {', '.join(TENSOR_CLASSES)}")
        if self.stage not in STAGES:
            raise ValueError(f"{where} has the unknown stage {self.stage!r}; stages: {', '.join(STAGES)}")
        _whole(self.elements, f"{where}: elements")
        positive_number(self.bits, f"{where}: bits")
        if self.shape is not None and math.prod(_whole(n, f"{where}: shape") for n in self.shape) != self.elements:
            raise ValueError(f"{where} has {self.elements} elements, and its shape {list(self.shape)} others")
        if self.live is not None:
            first, last = (_whole(number, f"{where}: live") for number in self.live)
            if first > last:
                raise ValueError(f"{where}: live must be the first and the last operation, got {list(self.live)}")

    @property
    def bytes(self) -> int:
        """Bytes, rounded up to whole ones."""
        return -int(-self.elements * self.bits // 8)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str = "tensor") -> StoredTensor:
        """Read what `to_table` returns."""
        required = ["layer", "name", "class", "elements", "bits"]
        check_keys(table, required, ["format", "per_sample", "stage", "live", "shape"], where)
        live = table.get("live")
        if live is not None and (not isinstance(live, (list, tuple)) or len(live) != 2):
            raise InputTypeError(f"{where} live must be [first, last], the numbers of operations, got {live!r}")
        shape = table.get("shape")
        if shape is not None and (not isinstance(shape, (list, tuple)) or not shape):
            raise InputTypeError(f"{where}: shape must be a list of sizes, got {shape!r}")
        per_sample = table.get("per_sample", False)
        if not isinstance(per_sample, bool):
            raise InputTypeError(f"{where}: per_sample must be true or false, got {per_sample!r}")
        return cls(
            str(table["layer"]),
            str(table["name"]),
            table["class"],
            _whole(table["elements"], f"{where} elements"),
            table["bits"],
            str(table.get("format", "")),
            per_sample,
            table.get("stage", "forward"),
            None if live is None else tuple(live),
            None if shape is None else tuple(shape),
        )

    def to_table(self) -> dict[str, Any]:
        """Return the table that `from_table` reads back, with plain JSON values."""
        return {
            "layer": self.layer,
            "name": self.name,
            "class": self.tensor_class,
            "elements": self.elements,
            "bits": self.bits,
            "format": self.format,
            "per_sample": self.per_sample,
            "stage": self.stage,
            **({} if self.live is None else {"live": list(self.live)}),
            **({} if self.shape is None else {"shape": list(self.shape)}),
        }


@dataclass(frozen=True)
class Workload:
    """One training iteration of one network under one arithmetic.

    Parameters
    ----------
    network : str
        Name of the network.
    design : str
        Name of the arithmetic.
    batch : int
        Samples of the iteration.
    operations : tuple of Operation
        In the order in which they run: forward, backward (last layer first), update.
    tensors : tuple of StoredTensor
        The tensors held in memory.

    Examples
    --------
    >>> work = Workload("two", "float32", 32, (Operation("fc", "forward", "gemm", 2 * 32 * 8 * 4, 1152, 512),))
    >>> work.flops, Workload.from_table(work.to_table()) == work
    (2048, True)
    """

    network: str
    design: str
    batch: int
    operations: tuple[Operation, ...] = field(repr=False)
    tensors: tuple[StoredTensor, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        for tensor in self.tensors:
            if tensor.live is not None and tensor.live[1] >= len(self.operations):
                raise ValueError(
                    f"tensor {tensor.name!r} of layer {tensor.layer!r} lives until operation {tensor.live[1]}; there "
                    f"are {len(self.operations)}, numbered from 0"
                )

    @property
    def gemms(self) -> tuple[Gemm, ...]:
        """Every matrix product, in order."""
        return tuple(operation.gemm for operation in self.operations if operation.gemm is not None)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in order of first appearance."""
        return tuple(dict.fromkeys(operation.layer for operation in self.operations))

    @property
    def flops(self) -> int:
        """Floating-point operations of the iteration."""
        return sum(operation.flops for operation in self.operations)

    @property
    def bytes(self) -> int:
        """Bytes that the iteration moves."""
        return sum(operation.bytes for operation in self.operations)

    @property
    def parameters(self) -> int:
        """Trained numbers."""
        return sum(tensor.elements for tensor in self.tensors if tensor.tensor_class == "weights")

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str = "workload") -> Workload:
        """Read what `to_table` returns.

        Raises
        ------
        TypeError, ValueError
            If a key is missing, unknown, or its value is not of its form.
        """
        check_keys(table, ["network", "design", "batch", "operations"], ["tensors"], where)
        operations, tensors = (_rows(table, key, where) for key in ("operations", "tensors"))
        return cls(
            str(table["network"]),
            str(table["design"]),
            positive_int(table["batch"], f"{where} batch"),
            tuple(Operation.from_table(row, f"{where}: operation {i}") for i, row in enumerate(operations)),
            tuple(StoredTensor.from_table(row, f"{where}: tensor {i}") for i, row in enumerate(tensors)),
        )

    def to_table(self) -> dict[str, Any]:
        """Return the table that `from_table` reads back, with plain JSON values."""
        return {
            "network": self.network,
            "design": self.design,
            "batch": self.batch,
            "operations": [operation.to_table() for operation in self.operations],
            "tensors": [tensor.to_table() for tensor in self.tensors],
        }


def _whole_bytes(elements: int, bits: int | float) -> int:
    return math.ceil(elements * Fraction(bits) / 8)


def workload_of_gemms(point: DesignPoint, batch: int, network: str = "") -> Workload:
    """A workload that contains only the matrix products of a design, for when nothing else of an iteration is known.

    Parameters
    ----------
    point : DesignPoint
        A design and its GEMMs. Each operand is read once and each result written once, all of them in words of the
        GEMM's `bits`.
    batch : int
        Samples of the iteration.
    network : str
        Name of the network.

    Returns
    -------
    Workload
        One operation a GEMM. It has no other operations and no tensors, so times computed from it leave those out.

    Examples
    --------
    >>> from softnum.tta import load_reports
    >>> work = workload_of_gemms(load_reports().designs["d-e6m3-long"], 256, "mlp")
    >>> work.operations[0].gemm.shape, work.operations[0].flops, work.operations[0].bytes_read
    ((256, 128, 64), 4194304, 24576)
    """
    operations = []
    for gemm in point.gemms:
        m, n, k = gemm.shape
        read = _whole_bytes(m * k, gemm.bits) + _whole_bytes(k * n, gemm.bits)
        facts = (2 * m * n * k * gemm.count, read * gemm.count, _whole_bytes(m * n, gemm.bits) * gemm.count)
        operations.append(Operation(gemm.layer, gemm.phase, "gemm", *facts, gemm.formats, gemm))
    return Workload(network, point.name, positive_int(batch, "batch"), tuple(operations))
