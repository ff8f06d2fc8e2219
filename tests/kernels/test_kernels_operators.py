"""Tile operators on CUDA arrays: the bits of the CPU, forward and backward, or its errors."""

import numpy as np
import pytest

import softnum as sn
from softnum.kernels import launches
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.strides import transposed
from softnum.runtime.gateway import NoKernel, is_device_array

pytest.importorskip("lark")

SUM = sn.MadUnit("e6m9", operand="e6m9")
RANDOM = sn.MadUnit("e6m9", operand="e6m9", product="e6m9", rounding="stochastic", stochastic_bits=12)
PLAIN = {"fmt": "e6m9", "unit": SUM}
STOCHASTIC = {"fmt": "e6m9", "unit": RANDOM, "rounding": "stochastic", "stochastic_bits": 9, "key": (5, 2**40)}

CONV = """function (X[N, C, H, W], F[O, C, P, Q]) -> (Y) {
    Y[n, o, y, x: N, O, (H + 1) / 2, (W + 1) / 2] = +(X[n, c, 2 * y + p - 1, 2 * x + q - 1] * F[o, c, p, q]);
}"""
POOL = """function (X[N, C, H, W]) -> (Y) {
    Y[n, c, y, x: N, C, H / 2, W / 2] = >(X[n, c, 2 * y + p, 2 * x + q]), p < 2, q < 2;
}"""
SOFTMAX = """function (X[N, M]) -> (Y) {
    L[i: N] = >(X[i, j]);
    E[i, j: N, M] = =(exp(X[i, j] - L[i]));
    S[i: N] = +(E[i, j]);
    Y[i, j: N, M] = =(E[i, j] / S[i]);
}"""
BRANCHES = """function (X, B) -> (Y, Z) {
    T = X * X + B;
    if (T > 1 && !(X < 0.25)) { Y = sqrt(T); Z = floor(T); }
    else if (X == 0) { Y = -T; Z = X / 3; }
    else { Y = T * 2 - fma(X, X, 1); Z = max(T, abs(X)); }
    Y = Y < Z ? round(Y) : Z;
}"""
LOOKUP = "function (T[V, D], I[N]) -> (Y) { R = gather(T, I); Y = R * R; }"

#: name -> (source, shapes of the inputs, options, options of the gradient)
CASES = {
    "matmul": (
        "function (A[M, K], B[N, K]) -> (C) { C[j, i: N, M] = +(A[i, k] * B[j, k]); }", [(3, 5), (4, 5)],
        PLAIN, STOCHASTIC,
    ),
    "batches": (
        "function (A[B, M, K], W[K, N]) -> (C) { C[b, j, i: B, N, M] = +(A[b, i, k] * W[k, j]); }",
        [(2, 3, 5), (5, 2)], STOCHASTIC, PLAIN,
    ),
    "conv": (CONV, [(1, 2, 4, 3), (2, 2, 3, 3)], STOCHASTIC, PLAIN),
    "pool": (POOL, [(1, 2, 4, 5)], PLAIN, STOCHASTIC),
    "softmax": (SOFTMAX, [(2, 4)], PLAIN, PLAIN),
    "branches": (BRANCHES, [(3, 4), (4,)], STOCHASTIC, PLAIN),
    "products": ("function (X[N, M]) -> (Y) { Y[i: N] = *(X[i, j - 1]); }", [(3, 5)], STOCHASTIC, None),
    "bodies": (
        "function (X[N, M], Z[M]) -> (Y) { Y[i: N] = +((X[i, j] > Z[j] ? X[i, j] : 2 * Z[j]) * (X[i, j] - 1)); }",
        [(3, 5), (5,)], STOCHASTIC, None,
    ),
    "smallest, placed": (
        "function (X[N, M]) -> (Y) { T[i: N] = <(X[i, j]); Y[2 * i + 1: 2 * N + 1] = =(T[i]); }", [(3, 4)],
        PLAIN, PLAIN,
    ),
    "one element": ("function (A[M]) -> (C) { C[] = +(A[i] * A[i]); }", [(7,)], PLAIN, STOCHASTIC),
}  # fmt: skip


def values(shape, seed, fmt="e6m9"):
    return sn.quantize(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), fmt)


def on_device(x):
    return _cuda.cuda.to_device(np.array(x, order="C"))


