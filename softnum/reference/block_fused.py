"""Fused dot-product units of block formats, as a plain loop over Python integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from softnum.reference.block_dot import TensorStep, tensor_scaled
from softnum.reference.facts import Format, block_format_of
from softnum.reference.fused import FusedStep, exponent_of_product, fused_step, product_of, signed
from softnum.reference.rounding import environment_of
from softnum.reference.rules import Flags
from softnum.reference.values import Value, decode

__all__ = ["BlockFusedStep", "BlockFusedTerm", "block_fused_dot"]


class BlockFusedTerm(NamedTuple):
    """A term of a step: a product, or the sum of a group of them, times the scales of their block."""

    ks: range
    products: list[Value]  # of elements
    sum: Value  # of the finite ones
    scales: tuple[Value, Value]
    value: Value  # the sum times the scales
    exponent: int | None  # that it counts with; None: it does not


class BlockFusedStep(NamedTuple):
    """What a step came to, for whoever watches `block_fused_dot`."""

    terms: list[BlockFusedTerm]
    fused: FusedStep


def _unsigned(x: Value) -> Value:
    return x._replace(sign=0)


def block_fused_dot(
    a_codes: Sequence[int],
    a_scales: Sequence[int],
    b_codes: Sequence[int],
    b_scales: Sequence[int],
    *,
    terms: int,
    fraction_bits: int,
    accumulator: Format | str,
    operand: Any,
    group: int = 1,
    min_exponent: int | None = None,
    output_rounding: str = "toward_zero",
    truncate_fraction: int | None = None,
    overflow: str | None = None,
    zero_exponent: int | None = None,
    tensor_scales: tuple[Any, ...] | None = None,
    c: int | None = None,
    observe: Callable[[BlockFusedStep | TensorStep], None] | None = None,
) -> tuple[int, Flags]:
    """One dot product as `softnum.BlockFusedDotUnit` computes it.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of elements.
    a_scales, b_scales : sequences of ints
        Codes of scales, one a block.
    terms, fraction_bits, accumulator, operand, group, min_exponent, output_rounding, truncate_fraction, overflow
    zero_exponent
        As in `softnum.BlockFusedDotUnit`.
    tensor_scales : pair of numbers, optional
        The scales of both arrays.
    c : int, optional
        The code of C; +0 if missing.
    observe : callable, optional
        Called with each step, a `BlockFusedStep`, and last with that of the arrays' scales, a `TensorStep`.

    Returns
    -------
    code : int
        In ``accumulator``.
    flags : Flags
        Of all steps together.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> import softnum as sn
    >>> from softnum import reference as ref
    >>> mxf4 = {"terms": 64, "fraction_bits": 35, "group": 16, "operand": sn.format("mxfp4"), "accumulator": "binary32"}
    >>> code, flags = ref.block_fused_dot([2] * 3, [128], [4] * 3, [127], **mxf4)
    >>> ref.to_fraction(code, "binary32")  # three times 1 * 2, times 2 * 1
    Fraction(12, 1)
    """
    fa, fb = map(block_format_of, operand if isinstance(operand, (tuple, list)) else (operand, operand))
    length = len(a_codes)
    if len(b_codes) != length:
        raise ValueError(f"a dot product needs equally long operands, got {length} and {len(b_codes)}")
    if length == 0:
        return 0 if c is None else c, Flags(0)

    def term(ks: range) -> BlockFusedTerm:
        scales = tuple(
            _unsigned(decode(codes[ks[0] // f.block_size], f.scale)) for codes, f in ((a_scales, fa), (b_scales, fb))
        )
        pairs = [(decode(a_codes[k], fa.element), decode(b_codes[k], fb.element)) for k in ks]
        products = [product_of(x, y) for x, y in pairs]
        factors = [*zip(scales, (fa.scale, fb.scale), strict=True)]
        if group == 1:
            factors += zip(pairs[0], (fa.element, fb.element), strict=True)
        total = signed(sum(x.fraction for x in products if x.kind == "finite"))
        return BlockFusedTerm(
            ks, products, total, scales, _scaled(total, scales), exponent_of_product(factors, zero_exponent)
        )

    total, flags = 0 if c is None or tensor_scales is not None else c, Flags(0)
    for first in range(0, length, terms):
        last = min(first + terms, length)
        found = [term(range(k, min(k + group, last))) for k in range(first, last, group)]
        values = []
        for t in found:  # each special product speaks for itself
            special = [_scaled(x, t.scales) for x in t.products if x.kind != "finite"]
            values += [(x, None) for x in special] or [(t.value, t.exponent)]
        start = decode(total, accumulator)

        def watch(*step, found=found, values=values, start=start):
            if observe is not None:
                ks = [k for t in found for k in t.ks]
                observe(BlockFusedStep(found, FusedStep(ks, [x for x, _ in values], start, *step)))

        total, raised = fused_step(
            values, (start, exponent_of_product([(start, accumulator)], zero_exponent)), accumulator,
            fraction_bits=fraction_bits, min_exponent=min_exponent, rounding=output_rounding,
            truncate_fraction=truncate_fraction, overflow=overflow, observe=watch,
        )  # fmt: skip
        flags |= raised
    if tensor_scales is not None:
        env = environment_of(accumulator, overflow=None if overflow == "always_infinity" else overflow)
        step, raised = tensor_scaled(total, tensor_scales, c, accumulator, env)
        total, flags = step.code, flags | raised
        if observe is not None:
            observe(step)
    return total, flags


def _scaled(x: Value, scales: tuple[Value, Value]) -> Value:
    """A sum or product times both scales; a zero scale of an infinity is invalid."""
    return product_of(x, product_of(*scales)) if x.kind != "invalid" else x
