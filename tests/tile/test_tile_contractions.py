"""Contractions: against loops over their index variables written out, term by term; what is recognised, bit for bit."""

import itertools

import numpy as np
import pytest

import softnum as sn
from softnum.tile import convolutions, loops
from softnum.tile.arithmetic import key_of
from tests.support.cases import cases
from tests.support.tile_checks import small

MAD = sn.MadUnit("e6m9", operand="e5m2")
CHUNKED = sn.MadUnit("e6m3", operand="e5m2", chunk=4)
NOISY = sn.MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12)
UNITS = [
    MAD,
    CHUNKED,
    NOISY,
    sn.MadUnit("e6m3", operand="e5m2", lanes=3, reduction="tree"),
    sn.MadUnit("e6m9", operand="e5m2", rounding="down"),
    sn.MadUnit("e6m9", operand=("e5m2", "e4m3")),
    sn.MadUnit("e15m48", operand="e5m2"),
    sn.ExactDotUnit("e6m3", operand="e5m2"),
    sn.unit("nvidia_h100_fp16"),
]
STEPS = [CHUNKED, sn.MadUnit("e6m3", operand="e5m2", lanes=2), sn.MadUnit("e6m3", operand="e5m2", rounding="up")]


def at(x, *index):
    """x there, 0 outside."""
    inside = all(0 <= i < n for i, n in zip(index, x.shape, strict=True))
    return x[index] if inside else x.dtype.type(0)


def nhwc(i, k, o):
    """Channels last: the order is that of the body, (ky, kx, c)."""
    n, y, x, f = o
    for ky, kx, c in np.ndindex(k.shape[:3]):
        yield at(i, n, y + ky, x + kx, c), k[ky, kx, c, f]


def turned(i, k, o):
    """The gradient of a convolution with stride 2 and padding 1, by its input."""
    (p,) = o
    for kk in range(k.shape[0]):
        y, rest = divmod(p + 1 - kk, 2)
        yield (at(i, y) if rest == 0 else i.dtype.type(0)), k[kk]


def grouped(i, k, o):
    n, g, f, x = o
    for c, kx in np.ndindex(k.shape[2:]):
        yield at(i, n, g, c, 3 * x + 2 * kx), k[g, f, c, kx]


def moved(i, k, o):
    """Index variables of both signs: a window that is centred."""
    (x,) = o
    for d in range(-2, 3):
        yield at(i, x - d), k[d + 2]


def banded(i, k, o):
    """A constraint zeroes the first factor where it is not met."""
    m, n = o
    for c in range(k.shape[0]):
        yield (i[m, c] if 0 <= m - c + 1 < 3 else i.dtype.type(0)), k[c, n]


def diagonal(i, k, o):
    n = o[0]
    for c in range(i.shape[1]):
        yield (i[n, c] if o[0] == o[1] else i.dtype.type(0)), k[c]


