"""Permitted results: the set of all of them against brute force over all trees, enclosures, witnesses, real kernels."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum import reference as ref
from softnum.cli import build_app
from softnum.inspect.permitted import enclosure, judge
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
    """Whether the order and C's place permit a tree over the products 0..k-1 and "c"."""
    if not isinstance(tree, tuple):
        return True
    if spec.c == "last" and "c" in leaves_of(tree):
        return "c" in tree and all(fits(part, spec._with(c="any"), k) for part in tree if part != "c")
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


def bare_forms(leaf, a, b, c, spec):
    """What a leaf may be before anything is added to it: ("number", code) or ("raw", a's code, b's code)."""
    if leaf == "c":
        return {("number", c)}
    out, acc, formats = set(), spec.accumulator, spec.operand
    for x, y in itertools.product(choices(a[leaf], formats[0], spec), choices(b[leaf], formats[1], spec)):
        if "rounded" in spec.products:
            out |= {("number", ref.multiply(x, y, formats, out_fmt=acc, **e)[0]) for e in environments(spec, acc)}
        if set(spec.products) & {"fused", "exact"}:
            out.add(("raw", x, y))
    return out


def forms(leaf, a, b, c, spec):
    """What a leaf may be, +0 added to it included."""
    out = bare_forms(leaf, a, b, c, spec)
    if "fused" in spec.products:
        out |= {("number", z) for x in out if x[0] == "raw" for z in joined(x, ("number", 0), spec)}
    return closed(out, spec)


def sequences(spec, k, with_c):
    """The orders of a running sum's terms."""
    for ks in itertools.permutations(range(k)) if spec.order == "any" else [tuple(range(k))]:
        if not with_c:
            yield ks
            continue
        for place in {"first": (0,), "last": (k,), "any": range(k + 1)}[spec.c]:
            yield (*ks[:place], "c", *ks[place:])


def running(sequence, a, b, c, spec):
    """Everything that a running sum may give, term by term."""
    total = {x for x in forms(sequence[0], a, b, c, spec) if x[0] == "number" or "exact" in spec.products}
    for leaf in sequence[1:]:
        terms = bare_forms(leaf, a, b, c, spec)
        total = closed({("number", z) for x in total for y in terms for z in joined(x, y, spec)}, spec)
    return total


def outcomes(tree, a, b, c, spec):
    """Everything that a tree may give."""
    if not isinstance(tree, tuple):
        return forms(tree, a, b, c, spec)
    left, right = (outcomes(part, a, b, c, spec) for part in tree)
    return closed({("number", z) for x in left for y in right for z in joined(x, y, spec)}, spec)


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
    if spec.grouping == "sequential":
        every = (running(s, a, b, c, spec) for s in sequences(spec, k, c is not None))
    else:
        every = (outcomes(t, a, b, c, spec) for t in trees(tuple(leaves)) if fits(t, Plain(spec), k))
    for x in itertools.chain.from_iterable(every):
        if x[0] == "number":
            found.add(x[1])
        elif "exact" in spec.products:  # one product alone
            exact = [ref.decode(code, fmt) for code, fmt in zip(x[1:], spec.operand, strict=True)]
            product, sign = exact[0].fraction * exact[1].fraction, exact[0].sign ^ exact[1].sign
            found |= {
                ref.round_value(product, sign, spec.accumulator, **e)[0] for e in environments(spec, spec.accumulator)
            }
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
    inner = hull(Machine(spec), pairs, c)
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

    def operands(n, of, width):
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


@cases("seed", range(16))
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
        if a[0] <= a[1] and a[2] % 2 == 0:
            agree(list(a), b, None, spec)


# -- enclosures of long sums: random trees, and trees that err to one side, lie within -------------------------------
WIDER = (
    ("binary16", "binary16"), ("bfloat16", "bfloat16"), ("binary32", "binary16"), ("e5m2", "e5m2"), ("e4m3", "e4m3"),
    ("e4m3fn", "e4m3fn"), ("e5m10", "e5m2"), ("dlfloat16", "e5m2"), ("binary32", "binary32"),
)  # fmt: skip


