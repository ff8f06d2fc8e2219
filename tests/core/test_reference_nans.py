"""The reference's NaN profiles and stated values for invalid results, by hand; the x86 profile also against the CPU."""

import ctypes
import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from softnum import reference as ref
from softnum.formats import FloatFormat
from softnum.formats.modes import Flags
from softnum.formats.names import format as format_of
from softnum.reference import nans, operations
from tests.support.c_helpers import built_for_x86
from tests.support.cases import cases

NONE, INVALID = 0, 16
PROFILES = ("canonical", "x86", "arm")
UNSIGNED_IEEE = FloatFormat(4, 3, signed=False)
F = Fraction


# -- tables worked by hand ---------------------------------------------------------------------------------------------
# e3m4 (IEEE): 0x70 infinity, 0x71..0x77 signal, 0x78..0x7F are quiet, 0x78 the canonical one; 0x30 is 1
@cases(
    "operation, codes, canonical, x86, arm",
    [
        ("add", (0x7B, 0x30), (0x78, NONE), (0x7B, NONE), (0x7B, NONE)),
        ("add", (0x30, 0xFC), (0x78, NONE), (0xFC, NONE), (0xFC, NONE)),
        ("add", (0x7B, 0xFC), (0x78, NONE), (0x7B, NONE), (0x7B, NONE)),
        ("add", (0x7B, 0xF1), (0x78, INVALID), (0x7B, INVALID), (0xF9, INVALID)),  # quiet, then signaling
        ("add", (0x72, 0xF1), (0x78, INVALID), (0x7A, INVALID), (0x7A, INVALID)),
        ("add", (0x70, 0xF0), (0x78, INVALID), (0xF8, INVALID), (0x78, INVALID)),  # no operand is NaN
        ("subtract", (0x30, 0xFC), (0x78, NONE), (0xFC, NONE), (0xFC, NONE)),  # the NaN keeps its sign
        ("subtract", (0x70, 0x70), (0x78, INVALID), (0xF8, INVALID), (0x78, INVALID)),
        ("multiply", (0x00, 0x70), (0x78, INVALID), (0xF8, INVALID), (0x78, INVALID)),
        ("multiply", (0xB0, 0x7F), (0x78, NONE), (0x7F, NONE), (0x7F, NONE)),
        ("divide", (0x00, 0x80), (0x78, INVALID), (0xF8, INVALID), (0x78, INVALID)),
        ("divide", (0x79, 0x00), (0x78, NONE), (0x79, NONE), (0x79, NONE)),
        ("divide", (0x79, 0x71), (0x78, INVALID), (0x79, INVALID), (0x79, INVALID)),  # 0x71 made quiet is 0x79, too
        ("remainder", (0x70, 0x7A), (0x78, NONE), (0x7A, NONE), (0x7A, NONE)),
        ("remainder", (0x70, 0x30), (0x78, INVALID), (0xF8, INVALID), (0x78, INVALID)),
        ("sqrt", (0xB0,), (0x78, INVALID), (0xF8, INVALID), (0x78, INVALID)),
        ("sqrt", (0xF3,), (0x78, INVALID), (0xFB, INVALID), (0xFB, INVALID)),
        ("round_to_integral", (0xFE,), (0x78, NONE), (0xFE, NONE), (0xFE, NONE)),
        ("logb", (0xF1,), (0x78, INVALID), (0xF9, INVALID), (0xF9, INVALID)),
        ("scalb", (0xFE, -3), (0x78, NONE), (0xFE, NONE), (0xFE, NONE)),
        ("minimum", (0x30, 0xFC), (0x78, NONE), (0xFC, NONE), (0xFC, NONE)),
        ("maximum", (0x7B, 0xF1), (0x78, INVALID), (0x7B, INVALID), (0xF9, INVALID)),
        ("minimum_number", (0x30, 0xF1), (0x30, INVALID), (0x30, INVALID), (0x30, INVALID)),
        ("maximum_number", (0x7B, 0xF1), (0x78, INVALID), (0x7B, INVALID), (0xF9, INVALID)),
        ("next_up", (0xF1,), (0x78, INVALID), (0xF9, INVALID), (0xF9, INVALID)),
        ("next_down", (0x7F,), (0x78, NONE), (0x7F, NONE), (0x7F, NONE)),
        # fma: order a, b, c on x86, c, a, b on Arm
        ("fma", (0x7B, 0xFC, 0x7D), (0x78, NONE), (0x7B, NONE), (0x7D, NONE)),
        ("fma", (0x7B, 0xFC, 0x30), (0x78, NONE), (0x7B, NONE), (0x7B, NONE)),
        ("fma", (0x30, 0xFC, 0x7D), (0x78, NONE), (0xFC, NONE), (0x7D, NONE)),
        ("fma", (0x7B, 0xF1, 0x7D), (0x78, INVALID), (0x7B, INVALID), (0xF9, INVALID)),
        ("fma", (0x72, 0xF1, 0x73), (0x78, INVALID), (0x7A, INVALID), (0x7B, INVALID)),
        ("fma", (0x72, 0xF1, 0x7D), (0x78, INVALID), (0x7A, INVALID), (0x7A, INVALID)),
        ("fma", (0x00, 0x70, 0xFD), (0x78, INVALID), (0xFD, NONE), (0x78, INVALID)),  # 0 * infinity + a quiet NaN
        ("fma", (0xF0, 0x80, 0xF3), (0x78, INVALID), (0xFB, INVALID), (0xFB, INVALID)),  # and a signaling one
        ("fma", (0x00, 0x70, 0x30), (0x78, INVALID), (0xF8, INVALID), (0x78, INVALID)),
        ("fma", (0x30, 0x70, 0xF0), (0x78, INVALID), (0xF8, INVALID), (0x78, INVALID)),
        ("fma", (0x00, 0x79, 0x70), (0x78, NONE), (0x79, NONE), (0x79, NONE)),
    ],
)  # fmt: skip
def test_profiles_by_hand(operation, codes, canonical, x86, arm):
    for profile, want in zip(PROFILES, (canonical, x86, arm), strict=True):
        assert getattr(ref, operation)(*codes, "e3m4", nan=profile) == want, profile


