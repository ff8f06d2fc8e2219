"""The C library for simulators against Python's softnum: every function of it, every name of a format, every mode."""

import ctypes
import itertools
import random
import re
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.formats.aliases import format_alias
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES
from softnum.ops import OPERATIONS
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.dpi_calls import ONES, mode_of, u64

DPI = Path(sn.get_include()) / "dpi"


# -- names -------------------------------------------------------------------------------------------------------------
def all_names():
    yield from sn.format_names()
    yield from (f"e{e}m{m}" for e in range(18) for m in range(64))
    yield from (f"{u}q{i}.{f}" for u in ("", "u") for i in range(-65, 67) for f in range(-65, 67))
    for k, p in itertools.product(range(67), range(67)):
        yield from (f"binary{k}p{p}{kind}" for kind in ("se", "sf", "ue", "uf"))


def test_every_name_means_what_it_means_in_python(library):
    """Facts of registered formats and of the families, and which names there are."""
    facts, find = (u64 * 32)(), library.softnum_dpi_format
    find.restype = library.softnum_dpi_facts.restype = library.softnum_dpi_bits.restype = u64
    known = 0
    for name in all_names():
        handle = find(name.encode())
        try:
            fmt = sn.format(name)
        except ValueError:
            fmt = None
        if fmt is None or fmt.leads or format_alias(name) != name:  # names of others, such as e8m0, are Python's alone
            assert handle == ONES, name
            continue
        assert handle < 1 << 16, name
        assert library.softnum_dpi_facts(u64(handle), facts) == 21
        assert tuple(facts[:21]) == tuple(v & ONES for v in _core.format_facts(fmt).values()), name
        assert library.softnum_dpi_bits(u64(handle)) == fmt.bits
        known += 1
    assert known > 16000


def test_handles_of_several_formats(dpi):
    one, two, three = dpi.format("e5m2"), dpi.format("e4m3fn"), dpi.format("binary16")
    assert dpi.format(" E5M2 ") == one and dpi.format("e5m2,e5m2") == one
    assert dpi.format("e5m2->binary16") == one << 16 | three
    assert dpi.format("e5m2,e4m3fn -> binary16") == two << 32 | one << 16 | three
    assert dpi.format("e5m2,e4m3fn,q4.4->binary16") == dpi.format("q4.4") << 48 | two << 32 | one << 16 | three