def bits(x):
    x = x.codes if isinstance(x, sn.Array) else x
    x = np.array(x.copy_to_host() if is_device_array(x) else x, order="C")
    return x.view(f"u{x.itemsize}")


def same(got, want):
    """The same bits, of arrays on the device."""
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
        return
    if want is None:
        assert got is None
        return
    assert is_device_array(got) and type(got) is not np.ndarray
    one, other = bits(got), bits(want)
    assert one.dtype == other.dtype and one.shape == other.shape
    wrong = np.argwhere(one != other)
    assert not len(wrong), [(tuple(i), one[tuple(i)], other[tuple(i)]) for i in wrong[:5]]


def check(text, inputs, options, backward=None):
    op, before = sn.operator(text), launches()
    given = [on_device(x) for x in inputs]
    got, want = op(*given, **options), op(*inputs, **options)
    same(got, want)
    assert launches() > before
    if backward is None:
        return
    outputs, outputs_there = (x if isinstance(x, tuple) else (x,) for x in (want, got))
    gradients = [values(y.shape, 9 + i).astype(y.dtype) for i, y in enumerate(outputs)]
    found = op.backward(given, outputs_there, [on_device(g) for g in gradients], **backward)
    same(found, op.backward(inputs, outputs, gradients, **backward))


@pytest.mark.parametrize("name", CASES)
def test_operators(device, name):
    text, shapes, options, backward = CASES[name]
    check(text, [values(shape, i) for i, shape in enumerate(shapes)], options, backward)


def test_tables(device):
    """Rows of a table by places that are computed, and their gradients added in the order of the places."""
    check(LOOKUP, [values((5, 3), 1), np.float32([4, 0, 2, 0])], PLAIN, PLAIN)


EVERYWHERE = "function (X[N, M]) -> (Y, L) { Y = X > -X ? X / 3 - 1 : -abs(X); L[i: N] = >(Y[i, j]); }"


@pytest.mark.parametrize("fmt", ["e4m3fnuz", "binary8p4se", "q4.4", "e2m1fn", "dlfloat16", "binary64"])
def test_formats(device, fmt):
    """NaNs, infinities, zeros of either sign and subnormals, as far as a format has them."""
    x = np.float64([[1, np.nan, -np.inf, 2**-9], [-0.0, 0.0, 3, -(2.0**-14)]])
    fmt = sn.format(fmt)
    x = sn.quantize(x if fmt.has_nan else np.nan_to_num(x, neginf=-1), fmt)
    x = sn.array(x, fmt)
    want = sn.operator(EVERYWHERE)(x)
    same(sn.operator(EVERYWHERE)(sn.Array(on_device(x.codes), fmt)), want)
    assert all(y.format == fmt for y in want)


def test_what_lies_in_memory_in_another_order(device):
    """Strided inputs, numbers, nothing at all."""
    x = values((6, 8), 3)
    text = "function (A[M, K], B) -> (C) { T = A * B; C[i, j: M, M] = +(T[i, k] * A[j, k]); }"
    op, there = sn.operator(text), on_device(x)
    same(op(there[::2, 1::2], 2, **PLAIN), op(x[::2, 1::2], 2, **PLAIN))
    same(op(transposed(there, (1, 0)), 0.5, **PLAIN), op(x.T, 0.5, **PLAIN))
    for shape in ((0, 3), (2, 0)):
        nothing = np.zeros(shape, np.float32)
        same(op(on_device(nothing), 1, **PLAIN), op(nothing, 1, **PLAIN))


def test_kept_kernels_take_other_keys_and_arrays(device):
    op = sn.operator(BRANCHES)
    for key in (1, 2):
        x = [values((3, 4), key), values((4,), key)]
        options = STOCHASTIC | {"key": key}
        same(op(*map(on_device, x), **options), op(*x, **options))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("function (X[N]) -> (Y) { Y[i: N] = >(X[i + 2]); }", {}),
        ("function (X[N]) -> (Y) { Y[i: N] = =(X[j]); }", {}),
        ("function (X) -> (Y) { T = X - 2; Y = sqrt(T); }", {"fmt": {"*": "e6m9", "Y": "e2m1fn"}}),
        ("function (X) -> (Y) { T = X + 1; Y = T * 1e30; }", {}),
        ("function (X, T) -> (Y) { Y = gather(T, X); }", {}),
        ("function (X) -> (Y) { Y = X * X; }", {"rounding": "stochastic"}),
        ("function (X[N]) -> (Y) { Y[i: N] = +(X[i]); }", {"unit": None}),
        ("function (X[N]) -> (Y) { Y[i: N] = +(X[i] * X[i]); }", {"unit": sn.MadUnit("e6m9", operand="e2m1fn")}),
    ],
)
def test_errors(device, text, options):
    """They are the CPU's, with the same place and the same element."""
    x, op = np.float32([1, 2, 1.5, -3.25]), sn.operator(text)
    inputs = [x] * len(op.inputs)
    with pytest.raises(ValueError) as want:
        op(*inputs, **PLAIN | options)
    with pytest.raises(type(want.value)) as got:
        op(*map(on_device, inputs), **PLAIN | options)
    told = [str(error.value).replace("Array of ", "").partition(" (nearest")[0] for error in (got, want)]
    assert told[0].startswith(told[1].partition("; round it")[0])


