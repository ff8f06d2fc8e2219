"""Facts of the named formats against their public specifications, names, reprs, pickles, and every refusal."""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats import FixedFormat, FloatFormat
from softnum.formats.modes import ROUNDING_MODES, family
from softnum.formats.names import format as format_of
from softnum.formats.names import format_names
from softnum.formats.wide import TWO_WORDS
from tests.support.cases import cases

F = Fraction


def two(e):
    return F(2) ** e


# name, bits, max, smallest normal, smallest subnormal (or smallest positive), infinity code, NaN codes or their count
SPECIFIED = [
    # IEEE 754-2019, table 3.5
    ("binary16", 16, F(65504), two(-14), two(-24), 0x7C00, 2 * 1023),
    ("binary32", 32, (2 - two(-23)) * two(127), two(-126), two(-149), 0x7F800000, None),
    ("binary64", 64, (2 - two(-52)) * two(1023), two(-1022), two(-1074), 0x7FF << 52, None),
    ("bfloat16", 16, (2 - two(-7)) * two(127), two(-126), two(-133), 0x7F80, 2 * 127),
    ("tf32", 19, (2 - two(-10)) * two(127), two(-126), two(-136), 0xFF << 10, None),
    # OCP OFP8 r1.0, tables 1 and 2
    ("e5m2", 8, F(57344), two(-14), two(-16), 0x7C, {0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF}),
    ("e4m3fn", 8, F(448), two(-6), two(-9), None, {0x7F, 0xFF}),
    # OCP MX r1.0, section 5.3
    ("e3m2fn", 6, F(28), F(1, 4), F(1, 16), None, set()),
    ("e2m3fn", 6, F(15, 2), F(1), F(1, 8), None, set()),
    ("e2m1fn", 4, F(6), F(1), F(1, 2), None, set()),
    ("e8m0fnu", 8, two(127), two(-127), two(-127), None, {0xFF}),
    # Noune et al. 2022, and the biased variant of 11
    ("e4m3fnuz", 8, F(240), two(-7), two(-10), None, {0x80}),
    ("e5m2fnuz", 8, F(57344), two(-15), two(-17), None, {0x80}),
    ("e4m3b11fnuz", 8, F(30), two(-10), two(-13), None, {0x80}),
    # IEEE-like with other widths
    ("e4m3", 8, F(240), two(-6), two(-9), 0x78, 14),
    ("e3m4", 8, F(31, 2), F(1, 4), two(-6), 0x70, 30),
    ("e6m9", 16, (2 - two(-9)) * two(31), two(-30), two(-39), 0x7E00, 2 * 511),
    # Agrawal et al. 2019: no subnormals, the lowest binade is normal, one code for NaN and infinity
    ("dlfloat16", 16, (2 - two(-8)) * two(32), F(513, 512) * two(-31), F(513, 512) * two(-31), None, {0x7FFF, 0xFFFF}),
    # IEEE P3109: binary8p3 and p4, signed and extended (with infinities); finite; unsigned
    ("binary8p3se", 8, F(49152), two(-15), two(-17), 0x7F, {0x80}),
    ("binary8p4se", 8, F(224), two(-7), two(-10), 0x7F, {0x80}),
    ("binary8p4sf", 8, F(240), two(-7), two(-10), None, {0x80}),
    ("binary8p4ue", 8, F(13, 8) * two(15), two(-15), two(-18), 0xFE, {0xFF}),
    ("binary8p1se", 8, two(62), two(-63), two(-63), 0x7F, {0x80}),
    # IEEE 754-2019, table 3.5; Intel SDM, volume 1, 4.2.2: codes of two words
    ("binary128", 128, (2 - two(-112)) * two(16383), two(-16382), two(-16494), 0x7FFF << 112, 0),
    ("x87_extended", 80, (2 - two(-63)) * two(16383), two(-16382), two(-16445), 0x7FFF8 << 60, 0),
]


