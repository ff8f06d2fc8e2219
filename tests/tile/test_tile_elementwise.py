"""Elementwise operations, each exact and rounded once to its tensor's format; branches, tables, options."""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum.ops import OPERATIONS
from softnum.tile.arithmetic import key_of
from softnum.tile.functions import FUNCTIONS, WHOLE
from tests.support.cases import cases
from tests.support.tile_checks import small

POSITIVE = np.float32([0.25, 0.5, 0.75, 1.0])
DEFINED = {"acosh": [1.0, 1.5, 2.0, 3.0], "atanh": [0.25, 0.5, 0.75, 0.0], "tanpi": [0.25, 0.75, 1.0, 1.25]}
INTEGERS = ("compound", "pown", "rootn")  # their second operand
BINARY = {"+": sn.add, "-": sn.subtract, "*": sn.multiply, "/": sn.divide}
TO_INTEGRAL = {"floor": "down", "ceil": "up", "trunc": "toward_zero", "round": "nearest_even"}
FORMATS = ["e5m2", "e4m3fn", "q4.4", "binary32"]


def tile(text):
    return sn.operator(f"function (X) -> (Y) {{ {text} }}")


def pair(text):
    return sn.operator(f"function (X, Z) -> (Y) {{ {text} }}")


@cases("fmt", FORMATS)
@cases("name", [n for n, f in FUNCTIONS.items() if n not in WHOLE])
def test_functions_are_softnums(name, fmt):
    function = FUNCTIONS[name]
    values = [DEFINED.get(name, np.roll(POSITIVE, n)) for n in range(function.operands)]
    values = [
        v if rule or name not in INTEGERS else [1.0, 2.0, 3.0, 1.0]
        for v, rule in zip(values, function.rules, strict=True)
    ]
    operands = [sn.array(v, fmt) for v in values]
    names = "ABC"[: function.operands]
    op = sn.operator(f"function ({', '.join(names)}) -> (Y) {{ Y = {name}({', '.join(names)}); }}")
    if name in TO_INTEGRAL:
        want = sn.ops.round_to_integral(*operands, rounding=TO_INTEGRAL[name])
    else:
        want = OPERATIONS[function.operation][0](*operands)
    assert np.array_equal(op(*operands).codes, want.codes)
    assert op.is_elementwise
    if name in TO_INTEGRAL or name in ("abs",):
        return
    wide = OPERATIONS[function.operation][0](*operands, out_fmt="e4m3")
    assert np.array_equal(op(*operands, fmt={"Y": "e4m3"}).codes, wide.codes)


@cases("rounding", ["nearest_even", "up", "toward_zero", "to_odd"])
@cases("sign", BINARY)
def test_operators_round_once_in_any_mode_and_format(sign, rounding):
    a, b = sn.array(small((50,), 1), "e5m2"), sn.array(small((50,), 2), "e4m3")
    op = pair(f"Y = X {sign} Z;")
    for out in ("e3m4", "e2m3fn", "binary32"):
        if out == "e2m3fn" and sign == "/":
            continue
        want = BINARY[sign](a, b, out_fmt=out, rounding=rounding)
        assert np.array_equal(op(a, b, fmt={"Y": out}, rounding=rounding).codes, want.codes)


def test_signs_in_another_format_round_once():
    a = sn.array([-8.0, -0.0, 0.0, 1.5625, -1.5625], "q4.4")
    for rounding in ("up", "down", "nearest_even"):
        got = tile("Y = -X;")(a, fmt={"Y": "e4m1"}, rounding=rounding)
        want = sn.encode([Fraction(-v) for v in np.asarray(a)], "e4m1", rounding=rounding)
        assert np.array_equal(np.asarray(got), sn.decode(want, "e4m1"))
        got = tile("Y = abs(X);")(a, fmt={"Y": "e4m1"}, rounding=rounding)
        want = sn.encode([Fraction(abs(v)) for v in np.asarray(a)], "e4m1", rounding=rounding)
        assert np.array_equal(np.asarray(got), sn.decode(want, "e4m1"))
    assert tile("Y = -X;")(a).tolist()[0] == 7.9375  # in fixed point itself, as softnum.negate
    zeros = sn.array([0.0, -0.0], "e5m2")
    assert np.signbit(np.asarray(tile("Y = -X;")(zeros, fmt={"Y": "binary16"}))).tolist() == [True, False]
    assert np.signbit(np.asarray(tile("Y = abs(X);")(zeros, fmt={"Y": "binary16"}))).tolist() == [False, False]


