"""Elementary functions: samples, special values, environments, errors. Whole formats: test_elementary_codes.py."""

import itertools
import random
from fractions import Fraction
from pathlib import Path

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softnum as sn
from softnum import reference as ref
from softnum.arrays.environment import environment
from softnum.formats.modes import Flags
from softnum.reference.elementary import __all__ as NAMES
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.core_oracles import MODES, edge_codes, overflow_rules, random_codes
from tests.support.elementary_checks import check, check_special
from tests.support.elementary_oracle import MORE_UNARY, TWO, UNARY, exact, expected


def environments(fmt, modes=MODES):
    """Every mode, with the other choices going round."""
    rules = itertools.cycle(overflow_rules(fmt))
    tininess, flush = itertools.cycle(["after", "before"]), itertools.cycle([None, None, "before", "after"])
    for i, mode in enumerate(modes):
        rule = next(rules)
        env = {"rounding": mode, "overflow": "saturate" if rule == "wrap" else rule, "tininess": next(tininess)}
        if mode.startswith("stochastic"):
            env["stochastic_bits"] = 4
        if fmt.kind == "float":
            env |= {"flush_results": next(flush), "flush_inputs": i % 5 == 4, "nan": ("canonical", "x86", "arm")[i % 3]}
        yield env


def all_codes(fmt):
    return np.arange(1 << fmt.bits).astype(fmt.storage_dtype)


def drawn(fmt, count, seed):
    """Codes spread over all binades: a stratum each."""
    rng = random.Random(seed)
    size = (1 << fmt.bits) // count
    return np.array([i * size + rng.randrange(size) for i in range(count)], np.uint64).astype(fmt.storage_dtype)


@pytest.mark.slow
@pytest.mark.parametrize("name", TWO)
def test_some_structured_pairs_of_16_bits(name):
    for fmt in map(sn.format, ("binary16", "bfloat16", "dlfloat16")):
        a = drawn(fmt, 40, 3)
        near = a[:4, None].astype(np.int64) + np.arange(-2, 3)
        b = np.concatenate([edge_codes(fmt)[::9], near.astype(np.uint16).ravel()])
        pairs = np.meshgrid(a, b, indexing="ij")
        check(name, [p.ravel() for p in pairs], fmt, {"rounding": "nearest_even"})


SIXTEEN = ["binary16", "bfloat16", "dlfloat16", "binary16p8se", "q8.8", "uq0.16"]


@cases("fmt", SIXTEEN)
@cases("name", [*UNARY, *MORE_UNARY])
def test_strata_of_16_bits(name, fmt):
    fmt = sn.format(fmt)
    for i, env in enumerate(environments(fmt, ["nearest_even", "down", "stochastic", "to_odd"])):
        check(name, [drawn(fmt, 32, i)], fmt, env)


@pytest.mark.parametrize(("fmt", "out"), [
    ("binary32", "e5m2"), ("binary64", "binary16"), ("e4m3fn", "binary32"), ("q16.16", "binary32"), ("tf32", "q4.12"),
    ("binary32", "q16.16"), ("e15m48", "binary64"), ("binary32", "e15m48"), ("q1.63", "uq0.64"),
    ("bfloat16", "e8m0fnu"),
])  # fmt: skip
def test_mixed_and_wide_formats(fmt, out):
    fmt, out = sn.format(fmt), sn.format(out)
    for i, (name, env) in enumerate(zip((*UNARY, *MORE_UNARY), itertools.cycle(environments(out)), strict=False)):
        codes = drawn(fmt, 16, i)
        if fmt.kind == "float":
            codes = np.concatenate([codes, sn.encode(np.linspace(-3, 3, 13), fmt)])
        check(name, [codes], fmt, env | {"flush_inputs": False}, out_fmt=out)