def spread(i, k, o):
    """Places that no valuation reaches are sums of zeros."""
    (p,) = o
    for c in range(i.shape[1]):
        yield (i[p // 2, c] if p % 2 == 0 else i.dtype.type(0)), k[c]


#: statement, the inputs' shapes, the output's, the terms of one output in order
PRODUCTS = [
    ("O[n, y, x, f: N0, N1 - K0 + 1, N2 - K1 + 1, K3] = +(I[n, y + ky, x + kx, c] * K[ky, kx, c, f])",
     (2, 4, 5, 2), (2, 3, 2, 3), (2, 3, 3, 3), nhwc),
    ("O[2 * y + k - 1: 2 * N0 + 1] = +(I[y] * K[k])", (4,), (3,), (9,), turned),
    ("O[n, g, f, x: N0, N1, K1, 3] = +(I[n, g, c, 3 * x + 2 * k] * K[g, f, c, k])",
     (2, 2, 3, 9), (2, 2, 3, 2), (2, 2, 2, 3), grouped),
    ("O[x: N0] = +(I[x - d] * K[d + 2])", (6,), (5,), (6,), moved),
    ("O[m, n: N0, K1] = +(I[m, c] * K[c, n]), m - c + 1 < 3", (5, 4), (4, 2), (5, 2), banded),
    ("O[n, n: N0, N0] = +(I[n, c] * K[c])", (3, 5), (5,), (3, 3), diagonal),
    ("O[2 * n: 2 * N0] = +(I[n, c] * K[c])", (3, 5), (5,), (6,), spread),
    ("O[b, i, j: N0, N1, K2] = +(I[b, i, k] * K[b, k, j])", (2, 3, 6), (2, 6, 4), (2, 3, 4),
     lambda i, k, o: [(i[o[0], o[1], c], k[o[0], c, o[2]]) for c in range(k.shape[1])]),
    ("O[j, i: K1, N0] = +(I[i, k] * K[k, j])", (3, 7), (7, 4), (4, 3),
     lambda i, k, o: [(i[o[1], c], k[c, o[0]]) for c in range(k.shape[0])]),
    ("O[] = +(I[i, j] * K[i, j])", (3, 5), (3, 5), (),
     lambda i, k, o: [(i[x], k[x]) for x in np.ndindex(i.shape)]),
    ("O[i: N0] = +(I[i, j] * K[k])", (2, 3), (4,), (2,),
     lambda i, k, o: [(i[o[0], j], k[c]) for j in range(3) for c in range(4)]),
    ("O[i, j: N0, 3] = +(I[i, k] * K[k])", (2, 4), (4,), (2, 3),
     lambda i, k, o: [(i[o[0], c], k[c]) for c in range(4)]),
    ("O[i: N0] = +(I[i, i] * K[i])", (3, 3), (3,), (3,), lambda i, k, o: [(i[o[0], o[0]], k[o[0]])]),
    ("O[x: N0] = +(I[x] * K[x - 1])", (4,), (4,), (4,), lambda i, k, o: [(i[o[0]], at(k, o[0] - 1))]),
]  # fmt: skip


def made(statement, *shapes, names="IK"):
    """The operator of one statement; sizes N0, N1, ... of I, K0, ... of K."""
    letters = {"I": "N", "K": "K"}
    inputs = ", ".join(
        f"{n}[{', '.join(f'{letters[n]}{i}' for i in range(len(s)))}]" for n, s in zip(names, shapes, strict=False)
    )
    return sn.operator(f"function ({inputs}) -> (O) {{ {statement}; }}")


@cases("unit", STEPS, ids=str)
@cases(("statement", "first", "second", "shape", "terms"), PRODUCTS, ids=[p[0] for p in PRODUCTS])
def test_products_by_loops(statement, first, second, shape, terms, unit):
    i, k = small(first, 1), small(second, 2)
    op = made(statement, first, second)
    found = op(i, k, fmt="e5m2", unit=unit)
    assert found.shape == shape and found.dtype == np.float32
    for o in np.ndindex(shape):
        a, b = np.array(list(terms(i, k, o)), np.float32).T
        assert found[o] == sn.dot(a, b, unit), (o, a, b)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_matmul_is_matmul(unit):
    """Bit for bit, the random words of the same key among them."""
    a, b = (sn.quantize(small(s, n), f) for n, (s, f) in enumerate(zip([(5, 9), (9, 70)], unit.operand, strict=True)))
    op = sn.operator("function (A[M, L], B[L, N]) -> (C) { C[i, j: M, N] = +(A[i, k] * B[k, j]); }")
    key = (3, 5) if unit.stochastic else None
    fmt = dict(zip("AB", unit.operand, strict=True))
    want = sn.matmul(a, b, unit, key=key)
    got = op(a, b, fmt=fmt, unit=unit, key=key)
    assert type(got) is type(want)
    if isinstance(want, sn.Array):
        want, got = want.codes, got.codes
    assert np.array_equal(want, got) and want.dtype == got.dtype
    batch = sn.operator(
        "function (A[T, M, L], B[T, L, N]) -> (C) { C[t, i, j: T, M, N] = +(A[t, i, k] * B[t, k, j]); }"
    )
    a, b = np.stack([a, -a]), np.stack([b, b[::-1]])
    want, got = sn.matmul(a, b, unit, key=key), batch(a, b, fmt=fmt, unit=unit, key=key)
    if isinstance(want, sn.Array):
        want, got = want.codes, got.codes
    assert np.array_equal(want, got)


CONVOLUTION = """function (I[N, C, H, W], K[F, C, KH, KW]) -> (O) {{
    O[n, f, y, x: N, F, (H + {2} - {4} * (KH - 1) - 1) / {0} + 1, (W + {3} - {5} * (KW - 1) - 1) / {1} + 1] =
        +(I[n, c, {0} * y + {4} * ky - {2} / 2, {1} * x + {5} * kx - {3} / 2] * K[f, c, ky, kx]);
}}"""
#: stride, twice the padding, dilation; image, kernel
CONVOLUTIONS = [
    ((1, 1, 0, 0, 1, 1), (2, 2, 4, 5), (3, 2, 3, 2)),
    ((2, 1, 2, 0, 1, 2), (1, 3, 5, 6), (2, 3, 2, 3)),
    ((2, 2, 2, 4, 1, 1), (2, 1, 6, 5), (2, 1, 3, 3)),
    ((1, 1, 0, 0, 1, 1), (2, 3, 4, 4), (2, 3, 1, 1)),
    ((3, 2, 0, 2, 1, 1), (1, 2, 7, 4), (1, 2, 2, 2)),
]


@pytest.mark.parametrize("unit", [u for u in UNITS if u.operand[0] == u.operand[1]], ids=str)
@pytest.mark.parametrize(("numbers", "image", "kernel"), CONVOLUTIONS, ids=str)
def test_convolutions_are_recognised_and_change_no_bit(numbers, image, kernel, unit, monkeypatch):
    op = sn.operator(CONVOLUTION.format(*numbers))
    fmt, key = unit.operand[0], (7, 1) if unit.stochastic else None
    i, k = (sn.quantize(small(s, n), fmt) for n, s in enumerate((image, kernel)))
    options = {"stride": numbers[:2], "padding": (numbers[2] // 2, numbers[3] // 2), "dilation": numbers[4:]}
    kinds, run = [], convolutions.run

    def spy(found, *arguments):
        kinds.append(found[0])
        return run(found, *arguments)

    def bits(x):
        return x.codes if isinstance(x, sn.Array) else x

    monkeypatch.setattr(convolutions, "run", spy)
    forward = op(i, k, fmt=fmt, unit=unit, key=key)
    assert kinds == ["forward"]
    assert np.array_equal(bits(forward), bits(sn.conv2d(i, k, unit, key=key, **options)))
    dy = sn.quantize(small(forward.shape, 5), fmt)
    outputs = [sn.Array(np.zeros(dy.shape, fmt.storage_dtype), fmt)]
    arrays = [sn.array(x, fmt) for x in (i, k, dy)]
    gradients = op.backward(arrays[:2], outputs, arrays[2:], unit=unit, key=key)
    assert kinds == ["forward", "data", "weight"]
    if not unit.stochastic:
        data = sn.mac.products.conv2d_backward_data(dy, k, unit, image[2:], **options)
        weight = sn.mac.products.conv2d_backward_weight(i, dy, unit, kernel[2:], **options)
        for want, got in zip((data, weight), gradients, strict=True):
            assert np.array_equal(np.asarray(got), np.asarray(want))
    monkeypatch.setattr(convolutions, "recognised", lambda *_: None)
    assert np.array_equal(bits(op(i, k, fmt=fmt, unit=unit, key=key)), bits(forward))
    again = op.backward(arrays[:2], outputs, arrays[2:], unit=unit, key=key)
    for one, other in zip(again, gradients, strict=True):
        assert np.array_equal(one.codes, other.codes)
    assert len(kinds) == 3


@pytest.mark.parametrize(
    "statement",
    [
        "O[n, f, y, x: N0, K0, N2 - K2, N3 - K3 + 1] = +(I[n, c, y + ky, x + kx] * K[f, c, ky, kx])",  # a row less
        "O[n, f, y, x: N0, K0, N2 - K2 + 1, N3 - K3 + 1] = +(I[n, c, y - ky + 2, x + kx] * K[f, c, ky, kx])",  # flipped
        "O[f, n, y, x: K0, N0, N2 - K2 + 1, N3 - K3 + 1] = +(I[n, c, y + ky, x + kx] * K[f, c, ky, kx])",
        "O[n, f, y, x: N0, K0, N2 - K2 + 1, N3 - K3 + 1] = +(I[n, c, y + ky, x + kx] * K[f, c, ky, kx]), c < 1",
        "O[n, f, y, x: N0, K0, N2 - K2 + 1, N3 - K3 + 1] = +(I[n, c, y + kx, x + ky] * K[f, c, ky, kx])",
    ],
)
def test_what_is_no_convolution_is_none(statement, monkeypatch):
    monkeypatch.setattr(convolutions, "run", None)
    i, k = small((2, 2, 5, 5), 1), small((3, 2, 3, 3), 2)
    assert made(statement, i.shape, k.shape)(i, k, fmt="e5m2", unit=MAD).size


def test_the_examples_of_the_lecture():
    """Sum and maximum over an axis, the matrix product, and the convolution with "same" padding followed by a ReLU."""
    i = small((6, 5), 1)
    for body, want in (("+(I[m, n])", sn.sum(i, MAD, axis=0)), (">(I[m, n])", i.max(axis=0))):
        op = sn.operator(f"function (I[M, N]) -> (O) {{ O[n: N] = {body}; }}")
        assert np.array_equal(op(i, fmt="e5m2", unit=MAD), want)
    a, b = small((3, 7), 2), small((7, 4), 3)
    op = sn.operator("""function (A[M, L], B[L, N]) -> (C) {
        C[i, j: M, N] = +(A[i, k] * B[k, j]);
    }""")
    assert np.array_equal(op(a, b, fmt="e5m2", unit=MAD), sn.matmul(a, b, MAD))
    image, kernel = small((2, 3, 5, 6), 4), small((4, 3, 3, 3), 5)
    op = sn.operator("""function (I[N, CI, H, W], K[CO, CI, 3, 3]) -> (R) {
        O[n, co, y, x: N, CO, H, W] = +(I[n, ci, y + ky - 1, x + kx - 1] * K[co, ci, ky, kx]);
        R = (O < 0 ? 0 : O);
    }""")
    want = np.maximum(sn.conv2d(image, kernel, MAD, padding=1), 0)
    assert np.array_equal(op(image, kernel, fmt={"*": "e5m2", "R": "e6m9"}, unit=MAD), want)


# -- sums of other bodies ----------------------------------------------------------------------------------------------
SUMS = [
    ("O[n: N1] = +(I[m, n])", lambda i, o: [i[m, o[0]] for m in range(i.shape[0])], (5,)),
    ("O[] = +(I[m, n])", lambda i, o: [i[x] for x in np.ndindex(i.shape)], ()),
    ("O[m, n: N0, N1] = +(I[m, n])", lambda i, o: [i[o]], (4, 5)),
    ("O[m, x: N0, 3] = +(I[m, 2 * x + j]), j < 2", lambda i, o: [at(i, o[0], 2 * o[1] + j) for j in (0, 1)], (4, 3)),
    ("O[m: N0] = +(I[k, 0]), m - k < N0", lambda i, o: [i[k, 0] if k <= o[0] else 0 for k in range(4)], (4,)),
    ("O[m: N0] = +(-I[m, k])", lambda i, o: [-i[o[0], k] for k in range(5)], (4,)),
    ("O[m: N0] = +(I[m, k] + I[m, 0])", lambda i, o: [i[o[0], k] + i[o[0], 0] for k in range(5)], (4,)),
    ("O[m: N0] = +(I[m, k] > 0 ? I[m, k] : 0)", lambda i, o: [max(i[o[0], k], 0) for k in range(5)], (4,)),
    ("O[m: N0] = +(1), m - k < N0, k < 2", lambda i, o: [float(k <= o[0]) for k in range(2)], (4,)),
]


@cases("unit", STEPS, ids=str)
@cases(("statement", "terms", "shape"), SUMS, ids=[s[0] for s in SUMS])
def test_sums_by_loops(statement, terms, shape, unit):
    """Operations in the body round to the format of the sum; the terms are added by the unit's adder."""
    i = small((4, 5), 3)
    found = made(statement, i.shape, names="I")(i, fmt="e5m2", unit=unit)
    assert found.shape == shape
    for o in np.ndindex(shape):
        values = sn.quantize(np.array(terms(i, o), np.float64), unit.result)
        assert found[o] == sn.sum(values, unit), o


def test_sums_are_those_of_sum():
    i = small((6, 7), 4)
    for unit in UNITS:
        x = sn.quantize(i, unit.operand[0])
        key = 11 if unit.stochastic else None
        op = made("O[n: N1] = +(I[m, n])", i.shape, names="I")
        want, got = sn.sum(x, unit, axis=0, key=key), op(x, fmt=unit.operand[0], unit=unit, key=key)
        assert np.array_equal(np.asarray(want), np.asarray(got))


def test_factors_that_are_expressions_round_to_the_operands():
    i, k = small((3, 4), 5), small((4, 2), 6)
    op = made("O[m, n: N0, K1] = +((I[m, c] - I[m, 0]) * exp(K[c, n]))", i.shape, k.shape)
    unit = sn.MadUnit("e6m9", operand=("e5m2", "e4m3"))
    left = sn.subtract(sn.array(i, "e5m2"), sn.array(i[:, :1], "e5m2"))
    right = sn.exp(sn.array(k, "e5m2"), out_fmt="e4m3")
    want = sn.matmul(np.asarray(left, np.float32), np.asarray(right, np.float32), unit)
    assert np.array_equal(op(i, k, fmt="e5m2", unit=unit), want)


# -- extremes, products, assignments -----------------------------------------------------------------------------------
def test_extremes():
    i = small((4, 6), 8)
    i[2, 3] = np.nan
    i[1] = [-0.0, 0.0, -0.0, -1, -0.0, -2]
    a = sn.array(i, "e5m2")
    largest = made("O[m: N0] = >(I[m, n])", i.shape, names="I")(a)
    assert np.array_equal(largest.codes, np.max(a, axis=1).codes)
    smallest = made("O[m: N0] = <(I[m, n])", i.shape, names="I")(a)
    assert np.array_equal(smallest.codes, np.min(a, axis=1).codes)
    pooled = made("O[m, x: N0, 4] = >(I[m, 2 * x + j - 1]), j < 2", i.shape, names="I")(a)
    for m, x in np.ndindex(4, 4):
        inside = [n for n in (2 * x - 1, 2 * x) if 0 <= n < 6]
        assert pooled.codes[m, x] == np.max(a[m, inside]).codes
    with pytest.raises(sn.tile.TileError, match=r"O\[3\] would be the extreme of nothing"):
        made("O[x: 5] = >(I[0, 2 * x + j]), j < 2", i.shape, names="I")(a)
    nowhere = sn.array(np.zeros((0, 6)), "e5m2")
    assert made("O[m: N0] = >(I[m, n])", (0, 6), names="I")(nowhere).shape == (0,)
    none = sn.array(np.zeros((4, 0)), "e5m2")
    with pytest.raises(sn.tile.TileError, match=r"O\[0\] would be the extreme of nothing"):
        made("O[m: N0] = >(I[m, n])", none.shape, names="I")(none)


@pytest.mark.parametrize("fmt", ["e2m1fn", "q4.4", "uq4.4", "e4m3fnuz", "binary8p3se"])
def test_extremes_in_formats_without_infinities(fmt):
    a = sn.array(-np.abs(small((3, 5), 2)), fmt, invalid=0.0) if fmt != "uq4.4" else sn.array(np.ones((3, 5)), fmt)
    pooled = made("O[m, x: N0, 3] = >(I[m, 2 * x + j - 1]), j < 2", a.shape, names="I")(a)
    for m, x in np.ndindex(3, 3):
        inside = [n for n in (2 * x - 1, 2 * x) if n >= 0]
        assert pooled.codes[m, x] == np.max(a[m, inside]).codes


def test_extremes_keep_the_format_of_their_terms():
    a = sn.array(small((3, 4), 1), "e6m9")
    op = made("O[m: N0] = >(I[m, n])", a.shape, names="I")
    assert op(a).format == a.format
    with pytest.raises(sn.tile.TileError, match="an extreme is one of its terms, which are of e6m9"):
        op(a, fmt={"O": "e5m2"})


def test_products_are_rounded_in_order():
    i = small((4, 7), 9)
    a = sn.array(i, "e5m2")
    found = made("O[m: N0] = *(I[m, n])", i.shape, names="I")(a)
    want = a[:, 0]
    for n in range(1, 7):
        want = want * a[:, n]
    assert np.array_equal(found.codes, want.codes)
    window = made("O[m, x: N0, 7] = *(I[m, x + j - 1]), j < 3", i.shape, names="I")(a)
    assert np.array_equal(window[:, 0].codes, (a[:, 0] * a[:, 1]).codes)
    assert np.array_equal(window[:, 3].codes, (a[:, 2] * a[:, 3] * a[:, 4]).codes)
    empty = made("O[m: N0] = *(I[m, n])", (4, 0), names="I")(a[:, :0])
    assert empty.tolist() == [1, 1, 1, 1]


def test_random_words_are_numbered_by_steps():
    """U is step 0, its comparison and choice 1 and 2, the contraction 3; its body has parts 1 and 2, then its terms."""
    options, key = {"rounding": "stochastic", "stochastic_bits": 9}, (5, 7)
    x = sn.array(np.linspace(0.3, 2, 12).reshape(3, 4), "e5m2")
    text = "U = X; V = U == 0 ? 1 : U; Y[m: M] = *(V[m, k] * V[m, k] + 1);"
    found = sn.operator(f"function (X[M, N]) -> (Y) {{ {text} }}")(x, key=key, **options)
    square = sn.multiply(x, x, key=key_of(key, 3, 1), **options)
    terms = sn.add(square, sn.array(1.0, "e5m2"), key=key_of(key, 3, 2), **options)
    want = sn.array(np.ones(3), "e5m2")
    for k in range(4):
        want = sn.multiply(want, terms[:, k], key=key_of(key, 3, 3 + k), **options)
    assert np.array_equal(found.codes, want.codes)
    assert not np.array_equal(found.codes, sn.operator(f"function (X[M, N]) -> (Y) {{ {text} }}")(x).codes)


def test_assignments_move_elements():
    a = sn.array(small((3, 4), 9), "e5m2")
    cases = {
        "O[n, m: N1, N0] = =(I[m, n])": a.codes.T,
        "O[m, n: N0, N1] = =(I[m, N1 - 1 - n])": a.codes[:, ::-1],
        "O[m, j: N0, 2] = =(I[m, 2 * j + 1])": a.codes[:, 1::2],
        "O[m: N0] = =(I[m, 2])": a.codes[:, 2],
        "O[m, n: N0, 3] = =(I[m, 0])": np.repeat(a.codes[:, :1], 3, axis=1),
        "O[n: N0] = =(I[n, n])": a.codes[range(3), range(3)],
    }
    for statement, want in cases.items():
        assert np.array_equal(made(statement, a.shape, names="I")(a).codes, want), statement
    padded = made("O[m + 1, n: 5, 2] = =(I[m, n])", a.shape, names="I")(a)
    assert np.array_equal(padded.codes, np.pad(a.codes, ((1, 1), (0, 0)))[:, :2])
    with pytest.raises(sn.tile.TileError, match=r"O\[0\] would be assigned 4 times; = takes one term"):
        made("O[m: N0] = =(I[m, n])", a.shape, names="I")(a)
    rounded = made("O[m, n: N0, N1] = =(I[m, n])", a.shape, names="I")(a, fmt={"O": "e3m2fn"})
    assert np.array_equal(rounded.codes, a.astype("e3m2fn").codes)


def test_codes_that_only_move_stay():
    """NaNs with their payloads, whatever else becomes of the tensor."""
    a = sn.Array(np.uint8([0x7D, 0x7F, 0xFE, 0x80]), "e5m2")
    op = sn.operator("function (I[N]) -> (O, S, P) { S[] = +(I[i]); O[i: N] = =(I[N - 1 - i]); P[i: N] = >(I[i]); }")
    flipped, _, same = op(a, unit=MAD)
    assert np.array_equal(flipped.codes, a.codes[::-1])
    assert np.array_equal(same.codes[3:], a.codes[3:])


# -- zeros, sizes, ranges ----------------------------------------------------------------------------------------------
def test_zeros_are_needed_where_there_is_nothing():
    fmt = sn.format("e8m0fnu")
    a = sn.array([1.0, 2.0, 4.0], fmt)
    unit = sn.MadUnit("binary32", operand=fmt)
    inside = made("O[x: 2] = +(I[x + j] * I[j]), j < 2", a.shape, names="I")
    assert inside(a, unit=unit).tolist() == [5.0, 10.0]
    for statement in ("O[x: 3] = +(I[x + j]), j < 2", "O[x: 3] = +(I[x] * I[j]), x - j < 2"):
        with pytest.raises(sn.tile.TileError, match="stands a zero, and e8m0fnu has none"):
            made(statement, a.shape, names="I")(a, unit=unit)
        with pytest.raises(sn.tile.TileError, match="stands a zero, and e8m0fnu has none"):
            made(statement, a.shape, names="I")(np.asarray(a), fmt=fmt, unit=unit)


@pytest.mark.parametrize("fmt", ["e8m0fnu", sn.CustomFormat.from_table([0.5, 1, 2, 4], name="powers")], ids=str)
def test_extremes_and_products_need_no_zero(fmt):
    """They leave out the terms that do not exist."""
    a = sn.array([1.0, 4.0, 2.0], fmt)
    for body, values in ((">(I[x + j - 1])", [4, 4, 4]), ("<(I[x + j - 1])", [1, 1, 2]), ("*(I[x + j])", [4, 8, 2])):
        if body[0] == "*" and fmt != "e8m0fnu":
            continue  # the table has no operations of its own
        length = 2 if body[0] == "*" else 3
        op = made(f"O[x: N0] = {body}, j < {length}", a.shape, names="I")
        assert op(a).tolist() == values
    with pytest.raises(sn.tile.TileError, match="the constant 0 lies beyond"):
        made("O[x + 1: 4] = =(I[x])", a.shape, names="I")(a)


def test_padding_is_an_operand_of_the_unit():
    """Of the weights an infinite one meets the padded zeros: NaN, as in conv2d."""
    i, k = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 3, 3), np.float32)
    k[0, 0, 0, 0] = np.inf
    op = sn.operator(CONVOLUTION.format(1, 1, 2, 2, 1, 1))
    found = op(i, k, fmt="e5m2", unit=MAD)
    assert np.array_equal(found, sn.conv2d(i, k, MAD, padding=1), equal_nan=True)
    assert np.isnan(found[0, 0, 0]).all() and np.isinf(found[0, 0, 1, 1])


def test_sizes_and_empty_tensors():
    op = sn.operator("function (A[M, L], B[L, N]) -> (C) { C[i, j: M, N] = +(A[i, k] * B[k, j]); }")
    for m, k, n in itertools.product((0, 2), repeat=3):
        found = op(np.ones((m, k)), np.ones((k, n)), fmt="e5m2", unit=MAD)
        assert np.array_equal(found, np.full((m, n), k, np.float32))
    half = made("O[x: N0 / 2] = =(I[2 * x])", (5,), names="I")
    assert half(small((5,), 1), fmt="e5m2").shape == (2,)
    like = sn.operator("function (A[N], B) -> (O) { O[i: like B] = =(A[i]); T[i: size(B, 0)] = =(A[i]); O = O + T; }")
    assert like(np.ones(4), np.ones(3), fmt="e5m2").tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("O[x: N0] = +(I[x + j])", "nothing bounds the index variable 'x'"),
        ("O[x: N0 - 9] = =(I[x])", "O would have a size of -5 in dimension 0"),
        ("O[x: N0 / (N0 - 4)] = =(I[x])", r"division by a size of 0 \(4 / 0\)"),
        ("O[x: size(I, 1)] = =(I[x])", r"I has 1 dimensions, and 1 is asked for \(from 0\)"),
    ],
)
def test_what_only_a_call_shows(statement, message):
    if "x + j" in statement:
        statement = "O[0: 1] = +(I[x + j])"
    with pytest.raises(sn.tile.TileError, match=message):
        made(statement, (4,), names="I")(np.ones(4), fmt="e5m2", unit=MAD)