def test_steps_round_one_by_one():
    x = sn.array(small((200,), 3), "e5m2")
    got = tile("Y = X * X - X / 3 + exp(X);")(x)
    third = sn.array(3.0, "e5m2")
    want = sn.add(sn.subtract(sn.multiply(x, x), sn.divide(x, third)), sn.exp(x))
    assert np.array_equal(got.codes, want.codes)
    parts = tile("P = X * X; Q = P - X; Y = Q + 1;")
    p = sn.multiply(x, x, out_fmt="e6m9")
    q = sn.subtract(p, x, out_fmt="q8.8")
    want = sn.add(q, sn.array(1.0, "q8.8"), out_fmt="e5m2")
    assert np.array_equal(parts(x, fmt={"P": "e6m9", "Q": "q8.8"}).codes, want.codes)
    declared = tile('format P: "e6m9"; format Q: "q8.8"; P = X * X; Q = P - X; Y = Q + 1;')
    assert np.array_equal(declared(x).codes, want.codes)
    other = declared(x, fmt={"P": "e5m2"})  # the caller's word goes first
    assert np.array_equal(other.codes, parts(x, fmt={"P": "e5m2", "Q": "q8.8"}).codes)


def test_a_copy_rounds_to_its_tensor():
    x = sn.array(small((20,), 3), "e6m9")
    assert np.array_equal(tile("Y = X;")(x, fmt={"Y": "e3m2fn"}).codes, x.astype("e3m2fn").codes)
    assert tile("Y = X;")(x).format == x.format


# -- constants ---------------------------------------------------------------------------------------------------------
def test_constants_are_computed_exactly_and_rounded_once():
    x = sn.array(np.ones((2, 3)), "e5m2")
    op = sn.operator("function (X[M, N]) -> (Y) { Y = X * (1 / 3 * M * N - 0.1); }")
    assert op(x).tolist()[0][0] == float(sn.decode(sn.encode(Fraction(19, 10), "e5m2"), "e5m2"))
    sizes = sn.operator("function (X[M, N]) -> (Y) { Y = X / (M * N); }")  # 1 / 6, not 1 / 2 / 3
    assert np.array_equal(sizes(x).codes, sn.divide(x, sn.array(6.0, "e5m2")).codes)
    once = tile("Y = X * 0.1000000000000000055511151231257827021181583404541015625001;")  # just above 0.1 in binary64
    want = sn.encode(np.array(0.1), "binary64") + 1
    assert once(sn.array(1.0, "binary64"), rounding="up").codes in (want, want - 1)
    assert tile("Y = X - -2;")(sn.array(1.0, "e5m2")).item() == 3
    with pytest.raises(sn.tile.TileError, match="the constant 100 lies beyond q4.4, which ends at 7.9375"):
        tile("Y = X * 100;")(sn.array(1.0, "q4.4"))
    with pytest.raises(sn.tile.TileError, match="the constant -1 lies beyond uq4.4, which begins at 0"):
        tile("Y = X * -1;")(sn.array(1.0, "uq4.4"))
    with pytest.raises(sn.tile.TileError, match="division by zero among constants"):
        tile("Y = X * (1 / (2 - 2));")(sn.array(1.0, "e5m2"))


def test_constants_beyond_binary64():
    wide = sn.array(1.0, "e15m48")
    assert tile("Y = X * 1e400;")(wide).codes == sn.encode(Fraction(10) ** 400, "e15m48")
    with pytest.raises(sn.tile.TileError, match="the constant 1e400 or more lies beyond e5m2"):
        tile("Y = X * 1e400;")(sn.array(1.0, "e5m2"))
    with pytest.raises(sn.tile.TileError, match="1e400 or more is compared, and lies beyond binary64"):
        tile("Y = X > 1e400 ? 1 : 0;")(wide)


def test_comparisons_are_exact():
    """No operand is rounded: 0.3 lies between two values of e5m2."""
    x = sn.array([0.25, 0.3125, np.nan, -np.inf], "e5m2")
    assert tile("Y = X < 0.3 ? 1 : 0;")(x).tolist() == [1, 0, 0, 1]
    assert tile("Y = X >= 0.3 ? 1 : 0;")(x).tolist() == [0, 1, 0, 0]
    assert tile("Y = X == 0.3125 ? 1 : 0;")(x).tolist() == [0, 1, 0, 0]
    assert tile("Y = X != X ? 1 : 0;")(x).tolist() == [0, 0, 1, 0]
    assert tile("Y = 0.3 > X || !(X == X) ? 1 : 0;")(x).tolist() == [1, 0, 1, 1]
    z = sn.array([0.28125, 0.28125, 0, 0], "e6m9")
    assert pair("Y = X < Z ? 1 : 0;")(x, z, fmt={"Y": "e5m2"}).tolist() == [1, 0, 0, 1]
    assert tile("Y = X > 1000 ? 1 : 0;")(sn.array([7.5], "q4.4")).tolist() == [0]


