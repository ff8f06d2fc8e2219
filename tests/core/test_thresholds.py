"""The core against the reference at the random words where a stochastic result changes: there every bit decides."""

import random

import numpy as np
import pytest

import softnum as sn
from tests.support.cases import cases
from tests.support.core_oracles import STOCHASTIC, overflow_rules
from tests.support.operation_judge import OPERANDS, WIDE, columns, ours, theirs

# there a larger word never gives a smaller magnitude
UPWARD = [mode for mode in STOCHASTIC if mode != "stochastic_floor"]
FIXED = ("q1.63", "uq0.64", "uq64.0", "q32.32", "uq32.0", "q16.16")
DECIDING = [*WIDE, *map(sn.format, FIXED), sn.format("e5m2"), sn.format("e2m61")]
NAMES = ["divide", "sqrt", "fma", "multiply", "add", "remainder", "convert", "round_to_integral"]


def threshold(result, r):
    """The least word that gives another result than word 0, or None if there is none."""
    first, low, high = result(0), 0, (1 << r) - 1
    if result(high) == first:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if result(middle) == first else (low, middle)
    return high


def judge_thresholds(name, formats, out_fmt, env, rows):
    """Rows are judged at the word where they change, and at the one before; how many have such a word."""
    found = 0
    for row in rows:

        def result(word, row=row):
            return theirs(name, row, formats, out_fmt, env, word, 0)

        word = threshold(lambda word: result(word)[0], env["stochastic_bits"])
        if word is None:
            continue
        found += 1
        words, no_shift = np.array([word - 1, word], np.uint32), np.zeros(2, int)
        got, flags = ours(name, columns([row, row], formats), formats, out_fmt, env | {"invalid": 0}, words, no_shift)
        want = [result(word - 1), result(word)]
        assert list(zip(got.tolist(), flags.tolist(), strict=True)) == want, (name, row, formats, out_fmt, env, word)
    return found


def middling(fmt, rng):
    """A code whose value is neither very large nor very small, so that results often are in range and inexact."""
    if fmt.kind == "fixed" or rng.random() < 0.2:
        return rng.randrange(1 << fmt.bits)
    exponent = min(max(fmt.bias + rng.randrange(-6, 8), 0), (1 << fmt.exponent_bits) - 2)
    sign = rng.randrange(2) << (fmt.bits - 1) if fmt.signed else 0
    return sign | exponent << fmt.mantissa_bits | rng.randrange(1 << fmt.mantissa_bits)


@pytest.mark.parametrize("name", NAMES)
def test_thresholds(name):
    rng, found = random.Random(name), 0
    for _ in range(150):
        formats = tuple(rng.choice(DECIDING) for _ in range(OPERANDS[name]))
        out_fmt = rng.choice(DECIDING)
        env = {"rounding": rng.choice(UPWARD), "stochastic_bits": rng.choice((32, 31, 24, 7))}
        env["overflow"] = "saturate" if name == "sqrt" else rng.choice(overflow_rules(out_fmt))
        rows = [tuple(middling(fmt, rng) for fmt in formats) for _ in range(4)]
        found += judge_thresholds(name, formats, out_fmt, env, rows)
    assert found > 50


@cases("mode", UPWARD)
@cases(
    "fmt, target, r",
    [
        ("uq64.0", "uq0.61", 32), ("uq64.0", "uq0.64", 29), ("uq58.0", "uq0.64", 32), ("bfloat16", "q4.60", 1),
        ("bfloat16", "q34.30", 31),
    ],
)  # fmt: skip
def test_thresholds_of_roots_that_wrap(fmt, target, r, mode):
    """Up to the last bit that the core keeps; one bit more is refused."""
    fmt, target, rng = sn.format(fmt), sn.format(target), random.Random(f"{fmt} {target} {mode}")
    top = (1 << fmt.bits) - 1 if fmt.kind == "fixed" else fmt.max_code
    rows = [(rng.randrange(7 * top // 8, top + 1),) for _ in range(40)]
    env = {"rounding": mode, "stochastic_bits": r, "overflow": "wrap"}
    assert judge_thresholds("sqrt", (fmt,), target, env, rows) > 10
    env["stochastic_bits"] = min(r + 1, 32)
    if env["stochastic_bits"] > r:
        with pytest.raises(ValueError, match="that can be wrapped exactly"):
            sn.sqrt([1], fmt, out_fmt=target, random_bits=0, **env)
