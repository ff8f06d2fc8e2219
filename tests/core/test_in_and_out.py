"""Values in and out without loss: text and Fractions in, Fractions out."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from tests.support.cases import cases


@pytest.mark.parametrize(
    "fmt", ["e5m2", "e4m3fnuz", "e8m0fnu", "q4.4", "uq0.8", "dlfloat16", "e15m48", "binary64", "q1.63"]
)
def test_decode_to_objects_is_exact(fmt):
    fmt = sn.format(fmt)
    rng = np.random.Generator(np.random.Philox(3))
    codes = (rng.integers(0, 2**64, 200, dtype=np.uint64) >> np.uint64(64 - fmt.bits)).astype(fmt.storage_dtype)
    codes = np.concatenate([codes, np.arange(4).astype(fmt.storage_dtype)]).reshape(2, -1)
    got = sn.decode(codes, fmt, dtype=object)
    assert got.shape == codes.shape
    for code, value in zip(codes.ravel().tolist(), got.ravel(), strict=True):
        want = ref.decode(code, fmt)
        if want.kind == "nan":
            assert value != value
        elif want.kind == "inf":
            assert value == (-1) ** want.sign * float("inf")
        else:
            assert value == want.fraction and (want.fraction or np.signbit(float(value)) == bool(want.sign))
    finite = [v == v for v in got.ravel()]
    back = sn.encode(got.ravel()[finite], fmt)
    want = [ref.encode(v, fmt)[0] for v in got.ravel()[finite]]
    assert back.tolist() == want


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)), ("-3", Fraction(-3)), ("1/3", Fraction(1, 3)), ("0x1.8p3", Fraction(12)),
        ("-0x.8", Fraction(-1, 2)), ("0X1P-149", Fraction(1, 2**149)), (" 1e3 ", Fraction(1000)),
        ("0x1.00000000000000000001p0", 1 + Fraction(1, 16**20)),
    ],
)  # fmt: skip
def test_text_is_taken_exactly(text, value):
    for fmt in ("e5m2", "binary64", "e15m48", "q16.48"):
        for rounding in ("nearest_even", "up", "down"):
            assert int(sn.encode(text, fmt, rounding=rounding)) == ref.encode(value, fmt, rounding=rounding)[0]


def test_special_texts_and_refusals():
    assert sn.encode(["inf", "-inf", "nan", "-0", "-0x0p0", "0"], "e5m2").tolist() == [0x7C, 0xFC, 0x7E, 0x80, 0x80, 0]
    for text in ("one", "", "0x", "0x.p1", "1/0", "0x1.8q3"):
        with pytest.raises(ValueError, match="encode: .* is not a number"):
            sn.encode(text, "e5m2")
    with pytest.raises(ValueError, match="exponent of '0x1p9999999' is outside"):
        sn.encode("0x1p9999999", "e5m2")


def test_an_array_gives_objects():
    a = sn.array(["1/3", "0x1.8p1"], "q4.4")
    assert np.asarray(a, dtype=object).tolist() == [Fraction(5, 16), Fraction(3)]
    with pytest.raises(TypeError, match="floats or objects, not of int64"):
        np.asarray(a, dtype=np.int64)
    table = sn.CustomFormat.from_table([0.0, 0.1, float("nan"), -1.0])
    assert sn.decode([1, 3], table, dtype=object).tolist() == [Fraction(0.1), Fraction(-1)]


# -- value tables take every kind of number exactly ------------------------------------------------------------------
def test_value_tables_take_text_and_fractions():
    table = sn.CustomFormat.from_table([0.0, 0.25, -1.0, float("nan"), 1e300, 0.75, 0.1, -3.0])
    values = [Fraction(v) for v in table.values if v == v]
    middle = [(low + high) / 2 for low, high in pairwise(sorted(values))]
    tiny = Fraction(1, 2**3000)
    numbers = [v + d for v in (*values, *middle) for d in (-tiny, 0, tiny)] + [Fraction(-(10**400)), 10**400, 7]
    for mode in ("nearest_even", "nearest_away", "nearest_zero", "nearest_up", "nearest_down", "up", "down",
                 "toward_zero", "away_from_zero"):  # fmt: skip
        got = [table.values[c] for c in sn.encode(np.array(numbers, object), table, rounding=mode)]
        for number, value in zip(numbers, got, strict=True):
            near = sorted(values, key=lambda v: (abs(v - number), v))
            below = max((v for v in values if v <= number), default=min(values))
            above = min((v for v in values if v >= number), default=max(values))
            if mode in ("up", "down"):
                want = [above if mode == "up" else below]
            elif mode in ("toward_zero", "away_from_zero"):
                want = [below if (number > 0) == (mode == "toward_zero") else above]
            else:
                want = [v for v in near if abs(v - number) == abs(near[0] - number)]
                if len(want) == 2 and mode in ("nearest_up", "nearest_down"):
                    want = [max(want) if mode == "nearest_up" else min(want)]
                elif len(want) == 2 and mode != "nearest_even":
                    want = [(max if mode == "nearest_away" else min)(want, key=abs)]
            assert Fraction(value) in want, (number, mode)
            assert below != above or Fraction(value) == below
    exact = np.array([v for v in numbers if abs(v) < 10**300 and Fraction(float(v)) == v], object)
    for mode in ("nearest_even", "up"):
        assert np.array_equal(
            sn.encode(exact, table, rounding=mode), sn.encode(exact.astype(float), table, rounding=mode)
        )
    assert sn.encode(["1/4", "0x1p-2", "nan", "inf", "-inf", "0.1"], table).tolist() == [1, 1, 3, 3, 3, 6]
    assert sn.encode(float("nan"), table) == 3 and sn.encode("1/3", table).shape == ()
    with pytest.raises(TypeError, match="encode takes real numbers"):
        sn.encode(np.array([1j], object), table)


# -- a carrier holds the result, or quantize raises ------------------------------------------------------------------
CARRIERS = {np.float16: "binary16", np.float32: "binary32", np.float64: "binary64"}
WIDE = (
    "e5m2", "e4m3fnuz", "q4.4", "q20.4", "e8m0fnu", "e6m3", "e9m3", "e12m3", "e5m12", "e8m30", "uq64.0", "q1.63",
    sn.FloatFormat(4, 3, bias=200), sn.FloatFormat(4, 3, bias=-200), sn.FloatFormat(4, 3, bias=2000),
    sn.FloatFormat(5, 3, bias=160), sn.FloatFormat(5, 2, bias=-100, lowest_binade="zero"),
    sn.CustomFormat.from_table([0.0, 0.1, 1e300, -70000.0, 1e-30, -0.5, float("nan"), 2.0**-149]),
)  # fmt: skip


@cases("fmt", WIDE, ids=str)
@cases("carrier", CARRIERS)
def test_quantize_keeps_the_carrier_or_raises(fmt, carrier):
    """Each element alone: the value that encode finds where the carrier holds it, else ValueError."""
    fmt = sn.format(fmt)
    top, low = float(np.finfo(carrier).max), float(np.finfo(carrier).smallest_subnormal)
    x = np.array(
        [0.0, -0.0, 1.0, -1.0, 0.1, 3.3, -7.7, top, -top, low, -low, 3 * low, 1000.0, np.inf, -np.inf], carrier
    )
    options = [{}, {"overflow": "saturate"}]
    if not isinstance(fmt, sn.CustomFormat):
        options += [{"rounding": "stochastic", "random_bits": 2**32 - 1}]
    options += [{"rounding": mode} for mode in ("up", "down", "toward_zero", "away_from_zero")]
    for kwargs in options:
        for element in x:
            try:
                code = sn.encode(element, fmt, **kwargs)
            except ValueError:
                with pytest.raises(ValueError, match="no code for it"):
                    sn.quantize(element, fmt, **kwargs)
                continue
            value = sn.decode(code, fmt, object).item()
            held = not isinstance(value, Fraction) or ref.encode(value, CARRIERS[carrier])[1] == 0
            for out in (None, np.empty((), carrier)):
                if not held:
                    with pytest.raises(ValueError, match=r"is not exact in float(16|32|64)"):
                        sn.quantize(element, fmt, out=out, **kwargs)
                    continue
                got = sn.quantize(element, fmt, out=out, **kwargs)
                assert got.dtype == carrier and (float(got) == value or (got != got and value != value))
                assert value != value or np.signbit(got) == np.signbit(float(value))


def test_float16_stays_float16():
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for fmt in ("e5m2", "e4m3fn", "q20.4", "e5m10", "bfloat16"):
        kwargs = {"invalid": 0} if fmt == "q20.4" else {}
        wide = sn.quantize(x.astype(np.float32), fmt, **kwargs)
        if fmt in ("bfloat16", "q20.4"):
            with np.errstate(over="ignore"):
                narrow = wide.astype(np.float16)
            held = np.isnan(wide) | (narrow == wide)
        else:
            held = np.ones(x.shape, bool)
        got = sn.quantize(x[held], fmt, **kwargs)
        assert got.dtype == np.float16 and np.array_equal(got, wide[held], equal_nan=True)
        assert np.array_equal(np.signbit(got), np.signbit(wide[held]))
        if not held.all():
            with pytest.raises(
                ValueError, match=rf"quantize: a result in {fmt} is not exact in float16; pass the input as float32"
            ):
                sn.quantize(x, fmt, **kwargs)
    assert set(sn.quantize(x, "e5m2")[np.isnan(x)].view(np.uint16).tolist()) == {0x7E00}
    y = np.float16([[0.3, 5.0], [-7.0, 0.01]])
    bits = sn.quantize(y, "q4.4", rounding="sr", key=(1, 2))
    assert np.array_equal(bits, sn.quantize(y.astype(np.float64), "q4.4", rounding="sr", key=(1, 2)))
    out = np.empty_like(y)
    assert sn.quantize(y, "q4.4", out=out) is out and sn.quantize(y, "q4.4", out=y) is y and np.array_equal(y, out)
    with pytest.raises(ValueError, match="out must be an array of shape .* and type float16, got float32"):
        sn.quantize(y, "q4.4", out=np.empty(y.shape, np.float32))
    assert sn.quantize(np.float16(0.3), "q4.4").dtype == np.float16


def test_asarray_raises_beyond_binary64():
    for a in (sn.array([Fraction(1, 3)], "q1.63"), sn.array(["0x1p2000"], "e15m48"), sn.array([2**60 + 1], "uq64.0")):
        with pytest.raises(ValueError, match=rf"a value of {a.format} is not exact in float64 \(use a wider type\)"):
            np.asarray(a)
        with pytest.raises(ValueError, match="not exact in float64"):
            float(a)
        assert np.asarray(a, object).tolist() == a.tolist() and isinstance(a.item(), Fraction)