# -- branches ----------------------------------------------------------------------------------------------------------
def test_only_the_branch_taken_is_computed():
    """Fixed point has no code for 1 / 0 or log(-1), so that computing them would be an error."""
    x = sn.array([-1.0, 0.0, 0.5, 2.0], "q4.4")
    assert tile("Y = X == 0 ? 7 : 1 / X;")(x).tolist() == [-1, 7, 2, 0.5]
    op = tile("if (X > 0) { if (X > 1) { Y = log2(X); } else { Y = 1 / X; } } else { Y = X; }")
    assert op(x).tolist() == [-1, 0, 2, 1]
    with pytest.raises(sn.tile.TileError, match="line 1, column 29: Y: divide: the result is NaN or infinite"):
        tile("Y = 1 / X;")(x)


def test_switch_takes_the_first_range_that_holds():
    op = tile("""switch (X) {
        case -2: Y = 1;
        case .. -1: Y = 2;
        case -1 .. 1: { T = 2 * X; Y = T; }
        case 0 .. 3: Y = 4;
        case 3 ..: Y = 5;
        default: Y = 6;
    }""")
    x = np.array([-3, -2, -1.5, -1, 0, 0.75, 1, 2, 3, np.inf, -np.inf, np.nan])
    assert op(x, fmt="binary32").tolist() == [2, 1, 2, -2, 0, 1.5, 4, 4, 5, 5, 2, 6]


def test_a_switch_without_default_leaves_the_value():
    op = tile("Y = 9; switch (X) { case 0 .. 1: Y = 1; case 1 .. 2: Y = X * Y; }")
    assert op([-1, 0.5, 1.5, 3.0], fmt="binary32").tolist() == [9, 1, 13.5, 9]


def test_if_without_else_and_conditions_by_name():
    op = tile("Small = abs(X) < 1; S = X; if (Small) { S = 2 * S; P = S * S; } if (!Small) { S = 0; } "
              "if (Small) { S = S + P; } Y = S;")  # fmt: skip
    assert op([0.5, -0.25, 3.0], fmt="binary32").tolist() == [2, -0.25, 0]


def test_branches_of_different_shapes():
    op = pair("Y = X > 0 ? Z * 2 : X;")
    x, z = np.float32([[1], [-1]]), np.float32([1, 2, 3])
    assert op(x, z, fmt="e5m2").tolist() == [[2, 4, 6], [-1, -1, -1]]
    assert op(x, 4.0, fmt="e5m2").tolist() == [[8], [-1]]
    assert op(2.0, z, fmt="e5m2").tolist() == [2, 4, 6]
    nested = pair("if (X > 0) { if (Z > 1) { Y = Z; } else { Y = X; } } else { Y = 0; }")
    assert nested(x, z, fmt="e5m2").tolist() == [[1, 2, 3], [0, 0, 0]]


def test_a_branch_in_another_format_rounds_where_it_is_taken():
    x = sn.array([300.0, 1.0625], "e6m9")
    op = tile("Y = X > 8 ? 1 : X;")
    assert op(x, fmt={"Y": "q4.4"}).tolist() == [1, 1.0625]


# -- tables ------------------------------------------------------------------------------------------------------------
def test_gather():
    table = sn.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], "e5m2")
    op = sn.operator("function (T[R, N], I) -> (O) { O = gather(T, I); }")
    places = sn.array([2.0, 0.0, 2.0], "q4.4")
    assert op(table, places, fmt={"O": "e5m2"}).tolist() == [[4, 5], [0, 1], [4, 5]]
    assert op(table, places[0], fmt={"O": "e5m2"}).tolist() == [4, 5]
    assert not op.is_elementwise
    for bad, shown in ((3.0, "3"), (-1.0, "-1"), (0.5, "0.5")):
        with pytest.raises(sn.tile.TileError, match=rf"I\[1\] = {shown} is no place in a table of 3"):
            op(table, sn.array([0.0, bad], "q4.4"), fmt={"O": "e5m2"})
    with pytest.raises(sn.tile.TileError, match=r"I\[0\] = nan is no place"):
        op(table, sn.array([np.nan], "e5m2"))
    listed = tile("T = [0.5, 0.1, -2]; Y = gather(T, X);")
    assert listed.is_elementwise
    assert listed(sn.array([1.0, 2.0], "e5m2")).tolist() == [float(sn.quantize(0.1, "e5m2")), -2]
    with pytest.raises(sn.tile.TileError, match="T is a single number, not a table"):
        op2 = sn.operator("function (T, I) -> (O) { O = gather(T, I); }")
        op2(1.0, np.zeros(2), fmt="e5m2")