def long_sum(rng):
    accumulator, operand = WIDER[rng.integers(len(WIDER))]
    fmt, of = sn.format(accumulator), sn.format(operand)
    pick = lambda *options: options[rng.integers(len(options))]  # noqa: E731
    spec = sn.Freedom(
        accumulator, operand, rounding=pick("nearest_even", "nearest_even", *MODES, ("down", "up")),
        products=pick(("rounded", "fused"), "rounded", "fused", "exact"), zeros=pick("padded", "ieee"),
        intermediate=pick("rounded", "rounded", "rounded", "either"), output=pick(None, None, None, "e4m3", "binary16"),
        flush_inputs=pick(False, False, False, True, "either"), flush_results=pick(None, None, "before", "after"),
    )  # fmt: skip
    k = int(rng.integers(2, 33))
    small, large = of.smallest_normal, of.max
    level = pick(0, 0, 0, 1, 2)
    scale = {0: 1.0, 1: float(small) ** pick(0.3, 0.5, 1.0), 2: float(large) ** pick(0.3, 0.45, 0.5)}[level]
    spread = pick(0, 2, 6)

    def operands():
        x = rng.standard_normal(k) * 2.0 ** rng.integers(-spread, spread + 1, k) * scale
        sign = pick(1, 0)
        return sn.encode(np.abs(x) if sign else x, of, overflow="saturate").tolist()

    a, b = operands(), operands()
    c = int(sn.encode([rng.standard_normal() * scale], fmt, overflow="saturate")[0]) if rng.random() < 0.4 else None
    return spec, a, b, c


def run_through(machine, pairs, c, choose, order):
    """One computation: `order` takes two of so many numbers, `choose` one of what an addition may give."""
    items = [choose(machine.leaf(*pair)) for pair in pairs]
    items += [choose(machine.closed({c: ("c",)}))] if c is not None else []
    if len(items) == 1:
        items.append(0)
    while len(items) > 1:
        i, j = order(len(items))
        x, y = items[i], items[j]
        items = [z for n, z in enumerate(items) if n not in (i, j)]
        sums = machine.sums(x, y)
        if not sums:  # two products that were not rounded: one starts from +0
            x = choose(machine.sums(x, 0))
            sums = machine.sums(x, y)
        items.append(choose(machine.closed(dict.fromkeys(sums, ("c",)))))
    last = items[0]
    if not isinstance(last, int) and last.raw:
        last = choose(machine.sums(last, 0))
    return machine.results({last: ("c",)})


@cases("seed", range(16))
def test_enclosures_of_long_sums(seed):
    rng = np.random.default_rng(50 + seed)
    kinds, close = set(), 0.0
    for _ in range(12):
        spec, a, b, c = long_sum(rng)
        pairs = list(zip(a, b, strict=True))
        outer = bounded(Machine(spec), pairs, c)
        machine = Machine(spec)

        def value(item, machine=machine):
            x = ref.decode(item, machine.accumulator) if isinstance(item, int) else item.value
            return x.fraction if x.kind == "finite" else 0

        anything = lambda items: list(items)[rng.integers(len(items))]  # noqa: E731
        highest = lambda items, value=value: max(items, key=value)  # noqa: E731
        lowest = lambda items, value=value: min(items, key=value)  # noqa: E731
        pair = lambda n: tuple(int(i) for i in rng.choice(n, 2, replace=False))  # noqa: E731
        running = lambda n: (n - 1, int(rng.integers(n - 1)))  # noqa: E731
        ends = []
        for choose, order in itertools.product((anything, highest, lowest), (pair, running, lambda n: (n - 1, n - 2))):
            for code in run_through(machine, pairs, c, choose, order):
                x = ref.decode(code, spec.output)
                kinds.add(x.kind)
                assert outer.holds(x), (spec, a, b, c, x, outer)
                if x.kind == "finite":
                    ends.append(x.fraction)
        if ends and outer.high is not None and outer.high > outer.low:
            close = max(close, float((max(ends) - min(ends)) / (outer.high - outer.low)))
    assert "finite" in kinds and close > 0.01


