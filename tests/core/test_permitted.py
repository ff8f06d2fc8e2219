"""Permitted results: the set of all of them against brute force over all trees, enclosures, witnesses, real kernels."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.inspect.permitted import judge
from softnum.inspect.permitted.arithmetic import Exceeded, Machine
from softnum.inspect.permitted.enclosure import bounded, hull
from softnum.inspect.permitted.freedom import freedom_of
from softnum.inspect.permitted.search import found_by_chance, found_by_orders
from softnum.inspect.permitted.sets import reachable
from softnum.inspect.permitted.witness import Witness, witness_of
from softnum.reference.facts import format_of
from softnum.reference.values import is_subnormal
from tests.support.cases import cases

# -- brute force: every tree, by the operations of the reference on codes ----------------------------------------------


def trees(leaves):
    """All binary trees over these leaves, two that are mirrored once."""
    if len(leaves) == 1:
        yield leaves[0]
        return
    first, rest = leaves[0], leaves[1:]
    for size in range(len(rest)):
        for chosen in itertools.combinations(rest, size):
            left, right = (first, *chosen), tuple(x for x in rest if x not in chosen)
            yield from itertools.product(trees(left), trees(right))


def leaves_of(tree):
    return [x for part in tree for x in leaves_of(part)] if isinstance(tree, tuple) else [tree]


def fits(tree, spec, k):
    """Whether the order, the grouping and C's place permit a tree over the products 0..k-1 and "c"."""
    if not isinstance(tree, tuple):
        return True
    if spec.c == "last" and "c" in leaves_of(tree):
        return "c" in tree and all(fits(part, spec._with(c="any"), k) for part in tree if part != "c")
    if spec.c == "first" and spec.order == "any" and spec.grouping == "any":
        spec = spec._with(c="any")
    if spec.grouping == "sequential":
        order = []
        node = tree
        while isinstance(node, tuple):
            alone = [part for part in node if not isinstance(part, tuple)]
            if not alone:
                return False
            if len(alone) == 2:
                order.append(set(alone))
                break
            order.append({alone[0]})
            (node,) = (part for part in node if isinstance(part, tuple))
        order.reverse()
        if spec.c == "first" and "c" in leaves_of(tree) and "c" not in order[0]:
            return False
        if spec.order == "any":
            return True
        start = set(order[0])
        seen = [x for x in start if x != "c"] + [x for step in order[1:] for x in step if x != "c"]
        return sorted(seen[: len(start - {"c"})]) + seen[len(start - {"c"}) :] == list(range(k)) and (
            0 in start or (start == {0, "c"})
        )
    if spec.order == "any":
        return True
    places = [-1 if x == "c" else x for x in leaves_of(tree) if x != "c" or spec.c == "first"]
    together = not places or max(places) - min(places) + 1 == len(places)
    return together and all(fits(part, spec, k) for part in tree)


class Plain:
    """A specification's choices, one at a time."""

    def __init__(self, spec, **changes):
        self.spec, self.changes = spec, changes

    def __getattr__(self, name):
        return self.changes[name] if name in self.changes else getattr(self.spec, name)

    def _with(self, **changes):
        return Plain(self.spec, **{**self.changes, **changes})


def zeroed(code, fmt):
    """What a flush reads: a zero of the sign, for a subnormal."""
    if not is_subnormal(code, fmt):
        return code
    fmt = format_of(fmt)
    return code & (1 << fmt.bits - 1) if fmt.negative_zero else 0


def choices(code, fmt, spec):
    return {zeroed(code, fmt) if flush else code for flush in spec.reads}


def environments(spec, fmt):
    return [dict(rounding=m, overflow=spec.overflow_of(fmt), flush_results=f) for m, f in spec.ways]


def canonical(code, fmt):
    return format_of(fmt).nan_code if ref.decode(code, fmt).kind == "nan" else code


