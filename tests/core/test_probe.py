"""probe against the reference: of each operation the exact value that the reference rounds, cut off by Fractions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import softnum as sn
import softnum.reference
from softnum import ops
from softnum import reference as ref
from softnum.formats import FloatFormat
from softnum.formats.modes import Flags
from softnum.formats.names import format as format_of
from softnum.inspect.probes import KINDS
from softnum.reference import elementary, operations, order, rounding
from tests.support.core_oracles import DETERMINISTIC, STOCHASTIC

FIELDS = (
    "kind", "sign", "exponent", "last_place", "significand", "guard", "round", "sticky", "discarded", "random",
    "rounds_up", "gap", "overflowed", "flushed",
)  # fmt: skip
NOTHING = dict.fromkeys(FIELDS, 0)


def told(x, fmt, env):
    """What a probe of the exact value x, rounded to fmt, must show."""
    finite = x.kind == "finite"
    if not finite or not x.numerator or (x.sign and fmt.kind == "float" and not fmt.has_zero):
        kind = "infinite" if x.kind == "inf" else "zero" if finite and not x.numerator else "nan"
        return NOTHING | {"kind": KINDS.index(kind), "sign": x.sign if kind != "nan" else 0}
    magnitude = abs(x.fraction)
    exponent = rounding.floor_log2(x.numerator, x.denominator)
    wild = {"gap": 0, "flushed": 0}
    if fmt.kind == "fixed":
        last, unit = -fmt.fraction_bits, Fraction(1, 1 << fmt.fraction_bits)
        odd = magnitude // unit & 1
        result, flags = rounding.round_fixed(x.sign, x.numerator, x.denominator, fmt, env)
    else:
        code, _, _ = rounding.neighbours(x.numerator, x.denominator, exponent, fmt)
        below = magnitude < fmt.smallest_normal
        result, flags = rounding.round_float(x.sign, x.numerator, x.denominator, fmt, env)
        wild["flushed"] = bool(below and env.flush_results and fmt.has_zero and not result << 1 & (1 << fmt.bits) - 1)
        last, odd = exponent - fmt.mantissa_bits, code & 1
        if below and not (env.flush_results and fmt.has_zero):
            last, wild["gap"] = fmt.emin - fmt.mantissa_bits, fmt.lowest_binade != "subnormal" or not fmt.has_zero
        unit = Fraction(fmt.smallest_normal) if wild["gap"] else Fraction(2) ** last
        if wild["gap"]:
            last, odd = fmt.emin, 0
        elif below and not (env.flush_results and fmt.has_zero):
            odd = magnitude // unit & 1
    count, rest = divmod(magnitude, unit)
    lost, r = rest / unit, env.stochastic_bits
    up = rounding.goes_up(x.sign, int(odd), lost.numerator, lost.denominator, env)
    if wild["gap"] and not fmt.has_zero:
        up = True  # there is nothing below
    stochastic = env.rounding.startswith("stochastic")
    quarters, more = divmod(4 * lost, 1)
    digits = {
        "significand": count % 2**64, "guard": quarters >> 1, "round": quarters & 1, "sticky": more != 0,
        "discarded": int(lost * 2**r) if stochastic else 0, "rounds_up": up,
    }  # fmt: skip
    if fmt.kind == "fixed" and env.overflow != "wrap" and count >= 2**64:
        digits = dict.fromkeys(digits, 0)
    return {
        "kind": KINDS.index("finite"), "sign": x.sign, "exponent": exponent, "last_place": last, **digits, **wild,
        "random": env.random_bits if stochastic else 0, "overflowed": bool(flags & Flags.OVERFLOW),
    }  # fmt: skip


class Watch:
    """The exact values that the reference delivers, the last one first of all."""

    def __init__(self, monkeypatch) -> None:
        self.seen = None

        def deliver(x, fmt, env, raised=0):
            self.seen = x, fmt, env
            return rounding.deliver(x, fmt, env, raised)

        for module in (operations, order, elementary):
            monkeypatch.setattr(module, "deliver", deliver)


@pytest.fixture
def watch(monkeypatch):
    return Watch(monkeypatch)


def check(watch, name, codes, formats, out_fmt=None, **options):
    """probe of all the operands (tuples of one length) shows what the reference did, and delivers what it delivers."""
    formats, out_fmt = tuple(map(format_of, formats)), format_of(formats[0] if out_fmt is None else out_fmt)
    words = options.pop("random_bits", None)
    function = getattr(ref, name)
    given = {} if words is None else {"random_bits": np.array(words, np.uint32)}
    if not out_fmt.has_nan:
        options["invalid"] = out_fmt.min
    of_operands = zip(zip(*codes, strict=True), formats, strict=True)
    columns = [np.array(column, np.uint64).astype(f.storage_dtype) for column, f in of_operands]
    target = {"to_fmt" if name == "convert" else "out_fmt": out_fmt}
    fmt = formats if len(formats) > 1 else formats[0]
    probed = sn.probe(name, *columns, fmt, **target, **options, **given)
    own, flags = ops.OPERATIONS[name][0](*columns, fmt, **target, **options, **given, return_flags=True)
    np.testing.assert_array_equal(probed.result, own)
    np.testing.assert_array_equal(probed.flags, flags)
    assert probed.result.dtype == own.dtype and probed.format == out_fmt and probed.operation == name
    columns = {key: getattr(probed, key).tolist() for key in (*FIELDS, "result", "flags")}
    for i, operands in enumerate(codes):
        own = {} if words is None else {"random_bits": int(words[i])}
        watch.seen = None
        if name == "convert":
            code, raised = function(*operands, *formats, out_fmt, **options, **own)
        else:
            code, raised = function(*operands, formats, out_fmt=out_fmt, **options, **own)
        x, to, env = watch.seen
        want = told(x, to, env) | {"result": code, "flags": raised}
        got = {key: columns[key][i] for key in want}
        if abs(want["exponent"]) >= elementary.FAR:  # where the reference knows no more than that
            want["exponent"] = got["exponent"] if abs(got["exponent"]) >= elementary.FAR else None
        assert got == want, (name, [hex(c) for c in operands], out_fmt, options)
    return probed


def pairs(bits):
    return list(product(range(1 << bits), repeat=2))


SIX_BITS = ["e3m2", FloatFormat(3, 2, specials="fn"), "binary6p3se", "q3.3", FloatFormat(3, 2, lowest_binade="normal")]


@pytest.mark.parametrize("mode", DETERMINISTIC)
def test_pairs_of_six_bits_in_every_mode(watch, mode):
    """Drawn ones, in floats, P3109, fixed point and a format with a gap above zero."""
    rng = np.random.default_rng(len(mode))
    everything = pairs(6)
    for fmt, name in product(SIX_BITS, ("add", "multiply", "divide", "subtract")):
        some = [everything[i] for i in rng.choice(len(everything), 250, replace=False)]
        check(watch, name, some, (fmt, fmt), rounding=mode)


def test_all_pairs_of_eight_bits(watch):
    """Every product."""
    check(watch, "multiply", pairs(8), ("e4m3", "e4m3"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", DETERMINISTIC)
@pytest.mark.parametrize("fmt", ["e5m2", "binary8p3se", "q4.4"])
@pytest.mark.parametrize("name", ["add", "divide"])
def test_all_pairs_of_eight_bits_in_every_mode(watch, name, fmt, mode):
    check(watch, name, pairs(8), (fmt, fmt), rounding=mode)


def edge_codes(fmt, rng, count):
    """Codes of a format: half of them at its ends and the middle, the others any."""
    ends = [0, 1, 2, fmt.bits > 8 and (1 << (fmt.bits - 1)) - 1]
    if fmt.kind == "float":
        first = 1 << fmt.mantissa_bits
        ends += [first - 1, first, first + 1, fmt.max_code, fmt.max_code - 1, (fmt.inf_code if fmt.infinities else 3)]
    top = 1 << (fmt.bits - 1)
    ends = [int(c) | s for c in ends for s in (0, top)]
    anything = [int.from_bytes(rng.bytes(8), "little") & ((1 << fmt.bits) - 1) for _ in range(count)]
    return [ends[rng.integers(len(ends))] if rng.random() < 0.5 else c for c in anything]


WIDE = ["binary16", "bfloat16", "binary32", "binary64", "e15m48", "q8.8", "q1.31", "q32.32", "dlfloat16", "e8m0fnu"]


@pytest.mark.parametrize("fmt", WIDE)
def test_wide_formats(watch, fmt):
    """Edges and any codes of formats of 16 to 64 bits."""
    fmt, rng = format_of(fmt), np.random.default_rng(17)
    for name, operands in (
        ("add", 2), ("subtract", 2), ("multiply", 2), ("divide", 2), ("remainder", 2), ("fma", 3), ("sqrt", 1),
        ("minimum", 2), ("maximum_number", 2), ("logb", 1),
    ):  # fmt: skip
        columns = [edge_codes(fmt, rng, 60) for _ in range(operands)]
        mode = DETERMINISTIC[int(rng.integers(len(DETERMINISTIC)))]
        check(watch, name, list(zip(*columns, strict=True)), (fmt,) * operands, rounding=mode)


@pytest.mark.parametrize("target", ["e4m3", "binary16", "q4.4", "uq8.0", "e8m0fnu", "binary8p3uf", "q0.8", "dlfloat16"])
def test_results_of_other_formats(watch, target):
    rng = np.random.default_rng(4)
    for source in ("binary32", "binary64", "q8.24", "binary16"):
        codes = [(c,) for c in edge_codes(format_of(source), rng, 150)]
        mode = DETERMINISTIC[int(rng.integers(len(DETERMINISTIC)))]
        check(watch, "convert", codes, (source,), target, rounding=mode)
    mixed = list(zip(edge_codes(format_of("e5m2"), rng, 200), edge_codes(format_of("q4.12"), rng, 200), strict=True))
    check(watch, "multiply", mixed, ("e5m2", "q4.12"), target)


@pytest.mark.parametrize("mode", STOCHASTIC)
@pytest.mark.parametrize("bits", [1, 5, 32])
def test_stochastic_modes(watch, mode, bits):
    """With the bits that are cut off, and the random ones."""
    rng = np.random.default_rng(bits)
    for fmt, name in (
        ("e4m3", "multiply"), ("q4.4", "add"), ("binary16", "divide"), ("e5m2", "add"), ("q2.14", "divide"),
    ):  # fmt: skip
        fmt = format_of(fmt)
        codes = list(zip(edge_codes(fmt, rng, 150), edge_codes(fmt, rng, 150), strict=True))
        words = rng.integers(0, 1 << 32, len(codes), np.uint32)
        check(watch, name, codes, (fmt, fmt), rounding=mode, stochastic_bits=bits, random_bits=words)


def test_with_a_key():
    """The words are those of the operation, numbered by the elements of the C-ordered result."""
    a = np.arange(256, dtype=np.uint8).reshape(16, 16)
    p = sn.probe("multiply", a, a[:1], "e4m3", rounding="stochastic", stochastic_bits=9, key=(3, 1))
    own = sn.multiply(a, a[:1], "e4m3", rounding="stochastic", stochastic_bits=9, key=(3, 1))
    np.testing.assert_array_equal(p.result, own)
    words = [ref.random_word_elementwise(3, 1, i) & 511 for i in range(256)]
    np.testing.assert_array_equal(p.random, np.where(p.special, 0, np.reshape(words, (16, 16))))
    carries = p.discarded + p.random >= 512
    np.testing.assert_array_equal(p.rounds_up, carries)


@pytest.mark.parametrize("flush", [None, "before", "after"])
@pytest.mark.parametrize("tininess", ["after", "before"])
def test_tiny_results(watch, flush, tininess):
    rng = np.random.default_rng(9)
    for fmt, mode in product(
        ("e4m3", "e5m2", FloatFormat(4, 3, lowest_binade="zero"), FloatFormat(4, 3, lowest_binade="normal"), "e8m0fnu"),
        ("nearest_even", "up", "to_odd", "stochastic_fast"),
    ):
        fmt = format_of(fmt)
        tiny = [int(c) for c in rng.integers(0, 40, 160)]
        codes = list(zip(tiny, edge_codes(fmt, rng, 160), strict=True))
        options = {"random_bits": rng.integers(0, 1 << 32, 160, np.uint32)} if mode.startswith("stoch") else {}
        inputs = bool(flush) and fmt.lowest_binade == "subnormal"
        check(
            watch, "multiply", codes, (fmt, fmt), rounding=mode, flush_results=flush, tininess=tininess,
            flush_inputs=inputs, **options,
        )  # fmt: skip


@pytest.mark.parametrize("overflow", ["saturate", "wrap"])
def test_fixed_point_out_of_range(watch, overflow):
    rng = np.random.default_rng(6)
    for fmt, source in (
        ("q4.4", "q32.32"), ("uq2.6", "binary64"), ("q1.63", "q1.63"), ("q64.0", "binary64"), ("q0.8", "e15m48"),
    ):  # fmt: skip
        source = format_of(source)
        codes = list(zip(edge_codes(source, rng, 120), edge_codes(source, rng, 120), strict=True))
        for name in ("add", "multiply", "divide"):
            if source.kind == "float" and source.infinities:
                codes = [c for c in codes if all(ref.decode(x, source).kind == "finite" for x in c)]
            check(watch, name, codes, (source, source), fmt, overflow=overflow)


@pytest.mark.parametrize("overflow", ["infinity", "saturate", "saturate_finite"])
def test_overflowing_floats(watch, overflow):
    rng = np.random.default_rng(6)
    for fmt, mode in product(("e4m3", "e4m3fn", "e2m1fn", "binary8p3se"), ("nearest_even", "up", "toward_zero")):
        fmt = format_of(fmt)
        codes = list(zip(edge_codes(fmt, rng, 100), edge_codes(fmt, rng, 100), strict=True))
        check(watch, "add", codes, (fmt, fmt), rounding=mode, overflow=overflow)
        check(watch, "divide", codes, (fmt, fmt), rounding=mode, overflow=overflow)


@pytest.mark.parametrize(
    "name",
    ["exp", "log2", "tanh", "sin", "rsqrt", "reciprocal", "cbrt", "gelu", "sigmoid", "erf", "expm1", "acos", "exp2"],
)
def test_elementary_functions(watch, name):
    """As many bits of an irrational value as a rounder looks at."""
    rng = np.random.default_rng(1)
    for fmt, out, mode in (
        ("e4m3", "e4m3", "nearest_even"), ("binary16", "binary16", "up"), ("e5m2", "e3m4", "to_odd"),
        ("binary16", "q4.12", "nearest_away"), ("e4m3", "binary8p4se", "stochastic"), ("e4m3", "dlfloat16", "down"),
    ):  # fmt: skip
        codes = [(c,) for c in edge_codes(format_of(fmt), rng, 25)]
        if not format_of(out).has_nan:
            codes = [c for c in codes if ref.decode(c[0], fmt).kind == "finite"]
        options = {"random_bits": rng.integers(0, 1 << 32, len(codes), np.uint32)} if mode == "stochastic" else {}
        check(watch, name, codes, (fmt,), out, rounding=mode, **({"stochastic_bits": 11} | options if options else {}))


def test_powers_and_hypotenuses(watch):
    rng = np.random.default_rng(2)
    for name in ("pow", "hypot"):
        fmt = format_of("e4m3")
        codes = list(zip(edge_codes(fmt, rng, 60), edge_codes(fmt, rng, 60), strict=True))
        check(watch, name, codes, (fmt, fmt), rounding="nearest_even")


def test_a_result_beyond_all_formats():
    """Evaluation knows no digit of e**(10**30): none is told."""
    p = sn.probe("exp", sn.array([1e30, -1e30, 88.0], "binary32"))
    assert p.exponent.tolist() == [2**27, -(2**27), 126] and p.last_place.tolist() == [2**27 - 23, -149, 103]
    assert p.significand[:2].tolist() == [0, 0] and p.sticky.tolist() == [1, 1, 1] and p.guard[:2].tolist() == [0, 0]
    assert p.decision.tolist()[:2] == ["overflow", "down"]
    p = sn.probe("exp", sn.array([-1e30], "binary32"), rounding="up")
    assert p.rounds_up.all() and p.result == 1
    p = sn.probe("exp", sn.array([-1e30], "binary32"), flush_results="before")
    assert p.flushed.all() and p.last_place == -(2**27) - 23 and p.significand == 0


def test_rounding_to_integers():
    """Their last place is 1, whatever the format: what is cut off are the digits behind the point."""
    x = np.array([2.5, -0.25, 6.0, 48.0, 3.5, -0.0, np.inf, np.nan])
    p = sn.probe(sn.ops.round_to_integral, sn.array(x, "e4m3"))
    assert p.special.tolist() == [False] * 5 + [True] * 3
    assert p.significand.tolist() == [2, 0, 6, 48, 3, 0, 0, 0] and p.last_place[:5].tolist() == [0] * 5
    assert [f"{g}{r}{s}" for g, r, s in zip(p.guard, p.round, p.sticky, strict=True)][:5] == [
        "100", "010", "000", "000", "100",
    ]  # fmt: skip
    assert p.rounds_up.tolist()[:5] == [False, False, False, False, True]
    own, flags = sn.ops.round_to_integral(sn.array(x, "e4m3"), return_flags=True)
    assert p.result.tolist() == own.codes.tolist() and p.flags.tolist() == flags.tolist()
    p = sn.probe("round_to_integral", sn.array([300.75], "binary16"), out_fmt="e4m3")
    assert p.significand == 300 and p.guard == p.round == 1 and p.overflowed and p.rounds_up


def test_scalb_shift_and_integers(watch):
    p = sn.probe("scalb", [0x3D, 0x3D, 0x3D], [3, -18, 40], "e5m2")
    assert p.exponent.tolist() == [3, -18, 40] and p.significand.tolist() == [5, 0, 5]
    assert p.guard.tolist() == [0, 0, 0] and p.round.tolist() == [0, 1, 0]
    assert p.overflowed.tolist() == [False, False, True]
    own, flags = sn.ops.scalb([0x3D, 0x3D, 0x3D], [3, -18, 40], "e5m2", return_flags=True)
    assert p.result.tolist() == own.tolist() and p.flags.tolist() == flags.tolist()
    p = sn.probe("shift", sn.array([-0.3125, 5.0], "q4.4"), [-1, 1])
    assert p.guard.tolist() == [1, 0] and p.rounds_up.tolist() == [True, False]
    assert p.overflowed.tolist() == [False, True]
    p = sn.probe(sn.ops.from_integer, [1, -2, 1000], "e4m3fn", overflow="saturate")
    assert p.result.tolist() == sn.ops.from_integer([1, -2, 1000], "e4m3fn", overflow="saturate").tolist()
    assert p.exponent.tolist() == [0, 1, 9] and p.significand.tolist() == [8, 8, 15]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_encoding(dtype):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((5, 7)) * 10.0 ** rng.integers(-4, 4, (5, 7))).astype(dtype)
    x[0, :4] = 0, np.inf, -np.inf, np.nan
    for function in (sn.encode, "quantize"):
        p = sn.probe(function, x, "e4m3", rounding="up")
        codes, flags = sn.encode(x, "e4m3", rounding="up", return_flags=True)
        np.testing.assert_array_equal(p.result, codes)
        np.testing.assert_array_equal(p.flags, flags)
    exact = np.ldexp(p.significand.astype(np.float64), p.last_place)
    inside = np.abs(x) - exact
    finite = ~p.special
    assert (inside[finite] >= 0).all() and (inside[finite] < np.ldexp(1.0, p.last_place[finite])).all()
    assert p.kind[0, :4].tolist() == [0, 2, 2, 3] and p.sign[0, :4].tolist() == [0, 0, 1, 0]


def test_shapes_indexing_and_data():
    a, b = np.arange(6, dtype=np.uint8).reshape(3, 2, 1) * 40, np.arange(4, dtype=np.uint8) * 60
    p = sn.probe("add", a, b, "e4m3")
    assert p.shape == (3, 2, 4) and len(p) == 3 and all(getattr(p, f).shape == p.shape for f in FIELDS)
    one = p[2, 1, 3]
    assert one.shape == () and isinstance(one.to_dict()["significand"], int)
    assert p[1].shape == (2, 4) and p[p.special].shape == (int(p.special.sum()),)
    assert p.to_dict()["format"] == "e4m3" and p.to_dict()["guard"] is p.guard
    assert sn.probe("add", a[:0], b, "e4m3").shape == (0, 2, 4)
    long = sn.probe("add", np.arange(60, dtype=np.uint8), 1, "e4m3")
    assert repr(long).splitlines()[-1] == "... and 36 more" and len(repr(long).splitlines()) == 27
    assert "1,0,3" in repr(p)


def test_a_large_array_in_threads():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 1 << 16, (2, 50_000)).astype(np.uint16)
    p = sn.probe("multiply", a, b, "binary16")
    own, flags = sn.multiply(a, b, "binary16", return_flags=True)
    np.testing.assert_array_equal(p.result, own)
    np.testing.assert_array_equal(p.flags, flags)
    some = sn.probe("multiply", a[31_000:31_100], b[31_000:31_100], "binary16")
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(p, field)[31_000:31_100], getattr(some, field))


def test_the_table():
    """Significands in binary, with the power of two of the digit before the point; fixed point with its point."""
    small = sn.array([1.5, -2.5, 0.015625], "e4m3"), sn.array([0.00390625, 1.75, 0.0], "e4m3")
    assert repr(sn.probe("multiply", *small)).splitlines() == [
        "multiply -> e4m3, nearest_even",
        "#  sign  significand   GRS  rounds   result              flags",
        "0  +     0.011 * 2^-6  000  exact    0x03 = 0.005859375",
        "1  -     1.000 * 2^2   110  up       0xc9 = -4.5         inexact",
        "2  +     zero               special  0x00 = 0",
    ]
    assert repr(sn.probe("multiply", [0x19, 0x7F], [0x18, 0x7F], "q4.4", overflow="wrap")).splitlines()[2:] == [
        "0  +     010.0101     100  up      0x26 = 2.375  inexact",
        "1  +     111111.0000  001  wrap    0xf0 = -1     inexact|overflow",
    ]
    gap = sn.probe("convert", sn.array([2.0**-33, 2.0**-31 * 1.001], "binary64"), to_fmt="dlfloat16", rounding="up")
    assert [line.split()[2:7] for line in repr(gap).splitlines()[2:]] == [
        ["0", "*", "2^-31", "001", "up"], ["0", "*", "2^-31", "111", "up"],
    ]  # fmt: skip
    assert [p.decision for p in (gap[0],)] == ["up"]


def test_refusals():
    with pytest.raises(ValueError, match="unknown operation 'multiplyy'; did you mean 'multiply'"):
        sn.probe("multiplyy", [1], [1], "e4m3")
    with pytest.raises(TypeError, match="must be one of softnum's or its name"):
        sn.probe(np.add, [1], [1], "e4m3")
    for name in ("next_up", "negate", sn.classify, "compare"):
        with pytest.raises(ValueError, match="rounds nothing"):
            sn.probe(name, [1], "e4m3")
    with pytest.raises(TypeError, match="leave return_flags out"):
        sn.probe("add", [1], [1], "e4m3", return_flags=True)
    with pytest.raises(TypeError, match="convert an Array"):
        sn.probe("encode", sn.array([1.0], "e4m3"), "e5m2")
    with pytest.raises(TypeError, match="must be of float16, float32, float64 or integers"):
        sn.probe("encode", np.array(["0.1"]), "e5m2")
    with pytest.raises(ValueError, match="no code"):
        sn.probe("divide", [0], [0], "q4.4")
    assert sn.probe("divide", [0], [0], "q4.4", invalid=1).result == 16
    with pytest.raises(ValueError, match="more than 126 bits"):
        sn.probe("exp", sn.array([200.0], "binary32"), out_fmt="q8.8", overflow="wrap")
