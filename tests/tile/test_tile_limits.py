"""What is too large or of the wrong shape is refused, and what the errors say."""

import numpy as np
import pytest

import softnum as sn
from tests.support.tile_checks import WIDE


# -- what is too large -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "Y[i: 3] = +(X[i + 9223372036854775807 * k]), k < 3;",
            "takes numbers of 2**62 and more (with the number 9223",
        ),
        ("Y[i: N] = =(X[i]), 4611686018427387904 * i < 1;", "takes numbers of 2**62 and more (with the number 4611"),
        ("Y[i: N] = =(X[i]), 1152921504606846976 * i < 1;", "takes numbers of 2**62 and more (with the number 1152"),
        ("Y[i: N] = =(X[i]), i - 99999999999999999999 < 1;", "takes numbers of 2**62 and more (with the number 9999"),
        ("Y[i: 99999999999999999999] = =(X[i]);", "dimension 0 of Y goes to 99999999999999999999"),
        ("Y[i: N] = +(X[i]), k < 99999999999999999999;", "the index variable 'k' of Y goes to 99999999999999999999"),
    ],
)
def test_index_arithmetic_beyond_64_bits_is_refused(statement, message):
    op = sn.operator(f"function (X[N]) -> (Y) {{ {statement} }}")
    with pytest.raises(sn.tile.TileError) as raised:
        op(np.arange(1.0, 6.0), **WIDE)
    assert message in str(raised.value)


def test_large_numbers_within_64_bits_are_exact():
    text = "function (X[N]) -> (Y) { Y[i: N] = =(X[i]), 576460752303423488 * i < 576460752303423489; }"  # i < 2
    assert sn.operator(text)(np.arange(1.0, 6.0), **WIDE).tolist() == [1, 2, 0, 0, 0]
    text = "function (X[N]) -> (Y) { Y[i: N] = =(X[i]), i < 99999999999999999999; }"
    assert sn.operator(text)(np.arange(1.0, 6.0), **WIDE).tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("error", "message"), [
    (MemoryError("Unable to allocate 7 TiB"), r"Y, of shape \(5, 2\), takes more memory than there is: Unable"),
    (OverflowError("too large"), r"Y, of shape \(5, 2\), has numbers beyond 64 bits: too large"),
])  # fmt: skip
def test_running_out_of_memory_is_an_error_with_its_place(monkeypatch, error, message):
    def fails(*args, **options):
        raise error

    monkeypatch.setattr("softnum.tile.evaluate.contract", fails)
    op = sn.operator("function (X[N]) -> (Y) { Y[i, j: N, 2] = +(X[i]); }")
    with pytest.raises(sn.tile.TileError, match=message):
        op(np.ones(5), **WIDE)


# -- scatter -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(4, 1), (5, 1), (2,), (4,), (1, 2, 2), (2, 1)])
def test_what_is_scattered_has_the_shape_of_its_places(shape):
    op = sn.operator("function (E, I, T) -> (Y) { Y = scatter(E, I, T); }")
    message = f"E has shape {shape}, and for the places I of shape (2,) in T of shape (3, 2) it must have (2, 2)"
    with pytest.raises(sn.tile.TileError) as raised:
        op(np.ones(shape), np.array([0.0, 1.0]), np.ones((3, 2)), **WIDE)
    assert message in str(raised.value)
    with pytest.raises(sn.tile.TileError, match="T is a single number, not a table"):
        op(np.ones(2), np.array([0.0, 1.0]), np.array(1.0), **WIDE)


# -- messages ----------------------------------------------------------------------------------------------------------
def test_errors_name_a_tensor_once():
    op = sn.operator("function (X) -> (Y) { Z = X * X; Y = Z + 1; }")
    with pytest.raises(sn.tile.TileError, match="column 29: Z: no format is stated for Z; give fmt="):
        op(np.ones(3), fmt={"X": "binary64"})
    product = sn.operator("function (A[M, K], B[K, N]) -> (C) { C[i, j: M, N] = +(A[i, k] * B[k, j]); }")
    with pytest.raises(sn.tile.TileError, match=r"column \d+: C: A\[0, 0\] = "):
        product(sn.array([[1.01]], "binary64"), sn.array([[1.0]], "binary64"), unit=sn.MadUnit("e6m3", operand="e5m2"))


def test_a_constant_below_the_lowest_value_is_told_that_value():
    op = sn.operator("function (X) -> (Y) { Y = X; if (X > 1) { Y = 0; } }")
    with pytest.raises(sn.tile.TileError, match="Y: the constant 0 lies beyond e8m0fnu, which begins at 5.87747e-39"):
        op(sn.array([1.0, 2.0], "e8m0fnu"))


def test_a_key_is_looked_at_only_where_something_is_random():
    """As in softnum.add."""
    op, x = sn.operator("function (X) -> (Y) { Z = X * X; Y = Z + 1; }"), sn.array([1.0, 1.5], "e5m2")
    for key in (None, 7, "none", -1):
        assert np.array_equal(op(x, key=key).codes, op(x).codes)
        assert np.array_equal(sn.add(x, x, key=key).codes, sn.add(x, x).codes)
    for options in ({"rounding": {"Z": "stochastic"}}, {"rounding": "stochastic_floor", "fmt": {"Y": "q4.1"}}):
        with pytest.raises(sn.tile.TileError, match="key must be a seed or .seed, stream., .* got 'none'"):
            op(x, key="none", **options)
    noisy = sn.MadUnit("e5m2", operand="e5m2", rounding="stochastic")
    with pytest.raises(sn.tile.TileError, match="key must be a seed or"):
        sn.operator("function (X[N]) -> (Y) { Z = X; Y[] = +(Z[i]); }")(x, unit=noisy, key=-1)


def test_unknown_options_are_named():
    op, x = sn.operator("function (X) -> (Y) { Y = X * X; }"), sn.array([1.0, 1.5], "e5m2")
    message = "tile takes no out=; results are new arrays, and the options are fmt, unit, rounding, overflow, "
    with pytest.raises(TypeError, match=message):
        op(x, out=np.empty(2))
    with pytest.raises(TypeError, match="gradient of tile takes no out="):
        op.backward([x], [x], [x], out=np.empty(2))