@cases(
    "from_fmt, code, to_fmt, want, flags",
    [
        # the fraction is aligned at its top
        ("binary32", 0x7FC00001, "binary16", 0x7E00, NONE), ("binary32", 0xFFE02000, "binary16", 0xFF01, NONE),
        ("binary32", 0x7F802000, "binary16", 0x7E01, INVALID), ("binary32", 0x7F800001, "binary16", 0x7E00, INVALID),
        ("binary16", 0xFE01, "binary32", 0xFFC02000, NONE), ("binary16", 0x7C01, "binary64", 0x7FF804 << 40, INVALID),
        ("binary64", 0x7FFFFFFFFFFFFFFF, "e5m2", 0x7F, NONE), ("binary64", 0xFFF7FFFFFFFFFFFF, "e5m2", 0xFF, INVALID),
        ("e5m2", 0xFD, "e4m3", 0xFE, INVALID), ("e5m2", 0xFF, "e4m3", 0xFE, NONE), ("e5m2", 0x7E, "e4m3", 0x7C, NONE),
        # a single fraction bit: it is the quiet bit, and nothing signals
        ("e5m2", 0xFD, "e4m1", 0x3F, INVALID), ("e4m1", 0x3F, "e5m2", 0xFE, NONE), ("e4m1", 0x1F, "e4m1", 0x1F, NONE),
        # NaNs of one magnitude keep the sign; single ones nothing
        ("e5m2", 0xFD, "e4m3fn", 0xFF, INVALID), ("e5m2", 0x7F, "e4m3fn", 0x7F, NONE),
        ("e4m3fn", 0xFF, "e5m2", 0xFE, NONE), ("e4m3fn", 0x7F, "binary32", 0x7FC00000, NONE),
        ("e5m2", 0xFF, "e4m3fnuz", 0x80, NONE), ("e4m3fnuz", 0x80, "e5m2", 0x7E, NONE),
        ("e5m2", 0xFF, "e8m0fnu", 0xFF, NONE), ("e8m0fnu", 0xFF, "e5m2", 0x7E, NONE),
        ("e5m2", 0xFF, "binary8p3se", 0x80, NONE), ("binary8p3se", 0x80, "e4m3fn", 0x7F, NONE),
        ("e5m2", 0xFD, UNSIGNED_IEEE, 0x7E, INVALID), (UNSIGNED_IEEE, 0x7D, "e5m2", 0x7E, NONE),
        (UNSIGNED_IEEE, 0x79, "e5m2", 0x7E, INVALID),
        # none at all
        ("e5m2", 0xFE, "e2m1fn", 0x0, INVALID), ("e5m2", 0xFE, "q4.4", 0x0, INVALID),
    ],
)  # fmt: skip
@cases("profile", ["x86", "arm"])
def test_nans_between_formats_by_hand(from_fmt, code, to_fmt, want, flags, profile):
    to_fmt = format_of(to_fmt)
    assert ref.convert(code, from_fmt, to_fmt, nan=profile) == (want, flags)
    canonical = to_fmt.nan_code if to_fmt.has_nan else 0
    for name in ("canonical", "riscv", "arm_default"):
        assert ref.convert(code, from_fmt, to_fmt, nan=name) == (canonical, flags)


