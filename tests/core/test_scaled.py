"""Scaled and block operations of P3109 against its definitions in fractions (clause 5 of the interim report v4.0)."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from tests.support import p3109_definition as p3109
from tests.support.cases import cases
from tests.support.p3109_definition import INF, NAN, ROUNDING, SATURATION, Exact, Format

E4, E3, U1, U4 = (
    Format(8, 4, True, True),
    Format(8, 3, True, False),
    Format(8, 1, False, False),
    Format(6, 4, False, True),
)
RATIONAL = {
    "Add": p3109.add, "Subtract": p3109.subtract, "Multiply": p3109.multiply, "Divide": p3109.divide, "FMA": p3109.fma,
    "FAA": p3109.faa, "Convert": lambda X: X, "Negate": p3109.negate, "MinimumMagnitude": p3109.minimum_magnitude,
    "MaximumFinite": p3109.maximum_finite, "Clamp": p3109.clamp,
    "Abs": lambda X: X if X == NAN else abs(X),
}  # fmt: skip
OPERANDS = {"FMA": 3, "FAA": 3, "Clamp": 3, "Convert": 1, "Negate": 1, "Abs": 1}
MODES = [*itertools.product(ROUNDING, SATURATION)]


def drawn(rng, f, count):
    """Codes, specials among them."""
    special = [0, f.nan, f.greatest, f.greatest + 1, 1]
    return [rng.choice(special) if rng.random() < 0.15 else rng.randrange(1 << f.K) for _ in range(count)]


def arrays(codes, f):
    return sn.Array(np.array(codes, np.uint8), f.name)


def over(Z, S):
    """5.1.2."""
    if NAN in (Z, S):
        return NAN
    sign = (Z > 0) - (Z < 0)
    if S == 0:
        return Fraction(0)
    if S in (INF, -INF):
        return Fraction(sign if S > 0 else -sign)
    return p3109.divide(Z, S)


@cases("name", [*RATIONAL])
@cases("scale", [U1, U4, E3])
def test_operations(name, scale):
    """An operand scaled by a format of each kind, the other by another; a result without a factor, and over one."""
    rng = random.Random(name + scale.name)
    n, formats = OPERANDS.get(name, 2), [(scale, E4), (U1, E3), (E4, U4)]
    count = 150
    codes = [(drawn(rng, s, count), drawn(rng, x, count)) for s, x in formats[:n]]
    operands = [(arrays(s, fs), arrays(x, fx)) for (s, x), (fs, fx) in zip(codes, formats, strict=False)]
    reals = [
        [p3109.multiply(p3109.decode(a, fs), p3109.decode(b, fx)) for a, b in zip(s, x, strict=True)]
        for (s, x), (fs, fx) in zip(codes, formats, strict=False)
    ]
    Z = [RATIONAL[name](*X) for X in zip(*reals, strict=True)]
    result = drawn(rng, scale, count)
    W = [over(z, p3109.decode(s, scale)) for z, s in zip(Z, result, strict=True)]
    plain, scaled = Exact(Z), Exact(W)
    for out, (mode, rule) in zip(itertools.cycle([E4, U4, E3]), MODES, strict=False):
        options = {"rounding": ROUNDING[mode], "overflow": SATURATION[rule], "out_fmt": out.name}
        got = sn.ops.scaled_operation(f"Scaled{name}", *operands, **options)
        assert got.codes.tolist() == plain.projected(out, mode, rule), (name, mode, rule)
        got = sn.ops.scaled_operation(f"Block{name}", *operands, scale=arrays(result, scale), **options)
        assert got.codes.tolist() == scaled.projected(out, mode, rule), (name, mode, rule)


@pytest.mark.parametrize("name", ["Exp", "ArcSinPi", "Hypot", "ArcTan2Pi", "Log"])
def test_functions_are_rounded_once(name):
    """Of exact operands in binary64, in the directed modes: what the function gives there, over the factor."""
    rng = random.Random(name)
    n = 2 if name in ("Hypot", "ArcTan2Pi") else 1
    three = sn.array(3.0, "binary8p4se")
    x = [sn.array(rng.choices([0.125, 0.5, -0.25, 0.75, 1.5, 3.0], k=40), "binary8p4se") for _ in range(n)]
    half = sn.array(0.5, "binary8p1uf")
    wide = [sn.convert(v, to_fmt="binary64") * sn.array(0.5, "binary64") for v in x]
    exact = getattr(sn.ops, sn.formats.aliases.operation_alias(name))(*wide, rounding="to_odd")
    for mode in ("up", "down", "nearest_even", "to_odd"):
        got = sn.ops.scaled_operation(
            "Block" + name, *((half, v) for v in x), scale=three, out_fmt="binary8p4se", rounding=mode
        )
        want = sn.divide(exact, sn.convert(three, to_fmt="binary64"), out_fmt="binary8p4se", rounding=mode)
        assert got.codes.tolist() == want.codes.tolist(), mode


def test_reductions():
    rng = random.Random(2)
    s, x = drawn(rng, U1, 60), [drawn(rng, E4, 5) for _ in range(60)]
    t, y = drawn(rng, U4, 60), [rng.choices(range(1 << 8), k=5) for _ in range(60)]

    def block(scales, rows, fs, fx):
        return [
            [p3109.multiply(p3109.decode(a, fs), p3109.decode(b, fx)) for b in row]
            for a, row in zip(scales, rows, strict=True)
        ]

    X, Y = block(s, x, U1, E4), block(t, y, U4, E3)
    sums, products, dots = [], [], []
    for a, b in zip(X, Y, strict=True):
        total, product, dot = a[0], a[0], p3109.multiply(a[0], b[0])
        for one, other in zip(a[1:], b[1:], strict=True):
            total, product = p3109.add(total, one), p3109.multiply(product, one)
            dot = p3109.add(dot, p3109.multiply(one, other))
        sums.append(total), products.append(product), dots.append(dot)
    first, second = (arrays(s, U1), arrays(x, E4)), (arrays(t, U4), arrays(y, E3))
    for mode, rule in MODES[::2]:
        options = {"rounding": ROUNDING[mode], "overflow": SATURATION[rule], "out_fmt": E3.name}
        for name, blocks, exact in (
            ("BlockReduceAdd", [first], sums), ("BlockReduceMultiply", [first], products),
            ("BlockDotProduct", [first, second], dots),
        ):  # fmt: skip
            got = sn.ops.block_reduction(name, *blocks, **options).codes.tolist()
            assert got == Exact(exact).projected(E3, mode, rule), (name, mode, rule)


def test_blocks_by_their_largest_number():
    rng = random.Random(4)
    x = [drawn(rng, E4, 4) for _ in range(80)] + [[E4.nan] * 4, [E4.greatest + 1, E4.nan, E4.nan, E4.nan], [0] * 4]
    for scale, (mode, rule) in zip(itertools.cycle([U1, U4]), MODES, strict=False):
        got, elements = sn.ops.block_by_maximum(
            arrays(x, E4), E3.name, scale.name, scale_rounding=ROUNDING[mode], scale_overflow=SATURATION[rule],
            overflow=SATURATION[rule],
        )  # fmt: skip
        for i, row in enumerate(x):
            values = [p3109.decode(c, E4) for c in row]
            S = NAN
            for v in values:
                S = p3109.maximum_finite(S, v if v == NAN else abs(v))
            s = p3109.project(S, scale, mode, rule)
            assert int(got.codes[i]) == s, (row, mode, rule)
            want = [p3109.project(over(v, p3109.decode(s, scale)), E3, "NearestTiesToEven", rule) for v in values]
            assert elements.codes[i].tolist() == want


def test_errors():
    x, one, wide = sn.array([1.0, 2.0], "binary8p4se"), sn.array(1.0, "binary32"), sn.array([1.0], "e8m30")
    for wrong, match in (
        (lambda: sn.ops.scaled_operation("ScaledNextUp", x, out_fmt="e5m2"), "unknown scaled operation 'ScaledNextUp'"),
        (lambda: sn.ops.scaled_operation("Add", x, out_fmt="e5m2"), "add takes 2 operands, got 1"),
        (lambda: sn.ops.scaled_operation("Convert", (sn.array(1.0, "binary32"), wide), out_fmt="e5m2"), "55 bits"),
        (lambda: sn.ops.scaled_operation("Exp", x, scale=one, out_fmt="binary32"), "48 bits decide"),
        (lambda: sn.ops.scaled_operation("Exp", sn.array([1.0], "q4.4"), out_fmt="e5m2"), "floating-point formats"),
        (lambda: sn.ops.block_reduction("mean", x, out_fmt="e5m2"), "unknown reduction 'mean'"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            wrong()
    with pytest.raises(TypeError, match="must be an Array"):
        sn.ops.scaled_operation("Exp", [1.0], out_fmt="e5m2")
