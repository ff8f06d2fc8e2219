"""Functions of operands and results of up to 53 digits in lanes (csrc/elementwise/functions/wide.h): the definition's
codes and flags, MPFR's on the hardest arguments that were published, and the bounds that the headers state."""

import shutil
import subprocess
import sys

import gmpy2
import numpy as np
import pytest

import softnum as sn
from softnum.arrays.environment import environment
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.core_oracles import DETERMINISTIC, STOCHASTIC, by_definition, edge_codes
from tests.support.elementary_checks import check
from tests.support.lanes import FUNCTIONS, FUNCTIONS_OF_TWO, wide_approximations

PAIRS = [
    ("binary64", "binary32"), ("binary32", "binary64"), ("binary64", "e11m51"), ("e11m51", "e9m44"),
    ("binary64", "binary16p8se"), ("e8m30", "e11m45"), ("q20.30", "binary64"), ("binary64", "bfloat16"),
]  # fmt: skip

# Lefevre and Muller, "Worst Cases for Correct Rounding of the Elementary Functions in Double Precision", ARITH 2001,
# the lists that V. Lefevre published since (vinc17.net/research/testlibm), and those that CORE-MATH tests its functions
# of binary64 with (files *.wc): some 50 bits and more after the rounding bit are alike.
HARDEST = {
    "exp": ("0x1.9e9cbbfd6080bp-31", "0x1.83d4bcdebb3f4p+2", "-0x1.290ea09e36479p-3", "0x1.accfbe46b4ef0p-1"),
    "exp2": ("0x1.bfbbde44edfc5p-25", "-0x1.899e0474ba2d5p-9", "0x1.8859f5e252908p-4", "0x1.359c02f7a36c1p-20"),
    "exp10": ("0x1.df760b2cdeed3p-49", "-0x1.f38d3497c750ap-23", "0x1.5949ce32f78a3p-21", "-0x1.d8832c6795363p-52"),
    "expm1": ("0x1.1ffffffffffe5p-45", "-0x1.8000000000030p-45", "0x1.dffffffffff6ap-44", "-0x1.b0000000001e6p-42"),
    "sinh": ("0x1.92a2ee78ed49cp-23", "0x1.4169f234f23b9p-2", "0x1.a00735384ad44p-3", "0x1.2514c711e822cp-9"),
    "cosh": ("0x1.7fffffffffff7p-23", "0x1.dffffffffee6cp-19", "0x1.affffffffccbep-18", "0x1.104b648f113a1p+0"),
    "tanh": ("0x1.291c601a05276p-2", "0x1.0a90d36059a04p-6", "0x1.ab5c10840becdp-16", "0x1.5f999ff1e6d9bp-17"),
    "erf": ("0x1.fa41846867e29p-38", "0x1.e502a7e284ebfp-9", "0x1.5be2786118ef8p-4", "0x1.d35fd98a2a827p-24"),
    "log": ("0x1.62a88613629b6p+678", "0x1.91ec4412c344fp+86", "0x1.db9797d3d32e8p+415", "0x1.452c8337ad7d3p-664"),
    "log2": ("0x0.b0aaafbac42dap-1022", "0x1.61555f75885b4p-257", "0x1.61555f75885b4p-512", "0x1.1ba39ff28e3eap-4"),
    "log10": ("0x1.ce41d8fa665fap+4", "0x1.71ce472eb84c8p+1", "0x1.a8639e89f5e46p-625", "0x1.b2981b787b622p+580"),
    "log1p": ("0x1.8000000000003p-50",),
    "sin": ("0x1.e7e44a78ac18cp+197", "0x1.0539b48d14c55p+182", "0x1.5ad5a62cb1cc9p+143", "0x1.44599ae031379p+314"),
    "cos": ("0x1.8000000000009p-23", "0x1.6ac5b262ca1ffp+851", "0x1.504cac51f1eafp+133", "0x1.782b7a20df6d4p+68"),
    "tan": ("0x1.dffffffffff1fp-22", "0x1.81c5052d649ecp-23", "0x1.0a999bcaa9944p+2", "0x1.ab5c1082ce555p-16"),
    "sinpi": ("0x1.1e4dee8168d6bp-1", "0x1.a8851b86f2c07p-37", "0x1.1a232520b30b8p-29", "0x1.2b5f60d43677ap-13"),
    "cospi": ("0x1.a8a057fd76cd3p-19", "0x1.72edba99834c7p+1", "0x1.69c0e1dfbf177p-3", "0x1.ab801085d697bp-7"),
    "tanpi": ("0x1.5f095755008f0p-52", "0x1.d850e9850ab33p-13", "0x1.05eb8ed3b129cp-30", "0x1.594435f8c0326p-38"),
    "asin": ("0x1.dfffffffff02ep-20", "0x1.dffffffffc0b8p-19", "0x1.e9950730c4696p-2", "0x1.dffffffff02e0p-18"),
    "acos": ("0x1.e6ec5d3a34c03p-23", "0x1.a9de804936403p-5", "0x1.e66a5b2767562p-9", "0x1.a5fba369c5d98p-20"),
    "atan": ("0x1.0000000000000p-194", "0x1.0000000000000p-172", "0x1.0000000000000p-26", "0x1.0000000000000p-27"),
    "asinh": ("0x1.12b006fd8b935p+842", "0x1.03fb7235e6698p+1018", "0x1.42dff15f3e940p+1009", "0x1.f80c9d14a369cp+108"),
    "acosh": ("0x1.27d6fe867d6f6p+434", "0x1.0ccdc52c38712p+920", "0x1.caf13a0a5e027p+20", "0x1.9888050dcbfe5p+662"),
    "atanh": ("0x1.062f67c92b1f8p-2", "0x1.63f31db22e65cp-3", "0x1.b8aaecee6ef11p-8", "0x1.2bffffffeb669p-17"),
    "cbrt": ("0x1.a202bfc89ddffp-1", "0x1.7845d2faac6fep+0", "0x1.3a9ccd7f022dbp+0", "0x1.513b22fc37587p+0"),
    "rsqrt": ("0x1.a6a9cc15abccep+0", "0x1.c562b857453ddp+1", "0x1.c562b857453ddp-1", "0x1.ffffffffffffep+1"),
    "asinpi": ("0x1.6bf137c2d4708p-51", "0x1.e2d66e1ebba08p-24", "0x1.a9aee69418f0cp-30", "0x1.da6ece9de96cbp-37"),
    "acospi": ("0x1.6c6cbc45dc8dep-46", "0x1.2878e662f31bcp-12", "0x1.dd61dedc265f5p-15", "0x1.f7b97997721efp-10"),
    "atanpi": ("0x1.0d818bbaed9fep+24", "0x1.acbcc9b972502p+42", "0x1.e1a235bab7461p+41", "0x1.327e7f4846155p+41"),
}  # fmt: skip
WIDE = [*FUNCTIONS, *FUNCTIONS_OF_TWO]
EVEN_OR_NEITHER = {"exp", "exp2", "exp10", "expm1", "cosh", "log", "log2", "log10", "log1p", "acosh", "rsqrt"}


