"""Formats of IEEE P3109 against the interim report v4.0, as `tests.support.p3109_definition` states it in fractions."""

import dataclasses
import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from tests.support import p3109_definition as p3109
from tests.support.matmul_units import definition
from tests.support.p3109_definition import INF, NAN, OLDER, ROUNDING, STOCHASTIC, Exact, Format
from tests.support.p3109_definition import SATURATION as NEWER

KINDS = [(signed, extended) for signed in (True, False) for extended in (True, False)]
TINY = [Format(k, p, *kind) for k, p in ((3, 1), (4, 2), (5, 1), (5, 4)) for kind in KINDS]
EIGHT = [Format(8, p, *kind) for p in (1, 3, 4) for kind in KINDS]
SATURATION = NEWER | OLDER
MODES = list(itertools.product(ROUNDING, NEWER))
OPERATIONS = {"add": p3109.add, "subtract": p3109.subtract, "multiply": p3109.multiply, "divide": p3109.divide}


def _values(f):
    return [p3109.decode(x, f) for x in range(1 << f.K)]


def _name(f):
    return f.name


def _modes(f):
    """What results of a format are rounded by, and saturated by in version 4.0, and by OvfInf of 3.2.1."""
    return [*MODES, *((mode, "OvfInf") for mode in ROUNDING if f.extended)]


@pytest.mark.parametrize("f", TINY + EIGHT + [Format(6, 5, False, True), Format(6, 6, False, False)], ids=_name)
def test_values(f):
    fmt = sn.format(f.name)
    got = [ref.decode(x, fmt) for x in range(1 << f.K)]
    for value, want in zip(got, _values(f), strict=True):
        if want == NAN:
            assert value.kind == "nan"
        elif want in (INF, -INF):
            assert value.kind == "inf" and value.sign == (want < 0)
        else:
            assert value.kind == "finite" and (-1) ** value.sign * value.numerator == want * value.denominator


@pytest.mark.parametrize("f", [f if f.K < 5 else pytest.param(f, marks=pytest.mark.slow) for f in TINY], ids=_name)
def test_all_operations_on_all_operands(f):
    """Every pair of codes, in every mode and under every rule of saturation, to the format and to two others."""
    values = _values(f)
    a, b = (x.ravel() for x in np.meshgrid(*[np.arange(1 << f.K, dtype=np.uint8)] * 2, indexing="ij"))
    targets = [f, f._replace(signed=not f.signed), f._replace(extended=not f.extended)]
    targets = [t for t in targets if t.P <= t.K - t.signed]
    for name, operation in OPERATIONS.items():
        exact = Exact(operation(x, y) for x in values for y in values)
        for target, (mode, rule) in ((t, m) for t in targets for m in _modes(t)):
            want = exact.projected(target, mode, rule)
            got, flags = getattr(sn.ops, name)(
                a, b, f.name, out_fmt=target.name, rounding=ROUNDING[mode], overflow=SATURATION[rule], return_flags=True
            )
            wrong = np.flatnonzero(got != want)
            assert not len(wrong) and not flags.any(), (name, target.name, mode, rule, a[wrong[:3]], b[wrong[:3]])


@pytest.mark.slow
@pytest.mark.parametrize("f", EIGHT, ids=_name)
def test_conversions(f):
    """From a wider format, exact ties and numbers beyond both ends among its values, and of arrays of floats."""
    wide = Format(10, 5, True, True)
    exact = Exact(_values(wide))
    codes = np.arange(1 << wide.K, dtype=np.uint16)
    floats = np.array([np.nan if x == NAN else float(x) for x in exact.different])
    for mode, rule in _modes(f):
        options = {"rounding": ROUNDING[mode], "overflow": SATURATION[rule]}
        want = np.array(exact.projected(f, mode, rule))
        assert np.array_equal(sn.convert(codes, wide.name, f.name, **options), want), (mode, rule)
        for dtype in (np.float32, np.float64):
            x = floats.astype(dtype)
            assert np.array_equal(sn.encode(x, f.name, **options), want), (mode, rule, dtype)
            got, right = sn.quantize(x, f.name, **options), sn.decode(want.astype(np.uint8), f.name)
            assert np.array_equal(got, right.astype(dtype), equal_nan=True), (mode, rule, dtype)
        assert [ref.convert(int(c), wide.name, f.name, **options)[0] for c in codes[::7]] == want[::7].tolist()


