"""What one training iteration computes, operation by operation, and where it rounds: found by running it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.runtime.columns import text_table
from softnum.runtime.plain import plain
from softnum.train.designs.design import Design, RoleRounding
from softnum.train.designs.objects import describe_format
from softnum.train.designs.unit_specs import describe_unit
from softnum.train.engine.watch import BINARY64, CARRIER, EXACT, Event, is_array, watching
from softnum.train.recipes import Scaled
from softnum.train.runs.loop import Run
from softnum.train.runs.settings import Settings

__all__ = ["Explanation", "Step", "StepTrace", "explain"]

_FLOPS = {"fma": 2, "axpy": 2}
#: methods that round numbers as they are; what they are called
_ROUND = {
    **dict.fromkeys(("quantize", "quantize_blocks", "quantize_flat", "quantize_scaled"), "round"),
    "unchanged": "keep",
}  # fmt: skip
#: no arithmetic, and nothing that moves
_SILENT = {"all_finite", "array", "constant", "double", "kept_of_groups", "kept_of_tensor", "trusted", "zeros"}


@dataclass(frozen=True)
class Step:
    """One operation of an iteration.

    Attributes
    ----------
    operation : str
        "matmul", "round", "keep" (values that are of the role's format already), "prune 2:4" (or another sparsity), an
        operation of softnum, or a method of `softnum.train.engine.backend.NumpyBackend`.
    layer, role : str or None
        Of a rounding or pruning; of a product in a unit, the pass ("forward"), or "start" for an accumulator's initial
        value.
    format : str
        Of the result.
    rounding : str
        How the result is rounded; "exact" of what moves or selects values; of a product, the unit's mode.
    unit : dict or None
        Of a product, as a record describes it.
    operands : tuple of (str, tuple)
        Format and shape of each array that goes in.
    shape : tuple of int
        Of the result.
    flops : int
        Additions and multiplications of a product; one an element of other arithmetic, two of a multiply-add; none of
        rounding and moving.
    bytes : float
        Of operands and result, each once, in the bits of their formats, scales of blocks too; none of what is kept.
    """

    operation: str
    layer: str | None
    role: str | None
    format: str
    rounding: str
    unit: dict | None
    operands: tuple[tuple[str, tuple[int, ...]], ...]
    shape: tuple[int, ...]
    flops: int
    bytes: float


@dataclass(frozen=True)
class Explanation:
    """The steps of an iteration, in the order in which they are computed; print it to see them as a table."""

    steps: tuple[Step, ...]

    @property
    def binary64(self) -> list[Step]:
        """What is computed in binary64 whatever the design says: the loss, its scale, norms."""
        return [step for step in self.steps if step.rounding == "binary64"]

    @property
    def flops(self) -> int:
        """Of all steps."""
        return sum(step.flops for step in self.steps)

    @property
    def bytes(self) -> float:
        """Of all steps."""
        return sum(step.bytes for step in self.steps)

    def to_rows(self) -> list[dict]:
        """The steps as plain data."""
        return [asdict(step) for step in self.steps]

    def __str__(self) -> str:
        rows = [("layer", "role", "operation", "operands", "result", "rounding", "flops", "bytes")]
        for step in self.steps:
            operands = ", ".join(f"{_shape(shape)} {name}" for name, shape in step.operands)
            rows.append(
                (
                    step.layer or "-", step.role or "-", step.operation, operands,
                    f"{_shape(step.shape)} {step.format}", step.rounding, f"{step.flops:,}", f"{step.bytes:,.0f}",
                )
            )  # fmt: skip
        return "\n".join([text_table(rows, numbers=2), "", self._summary()])

    def _summary(self) -> str:
        names = dict.fromkeys(step.operation for step in self.binary64)
        carried = dict.fromkeys(step.operation for step in self.steps if step.rounding == "carrier")
        lines = [
            f"{len(self.steps)} steps, {self.flops:,} flops, {self.bytes:,.0f} bytes",
            f"in binary64 whatever the design says: {', '.join(names) or 'nothing'}",
        ]
        if carried:
            lines.append(f"rounded to what carries values, binary32 or binary64: {', '.join(carried)}")
        return "\n".join(lines)


@plain
def explain(model: str | Settings, design: Design, *, seed: int = 1) -> Explanation:
    """List every tensor and operation of a network's training iteration under a design.

    It is the first iteration; with a loss scale that follows overflows, the first whose update is not skipped (if there
    is one in an epoch).

    Parameters
    ----------
    model : str or Settings
        A network's name, or all settings of a run: network, data, batch, optimiser, clipping.
    design : Design
    seed : int
        Of weights and samples, on which the list does not depend as long as the loss is finite.

    Returns
    -------
    Explanation

    Raises
    ------
    ValueError
        As of `softnum.train.run`.

    Examples
    --------
    >>> from softnum.train import Settings, explain, load_design
    >>> steps = explain(Settings(batch=32), load_design("c-wang-fp8"))
    >>> first = next(step for step in steps.steps if step.operation == "matmul")
    >>> first.layer, first.role, first.format, first.flops, first.operands
    ('fc1', 'forward', 'e6m9', 524288, (('e6m9', (32, 64)), ('e5m2', (64, 128)), ('e6m9', (128,))))
    >>> [step.operation for step in steps.binary64]
    ['softmax_cross_entropy', 'cross_entropy_error', 'divide', 'divide', 'divide', 'divide']
    """
    work = Run(model if isinstance(model, Settings) else Settings(network=model), design, seed)
    for iteration, samples in work.plan(1):
        trace = StepTrace(work)
        with watching(work.numerics, trace):
            row = work.train(iteration, samples)
        if "skipped" not in row:
            break
    return Explanation(tuple(trace.steps))


class StepTrace:
    """A listener that turns calls into steps. It follows formats from array to array, by identity.

    Parameters
    ----------
    work : softnum.train.runs.loop.Run
    """

    def __init__(self, work) -> None:
        self.steps: list[Step] = []
        self._carrier = "binary32" if work.numerics.backend.dtype == np.float32 else "binary64"
        self._known: dict[int, tuple[Any, str, float]] = {}  # id -> the array, kept alive, its format and bits
        for parameter in work.network.parameters:
            self._learn(parameter.value, *_format(parameter.layer.design.roles["master"]))
        for layer in work.network.layers:
            for buffer in layer.buffers:
                self._learn(buffer.value, *_format(layer.numerics.design.roles["statistics"]))
        for optimiser in work.optimisers.values():
            for state, role in optimiser.state_roles.items():
                for parameter, array in optimiser.arrays_of(state):
                    self._learn(array, *_format(parameter.layer.design.roles[role]))

        for sparse in work.sparse.values():
            for index, array in sparse.residuals.items():
                rule = sparse.parameters[index].layer.design.roles["weight_gradients"].sparsity
                self._learn(array, *_format(rule.feedback))

    def __call__(self, event: Event) -> None:
        arrays = list(_arrays(event.arguments))
        rounding, unit, result = event.rounding, event.unit, event.result
        operands = [self._found(array, event, place) for place, array in enumerate(arrays)]
        operation, how, flops, facts = event.method, "exact", 0, None
        name, bits = operands[0] if operands else (self._carrier, int(self._carrier[-2:]))
        if event.method == "put":
            name, bits = operands[-1]  # what is put into zeros, or into more of its kind
        if rounding is not None:
            (name, bits), how = _format(rounding), rounding.rounding
            operation = _ROUND.get(event.method, event.method)
            if event.method in ("compute", "operate"):
                operation = event.arguments[0]
            if operation == "keep":
                how = "exact"
            elif operation != "round":
                flops = _FLOPS.get(operation, 1) * result.size
                operation = "fma" if operation == "axpy" else operation
        elif unit is not None:
            operation = "matmul" if operation == "matmul_scaled" else operation
            facts = describe_unit(unit)
            name, bits = describe_format(event.delivered, "")["format"], event.delivered.bits
            how = str(facts.get("rounding") or facts.get("output_rounding") or "-")
            flops = 2 * _products(event)
        elif event.sparsity is not None:
            operation = f"prune {event.sparsity}"
        elif event.method.startswith("run_operator"):
            operation, how = f"operator {event.arguments[0].name}", "operator"
        elif event.method in BINARY64:
            if result is event.arguments[0]:
                return  # a division by 1
            name, bits, how = "binary64", 64, "binary64"
            flops = max((array.size for array in arrays), default=0)
        elif event.method in CARRIER:
            name, bits, how = self._carrier, int(self._carrier[-2:]), "carrier"
            flops = getattr(result, "size", 0) if event.method == "add" else 0
        elif event.method not in EXACT:
            raise ValueError(f"softnum.train.engine.watch does not say how the backend's {event.method} rounds")
        if isinstance(result, BlockArray):
            name, bits = _own_format(result)
        for array in _arrays((result,)):
            if event.method not in ("ones", "zeros"):  # which are of any format
                self._learn(array, name, bits)
        if event.method in _SILENT or (how == "exact" and not operands):
            return
        shape = next((array.shape for array in _arrays((result,))), ())
        size = (
            0
            if operation == "keep"
            else sum(array.size * width for array, (_, width) in zip(arrays, operands, strict=True))
        )
        size += 0 if operation == "keep" else bits * int(np.prod(shape, dtype=np.int64))
        layer, role = (event.layer, event.place) if event.place else (None, None)
        described = tuple((fmt, array.shape) for array, (fmt, _) in zip(arrays, operands, strict=True))
        self.steps.append(Step(operation, layer, role, name, how, facts, described, shape, flops, float(size / 8)))

    def _found(self, array, event: Event, place: int) -> tuple[str, float | Fraction]:
        """The format and bits of an operand; of one that nothing is known of, those that its place takes, if any."""
        if id(array) in self._known:
            return self._known[id(array)][1:]
        if event.method == "operate":
            return _format(event.rounding)
        if event.unit is not None and place < 2 and not isinstance(array, BlockArray):
            fmt = event.unit.operand[place]
            return describe_format(fmt, "")["format"], fmt.bits
        return _own_format(array)

    def _learn(self, array, name: str, bits: float) -> None:
        if not isinstance(array, BlockArray):  # which knows its own
            self._known[id(array)] = (array, name, bits)


def _arrays(parts):
    """The float arrays, BlockArrays, and elements of what has scales, among arguments or results, in order."""
    for part in parts:
        if isinstance(part, Scaled):
            yield part.elements
        elif isinstance(part, BlockArray) or (is_array(part) and part.dtype.kind == "f"):
            yield part
        elif isinstance(part, (tuple, list)):
            yield from _arrays(part)


def _format(rounding: RoleRounding) -> tuple[str, float]:
    facts = rounding.describe()
    return facts["format"], facts["bits"]


def _own_format(array) -> tuple[str, float | Fraction]:
    """The format of a BlockArray, and an element's share of all its scales; what holds another array."""
    if isinstance(array, BlockArray):
        fmt = array.format
        scales = array.scales.size * fmt.scale.bits + (0 if fmt.tensor_scale is None else fmt.tensor_scale.bits)
        return str(fmt), fmt.element.bits + Fraction(scales, array.codes.size)
    bits = 8 * array.dtype.itemsize
    return f"binary{bits}", bits


def _products(event: Event) -> int:
    """How many multiplications a product in a unit has: as a GEMM, those by the zeros of padding and stride too."""
    result = event.result
    if event.method in ("matmul", "matmul_scaled"):
        return result.size * next(_arrays(event.arguments)).shape[-1]
    key, _, second = event.arguments[:3]  # of a convolution: (x, w), (dy, w) or (x, dy)
    if key == "backward_weight":
        return second.size * int(np.prod(result.shape[1:], dtype=np.int64))
    outputs, inputs, *kernel = second.shape
    if key == "backward_data":
        inputs = outputs * inputs // result.shape[1]  # result's channels / inputs are the groups
    return result.size * inputs * int(np.prod(kernel, dtype=np.int64))


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "1"