@pytest.mark.parametrize(
    ("accumulator", "rounding", "terms", "reached"),
    [  # all errors go one way, and are as large as they may be: the bound is nearly met
        ("binary16", "toward_zero", [1.0] + [2.0**-10 * 0.999] * 30, "low"),
        ("bfloat16", "up", [1.0] + [2.0**-16] * 60, "high"),
        ("binary32", "nearest_even", [1.0] + [2.0**-24] * 500, "low"),
        ("e4m3", "down", [16.0] + [1.0] * 12, "low"),
    ],
)
def test_enclosures_are_nearly_met(accumulator, rounding, terms, reached):
    terms = sn.quantize(terms, accumulator)
    spec = sn.Freedom(accumulator, rounding=rounding)
    unit = sn.MadUnit(accumulator, operand=accumulator, rounding=rounding)
    got = Fraction(float(sn.dot(terms, np.ones(len(terms)), unit)))
    found = sn.permitted(terms, np.ones(len(terms)), spec, effort=0).enclosure
    exact = sum(map(Fraction, map(float, terms)))
    end = found.low if reached == "low" else found.high
    assert found.low <= got <= found.high and (end - exact) / (got - exact) < 2.2


def test_sums_that_are_exact_have_one_result():
    found = sn.permitted(np.arange(1.0, 200), np.ones(199), sn.Freedom("binary32"))
    assert found.enclosure.low == found.enclosure.high == 19900
    assert "all results: from 19900.0 to 19900.0" in str(found)


def test_overflow_on_the_way():
    spec = sn.Freedom("binary16")
    a, b = [300.0, 300.0, -300.0, 300.0], [200.0, 200.0, 200.0, 1.0]
    found = sn.permitted(a, b, spec)
    assert found.results == (60288.0, np.inf) and sn.permitted(a, b, spec, effort=0).enclosure.specials == {"inf"}
    a, b = [300.0, 300.0, -300.0, -300.0], [200.0] * 4
    assert sn.permitted(a, b, spec).results[:3] == (-np.inf, 0.0, np.inf)
    assert np.isnan(sn.permitted(a, b, spec).results[3]) and len(sn.permitted(a, b, spec).results) == 4
    assert sn.permitted(a, b, spec, effort=0).enclosure.specials == {"inf", "-inf", "nan"}
    cut = sn.Freedom("binary16", rounding="toward_zero")
    assert sn.permitted(a, b, cut, effort=0).enclosure.low == -65504


# -- verdicts ----
BINARY32 = sn.Freedom("binary32")


def matrices(seed, m, k, n):
    """Sums of about 1e-4 of terms of one sign: far below a usual tolerance, and without cancellation."""
    rng = np.random.default_rng(seed)
    draw = lambda shape: (np.abs(rng.standard_normal(shape)) * 2.0**-10).astype(np.float32)  # noqa: E731
    return draw((m, k)), draw((k, n))


@cases("k", [64, 256])
def test_numpys_products_are_permitted(k):
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((4, k)).astype(np.float32), rng.standard_normal((k, 4)).astype(np.float32)
    for name, result in {
        "matmul": a @ b, "einsum": np.einsum("ik,kj->ij", a, b), "sum": (a[:, :, None] * b[None]).sum(1),
        "dot": np.array([[np.dot(x, y) for y in np.ascontiguousarray(b.T)] for x in a]),
    }.items():  # fmt: skip
        found = sn.permitted(a, b, BINARY32, result=result)
        assert found.count("refuted") == 0, (name, str(found))
        assert found.count("permitted") >= 14, (name, str(found))
        witness, at = found.elements[2][3].witness, (2, 3)
        if witness is not None:
            assert witness.replay(a[at[0]], b[:, at[1]], BINARY32) == result[at]
            assert not witness.problem(BINARY32, k, False)


