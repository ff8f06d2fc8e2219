"""The functions of IEEE 754-2019 clause 9.2 that gmpy2 lacks, and logaddexp: codes of small formats, special values.

The oracle computes them from MPFR's functions at 1600 bits (`tests.support.elementary_oracle`).
"""

import itertools
import random

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.modes import Flags
from tests.support.cases import cases
from tests.support.core_oracles import edge_codes
from tests.support.elementary_checks import check, check_special
from tests.support.elementary_oracle import MORE_BINARY, MORE_UNARY

SMALL = ["e5m2", "e4m3fn", "e4m3fnuz", "e2m3fn", "q4.4", "uq2.6", "binary8p3se", "binary8p4sf", "binary8p1ue"]
MODES = ["nearest_even", "up", "down", "to_odd", "stochastic", "nearest_away", "toward_zero"]


def environment(mode, i=0):
    found = {"rounding": mode, "tininess": ("after", "before")[i % 2], "nan": ("canonical", "x86", "arm")[i % 3]}
    return found | ({"stochastic_bits": 4} if mode == "stochastic" else {})


@cases("name", MORE_UNARY)
@cases("fmt", SMALL)
def test_every_code(fmt, name):
    fmt = sn.format(fmt)
    codes = np.arange(1 << fmt.bits, dtype=np.uint8)
    for i, mode in enumerate(MODES[:5]):
        env = environment(mode, i)
        if fmt.kind != "float":
            env.pop("tininess")
        check(name, [codes], fmt, env)


@cases("name", [*MORE_BINARY, "atan2"])
@cases("fmt", SMALL)
def test_pairs(fmt, name):
    """Edges with edges, and pairs at random."""
    fmt, rng = sn.format(fmt), random.Random(fmt)
    edges = edge_codes(fmt)[::3].tolist()
    pairs = [*itertools.product(edges, edges)][::7]
    pairs += [(rng.randrange(1 << fmt.bits), rng.randrange(1 << fmt.bits)) for _ in range(100)]
    if name in ("compound", "rootn", "pown"):  # integers
        few = sn.encode([-4.0, -3.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0], fmt, overflow="saturate", invalid=0).tolist()
        pairs += itertools.product(range(0, 1 << fmt.bits, 7), few)
    a, b = np.array(pairs, fmt.storage_dtype).T.copy()
    for i, mode in enumerate(MODES[2:6] if fmt.kind == "float" else MODES[:2]):
        env = environment(mode, i)
        if fmt.kind != "float":
            env.pop("tininess")
        check(name, [a, b], fmt, env)