@cases("name, bits, largest, normal, subnormal, infinity, nans", SPECIFIED, ids=[row[0] for row in SPECIFIED])
def test_specified_facts(name, bits, largest, normal, subnormal, infinity, nans):
    fmt = format_of(name)
    assert (fmt.bits, fmt.name) == (bits, name)
    assert (fmt.max, fmt.smallest_normal, fmt.smallest_subnormal) == (largest, normal, subnormal)
    assert fmt.min == (-largest if fmt.signed else 0 if fmt.has_zero else normal)
    assert fmt.inf_code == infinity and fmt.infinities == (infinity is not None)
    assert fmt.epsilon == two(-fmt.mantissa_bits) and fmt.precision == fmt.mantissa_bits + 1
    assert fmt.storage_dtype == (np.min_scalar_type(2**bits - 1) if bits <= 64 else TWO_WORDS)
    if bits <= 16:
        values = [ref.decode(c, fmt) for c in range(1 << bits)]
        found = {c for c, v in enumerate(values) if v.kind == "nan"}
        assert found == nans if isinstance(nans, set) else len(found) == nans
        finite = [v.fraction for v in values if v.kind == "finite"]
        assert max(finite) == largest and min(v for v in finite if v > 0) == subnormal
        decoded = sn.decode(np.arange(1 << bits, dtype=fmt.storage_dtype), fmt)
        for v, d in zip(values, decoded.tolist(), strict=True):
            assert (v.kind == "nan") == (d != d)
            assert v.kind != "finite" or (F(d) == v.fraction and bool(np.signbit(d)) == bool(v.sign))
            assert v.kind != "inf" or d == (-np.inf if v.sign else np.inf)
        assert sum(v.kind == "inf" for v in values) == (0 if infinity is None else 1 + fmt.signed)


def test_every_registered_name_is_specified():
    assert set(format_names()) <= {row[0] for row in SPECIFIED}


@pytest.mark.parametrize(
    "name, bits, low, high, step",
    [
        ("q4.4", 8, F(-8), F(127, 16), F(1, 16)), ("uq4.4", 8, F(0), F(255, 16), F(1, 16)),
        ("q1.7", 8, F(-1), F(127, 128), two(-7)),
        ("q1.63", 64, F(-1), 1 - two(-63), two(-63)), ("uq64.0", 64, F(0), two(64) - 1, F(1)),
        ("q0.4", 4, F(-1, 2), F(7, 16), F(1, 16)),
        ("uq0.64", 64, F(0), 1 - two(-64), two(-64)), ("q2.0", 2, F(-2), F(1), F(1)), ("uq1.0", 1, F(0), F(1), F(1)),
    ],
)  # fmt: skip
def test_fixed_point(name, bits, low, high, step):
    fmt = format_of(name)
    assert (fmt.bits, fmt.min, fmt.max, fmt.epsilon, fmt.name) == (bits, low, high, step, name)
    assert format_of(name.upper()) == fmt
    assert ref.to_fraction(0, fmt) == 0 and ref.to_fraction((1 << bits) - 1, fmt) == (-step if name[0] == "q" else high)


CUSTOM = [
    FloatFormat(4, 3), FloatFormat(4, 3, bias=3), FloatFormat(4, 3, specials="fn", name="mine"), FloatFormat(15, 48),
    FloatFormat(5, 2, subnormals=False), FloatFormat(5, 2, specials="p3109", signed=False),
    FloatFormat(8, 0, specials="fn", signed=False, has_zero=False, lowest_binade="normal"),
    FloatFormat(5, 2, nan_codes="none", infinities=True), FloatFormat(5, 2, specials="fnuz", bias=20),
    FloatFormat(5, 2, negative_zero=False), FloatFormat(1, 61, specials="none"), FixedFormat(0, 64, signed=False),
]  # fmt: skip


@cases("fmt", [*(format_of(row[0]) for row in SPECIFIED), *CUSTOM, format_of("q4.4")], ids=str)
def test_repr_pickle_hash(fmt):
    again = eval(repr(fmt), vars(sn))
    assert again == fmt and again.name == fmt.name and hash(again) == hash(fmt) and repr(again) == repr(fmt)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        other = pickle.loads(pickle.dumps(fmt, protocol))
        assert other == fmt and other.name == fmt.name and hash(other) == hash(fmt)
    assert format_of(fmt) is fmt
    with pytest.raises(AttributeError):
        fmt.name = "other"


def test_formats_compare_by_facts():
    assert format_of("e5m2") == FloatFormat(5, 2, name="other") and format_of("binary16") == format_of("e5m10")
    assert format_of("e4m3") != format_of("e4m3fn") and format_of("q4.4") != format_of("uq4.4")
    assert format_of("e5m2") != format_of("e5m2fnuz") and format_of("e4m3fnuz") != format_of("e4m3b11fnuz")
    assert FloatFormat(5, 2).name == "e5m2" and FloatFormat(5, 2, bias=3).name == "e5m2_custom"
    assert len({format_of("e5m2"), FloatFormat(5, 2), format_of("q4.4"), FixedFormat(4, 4)}) == 2
    assert sn.format(" E5M2 ") == format_of("e5m2")


