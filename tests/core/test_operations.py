"""Division, roots, remainders, order, neighbours, signs, exponents, flushing: the core against the reference."""

import itertools

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.modes import Flags
from tests.support.cases import cases
from tests.support.core_oracles import MODES, overflow_rules, show

NAMED = [sn.format(n) for n in ("e5m2", "e4m3fn", "e4m3fnuz", "e3m2fn", "e2m1fn", "q4.4", "uq2.3", "q2.2", "e8m0fnu")]
CUSTOM = [
    sn.FloatFormat(3, 2, specials="p3109"),
    sn.FloatFormat(3, 2, lowest_binade="zero"),
    sn.FloatFormat(3, 2, specials="fn", lowest_binade="normal"),
    sn.FloatFormat(3, 3, specials="p3109", signed=False),
    sn.FloatFormat(4, 1, bias=3),
    sn.FloatFormat(2, 4),
]
FORMATS = NAMED + CUSTOM
ROUNDED = {
    1: ("sqrt", "round_to_integral", "logb"),
    2: ("divide", "remainder", "minimum", "maximum", "minimum_number", "maximum_number"),
}
EVERY = {name: n for n, names in ROUNDED.items() for name in names}


def environments(fmt, modes=MODES):
    """Every mode, with the other choices going round."""
    rules, tininess, flush = (
        overflow_rules(fmt),
        itertools.cycle(["after", "before"]),
        itertools.cycle([None, "before", "after"]),
    )
    for i, mode in enumerate(modes):
        env = {"rounding": mode, "overflow": rules[i % len(rules)], "tininess": next(tininess)}
        if mode.startswith("stochastic"):
            env["stochastic_bits"] = 3
        if fmt.kind == "float":
            env["flush_results"] = next(flush)
            env["flush_inputs"] = i % 5 == 4
        yield env


def compare(name, codes, fmt, env, out_fmt=None, word=0):
    """The library's codes and flags of many operands equal the reference's."""
    stochastic = env["rounding"].startswith("stochastic")
    random = {"random_bits": np.uint32(word)} if stochastic else {}
    got, flags = getattr(sn.ops, name)(*codes, fmt, out_fmt=out_fmt, return_flags=True, invalid=0, **random, **env)
    one = {"random_bits": word} if stochastic else {}
    for i, operands in enumerate(zip(*(c.tolist() for c in codes), strict=True)):
        want, want_flags = getattr(ref, name)(*operands, fmt, out_fmt=out_fmt, **one, **env)
        if (int(got[i]), int(flags[i])) != (want, int(want_flags)):
            formats = fmt if isinstance(fmt, tuple) else (fmt,) * len(operands)
            out = sn.format(out_fmt or formats[0])
            shown = ", ".join(show(c, f) for c, f in zip(operands, formats, strict=True))
            raise AssertionError(
                f"{name}({shown}) in {formats} -> {out}, {env}, word {word}: got {show(got[i], out)} "
                f"{Flags(int(flags[i]))!r}, want {show(want, out)} {want_flags!r}"
            )