def test_scatter_adds_in_order():
    op = sn.operator("function (E, I, T) -> (S) { S = scatter(E, I, T); }")
    unit = sn.MadUnit("e5m2", operand="e5m2")
    e = np.float32([1, 0.25, 8, 4, 0.25, 0.125])
    i, t = np.float32([1, 0, 3, 1, 0, 0]), np.zeros(4, np.float32)
    got = op(e, i, t, fmt="e5m2", unit=unit)
    assert got.tolist() == [float(sn.sum(e[[1, 4, 5]], unit)), 5, 0, 8]
    rows = op(np.ones((3, 2), np.float32), np.float32([1, 1, 0]), np.zeros((2, 2), np.float32), fmt="e5m2", unit=unit)
    assert rows.tolist() == [[1, 1], [2, 2]]
    assert op(np.ones(0), np.ones(0), t, fmt="e5m2", unit=unit).tolist() == [0, 0, 0, 0]
    wide = sn.MadUnit("e6m9", operand="e5m2")
    total = op(e, i, t, fmt="e5m2", unit=wide)
    assert op.backward([e, i, t], [total], [t + 2], fmt="e5m2", unit=wide)[0].tolist() == [2] * 6


# -- calls -------------------------------------------------------------------------------------------------------------
def test_arrays_carriers_and_numbers():
    op = pair("Y = X + Z;")
    x = np.float32([1, 2])
    assert op(x, x, fmt="e5m2").dtype == np.float32
    assert op(x, x, fmt="binary64").dtype == np.float64
    assert isinstance(op(x, x, fmt="e15m48"), sn.Array)
    assert isinstance(op(sn.array(x, "e5m2"), 1.0), sn.Array)
    assert op(1, 2, fmt="e5m2") == 3 and op([1, 2], 1, fmt="e5m2").tolist() == [2, 3]
    both = sn.operator("function (X) -> (A, B) { A = X; B = 2 * X; }")(sn.array(x, "e5m2"))
    assert isinstance(both, tuple) and both[1].tolist() == [2, 4]
    exact = op(sn.array([1.0], "e15m48"), sn.array([2.0**-40], "e15m48"))
    assert exact.item() == 1 + 2.0**-40


@pytest.mark.parametrize("fmt", ["e5m2", "e8m0fnu", "e2m1fn", "q4.4", "bfloat16", "binary8p3se", "dlfloat16"])
def test_formats_of_all_kinds(fmt):
    x = sn.array([1.0, 2.0, 4.0], fmt)
    got = tile("Y = X > 2 ? X : X * X / 2;")(x)
    assert got.tolist() == [0.5, 2, 4] and got.format == x.format


def test_errors_of_a_call():
    op = sn.operator("function (A[M, N], B[N, 3]) -> (C) { C = A; }", name="my")
    a, b = np.ones((2, 4)), np.ones((4, 3))
    for inputs, error, message in [
        ((a,), TypeError, r"my takes 2 inputs \(A, B\), got 1"),
        ((a[0], b), ValueError, r"my: A\[M, N\] has 2 dimensions, got shape \(4,\)"),
        ((a, b[:3]), ValueError, "my: N is 4 in A and 3 in B"),
        ((a, b[:, :2]), ValueError, r"my: B has 3 in its sizes, got shape \(4, 2\)"),
        ((a + 0.1, b), ValueError, r"my: A\[0, 0\] = .*1.1.* is no value of e5m2"),
        ((sn.array(a, "e4m3"), b), ValueError, "A is an Array of e4m3, and its format is e5m2"),
        ((np.ones((2, 4), np.int32), b), TypeError, "my: A must be a float32 or float64 array or a softnum.Array"),
    ]:
        with pytest.raises(error, match=message):
            op(*inputs, fmt={"A": "e5m2", "*": "e5m2"})
    with pytest.raises(
        ValueError, match=r'no format is stated for A; give fmt=, one format or a dict with .A. or "\*"'
    ):
        op(a, b)
    with pytest.raises(ValueError, match="fmt names 'Q', which is no tensor of the operator"):
        op(a, b, fmt={"Q": "e5m2", "*": "e5m2"})
    with pytest.raises(TypeError, match="mxfp8_e4m3 is a block format"):
        op(a, b, fmt="mxfp8_e4m3")
    with pytest.raises(TypeError, match=r"the unit of '\*' must be one of softnum's"):
        op(a, b, fmt="e5m2", unit="e5m2")
    with pytest.raises(ValueError, match="rounding"):
        op(a, b, fmt="e5m2", rounding="sideways")
    total = sn.operator("function (A[N]) -> (S) { S[] = +(A[i]); }")
    with pytest.raises(ValueError, match="S is a sum: give unit="):
        total(np.ones(3), fmt="e5m2")
    with pytest.raises(ValueError, match="stochastic rounding needs key="):
        tile("Y = X * X;")(1.0, fmt="e5m2", rounding="stochastic")


