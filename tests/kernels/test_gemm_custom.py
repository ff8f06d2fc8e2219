"""Products under units of the user's own functions, on the device: the bits of the same units on the host."""

import math
import operator
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

import softnum as sn
from softnum.kernels import scalar
from softnum.kernels.device.products import custom as gemm_custom
from softnum.kernels.device.products import scalar_functions
from softnum.kernels.device.products.scalar_functions import device_function, may_contract, methods_of, scalar_library
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime.source import core_text
from softnum.kernels.host.scalars import OPERANDS, handle_of
from softnum.mac.products.custom.steps import DefinitionCustom
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.devices import on_gpu
from tests.support.equality import check_product

e5m2, e6m9, q88 = scalar("e5m2"), scalar("e6m9"), scalar("q8.8", overflow="saturate")
down, wide = scalar("e5m10", rounding="down"), scalar("e8m20")
noisy = scalar("e6m9", rounding="stochastic", stochastic_bits=12)
fp4 = scalar("e2m1fn", carrier="codes")
LOG4 = sn.CustomFormat.from_table(
    [0.0, 0.125, 0.25, 0.5, 1, 2, 4, 8, -16, -0.125, -0.25, -0.5, -1, -2, -4, -8], name="log4"
)
log4 = scalar(LOG4)


def two_roundings(acc, a, b):
    return e6m9.add(acc, e5m2.multiply(a, b))


def half(x):
    return x * np.float32(0.5)


def product(a, b):
    return e5m2.multiply(half(a), b)


def branches(acc, a, b):
    p = e6m9.fma(a, b, acc)
    if abs(p) > np.float32(64):
        return e6m9.round(half(p))
    return e6m9.subtract(p, e6m9.divide(b, np.float32(4))) if a < b else p


def noisy_step(acc, a, b, word):
    return noisy.fma(a, b, acc, word)


def truncated(a, b):
    """A product of codes without their last bit."""
    return fp4.multiply(a, b) & 14


def of_logarithms(acc, a, b):
    return log4.add(acc, log4.multiply(a, b))


def of_fixed_point(acc, a, b):
    return q88.add(acc, q88.multiply(a, b))


def directed(acc, a, b):
    return down.add(acc, down.sqrt(down.multiply(abs(a), abs(b))))


def in_float64(acc, a, b):
    return np.float64(wide64.fma(a, b, acc))


wide64 = scalar("e8m20", carrier="float64")


def clamped(acc, a, b):
    """min and max of NaNs and of zeros of two signs, as Python has them."""
    return max(min(e6m9.fma(a, b, acc), np.float32(16)), np.float32(-0.0))


UNITS = {
    "two roundings": (two_roundings, {"operand": "e5m2", "accumulator": "e6m9"}),
    "lanes": (two_roundings, {"operand": "e5m2", "accumulator": "e6m9", "lanes": 3, "reduction": "tree", "chunk": 7}),
    "product": (product, {"operand": "e5m2", "accumulator": "e6m9", "rounding": "rtz", "chunk": 4}),
    "branches": (branches, {"operand": "e5m2", "accumulator": "e6m9"}),
    "words": (noisy_step, {"operand": "e5m2", "accumulator": "e6m9", "lanes": 2}),
    "choices": (clamped, {"operand": "e5m2", "accumulator": "e6m9"}),
    "codes": (truncated, {"operand": "e2m1fn", "accumulator": "e2m1fn", "carrier": "codes"}),
    "custom format": (of_logarithms, {"operand": LOG4, "chunk": 3}),
    "fixed point": (of_fixed_point, {"operand": "q4.4", "accumulator": "q8.8"}),
    "a mode": (directed, {"operand": "e4m3", "accumulator": "e5m10"}),
    "float64": (in_float64, {"operand": ("e5m2", "binary32"), "accumulator": "e8m20", "carrier": "float64"}),
}


def operands(unit, m, k, n, seed=2):
    rng = np.random.default_rng(seed)
    found = []
    for fmt, shape in zip((*unit.operand, unit.c_format), ((m, k), (k, n), (m, n)), strict=True):
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(-2, 3, shape)
        x[rng.integers(0, 9, shape) == 0] = -0.0
        found.append(sn.quantize(x.astype(np.float32), fmt))
    return found


