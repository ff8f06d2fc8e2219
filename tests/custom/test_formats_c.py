"""Formats from C: the paper's listing and formats, what a code is made of, and what is wrong with a source."""

import pickle
import shutil
import subprocess
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from tests.support.cases import cases
from tests.support.custom_examples import EXAMPLES

FP8 = (EXAMPLES / "fp8.c").read_text(encoding="utf-8")
LISTING = FP8[FP8.index("typedef") : FP8.index("\nenum")]  # the declarations of the paper's listing
BODIES = """
float as_float(new_fp nf) {
    float f = nf.e ? (nf.m + 4) / 4.f : nf.m / 2.f;
    for (int e = nf.e; e > 15; e--) f *= 2;
    for (int e = nf.e; e < 15; e++) f /= 2;
    return nf.s ? -f : f;
}
new_fp convert(float f) { new_fp r = {f < 0, 0, 0}; while (r.e < 31 && as_float(r) < f) r.e++; return r; }
new_fp add(new_fp a, new_fp b) { a.m ^= b.m; return a; }
new_fp log(new_fp a) { a.s ^= 1; return a; }
"""
SMALL = """typedef _Bool typedef_bool;
typedef struct {{ {} }} fp;
float as_float(fp a) {{ return {}; }}
fp convert(float x) {{ fp r = {{0}}; return r; }}
"""


def small(fields, value, *more, name="fp", **options):
    return sn.CustomFormat.from_c(SMALL.format(fields, value) + "\n".join(more), name, **options)


def every(fmt):
    return np.arange(1 << fmt.bits).astype(fmt.storage_dtype)


# -- the paper's listing -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("header", ["", "#include <math.h>\n", "#include <stdlib.h>\n#include <complex.h>\n"])
def test_the_listing_with_bodies(header):
    fmt = sn.CustomFormat.from_c(header + LISTING + BODIES, "new_fp")
    codes = every(fmt)
    assert fmt.bits == 8 and fmt.name == "new_fp"
    assert np.array_equal(sn.log(codes, fmt), codes ^ 0x80)
    assert np.array_equal(sn.add(codes[:, None], codes, fmt), codes[:, None] ^ (codes & 3))
    assert [name for name, kind in fmt.primitives.items() if kind == "user"] == ["as_float", "convert", "add", "log"]