def test_custom_formats(device):
    """By tables, in which the code of 0 is another than 0."""
    table = sn.CustomFormat.from_table([-1, -0.5, 0, 0.25, 0.5, 1, np.nan, 2])
    text = """function (X[N, M], F[Q]) -> (Y, Z, L) {
        Y = X > -0.5 ? X * X + 0.25 : max(-X, X / 2);
        Z[i, j: N, M] = +(X[i, j + q - 1] * F[q]);
        L[i: N] = <(X[i, j + 1]);
    }"""
    inputs = values((3, 4), 1, table), values((3,), 2, table)
    for unit in (sn.MadUnit(table, operand=table), sn.MadUnit("e6m9", operand=table)):
        check(text, inputs, {"fmt": {"*": table, "Z": unit.result}, "unit": unit})


def test_what_has_no_kernel(device):
    table = sn.CustomFormat.from_table([-1, 0, 1, 2])
    op, x = sn.operator("function (X) -> (Y) { T = X * X;\n Y = fma(T, T, 1); }"), on_device(np.ones(3, np.float32))
    with pytest.raises(NoKernel, match=r"(?s)line 2, column 6: Y: no CUDA kernel .*copy the CUDA arrays to the host"):
        op(x, fmt={"*": "e6m9", "Y": table})
    with pytest.raises(NoKernel, match="first_nan takes no CUDA arrays"):
        op.first_nan(x, fmt="e6m9")
    with pytest.raises(ValueError, match="threads=2 is for arrays of the host"):
        op(x, fmt="e6m9", threads=2)
    both = sn.operator("function (X, Z) -> (Y) { Y = X * Z; }")
    with pytest.raises(TypeError, match="lies on the host and"):
        both(x, np.ones(3, np.float32), fmt="e6m9")
    with pytest.raises(TypeError, match="Z lies on the host"):
        both(x, [1.0, 2.0, 3.0], fmt="e6m9")
    with pytest.raises(TypeError, match="sequence of 1"):
        op.backward(x, [x], [x], fmt="e6m9")


@pytest.mark.slow
def test_several_functions(device):
    """By the definition, where results are random or the format has no table; in one kernel, and in a sum's body."""
    text = "function (X[N]) -> (Y, S) { Y = gelu(X) + tanh(X) * exp(-X); S[] = +(sin(X[i]) * sigmoid(Y[i])); }"
    x = np.float32([0.5, -1.25, 3, -0.0, 0])
    check(text, [x], STOCHASTIC, STOCHASTIC)
    check(text, [x], {"fmt": "binary32", "unit": sn.MadUnit("binary32", operand="binary32")})


@pytest.mark.gpu
@pytest.mark.parametrize("options", [PLAIN, STOCHASTIC], ids=["nearest", "stochastic"])
def test_real_sizes(options):
    assert not _cuda.SIMULATOR
    check(CONV, [values((4, 16, 33, 31), 1), values((24, 16, 3, 3), 2)], options, PLAIN)
    check(POOL, [values((8, 16, 64, 62), 3)], options, options)
    check(SOFTMAX, [values((300, 500), 4)], options, PLAIN)
    check(BRANCHES, [values((1000, 777), 5), values((777,), 6)], options, options)
    check("function (X) -> (Y) { Y = tanh(X) + exp(-X); }", [values((100, 77), 8)], options, options)
    check(LOOKUP, [values((1000, 64), 7), np.float32(np.arange(5000) * 7 % 1000)], PLAIN, PLAIN)
