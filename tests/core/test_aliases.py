"""Others' names of formats, rounding modes and operations: each against what it means, none of two meanings."""

import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum.cli import build_app
from softnum.formats.aliases import ALIASES, INTEGERS, function_of, integer_named
from softnum.formats.modes import ROUNDING_MODES, rounding_name
from softnum.vectors import VectorSpec
from softnum.vectors.plans.operations import COMPARISONS, operation_name

# name: (bits, largest value, least positive value), from the standards and the packages that have the names
_FORMATS = {
    "float16 half f16 b16 fp16 np.float16 torch.half": (16, 65504, 2.0**-24),
    "float32 single f32 b32 fp32 numpy.single torch.float32": (32, (2 - 2.0**-23) * 2.0**127, 2.0**-149),
    "float64 double f64 b64 fp64 np.double": (64, (2 - 2.0**-52) * 2.0**1023, 2.0**-1074),
    "bf16 torch.bfloat16 ml_dtypes.bfloat16": (16, (2 - 2.0**-7) * 2.0**127, 2.0**-133),
    "float8_e5m2 torch.float8_e5m2": (8, 57344, 2.0**-16),
    "float8_e4m3": (8, 240, 2.0**-9),
    "float8_e3m4": (8, 15.5, 2.0**-6),
    "float8_e4m3fn torch.float8_e4m3fn": (8, 448, 2.0**-9),
    "float8_e4m3fnuz": (8, 240, 2.0**-10),
    "float8_e5m2fnuz": (8, 57344, 2.0**-17),
    "float8_e4m3b11fnuz": (8, 30, 2.0**-13),
    "float8_e8m0fnu e8m0": (8, 2.0**127, 2.0**-127),
    "float6_e2m3fn": (6, 7.5, 0.125),
    "float6_e3m2fn": (6, 28, 0.0625),
    "float4_e2m1fn torch.float4_e2m1fn_x2": (4, 6, 0.5),
}
# what a mode makes of these in integers: 2.5, 3.5, -2.5, -2.75, 2.25
_HALVES = (2.5, 3.5, -2.5, -2.75, 2.25)
_ROUNDINGS = {
    "near_even roundTiesToEven RNE RN rn NearestTiesToEven FE_TONEAREST rte": (2, 4, -2, -3, 2),
    "near_maxMag roundTiesToAway RMM RA rna NearestTiesToAway": (3, 4, -3, -3, 2),
    "minMag roundTowardZero RTZ RZ rz TowardZero FE_TOWARDZERO": (2, 3, -2, -2, 2),
    "max roundTowardPositive RUP RP ru TowardPositive FE_UPWARD": (3, 4, -2, -2, 3),
    "min roundTowardNegative RDN RM rd TowardNegative FE_DOWNWARD": (2, 3, -3, -3, 2),
    "odd rto ToOdd": (3, 3, -3, -3, 3),
}


def test_formats_are_what_the_names_mean():
    for names, (bits, largest, least) in _FORMATS.items():
        for name in names.split():
            fmt = sn.format(name)
            assert (fmt.bits, float(fmt.max)) == (bits, largest), name
            values = [float(sn.decode(code, fmt)) for code in (0, 1)]
            assert min(v for v in values if v > 0) == least, name


def test_ml_dtypes_names_are_its_types():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    mine = [a.alias for a in ALIASES if a.whose == "ml_dtypes"]
    assert len(mine) >= 11
    for alias in mine:
        assert sn.format(alias) == sn.format(np.dtype(getattr(ml_dtypes, alias))), alias