INF, NAN = float("inf"), float("nan")
D, V = int(Flags.DIVIDE_BY_ZERO), int(Flags.INVALID)
X = int(Flags.INEXACT)
PI = 3.140625  # in binary16
SPECIAL = [
    *[(f, (s * 0.0,), s * 0.0, 0) for f in (
        "asinh", "atanh", "sinpi", "tanpi", "asinpi", "atanpi", "exp2m1", "exp10m1", "log2p1", "log10p1")
      for s in (1, -1)],
    *[(f, (s * INF,), NAN, V) for f in ("sinpi", "cospi", "tanpi", "asinpi", "acospi", "atanh") for s in (1, -1)],
    *[("asinh", (s * INF,), s * INF, 0) for s in (1, -1)], *[("atanh", (s * 1.0,), s * INF, D) for s in (1, -1)],
    ("atanh", (1.5,), NAN, V), ("acosh", (1.0,), 0.0, 0), ("acosh", (0.5,), NAN, V), ("acosh", (-0.0,), NAN, V),
    ("acosh", (INF,), INF, 0), ("acosh", (-INF,), NAN, V),
    *[("sinpi", (s * x,), s * y, 0) for x, y in ((1.0, 0.0), (2.0, 0.0), (0.5, 1.0), (1.5, -1.0), (2.5, 1.0))
      for s in (1, -1)],
    *[("cospi", (x,), y, 0) for x, y in ((0.0, 1.0), (-0.5, 0.0), (1.5, 0.0), (3.0, -1.0), (-2.0, 1.0))],
    # "tanPi(n) is +0 for positive even and negative odd integers, tanPi(n + 1/2) is +infinity for even n"
    *[("tanpi", (x,), y, 0) for x, y in (
        (1.0, -0.0), (2.0, 0.0), (-1.0, 0.0), (-2.0, -0.0), (0.25, 1.0), (0.75, -1.0), (-0.25, -1.0), (1.25, 1.0))],
    *[("tanpi", (x,), y, D) for x, y in ((0.5, INF), (1.5, -INF), (-0.5, -INF), (-1.5, INF), (2.5, INF))],
    ("asinpi", (1.0,), 0.5, 0), ("asinpi", (-1.0,), -0.5, 0), ("acospi", (1.0,), 0.0, 0), ("acospi", (-1.0,), 1.0, 0),
    ("acospi", (-0.0,), 0.5, 0), ("atanpi", (-1.0,), -0.25, 0), ("atanpi", (INF,), 0.5, 0),
    *[(f, (-1.0625,), NAN, V) for f in ("asinpi", "acospi", "log2p1", "log10p1")],
    *[(f, (-1.0,), -INF, D) for f in ("log2p1", "log10p1")], ("log2p1", (-0.75,), -2.0, 0),
    ("log2p1", (1023.0,), 10.0, 0), ("log10p1", (999.0,), 3.0, 0),
    *[(f, (-INF,), NAN, V) for f in ("log2p1", "log10p1")],
    *[(f, (-INF,), -1.0, 0) for f in ("exp2m1", "exp10m1")], ("exp10", (-INF,), 0.0, 0), ("exp10", (-0.0,), 1.0, 0),
    *[(f, (INF,), INF, 0) for f in ("exp10", "exp2m1", "exp10m1", "log2p1", "log10p1")], ("exp10", (4.0,), 10000.0, 0),
    ("exp2m1", (-3.0,), -0.875, 0), ("exp2m1", (5.0,), 31.0, 0), ("exp10m1", (3.0,), 999.0, 0),
    *[("atan2", (s * 0.0, -0.0), s * PI, X) for s in (1, -1)],
    *[("atan2", (s * 0.0, 0.0), s * 0.0, 0) for s in (1, -1)],
    *[("atan2", (s * 0.0, x), s * y, f) for x, y, f in ((-2.0, PI, X), (2.0, 0.0, 0)) for s in (1, -1)],
    *[("atan2", (s * 2.0, x), s * y, f) for x, y, f in (
        (-0.0, PI / 2, X), (0.0, PI / 2, X), (-INF, PI, X), (INF, 0.0, 0)) for s in (1, -1)],
    *[("atan2", (s * INF, x), s * y, X) for x, y in ((3.0, PI / 2), (INF, PI / 4), (-INF, 2.35546875))
      for s in (1, -1)],
    *[("atan2pi", (s * y, x), s * v, 0) for y, x, v in (
        (0.0, -0.0, 1.0), (0.0, 0.0, 0.0), (0.0, -2.0, 1.0), (2.0, -0.0, 0.5), (INF, -INF, 0.75), (INF, INF, 0.25),
        (INF, 1.0, 0.5), (1.0, -INF, 1.0), (1.0, INF, 0.0), (3.0, -3.0, 0.75), (3.0, 3.0, 0.25)) for s in (1, -1)],
    ("logaddexp", (-INF, -INF), -INF, 0), ("logaddexp", (-INF, 3.0), 3.0, 0), ("logaddexp", (-0.0, -INF), 0.0, 0),
    ("logaddexp", (INF, -INF), INF, 0), ("logaddexp", (NAN, INF), NAN, 0), ("logaddexp2", (-1.0, -1.0), 0.0, 0),
    ("logaddexp2", (5.0, 5.0), 6.0, 0),
    *[("compound", (x, 0.0), 1.0, 0) for x in (-1.0, 0.5, INF, NAN)], ("compound", (-1.5, 0.0), NAN, V),
    ("compound", (-1.0, -2.0), INF, D), ("compound", (-1.0, 2.0), 0.0, 0), ("compound", (-0.0, -3.0), 1.0, 0),
    ("compound", (INF, 2.0), INF, 0), ("compound", (INF, -2.0), 0.0, 0), ("compound", (NAN, 1.0), NAN, 0),
    ("compound", (1.0, 0.5), NAN, V), ("compound", (1.0, INF), NAN, V), ("compound", (1.0, -3.0), 0.125, 0),
    ("compound", (0.5, 2.0), 2.25, 0),
    ("rootn", (0.0, -3.0), INF, D), ("rootn", (-0.0, -3.0), -INF, D), ("rootn", (-0.0, -2.0), INF, D),
    ("rootn", (-0.0, 2.0), 0.0, 0), ("rootn", (-0.0, 3.0), -0.0, 0), ("rootn", (INF, 2.0), INF, 0),
    ("rootn", (-INF, 3.0), -INF, 0), ("rootn", (-INF, -3.0), -0.0, 0), ("rootn", (-INF, 2.0), NAN, V),
    ("rootn", (INF, -4.0), 0.0, 0), ("rootn", (2.0, 0.0), NAN, V), ("rootn", (-4.0, 2.0), NAN, V),
    ("rootn", (4.0, 0.5), NAN, V), ("rootn", (NAN, 0.0), NAN, 0), ("rootn", (-27.0, 3.0), -3.0, 0),
    ("rootn", (16.0, -4.0), 0.5, 0), ("rootn", (5.0, 1.0), 5.0, 0),
    *[("pown", (x, 0.0), 1.0, 0) for x in (NAN, INF, -2.0, 0.0)], ("pown", (1.0, NAN), NAN, 0),
    ("pown", (1.0, INF), NAN, V), ("pown", (2.0, 0.5), NAN, V), ("pown", (-0.0, -3.0), -INF, D),
    ("pown", (-0.0, -2.0), INF, D), ("pown", (-0.0, 3.0), -0.0, 0), ("pown", (-INF, -3.0), -0.0, 0),
    ("pown", (-2.0, 3.0), -8.0, 0),
    ("powr", (2.0, 0.0), 1.0, 0), ("powr", (-0.0, -3.0), INF, D), ("powr", (0.0, -INF), INF, 0),
    ("powr", (-0.0, 3.0), 0.0, 0), ("powr", (1.0, -7.0), 1.0, 0), ("powr", (1.0, INF), NAN, V),
    ("powr", (0.0, -0.0), NAN, V), ("powr", (INF, 0.0), NAN, V), ("powr", (-1.0, 2.0), NAN, V),
    ("powr", (-INF, 2.0), NAN, V), ("powr", (2.0, NAN), NAN, 0), ("powr", (NAN, 0.0), NAN, 0),
    ("powr", (INF, -1.0), 0.0, 0), ("powr", (0.5, INF), 0.0, 0), ("powr", (4.0, 0.5), 2.0, 0),
]  # fmt: skip