@pytest.mark.parametrize(
    "text, says",
    [
        ("e5m3x", "unknown format 'e5m3x' (registered names: binary16, binary32"),
        ("float16", "or eXmY, qI.F, uqI.F, binaryKpP{s,u}{e,f}"),
        ("mxfp8_e4m3", "unknown format"),
        ("e5m2,e4m3fn", "the operands' formats differ; state the result's after ->"),
        ("", "state OUT, IN->OUT"),
        ("e5m2,", "state OUT, IN->OUT"),
        ("e5m2->", "state OUT, IN->OUT"),
        ("e5m2->e5m2->e5m2", "state OUT, IN->OUT"),
        ("e5m2,e5m2,e5m2,e5m2->e5m2", "state OUT, IN->OUT"),
        ("e" * 200, "state OUT, IN->OUT"),
    ],
)
def test_unknown_formats(dpi, text, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        dpi.format(text)


# -- operations --------------------------------------------------------------------------------------------------------
def codes_of(fmt, rng, n):
    """Some codes of a format: its ends, and random ones."""
    ends = [0, 1, fmt.max_code if fmt.kind == "float" else (1 << (fmt.bits - 1)) - 1, (1 << fmt.bits) - 1]
    if fmt.kind == "float" and fmt.has_nan:
        ends.append(fmt.nan_code)
    return [rng.choice(ends) if rng.random() < 0.2 else rng.getrandbits(fmt.bits) for _ in range(n)]


ALL = {name: operands for name, (_, operands) in _core.OPERATIONS.items() for operands in [_core.OPERATIONS[name][1]]}
NARROW = (
    "e5m2", "e4m3fn", "e4m3fnuz", "e2m1fn", "q4.4", "uq2.6", "q7.-2", "uq-2.8", "binary8p3se", "bfloat16", "binary16",
    "dlfloat16",
)  # fmt: skip


def python(name, codes, formats, out, options, word):
    """(codes, flags) of Python's softnum, as the library gives them."""
    arrays = [np.array(c, f.storage_dtype) for c, f in zip(codes, formats, strict=False)]
    options = dict(options, invalid=0, return_flags=True, random_bits=np.array(word, np.uint32))
    if name == "scalb":
        n = np.array(codes[1], np.uint64).view(np.int64)
        return sn.ops.scalb(arrays[0], n, formats[0], out_fmt=out, **options)
    if name == "convert":
        return sn.convert(arrays[0], formats[0], out, **options)
    if name in ("compare", "compare_signaling"):
        order, flags = sn.compare(
            *arrays, formats, signaling=name != "compare", return_flags=True, flush_inputs=options["flush_inputs"]
        )
        return order + 1, flags
    if name == "classify":
        return sn.classify(arrays[0], formats[0]), np.zeros(len(arrays[0]), np.uint8)
    if name == "total_order":
        return sn.ops.total_order(*arrays, formats), np.zeros(len(arrays[0]), np.uint8)
    function = OPERATIONS[name][0]
    return function(*arrays, formats, out_fmt=out, **options)


OWN = (
    "absolute", "copysign", "negate", "next_down", "next_up", "total_order", "compare", "compare_signaling", "classify",
)  # fmt: skip


@cases("name", [n for n in ALL if n != "to_integer"])
def test_operation(dpi, name):
    """Formats of each operand, all rounding modes, rules of overflow, flushing, NaN profiles, random bits and flags."""
    rng = random.Random(name)
    elementary = name in _core.ELEMENTARY
    for number in range(8 if elementary else 40):
        operands = 1 if name == "scalb" else ALL[name]
        names = [rng.choice(NARROW) for _ in range(operands)]
        out = names[0] if name in OWN else rng.choice(NARROW)
        if name == "total_order":
            names[1] = names[0]
        formats = [sn.format(n) for n in names]
        result_format = sn.format(out)
        rounding = rng.choice([*ROUNDING_MODES]) if elementary else [*ROUNDING_MODES][number % len(ROUNDING_MODES)]
        rules = ("saturate", "wrap") if result_format.kind == "fixed" else ("infinity", "saturate", "saturate_finite")
        if elementary or name == "sqrt":
            rules = ("saturate",)
        rule = rng.choice((None, *rules))
        if result_format.p3109 and result_format.infinities and rng.random() < 0.5:
            rule = "p3109_v3_2_1"
        bits, inputs, before = rng.choice((1, 7, 16, 32)), rng.random() < 0.3, rng.random() < 0.3
        results, nan = rng.choice((None, None, "before", "after")), rng.choice((0, 0, 1, 2))
        n = 12
        codes = [codes_of(f, rng, n) for f in formats]
        if name == "scalb":
            codes.append([rng.choice((-1 << 40, 1 << 62, -3, 0, 1, 5, 90, -90)) & ONES for _ in range(n)])
        words = [rng.getrandbits(32) for _ in range(n)]
        options = dict(
            rounding=rounding, overflow=rule, stochastic_bits=bits, flush_inputs=inputs, flush_results=results,
            tininess="before" if before else "after", nan=("canonical", "x86", "arm")[nan],
        )  # fmt: skip
        want, want_flags = python(name, codes, tuple(formats), result_format, options, words)
        mode = mode_of(rounding, rule, bits, before, inputs, results, nan)
        for i in range(n):
            given = [c[i] for c in codes]
            got, flags = dpi.operate(name, given, ",".join(names) + "->" + out, mode, words[i], flags=0)
            assert (got, flags) == (int(want[i]), int(want_flags[i])), (names, out, options, given, words[i])


def test_to_integer(dpi):
    codes = np.arange(1 << 16, dtype=np.uint16)[::37]
    for rounding, dtype in itertools.product(("nearest_even", "toward_zero", "up"), ("int8", "uint8", "int16")):
        want, flags = sn.ops.to_integer(codes, "binary16", dtype, rounding=rounding, invalid="arm", return_flags=True)
        out = f"{'u' if dtype[0] == 'u' else ''}q{8 * want.itemsize}.0"
        for i, code in enumerate(codes.tolist()):
            got = dpi.operate("to_integer", [code], f"binary16->{out}", mode_of(rounding))
            assert got == (int(want.view(f"u{want.itemsize}")[i]), int(flags[i]))


def test_flags_are_ored(dpi):
    assert dpi.operate("add", [0x3C, 0x3C], "e5m2", flags=8) == (0x40, 8)
    assert dpi.operate("multiply", [0x7B, 0x7B], "e5m2", flags=8) == (0x7C, 8 | 4 | 1)


def test_a_nan_without_a_code_is_code_0_and_invalid(dpi):
    assert dpi.operate("convert", [0x7F], "e5m2->e2m1fn") == (0, 16)
    assert dpi.operate("divide", [0, 0], "q4.4") == (0, 16)


@cases(
    "name, codes, formats, mode, says",
    [
        ("add", [0x100, 0], "e5m2", 0, "softnum_add: a = 0x100 is no code of e5m2, which has 8 bits"),
        ("add", [0, 0x40], "e2m3fn", 0, "softnum_add: b = 0x40 is no code of e2m3fn, which has 6 bits"),
        ("add", [0, 0], "e5m2", len(ROUNDING_MODES), f"softnum_add: {len(ROUNDING_MODES):#x} is no mode"),
        ("add", [0, 0], "e5m2", 1 << 40, "is no mode"),
        ("add", [0, 0], "e5m2", 7 << 8, "is no mode"),
        ("add", [0, 0], "e5m2", 33 << 24, "is no mode"),
        ("add", [0, 0], "e5m2", 1 << 20, "is no mode"),
        ("add", [0, 0], "e5m2", mode_of(overflow="wrap"), "SN_OVERFLOW_WRAP is for fixed point; e5m2 is"),
        ("add", [0, 0], "q4.4", mode_of(overflow="infinity"), "is for floats; q4.4 has no infinity"),
        ("add", [0, 0], "e5m2", mode_of(overflow="p3109_v3_2_1"), "P3109's formats with infinities; e5m2 is none"),
        ("add", [0, 0], "binary8p3uf", mode_of(overflow="p3109_v3_2_1"), "SN_OVERFLOW_SATURATE in version 3.2.1"),
        ("add", [0, 0], "binary8p3ue", 5 << 8, "is no mode"),
        ("add", [0, 0], "e5m2,e5m2,e5m2->e5m2", 0, "softnum_add has 2 operands of a format"),
        ("negate", [0], "e5m2->e4m3", 0, "the result is in the format of a, e5m2, not e4m3"),
        ("total_order", [0, 0], "e5m2,e4m3->e5m2", 0, "codes of one format have a total order"),
        ("to_integer", [0], "e5m2->q4.4", 0, "state a format qI.0 or uqI.0"),
        ("to_integer", [0], "e5m2->e5m2", 0, "state a format qI.0 or uqI.0"),
        ("sqrt", [0], "e15m40->q1.63", mode_of(overflow="wrap"), "roots of e15m40 have more bits in q1.63"),
    ],
)  # fmt: skip
def test_what_has_no_answer_is_an_error(dpi, name, codes, formats, mode, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        dpi.operate(name, codes, formats, mode)


@pytest.mark.parametrize("handle", [ONES, 0, 0xFFFF, 99, 0x3FFF, 1 << 16 | 0x1FFF, 0xFFFF << 16 | 6, 0xFFFF << 48 | 6])
def test_a_number_that_is_no_handle(dpi, handle):
    with pytest.raises(ValueError, match="handle|did not know the format"):
        dpi.call("fma", 0, 0, 0, handle, 0, 0)


# -- reals and random words --------------------------------------------------------------------------------------------
def test_reals(dpi):
    for name in ("e5m2", "e4m3fnuz", "q4.4", "e8m0fnu", "binary8p3se"):
        for code in range(256):
            value = sn.decode(np.array([code], np.uint8), name)[0]
            got, flags = dpi.call("to_real", code, dpi.format(name), restype=ctypes.c_double)
            assert (np.isnan(got) and np.isnan(value)) or (got, np.signbit(got)) == (value, np.signbit(value))
            assert flags in (0, 16)
    assert dpi.call("to_real", (1 << 62) + 1, dpi.format("q32.32"), restype=ctypes.c_double) == (2.0**30, 1)
    for value, rounding in itertools.product((0.1, -3.7, 1e9, 2.0**-17), ROUNDING_MODES):
        got, _ = dpi.call("from_real", ctypes.c_double(value), dpi.format("e5m2"), mode_of(rounding, bits=8), 77)
        want = sn.encode(value, "e5m2", rounding=rounding, stochastic_bits=8, random_bits=np.uint32(77))
        assert got == int(want)


def test_random_words_are_those_of_a_key(library):
    library.softnum_dpi_random.restype = u64
    codes = np.full(9, 0x3C55, np.uint16)
    keyed = sn.convert(codes, "binary16", "e4m3fn", rounding="stochastic", key=(7, 2**40 + 3))
    words = np.array([library.softnum_dpi_random(u64(7), u64(2**40 + 3), u64(i)) for i in range(9)], np.uint32)
    assert (keyed == sn.convert(codes, "binary16", "e4m3fn", rounding="stochastic", random_bits=words)).all()


# -- what is stated twice ----------------------------------------------------------------------------------------------
def test_the_package_imports_every_function(built):
    """softnum_pkg.sv and the numbers of softnum_modes.vh against the headers."""
    package, header = (built / "softnum_pkg.sv").read_text(), (DPI / "softnum_dpi.h").read_text()
    rows = dict(re.findall(r"`SOFTNUM_(\d)\((\w+)\)", package))
    instructions = {name: int(n) for name, n in re.findall(r"^    X\((\w+), (\d)\)", header, re.MULTILINE)}
    assert {name: int(n) for n, name in re.findall(r"  `SOFTNUM_(\d)\((\w+)\)", package)} == ALL | instructions and rows
    assert len(instructions) == 13
    for name in re.findall(r"SOFTNUM_DPI [\w *]+?(softnum_dpi_\w+)\(", header):
        assert name in package or name == "softnum_dpi_facts", name
    facts = dict(re.findall(r"    SOFTNUM_((?:N|U|LOWEST|SAT)\w+) = ([\d< ]*\d)", header))
    modes = {
        name: int(value.replace("64'h", "0x").replace("_", ""), 0)
        for name, value in re.findall(r"(SOFTNUM_\w+) = (\d\S*);", (DPI / "softnum_modes.vh").read_text())
    }
    for name, number in ROUNDING_MODES.items():
        assert modes.pop(f"SOFTNUM_{name.upper()}") == number
    for name, number in OVERFLOW_RULES.items():
        assert modes.pop(f"SOFTNUM_OVERFLOW_{name.upper()}") == number + 1 << 8
    for flag in sn.Flags:
        assert modes.pop(f"SOFTNUM_{flag.name}") == flag
    for order, name in enumerate(("LESS", "EQUAL", "GREATER", "UNORDERED")):
        assert modes.pop(f"SOFTNUM_{name}") == order
    for name in [name for name in modes if re.match("SOFTNUM_(NANS|NO|UNSIGNED|LOWEST|SATURATING)", name)]:
        if name != "SOFTNUM_NO_FLOOR":
            assert modes.pop(name) == eval(facts.pop(name.removeprefix("SOFTNUM_"))), name
    numbers = (Path(sn.get_include()) / "softnum" / "operations" / "fpu.h").read_text()
    for name, number in re.findall(r"SN_((?:MINMAX|INTEGER)_[A-Z]+\d*) = (\d)", numbers):
        if number != "0" and not name.endswith("RULES"):
            assert modes.pop(f"SOFTNUM_{name}") == int(number) << (32 if "MINMAX" in name else 35)
    assert modes == {
        "SOFTNUM_CLASS_MASK": 1 << 38, "SOFTNUM_SILENT": 1 << 39, "SOFTNUM_NAN_CUDA": mode_of(nan=3),
        "SOFTNUM_FLUSH_SUBNORMAL": mode_of(results="subnormal"), "SOFTNUM_STOCHASTIC_BITS": mode_of(bits=1),
        "SOFTNUM_OVERFLOW_ALWAYS_INFINITY": 5 << 8,
        "SOFTNUM_TININESS_BEFORE": mode_of(before=True), "SOFTNUM_FLUSH_INPUTS": mode_of(inputs=True),
        "SOFTNUM_FLUSH_BEFORE": mode_of(results="before"), "SOFTNUM_FLUSH_AFTER": mode_of(results="after"),
        "SOFTNUM_NAN_X86": mode_of(nan=1), "SOFTNUM_NAN_ARM": mode_of(nan=2),
    }  # fmt: skip