@pytest.mark.parametrize("fmt", ["e5m2", "q4.4", "binary16", "binary32"])
def test_the_reference_says_the_same(fmt):
    fmt = sn.format(fmt)
    for i, (name, env) in enumerate(zip(NAMES, itertools.cycle(environments(fmt)), strict=False)):
        codes = [drawn(fmt, 8, 2 * i + j) for j in range(2 if name in TWO else 1)]
        if fmt.name == "binary32":  # within what is quick in Python
            codes = [sn.encode(np.random.default_rng(i + j).normal(size=8), fmt) for j, _ in enumerate(codes)]
        check(name, codes, fmt, env, number=None)


@cases("out", ["e15m48", "binary64", "e2m60", "q1.63", "uq64.0", "uq0.64", "e8m0fnu"])
@cases("fmt", ["e15m48", "binary64", "e2m60", "q1.63", "q63.1", "uq0.64", "e8m55"])
def test_everything_is_decided(fmt, out):
    """Edges of wide formats, among them x = 2^k beside 1, and neighbours of integers: a result, not an error."""
    fmt, rng = sn.format(fmt), random.Random(7)
    codes = np.concatenate([edge_codes(fmt), random_codes(fmt, rng, 40)])
    other = rng.choices(codes.tolist(), k=len(codes))
    for name in NAMES:
        operands = [codes, np.array(other, codes.dtype)] if name in TWO else [codes]
        for mode in ("nearest_even", "stochastic"):
            words = {"random_bits": np.uint32(5)} if mode == "stochastic" else {}
            getattr(sn.ops, name)(*operands, fmt, out_fmt=out, rounding=mode, invalid=int(out == "e8m0fnu"), **words)


def test_every_random_word():
    """Stochastic rounding of r bits: as many of the 2^r words round up as the fraction has 2^r-ths."""
    fmt = sn.format("e4m3fn")
    words = np.arange(16, dtype=np.uint32)
    for name in ("exp", "log", "sin", "gelu", "rsqrt"):
        for code in (0x21, 0x33, 0x3A, 0x41, 0x49):
            got = getattr(sn.ops, name)(
                np.full(16, code, np.uint8), fmt, rounding="stochastic", stochastic_bits=4, random_bits=words
            )
            want = [
                expected(name, (code,), fmt, fmt, rounding="stochastic", stochastic_bits=4, random_bits=int(w))[0]
                for w in words
            ]
            assert got.tolist() == want