def test_rounding_modes_are_what_the_names_mean():
    for names, want in _ROUNDINGS.items():
        for name in names.split():
            for written in (name, name.lower(), name.upper()):
                assert tuple(sn.quantize(_HALVES, "q8.0", rounding=written)) == want, written
    words = np.arange(8, dtype=np.uint32)
    for name, drops in (("StochasticA", lambda t: t // 1), ("StochasticB", lambda t: (t + Fraction(1, 2)) // 1),
                        ("StochasticC", round)):  # fmt: skip
        for sixteenths in range(16):
            x = np.full(8, 1 + sixteenths / 16)
            got = sn.quantize(x, "q4.0", rounding=name, stochastic_bits=3, random_bits=words)
            want = [1 + (int(drops(Fraction(sixteenths, 2))) + int(r) >= 8) for r in words]
            assert got.tolist() == want, (name, sixteenths)


def test_no_name_has_two_meanings():
    told = Counter((a.kind, a.alias.lower()) for a in ALIASES)
    assert max(told.values()) == 1
    for alias in ALIASES:
        if alias.kind == "format":
            own = sn.format(alias.name)
            assert own.name == alias.name and sn.format(alias.alias) is own and alias.alias not in sn.format_names()
        elif alias.kind == "rounding":
            assert alias.name in ROUNDING_MODES and alias.alias.lower() not in ROUNDING_MODES
            assert rounding_name(alias.alias) == alias.name
        elif alias.name in ("to_integer", *COMPARISONS, *sn.ops.CODE_OPERATIONS):
            assert operation_name(alias.alias) == alias.name
            assert alias.alias == alias.alias.lower() == alias.name or alias.alias not in sn.ops.OPERATIONS
    assert {integer_named(name) for name in INTEGERS} == set(INTEGERS.values())


def test_operations_compute_what_the_names_mean():
    a, b = 2.5, 3.0
    exact = {"sub": a - b, "mul": a * b, "div": 0.8333, "rem": -0.5, "eq": 0, "le": 1, "lt": 1, "eq_signaling": 0,
             "le_quiet": 1, "lt_quiet": 1}  # fmt: skip
    codes = [sn.encode([x], "f16") for x in (a, b)]
    for op, want in exact.items():
        spec = VectorSpec.make(f"f16_{op}")
        block = spec.evaluate(codes)
        assert float(sn.decode(block.result, spec.out_fmt)[0]) == pytest.approx(want, rel=1e-3), op
        assert VectorSpec.make(op, "half") == spec
    assert VectorSpec.make("mulAdd", "f32") == VectorSpec.make("f32_mulAdd") == VectorSpec.make("fma", "binary32")
    # a quiet NaN raises invalid in the signaling ones alone: IEEE 754-2019 5.11
    nan = sn.encode([np.nan], "f16")
    compared = [op for op in exact if op[:2] in ("eq", "le", "lt")]
    raised = {op: int(VectorSpec.make(f"f16_{op}").evaluate([nan, codes[0]]).flags[0]) for op in compared}
    assert raised == {"eq": 0, "le": 16, "lt": 16, "eq_signaling": 16, "le_quiet": 0, "lt_quiet": 0}


def test_functions_of_testfloat_state_their_formats():
    assert function_of("f16_to_f64")[:3] == ("convert", "binary16", "binary64")
    assert function_of("ui32_to_f16")[:3] == ("convert", "uq32.0", "binary16")
    assert function_of("f64_to_ui64")[:3] == ("to_integer", "binary64", "ui64")
    assert function_of("f64_roundToInt_x") == ("round_to_integral", "binary64", None, None, True)
    assert function_of("f32_to_i32_rx_near_maxMag")[3:] == ("nearest_away", True)
    for name in ("f16", "f16_tanh", "i32_to_i64", "f16_add_x", "mul", "f16_roundToInt_r", None, 3):
        assert function_of(name) is None
    assert function_of("f128_mulAdd")[:2] == ("fma", "binary128")
    assert function_of("extF80_to_f32")[:3] == ("convert", "x87_extended", "binary32")
    assert function_of("extF80_to_i64_rx_min")[:4] == ("to_integer", "x87_extended", "i64", "down")
    assert function_of("f128_to_extF80")[:3] == ("convert", "binary128", "x87_extended")
    with pytest.raises(ValueError, match="f16_mul states the operands' format, binary16"):
        VectorSpec.make("f16_mul", "binary32")
    with pytest.raises(ValueError, match="states rounding, toward_zero"):
        VectorSpec.make("f32_to_i32_r_minMag", rounding="up")
    assert VectorSpec.make("f16_mul", "half") == VectorSpec.make("f16_mul")


@pytest.mark.parametrize(("invalid", "nan", "above", "below"), [
    ("riscv", 2**31 - 1, 2**31 - 1, -(2**31)), ("x86", -(2**31), -(2**31), -(2**31)), ("arm", 0, 2**31 - 1, -(2**31)),
])  # fmt: skip
def test_floats_to_integers(invalid, nan, above, below):
    spec = VectorSpec.make("f32_to_i32", nan=invalid, rounding="minMag")
    block = spec.evaluate([sn.encode([2.75, -2.75, np.nan, 3e9, -np.inf], "f32")])
    assert block.result.view(np.int32).tolist() == [2, -2, nan, above, below]
    assert block.flags.tolist() == [1, 1, 16, 16, 16]
    assert VectorSpec.make("f32_to_i32", exact=False).evaluate(block.operands).flags.tolist() == [0, 0, 16, 16, 16]
    assert spec.facts()["result_format"] == "i32" and spec.out_fmt == sn.FixedFormat(32, 0)


def test_integers_are_no_formats():
    for name, written in (
        ("int8", "q8.0"),
        ("i32", "q32.0"),
        ("uint8", "uq8.0"),
        ("ui64", "uq64.0"),
        ("torch.int8", "q8.0"),
    ):
        with pytest.raises(
            ValueError, match=f"unknown format '{name}'; it names integers: {written} is the .*to_integer"
        ):
            sn.format(name)
    with pytest.raises(ValueError, match="i32 names integers: the operation is to_integer, not convert"):
        VectorSpec.make("convert", "f32", out_fmt="i32")
    with pytest.raises(ValueError, match="state the integer type .*i8, i16, i32, i64, ui8, ui16, ui32, ui64"):
        VectorSpec.make("to_integer", "f32")
    assert VectorSpec.make("convert", "i32", out_fmt="f32") == VectorSpec.make("i32_to_f32")


@pytest.mark.parametrize(("ask", "message"), [
    (lambda: sn.format("float"), "C and PyTorch mean binary32 by it, Python binary64"),
    (lambda: sn.format("float128"), "x87_extended by it on x86"),
    (lambda: sn.format("binary8p3"), "end in s or u .*: binary8p3se, binary8p3sf, binary8p3ue, binary8p3uf"),
    (lambda: sn.format("e151m11"), "eXmY has up to two digits"),
    (lambda: sn.quantize(1.0, "e5m2", rounding="rtn"), "OpenCL means 'down' by it, papers on quantization 'nearest_"),
    (lambda: sn.quantize(1.0, "e5m2", rounding="away"), "ties to away are 'nearest_away'"),
    (lambda: sn.quantize(1.0, "e5m2", rounding="minmax"), r"unknown rounding mode 'minmax' \(known"),
    (lambda: VectorSpec.make("compare", "e5m2"), "state which: eq, le, lt"),
    (lambda: VectorSpec.make("subb", "e5m2"), r"unknown operation 'subb' \(known"),
])  # fmt: skip
def test_hints_do_not_point_to_another_meaning(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


def test_the_table_is_listed():
    run = CliRunner().invoke(build_app(), ["formats", "--names", "--json"])
    assert json.loads(run.stdout) == [a._asdict() for a in ALIASES]
    text = CliRunner().invoke(build_app(), ["formats", "--names"]).stdout
    assert all(a.alias in text for a in ALIASES)
    for arguments in (["formats", "--json"], ["formats", "e5m2", "--names"], ["formats", "--names", "--c"]):
        assert CliRunner().invoke(build_app(), arguments).exit_code == 2
