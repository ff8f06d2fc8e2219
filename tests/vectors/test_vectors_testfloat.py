"""Vectors by TestFloat's names: comparisons, integers, NaNs of other machines, -notexact; and TestFloat itself."""

import io
import shutil
import subprocess

import numpy as np
import pytest

from softnum.vectors import VectorSpec, check, generate, plan, write

GENERATOR = shutil.which("testfloat_gen")


def _text(*lines):
    return io.BytesIO("".join(f"{line}\n" for line in lines).encode())


@pytest.mark.parametrize(("op", "line"), [
    ("f16_lt", "3C00 3C01 1 00"), ("f16_lt", "7E00 3C01 0 10"), ("f16_lt_quiet", "7E00 3C01 0 00"),
    ("f16_lt_quiet", "7D00 3C01 0 10"), ("f16_le", "8000 0000 1 00"), ("f16_eq", "7E00 7E00 0 00"),
    ("f16_eq_signaling", "7E00 7E00 0 10"), ("f32_to_i32", "CF000000 80000000 00"),
    ("f32_to_i32", "3FC00000 00000002 01"),
    ("f32_to_ui32", "BF800000 00000000 10"), ("f16_to_ui64", "FC00 0000000000000000 10"),
    ("f16_roundToInt", "3E00 4000 01"), ("ui32_to_f16", "FFFFFFFF 7C00 05"), ("bf16_to_f32", "3FC0 3FC00000 00"),
])  # fmt: skip
def test_lines_of_testfloats_functions(op, line):
    assert check(_text(line), op).ok


def test_not_exact():
    lines = ("3E00 4000 00", "3C00 3C00 00", "7D00 7E00 10")
    assert check(_text(*lines), "f16_roundToInt", exact=False).ok
    report = check(_text(*lines), "f16_roundToInt")
    assert report.failures == 1 and "TestFloat's default, -notexact, raises no inexact here: --notexact" in str(report)
    assert check(_text(lines[0]), "f16_roundToInt_r_max").ok
    with pytest.raises(ValueError, match="exact=False .*is for round_to_integral and to_integer, not for add"):
        VectorSpec.make("add", "e5m2", exact=False)


def test_nan_profiles():
    lines = ("7D01 3C00 7F01 10", "0000 7C00 FE00 10", "3C00 3C00 3C00 00")
    assert check(_text(*lines), "f16_mul", nan="x86").ok
    report = check(_text(*lines), "f16_mul")
    assert "--nan x86" in str(report) and [c.cause for c in report.causes] == ["nan-payload"]
    assert check(_text("7E01 7D00 7F00 10"), "f16_mul", nan="arm").ok
    assert VectorSpec.make("add", "e5m2", nan="riscv") == VectorSpec.make("add", "e5m2")
    integers = ("7FC00000 80000000 10", "FF800000 80000000 10")
    assert check(_text(*integers), "f32_to_i32", nan="x86").ok and not check(_text(*integers), "f32_to_i32").ok


@pytest.mark.parametrize(("op", "options"), [
    ("f16_to_i32", {"nan": "x86", "rounding": "odd"}), ("f16_lt", {}), ("bf16_roundToInt", {"exact": False}),
    ("to_integer", {"fmt": "e4m3fn", "out_fmt": "uint8", "nan": "arm_default"}),
    ("le_quiet", {"fmt": ("e5m2", "e4m3fn")}),
    ("f16_to_i64", {"rounding": "sr", "stochastic_bits": 5}), ("sqrt", {"fmt": "bf16", "nan": "arm"}),
])  # fmt: skip
@pytest.mark.parametrize("dialect", ["softnum", "csv", "jsonl", "readmemh", "npz"])
def test_files_are_written_and_judged_by_their_headers(op, options, dialect, tmp_path):
    spec = VectorSpec.make(op, **options)
    path = tmp_path / "vectors"
    write(plan(spec, count=3000), path, dialect=dialect)
    report = check(path, dialect=dialect)
    assert report.ok and report.spec == spec and report.vectors == plan(spec, count=3000).count
    assert check(path, op, options.get("fmt"), dialect=dialect).ok  # what the name states agrees with the header


def test_what_is_generated_is_exhaustive_where_it_fits():
    (block,) = generate("f16_to_i32", nan="riscv")
    assert len(block) == 1 << 16 and block.result.dtype == np.uint32
    blocks = list(generate("lt", "e4m3fn"))
    assert sum(map(len, blocks)) == 1 << 16 and set(blocks[0].result.tolist()) == {0, 1}


@pytest.mark.parametrize(("op", "options", "message"), [
    ("lt", {"fmt": "e5m2", "rounding": "sr"}, "rounds nothing"),
    ("lt", {"fmt": "e5m2", "out_fmt": "e5m2"}, "gives one bit"),
    ("f16_to_i32", {"overflow": "wrap"}, "has no overflow; nan="),
    ("f16_to_i32", {"nan": "x87"}, "unknown NaN profile 'x87'"),
    ("to_integer", {"fmt": "f16", "out_fmt": "q4.4"}, "state the integer type .*not q4.4"),
])  # fmt: skip
def test_what_is_no_vector(op, options, message):
    with pytest.raises(ValueError, match=message):
        VectorSpec.make(op, **options)


@pytest.mark.skipif(GENERATOR is None, reason="no testfloat_gen on the path: Berkeley TestFloat 3e is needed")
@pytest.mark.parametrize("mode", ["near_even", "minMag", "min", "max", "near_maxMag"])
@pytest.mark.parametrize("op", [
    "f16_add", "f16_sub", "f16_mul", "f16_div", "f16_sqrt", "f16_rem", "f16_mulAdd", "f16_roundToInt", "f16_to_i32",
    "f16_to_ui64", "f16_lt", "f16_eq_signaling", "f16_to_f32", "f32_to_f16", "ui32_to_f16", "i64_to_f32",
])  # fmt: skip
def test_testfloat(op, mode):
    made = subprocess.run([GENERATOR, "-level", "1", f"-r{mode}", op], capture_output=True, check=True).stdout
    head = b"".join(made.splitlines(keepends=True)[:50_000])
    exact = False if op in ("f16_roundToInt", "f16_to_i32", "f16_to_ui64") else None
    reports = [
        check(io.BytesIO(head), op, rounding=mode, any_nan=True, exact=exact, nan=nan)
        for nan in ("riscv", "x86", "arm") if nan == "riscv" or op in ("f16_to_i32", "f16_to_ui64")
    ]  # fmt: skip
    assert any(report.ok for report in reports), str(reports[0])