# IEEE 754-2019 9.2.1 by hand, and limits: (function, operands, result, flags); binary16
INF, NAN = float("inf"), float("nan")
D, V = int(Flags.DIVIDE_BY_ZERO), int(Flags.INVALID)
SPECIAL = [
    *[(f, (0.0,), 1.0, 0) for f in ("exp", "exp2", "cos", "cosh")], *[(f, (-0.0,), 1.0, 0) for f in ("exp", "cos")],
    *[(f, (-0.0,), -0.0, 0) for f in (
        "expm1", "log1p", "sin", "tan", "asin", "atan", "sinh", "tanh", "erf", "gelu", "silu", "cbrt")],
    *[(f, (0.0,), 0.0, 0) for f in ("expm1", "log1p", "sin", "gelu", "cbrt")],
    *[(f, (-INF,), 0.0, 0) for f in ("exp", "exp2", "sigmoid", "softplus")],
    *[(f, (INF,), INF, 0) for f in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "softplus", "gelu", "silu", "cbrt")],
    *[(f, (-INF,), -INF, 0) for f in ("sinh", "cbrt")], ("cosh", (-INF,), INF, 0), ("expm1", (-INF,), -1.0, 0),
    *[(f, (s * INF,), s * 1.0, 0) for f in ("tanh", "erf") for s in (1, -1)], ("sigmoid", (INF,), 1.0, 0),
    *[(f, (-INF,), -0.0, 0) for f in ("gelu", "silu", "reciprocal")], ("reciprocal", (INF,), 0.0, 0),
    *[(f, (s,), -INF, D) for f in ("log", "log2", "log10") for s in (0.0, -0.0)], ("log1p", (-1.0,), -INF, D),
    *[(f, (1.0,), 0.0, 0) for f in ("log", "log2", "log10", "acos")], ("sigmoid", (0.0,), 0.5, 0),
    *[(f, (s * INF,), NAN, V) for f in ("sin", "cos", "tan", "asin", "acos") for s in (1, -1)],
    *[(f, (-1.0,), NAN, V) for f in ("log", "log2", "log10", "rsqrt")], ("log1p", (-2.0,), NAN, V),
    *[(f, (-INF,), NAN, V) for f in ("log", "log2", "log10", "rsqrt", "log1p")],
    *[(f, (s * 1.0009765625,), NAN, V) for f in ("asin", "acos") for s in (1, -1)],
    *[(f, (s * 0.0,), s * INF, D) for f in ("rsqrt", "reciprocal") for s in (1, -1)], ("rsqrt", (INF,), 0.0, 0),
    ("exp2", (-24.0,), 2.0**-24, 0), ("exp2", (15.0,), 32768.0, 0), ("log2", (2.0**-24,), -24.0, 0),
    ("log10", (10000.0,), 4.0, 0), ("cbrt", (-27.0,), -3.0, 0), ("cbrt", (0.125,), 0.5, 0), ("rsqrt", (4.0,), 0.5, 0),
    *[("pow", (x, y), 1.0, 0) for x in (NAN, INF, -2.0, 0.0, -0.0) for y in (0.0, -0.0)],
    *[("pow", (1.0, y), 1.0, 0) for y in (NAN, INF, -INF, 3.5)], *[("pow", (-1.0, y), 1.0, 0) for y in (INF, -INF)],
    ("pow", (0.0, -3.0), INF, D), ("pow", (-0.0, -3.0), -INF, D), ("pow", (-0.0, -2.0), INF, D),
    ("pow", (-0.0, -2.5), INF, D), ("pow", (-0.0, -INF), INF, 0), ("pow", (-0.0, INF), 0.0, 0),
    ("pow", (-0.0, 3.0), -0.0, 0), ("pow", (-0.0, 2.0), 0.0, 0), ("pow", (-0.0, 0.5), 0.0, 0),
    ("pow", (0.5, INF), 0.0, 0), ("pow", (-0.5, -INF), INF, 0), ("pow", (-2.0, INF), INF, 0),
    ("pow", (2.0, -INF), 0.0, 0),
    ("pow", (INF, -1.0), 0.0, 0), ("pow", (INF, 0.5), INF, 0), ("pow", (-INF, -3.0), -0.0, 0),
    ("pow", (-INF, -2.5), 0.0, 0), ("pow", (-INF, 3.0), -INF, 0), ("pow", (-INF, 2.0), INF, 0),
    ("pow", (-2.0, 0.5), NAN, V), ("pow", (-2.0, 3.0), -8.0, 0), ("pow", (2.0, NAN), NAN, 0),
    ("pow", (NAN, 2.0), NAN, 0),
    ("pow", (4.0, 0.5), 2.0, 0), ("pow", (0.0625, -0.75), 8.0, 0), ("pow", (5.0625, 0.25), 1.5, 0),
    *[("hypot", (x, s * INF), INF, 0) for x in (NAN, 1.0, -INF) for s in (1, -1)], ("hypot", (NAN, 1.0), NAN, 0),
    ("hypot", (-0.0, -0.0), 0.0, 0), ("hypot", (-3.0, 0.0), 3.0, 0), ("hypot", (3.0, -4.0), 5.0, 0),
]  # fmt: skip


@cases(("name", "operands", "want", "flags"), SPECIAL)
def test_special_values(name, operands, want, flags):
    check_special(name, operands, want, flags)


