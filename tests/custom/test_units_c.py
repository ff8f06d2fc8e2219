"""CustomMadUnit of functions in C: the paper's Listing 2, numbers and vectors, codes and floats; what is refused."""

import pickle

import numpy as np
import pytest

import softnum as sn
from softnum.mac.products.custom.steps import DefinitionCustom
from tests.support.custom_examples import EXAMPLES

numba = pytest.importorskip("numba")

FP8 = "typedef struct { uint s : 1; uint e : 5; uint m : 2; } new_fp;\n"
#: adds the codes: Mitchell's product without zeros and specials, in all its vector widths
MITCHELL = """
static new_fp one(new_fp a, new_fp b) {
    int code = (int)(a.e << 2 | a.m) + (int)(b.e << 2 | b.m) - (15 << 2);
    new_fp r;
    if (code < 4 || a.e == 0 || b.e == 0) code = 0;
    if (code > 0x7b) code = 0x7b;
    r.s = a.s ^ b.s;
    r.e = (uint)code >> 2;
    r.m = (uint)code & 3;
    return r;
}
"""


def mitchell(a, b):
    """The same in Python, on codes."""
    code = (a & 127) + (b & 127) - 60
    if code < 4 or (a & 124) == 0 or (b & 124) == 0:
        code = 0
    return ((a ^ b) & 128) | min(code, 0x7B)


def in_vectors(n):
    loop = f"for (int i = 0; i < {n}; i++) r.s[i] = one(a.s[i], b.s[i]);"
    return f"{FP8}{MITCHELL}new_fp{n} mad(new_fp{n} a, new_fp{n} b) {{ new_fp{n} r; {loop} return r; }}"


def finite(shape, seed=1):
    return sn.quantize(np.random.Generator(np.random.Philox(seed)).standard_normal(shape, dtype=np.float32), "e5m2")


def test_listing_2_is_the_built_in_unit_of_four_lanes():
    unit = sn.CustomMadUnit.from_c(EXAMPLES / "listing2.c", operand="e5m2")
    assert (unit.lanes, unit.carrier, unit.adds) == (4, "codes", False)
    a, b, c = finite((5, 23)), finite((23, 6), 2), finite((5, 6), 3)
    a[0, 0], b[-1, 0], a[1, 1] = np.inf, np.nan, 0
    for order in ({}, {"reduction": "tree"}, {"chunk": 6}):
        unit = sn.CustomMadUnit.from_c(EXAMPLES / "listing2.c", operand="e5m2", **order)
        built_in = sn.MadUnit("e5m2", operand="e5m2", product="e5m2", lanes=4, **order)
        np.testing.assert_array_equal(sn.matmul(a, b, unit, c), sn.matmul(a, b, built_in, c))
    assert sn.matmul(a[:1, 1:2], b[:1, 1:], unit).tolist() == sn.matmul(a[:1, 1:2], b[:1, 1:], built_in).tolist()


@pytest.mark.parametrize("n", [1, 8, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 4))])
def test_vectors_are_their_elements(n):
    if n == 1:
        source = f"{FP8}{MITCHELL}new_fp mad(new_fp a, new_fp b) {{ return one(a, b); }}"
    else:
        source = in_vectors(n)
    unit = sn.CustomMadUnit.from_c(source, operand="e5m2")
    python = sn.CustomMadUnit(mitchell, operand="e5m2", carrier="codes", lanes=n)
    assert unit.lanes == n
    a, b = finite((4, 21)), finite((21, 7), 2)
    np.testing.assert_array_equal(sn.matmul(a, b, unit), sn.matmul(a, b, python))


def test_steps_of_vectors_that_have_no_table():
    """16-bit codes, and a function that adds: called in groups, the last one short, the absent elements dropped."""
    half = "typedef struct { uint16_t bits; } half;\nstatic half one(half s, half a, half b) { half r; "
    half += "r.bits = (uint16_t)((s.bits + (a.bits ^ b.bits)) & 0x3fff); return r; }\n"
    source = half + "half4 mad(half4 s, half4 a, half4 b) { half4 r; for (int i = 0; i < 4; i++) "
    source += "r.s[i] = one(s.s[i], a.s[i], b.s[i]); return r; }"

    def step(acc, a, b):
        return (acc + (a ^ b)) & 0x3FFF

    unit = sn.CustomMadUnit.from_c(source, operand="binary16")
    python = sn.CustomMadUnit(step, operand="binary16", carrier="codes", lanes=4)
    a, b, c = (finite(s, i) for i, s in enumerate([(3, 22), (22, 200), (3, 200)]))
    np.testing.assert_array_equal(sn.matmul(a, b, unit, c), sn.matmul(a, b, python, c))
    steps, out = DefinitionCustom(unit, unit.operand), np.zeros((3, 5), np.uint64)
    codes = [sn.encode(x, "binary16").astype(np.uint64) for x in (a, b[:, :5], c[:, :5])]
    steps.run(*codes, out, None, (0, 0), 0, 0, 3, 0, 5)
    np.testing.assert_array_equal(sn.matmul(a, b[:, :5], unit, c[:, :5]), sn.decode(out.astype(np.uint16), "binary16"))


