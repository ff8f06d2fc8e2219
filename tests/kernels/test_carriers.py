"""Operations on carriers: the CPU's bits by the machine, by rounding to odd, by the definition; and which is taken.

The functions are called here as threads call them; on a GPU they run in tests/train/test_train_cuda_backend.py."""

import numpy as np
import pytest

import softnum as sn
from softnum.arrays.conversion import invalid_code
from softnum.arrays.environment import environment
from softnum.formats.modes import rounding_name
from tests.support.cases import cases

MODES = [
    "nearest_even", "nearest_away", "nearest_zero", "nearest_up", "nearest_down", "toward_zero", "away_from_zero", "up",
    "down", "to_odd", "stochastic", "stochastic_floor",
]  # fmt: skip
FORMATS = ["e5m2", "e4m3fn", "e4m3fnuz", "e6m9", "bfloat16", "binary16", "q4.4", "uq0.8", "q7.-2", "uq-2.9", "e2m1fn"]


def numbers(dtype, count, seed):
    """Numbers of all magnitudes, among them special ones, sums that cancel, and neighbours of halves."""
    rng = np.random.default_rng(seed)
    kind = np.uint32 if dtype == np.float32 else np.uint64
    x = rng.integers(0, np.iinfo(kind).max, count, dtype=kind, endpoint=True).view(dtype)
    x[: count // 2] = rng.standard_normal(count // 2) * 2.0 ** rng.integers(-8, 8, count // 2)
    x[: count // 4] = np.rint(x[: count // 4] * 16) / 16
    special = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-45, -1e-45, 3.4e38, 1.17549435e-38]).astype(dtype)
    pairs = np.array(np.meshgrid(special, special, special)).reshape(3, -1)
    return np.concatenate([x, pairs[seed % 3]])


def computed(operation, operands, formats, out_fmt, env, words, to):
    """The computation on arrays of carriers, called as a kernel's threads call it: (bits, what was met, its header)."""
    from softnum.kernels.device.elementwise.carriers import operation_computation
    from softnum.kernels.device.elementwise.computations import FROM_ARRAY
    from softnum.kernels.device.runtime import _cuda

    computation = operation_computation(operation, formats, out_fmt, env, operands[0].dtype.name, to)
    group = _cuda.bind(computation.library(FROM_ARRAY, (False,) * len(operands), False)).run
    size = operands[0].size
    out, none = np.full(size, -1).astype(f"u{np.dtype(to).itemsize}"), np.zeros(4, np.uint8)
    pointers = [x.ctypes.data for x in (*operands, *[none] * (3 - len(operands)), out, none, words, none, none, none)]
    met = 0
    for at in range(0, size, 4):
        met |= int(group(*pointers, at, min(4, size - at), 0, 0))
    return out, met, computation.header


def check(operation, formats, out, rounding, dtype=np.float32, header=None, overflow=None, count=600, to=None, bits=11):
    formats, out_fmt = tuple(map(sn.format, formats)), sn.format(out)
    operands = [numbers(dtype, count, seed) for seed in range(len(formats))]
    codes = []
    for i, fmt in enumerate(formats):
        if not fmt.has_nan:
            operands[i] = np.nan_to_num(operands[i], posinf=3, neginf=-3)
        codes.append(sn.encode(operands[i], fmt))
        operands[i] = sn.decode(codes[i], fmt, dtype)
    words = np.random.default_rng(9).integers(0, 2**32, operands[0].size, dtype=np.uint32)
    options = {"rounding": rounding, "overflow": overflow, "stochastic_bits": bits}
    random = {"random_bits": words} if rounding.startswith("stochastic") else {}
    with_codes = getattr(sn.ops, operation)(*codes, formats, out_fmt=out_fmt, invalid=0.0, **options, **random)
    want = sn.decode(with_codes, out_fmt, to or dtype)
    env = environment(out_fmt, rounding, overflow, bits, invalid_code=invalid_code(0.0, out_fmt))
    got, _, found = computed(operation, operands, formats, out_fmt, env, words, np.dtype(to or dtype).name)
    wrong = np.flatnonzero(got != want.view(got.dtype))
    assert not wrong.size, [(*(x[i] for x in operands), got.view(want.dtype)[i], want[i]) for i in wrong[:4]]
    if header is not None:
        assert found == header


