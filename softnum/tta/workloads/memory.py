"""How much memory a training iteration takes: by class of tensor, by layer, and over time.

The classes are those of the TBD suite's memory profiler (H. Zhu et al., "TBD: Benchmarking and Analyzing Deep Neural
Network Training", 2018, section 3.4.3), with gradient maps apart from feature maps and the optimiser's state named as
such. Everything is counted from a `Workload`: no device and no allocator is asked, so there is no fragmentation in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any

from softnum.tta.quantities import positive_int
from softnum.tta.workloads.operations import TENSOR_CLASSES, StoredTensor, Workload

__all__ = ["Memory", "largest_batch", "memory_of", "memory_table"]

_BACKWARD = ("backward_data", "backward_weight")


@dataclass(frozen=True)
class Memory:
    """The memory of one training iteration, in bytes.

    Parameters
    ----------
    network, design : str
    batch : int
        As the workload's.
    timeline : tuple of int
        Bytes held during each operation.
    peak_operation : int
        The operation during which most is held, the first of several; a number in the workload's list.
    at_peak : Mapping
        Class -> bytes held then; they add up to the peak.
    allocated : Mapping
        Class -> bytes of all its tensors, whether or not they are held at one time: what is needed if no memory is used
        twice in an iteration.
    layers : Mapping
        Layer -> class -> bytes held at the peak, of classes that are.

    Examples
    --------
    >>> from softnum.tta import Operation, Workload
    >>> from softnum.tta.workloads import StoredTensor
    >>> gemm = Operation("fc", "forward", "gemm", 256, 160, 64)
    >>> tensors = StoredTensor("fc", "weight", "weights", 32, 32), StoredTensor("fc", "x", "feature_maps", 8, 32)
    >>> memory = memory_of(Workload("one", "float32", 4, (gemm,), tensors))
    >>> memory.peak, memory.at_peak["weights"], memory.share("feature_maps")
    (160, 128, 0.2)
    """

    network: str
    design: str
    batch: int
    timeline: tuple[int, ...] = field(repr=False)
    peak_operation: int
    at_peak: Mapping[str, int]
    allocated: Mapping[str, int]
    layers: Mapping[str, Mapping[str, int]] = field(repr=False)

    @property
    def peak(self) -> int:
        """The most bytes held at one time."""
        return sum(self.at_peak.values())

    @property
    def total(self) -> int:
        """Bytes of all tensors."""
        return sum(self.allocated.values())

    def share(self, tensor_class: str) -> float:
        """Of a class in the peak, from 0 to 1."""
        return self.at_peak[tensor_class] / self.peak

    def dominant(self, count: int = 5) -> list[tuple[str, int]]:
        """The layers that hold most at the peak, with their bytes; of equals the first comes first."""
        rows = [(layer, sum(classes.values())) for layer, classes in self.layers.items()]
        return sorted(rows, key=lambda row: -row[1])[:count]

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "network": self.network,
            "design": self.design,
            "batch": self.batch,
            "peak": self.peak,
            "peak_operation": self.peak_operation,
            "total": self.total,
            "at_peak": dict(self.at_peak),
            "allocated": dict(self.allocated),
            "layers": {layer: dict(classes) for layer, classes in self.layers.items()},
            "timeline": list(self.timeline),
        }


def memory_of(workload: Workload, *, implicit: bool = False) -> Memory:
    """Count the memory of an iteration.

    A tensor is held during the operations that its ``live`` names. One without is held, by its class:

    - weights, optimiser state: always;
    - a weight gradient: from its layer's first backward_weight operation to the end;
    - a feature map: from its layer's first forward operation to its layer's last backward one, or the last forward one
      if there is none;
    - a gradient map: from its layer's first backward operation (of the tensor's stage) to the last backward one of the
      layer that runs backwards after it;
    - workspace: from its layer's first operation of the tensor's stage to its last.

    A layer's operations are those of its name, and of its parts: "lstm.hidden" is a part of "lstm". A tensor whose
    layer has no operation that would say so is held always.

    Parameters
    ----------
    workload : Workload
    implicit : bool
        Whether convolutions do without a copy of their unfolded operand, as implicit GEMMs do: tensors of the class
        workspace with the name "unfolded" are left out.

    Returns
    -------
    Memory

    Raises
    ------
    ValueError
        If the workload lists no tensors, or no operations.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> memory = memory_of(workload("lenet5", load_design("c-wang-fp8"), 32))
    >>> memory.peak, memory.at_peak["feature_maps"], memory.dominant(1)
    (372090, 9472, [('conv2', 231200)])
    """
    tensors, spans, count = _held(workload, implicit)
    classes = {name: [0] * (count + 1) for name in TENSOR_CLASSES}
    for tensor, (first, last) in zip(tensors, spans, strict=True):
        classes[tensor.tensor_class][first] += tensor.bytes
        classes[tensor.tensor_class][last + 1] -= tensor.bytes
    lines = {name: list(accumulate(steps[:count])) for name, steps in classes.items()}
    timeline = tuple(map(sum, zip(*lines.values(), strict=True)))
    top = timeline.index(max(timeline))
    allocated = dict.fromkeys(TENSOR_CLASSES, 0)
    layers: dict[str, dict[str, int]] = {layer: {} for layer in workload.layers}
    for tensor, (first, last) in zip(tensors, spans, strict=True):
        allocated[tensor.tensor_class] += tensor.bytes
        own = layers.setdefault(tensor.layer, {})
        if first <= top <= last:
            own[tensor.tensor_class] = own.get(tensor.tensor_class, 0) + tensor.bytes
    at_peak = {name: line[top] for name, line in lines.items()}
    return Memory(workload.network, workload.design, workload.batch, timeline, top, at_peak, allocated, layers)


def _held(workload: Workload, implicit: bool) -> tuple[tuple[StoredTensor, ...], list[tuple[int, int]], int]:
    """The tensors, the operations during which each is held, and how many operations there are."""
    what = f"workload {workload.network!r} of design {workload.design!r}"
    if not workload.tensors:
        raise ValueError(f"{what} lists no tensors, so its memory is not known; make it with softnum.train.workload")
    if not workload.operations:
        raise ValueError(f"{what} lists no operations, so that nothing says how long a tensor is held")
    spans = _Spans(workload)
    unfolded = ("workspace", "unfolded") if implicit else ()
    tensors = tuple(tensor for tensor in workload.tensors if (tensor.tensor_class, tensor.name) != unfolded)
    return tensors, [tensor.live or spans.of(tensor) for tensor in tensors], len(workload.operations)


class _Spans:
    """How long tensors are held of which nothing but the class says so."""

    def __init__(self, workload: Workload) -> None:
        self._end = len(workload.operations) - 1
        self._numbers: dict[str, dict[str, tuple[int, int]]] = {}  # layer -> stage -> first and last operation
        for number, operation in enumerate(workload.operations):
            parts = operation.layer.split(".")
            for layer in (".".join(parts[:size]) for size in range(1, len(parts) + 1)):
                stages = self._numbers.setdefault(layer, {})
                stages[operation.stage] = (stages.get(operation.stage, (number,))[0], number)
        owners = {tensor.layer for tensor in workload.tensors}
        backwards = {layer: self._stages(layer, _BACKWARD) for layer in self._numbers if layer in owners}
        order = sorted((span[0], layer) for layer, span in backwards.items() if span)
        following = [layer for _, layer in order]
        self._after = {
            layer: max(backwards[layer][1], backwards[other][1])
            for layer, other in zip(following, [*following[1:], *following[-1:]], strict=True)
        }

    def _stages(self, layer: str, stages) -> tuple[int, int] | None:
        own = self._numbers.get(layer, {})
        spans = [own[stage] for stage in stages if stage in own]
        return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None

    def of(self, tensor: StoredTensor) -> tuple[int, int]:
        layer, kind = tensor.layer, tensor.tensor_class
        if kind == "weight_gradients":
            made = self._stages(layer, ["backward_weight"])
            return (made[0], self._end) if made else (0, self._end)
        if kind == "feature_maps":
            made, used = self._stages(layer, ["forward"]), self._stages(layer, _BACKWARD)
            return (made[0], (used or made)[1]) if made else (0, self._end)
        if kind == "gradient_maps":
            made = self._stages(layer, [tensor.stage]) or self._stages(layer, _BACKWARD)
            return (made[0], self._after[layer]) if made and layer in self._after else (0, self._end)
        if kind == "workspace":
            return self._stages(layer, [tensor.stage]) or (0, self._end)
        return 0, self._end


def memory_table(workloads: Iterable[Workload], *, implicit: bool = False) -> list[dict[str, Any]]:
    """The memory of several workloads, a row each: formats against batch sizes.

    Parameters
    ----------
    workloads : iterable of Workload
    implicit : bool
        As of `memory_of`.

    Returns
    -------
    list of dict
        ``network``, ``design``, ``batch``; bytes of each class at the peak; ``peak``, ``total``; ``per_sample``: the
        peak over the batch.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> rows = memory_table(workload("lenet5", load_design(name), 32) for name in ("a-float32", "c-wang-fp8"))
    >>> [(row["design"], row["feature_maps"], row["peak"]) for row in rows]
    [('a-float32', 22784, 1133384), ('c-wang-fp8', 9472, 372090)]
    """
    rows = []
    for workload in workloads:
        memory = memory_of(workload, implicit=implicit)
        rows.append(
            {
                "network": memory.network, "design": memory.design, "batch": memory.batch, **memory.at_peak,
                "peak": memory.peak, "total": memory.total, "per_sample": memory.peak / memory.batch,
            }
        )  # fmt: skip
    return rows


def largest_batch(small: Workload, large: Workload, capacity: int, *, step: int = 1, implicit: bool = False) -> int:
    """The largest batch whose peak fits into a memory.

    Every tensor's size is a constant plus a share for each sample, which two batch sizes tell.

    Parameters
    ----------
    small, large : Workload
        The same network and design at two batch sizes.
    capacity : int
        Bytes.
    step : int
        Of what the batch has to be a multiple.
    implicit : bool
        As of `memory_of`.

    Returns
    -------
    int
        0 if not even `step` samples fit.

    Raises
    ------
    ValueError
        If the workloads do not consist of the same operations and tensors, a tensor's size is no constant plus a share
        for each sample, or nothing grows with the batch.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> design = load_design("c-wang-fp8")
    >>> largest_batch(workload("lenet5", design, 32), workload("lenet5", design, 64), 10**6)
    119
    """
    positive_int(capacity, "capacity")
    positive_int(step, "step")
    if small.batch == large.batch:
        raise ValueError(
            f"two different batch sizes are needed to find how memory grows; both workloads have batch {small.batch}"
        )
    if (small.network, small.design) != (large.network, large.design):
        raise ValueError(
            f"both workloads must be of one network and design, got {small.network!r} of {small.design!r} and "
            f"{large.network!r} of {large.design!r}"
        )
    (ours, spans, count), (theirs, other_spans, _) = _held(small, implicit), _held(large, implicit)
    alike = [(a.layer, a.name, a.bits) for a in ours] == [(b.layer, b.name, b.bits) for b in theirs]
    if not alike or spans != other_spans:
        raise ValueError(
            f"{small.network!r} has other tensors at batch {small.batch} than at batch {large.batch}; ask memory_of of "
            "each batch"
        )
    rows = []  # a constant, a share for each sample, bits, first and last operation
    for a, b, (first, last) in zip(ours, theirs, spans, strict=True):
        share = Fraction(b.elements - a.elements, large.batch - small.batch)
        constant = a.elements - share * small.batch
        if share.denominator != 1 or constant < 0 or share < 0:
            raise ValueError(
                f"tensor {a.name!r} of layer {a.layer!r} has {a.elements} elements at batch {small.batch} and "
                f"{b.elements} at {large.batch}: not a number of its own plus one for each sample"
            )
        rows.append((int(constant), int(share), a.bits, first, last))
    if not any(share for _, share, *_ in rows):
        raise ValueError(f"no tensor of {small.network!r} grows with the batch, so that no batch is the largest")

    def fits(batch: int) -> bool:
        steps = [0] * (count + 1)
        for constant, share, bits, first, last in rows:
            size = -int(-(constant + share * batch) * bits // 8)
            steps[first] += size
            steps[last + 1] -= size
        return max(accumulate(steps[:count])) <= capacity

    low, high = 0, 1
    while fits(high * step):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle * step) else (low, middle)
    return low * step
