"""softnum rtl area: what Yosys makes of a design, the entry in a design file, and Mitchell's multiplier."""

import gzip
import hashlib
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from softnum.cli.rtl import _with_entry, _without_entry
from softnum.train import load_design
from softnum.tta import Hardware
from softnum.tta.simulators import synthesis
from softnum.tta.simulators.synthesis import find_library, map_design, unit_hardware
from softnum.tta.workloads import UnitHardware
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

GATE = "module gate(input a, b, output y); assign y = ~(a & b); endmodule\n"
HELD = "module held(input clk, a, b, output reg y); always @(posedge clk) y <= ~(a & b); endmodule\n"
LATCH = "module latch(input e, a, output reg y); always @* if (e) y = a; endmodule\n"


@pytest.fixture
def library(tmp_path):
    """Debian's library in a folder whose name has a space."""
    if shutil.which("yosys") is None:
        pytest.skip("not installed: yosys")
    found = synthesis.LIBRARY_FOLDER / "osu035" / "osu035_stdcells.lib"
    if not found.is_file():
        pytest.skip("not installed: qflow-tech-osu035")
    (tmp_path / "a library").mkdir()
    return Path(shutil.copy(found, tmp_path / "a library" / "cells.lib"))


def verilog(folder, text, name="design file.v"):
    (folder / name).write_text(text)
    return folder / name


def test_areas_are_sums_of_cells(library, tmp_path):
    found = map_design([verilog(tmp_path, GATE)], library)
    assert (found.top, found.library, found.area, found.cells, found.flip_flops) == (
        "gate",
        "osu035_stdcells",
        96,
        1,
        0,
    )
    assert found.delay_ps > 0 and found.tool.startswith("Yosys ")
    held = map_design([verilog(tmp_path, GATE), verilog(tmp_path, HELD, "held.v")], library, top="held")
    wider = verilog(tmp_path, "module w #(parameter N = 1)(input [N:0] a, output [N:0] y); assign y = ~a; endmodule\n"
                    "module t(input [1:0] a, output [3:0] y); w u(a, y[1:0]); w #(2) v({a, a[0]}, y[3:2]); endmodule",
                    "wider.v")  # fmt: skip
    assert map_design([wider], library).top == "t"  # whose module with parameters is no other design
    shared = verilog(tmp_path, '`include "gate.vh"\n', "shared.v")
    verilog(library.parent, GATE, "gate.vh")  # in a folder whose name has a space
    assert map_design([shared], library, include=[tmp_path, library.parent]).area == 96
    assert (held.top, held.area, held.cells, held.flip_flops) == ("held", 480, 2, 1)