MACHINE, ODD, DEFINITION = "softnum/word/machine.h", "softnum/device/patterns.h", "softnum/device/device.h"


@cases("operation", ["add", "subtract", "multiply", "fma", "divide", "sqrt"])
@cases(("fmt", "dtype"), [("binary32", np.float32), ("binary64", np.float64)])
def test_by_the_machine(operation, fmt, dtype):
    operands = {"fma": 3, "sqrt": 1}.get(operation, 2)
    header = DEFINITION if (operation, fmt) == ("fma", "binary64") else MACHINE
    check(operation, [fmt] * operands, fmt, "nearest_even", dtype, header, count=20_000 if header == MACHINE else 600)


@cases("rounding", MODES)
def test_by_rounding_to_odd(rounding):
    assert rounding_name(rounding) == rounding
    header = DEFINITION if rounding == "down" else ODD
    check("fma", ["e6m9"] * 3, "e6m9", rounding, header=header)
    check("add", ["q4.4"] * 2, "q4.4", rounding, header=header)


@pytest.mark.parametrize("fmt", FORMATS)
def test_formats(fmt):
    check("multiply", [fmt, fmt], fmt, "nearest_even", header=ODD)
    check("subtract", ["binary32"] * 2, fmt, "stochastic", header=ODD, count=4000)
    check("divide", [fmt, fmt], fmt, "nearest_even", header=DEFINITION)


def test_in_and_to_binary64():
    check("multiply", ["binary32"] * 2, "binary64", "to_odd", to=np.float64)
    check("fma", ["binary64"] * 3, "e6m9", "stochastic", np.float64, DEFINITION)
    check("sqrt", ["e4m3"], "e6m9", "nearest_even", header=DEFINITION)
    check("add", ["binary32"] * 2, "e5m2", "nearest_even", header=ODD, overflow="saturate")
    check("add", ["binary32"] * 2, "binary32", "stochastic", header=ODD)
    check("add", ["binary32"] * 2, "binary32", "stochastic", header=DEFINITION, bits=32)  # more than binary64 keeps
    check("add", ["q4.4"] * 2, "q4.4", "nearest_even", header=DEFINITION, overflow="wrap")
    check("add", ["e5m2", "binary32"], "e6m9", "nearest_even")


@cases("fmt", [*FORMATS, "binary32", "binary64"])
def test_a_number_of_binary64_rounded_to_a_narrower_carrier(fmt):
    """As quantize rounds it, which leaves it in binary64."""
    x, wide, fmt = numbers(np.float64, 600, 1), (sn.format("binary64"),), sn.format(fmt)
    x = x if fmt.has_nan else np.nan_to_num(x, posinf=3, neginf=-3)
    words = np.random.default_rng(9).integers(0, 2**32, x.size, dtype=np.uint32)
    for rounding in ("nearest_even", "down", "stochastic"):
        random = {"random_bits": words} if rounding == "stochastic" else {}
        want = sn.quantize(x, fmt, rounding=rounding, stochastic_bits=11, **random)
        env = environment(fmt, rounding, None, 11, invalid_code=invalid_code("raise", fmt))
        for to in ("float64",) if fmt.bits == 64 else ("float32", "float64"):
            got, met, found = computed("convert", [x], wide, fmt, env, words, to)
            np.testing.assert_array_equal(got, want.astype(to).view(got.dtype))
            assert not met and (found == ODD or fmt.bits == 64)


def test_what_has_no_code_is_met():
    fmt = sn.format("q4.4")
    plain = environment(fmt, "nearest_even", None, 32, invalid_code=invalid_code("raise", fmt))
    words = np.zeros(4, np.uint32)
    for operation in ("multiply", "divide"):
        values = np.float32([np.nan, 1, 2, 3]), np.float32([1, 1, 1, 1])
        assert computed(operation, values, (fmt, fmt), fmt, plain, words, "float32")[1] & 1
        own = (sn.format("binary32"),) * 2
        assert computed(operation, values, own, fmt, plain, words, "float32")[1] == 2
    wide = (np.array([1, 1, 1, np.inf]),)
    assert computed("convert", wide, (sn.format("binary64"),), fmt, plain, words, "float32")[1] == 2
    values = np.float32([1, 1, 1, 0]), np.float32([1, 1, 1, 0])
    assert computed("divide", values, (fmt, fmt), fmt, plain, words, "float32")[1] == 2
