"""The C library (csrc/softnum.h): its bits are the package's, its errors are told, and what it shows is its header."""

from __future__ import annotations

import ctypes as ct
import platform
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import softnum as sn
from softnum.arrays.environment import environment
from softnum.formats.modes import ROUNDING_MODES
from softnum.runtime import _core
from tests.support import c_library
from tests.support.c_library import FLUSHES, ROOT, Failed, Library, codes_of, number_of, same

FORMATS = [
    "binary16", "bfloat16", "e4m3fn", "e5m2", "e4m3fnuz", "e8m0fnu", "e2m1fn", "e3m2fn", "dlfloat16", "binary32",
    "binary64", "e6m3", "e11m20", "q4.4", "uq8.8", "q16.16", "q10.-2", "binary8p3se", "binary8p4uf", "binary12p5sf",
    "e15m40", "q1.63",
]  # fmt: skip
_UPWARD = 0x800  # FE_UPWARD of x86
NARROW = [name for name in FORMATS if sn.format(name).bits <= 16]


@pytest.fixture(scope="module")
def lib() -> Library:
    return c_library.library()


def values(fmt, n, rng, dtype):
    """Random bit patterns, and numbers about the format's range."""
    bits = np.dtype(dtype).itemsize * 8
    x = rng.integers(0, 2**bits, n, np.dtype(f"u{bits // 8}")).view(dtype)
    low, high = np.clip((sn.format(fmt).span[0] - 2, sn.format(fmt).span[1] + 2), -140, 120)
    x[n // 4 :] = np.ldexp(rng.normal(size=n - n // 4), rng.integers(low, high + 1, n - n // 4)).astype(dtype)
    x[-6:] = 0.0, -0.0, np.inf, -np.inf, np.nan, 1.0
    return x


def rules_of(fmt):
    return [None, *sn.format(fmt).overflow_rules]


@pytest.mark.parametrize("fmt", FORMATS)
def test_values_in_every_mode(lib, fmt):
    rng, f = np.random.default_rng(number_of(fmt)), sn.format(fmt)
    invalid = {} if f.has_nan else {"invalid": float(sn.decode(1, f))}
    one = 0 if f.has_nan else 1
    for i, mode in enumerate(ROUNDING_MODES):
        for dtype in (np.float32, np.float64)[i // 2 % 2 :: 2] if i < 10 else (np.float32, np.float64):
            x = values(f, 300, rng, dtype)
            r = int(rng.integers(1, 33)) if mode.startswith("stochastic") else 32
            options = {"rounding": mode, "overflow": rules_of(f)[i % len(rules_of(f))], "stochastic_bits": r}
            options |= {"tininess": ("after", "before")[i % 2], "flush_results": (None, "before", "after")[i % 3]}
            # with `invalid` the package has no error where the library has a status
            given, allow = options | {"invalid_code": one}, (c_library.NO_CODE,) if invalid else ()
            want, flags = sn.encode(x, f, key=(7, i), return_flags=True, **invalid, **options)
            got, raised = lib.rounded("encode", x, f, key=(7, i), flags=True, allow=allow, **given)
            same(got, want, f"encode {fmt} {options} {dtype}")
            same(raised & 31, flags, f"flags {fmt} {options}")
            same(lib.rounded("encode", x, f, key=(7, i), allow=allow, **given), want, f"encode {fmt} {options} {dtype}")
            try:
                want = sn.quantize(x, f, key=(7, i), **invalid, **options)
            except ValueError as error:
                assert "not exact" in str(error)
                with pytest.raises(Failed, match="does not hold a value"):
                    lib.rounded("quantize", x, f, key=(7, i), **given)
            else:
                same(lib.rounded("quantize", x, f, key=(7, i), allow=allow, **given), want, f"quantize {fmt} {options}")


@pytest.mark.parametrize("fmt", FORMATS)
def test_decoding(lib, fmt):
    codes = codes_of(fmt, 500, np.random.default_rng(3))
    for dtype in (np.float32, np.float64):
        try:
            want = sn.decode(codes, fmt, dtype)
        except ValueError:
            with pytest.raises(Failed, match="does not hold a value"):
                lib.decode(codes, fmt, dtype)
        else:
            same(lib.decode(codes, fmt, dtype), want, f"decode {fmt}")


def test_random_words_are_the_elements(lib):
    x, key = np.random.default_rng(1).normal(size=1100).astype(np.float32), (2**63 + 5, 9)
    options = {"rounding": "stochastic", "stochastic_bits": 11}
    whole = lib.rounded("encode", x, "e4m3fn", key=key, **options)
    parts = [
        lib.rounded("encode", x[i:j], "e4m3fn", key=(*key, i), **options) for i, j in ((0, 3), (3, 514), (514, 1100))
    ]
    same(np.concatenate(parts), whole, "parts")
    words = np.empty(1100, np.uint32)
    lib.c.softnum_random_words(*key, 0, words.ctypes.data, words.size)
    same(words, sn.Stream(key).words(1100), "words")
    same(lib.rounded("encode", x, "e4m3fn", words=words, **options), whole, "given words")


OPERATIONS = {name: operands for name, (_, operands) in _core.OPERATIONS.items()}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_with_flags(lib, name):
    """Each operation: a format for each call, the rules in turn."""
    rng, operands = np.random.default_rng(number_of(name)), OPERATIONS[name]
    evaluated = name in _core.ELEMENTARY
    modes = list(ROUNDING_MODES)
    for i in range(2 if evaluated else 6):
        f = sn.format(NARROW[(number_of(name) + 5 * i) % len(NARROW)] if i % 3 else ("binary32", "binary64")[i // 3])
        count = 24 if evaluated and f.bits > 16 else 120 if evaluated else 600
        out = sn.format(("q8.0", "q32.0", "uq16.0")[i % 3]) if name == "to_integer" else f
        formats = (f,) * operands if name != "scalb" else (f, sn.format("q32.0"))
        codes = [codes_of(g, count, rng) for g in formats]
        for c in codes[1:]:
            rng.shuffle(c)
        rule = [r for r in rules_of(out) if r != "wrap"]
        options = {"rounding": modes[(number_of(name) + i) % len(modes)], "overflow": rule[i % len(rule)]}
        options |= {
            "tininess": ("after", "before")[i % 2],
            "flush_inputs": i % 3 == 1,
            "nan": ("canonical", "x86", "arm")[i % 3],
        }
        options |= {"flush_results": list(FLUSHES)[i % 4]}
        key = (11, i)
        random = np.zeros(count, np.uint32)
        if options["rounding"].startswith("stochastic"):
            lib.c.softnum_random_words(*key, 0, random.ctypes.data, count)
        env = environment(
            out, options["rounding"], options["overflow"], 32, options["tininess"], options["flush_inputs"],
            options["flush_results"], options["nan"], 0,
        )  # fmt: skip
        handle = _core.intern_context(name, formats, out, env)
        want, flags = _core.define(name, handle, [c.astype(np.uint64) for c in codes], random)
        got, raised = lib.operate(name, codes, formats, out, key=key, allow=(c_library.NO_CODE,), **options)
        same(got, want.astype(out.storage_dtype), f"{name} {f} {options}")
        same(raised, flags, f"flags of {name} {f} {options}")
        plain, _ = lib.operate(name, codes, formats, out, key=key, flags=False, allow=(c_library.NO_CODE,), **options)
        same(plain, got, f"{name} without flags")


def test_operations_of_mixed_formats(lib):
    rng = np.random.default_rng(5)
    for formats, out in (
        (("e4m3fn", "binary16", "binary32"), "bfloat16"), (("binary64", "q4.4", "e5m2"), "e2m1fn"),
        (("uq8.8", "e8m0fnu", "q1.63"), "binary64"),
    ):  # fmt: skip
        codes = [codes_of(f, 700, rng) for f in formats]
        invalid = {} if sn.format(out).has_nan else {"invalid": 0}
        want, flags = sn.fma(*codes, formats, out_fmt=out, return_flags=True, **invalid)
        got, raised = lib.operate("fma", codes, formats, out, allow=(c_library.NO_CODE,))
        same(got, want, f"fma {formats} {out}")
        same(raised & 31, flags, "flags")


@pytest.mark.parametrize("cpu", _core.available_isas())
def test_no_instruction_set_and_no_environment_matters(lib, cpu):
    x = values("e5m2", 300, np.random.default_rng(6), np.float32)
    codes = [codes_of("e4m3fn", 1000, np.random.default_rng(i)) for i in range(3)]
    matrices = [(c[:900] & 0x77).reshape(30, 30) for c in codes]

    def computed():
        key = {"key": 5, "rounding": "stochastic"}
        unit = lib.unit(0, "e4m3fn", "e4m3fn", "e6m9", given={"rounding": "toward_zero"}, product="e5m4")
        fused = lib.unit(2, "e4m3fn", "e4m3fn", "binary32", terms=16, fraction_bits=13)
        exact = lib.unit(1, "e4m3fn", "e4m3fn", "binary32")
        yield lib.rounded("encode", x, "e5m2", **key)
        yield lib.rounded("quantize", x, "e6m3")
        yield lib.decode(codes[0], "e4m3fn")
        yield lib.operate("fma", codes, ["e4m3fn"] * 3, "e4m3fn")[0]
        yield lib.operate("exp", codes[:1], ["e4m3fn"], "e4m3fn")[0]
        for made, result in ((unit, "e6m9"), (fused, "binary32"), (exact, "binary32")):
            yield lib.product(made, *matrices[:2], None, result)

    want = list(computed())
    with lib.on(cpu):
        for got, expected in zip(computed(), want, strict=True):
            same(got, expected, cpu)
    c = ct.CDLL("libm.so.6") if sys.platform == "linux" else None
    if c is not None and platform.machine() == "x86_64":
        rounding = c.fegetround()
        try:
            c.fesetround(_UPWARD)
            lib.formats.clear()  # all is made again
            again = list(computed())
            assert c.fegetround() == _UPWARD
        finally:
            c.fesetround(rounding)
        for got, expected in zip(again, want, strict=True):
            same(got, expected, "rounding upward")


def test_float_by_its_parameters(lib):
    """The facts of each float format give its codes; the names of both are told apart in no result."""
    nans = {"ieee": 0, "all_ones": 1, "negative_zero": 2, "none": 3}
    x = values("binary16", 400, np.random.default_rng(4), np.float64)
    x = x[np.isfinite(x)]
    for name in FORMATS:
        f = sn.format(name)
        if not isinstance(f, sn.FloatFormat):
            continue
        facts = c_library.made(
            c_library.Float, exponent_bits=f.exponent_bits, mantissa_bits=f.mantissa_bits, bias=f.bias,
            is_signed=int(f.signed), nans=nans[f.nan_codes], infinities=int(f.infinities), has_zero=int(f.has_zero),
            negative_zero=int(f.negative_zero), field_0=["subnormal", "normal", "zero"].index(f.lowest_binade),
            saturating=int(f.saturating),
        )  # fmt: skip
        lib.formats["own"] = lib.make("format_float", ct.byref(facts))
        same(lib.rounded("encode", x, "own"), sn.encode(x, f), name)


def test_errors_name_the_value_the_limit_and_the_way_out(lib):
    e5m2, q = lib.format("e5m2"), lib.format("q4.4")

    def fails(status, match, function, *args):
        with pytest.raises(Failed, match=match) as error:
            function(*args)
        assert error.value.status == status
        assert lib.c.softnum_status_text(status)

    wide = c_library.made(c_library.Float, exponent_bits=16, is_signed=1, nans=3, has_zero=1, negative_zero=1)
    lib.formats["e16m0fnu"] = lib.make("format_float", ct.byref(wide))
    fails(1, r"unknown format 'e99m9'; known are", lib.make, "format_named", b"e99m9")
    fails(1, r"posit16 is a posit or takum", lib.make, "format_named", b"Posit16")
    fails(1, r"name is null", lib.make, "format_named", ct.c_void_p())
    fails(1, r"unknown format 'a{31}'", lib.make, "format_named", b"a" * 5000)
    fails(1, "does not run 'sse9'; the best that it runs is", lib.make, "format_on", e5m2, b"sse9")
    fails(1, r"60 integer and 5 fraction bits", lib.make, "format_fixed", 60, 5, 1)
    odd = dict(exponent_bits=4, mantissa_bits=3, bias=7, is_signed=1, infinities=1, has_zero=1)
    for change, match in (
        ({"exponent_bits": 17}, "17 exponent bits"), ({"infinities": 0}, "imply infinities"),
        ({"nans": 9}, "nans 0 to 3"),
        ({"is_signed": 0, "nans": 2}, "needs a sign"), ({"saturating": 1}, "saturates has no infinities"),
        ({"exponent_bits": 16}, "16 exponent bits with a fraction"),
    ):  # fmt: skip
        fails(1, match, lib.make, "format_float", ct.byref(c_library.made(c_library.Float, **(odd | change))))
    fails(1, "size", lib.make, "format_float", ct.byref(c_library.Float(4)))
    for change, match in (
        ({"rounding": 16}, "rounding 16"), ({"stochastic_bits": 33, "rounding": 10}, "1 to 32, got 33"),
        ({"overflow": 4}, "e5m2 has no rule of overflow number 4"), ({"invalid_code": 256}, "0x100 is no code of e5m2"),
        ({"overflow": 6}, "P3109"), ({"nan": 3}, "nan 3"), ({"flush_inputs": 2}, "flush_inputs 2"),
    ):  # fmt: skip
        given = c_library.rules()
        for name, value in change.items():
            setattr(given, name, value)
        fails(1, match, lib.make, "rounder_new", e5m2, ct.byref(given))
    rounder = lib.make("rounder_new", e5m2, ct.byref(c_library.rules("stochastic")))
    array = ct.c_void_p(np.zeros(4).ctypes.data)
    fails(1, "random is null", lib.call, "quantize_f32", rounder, array, array, 4, None)
    fails(2, "element 2 of in\\[0\\], 0x10, is no code of e2m1fn, which has 4 bits", lib.operate, "negate",
          [np.array([1, 2, 16], np.uint8)], ["e2m1fn"], "e2m1fn")  # fmt: skip
    fails(2, "element 1 of codes", lib.decode, np.array([1, 255], np.uint8), "e2m1fn")
    fails(3, "a value is NaN, and e2m1fn has no code", lib.rounded, "encode", np.float32([np.nan]), "e2m1fn")
    fails(3, "NaN or infinite, and q4.4", lib.rounded, "quantize", np.float32([np.inf]), "q4.4")
    fails(4, "binary32 does not hold a value of e4m30; take binary64", lambda: lib.rounded(
        "quantize", np.float32([1, 1e9]), "e4m30", overflow="saturate"
    ))  # fmt: skip
    for name, formats, out, options, match in (
        ("adds", ["e5m2"], "e5m2", {}, "unknown operation 'adds'"),
        ("negate", ["e5m2"], "e4m3fn", {}, "in the format of a, e5m2, not e4m3fn"),
        ("to_integer", ["e5m2"], "q4.4", {}, "an integer that saturates"),
        ("total_order", ["e5m2", "e4m3"], "e5m2", {}, "have a total order"),
        ("sqrt", ["e15m40"], "q1.63", {"overflow": "wrap"}, "can be wrapped exactly"),
        ("sin", ["e16m0fnu"], "e5m2", {}, "angles are reduced up to"),
        ("scalb", ["e5m2", "e5m2"], "e5m2", {}, "is an integer"),
    ):  # fmt: skip
        fails(1, match, partial(lib.operate, name, [np.zeros(1)] * len(formats), formats, out, **options))
    for facts, match in (
        ({"lanes": 0}, "lanes is from 1 to 1024, got 0"), ({"result": "binary32"}, "state chunk"),
        ({"reduction": 3}, "reduction"),
        ({"product_rounding": 1}, "needs product"), ({"chunk": -1}, "chunk"),
    ):  # fmt: skip
        fails(1, match, partial(lib.unit, 0, "e5m2", "e5m2", "e6m3", **facts))
    fails(1, "has no zero", lib.unit, 0, "e5m2", "e5m2", "e8m0fnu")
    fails(1, "kind is from 0 to 2, got 7", lib.unit, 7, "e5m2", "e5m2", "e6m3")
    fails(1, "must be a float format", lib.unit, 2, "e5m2", "e5m2", "q8.8")
    fails(1, "no random words", lambda: lib.unit(0, "e5m2", "e5m2", "e6m3", {"rounding": "stochastic"}, compensated=1))
    fails(1, "would take", lib.unit, 1, "e15m40", "e5m2", "e5m2")
    fails(1, "deliver canonical", lambda: lib.unit(0, "e5m2", "e5m2", "e6m3", {"nan": "x86"}))
    unit, codes = lib.unit(0, "e2m1fn", "e2m1fn", "e6m3"), np.full((2, 2), 3, np.uint8)
    fails(1, "lda = 1", lambda: lib.product(unit, codes, codes, None, "e6m3", strides=(1, 0, 0, 0)))
    fails(1, "below 2", lambda: lib.product(unit, codes, codes, None, "e6m3", part=(0, 2**32 - 1, 0)))
    fails(2, "element 3 of b", lib.product, unit, codes, np.array([[1, 2], [3, 99]], np.uint8), None, "e6m3")
    fails(1, "one row and one column", lambda: lib.product(unit, codes, codes, None, "e6m3", function="trace"))
    assert q and lib.c.softnum_format_bits(q) == 8


def test_the_library_shows_its_header_and_nothing_else(lib, tmp_path):
    text = (ROOT / "csrc" / "softnum.h").read_text(encoding="utf-8")
    assert text.count("\n") <= 200
    declared = set(re.findall(r"^SOFTNUM_API .*?(softnum_\w+)\(", text, re.MULTILINE))
    folder = ROOT / "build" / "clib"
    for options, kinds in (("-D", "Ti"), ("-g", "TDRBVW")):
        file = folder / ("libsoftnum.so" if options == "-D" else "libsoftnum.a")
        told = subprocess.run(
            ["nm", options, "--defined-only", file], capture_output=True, text=True, check=True
        ).stdout
        names = {line.split()[2] for line in told.splitlines() if len(line.split()) == 3 and line.split()[1] in kinds}
        assert names == declared if options == "-D" else all(n.startswith(("sn_", "softnum_")) for n in names)
    assert lib.c.softnum_version().decode() == sn.__version__
    listed, i, operands = {}, 0, ct.c_int32()
    while name := lib.c.softnum_operation_name(i, ct.byref(operands)):
        listed[name.decode()], i = operands.value, i + 1
    assert listed == OPERATIONS
    source = tmp_path / "it.cpp"
    source.write_text('#include "softnum.h"\nint main() { softnum_rules r = SOFTNUM_RULES_INIT; softnum_unit_facts u = '
                      "SOFTNUM_UNIT_INIT(0); softnum_product p = SOFTNUM_PRODUCT_INIT(1, 2, 3); softnum_random k = "
                      "SOFTNUM_RANDOM_INIT(1); softnum_float f = SOFTNUM_FLOAT_INIT(4, 3); return int(r.size + u.size "
                      "+ p.m + k.seed + f.size) == 0; }\n")  # fmt: skip
    strict = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wold-style-cast", "-Werror", "-fsyntax-only"]
    subprocess.run(["c++", "-std=c++17", *strict, "-I", folder / "include", source], check=True)


def test_the_example_prints_what_the_package_computes(lib, tmp_path):
    folder, example = ROOT / "build" / "clib", ROOT / "examples" / "c" / "softnum_example.c"
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "softnum"], env={"PKG_CONFIG_PATH": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    ).stdout.split() or [f"-I{folder / 'include'}", f"-L{folder}", "-lsoftnum"]  # fmt: skip
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    program = tmp_path / "example"
    subprocess.run(["cc", *strict, example, "-o", program, *flags, f"-Wl,-rpath,{folder}"], check=True)
    told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert told == (ROOT / "examples" / "c" / "output.txt").read_text(encoding="utf-8")
    x = np.float32([0.1, 1.5, 300, -1e9, np.nan])
    assert f"e4m3fn codes: {' '.join(f'{c:02x}' for c in sn.encode(x, 'e4m3fn', overflow='saturate'))}" in told
    unit = sn.MadUnit("e6m9", operand="e4m3fn", chunk=4, outer_accumulator="binary32")
    product = sn.matmul(np.float32([np.arange(8) / 4]), np.float32(np.arange(16).reshape(8, 2)) / 8, unit)
    assert f"product: {' '.join(f'{v:g}' for v in product[0])}" in told
