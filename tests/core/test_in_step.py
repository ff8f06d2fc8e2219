"""What C and Python state twice must agree; and the examples in the docstrings run."""

import doctest
import importlib
import json
import pkgutil
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.arrays.lanes import words_of_key
from softnum.formats.facts import facts
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES, Flags, family, goes_up, rounding_name
from softnum.inspect import _probe, probes
from softnum.mac import _block_fused, _blocks, _gemm
from softnum.mac.statistics import RoundingCounts
from softnum.ops import CLASSES, OPERATIONS
from softnum.runtime import _core, config
from tests.support.cases import cases
from tests.support.format_lists import NARROW

HEADERS = Path(sn.get_include())
OPERATIONS_IN_C = HEADERS / "softnum/operations"
ENV = (HEADERS / "softnum/rounding/env.h").read_text()


def constants(text):
    return {name: int(value) for name, value in re.findall(r"\b(SN_\w+) = (\d+)", text)}


def test_rounding_modes_have_the_header_s_numbers():
    table = (HEADERS / "softnum/rounding/modes.h").read_text()
    rows = re.findall(r"X\((\w+), (\w+), (\d+), ", table)
    assert [(name.lower(), name) for name, _, _ in rows] == [(name, name.upper()) for _, name, _ in rows]
    assert ROUNDING_MODES == {name: int(number) for _, name, number in rows}
    assert list(ROUNDING_MODES.values()) == list(range(len(rows)))
    old = (
        "nearest_even nearest_away nearest_zero nearest_up nearest_down toward_zero away_from_zero up down to_odd "
        "stochastic stochastic_floor stochastic_fast stochastic_even stochastic_odd"
    )
    assert list(ROUNDING_MODES)[:15] == old.split()  # numbers that test benches hold


def test_what_fast_paths_know_of_a_mode_follows_from_what_it_does():
    """The definition's results at ties and at all that is inexact, of both signs, against the rows of the table."""
    for mode in ROUNDING_MODES:
        if family(mode) not in ("nearest", "directed"):
            continue
        values = (1.125, -1.125) if family(mode) == "nearest" else (1.0625, -1.0625, 1.1875, -1.1875)
        for value in values:  # between codes 0x3c and 0x3d
            code, _ = ref.round_value(Fraction(value), 0, "e5m2", rounding=mode)
            assert code & 1 == goes_up(mode, int(value < 0)), (mode, value)


def test_the_device_s_families_and_directions_have_the_cpu_s_numbers():
    """Device text is given the numbers of the core; device/patterns.h names them again."""
    cpu, device = ((HEADERS / name).read_text() for name in ("dispatch/kernels.h", "softnum/device/patterns.h"))

    def names(text, first):
        (body,) = re.findall(rf"enum {{\s*({first}[^}}]*?),?\s*(?:/\*.*?\*/)?\s*}};", text)
        return [name.strip() for name in body.split(",")]

    families = dict(zip(names(cpu, "SN_FAMILY_EVEN"), names(device, "SN_TIES_TO_EVEN"), strict=False))
    assert families == {
        "SN_FAMILY_EVEN": "SN_TIES_TO_EVEN", "SN_FAMILY_NEAREST": "SN_TIES_BY_SIGN",
        "SN_FAMILY_DIRECTED": "SN_DIRECTED", "SN_FAMILY_ODD": "SN_ODD", "SN_FAMILY_STOCHASTIC": "SN_RANDOM_CARRY",
        "SN_FAMILY_RANDOM": "SN_RANDOM_OTHER",
    }  # fmt: skip
    directions = [name.replace("SN_FP_", "SN_ADD_") for name in names(cpu, "SN_FP_NEAREST")]
    assert directions == names(device, "SN_ADD_NEAREST")