@pytest.mark.parametrize(
    "fmt, canonical, x86",
    [
        ("e5m2", 0x7E, 0xFE), ("e4m3fn", 0x7F, 0xFF), ("e4m3fnuz", 0x80, 0x80), ("e8m0fnu", 0xFF, 0xFF),
        (UNSIGNED_IEEE, 0x7C, 0x7C), ("e4m1", 0x1F, 0x3F), ("binary64", 0x7FF8 << 48, 0xFFF8 << 48),
    ],
)  # fmt: skip
def test_default_nans_by_hand(fmt, canonical, x86):
    for profile, want in zip(PROFILES, (canonical, x86, canonical), strict=True):
        assert ref.sqrt(0xBC, "e5m2", out_fmt=fmt, nan=profile) == (want, INVALID)


def test_what_overflows_to_nan_is_the_canonical_one():
    for profile in PROFILES:
        assert ref.multiply(0xFE, 0x7E, "e4m3fn", nan=profile) == (0x7F, 5)
        assert ref.convert(0xFC, "e5m2", "e4m3fn", nan=profile) == (0x7F, NONE)


def test_operations_on_the_sign_bit_have_no_profile():
    assert ref.negate(0xF1, "e3m4") == (0x71, NONE) and ref.copysign(0xF1, 0x00, "e3m4") == (0x71, NONE)
    assert ref.absolute(0xFF, "e4m3fn") == (0x7F, NONE)


def test_encoding_a_float_keeps_its_nan():
    (x,) = np.array([0xFFF8040000000000], np.uint64).view(np.float64)
    assert ref.encode(x, "binary16", nan="arm") == (0xFE01, NONE)
    assert ref.encode(x, "binary16") == (0x7E00, NONE)
    with pytest.raises(ValueError, match="unknown NaN profile 'mips'.*known: canonical, riscv, arm_default, x86, arm"):
        ref.encode(x, "binary16", nan="mips")


# -- stated values for invalid results ---------------------------------------------------------------------------------
def test_invalid_results_have_the_value_stated():
    nothing = FloatFormat(3, 2, signed=False, specials="none")
    powers = FloatFormat(3, 0, signed=False, specials="none", has_zero=False, lowest_binade="normal")
    assert ref.divide(0x0, 0x0, "e2m1fn") == (0x0, INVALID)
    assert ref.divide(0x0, 0x0, "e2m1fn", invalid=F(-3, 2)) == (0xB, INVALID)
    assert ref.divide(0x0, 0x0, "e2m1fn", invalid=-0.0) == (0x8, INVALID)
    assert ref.sqrt(0xF0, "q4.4", invalid=-8) == (0x80, INVALID)
    assert ref.divide(0x10, 0x00, "q4.4", invalid=0.5) == (0x08, INVALID | Flags.DIVIDE_BY_ZERO)
    assert ref.convert(0x7C, "e5m2", "q4.4", invalid=1) == (0x10, INVALID)
    assert ref.encode(float("nan"), "e3m2fn", invalid=28) == (0x1F, INVALID)
    assert ref.negate(0x05, nothing, invalid=2) == (ref.encode(2, nothing)[0], INVALID)
    assert ref.copysign(0x05, 0xFF, (nothing, "q4.4"), invalid=2) == (ref.encode(2, nothing)[0], INVALID)
    assert ref.negate(0x05, powers) == (0, INVALID) and ref.negate(0x05, powers, invalid=16)[0] == 7
    assert ref.round_value(F(-1), 0, powers, invalid=16) == (7, INVALID)
    # a format with a NaN has no use for it
    assert ref.divide(0x00, 0x00, "e5m2", invalid=1) == (0x7E, INVALID)


@pytest.mark.parametrize(
    "fmt, number",
    [("e2m1fn", F(1, 3)), ("e2m1fn", 7), ("e2m1fn", float("inf")), ("q4.4", 8), ("uq4.4", -1), ("q4.4", F(1, 32))],
)  # fmt: skip
def test_stated_values_must_be_values(fmt, number):
    with pytest.raises(ValueError, match="^invalid=.* is not a value of "):
        ref.add(0, 0, fmt, invalid=number)


# -- the x86 profile against the CPU -----------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def cpu(tmp_path_factory):
    return ctypes.CDLL(built_for_x86(tmp_path_factory.mktemp("x86"), Path(__file__).with_name("x86_operations.c")))