def by_definition(unit, a, b, c=None, key=None):
    """The product by the function as it is in Python."""
    given = zip((a, b, c), (*unit.operand, unit.accumulator), strict=True)
    codes = [None if x is None else sn.array(x, fmt).codes.astype(np.uint64) for x, fmt in given]
    out = np.empty((a.shape[0], b.shape[1]), np.uint64)
    keys = (*_core.philox_key(*key, 1), 0, 0) if unit.stochastic else (0, 0, 0, 0)
    DefinitionCustom(unit, unit.operand).run(*codes, out, None, keys, 0, 0, out.shape[0], 0, out.shape[1])
    return sn.decode(out.astype(unit.accumulator.storage_dtype), unit.accumulator, np.float32)


def check(device, unit, a, b, c=None, definition=False, **options):
    want = by_definition(unit, a, b, c, **options) if definition else None
    check_product(device, unit, a, b, c, want=want, **options)


@pytest.fixture
def untried(monkeypatch):
    """Units go without the trial, and without their compilation for the host, both of which take seconds here."""
    if _cuda.SIMULATOR:
        monkeypatch.setattr(gemm_custom, "try_out", lambda unit, run: None)
        monkeypatch.setattr(gemm_custom.gateway, "custom_engine", lambda unit: unit)


@pytest.mark.parametrize("name", UNITS)
def test_units(device, name, untried):
    function, options = UNITS[name]
    unit = sn.CustomMadUnit(function, **options)
    a, b, c = operands(unit, 3, 11, 4)
    if unit.accumulator.has_nan and not unit.on_codes:
        a[1, 2], b[3, 1] = np.nan, np.inf if unit.operand[1].infinities else 1
    key = {"key": (5, 6)} if unit.stochastic else {}
    check(device, unit, a, b, definition=True, **key)
    check(device, unit, a, b, c, definition=True, **key)


def test_the_papers_example(device, untried):
    """``new_fp4 mad(new_fp4, new_fp4)``, in C: four products of four codes of four bits, summed in four lanes."""
    source = """
    typedef struct { unsigned char sign : 1; unsigned char exponent : 3; } new_fp;
    new_fp4 mad(new_fp4 a, new_fp4 b) {
        new_fp4 p;
        for (int i = 0; i < 4; i++) {
            int e = a.s[i].exponent + b.s[i].exponent - 4;
            p.s[i].sign = a.s[i].sign ^ b.s[i].sign;
            p.s[i].exponent = a.s[i].exponent && b.s[i].exponent ? (e < 1 ? 1 : e > 7 ? 7 : e) : 0;
        }
        return p;
    }
    """
    values = [0.0, *(2.0 ** (i - 4) for i in range(1, 8))]
    fmt = sn.CustomFormat.from_table([*values, float("nan"), *(-v for v in values[1:])], name="new_fp")
    unit = sn.CustomMadUnit.from_c(source, operand=fmt, accumulator=fmt)
    assert unit.lanes == 4
    a, b, c = operands(unit, 3, 10, 4)
    check(device, unit, a, b, definition=True)
    check(device, unit, a, b, c, definition=True)


def test_batches_and_strides(device):
    """The whole way: compiled for the host too, and both compared on a sample before the first product."""
    unit = sn.CustomMadUnit(noisy_step, operand="e5m2", accumulator="e6m9", lanes=2)
    rng = np.random.default_rng(3)
    a, b = (sn.quantize(rng.standard_normal(s).astype(np.float32), "e5m2") for s in ((2, 3, 5), (5, 2)))
    check(device, unit, a, b, key=7)
    got = sn.matmul(device.to_device(np.ascontiguousarray(a[0].T)).T, device.to_device(b), unit, key=7)
    assert np.array_equal(got.copy_to_host(), sn.matmul(a[0], b, unit, key=7))
    words = rng.integers(0, 2**32, (3, 2, 5, 2), dtype=np.uint32)
    check(device, unit, a[0], b, random_bits=words)


# ---- what is refused -------------------------------------------------------------------------------------------------


def unrounded(acc, a, b):
    return np.float32(0.3) * a * b if a > acc else acc  # no sum of a product: a GPU's compiler would contract it


def raising(a, b):
    if a > 14:
        raise ValueError("too large")
    return a | b


def dividing(a, b):
    return a // (b + 1)


def exponential(a, b):
    return e6m9.round(np.float32(math.exp(-abs(a))) * b)


def power(a, b):
    return e6m9.round(a ** np.float32(0.5))


def halving(a, b):
    return (a + b) // 2 & 15


