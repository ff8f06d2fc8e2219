"""Operations on codes in CUDA arrays: the codes and flags of the CPU, from kernels."""

import operator

import numpy as np
import pytest

import softnum as sn
from softnum.arrays.environment import environment
from softnum.kernels import launches
from softnum.kernels.device.elementwise.operations import short_computation
from softnum.kernels.device.runtime.strides import transposed
from softnum.ops import OPERATIONS
from softnum.runtime import _core
from softnum.runtime.gateway import NoKernel

THIRDS = sn.CustomFormat.from_table([0.0, 1 / 3, 1.0, 3.0, -1.0, -3.0, float("nan"), 9.0], name="thirds")
NO_NAN = sn.CustomFormat.from_table([0.0, 1.0, -1.0, 4.0], name="no_nan")


def codes(fmt, n, seed=1):
    """Codes with the special ones among them."""
    fmt = sn.format(fmt)
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 2**64, n, dtype=np.uint64) >> np.uint64(64 - fmt.bits)
    edges = np.unique(np.array([0, 1, (1 << fmt.bits) - 1, 1 << (fmt.bits - 1), (1 << (fmt.bits - 1)) - 1], np.uint64))
    specials = [float("nan"), float("inf"), float("-inf")] if fmt.kind == "float" and fmt.infinities else []
    edges = [*edges, *sn.encode(specials, fmt).astype(np.uint64)] if specials else edges
    found[: len(edges)] = rng.permutation(edges)[:n]
    return rng.permutation(found).astype(fmt.storage_dtype)


def same(got, want):
    """The same codes, and flags if there are any."""
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
        return
    got = got.copy_to_host()
    assert got.dtype == want.dtype and got.shape == want.shape
    wrong = np.argwhere(got != want)
    assert not len(wrong), [(tuple(i), hex(got[tuple(i)]), hex(want[tuple(i)])) for i in wrong[:5]]


def both(device, function, operands, *arguments, **options):
    """Compare a function of arrays on the device with the same on the host; one kernel computes."""
    before = launches()
    got = function(*(device.to_device(x) for x in operands), *arguments, **options)
    assert launches() == before + 1
    same(got, function(*operands, *arguments, **options))


ELABORATE = (("rsqrt", "binary64"), ("hypot", "binary16"), ("fma", "q4.4"), ("subtract", "binary64"))
# by tables, and by the definition; the elementary functions have one way through it
TRIED = [
    (name, fmt)
    for name in OPERATIONS
    for fmt in ("binary16", "e4m3fn", "q4.4", "binary64")
    if name not in ("scalb", "compare", "total_order", "classify")
    and (
        fmt == "e4m3fn" or name not in _core.ELEMENTARY or (name, fmt) in (("rsqrt", "binary64"), ("hypot", "binary16"))
    )
]


@pytest.mark.parametrize(("name", "fmt"), TRIED)
def test_every_operation(device, name, fmt):
    function, count = OPERATIONS[name]
    operands = [codes(fmt, 23, i) for i in range(count)]
    options = {} if sn.format(fmt).has_nan else {"invalid": 1.0}
    formats = (fmt, fmt) if name == "convert" else (fmt,)
    both(device, function, operands, *formats, return_flags=True, **options)


@pytest.mark.parametrize("rounding", ["up", "to_odd", "sr"])
@pytest.mark.parametrize(("name", "formats", "out"), [
    ("add", ("e5m2", "e4m3fn"), "e6m9"), ("fma", ("bfloat16", "e5m2", "binary32"), "binary16"),
    ("divide", ("q4.4", "binary16"), "dlfloat16"), ("sqrt", ("e11m20",), "bfloat16"), ("exp", ("e5m2",), "binary16"),
    ("convert", ("binary32",), "e2m1fn"),
])  # fmt: skip
def test_modes_and_formats(device, name, formats, out, rounding):
    function, _ = OPERATIONS[name]
    operands = [codes(f, 19, i) for i, f in enumerate(formats)]
    options = {"rounding": rounding, "key": (5, 2**40), "stochastic_bits": 7, "return_flags": True, "invalid": 1.0}
    if name == "convert":
        both(device, function, operands, *formats, out, **options)
    else:
        both(device, function, operands, formats, out_fmt=out, **options)


