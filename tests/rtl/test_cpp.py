"""softnum in C++ and SystemC: the headers that `softnum rtl build` ships, against Python."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.formats.modes import ROUNDING_MODES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "rtl" / "systemc"
DPI = Path(sn.get_include()) / "dpi"
STRICT = ("-std=c++17", "-O0", "-Wall", "-Wextra", "-Wshadow", "-Werror")


@pytest.fixture
def run(built, tmp_path):
    """Compile a program with the built folder alone, and run it: (exit code, what it printed)."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler (c++)")

    def compiled(source, *words, options=()):
        library = built / "libsoftnum_dpi.so"
        command = ["c++", *STRICT, f"-I{built}", source, library, f"-Wl,-rpath,{built}", *options, "-o", "program"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        done = subprocess.run(["./program", *words], cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return compiled


@pytest.fixture
def systemc():
    """Options of the linker; skipped where SystemC is not installed."""
    home = os.environ.get("SYSTEMC_HOME")
    if home:
        return f"-I{home}/include", f"-L{home}/lib", f"-Wl,-rpath,{home}/lib", "-lsystemc"
    if not Path("/usr/include/systemc.h").exists():
        pytest.skip("not installed: SystemC (/usr/include/systemc.h, or SYSTEMC_HOME)")
    return ("-lsystemc",)


def expected():
    """The codes and flags that values.cpp prints, computed in Python."""

    def code(value, fmt):
        return sn.encode(value, fmt)

    rows = []
    triple = [code(3.0, "e4m3fn"), code(7.0, "e5m2"), code(1e-9, "binary32")]
    for options in ({}, {"rounding": "up"}, {"rounding": "to_odd", "overflow": "saturate"}):
        options = options | {"return_flags": True}
        rows.append(sn.multiply(code(448.0, "e4m3fn"), code(1.125, "e4m3fn"), "e4m3fn", **options))
        rows.append(sn.divide(code(1.0, "e4m3fn"), code(3.0, "e4m3fn"), "e4m3fn", **options))
        rows.append(sn.fma(*triple, ("e4m3fn", "e5m2", "binary32"), out_fmt="binary16", **options))
    return rows


def test_values_in_c_plus_plus(run):
    code, said = run(EXAMPLES / "values.cpp")
    assert code == 0, said
    found = re.findall(r"^(multiply|divide|fma to binary16): ([0-9a-f]+) .*?, ([\w|]+)$", said, re.MULTILINE)
    flags = [sum(sn.Flags[name.upper()] for name in names.split("|") if name != "none") for _, _, names in found]
    want = expected()
    assert [int(word, 16) for _, word, _ in found] == [int(result) for result, _ in want]
    assert flags == [int(raised) for _, raised in want]

    def line(name):
        return re.search(rf"^{name}: (.*)$", said, re.MULTILINE)[1]

    assert line("quantize") == f"{int(sn.encode(0.1, 'binary16')):04x} (0.0999755859375), inexact"
    assert line("sqrt").startswith(f"{int(sn.sqrt(sn.encode(2.0, 'binary32'), 'binary32')):08x}")
    assert line("tanh").startswith(f"{int(sn.tanh(sn.encode(0.7, 'bfloat16'), 'bfloat16')):04x}")
    assert line("scalb").startswith("02 (0.00390625)") and line("to_integer") == "128, invalid"
    assert line("compare") == "0 3, classify 3, total order 1"
    words = re.findall(r"^stochastic: (\w+)", said, re.MULTILINE)
    codes = np.full(4, sn.encode(1.1, "binary16"), np.uint16)
    options = dict(rounding="stochastic", stochastic_bits=12, key=(7, 3))
    assert [int(word, 16) for word in words] == sn.convert(codes, "binary16", "e5m2", **options).tolist()
    a, b = [1.75, -3.0, 0.0625], [1.25] * 3
    for name, unit, c in (
        ("mac", sn.MadUnit("e6m9", operand="e5m2"), 0.0),
        ("exact dot", sn.ExactDotUnit("e6m9", operand="e5m2"), sn.quantize(0.001, "e6m9")),
        ("fused dot", sn.FusedDotUnit(4, 23, "binary32", operand="e5m2"), float(np.float32(0.1))),
    ):
        want = int(sn.encode(sn.dot(np.array(a), np.array(b), unit, c), unit.result if name != "mac" else "e6m9"))
        assert int(line(name).split()[0], 16) == want, name
    for says in (
        "code: 256 is no code of e4m3fn, which has 8 bits", "width: e5m2 has codes of 8 bits, not of 9",
        "NaN: the result is NaN, for which e2m1fn has no code", "NaN: e2m1fn has no code for NaN",
        "mode: softnum_add: SN_OVERFLOW_WRAP is for fixed point", "random: a stochastic mode takes a random word",
        "lengths: a has 3 elements, b has 2", "to_double: q64.0: binary64 does not hold the value",
    ):  # fmt: skip
        assert says in said
    assert "was not refused" not in said


def test_a_scoreboard_in_systemc(run, systemc):
    code, said = run(EXAMPLES / "scoreboard.cpp", "--bug", options=systemc)
    assert code == 1 and "65536 results checked, 1032 differ, 0 did not come" in said, said
    assert "01 (0.001953125) * 31 (0.5625): got 00 (0), want 01 (0.001953125)" in said


@pytest.mark.slow  # the same as above with the fault taken away, and another program
def test_systemc_in_full(run, systemc, tmp_path):
    code, said = run(EXAMPLES / "scoreboard.cpp", "--vcd", options=systemc)
    assert code == 0 and "65536 results checked, 0 differ" in said, said
    assert "$var wire    8  aaaad  want [7:0]" in (tmp_path / "scoreboard.vcd").read_text()
    (tmp_path / "words.cpp").write_text("""
#include <systemc>
#include "softnum_dpi.hpp"
#include <iostream>
int sc_main(int, char **) {
    using half = softnum::value<softnum::binary16>;
    sc_dt::sc_lv<16> word = "0011110000000000";
    std::cout << half(sc_dt::sc_uint<16>(0x3C00)) << half(sc_dt::sc_bv<16>(word)) << half(word);
    std::cout << half(sc_dt::sc_biguint<16>(0x3C00)) << sc_dt::sc_uint<16>(half(1.0)) << "\\n";
    word[3] = 'x';
    try { half unknown(word); } catch (const softnum::error &e) { std::cout << e.what() << "\\n"; }
    return 0;
}
""")
    code, said = run(tmp_path / "words.cpp", options=systemc)
    assert code == 0 and "3c00 (1)3c00 (1)3c00 (1)3c00 (1)15360" in said, said
    assert "binary16: a code has unknown bits, 001111000000X000" in said


def test_what_the_headers_state_twice(built):
    """The rounding modes by their numbers, the widths of formats, and the operations."""
    text = (DPI / "softnum_dpi.hpp").read_text()
    names = re.search(r"enum class rounding : sn_u64 \{(.*?)\}", text, re.DOTALL)[1]
    assert {name.strip(): i for i, name in enumerate(names.split(","))} == ROUNDING_MODES
    formats = re.findall(r"SOFTNUM_FORMAT\((\w+), (\d+)\)", text)
    assert len(formats) == 17 and all(sn.format(name).bits == int(bits) for name, bits in formats)
    kinds = re.search(r"enum class kind \{(.*?)\}", text, re.DOTALL)[1]
    from softnum.ops import CLASSES

    assert [k.strip().replace("_", "") for k in kinds.split(",")] == [name.lower() for name in CLASSES]
    assert (built / "softnum_dpi.hpp").read_text() == text
    assert '#include "softnum/' not in (built / "softnum_dpi.h").read_text()
