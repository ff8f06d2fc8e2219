"""Array and the operations on codes: what they broadcast, refuse, print, pickle, and do in many threads at once."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.runtime import _core
from tests.support.cases import cases

TABLE = sn.CustomFormat.from_table([0.0, 1.0, 2.0, 4.0], name="pow2")


def test_broadcasting_strides_and_scalars():
    a = np.arange(0x30, 0x50, dtype=np.uint8).reshape(4, 8)
    for x, y in [
        (a, a[0]), (a[:, :1], a[:1]), (a[::2], a[1::2]), (a.T, a.T[::-1]), (a, np.uint8(0x3C)), (0x3C, 0x3D),
        (a[:0], a[0]), (np.asfortranarray(a), a), (np.broadcast_to(a[0], (3, 8)), a[:3]), (a.astype(">u2"), a),
        (a.tolist(), a.astype(np.int64)),
    ]:  # fmt: skip
        got, flags = sn.add(x, y, "e5m2", return_flags=True)
        wide_x, wide_y = np.broadcast_arrays(np.asarray(x), np.asarray(y))
        assert got.shape == flags.shape == wide_x.shape and got.dtype == np.uint8 and flags.dtype == np.uint8
        for index in np.ndindex(got.shape):
            assert (got[index], flags[index]) == ref.add(int(wide_x[index]), int(wide_y[index]), "e5m2")
    big = np.tile(np.arange(256, dtype=np.uint8), 64)
    assert np.array_equal(sn.add(big[::2], big[1::2], "e5m2"), sn.add(big[::2].copy(), big[1::2].copy(), "e5m2"))


def test_a_key_numbers_the_elements_of_the_result():
    a, b = np.arange(0x30, 0x36, dtype=np.uint8)[:, None], np.arange(0x28, 0x2F, dtype=np.uint8)
    got = sn.add(a, b, "e5m2", rounding="stochastic", key=(3, 4), stochastic_bits=6)
    for i, (m, n) in enumerate(np.ndindex(6, 7)):
        word = ref.random_word_elementwise(3, 4, i)
        want, _ = ref.add(int(a[m, 0]), int(b[n]), "e5m2", rounding="sr", random_bits=word, stochastic_bits=6)
        assert got[m, n] == want


def test_operators_and_numpy_functions():
    a, b = sn.array([1.0, 2.5, -3.0], "e5m2"), sn.array([0.5, 2.5, 100.0], "e5m2")
    for got, want in ((a + b, sn.add(a, b)), (a - b, sn.subtract(a, b)), (a * b, sn.multiply(a, b)),
                      (np.add(a, b), sn.add(a, b)), (np.subtract(a, b), sn.subtract(a, b))):  # fmt: skip
        assert isinstance(got, sn.Array) and np.array_equal(got.codes, want.codes) and got.format == a.format
    assert np.asarray(a + b).tolist() == [1.5, 5.0, 96.0]
    assert sn.fma(a, b, a).codes.tolist() == [
        ref.fma(*map(int, x), "e5m2")[0] for x in zip(a.codes, b.codes, a.codes, strict=True)
    ]
    result, flags = sn.multiply(a, b, return_flags=True, rounding="up")
    assert isinstance(result, sn.Array) and flags.tolist() == [0, 1, 1]
    assert a.astype("e4m3fn").format == sn.format("e4m3fn")
    assert sn.add(a, sn.array([1.0], "e4m3fn"), out_fmt="binary16").format == sn.format("binary16")


def test_container():
    a = sn.array(np.arange(6).reshape(2, 3), "e5m2")
    assert (a.shape, a.ndim, a.size, len(a)) == ((2, 3), 2, 6, 2)
    assert np.asarray(a[1]).tolist() == [3.0, 4.0, 5.0] and isinstance(a[0, 1], sn.Array)
    a[0] = a[1]
    assert np.asarray(a[0]).tolist() == [3.0, 4.0, 5.0]
    with pytest.raises(ValueError, match="0.1 is not exact in e5m2"):
        a[0] = 0.1
    a[0] = [1.0, 2.0, 2.5]
    assert a.tolist()[0] == [1.0, 2.0, 2.5]
    with pytest.raises(ValueError, match=r"element \[1\] of the list: 0.1 is not exact in e5m2"):
        a[0] = [1.0, 0.1, 0.2]
    with pytest.raises(TypeError, match="only an Array of e5m2 can be assigned to one, got an Array of e4m3fn"):
        a[0] = sn.array([1.0, 2.0, 3.0], "e4m3fn")
    codes = np.zeros(3, np.uint8)
    assert sn.Array(codes, "e5m2").codes is codes
    again = pickle.loads(pickle.dumps(a))
    assert np.array_equal(again.codes, a.codes) and again.format == a.format
    assert np.array_equal(copy.deepcopy(a).codes, a.codes)


def test_repr():
    assert repr(sn.array([1.0, 0.1], "e5m2")) == "Array([1.     , 0.09375], e5m2)"
    assert repr(sn.array(3.0, "q4.4")) == "Array(3., q4.4)"
    assert repr(sn.array([np.inf, np.nan, -0.0], "e5m2")) == "Array([inf, nan, -0.], e5m2)"
    huge = sn.Array(np.array([0x7FFE << 48], np.uint64), "e15m48")
    assert repr(huge) == "Array([0x1p+16383], e15m48)"
    with pytest.raises(ValueError, match="e15m48 is not exact in float64"):
        np.asarray(huge)


def test_values_and_their_types():
    a = sn.array([1.5, -2.0], "binary16")
    assert np.asarray(a).dtype == np.float64 and np.asarray(a, np.float32).tolist() == [1.5, -2.0]
    assert np.asarray(a, object).tolist() == [1.5, -2.0]
    with pytest.raises(TypeError, match="floats or objects, not of int64"):
        np.asarray(a, np.int64)
    with pytest.raises(ValueError, match="always need a copy"):
        np.array(a, copy=False)
    with pytest.raises(ValueError, match="binary64 is not exact in float32"):
        np.asarray(sn.array([0.1], "binary64"), np.float32)
    third = sn.array([1 / 3], "binary64")
    with pytest.raises(ValueError, match="not exact in float16"):
        sn.decode(third.codes, "binary64", dtype=np.float16)


@cases(
    "error, message, call",
    [
        (ValueError, r"the operands' formats differ \(e5m2, e4m3fn\); give the result's format as out_fmt=",
         lambda a: a + sn.array([1.0], "e4m3fn")),
        (ValueError, "formats differ", lambda a: sn.add([1], [2], ("e5m2", "e4m3fn"))),
        (ValueError, "add has 2 operands, got 3 formats", lambda a: sn.add([1], [2], ("e5m2",) * 3)),
        (ValueError, "plain encodings do not carry a format; give fmt=, or convert the", lambda a: sn.add([1], [2])),
        (ValueError, "carry their format; leave fmt= out", lambda a: sn.add(a, a, "e5m2")),
        (TypeError, "Arrays and plain encodings cannot be mixed", lambda a: sn.add(a, a.codes)),
        (ValueError, r"0.1 is not exact in e5m2; round it first: softnum.array\(x, 'e5m2'\)", lambda a: a + 0.1),
        (ValueError, "9 is not exact in e5m2", lambda a: 9 * a),
        (ValueError, r"element \[1\] of the ndarray: 0.1 is not exact in e5m2", lambda a: np.array([1, 0.1, 0.2]) + a),
        (TypeError, "an Array and ndarray of bool cannot be combined; np.where", lambda a: a * (a > 0)),
        (TypeError, "numpy.float_power is not defined for softnum.Array", lambda a: np.float_power(a, a)),
        (TypeError, "numpy.(add.reduce|sum) is not defined for softnum.Array", lambda a: np.add.reduce(a)),
        (TypeError, "numpy.add with out of an array of int64 is", lambda a: np.add(a, a, out=np.zeros(3, np.int64))),
        (TypeError, "numpy.add with out is not defined", lambda a: np.add(np.ones(3), 1, out=a)),
        (TypeError, "numpy.add with where and without out is not defined", lambda a: np.add(a, a, where=False)),
        (TypeError, "numpy.sum is not defined for softnum.Array", lambda a: np.sum(a)),
        (TypeError, "numpy.matmul is not defined", lambda a: np.ones((3, 3)) @ a),
        (TypeError, "an Array has no truth value", lambda a: bool(a[0])),
        (ValueError, "0.1 is not exact in e5m2", lambda a: a < 0.1),
        (TypeError, "unhashable", lambda a: hash(a)),
        (ValueError, r"300 is no code of e5m2, which has 8 bits", lambda a: sn.add([300], [2], "e5m2")),
        (ValueError, r"operand 1: -1 is no code of e5m2", lambda a: sn.add([3], [-1], "e5m2")),
        (ValueError, r"codes: 64 is no code of e3m2fn, which has 6 bits", lambda a: sn.Array([64], "e3m2fn")),
        (TypeError, "codes of e5m2 are unsigned integers, got an array of float64", lambda a: sn.Array([1.0], "e5m2")),
        (TypeError, "codes of operand 0 of e5m2 are unsigned integers", lambda a: sn.add([1.0], [2], "e5m2")),
        (ValueError, "unknown format 'e5m3x'", lambda a: sn.add([1], [2], "e5m3x")),
        (ValueError, "convert: give the target format as to_fmt=", lambda a: sn.convert([1], "e5m2")),
        (ValueError, "convert: give the target format as to_fmt=", lambda a: sn.convert(a)),
        (ValueError, r"carries its format.*convert\(a, to_fmt='binary16'\)", lambda a: sn.convert(a, "binary16")),
        (ValueError, r"carries its format.*a.astype\('q4.4'\)", lambda a: sn.convert(a, a.format, "q4.4")),
        (ValueError, "return_flags= is not defined for pow2", lambda a: sn.add([1], [2], TABLE, return_flags=True)),
        (ValueError, "invalid must be 'raise' or a number, got 'nan'", lambda a: sn.add(a, a, invalid="nan")),
        (ValueError, "tininess must be 'after' or 'before', got 'never'", lambda a: sn.add(a, a, tininess="never")),
        (ValueError, "stochastic_bits must be an integer from 1 to 32, got 33",
         lambda a: sn.add(a, a, stochastic_bits=33)),
        (ValueError, "stochastic rounding needs key=", lambda a: sn.add(a, a, rounding="sr")),
        (ValueError, r"random_bits must be integers in 0..2\*\*32-1",
         lambda a: sn.add(a, a, rounding="sr", random_bits=2**32)),
        (ValueError, r"random_bits must be integers in 0..2\*\*32-1",
         lambda a: sn.add(a, a, rounding="sr", random_bits=0.5)),
        (ValueError, "overflow='wrap' is for fixed point", lambda a: sn.add(a, a, overflow="wrap")),
        (ValueError, r"add: operands of shapes \(3,\) and \(2,\) do not broadcast$",
         lambda a: a + sn.array([1.0, 2.0], "e5m2")),
        (ValueError, "encode: the result is NaN or infinite, and q4.4 has no code for it",
         lambda a: sn.encode(np.nan, "q4.4")),
        (ValueError, "NaN or infinite, and q4.4", lambda a: sn.encode([1.0, -np.inf], "q4.4")),
        (ValueError, "NaN or infinite, and e2m1fn", lambda a: sn.array([1.0, np.nan], "e2m1fn")),
        (ValueError, "convert: the result is NaN or infinite", lambda a: sn.convert([0x7E], "e5m2", "q4.4")),
        (TypeError, "encode takes real numbers", lambda a: sn.encode(np.array([1j], object), "e5m2")),
        (TypeError, "encode takes numbers, got an array of complex128", lambda a: sn.encode([1j], "e5m2")),
        (ValueError, "encode: .one. is not a number", lambda a: sn.encode(["one"], "e5m2")),
        (TypeError, "decode returns float16, float32, float64 or object arrays, not int32",
         lambda a: sn.decode([1], "e5m2", dtype=np.int32)),
    ],
)  # fmt: skip
def test_refusals(error, message, call):
    with pytest.raises(error, match=message):
        call(sn.array([1.0, 2.0, 3.0], "e5m2"))


def test_invalid_results_where_no_code_says_so():
    codes, flags = sn.convert([0x7E, 0x7C, 0x3C], "e5m2", "q4.4", invalid=0, return_flags=True)
    assert codes.tolist() == [0, 0, 16] and flags.tolist() == [16, 16, 0]
    assert sn.convert([0x7E], "e5m2", "e2m1fn", invalid=0).tolist() == [0]


def test_encode_takes_every_kind_of_number_exactly():
    from decimal import Decimal
    from fractions import Fraction

    assert sn.encode(np.int64(2**62 + 1), "q64.0") == 2**62 + 1
    assert sn.encode(np.array([-128, 127], np.int8), "q8.0").tolist() == [128, 127]
    assert sn.encode(np.uint64(2**64 - 1), "uq64.0") == 2**64 - 1
    assert sn.encode([True, False], "e5m2").tolist() == [0x3C, 0]
    assert sn.encode(np.float16([0.1]), "binary16").view(np.float16) == np.float16(0.1)
    mixed = np.array([1, 0.5, Fraction(1, 3), 2**70, float("inf"), np.float32(2)], object)
    assert sn.encode(mixed, "binary16").tolist() == [0x3C00, 0x3800, 0x3555, 0x7C00, 0x7C00, 0x4000]
    assert sn.encode(np.longdouble(0.5), "e5m2") == 0x38
    wide = np.longdouble(9) / 8 + np.finfo(np.longdouble).eps  # beside a tie in e5m2, with bits that float64 may lack
    assert sn.encode([wide], "e5m2") == 0x3D and sn.encode(np.longdouble([9 / 8, -0.0, -np.inf]), "e5m2").tolist() == [
        0x3C, 0x80, 0xFC,
    ]  # fmt: skip
    tenth = Decimal("0.1")
    assert sn.encode([tenth, Decimal("-0"), Decimal("-inf")], "e5m2").tolist() == [0x2E, 0x80, 0xFC]
    assert sn.encode(tenth, "binary64", rounding="down") < sn.encode(0.1, "binary64")
    just_above = Fraction(9, 8) + Fraction(1, 2**200)  # a tie in e5m2 but for the last bit
    assert sn.encode(just_above, "e5m2") == 0x3D and sn.encode(Fraction(9, 8), "e5m2") == 0x3C
    assert sn.encode(-0.0, "e5m2") == 0x80 and sn.encode(np.array(-0.0, object), "e5m2") == 0x80


def test_handles_are_checked():
    """A handle that was never given out computes nothing, and is reported."""
    codes = np.zeros(3, np.uint8)
    result, flags = _core.UFUNCS_FLAGS["add"](codes, codes, np.uint32(0), np.uint64(2**40))
    assert result.tolist() == [0, 0, 0] and flags.tolist() == [255] * 3
    with pytest.raises(ValueError, match="handle that intern_context never returned"):
        _core.check_handles()
    _core.check_handles()  # said once
    assert _core.UFUNCS["add"](codes, codes, np.uint32(0), np.uint64(2**64 - 1)).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="never returned"):
        _core.check_handles()


def test_threads_at_once():
    """New contexts and look-up tables are made while others compute."""
    a = np.tile(np.arange(256, dtype=np.uint8), 40)
    b = np.roll(a, 7)
    jobs = [(op, fmt, mode) for op in ("add", "multiply", "subtract") for fmt in ("e5m2", "e4m3fn", "e3m4")
            for mode in ("nearest_even", "up", "down", "to_odd")] * 6  # fmt: skip

    def work(job):
        op, fmt, mode = job
        x = sn.quantize(np.linspace(-9, 9, 999, dtype=np.float32), fmt, rounding=mode)
        return getattr(sn.ops, op)(a, b, fmt, rounding=mode), x

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, jobs))
    for job, (codes, values) in zip(jobs, results, strict=True):
        want_codes, want_values = work(job)
        assert np.array_equal(codes, want_codes) and np.array_equal(values, want_values), job
    assert int(results[0][0][0x3C]) == ref.add(int(a[0x3C]), int(b[0x3C]), "e5m2")[0]
