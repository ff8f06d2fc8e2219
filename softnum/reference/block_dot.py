"""Dot products of block formats, as a plain loop over blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from softnum.reference.blocks import scaled
from softnum.reference.exact import exact_terms
from softnum.reference.facts import Format, block_format_of, format_of
from softnum.reference.operations import exact_sum
from softnum.reference.rounding import Environment, deliver, environment_of, rounding_name
from softnum.reference.rules import Flags, rule_for
from softnum.reference.values import Value, decode

__all__ = ["BlockStep", "TensorStep", "block_dot", "tensor_scaled"]


class BlockStep(NamedTuple):
    """What `block_dot` tells ``observe`` of a block: block None is the step of the arrays' scales."""

    block: int | None
    ks: range
    sum: Value
    scales: tuple[Value, Value]
    exact: Value  # the sum times the scales
    product: tuple[Format | str, Environment, int] | None  # what that is rounded to, if it is; the format as given
    start: Value  # of the addition
    total: Value  # its exact result
    environment: Environment
    code: int


class TensorStep(NamedTuple):
    """The step of the arrays' scales."""

    sum: Value
    scales: tuple[Value, Value]
    exact: Value  # the sum times the scales
    start: Value  # C, or +0
    total: Value
    environment: Environment
    code: int


def _exact_block(a: Sequence[int], b: Sequence[int], formats) -> Value:
    """The exact sum of products; a zero is +0."""
    _, sums = exact_terms(a, b, formats, "binary32", None, "nearest_even")
    total = sums[-1]
    if total.kind in ("nan", "invalid"):
        return Value("nan", 0, 1, 2, total.kind == "invalid")
    return Value("finite") if total.kind == "finite" and not total.numerator else total


def _scaled(x: Value, factors: tuple[Any, ...]) -> Value:
    """`scaled`, in which a NaN that comes of numbers, or of a signaling one, raises INVALID as a signaling one does."""
    y = scaled(x, *factors)
    nans = [v for v in (x, *factors) if v.kind == "nan"]
    return y._replace(signaling=not nans or any(v.signaling for v in nans)) if y.kind == "nan" else y


def block_dot(
    a_codes: Sequence[int],
    a_scales: Sequence[int],
    b_codes: Sequence[int],
    b_scales: Sequence[int],
    *,
    operand: Any,
    accumulator: Format | str,
    inner: Callable[[Sequence[int], Sequence[int], list[int]], int] | None = None,
    inner_format: Format | str | None = None,
    inner_steps: Callable[[int], int] = lambda length: 0,
    product: Format | str | None = None,
    rounding: str = "nearest_even",
    product_rounding: str | None = None,
    overflow: str | None = None,
    stochastic_bits: int = 32,
    tensor_scales: tuple[Any, ...] | None = None,
    c: int | None = None,
    words: Callable[[int], tuple[Any, ...]] | None = None,
    observe: Callable[[BlockStep], None] | None = None,
) -> tuple[int, Flags]:
    """One dot product as `softnum.BlockDotUnit` computes it.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of elements.
    a_scales, b_scales : sequences of ints
        Codes of scales, one a block.
    operand : a block format or the name of one, or a pair of them
    accumulator, product, rounding, product_rounding, overflow, stochastic_bits
        As in `softnum.BlockDotUnit`.
    inner : callable, optional
        The code, in ``inner_format``, of the sum of a block: called with its codes and the numbers of its steps, of
        which it has ``inner_steps(length)`` (0: it takes no random words). None: the sum is exact.
    tensor_scales : pair of numbers, optional
        The scales of both arrays.
    c : int, optional
        The code of C; +0 if missing.
    words : callable, optional
        The (product, sum) pair of random words of a step.
    observe : callable, optional
        Called with a `BlockStep` for each block and, last, for the arrays' scales.

    Returns
    -------
    code : int
        In ``accumulator``.
    flags : Flags
        Of the roundings here, not of those of ``inner``.

    Examples
    --------
    >>> import softnum as sn
    >>> from softnum import reference as ref
    >>> code, flags = ref.block_dot([2] * 3, [128], [4] * 3, [127], operand=sn.format("mxfp4"), accumulator="binary32")
    >>> ref.to_fraction(code, "binary32")  # three times 1 * 2, times 2 * 1
    Fraction(12, 1)
    """
    formats = operand if isinstance(operand, (tuple, list)) else (operand, operand)
    fa, fb = map(block_format_of, formats)
    accumulator = format_of(accumulator)
    rounding = rounding_name(rounding)
    product_rounding = rounding if product_rounding is None else rounding_name(product_rounding)
    length = len(a_codes)
    if len(b_codes) != length:
        raise ValueError(f"a dot product needs equally long operands, got {length} and {len(b_codes)}")
    if length == 0:
        return 0 if c is None else c, Flags(0)
    sums = (accumulator, *([] if product is None else [format_of(product)]))
    flags = Flags(0)

    def environment(fmt: Format | str, mode: str, step: int, which: int) -> Environment:
        rule = rule_for(overflow, format_of(fmt), *sums)
        word = words(step)[which] if words is not None and mode.startswith("stochastic") else None
        return environment_of(fmt, mode, rule, stochastic_bits, word)

    size = fa.block_size or length
    total = 0 if c is None or tensor_scales is not None else c
    counter = length
    for j, first in enumerate(range(0, length, size)):
        ks = range(first, min(first + size, length))
        a, b = ([codes[k] for k in ks] for codes in (a_codes, b_codes))
        if inner is None:
            s = _exact_block(a, b, (fa.element, fb.element))
        else:
            count = inner_steps(len(ks))
            own = [first + i if i < len(ks) else counter + i - len(ks) for i in range(count)]
            s = decode(inner(a, b, own), inner_format)
            counter += max(0, count - len(ks))
        scales = decode(a_scales[j], fa.scale), decode(b_scales[j], fb.scale)
        term = exact = _scaled(s, scales)
        rounded = None
        if product is not None:
            env = environment(product, product_rounding, counter, 0)
            code, raised = deliver(exact, product, env)
            flags |= raised
            rounded, term = (product, env, code), decode(code, product)
        env = environment(accumulator, rounding, counter, 1)
        start = decode(total, accumulator)
        whole = exact_sum(start, term, env)
        total, raised = deliver(whole, accumulator, env)
        flags |= raised
        counter += 1
        if observe is not None:
            observe(BlockStep(j, ks, s, scales, exact, rounded, start, whole, env, total))
    if tensor_scales is not None:
        env = environment(accumulator, rounding, counter, 1)
        step, raised = tensor_scaled(total, tensor_scales, c, accumulator, env)
        total, flags = step.code, flags | raised
        if observe is not None:
            observe(
                BlockStep(None, range(0), step.sum, step.scales, step.exact, None, step.start, step.total, env, total)
            )
    return total, flags


def tensor_scaled(
    code: int, tensor_scales: tuple[Any, ...], c: int | None, accumulator: Format | str, env: Environment
) -> tuple[TensorStep, Flags]:
    """A sum times both arrays' scales, and C added to it if there is one; and the flags of the one rounding."""
    s = decode(code, accumulator)
    scales = tuple(_value(t) for t in tensor_scales)
    exact = whole = _scaled(s, scales)
    start = Value("finite") if c is None else decode(c, accumulator)
    if c is not None:
        whole = exact_sum(start, exact, env)
    code, raised = deliver(whole, accumulator, env)
    return TensorStep(s, scales, exact, start, whole, env, code), raised


def _value(t) -> Value:
    t = Fraction(t)
    return Value("finite", int(t < 0), abs(t.numerator), t.denominator)
