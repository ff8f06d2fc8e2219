"""Posits and linear takums in the C library for simulators, against Python's softnum."""

import ctypes
import random

import numpy as np
import pytest

import softnum as sn
from softnum.ops import OPERATIONS
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.dpi_calls import ONES, mode_of, u64, word_of

NAMES = (
    "posit8",
    "posit8_es0",
    "posit3_es5",
    "posit16",
    "posit32",
    "takum_linear8",
    "takum_linear16",
    "takum_linear32",
)


def codes_of(fmt, rng, n):
    ends = [0, 1, fmt.max_code, fmt.nan_code, fmt.nan_code + 1, 2 * fmt.nan_code - 1, fmt.nan_code >> 1]
    return [rng.choice(ends) if rng.random() < 0.2 else rng.getrandbits(fmt.bits) for _ in range(n)]


def test_names(library):
    find = library.softnum_dpi_format
    find.restype = library.softnum_dpi_bits.restype = u64
    for n in range(64):
        for name in (f"posit{n}", f"takum_linear{n}", *(f"posit{n}_es{es}" for es in range(10)), f"posit{n}_es"):
            handle = find(name.encode())
            try:
                bits = sn.format(name).bits
            except ValueError:
                assert handle == ONES, name
                continue
            assert handle < 1 << 16 and library.softnum_dpi_bits(u64(handle)) == bits, name
    assert find(b"posit8_es2") == find(b"posit8") != find(b"posit8_es1")


@cases("name", [name for name in _core.OPERATIONS if name not in ("scalb", "to_integer", "convert")])
def test_operations(dpi, name):
    rng, operands = random.Random(name), _core.OPERATIONS[name][1]
    for text in NAMES:
        fmt = sn.format(text)
        codes = [codes_of(fmt, rng, 60) for _ in range(operands)]
        arrays = [np.array(c, fmt.storage_dtype) for c in codes]
        if name in ("compare", "compare_signaling"):
            want = (sn.compare(*arrays, fmt) + 1).tolist()
        else:
            function = {"classify": sn.classify, "total_order": sn.ops.total_order}.get(name) or OPERATIONS[name][0]
            want = function(*arrays, fmt).tolist()
        for i, column in enumerate(zip(*codes, strict=True)):
            assert dpi.operate(name, column, text) == (want[i], 0), (text, [hex(c) for c in column])


def test_conversions(dpi):
    rng = random.Random(1)
    for source, target in (
        ("posit8", "e5m2"), ("e5m2", "posit8"), ("posit32", "takum_linear16"), ("takum_linear32", "posit16"),
        ("binary32", "posit32"), ("posit16", "q4.4"), ("binary64", "takum_linear32"),
    ):  # fmt: skip
        f = sn.format(source)
        codes = codes_of(f, rng, 200) if f.nan_is_least else [rng.getrandbits(f.bits) for _ in range(200)]
        want = sn.convert(np.array(codes, f.storage_dtype), f, target, invalid=0).tolist()
        assert [dpi.operate("convert", [c], f"{source}->{target}")[0] for c in codes] == want
    x = [
        *np.random.default_rng(1).standard_normal(50).tolist(),
        1e300,
        -1e-300,
        float("inf"),
        float("nan"),
        0.0,
        5e-324,
    ]
    for text in NAMES:
        handle = dpi.format(text)
        codes = [dpi.call("from_real", ctypes.c_double(v), handle, 0, 0)[0] for v in x]
        assert codes == sn.encode(x, text).tolist()
        back = [dpi.call("to_real", c, handle, restype=ctypes.c_double)[0] for c in codes]
        assert np.array_equal(back, sn.quantize(x, text), equal_nan=True)
    wide = sn.divide(np.array([0x40], np.uint8), np.array([0x4C], np.uint8), "posit8", out_fmt="posit16")
    assert dpi.operate("divide", [0x40, 0x4C], "posit8,posit8->posit16")[0] == wide[0]
    assert dpi.operate("compare", [0x80, 0x8000], "posit8,posit16->q4.0")[0] == 1
    assert dpi.operate("to_integer", [0x4C], "posit8->q8.0")[0] == 3
    assert dpi.operate("scalb", [0x40, -1], "posit8")[0] == 0x38