@cases(
    "error, message, make",
    [
        (ValueError, "unknown format 'e5m2fn'; did you mean", lambda: format_of("e5m2fn")),
        (ValueError, "unknown format 'float'; C and PyTorch mean binary32 by it, Python", lambda: format_of("float")),
        (ValueError, "unknown format 'fp8'; did you mean e5m2 or e4m3fn", lambda: format_of("fp8")),
        (ValueError, r"unknown format 'float8'.*registered names: binary16.*or eXmY, qI.F",
         lambda: format_of("float8")),
        (TypeError, "expected a format or the name of one, got 8", lambda: format_of(8)),
        (ValueError, "exponent_bits must lie in 1..15, got 0", lambda: format_of("e0m3")),
        (ValueError, "exponent_bits must lie in 1..15, got 16", lambda: FloatFormat(16, 3)),
        (ValueError, "mantissa_bits must lie in 0..61, got 62", lambda: FloatFormat(1, 62)),
        (ValueError, "a code has at most 64 bits, got 65", lambda: FloatFormat(15, 49)),
        (ValueError, "a code has at most 128 bits, got 129", lambda: format_of("e15m113")),
        (ValueError, "exponent_bits must lie in 1..15, got 16", lambda: format_of("e16m112")),
        (ValueError, r"a float of 64 bits .* softnum.FloatFormat\(11, 52\)", lambda: sn.WideFloatFormat(11, 52)),
        (TypeError, "exponent_bits must be an integer, got 5.0", lambda: FloatFormat(5.0, 2)),
        (TypeError, "mantissa_bits must be an integer, got True", lambda: FloatFormat(5, True)),
        (ValueError, "bias must lie in", lambda: FloatFormat(5, 2, bias=2**17)),
        (ValueError, "specials must be one of ieee, fn, fnuz, p3109, none, got 'inf'",
         lambda: FloatFormat(5, 2, specials="inf")),
        (ValueError, "nan_codes must be one of .*, got 'top'", lambda: FloatFormat(5, 2, nan_codes="top")),
        (ValueError, "lowest_binade must be one of .*, got 'flush'", lambda: FloatFormat(5, 2, lowest_binade="flush")),
        (ValueError, "contradicts", lambda: FloatFormat(5, 2, subnormals=False, lowest_binade="subnormal")),
        (ValueError, "mantissa_bits=0 leaves no code for NaN", lambda: format_of("e5m0")),
        (ValueError, "implies infinities", lambda: FloatFormat(5, 2, infinities=False)),
        (ValueError, "needs a signed format without -0", lambda: FloatFormat(5, 2, nan_codes="negative_zero")),
        (ValueError, "an unsigned format has no -0", lambda: FloatFormat(5, 2, signed=False, negative_zero=True)),
        (ValueError, "requires lowest_binade='normal'", lambda: FloatFormat(5, 2, signed=False, has_zero=False)),
        (ValueError, "a format without zero has no -0",
         lambda: FloatFormat(5, 2, negative_zero=True, has_zero=False, lowest_binade="normal")),
        (ValueError, "has_zero=False requires signed=False",
         lambda: FloatFormat(5, 2, negative_zero=False, has_zero=False, lowest_binade="normal")),
        (ValueError, "leaves no finite value except zero", lambda: FloatFormat(1, 0, specials="fn")),
        (ValueError, r"integer_bits \+ fraction_bits must lie in 1..64, got 65", lambda: FixedFormat(33, 32)),
        (ValueError, r"integer_bits \+ fraction_bits must lie in 1..64, got 0", lambda: format_of("uq0.0")),
        (ValueError, "integer_bits must lie in -63..64, got 99", lambda: FixedFormat(99, 0)),
        (ValueError, r"must lie in 65..128 \(softnum.FixedFormat: in 1..64\), got 129", lambda: format_of("uq99.30")),
        (ValueError, "a signed fixed-point format needs at least 2 bits", lambda: format_of("q1.0")),
        (ValueError, "P3109 needs 3 <= K <= 64 and 1 <= P <= K - 1", lambda: format_of("binary8p8se")),
        (ValueError, "P3109 needs 3 <= K <= 64 and 1 <= P <= K$", lambda: format_of("binary8p9ue")),
        (ValueError, "from_table needs 2[*][*]bits values", lambda: sn.CustomFormat.from_table([0, 1, 2])),
        (ValueError, "the value 1.0 occurs more than once", lambda: sn.CustomFormat.from_table([0, 1, 1, 2])),
        (ValueError, "the value 0.0 occurs more than once", lambda: sn.CustomFormat.from_table([0.0, -0.0])),
        (ValueError, "accepts finite values and NaN, and no inf", lambda: sn.CustomFormat.from_table([0, np.inf])),
        (ValueError, "all values are NaN", lambda: sn.CustomFormat.from_table([np.nan, np.nan])),
    ],
)  # fmt: skip
def test_refusals(error, message, make):
    with pytest.raises(error, match=message):
        make()


