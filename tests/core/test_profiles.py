"""The core against the reference: NaN profiles, stated values for invalid results, P3109, every option together."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from core_oracles import MODES, STOCHASTIC, edge_codes, overflow_rules, random_codes, show

import softnum as sn
from softnum import reference as ref
from softnum.modes import NAN_PROFILES, Flags

UNARY = ("sqrt", "round_to_integral", "logb", "convert", "scalb")
BINARY = (
    "add", "subtract", "multiply", "divide", "remainder", "minimum", "maximum", "minimum_number", "maximum_number",
)  # fmt: skip
OWN_FORMAT = {"next_up": 1, "next_down": 1, "negate": 1, "absolute": 1, "copysign": 2}
OPERANDS = dict.fromkeys(UNARY, 1) | dict.fromkeys(BINARY, 2) | {"fma": 3} | OWN_FORMAT

WITH_NAN = [
    sn.format("e3m4"), sn.format("e5m2"), sn.format("e4m1"), sn.format("e4m3fn"), sn.format("e4m3fnuz"),
    sn.format("e8m0fnu"), sn.FloatFormat(4, 3, signed=False, name="unsigned-e4m3"),
    sn.FloatFormat(4, 3, signed=False, specials="fn", name="unsigned-fn"),
    sn.FloatFormat(3, 3, nan_codes="all_ones", infinities=True, name="all-ones-inf"),
    sn.FloatFormat(3, 3, lowest_binade="zero", name="flushing"), sn.format("dlfloat16"),
]  # fmt: skip
WIDE = [sn.format(name) for name in ("binary16", "bfloat16", "tf32", "binary32", "binary64", "e11m30", "e15m48")]
P3109 = [sn.format(f"binary8p{p}{kind}") for p in (1, 3, 5) for kind in ("se", "sf", "ue", "uf")]
WITHOUT_NAN = [
    sn.format("e2m1fn"), sn.format("e3m2fn"), sn.format("e2m3fn"), sn.format("q4.4"), sn.format("uq3.2"),
    sn.FloatFormat(3, 2, signed=False, specials="none", name="unsigned-none"), sn.format("q17.15"), sn.format("q1.63"),
]  # fmt: skip
EVERY = WITH_NAN + WIDE + P3109 + WITHOUT_NAN


def specimens(fmt, most=24):
    """Every kind of NaN with several payloads and of both signs, infinities, zeros, ones, extremes."""
    if fmt.kind == "fixed":
        return [int(c) for c in edge_codes(fmt)[: most // 2]]
    magnitudes = [0, 1, 1 << fmt.mantissa_bits, max(fmt.bias, 0) << fmt.mantissa_bits, fmt.max_code]
    if fmt.infinities:
        magnitudes.append(fmt.inf_code)
    if fmt.nan_codes == "ieee":
        quiet = 1 << (fmt.mantissa_bits - 1)
        payloads = sorted({p for p in (1, quiet >> 1, quiet - 1, quiet, quiet + 1, 2 * quiet - 1) if 0 < p < 2 * quiet})
        magnitudes += [fmt.inf_code + p for p in payloads]
    elif fmt.nan_codes == "all_ones":
        magnitudes.append(fmt.nan_code)
    top = 1 << (fmt.exponent_bits + fmt.mantissa_bits)
    magnitudes = sorted({m for m in magnitudes if m < top})
    return magnitudes + ([m | top for m in magnitudes] if fmt.signed else [])


def columns(rows, formats):
    return [
        np.array(column, np.uint64).astype(fmt.storage_dtype)
        for column, fmt in zip(zip(*rows, strict=True), formats, strict=True)
    ]


def ours(name, codes, formats, out_fmt, env, words, shifts):
    """(codes, flags) of the library."""
    options = dict(env, return_flags=True)
    if words is not None:
        options["random_bits"] = words
    function = getattr(sn, name)
    if name in OWN_FORMAT:
        return function(*codes, formats, **options)
    if name == "convert":
        return sn.convert(codes[0], formats[0], out_fmt, **options)
    if name == "scalb":
        return sn.scalb(codes[0], shifts, formats[0], out_fmt=out_fmt, **options)
    return function(*codes, formats, out_fmt=out_fmt, **options)


OF_NEIGHBOURS, OF_SIGNS = ("nan",), ("overflow", "invalid")


def theirs(name, row, formats, out_fmt, env, word, shift):
    """(code, flags) of the reference."""
    function = getattr(ref, name)
    if name in OWN_FORMAT:
        wanted = OF_NEIGHBOURS if name.startswith("next") else OF_SIGNS
        return function(*row, formats if name == "copysign" else formats[0], **{k: env[k] for k in wanted if k in env})
    if word is not None:
        env = dict(env, random_bits=word)
    if name == "convert":
        return ref.convert(row[0], formats[0], out_fmt, **env)
    if name == "scalb":
        return ref.scalb(row[0], shift, formats[0], out_fmt=out_fmt, **env)
    return function(*row, formats, out_fmt=out_fmt, **env)


def judge(name, rows, formats, out_fmt, env, rng):
    """The library's codes and flags of every row of operands are the reference's."""
    words = None
    if env.get("rounding", "").startswith("stochastic"):
        words = np.array([rng.randrange(1 << 32) for _ in rows], np.uint32)
    shifts = np.array([rng.choice((0, 1, -1, 5, -9, 70, -70, 40000, -40000)) for _ in rows])
    if name == "copysign":
        out_fmt = formats[0]
    got, flags = ours(name, columns(rows, formats), formats, out_fmt, env, words, shifts)
    for i, row in enumerate(rows):
        word = None if words is None else int(words[i])
        want, want_flags = theirs(name, row, formats, out_fmt, env, word, int(shifts[i]))
        if (int(got[i]), int(flags[i])) != (want, int(want_flags)):
            operands = ", ".join(show(c, f) for c, f in zip(row, formats, strict=True))
            raise AssertionError(
                f"{name}({operands}){f' n={shifts[i]}' if name == 'scalb' else ''} {' x '.join(map(repr, formats))} -> "
                f"{out_fmt!r}, {env}, word {word}: got {show(got[i], out_fmt)} {Flags(int(flags[i]))!r}, "
                f"want {show(want, out_fmt)} {want_flags!r}"
            )


# -- every kind of operand with every other ----------------------------------------------------------------------------
@pytest.mark.parametrize("fmt", WITH_NAN + WIDE + P3109[:4], ids=str)
@pytest.mark.parametrize("profile", ["canonical", "x86", "arm"])
def test_every_kind_of_operand_with_every_other(fmt, profile):
    codes = specimens(fmt)
    for name, operands in OPERANDS.items():
        rows = list(itertools.product(codes[::2] if operands == 3 and len(codes) > 16 else codes, repeat=operands))
        judge(name, rows, (fmt,) * operands, fmt, {"nan": profile}, random.Random(1))


@pytest.mark.parametrize(
    "target", ["e5m2", "e4m1", "e4m3fn", "e4m3fnuz", "binary16", "binary64", "e8m0fnu", "binary8p3se"]
)
@pytest.mark.parametrize("profile", ["x86", "arm"])
def test_nans_between_formats(target, profile):
    target, rng = sn.format(target), random.Random(f"{target} {profile}")
    for fmt in WITH_NAN + WIDE + P3109[:4]:
        judge("convert", [(c,) for c in specimens(fmt)], (fmt,), target, {"nan": profile}, rng)
        other = rng.choice(WITH_NAN + WIDE)
        judge(
            "add",
            list(itertools.product(specimens(fmt), specimens(other))),
            (fmt, other),
            target,
            {"nan": profile},
            rng,
        )
    for formats in (("binary16", "e5m2", "e4m3fn"), ("e3m4", "binary64", "e5m2"), ("e4m3fnuz", "e3m4", "bfloat16")):
        formats = tuple(map(sn.format, formats))
        rows = list(itertools.product(*(specimens(f)[::2] for f in formats)))
        judge("fma", rows, formats, target, {"nan": profile}, rng)


def test_names_of_one_rule():
    rows = list(itertools.product(specimens(sn.format("e3m4")), repeat=2))
    a, b = columns(rows, WITH_NAN[:1] * 2)
    results = {name: sn.add(a, b, "e3m4", nan=name).tolist() for name in NAN_PROFILES}
    assert results["canonical"] == results["riscv"] == results["arm_default"] == sn.add(a, b, "e3m4").tolist()
    assert len({tuple(x) for x in results.values()}) == 3
    with pytest.raises(ValueError, match="unknown NaN profile 'intel'"):
        sn.add(a, b, "e3m4", nan="intel")


# -- every option with every other -------------------------------------------------------------------------------------
def stated(fmt, rng):
    """A value for ``invalid=``."""
    while True:
        code = rng.randrange(1 << fmt.bits)
        if ref.decode(code, fmt).kind == "finite":
            return ref.to_fraction(code, fmt)


def environment(out_fmt, rng, modes=MODES):
    env = {
        "rounding": rng.choice(modes), "overflow": rng.choice(overflow_rules(out_fmt)),
        "tininess": rng.choice(("after", "before")), "nan": rng.choice(("canonical", "x86", "arm")),
        "flush_results": rng.choice((None, "before", "after")), "flush_inputs": rng.random() < 0.3,
        "invalid": stated(out_fmt, rng),
    }  # fmt: skip
    if env["rounding"].startswith("stochastic"):
        env["stochastic_bits"] = rng.choice((1, 2, 3, 5, 8, 16, 23, 31, 32))
    return env


def draw(fmt, rng, count):
    return [rng.choice(specimens(fmt)) if rng.random() < 0.3 else int(c) for c in random_codes(fmt, rng, count)]


def judge_drawn(name, rng, count, formats=EVERY, modes=MODES):
    operands = OPERANDS[name]
    chosen = tuple(rng.choice(formats) for _ in range(operands))
    if rng.random() < 0.4 or name in ("next_up", "next_down", "negate", "absolute"):
        chosen = chosen[:1] * operands
    out_fmt = chosen[0] if rng.random() < 0.3 or name in OWN_FORMAT else rng.choice(formats)
    rows = list(zip(*(draw(fmt, rng, count) for fmt in chosen), strict=True))
    env = environment(out_fmt, rng, modes)
    if name == "sqrt" and env["overflow"] == "wrap":  # test_roots_wrap_exactly
        env["overflow"] = "saturate"
    judge(name, rows, chosen, out_fmt, env, rng)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 20))])
@pytest.mark.parametrize("name", OPERANDS)
def test_every_option_with_every_other(name, part):
    rng = random.Random(f"{name} {part}")
    for _ in range(25):
        judge_drawn(name, rng, 40)


@pytest.mark.parametrize(
    "fmt, code, target",
    [("bfloat16", 0x7F7E, "q1.63"), ("binary64", 0x670A152F9E57C292, "uq3.2"), ("e15m48", 0x63C390C4FAE252FB, "q64.0")],
)
def test_roots_of_too_many_bits_do_not_wrap(fmt, code, target):
    """The core keeps 126 bits of a root; all other operations wrap whatever they get."""
    with pytest.raises(ValueError, match="more than the 124 that can be wrapped exactly"):
        sn.sqrt([code], fmt, out_fmt=target, overflow="wrap")
    judge("sqrt", [(code,)], (sn.format(fmt),), sn.format(target), {"overflow": "saturate"}, random.Random(0))
    largest = [(c,) for c in range(0, 0x7F80, 77)]
    judge("sqrt", largest, (sn.format("bfloat16"),), sn.format("q4.60"), {"overflow": "wrap"}, random.Random(0))


@pytest.mark.parametrize("mode", STOCHASTIC)
@pytest.mark.parametrize("name", [*UNARY, *BINARY[:5], "fma"])
def test_stochastic_modes(name, mode):
    rng = random.Random(f"{name} {mode}")
    for _ in range(5):
        judge_drawn(name, rng, 60, modes=[mode])


@pytest.mark.parametrize("name", OPERANDS)
def test_p3109(name):
    rng = random.Random(name)
    for _ in range(12):
        judge_drawn(name, rng, 60, formats=P3109)


@pytest.mark.parametrize("fmt", [*P3109, sn.format("e4m3fnuz"), sn.format("e3m4"), sn.format("q4.4")], ids=str)
def test_order(fmt):
    rng = random.Random(str(fmt))
    for other in (fmt, rng.choice(EVERY), rng.choice(P3109), rng.choice(WITH_NAN)):
        rows = list(zip(draw(fmt, rng, 300), draw(other, rng, 300), strict=True))
        rows += list(itertools.product(specimens(fmt), specimens(other)))
        a, b = columns(rows, (fmt, other))
        for kind, flush in itertools.product(("quiet", "signaling"), (False, True)):
            got, flags = sn.compare(
                a, b, (fmt, other), signaling=kind == "signaling", return_flags=True, flush_inputs=flush
            )
            want = [ref.compare(*row, (fmt, other), kind, flush_inputs=flush) for row in rows]
            assert list(zip(got.tolist(), flags.tolist(), strict=True)) == [(c, int(f)) for c, f in want], (other, kind)
        if other == fmt:
            assert sn.total_order(a, b, fmt).tolist() == [ref.total_order(*row, fmt) for row in rows]


# -- other ways to the same results: tables for long arrays of 8-bit codes, each instruction set ----------------------
@pytest.mark.parametrize("name", BINARY)
def test_tables_of_8_bits(name, isa):
    rng = random.Random(name)
    for fmt, other, target in [
        (WITH_NAN[0], WITH_NAN[0], WITH_NAN[0]), (WITH_NAN[1], WITH_NAN[3], WITH_NAN[0]),
        (WITH_NAN[1], WITH_NAN[1], WITHOUT_NAN[0]), (P3109[5], P3109[5], P3109[5]), (P3109[4], P3109[4], P3109[7]),
    ]:  # fmt: skip
        a, b = (c.ravel().astype(np.uint8) for c in np.meshgrid(np.arange(256), np.arange(256)))
        deterministic = [mode for mode in MODES if mode not in STOCHASTIC]
        for _ in range(3):
            env = environment(target, rng, deterministic)
            for flags in (False, True):
                at_once = getattr(sn, name)(a, b, (fmt, other), out_fmt=target, return_flags=flags, **env)
                parts = [
                    getattr(sn, name)(x, y, (fmt, other), out_fmt=target, return_flags=flags, **env)
                    for x, y in zip(np.split(a, 32), np.split(b, 32), strict=True)
                ]
                in_parts = np.concatenate(parts, axis=-1)
                assert np.array_equal(at_once, in_parts), (name, fmt, other, target, env)


@pytest.mark.parametrize("name", OPERANDS)
def test_every_instruction_set(name, isa):
    rng = random.Random(name)
    for _ in range(4):
        judge_drawn(name, rng, 40)


# -- invalid results ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("fmt", WITHOUT_NAN, ids=str)
@pytest.mark.parametrize("name", [name for name in OPERANDS if name not in ("next_up", "next_down")])
def test_an_invalid_result_is_an_error_unless_a_value_is_stated(name, fmt):
    rng = random.Random(f"{name} {fmt}")
    operands = OPERANDS[name]
    formats = (fmt if name in OWN_FORMAT else sn.format("e5m2"),) * operands
    rows = list(zip(*(draw(f, rng, 60) for f in formats), strict=True))
    shifts, good = np.zeros(len(rows), int), []
    first, second = ref.to_fraction(0, fmt), ref.to_fraction(1, fmt)
    for row in rows:  # what has no code is what follows `invalid`
        codes, one = columns([row], formats), theirs(name, row, formats, fmt, {"invalid": first}, None, 0)
        other = theirs(name, row, formats, fmt, {"invalid": second}, None, 0)
        if one == other:
            good.append(row)
        else:
            assert (one[0], other[0]) == (0, 1) and one[1] & Flags.INVALID
            got, flags = ours(name, codes, formats, fmt, {"invalid": second}, None, shifts[:1])
            assert (int(got[0]), int(flags[0])) == other, row
            with pytest.raises(ValueError, match=f"{fmt} has no code"):
                ours(name, codes, formats, fmt, {}, None, shifts[:1])
    got, _ = ours(name, columns(good, formats), formats, fmt, {}, None, shifts[: len(good)])  # raises nothing
    assert got.tolist() == [theirs(name, row, formats, fmt, {}, None, 0)[0] for row in good]


@pytest.mark.parametrize("name", OPERANDS)
def test_values_that_a_format_lacks_cannot_be_stated(name):
    formats = (sn.format("e2m1fn"),) * OPERANDS[name]
    codes = columns([(1,) * OPERANDS[name]], formats)
    for value in (Fraction(1, 3), 7, float("inf"), float("nan"), "zero"):
        with pytest.raises(ValueError, match="invalid"):
            ours(name, codes, formats, formats[0], {"invalid": value}, None, np.zeros(1, int))


# -- integers, shifts, errors ------------------------------------------------------------------------------------------
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("fmt", [f for f in EVERY if f not in P3109[2:]], ids=str)
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
            got, flags = sn.to_integer(array, fmt, dtype, return_flags=True, **env, **given)
            assert got.dtype == dtype
            for i, code in enumerate(codes):
                want, want_flags = ref.to_integer(code, fmt, bits, signed, random_bits=words[i], **env)
                assert (int(got[i]), int(flags[i])) == (want, int(want_flags)), f"{show(code, fmt)} {env} {words[i]}"
    invalid = [c for c in codes if ref.to_integer(c, fmt, bits, signed)[1] & Flags.INVALID]
    for code in invalid[:5]:
        with pytest.raises(ValueError, match="integer|int"):
            sn.to_integer(columns([(code,)], (fmt,))[0], fmt, dtype)


@pytest.mark.parametrize("fmt", EVERY, ids=str)
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
        got, flags = sn.from_integer(np.array(x, dtype), fmt, return_flags=True, **env, **given)
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
            got, flags = sn.shift(array, n, fmt, return_flags=True, **env, **given)
            want = [ref.shift(c, n, fmt, **env, **word) for c in codes]
            assert list(zip(got.tolist(), flags.tolist(), strict=True)) == [(c, int(f)) for c, f in want], (n, env)


def as_float(x):
    """A Fraction's nearest binary64, infinite where it is too large."""
    try:
        return float(x)
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


