"""What became of the numbers of a run: per layer, role and shape, counts, exponents and errors as it trains."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.container import array
from softnum.arrays.conversion import encode
from softnum.formats.blocks import format
from softnum.formats.dispatch import of_format
from softnum.mac.exact import ExactDotUnit
from softnum.mac.mad import Unit
from softnum.runtime.atomic import write_atomic
from softnum.train.designs.convolutions import Convolution
from softnum.train.designs.design import RoleRounding
from softnum.train.designs.objects import describe_format
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.watch import Event
from softnum.train.recipes import Scaled, spread
from softnum.train.runs.record import read_lines

__all__ = ["StatisticsFile", "TensorStatistics", "Watch"]

_DOUBLE = NumpyBackend(np.float64)
_EXACT = RoleRounding(format("binary64"))
_ONCE = ExactDotUnit("binary64", operand="binary64")


@dataclass
class TensorStatistics:
    """What the roundings of one role of one layer to arrays of one shape did in an iteration.

    "Before" is the exact result, "after" what it was rounded to. What a matrix product would be without any rounding
    is computed with one rounding to binary64, as is an operation's exact result.

    Attributes
    ----------
    layer, role : str
        The role; of a matrix product the pass ("forward"), of the initial value of an accumulator "start".
    format : str
        After.
    shape : tuple of int
    roundings : int
        Arrays that were rounded.
    elements : int
        Of all of them.
    saturated : int
        Values beyond the format's range (times the scale, where the role's numbers have one), or infinite, before;
        numbers after.
    underflowed : int
        Not 0 before, 0 after.
    infinities, nans, zeros : int
        After; the zeros without those that underflowed.
    exponents : dict
        floor(log2(abs(value))) -> how many had it before, of the finite ones that are not 0.
    error, size : float
        Norms of after - before and of before, over elements that are finite in both.
    span : pair of int, optional
        The exponents of the format's smallest and largest positive number; None of a format that has scales, or one of
        the user's own.
    """

    layer: str
    role: str
    format: str
    shape: tuple[int, ...]
    roundings: int = 0
    elements: int = 0
    saturated: int = 0
    underflowed: int = 0
    infinities: int = 0
    nans: int = 0
    zeros: int = 0
    exponents: dict[int, int] = field(default_factory=dict)
    error: float = 0.0
    size: float = 0.0

    span: tuple[int, int] | None = None

    def add(self, before: np.ndarray, after: np.ndarray, fmt, limits=None) -> None:
        """Count one array's rounding; limits: the lowest and the largest value, by default the format's."""
        self.span = _span(fmt) if limits is None else None
        low, high = limits or (float(fmt.min), float(fmt.max))
        finite = np.isfinite(after)
        self.roundings += 1
        self.elements += after.size
        self.saturated += int((finite & ((before > high) | (before < low))).sum())
        self.underflowed += int(((after == 0) & (before != 0)).sum())
        self.infinities += int(np.isinf(after).sum())
        self.nans += int(np.isnan(after).sum())
        self.zeros += int(((after == 0) & (before == 0)).sum())
        values, counts = np.unique(np.frexp(before[np.isfinite(before) & (before != 0)])[1] - 1, return_counts=True)
        for exponent, count in zip(values.tolist(), counts.tolist(), strict=True):
            self.exponents[exponent] = self.exponents.get(exponent, 0) + count
        finite &= np.isfinite(before)
        with np.errstate(over="ignore"):
            self.error = math.hypot(self.error, _DOUBLE.norm([after[finite] - before[finite]]))
        self.size = math.hypot(self.size, _DOUBLE.norm([before[finite]]))

    def describe(self, iteration: int) -> dict:
        """A row of the file."""
        relative = 0.0 if self.error == 0 else self.error / self.size if self.size > 0 else math.inf
        facts = {name: getattr(self, name) for name in ("layer", "role", "format")}
        facts |= {"shape": list(self.shape), "roundings": self.roundings, "elements": self.elements}
        facts |= {n: getattr(self, n) for n in ("saturated", "underflowed", "infinities", "nans", "zeros")}
        facts["span"] = None if self.span is None else list(self.span)
        facts["relative_error"] = relative if math.isfinite(relative) else None
        facts["exponents"] = sorted([exponent, count] for exponent, count in self.exponents.items())
        return {"iteration": iteration, **facts}


class Watch:
    """A listener of `watching` that gathers the statistics of one iteration.

    Attributes
    ----------
    tensors : dict
        (layer, role, format, shape) -> TensorStatistics, in the order of the first rounding.
    """

    def __init__(self) -> None:
        self.tensors: dict[tuple, TensorStatistics] = {}

    def __call__(self, event: Event) -> None:
        """Take note of a call; those that round to no role and compute in no unit are not counted."""
        rounding, unit = event.rounding, event.unit
        if event.place is None or (rounding is None and unit is None):
            return
        event = event.on_host()
        limits = None
        if isinstance(event.result, Scaled):
            after, limits = _values(event.result), _scaled_limits(event.result, rounding.format)
        else:
            after = np.asarray(event.result, dtype=np.float64)
        if rounding is None:
            fmt, name = event.delivered, describe_format(event.delivered, "")["format"]
        else:
            fmt, name = rounding.format, rounding.describe()["format"]
        if event.method == "quantize_blocks":
            before, limits = event.arguments[0], _block_limits(event.result)
        elif event.method == "quantize_scaled":
            before = event.arguments[0]
            before = before.swapaxes(-2, -1) if event.arguments[2] == -2 else before
            before = before if rounding.hadamard is None else rounding.hadamard(before.astype(np.float32))
        elif event.method == "matmul_scaled":
            before = _unscaled_product(event)
        else:
            before = _unrounded(event, event.result.dtype)
            if rounding is not None and rounding.block:  # a state: values, in blocks along all elements
                blocks = array(before.reshape(-1), fmt, scale_rule=rounding.scale_rule)
                limits = [end.reshape(after.shape) for end in _block_limits(blocks)]
        key = (event.layer, event.place, name, after.shape)
        tensor = self.tensors.setdefault(key, TensorStatistics(*key))
        tensor.add(np.broadcast_to(before, after.shape), after, fmt, limits)

    def rows(self, iteration: int) -> list[dict]:
        """The rows of an iteration."""
        return [tensor.describe(iteration) for tensor in self.tensors.values()]


@of_format
def _span(fmt) -> tuple[int, int] | None:
    """The exponents of a format's smallest and largest positive number; None where they say little."""
    return fmt.emin - fmt.mantissa_bits * (fmt.lowest_binade == "subnormal"), fmt.emax


