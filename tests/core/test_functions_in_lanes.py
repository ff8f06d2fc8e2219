"""Functions in binary64 lanes (csrc/elementwise/functions): the definition's codes and flags, in every mode."""

import re
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
from tests.support.core_oracles import MODES, by_definition, edge_codes
from tests.support.lanes import FUNCTIONS, approximations, stated
from tests.support.remembered import remembered

definition = remembered(by_definition)

PAIRS = [
    ("binary32", "binary32"), ("binary32", "e5m2"), ("tf32", "binary32"), ("binary32", "bfloat16"), ("e8m21", "e8m21"),
    ("e11m18", "e11m18"), ("binary32", "e6m9"), ("binary24p16se", "binary32"), ("binary32", "binary16p8se"),
    ("e11m16", "e5m2fnuz"), ("q8.16", "q8.16"), ("uq4.20", "binary32"), ("binary32", "q3.20"),
]  # fmt: skip


def operands(fmt, rng, n: int) -> np.ndarray:
    """Edges, all codes, numbers of moderate size, and multiples of powers of two."""
    numbers = rng.standard_normal(n) * 2.0 ** rng.integers(-30, 8, n)
    steps = rng.integers(-40, 41, n) * 2.0 ** rng.integers(-6, 1, n)
    drawn = rng.integers(0, 2**fmt.bits, n).astype(fmt.storage_dtype)
    return np.concatenate([edge_codes(fmt), drawn, *(sn.encode(x, fmt, overflow="saturate") for x in (numbers, steps))])


def in_lanes(name, fmt, out, **options) -> bool:
    env = environment(out, **{"rounding": "nearest_even", "overflow": None, "stochastic_bits": 32} | options)
    return _core.has_lanes(name, _core.intern_context(name, (fmt,), out, env))


@cases("name", FUNCTIONS)
def test_lanes_are_the_definition(name, isa):
    rng = np.random.default_rng(FUNCTIONS.index(name))
    for i, (fmt, out) in enumerate(PAIRS):
        fmt, out = sn.format(fmt), sn.format(out)
        codes = operands(fmt, rng, 150)
        if out.kind == "fixed":  # which has no code for a NaN
            codes = codes[np.isfinite(sn.decode(getattr(sn.ops, name)(codes, fmt, out_fmt="binary64"), "binary64"))]
        for mode in ("nearest_even", MODES[(3 * i + 1) % len(MODES)], MODES[(FUNCTIONS.index(name) + i) % len(MODES)]):
            environment, words = {"rounding": mode}, np.uint32(0)
            if mode.startswith("stochastic"):
                environment["stochastic_bits"] = (4, 12)[i % 2]
                words = rng.integers(0, 2**32, len(codes), dtype=np.uint32)
            call = environment | ({"random_bits": words} if words.ndim else {})
            got, flags = getattr(sn.ops, name)(codes, fmt, out_fmt=out, return_flags=True, **call)
            want, wanted_flags = definition(name, (codes,), (fmt,), out, words, **environment)
            alone = getattr(sn.ops, name)(codes, fmt, out_fmt=out, **call)  # another way: from binary64, not from codes
            wrong = np.flatnonzero((got != want) | (flags != wanted_flags) | (alone != want))
            at = [(hex(codes[i]), got[i], alone[i], want[i], flags[i], wanted_flags[i]) for i in wrong[:3]]
            assert not at, (name, str(fmt), str(out), mode, at)


@cases("name", FUNCTIONS)
def test_which_are_in_lanes(name):
    """What the comparisons above compare is the lanes: for operands of 30 bits, and results of 46 that decide."""
    wide, narrow = sn.format("e8m29"), sn.format("e8m21")
    for fmt, out, options in (*((sn.format(a), sn.format(b), {}) for a, b in PAIRS), (wide, wide, {})):
        for mode in MODES:
            known = not mode.startswith("stochastic_")  # other projects' kinds
            assert in_lanes(name, fmt, out, rounding=mode, stochastic_bits=12, **options) == known, (fmt, out, mode)
    assert in_lanes(name, narrow, narrow, rounding="stochastic", stochastic_bits=22)
    assert not in_lanes(name, narrow, narrow, rounding="stochastic", stochastic_bits=23)
    fixed = sn.format("q8.16")
    assert in_lanes(name, sn.format("e8m30"), narrow) and not in_lanes(
        name, sn.format("e8m30"), narrow, rounding="stochastic", stochastic_bits=8
    )  # the wide ones have no random bits
    assert in_lanes(name, narrow, fixed) and not in_lanes(name, narrow, fixed, overflow="wrap")
    assert not in_lanes(name, narrow, narrow, flush_inputs=True)


@cases("name", ("exp", "exp2", "exp10", "expm1", "sinh", "cosh", "sigmoid", "softplus", "gelu"))
def test_results_of_more_exponents_than_lanes_have(name):
    """Powers in lanes end at 2^10900: formats with larger ones are left to the definition."""
    fmt = sn.format("binary32")
    codes = sn.encode([s * x for s in (1, -1) for x in (3500.0, 7500.0, 7700.0, 9000.0, 11000.0, 16000.0, 1e30)], fmt)
    for out in map(sn.format, ("e15m16", "e14m16")):
        assert in_lanes(name, fmt, out) == (out.emax < 10900)
        got, flags = getattr(sn.ops, name)(codes, fmt, out_fmt=out, return_flags=True)
        want, wanted_flags = by_definition(name, (codes,), (fmt,), out)
        assert np.array_equal(got, want) and np.array_equal(flags, wanted_flags), (name, str(out))


