"""The core against the reference: integers out and in, shifts of fixed point, errors in ulps."""

import random
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.modes import Flags
from tests.support.cases import cases
from tests.support.core_oracles import MODES, STOCHASTIC, overflow_rules, random_codes, show
from tests.support.operation_judge import EVERY, P3109, columns, draw, environment, specimens, stated

INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]


@cases("dtype", INTEGERS, ids=str)
@cases("fmt", [f for f in EVERY if f not in P3109[2:]], ids=str)
def test_to_integer(fmt, dtype):
    rng = random.Random(f"{fmt} {dtype}")
    bits, signed = 8 * dtype.itemsize, dtype.kind == "i"
    bounds = [
        s * (Fraction(2) ** (bits - signed) + d) for s in (1, -1) for d in (-1, Fraction(-1, 2), 0, Fraction(1, 2))
    ]
    near = [ref.encode(x, fmt, rounding=mode)[0] for x in bounds for mode in ("down", "up")]
    codes = specimens(fmt) + near + draw(fmt, rng, 60)
    (array,) = columns([(c,) for c in codes], (fmt,))
    for rule in ("riscv", "arm", "x86", rng.randrange(100)):
        for mode in rng.sample(MODES, 4):
            env = {"rounding": mode, "exact": rng.random() < 0.5, "invalid": rule, "flush_inputs": rng.random() < 0.3}
            words = [rng.randrange(1 << 32) for _ in codes] if mode in STOCHASTIC else [None] * len(codes)
            if mode in STOCHASTIC:
                env["stochastic_bits"] = rng.choice((1, 4, 32))
            given = {"random_bits": np.array(words, np.uint32)} if mode in STOCHASTIC else {}
            got, flags = sn.ops.to_integer(array, fmt, dtype, return_flags=True, **env, **given)
            assert got.dtype == dtype
            for i, code in enumerate(codes):
                want, want_flags = ref.to_integer(code, fmt, bits, signed, random_bits=words[i], **env)
                assert (int(got[i]), int(flags[i])) == (want, int(want_flags)), f"{show(code, fmt)} {env} {words[i]}"
    invalid = [c for c in codes if ref.to_integer(c, fmt, bits, signed)[1] & Flags.INVALID]
    for code in invalid[:5]:
        with pytest.raises(ValueError, match="integer|int"):
            sn.ops.to_integer(columns([(code,)], (fmt,))[0], fmt, dtype)


@cases("fmt", EVERY, ids=str)
def test_from_integer(fmt):
    rng = random.Random(str(fmt))
    for dtype in INTEGERS:
        bounds = np.iinfo(dtype)
        edges = [0, 1, 2, 3, 5, 7, bounds.min, bounds.max, bounds.max - 1, bounds.max // 2 + 1, bounds.max // 3]
        x = [
            *edges,
            *(rng.randrange(bounds.min, bounds.max + 1) >> rng.randrange(8 * dtype.itemsize) for _ in range(20)),
        ]
        env = {k: v for k, v in environment(fmt, rng).items() if k != "flush_inputs"}
        words = np.array([rng.randrange(1 << 32) for _ in x], np.uint32)
        given = {"random_bits": words} if env["rounding"] in STOCHASTIC else {}
        got, flags = sn.ops.from_integer(np.array(x, dtype), fmt, return_flags=True, **env, **given)
        for i, integer in enumerate(x):
            want = ref.from_integer(integer, fmt, **env, random_bits=int(words[i]))
            assert (int(got[i]), int(flags[i])) == want, f"{integer} -> {fmt}, {env}, {words[i]}"


@pytest.mark.parametrize("fmt", ["q4.4", "uq3.2", "q17.15", "q1.63", "uq0.64", "q64.0"])
def test_shift(fmt):
    fmt, rng = sn.format(fmt), random.Random(fmt)
    codes = [int(c) for c in random_codes(fmt, rng, 60)] + specimens(fmt)
    (array,) = columns([(c,) for c in codes], (fmt,))
    for n in (0, 1, -1, 3, -4, -fmt.bits, fmt.bits, -fmt.bits - 3, 1000, -1000, 2**40, -(2**40)):
        for env in (
            {},
            {"overflow": "wrap"},
            {"rounding": rng.choice(MODES), "overflow": rng.choice(overflow_rules(fmt))},
        ):
            word = {"random_bits": 0xABCD1234} if env.get("rounding") in STOCHASTIC else {}
            given = {key: np.uint32(value) for key, value in word.items()}
            got, flags = sn.ops.shift(array, n, fmt, return_flags=True, **env, **given)
            want = [ref.shift(c, n, fmt, **env, **word) for c in codes]
            assert list(zip(got.tolist(), flags.tolist(), strict=True)) == [(c, int(f)) for c, f in want], (n, env)


def as_float(x):
    """A Fraction's nearest binary64, infinite where it is too large."""
    try:
        return float(x)
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


@cases("fmt", EVERY, ids=str)
def test_ulp_error(fmt):
    rng = random.Random(str(fmt))
    codes = specimens(fmt) + draw(fmt, rng, 60)
    exact = [Fraction(0), Fraction(1, 3), *(stated(fmt, rng) * Fraction(rng.randrange(1, 400), 128) for _ in range(20))]
    exact += [float("inf"), float("-inf"), float("nan"), 1e300, -7]
    compare_errors([(c, rng.choice(exact)) for c in codes for _ in range(3)], fmt, object)
    floats = [as_float(x) for x in exact] + [1.7e308, -1.7e308, 5e-324, -0.0, 0.1]
    compare_errors([(c, rng.choice(floats)) for c in codes for _ in range(3)], fmt, float)


def compare_errors(pairs, fmt, dtype):
    exact = np.empty(len(pairs), dtype)
    exact[:] = [x for _, x in pairs]
    got = sn.ops.ulp_error(columns([(c,) for c, _ in pairs], (fmt,))[0], exact, fmt)
    want = np.array([as_float(ref.ulp_error(c, x, fmt)) for c, x in pairs])
    bad = np.flatnonzero(~((got == want) | (np.isnan(got) & np.isnan(want))))
    assert not bad.size, [(show(pairs[i][0], fmt), pairs[i][1], got[i], want[i]) for i in bad[:3]]
