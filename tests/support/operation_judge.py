"""Whether the core's result of an operation is the reference's, whatever the operation and its options."""

import numpy as np

import softnum as sn
from softnum import reference as ref
from softnum.formats.modes import Flags
from tests.support.core_oracles import MODES, edge_codes, overflow_rules, random_codes, show

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
    function = getattr(sn.ops, name)
    if name in OWN_FORMAT:
        return function(*codes, formats, **options)
    if name == "convert":
        return sn.convert(codes[0], formats[0], out_fmt, **options)
    if name == "scalb":
        return sn.ops.scalb(codes[0], shifts, formats[0], out_fmt=out_fmt, **options)
    return function(*codes, formats, out_fmt=out_fmt, **options)


OF_NEIGHBOURS, OF_SIGNS = ("nan",), ("overflow", "invalid", "rounding")


def theirs(name, row, formats, out_fmt, env, word, shift):
    """(code, flags) of the reference."""
    function = getattr(ref, name)
    if name in OWN_FORMAT:
        wanted = OF_NEIGHBOURS if name.startswith("next") else OF_SIGNS[: 2 if name == "absolute" else 3]
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
    if name == "sqrt" and env["overflow"] == "wrap":  # test_roots_of_too_many_bits_do_not_wrap
        env["overflow"] = "saturate"
    judge(name, rows, chosen, out_fmt, env, rng)
