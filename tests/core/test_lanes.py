"""Operations by vectors and by tables against the definition, code for code, on every instruction set."""

import random

import numpy as np
import pytest

import softnum as sn
from softnum.arrays import lanes, ufuncs
from softnum.arrays.environment import environment
from softnum.formats import FloatFormat
from softnum.formats.modes import Flags, family
from softnum.formats.names import format as format_of
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.core_oracles import MODES, STOCHASTIC, by_definition, edge_codes, on_every_isa, overflow_rules

ARITHMETIC = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "fma": 3, "sqrt": 1, "convert": 1}
UNARY = ["convert", "sqrt", "round_to_integral", "logb", "next_up", "next_down", "negate", "absolute"]
SAME = [
    "binary16", "bfloat16", "dlfloat16", "e6m9", "e5m10", "e4m11", "tf32", "binary32", "e5m2", "e4m3fnuz", "q8.8",
    "q1.15", "uq8.8", "binary16p9se", "binary12p5ue", "e11m40", "e7m8",
]  # fmt: skip
MIXED = [
    ("binary16", "bfloat16", "e5m2", "e6m9"), ("e5m2", "e4m3fn", "binary16", "binary16"),
    ("bfloat16", "bfloat16", "binary32", "binary32"), ("q8.8", "q4.4", "q8.8", "q12.4"),
    ("e4m3fn", "e8m0fnu", "e4m3fn", "bfloat16"), ("binary32", "binary16", "binary32", "dlfloat16"),
    ("q4.4", "e5m2", "q4.4", "e8m0fnu"), ("e2m1fn", "e2m1fn", "e2m1fn", "e2m3fn"), ("q8.8", "uq4.4", "e2m1fn", "uq6.2"),
]  # fmt: skip
MADE = [
    FloatFormat(5, 10, lowest_binade="zero", name="e5m10-flushing"),
    FloatFormat(6, 0, specials="fn", name="e6m0fn"),
]
CASES = [(f,) * 4 for f in [*map(format_of, SAME), *MADE]] + [tuple(map(format_of, names)) for names in MIXED]


