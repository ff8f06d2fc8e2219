"""What NumPy's users write, on sn.Array: as NumPy computes it on the values, where that is exact, or an error."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from tests.support.cases import cases

FLOATS = ("e5m2", "e4m3fn", "binary16", "e8m23")
FORMATS = ("e5m2", "e4m3fn", "e4m3fnuz", "e2m1fn", "binary8p3se", "q4.4", "binary16", "e8m23", "q12.20")
NAN, INF = float("nan"), float("inf")
TABLE = sn.CustomFormat.from_table([0.0, 0.7, NAN, -1.0, 4.0, 0.5, NAN, 1e300], name="table")


def values(x, dtype=np.float64):
    return np.asarray(x, dtype)


def some(fmt, shape=(4, 5), seed=3, finite=False):
    fmt = sn.format(fmt)
    rng = np.random.Generator(np.random.Philox(seed))
    a = sn.Array(rng.integers(0, 1 << min(fmt.bits, 63), shape, dtype=np.uint64).astype(fmt.storage_dtype), fmt)
    return sn.Array(np.where(np.isfinite(a), a.codes, sn.encode(0.5, fmt)), fmt) if finite else a


def same(got, want):
    """Values alike, -0 and NaN among them."""
    got, want = values(got), np.asarray(want, np.float64)
    assert got.shape == want.shape and np.array_equal(got, want, equal_nan=True)
    zero = want == 0
    assert np.array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


# -- the type, and the warning ---------------------------------------------------------------------------------------
def test_an_array_of_float64_without_asking_warns_where_it_was_asked_for():
    a = sn.array([1.0, 2.5], "e5m2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(a).tolist() == np.array(a, dtype=float).tolist() == [1.0, 2.5]
        sn.quantize(a, "e4m3fn"), sn.array(a, "e4m3fn"), sn.sum(a, sn.ExactDotUnit("e5m2", operand="e5m2")), repr(a)
        for call in (np.asarray, np.array, np.asanyarray, np.vectorize(abs), np.ma.array):
            with pytest.raises(sn.arrays.FormatLostWarning, match=r"an Array of e5m2 .*np\.asarray\(a, np\.float64\)"):
                call(a)
        with pytest.raises(sn.arrays.FormatLostWarning, match="an Array of mxfp4_e2m1 becomes"):
            np.asarray(sn.array([1.0] * 32, "mxfp4_e2m1"))
    assert issubclass(sn.arrays.FormatLostWarning, UserWarning)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            np.asarray(a)
        np.ma.array(a)  # another place, which is here and not in numpy.ma
    assert [w.filename for w in caught] == [__file__] * 2 and caught[0].lineno + 1 == caught[1].lineno


def test_the_dtype_is_the_format():
    a = sn.array([1.0, 2.5], "e5m2")
    assert a.dtype == a.format == sn.format("e5m2") and str(a.dtype) == "e5m2"
    assert hash(a.dtype) == hash(sn.format("e5m2")) and a.dtype != sn.array(1.0, "e4m3fn").dtype
    assert a.dtype in {sn.format("e5m2"): 1} and sn.array([0.5], a.dtype).dtype is a.dtype
    with pytest.raises(TypeError, match="data type"):
        np.zeros(2, a.dtype)


# -- Python's conversions --------------------------------------------------------------------------------------------
def test_python_s_numbers_of_arrays():
    a = sn.array([-2.5, 3.5, 0.75], "e5m2")
    assert [int(x) for x in a] == [-2, 3, 0] and [round(x) for x in a] == [-2, 4, 1] and round(a[2], 1) == 0.8
    assert f"{a[1]:.3f} {a[0]:+g}" == "3.500 -2.5" and f"{a}" == str(a) == repr(a)
    third = sn.array(Fraction(1, 3), "q1.63")
    assert int(third) == 0 and round(third) == 0 and round(sn.array(2**63 - 1, "q64.0")) == 2**63 - 1
    for call, message in (
        (lambda: int(a), "only an Array of one element can be converted to an int"), (lambda: round(a), "np.round"),
        (lambda: f"{a:.3f}", "an Array of 1 dimensions cannot be formatted by '.3f'"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(ValueError, match="NaN"):
        int(sn.array(NAN, "e5m2"))


def test_none_is_no_element():
    a = sn.array([1.0, 2.5], "e5m2")
    assert (a == None) is False and (a != None) is True and None not in [a] and None in [a, None]  # noqa: E711


def test_decimals_and_long_doubles():
    assert sn.array([Decimal("0.1")], "e5m2").tolist() == [0.09375]
    assert sn.array(np.longdouble([0.1, NAN]), "e5m2").codes.tolist() == sn.encode([0.1, NAN], "e5m2").tolist()
    a = sn.array([1.0, 2.5], "e5m2")
    assert (a + Decimal("0.5")).tolist() == [1.5, 3.0] and (a * np.longdouble(2)).tolist() == [2.0, 5.0]
    with pytest.raises(ValueError, match="is not exact in e5m2"):
        a + Decimal("0.1")
    assert sn.array([Decimal("0.7")], TABLE).tolist() == [0.7]
    for special in ("NaN", "-Infinity"):
        assert str(sn.array(Decimal(special), "e5m2").item()) == str(float(special))


# -- arrays of numbers beside an Array -------------------------------------------------------------------------------
@cases("fmt", FORMATS)
def test_arrays_of_exact_numbers(fmt):
    a, b = some(fmt, finite=True), some(fmt, seed=4, finite=True)
    exact = values(b)
    for got in (a + exact, sn.add(a, b), np.add(a, exact.tolist()), np.add(a, exact.astype(object))):
        assert np.array_equal(got.codes, sn.add(a, b).codes)
    assert np.array_equal((exact - a).codes, sn.subtract(b, a).codes)
    assert np.array_equal(a < exact, values(a) < exact)
    assert np.array_equal(np.concatenate([a, exact]).codes, np.concatenate([a.codes, b.codes]))
    into = np.zeros_like(a)
    into[...] = exact
    assert np.array_equal(into.codes, b.codes)
    exact[2, 1] = 0.3
    with pytest.raises(ValueError, match=rf"element \[2, 1\] of the ndarray: 0.3 is not exact in {fmt}"):
        a + exact


def test_arrays_of_integers_specials_and_wide_numbers():
    a = sn.array([1.0, 2.0], "e5m2")
    assert (a + np.array([1, -2], np.int8)).tolist() == [2.0, 0.0]
    assert (a + np.array([NAN, -INF])).codes.tolist() == (a + sn.array([NAN, -INF], "e5m2")).codes.tolist()
    assert sn.array([1], "q64.0")[0:1] + np.array([2**62 + 1]) == 2**62 + 2
    with pytest.raises(ValueError, match=r"element \[1\] of the ndarray: 4611686018427387905 is not exact in binary64"):
        sn.array([1.0, 2.0], "binary64") + np.array([0, 2**62 + 1])
    with pytest.raises(ValueError, match=r"element \[0\] of the ndarray: nan is not exact in q4.4"):
        sn.array([1.0], "q4.4") + np.array([NAN])
    with pytest.raises(ValueError, match=r"element \[0\] of the ndarray: -0.0 is not exact in q4.4"):
        sn.array([1.0], "q4.4") + np.array([-0.0])
    assert (a + np.float16([1, 2])).tolist() == [2.0, 4.0] and (a + np.longdouble([1, 2])).tolist() == [2.0, 4.0]


# -- ufuncs ----------------------------------------------------------------------------------------------------------
@cases("fmt", FLOATS)
def test_exact_ufuncs_are_numpy_s_of_the_values(fmt):
    a, b = some(fmt), some(fmt, seed=4)
    v, w = values(a), values(b)
    with np.errstate(all="ignore"):
        for function in (np.positive, np.fabs, np.conjugate, np.sign, np.nan_to_num if fmt == "e8m23" else np.real):
            got = function(a)
            assert isinstance(got, sn.Array)
            if function is not np.nan_to_num:
                same(got, function(v))
        for function in (np.frexp, np.modf):
            for got, want in zip(function(a), function(v), strict=True):
                same(got, want)
        for function in (np.logical_and, np.logical_or, np.logical_xor):
            assert np.array_equal(function(a, b), function(v, w)) and np.array_equal(
                function(a, w > 0), function(v, w > 0)
            )
        assert np.array_equal(np.logical_not(a), np.logical_not(v))
    assert np.array_equal(np.square(a).codes, sn.multiply(a, a).codes)


def test_ufuncs_of_fixed_point_and_tables():
    a = sn.array([-1.5, 0.0, 2.25], "q4.4")
    assert np.sign(a).tolist() == [-1.0, 0.0, 1.0] and np.modf(a)[0].tolist() == [-0.5, 0.0, 0.25]
    assert np.frexp(a)[0].tolist() == [-0.75, 0.0, 0.5625] and np.logical_not(a).tolist() == [False, True, False]
    assert np.sign(sn.array([1.0, 4.0], "e8m0fnu")).tolist() == [1.0, 1.0]
    assert np.sign(sn.array([0.5, -1.0], TABLE)[1:]).tolist() == [-1.0]
    for message, call in (
        ("sign: 1 is not exact in table", lambda: np.sign(sn.array([0.5], TABLE))),
        (r"frexp: element \[0\] of the ndarray: 0.5 is not exact in q4.0", lambda: np.frexp(sn.array([1.0], "q4.0"))),
        ("frexp: a value of e15m48 is out of range for float64", lambda: np.frexp(sn.array(["0x1p-9000"], "e15m48"))),
        (r"spacing: element \[0\] of the ndarray: 0.125 is not exact in e3m2", lambda: np.spacing(
            sn.array([1.0], sn.FloatFormat(2, 3, lowest_binade="zero", name="e3m2")))),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()


@cases("fmt", FORMATS)
def test_neighbours_and_their_distance(fmt):
    a, b = some(fmt), some(fmt, seed=9)
    got, u, v = np.nextafter(a, b).codes, values(a), values(b)
    for at in np.ndindex(got.shape):
        x, y = u[at], v[at]
        step = sn.next_up if x < y else sn.next_down
        want = a.codes[at] if x != x else b.codes[at] if y != y or x == y else step(a.codes[at], fmt)
        assert got[at] == want
    f = some(fmt, finite=True)
    units = np.spacing(f)
    assert np.array_equal(np.abs(values(units)), sn.ops.ulp(f)) and np.array_equal(values(units) < 0, values(f) < 0)
    one = sn.array(1.0, "e5m2")
    assert np.nextafter(one, 2).item() == 1.25 and np.nextafter(1.5, one).item() == 1.25
    with pytest.raises(ValueError, match="formats differ"):
        np.nextafter(one, sn.array(1.0, "e3m4"))


def test_powers_of_two():
    a = sn.array([1.5, -3.0, 0.0], "e5m2")
    assert np.ldexp(a, [1, 2, 3]).tolist() == [3.0, -12.0, 0.0] and np.ldexp(a, -40).tolist() == [0.0, 0.0, 0.0]
    assert np.array_equal(np.ldexp(*np.frexp(a)).codes, a.codes)
    with pytest.raises(TypeError, match="ldexp: the exponents must be integers, not an Array"):
        np.ldexp(a, a)


def test_where_out_outer_and_at():
    a, b = sn.array([1.0, 2.0, 3.0], "e5m2"), sn.array([0.0, 1.0, 0.0], "q4.4")
    into = a.copy()
    assert np.add(a, 1, out=into, where=[True, False, True]) is into and into.tolist() == [2.0, 2.0, 4.0]
    half = np.full(3, 0.5, np.float32)
    assert np.divide(1, b, out=half, where=values(b) != 0) is half and half.tolist() == [0.5, 1.0, 0.5]
    flags = np.ones((2, 3), bool)
    assert np.less(a, 2, out=flags, where=[[True, False, True], [False] * 3]).tolist() == [
        [True, True, False],
        [True] * 3,
    ]
    parts = np.empty(3), np.empty(3, np.int32)
    assert (
        np.frexp(a, out=parts) is not None and parts[0].tolist() == [0.5, 0.5, 0.75] and parts[1].tolist() == [1, 2, 2]
    )
    plain = np.ones(3)
    plain += a
    assert plain.tolist() == [2.0, 3.0, 4.0]
    assert np.multiply.outer(a, [1.0, 2.0]).tolist() == np.multiply.outer(values(a), [1.0, 2.0]).tolist()
    assert np.less.outer(a, a).tolist() == np.less.outer(values(a), values(a)).tolist()
    c = sn.array([16.0, 0.0], "e5m2")
    assert np.add.at(c, [0, 0, 1, 0], [1.0, 1.0, 1.0, 4.0]) is None and c.tolist() == [20.0, 1.0]  # 16 + 1 is 16
    np.negative.at(c, [1])
    np.multiply.at(c.reshape(2, 1), (slice(None), 0), 2)
    assert c.tolist() == [40.0, -2.0]
    for error, message, call in (
        (ValueError, "add: out has the shape", lambda: np.add(a, a, out=np.zeros((2, 3)), where=[True, False, True])),
        (TypeError, "where must be an array of bool, got", lambda: np.add(a, a, out=into, where=[1, 0, 1])),
        (ValueError, "in e5m2 cannot be written into an Array .* in q4.4",
         lambda: np.add(a, a, out=b.copy(), where=[True, False, True])),
        (TypeError, "an Array cannot be written into an ndarray", lambda: np.add.at(np.zeros(2), [0], a[0])),
        (ValueError, "not exact in float16",
         lambda: np.add(sn.array(2.0**40, "e8m23"), 0, out=np.zeros((), np.float16))),
        (TypeError, "numpy.add.reduceat is not defined", lambda: np.add.reduceat(a, [0])),
        (TypeError, "numpy.multiply.reduce is not defined .* functools.reduce", lambda: np.multiply.reduce(a)),
        (TypeError, "numpy.prod is not defined .* functools.reduce", lambda: np.prod(a)),
        (TypeError, "numpy.std is not defined .* softnum.sqrt", lambda: np.std(a)),
        (TypeError, "numpy.multiply.accumulate is not defined", lambda: np.multiply.accumulate(a)),
        (TypeError, "numpy.max with initial is not defined", lambda: np.max(a, initial=1)),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()


def test_reductions_that_choose():
    a = sn.array([[1.0, -2.0, NAN], [3.0, 0.5, 4.0]], "e5m2")
    v = values(a)
    for ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
        same(ufunc.reduce(a), ufunc.reduce(v))
        same(ufunc.reduce(a, axis=1, keepdims=True), ufunc.reduce(v, axis=1, keepdims=True))
        same(ufunc.accumulate(a, axis=1), ufunc.accumulate(v, axis=1))
    assert np.logical_and.reduce(a, axis=None) and np.logical_or.reduce(a).tolist() == [True] * 3
    same(np.nanmax(a), np.nanmax(v))
    same(np.nanmin(a, 0), np.nanmin(v, 0))
    assert np.isnan(values(np.nanmax(a[:, 2:], 1))).tolist() == [True, False] and np.isnan(np.nanmin(a[:1, 2:]))
    for function in (np.max, np.min, np.argmax, np.argmin, np.median):
        with pytest.raises(
            ValueError,
            match=rf"{function.__name__.removeprefix('a')[-3:]}.*: not defined for an empty Array, of shape \(0,\)",
        ):
            function(a[0, :0])
    assert np.max(a[:0], axis=1).shape == (0,)


# -- functions -------------------------------------------------------------------------------------------------------
A = sn.array([[3.0, -0.5, 0.0, 2.0], [1.0, 0.0, -2.0, 0.5]], "e4m3fn")
EXACT = {
    "all": lambda a: np.all(a, axis=1),
    "any": lambda a: np.any(a, axis=0, keepdims=True),
    "append": lambda a: np.append(a, [1.0]),
    "argpartition": lambda a: np.take_along_axis(a, np.argpartition(a, 1), 1)[:, 1],
    "argwhere": np.argwhere,
    "array_equal": lambda a: np.array_equal(a, values(a)),
    "array_equiv": lambda a: np.array_equiv(a, np.stack([values(a)] * 2)),
    "compress": lambda a: np.compress([True, False], a, axis=0),
    "count_nonzero": lambda a: np.count_nonzero(a, axis=1),
    "diag": lambda a: np.diag(a, 1),
    "diag of a vector": lambda a: np.diag(a[0], -2),
    "diagflat": np.diagflat,
    "diff": np.diff,
    "diff of diff": lambda a: np.diff(a, 2, 1),
    "diff, longer": lambda a: np.diff(a, axis=0, prepend=0, append=a[:1]),
    "dsplit": lambda a: np.dsplit(a[None], 2)[1],
    "hsplit": lambda a: np.hsplit(a, 2)[1],
    "vsplit": lambda a: np.vsplit(a, 2)[1],
    "extract": lambda a: np.extract(values(a) > 0, a),
    "fix": np.fix,
    "flatnonzero": np.flatnonzero,
    "imag": np.imag,
    "real": np.real,
    "insert": lambda a: np.insert(a, 1, [4.0, 5.0], 1),
    "intersect1d": lambda a: np.intersect1d(a, [0.0, 2.0, 7.0]),
    "iscomplexobj": np.iscomplexobj,
    "isrealobj": np.isrealobj,
    "isin": lambda a: np.isin(a, [0.0, 2.0, NAN]),
    "isin, inverted": lambda a: np.isin(a, [0.0, 2.0], invert=True),
    "isneginf": np.isneginf,
    "isposinf": np.isposinf,
    "matrix_transpose": np.matrix_transpose,
    "linalg": np.linalg.matrix_transpose,
    "linalg.diagonal": np.linalg.diagonal,
    "median": np.median,
    "median, axis": lambda a: np.median(a, 1, keepdims=True),
    "median, axes": lambda a: np.median(a, (0, 1)),
    "median, odd": lambda a: np.median(a[:, :3], 1),
    "nonzero": lambda a: np.nonzero(a)[1],
    "pad": lambda a: np.pad(a, ((0, 1), (2, 0))),
    "pad, constant": lambda a: np.pad(a, 1, constant_values=-1),
    "pad, edge": lambda a: np.pad(a, 2, "edge"),
    "pad, reflect": lambda a: np.pad(a, ((0, 0), (1, 2)), mode="reflect"),
    "pad, wrap": lambda a: np.pad(a, 3, "wrap"),
    "partition": lambda a: np.partition(a, 2)[:, 2],
    "ptp": lambda a: np.ptp(a, 1),
    "resize": lambda a: np.resize(a, (3, 4)),
    "round": np.round,
    "select": lambda a: np.select([values(a) > 1, values(a) < 0], [a, -a], 0.5),
    "setdiff1d": lambda a: np.setdiff1d(a, [0.0, 3.0]),
    "tril": np.tril,
    "triu": lambda a: np.triu(a, 1),
    "trim_zeros": lambda a: np.trim_zeros(a[1][1:]),
    "union1d": lambda a: np.union1d(a, [7.0]),
    "unique": np.unique,
    "unique_values": np.unique_values,
    "unstack": lambda a: np.unstack(a)[1],
    "where, alone": lambda a: np.where(a)[0],
    "unique, all": lambda a: np.unique(a, True, True, True)[0],
    "unique, index": lambda a: np.unique(a, return_index=True)[1],
    "unique, inverse": lambda a: np.unique(a, return_inverse=True)[1],
    "unique, counts": lambda a: np.unique(a, return_counts=True)[1],
    "clip": lambda a: np.clip(a, min=0, max=1.5),
    "astype": lambda a: np.astype(a, np.float16),
    "broadcast": lambda a: np.broadcast_arrays(a, np.zeros((3, 1, 1)))[0],
    "round, method": lambda a: a.round(),
    "all, method": lambda a: a.all(),
    "any, method": lambda a: a.any(1),
    "nonzero, method": lambda a: a.nonzero()[0],
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_functions_are_numpy_s_of_the_values(name):
    got, want = EXACT[name](A), EXACT[name](values(A))
    if isinstance(got, sn.Array):
        same(got, np.where(np.asarray(want) == 0, values(got), want) if name in ("unique", "union1d") else want)
    else:
        assert np.array_equal(got, want)


def test_values_that_are_rounded_are_rounded_once():
    a = sn.array([1.0, 1.25, NAN, INF], "e5m2")
    assert np.median(a[:2]).item() == 1.0 and np.median(sn.array([1.25, 1.5], "e5m2")).item() == 1.5  # ties to even
    assert np.isnan(np.median(a)) and np.median(a[[0, 3, 3]]).item() == INF
    top = sn.format("e5m2").max
    holes = sn.array([[1.0, NAN, 3.0], [NAN, NAN, NAN]], "e5m2")
    same(np.nanmedian(holes, 1), [2.0, NAN])
    assert np.nanmedian(holes).item() == np.nanmedian(holes[0, ::2]).item() == 2.0
    assert np.nanmedian(holes, 1, keepdims=True).shape == (2, 1)
    assert np.median(sn.array([top, top], "e5m2")).item() == top  # no sum overflows on the way
    assert (
        np.isnan(np.median(sn.array([-INF, INF], "e5m2")))
        and str(np.median(sn.array([-0.0, -0.0], "e5m2")).item()) == "-0.0"
    )
    least = sn.format("e5m2").smallest_subnormal
    assert np.median(sn.array([least, 2 * least], "e5m2")).item() == 2 * least
    assert np.diff(sn.array([0.125, 8.0], "e5m2")).tolist() == [8.0]


def test_zeros_nans_and_uniqueness():
    a = sn.array([NAN, 0.0, -0.0, 1.0, NAN], "e4m3fn")
    found, index, inverse, counts = np.unique(a, True, True, True)
    assert found.tolist()[:2] == [0.0, 1.0] and found.size == 3 and counts.tolist() == [2, 1, 2]
    assert np.array_equal(found.codes, a[index].codes) and np.array_equal(np.isnan(found[inverse]), np.isnan(a))
    assert np.unique(a, equal_nan=False).size == np.unique_values(a).size == 4
    assert np.isin(a, a).tolist() == [False, True, True, True, False]
    with pytest.raises(TypeError, match="numpy.unique with axis .* codes"):
        np.unique(a, axis=0)
    with pytest.raises(ValueError, match="isin: the formats differ"):
        np.isin(a, sn.array(1.0, "e5m2"))


def test_closeness_is_decided_exactly():
    a = sn.array([1.0, 2.0, INF, NAN, -0.0], "binary64")
    assert np.isclose(a, [1.0 + 1e-6, 2.1, INF, NAN, 1e-9]).tolist() == [True, False, True, False, True]
    assert np.isclose(a, a, equal_nan=True).all() and not np.allclose(a, a) and np.allclose(a[:3], a[:3])
    edge = sn.array([1.0], "binary64")
    assert np.isclose(edge, [0.5], rtol=1, atol=0.0).tolist() == [True]
    for distance, close in ((2.0**-60, True), (2.0**-60 + 2.0**-112, False)):
        x = sn.array([Fraction(distance)], "binary64")
        assert np.isclose(x, [0.0], rtol=0, atol=2.0**-60).tolist() == [close]
    huge = sn.array(["0x1p9000", "0x1.8p9000"], "e15m48")
    assert np.isclose(huge, huge[:1], rtol=0.5, atol=0).tolist() == [True, True]
    assert np.isclose(huge, huge[:1], rtol=0.4999, atol=0).tolist() == [True, False]


def test_nan_to_num():
    a = sn.array([NAN, INF, -INF, 1.5], "e5m2")
    top = sn.format("e5m2").max
    assert np.nan_to_num(a).tolist() == [0.0, top, -top, 1.5]
    assert np.nan_to_num(a, nan=0.5, posinf=2, neginf=-3).tolist() == [0.5, 2.0, -3.0, 1.5]
    assert np.nan_to_num(a, copy=False) is a and a.tolist()[0] == 0.0
    with pytest.raises(ValueError, match="0.3 is not exact"):
        np.nan_to_num(sn.array([NAN], "e5m2"), nan=0.3)


def test_functions_that_write():
    def written(write):
        a, v = A.copy(), values(A).copy()
        write(a)
        write(v)
        same(a, v)

    written(lambda a: np.put(a, [0, 5], [4.0, 5.0]))
    written(lambda a: np.putmask(a, [[True, False, False, True]] * 2, [1.5, 2.5]))
    written(lambda a: np.place(a, [[True, False, False, True]] * 2, [1.5, 2.5]))
    written(lambda a: np.put_along_axis(a, np.array([[1], [0]]), 7.0, 1))
    written(lambda a: np.fill_diagonal(a, 6.0))
    with pytest.raises(TypeError, match="put: an Array cannot be written into an ndarray"):
        np.put(np.zeros(3), [0], A[0, 0])
    with pytest.raises(ValueError, match="0.3 is not exact in e4m3fn"):
        np.put(A.copy(), [0], 0.3)


def test_facts_and_text():
    view = A[0]
    assert np.shares_memory(A, view) and np.may_share_memory(A, view) and not np.shares_memory(A, A.copy())
    assert np.array_repr(A) == repr(A) and np.array_str(A) == str(A) and np.array2string(A) in repr(A)
    for call, message in (
        (lambda: np.round(A, 2), r"numpy.round to decimals .* np.round\(np.asarray\(a, np.float64\)"),
        (lambda: np.pad(A, 1, "mean"), "numpy.pad with mean"), (lambda: np.cumprod(A), "functools.reduce"),
        (lambda: np.pad(A, 1, "reflect", reflect_type="odd"), "numpy.pad with reflect_type='odd'"),
        (lambda: np.linalg.norm(A), "softnum.dot"), (lambda: np.interp(A, A, A), "np.asarray.a, np.float64"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=message):
            call()
