"""Units of several roundings: a dot product as a plain loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from softnum.reference.facts import Format, format_of
from softnum.reference.operations import exact_fma, exact_product, exact_sum, negated
from softnum.reference.random_words import random_words_matmul
from softnum.reference.rounding import Environment, deliver, environment_of, rounding_name
from softnum.reference.rules import Flags, rule_for
from softnum.reference.values import Value, decode, flushed, is_subnormal


class Rounding(NamedTuple):
    """One rounding of a dot product, or the exact product before it, as ``observe`` of `mad_dot` is told of it.

    ``where`` holds those of the indices k, chunk and lane that it has; ``terms`` names the values that meet in
    ``formula``; ``exact`` is what comes of them; ``format`` is the one that was given, an object or a name. Of an exact
    product, format, environment and code are None.
    """

    name: str
    formula: str
    where: dict[str, int]
    terms: tuple[tuple[str, Value], ...]
    exact: Value
    format: Format | str | None = None
    environment: Environment | None = None
    code: int | None = None
    flags: Flags = Flags(0)


def reduction_order(n: int, how: str) -> list[tuple[int, int]]:
    """The additions that make one number of n, in the order of their execution; (i, j): number i becomes i + j.

    Parameters
    ----------
    n : int
    how : {"sequential", "tree", "pairwise"}
        "sequential": ``((0 + 1) + 2) + ...``. "tree": neighbours, an odd last one passing, and so on with the results;
        level by level. "pairwise": the sum of the first half and that of the second, the first being the larger one of
        an odd count, each made in this way; the first half's additions go first.

    Examples
    --------
    >>> from softnum.reference.mac import reduction_order
    >>> reduction_order(5, "tree"), reduction_order(5, "pairwise")
    ([(0, 1), (2, 3), (0, 2), (0, 4)], [(0, 1), (0, 2), (3, 4), (0, 3)])
    """
    if how == "sequential":
        return [(0, i) for i in range(1, n)]
    if how == "tree":
        strides = [1 << level for level in range(max(n - 1, 0).bit_length())]
        return [(i, i + stride) for stride in strides for i in range(0, n - stride, 2 * stride)]
    if how != "pairwise":
        raise ValueError(f"reduction must be 'sequential', 'tree' or 'pairwise', got {how!r}")

    def halves(first: int, last: int) -> list[tuple[int, int]]:
        if last - first < 2:
            return []
        middle = first + (last - first + 1) // 2
        return [*halves(first, middle), *halves(middle, last), (first, middle)]

    return halves(0, n)


def is_small(code: int, fmt: Format | str) -> bool:
    """Whether a code is a zero or subnormal."""
    value = decode(code, fmt)
    return (value.kind == "finite" and not value.numerator) or is_subnormal(code, fmt)


def mad_dot(
    a_codes: Sequence[int],
    b_codes: Sequence[int],
    *,
    operand: Format | str | Sequence[Format | str],
    accumulator: Format | str,
    product: Format | str | None = None,
    rounding: str = "nearest_even",
    product_rounding: str | None = None,
    overflow: str | None = None,
    stochastic_bits: int = 32,
    lanes: int = 1,
    chunk: int | None = None,
    reduction: str = "sequential",
    outer_accumulator: Format | str | None = None,
    compensated: str | None = None,
    flush_inputs: bool | str = False,
    flush_results: str | None = None,
    c: int | None = None,
    key: int | tuple[int, int] | None = None,
    batch: int = 0,
    m: int = 0,
    n: int = 0,
    random_bits: Sequence[tuple[int, int]] | None = None,
    random: str = "philox4x32-10",
    observe: Callable[[Rounding], object] | None = None,
) -> tuple[int, Flags]:
    """One dot product as `softnum.MadUnit` computes it, as a plain loop.

    Parameters
    ----------
    a_codes, b_codes : sequences of K ints
        Codes of the operands.
    operand : format, or a pair of formats
        The format of ``a_codes`` and ``b_codes``.
    accumulator, product : format
        ``acc = R(acc + R_product(a * b))``; without ``product``, ``acc = R(acc + a * b)`` with one rounding.
    rounding, product_rounding : str
        Of the sums, and of the product (``None``: the same).
    overflow : str, optional
        One rule for all roundings, but those to formats that do not know it; by default each format's own.
    stochastic_bits : int
        Bits r of each stochastic rounding.
    lanes : int
        Number of sums that take turns in a chunk, each from +0; then they are added as ``reduction`` says, all of them.
    chunk : int, optional
        Sum each ``chunk`` steps on their own, from +0, then add these sums in order.
    reduction : str
        As in `reduction_order`.
    outer_accumulator : format, optional
        The format of the sum of chunks (default ``accumulator``).
    compensated : {None, "kahan"}
        "kahan": each lane, and the sum of chunks, has a compensation e from +0; to add p is ``y = R(p - e)``,
        ``t = R(acc + y)``, ``e = R(R(t - acc) - y)``, ``acc = t``. The additions of lanes are plain.
    flush_inputs, flush_results
        As in `softnum.MadUnit`.
    c : int, optional
        The code that the sum starts from; +0 if missing. It starts the sum of chunks, or the only lane, or is the first
        operand of the reduction of several lanes.
    key : int or (seed, stream), optional
        Where the random words of a stochastic unit come from, with ``batch``, ``m`` and ``n``, the result's indices.
    random_bits : sequence of (product, sum) pairs, optional
        The random words themselves, one pair a step; the additions of lanes and chunks are steps K, K + 1, ..., in the
        order of their execution.
    random : str
        The source of the key's words, as `softnum.MadUnit` names it.
    observe : callable, optional
        Is called with a `Rounding` for every exact product and every rounding, in the order of their execution.

    Returns
    -------
    code : int
        In ``accumulator``, or in ``outer_accumulator`` if there is one.
    flags : Flags
        Of all steps together.

    Raises
    ------
    ValueError
        If the lengths differ, a stochastic unit has no random words, or a parameter is out of range.

    Examples
    --------
    >>> from softnum import reference as ref
    >>> ones = [0x3C] * 20  # 1.0 in e5m2: a sum of 3-bit significands stalls at 8, chunks or lanes get further
    >>> ref.to_fraction(ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2")[0], "e5m2")
    Fraction(8, 1)
    >>> ref.to_fraction(ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2", chunk=4)[0], "e5m2")
    Fraction(20, 1)
    >>> ref.to_fraction(ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2", lanes=4)[0], "e5m2")
    Fraction(20, 1)
    """
    operands = tuple(map(format_of, operand if isinstance(operand, (tuple, list)) else (operand, operand)))
    outer = accumulator if outer_accumulator is None else outer_accumulator
    sums = [format_of(f) for f in (accumulator, outer, product) if f is not None]
    rounding = rounding_name(rounding)
    product_rounding = rounding if product_rounding is None else rounding_name(product_rounding)
    if flush_inputs == "positive":
        a_codes, b_codes = (
            [0 if is_small(x, fmt) else x for x in codes]
            for codes, fmt in zip((a_codes, b_codes), operands, strict=True)
        )
        c = 0 if c is None or is_small(c, outer) else c
    steps = len(a_codes)
    if len(b_codes) != steps:
        raise ValueError(f"a dot product needs equally long operands, got {steps} and {len(b_codes)}")
    if lanes < 1:
        raise ValueError(f"lanes must be at least 1, got {lanes}")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be at least 1, got {chunk}")
    if chunk is None and outer_accumulator is not None:
        raise ValueError("outer_accumulator= is the format of the sum of chunks; give chunk=")
    for fmt in (outer, accumulator):
        if not format_of(fmt).has_zero:
            raise ValueError(f"sums start from +0, which {fmt} lacks")
    if compensated not in (None, "kahan"):
        raise ValueError(f"compensated must be None or 'kahan', got {compensated!r}")
    additions = reduction_order(lanes, reduction)

    sum_is_stochastic = rounding.startswith("stochastic")
    product_is_stochastic = product is not None and product_rounding.startswith("stochastic")
    if compensated and sum_is_stochastic:
        raise ValueError("compensated='kahan' has no random words for sums that round stochastically")
    seed, stream = key if isinstance(key, tuple) else (key, 0)

    def words(k: int) -> tuple[int | None, int | None]:
        if random_bits is not None:
            return random_bits[k]
        if seed is None or not (sum_is_stochastic or product_is_stochastic):
            return None, None
        both = sum_is_stochastic and product_is_stochastic
        return random_words_matmul(seed, stream, batch, m, n, k, stochastic_bits, both, random)

    def read(code: int, fmt: Format | str, operand: bool = False) -> Value:
        value = decode(code, fmt)
        return flushed(value, code, fmt) if flush_inputs is True or (flush_inputs == "sums" and not operand) else value

    flags = Flags(0)
    where: dict[str, int] = {}

    def rounded(name: str, formula: str, exact, fmt: Format | str, step: int, *terms, mode: str = rounding) -> int:
        """exact(environment), rounded to the format with the words of the step."""
        nonlocal flags
        rule = rule_for(overflow, format_of(fmt), *sums)
        word = words(step)[0 if name == "product" else 1]
        env = environment_of(
            fmt, mode, rule, stochastic_bits, word, flush_results=flush_results
        )  # fmt: skip
        value = exact(env)
        code, raised = deliver(value, fmt, env)
        flags |= raised
        if observe is not None:
            observe(Rounding(name, formula, dict(where), terms, value, fmt, env, code, raised))
        return code

    def plus(name: str, p: str, added, fmt: Format | str, step: int, total: int, error: int, *term) -> tuple[int, int]:
        """A running sum and its compensation, one term later; added(z, environment): the exact sum of term and z."""
        acc = read(total, fmt)
        if not compensated:
            total = rounded(name, f"acc + {p}", lambda env: added(acc, env), fmt, step, ("acc", acc), *term)
            return total, error
        e = read(error, fmt)
        y = read(rounded("y", f"{p} - e", lambda env: added(negated(e), env), fmt, step, ("e", e), *term), fmt)
        total = rounded(name, "acc + y", lambda env: exact_sum(acc, y, env), fmt, step, ("acc", acc), ("y", y))
        t = read(total, fmt)
        moved = rounded("t - acc", "t - acc", lambda env: exact_sum(t, negated(acc), env), fmt, step, ("t", t))
        d = read(moved, fmt)
        error = rounded("e", "(t - acc) - y", lambda env: exact_sum(d, negated(y), env), fmt, step, ("t - acc", d))
        return total, error

    def inner_sum(first: int, last: int, start: int | None) -> int:
        """The sum of a chunk's lanes; start: that of the only lane, or the reduction's first operand, if given."""
        nonlocal step
        alone = lanes == 1
        sums, errors = [0] * lanes, [0] * lanes
        if alone and start is not None:
            sums = [start]
        for k in range(first, last):
            lane = (k - first) % lanes
            where.update(k=k)
            if not alone:
                where.update(lane=lane)
            x, y = read(a_codes[k], operands[0], True), read(b_codes[k], operands[1], True)
            factors = (("a", x), ("b", y))
            exact = exact_product(x, y, environment_of(accumulator))
            if observe is not None:
                observe(Rounding("exact product", "a * b", dict(where), factors, exact))
            if product is None:
                p, term = "a * b", ("a * b", exact)
                added = lambda z, env, x=x, y=y: exact_fma(x, y, z, env)  # noqa: E731
            else:
                code = rounded(
                    "product", "a * b", lambda env, x=x, y=y: exact_product(x, y, env), product, k, *factors,
                    mode=product_rounding,
                )  # fmt: skip
                p, term = "p", ("p", read(code, product))
                added = lambda z, env, p=term[1]: exact_sum(z, p, env)  # noqa: E731
            sums[lane], errors[lane] = plus("sum", p, added, accumulator, k, sums[lane], errors[lane], term)
        where.pop("k", None)
        where.pop("lane", None)
        numbers = [(f"l{i}", code) for i, code in enumerate(sums)]
        order = additions
        if not alone and start is not None:
            numbers, order = [("c", start), *numbers], reduction_order(lanes + 1, reduction)
        for i, j in order:
            (left, x), (right, y) = numbers[i], numbers[j]
            x, y = read(x, accumulator), read(y, accumulator)
            code = rounded(
                "lanes", f"{left} + {right}", lambda env, x=x, y=y: exact_sum(x, y, env), accumulator, step,
                (left, x), (right, y),
            )  # fmt: skip
            numbers[i] = f"{left.split('..')[0]}..{right.split('..')[-1]}", code
            step += 1
        return numbers[0][1]

    step = steps  # the number of the next addition of lanes or chunks
    if steps == 0:
        return 0 if c is None else c, flags
    if chunk is None:
        return inner_sum(0, steps, c), flags
    total, error = 0 if c is None else c, 0
    for j, first in enumerate(range(0, steps, chunk)):
        where["chunk"] = j
        part = read(inner_sum(first, min(first + chunk, steps), None), accumulator)
        added = lambda z, env, part=part: exact_sum(z, part, env)  # noqa: E731
        total, error = plus("chunks", "sum", added, outer, step, total, error, ("sum", part))
        step += 1
    return total, flags