def test_every_file_that_is_read_has_a_digest_and_names_may_be_escaped(library, tmp_path):
    """What a source includes is part of the design: with another file the area is another."""
    text = '`include "op.vh"\nmodule \\foo.bar #(parameter \\N.b = 1)(input [\\N.b :0] a, b, output [\\N.b :0] y);\n'
    source = verilog(tmp_path, text + "assign y = ~(a `OP b); endmodule\n")
    folder, found = library.parent, []
    for operator in "&^":
        verilog(folder, '`include "deep file.vh"\n', "op.vh")
        verilog(folder, f"`define OP {operator}\n", "deep file.vh")
        made = map_design([source], library, include=[folder], top="\\foo.bar ", parameters={"\\N.b": 0})
        read = [(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
                for path in (source, folder / "deep file.vh", folder / "op.vh")]  # fmt: skip
        assert made.top == "foo.bar" and made.files == tuple(read)
        found.append((made.area, made.files))
    (one, _), (other, _) = found
    assert one == 96 < other and len({files for _, files in found}) == 2
    with pytest.raises(ValueError, match=r"'foo.bar' is no name of a module .*, or an escaped identifier with its"):
        map_design([source], library, include=[folder], top="foo.bar")


@cases(
    ("text", "message"),
    [
        (LATCH, r"design.v: \$_DLATCH_\S+ cannot be mapped to cells of osu035_stdcells: a latch, a memory"),
        ("module m(input a, output y); part p(a, y); endmodule", "Module `.part' referenced in module `.m'"),
        ("module m(input a, output y); assign y = a & ; endmodule", "syntax error"),
        ("module m(input a, output y); assign y = a; endmodule", "nothing of it is left after optimisation"),
        (GATE + GATE.replace("gate", "other"), "gate and another module are in no other: state --top"),
        ("module \\a+b (input a, output y); assign y = ~a; endmodule\n" + GATE, r"a\+b and another module are in no"),
        ("module m(input e, a, output [3:0] y); assign y = e ? ~a : 1'bz; endmodule", "tri-state logic"),
        ("module m(input a, output y); assign y = ~b; endmodule", r"Wire m\.\\b is used but has no driver"),
        ("", "does not map it|nothing of it is left"),
    ],
)
def test_what_cannot_be_mapped_is_an_error(text, message, library, tmp_path):
    with pytest.raises(ValueError, match=message):
        map_design([verilog(tmp_path, text, "design.v")], library)


@cases(
    ("content", "message"),
    [
        (b"library (c) { cell (a) { area : 1;", "2 braces open and 0 close: part of the library is missing"),
        (gzip.compress(b"library (c) {}")[:-9], "its compression by gzip is damaged"),
    ],
)
def test_a_library_that_was_cut_is_an_error(content, message, tmp_path):
    (tmp_path / "c.lib").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        map_design([__file__], tmp_path / "c.lib", yosys="true")


def test_a_path_that_is_a_pattern_takes_no_other_file(tmp_path):
    (tmp_path / "c.lib").write_text("library (c) {}")
    verilog(tmp_path, GATE, "m1.v")
    with pytest.raises(ValueError, match=r"m\[1\].v': Yosys takes no path with .* one of \* \? \["):
        map_design([verilog(tmp_path, HELD, "m[1].v")], tmp_path / "c.lib", yosys="true")


def test_an_entry_leaves_a_design_readable_and_its_ends_of_lines(tmp_path):
    entry = "[hardware.unit]\nlatency_cycles = 2\n"
    assert _with_entry(tmp_path, "[hardware]\r\nclock = 1\r\n", entry).split("\r\n")[2:4] == ["", "[hardware.unit]"]
    with pytest.raises(ValueError, match=r"write hardware = \{...\} as a table"):
        _with_entry(tmp_path, "hardware = { clock = 1 }\n", entry)


def test_the_entry_is_written_to_a_design(library, tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTNUM_LIBERTY", str(library))
    design = tmp_path / "mine.toml"
    design.write_text(load_design("c-wang-fp8").path.read_text())
    source = EXAMPLES / "rtl" / "mitchell_multiply.v"
    words = ["area", source, "--reference", "int8", "--latency", "2", "--into", design]
    done = subprocess.run([sys.executable, "-m", "softnum", "rtl", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "mitchell_multiply: " in done.stderr and " of a multiplier of int8, " in done.stderr
    table = load_design(design).hardware["unit"]
    unit = Hardware.from_table(load_design(design).hardware).unit
    assert unit == UnitHardware.from_table(table) and 0.1 < unit.ratio < 0.5
    assert (table["library"], table["reference"], table["latency_cycles"]) == ("osu035_stdcells", "int8", 2)
    assert unit.ratio == pytest.approx(15584 / 60840, rel=0.1)  # of Yosys 0.23
    assert tomllib.loads(design.read_text())["name"] == "c-wang-fp8"
    with pytest.raises(ValueError, match=r"mine.toml: already has \[hardware.unit\]; remove it"):
        _without_entry(design)


@cases(
    ("call", "error", "message"),
    [
        (lambda folder: find_library(folder / "none.lib"), FileNotFoundError, "no cell library '.*none.lib'"),
        (
            lambda folder: unit_hardware([], reference="fp8"),
            ValueError,
            "no reference multiplier 'fp8'; there are int8, ",
        ),
        (
            lambda folder: map_design(["a.v"], "b.lib", yosys="no-such-yosys"),
            FileNotFoundError,
            "no program 'no-such-y",
        ),
        (lambda folder: map_design([folder / "none.v"], "b.lib", yosys="sh"), FileNotFoundError, "no file '.*none.v'"),
        (
            lambda folder: map_design([__file__], __file__, yosys="sh"),
            ValueError,
            "not a cell library in Liberty's format",
        ),
        (lambda folder: map_design([__file__], folder / "c.lib", yosys="sh", parameters={"A": 1}), ValueError, "--top"),
        (
            lambda folder: map_design([__file__], folder / "c.lib", yosys="sh", top="a; b"),
            ValueError,
            "'a; b' is no name",
        ),
        (
            lambda folder: map_design([__file__], folder / "c.lib", yosys="true", include=["none"]),
            FileNotFoundError,
            "no folder '.*none' of files to include",
        ),
        (lambda folder: map_design([__file__], folder / "c.lib", yosys="true"), ValueError, "ended without a word"),
    ],
)
def test_what_is_missing_is_said(call, error, message, tmp_path):
    (tmp_path / "c.lib").write_text("library (c) {}")
    with pytest.raises(error, match=message):
        call(tmp_path)


def test_without_a_library_it_is_said_where_one_comes_from(tmp_path, monkeypatch):
    monkeypatch.delenv("SOFTNUM_LIBERTY", raising=False)
    monkeypatch.setattr(synthesis, "LIBRARY_FOLDER", tmp_path)
    with pytest.raises(FileNotFoundError, match="install Debian's qflow-tech-osu035, or name one"):
        find_library()
    (tmp_path / "osu018").mkdir()
    (tmp_path / "osu018" / "osu018_stdcells.lib").write_text("")
    assert find_library().name == "osu018_stdcells.lib"


def test_the_reference_of_floats_is_the_multiplier_that_is_checked_against_softnum():
    ours = Path(synthesis.__file__).parent / "float_multiply.v"
    assert ours.read_bytes() == (EXAMPLES / "rtl" / "fp8_multiply.v").read_bytes()


def test_mitchells_multiplier_is_the_function(tmp_path):
    if shutil.which("iverilog") is None:
        pytest.skip("not installed: iverilog")
    folder, asked, given = EXAMPLES / "rtl", tmp_path / "asked.txt", tmp_path / "given.txt"
    program = runpy.run_path(str(folder / "mitchell_vectors.py"))
    assert program["main"]("generate", asked) == 0
    files = [folder / f"{name}.v" for name in ("tb_mitchell_multiply", "mitchell_multiply")]
    for bug, wrong in ((0, 0), (1, 6552), (2, 23788)):
        top = ["-s", "tb_mitchell_multiply", f"-Ptb_mitchell_multiply.BUG={bug}"]
        subprocess.run(["iverilog", "-g2005", "-I", folder, *top, "-o", tmp_path / "bench", *files], check=True)
        words = ["vvp", "-n", tmp_path / "bench", f"+in={asked}", f"+out={given}"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        lines = [path.read_text().splitlines() for path in (asked, given)]
        assert len(lines[0]) == 1 << 16 and sum(a != b for a, b in zip(*lines, strict=True)) == wrong
        assert program["main"]("check", asked, given) == bool(wrong)


def test_the_designs_of_the_tutorial_differ_in_the_multiplier_alone():
    exact, mitchell = (load_design(EXAMPLES / "mitchell" / f"{name}.toml") for name in ("exact", "mitchell"))
    assert exact.roles == mitchell.roles and exact.loss_scale == mitchell.loss_scale
    ratios = [Hardware.from_table(design.hardware).unit.ratio for design in (exact, mitchell)]
    assert ratios == [44168 / 183004, 15584 / 183004]