SHORT = [
    ("add", ("binary16", "binary16"), "binary16", "float32"), ("subtract", ("bfloat16",) * 2, "bfloat16", "float32"),
    ("multiply", ("e6m9", "e6m9"), "e6m9", "float32"), ("fma", ("bfloat16", "bfloat16", "tf32"), "tf32", "float32"),
    ("convert", ("binary32",), "e5m2", "float32"), ("divide", ("binary32", "binary32"), "binary16", "float32"),
    ("sqrt", ("tf32",), "binary32", "float32"), ("add", ("q8.8", "q8.8"), "q8.8", "float32"),
    ("add", ("binary32", "binary32"), "binary32", "float64"), ("multiply", ("tf32", "binary32"), "bfloat16", "float64"),
    ("fma", ("binary16", "binary16", "q16.16"), "binary32", "float64"),
    ("subtract", ("q20.12",) * 2, "q20.12", "float64"),
    ("convert", ("e11m40",), "e6m9", "float64"), ("fma", ("binary32",) * 3, "binary32", "float64"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "formats", "out", "carrier"), SHORT)
def test_in_the_machines_floats(device, name, formats, out, carrier):
    """Results without flags, in the domain of each carrier."""
    from softnum.kernels.device.runtime import _cuda

    given, out = tuple(map(sn.format, formats)), sn.format(out)
    rng = np.random.default_rng(3)
    for rounding, r in (("nearest_even", 32), ("down", 32), ("sr", 5)):
        env = environment(out, rounding, None, r)
        kinds = tuple(f.storage_dtype.name for f in given)
        computation = short_computation(name, given, out, env, kinds, (True,) * len(given))
        if computation is None:  # the domain: enough bits for r, and the zero of x - x
            assert rounding == "sr" or (rounding == "down" and carrier == "float64")
            continue
        assert rounding == "sr" or f"sn_pattern_of_code{carrier[-2:]}" in computation.body
        operands = [codes(f, 60 if _cuda.SIMULATOR else 1 << 18, i) for i, f in enumerate(given)]
        for i, f in enumerate(given[1:], 1):  # near each other, and near cancelling
            close = operands[0][:20].astype(np.uint64) + rng.integers(-3, 4, 20).astype(np.uint64)
            if f == given[0]:
                operands[i][:20] = (close & np.uint64((1 << f.bits) - 1)).astype(f.storage_dtype)
        options = {"rounding": rounding, "stochastic_bits": r, "key": 3}
        if name == "convert":
            both(device, sn.convert, operands, given[0], out, **options)
        else:
            both(device, OPERATIONS[name][0], operands, given, out_fmt=out, **options)


def test_environments(device):
    a, b = codes("binary16", 40), codes("binary16", 40, 2)
    for options in (
        {"tininess": "before"}, {"flush_inputs": True}, {"flush_results": "before"}, {"flush_results": "after"},
        {"nan": "x86"}, {"nan": "arm"}, {"overflow": "saturate"}, {"overflow": "saturate_finite"},
    ):  # fmt: skip
        both(device, sn.multiply, (a, b), "binary16", return_flags=True, **options)
    both(device, sn.add, (codes("q4.4", 9), codes("q4.4", 9, 2)), "q4.4", overflow="wrap", return_flags=True)
    of_p3109 = codes("binary8p3ue", 40), codes("binary8p3ue", 40, 2)
    both(device, sn.subtract, of_p3109, "binary8p3ue", overflow="p3109_v3_2_1")
    both(device, sn.multiply, of_p3109, "binary8p3ue", rounding="to_odd", overflow="p3109_v3_2_1")


def test_comparisons(device):
    a, b = codes("e4m3fn", 60), codes("e4m3fn", 60, 2)
    for signaling in (False, True):
        both(device, sn.compare, (a, b), "e4m3fn", signaling=signaling, return_flags=True)
    both(device, sn.compare, (codes("binary16", 30), codes("q8.8", 30)), ("binary16", "q8.8"))
    both(device, sn.ops.total_order, (a, b), "e4m3fn")
    both(device, sn.ops.total_order, (codes("binary32", 30), codes("binary32", 30, 2)), "binary32")
    both(device, sn.classify, (a,), "e4m3fn")
    both(device, sn.classify, (codes("binary32", 30),), "binary32")
    nan = np.uint16([0x7D00, 0x7E00, 0x3C00])
    both(device, sn.compare, (nan, nan), "binary16", signaling=True, return_flags=True)


EIGHT = sn.CustomFormat.from_table([-0.0, 3.0, 1.0, -2.5, float("nan"), 4.0, 8.0, -8.0], name="eight")


