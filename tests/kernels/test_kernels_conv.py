"""softnum.conv2d and its gradients on CUDA arrays: the bits of the CPU, from products that read the images in place."""

import numpy as np
import pytest

import softnum as sn
from softnum.kernels import launches
from tests.support.equality import same_bits

rng = np.random.default_rng(11)
UNIT = sn.MadUnit("e6m9", operand="e5m2")


def values(*shape, fmt="e5m2"):
    """Seeded values of a format, zeros of both signs and subnormals among them."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 4, shape)
    x.reshape(-1)[: min(3, x.size)] = [-0.0, 2.0**-16, 0.0][: min(3, x.size)]
    return sn.quantize(x.astype(np.float32), fmt)


def same(got, want):
    same_bits(got.copy_to_host(), want)


# images, channels, height, width; filters, kernel; options
SHAPES = {
    "plain": ((2, 2, 4, 3), (3, 2, 3, 2), {}),
    "padded": ((1, 2, 3, 4), (2, 2, 3, 3), {"padding": 1}),
    "strided": ((2, 1, 5, 4), (2, 1, 2, 2), {"stride": (2, 3), "padding": (1, 0)}),
    "dilated": ((1, 1, 5, 6), (2, 1, 2, 3), {"dilation": (2, 1), "padding": (0, 2), "stride": (1, 2)}),
    "groups": ((2, 4, 3, 3), (6, 2, 2, 2), {"groups": 2, "padding": (1, 0)}),
    "depthwise": ((1, 3, 4, 4), (3, 1, 3, 3), {"groups": 3, "padding": 1, "stride": 2}),
    "pointwise": ((2, 3, 3, 2), (4, 3, 1, 1), {"stride": 2}),
}
KINDS = ("forward", "data", "weight")


def given(kind, name, fmt="e5m2"):
    """(function of softnum, its two arrays, what it is told between the unit and c, its options)"""
    images, weights, options = SHAPES[name]
    x, w = values(*images, fmt=fmt), values(*weights, fmt=fmt)
    y = sn.conv2d(x, w, sn.MadUnit("binary32", operand=fmt), **options)
    dy = values(*y.shape, fmt=fmt)
    if kind == "forward":
        return sn.conv2d, (x, w), (), options
    if kind == "data":
        return sn.mac.products.conv2d_backward_data, (dy, w), (images[2:],), options
    return sn.mac.products.conv2d_backward_weight, (x, dy), (weights[2:],), options


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(device, kind, name):
    function, arrays, told, options = given(kind, name)
    before = launches()
    got = function(*map(device.to_device, arrays), UNIT, *told, **options)
    assert launches() > before
    same(got, function(*arrays, UNIT, *told, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_start_from_c(device, kind):
    function, arrays, told, options = given(kind, "groups")
    shape = function(*arrays, UNIT, *told, **options).shape
    unit = sn.MadUnit("e6m9", operand="e5m2", chunk=3)
    for part in (shape, (shape[1], 1, 1), (1, 1, 1, shape[3])):
        c = values(*part, fmt="e6m9")
        got = function(*map(device.to_device, arrays), unit, *told, device.to_device(c), **options)
        same(got, function(*arrays, unit, *told, c, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_random_words(device, kind):
    """Words are numbered by the whole product's rows and columns, whatever the group."""
    unit = sn.MadUnit("e6m3", operand="e5m2", product="e5m2", rounding="sr", stochastic_bits=12, chunk=5)
    function, arrays, told, options = given(kind, "groups")
    on_device = [device.to_device(x) for x in arrays]
    want = function(*arrays, unit, *told, key=(7, 2**33), **options)
    same(function(*on_device, unit, *told, key=(7, 2**33), **options), want)
    k = {"forward": 2 * 4, "data": 3 * 4, "weight": 2 * 4 * 2}[kind]
    words = np.random.default_rng(1).integers(0, 2**32, (*want.shape, unit.steps(k), 2), dtype=np.uint32)
    want = function(*arrays, unit, *told, random_bits=words, **options)
    same(function(*on_device, unit, *told, random_bits=words, **options), want)
    same(function(*on_device, unit, *told, random_bits=device.to_device(words), **options), want)
    with pytest.raises(ValueError, match=r"random_bits must be uint32 of shape"):
        function(*on_device, unit, *told, random_bits=words[:-1], **options)
    with pytest.raises(ValueError, match="rounds stochastically; give key="):
        function(*on_device, unit, *told, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_order(device, kind):
    """Channels last, reversed, and a part of a larger array: read where they are, or packed."""
    from softnum.kernels.device.runtime.strides import transposed

    function, arrays, told, options = given(kind, "strided")
    want = function(*arrays, UNIT, *told, **options)
    last = [transposed(device.to_device(np.ascontiguousarray(x.transpose(0, 2, 3, 1))), (0, 3, 1, 2)) for x in arrays]
    same(function(*last, UNIT, *told, **options), want)
    larger = [np.full([2 * n for n in x.shape], np.nan, np.float32) for x in arrays]
    for x, y in zip(larger, arrays, strict=True):
        x[::2, 1::2, ::2, ::2] = y
    parts = [device.to_device(x)[::2, 1::2, ::2, ::2] for x in larger]
    same(function(*parts, UNIT, *told, **options), want)


def test_special_values(device):
    x, w = values(1, 2, 3, 3), values(2, 2, 2, 2)
    x[0, 0, 1, 1], x[0, 1, 2, 2], w[1, 0, 0, 0] = np.inf, -np.inf, np.nan
    for options in ({}, {"padding": 1}):
        same(sn.conv2d(device.to_device(x), device.to_device(w), UNIT, **options), sn.conv2d(x, w, UNIT, **options))
    minus = np.full((1, 1, 2, 2), -0.0, np.float32)  # sums start from +0
    same(sn.conv2d(device.to_device(minus), device.to_device(minus), UNIT), sn.conv2d(minus, minus, UNIT))


@pytest.mark.parametrize(
    "unit",
    [
        sn.MadUnit("q8.8", operand="q4.4"),
        sn.MadUnit("binary32", operand=("e4m3fn", "e5m2"), product="binary16", chunk=4, outer_accumulator="binary64"),
        sn.FusedDotUnit(4, 10, "binary32", operand="binary16"),
        sn.ExactDotUnit("e6m9", operand="e5m2"),
    ],
    ids=lambda u: type(u).__name__ + " " + str(u.result),
)  # fmt: skip
def test_units(device, unit):
    x, w = (sn.quantize(values(*SHAPES["padded"][i]) / 8, f) for i, f in enumerate(unit.operand))
    dx, dw = device.to_device(x), device.to_device(w)
    same(sn.conv2d(dx, dw, unit, padding=1), sn.conv2d(x, w, unit, padding=1))


OPERAND = sn.CustomFormat.from_table([-2.0, -1.0, 0.5, 0.0, 1.0, 2.0, 4.0, 8.0], name="with zero at 3")
SCALAR = sn.kernels.scalar("e6m9")


@pytest.mark.parametrize(
    "unit",
    [
        sn.MadUnit("e6m9", operand=OPERAND),
        sn.MadUnit(sn.CustomFormat.from_table([i / 2 for i in range(-64, 64)], name="halves"), operand=OPERAND),
        sn.CustomMadUnit(
            lambda acc, a, b: SCALAR.add(acc, SCALAR.multiply(a, b)), accumulator="e6m9", operand="e5m2"
        ),
    ],
    ids=["values", "codes", "function"],
)  # fmt: skip
def test_units_of_ones_own(device, unit):
    """Also where the code of a padded zero is not 0."""
    x, w = (rng.choice([-2.0, -1.0, 0.5, 0.0, 1.0, 2.0], s).astype(np.float32) for s in ((2, 2, 3, 3), (2, 2, 2, 2)))
    got = sn.conv2d(device.to_device(x), device.to_device(w), unit, padding=1)
    same(got, sn.conv2d(x, w, unit, padding=1))


def test_arrays_of_codes(device):
    x, w = values(1, 2, 3, 3), values(2, 2, 2, 2)
    codes = [sn.Array(device.to_device(sn.encode(a, "e5m2")), "e5m2") for a in (x, w)]
    same(sn.conv2d(*codes, UNIT, padding=1), sn.conv2d(x, w, UNIT, padding=1))
    with pytest.raises(ValueError, match=r"conv2d: x is an Array of e4m3, but the unit's operand is e5m2"):
        sn.conv2d(sn.Array(codes[0].codes, "e4m3"), codes[1], UNIT)


@pytest.mark.parametrize("images", [0, 1])
def test_empty(device, images):
    x, w = np.ones((images, 2, 2, 2), np.float32), np.ones((3, 2, 1, 1), np.float32)
    dx, dw = device.to_device(x), device.to_device(w)
    same(sn.conv2d(dx, dw, UNIT), sn.conv2d(x, w, UNIT))
    dy = np.ones((images, 3, 2, 2), np.float32)
    want = sn.mac.products.conv2d_backward_weight(x, dy, UNIT, (1, 1))  # of no image, sums of nothing
    same(sn.mac.products.conv2d_backward_weight(dx, device.to_device(dy), UNIT, (1, 1)), want)


def test_refused(device):
    x, w = values(1, 2, 3, 3), values(2, 2, 2, 2)
    dx, dw = device.to_device(x), device.to_device(w)
    with pytest.raises(TypeError, match="conv2d: w lies on the host and x on the device; copy one of them"):
        sn.conv2d(dx, w, UNIT)
    with pytest.raises(TypeError, match="conv2d: w lies on the host"):
        sn.conv2d(dx, w.tolist(), UNIT)
    with pytest.raises(TypeError, match="conv2d: return_stats=True counts on the host"):
        sn.conv2d(dx, dw, UNIT, return_stats=True)
    with pytest.raises(ValueError, match="conv2d: threads=2 is for arrays of the host"):
        sn.conv2d(dx, dw, UNIT, threads=2)
    with pytest.raises(ValueError, match=r"conv2d: x has four dimensions, got shape \(2, 3, 3\)"):
        sn.conv2d(device.to_device(x[0]), dw, UNIT)
    with pytest.raises(ValueError, match=r"conv2d: w of shape .* takes 1 channels in each of 1 groups, x has 2"):
        sn.conv2d(dx, device.to_device(w[:, :1].copy()), UNIT)
    with pytest.raises(ValueError, match=r"conv2d: c of shape \(5,\) does not broadcast"):
        sn.conv2d(dx, dw, UNIT, device.to_device(np.zeros(5, np.float32)))
    with pytest.raises(TypeError, match=r"conv2d does not support units of block formats \(mxint8\)"):
        sn.conv2d(dx, dw, sn.BlockDotUnit("binary32", operand="mxint8"))
    with pytest.raises(TypeError, match="conv2d: x must be an array of float32 or float64, got int32"):
        sn.conv2d(device.to_device(x.astype(np.int32)), dw, UNIT)
    with pytest.raises(ValueError, match="conv2d_backward_data: dy of shape .* is no gradient"):
        sn.mac.products.conv2d_backward_data(dx, dw, UNIT, (3, 3))
    with pytest.raises(ValueError, match="x is filled up with zeros, and e8m0fnu has none"):
        sn.conv2d(dx, dw, sn.MadUnit("e6m9", operand=("e8m0fnu", "e5m2")), padding=1)
    x[0, 1, 2, 0] = 1.1
    with pytest.raises(ValueError, match=r"conv2d: x\[0, 1, 2, 0\] = .*1\.1.* is no value of e5m2"):
        sn.conv2d(device.to_device(x), dw, UNIT, padding=1)
    with pytest.raises(ValueError, match=r"conv2d_backward_weight: dy\[0, 1, 2, 0\] = .*1\.1.* is no value"):
        sn.mac.products.conv2d_backward_weight(dx, device.to_device(x), UNIT, (1, 1))


def test_quotients():
    """Division by multiplication, at the edges of its domain."""
    from softnum.kernels.device.products.conv import divisor

    top = 2**31 - 1
    for d in [1, 2, 3, 5, 7, 9, 49, 224, 2**16 + 1, 2**30 - 1, 2**30 + 1, top]:
        _, m, shift = divisor(d)
        assert m < 2**32
        edges = np.array([k * d + i for k in (0, 1, 2, top // d - 1, top // d) for i in (-1, 0, 1)], np.int64)
        n = np.concatenate([edges, rng.integers(0, top, 1000)])
        n = n[(n >= 0) & (n <= top)]
        np.testing.assert_array_equal(n * m >> shift, n // d)


LARGE = {
    "plain": ((16, 32, 33, 31), (64, 32, 3, 3), {"padding": 1}),
    "strided": ((5, 24, 57, 57), (48, 24, 5, 3), {"stride": 2, "padding": (2, 1)}),
    "groups": ((7, 36, 28, 30), (60, 12, 3, 3), {"groups": 3, "padding": (0, 2), "dilation": (2, 1)}),
    "depthwise": ((9, 40, 29, 29), (40, 1, 3, 3), {"groups": 40, "padding": 1, "stride": (1, 2)}),
    "pointwise": ((33, 65, 14, 14), (130, 65, 1, 1), {}),
    "deep": ((2, 512, 7, 7), (131, 512, 3, 3), {"padding": 1}),
}


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize(
    "unit",
    [
        UNIT,
        sn.MadUnit("e6m9", operand="e5m2", product="e5m2", chunk=64),
        sn.MadUnit("e6m9", operand="e5m2", rounding="sr", stochastic_bits=12),
        sn.MadUnit("bfloat16", operand="e5m2", rounding="toward_zero"),
        sn.unit("nvidia_h100_fp16"),
    ],
    ids=lambda u: f"{type(u).__name__} {u.result} {getattr(u, 'rounding', '')}",
)  # fmt: skip
def test_real_sizes(unit, name, kind, monkeypatch):
    from softnum.kernels.device.runtime._cuda import cuda

    monkeypatch.setitem(SHAPES, name, LARGE[name])
    function, arrays, told, options = given(kind, name)
    if unit.stochastic:
        options = {**options, "key": 17}
    want = function(*arrays, unit, *told, **options)
    for _ in range(2):
        same(function(*map(cuda.to_device, arrays), unit, *told, **options), want)