@pytest.mark.parametrize(
    ("kind", "accumulator"), [("float", "binary32"), pytest.param("double", "binary64", marks=pytest.mark.slow)]
)
def test_floats(kind, accumulator):
    source = f"{kind} mad({kind} acc, {kind} a, {kind} b) {{ {kind} p = a * b; return acc + p; }}"
    unit = sn.CustomMadUnit.from_c(source, operand="e5m2", accumulator=accumulator)
    product = sn.CustomMadUnit.from_c(
        f"{kind} mul({kind} a, {kind} b) {{ return a * b; }}", "mul", operand="e5m2", accumulator=accumulator, lanes=3
    )
    a, b = finite((9, 50)), finite((50, 140), 2)
    for got, lanes in ((unit, 1), (product, 3)):
        want = sn.matmul(a, b, sn.MadUnit(accumulator, operand="e5m2", product=accumulator, lanes=lanes))
        np.testing.assert_array_equal(sn.matmul(a, b, got), want)


def test_a_custom_format_of_c_and_its_unit():
    """The paper's two listings together: sums are added by the format's own add."""
    source = (
        FP8
        + """
    new_fp convert(float x);
    float as_float(new_fp a) {
        float m = a.e ? 1 + a.m / 4.0f : a.m / 4.0f;
        for (int e = a.e ? (int)a.e : 1; e < 15; e++) m /= 2;
        for (int e = 15; e < (int)a.e; e++) m *= 2;
        return a.s ? -m : m;
    }
    new_fp convert(float x) {
        uint u, e, m;
        __builtin_memcpy(&u, &x, sizeof u);
        e = u >> 23 & 255, m = u >> 21 & 3;
        if (e < 113) e = 112, m = 0;
        if (e > 142) e = 142, m = 3;
        new_fp r = {u >> 31, e - 112, m};
        return r;
    }
    new_fp add(new_fp a, new_fp b) { a.m |= b.m; return as_float(a) > as_float(b) ? a : b; }
    new_fp4 mad(new_fp4 a, new_fp4 b) {
        new_fp4 r;
        for (int i = 0; i < 4; i++) { r.s[i].s = a.s[i].s & b.s[i].s; r.s[i].e = a.s[i].e; r.s[i].m = b.s[i].m; }
        return r;
    }
    """
    )
    fmt = sn.CustomFormat.from_c(source)
    unit = sn.CustomMadUnit.from_c(source, operand=fmt)
    assert unit.accumulator == fmt

    def product(a, b):
        return (a & b & 0x80) | (a & 0x7C) | (b & 3)

    python = sn.CustomMadUnit(product, operand=fmt, lanes=4)
    codes = [np.random.default_rng(i).integers(0, 248, s, np.uint8) for i, s in enumerate([(3, 9), (9, 5)])]
    a, b = (sn.Array(x, fmt) for x in codes)
    want = np.zeros((3, 5), np.uint8)
    table = fmt.table("add")
    zero = fmt.encode(np.zeros(1))[0]
    for i, j in np.ndindex(3, 5):
        sums = [zero] * 4
        for k in range(9):
            sums[k % 4] = table[sums[k % 4], product(int(codes[0][i, k]), int(codes[1][k, j]))]
        want[i, j] = table[table[table[sums[0], sums[1]], sums[2]], sums[3]]
    for u in (unit, python):
        got = sn.matmul(a, b, u)
        np.testing.assert_array_equal(got, sn.decode(want, fmt, got.dtype))
    summed = sn.sum(a, sn.CustomMadUnit(product, operand=fmt), axis=1)
    total = [zero] * 3
    for k in range(9):
        total = [table[t, x] for t, x in zip(total, codes[0][:, k], strict=True)]
    np.testing.assert_array_equal(summed, sn.decode(np.array(total), fmt, summed.dtype))


