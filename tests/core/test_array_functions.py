"""sn.Array as NumPy users use one: numbers beside it, in-place operators, indexing, NumPy's functions, text."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softnum as sn
from softnum import reference as ref
from softnum.arrays.text import texts_of
from softnum.ops.numpy_functions import FUNCTIONS, order_keys
from tests.support.cases import cases

FORMATS = (
    "e5m2", "e4m3fn", "e4m3fnuz", "e2m1fn", "e8m0fnu", "binary8p3se", "binary8p3ue", "binary8p4sf", "binary8p4uf",
    "q4.4", "uq3.5", "dlfloat16", "binary16", "e15m48", "q1.63",
)  # fmt: skip
TABLE = sn.CustomFormat.from_table([0.0, 0.7, float("nan"), -1.0, 4.0, 0.5, float("nan"), 1e300], name="table")
NAN, INF = float("nan"), float("inf")


def some_codes(fmt, n=300, seed=1):
    """All codes of a narrow format, in random order; random ones of a wide format, the ends among them."""
    fmt = sn.format(fmt)
    rng = np.random.Generator(np.random.Philox(seed))
    if fmt.bits <= 8:
        return rng.permutation(1 << fmt.bits).astype(fmt.storage_dtype)
    codes = rng.integers(0, 2**64, n, dtype=np.uint64) >> np.uint64(64 - fmt.bits)
    half = 1 << (fmt.bits - 1)
    ends = np.array([0, 1, half - 1, half, half + 1, 2 * half - 1], np.uint64)
    return np.concatenate([codes, ends]).astype(fmt.storage_dtype)


def some_array(fmt, **kwargs):
    return sn.Array(some_codes(fmt, **kwargs), fmt)


# -- numbers beside an Array -----------------------------------------------------------------------------------------
NUMBERS = [
    0, 1, -1, 3, 7, 1.5, 0.1, -0.0, 0.0, 1e300, -(2**70), 2**2000, 10**5000, Fraction(1, 3), Fraction(-3, 64), NAN, INF,
    -INF, np.float32(0.75), np.int8(-2), np.uint64(2**63), np.float64(2.5), np.float16(0.1),
]  # fmt: skip


@cases("fmt", [*FORMATS, "binary64", TABLE], ids=str)
def test_a_number_is_exact_or_refused(fmt):
    fmt = sn.format(fmt)
    one = sn.Array(np.zeros(2, fmt.storage_dtype), fmt)
    values = set(sn.decode(np.arange(1 << fmt.bits), fmt, object).tolist()) if fmt.bits <= 16 else None
    for number in NUMBERS:
        plain = number.item() if isinstance(number, np.generic) else number
        if plain != plain:
            exact = fmt.has_nan
        elif plain in (INF, -INF):
            exact = fmt.infinities and (plain > 0 or fmt.signed)
        elif plain == 0:
            exact = fmt.negative_zero if str(plain) == "-0.0" else getattr(fmt, "has_zero", True)
        elif values is not None:
            exact = plain in values
        else:
            exact = ref.encode(Fraction(plain), fmt)[1] == 0
        if exact:
            one[0] = number
            got = one[0].item()
            assert got == plain or (got != got and plain != plain), (number, got)
            assert str(got).startswith("-") == str(plain).startswith("-") or plain != plain
        else:
            with pytest.raises(
                ValueError, match=rf"is not exact in {fmt}; round it first: softnum.array\(x, '{fmt}'\)"
            ):
                one[0] = number
    for other in (True, np.True_, "1", None, 1j, np.complex64(1), b"1", np.ones(2, bool), ["1"], np.ones(2, complex)):
        with pytest.raises(TypeError, match=rf"Array and {type(other).__name__}( of .*)? cannot be combined"):
            one[0] = other


def test_numbers_in_arithmetic_and_comparison():
    a = sn.array([1.0, 2.5, -3.0], "e5m2")
    half = sn.array(0.5, "e5m2")
    for got, want in [
        (a + 0.5, sn.add(a, half)), (0.5 + a, sn.add(half, a)), (a - Fraction(1, 2), sn.subtract(a, half)),
        (np.float32(0.5) - a, sn.subtract(half, a)), (a * 0.5, sn.multiply(a, half)), (0.5 * a, sn.multiply(half, a)),
        (a / 0.5, sn.divide(a, half)), (0.5 / a, sn.divide(half, a)), (np.add(a, 0.5), sn.add(a, half)),
        (np.divide(0.5, a), sn.divide(half, a)), (np.float64(0.5) / a, sn.divide(half, a)),
        (np.maximum(a, 0.5), sn.maximum(a, half)), (np.copysign(0.5, a), sn.ops.copysign(half, a)),
    ]:  # fmt: skip
        assert isinstance(got, sn.Array) and np.array_equal(got.codes, want.codes) and got.format == a.format
    b = sn.array([-1.5, 0.5, 1.75, 2.5], "e5m2")
    for function in (np.floor, np.ceil, np.trunc, np.rint):
        assert np.array_equal(np.asarray(function(b)), function(np.asarray(b)))
    assert (a < 1).tolist() == (1 > a).tolist() == np.less(a, 1).tolist() == np.greater(1, a).tolist()
    assert (a < 1).tolist() == [False, False, True] and (a >= 2.5).tolist() == [False, True, False]
    assert (a == 1).tolist() == [True, False, False] and (1 != a).tolist() == [False, True, True]
    assert (a == NAN).tolist() == [False] * 3 and (a != NAN).tolist() == [True] * 3
    assert isinstance(a[0] < 2, np.bool_) and 2.5 in a and 2.0 not in a
    b = sn.Array(np.arange(8), TABLE)
    assert b[b > 0.5].codes.tolist() == [1, 4, 7]
    assert (sn.array([0.5, 0.75], "binary16") < b[1]).tolist() == [True, False]


@given(st.lists(st.integers(0, 255), min_size=1, max_size=8), st.lists(st.integers(0, 255), min_size=1, max_size=8))
def test_comparisons_are_those_of_the_values(x, y):
    n = min(len(x), len(y))
    for fmt in ("e5m2", "e4m3fnuz", "q4.4", "binary8p3ue"):
        a, b = sn.Array(x[:n], fmt), sn.Array(y[:n], fmt)
        u, v = np.asarray(a), np.asarray(b)
        for got, want in [(a < b, u < v), (a <= b, u <= v), (a == b, u == v), (a != b, u != v), (a > b, u > v),
                          (a >= b, u >= v)]:  # fmt: skip
            assert got.dtype == bool and got.tolist() == want.tolist()


@pytest.mark.parametrize("fmt", ["e5m2", "e4m3fnuz", "q4.4", "e2m1fn", "binary8p3ue", "e8m0fnu"])
def test_comparison_by_table_is_comparison(fmt):
    """Without flags, operands of 8 bits are looked up in a table."""
    codes = np.sort(some_codes(fmt))
    a, b = np.repeat(codes, codes.size), np.tile(codes, codes.size)
    a, b = np.resize(a, 2**16), np.resize(b, 2**16)
    values, others = sn.decode(a, fmt), sn.decode(b, fmt)
    want = np.where(np.isnan(values) | np.isnan(others), 2, np.sign((values > others) * 1 - (values < others)))
    for signaling in (False, True):
        assert np.array_equal(sn.compare(a, b, fmt, signaling=signaling), want)
        assert np.array_equal(sn.compare(a, b, fmt, signaling=signaling, return_flags=True)[0], want)


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("remainder is not defined .* softnum.remainder is IEEE's", lambda a: a % a),
        ("remainder is not defined .* softnum.remainder is IEEE's", lambda a: 2 % a),
        ("numpy.remainder is not defined .* softnum.remainder is IEEE's", lambda a: np.mod(a, a)),
        ("divmod is not defined .* softnum.remainder", lambda a: divmod(a, 2)),
        ("floor_divide is not defined .* softnum.remainder", lambda a: a // 2),
        ("float_power is not defined", lambda a: np.float_power(a, a)),
        ("matmul is not defined .* softnum.sum, softnum.dot or softnum.matmul with a unit", lambda a: a @ a),
        ("numpy.sum is not defined .* order and the accumulator .* softnum.matmul", lambda a: np.sum(a)),
        ("numpy.(add.reduce|sum) is not defined .* softnum.matmul", lambda a: np.add.reduce(a)),
        ("numpy.linalg.norm is not defined .* softnum.dot", lambda a: np.linalg.norm(a)),
        ("numpy.einsum is not defined .* softnum.matmul", lambda a: np.einsum("i,i", a, a)),
        ("numpy.save is not defined .* softnum.save keeps", lambda a: np.save("never-made.npy", a)),
        ("numpy.savez is not defined .* softnum.save keeps", lambda a: np.savez("never-made.npz", x=a)),
        ("numpy.take with out is not defined", lambda a: np.take(a, [0], out=a)),
        (
            "where: the condition must be an array of bool; compare the Array with something",
            lambda a: np.where(a, a, a),
        ),
        ("Array and ndarray of complex128 cannot be combined", lambda a: np.where([True], a, np.ones(2, complex))),
        ("an Array and ndarray of bool cannot be combined", lambda a: np.concatenate([a, np.ones(2, bool)])),
        ("an Array cannot be copied into an ndarray", lambda a: np.copyto(np.ones(2), a)),
        ("iteration over an Array without dimensions", lambda a: list(a[0])),
        ("only an Array of one element can be converted to a float", lambda a: float(a)),
        ("Array: give the format of the encodings; only arrays with a float", lambda a: sn.Array([1, 2])),
        ("array: give the format to round to", lambda a: sn.array(np.float32([1]), rounding="up")),
    ],
)
def test_what_is_not_defined_names_the_way_out(message, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=message):
        call(sn.array([1.0, 2.0], "e5m2"))
    assert not list(tmp_path.iterdir())


def test_a_missing_attribute_is_named():
    a = sn.array([1.0], "e5m2")
    with pytest.raises(TypeError, match="numpy.sum is not defined for softnum.Array; the order and the accumulator"):
        a.sum()
    with pytest.raises(AttributeError, match="softnum.Array has no 'strides'$"):
        _ = a.strides


@pytest.mark.parametrize(
    ("message", "call"),
    [
        (r"concatenate: the formats differ \(e5m2, e4m3fn\); convert with", lambda a, b: np.concatenate([a, b])),
        (r"where: the formats differ \(e5m2, e4m3fn\)", lambda a, b: np.where(True, a, b)),
        ("searchsorted: the formats differ", lambda a, b: np.searchsorted(a, b)),
        (r"a result of shape \(2, 2\) in e5m2 cannot be written into an Array of shape \(2,\)",
         lambda a, b: a.__iadd__(sn.array([[1.0], [2.0]], "e5m2"))),
        ("in e5m2 cannot be written into an Array of shape .* in e4m3fn", lambda a, b: np.add(a, a, out=b)),
        ("operands' formats differ", lambda a, b: a.__iadd__(b)),
    ],
)  # fmt: skip
def test_formats_and_shapes_that_do_not_fit(message, call):
    with pytest.raises(ValueError, match=message):
        call(sn.array([1.0, 2.0], "e5m2"), sn.array([1.0, 2.0], "e4m3fn"))


# -- in place --------------------------------------------------------------------------------------------------------
def test_in_place_operators_write_into_the_codes():
    for operate, name in [
        (lambda a, b: a.__iadd__(b), "add"), (lambda a, b: a.__isub__(b), "subtract"),
        (lambda a, b: a.__imul__(b), "multiply"), (lambda a, b: a.__itruediv__(b), "divide"),
    ]:  # fmt: skip
        a = some_array("e5m2")
        codes, view = a.codes, a[10:]
        want = getattr(sn.ops, name)(a, sn.array(1.5, "e5m2"))
        assert operate(a, 1.5) is a and a.codes is codes
        assert np.array_equal(codes, want.codes) and np.array_equal(view.codes, want.codes[10:])


def test_in_place_on_overlapping_views():
    a = sn.array(np.arange(1, 9), "binary16")
    want = a.copy()
    want[1:] = want[1:] + want[:-1]
    a[1:] += a[:-1]
    assert a.tolist() == want.tolist() == [1, 3, 5, 7, 9, 11, 13, 15]
    b = a
    b *= 2
    assert b is a and a.tolist()[:2] == [2, 6]
    c = np.add(a, 1, out=a)
    assert c is a and a.tolist()[:2] == [3, 7]
    less = np.zeros(8, bool)
    assert np.less(a, 8, out=less) is less and less.tolist() == [True, True] + [False] * 6
    frozen = sn.Array(np.broadcast_to(np.uint16(0), 3), "binary16")
    with pytest.raises(ValueError, match="read-only"):
        frozen += 1


def test_unary_operators_give_new_arrays():
    a = sn.array([1.0, -2.0], "e5m2")
    plus = +a
    plus[0] = 2
    assert a.tolist() == [1.0, -2.0] and (-a).tolist() == [-1.0, 2.0] and abs(a).tolist() == [1.0, 2.0]


# -- the container ---------------------------------------------------------------------------------------------------
@given(st.data())
def test_indexing_is_numpy_s(data):
    codes = some_codes("binary16", n=54).reshape(3, 4, 5)
    a = sn.Array(codes.copy(), "binary16")
    integers = st.integers(-3, 2)
    index = data.draw(
        st.one_of(
            integers, st.slices(3), st.tuples(st.slices(3), st.integers(-4, 3)), st.just(Ellipsis), st.just(None),
            st.lists(integers, max_size=5).map(lambda i: np.array(i, int)), st.just((..., None, slice(1, 4))),
            st.lists(st.booleans(), min_size=3, max_size=3).map(np.array), st.just(codes > 30000),
            st.tuples(st.slices(3), st.just(np.array([[0, 1], [2, -1]])), st.slices(5)),
        )
    )  # fmt: skip
    got = a[index]
    assert isinstance(got, sn.Array) and got.format == a.format
    assert np.array_equal(got.codes, codes[index]) and got.shape == codes[index].shape
    a[index] = 1.5
    wanted = codes.copy()
    wanted[index] = 0x3E00
    assert np.array_equal(a.codes, wanted)
    a[index] = sn.Array(codes[index], "binary16")
    wanted[index] = codes[index]
    assert np.array_equal(a.codes, wanted)


def test_iteration_views_and_facts():
    a = sn.array(np.arange(6).reshape(2, 3), "binary16")
    assert [row.tolist() for row in a] == [[0, 1, 2], [3, 4, 5]] and [x.item() for x in a[1]] == [3.0, 4.0, 5.0]
    for row in a:
        row += 1
    assert a.tolist() == [[1, 2, 3], [4, 5, 6]]
    a[1:][0, 0] = 9
    assert a.T.shape == (3, 2) and a.T.tolist()[0] == [1, 9] and a.item(1, 0) == a.item(3) == 9.0
    assert (a.itemsize, a.nbytes, len(a)) == (2, 12, 2)
    a.fill(0.5)
    assert a.tolist() == [[0.5] * 3] * 2 and float(a[0, 0]) == 0.5
    assert a.reshape(3, 2).shape == a.reshape((3, -1)).shape == (3, 2) and a.ravel().shape == a.flatten().shape == (6,)
    assert np.shares_memory(a.reshape(6).codes, a.codes) and not np.shares_memory(a.flatten().codes, a.codes)
    assert a[None].squeeze(0).shape == (2, 3) and a.swapaxes(0, 1).shape == (3, 2)
    assert a.take([0, 5]).tolist() == [0.5, 0.5] and a.repeat(2, 0).shape == (4, 3)
    assert sn.array([Fraction(1, 3)], "q1.63").tolist() == [Fraction(round(Fraction(2**63, 3)), 2**63)]


@cases("fmt", [*FORMATS, TABLE], ids=str)
def test_copies_and_pickles(fmt):
    a = some_array(fmt)
    for again in (copy.copy(a), copy.deepcopy(a), a.copy(), np.copy(a), *(
        pickle.loads(pickle.dumps(a, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    )):  # fmt: skip
        assert isinstance(again, sn.Array) and again.format == a.format and again.format.name == a.format.name
        assert np.array_equal(again.codes, a.codes) and not np.shares_memory(again.codes, a.codes)
        again[0] = again[1]
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


# -- order -----------------------------------------------------------------------------------------------------------
@cases("fmt", FORMATS)
def test_sorting_is_by_total_order(fmt):
    a = some_array(fmt, n=60)
    low = np.sort(a)
    assert sn.ops.total_order(low[:-1], low[1:]).all() and sorted(low.codes.tolist()) == sorted(a.codes.tolist())
    assert np.array_equal(a[np.argsort(a)].codes, low.codes) and np.array_equal(a[a.argsort()].codes, low.codes)
    keys = order_keys(a)
    assert np.array_equal(keys[:, None] <= keys, sn.ops.total_order(a[:, None], a))
    again = a.copy()
    again.sort()
    assert np.array_equal(again.codes, low.codes)
    if a.format.bits <= 8:  # longer than the format has codes: another way
        long = np.tile(a, (2, 3))
        assert np.array_equal(np.sort(long).codes[:, ::3], np.sort(a[None]).codes.repeat(2, 0))
        assert np.array_equal(np.sort(long, 0).codes, long.codes)
    table = a[:60].reshape(6, 10) if a.size >= 60 else a.reshape(2, -1)
    assert np.array_equal(np.sort(table, 0).T.codes, np.sort(table.T).codes)
    assert np.sort(table, None).shape == (table.size,)
    for side in ("left", "right"):
        at = np.searchsorted(low, a, side)
        assert np.array_equal(low.searchsorted(a, side), at)
        assert np.array_equal(at, np.searchsorted(np.sort(keys), keys, side))


def test_where_nan_goes():
    for fmt, first in (("e5m2", False), ("e4m3fn", False), ("e4m3fnuz", True), ("binary8p3se", True),
                       ("binary8p3ue", True), ("e8m0fnu", False)):  # fmt: skip
        low = np.sort(some_array(fmt))
        nan = np.flatnonzero(np.isnan(low))
        assert (0 in nan) == (first or fmt == "e5m2" or fmt == "e4m3fn") and (low.size - 1 in nan) == (not first)
    low = np.sort(sn.Array(np.arange(8), TABLE))
    assert low.tolist()[:6] == [-1.0, 0.0, 0.5, 0.7, 4.0, 1e300] and low.codes.tolist()[6:] == [2, 6]
    assert np.searchsorted(sn.array([-1.0, 0.0, 2.0], "e5m2"), 0.5) == 2


@given(
    st.lists(st.integers(0, 255), min_size=12, max_size=12), st.sampled_from([None, 0, 1, (0, 1), -1]), st.booleans()
)
def test_extremes_are_ieee_s_minimum_and_maximum(codes, axis, keepdims):
    for fmt in ("e5m2", "e4m3fnuz", "q4.4", "binary8p3ue", "e8m0fnu"):
        a = sn.Array(np.reshape(codes, (3, 4)), fmt)
        for name in ("min", "max"):
            fold = sn.minimum if name == "min" else sn.maximum
            got = getattr(a, name)(axis, keepdims=keepdims)
            if axis is None or axis == (0, 1):
                parts, shape = list(a.ravel()), (1, 1) if keepdims else ()
            else:
                parts = list(a if axis == 0 else a.T)
                shape = np.asarray(a).min(axis, keepdims=keepdims).shape
            want = parts[0]
            for part in parts[1:]:
                want = fold(want, part)
            want = fold(want, want)  # a NaN becomes canonical
            assert got.shape == shape and np.array_equal(got.codes.ravel(), want.codes.ravel()), (fmt, name)
            assert np.array_equal({"min": np.min, "max": np.max}[name](a, axis, keepdims=keepdims).codes, got.codes)
            if not isinstance(axis, tuple):
                at = {"min": np.argmin, "max": np.argmax}[name](a, axis, keepdims=keepdims)
                values = np.asarray(a)
                ours = values.ravel()[at] if axis is None else np.take_along_axis(
                    values, at if keepdims else np.expand_dims(at, axis), axis
                )  # fmt: skip
                theirs = getattr(values, name)(axis)
                assert np.array_equal(np.ravel(ours), np.ravel(theirs), equal_nan=True)
                if np.isnan(values).any() and axis is None:
                    assert at == np.argmax(np.isnan(values))


def test_extremes_of_tables_and_nothing():
    a = sn.Array(np.array([1, 3, 4, 5]), TABLE)
    assert a.min().item() == -1.0 and a.max().item() == 4.0 and a.argmax() == 2
    assert np.isnan(sn.Array(np.arange(8), TABLE).max()) and np.isnan(float(sn.Array(np.arange(8), TABLE).min()))
    with pytest.raises(ValueError, match="empty"):
        a[:0].min()


# -- NumPy's functions -----------------------------------------------------------------------------------------------
@cases("fmt", [*FORMATS, TABLE], ids=str)
def test_predicates(fmt):
    a = some_array(fmt)
    values = sn.decode(a.codes, a.format, object).tolist()
    nan = [v != v for v in values]
    assert np.isnan(a).tolist() == nan
    assert np.isinf(a).tolist() == [v in (INF, -INF) for v in values]
    assert np.isfinite(a).tolist() == [v == v and v not in (INF, -INF) for v in values]
    want = [v < 0 or (isinstance(v, float) and str(v) == "-0.0") for v in values]
    assert [s for s, n in zip(np.signbit(a).tolist(), nan, strict=True) if not n] == [
        s for s, n in zip(want, nan, strict=True) if not n
    ]
    assert np.signbit(sn.Array([0xFE, 0x7E], "e5m2")).tolist() == [True, False]
    assert not np.signbit(sn.Array([0x80], "e4m3fnuz"))[0]


def test_functions_that_move_elements():
    codes = some_codes("e4m3fn")[:24].reshape(2, 3, 4)
    a = sn.Array(codes, "e4m3fn")
    for call in [
        lambda x: np.reshape(x, (4, 6)), lambda x: np.reshape(x, (4, 6), order="F"), np.ravel, np.transpose,
        lambda x: np.transpose(x, (1, 0, 2)), lambda x: np.squeeze(x[:1]), lambda x: np.expand_dims(x, (0, 2)),
        lambda x: np.broadcast_to(x, (5, 2, 3, 4)), lambda x: np.take(x, [2, 0], axis=1), np.flip,
        lambda x: np.flip(x, 1), lambda x: np.roll(x, 2), lambda x: np.roll(x, (1, 2), (0, 1)),
        lambda x: np.repeat(x, 3, 1), lambda x: np.tile(x, (2, 1, 2)), np.copy, np.fliplr, np.flipud,
        lambda x: np.swapaxes(x, 0, 2), lambda x: np.moveaxis(x, 0, -1), np.rot90, np.atleast_1d,
        np.atleast_2d, np.atleast_3d, lambda x: np.rollaxis(x, 2),
        lambda x: np.delete(x, 1, 1), np.diagonal, lambda x: np.concatenate([x, x[:1]]),
        lambda x: np.concatenate([x, x], axis=None), lambda x: np.concatenate((x, x), 2), lambda x: np.stack([x, x], 1),
        lambda x: np.hstack([x, x]), lambda x: np.vstack([x, x]), lambda x: np.dstack([x, x]),
        lambda x: np.column_stack([x[0, 0], x[0, 1]]), lambda x: np.where(codes < 99, x, x[0]),
        lambda x: np.split(x, 3, 1)[1], lambda x: np.array_split(x, 2)[0],
        lambda x: np.broadcast_arrays(x, x[0])[1], lambda x: np.take_along_axis(x, np.zeros((2, 1, 4), int), 1),
    ]:  # fmt: skip
        got, want = call(a), call(codes)
        assert isinstance(got, sn.Array) and got.format == a.format
        assert got.shape == want.shape and np.array_equal(got.codes, want)
    assert np.shares_memory(np.reshape(a, -1).codes, codes) and (np.ndim(a), np.shape(a)) == (3, (2, 3, 4))
    assert np.size(a) == 24 and np.size(a, 1) == 3


def test_functions_that_make_arrays():
    a = sn.array([[1.0, -2.5, 0.0]], "e5m2")
    assert np.zeros_like(a).tolist() == [[0.0] * 3] and np.ones_like(a, shape=2).tolist() == [1.0, 1.0]
    assert np.full_like(a, 1.5).tolist() == [[1.5] * 3] and np.empty_like(a).shape == (1, 3)
    assert np.full_like(a, a[0, 1]).tolist() == [[-2.5] * 3]
    assert np.zeros_like(a, dtype="e4m3fn").format == sn.format("e4m3fn") and np.ones_like(a, dtype=bool).all()
    grid, other = np.meshgrid(a[0], sn.array([0.5, 0.25], "q4.4"))
    assert grid.tolist() == a.tolist() * 2 and other.format == sn.format("q4.4") and other.T.tolist()[0] == [0.5, 0.25]
    with pytest.raises(ValueError, match="0.1 is not exact in e5m2"):
        np.full_like(a, 0.1)
    with pytest.raises(ValueError, match="0 is not exact in e8m0fnu"):
        np.zeros_like(sn.array([1.0], "e8m0fnu"))
    assert np.where(a < 0, 0, a).tolist() == [[1.0, 0.0, 0.0]] and np.where([True], 1.5, a).tolist() == [[1.5] * 3]
    assert np.clip(a, -1, 0.5).tolist() == [[0.5, -1.0, 0.0]] and a.clip(a_max=0).tolist() == [[0.0, -2.5, 0.0]]
    b = np.zeros_like(a)
    np.copyto(b, a, where=[True, False, True])
    assert b.tolist() == [[1.0, 0.0, 0.0]]
    np.copyto(b, 3)
    assert b.tolist() == [[3.0] * 3]


def test_equality_of_whole_arrays():
    a = sn.array([1.0, NAN, -0.0], "e5m2")
    assert np.array_equal(a[::2], sn.array([1.0, 0.0], "e4m3fn")) and not np.array_equal(a, a)
    assert np.array_equal(a, a.copy(), equal_nan=True) and not np.array_equal(a, a[:2]) and not np.array_equal(a, [1])
    np.testing.assert_array_equal(a, a.astype("binary16"))
    np.testing.assert_array_equal(a, [1.0, NAN, 0.0])
    np.testing.assert_allclose(a, np.asarray(a))
    with pytest.raises(AssertionError, match="not equal"):
        np.testing.assert_array_equal(a, -a)


def test_the_table_s_functions_are_all_called_here():
    from pathlib import Path

    text = Path(__file__).read_text() + Path(__file__).with_name("test_numpy_habits.py").read_text()
    text += "".join(Path(__file__).with_name(f"test_{name}.py").read_text() for name in ("numpy_sums", "duck_arrays"))
    for function in FUNCTIONS:
        assert f"np.{function.__name__}" in text, function.__name__


# -- text ------------------------------------------------------------------------------------------------------------
def test_text_is_numpy_s_where_binary64_holds_the_values():
    for shape in ((), (0,), (7,), (3, 4), (2000,), (40, 50), (3, 2, 1, 500), (1001, 2)):
        a = sn.Array(np.resize(some_codes("binary16"), shape), "binary16")
        text = np.array2string(np.asarray(a), separator=", ", prefix="Array(")
        assert repr(a) == str(a) == f"Array({text}, binary16)"
    with np.printoptions(precision=3, threshold=5, edgeitems=1, linewidth=40):
        a = some_array("binary16")
        assert repr(a) == f"Array({np.array2string(np.asarray(a), separator=', ', prefix='Array(')}, binary16)"


def test_text_beyond_binary64_is_exact():
    a = sn.array(["0x1.8p-12000", "-0x1.23p500", "inf", "nan", "-0", "0", "1"], "e15m48")
    assert repr(a) == (
        "Array([0x1.8p-12000, -0x1.23p+500,          inf,          nan,\n"
        "                 -0,            0,       0x1p+0], e15m48)"
    )
    assert repr(a[0]) == "Array(0x1.8p-12000, e15m48)"
    for fmt in ("e15m48", "q1.63", "uq60.4", "binary16p1se"):
        b = some_array(fmt, n=40)
        texts = [texts_of(b.codes, b.format)[int(code)].strip() for code in b.codes]
        if any("0x" in t for t in texts):
            assert np.array_equal(sn.encode(texts, fmt), np.where(np.isnan(b), sn.encode("nan", fmt), b.codes)
                                  if b.format.has_nan else b.codes)  # fmt: skip
    long = sn.Array(np.resize(some_codes("e15m48"), (3, 1000)), "e15m48")
    assert repr(long).count("...") == 3 and len(repr(long)) < 2000 and "0x1." in repr(long)