@cases("name", FUNCTIONS)
def test_overflow_rules_and_flags(name, isa):
    """What is too large, by every rule; tininess before and after rounding; no flags where there are none."""
    rng = np.random.default_rng(1)
    fmt = sn.format("binary32")
    codes = operands(fmt, rng, 60)
    for out, rule, tininess in (
        ("binary16", "saturate", "before"), ("e4m3fn", "infinity", "after"), ("bfloat16", "infinity", "before"),
    ):  # fmt: skip
        out = sn.format(out)
        environment = {"overflow": rule, "tininess": tininess}
        got, flags = getattr(sn.ops, name)(codes, fmt, out_fmt=out, return_flags=True, **environment)
        want, wanted_flags = by_definition(name, (codes,), (fmt,), out, **environment)
        assert np.array_equal(got, want) and np.array_equal(flags, wanted_flags)
        assert np.array_equal(got, getattr(sn.ops, name)(codes, fmt, out_fmt=out, **environment))


@cases("name", FUNCTIONS)
def test_strides_and_places(name, isa):
    """Arrays that are not contiguous, of lengths around a block's, and a result where the operand was."""
    rng = np.random.default_rng(2)
    for n in (1, 7, 8, 9, 255, 256, 257, 700):
        codes = operands(sn.format("binary32"), rng, n)[:n]
        want = by_definition(name, (codes,), (sn.format("binary32"),), sn.format("binary32"))[0]
        wide = np.zeros((n, 3), np.uint32)
        wide[:, 1] = codes
        assert np.array_equal(getattr(sn.ops, name)(wide[:, 1], "binary32"), want)
        assert np.array_equal(getattr(sn.ops, name)(codes[::-1], "binary32"), want[::-1])


def test_constants():
    """What the script writes by MPFR stands in the header; every table of two parts, by MPFR."""
    constants = approximations.constants()
    for name, columns in approximations.tables().items():
        for part, column in zip(("", "_low", "_least"), columns, strict=False):
            assert stated(name + part) == column, name
    assert stated("mills_terms") == approximations.mills_terms()
    text = approximations.HERE.joinpath("constants.h").read_text(encoding="utf-8")
    written = dict(re.findall(r"#define SN_FUNCTION_(\w+) (\S+)", text))
    assert {name.lower(): float.fromhex(value) for name, value in written.items()} == constants
    with gmpy2.context(precision=1400):
        turn = gmpy2.const_pi()
        for e, *parts in zip(
            approximations.EXPONENTS, *(stated("turns" + s) for s in ("", "_low", "_least")), strict=True
        ):
            exact = gmpy2.fmod(gmpy2.exp2(e - 29) * 2 / turn, 4)
            assert abs(sum(map(gmpy2.mpfr, parts)) - exact) < gmpy2.exp2(-97)
            assert (parts[0] * 2.0**21).is_integer() and (parts[1] * 2.0**44).is_integer() and abs(parts[1]) < 2.0**-21
        for j, (high, low) in enumerate(zip(stated("powers"), stated("powers_low"), strict=True)):
            assert abs(gmpy2.mpfr(high) + low - gmpy2.exp2(gmpy2.mpfr(j) / 16)) < gmpy2.exp2(-105)
        for name, log in (("log", gmpy2.log), ("log2", gmpy2.log2), ("log10", gmpy2.log10)):
            for c, high, low in zip(
                stated("log_inverse"), stated(f"{name}_cells"), stated(f"{name}_cells_low"), strict=True
            ):
                assert abs(gmpy2.mpfr(high) + low + log(gmpy2.mpfr(c))) < gmpy2.exp2(-94)
                assert (high * 2.0**42).is_integer()
        for j, (high, low) in enumerate(zip(stated("erf_values"), stated("erf_values_low"), strict=True)):
            assert abs(gmpy2.mpfr(high) + low - gmpy2.erf(gmpy2.mpfr(j) / 16)) < gmpy2.exp2(-105)
        for j, (high, low) in enumerate(zip(stated("erf_slopes"), stated("erf_slopes_low"), strict=True)):
            slope = 2 / gmpy2.sqrt(turn) * gmpy2.exp(-((gmpy2.mpfr(j) / 16) ** 2))
            assert abs(gmpy2.mpfr(high) + low - slope) < slope * gmpy2.exp2(-75)
            assert gmpy2.mpz(gmpy2.f2q(gmpy2.mpfr(high)).numerator).bit_length() <= 22
        for name, unit in (("arcs", gmpy2.mpfr(1)), ("arcs_pi", 1 / turn)):
            for j, (high, low) in enumerate(zip(stated(name), stated(f"{name}_low"), strict=True)):
                assert abs(gmpy2.mpfr(high) + low - gmpy2.atan(gmpy2.mpfr(j) / 16) * unit) < gmpy2.exp2(-92)
                assert (high * 2.0**40).is_integer()
    assert constants["log2_octave_low"] == 0.0


@pytest.mark.skipif(not (shutil.which("sollya") and shutil.which("gappa")), reason="needs sollya and gappa")
def test_polynomials_keep_the_bounds_that_are_stated():
    done = subprocess.run(
        [sys.executable, approximations.__file__, "--prove"], check=True, capture_output=True, text=True
    )
    assert done.stdout.count("proved") == len(approximations.POLYNOMIALS) + 1  # Mills' ratio
    assert "erf: the terms left out are below 2^-54" in done.stdout