@pytest.mark.parametrize(
    "fmt", ["e5m2", "e4m3fnuz", "binary8p3se", "binary8p3ue", "e8m0fnu", "binary32", "uq4.4", EIGHT]
)
def test_where_something_holds(device, fmt):
    """NumPy's comparisons and predicates, as operators too: arrays of bool."""
    a, b = codes(fmt, 60), codes(fmt, 60, 2)
    b[:20] = a[:20]
    host = sn.Array(a, fmt), sn.Array(b, fmt)
    given = tuple(sn.Array(device.to_device(x), fmt) for x in (a, b))
    for function in (
        np.less, np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal, np.isnan, np.isinf, np.isfinite,
        np.signbit, operator.lt, operator.ge,
    ):  # fmt: skip
        count = getattr(function, "nin", 2)
        want = function(*host[:count])
        assert want.dtype == bool
        same(function(*given[:count]), want)
    if fmt is not EIGHT:
        same(given[0] <= 1, host[0] <= 1)
        same(sn.array(1.0, fmt) <= given[0].reshape(4, 15), (1 <= host[0]).reshape(4, 15))
        same(
            given[0] == sn.Array(device.to_device(codes("q4.4", 60)), "q4.4"),
            host[0] == sn.Array(codes("q4.4", 60), "q4.4"),
        )


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint32])
def test_scalb(device, kind):
    a = codes("binary16", 12)
    n = np.array([0, 1, 5, 3, 20, 100, 127, 7, 2, 12, 60, 30]).astype(kind)
    if kind != np.uint32:
        n[3::2] = -n[3::2]
    if kind == np.int64:
        n[:2] = 2**40, -(2**40)
    both(device, sn.ops.scalb, (a, n), "binary16", return_flags=True)
    same(sn.ops.scalb(device.to_device(a), -3, "binary16"), sn.ops.scalb(a, -3, "binary16"))


def test_to_integer(device):
    values = np.float32([2.5, -0.75, 100, -3, 0, 7])
    for dtype, options in ((np.int32, {}), ("int8", {"invalid": "riscv", "return_flags": True}), (np.int64, {})):
        got = sn.ops.to_integer(device.to_device(sn.encode(values, "binary16")), "binary16", dtype, **options)
        want = sn.ops.to_integer(sn.encode(values, "binary16"), "binary16", dtype, **options)
        for x, y in zip(got, want, strict=True) if options else ((got, want),):
            assert x.dtype == y.dtype
            assert np.array_equal(x.copy_to_host(), y)
    with pytest.raises(ValueError, match="1 of 6 values are NaN, infinite or out of range of uint8"):
        sn.ops.to_integer(device.to_device(sn.encode(np.abs(values) * 4, "binary16")), "binary16", "uint8")
    with pytest.raises(TypeError, match="exact=False is supported on the host only; copy the CUDA arrays there first"):
        sn.ops.to_integer(device.to_device(np.uint16([1])), "binary16", exact=False, return_flags=True)


def test_shapes(device):
    """Broadcasting, strides, elements that stand for all, and nothing at all."""
    a, b = codes("binary16", 24).reshape(2, 3, 4), codes("binary16", 3, 2).reshape(3, 1)
    d = device.to_device(a)
    same(sn.add(d, device.to_device(b), "binary16"), sn.add(a, b, "binary16"))
    one = np.uint16([0x3C00])
    both(device, sn.multiply, (a, one), "binary16", rounding="sr", key=3)
    same(sn.negate(transposed(d, (2, 0, 1)), "binary16"), sn.negate(a.transpose((2, 0, 1)), "binary16"))
    options = {"rounding": "sr", "key": 8, "stochastic_bits": 5}
    same(sn.fma(d[:, ::2], d[:, ::2], d[:1, ::2], "binary16", **options),
         sn.fma(a[:, ::2], a[:, ::2], a[:1, ::2], "binary16", **options))  # fmt: skip
    words = np.random.default_rng(0).integers(0, 2**32, (3, 4), dtype=np.uint32)
    same(sn.add(d, d, "binary16", rounding="sr", random_bits=device.to_device(words)),
         sn.add(a, a, "binary16", rounding="sr", random_bits=words))  # fmt: skip
    empty = device.to_device(np.zeros((0, 3), np.uint16))
    assert sn.add(empty, empty, "binary16").shape == (0, 3)