def test_a_plain_compiler_refuses_the_listing(tmp_path):
    for text, message in ((LISTING, "uint"), ("#include <math.h>\n" + LISTING.replace("uint", "unsigned"), "log")):
        done = subprocess.run(
            ["cc", "-std=c11", "-fsyntax-only", "-x", "c", "-"], input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode and message in done.stderr


def test_the_bare_listing_names_what_has_no_body():
    with pytest.raises(ValueError) as error:
        sn.CustomFormat.from_c(LISTING, "new_fp")
    for function in (
        "float as_float(new_fp) (source.c:7)", "new_fp convert(float) (source.c:6)",
        "new_fp add(new_fp, new_fp) (source.c:8)", "new_fp log(new_fp) (source.c:9)",
    ):  # fmt: skip
        assert function in str(error.value)
    assert "declared without a body" in str(error.value)


def codes_that_differ(name, fmt, builtin, *operands):
    """Where two formats' results differ; any NaN is as good as another."""
    mine, theirs = (getattr(sn.ops, name)(*operands, f) for f in (fmt, builtin))
    nan = np.isnan(sn.decode(mine, fmt)) & np.isnan(sn.decode(theirs, builtin))
    return np.argwhere((mine != theirs) & ~nan).tolist()


UNARY = (
    "sqrt", "exp", "log", "tanh", "sigmoid", "erf", "reciprocal", "rsqrt", "cbrt", "negate", "absolute", "logb",
    "round_to_integral", "next_up", "next_down",
)  # fmt: skip
BINARY = (
    "add", "subtract", "multiply", "divide", "remainder", "minimum", "maximum", "minimum_number", "maximum_number",
)  # fmt: skip


@cases("name", UNARY)
def test_the_papers_formats_are_the_built_in_ones(name, fp8, fp16):
    for fmt, builtin in ((fp8, "e5m2"), (fp16, "e6m9")):
        assert codes_that_differ(name, fmt, builtin, every(fmt)) == []


@pytest.mark.parametrize("name", BINARY)
def test_the_papers_fp8_on_all_pairs(name, fp8):
    codes = every(fp8)
    assert codes_that_differ(name, fp8, "e5m2", codes[:, None], codes) == []


@pytest.mark.parametrize("name", [*BINARY, "fma"])
def test_the_papers_fp16_on_a_sample(name, fp16):
    a, b, c = np.random.default_rng(1).integers(0, 1 << 16, (3, 200_000), np.uint16)
    assert codes_that_differ(name, fp16, "e6m9", *((a, b, c) if name == "fma" else (a, b))) == []


def test_fma_of_the_papers_fp8(fp8):
    codes = every(fp8)
    a, b, c = np.meshgrid(codes[::3], codes[::5], codes)
    assert codes_that_differ("fma", fp8, "e5m2", a, b, c) == []


def test_values_and_rounding_are_the_built_in_ones(fp8, fp16):
    rng = np.random.default_rng(2)
    for fmt, builtin in ((fp8, "e5m2"), (fp16, "e6m9")):
        codes = every(fmt)
        values = sn.decode(codes, builtin)
        mine = sn.decode(codes, fmt)
        assert np.array_equal(mine, values, equal_nan=True)
        assert np.array_equal(np.signbit(mine)[values == 0], np.signbit(values)[values == 0])
        finite = np.sort(values[np.isfinite(values)])
        middle = (finite[1:] + finite[:-1]) / 2
        near = [np.nextafter(middle, limit) for limit in (np.inf, -np.inf)]
        drawn = rng.normal(size=10000) * 10.0 ** rng.integers(-9, 9, 10000)
        special = [1e300, -1e300, np.inf, -np.inf, np.nan, 0.0, -0.0]
        x = np.concatenate([finite, middle, *near, drawn, special])
        assert np.array_equal(sn.encode(x, fmt), sn.encode(x, builtin))
        with np.errstate(over="ignore"):
            narrow = x.astype(np.float32)
        assert np.array_equal(sn.encode(narrow, fmt), sn.encode(narrow, builtin))
        known = sn.format(builtin)
        assert fmt.carrier_facts == (known.precision, known.emin - known.mantissa_bits, known.emax)
        assert fmt.infinities and fmt.has_nan and fmt.negative_zero and fmt.has_zero and fmt.signed
        assert (fmt.max, fmt.min) == (known.max, known.min)


# -- codes -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "value", "want"),
    [
        ("uint a : 3; uint b : 6;", "100 * a.a + a.b", lambda c: 100 * (c >> 6) + (c & 63)),
        ("unsigned long long a : 2, : 5, b : 7;", "1000 * a.a + a.b", lambda c: 1000 * (c >> 7) + (c & 127)),
        ("uint8_t a; int b : 4;", "100.f * a.a + a.b", lambda c: 100 * (c >> 4) + ((c & 15) ^ 8) - 8),
        ("int8_t a; uint b : 1;", "10 * a.a + a.b", lambda c: 10 * (((c >> 1) ^ 128) - 128) + (c & 1)),
        ("_Bool a; uint b : 3;", "100 * a.a + a.b", lambda c: 100 * (c >> 3) + (c & 7)),
        ("typedef_bool a, c : 1; uint : 3, b : 2;", "100 * a.a + 10 * a.c + a.b",
         lambda c: 100 * (c >> 3) + 10 * (c >> 2 & 1) + (c & 3)),
        ("uint a : 1 + 2; uint b : sizeof(int);", "100 * a.a + a.b", lambda c: 100 * (c >> 4) + (c & 15)),
    ],
)  # fmt: skip
def test_a_code_is_its_fields_in_order(fields, value, want):
    fmt = small(fields, value, "fp neg(fp a) { return a; }")
    codes = every(fmt)
    assert np.array_equal(fmt.decode(codes, np.float64), want(codes.astype(int)))
    assert np.array_equal(fmt.apply("negate", codes), codes)  # to the struct and back


