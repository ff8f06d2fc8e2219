"""Units in the C library for simulators against those of Python."""

import dataclasses
import random
import re

import numpy as np
import pytest

import softnum as sn
from tests.support.dpi_calls import finite, mode_of, word_of

OLDER = "p3109_v3_2_1"


@pytest.mark.parametrize(
    "unit, formats",
    [
        (sn.MadUnit("e6m9", operand="e5m2"), "e5m2->e6m9"),
        (sn.MadUnit("e6m9", operand=("e4m3fn", "e5m2"), product="e5m2"), "e4m3fn,e5m2,e5m2->e6m9"),
        (sn.MadUnit("e6m9", operand="e5m2", product="e6m5", rounding="sr", stochastic_bits=9), "e5m2,e5m2,e6m5->e6m9"),
        (sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=9), "e5m2->e6m9"),
        (
            sn.MadUnit("e6m9", operand="e5m2", product="q8.8", product_rounding="up", overflow="wrap"),
            "e5m2,e5m2,q8.8->e6m9",
        ),
        (sn.MadUnit("q32.0", operand=("uq8.0", "q8.0"), overflow="wrap"), "uq8.0,q8.0->q32.0"),
        (
            sn.MadUnit("binary8p4ue", operand="binary8p3se", product="e5m2", rounding="down", overflow=OLDER),
            "binary8p3se,binary8p3se,e5m2->binary8p4ue",
        ),
    ],
)  # fmt: skip
def test_mac_is_a_step_of_a_mad_unit(dpi, unit, formats):
    rng, length = random.Random(formats), 24
    a, b = (finite(f, rng, length) for f in unit.operand)
    words = np.array([[rng.getrandbits(32) for _ in range(2)] for _ in range(length)], np.uint32)
    sum_mode = mode_of(unit.rounding, unit.overflow, unit.stochastic_bits if unit.stochastic else 0)
    product_mode = mode_of(unit.product_mode, unit.overflow, unit.stochastic_bits if unit.stochastic else 0)
    acc, flags, handle = 0, 0, dpi.format(formats)
    for k in range(length):
        word = int(words[k, 0]) | int(words[k, 1]) << 32
        acc, flags = dpi.call("mac", acc, a[k], b[k], handle, sum_mode, product_mode, word, flags=flags)
    values = [sn.decode(x, f) for x, f in zip((a, b), unit.operand, strict=True)]
    trace = unit.trace(*values, random_bits=words if unit.stochastic else None)
    assert (acc, flags) == (trace.code, int(trace.flags))


@pytest.mark.parametrize(
    "operand, out, length",
    [("e5m2", "e6m9", 512), ("e4m3fn", "binary32", 33), ("q4.4", "q8.8", 7), ("e2m3fn", "e5m2", 100)],
)
def test_exact_dot(dpi, operand, out, length):
    fmt = sn.format(operand)
    for seed, rounding in enumerate(("nearest_even", "down", "stochastic")):
        rng = random.Random(seed)
        a, b = finite(fmt, rng, length), finite(fmt, rng, length)
        c = int(sn.encode(1.5, out))
        unit = sn.ExactDotUnit(out, operand=operand, rounding=rounding, stochastic_bits=11)
        words = np.array([[[[0, 1234567 + seed]]]], np.uint32) if unit.stochastic else None
        want = sn.dot(sn.decode(a, fmt), sn.decode(b, fmt), unit, 1.5, random_bits=words)
        given = word_of(a, fmt.bits), word_of(b, fmt.bits)
        mode = mode_of(rounding, bits=11)
        got, _ = dpi.call("exact_dot", *given, length, c, dpi.format(f"{operand}->{out}"), mode, 1234567 + seed)
        assert got == int(sn.encode(want, out))


@pytest.mark.parametrize(
    "name",
    [
        "nvidia_v100_fp16", "nvidia_a100_bf16", "nvidia_a100_tf32", "nvidia_h100_e4m3", "nvidia_l40s_e5m2",
        "nvidia_h100_e4m3_mma",
    ],
)  # fmt: skip
def test_fused_dot(dpi, name):
    unit = sn.unit(name)
    if unit.k_order is not None:
        unit = dataclasses.replace(unit, k_order=None)
    (a_fmt, b_fmt), rng = unit.operand, random.Random(name)
    length = 2 * unit.terms + 3
    names = f"{a_fmt},{b_fmt},{unit.accumulator}->{unit.result}"
    rule = 0x500 if unit.overflow == "always_infinity" else 0
    for _ in range(20):
        a, b = finite(a_fmt, rng, length), finite(b_fmt, rng, length)
        c = int(finite(unit.c_format, rng, 1)[0])
        values = sn.decode(a, a_fmt), sn.decode(b, b_fmt)
        want = sn.dot(*values, unit, float(sn.decode(np.array([c], unit.c_format.storage_dtype), unit.c_format)[0]))
        got, _ = dpi.call(
            "fused_dot", word_of(a, a_fmt.bits), word_of(b, b_fmt.bits), length, c, dpi.format(names),
            mode_of(unit.output_rounding) | rule, unit.terms, unit.fraction_bits,
            -(1 << 30) if unit.min_exponent is None else unit.min_exponent,
            -1 if unit.truncate_fraction is None else unit.truncate_fraction, int(unit.c == "after"),
        )  # fmt: skip
        assert got == int(sn.encode(want, unit.result))