def outcomes(tree, a, b, c, spec):
    """Everything that a tree may give: ("number", code) or ("raw", a's code, b's code)."""
    acc, formats = spec.accumulator, spec.operand
    out = set()
    if tree == "c":
        out = {("number", c)}
    elif not isinstance(tree, tuple):
        for x, y in itertools.product(choices(a[tree], formats[0], spec), choices(b[tree], formats[1], spec)):
            raw = ("raw", x, y)
            if "rounded" in spec.products:
                out |= {("number", ref.multiply(x, y, formats, out_fmt=acc, **e)[0]) for e in environments(spec, acc)}
            out.add(raw) if set(spec.products) & {"fused", "exact"} else None
            if "fused" in spec.products:
                out |= {("number", z) for z in joined(raw, ("number", 0), spec)}
    else:
        left, right = (outcomes(part, a, b, c, spec) for part in tree)
        for x, y in itertools.product(left, right):
            out |= {("number", z) for z in joined(x, y, spec)}
    return closed(out, spec)


def joined(x, y, spec):
    """The codes of an addition."""
    acc, (fa, fb) = spec.accumulator, spec.operand
    if x[0] == y[0] == "raw":
        if "exact" not in spec.products:
            return
        exact = [ref.decode(p[1], fa).fraction * ref.decode(p[2], fb).fraction for p in (x, y)]
        signs = [ref.decode(p[1], fa).sign ^ ref.decode(p[2], fb).sign for p in (x, y)]
        for e in environments(spec, acc):
            sign = signs[0] if signs[0] == signs[1] else int(e["rounding"] == "down")
            yield ref.round_value(sum(exact), sign, acc, **e)[0]
        return
    if x[0] == "number" and y[0] == "raw":
        x, y = y, x
    for e in environments(spec, acc):
        if x[0] == "raw":
            for z in choices(y[1], acc, spec):
                yield canonical(ref.fma(x[1], x[2], z, (fa, fb, acc), out_fmt=acc, **e)[0], acc)
        else:
            for p, z in itertools.product(choices(x[1], acc, spec), choices(y[1], acc, spec)):
                yield canonical(ref.add(p, z, acc, **e)[0], acc)


def closed(out, spec):
    if spec.zeros == "ieee":
        return out
    while True:
        more = set()
        for x in out:
            if x[0] == "number" or ("exact" in spec.products and x[0] == "raw"):
                more |= {("number", z) for z in joined(x, ("number", 0), spec)}
            if spec.zeros == "either" and x[0] == "number":
                value = ref.decode(x[1], spec.accumulator)
                if value.kind == "finite" and not value.numerator:
                    more.add(("number", ref.encode(0.0 if value.sign else -0.0, spec.accumulator)[0]))
        if more <= out:
            return out
        out = out | more


def brute(a, b, c, spec):
    k = len(a)
    leaves = [*range(k), *(["c"] if c is not None else [])]
    found = set()
    for tree in trees(tuple(leaves)):
        if fits(tree, Plain(spec), k):
            for x in outcomes(tree, a, b, c, spec):
                if x[0] == "number":
                    found.add(x[1])
                elif "exact" in spec.products:  # one product alone
                    value = ref.decode(x[1], spec.operand[0]), ref.decode(x[2], spec.operand[1])
                    for e in environments(spec, spec.accumulator):
                        sign = value[0].sign ^ value[1].sign
                        exact = value[0].fraction * value[1].fraction
                        found.add(ref.round_value(exact, sign, spec.accumulator, **e)[0])
    return {canonical(x, spec.accumulator) for x in found}


def agree(a, b, c, spec):
    """The set is that of brute force; every result has a witness that is permitted and gives it; enclosures hold it."""
    pairs = list(zip(a, b, strict=True))
    wanted = brute(a, b, c, spec)
    made = reachable(Machine(spec), pairs, c)
    assert set(made) == wanted, (spec, a, b, c, sorted(wanted ^ set(made)))
    for code, how in made.items():
        witness = witness_of(how, pairs, spec)
        assert witness.problem(spec, len(a), c is not None) == "", (spec, witness.formula())
        assert canonical(witness.value(a, b, spec, c), spec.output) == code, (spec, witness.formula())
    outer = bounded(Machine(spec), pairs, c)
    inner = hull(Machine(spec), pairs, c, outer)
    values = [ref.decode(code, spec.output) for code in made]
    for value in values:
        assert outer.holds(value), (spec, a, b, c, value, outer)
        assert inner is None or inner.holds(value), (spec, a, b, c, value, inner)
    if inner is not None and inner.tight:
        assert (inner.low, inner.high) == (min(v.fraction for v in values), max(v.fraction for v in values))
        assert outer.low <= inner.low and inner.high <= outer.high
    return made