def test_results_that_are_no_values(device, untried):
    a = np.float32([[1, 1.25]])
    unit = sn.CustomMadUnit(unrounded, operand="e5m2", accumulator="e6m9")
    with pytest.raises(ValueError, match=r"unrounded .*a result is no value of e6m9"):
        sn.matmul(device.to_device(a), device.to_device(a).T, unit)
    unit = sn.CustomMadUnit(two_nans, operand="e5m2", accumulator="q8.8")
    check(device, unit, a, a.T, definition=True)
    a[0, 0] = np.inf
    with pytest.raises(ValueError, match=r"two_nans .*a result is no value of q8\.8, or a NaN that it lacks"):
        sn.matmul(device.to_device(a), device.to_device(a).T, unit)


def two_nans(a, b):
    return a * b


def test_what_kernels_cannot_do(device, untried):
    a = device.to_device(np.ones((2, 2), np.float32))
    for function, said in (
        (raising, "raises exceptions"), (dividing, "divides codes"), (exponential, "calls exp"),
        (power, "takes powers"),
    ):  # fmt: skip
        options = {"operand": "uq4.0", "carrier": "codes"} if function in (raising, dividing) else {"operand": "e6m9"}
        unit = sn.CustomMadUnit(function, **options)
        with pytest.raises(TypeError, match=rf"{function.__name__} \(.*\) {said}.*copy the CUDA arrays"):
            sn.matmul(a, a, unit)
    unit = sn.CustomMadUnit(halving, operand="uq4.0", carrier="codes")  # by a constant
    check(device, unit, *operands(unit, 2, 5, 3)[:2], definition=True)
    unit = sn.CustomMadUnit.from_c("float mad(float a, float b) { return a * b; }", operand="e5m2", accumulator="e6m9")
    with pytest.raises(TypeError, match=r"mad \(.*\) takes \(a, b\), float32; kernels look up functions in C"):
        sn.matmul(a, a, unit)


def test_a_unit_that_differs_on_the_device_is_refused(device, monkeypatch):
    """The trial finds it, whatever the reason."""
    real = scalar_functions.scalar_library

    def planted(which, names):
        library = real(which, names)
        entries = tuple(replace(e, body=e.body.replace(", word)", ", ~word)")) for e in library.entries)
        return replace(library, entries=entries)

    monkeypatch.setattr(scalar_functions, "methods_of", lambda which, names: _cuda.bind(planted(which, names)))
    unit = sn.CustomMadUnit(noisy_step, operand="e5m2", accumulator="e6m9", name="planted")
    with pytest.raises(ValueError, match="planted .* is not the same compiled and in Python"):
        gemm_custom.CustomEngine(unit).try_once()


# ---- the operations themselves ---------------------------------------------------------------------------------------

EDGES32 = np.array(
    [0.0, -0.0, 1.0, -1.5, 2.0**-149, -(2.0**-126), 3.4028235e38, np.inf, -np.inf, np.nan, 57344, 61440, 61439.99,
     65536, 2.0**-16, 1.5 * 2.0**-17, 2.0**-24, 2.0**-25, 0.1, 127.998, 128, -128.002, 1 + 2.0**-10,
     1 + 2.0**-9 + 2.0**-23],
    np.float32,
)  # fmt: skip

SCALARS = {
    "e5m2": {},
    "e6m9": {"rounding": "toward_zero"},
    "e5m10": {"rounding": "down"},
    "e4m3fn": {"rounding": "up", "overflow": "saturate"},
    "e8m7": {"rounding": "to_odd"},
    "e2m1fn": {"rounding": "nearest_away"},
    "q8.8": {"rounding": "nearest_even"},
    "uq4.4": {"rounding": "stochastic", "stochastic_bits": 7},
    "e5m3": {"rounding": "stochastic", "stochastic_bits": 16},
    "binary32": {"rounding": "away_from_zero"},
    "e8m20": {"carrier": "float64"},
    "binary16": {"carrier": "float64", "rounding": "stochastic_floor", "stochastic_bits": 5},
}


