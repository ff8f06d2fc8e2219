"""device/patterns.h: patterns of float32 and float64 rounded one by one, as softnum.quantize and encode do."""

from functools import lru_cache

import numpy as np
import pytest

import softnum as sn
from softnum.arrays import lanes
from softnum.arrays.conversion import invalid_code
from softnum.arrays.environment import environment
from softnum.formats.modes import ROUNDING_MODES, family
from softnum.kernels.device.elementwise.patterns import SMALL, pattern_facts, reading_facts
from softnum.kernels.device.runtime.source import Entry, Library
from tests.support.cases import cases

KINDS = {"float32": ("uint32", "32", "sn_u32"), "float64": ("uint64", "64", "sn_u64")}
SIGNED = (
    "e5m2", "e4m3", "e4m3fn", "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "e3m4", "e6m9", "e2m1fn", "e3m2fn", "bfloat16",
    "binary16", "tf32", "e8m20", "e3m21", "e7m22", "dlfloat16", "binary8p3se", "binary8p1se", "binary8p4sf", "q4.4",
    "q1.7", "q8.8", "q0.8", "q12.11",
)  # fmt: skip
FORMATS = (*SIGNED, "binary32", "e8m0fnu", "uq0.8", "uq4.4", "uq8.0", "binary8p3ue", "binary8p1uf")
FLUSHED = (sn.FloatFormat(5, 2, subnormals=False), sn.FloatFormat(4, 3, subnormals=False, specials="fn"))
NO_NAN = (sn.FloatFormat(3, 2, specials="none"), sn.FloatFormat(4, 0, specials="none"))


@lru_cache
def loops(carrier):
    """C loops over arrays, the format and the environment given as data: to values, to codes, to "has no result"."""
    from softnum.kernels.device.runtime import _cuda

    kind, bits, c = KINDS[carrier]
    body = "const sn_pattern *p = (const sn_pattern *)facts;\nfor (sn_i64 i = 0; i < n; i++) to[i] = {};\n"
    arguments = (
        ("uint64*", "facts"), (f"{kind}*", "x"), ("uint32*", "random"), (f"{kind}*", "to"), ("int64", "n"),
    )  # fmt: skip
    entries = tuple(
        Entry(name, "void", arguments, body.format(text))
        for name, text in (
            ("values", f"sn_round_pattern{bits}(p, x[i], random[i])"),
            ("codes", f"sn_code_of_pattern{bits}(p, x[i], random[i])"),
            ("decode", f"sn_pattern_of_code{bits}((const sn_reading *)facts, x[i] + 0 * random[i])"),
            ("none", f"({c})sn_no_result{bits}(p, x[i] + 0 * random[i])"),
        )
    )
    return _cuda.bind(Library("", entries, "softnum/device/patterns.h"))


def packed(facts) -> np.ndarray:
    """The fields as an sn_pattern or sn_reading."""
    signed = dict.fromkeys(("limit", "low", "max_code", "inf_code"), np.int64)
    kind = np.dtype(
        [
            (name, np.int32 if name in SMALL else signed.get(name, np.uint64), np.shape(value) or ())
            for name, value in facts.items()
        ],
        align=True,
    )
    return np.array([tuple(facts.values())], kind)


def patterns(fmt, carrier, n):
    """Every exponent with edge fractions and fractions near the format's last places; the format's neighbourhood; and
    random patterns."""
    bits = KINDS[carrier][1]
    places, word = (23, np.uint32) if bits == "32" else (52, np.uint64)
    m = fmt.bits if fmt.kind == "fixed" else fmt.mantissa_bits
    rng = np.random.default_rng(7)
    exponents = np.arange(2 ** (int(bits) - 1 - places), dtype=np.uint64) << np.uint64(places)
    fractions = {0, 1, 2, (1 << places) - 1, (1 << places) - 2, 1 << (places - 1)}
    for cut in range(max(places - m - 3, 0), min(places - m + 3, places)):
        for around in (0, 1, 2, 3, 5):
            fractions |= {(around << cut) + d & ((1 << places) - 1) for d in (-1, 0, 1)}
        fractions |= {(1 << places) - (1 << cut) + d for d in (-1, 0)}
    edges = (exponents[:, None] | np.array(sorted(fractions), np.uint64)).ravel()
    values = sn.decode(np.arange(min(1 << fmt.bits, 1 << 12)).astype(fmt.storage_dtype), fmt, carrier).view(word)
    values = values.astype(np.uint64)
    values = np.concatenate([values, values + np.uint64(1), values - np.uint64(1)])
    dense = rng.integers(0, 2 ** int(bits), n, dtype=np.uint64)
    all_of = np.concatenate([edges, values, dense]).astype(word)
    sign = word(1 << (int(bits) - 1))
    return np.concatenate([all_of & ~sign, all_of | sign])