@cases(("name", "operands", "want", "flags"), SPECIAL)
def test_special_values(name, operands, want, flags):
    """9.2.1, by hand."""
    check_special(name, operands, want, flags)


def test_p3109():
    """Where its report says otherwise: no angle of (0, 0) and of infinities, no 1 / 0; atanh(1) is an infinity."""
    fmt = "binary8p4se"
    nan, inf = sn.format(fmt).nan_code, sn.format(fmt).inf_code
    one = int(sn.encode(1.0, fmt))
    for name, codes, want in (
        ("atan2", (0, 0), nan), ("atan2", (inf, inf), nan), ("atan2pi", (0x80 | inf, inf), nan), ("atan2", (0, one), 0),
        ("atan2pi", (inf, one), one - 8), ("atanh", (one,), inf), ("atanh", (one | 0x80,), inf | 0x80),
        ("tanpi", (int(sn.encode(0.5, fmt)),), nan), ("log2p1", (one | 0x80,), inf | 0x80), ("pown", (nan, 0), nan),
        ("compound", (nan, 0), nan), ("compound", (one | 0x80, one | 0x80), nan), ("rootn", (0, one | 0x80), nan),
        ("powr", (0, one | 0x80), nan),
    ):  # fmt: skip
        code, flags = getattr(sn.ops, name)(*([c] for c in codes), fmt, return_flags=True)
        assert (int(code[0]), int(flags[0])) == (want, 0) == getattr(ref, name)(*codes, fmt), (name, codes)