@cases("name", SCALARS)
def test_operations(name):
    """Each operation of a Scalar, in C, against the core, over edges and random operands; words that differ."""
    if not _cuda.SIMULATOR:
        pytest.skip("the simulator's way")
    s = scalar(name, **SCALARS[name])
    rng = np.random.default_rng(4)
    kind = np.float64 if s.carrier == "float64" else np.float32
    near = rng.standard_normal(150) * 2.0 ** rng.integers(-18, 18, 150)
    values = sn.quantize(near.astype(np.float32), name)
    numbers = np.concatenate([x.astype(kind) for x in (EDGES32, near, values)])
    names = ("round", "add", "subtract", "multiply", "divide", "fma", "sqrt")
    methods = methods_of(s, names)
    for method in names:
        operands = {"round": 1, "sqrt": 1, "fma": 3}.get(method, 2)
        given = [rng.permutation(np.resize(numbers, 700)) for _ in range(operands)]
        if operands == 2:
            pairs = np.array(np.meshgrid(EDGES32, EDGES32)).reshape(2, -1).astype(kind)
            given = [np.concatenate([x, y]) for x, y in zip(given, pairs, strict=True)]
        words = rng.integers(0, 2**32, len(given[0]), dtype=np.uint32)
        bits = np.array([x.view(f"u{x.itemsize}") for x in given], np.uint64)
        codes, flags = _core.define(OPERANDS[method][0], handle_of(s, method), bits, words)
        want = sn.decode(codes.astype(s.format.storage_dtype), s.format, kind)
        want[(flags & _core.NO_CODE) != 0] = np.nan
        taken = [*given, words] if s.stochastic else given
        got = np.array([getattr(methods, method)(*arguments) for arguments in zip(*taken, strict=True)], kind)
        wrong = (got.view(f"u{got.itemsize}") != want.view(f"u{got.itemsize}")) & ~(np.isnan(got) & np.isnan(want))
        assert not wrong.any(), [(method, *(x[i] for x in taken), got[i], want[i]) for i in np.flatnonzero(wrong)[:3]]


def test_a_sum_that_has_no_code(device, untried):
    """An addition of the format's own that fails for two codes: where they meet, and only there."""

    def add(x, y):
        if x == y == 3:
            raise ValueError("too large")
        return (x + y) & 3

    two = sn.CustomFormat(2, as_float=lambda code: float(code), ops={"add": add}, name="two")
    unit = sn.CustomMadUnit(lambda a, b: a, operand=two, carrier="codes")
    a = np.float32([[3, 1], [1, 1]])
    check(device, unit, a, a, definition=True)
    a[0, 1] = 3
    with pytest.raises(ValueError, match="a result is no value of two"):
        sn.matmul(device.to_device(a), device.to_device(a), unit)


def test_products_and_sums_that_may_be_contracted():
    assert may_contract(lambda acc, a, b: acc + a * b)
    assert may_contract(lambda a, b: half(a) + b) and not may_contract(unrounded)
    assert not may_contract(two_roundings) and not may_contract(product) and not may_contract(branches)


def test_operators_that_do_not_look_like_them():
    """Products and sums by functions of Python's are contracted as its operators are, and powers are the library's."""

    helpers = ModuleType("helpers")
    helpers.half = half

    def by_functions(acc, a, b):
        return operator.add(acc, operator.mul(a, b))

    def by_builtin(a, b):
        return pow(a, b)

    def by_other_name(a, b):
        functions = math
        return functions.exp(a)

    for function, message in (
        (by_functions, "calls add: write operators themselves"), (by_builtin, "calls pow: write operators"),
        (by_other_name, "hands the module math on"),
        (lambda a, b: helpers.half(a), "import the function by its own name"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=message):
            device_function(function, "mine", False)
    assert may_contract(lambda acc, a, b: sum((acc, a * b)))
    for one in (lambda a, b: (a * b) // 0.75, lambda a, b: a % (b * b), lambda a, b: divmod(a * b, 0.75)[0]):
        assert may_contract(one)


def test_short_bodies_are_taken():
    """Where the proof of csrc/softnum/device/scalar.h holds, and only there."""
    short = {
        (name, method): "sn_settled" in next(e for e in scalar_library(scalar(name, **options), (method,)).entries).body
        for name, options in SCALARS.items()
        for method in ("round", "add", "multiply", "fma", "divide")
    }
    assert all(
        short[name, m] for name in ("e5m2", "e6m9", "q8.8", "e5m3", "binary32") for m in ("add", "multiply", "fma")
    )
    assert not short["e5m10", "add"] and short["e5m10", "multiply"]  # down: the sign of an exact zero
    assert not short["e8m20", "multiply"] and short["e8m20", "add"] and not short["e5m2", "divide"]


def test_header_alone():
    assert "sn_settled32" in core_text("softnum/device/scalar.h")


@on_gpu
def test_real_sizes(device):
    for name in ("two roundings", "branches", "words", "codes", "lanes"):
        function, options = UNITS[name]
        unit = sn.CustomMadUnit(function, **options)
        check(device, unit, *operands(unit, 257, 130, 193), **({"key": 3} if unit.stochastic else {}))
