"""Operands of different formats, wide formats and fixed point of up to 64 bits, against the reference."""

import itertools
import random

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats import FloatFormat
from softnum.formats.names import format as format_of
from tests.support.cases import cases
from tests.support.core_oracles import MODES, STOCHASTIC, Groups, edge_codes, overflow_rules, random_codes, show
from tests.support.format_lists import NARROW


def columns_of(formats, rng, count, edges):
    """Random operands, and edges of each crossed with edges of the others."""
    tables = [edge_codes(f) for f in formats]
    tables = [np.array(rng.sample(t.tolist(), min(edges, len(t))), t.dtype) for t in tables]
    crossed = [c.ravel() for c in np.meshgrid(*tables, indexing="ij")]
    drawn = [random_codes(f, rng, count) for f in formats]
    return tuple(np.concatenate(pair) for pair in zip(crossed, drawn, strict=True))


def environments(fmt, rng):
    for mode in MODES:
        environment = {"rounding": mode, "overflow": rng.choice(overflow_rules(fmt))}
        environment["tininess"] = rng.choice(("after", "before"))
        if mode in STOCHASTIC:
            r = rng.choice((1, 3, 12, 17, 32))
            environment |= {"stochastic_bits": r, "random_bits": rng.getrandbits(32)}
        yield environment


MIXED = [
    ("multiply", ("e5m2", "e4m3fn"), "e6m9"),
    ("add", ("e6m9", "e5m2"), "e6m9"),
    ("multiply", ("e4m3fn", "q4.4"), "q8.8"),
    ("add", ("binary64", "e2m1fn"), "e4m3fn"),
    ("subtract", ("binary16", "bfloat16"), "tf32"),
    ("multiply", ("binary64", "binary64"), "binary16"),
    ("add", ("binary64", "binary64"), "dlfloat16"),
    ("multiply", ("e8m0fnu", "e2m1fn"), "binary32"),
    ("multiply", ("e15m48", "e15m48"), "binary64"),
    ("add", ("e15m48", "q32.32"), "e15m48"),
    ("subtract", ("uq64.0", "q1.63"), "binary64"),
    ("add", ("q1.63", "uq64.0"), "q32.32"),
    ("multiply", ("q32.32", "q1.63"), "uq16.48"),
    ("multiply", ("binary64", "q1.63"), "q64.0"),
    ("add", ("binary64", "binary32"), "q4.60"),
    ("fma", ("e5m2", "e5m2", "e6m9"), "e6m9"),
    ("fma", ("e4m3fn", "e5m2", "binary32"), "bfloat16"),
    ("fma", ("binary64", "binary64", "binary64"), "binary32"),
    ("fma", ("binary32", "binary32", "binary64"), "e3m2fn"),
    ("fma", ("q1.63", "q1.63", "q64.0"), "q1.63"),
    ("fma", ("q1.63", "q1.63", "q64.0"), "q64.0"),
    ("fma", ("q1.63", "q1.63", "q64.0"), "q32.32"),
    ("fma", ("uq0.64", "uq0.64", "uq64.0"), "uq0.64"),
    ("fma", ("uq64.0", "uq64.0", "q1.63"), "q1.63"),
    ("fma", ("q32.32", "binary64", "e15m48"), "q1.63"),
    ("fma", ("e15m48", "e15m48", "e15m48"), "q16.48"),
    ("fma", ("q2.6", "e4m3fn", "q8.24"), "e5m10"),
    ("fma", ("e2m61", "e2m61", "e2m61"), "e2m61"),
    ("fma", ("q1.63", "uq0.64", "e2m61"), "e2m61"),
]


@cases("operation, formats, out", MIXED, ids=lambda x: "-".join(x) if isinstance(x, tuple) else x)
def test_mixed(operation, formats, out):
    rng = random.Random(f"{operation} {formats} {out}")
    formats, out = tuple(map(format_of, formats)), format_of(out)
    groups = Groups(operation, columns_of(formats, rng, 350, 17 if len(formats) == 2 else 7), formats)
    for environment in environments(out, rng):
        groups.check(out, **environment)


WIDE = ["e15m48", "e11m52", "binary32", "e8m55", "e2m61", "e4m45", "e15m0_none", "q1.63", "q64.0", "q17.47", "uq0.64"]


@pytest.mark.slow
@cases("operation", ["add", "subtract", "multiply", "fma"])
@pytest.mark.parametrize("name", WIDE)
def test_wide_formats(name, operation):
    fmt = FloatFormat(15, 0, specials="none") if name == "e15m0_none" else format_of(name)
    rng = random.Random(f"{name} {operation}")
    operands = 3 if operation == "fma" else 2
    columns = columns_of((fmt,) * operands, rng, 700, 20 if operands == 2 else 7)
    flip = np.array([rng.randrange(4) | rng.randrange(2) << (fmt.bits - 1) for _ in columns[0]], np.uint64)
    close = columns[0] ^ flip.astype(fmt.storage_dtype)  # sums that cancel
    groups = Groups(operation, columns, (fmt,) * operands)
    cancelling = Groups(operation, (columns[0], close, columns[-1])[:operands], (fmt,) * operands)
    for environment in environments(fmt, rng):
        groups.check(fmt, **environment)
        cancelling.check(fmt, **environment)