@pytest.mark.parametrize("fmt", EVERY, ids=str)
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
    got = sn.ulp_error(columns([(c,) for c, _ in pairs], (fmt,))[0], exact, fmt)
    want = np.array([as_float(ref.ulp_error(c, x, fmt)) for c, x in pairs])
    bad = np.flatnonzero(~((got == want) | (np.isnan(got) & np.isnan(want))))
    assert not bad.size, [(show(pairs[i][0], fmt), pairs[i][1], got[i], want[i]) for i in bad[:3]]


# -- the tests can fail ------------------------------------------------------------------------------------------------
def test_planted_faults_are_caught(monkeypatch):
    fmt = sn.format("e3m4")
    rows = list(itertools.product(specimens(fmt), repeat=2))
    with monkeypatch.context() as patch:
        patch.setattr(ref, "add", lambda *a, nan, **k: ref.subtract(*a, nan="arm", **k))
        with pytest.raises(AssertionError, match="add"):
            judge("add", rows, (fmt, fmt), fmt, {"nan": "x86"}, random.Random(0))
    real = sn.fma
    with monkeypatch.context() as patch:
        patch.setattr(sn, "fma", lambda a, b, c, *rest, **k: real(c, b, a, *rest, **k))
        with pytest.raises(AssertionError, match="fma"):
            test_every_kind_of_operand_with_every_other(fmt, "x86")
