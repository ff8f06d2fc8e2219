"""Instructions of floating-point units in the C library for simulators, against the vectors of `softnum vectors`."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.vectors import VectorSpec
from softnum.vectors.plans.profiles import PROFILES
from tests.support.cases import cases
from tests.support.dpi_calls import ONES, mode_of, u64

#: a profile -> what its mode is made of, by the names of softnum_modes.vh
MODES = {
    name: int(value.replace("64'h", "").replace("_", ""), 16 if "h" in value else 10)
    for name, value in re.findall(
        r"(SOFTNUM_\w+) = ((?:64'h)?[0-9A-F_]+);", (Path(sn.get_include()) / "dpi" / "softnum_modes.vh").read_text()
    )
}
OF_PROFILE = {
    "riscv": ("MINMAX_RISCV", "INTEGER_RISCV", "CLASS_MASK"),
    "arm": ("NAN_ARM", "TININESS_BEFORE", "MINMAX_ARM", "INTEGER_ARM"),
    "x86": ("NAN_X86", "MINMAX_X86", "INTEGER_X86"),
    "cuda": ("NAN_CUDA", "MINMAX_CUDA", "INTEGER_CUDA"),
    "ieee": ("INTEGER_RISCV",),
}
COMPARISONS = [f"compare_{r}{s}" for r in ("equal", "less", "less_equal") for s in ("", "_signaling")]
TWO = [*COMPARISONS, "sign_copy", "sign_negate", "sign_xor", "minimum", "maximum", "minimum_number", "maximum_number"]
THREE = ("fma", "fmsub", "fnmadd", "fnmsub")
INTEGERS = [f"{k}{n}" for k in "iu" for n in (8, 16, 32, 64)]


def mode_named(profile):
    return sum(MODES[f"SOFTNUM_{name}"] for name in OF_PROFILE[profile])


def judge(loops, op, operands, fmt, *, out=None, mode=0, **options):
    """All results and flags are those that VectorSpec has."""
    spec = VectorSpec.make(op, fmt, out_fmt=out, **options)
    operands = [x.astype(f.storage_dtype) for x, f in zip(operands, spec.formats, strict=True)]
    block = spec.evaluate(operands)
    stated = out if op in ("to_integer", "from_integer") else fmt
    codes, flags = loops.each(op, operands, f"{fmt}->{stated}" if out else fmt, mode)
    wrong = np.flatnonzero((codes != block.result) | (flags != block.flags))
    if len(wrong):
        i = wrong[0]
        pytest.fail(f"{op} {fmt}->{out} {options}: {len(wrong)} wrong: {[hex(int(x[i])) for x in operands]} gives "
                    f"{codes[i]:x} {flags[i]:x}, not {block.result[i]:x} {block.flags[i]:x}")  # fmt: skip


def pairs(bits):
    codes = np.arange(1 << bits, dtype=np.uint64)
    return np.repeat(codes, 1 << bits), np.tile(codes, 1 << bits)


def refused(op, fmt, **options):
    try:
        VectorSpec.make(op, fmt, **options)
    except ValueError:
        return True
    return False


def test_profiles_are_those_of_vectors():
    text = (Path(sn.get_include()) / "dpi" / "softnum_modes.vh").read_text()
    for name, parts in OF_PROFILE.items():
        stated = re.search(rf"SOFTNUM_PROFILE_{name.upper()} =\s*([^;]+);", text)[1].split("|")
        assert tuple(part.strip().removeprefix("SOFTNUM_") for part in stated) == parts
    assert set(OF_PROFILE) == set(PROFILES)


@cases("op", TWO)
def test_all_pairs_of_small_formats(loops, op):
    """Every profile, all codes of six bits; what formats without a NaN, and with one in the code of -0, are."""
    exhaust(loops, op, itertools.product(("e3m2fn", "e3m2"), OF_PROFILE))
    exhaust(loops, op, [("e4m3fnuz", "riscv")])


@pytest.mark.slow
@cases("op", TWO)
def test_all_pairs_of_eight_bits(loops, op):
    exhaust(loops, op, itertools.product(("e5m2", "e4m3fn", "e4m3fnuz", "e3m4"), OF_PROFILE))


def exhaust(loops, op, choices):
    for name, profile in choices:
        fmt = sn.format(name)
        if refused(op, name, profile=profile):
            with pytest.raises(ValueError, match="softnum_"):
                loops.each(op, [np.zeros(1), np.zeros(1)], name, mode_named(profile))
            continue
        judge(loops, op, pairs(fmt.bits), name, mode=mode_named(profile), profile=profile)


@cases("op", ["minimum", "maximum"])
def test_x86_with_daz(loops, op):
    """MINSS and MAXSS compare and deliver zeros."""
    mode = mode_named("x86") | mode_of(inputs=True)
    for name in ("e3m2", "e2m3fn"):
        judge(loops, op, pairs(6), name, mode=mode, profile="x86", flush_inputs=True)


@cases("op", THREE)
def test_fused(loops, op):
    """All triples of five bits, and random ones of binary32 and binary64, in all profiles, modes and flushes."""
    rng = np.random.default_rng(7)
    codes = np.arange(32, dtype=np.uint64)
    small = [x.ravel() for x in np.meshgrid(codes, codes, codes)]
    for profile in OF_PROFILE if op == "fnmadd" else ("x86",):
        judge(loops, op, small, "e2m2", mode=mode_named(profile), profile=profile)
    for name, results, inputs in itertools.product(
        ("binary16", "binary32", "binary64"), ("before", "after", "subnormal", None), (False, True)
    ):
        fmt, rounding = sn.format(name), str(rng.choice(("nearest_even", "up", "toward_zero", "nearest_away")))
        operands = rng.integers(0, 1 << 64, (3, 600), np.uint64) >> np.uint64(64 - fmt.bits)
        operands[2, :300] = int(fmt.inf_code) - 1 + rng.integers(0, 4, 300, np.uint64)
        profile = str(rng.choice(("riscv", "arm", "x86")))
        mode = mode_named(profile) | mode_of(rounding, inputs=inputs, results=results)
        judge(loops, op, operands, name, mode=mode, profile=profile, rounding=rounding, flush_inputs=inputs,
              flush_results=results)  # fmt: skip


@cases("out", INTEGERS)
def test_to_and_from_integers(loops, out):
    rng = np.random.default_rng(3)
    for name, profile in itertools.product(("e5m2", "binary16", "binary32", "binary64"), OF_PROFILE):
        fmt = sn.format(name)
        codes = rng.integers(0, 1 << 64, 300, np.uint64) >> np.uint64(64 - fmt.bits)
        if fmt.bits <= 16:
            codes = np.arange(1 << fmt.bits, dtype=np.uint64)[:: 1 if fmt.bits == 8 else 31]
        near = sn.encode(np.array([2.0**n * s for n in range(66) for s in (1, -1, 0.75, -1.5)]), fmt)
        codes = np.concatenate([codes, near.astype(np.uint64)])
        rounding = str(rng.choice(("nearest_even", "toward_zero", "up", "down", "nearest_away")))
        for exact in (True, False):
            mode = mode_named(profile) | mode_of(rounding) | (0 if exact else MODES["SOFTNUM_SILENT"])
            judge(loops, "to_integer", [codes], name, out=out, mode=mode, profile=profile, rounding=rounding,
                  exact=exact)  # fmt: skip
    width = int(out[1:])
    ends = np.array([0, 1, (1 << width) - 1], np.uint64)
    whole = np.concatenate([rng.integers(0, 1 << 64, 400, np.uint64) >> np.uint64(64 - width), ends])
    for name in ("binary16", "binary32", "e4m3fn"):
        spec = VectorSpec.make("from_integer", out, out_fmt=name, rounding="down")
        block = spec.evaluate([whole.astype(f"u{width // 8}")])
        codes, flags = loops.each("from_integer", [whole], f"{out}->{name}", mode_of("down"))
        assert (codes == block.result).all() and (flags == block.flags).all()


def test_silent_integrals_and_classes(loops):
    codes = np.arange(1 << 16, dtype=np.uint64)
    judge(loops, "round_to_integral", [codes], "binary16", mode=MODES["SOFTNUM_SILENT"], exact=False)
    for profile in OF_PROFILE:
        judge(loops, "classify", [codes], "binary16", mode=mode_named(profile), profile=profile)


def test_comparisons_of_posits(loops):
    a, b = pairs(8)
    for name in COMPARISONS:
        judge(loops, name, (a, b), "posit8")
    judge(loops, "fnmsub", (a, b, b[::-1]), "posit8")


def test_stochastic_and_mixed(loops):
    """What vectors of fmsub in formats of their own and with random bits are."""
    rng = np.random.default_rng(1)
    operands = [rng.integers(0, 256, 4000, np.uint64) for _ in range(3)]
    words = rng.integers(0, 1 << 12, 4000, np.uint64)
    spec = VectorSpec.make("fmsub", ("e5m2", "e4m3fn", "e5m2"), out_fmt="bfloat16", rounding="sr", stochastic_bits=12)
    block = spec.evaluate([x.astype(np.uint8) for x in operands], words.astype(np.uint32))
    codes, flags = loops.each("fmsub", operands, "e5m2,e4m3fn,e5m2->bfloat16", mode_of("stochastic", bits=12), words)
    assert (codes == block.result).all() and (flags == block.flags).all()


@cases(
    "name, operands, formats, mode, says",
    [
        ("from_integer", 1, "e5m2->binary16", 0, "the operand is an integer: state i8->OUT ... u64->OUT; got e5m2"),
        ("from_integer", 1, "q9.0->binary16", 0, "the operand is an integer"),
        ("sign_xor", 2, "e5m2,e4m3->e5m2", 0, "of floats of one format with a sign bit"),
        ("sign_copy", 2, "q4.4", 0, "of floats of one format with a sign bit, not of q4.4"),
        ("sign_copy", 2, "posit8", 0, "of floats of one format with a sign bit, not of posit8"),
        ("fmsub", 3, "e8m0fnu->binary32", 0, "e8m0fnu has not the negative of each value"),
        ("fnmadd", 3, "q4.4", 0, "q4.4 has not the negative of each value"),
        ("minimum", 2, "e5m2,e5m2->binary16", MODES["SOFTNUM_MINMAX_ARM"], "rules are of floats of one format"),
        ("maximum_number", 2, "e5m2", MODES["SOFTNUM_MINMAX_X86"], "x86's MINSS is softnum_minimum"),
        ("minimum", 2, "e5m2", 6 << 32, "is no mode"),
        ("to_integer", 1, "e5m2->i8", 5 << 35, "is no mode"),
        ("add", 2, "binary64", MODES["SOFTNUM_NAN_CUDA"], "no manual states the NaN that GPUs deliver in binary64"),
        ("add", 2, "e5m2", 1 << 40, "is no mode"),
    ],
)  # fmt: skip
def test_what_has_no_answer(dpi, name, operands, formats, mode, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        dpi.operate(name, [0] * operands, formats, mode)


# -- formats without a name --------------------------------------------------------------------------------------------
NANS = ("ieee", "all_ones", "negative_zero", "none")


def defined(library, name, e, m, bias, facts):
    define = library.softnum_dpi_define
    define.restype = u64
    return define(name.encode(), u64(e), u64(m), u64(bias & ONES), u64(facts))


def facts_of(nans, infinities, negative_zero, signed, has_zero, lowest, saturating):
    return (
        NANS.index(nans) | (not infinities) << 2 | (not negative_zero) << 3 | (not signed) << 4 | (not has_zero) << 5
        | ("subnormal", "normal", "zero").index(lowest) << 6 | saturating << 8
    )  # fmt: skip


def test_defined_formats_are_those_of_float_format(library):
    """Every combination of facts: what Python refuses is refused, and the others have the same facts."""
    from softnum.runtime import _core

    out, known, number = (u64 * 32)(), 0, 0
    library.softnum_dpi_facts.restype = u64
    switches = itertools.product(NANS, (0, 1), (0, 1), (0, 1), (0, 1), ("subnormal", "normal", "zero"), (0, 1))
    for number, (nans, infinities, negative_zero, signed, has_zero, lowest, saturating) in enumerate(switches):
        e, m, bias = ((4, 3, 5), (2, 0, -3), (1, 1, 0), (5, 10, 200))[number % 4]
        facts = facts_of(nans, infinities, negative_zero, signed, has_zero, lowest, saturating)
        handle = defined(library, f"f{number % 250}_{'abcd'[number % 4]}", e, m, bias, facts) if known < 250 else ONES
        try:
            fmt = sn.FloatFormat(
                e, m, bias=bias, signed=bool(signed), nan_codes=nans, infinities=bool(infinities),
                has_zero=bool(has_zero),
                negative_zero=bool(negative_zero and signed and nans != "negative_zero" and has_zero),
                lowest_binade=lowest, saturating=bool(saturating),
            )  # fmt: skip
        except ValueError:
            assert handle == ONES, (e, m, bias, facts)
            continue
        assert handle != ONES, (e, m, bias, facts, library.softnum_dpi_message())
        assert library.softnum_dpi_facts(u64(handle), out) == 21
        assert tuple(out[:21]) == tuple(v & ONES for v in _core.format_facts(fmt).values()), (e, m, bias, facts)
        known += 1
    assert known > 60


def test_defined_formats_compute(loops, library):
    handle = defined(library, "Mine", 4, 2, 9, facts_of("all_ones", True, True, True, True, "zero", False))
    fmt = sn.FloatFormat(4, 2, bias=9, nan_codes="all_ones", infinities=True, lowest_binade="zero")
    assert loops.format("mine") == handle == loops.format("MINE")
    a, b = pairs(7)
    codes, flags = loops.each("multiply", (a, b), "mine", mode_of("up"))
    want, raised = sn.multiply(a.astype(np.uint8), b.astype(np.uint8), fmt, rounding="up", return_flags=True)
    assert (codes == want).all() and (flags == raised).all()
    codes, _ = loops.each("add", (a, b), "mine,mine->binary16")
    assert (codes == sn.add(a.astype(np.uint8), b.astype(np.uint8), fmt, out_fmt="binary16")).all()
    assert defined(library, "mine", 4, 2, 9, facts_of("all_ones", True, True, True, True, "zero", False)) == handle
    with pytest.raises(ValueError, match="code of mine, which has 7 bits"):
        loops.operate("add", [128, 0], "mine")


@cases(
    "name, e, m, bias, facts, says",
    [
        ("e5m2", 5, 2, 15, 0, "'e5m2' names another format already"),
        ("e4m9", 4, 9, 7, 0, "'e4m9' names another format already"),
        ("i8", 4, 9, 7, 0, "'i8' names another format already"),
        ("", 4, 3, 7, 0, "'' is no name: 1 to 15 letters"),
        ("2x", 4, 3, 7, 0, "is no name"),
        ("sixteen_letters_", 4, 3, 7, 0, "is no name"),
        ("a,b", 4, 3, 7, 0, "is no name"),
        ("wide", 17, 3, 7, 0, "exponent bits from 1 to 15"),
        ("wide", 16, 3, 7, 0, "16 exponent bits with a fraction"),
        ("wide", 15, 61, 7, 0, "more than 64 bits"),
        ("wide", 4, 3, 65537, 0, "a bias from -65536 to 65536"),
        ("wide", 4, 3, -65537, 0, "a bias from -65536 to 65536"),
        ("wide", 4, 3, 7, 1 << 9, "facts of SOFTNUM_NANS_ALL_ONES"),
        ("wide", 4, 3, 7, 3 << 6, "facts of SOFTNUM_NANS_ALL_ONES"),
        ("wide", 4, 3, 7, 4, "NaNs like IEEE 754's imply infinities"),
    ],
)  # fmt: skip
def test_what_cannot_be_defined(dpi, name, e, m, bias, facts, says):
    assert defined(dpi.lib, name, e, m, bias, facts) == ONES
    assert says in dpi.message()
    dpi.call("add", 0, 0, dpi.format("e5m2"), 0, 0)