# as numbered in x86_operations.c; and which of an instruction's operands are a, b and c
CPU_OPERATIONS = {
    "add": (0, (0, 1)), "subtract": (1, (0, 1)), "multiply": (2, (0, 1)), "divide": (3, (0, 1)), "sqrt": (4, (0,)),
    "fma132": (5, (0, 2, 1)), "fma213": (6, (1, 0, 2)), "fma231": (7, (1, 2, 0)), "convert": (8, (0,)),
}  # fmt: skip
MXCSR = (Flags.INVALID, Flags(0), Flags.DIVIDE_BY_ZERO, Flags.OVERFLOW, Flags.UNDERFLOW, Flags.INEXACT)
FLAGS_OF_MXCSR = [int(sum((flag for i, flag in enumerate(MXCSR) if word >> i & 1), Flags(0))) for word in range(64)]


def ask(cpu, number, fmt, operands):
    """(codes, flags) of the CPU's instruction over rows of three operands."""
    operands = np.ascontiguousarray(operands, np.uint64)
    codes, flags = np.empty(len(operands), np.uint64), np.empty(len(operands), np.uint32)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (operands, codes, flags)]
    cpu.run(number, int(fmt.bits == 64), ctypes.c_long(len(operands)), *pointers)
    return codes.tolist(), [FLAGS_OF_MXCSR[word] for word in flags.tolist()]


def specimens(fmt):
    """All kinds of NaN with several payloads, infinities, zeros, ones and extremes, of both signs."""
    infinity, quiet = fmt.inf_code, 1 << (fmt.mantissa_bits - 1)
    payloads = (1, quiet - 1, quiet >> 1, quiet, quiet + 1, 2 * quiet - 1)
    one = fmt.bias << fmt.mantissa_bits
    magnitudes = [infinity + p for p in payloads] + [infinity, 0, one, one + 1, infinity - 1, 1]
    return [m | sign << (fmt.bits - 1) for m in magnitudes for sign in (0, 1)]


def compare_with_the_cpu(cpu, name, fmt):
    number, order = CPU_OPERATIONS[name]
    fmt = format_of(fmt)
    codes = specimens(fmt)
    rows = list(itertools.product(codes, repeat=len(order)))
    operands = np.zeros((len(rows), 3), np.uint64)
    operands[:, list(order)] = rows
    operation = operations.fma if name.startswith("fma") else getattr(ref, name)
    target = format_of("binary32" if fmt.bits == 64 else "binary64") if name == "convert" else fmt
    for row, got, flags in zip(rows, *ask(cpu, number, fmt, operands), strict=True):
        want = operation(*row, fmt, target, nan="x86") if name == "convert" else operation(*row, fmt, nan="x86")
        assert (got, flags) == want, f"{name}({', '.join(map(hex, row))}) is {got:#x} {Flags(flags)!r}, ours {want}"


@cases("fmt", ["binary32", "binary64"])
@cases("name", CPU_OPERATIONS)
def test_the_x86_profile_is_the_cpu_s(cpu, name, fmt):
    if name.startswith("fma") and not cpu.has_fma():
        pytest.skip("this CPU has no FMA")
    compare_with_the_cpu(cpu, name, fmt)


def test_the_cpu_catches_planted_faults(cpu, monkeypatch):
    profile = nans.nan_of
    monkeypatch.setattr(operations, "nan_of", lambda name, *operands: profile("arm", *operands))
    with pytest.raises(AssertionError, match="add"):
        compare_with_the_cpu(cpu, "add", "binary32")
    monkeypatch.undo()
    monkeypatch.setattr(operations, "nan_of_fma", lambda name, *operands: nans.INVALID_RESULT)
    if cpu.has_fma():
        with pytest.raises(AssertionError, match="fma132"):
            compare_with_the_cpu(cpu, "fma132", "binary64")


TO_INTEGER = {(32, True): 9, (64, True): 10, (32, False): 11, (64, False): 12}


@pytest.mark.parametrize("fmt", ["binary32", "binary64"])
@pytest.mark.parametrize("bits, signed", TO_INTEGER)
def test_integers_are_the_cpu_s(cpu, fmt, bits, signed):
    if not signed and not cpu.has_avx512():
        pytest.skip("this CPU has no AVX-512, and no conversion to unsigned integers without")
    fmt = format_of(fmt)
    near = [
        s * (F(2) ** e + d) for s in (1, -1) for e in (0, 31, 32, 63, 64) for d in (-1, F(-1, 2), 0, F(1, 2), F(3, 2))
    ]
    codes = specimens(fmt) + [ref.encode(x, fmt, rounding=mode)[0] for x in near for mode in ("up", "down")]
    operands = np.zeros((len(codes), 3), np.uint64)
    operands[:, 0] = codes
    for code, got, flags in zip(codes, *ask(cpu, TO_INTEGER[bits, signed], fmt, operands), strict=True):
        integer, want_flags = ref.to_integer(code, fmt, bits, signed, invalid="x86")
        assert (got, flags) == (integer % 2**bits, want_flags), f"{code:#x}: {got:#x}, ours {integer}"