@pytest.mark.parametrize("f", EIGHT[:8], ids=_name)
def test_operations_of_a_sample(f):
    rng = random.Random(f.name)
    values = _values(f)
    rows = np.array([[rng.randrange(1 << f.K) for _ in range(3)] for _ in range(400)], np.uint8)
    a, b, c = np.ascontiguousarray(rows.T)
    of = [[values[x] for x in row] for row in rows]
    exact = {name: ((a, b), Exact(operation(*row[:2]) for row in of)) for name, operation in OPERATIONS.items()}
    exact["fma"] = (a, b, c), Exact(p3109.fma(*row) for row in of)
    exact["negate"] = (a,), Exact(p3109.negate(row[0]) for row in of)
    for mode, rule in _modes(f):
        options = {"rounding": ROUNDING[mode], "overflow": SATURATION[rule]}
        for name, (operands, results) in exact.items():
            if name == "negate" and rule == "SatFinite":  # a matter of the sign bit: infinities stay
                continue
            want = results.projected(f, mode, rule)
            assert getattr(sn.ops, name)(*operands, f.name, **options).tolist() == want, (name, mode, rule)


@pytest.mark.parametrize(
    "f", [Format(8, 3, True, True), Format(8, 4, False, True), Format(5, 2, False, False)], ids=_name
)
@pytest.mark.parametrize("mode", STOCHASTIC)
def test_stochastic_rounding(f, mode):
    wide = Format(10, 6, True, True)
    codes = np.arange(1 << wide.K, dtype=np.uint16)
    words = np.array([(int(c) * 2654435761 >> 7) % 8 for c in codes], np.uint32)
    for rule in [rule for rule in SATURATION if f.extended or rule != "OvfInf"]:
        got = sn.convert(codes, wide.name, f.name, rounding=mode, overflow=SATURATION[rule], stochastic_bits=3,
                         random_bits=words)  # fmt: skip
        want = [p3109.project(x, f, mode, rule, 3, int(r)) for x, r in zip(_values(wide), words, strict=True)]
        assert got.tolist() == want, rule
        floats = sn.decode(codes, wide.name)
        got = sn.encode(floats, f.name, rounding=mode, overflow=SATURATION[rule], stochastic_bits=3, random_bits=words)
        assert got.tolist() == want, rule


def test_what_version_4_says_otherwise():
    """Rounding to odd beyond the largest value, which is even; and what lies below zero (4.7.5)."""
    assert sn.quantize([1e6, -1e6], "binary8p3se", rounding="to_odd").tolist() == [np.inf, -np.inf]
    assert sn.quantize([1e30], "binary8p3ue", rounding="to_odd").tolist() == [sn.format("binary8p3ue").max]
    a, b = sn.array([49152.0], "binary8p3se"), sn.array([8192.0], "binary8p3se")
    assert sn.add(a, b, rounding="to_odd").tolist() == [np.inf]
    x = [-3.0, -np.inf, -1e-30, 2.0]
    for rule in ("saturate", "saturate_finite"):
        assert sn.quantize(x, "binary8p3ue", overflow=rule).tolist() == [0, 0, 0, 2]
    for name in ("binary8p3ue", "binary8p3uf"):
        want = {"nearest_even": [1, 1, 0, 0], "toward_zero": [0, 1, 0, 0], "up": [0, 1, 0, 0], "down": [1, 1, 1, 0]}
        for mode, nans in want.items():
            assert np.isnan(sn.quantize(x, name, rounding=mode)).tolist() == [bool(n) for n in nans], (name, mode)
    assert np.isnan(sn.matmul([[1.0, 1.0]], [[1.0], [-2.0]], sn.MadUnit("binary8p3ue", operand="e5m2"))[0, 0])


# -- version 3.2.1, by its overflow rule -------------------------------------------------------------------------------
V3 = "p3109_v3_2_1"
UNSIGNED = Format(6, 3, False, True)


def test_all_that_the_versions_differ_in():
    """Below zero, and rounding to odd beyond the largest value: in formats without signs, with infinities, and nowhere
    else."""
    for f in (f for f in TINY if f.extended):
        values = [*_values(f), *_values(Format(7, 3, True, True))]
        beyond = p3109.decode(f.greatest, f) * 64
        for X, mode in itertools.product([*values, beyond, -beyond], ROUNDING):
            new, old = (p3109.project(X, f, mode, rule) for rule in ("SatNone", "OvfInf"))
            rounded = p3109.round_to_precision(X, f, mode)
            upward = mode in ("TowardZero", "TowardPositive") and X != -INF
            below = not f.signed and X != NAN and rounded < 0 and not upward
            odd = X not in (NAN, INF) and rounded > p3109.decode(f.greatest, f) and not f.signed and mode == "ToOdd"
            assert (new != old) == (below or odd), (f, X, mode)
            if below:
                assert new == f.nan and old == 0
            if odd:
                assert new == f.greatest and old == f.greatest + 1