def check(fmt, rounding, carrier, n=1 << 12, overflow=None, stochastic_bits=32):
    """Compare with the CPU; None outside the domain, which is the CPU's but for stochastic rounding over a gap."""
    fmt = sn.format(fmt)
    has_nan = fmt.has_nan
    invalid = "raise" if has_nan else 0
    if not has_nan and not fmt.has_zero:
        invalid = float(fmt.max)
    env = environment(
        fmt, rounding, overflow, stochastic_bits, "after", False, None, "canonical", invalid_code(invalid, fmt)
    )
    facts = pattern_facts(fmt, env, carrier)
    over_gap = fmt.kind == "float" and fmt.lowest_binade == "normal" and fmt.has_zero and "stochastic" in rounding
    bits = int(KINDS[carrier][1])
    assert (facts is not None) == (lanes.rounder(fmt, env, bits).ok == bits and not over_gap), fmt
    if facts is None:
        return None
    x = patterns(fmt, carrier, n)
    words = np.random.default_rng(11).integers(0, 2**32, x.size, dtype=np.uint32)
    words[::7] = 0
    words[3::7] = 2**32 - 1
    bound, data = loops(carrier), packed(facts)
    options = {"rounding": rounding, "overflow": overflow, "stochastic_bits": stochastic_bits, "invalid": invalid}
    if rounding.startswith("stochastic"):
        options["random_bits"] = words
    source = x.view(carrier)
    wants = sn.quantize(source, fmt, **options).view(x.dtype), sn.encode(source, fmt, **options).astype(x.dtype)
    for loop, want in zip((bound.values, bound.codes), wants, strict=True):
        got = np.full_like(x, 0x7FEDCBA9)
        loop(data.ctypes.data, x.ctypes.data, words.ctypes.data, got.ctypes.data, x.size)
        wrong = np.flatnonzero(got != want)
        assert not wrong.size, [
            (str(fmt), rounding, overflow, hex(x[i]), float(source[i]), hex(words[i]), hex(got[i]), hex(want[i]))
            for i in wrong[:6]
        ]
    got = np.full_like(x, 9)
    bound.none(data.ctypes.data, x.ctypes.data, words.ctypes.data, got.ctypes.data, x.size)
    wrong = np.isnan(source) if not has_nan else np.zeros(x.size, bool)
    if fmt.kind == "fixed":
        wrong = ~np.isfinite(source)
    assert np.array_equal(got, wrong)
    return True


MODES = tuple(mode for mode in ROUNDING_MODES if family(mode) != "none")


@cases("rounding", MODES)
@cases("carrier", ["float32", "float64"])
def test_modes(carrier, rounding):
    bits = 12 if rounding.startswith("stochastic") else 32
    formats = FORMATS if carrier == "float32" else FORMATS[::3]
    done = [check(fmt, rounding, carrier, stochastic_bits=bits, n=256) for fmt in formats]
    assert sum(map(bool, done)) >= len(formats) - 4


WIDE = ("e11m40", "binary64", "q20.20", "uq30.20", "e10m49", "e11m51")


@cases("rounding", MODES)
def test_wide(rounding):
    assert all(check(fmt, rounding, "float64", stochastic_bits=32, n=256) for fmt in WIDE)