def test_what_is_refused(dpi):
    with pytest.raises(ValueError, match="to nearest, ties to even"):
        dpi.operate("add", [1, 2], "posit8", mode_of("up"))
    with pytest.raises(ValueError, match="is no code of posit3"):
        dpi.operate("add", [8, 2], "posit3")
    for name in ("mac", "exact_dot"):
        numbers = (0, 0, 0) if name == "mac" else (word_of([0], 8), word_of([0], 8), 1, 0)
        modes = (1, 0, 0) if name == "mac" else (1, 0)
        with pytest.raises(ValueError, match="to nearest, ties to even"):
            dpi.call(name, *numbers, dpi.format("posit8"), *modes)
    with pytest.raises(ValueError, match="acc = 0x100 is no code of posit8"):
        dpi.call("mac", 0x100, 0, 0, dpi.format("posit8"), 0, 0, 0)
    with pytest.raises(ValueError, match="takes no posits"):
        dpi.call("fused_dot", word_of([0], 8), word_of([0], 8), 1, 0, dpi.format("posit8"), 0, 4, 20, 0, 0, 0)


@pytest.mark.parametrize(
    "unit, formats",
    [
        (sn.MadUnit("posit8", operand="posit8"), "posit8"),
        (sn.MadUnit("posit16", operand="posit8", product="posit16"), "posit8,posit8,posit16->posit16"),
        (sn.MadUnit("posit32", operand=("posit16", "e5m2")), "posit16,e5m2->posit32"),
        (sn.MadUnit("takum_linear16", operand="posit8", product="e5m2"), "posit8,posit8,e5m2->takum_linear16"),
        (sn.MadUnit("binary32", operand="posit16"), "posit16->binary32"),
    ],
)
def test_mac(dpi, unit, formats):
    rng, handle = random.Random(formats), dpi.format(formats)
    a, b = ([rng.getrandbits(f.bits) for _ in range(40)] for f in unit.operand)
    a, b = (np.array(x, f.storage_dtype) for x, f in zip((a, b), unit.operand, strict=True))
    kept = np.isfinite(sn.decode(a, unit.operand[0])) & np.isfinite(sn.decode(b, unit.operand[1]))
    a, b, acc = a[kept], b[kept], 0
    for k in range(len(a)):
        acc, flags = dpi.call("mac", acc, a[k], b[k], handle, 0, 0, 0)
        assert unit.result.kind == "float" or unit.product or not flags
    want = sn.dot(sn.Array(a, unit.operand[0]), sn.Array(b, unit.operand[1]), unit)
    assert acc == int(sn.encode(np.array([want]), unit.result)[0])


@pytest.mark.parametrize("formats", ["posit8", "posit8->posit32", "posit32", "takum_linear16", "e5m2,posit16->posit16"])
def test_exact_dot(dpi, formats):
    parts = formats.replace("->", ",").split(",")
    out, operand = parts[-1], tuple((parts[:-1] or parts) * 2)[:2]
    unit, rng = sn.ExactDotUnit(out, operand=operand), random.Random(formats)
    fa, fb = unit.operand
    for length in (0, 1, 9, 64):
        a, b = ([rng.getrandbits(f.bits - 1) for _ in range(length)] for f in unit.operand)
        a, b = (np.array(x, f.storage_dtype) for x, f in zip((a, b), unit.operand, strict=True))
        a[~np.isfinite(sn.decode(a, fa))] = 0
        c = np.array([rng.getrandbits(unit.result.bits)], unit.result.storage_dtype)
        want = sn.matmul(sn.Array(a[None], fa), sn.Array(b[:, None], fb), unit, sn.Array(c[:, None], unit.result))
        want = sn.encode(want, unit.result) if isinstance(want, np.ndarray) else want.codes
        got = dpi.call("exact_dot", word_of(a, fa.bits), word_of(b, fb.bits), length, c[0], dpi.format(formats), 0, 0)
        assert got == (int(want[0, 0]), 0)