def test_version_3_by_hand():
    x = [-3.0, -np.inf, -1e-30, 2.0, 1e30]
    for mode in ("nearest_even", "up", "down", "toward_zero", "to_odd"):
        most = sn.format("binary8p3ue").max if mode in ("down", "toward_zero") else np.inf
        assert sn.quantize(x, "binary8p3ue", rounding=mode, overflow=V3).tolist() == [0, 0, 0, 2, most], mode
    x = np.array([1e9, -1e9, -3.0])
    for mode in ROUNDING.values():
        old, new = (sn.encode(x, "binary8p3se", rounding=mode, overflow=rule) for rule in (V3, "infinity"))
        assert np.array_equal(old, new), mode
    a, b = sn.array([2.0, 1.0, np.inf], "binary8p3ue"), sn.array([3.0, 0.0, 1.0], "binary8p3ue")
    assert sn.subtract(a, b, overflow=V3).tolist() == [0, 1, np.inf]
    assert np.isnan(sn.divide(a, b, overflow=V3)).tolist() == [False, True, False]
    assert sn.log(sn.array([0.0, 0.25], "binary8p3ue"), overflow=V3).tolist() == [0, 0]
    assert sn.negate(a, overflow=V3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("call, words", [
    (lambda: sn.quantize(1.0, "binary8p3uf", overflow=V3), "with infinities; binary8p3uf is not one .*use 'saturate'"),
    (lambda: sn.quantize(1.0, "binary16", overflow=V3), "for P3109 formats with infinities; binary16 is not one"),
    (lambda: sn.add(1, 1, "q4.4", overflow=V3), "for P3109 formats with infinities; q4.4 is not one"),
    (lambda: sn.encode(1.0, "posit8", overflow=V3), "leave overflow='p3109_v3_2_1' out"),
    (lambda: sn.quantize(1.0, "binary8p3ue", overflow="p3109_v3"), "unknown overflow rule .*known: .*p3109_v3_2_1"),
    (lambda: sn.MadUnit("binary32", operand="binary8p3ue", overflow=V3), "binary32 is not one"),
    (lambda: sn.MadUnit("binary8p3ue", operand="e5m2", product="e5m2", overflow="wrap"), "is for fixed point"),
    (lambda: sn.ExactDotUnit("e5m2", operand="e5m2", overflow=V3), "e5m2 is not one"),
    (lambda: sn.FusedDotUnit(4, 20, "binary32", "e5m2", overflow=V3), "binary32 is not one"),
    (lambda: sn.FmaChainUnit("binary32", operand="e5m2", overflow=V3), "binary32 is not one"),
    (lambda: sn.BlockDotUnit("binary32", operand="mxfp8_e5m2", product="bfloat16", overflow=V3), "bfloat16 is not one"),
    (lambda: ref.encode(1, "binary8p3sf", overflow=V3), "which is no P3109 format with infinities"),
    (lambda: ref.mad_dot([0], [0], operand="e5m2", accumulator="e5m2", overflow=V3), "no P3109 format with infinities"),
])  # fmt: skip
def test_formats_that_have_no_such_rule(call, words):
    with pytest.raises(ValueError, match=words):
        call()


SIGNED = Format(6, 3, True, True)
SIDES = {"operand": SIGNED.name, "overflow": V3}
STEPS = {  # how many products a rounding takes in
    sn.MadUnit(UNSIGNED.name, **SIDES): 1,
    sn.MadUnit(UNSIGNED.name, rounding="to_odd", **SIDES): 1,
    sn.MadUnit(UNSIGNED.name, rounding="down", **SIDES): 1,
    sn.MadUnit(UNSIGNED.name, rounding="up", **SIDES): 1,
    sn.FmaChainUnit(UNSIGNED.name, rounding="to_odd", **SIDES): 1,
    sn.ExactDotUnit(UNSIGNED.name, rounding="to_odd", **SIDES): 8,
    sn.ExactDotUnit(UNSIGNED.name, **SIDES): 8,
    sn.FusedDotUnit(4, 40, UNSIGNED.name, output_rounding="to_odd", **SIDES): 4,
    sn.FusedDotUnit(2, 40, UNSIGNED.name, output_rounding="down", **SIDES): 2,
    sn.FusedDotUnit(8, 40, "binary32", output=UNSIGNED.name, output_rounding="to_odd", **SIDES): 8,
    sn.MadUnit("q20.12", chunk=8, outer_accumulator=UNSIGNED.name, rounding="to_odd", **SIDES): 8,
}


def _mode(unit):
    mode = unit.output_rounding if isinstance(unit, sn.FusedDotUnit) else unit.rounding
    return next(name for name, own in ROUNDING.items() if own == mode)


@pytest.mark.parametrize("unit", STEPS, ids=str)
def test_units_of_version_3(unit):
    """Sums of eight products, exact but for what is rounded after so many of them; not as by version 4."""
    rng, values = np.random.default_rng(1), _values(SIGNED)
    finite = isinstance(unit, sn.MadUnit) and unit.accumulator.kind == "fixed"
    known = [x for x, value in enumerate(values) if not finite or value not in (NAN, INF, -INF)]
    a, b = (rng.choice(known, shape).astype(np.uint8) for shape in ((20, 8), (8, 20)))
    for inner in range(0, 8, 3):  # what cancels
        a[:6, inner], b[inner, :6] = 21, 21
    want = np.empty((20, 20), int)
    for i, j in np.ndindex(want.shape):
        total = Fraction(0)
        for k in range(8):
            total = p3109.add(total, p3109.multiply(values[a[i, k]], values[b[k, j]]))
            if (k + 1) % STEPS[unit] == 0:
                want[i, j] = p3109.project(total, UNSIGNED, _mode(unit), "OvfInf")
                total = p3109.decode(int(want[i, j]), UNSIGNED)
    x, y = sn.Array(a, SIGNED.name), sn.Array(b, SIGNED.name)
    carriers = [[sn.decode(codes, SIGNED.name, t) for codes in (a, b)] for t in (np.float32, np.float64)]
    for got in (definition(x, y, unit), *(sn.matmul(*operands, unit) for operands in ((x, y), *carriers))):
        assert np.array_equal(sn.encode(got, UNSIGNED.name), want)
    if _mode(unit) != "TowardPositive":
        newer = sn.matmul(x, y, dataclasses.replace(unit, overflow=None))
        assert (sn.encode(newer, UNSIGNED.name) != want).mean() > 0.2


def test_a_disclosure_says_so():
    unit = sn.ExactDotUnit(UNSIGNED.name, rounding="to_odd", **SIDES)
    page = unit.disclosure()
    rounding = page.to_dict()["roundings"]["R"]
    assert rounding["too_large"][0] == rounding["infinity"][0] == "0x3e" and rounding["negative"] == "0x00"
    assert unit == sn.unit(page.to_json())


@pytest.mark.parametrize("name", ["binary16p1ue", "binary16p1uf"])
def test_an_exponent_of_16_bits(name):
    f = Format(16, 1, False, name.endswith("e"))
    fmt = sn.format(name)
    assert (fmt.exponent_bits, fmt.precision, fmt.emax) == (16, 1, f.greatest - f.bias)
    rng = random.Random(name)
    codes = [
        0,
        1,
        2,
        f.greatest,
        f.greatest - 1,
        f.greatest + 1,
        f.nan,
        f.bias,
        *(rng.randrange(1 << 16) for _ in range(30)),
    ]
    pairs = np.array(list(itertools.product(codes, codes)), np.uint16)[::13]
    a, b = np.ascontiguousarray(pairs.T)
    values = {c: p3109.decode(c, f) for c in codes}
    rules = [("NearestTiesToEven", "SatNone"), ("ToOdd", "SatNone"), ("TowardNegative", "SatPropagate")]
    for mode, rule in [*rules, *([("ToOdd", "OvfInf"), ("TowardNegative", "OvfInf")] if f.extended else [])]:
        options = {"rounding": ROUNDING[mode], "overflow": SATURATION[rule]}
        for operation in ("multiply", "divide", "add", "subtract"):
            exact = [OPERATIONS[operation](values[int(x)], values[int(y)]) for x, y in pairs]
            saturate = p3109.saturate_older if rule == "OvfInf" else p3109.saturate
            want = [_code_of(saturate(p3109.round_to_precision(x, f, mode), f, mode, rule), f) for x in exact]
            got = getattr(sn.ops, operation)(a, b, name, **options)
            wrong = np.flatnonzero(got != want)
            assert not len(wrong), (
                operation,
                mode,
                rule,
                pairs[wrong[:3]],
                got[wrong[:3]],
                [want[i] for i in wrong[:3]],
            )


def _code_of(X, f):
    """The code of a datum of a format of precision 1."""
    if X == NAN:
        return f.nan
    if X == INF:
        return f.greatest + 1
    return 0 if X == 0 else X.numerator.bit_length() - X.denominator.bit_length() + f.bias


CHOICES = {
    "minimum_magnitude": p3109.minimum_magnitude, "maximum_magnitude": p3109.maximum_magnitude,
    "minimum_magnitude_number": p3109.number(p3109.minimum_magnitude),
    "maximum_magnitude_number": p3109.number(p3109.maximum_magnitude), "minimum_finite": p3109.minimum_finite,
    "maximum_finite": p3109.maximum_finite,
}  # fmt: skip


@pytest.mark.parametrize("f", TINY[4:8] + EIGHT[4:6], ids=_name)
@pytest.mark.parametrize("name", CHOICES)
def test_choices(name, f):
    """Of operands of two formats, signed and not, rounded to a third."""
    other = Format(5, 2, True, True)
    values = {g: _values(g) for g in (f, other)}
    a, b = (
        x.ravel() for x in np.meshgrid(np.arange(1 << f.K, dtype=np.uint8), np.arange(1 << other.K, dtype=np.uint8))
    )
    exact = Exact(CHOICES[name](values[f][x], values[other][y]) for x, y in zip(a, b, strict=True))
    for mode, rule in _modes(f)[::5]:
        options = {"rounding": ROUNDING[mode], "overflow": SATURATION[rule]}
        want = exact.projected(f, mode, rule)
        got = getattr(sn.ops, name)(a, b, (f.name, other.name), out_fmt=f.name, **options)
        assert got.tolist() == want, (mode, rule)


@pytest.mark.parametrize("name", [*CHOICES, "clamp"])
def test_signaling_nans_are_told_whichever_operand_is_chosen(name):
    """IEEE 754-2019 9.6: of e5m2, every pair, and no other flag of operands in the result's own format."""
    codes = np.arange(256, dtype=np.uint8)
    a, b = (x.ravel() for x in np.meshgrid(codes, codes))
    operands = (a, b, np.full_like(a, 0x7B)) if name == "clamp" else (a, b)
    _, flags = getattr(sn.ops, name)(*operands, "e5m2", return_flags=True)
    signaling = np.any([np.isin(x, [0x7D, 0xFD]) for x in operands], axis=0)
    nowhere = (name == "clamp") & np.isin(b, [0x7C])  # a lower bound above the upper one: of no number
    nowhere = nowhere & ~np.any([sn.decode(x, "e5m2") != sn.decode(x, "e5m2") for x in operands], axis=0)
    assert signaling.any() and np.array_equal(flags, np.where(signaling | nowhere, sn.Flags.INVALID, 0))
    assert not getattr(sn.ops, name)(*operands, "binary8p3se", return_flags=True)[1].any()


@pytest.mark.parametrize(
    "f", [Format(4, 2, True, True), Format(4, 2, False, True), Format(4, 3, False, False)], ids=_name
)
def test_clamping_and_the_sum_of_three(f):
    """Every triple; a fused add-add is a sum under an exact unit."""
    values = _values(f)
    rows = list(itertools.product(range(1 << f.K), repeat=3))
    x, low, high = np.array(rows, np.uint8).T.copy()
    of = [[values[i] for i in row] for row in rows]
    clamped, summed = Exact(p3109.clamp(*row) for row in of), Exact(p3109.faa(*row) for row in of)
    three = np.array([[np.nan if v == NAN else float(v) for v in row] for row in of])
    for mode, rule in _modes(f):
        options = {"rounding": ROUNDING[mode], "overflow": SATURATION[rule]}
        want = clamped.projected(f, mode, rule)
        assert sn.ops.clamp(x, low, high, f.name, **options).tolist() == want, (mode, rule)
        unit = sn.ExactDotUnit(f.name, operand=f.name, **options)
        want = summed.projected(f, mode, rule)
        assert sn.encode(sn.sum(three, unit, axis=1), f.name).tolist() == want, (mode, rule)