@pytest.mark.parametrize("out", ["q1.63", "q4.4", "q64.0", "uq8.0", "q0.64"])
def test_floats_wrap_into_fixed_point(out):
    """The exactly rounded value modulo 2**bits, however far beyond the range it lies."""
    out = format_of(out)
    rng = random.Random(str(out))
    doubles = format_of("binary64")
    codes = columns_of((doubles, doubles, doubles), rng, 1500, 8)
    finite = np.logical_and.reduce([(c >> np.uint64(52) & np.uint64(0x7FF)) != 0x7FF for c in codes])
    codes = tuple(c[finite] for c in codes)
    middling = tuple(
        (c & np.uint64(0x800FFFFFFFFFFFFF)) | np.array([rng.randrange(940, 1150) << 52 for _ in c], np.uint64)
        for c in codes
    )
    for columns in (codes, middling):
        for operation, operands in (("add", 2), ("multiply", 2), ("fma", 3)):
            groups = Groups(operation, columns[:operands], (doubles,) * operands)
            for mode in ("nearest_even", "down", "to_odd", "away_from_zero"):
                groups.check(out, rounding=mode, overflow="wrap")


def test_wrap_of_190_bits_worked_by_hand():
    """q1.63 x q1.63 + q64.0 spans 190 bits: -2**63 + 2**-126, rounded up at 2**-63, wraps into q1.63."""
    least = np.array([1], np.uint64)
    lowest = np.array([1 << 63], np.uint64)
    formats = ("q1.63", "q1.63", "q64.0")
    got = {
        mode: int(sn.fma(least, least, lowest, formats, out_fmt="q1.63", overflow="wrap", rounding=mode)[0])
        for mode in ("up", "down", "toward_zero", "nearest_even")
    }
    assert got == {"up": 1, "down": 0, "toward_zero": 1, "nearest_even": 0}
    got = sn.fma(least, least, lowest, formats, out_fmt="q64.0", rounding="up")
    assert int(got[0]) == (1 << 63) + 1


CONVERTED = [*NARROW, "e6m9", "e15m48", "q4.4", "uq8.8", "q1.63", "binary8p3se", "binary8p4ue"]


@cases("source", CONVERTED)
def test_conversions_between_all_formats(source):
    """Edge values of each format to every other, in modes and rules that rotate."""
    source = format_of(source)
    rng = random.Random(str(source))
    codes = edge_codes(source, rng, 30)
    if len(codes) > 90:
        codes = np.array(sorted(rng.sample(codes.tolist(), 90)), codes.dtype)
    for i, target in enumerate(CONVERTED):
        target = format_of(target)
        for mode in (MODES[i % 10], MODES[(i * 7 + 3) % 10], MODES[10 + i % 2]):
            environment = {"rounding": mode, "overflow": rng.choice(overflow_rules(target))}
            if mode in STOCHASTIC:
                environment |= {"random_bits": rng.getrandbits(32), "stochastic_bits": rng.randrange(1, 33)}
            got, flags = sn.convert(codes, source, target, return_flags=True, invalid=0, **environment)
            for c, mine, raised in zip(codes.tolist(), got.tolist(), flags.tolist(), strict=True):
                want = ref.convert(c, source, target, **environment)
                assert (mine, raised) == want, f"{show(c, source)} {source} -> {target} {environment}: {want}"


@cases("source, target", list(itertools.product(["e4m3fn", "e2m1fn", "q4.4", "binary16"], repeat=2)))
def test_converting_there_and_back(source, target):
    """A value that the target holds comes back as it was."""
    source, target = format_of(source), format_of(target)
    codes = np.array(
        [c for c in range(1 << source.bits) if ref.decode(c, source).kind == "finite"], source.storage_dtype
    )
    there, flags = sn.convert(codes, source, target, return_flags=True)
    back = sn.convert(there, target, source)
    exact = (flags & ~np.uint8(sn.Flags.UNDERFLOW)) == 0
    minus_zero = codes == 1 << (source.bits - 1) if source.negative_zero else np.zeros(codes.shape, bool)
    keeps = exact & ~(minus_zero & (not target.negative_zero))
    assert exact.any() and np.array_equal(back[keeps], codes[keeps])


@cases("overflow", ["saturate", "wrap"])
@cases("out", ["q1.63", "q16.48", "q64.0", "uq0.64", "uq32.32", "q4.4"])
def test_terms_far_beyond_fixed_point_that_cancel(out, overflow):
    """The sum decides whether fixed point overflows, not its terms."""
    out, doubles = format_of(out), format_of("binary64")
    pairs = [
        (2.0**exponent, -(2.0**exponent) + sign * 2.0 ** (exponent - gap))
        for exponent in (20, 24, 25, 26, 40, 41, 63, 64, 88, 89, 100, 127, 128, 200)
        for gap in (1, 30, 51, 52, 53)
        for sign in (1, -1)
    ]
    columns = [np.array(x).view(np.uint64) for x in zip(*pairs, strict=True)]
    columns = tuple(np.concatenate(x) for x in (columns, columns[::-1]))
    for mode in ("nearest_even", "up", "down", "to_odd"):
        Groups("add", columns, (doubles, doubles)).check(out, rounding=mode, overflow=overflow)
    # products: 2^-31 * odd times itself, less its leading part
    a = np.array([(1 << 44) + n for n in (1, 3, 5)] * 2, np.uint64)
    c = np.array([-(1 << 24)] * 3 + [-(1 << 24) - 1] * 3, np.int64).view(np.uint64)
    formats = tuple(map(format_of, ("q32.32", "q32.32", "q64.0")))
    for mode in ("nearest_even", "up", "down"):
        Groups("fma", (a, a, c), formats).check(out, rounding=mode, overflow=overflow)
