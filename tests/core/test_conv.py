"""conv2d and its gradients: against loops over the reference, in float64 where the formats are exact, as adjoints."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats import FloatFormat
from softnum.formats.facts import fits
from softnum.mac.products.engines import coded, fast_of
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits
from tests.support.matmul_units import TERNARY, as_codes
from tests.support.remembered import remembered

MAD = sn.MadUnit("e6m9", operand="e5m2")
NOISY = sn.MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12)
UNITS = [
    MAD,
    NOISY,
    sn.MadUnit("e6m9", operand=("e4m3", "e5m2"), chunk=5, outer_accumulator="binary32"),
    sn.MadUnit("e6m9", operand="e5m2", rounding="down"),
    sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=20, product="e5m2", chunk=4),
    sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic_floor", stochastic_bits=9),
    sn.MadUnit("q8.8", operand=("q4.4", "e2m1fn")),
    sn.MadUnit("q4.4", operand="q4.4", overflow="wrap"),
    sn.MadUnit("binary32", operand=("bfloat16", TERNARY)),
    sn.MadUnit("e15m48", operand="e5m2"),
    sn.MadUnit("e6m9", operand="e5m2", lanes=3, reduction="tree", rounding="stochastic", stochastic_bits=9, chunk=7),
    sn.MadUnit("e6m9", operand="e5m2", compensated="kahan"),
    sn.ExactDotUnit("e6m9", operand="e5m2"),
    sn.ExactDotUnit("e5m2", operand="e5m2", rounding="stochastic", stochastic_bits=7),
]
#: images, channels, height, width, filters, kernel, stride, padding, dilation, groups
SHAPES = [
    (2, 2, 4, 5, 3, (3, 2), 1, 0, 1, 1),
    (1, 2, 5, 4, 2, (3, 3), 2, 1, 1, 1),
    (2, 4, 4, 4, 6, (2, 2), (1, 2), (0, 1), (2, 1), 2),
    (1, 3, 3, 3, 3, (1, 1), 1, 0, 1, 3),
    (2, 1, 1, 6, 2, (1, 4), (1, 3), (0, 2), (1, 2), 1),
    (1, 1, 6, 6, 1, (2, 2), 3, 2, 1, 1),
]
SMALL = SHAPES[1], SHAPES[2]


def pair(v):
    return v if isinstance(v, tuple) else (v, v)


def options(shape):
    return dict(zip(("stride", "padding", "dilation", "groups"), shape[6:], strict=True))


def result_size(shape):
    sizes = zip(shape[2:4], shape[5], *(pair(v) for v in shape[6:9]), strict=True)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes)


def values(fmt, rng, shape):
    x = rng.normal(0, 1, shape) * 2.0 ** rng.integers(-2, 2, shape)
    if fmt.kind == "table":
        return sn.quantize(x, fmt)
    if not fits(fmt, np.float64):
        return sn.array(x, fmt)
    return sn.quantize(x, fmt, overflow="saturate")


def operands(u, shape, which, seed=0):
    """(first, second): what the convolution (which = "forward", "data", "weight") multiplies."""
    rng = np.random.default_rng(seed)
    n, c, h, w, f, kernel = shape[:6]
    arrays = {"x": (n, c, h, w), "w": (f, c // shape[9], *kernel), "dy": (n, f, *result_size(shape))}
    names = {"forward": ("x", "w"), "data": ("dy", "w"), "weight": ("x", "dy")}[which]
    return tuple(values(fmt, rng, arrays[name]) for fmt, name in zip(u.operand, names, strict=True))


def call(which, a, b, u, shape, *start, **more):
    more = options(shape) | more
    if which == "forward":
        return sn.conv2d(a, b, u, *start, **more)
    if which == "data":
        return sn.mac.products.conv2d_backward_data(a, b, u, shape[2:4], *start, **more)
    return sn.mac.products.conv2d_backward_weight(a, b, u, shape[5], *start, **more)


def terms(which, a, b, shape):
    """(index of the result, m, n, [(element of a or 0, element of b)] in the order of k), by loops over indices."""
    images, c, h, w, f, (kh, kw) = shape[:6]
    (sy, sx), (py, px), (dy, dx), groups = *(pair(v) for v in shape[6:9]), shape[9]
    (oh, ow), cg, fg = result_size(shape), c // groups, f // groups

    def source(i, ch, y, x):
        return a[i, ch, y, x] if 0 <= y < h and 0 <= x < w else 0

    if which == "forward":
        for i, o, y, x in np.ndindex(images, f, oh, ow):
            yield (i, o, y, x), (i * oh + y) * ow + x, o, [
                (source(i, o // fg * cg + ch, y * sy + ky * dy - py, x * sx + kx * dx - px), b[o, ch, ky, kx])
                for ch in range(cg) for ky in range(kh) for kx in range(kw)
            ]  # fmt: skip
    elif which == "data":

        def gradient(i, o, y, x):
            whole = y % sy == 0 and x % sx == 0 and 0 <= y // sy < oh and 0 <= x // sx < ow
            return a[i, o, y // sy, x // sx] if whole else 0

        for i, ch, y, x in np.ndindex(images, c, h, w):
            first = ch // cg * fg
            yield (i, ch, y, x), (i * h + y) * w + x, ch, [
                (gradient(i, first + o, y + py - ky * dy, x + px - kx * dx), b[first + o, ch % cg, ky, kx])
                for o in range(fg) for ky in range(kh) for kx in range(kw)
            ]  # fmt: skip
    else:
        for o, ch, ky, kx in np.ndindex(f, cg, kh, kw):
            yield (o, ch, ky, kx), (ch * kh + ky) * kw + kx, o, [
                (source(i, o // fg * cg + ch, y * sy + ky * dy - py, x * sx + kx * dx - px), b[i, o, y, x])
                for i in range(images) for y in range(oh) for x in range(ow)
            ]  # fmt: skip


@remembered
def reference(which, a, b, u, shape, c=None, key=None):
    """Codes of the result by `reference`, one dot product after the other."""
    formats = tuple(coded(f) for f in u.operand)
    a, b = (
        x.codes if isinstance(x, sn.Array) else sn.encode(np.asarray(x, np.float64), f)
        for x, f in zip((a, b), formats, strict=True)
    )
    found = list(terms(which, a, b, shape))
    out = np.empty(np.max([index for index, *_ in found], axis=0) + 1, u.result.storage_dtype)
    same = {"operand": formats, "accumulator": u.accumulator, "rounding": u.rounding, "overflow": u.overflow}
    same |= {"stochastic_bits": u.stochastic_bits, "key": key}
    start = None if c is None else sn.encode(np.broadcast_to(c, out.shape), u.result)
    dot = ref.exact_dot
    if isinstance(u, sn.MadUnit):
        same |= {"product": u.product, "product_rounding": u.product_rounding, "chunk": u.chunk}
        same |= {"outer_accumulator": u.outer_accumulator, "lanes": u.lanes, "reduction": u.reduction}
        same |= {"compensated": u.compensated}
        dot = ref.mad_dot
    for index, m, n, pairs in found:
        first, second = ([int(p[i]) for p in pairs] for i in (0, 1))
        out[index], _ = dot(first, second, **same, m=m, n=n, c=None if start is None else int(start[index]))
    return out


@cases("which", ["forward", "data", "weight"])
@cases("u", UNITS, ids=str)
def test_equals_loops_over_the_reference(u, which, isa):
    key = (77, 5) if u.stochastic else None
    for shape in SHAPES if isa == "portable" and u in UNITS[:2] else SMALL:
        a, b = operands(u, shape, which)
        got = as_codes(call(which, a, b, u, shape, key=key), u.result)
        assert np.array_equal(got, reference(which, a, b, u, shape, key=key)), (str(u), which, shape)
        c = values(u.result, np.random.default_rng(1), got.shape[-3:] if which == "weight" else (got.shape[1], 1, 1))
        if isinstance(c, sn.Array):
            continue
        got = as_codes(call(which, a, b, u, shape, c, key=key), u.result)
        assert np.array_equal(got, reference(which, a, b, u, shape, c, key=key)), (str(u), which, shape)


@cases("which", ["forward", "data", "weight"])
@cases("u", UNITS, ids=str)
def test_blocks_and_threads_change_nothing(u, which, isa):
    options = {"key": 9} if u.stochastic else {}
    for shape in SMALL:
        a, b = operands(u, shape, which, seed=3)
        whole = call(which, a, b, u, shape, workspace=1 << 30, **options)
        terms_each = {
            "forward": shape[1] // shape[9] * np.prod(shape[5]),
            "data": shape[4] // shape[9] * np.prod(shape[5]),
            "weight": shape[0] * np.prod(result_size(shape)),
        }[which]
        for rows in (1, 2, 7):
            for threads in (1, 3):
                got = call(which, a, b, u, shape, workspace=int(8 * terms_each * rows), threads=threads, **options)
                if isinstance(whole, sn.Array):
                    assert np.array_equal(got.codes, whole.codes)
                else:
                    assert_same_bits(got, whole, str(u), which, shape, rows)


@pytest.mark.parametrize("which", ["forward", "data", "weight"])
def test_random_bits_equal_the_key(which):
    for u in (NOISY, UNITS[4], *UNITS[-4:]):
        if not u.stochastic:
            continue
        both = u.two_roundings
        for shape in SMALL:
            a, b = operands(u, shape, which, seed=4)
            want = call(which, a, b, u, shape, key=(7, 1))
            found = list(terms(which, a, b, shape))
            steps = u.steps(len(found[0][3]))
            words = np.zeros((*want.shape, steps, 2), np.uint32)
            for index, m, n, _ in found:
                words[index] = [
                    ref.random_words_matmul(7, 1, 0, m, n, k, u.stochastic_bits, both) for k in range(steps)
                ]
            assert_same_bits(call(which, a, b, u, shape, random_bits=words), want)
            assert_same_bits(call(which, a, b, u, shape, random_bits=words, workspace=20000), want)


@pytest.mark.parametrize("which", ["forward", "data", "weight"])
def test_big_exact_sums_equal_float64(which, isa):
    """Integers, whose sums are exact: numpy's float64 in any order."""
    rng = np.random.default_rng(5)
    shape = (3, 8, 19, 17, 12, (3, 5), (2, 1), (1, 2), (1, 2), 2)
    u = sn.MadUnit("binary32", operand="e4m3")
    a, b = ((x > 0) * 2.0 - (x < -0.5) * 3.0 for x in operands(u, shape, which, seed=6))
    got = call(which, a, b, u, shape, threads=2)
    out = np.zeros(got.shape)
    # scatter, where `terms` gathers
    images, c, h, w, f, (kh, kw) = shape[:6]
    (sy, sx), (py, px), (dy, dx), groups = *(pair(v) for v in shape[6:9]), shape[9]
    (oh, ow), cg, fg = result_size(shape), c // groups, f // groups

    def padded(x):
        return np.pad(x, ((0, 0), (0, 0), (py, py + sy), (px, px + sx)))

    image = np.zeros((images, c, h, w)) if which == "data" else a
    big = padded(image)
    for g in range(groups):
        ch, fs = slice(g * cg, (g + 1) * cg), slice(g * fg, (g + 1) * fg)
        for ky in range(kh):
            for kx in range(kw):
                y = slice(ky * dy, ky * dy + sy * (oh - 1) + 1, sy)
                x = slice(kx * dx, kx * dx + sx * (ow - 1) + 1, sx)
                if which == "forward":
                    out[:, fs] += np.einsum("icyx,fc->ifyx", big[:, ch, y, x], b[fs, :, ky, kx])
                elif which == "weight":
                    out[fs, :, ky, kx] += np.einsum("icyx,ifyx->fc", big[:, ch, y, x], b[:, fs])
                else:
                    big[:, ch, y, x] += np.einsum("ifyx,fc->icyx", a[:, fs], b[fs, :, ky, kx])
    if which == "data":
        out = big[:, :, py : py + h, px : px + w]
    assert np.array_equal(got, out) and np.count_nonzero(out) > out.size // 2
    assert fast_of(u) is not None and rng is not None


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_gradients_are_the_adjoints(shape):
    """<conv(x, w), dy> = <x, backward_data(dy, w)> = <w, backward_weight(x, dy)>, exactly."""
    u = sn.ExactDotUnit("q32.32", operand="e4m3")
    n, c, h, width, f, kernel = shape[:6]
    rng = np.random.default_rng(8)
    x, w, dy = (
        values(u.operand[0], rng, size)
        for size in ((n, c, h, width), (f, c // shape[9], *kernel), (n, f, *result_size(shape)))
    )

    def inner(p, q):
        exact = [sn.decode(v.codes, v.format, object) if isinstance(v, sn.Array) else v for v in (p, q)]
        return sum(Fraction(s) * Fraction(t) for s, t in zip(exact[0].flat, exact[1].flat, strict=True))

    forward = inner(call("forward", x, w, u, shape), dy)
    assert forward != 0
    assert forward == inner(x, call("data", dy, w, u, shape)) == inner(w, call("weight", x, dy, u, shape))


@pytest.mark.parametrize("which", ["forward", "data", "weight"])
def test_a_tensor_core_convolves(which, isa):
    """Each result is the unit's dot product of its terms, in their order."""
    u = sn.FusedDotUnit(4, 23, "binary32", operand="binary16")
    shape = SMALL[1]
    a, b = operands(u, shape, which, seed=9)
    got = call(which, a, b, u, shape, workspace=5000)
    for index, _, _, pairs in terms(which, a, b, shape):
        first, second = (np.array([float(p[i]) for p in pairs]) for i in (0, 1))
        assert got[index] == sn.dot(first, second, u)


def test_padded_zeros_are_operands():
    """They are counted in chunks; -0 + 0 is +0; infinity times a padded zero is NaN."""
    x, w = np.full((1, 1, 1, 1), 1.0), np.zeros((1, 1, 1, 3))
    w[...] = [np.inf, 1, 1]
    assert np.isnan(sn.conv2d(x, w, MAD, padding=(0, 1)))
    assert sn.conv2d(x, w[..., 1:2], MAD) == 1
    minus = np.array([-0.0])
    assert np.signbit(sn.conv2d(-0.0 * x, np.ones((1, 1, 1, 1)), MAD, minus))
    assert not np.signbit(sn.conv2d(-0.0 * x, np.ones((1, 1, 1, 3)), MAD, minus, padding=(0, 1)))
    u = FloatFormat(8, 0, specials="none", signed=False, has_zero=False, lowest_binade="normal", nan_codes="all_ones")
    scales = sn.MadUnit("binary32", operand=(u, "e4m3"))
    one = np.ones((1, 1, 1, 1))
    assert sn.conv2d(one, one, scales) == 1 and sn.mac.products.conv2d_backward_data(one, one, scales, (1, 1)) == 1
    with pytest.raises(ValueError, match="x is filled up with zeros, and .* has none"):
        sn.conv2d(one, one, scales, padding=1)
    with pytest.raises(ValueError, match="dy is filled up with zeros"):
        sn.mac.products.conv2d_backward_data(one, one, scales, (1, 1), stride=2)


def test_sizes_of_nothing():
    x, w = np.zeros((0, 2, 4, 4)), np.zeros((3, 2, 2, 2))
    assert sn.conv2d(x, w, MAD).shape == (0, 3, 3, 3)
    assert sn.mac.products.conv2d_backward_data(np.zeros((0, 3, 3, 3)), w, MAD, (4, 4)).shape == (0, 2, 4, 4)
    weights = sn.mac.products.conv2d_backward_weight(x, np.zeros((0, 3, 3, 3)), MAD, (2, 2))
    assert weights.shape == w.shape and not weights.any()
    none = sn.conv2d(np.zeros((1, 0, 4, 4)), np.zeros((3, 0, 2, 2)), MAD, np.float32([1, 2, 3])[:, None, None])
    assert none.shape == (1, 3, 3, 3) and np.array_equal(none[0, :, 0, 0], [1, 2, 3])
    assert sn.conv2d(np.zeros((2, 1, 4, 4)), np.zeros((0, 1, 2, 2)), MAD).shape == (2, 0, 3, 3)


def test_layouts_and_codes():
    shape = SMALL[1]
    a, b = operands(MAD, shape, "forward")
    want = call("forward", a, b, MAD, shape)
    assert want.dtype == np.float32 and want.flags.c_contiguous
    assert_same_bits(call("forward", a.astype(np.float32), np.asfortranarray(b), MAD, shape), want)
    assert_same_bits(call("forward", sn.array(a, "e5m2"), sn.array(b, "e5m2"), MAD, shape), want)
    assert_same_bits(call("forward", np.repeat(a, 2, axis=3)[..., ::2], b, MAD, shape), want)


X, W = np.zeros((1, 2, 4, 4)), np.zeros((2, 2, 2, 2))


@cases(
    "error, message, call",
    [
        (ValueError, r"conv2d: x has four dimensions, got shape \(2, 4, 4\)", lambda: sn.conv2d(X[0], W, MAD)),
        (ValueError, "conv2d: w of shape .* takes 2 channels in each of 1 groups, x has 1",
         lambda: sn.conv2d(X[:, :1], W, MAD)),
        (ValueError, "groups=3 must be positive and divide", lambda: sn.conv2d(X, W, MAD, groups=3)),
        (ValueError, r"a kernel of \(2, 2\) with dilation \(4, 4\) does not fit an image of \(4, 4\)",
         lambda: sn.conv2d(X, W, MAD, dilation=4)),
        (ValueError, "stride must be an integer of at least 1, or a pair of them, got 0",
         lambda: sn.conv2d(X, W, MAD, stride=0)),
        (ValueError, "padding must be an integer of at least 0.*got 1.5", lambda: sn.conv2d(X, W, MAD, padding=1.5)),
        (ValueError, "conv2d: the unit rounds stochastically; give key=", lambda: sn.conv2d(X, W, NOISY)),
        (ValueError, r"random_bits must be uint32 of shape \(1, 2, 3, 3, 8, 2\), got uint32 of shape \(3,\)",
         lambda: sn.conv2d(X, W, NOISY, random_bits=np.zeros(3, np.uint32))),
        (ValueError, r"conv2d: x\[0, 0, 0, 0\] = .*1\.1.* is no value of e5m2",
         lambda: sn.conv2d(X + 1.1, W, MAD)),
        (ValueError, "c of shape .* does not broadcast", lambda: sn.conv2d(X, W, MAD, np.zeros(7))),
        (ValueError, "a sum of K = 8 terms takes 32 bytes unfolded, and workspace is 31; give workspace=32 or more",
         lambda: sn.conv2d(X, W, MAD, workspace=31)),
        (ValueError, "workspace must be a positive number of bytes, got 0",
         lambda: sn.conv2d(X, W, MAD, workspace=0)),
        (TypeError, "the unit must be one of softnum's", lambda: sn.conv2d(X, W, "e5m2")),
        (ValueError, r"dy of shape \(1, 2, 4, 4\) is no gradient of a result of shape \(1, 2, 3, 3\)",
         lambda: sn.mac.products.conv2d_backward_data(X, W, MAD, (4, 4))),
        (ValueError, r"dy of shape \(1, 2, 4, 4\) is no gradient",
         lambda: sn.mac.products.conv2d_backward_weight(X, X, MAD, (2, 2))),
        (ValueError, "conv2d: the result is NaN or infinite, and q4.4 has no code",
         lambda: sn.conv2d(X + np.inf, W, sn.MadUnit("q4.4", operand="e5m2"))),
    ],
)  # fmt: skip
def test_refusals(error, message, call):
    with pytest.raises(error, match=message):
        call()


def test_padding_in_custom_formats():
    """What is padded with is the format's zero, whatever its code."""
    operand = sn.CustomFormat.from_table([-2.0, -1.0, 0.5, 0.0, 1.0, 2.0, 4.0, 8.0], name="with zero at 3")
    unit = sn.MadUnit(sn.CustomFormat.from_table([i / 2 for i in range(-64, 64)], name="halves"), operand=operand)
    wide = sn.MadUnit("binary32", operand=operand)  # nothing is rounded in either
    rng = np.random.default_rng(8)
    shapes = (2, 2, 3, 4), (3, 2, 2, 2), (2, 3, 1, 2), (2, 3, 4, 7)
    x, w, dy, wider = (rng.choice([-1.0, 0.0, 1.0], s).astype(np.float32) for s in shapes)
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)))
    for got, want in (
        (sn.conv2d(x, w, unit, padding=(1, 2)), sn.conv2d(around, w, wide)),
        (sn.mac.products.conv2d_backward_data(dy, w, unit, (2, 4), stride=2),
         sn.mac.products.conv2d_backward_data(dy, w, wide, (2, 4), stride=2)),
        (sn.mac.products.conv2d_backward_weight(x, wider, unit, (2, 2), padding=(1, 2)),
         sn.mac.products.conv2d_backward_weight(around, wider, wide, (2, 2))),
    ):  # fmt: skip
        np.testing.assert_array_equal(got, want)