def test_signaling_nans_and_p3109():
    signaling, one, nan = np.uint16([0x7D01]), sn.encode([1.0], "binary16"), np.uint16([0x7E00])
    for name, codes in (("pow", (one, signaling)), ("hypot", (signaling, np.uint16([0x7C00]))), ("exp", (signaling,))):
        code, flags = getattr(sn.ops, name)(*codes, "binary16", return_flags=True)
        assert (code, flags) == (nan, V)
    fmt = sn.format("binary8p4se")
    nan = fmt.nan_code
    inf, one = fmt.inf_code, int(sn.encode(1.0, fmt))
    for name, codes in (
        ("pow", (nan, 0)), ("pow", (one, nan)), ("hypot", (inf, nan)), ("rsqrt", (0,)), ("reciprocal", (0,)),
        ("pow", (0, one | 0x80)), ("log", (one | 0x80,)),
    ):  # fmt: skip
        code, flags = getattr(sn.ops, name)(*([c] for c in codes), fmt, return_flags=True)
        assert (int(code[0]), int(flags[0])) == (nan, 0), name
    assert sn.log([0], fmt).tolist() == [0x80 | inf]


def test_pow_and_hypot_near_exact_results():
    """Where x^y or the root lies beside a number, or is one that has more bits than the format."""
    fmt = sn.format("binary64")
    rng = random.Random(6)
    bases = [1 + 2.0**-52, 1 - 2.0**-53, 1.5, 3.0, 2.0**-1074, 1.7e308, 0.1, 10.0, 2.0**0.5, 9.0, 81.0, 43046721.0]
    powers = [2.0, 3.0, -1.0, 0.5, 0.25, 1.5, 2.0**-30, -(2.0**-1074), 2.0**52, 33.0, 0.03125, 1 + 2.0**-52, 1e300]
    cases = [(x, y) for x in bases for y in powers] + [(rng.uniform(0, 3), rng.uniform(-9, 9)) for _ in range(60)]
    x, y = (sn.encode(np.array(c), fmt) for c in zip(*cases, strict=True))
    for mode in ("nearest_even", "up", "down", "stochastic"):
        env = {"rounding": mode} | ({"stochastic_bits": 32} if mode == "stochastic" else {})
        check("pow", [x, y], fmt, env, word=0x80000000)
        check("hypot", [x, y], fmt, env, word=0x80000000)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["exp", "expm1", "sinh", "tanh", "atan", "erf", "cbrt", "softplus"]))
def test_monotone(code, name):
    a = sn.Array(np.uint32([code, sn.next_up([code], "binary32")[0]]), "binary32")
    x, y = np.asarray(getattr(sn.ops, name)(a))
    assert np.isnan(x) or x <= y


@given(st.integers(0, 2**31 - 1), st.sampled_from(["sin", "tan", "atan", "sinh", "tanh", "erf", "cbrt", "cos", "cosh"]))
def test_symmetric(code, name):
    a = sn.Array(np.uint32([code, code | 1 << 31]), "binary32")
    x, y = getattr(sn.ops, name)(a).codes.tolist()
    assert x == (y if name in ("cos", "cosh") or x > 0x7F800000 else y ^ 1 << 31)


def test_numpy_s_names():
    a, b = sn.array([0.25, 0.75], "binary16"), sn.array([2.0, 3.0], "binary16")
    for theirs, ours in (
        ("exp", sn.exp),
        ("arctan", sn.ops.atan),
        ("arcsin", sn.ops.asin),
        ("log1p", sn.log1p),
        ("cbrt", sn.ops.cbrt),
    ):
        assert (getattr(np, theirs)(a) == ours(a)).all()
    assert (np.power(a, b) == sn.pow(a, b)).all() and (a**2 == sn.array([0.0625, 0.5625], "binary16")).all()
    assert (np.hypot(a, b) == sn.ops.hypot(a, b)).all() and (2**b).tolist() == [4, 8]