def operands(formats, rng, count):
    """Edges of the formats against each other, and codes drawn at random."""
    columns = []
    for fmt in formats:
        edges = edge_codes(fmt, rng, 40)
        drawn = [int(edges[rng.randrange(len(edges))]) for _ in range(count)]
        drawn += [rng.getrandbits(fmt.bits) for _ in range(count // 2)]
        columns.append(np.array(drawn, np.uint64).astype(fmt.storage_dtype))
    if len(formats) > 1:  # equal and opposite operands, for sums that cancel
        same = columns[0][: count // 8].astype(np.uint64) & np.uint64((1 << formats[1].bits) - 1)
        columns[1][: count // 8] = same.astype(formats[1].storage_dtype)
    return columns


def run(name, codes, formats, out, words, **options):
    """The operation's codes without flags, however the library computes them; None where a result has no code."""
    try:
        return sn_call(name, codes, formats, out, words, **options)
    except ValueError as error:
        assert "no code" in str(error)
        return None


def sn_call(name, codes, formats, out, words, with_flags=False, invalid="raise", **options):
    options = {"rounding": "nearest_even", "overflow": None, "stochastic_bits": 32, **options}
    env = environment(out, **options)
    codes, flags = ufuncs.call_ufunc(
        name, tuple(codes), tuple(formats), out, env, words, with_flags=with_flags, invalid=invalid
    )
    return (codes, flags) if with_flags else codes


def same(got, want, codes, *context):
    bad = got != want
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise AssertionError(
            f"{bad.sum()} of {bad.size} differ, first at {i}: operands {[hex(int(c[i])) for c in codes]}, "
            f"got {int(got[i]):#x}, want {int(want[i]):#x}; {context}"
        )


def is_fast(name, formats, out, env) -> bool:
    return _core.has_lanes(name, _core.intern_context(name, tuple(formats), out, env))


@pytest.mark.parametrize("case", CASES, ids=lambda c: "x".join(dict.fromkeys(map(str, c))))
def test_arithmetic_equals_the_definition(case, monkeypatch):
    """In every mode and overflow rule, with every number of random bits that is special."""
    monkeypatch.setattr(lanes, "LEAST_TABLE", 1 << 60)  # the vectors, not the tables
    rng = random.Random(str(case))
    out = case[3]
    for name, count in ARITHMETIC.items():
        formats = case[:count]
        codes = operands(formats, rng, 600)
        words = np.array([rng.getrandbits(32) for _ in codes[0]], np.uint32)
        for i, mode in enumerate(MODES):
            for rule in overflow_rules(out):
                options = {"rounding": mode, "overflow": rule}
                if mode in STOCHASTIC:
                    options["stochastic_bits"] = (1, 11, 16, 31, 32)[i % 5]
                want, flags = by_definition(name, codes, formats, out, words, **options)
                keep = (flags & Flags.INVALID == 0) | out.has_nan
                kept = [c[keep] for c in codes]
                for isa in on_every_isa():
                    got = run(name, kept, formats, out, words[keep], **options)
                    same(got, want[keep], kept, name, *map(str, case), mode, rule, isa)


def test_the_domain_is_as_wide_as_it_says():
    """Arithmetic of 16 bits and of binary32 goes by vectors in every mode; what the proof excludes does not."""
    for name in ("binary16", "bfloat16", "dlfloat16", "e6m9", "tf32", "binary32"):
        fmt = format_of(name)
        for operation, count in ARITHMETIC.items():
            for mode in MODES:
                r = 11 if name == "binary32" else 32
                env = environment(fmt, mode, None, r)
                known = family(mode) != "none"
                assert is_fast(operation, (fmt,) * count, fmt, env) == known, (name, operation, mode)
    b32, b64, p3109 = format_of("binary32"), format_of("binary64"), format_of("binary16p9se")
    plain = environment(b32, "nearest_even", None, 32)
    assert not is_fast("add", (b64, b64), b64, plain)
    assert not is_fast("add", (b32, b32), b32, environment(b32, "sr", None, 32))
    assert not is_fast("add", (b32, b32), b32, environment(b32, "rne", None, 32, flush_inputs=True))
    assert not is_fast("add", (b32, b32), b32, environment(b32, "rne", None, 32, flush_results="after"))
    assert not is_fast("add", (b32, b32), b32, environment(b32, "rne", None, 32, nan="x86"))
    assert not is_fast("divide", (p3109, p3109), p3109, plain)
    assert not is_fast("add", (b32, b32), format_of("q8.8"), environment(format_of("q8.8"), "rne", None, 32))


WITH_FLAGS = [
    *((f,) * 4 for f in map(format_of, (
        "binary16", "bfloat16", "binary32", "binary64", "e5m2", "e4m3fn", "e4m3fnuz", "e2m1fn", "binary8p4se",
        "binary16p9se", "binary8p4uf", "e8m0fnu", "dlfloat16"))),
    *((f,) * 4 for f in (
        FloatFormat(3, 58), FloatFormat(5, 32), FloatFormat(15, 48), FloatFormat(4, 1), FloatFormat(9, 11, bias=300),
        FloatFormat(8, 23, specials="fnuz"), FloatFormat(11, 20, specials="none"), FloatFormat(5, 0, specials="fn"),
        FloatFormat(2, 2, specials="fn", nan_codes="none", infinities=True),
        FloatFormat(2, 2, nan_codes="all_ones", infinities=True, negative_zero=False),
        FloatFormat(3, 4, signed=False))),
    *(tuple(map(format_of, names)) for names in MIXED if not any("q" in n for n in names)),
    tuple(map(format_of, ("binary64", "binary32", "binary64", "binary16"))),
    tuple(map(format_of, ("binary32", "binary32", "binary64", "binary64"))),
    (FloatFormat(8, 15), FloatFormat(5, 12), FloatFormat(5, 26), FloatFormat(4, 27)),  # the most that 32 bits hold
    (FloatFormat(8, 16), FloatFormat(5, 12), FloatFormat(5, 26), FloatFormat(4, 27)),
    (FloatFormat(5, 15), FloatFormat(5, 13), FloatFormat(3, 28), FloatFormat(3, 27)),
    (FloatFormat(3, 28), FloatFormat(3, 28), FloatFormat(3, 28), FloatFormat(4, 27)),
    (FloatFormat(3, 28),) * 4,
    (FloatFormat(15, 17, signed=False, specials="none"),) * 4,
    (FloatFormat(15, 15),) * 4,
]  # fmt: skip


@pytest.mark.parametrize("case", WITH_FLAGS, ids=lambda c: "x".join(dict.fromkeys(map(str, c))))
def test_flags_equal_the_definition(case, monkeypatch):
    """Of zeros, subnormals, infinities and NaNs too: in every mode, with either tininess and every overflow rule."""
    monkeypatch.setattr(lanes, "LEAST_TABLE", 1 << 60)
    rng = random.Random(str(case))
    out = case[3]
    for name, count in ARITHMETIC.items():
        formats = case[:count]
        codes = operands(formats, rng, 300)
        words = np.array([rng.getrandbits(32) for _ in codes[0]], np.uint32)
        for i, mode in enumerate(MODES):
            for j, rule in enumerate(overflow_rules(out)):
                options = {"rounding": mode, "overflow": rule, "tininess": ("after", "before")[(i + j) % 2]}
                if mode in STOCHASTIC:
                    options["stochastic_bits"] = (1, 11, 16, 31, 32)[i % 5]
                want = by_definition(name, codes, formats, out, words, **options)
                for isa in on_every_isa():
                    got = sn_call(name, codes, formats, out, words, with_flags=True, invalid=0, **options)
                    for mine, theirs, what in zip(got, want, ("codes", "flags"), strict=True):
                        same(mine, theirs, codes, what, name, *map(str, case), options, isa)


def test_what_rounds_up_to_a_normal_number_is_not_tiny(isa):
    """(1 - 2**-13) * (1 + 2**-13) * 2**-126 = (1 - 2**-26) * 2**-126, which 24 bits round to 2**-126, or not."""
    fmt = format_of("binary32")
    a = np.array([0x3F7FF800, 0xBF7FF800] * 8, np.uint32)
    b = np.full_like(a, 0x00800400)
    inexact, tiny = Flags.INEXACT, Flags.INEXACT | Flags.UNDERFLOW
    for mode, up in (("nearest_even", (1, 1)), ("up", (1, 0)), ("down", (0, 1)), ("toward_zero", (0, 0))):
        for tininess in ("after", "before"):
            got, flags = sn.multiply(a, b, fmt, rounding=mode, tininess=tininess, return_flags=True)
            assert [int(c) & 0x7FFFFFFF for c in got] == [0x00800000 if u else 0x007FFFFF for u in up] * 8
            assert flags.tolist() == [inexact if u and tininess == "after" else tiny for u in up] * 8, (mode, tininess)


@pytest.mark.parametrize("mode", ["nearest_even", "away_from_zero"])
def test_an_unsigned_format_whose_every_code_is_finite_does_not_wrap(mode, isa):
    """Its largest code is 2**64 - 1: one more is overflow, not 0."""
    fmt = FloatFormat(15, 49, signed=False, specials="none")
    a = np.full(16, 0xFFFC000000000001, np.uint64)
    b = np.full(16, 0x8001FFFFFFFFFFFE, np.uint64)
    got, flags = sn.multiply(a, b, fmt, rounding=mode, return_flags=True)
    want, raised = by_definition("multiply", (a, b), (fmt, fmt), fmt, rounding=mode)
    assert np.array_equal(got, want) and np.array_equal(flags, raised)
    assert mode == "nearest_even" or (got[0] == 2**64 - 1 and flags[0] == Flags.OVERFLOW | Flags.INEXACT)


@cases("name", UNARY)
@cases("fmt", ["e5m2", "e2m1fn", "binary8p3ue", "q4.4", "bfloat16", "dlfloat16", "q8.8"])
def test_tables_of_one_operand(fmt, name):
    fmt = format_of(fmt)
    out = fmt if name != "convert" else format_of("e4m3fn")
    every = np.arange(1 << fmt.bits).astype(fmt.storage_dtype)
    for mode in ("nearest_even", "up"):
        want, flags = by_definition(name, [every], [fmt], out, rounding=mode)
        keep = (flags & Flags.INVALID == 0) | out.has_nan
        env = {"rounding": mode}
        for codes in (np.tile(every[keep], 5), np.tile(every[keep], 5)[::3], every[keep][::-1]):
            expected, raised = by_definition(name, [codes], [fmt], out, rounding=mode)
            same(run(name, [codes], [fmt], out, np.uint32(0), **env), expected, [codes], name, mode)
            got, got_flags = sn_call(name, [codes], [fmt], out, np.uint32(0), with_flags=True, **env)
            same(got, expected, [codes], name, mode)
            same(got_flags, raised, [codes], name, mode, "flags")
        if not keep.all():
            with pytest.raises(ValueError, match="no code"):
                sn_call(name, [np.tile(every, 5)], [fmt], out, np.uint32(0), **env)
            got, got_flags = sn_call(name, [np.tile(every, 5)], [fmt], out, np.uint32(0), True, 0, **env)
            same(got, np.tile(want, 5), [np.tile(every, 5)], name)
            same(got_flags, np.tile(flags, 5), [np.tile(every, 5)], name)


@cases("case", [("e5m2",) * 3, ("e4m3fn", "e2m1fn", "e5m2"), ("q4.4", "q2.2", "q4.4")], ids=str)
@cases("name", ["add", "divide", "remainder", "minimum", "compare"])
def test_tables_of_two_operands(case, name):
    """With flags too, and in formats that differ."""
    a, b, out = map(format_of, case)
    x, y = (c.ravel() for c in np.meshgrid(np.arange(1 << a.bits), np.arange(1 << b.bits), indexing="ij"))
    codes = [x.astype(np.uint8), y.astype(np.uint8)]
    want, flags = by_definition(name, codes, (a, b), out)
    got, got_flags = sn_call(name, codes, (a, b), out, np.uint32(0), with_flags=True, invalid=0)
    same(got, want, codes, name, case)
    same(got_flags, flags, codes, name, case, "flags")
    again, _ = sn_call(name, [c[::-1] for c in codes], (a, b), out, np.uint32(0), with_flags=True, invalid=0)
    same(again, want[::-1], codes, name, case)


@pytest.mark.parametrize("fmt", ["binary16", "e5m2", "binary32"])
def test_lengths_layouts_and_threads(fmt, isa, monkeypatch):
    fmt = format_of(fmt)
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 1 << fmt.bits, 3 * 4096 + 5).astype(fmt.storage_dtype) for _ in range(2))
    words = rng.integers(0, 1 << 32, a.size, dtype=np.uint32)
    options = {"rounding": "stochastic", "stochastic_bits": 9}
    want, _ = by_definition("add", (a, b), (fmt, fmt), fmt, words, **options)
    for start in (0, 1, 3):
        for n in [*range(40), 255, 256, 257, 1000]:
            piece = slice(start, start + n)
            got = sn.add(a[piece], b[piece], fmt, random_bits=words[piece], **options)
            same(got, want[piece], (a[piece], b[piece]), start, n)
    assert np.array_equal(sn.add(a[::3], b[::3], fmt, random_bits=words[::3], **options), want[::3])
    assert np.array_equal(sn.add(a[::-1], b[::-1], fmt, random_bits=words[::-1], **options), want[::-1])
    one = by_definition("multiply", (a, np.full_like(a, b[0])), (fmt, fmt), fmt)[0]
    assert np.array_equal(sn.multiply(a, b[0], fmt), one) and np.array_equal(sn.multiply(b[:1], a, fmt), one)
    table = a[:60].reshape(6, 10)
    outer = by_definition("add", (np.repeat(a[:60], 1), np.tile(b[:10], 6)), (fmt, fmt), fmt)[0].reshape(6, 10)
    assert np.array_equal(sn.add(table, b[:10], fmt), outer) and np.array_equal(
        sn.add(table.T.T, b[None, :10], fmt), outer
    )
    assert np.array_equal(sn.add(table.T, b[:10, None], fmt), outer.T)
    monkeypatch.setattr(lanes, "_GRAIN", 4096)
    monkeypatch.setattr(lanes, "LEAST_THREADED", 8192)
    monkeypatch.setenv("SOFTNUM_THREADS", "3")
    assert np.array_equal(sn.add(a, b, fmt, random_bits=words, **options), want)
    assert np.array_equal(sn.multiply(a, b[0], fmt), one)
    both = sn.multiply(a, b[0], fmt, return_flags=True)
    assert np.array_equal(both[0], one) and both[1].shape == a.shape


def test_who_sets_the_float_environment_changes_nothing(isa):
    """The vectors divide and add in hardware: no warning escapes, and no caller's rounding mode comes in."""
    fmt = format_of("binary16")
    codes = np.arange(1 << 16).astype(np.uint16)
    with np.errstate(all="raise"):
        got = sn.divide(codes, codes[::-1], fmt)
    assert np.array_equal(got, by_definition("divide", (codes, codes[::-1]), (fmt, fmt), fmt)[0])


def test_the_comparison_catches_a_planted_fault():
    """Rounding twice, first to binary32's precision, is wrong somewhere in these samples."""
    fmt = format_of("binary16")
    codes = operands((fmt, fmt, fmt), random.Random(3), 4000)
    want, _ = by_definition("fma", codes, (fmt,) * 3, fmt)
    with np.errstate(all="ignore"):
        x, y, z = (sn.decode(c, fmt, np.float64) for c in codes)
        twice = sn.encode((x * y + z).astype(np.float32), fmt)
    with pytest.raises(AssertionError, match="differ"):
        same(twice, want, codes)
