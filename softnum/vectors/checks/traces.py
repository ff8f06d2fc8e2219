"""Traces of vectors of units: every step of one sum, the one marked where the design goes its own way."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.conversion import decode
from softnum.inspect.trace import Step, Trace, number_text, steps_of
from softnum.vectors.checks.failures import Failure, flags_text
from softnum.vectors.checks.models import NotApplicable
from softnum.vectors.checks.unit_models import UnitModels
from softnum.vectors.plans.spec import Block
from softnum.vectors.plans.unit_spec import UnitSpec

__all__ = ["Sequence", "trace_of", "trace_of_sequence"]

#: Rows of a table that are shown, and steps that are kept as data.
_ROWS, _STEPS = 40, 1024


class Sequence(NamedTuple):
    """A sequence of steps: its lines, the design's block, the right results, and the first step that differs."""

    lines: np.ndarray
    block: Block
    want: np.ndarray
    at: int


def trace_of(
    spec: UnitSpec, failure: Failure, changes: dict[str, Any]
) -> tuple[list[str], list[dict[str, Any]]] | None:
    """The steps of a dot product, or of the first element of a tile that differs: (table, data).

    changes: those of the model that explains the failure. Where it takes as many steps as the unit, the step is marked
    in which its own sum differs first.

    >>> import io
    >>> from softnum.vectors import check
    >>> lines = b"3D3D 3D3C 41\\n3D3E 3D3D 43\\n"  # 1.25 * 1 + 1.25 * 1.25 = 2.8125, and 3.375
    >>> report = check(io.BytesIO(lines), "dot", unit="MadUnit('e5m2', operand='e5m2', rounding='up')", length=2)
    >>> report.failures, report.causes[0].trace[1][-1]["exact"]
    (2, '2.8125')
    """
    m, n, k = spec.shape
    at = 0
    count = len(spec.scale_columns)
    a, b, *scales = failure.operands[: 2 + count]
    c = list(failure.operands[2 + count :])
    if m * n > 1 and failure.got is not None:
        at = next((i for i, (x, y) in enumerate(zip(failure.got, failure.want, strict=True)) if x != y), 0)
        c = [c[0][at]] if c else []
    row, column = divmod(at, n)
    a, b = _tuple(a)[row * k : (row + 1) * k], _tuple(b)[column::n]
    if spec.of_blocks:
        try:
            a, b = _blocks(spec, a, b, scales, row, column)
        except ValueError:  # a scale of an array that is no positive number
            return None
    words = None
    if failure.random_bits is not None:
        drawn = _tuple(failure.random_bits)[at * spec.words : (at + 1) * spec.words]
        words = lambda step, *_: drawn[2 * step : 2 * step + 2]  # noqa: E731
    start = c[0] if c else None
    made = _made(spec.unit, a, b, start, words)
    if made is None:
        return None
    steps, code = made
    marked = set()
    try:
        unit = UnitModels(spec).changed(changes) if changes else spec.unit
    except NotApplicable:
        unit = spec.unit
    if spec.of_blocks and unit.block_size != spec.unit.block_size:
        unit = spec.unit  # whose scales the vectors have
    if unit != spec.unit and (other := _made(unit, a, b, start, words)) is not None and len(other[0]) == len(steps):
        pairs = enumerate(zip(steps, other[0], strict=True))
        marked = {i for i, (x, y) in pairs if x.code is not None and (x.code, x.kept) != (y.code, y.kept)}
        marked = {min(marked)} if marked else marked
    where = f" of element {row}, {column}" if m * n > 1 else ""
    return _shown(spec.unit, steps, code, marked, where)


def trace_of_sequence(spec: UnitSpec, sequence: Sequence[Any]) -> tuple[list[str], list[dict[str, Any]]] | None:
    """The right steps of a sequence up to the first that differs, which is marked: (table, data)."""
    last = sequence.at + 1
    _, a, b, *c = (codes[:last].tolist() for codes in sequence.block.operands)
    words = None
    if sequence.block.random_bits is not None:
        drawn = sequence.block.random_bits.tolist()
        words = lambda step, *_: drawn[step]  # noqa: E731
    made = _made(spec.unit, a, b, c[0][0] if c else None, words)
    if made is None:
        return None
    steps, code = made
    marked = {i for i, step in enumerate(steps) if step.where.get("k") == sequence.at and step.code is not None}
    marked = marked or {len(steps) - 1}
    got = sequence.block.result[sequence.at].item()
    digits = -(-spec.out_fmt.bits // 4)
    where = (
        f" of the sequence from line {sequence.lines[0]} on, up to its step {sequence.at} in line "
        f"{sequence.lines[sequence.at]}, where the design has 0x{got:0{digits}x}"
    )
    return _shown(spec.unit, steps, code, marked, where)


def _blocks(spec: UnitSpec, a, b, scales, row: int, column: int) -> list[BlockArray]:
    """Row and column of a tile, with their scales."""
    blocks, n = spec.blocks, spec.shape[1]
    of_blocks = _tuple(scales[0])[row * blocks : (row + 1) * blocks], _tuple(scales[1])[column::n]
    of_arrays, out = list(zip(spec.scale_columns[2:], scales[2:], strict=True)), []
    for fmt, codes, scale in zip(spec.unit.operand, (a, b), of_blocks, strict=True):
        tensor = None
        if fmt.tensor_scale is not None:
            of_array, code = of_arrays.pop(0)
            tensor = float(decode(np.array(code, of_array.dtype), of_array.format, np.float64))
        parts = (np.array(x, f.storage_dtype) for x, f in ((codes, fmt.element), (scale, fmt.scale)))
        out.append(BlockArray(*parts, fmt, -1, tensor))
    return out


def _tuple(code) -> tuple[Any, ...]:
    return code if isinstance(code, tuple) else (code,)


def _made(unit, a, b, c, words):
    try:
        return steps_of(unit, a, b, c, words)
    except (TypeError, ValueError):
        return None


def _shown(unit, steps: list[Step], code: int, marked: set[int], where: str) -> tuple[list[str], list[dict[str, Any]]]:
    title, head, *rows, end = str(Trace(unit, tuple(steps), code)).split("\n")
    last = max(marked, default=len(rows) - 1)
    begin = max(0, min(last - _ROWS + 8, len(rows) - _ROWS))
    shown = [f"{'>' if i in marked else ' '} {rows[i]}" for i in range(begin, min(len(rows), begin + _ROWS))]
    if begin:
        shown.insert(0, f"  ... {begin} rows before")
    if begin + _ROWS < len(rows):
        shown.append(f"  ... {len(rows) - begin - _ROWS} rows more")
    data = [_data(step, i in marked) for i, step in enumerate(steps[:_STEPS])]
    return [f"trace{where}:", title, f"  {head}", *shown, f"  {end}"], data


def _data(step: Step, diverges: bool) -> dict[str, Any]:
    """A step with what JSON knows: exact numbers as text."""
    facts = step.to_dict() | {"diverges": diverges}
    facts["flags"] = flags_text(int(step.flags))
    facts["terms"] = {name: _plain(value) for name, value in facts["terms"].items()}
    return {name: _plain(value) for name, value in facts.items()}


def _plain(value):
    return number_text(value) if isinstance(value, Fraction) else value