def test_units_in_c_are_equal_by_their_source_and_can_be_pickled():
    unit = sn.CustomMadUnit.from_c(EXAMPLES / "listing2.c", operand="e5m2")
    again = pickle.loads(pickle.dumps(unit))
    assert again == unit and hash(again) == hash(unit) and again.expression == unit.expression
    a = finite((2, 9))
    np.testing.assert_array_equal(sn.matmul(a, a.T, again), sn.matmul(a, a.T, unit))
    assert eval(unit.expression, {"CustomMadUnit": sn.CustomMadUnit}) == unit


def test_a_file_that_changes_makes_another_unit(tmp_path):
    file, header = tmp_path / "mine.c", tmp_path / "mine.h"
    x = np.float32([[1, 2]])

    def written(text):
        header.write_text(f"#define CODE {text}\n")
        file.write_text('#include "mine.h"\nuint8_t mad(uint8_t a, uint8_t b) { return CODE; }\n')
        return sn.CustomMadUnit.from_c(file, operand="uq8.0")

    unit = written("a & b")
    kept = pickle.dumps(unit)
    assert sn.matmul(x, x.T, unit) == 3
    other = written("a | 4")
    assert other != unit
    assert sn.matmul(x, x.T, other) == 5 + 6
    assert sn.matmul(x, x.T, unit) == 3
    with pytest.raises(ValueError, match=r"mine.c has changed since the unit was made; make the unit again"):
        pickle.loads(kept).function.path  # noqa: B018


U8 = "uint8_t mad(uint8_t a, uint8_t b) "


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (U8 + "{ return a / b; }", r"mad \(source.c:1\) crashes \(SIGFPE\) on 0x00, 0x00$"),
        (U8 + "{ return a == 9 && b == 9 ? *(volatile uint8_t *)1 : 1; }", r"SIG(SEGV|BUS)\) on 0x09, 0x09$"),
        ("static int n;\n" + U8 + "{ return (uint8_t)n++; }", "source.c:2.* is not deterministic"),
        (U8 + "{ return a + }", "source.c:1:.*error"),
        (U8 + ";", r"uint8_t mad\(uint8_t, uint8_t\) has no body"),
        ("uint8_t mad(uint8_t a) { return a; }", r"T mad\(T a, T b\), the product"),
        ("uint8_t mad(uint8_t a, uint16_t b) { return a; }", "all of one type"),
        ("uint8_t mul(uint8_t a, uint8_t b) { return a; }", r"no function 'mad' .*\(functions: mul\)"),
        ("typedef struct { uint a : 7; } t; t mad(t a, t b) { return a; }", "t must have 8 bits, as e5m2 has"),
        (FP8 + "new_fp4 mad(new_fp4 a, new_fp4 b) { a.y = b.x; return a; }", "is not deterministic"),
    ],
)  # fmt: skip
def test_c_that_is_refused(source, said):
    with pytest.raises(ValueError, match=said):
        sn.matmul(finite((1, 1)), finite((1, 1)), sn.CustomMadUnit.from_c(source, operand="e5m2"))


def test_formats_that_the_type_cannot_hold():
    with pytest.raises(ValueError, match="uint8_t does not hold the 16 bits of a code of e5m10"):
        sn.CustomMadUnit.from_c(U8 + "{ return a; }", operand="e5m10")
    with pytest.raises(ValueError, match="holds codes of one width"):
        sn.CustomMadUnit.from_c(in_vectors(4), operand="e5m2", accumulator="e6m9")
    with pytest.raises(ValueError, match="takes vectors of 4, and lanes=8"):
        sn.CustomMadUnit.from_c(in_vectors(4), operand="e5m2", lanes=8)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sn.CustomMadUnit.from_c("nowhere", operand="e5m2")


def test_a_result_that_is_no_value_names_the_line_and_the_operands():
    source = "float mad(float acc, float a, float b) {\n    return acc + a * b;\n}"
    unit = sn.CustomMadUnit.from_c(source, operand="e5m2", accumulator="e5m2")
    a = np.float32([[1, 1.25]])
    with pytest.raises(
        ValueError, match=r"mad\(.*\) at k = .* of output \(0, 0\) \(source.c:1\) is .* no value of e5m2"
    ):
        sn.matmul(a, a.T, unit)