def operands(fmt, rng, n: int) -> np.ndarray:
    """Edges, all codes, numbers of moderate and of small size, multiples of powers of two, and what is near 1, near 0's
    and 1's of sin, near where exp over- and underflows."""
    numbers = rng.standard_normal(n) * 2.0 ** rng.integers(-8, 8, n)
    small = rng.standard_normal(n) * 2.0 ** rng.integers(-70, 0, n)
    steps = rng.integers(-40, 41, n) * 2.0 ** rng.integers(-6, 3, n)
    near_one = 1 + rng.standard_normal(n // 2) * 2.0 ** rng.integers(-53, 0, n // 2)
    turns = rng.integers(-60, 61, n // 2) * (np.pi / 2) * (1 + rng.integers(-2, 3, n // 2) * 2.0**-52)
    large = rng.uniform(-750, 750, n // 2)
    drawn = rng.integers(0, 2**fmt.bits, n, dtype=np.uint64).astype(fmt.storage_dtype)
    values = (numbers, small, steps, near_one, turns, large)
    return np.concatenate([edge_codes(fmt), drawn, *(sn.encode(x, fmt, overflow="saturate") for x in values)])


def beside_right_angles(rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """a, b with a^2 + b^2 = v^2 + 2^-8, a and v integers of up to 53 bits: the hypotenuse is v and some 2^-112 of it,
    and the sum of the squares has more than 106 bits."""
    d = rng.choice([3, 5, 7, 9, 11, 13, 15], n)
    s = np.floor(np.sqrt(2.0 ** rng.uniform(52, 53.8, n) / (64 * d))).astype(np.int64) | 1
    twice, b = s * (64 * d * s + 1), 128 * d * s + 1  # of the mean of a and v; 16 b
    a, v = (twice - d) // 2, (twice + d) // 2
    assert all((int(x) ** 2 - int(z) ** 2) * 256 + int(y) ** 2 == 1 for x, y, z in zip(a, b, v, strict=True))
    return a.astype(float), b / 16


def pairs_of_operands(fmt, rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Those in any order, and beside themselves; and with integers, powers of two, sides of triangles, bases of powers
    that are exact."""
    a, b = operands(fmt, rng, n), operands(fmt, rng, n)
    whole = sn.encode(rng.integers(-9, 40, n).astype(float), fmt, overflow="saturate")
    sides, powers = rng.integers(1, 1 << 20, (2, n)).astype(float), rng.integers(0, 9, n).astype(float)
    legs = [
        sn.encode(x, fmt, overflow="saturate") for x in (abs(sides[0] ** 2 - sides[1] ** 2), 2 * sides[0] * sides[1])
    ]
    near = [sn.encode(x, fmt, overflow="saturate") for x in beside_right_angles(rng, n)]
    scaled = sn.encode(2.0 ** rng.integers(-60, 60, n), fmt, overflow="saturate")
    bases = sn.encode(rng.integers(1, 300, n).astype(float) ** rng.integers(1, 5, n), fmt, overflow="saturate")
    degrees = sn.encode(rng.choice([1, 2, 3, 4, 8], n) * 0.25 ** rng.integers(0, 2, n), fmt, overflow="saturate")
    pairs = [
        (a, rng.permutation(a)), (a[::4], a[::4]), (a[::4], a[::4] ^ a.dtype.type(1)), (rng.choice(a, n), whole),
        (rng.choice(a, n), scaled), tuple(legs), tuple(near), (bases, degrees), (bases, sn.encode(powers, fmt)),
        (rng.choice(b, n), rng.choice(a, n)),
    ]  # fmt: skip
    return tuple(np.concatenate(column) for column in zip(*pairs, strict=True))


def drawn(name, fmt, rng, n: int) -> tuple[np.ndarray, ...]:
    return pairs_of_operands(fmt, rng, max(n // 4, 10)) if name in FUNCTIONS_OF_TWO else (operands(fmt, rng, n),)


def in_lanes(name, fmt, out, **options) -> bool:
    env = environment(out, **{"rounding": "nearest_even", "overflow": None, "stochastic_bits": 32} | options)
    formats = (fmt,) * (2 if name in FUNCTIONS_OF_TWO else 1)
    return _core.has_lanes(name, _core.intern_context(name, formats, out, env))


def compare(name, codes, fmt, out, **environment):
    got, flags = getattr(sn.ops, name)(*codes, fmt, out_fmt=out, return_flags=True, **environment)
    want, wanted_flags = by_definition(name, codes, (fmt,) * len(codes), out, **environment)
    alone = getattr(sn.ops, name)(*codes, fmt, out_fmt=out, **environment)
    wrong = np.flatnonzero((got != want) | (flags != wanted_flags) | (alone != want))
    at = [(*(hex(x[i]) for x in (*codes, got, want)), flags[i], wanted_flags[i]) for i in wrong[:1]]
    assert not at, (name, str(fmt), str(out), environment, at)


@cases("name", WIDE)
def test_lanes_are_the_definition(name, isa):
    rng = np.random.default_rng(WIDE.index(name))
    fmt = sn.format("binary64")
    for mode in DETERMINISTIC:
        compare(name, drawn(name, fmt, rng, 80), fmt, fmt, rounding=mode)
    for i, (fmt, out) in enumerate(PAIRS):
        fmt, out = sn.format(fmt), sn.format(out)
        assert in_lanes(name, fmt, out)
        mode = DETERMINISTIC[(WIDE.index(name) + i) % len(DETERMINISTIC)]
        compare(name, drawn(name, fmt, rng, 60), fmt, out, rounding=mode)


@cases("name", WIDE)
def test_which_are_in_lanes(name):
    wide, wider = sn.format("binary64"), sn.format("e8m53")
    for mode in DETERMINISTIC:
        assert in_lanes(name, wide, wide, rounding=mode)
    for mode in STOCHASTIC:
        assert not in_lanes(name, wide, wide, rounding=mode, stochastic_bits=8)
    assert not in_lanes(name, wider, wide) and not in_lanes(name, wide, wider)
    assert not in_lanes(name, wide, sn.format("q20.30")) and not in_lanes(name, wide, wide, flush_results="before")
    assert not in_lanes(name, wide, sn.format("e13m50"))


@cases("name", WIDE)
def test_overflow_rules_and_tininess(name, isa):
    rng = np.random.default_rng(100 + WIDE.index(name))
    fmt, narrow = sn.format("binary64"), sn.format("e8m40")
    rules = (("saturate", "before", fmt), ("infinity", "before", narrow), ("infinity", "after", narrow))
    for rule, tininess, out in rules:
        codes = drawn(name, fmt, rng, 25)
        mode = DETERMINISTIC[WIDE.index(name) % len(DETERMINISTIC)]
        compare(name, codes, fmt, out, overflow=rule, tininess=tininess, rounding=mode)


@cases("name", sorted({*WIDE} & {*HARDEST}))
def test_hardest_arguments_that_were_published(name):
    fmt = sn.format("binary64")
    numbers = [float.fromhex(text) for text in HARDEST[name]]
    if name not in EVEN_OR_NEITHER:
        numbers += [-x for x in numbers]
    numbers += [numbers[0]] * (8 - len(numbers))  # as many as go by lanes
    for mode in ("nearest_even", "up", "down", "toward_zero", "to_odd"):
        check(name, [sn.encode(numbers, fmt)], fmt, {"rounding": mode})


MPFR_MODES = {
    "nearest_even": gmpy2.RoundToNearest,
    "up": gmpy2.RoundUp,
    "down": gmpy2.RoundDown,
    "toward_zero": gmpy2.RoundToZero,
}


@cases("name", [name for name in FUNCTIONS if hasattr(gmpy2, name)])
def test_samples_are_those_of_mpfr(name):
    rng = np.random.default_rng(200 + WIDE.index(name))
    x = rng.choice([-1, 1], 400) * rng.uniform(0.5, 1, 400) * 2.0 ** rng.integers(-40, 11, 400)
    x = np.concatenate([x, rng.uniform(-1, 1, 400), rng.integers(0, 2**64, 400, dtype=np.uint64).view(np.float64)])
    x = x[np.isfinite(x)]
    for mode, rounded in MPFR_MODES.items():
        with gmpy2.context(gmpy2.ieee(64), round=rounded):
            want = np.array([float(getattr(gmpy2, name)(gmpy2.mpfr(float(v)))) for v in x])
        got = getattr(sn.ops, name)(x.view(np.uint64), "binary64", rounding=mode).view(np.float64)
        assert np.array_equal(got, want, equal_nan=True), (name, mode, x[(got != want) & (want == want)])


def test_constants():
    """Leading terms and tables, against their exact values."""
    text = wide_approximations.HERE.joinpath("wide_constants.h").read_text(encoding="utf-8")
    for name, parts in wide_approximations.constants().items():
        for part, number in zip(("HIGH", "LOW", "LEAST"), parts, strict=False):
            line = f"#define SN_WIDE_{name.upper()}_{part} "
            assert [float.fromhex(s[len(line) :]) for s in text.splitlines() if s.startswith(line)] == [number]
    for series in wide_approximations.SERIES:
        stated = wide_approximations.stated(text, f"{series.name}_leading")
        assert stated == [x for parts in series.leading() for x in parts]
    tables = wide_approximations.tables()
    for name, columns in tables.items():
        for part, column in zip(("", "_low", "_least"), columns, strict=False):
            assert wide_approximations.stated(text, name + part) == column, name
    for name, rows in wide_approximations.mills().items():
        assert wide_approximations.stated(text, name) == [x for row in rows for x in row]
    with gmpy2.context(precision=1400):
        for e, *parts in zip(wide_approximations.EXPONENTS, *tables["turns"], strict=True):
            exact = gmpy2.fmod(gmpy2.exp2(e - 52) * 2 / gmpy2.const_pi(), 4)
            assert abs(sum(map(gmpy2.mpfr, parts)) - exact) < gmpy2.exp2(-157)
            assert (parts[0] * 2.0**51).is_integer() and (parts[1] * 2.0**104).is_integer()


@pytest.mark.skipif(not (shutil.which("sollya") and shutil.which("gappa")), reason="needs sollya and gappa")
def test_polynomials_keep_the_bounds_that_are_stated():
    script = [sys.executable, wide_approximations.__file__, "--prove"]
    done = subprocess.run(script, check=True, capture_output=True, text=True)
    assert done.stdout.count("proved") == len(wide_approximations.SERIES)
    assert "erf: the terms left out are below 2^-68" in done.stdout
    assert "Mills' ratio: the terms left out are below 2^-54" in done.stdout