def test_tables_are_made_once_they_pay():
    fmt = sn.FloatFormat(5, 2, bias=14)  # no other test's
    env = environment(fmt, "nearest_even", None, 32)
    handle = _core.intern_context("tanh", (fmt,), fmt, env)
    codes = all_codes(fmt)
    assert _core.tabulate("tanh", handle, 1, 255) is None
    assert _core.tabulate("tanh", handle, 1, 1) is not None
    by_table, flags = sn.tanh(codes, fmt, return_flags=True)
    one = [sn.tanh([c], fmt, rounding="nearest_even", tininess="before", return_flags=True) for c in codes]
    assert by_table.tolist() == [int(c[0]) for c, _ in one]
    assert flags[0] == 0 and flags[1] == one[1][1][0]


def test_threads_change_nothing(monkeypatch):
    codes = drawn(sn.format("binary32"), 3000, 5)
    found = []
    for n in ("1", "2", "5"):
        monkeypatch.setenv("SOFTNUM_THREADS", n)
        found.append(sn.exp(codes, "binary32", rounding="stochastic", key=5).tolist())
    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) > 300  # most are 0, 1 or infinite


def test_errors():
    odd = sn.FloatFormat(8, 7, bias=-40000)
    with pytest.raises(
        ValueError, match=r"sin: values of .* reach 2\*\*40254, and angles are reduced up to 2\*\*33000"
    ):
        sn.sin([0], odd)
    assert sn.ops.atan([0, 1, 0x8001], odd, out_fmt="binary16").tolist() == [0, 0x3E48, 0xBE48]  # nearly half of pi
    with pytest.raises(ValueError, match="exp: a result has more than 126 bits before it wraps around in q4.4"):
        sn.exp(sn.encode([200.0], "binary16"), "binary16", out_fmt="q4.4", overflow="wrap")
    assert sn.exp(sn.encode([4.0], "binary16"), "binary16", out_fmt="q4.4", overflow="wrap").tolist() == [0x6A]
    with pytest.raises(ValueError, match="log: the result is NaN or infinite, and e2m1fn has no code"):
        sn.log(sn.array(-1.0, "e2m1fn"))
    with pytest.raises(TypeError, match="pow.* takes 2 operands, got 1"):
        sn.pow(sn.array(1.0, "e5m2"))


def test_a_planted_fault_is_caught():
    fmt = sn.format("binary16")
    codes = drawn(fmt, 400, 3)

    def one_unit_off(name, x):
        value = exact(name, x)
        return value * (1 + Fraction(1, 1 << 11)) if x == exact_of else value

    exact_of = next(v.fraction for v in (ref.decode(int(c), fmt) for c in codes) if 0.5 < v.fraction < 1)
    with pytest.raises(AssertionError, match="exp"):
        check("exp", [codes], fmt, {"rounding": "nearest_even"}, number=one_unit_off)
    check("exp", [codes], fmt, {"rounding": "nearest_even"})


def test_constants():
    from softnum.runtime.config import get_include

    text = (Path(get_include()) / "softnum/elementary/constants.h").read_text()
    with gmpy2.context(precision=40000):
        pi, log2 = gmpy2.const_pi(), gmpy2.log(gmpy2.mpfr(2))
        constants = {
            "ln_2": log2, "log2_e": 1 / log2, "log10_e": 1 / gmpy2.log(gmpy2.mpfr(10)), "half_pi": pi / 2,
            "erf_scale": 2 / gmpy2.sqrt(pi), "root_half": gmpy2.sqrt(gmpy2.mpfr(2)) / 2, "two_over_pi": 2 / pi,
        }  # fmt: skip
        for name, value in constants.items():
            body = text.split(f"sn_{name}[")[1].split("{")[1].split("}")[0]
            words = [int(w.strip().rstrip("u"), 16) for w in body.split(",") if w.strip()]
            exponent = int(text.split(f"sn_{name}[")[0].rsplit("exp ", 1)[1].split("*/")[0])
            assert exponent == gmpy2.get_exp(value)
            digits = int(gmpy2.floor(gmpy2.mul_2exp(value, 64 * len(words) - exponent)))
            assert words == [digits >> 64 * (len(words) - 1 - i) & (2**64 - 1) for i in range(len(words))], name