def test_arrays_of_the_host_and_of_cuda_do_not_mix():
    class OnDevice:
        __cuda_array_interface__ = {}

    pytest.importorskip("numba.cuda")
    with pytest.raises(TypeError, match="conv2d: x lies on the host and w on the device; copy one of them"):
        sn.conv2d(X, OnDevice(), MAD)


def test_the_workspace_is_kept():
    """Unfolded, the input would take 9 * 8 MiB."""
    x, w = np.ones((2, 16, 256, 256), np.float32), np.ones((1, 16, 3, 3), np.float32)
    tracemalloc.start()
    sn.conv2d(x, w, MAD, padding=1, workspace=1 << 20, threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * x.nbytes + (1 << 20)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    "unit",
    [
        sn.MadUnit("binary32", operand="binary32"),
        sn.MadUnit("e6m9", operand=("e5m2", "e4m3"), chunk=8),
        sn.MadUnit("binary32", operand="binary16", product="binary16"),
        sn.MadUnit("bfloat16", operand="bfloat16", overflow="saturate"),
    ],
    ids=str,
)
def test_the_product_turned_round_has_the_same_bits(unit, groups):
    """A workspace of one sum keeps the operands as they are; a larger one exchanges them. Infinities and NaN too."""
    rng = np.random.default_rng(3)
    operands = [rng.standard_normal(shape).astype(np.float32) for shape in ((3, 4, 9, 11), (6, 4 // groups, 3, 2))]
    x, w = (sn.quantize(v, f) for v, f in zip(operands, unit.operand, strict=True))
    for v, fmt in ((x, unit.operand[0]), (w, unit.operand[1])):
        v.flat[::71] = fmt.max
        v.flat[5::97] = np.nan if fmt.has_nan else fmt.max
        if fmt.infinities:
            v.flat[7::89] = -np.inf
    w[0, 0, 0, 0] = 0.0  # times infinity
    w[1] = np.abs(np.nan_to_num(w[1], posinf=1, neginf=1)) * 0 - 0.0
    geometry = {"padding": 1, "stride": (2, 1), "groups": groups}
    for threads in (1, 3):
        options = {"threads": threads, **geometry}
        y = sn.conv2d(x, w, unit, **options)
        assert y.tobytes() == sn.conv2d(x, w, unit, workspace=8 * 24, **options).tobytes()
        assert np.isnan(y).any() and np.isfinite(y).any()
        dy = sn.quantize(np.nan_to_num(y, posinf=2, neginf=-2), unit.operand[0])
        back = sn.mac.products.conv2d_backward_data(dy, w, unit, (9, 11), **options)
        assert (
            back.tobytes()
            == sn.mac.products.conv2d_backward_data(dy, w, unit, (9, 11), workspace=8 * 36, **options).tobytes()
        )


class Narrow(sn.MadUnit):
    """A user's class, made of other arguments than its base."""

    def __init__(self):
        super().__init__("e6m9", operand="e5m2")


def test_a_unit_of_a_users_class():
    x, w = np.ones((3, 1, 9, 9), np.float32), np.full((2, 1, 3, 3), 0.5, np.float32)
    assert sn.conv2d(x, w, Narrow()).tobytes() == sn.conv2d(x, w, MAD).tobytes()
    dy = np.ones((3, 2, 7, 7), np.float32)
    assert_same_bits(
        sn.mac.products.conv2d_backward_weight(x, dy, Narrow(), (3, 3)),
        sn.mac.products.conv2d_backward_weight(x, dy, MAD, (3, 3)),
    )