@pytest.mark.parametrize("carrier", ["float32", "float64"])
def test_the_older_draft_of_p3109(carrier):
    for fmt in ("binary8p3ue", "binary8p4ue", "binary8p3se"):
        for rounding in ("nearest_even", "nearest_down", "up", "down", "toward_zero", "to_odd", "stochastic_floor"):
            assert check(fmt, rounding, carrier, n=64, overflow="p3109_v3_2_1")


@pytest.mark.parametrize("overflow", ["infinity", "saturate", "saturate_finite"])
@pytest.mark.parametrize("carrier", ["float32", "float64"])
def test_overflow_rules(carrier, overflow):
    for fmt in ("e5m2", "e4m3fn", "e4m3fnuz", "binary8p3se", "binary8p3uf", "e2m1fn", "bfloat16", "dlfloat16", "q4.4"):
        if overflow == "infinity" and fmt == "q4.4":
            continue
        for rounding in ("nearest_even", "nearest_down", "up", "toward_zero", "to_odd", "stochastic_floor"):
            done = check(fmt, rounding, carrier, n=64, overflow=overflow)
            assert done or (fmt, rounding) == ("dlfloat16", "stochastic_floor")


@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_up", "down", "to_odd", "stochastic", "stochastic_floor"])
def test_lowest_binades(rounding):
    """Flushed ones, normal ones, none at all; formats without NaN or without subnormals' room."""
    for fmt in (
        sn.FloatFormat(5, 2, subnormals=False),
        sn.FloatFormat(4, 3, subnormals=False, specials="fn"),
        sn.FloatFormat(3, 2, specials="none"),
        sn.FloatFormat(4, 0, specials="none"),
        sn.FloatFormat(4, 3, signed=False),
        sn.FloatFormat(5, 4, bias=-60),
        sn.FloatFormat(5, 4, bias=120),
        sn.FloatFormat(1, 5, specials="none"),
    ):
        assert check(fmt, rounding, "float32", stochastic_bits=9), fmt


@cases("bits", [1, 8, 23, 31, 32])
@cases("rounding", [m for m in MODES if m.startswith("stochastic")])
def test_stochastic_bits(rounding, bits):
    for fmt in ("e4m3", "q4.4", "bfloat16", "binary32"):
        done = check(fmt, rounding, "float32", stochastic_bits=bits, n=256)
        assert done or (bits == 32 and rounding not in ("stochastic", "stochastic_floor"))


@pytest.mark.parametrize("carrier", ["float32", "float64"])
def test_values_of_codes(carrier):
    """All codes of up to 16 bits, some millions of others; bits above the format's are ignored."""
    rng = np.random.default_rng(5)
    kind, bound = np.dtype(KINDS[carrier][0]), loops(carrier)
    formats = [sn.format(f) for f in (*FORMATS, *WIDE)] + [sn.FloatFormat(5, 2, subnormals=False)]
    done = 0
    for fmt in formats:
        facts = reading_facts(fmt, carrier)
        assert (facts is not None) == lanes.decoder(fmt, int(KINDS[carrier][1])).ok, fmt
        if facts is None:
            continue
        done += 1
        codes = np.arange(1 << min(fmt.bits, 16), dtype=np.uint64)
        if fmt.bits > 16:
            top = np.uint64((1 << fmt.bits) - 1)
            wide = rng.integers(0, 2**64, 1 << 14, dtype=np.uint64) & top
            codes = np.concatenate([codes, top - codes, wide, wide & np.uint64(0xFFFF) << np.uint64(fmt.bits - 16)])
        want = sn.decode(codes.astype(fmt.storage_dtype), fmt, carrier).view(kind)
        given = codes.astype(kind)
        if fmt.bits < 8 * kind.itemsize:
            given |= kind.type(1 << fmt.bits)
        got, random = np.full_like(given, 0x7FEDCBA9), np.zeros(len(given), np.uint32)
        bound.decode(packed(facts).ctypes.data, given.ctypes.data, random.ctypes.data, got.ctypes.data, len(given))
        wrong = np.flatnonzero(got != want)
        assert not wrong.size, [(str(fmt), hex(codes[i]), hex(got[i]), hex(want[i])) for i in wrong[:5]]
    assert done >= (27 if carrier == "float32" else 37)
