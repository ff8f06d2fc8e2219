"""Covergroups that softnum writes: they elaborate, and count in a simulator what softnum counts."""

import shutil
import subprocess

import numpy as np
import pytest

import softnum as sn
from softnum.vectors import Coverage, UnitSpec, VectorSpec, plan, write
from softnum.vectors.benches.covergroups import class_ranges, coverage_package_of
from softnum.vectors.benches.folder import write_bench
from softnum.vectors.benches.handshakes import handshake_named
from softnum.vectors.benches.ports import stated_design
from softnum.vectors.benches.roles import wiring_of
from softnum.vectors.covered.record import identifier
from tests.support.elaborated import elaborated

MULTIPLY = VectorSpec.make("multiply", "e4m3fn")
MAC = UnitSpec.make("mac", "MadUnit('e6m9', operand='e5m2', chunk=8)", length=8)
DOT = UnitSpec.make("dot", "MadUnit('binary32', operand='binary16', lanes=4)", length=4)
SPECS = {
    "multiply": MULTIPLY, "add": VectorSpec.make("add", "binary32"), "posit": VectorSpec.make("add", "posit8"),
    "fma": VectorSpec.make("fma", "e2m1fn"), "to_integer": VectorSpec.make("to_integer", "binary16", out_fmt="i16"),
    "less": VectorSpec.make("compare_less", "e5m2"), "convert": VectorSpec.make("convert", "binary64", out_fmt="q3.5"),
    "sr": VectorSpec.make("add", "e5m2", rounding="sr", stochastic_bits=8), "mac": MAC, "dot": DOT,
}  # fmt: skip


def wired(spec, handshake="combinational"):
    ports = [f"{c.name}:{'out' if c.name in ('result', 'flags') else 'in'}:{c.width}" for c in spec.columns]
    extra = {"combinational": [], "latency:2": ["clk:in"]}.get(handshake)
    extra = ["clk:in", "valid_i:in", "ready_o:out", "valid_o:out", "ready_i:in"] if extra is None else extra
    return wiring_of(stated_design("unit", ",".join([*extra, *ports])), spec, handshake_named(handshake))


@pytest.mark.parametrize("name", ["binary64", "tf32", "posit32", "q20.12", "binary128", "takum32"])
def test_ranges_of_classes_of_wide_formats(name):
    fmt = sn.format(name)
    drawn = np.random.default_rng(0).integers(0, 1 << 63, 1000, np.uint64).astype(object)
    codes = [int(x) * ((1 << 65) + 1) >> int(s) & (1 << fmt.bits) - 1 for x, s in zip(drawn, drawn % 150, strict=True)]
    ranges = class_ranges(fmt)
    codes += [code for low, high, _ in ranges for code in (low, high)]
    starts, tried = np.array([low for low, _, _ in ranges], object), np.array(codes, object)
    found = [ranges[i][2] for i in np.searchsorted(starts, tried, "right") - 1]
    assert found == fmt.class_numbers(fmt.stored(codes)).tolist()


BENCHES = [(name, "combinational") for name in SPECS] + [("multiply", "latency:2"), ("dot", "valid-ready")]


@pytest.mark.parametrize(("name", "handshake"), BENCHES)
def test_benches_with_covergroups_elaborate(tmp_path, name, handshake):
    wiring = wired(SPECS[name], handshake)
    write_bench(tmp_path, wiring, [tmp_path / "unit.sv"])
    ports = ", ".join(f"{p.direction}put [{p.width - 1}:0] {p.name}" for p in wiring.design.ports)
    (tmp_path / "unit.sv").write_text(f"module unit({ports}); endmodule\n")
    files = [tmp_path / f for f in ("unit.sv", "coverage_unit_pkg.sv", "tb_unit.sv")]
    assert elaborated(files, "tb_unit", include=[tmp_path], defines=["SOFTNUM_COVERGROUPS"]) == ""


def seen_by_icarus(spec, folder) -> tuple[Coverage, dict[str, list[int]]]:
    """softnum's coverage of vectors, and what the functions of the package say of each vector."""
    write(plan(spec, count=400), folder / "v.txt", dialect="testfloat")
    (folder / "pkg.sv").write_text(coverage_package_of(wired(spec)))
    coverage = Coverage(spec)
    for block in plan(spec, count=400).blocks():
        coverage.add(block)
    columns, unit, shows = spec.columns, isinstance(spec, UnitSpec), []
    named = ", ".join(c.name for c in columns if c.name != "random")
    for name in coverage.groups:
        if name == "rounded off":
            continue
        looked = f"coverage_unit_pkg::at_{identifier(name)}"
        column = next((c for c in columns if unit and name.endswith(f" {c.name}")), None)
        parts = [named]
        if column is not None:
            parts = [f"{column.name}[{column.bits * i} +: {column.bits}]" for i in range(column.count)]
        shows += [f'$display("{identifier(name)} %0d", {looked}({part}));' for part in parts]
    regs = " ".join(f"reg [{c.width - 1}:0] {c.name};" for c in columns)
    scan = f'$fscanf(f, "{" ".join(["%h"] * len(columns))}", {", ".join(c.name for c in columns)})'
    (folder / "tb.sv").write_text(
        f'module tb; integer f; {regs} initial begin f = $fopen("v.txt", "r");\n'
        f"while ({scan} == {len(columns)}) begin\n" + "\n".join(shows) + "\nend end endmodule\n"
    )
    subprocess.run(["iverilog", "-g2012", "-o", "tb", "pkg.sv", "tb.sv"], cwd=folder, check=True)
    said = subprocess.run(["vvp", "-n", "tb"], cwd=folder, capture_output=True, text=True, check=True).stdout
    seen: dict[str, list[int]] = {}
    for line in said.splitlines():
        name, value = line.split()
        seen.setdefault(name, []).append(int(value))
    return coverage, seen


@pytest.mark.parametrize("name", ["multiply", "add", "posit", "fma", "sr", "dot"])
def test_a_simulator_counts_what_softnum_counts(tmp_path, name):
    for tool in ("iverilog", "vvp"):
        if shutil.which(tool) is None:
            pytest.skip(f"not installed: {tool}")
    coverage, seen = seen_by_icarus(SPECS[name], tmp_path)
    assert sorted(seen) == sorted(identifier(name) for name in coverage.groups if name != "rounded off")
    for name, bins in coverage.groups.items():
        values = np.array(seen.get(identifier(name), []))
        if name == "flags raised":
            counts = [int(np.count_nonzero(values & flag)) for flag in sn.Flags]
        elif name == "results at the limits":
            counts = [int(np.count_nonzero(values >> i & 1)) for i in range(len(bins.labels))]
        elif name == "rounded off":
            continue
        else:
            counts = np.bincount(values, minlength=len(bins.labels)).tolist()
        assert counts == bins.counts.tolist(), name