@pytest.mark.parametrize(
    ("declaration", "part"),
    [
        ("typedef unsigned short fp;", ""),
        ("struct tag { uint a : 16; };\ntypedef struct tag fp;", ".a"),
        ("typedef struct __attribute__((packed)) { ushort a; } fp;", ".a"),
        ("#define W 16\ntypedef struct { uint a : W; } fp, *pointer;\ntypedef fp other;", ".a"),
    ],
)
def test_ways_to_declare_a_type(declaration, part):
    fmt = sn.CustomFormat.from_c(
        f"{declaration}\nfloat as_float(fp x) {{ return x{part}; }}\n"
        f"fp convert(float x) {{ fp r; r{part} = x; return r; }}", "fp",
    )  # fmt: skip
    codes = every(fmt)
    assert fmt.bits == 16 and fmt.storage_dtype == np.uint16
    assert np.array_equal(sn.decode(codes, fmt), codes) and np.array_equal(sn.encode(codes, fmt), codes)


BITS32 = """#include <string.h>
typedef struct { uint32_t bits; } fp;
float as_float(fp a) { float f; memcpy(&f, &a, 4); return f; }
fp convert(double x) { fp a; float f = (float)x; memcpy(&a, &f, 4); return a; }
"""
BITS64 = """
typedef uint64_t fp;
double as_float(fp a) { return *(double *)&a; }
fp convert(double x) { return *(fp *)&x; }
fp add(fp a, fp b) { return convert(as_float(a) + as_float(b)); }
"""


def test_wide_formats_call_the_functions():
    fmt = sn.CustomFormat.from_c(BITS32, "fp")
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(3, 5000)).astype(np.float32).view(np.uint32)
    assert fmt.bits == 32 and fmt.has_nan and fmt.infinities and fmt.negative_zero and fmt.has_zero and fmt.signed
    for name, operands in (("add", (a, b)), ("divide", (a, b)), ("fma", (a, b, c)), ("exp", (a,)), ("minimum", (a, b))):
        assert codes_that_differ(name, fmt, "binary32", *operands) == []
    assert np.array_equal(sn.compare(a, b, fmt), sn.compare(a, b, "binary32"))
    assert np.array_equal(sn.ops.total_order(a, b, fmt), sn.ops.total_order(a, b, "binary32"))
    for call in (lambda: fmt.max, lambda: fmt.values, lambda: np.sort(sn.Array(a, fmt))):
        with pytest.raises(ValueError, match="for formats of up to 16 bits; fp has 32"):
            call()
    for call in (lambda: fmt.apply("next_up", a), lambda: fmt.table("exp"), lambda: fmt.table("add")):
        with pytest.raises(ValueError, match="16 bits"):
            call()
    wide = sn.CustomFormat.from_c(BITS64, "fp")
    x, y = rng.normal(size=(2, 1000)).view(np.uint64)
    assert wide.bits == 64 and codes_that_differ("add", wide, "binary64", x, y) == []
    assert sn.array([1.5, np.nan, -np.inf], wide).codes.tolist() == [0x3FF8 << 48, 0x7FF8 << 48, 0xFFF0 << 48]


# -- the source --------------------------------------------------------------------------------------------------------
FINE = LISTING + BODIES
ADD = "new_fp add(new_fp a, new_fp b) { a.m ^= b.m; return a; }"