# -- value tables ------------------------------------------------------------------------------------------------------
NF4 = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
]  # fmt: skip


@cases("table", [NF4, [0.1, 0.3, -0.7, 0.2], [5.0, np.nan, -3.0, 0.0]], ids=["nf4", "decimals", "nan"])
@cases("mode", [m for m in ROUNDING_MODES if family(m) in ("even", "nearest", "directed")])
def test_value_tables_by_search(table, mode):
    fmt = sn.CustomFormat.from_table(table, name="t")
    points = sorted((F(v), c) for c, v in enumerate(table) if v == v)
    inputs = [v for v, _ in points] + [(a[0] + b[0]) / 2 for a, b in itertools.pairwise(points)] + [F(-9), F(9)]
    near = [float(v) for v in inputs]
    near += [float(np.nextafter(v, s)) for v in near for s in (-99, 99)] + np.linspace(-2, 2, 101).tolist()
    got = sn.encode(np.array(near), fmt, rounding=mode)
    for x, code in zip(near, got.tolist(), strict=True):
        exact = F(x)
        if exact == 0 and 0 not in table and mode.endswith("zero"):
            continue  # neither neighbour is nearer to zero
        low = max((p for p in points if p[0] <= exact), default=points[0])
        high = min((p for p in points if p[0] >= exact), default=points[-1])
        twice = 2 * exact - low[0] - high[0]
        nearest = low if twice < 0 else high
        tie = {"nearest_even": high if high[1] % 2 == 0 else low, "nearest_up": high, "nearest_down": low,
               "nearest_away": high if x > 0 else low, "nearest_zero": low if x > 0 else high}  # fmt: skip
        directed = {
            "up": high,
            "down": low,
            "toward_zero": low if x > 0 else high,
            "away_from_zero": high if x > 0 else low,
        }
        want = directed.get(mode) or (tie[mode] if twice == 0 else nearest)
        if low[0] == high[0] or exact < points[0][0] or exact > points[-1][0]:
            want = low if exact >= points[0][0] else points[0]
        assert code == want[1], (x, mode, table[code], float(want[0]))


def test_value_tables_refuse():
    fmt = sn.CustomFormat.from_table([0.0, 1.0, 2.0, 4.0], name="pow2")
    assert pickle.loads(pickle.dumps(fmt)) == fmt and eval(repr(fmt), {"CustomFormat": sn.CustomFormat}) == fmt
    assert (fmt.bits, fmt.max, fmt.min, fmt.signed) == (2, 4.0, 0.0, False)
    for options, message in (
        ({"rounding": "sr", "key": 1}, "not defined for the value table pow2"),
        ({"rounding": "to_odd"}, "not defined for the value table pow2"),
        ({"overflow": "infinity"}, "the value table pow2 saturates"),
    ):
        with pytest.raises(ValueError, match=message):
            sn.quantize([1.0], fmt, **options)
    with pytest.raises(ValueError, match="a value is NaN, and pow2 has no code for it"):
        sn.encode([np.nan], fmt)
    with pytest.raises(ValueError, match="4 is no code of pow2, which has 2 bits"):
        sn.decode([4], fmt)
    assert sn.decode([3, 1], fmt, dtype=np.float32).tolist() == [4.0, 1.0]
    assert sn.quantize([-np.inf, np.inf], fmt).tolist() == [0.0, 4.0]
    big = sn.CustomFormat.from_table(np.arange(65536) - 32768.0)
    assert (big.bits, big.storage_dtype) == (16, np.dtype(np.uint16)) and sn.encode([5.4], big) == 32773