def test_ranks_that_only_a_call_shows():
    op = sn.operator("function (X) -> (Y) { Y[i: 2] = +(X[i, k]); }")
    with pytest.raises(sn.tile.TileError, match=r"X has shape \(3,\), got 2 indices"):
        op(np.ones(3), fmt="e5m2", unit=MAD)
    like = sn.operator("function (X, Z) -> (Y) { Y[i: like Z] = =(X[i]); }")
    with pytest.raises(sn.tile.TileError, match=r"Y has 1 indices, and the sizes are \(2, 2\)"):
        like(np.ones(3), np.ones((2, 2)), fmt="e5m2")


def test_operands_that_are_no_values_are_named():
    op = sn.operator("function (A[M, L], B[L, N]) -> (C) { T = 1.125 * B; C[i, j: M, N] = +(A[i, k] * T[k, j]); }")
    a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    with pytest.raises(sn.tile.TileError, match=r"C: T\[0, 0\] = .*1.125.* is no value of e5m2 \(nearest: .*1.0"):
        op(a, b, fmt={"*": "e5m2", "T": "e6m9"}, unit=MAD)
    with pytest.raises(ValueError, match=r"A\[1, 2\] = .*1.1.* is no value of e5m2"):
        op(np.array([[1, 1, 1], [1, 1, 1.1]]), b, fmt="e5m2", unit=MAD)