def test_arrays(device):
    """sn.Array of device codes: its operators, numbers beside it, and functions."""
    a, b = sn.Array(codes("e5m2", 30), "e5m2"), sn.Array(codes("e5m2", 30, 4), "e5m2")
    x, y = (sn.Array(device.to_device(v.codes), "e5m2") for v in (a, b))
    for got, want in (
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (-x, -a), (abs(x), abs(a)),
        (2 * x, 2 * a), (x - 1.5, a - 1.5), (x**2, a**2), (x.astype("e4m3fn"), a.astype("e4m3fn")),
        (sn.exp(x), sn.exp(a)), (sn.fma(x, y, x), sn.fma(a, b, a)), (np.sqrt(x), np.sqrt(a)),
    ):  # fmt: skip
        assert isinstance(got, sn.Array) and got.format == want.format
        same(got.codes, want.codes)
    kept = x.codes
    x += y
    a += b
    assert x.codes is kept
    same(x.codes, a.codes)
    same(sn.compare(x, y), sn.compare(a, b))
    made = sn.array(device.to_device(np.float32([1.1, 2.7])), "e5m2")
    same(made.codes, sn.encode(np.float32([1.1, 2.7]), "e5m2"))


def test_custom_formats(device):
    a, b = codes(THIRDS, 40), codes(THIRDS, 40, 2)
    for name in ("add", "multiply", "divide", "minimum"):
        both(device, OPERATIONS[name][0], (a, b), THIRDS)
    both(device, sn.negate, (a,), THIRDS)
    both(device, sn.add, (a, b), THIRDS, rounding="up")
    both(device, sn.add, (a, b), THIRDS, out_fmt="binary16", return_flags=True)
    both(device, sn.compare, (a, b), THIRDS)
    both(device, sn.ops.total_order, (a, b), THIRDS)
    both(device, sn.classify, (a,), THIRDS)
    both(device, sn.convert, (codes("e5m2", 40),), "e5m2", THIRDS)
    zeros = np.uint8([1, 0])
    both(device, sn.divide, (zeros, np.uint8([0, 1])), NO_NAN, invalid=4.0)
    with pytest.raises(ValueError, match="no_nan has no code for it"):
        sn.divide(device.to_device(np.uint8([0])), device.to_device(np.uint8([0])), NO_NAN)
    with pytest.raises(NoKernel, match="no kernel computes with thirds"):
        d = device.to_device(a)
        sn.fma(d, d, d, THIRDS)
    with pytest.raises(ValueError, match="return_flags= is not defined for thirds"):
        sn.add(device.to_device(a), device.to_device(b), THIRDS, return_flags=True)


def test_no_code(device):
    d = device.to_device(np.uint8([0, 16]))
    with pytest.raises(ValueError, match=r"q4\.4 has no code for it"):
        sn.divide(d, d, "q4.4")
    wide = device.to_device(np.uint32([0]))
    with pytest.raises(ValueError, match=r"q16\.16 has no code for it"):
        sn.divide(wide, wide, "q16.16")
    for out in ("e2m1fn", "q16.0"):  # by a table, and by the definition
        with pytest.raises(ValueError, match="codes of operand 1: one is no code of e2m1fn, which has 4 bits"):
            sn.add(d, d, ("e4m3fn", "e2m1fn"), out_fmt=out)


def test_refused(device):
    d = device.to_device(np.uint8([1]))
    with pytest.raises(ValueError, match="give fmt"):
        sn.add(d, d)
    with pytest.raises(TypeError, match="unsigned integers, got a CUDA array of float32"):
        sn.negate(device.to_device(np.float32([1])), "e5m2")
    with pytest.raises(TypeError, match="lies on the host"):
        sn.add(d, np.uint8([1]), "e5m2")
    with pytest.raises(ValueError, match="key=seed"):
        sn.add(d, d, "e5m2", rounding="sr")
    with pytest.raises(TypeError, match="n must be integers"):
        sn.ops.scalb(d, 1.5, "e5m2")


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["add", "multiply", "divide", "fma", "sqrt", "exp", "pow", "minimum", "convert"])
def test_sizes_of_a_gpu(name):
    """A million ragged elements in every kind of format: on a GPU alone."""
    from softnum.kernels.device.runtime import _cuda

    function, count = OPERATIONS[name]
    for fmt in ("e5m2", "e4m3fn", "binary16", "bfloat16", "binary32", "q8.8"):
        if name in _core.ELEMENTARY and sn.format(fmt).bits * count > 16:
            continue
        operands = [codes(fmt, 1_000_003, i) for i in range(count)]
        options = {"return_flags": True, "invalid": 0.0, "rounding": "sr", "key": 3}
        if name in _core.ELEMENTARY:
            options["rounding"] = "down"
        formats = (fmt, "e6m9") if name == "convert" else (fmt,)
        both(_cuda.cuda, function, operands, *formats, **options)