MODES = ("nearest_even", "toward_zero", "up", "down", "nearest_away", "away_from_zero", "to_odd", "nearest_zero")
FORMATS = (
    ("e2m1fn", "e2m1fn"), ("e3m2fn", "e3m2fn"), ("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3fn", "e4m3fn"),
    ("e5m2", "e4m3"), ("e3m2", "e2m1fn"), ("e3m3", "e3m2"), ("e4m3fnuz", "e4m3fnuz"), ("e5m3", "e4m3fn"),
)  # fmt: skip


def drawn(rng, specials):
    """A specification and operands, drawn; specials: infinities and NaNs among them."""
    accumulator, operand = FORMATS[rng.integers(len(FORMATS))]
    pick = lambda *options: options[rng.integers(len(options))]  # noqa: E731
    fmt = sn.format(accumulator)
    several = rng.random() < 0.25
    spec = sn.Freedom(
        accumulator, operand,
        rounding=tuple(str(m) for m in rng.choice(MODES, 2, replace=False)) if several else pick(*MODES[:4], *MODES),
        order=pick("any", "given"), grouping=pick("any", "sequential"),
        products=pick(("rounded", "fused"), "rounded", "fused", *([] if specials else ["exact", ("rounded", "exact")])),
        c=pick("any", "first", "last"), zeros=pick("padded", "padded", "ieee", "either"),
        flush_inputs=pick(False, False, False, True, "either"),
        flush_results=pick(None, None, None, "before", "after", "subnormal", (None, "before")),
        overflow=pick(None, None, "saturate") if "saturate" in fmt.overflow_rules else None,
    )  # fmt: skip
    k = int(rng.integers(1, 5))
    bits = sn.format(operand).bits
    codes = lambda n, width: [int(x) for x in rng.integers(0, 1 << width, n)]  # noqa: E731
    kinds = ("finite",) if not specials else ("finite", "inf", "nan")
    def operands(n, of, width):  # noqa: E306
        out = []
        while len(out) < n:
            x = codes(1, width)[0]
            if rng.random() < 0.3:
                x &= ~(0b11 << width - 3)  # small numbers, zeros and subnormals
            if ref.decode(x, of).kind in kinds:
                out.append(x)
        return out
    a, b = operands(k, operand, bits), operands(k, operand, bits)
    c = operands(1, accumulator, fmt.bits)[0] if rng.random() < 0.5 else None
    return spec, a, b, c


@cases("seed", range(24))
def test_sets_against_brute_force(seed):
    rng, several = np.random.default_rng(seed), 0
    for _ in range(40):
        spec, a, b, c = drawn(rng, specials=False)
        several += len(agree(a, b, c, spec)) > 1
    assert several > 5


@cases("seed", range(8))
def test_sets_with_infinities_and_nans(seed):
    rng, special = np.random.default_rng(1000 + seed), 0
    for _ in range(40):
        spec, a, b, c = drawn(rng, specials=True)
        try:
            made = agree(a, b, c, spec)
        except ValueError as error:
            assert "no code for it" in str(error) and not format_of(spec.accumulator).has_nan
            continue
        special += any(ref.decode(x, spec.output).kind != "finite" for x in made)
    assert special >= 2


def test_all_operands_of_three_products():
    spec = sn.Freedom("e2m1fn", overflow="saturate", zeros="ieee")
    b = [0b0010, 0b0011, 0b1001]  # 1, 1.5, -0.5
    for a in itertools.product(range(16), repeat=3):
        if a[0] <= a[1]:
            agree(list(a), b, None, spec)