@cases(
    ("source", "message"),
    [
        (FINE.replace("as_float", "to_float"), "a format in C needs the function 'float as_float.new_fp.'"),
        (FINE.replace("new_fp convert(float f) {", "new_fp convert(float f, int k) {"), "needs|must be|conflicting"),
        (FINE.replace(ADD, "").replace("new_fp add(new_fp a,", "new_fp add(new_fp *a,")
         + "new_fp add(new_fp *a, new_fp b) { return b; }",
         r"source.c:20: 'new_fp add\(new_fp \*, new_fp\)' must be 'new_fp add\(new_fp, new_fp\)', without pointers"),
        (FINE.replace("new_fp log(new_fp a)", "float log(new_fp a)").replace("a.s ^= 1; return a;", "return 1;"),
         r"'float log\(new_fp\)' must be 'new_fp log\("),
        (FINE + "new_fp mul(new_fp a, new_fp b) { return a; }\nnew_fp multiply(new_fp a, new_fp b) { return a; }",
         "multiply is defined twice, as"),
        (FINE.replace("new_fp;", "newfp;"), "unknown type name|no 'typedef"),
        (FINE.replace("a.m ^= b.m;", "a.m ^= b.q;"), r"source.c:18.*no member named .q"),
        (FINE.replace("return a; }", "return a }", 1), "source.c:18"),
        (FINE.replace("a.m ^= b.m;", "a.m = helper(b.m);"), "implicit declaration of function|call to undeclared"),
        ("int helper(int);" + FINE.replace("a.m ^= b.m;", "a.m = helper(b.m);"),
         r"called but not defined \(nor in the C standard library\): helper"),
        (FINE.replace("uint s : 1;", "float s;").replace("a.s ^= 1;", ""),
         "source.c:2: a field of new_fp must be an integer.*'float'"),
        (FINE.replace("struct", "union"), "is a union"),
        (FINE.replace("uint m : 2;", "uint64_t m;"), "must have from 1 to 64 bits"),
        ("typedef struct tag new_fp;" + BODIES, "declared without its fields|incomplete|invalid use"),
        ('#include "nowhere.h"\n' + FINE, "nowhere.h"),
        (FINE.replace("a.s ^= 1;", "volatile int z = a.e - 9; a.m = 6 / z;"),
         r"new_fp log\(new_fp\) \(source.c:19\) crashes \(SIGFPE\) on 0x24"),
        (FINE.replace("a.s ^= 1;", "static uint n; a.m = n++ / 3;"),
         r"log\(new_fp\) \(source.c:19\) is not deterministic"),
        (FINE.replace("(new_fp nf) {", "(new_fp nf) { return 0.f / 0.f;"), "as_float returns NaN for every code"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(source, message):
    with pytest.raises(ValueError, match=r"CustomFormat mine(?s:.*)(" + message + ")"):
        sn.CustomFormat.from_c(source, name="mine")


def test_files_are_named_and_their_folder_is_looked_in(tmp_path):
    (tmp_path / "bodies.h").write_text(BODIES)
    path = tmp_path / "my_fp.c"
    path.write_text(LISTING + '#include "bodies.h"\n')
    fmt = sn.CustomFormat.from_c(path)
    assert fmt.apply("log", 5) == 0x85
    (tmp_path / "bodies.h").write_text(BODIES.replace("a.s ^= 1;", "a.s = 1 +;"))
    with pytest.raises(ValueError, match="bodies.h:10:.*error"):
        sn.CustomFormat.from_c(str(path))
    for missing in (tmp_path / "other.c", "", "other.c"):
        with pytest.raises(FileNotFoundError, match=rf"no C file '{missing}'"):
            sn.CustomFormat.from_c(missing)
    with pytest.raises(TypeError, match="the source is C text or the path of a file, got 3"):
        sn.CustomFormat.from_c(3)


def test_options_of_the_compiler(monkeypatch):
    fields = "uint a : WIDTH;"
    assert small(fields, "a.a", cflags=["-DWIDTH=5"]).bits == 5
    assert small(fields, "a.a", cflags=["-DWIDTH=5"]) != small(fields, "a.a", cflags=("-DWIDTH=6",))
    with pytest.raises(ValueError, match="-ffast-math lets the compiler change results"):
        small(fields, "a.a", cflags=["-ffast-math"])
    with pytest.raises(TypeError, match="cflags must be a sequence of options, got the string '-DWIDTH=5 -g'"):
        small(fields, "a.a", cflags="-DWIDTH=5 -g")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ValueError, match="the C compiler 'no-such-compiler' is not found"):
        small("uint a : 4;", "a.a")


@pytest.mark.skipif(shutil.which("clang") is None, reason="no clang")
def test_another_compiler_makes_the_same_format(monkeypatch, fp8):
    monkeypatch.setenv("CC", "clang")
    other = sn.CustomFormat.from_c(EXAMPLES / "fp8.c")
    codes = every(fp8)
    assert np.array_equal(other.table("add"), fp8.table("add")) and np.array_equal(other.table("log"), fp8.table("log"))
    assert np.array_equal(other.decode(codes, np.float32), fp8.decode(codes, np.float32), equal_nan=True)


def test_numbers_of_every_kind(fp8):
    texts = ["1/3", "0x1p-3", "1e400", "nan", "-inf"]
    for x in (texts, [Fraction(1, 3), 2**70, -5], np.float16([1.1, 3.3]), np.arange(5), np.array([True, False])):
        assert sn.encode(x, fp8).tolist() == sn.encode(x, "e5m2").tolist()
    codes = [60, 124, 254, 0, 128]
    mine, built_in = (sn.decode(codes, f, object).tolist() for f in (fp8, "e5m2"))
    assert [str(v) for v in mine] == [str(v) for v in built_in]
    out = np.empty(3, np.float32)
    assert sn.quantize(np.float32([1, 2.2, 3.3]), fp8, out=out) is out and out.tolist() == [1.0, 2.0, 3.5]


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ValueError, match="cannot be made .*; set SOFTNUM_CACHE"):
        small("uint a : 4;", "a.a")


def test_softnums_headers_are_found():
    body = "fp neg(fp a) { a.a = sn_bit_length(a.a); return a; }"
    fmt = small("uint a : 8;", "a.a", '#include "softnum/softnum.h"', body)
    assert fmt.apply("negate", [1, 100]).tolist() == [1, 7]


# -- what it is --------------------------------------------------------------------------------------------------------
def test_identity(fp8, fp16):
    again = pickle.loads(pickle.dumps(fp8))
    assert again == fp8 and hash(again) == hash(fp8) and fp8 != fp16 and again.name == "new_fp"
    assert np.array_equal(again.table("add"), fp8.table("add"))
    assert repr(fp8) == "<CustomFormat new_fp: 8 bits, C: as_float, convert, add, log>"
    assert fp8.kind == "custom" and {fp8: 1}[again] == 1
    assert str(fp8.primitives).splitlines()[0] == "user:    as_float, convert, add, log"


OTHER_NAMES = """typedef struct { uint a : 8; } fp;
static fp helper(fp a, fp b) { a.a += b.a; return a; }
float sqrt(float x) { return x / 2; }
float as_float(fp a) { return sqrt(2 * a.a); }
fp convert(float x) { fp r = {x}; return r; }
fp sub(fp a, fp b) { a.a = 1; return a; }
fp mul(fp a, fp b) { a.a = 2; return a; }
fp div(fp a, fp b) { a.a = 3; return a; }
fp max(fp a, fp b) { return helper(a, b); }
"""


def test_other_names_of_operations_and_functions_of_the_users_own():
    fmt = sn.CustomFormat.from_c(OTHER_NAMES, "fp")
    assert [fmt.apply(n, 5, 7).item() for n in ("subtract", "multiply", "divide", "maximum")] == [1, 2, 3, 12]
    assert fmt.primitives["sqrt"] == "derived" and fmt.decode(np.uint8(9), np.float64) == 9