def test_the_core_knows_of_values_what_formats_say():
    for name in [*NARROW, "q4.4", "uq4.4", "q0.8", "uq1.15", "q16.16"]:
        fmt = sn.format(name)
        if fmt.codec.core_format(fmt) is fmt:
            x = facts(fmt)
            assert _gemm.core_facts(fmt) == (x.precision, x.last, x.top, x.specials), name


def test_overflow_rules_and_flags_have_the_header_s_numbers():
    c = constants(ENV)
    for name, number in OVERFLOW_RULES.items():
        assert c[f"SN_OVERFLOW_{name.upper()}"] == number
    for flag in Flags:
        assert c["SN_FLAG_OVERFLOW" if flag.name == "OVERFLOW" else f"SN_{flag.name}"] == flag
    assert [f.value for f in Flags] == [1, 2, 4, 8, 16]
    assert c["SN_TININESS_AFTER"] == 0 and c["SN_TININESS_BEFORE"] == 1


def test_flags_as_text():
    texts = {0: "none", 1: "inexact", 5: "inexact|overflow", 3: "inexact|underflow", 24: "divide_by_zero|invalid"}
    for number, text in texts.items():
        for flags in (Flags(number), Flags(np.uint8(number)), Flags(np.array(number, np.uint8))):
            assert str(flags) == f"{flags}" == f"{flags!s}" == text and f"{flags:>20}" == text.rjust(20)
            assert int(flags) == number == flags and f"{flags:d}" == str(number) and f"{flags:#04x}" == f"{number:#04x}"
            assert type(flags) is Flags and flags is Flags(number)
    assert str(Flags(31)) == "|".join(f.name.lower() for f in Flags) and str(Flags(33)) == "inexact|0x20"
    assert repr(Flags(5)) == "<Flags.INEXACT|OVERFLOW: 5>" and json.loads(json.dumps([Flags(5)])) == [5]
    with pytest.raises(ValueError, match="not a valid Flags"):
        Flags("overflow")


def test_classes_have_one_spelling():
    """The names of IEEE 754-2019 clause 5.7.2, in its order; softnum and its reference state them each."""
    kinds = ("Zero", "Subnormal", "Normal", "Infinity")
    numbers = [f"negative{kind}" for kind in reversed(kinds)] + [f"positive{kind}" for kind in kinds]
    assert list(CLASSES) == list(ref.CLASSES) == ["signalingNaN", "quietNaN", *numbers]


def test_short_names():
    want = {
        "rne": "nearest_even",
        "rna": "nearest_away",
        "rtz": "toward_zero",
        "rup": "up",
        "rdn": "down",
        "rto": "to_odd",
    }
    assert {short: rounding_name(short) for short in want} == want and rounding_name("sr") == "stochastic"
    for wrong, meant in (("nearest", "nearest_even"), ("toward_zer", "toward_zero")):
        with pytest.raises(ValueError, match=f"unknown rounding mode '{wrong}'; did you mean '{meant}'"):
            rounding_name(wrong)
    with pytest.raises(ValueError, match="unknown rounding mode 'rnee'; did you mean 'rne'"):
        rounding_name("rnee")
    with pytest.raises(ValueError, match="unknown rounding mode 3"):
        rounding_name(3)