@_span.fixed
def _fixed_span(fmt) -> tuple[int, int]:
    return -fmt.fraction_bits, math.frexp(float(fmt.max))[1] - 1


@_span.custom
@_span.block
def _no_span(fmt) -> None:
    return None


def _block_limits(x: BlockArray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the largest value that each element could have with the scale of its block."""
    element = x.format.element
    codes = (encode(np.full(x.shape, float(end)), element) for end in (element.min, element.max))
    return tuple(BlockArray(end, x.scales, x.format, x.axis, x.tensor_scale).decode() for end in codes)


def _values(x: Scaled) -> np.ndarray:
    """Elements times their scales, in binary64."""
    return _in_tiles(x, x.elements.astype(np.float64))


def _in_tiles(x: Scaled, elements) -> np.ndarray:
    """Elements times the scales of their tiles, and a factor of the tensor, in binary64."""
    amax, full = (1.0, 1.0) if x.tensor is None else (x.tensor[0].astype(np.float64), x.tensor[1])
    with np.errstate(all="ignore"):
        return elements * spread(x.scales.astype(np.float64), x.elements.shape, x.block) * (amax / full)


def _scaled_limits(x: Scaled, fmt) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the largest value that each element could have with its scales."""
    return tuple(_in_tiles(x, np.full(x.elements.shape, float(end))) for end in (fmt.min, fmt.max))


def _unscaled_product(event: Event) -> np.ndarray:
    """What a product of scaled operands is in binary64, each sum rounded once; and what is added to it."""
    a, b, _, c, _ = event.arguments
    product = _DOUBLE.matmul(_values(a), _values(b).swapaxes(-2, -1), _ONCE, None, None)
    return product if c is None else product + np.asarray(c, np.float64)


def _unrounded(event: Event, carrier) -> np.ndarray:
    """What the same call gives with one rounding, to binary64."""

    def wide(part):
        if isinstance(part, RoleRounding):
            return _EXACT
        if isinstance(part, Unit):
            return _ONCE
        if isinstance(part, Convolution):
            return None  # computed directly
        if isinstance(part, (tuple, list)):
            return [wide(each) for each in part]
        if isinstance(part, (float, np.floating)):
            return float(carrier.type(part))
        if isinstance(part, BlockArray):
            return part.decode()
        return part.astype(np.float64) if isinstance(part, np.ndarray) and part.dtype.kind == "f" else part

    return getattr(_DOUBLE, event.method)(*(wide(part) for part in event.arguments))


class StatisticsFile:
    """``seed-<n>.statistics.jsonl`` beside a record: first ``{"every", "record"}``, then a row per tensor.

    Parameters
    ----------
    record : pathlib.Path
        The record.
    every : int or None
        Iterations between rows; None if none are wanted.
    header : dict
        The record's.
    """

    def __init__(self, record: Path, every: int | None, header: dict) -> None:
        if every is not None and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
            raise ValueError(f"statistics must be a positive number of iterations, got {every!r}")
        self.path = record.with_name(f"{record.stem}.statistics.jsonl")
        self.every = every
        digest = hashlib.sha256(json.dumps(header).encode()).hexdigest()
        self._header = {"every": every, "record": digest}
        self._file = None

    def fits(self) -> bool:
        """Whether no statistics are wanted, or the file holds those of this run at this interval, so far."""
        rows = read_lines(self.path)
        return self.every is None or (bool(rows) and rows[0] == self._header)

    def start(self, done: int) -> None:
        """Begin to write: keep the rows of the first ``done`` iterations, if they are of this run."""
        rows = read_lines(self.path)
        if self.every is None:
            if rows and rows[0].get("record") != self._header["record"]:
                self.path.unlink()  # of a run that is being replaced
            return
        kept = [row for row in rows[1:] if row["iteration"] <= done] if rows[:1] == [self._header] else []
        lines = [self._header, *kept]
        write_atomic(self.path, b"".join(json.dumps(row, allow_nan=False).encode() + b"\n" for row in lines))
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  (closed by close)

    def wants(self, iteration: int) -> bool:
        """Whether an iteration is one to watch: the first, and every ``every``-th from it."""
        return self.every is not None and (iteration - 1) % self.every == 0

    def write(self, rows: list[dict]) -> None:
        """Append rows; they are in the file when this returns."""
        self._file.write(b"".join(json.dumps(row, allow_nan=False).encode() + b"\n" for row in rows))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