@pytest.mark.parametrize("unit, formats", [
    (sn.ExactDotUnit("binary8p4ue", operand="binary8p3se", overflow=OLDER), "binary8p3se->binary8p4ue"),
    (sn.FusedDotUnit(4, 30, "binary8p4ue", "binary8p3se", overflow=OLDER), "binary8p3se->binary8p4ue"),
    (
        sn.FusedDotUnit(4, 30, "binary32", "binary8p3se", output="binary8p4ue", overflow=OLDER),
        "binary8p3se,binary8p3se,binary32->binary8p4ue",
    ),
])  # fmt: skip
def test_the_older_draft_of_p3109(dpi, unit, formats):
    (fmt, _), rng, length, seen = unit.operand, random.Random(formats), 9, set()
    for mode in ("nearest_even", "to_odd", "down"):
        unit = dataclasses.replace(unit, **{"output_rounding" if hasattr(unit, "terms") else "rounding": mode})
        for _ in range(20):
            a, b = finite(fmt, rng, length), finite(fmt, rng, length)
            want = sn.encode(sn.dot(sn.Array(a, fmt), sn.Array(b, fmt), unit), unit.result)
            given = word_of(a, fmt.bits), word_of(b, fmt.bits), length, 0, dpi.format(formats), mode_of(mode, OLDER)
            if isinstance(unit, sn.ExactDotUnit):
                got, _ = dpi.call("exact_dot", *given, 0)
            else:
                got, _ = dpi.call("fused_dot", *given, 4, 30, -(1 << 30), -1, 0)
            seen.add(got)
            assert got == int(want)
    assert {0, 0xFE} <= seen


def test_a_rule_that_no_format_of_a_mac_knows(dpi):
    for formats, rule in (("e5m2->e6m9", OLDER), ("e5m2,e5m2,e5m2->e6m9", "wrap"), ("q4.4->q8.8", "infinity")):
        with pytest.raises(ValueError, match="is for"):
            dpi.call("mac", 0, 0, 0, dpi.format(formats), mode_of(overflow=rule), 0, 0)


def test_units_refuse_what_they_do_not_know(dpi):
    word, none = word_of([0], 8), -(1 << 30)

    def fused(formats="e5m2,e5m2,binary32->binary32", mode=0, terms=4, bits=24, floor=none, cut=-1, after=0, length=4):
        return dpi.call("fused_dot", word, word, length, 0, dpi.format(formats), mode, terms, bits, floor, cut, after)

    assert fused() == (0, 0)
    for options, says in (
        ({"formats": "q4.4->binary32"}, "all formats must be floats"),
        ({"terms": 0}, "terms lie in 1"), ({"bits": 101}, "fraction_bits in 0..100"), ({"cut": 128}, "in -1..127"),
        ({"floor": 70000}, "min_exponent"), ({"after": 2}, "c_after"), ({"mode": 10}, "not stochastic"),
        ({"length": 513}, "513 elements of 8 bits are more than a word's 4096 bits"),
        ({"mode": 1 << 12}, "only the rounding and the overflow rule"),
        ({"formats": "e8m0fnu->e5m2"}, "e8m0fnu has no zero"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=re.escape(says)):
            fused(**options)
    with pytest.raises(ValueError, match="c is of the result's format"):
        dpi.call("exact_dot", word, word, 1, 0, dpi.format("e5m2,e5m2,e5m2->e6m9"), 0, 0)
    with pytest.raises(ValueError, match="takes more than 5120 bits"):
        dpi.call("exact_dot", word, word, 1, 0, dpi.format("e15m2->e6m9"), 0, 0)
    with pytest.raises(ValueError, match="acc = 0x100 is no code of e5m2"):
        dpi.call("mac", 0x100, 0, 0, dpi.format("e5m2"), 0, 0, 0)