def test_the_table_of_operations_is_complete():
    text = "".join((OPERATIONS_IN_C / name).read_text() for name in ("operations.h", "elementary.h"))
    in_c = {name: int(n) for name, n in re.findall(r"X\((\w+), (\d)\)", text)}
    assert {name: n for name, (_, n) in _core.OPERATIONS.items()} == in_c
    assert in_c.pop("compare_signaling") == 2  # softnum.compare(signaling=True)
    assert in_c.pop("to_integer") == 1  # softnum.ops.to_integer, whose results are no codes
    assert in_c and in_c == {name: operands for name, (_, operands) in OPERATIONS.items()}
    assert (
        set(_core.UFUNCS)
        == set(_core.UFUNCS_FLAGS)
        == set(_core.UFUNCS_RARE)
        == {*OPERATIONS, "compare_signaling", "to_integer"}
    )
    for name, (function, operands) in OPERATIONS.items():
        assert getattr(sn.ops, name) is function and name in sn.ops.__all__ and hasattr(ref, name)
        assert _core.UFUNCS[name].nin == operands + 2 and _core.UFUNCS[name].nout == 1
        assert _core.UFUNCS_FLAGS[name].nout == 2 and _core.UFUNCS[name].ntypes == 4
    core = "".join((OPERATIONS_IN_C / name).read_text() for name in ("arith.h", "divide.h", "order.h"))
    cases = (OPERATIONS_IN_C / "operations.h").read_text()
    assert all(f"SN_OP_{name}:" in cases or name in _core.ELEMENTARY for name in in_c) and "sn_classify(" in core
    headers = (HEADERS / f"softnum/elementary/{name}.h" for name in ("functions", "unary", "pairs"))
    functions = "".join(header.read_text() for header in headers)
    assert all(f"SN_ELEMENTARY_{name}" in functions for name in _core.ELEMENTARY)


def enumerated(file, last):
    """The names of the enumeration in a header that ends with this one."""
    (names,) = re.findall(rf"enum {{([^}}]*?),?\s*{last}\s*}};", (HEADERS / file).read_text())
    return [name.strip() for name in names.split(",")]


def test_kinds_of_roundings_and_their_counts_have_the_headers_order():
    tally = (HEADERS / "softnum/units/tally.h").read_text()
    (fields,) = re.findall(r"typedef struct \{\s*sn_u64 ([^;]*);\s*\} sn_tally;", tally)
    assert fields.split(", ") == list(RoundingCounts().to_dict())
    mad = sn.MadUnit("q4.4", operand="q4.4", product="q4.4", compensated="kahan", lanes=2, chunk=3).roundings
    want = {"product": "PRODUCT", "sum": "SUM", "compensation": "COMPENSATION", "lanes": "LANES", "outer sum": "OUTER"}
    assert [f"SN_TALLY_{want[name]}" for name in mad] == enumerated("softnum/units/mad.h", "SN_MAD_TALLIES")
    block = sn.BlockDotUnit("e5m2", operand="nvfp4", product="e5m2").roundings
    want = {"scaled sum": "SCALED", "sum": "BLOCKS", "tensor scales": "TENSOR"}
    assert [f"SN_TALLY_{want[name]}" for name in block] == enumerated("products/blocks/block.h", "SN_BLOCK_TALLIES")
    assert len(block) == _blocks.TALLIES
    fused = enumerated("softnum/units/fused.h", "SN_FUSED_C_ADDED")
    assert fused == ["SN_FUSED_TO_ACCUMULATOR", "SN_FUSED_TO_OUTPUT"] and constants(
        (HEADERS / "products/fused/fused.h").read_text()
    ) == {"SN_FUSED_TALLIES": 3, "SN_FUSED_NAN_SHIFT": _block_fused.NAN_SHIFT}
    of_blocks = sn.unit("nvidia_tcgen05_mxf4nvf4").roundings
    want = {"sum": "STEPS", "tensor scales": "TENSOR"}
    counted = enumerated("products/blocks/block_fused.h", "SN_BLOCK_FUSED_TALLIES")
    assert [f"SN_BLOCK_FUSED_{want[name]}" for name in of_blocks] == counted
    output = sn.FusedDotUnit(2, 8, "e5m2", operand="e5m2", output="e4m3")
    after = sn.FusedDotUnit(2, 8, "e5m2", operand="e5m2", c="after")
    assert (output.roundings, after.roundings) == (("sum", "output", None), ("sum", None, "C added"))