def test_options_by_tensor():
    x = sn.array(small((30,), 1), "e6m9")
    op = tile("P = X * X; Y = P + X;")
    fmt = {"P": "e4m3", "Y": "e5m2"}
    got = op(x, fmt=fmt, rounding={"P": "up", "*": "down"}, overflow={"P": "saturate"})
    p = sn.multiply(x, x, out_fmt="e4m3", rounding="up", overflow="saturate")
    assert np.array_equal(got.codes, sn.add(p, x, out_fmt="e5m2", rounding="down").codes)


def test_random_words_are_numbered_by_steps_and_places():
    """The first step takes the caller's key; a branch takes the words of its elements' places in the whole."""
    x, options = sn.array(small((6, 5), 1), "e6m9"), {"rounding": "stochastic", "stochastic_bits": 9}
    got = tile("Y = X * X;")(x, key=(5, 7), **options)
    assert np.array_equal(got.codes, sn.multiply(x, x, key=(5, 7), **options).codes)
    two = tile("P = X * X; Y = P + X;")(x, key=(5, 7), **options)
    second = key_of((5, 7), 1)
    assert second != key_of((5, 7), 2) != key_of((5, 8), 2)
    assert np.array_equal(two.codes, sn.add(got, x, key=second, **options).codes)
    branch = tile("Y = X > 0 ? X * X : X;")(x, key=(5, 7), **options)
    square = sn.multiply(x, x, key=key_of((5, 7), 1), **options)
    assert np.array_equal(branch.codes, np.where(np.asarray(x) > 0, square.codes, x.codes))
    assert key_of(None, 3) is None
    with pytest.raises(ValueError, match="more than 65536 stochastic roundings"):
        key_of(1, 0, 1 << 16)


def test_custom_tables_are_formats():
    """As far as they have arithmetic of their own; to move, choose and compare values none is needed."""
    table = sn.CustomFormat.from_table([0.0, 1.0, 2.5, -1.0], name="four")
    x = sn.array([1.0, 2.5, -1.0, 0.0], table)
    assert tile("Y = X > 0 ? X : 0;")(x).tolist() == [1, 2.5, 0, 0]
    flipped = sn.operator("function (X[N]) -> (Y) { Y[i: N] = =(X[N - 1 - i]); }")
    assert flipped(x).tolist() == [0, -1, 2.5, 1]
    total = sn.operator("function (X[N], W[N]) -> (Y) { Y[] = +(X[i] * W[i]); }")
    unit = sn.MadUnit("binary32", operand=(table, "e5m2"))
    assert total(x, sn.array(np.ones(4), "e5m2"), unit=unit, fmt={"Y": "binary32"}).item() == 2.5


# -- where a NaN arises ------------------------------------------------------------------------------------------------
def test_the_first_nan_of_numbers_is_found():
    op = tile("T = X > 0 ? log(X) : X; U = T - T; Y = sqrt(U - 1) * 2;")
    x = sn.array([1.0, 4.0], "e5m2")
    assert str(op.first_nan(x)).startswith("tile, line 1, column 62: Y[0] is NaN where Y_1 is -1")
    assert op.first_nan(sn.array([np.nan], "e5m2")) is None  # it is not made here
    assert tile("Y = X > 0 ? log(X) : 0;").first_nan(sn.array([-1.0, 2.0], "e5m2")) is None  # not computed
    assert str(tile("Y = X - X;").first_nan(sn.array(np.inf, "e5m2"))).startswith(
        "tile, line 1, column 29: Y is NaN where X is inf\n"
    )
    total = sn.operator("function (X[N]) -> (Y) { Y[] = +(X[i]); }")
    unit = sn.MadUnit("e5m2", operand="e5m2")
    found = total.first_nan(sn.array([np.inf, -np.inf], "e5m2"), unit=unit)
    assert "Y is NaN\n" in str(found)