def test_results_beside_numbers():
    """Of binary64 and wider exponents, where a result lies beside 1, an integer, a half or another's value."""
    rng = random.Random(3)
    tiny = [2.0**-k for k in (30, 52, 60, 100, 300, 1000, 1060)]
    values = [*tiny, *(-x for x in tiny), *(1 / x for x in tiny[:6]), 1 + 2.0**-52, 0.25, -0.75, 3.0, 7.0, 999.0, 1e22]
    pairs = [*itertools.product(values, values)]
    pairs += [(x, x * (1 + 2.0**-52)) for x in values] + [(x, -x) for x in values]
    pairs += [(rng.uniform(-9, 9), float(rng.randrange(-40, 40))) for _ in range(60)]
    a, b = (sn.encode(np.array(column), "binary64") for column in zip(*pairs, strict=True))
    for mode in ("up", "down", "nearest_even"):
        for name in (*MORE_BINARY, "atan2"):
            check(name, [a[:: 1 if name != "logaddexp2" else 5], b[:: 1 if name != "logaddexp2" else 5]],
                  sn.format("binary64"), {"rounding": mode})  # fmt: skip
        for name in (*MORE_UNARY, "asinh", "acosh", "atanh"):
            check(name, [sn.encode(np.array(values), "binary64")], sn.format("binary64"), {"rounding": mode})


@pytest.mark.parametrize("name", ["compound", "pown", "exp10", "exp10m1", "exp2m1", "pow"])
def test_integers_out_of_a_fixed_range_are_exact(name):
    """A whole number that overflows has no fraction to lose, however long it is; wrapped, its low bits are right."""
    x, n = sn.array([3.0, 7.0, 1.5], "binary64"), sn.array([200.0, 300.0, 200.0], "binary64")
    operands = (n,) if name.startswith("exp") else (x, n)
    _, flags = getattr(sn.ops, name)(*operands, out_fmt="q8.8", overflow="saturate", return_flags=True)
    lost = X if name in ("compound", "pown", "pow") else 0
    assert flags.tolist() == [int(Flags.OVERFLOW)] * 2 + [int(Flags.OVERFLOW) | lost]
    codes = [c.tolist() for c in (o.codes for o in operands)]
    want = [getattr(ref, name)(*c, "binary64", out_fmt="q8.8", overflow="saturate") for c in zip(*codes, strict=True)]
    assert [int(f) for _, f in want] == flags.tolist()
    if name.startswith("exp"):
        n = sn.array([0.0, 3.0, 20.0, 50.0, 90.0, 200.0], "binary64")
        got = getattr(sn.ops, name)(n, out_fmt="uq64.0", overflow="wrap").codes.tolist()
        base, less = (2 if name == "exp2m1" else 10), name.endswith("m1")
        assert got == [(base ** int(k) - less) % 2**64 for k in n.tolist()]


def test_numpy_s_names():
    a, b = sn.array([0.25, 0.75], "binary16"), sn.array([2.0, -3.0], "binary16")
    assert (np.arcsinh(b) == sn.ops.asinh(b)).all() and (np.arctanh(a) == sn.ops.atanh(a)).all()
    assert np.arccosh(sn.array([1.0, 2.0], "e5m2")).tolist() == sn.ops.acosh(sn.array([1.0, 2.0], "e5m2")).tolist()
    for theirs, ours in (
        (np.arctan2, sn.ops.atan2),
        (np.logaddexp, sn.ops.logaddexp),
        (np.logaddexp2, sn.ops.logaddexp2),
    ):
        assert (theirs(a, b) == ours(a, b)).all() and (theirs(b, 2) == ours(b, sn.array(2.0, "binary16"))).all()
    if hasattr(np, "atan2"):
        assert (np.atan2(a, b) == sn.ops.atan2(a, b)).all()


def test_sums_of_logarithms_far_apart():
    """Beside a number that is large, or far smaller than the distance of the operands, the rest is too small to see."""
    cases_of = {
        "binary64": [("1.7976931348623157e308",) * 2, ("-1.7976931348623157e308",) * 2, ("1e300", "1e299")],
        "e15m40": [("-6860.46", "-1e-2465"), ("-2e-2465", "-5676"), ("-1e-2465", "-5660"), ("1e-2465", "-5680")],
        "binary32": [("3e38", "3e38"), ("-1e-38", "-87.5"), ("-1e-38", "-110")],
    }
    for name, pairs in cases_of.items():
        fmt = sn.format(name)
        for pair, function, mode in itertools.product(pairs, ("logaddexp", "logaddexp2"), MODES[:4]):
            a, b = (int(sn.encode(x, fmt)) for x in pair)
            for x, y in ((a, b), (b, a)):
                got = getattr(sn.ops, function)(np.uint64(x), np.uint64(y), fmt, rounding=mode, return_flags=True)
                want = getattr(ref, function)(x, y, fmt, rounding=mode)
                assert tuple(map(int, got)) == tuple(map(int, want)), (name, function, mode, pair)