def codes_of(fmt, operands, most):
    """All tuples of codes, or a regular selection of them."""
    n = 1 << fmt.bits
    total = n**operands
    step = max(1, total // most)
    if step > 1:
        step |= 1  # odd: every residue occurs
    flat = np.arange(0, total, step)
    return [(flat // n**i % n).astype(fmt.storage_dtype) for i in range(operands)]


@cases("fmt", FORMATS, ids=repr)
@cases("name", EVERY)
def test_every_mode(name, fmt):
    codes = codes_of(fmt, EVERY[name], 250)
    for i, env in enumerate(environments(fmt)):
        compare(name, codes, fmt, env, word=5 * i & 7)


@pytest.mark.slow
@pytest.mark.parametrize("fmt", ["e5m2", "e4m3fn", "q4.4"])
@pytest.mark.parametrize("name", ["divide", "remainder"])
@pytest.mark.parametrize("mode", MODES)
def test_all_pairs_of_8_bits(name, fmt, mode):
    fmt = sn.format(fmt)
    codes = codes_of(fmt, 2, 1 << 16)
    env = {"rounding": mode} | ({"stochastic_bits": 4} if mode.startswith("stochastic") else {})
    compare(name, codes, fmt, env, word=6)


@cases(("formats", "out"), [
    (("e5m2", "q4.4"), "binary16"), (("e4m3fn", "e5m2"), "q4.4"), (("q4.4", "uq2.6"), "e4m3fn"),
    (("binary16", "e5m2"), "e8m0fnu"),
    (("q1.63", "uq0.64"), "q16.48"), (("uq64.0", "uq0.64"), "uq0.64"), (("binary64", "binary32"), "tf32"),
    (("e15m48", "e15m48"), "e15m48"),
    (("q40.24", "binary64"), "q8.8"), (("dlfloat16", "bfloat16"), "dlfloat16"),
])  # fmt: skip
@cases("name", ["divide", "remainder", "minimum_number"])
def test_mixed_and_wide_formats(name, formats, out):
    formats = tuple(sn.format(f) for f in formats)
    out = sn.format(out)
    rng = np.random.Generator(np.random.Philox(8))
    codes = []
    for f in formats:
        edges = [0, 1, 2, 3, (1 << f.bits) - 1, 1 << (f.bits - 1), (1 << (f.bits - 1)) - 1, 1 << (f.bits // 2)]
        if f.kind == "float":
            edges += [f.max_code, f.max_code - 1, 1 << f.mantissa_bits]
        drawn = rng.integers(0, 2**64, 60, dtype=np.uint64) >> np.uint64(64 - f.bits)
        codes.append(np.concatenate([np.array(edges, np.uint64), drawn]).astype(f.storage_dtype))
    grid = np.meshgrid(np.arange(len(codes[0]))[::3], np.arange(len(codes[1]))[::2], indexing="ij")
    pairs = [c[i.ravel()] for c, i in zip(codes, grid, strict=True)]
    for i, env in enumerate(
        environments(out, ["nearest_even", "toward_zero", "up", "to_odd", "stochastic", "nearest_even"])
    ):
        compare(name, pairs, formats, env, out, word=i)


@cases("fmt", ["binary16", "bfloat16", "dlfloat16", "binary32", "binary64", "q16.16", "e15m48"])
@cases("name", ["sqrt", "round_to_integral", "logb"])
def test_unary_on_wider_formats(name, fmt):
    fmt = sn.format(fmt)
    rng = np.random.Generator(np.random.Philox(9))
    bits = rng.integers(0, 2**64, 300, dtype=np.uint64) >> np.uint64(64 - fmt.bits)
    squares = sn.encode(np.arange(1, 120, dtype=np.float64) ** 2, fmt).astype(np.uint64)
    halves = sn.encode(np.arange(-40, 40) + 0.5, fmt).astype(np.uint64)
    codes = np.concatenate([bits, squares, squares + np.uint64(1), halves, np.arange(8, dtype=np.uint64)]).astype(
        fmt.storage_dtype
    )
    for i, env in enumerate(environments(fmt)):
        compare(name, [codes], fmt, env, word=3 + i)


@cases("fmt", [*FORMATS, sn.format("binary16")], ids=repr)
def test_scalb(fmt):
    codes = codes_of(fmt, 1, 256)[0]
    for n in (0, 1, -1, 3, -4, 20, -40, 70000, -70000, 2**40, -(2**40)):
        got, flags = sn.ops.scalb(codes, n, fmt, return_flags=True, invalid=0)
        for i, code in enumerate(codes.tolist()):
            want, want_flags = ref.scalb(code, n, fmt)
            assert (int(got[i]), int(flags[i])) == (want, int(want_flags)), (show(code, fmt), n)
    with pytest.raises(TypeError, match="scalb: n must be integers, got an array of float64"):
        sn.ops.scalb(codes, 0.5, fmt)


@cases("fmt", FORMATS, ids=repr)
@cases("name", ["next_up", "next_down", "negate", "absolute"])
def test_neighbours_and_signs(name, fmt):
    codes = codes_of(fmt, 1, 256)[0]
    got, flags = getattr(sn.ops, name)(codes, fmt, return_flags=True, invalid=0)
    for i, code in enumerate(codes.tolist()):
        want, want_flags = getattr(ref, name)(code, fmt)
        assert (int(got[i]), int(flags[i])) == (want, int(want_flags)), (name, show(code, fmt))


@cases("fmt", FORMATS, ids=repr)
def test_order_classes_and_copied_signs(fmt):
    a, b = codes_of(fmt, 2, 5000)
    for signaling in (False, True):
        got, flags = sn.compare(a, b, fmt, signaling=signaling, return_flags=True)
        want = [
            ref.compare(x, y, fmt, "signaling" if signaling else "quiet")
            for x, y in zip(a.tolist(), b.tolist(), strict=True)
        ]
        assert got.dtype == np.int8
        assert [(int(g), int(f)) for g, f in zip(got, flags, strict=True)] == [(c, int(f)) for c, f in want]
    order = [ref.total_order(x, y, fmt) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert sn.ops.total_order(a, b, fmt).tolist() == order
    got, flags = sn.ops.copysign(a, b, fmt, return_flags=True, invalid=0)
    want = [ref.copysign(x, y, fmt) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert [(int(g), int(f)) for g, f in zip(got, flags, strict=True)] == [(c, int(f)) for c, f in want]
    codes = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    assert sn.classify(codes, fmt).tolist() == [ref.classify(c, fmt) for c in codes.tolist()]


@pytest.mark.parametrize("fmt", ["e5m2", "e4m3fn", "e3m2fn", "e4m3fnuz"])
@pytest.mark.parametrize("name", ["add", "multiply", pytest.param("subtract", marks=pytest.mark.slow)])
def test_flushing_in_the_basic_operations(name, fmt):
    fmt = sn.format(fmt)
    codes = codes_of(fmt, 2, 3000)
    for mode in MODES:
        for flush_results in (None, "before", "after"):
            env = {"rounding": mode, "flush_results": flush_results, "flush_inputs": flush_results != "before"}
            if mode.startswith("stochastic"):
                env["stochastic_bits"] = 3
            compare(name, codes, fmt, env, word=4)


def test_a_planted_fault_is_caught():
    codes = codes_of(sn.format("e5m2"), 2, 700)
    real, sn.ops.divide = sn.ops.divide, sn.ops.multiply
    try:
        with pytest.raises(AssertionError, match="divide"):
            compare("divide", codes, sn.format("e5m2"), {"rounding": "nearest_even"})
    finally:
        sn.ops.divide = real