def test_threads_change_nothing():
    a, b = small((40, 300), 1), small((300, 70), 2)
    op = sn.operator("function (A[M, L], B[L, N]) -> (C) { C[i, j: M, N] = +(A[i, k] * B[k, j]); }")
    results = [op(a, b, fmt="e5m2", unit=NOISY, key=1, threads=t) for t in (1, 3)]
    assert np.array_equal(*results)


@pytest.mark.parametrize("terms", [1, 7, 40, 300])
def test_parts_change_nothing(terms, monkeypatch):
    """What is laid out at a time decides no bit, no message, and nothing where words are random."""
    cases = [(p[0], p[1:3]) for p in PRODUCTS] + [(s[0], ((4, 5),)) for s in SUMS]
    cases += [(f"O[m, x: N0, N1 - 2] = {a}(I[m, x + j]), j < 3", ((4, 6),)) for a in "><*"]
    cases += [("O[x, m: N1, N0] = =(I[m, x])", ((4, 6),)), ("O[2 * m, n: 8, N1] = =(exp(I[m, n]))", ((4, 5),))]
    for unit in (CHUNKED, NOISY):
        for statement, shapes in cases:
            inputs = [small(shape, n) for n, shape in enumerate(shapes)]
            op = made(statement, *shapes, names="IK"[: len(shapes)])
            whole = op(*inputs, fmt="e5m2", unit=unit, key=3)
            monkeypatch.setattr("softnum.tile.contract.TERMS", terms)
            assert np.array_equal(op(*inputs, fmt="e5m2", unit=unit, key=3), whole), statement
            monkeypatch.undo()
    monkeypatch.setattr("softnum.tile.contract.TERMS", terms)
    i = small((4, 6), 1)
    with pytest.raises(sn.tile.TileError, match=r"O\[3\] would be the extreme of nothing"):
        made("O[x: 5] = >(I[0, 2 * x + j]), j < 2", i.shape, names="I")(i, fmt="e5m2")
    with pytest.raises(sn.tile.TileError, match=r"O\[2\] would be assigned 3 times"):
        made("O[m: N0] = =(I[m, n]), m - 1 < 9, n - 9 + 3 * m < 12", i.shape, names="I")(i, fmt="e5m2")


@pytest.mark.parametrize("outer", [None, "binary32"])
def test_sums_that_have_no_code_are_errors_however_they_are_computed(outer, monkeypatch):
    """A NaN in an accumulator that has none stays an error where chunks are summed in a format that has one."""
    pytest.importorskip("numba")
    unit = sn.MadUnit("q8.8", operand="e4m3fnuz", chunk=2, outer_accumulator=outer)
    op = sn.operator("function (A[M, K], B[K]) -> (C) { C[m: M] = +(A[m, k] * B[k]); }")
    a, b = sn.array([[1.0, np.nan, 2.0], [1.0, 0.5, 2.0]], "e4m3fnuz"), sn.array([1.0, 1.0, 0.5], "e4m3fnuz")
    said = []
    for least in (0, 1 << 60):
        monkeypatch.setattr(loops, "LEAST", least)
        assert op(a[1:], b, unit=unit).tolist() == [2.5]
        with pytest.raises(sn.tile.TileError, match="q8.8 has no code") as error:
            op(a, b, unit=unit)
        said.append(str(error.value))
    assert said[0] == said[1]