def test_pytorchs_products_are_permitted():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rng = np.random.default_rng(7)
    for k in (64, 256):
        a, b = rng.standard_normal((4, k)).astype(np.float32), rng.standard_normal((k, 5)).astype(np.float32)
        result = (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()
        found = sn.permitted(a, b, BINARY32, result=result)
        assert found.count("refuted") == 0 and found.count("permitted") >= 17, str(found)


def test_a_kernel_of_zeros_is_refuted_where_a_tolerance_accepts_it():
    a, b = matrices(3, 6, 96, 5)
    zeros = np.zeros((6, 5), np.float32)
    assert np.allclose(zeros, a @ b, rtol=1e-3, atol=1e-3)
    found = sn.permitted(a, b, BINARY32, result=zeros)
    assert found.verdict == "refuted" and found.count("refuted") == 30
    assert "all results are from" in found.elements[0][0].proof
    assert sn.permitted(a, b, BINARY32, result=a @ b).count("refuted") == 0


def test_small_faults_are_refuted():
    a, b = matrices(4, 4, 128, 3)
    right = a @ b
    for wrong in (right * np.float32(1 + 2e-5), right - a[:, :1] * b[:1], np.full_like(right, np.nan)):
        assert sn.permitted(a, b, BINARY32, result=wrong).count("refuted") == 12
    halves = sn.quantize(right, "binary16").astype(np.float32)  # a kernel that returns binary16
    assert sn.permitted(a, b, BINARY32, result=halves).count("refuted") >= 10


def test_a_result_that_is_no_value_of_the_format():
    found = sn.permitted([1.0], [1.0], sn.Freedom("binary16"), result=1 + 2.0**-20)
    assert found.verdict == "refuted" and found.proof == "it is no value of binary16"
    assert sn.permitted([1.0], [-0.0], sn.Freedom("binary16", zeros="ieee"), result=0.0).verdict == "permitted"
    rounded = sn.Freedom("binary16", zeros="ieee", products="rounded")
    assert sn.permitted([1.0], [-0.0], rounded, result=0.0).verdict == "refuted"
    assert sn.permitted([np.inf], [0.0], rounded, result=np.nan).verdict == "permitted"
    assert sn.permitted([], [], rounded, result=0.0).verdict == "permitted"
    assert sn.permitted([], [], rounded, -2.0, -2.0).verdict == "permitted"


def test_narrow_operands_with_a_wide_accumulator():
    rng = np.random.default_rng(2)
    spec = sn.Freedom("binary32", "e4m3fn", output="bfloat16")
    a, b = (sn.quantize(rng.standard_normal(s), "e4m3fn") for s in ((5, 100), (100, 4)))
    result = sn.quantize(sn.matmul(a, b, sn.MadUnit("binary32", operand="e4m3fn", lanes=4)), "bfloat16")
    found = sn.permitted(a, b, spec, result=result)
    assert found.verdict == "permitted" and found.first("refuted") is None
    one = found.elements[0][0]
    assert one.witness.nodes[-1].op == "output" and one.witness.replay(a[0], b[:, 0], spec) == result[0, 0]
    exact = sn.Freedom("binary32", "e4m3fn", intermediate="exact", products="exact")
    unit = sn.ExactDotUnit("binary32", operand="e4m3fn")
    assert sn.permitted(a[0], b[:, 0], exact).enclosure.holds(ref.decode(*_code(sn.dot(a[0], b[:, 0], unit))))


def _code(x):
    return int(np.float32(x).view(np.uint32)), "binary32"


UNITS = {
    "a running sum": sn.MadUnit("e5m6", operand="e5m2"),
    "rounded products": sn.MadUnit("e5m6", operand="e5m2", product="e5m6"),
    "lanes": sn.MadUnit("e5m6", operand="e5m2", lanes=8, reduction="tree"),
    "chunks": sn.MadUnit("e5m6", operand="e5m2", chunk=16),
    "cut off": sn.MadUnit("e5m6", operand="e5m2", rounding="toward_zero"),
    "binary16": sn.MadUnit("e5m6", operand="e5m2", product="e5m3", rounding="up"),
    "flushed": sn.MadUnit("e5m6", operand="e5m2", flush_inputs=True, flush_results="after"),
}


@cases("name", list(UNITS))
@cases("with_c", [False, True])
def test_units_lie_within_the_freedom_they_use(name, with_c):
    unit, rng = UNITS[name], np.random.default_rng(11)
    a, b = (sn.quantize(rng.standard_normal(s), "e5m2") for s in ((4, 64), (64, 4)))
    c = sn.quantize(rng.standard_normal((4, 4)), "e5m6") if with_c else None
    spec = sn.Freedom(
        "e5m6", "e5m2", product=unit.product, rounding=unit.rounding, flush_inputs=unit.flush_inputs,
        flush_results=unit.flush_results, products="fused" if unit.product is None else "rounded",
    )  # fmt: skip
    found = sn.permitted(a, b, spec, c, sn.matmul(a, b, unit, c))
    assert found.verdict == "permitted", str(found)
    strict = sn.Freedom("e5m6", "e5m2", order="given", grouping="sequential", products="fused", c="first")
    judged = sn.permitted(a, b, strict, c, sn.matmul(a, b, unit, c))
    # products of e5m2 are exact in e5m6, and nothing here is subnormal
    same = ("a running sum", "rounded products", "flushed")
    assert judged.verdict == ("permitted" if name in same else "refuted") and judged.count("undecided") == 0


def test_the_answer_for_every_result_of_a_small_sum():
    """Each code of the format is permitted just where brute force reaches it, by the search or by the set."""
    rng = np.random.default_rng(5)
    for _ in range(3):
        spec = sn.Freedom("e4m3", order=str(rng.choice(["any", "given"])))
        a, b = (sn.quantize(rng.standard_normal(4) * 4, "e4m3", overflow="saturate") for _ in range(2))
        codes = [sn.encode(x, "e4m3").tolist() for x in (a, b)]
        wanted = brute(*codes, None, spec)
        for code in range(256):
            value = float(sn.decode([code], "e4m3")[0])
            found = sn.permitted(a, b, spec, result=value)
            assert found.verdict == ("permitted" if canonical(code, "e4m3") in wanted else "refuted")
            if found.witness is not None:
                assert found.witness.problem(spec, 4, False) == ""
                assert found.witness.value(*codes, spec) == canonical(code, "e4m3")


@cases("seed", range(4))
def test_what_the_search_finds_is_permitted_and_replays(seed):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        spec, a, b, c = long_sum(rng)
        pairs = list(zip(a, b, strict=True))
        rows = [np.array([x], f.storage_dtype) for x, f in zip((a, b), spec.operand, strict=True)]
        start = None if c is None else np.array([c], spec.accumulator.storage_dtype)
        machine = Machine(spec)
        anything = lambda items: list(items)[rng.integers(len(items))]  # noqa: E731
        (code, *_) = run_through(machine, pairs, c, anything, lambda n: (n - 1, n - 2))
        for witness in (found_by_orders(spec, *rows, start, [code]).get(0), found_by_chance(spec, pairs, c, code)):
            if witness is not None:
                assert witness.problem(spec, len(a), c is not None) == ""
                assert canonical(witness.value(a, b, spec, c), spec.output) == code


# -- witnesses -------------------------------------------------------------------------------------------------------
def test_witnesses_that_break_a_rule_are_told():
    spec = sn.Freedom("binary32", order="given", products="rounded", zeros="ieee")
    found = sn.permitted([1, 2, 4], [1, 1, 1], spec, result=7)
    nodes = found.witness.nodes
    assert found.witness.problem(spec, 3, False) == ""
    told = lambda nodes, spec=spec, k=3, c=False: Witness(tuple(nodes)).problem(spec, k, c)  # noqa: E731
    assert "2 of 3 products" in told([n for n in nodes if n.left != 2 or n.op != "product"][:3])
    product = [n for n in nodes if n.op == "product"]
    add = next(n for n in nodes if n.op == "add")
    far = [
        *(product[0]._replace(left=i) for i in (0, 2, 1)),
        add._replace(left=0, right=1),
        add._replace(left=3, right=2),
    ]
    assert "no neighbours" in told(far)
    assert told(far, sn.Freedom("binary32", products="rounded")) == ""
    assert "not rounded on its own" in told([product[0]._replace(op="exact"), *far[1:]])
    free = sn.Freedom("binary32", products="rounded")
    assert "taken twice" in told([*far[:4], add._replace(left=3, right=1)], free)
    assert "adds two sums" in told(
        [*(product[0]._replace(left=i) for i in range(4)), add._replace(left=0, right=1), add._replace(left=2, right=3),
         add._replace(left=4, right=5)], sn.Freedom("binary32", grouping="sequential"), 4)  # fmt: skip
    assert "there is no C" in told([nodes[0]._replace(op="c"), *far])
    assert "flushes" in told([far[0]._replace(reads=(True, False)), *far[1:]])


def test_witnesses_as_text_and_data():
    spec = sn.Freedom("e4m3", order="given", products="rounded")
    found = sn.permitted([16, 1, 1], [1, 1, 1], spec, 2.0)
    assert found.verdict is None and found.codes
    found = sn.permitted([16, 1, 1], [1, 1, 1], spec, 2.0, result=found.results[-1])
    assert found.witness.replay([16, 1, 1], [1, 1, 1], spec, 2.0) == found.given
    again = Witness(tuple(type(found.witness.nodes[0])(*node) for node in found.to_dict()["witness"]["nodes"]))
    assert again.nodes == found.witness.nodes and "round(a0*b0)" in again.formula()


# -- what is stated --------------------------------------------------------------------------------------------------
def test_specifications_as_text():
    for spec in (
        sn.Freedom("binary32"),
        sn.Freedom("e4m3", ("e5m2", "e4m3fn"), rounding=("up", "down"), flush_results=(None, "after")),
        sn.Freedom("binary32", "q4.4", output="binary16", c="last", zeros="ieee", flush_inputs="either"),
        sn.Freedom("binary32", overflow="saturate", flush_inputs=True),
        sn.Freedom("binary32", product="binary16", intermediate="either", products=("exact", "rounded")),
    ):  # fmt: skip
        assert freedom_of(spec.expression) == spec and freedom_of(spec) is spec
        assert str(spec)
    assert sn.Freedom("binary32", rounding="rne") == sn.Freedom("binary32")


@cases("error, text, make", [
    (ValueError, "order must be one of", lambda: sn.Freedom("binary32", order="all")),
    (ValueError, "takes random bits", lambda: sn.Freedom("binary32", rounding="stochastic")),
    (ValueError, "floating-point format", lambda: sn.Freedom("q4.4", "e5m2")),
    (ValueError, "up to 64 bits", lambda: sn.Freedom("binary128")),
    (ValueError, "up to 64 bits", lambda: sn.ImeFreedom("binary32", "q4.4")),
    (ValueError, "must have signs and a zero", lambda: sn.Freedom("e8m0fnu", "e5m2")),
    (ValueError, "operands must be floats", lambda: sn.Freedom("binary32", "posit8")),
    (ValueError, "flush_inputs must be", lambda: sn.Freedom("binary32", flush_inputs="no")),
    (ValueError, "products needs at least one", lambda: sn.Freedom("binary32", products=())),
    (ValueError, "no expression of a specification", lambda: freedom_of("Freedom('binary32', order=print)")),
    (ValueError, "one reads", lambda: freedom_of("Freedom('binary32'")),
    (TypeError, "a Freedom, or its expression", lambda: freedom_of(3)),
    (ValueError, "a has 2 elements|got \\(2,\\) and \\(3,\\)", lambda: sn.permitted([1, 2], [1, 2, 3], BINARY32)),
    (ValueError, "the result has shape", lambda: sn.permitted([1], [1], BINARY32, result=[1.0])),
    (ValueError, "c has shape", lambda: sn.permitted([1], [1], BINARY32, [1.0])),
    (ValueError, "is no value of", lambda: sn.permitted([0.1], [1], BINARY32)),
    (ValueError, "effort must be", lambda: sn.permitted([1], [1], BINARY32, effort=-1)),
    (ValueError, "no code for it", lambda: sn.permitted(
        [np.inf], [0.0], sn.Freedom("e2m1fn", "binary32", products="rounded"))),
], ids=lambda x: None)  # fmt: skip
def test_what_is_refused(error, text, make):
    with pytest.raises(error, match=text):
        make()


def test_the_effort_bounds_the_work():
    machine = Machine(BINARY32, 10)
    with pytest.raises(Exceeded):
        reachable(machine, [(i, i + 1) for i in range(0x3F800000, 0x3F800009)], None)
    found = sn.permitted(np.arange(1.0, 10) / 8, np.arange(1.0, 10), BINARY32, effort=20)
    assert found.codes is None and found.enclosure is not None
    assert judge.EFFORT == 200_000


# -- RISC-V's Integrated Matrix Extension ----------------------------------------------------------------------------
def ime(a, b, c, spec, group, rnd):
    """One disclosure, by Fractions: of numbers whose sums are not zero."""
    size, acc = group * spec.w, Fraction(c)
    rounded = lambda x, mode: ref.decode(ref.round_value(x, 0, spec.accumulator, rounding=mode)[0], spec.accumulator)  # noqa: E731
    for first in range(0, len(a), size):
        s = sum(
            Fraction(x) * Fraction(y) for x, y in zip(a[first : first + size], b[first : first + size], strict=True)
        )
        if rnd != "xct":
            s = rounded(s, spec.rounding if rnd == "frm" else "to_odd").fraction
        acc = rounded(acc + s, spec.rounding).fraction
    return float(acc)


@cases("seed", range(4))
def test_ime_by_its_definition(seed):
    rng, different = np.random.default_rng(seed), 0
    sizes = ("binary32", "binary16", 4, 2), ("binary16", "e4m3", 8, 2), ("bfloat16", "bfloat16", 4, 1)
    for accumulator, operand, lam, w in sizes:
        mode = str(rng.choice(["nearest_even", "toward_zero", "down", "up", "nearest_away"]))
        spec = sn.ImeFreedom(accumulator, operand, lam=lam, w=w, rounding=mode)
        a, b = (sn.quantize(np.abs(rng.standard_normal(2 * lam * w)) + 0.1, operand).tolist() for _ in range(2))
        c = float(sn.quantize([abs(rng.standard_normal())], accumulator)[0])
        wanted = {ime(a, b, c, spec, g, rnd) for g in spec.groups for rnd in spec.rnd}
        found = sn.permitted(a, b, spec, c)
        assert set(found.results) == wanted
        different += len(wanted) > 1
        for x in wanted:
            judged = sn.permitted(a, b, spec, c, x)
            assert judged.verdict == "permitted" and x in judged.witness.replay(a, b, spec, c)
        other = sn.permitted(a, b, spec, c, result=2 * max(wanted))
        assert (other.verdict == "refuted" and "none of" in other.proof) or len(wanted) == 1
    assert different


def test_ime_as_text_and_what_it_refuses():
    for spec in (
        sn.ImeFreedom("binary32", "e5m2", lam=8, w=4, groups=(2, 4), rnd="rto", rounding="up"),
        sn.ImeFreedom("binary64", lam=2),
    ):  # fmt: skip
        assert freedom_of(spec.expression) == spec and spec.expression in repr(spec)
    with pytest.raises(ValueError, match="no multiple of lambda"):
        sn.permitted([1.0] * 6, [1.0] * 6, sn.ImeFreedom("binary32", lam=4))
    for options, text in (
        ({"lam": 3}, "lam must be"), ({"groups": 8}, "powers of two up to lambda"), ({"rnd": "odd"}, "rnd must be"),
        ({"rounding": "to_odd"}, "frm is one of"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            sn.ImeFreedom("binary32", **options)
    zeros = sn.permitted([1.0, -1.0], [1.0, 1.0], sn.ImeFreedom("binary32", lam=2), -0.0)
    assert [str(x) for x in zeros.results] == ["-0.0", "0.0"]


# -- the command line ------------------------------------------------------------------------------------------------
def test_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 48)).astype(np.float32), rng.standard_normal((48, 4)).astype(np.float32)
    c = rng.standard_normal((3, 4)).astype(np.float32)
    started = sn.matmul(a, b, sn.MadUnit("binary32", operand="binary32"), c)
    arrays = {"a": a, "b": b, "c": c, "d": a @ b, "zero": np.zeros((3, 4)), "e": started}
    paths = {name: tmp_path / f"{name}.npy" for name in arrays}
    for name, array in arrays.items():
        np.save(paths[name], array)
    run = lambda *files: CliRunner().invoke(build_app(), ["permitted", *map(str, files)])  # noqa: E731
    shown = run(paths["a"], paths["b"], paths["d"])
    assert shown.exit_code == 0 and "12 elements: 12 permitted, 0 refuted, 0 undecided" in shown.stdout
    out = tmp_path / "found.json"
    shown = run(paths["a"], paths["b"], paths["zero"], "--json", "--out", out)
    assert shown.exit_code == 1 and json.loads(shown.stdout) == json.loads(out.read_text())
    assert json.loads(shown.stdout)["refuted"] == 12 and json.loads(shown.stdout)["first refuted"]["at"] == [0, 0]
    spec = ["--spec", "Freedom('binary32', order='given', grouping='sequential', c='first')"]
    assert run(paths["a"], paths["b"], paths["c"], paths["e"], *spec).exit_code == 0
    assert run(paths["a"], paths["b"], paths["d"], "--spec", "Freedom('e5m2')").exit_code == 2
    assert run(paths["a"], paths["b"]).exit_code == 2
    np.save(tmp_path / "complex.npy", (a @ b).astype(complex))
    shown = run(paths["a"], paths["b"], tmp_path / "complex.npy")
    assert shown.exit_code == 2 and "got complex128" in shown.output


# -- the comparisons themselves --------------------------------------------------------------------------------------
FAULTS = {
    "errors of half their size": (enclosure, "_lost", lambda *known: tuple(x / 2 for x in LOST(*known))),
    "the largest term left out": (enclosure, "sorted", lambda terms, reverse: sorted(terms, reverse=reverse)[1:]),
    "nothing is flushed": (Machine, "readings", lambda self, item: (False,)),
    "+0 is never added": (Machine, "closed", lambda self, found: found),
}
LOST = enclosure._lost


@cases("name", list(FAULTS))
def test_a_planted_fault_is_caught(name, monkeypatch):
    where, what, fault = FAULTS[name]
    monkeypatch.setattr(where, what, fault, raising=False)
    rng = np.random.default_rng(0)
    spec = sn.Freedom("binary16", rounding="toward_zero")
    terms = sn.encode([1.0] + [2.0**-10 * 0.999] * 30, "binary16").tolist()
    one = sn.encode([1.0], "binary16").tolist()[0]
    with pytest.raises(AssertionError):
        outer = bounded(Machine(spec), [(x, one) for x in terms], None)
        assert outer.holds(ref.decode(one, "binary16"))
        for _ in range(400):
            case, *operands = drawn(rng, specials=False)
            agree(*operands, case)


def test_infinities_that_the_output_lacks_are_no_zeros():
    """Sums that overflow to an infinity, which the output's format saturates: the least and greatest are not known."""
    spec = sn.Freedom("e3m4", "e4m3", output="e2m3fn", products="exact", intermediate="either")
    a, b = [6.5, -10.0, 4.5, 6.0, 0.8125, -3.25], [1.0] * 6
    results = sn.permitted(a, b, spec).results
    assert 7.5 in results
    for effort in (0, 400, 800, 1500):
        for result in results:
            assert sn.permitted(a, b, spec, result=result, effort=effort).verdict != "refuted", (effort, result)


def test_an_exact_sum_of_infinities_is_replayed():
    spec = sn.Freedom("e2m2", "e3m2fn", products="rounded", intermediate="exact", overflow="infinity")
    found = sn.permitted([20.0, 12.0], [-24.0, 3.5], spec, 1.75, result=float("nan"))
    assert found.verdict == "permitted"
    assert np.isnan(found.witness.replay([20.0, 12.0], [-24.0, 3.5], spec, 1.75))


def test_a_product_alone_is_rounded_to_the_accumulator():
    """Its code in the product's format says nothing of a result."""
    spec = sn.Freedom("e3m1", "e3m4", product="e3m4", products="rounded", zeros="ieee")
    for result in (0.125, 0.0):
        found = sn.permitted([0.015625], [1.0], spec, result=result)
        assert found.verdict == ("refuted" if result else "permitted")
        assert result or found.witness.replay([0.015625], [1.0], spec) == 0


def test_a_nan_that_the_output_lacks_is_no_result():
    """A NaN that only the enclosure cannot exclude is no error, and ends that overflow are no results."""
    spec = sn.Freedom("e2m2", output="e2m3fn", rounding="up", products="fused", intermediate="rounded")
    a, b = [3.0, 2.0, -3.5, 1.25], [0.5, -1.5, -1.75, -1.25]
    for result in sn.permitted(a, b, spec).results:
        assert sn.permitted(a, b, spec, result=result, effort=0).verdict != "refuted"
    spec = sn.Freedom("binary8p3se", product="e3m2fn", output="e4m3fn", c="last", zeros="either", intermediate="either")
    a, b, c = [64.0, 40960.0, 7.62939453125e-06], [192.0, 0.0068359375, 1536.0], -0.00390625
    assert all(not found.enclosure.tight for found in [sn.permitted(a, b, spec, c, effort=e) for e in (0, 100)]
               if found.enclosure)  # fmt: skip