def test_what_a_probe_tells_is_laid_out_as_in_the_header():
    (body,) = re.findall(r"typedef struct \{([^}]*)\} sn_probe;", (HEADERS / "elementwise/probe.h").read_text())
    fields = re.findall(r"(sn_u64|sn_u32|sn_i32|sn_u8) ([^;]*);", re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL))
    types = {"sn_u64": np.uint64, "sn_u32": np.uint32, "sn_i32": np.int32, "sn_u8": np.uint8}
    want = [(name, np.dtype(types[kind])) for kind, names in fields for name in names.split(", ")]
    assert [(name, _probe.RECORD[name]) for name in _probe.RECORD.names] == want
    kinds = re.findall(
        r"SN_ZERO = 0, SN_FINITE = 1, SN_INF = 2, SN_QUIET_NAN = 3", (HEADERS / "softnum/rounding/format.h").read_text()
    )
    assert kinds and probes.KINDS == ("zero", "finite", "infinite", "nan")


def test_philox_known_answers():
    assert " ".join(f"{w:08x}" for w in _core.philox((0,) * 4, (0,) * 2)) == "6627e8d5 e169c58d bc57ac4c 9b00dbd8"
    rng = np.random.default_rng(0)
    for _ in range(200):
        words = [int(w) for w in rng.integers(0, 1 << 32, 6)]
        assert _core.philox(words[:4], words[4:]) == ref.philox4x32_10(words[4:], words[:4])
    for seed, stream in ((0, 0), (7, 3), (2**64 - 1, 2**63), (1 << 32, 1)):
        want = [ref.random_word_elementwise(seed, stream, i) for i in range(9)]
        assert words_of_key(_core.philox_key(seed, stream, 0), 9).tolist() == want


def test_the_instruction_set_is_chosen_and_named(capsys, monkeypatch):
    before = _core.current_isa()
    assert _core.available_isas()[0] == "portable" and before in _core.available_isas()
    with pytest.raises(ValueError, match="SOFTNUM_CPU must be one of portable, avx2, avx512, neon, got 'sse9'"):
        _core.use_isa("sse9")
    try:
        _core.use_isa("portable")
        sn.show_config()
        text = capsys.readouterr().out
        assert "instruction set: portable" in text and sn.__version__ in text and "available: portable" in text
    finally:
        _core.use_isa(before)
    monkeypatch.setattr(config, "__file__", "/nowhere/softnum/config.py")
    with pytest.raises(FileNotFoundError, match="reinstall softnum"):
        sn.get_include()


@pytest.mark.parametrize("forced", ["portable", "avx2", "avx512", "neon", "mmx"])
def test_softnum_cpu_forces_the_instruction_set(forced):
    import os
    import subprocess
    import sys

    program = "import softnum; print(softnum.runtime._core.current_isa())"
    run = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"SOFTNUM_CPU": forced}, capture_output=True, text=True
    )
    if forced in _core.available_isas():
        assert run.stdout.strip() == forced
    else:
        assert run.returncode != 0 and "SOFTNUM_CPU" in run.stderr


def test_public_names():
    for package in (sn, sn.ops):
        for name in package.__all__:
            assert getattr(package, name).__doc__, name
        assert sorted(package.__all__) == list(package.__all__)


#: whose examples their own tests run
ELSEWHERE = (
    "softnum.formats.custom", "softnum.jax", "softnum.kernels", "softnum.tile", "softnum.torch", "softnum.train",
    "softnum.tta.onnx", "softnum.vectors",
)  # fmt: skip
MODULES = ["softnum"] + [
    m.name
    for m in pkgutil.walk_packages(sn.__path__, "softnum.")
    if not m.name.startswith(ELSEWHERE) and "._" not in m.name
]


@cases("name", MODULES)
def test_docstrings_run(name):
    module = importlib.import_module(name)
    extra = {} if name != "softnum.ops" else {f.__name__: f.__doc__ for f, _ in OPERATIONS.values()}
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    assert len(MODULES) > 150
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for function, text in extra.items():  # docstrings that are put together, where the finder may not look
        test = doctest.DocTestParser().get_doctest(text, {}, function, None, 0)
        assert test.examples, function
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
