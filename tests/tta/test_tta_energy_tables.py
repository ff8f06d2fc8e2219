"""Other tables of energies: Accelergy's of Aladdin's units, and users' own, which name figures of an ERT.yaml."""

from fractions import Fraction

import pytest
from rich.console import Console

from softnum.tta import (
    Evaluation,
    Gemm,
    IterationTime,
    Operation,
    Record,
    Variant,
    Workload,
    conclude,
    energy_of,
    read_results,
    write_workloads,  # fmt: skip,
)
from softnum.tta.study import outcome_rules  # fmt: skip
from softnum.tta.workloads import operation_energy, read_energy_table  # fmt: skip
from softnum.tta.workloads.energy_files import read_ert
from softnum.tta.workloads.energy_prices import energy_table
from softnum.tta.workloads.energy_tables import dram_energy, mac_energy, sram_energy

pytest.importorskip("yaml", reason="an ERT.yaml takes PyYAML")

ERTS = {
    "0.4": """
ERT:
    version: '0.4'
    tables:
      - name: top.DRAM[1..1]
        actions:
          - {name: read, arguments: {global_cycle_seconds: 1e-09, action_latency_cycles: 1}, energy: 512.0}
          - {name: write, arguments: {global_cycle_seconds: 1e-09, action_latency_cycles: 1}, energy: 640.0}
      - name: top.glb[1..1]
        actions:
          - {name: write, arguments: {}, energy: 26.121552}
          - {name: read, arguments: {}, energy: 32.342452}
          - {name: leak, arguments: {}, energy: 3.351e-3}
      - name: top.mac[1..168]
        actions: [{name: compute, arguments: {}, energy: 51.979}]
""",
    "0.3": """
ERT:
  version: 0.3
  tables:
  - {name: top.DRAM, actions: [{name: read, arguments: null, energy: 512}, {name: write, arguments: null, energy: 640}]}
  - name: top.glb
    actions:
    - {name: write, arguments: {address_delta: 0, data_delta: 1}, energy: 20}
    - {name: write, arguments: {address_delta: 1, data_delta: 1}, energy: 26.121552}
    - {name: read, arguments: {address_delta: 0, data_delta: 1}, energy: 30}
    - {name: read, arguments: {address_delta: 1, data_delta: 1}, energy: 32.342452}
  - {name: "top.PE[0..167].mac", actions: [{name: mac_random, arguments: null, energy: 51.979}]}
""",
    "0.2": """
ERT:
  tables:
    top.DRAM: {read: {arguments: null, energy: 512}, write: {arguments: null, energy: 640}}
    top.glb:
      write: [{arguments: {address_delta: 0}, energy: 20}, {arguments: {address_delta: 1}, energy: 26.121552}]
      read: [{arguments: {address_delta: 0}, energy: 30}, {arguments: {address_delta: 1}, energy: 32.342452}]
    top.PE.mac: {mac_random: {arguments: null, energy: 51.979}}
  version: 0.2
""",
}
MACS = {"0.4": "top.mac compute", "0.3": "top.PE.mac mac_random", "0.2": "top.PE.mac mac_random"}


def mine(folder, version="0.4", **changes):
    """A user's file, with an ERT beside it."""
    glb = "" if version == "0.4" else " address_delta=1"
    lines = {
        "citation": '"our run"', "process": '"45 nm"', "ert": '"ERT.yaml"',
        "fp32": f'{{ mac_pj = "{MACS[version]}" }}',
        "sram": f'[{{ bytes = 131072, bits = 64, pj = "top.glb read{glb}", write_pj = "top.glb write{glb}" }}]',
        "dram": '{ bits = 64, pj = "top.DRAM read", write_pj = "top.DRAM write" }',
    }  # fmt: skip
    lines = {key: text for key, text in (lines | changes).items() if text is not None}
    (folder / "ERT.yaml").write_text(ERTS[version])
    file = folder / "mine.toml"
    file.write_text("".join(f"{key} = {text}\n" for key, text in lines.items()))
    return file


def work(fmt="binary32", bits=32):
    gemm = Gemm("fc", "forward", 32, 10, 64, bits, (fmt, fmt))
    operation = Operation("fc", "forward", "gemm", 40960, 10752, 1280, (fmt,), gemm)
    return Workload("one", "design", 32, (operation,))


@pytest.mark.parametrize(
    ("ghz", "fmt", "accumulator", "total"),
    [  # what Accelergy wrote: fpmac and intmac of its exercises, 1 ns; and a float32 mac of 5 ns
        (Fraction(1), "binary32", "binary32", 51.979),
        (Fraction(1), "q8.8", "q8.8", 3.275),
        (Fraction(1, 5), "binary32", "binary32", 32.328),
    ],
)
def test_a_multiply_add_is_accelergys(ghz, fmt, accumulator, total):
    table = energy_table("aladdin-40nm").at(ghz * 10**9)
    multiply, add = mac_energy(Gemm("fc", "forward", 1, 1, 1, 32, (fmt, fmt)), accumulator, table)
    assert multiply.picojoules + add.picojoules == pytest.approx(total, rel=1e-12)


def test_widths_clocks_and_what_the_table_has_not():
    table = energy_table("aladdin-40nm")
    energy = operation_energy("multiply", "e5m2", table=table.at(None))
    assert (energy.picojoules, energy.kind) == (24.4 / 16, "scaled")
    assert "(8/32)^2 of fp32" in energy.reason and energy == operation_energy("multiply", "e5m2", table="aladdin-40nm")
    assert operation_energy("multiply", "float64", table=table.at(None)).kind == "published"
    assert table.at(Fraction(3 * 10**8)).entries["fp32"]["multiply"] == 27.8  # 3.33 ns: made for 3
    with pytest.raises(ValueError, match=r"no unit as fast as 2 GHz.*period of 1 ns"):
        table.at(Fraction(2 * 10**9))
    energy = energy_of(work(), "aladdin-40nm")
    assert energy.by_kind["dram"] == energy_of(work()).by_kind["dram"]
    assert any("of the table 45nm" in line for line in energy.assumptions)
    assert any("a period of 5 ns, as no clock is known" in line for line in energy.assumptions)
    with pytest.raises(ValueError, match="posit8"):
        operation_energy("multiply", "posit8", table=table.at(None))


def test_a_clock_is_that_of_the_table_that_stands_in_too(tmp_path):
    table = read_energy_table(mine(tmp_path, rest='"aladdin-40nm"')).at(Fraction(10**9))
    energy = operation_energy("multiply", "binary64", table=table)
    assert energy.picojoules == 113.763 and "with a period of 1 ns, as the clock is 1 GHz" in energy.reason
    with pytest.raises(ValueError, match="no unit as fast as 2 GHz"):
        operation_energy("multiply", "binary64", table=table.at(Fraction(2 * 10**9)))


@pytest.mark.parametrize("version", ERTS)
def test_a_users_table(version, tmp_path):
    table = read_energy_table(mine(tmp_path, version))
    energy = energy_of(work(), table)
    bits = 8 * (10752 + 1280)
    assert energy.table == "mine" and energy.source == "our run"
    assert energy.by_kind["multiply"] == pytest.approx(32 * 10 * 64 * 51.979e-12) and energy.by_kind["add"] == 0
    assert energy.by_kind["sram"] == pytest.approx(bits / 64 * (32.342452 + 26.121552) * 1e-12)
    assert energy.by_kind["dram"] == pytest.approx(8 * (10752 * 512 + 1280 * 640) / 64 * 1e-12)
    assert energy.high == pytest.approx(energy.joules)


def test_what_a_users_table_lacks(tmp_path):
    table = read_energy_table(mine(tmp_path, fp32=None, dram=None, sram=None, e4m3fn="{ mac_pj = 2 }"))
    assert operation_energy("multiply", "e4m3fn", table=table).kind == "published"
    assert operation_energy("multiply", "e5m2", table=table).kind == "proxy"
    for of, error in (
        (lambda: operation_energy("multiply", "binary32", table=table), "has no entry as wide as it; it has e4m3fn at"),
        (lambda: sram_energy(1024, table), 'has no SRAM: add sram, or rest = "45nm"'),
        (lambda: dram_energy(table), "has no DRAM"),
    ):
        with pytest.raises(ValueError, match=error):
            of()
    table = read_energy_table(mine(tmp_path, fp32=None, dram=None, sram=None, posit8="{ mac_pj = 2 }", rest='"45nm"'))
    assert operation_energy("multiply", "posit8", table=table).picojoules == 2
    energy = operation_energy("multiply", "binary32", table=table)
    assert (energy.picojoules, energy.kind) == (3.7, "proxy") and "of the table 45nm" in energy.reason
    assert dram_energy(table) == dram_energy() and sram_energy(1024, table)[0] == sram_energy(1024)[0]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"fp32": '{ mac_pj = "top.MAC compute" }'}, r"no component 'top.MAC' \(it has top.DRAM, top.glb, top.mac\)"),
        ({"fp32": '{ mac_pj = "top.mac mac_random" }'}, r"top.mac has no action 'mac_random' \(it has compute\)"),
        ({"fp32": '{ mac_pj = "top.mac" }'}, "must be a number, or .COMPONENT ACTION"),
        ({"fp32": '{ mac_pj = "top.mac compute width=3" }'}, "only as 'top.mac.*compute' and the like"),
        ({"fp32": "{ mac_pj = 0 }"}, "mac_pj"),
        ({"fp32": "{ mac_pj = true }"}, "mac_pj"),
        ({"fp32": "{ add_pj = 1 }"}, "multiply_pj"),
        ({"fp32": "{ mac_pj = 1, add_pj = 1 }"}, "add_pj"),
        ({"fp32": "3"}, "must be a table"),
        ({"fp99": "{ mac_pj = 1 }"}, "unknown key 'fp99'"),
        ({"scaled": "true"}, "scaled is a key of shipped tables alone"),
        ({"rest": '"22nm"'}, "rest must be one of the tables 45nm"),
        ({"process": None}, "process"),
        ({"citation": '" "'}, "citation must be a text"),
        ({"ert": None}, "names no ert"),
        ({"ert": "3"}, "ert must be the path"),
        ({"ert": '"nowhere.yaml"'}, "nowhere.yaml' cannot be read"),
        ({"dram": "{ bits = 64, low_pj = 3, high_pj = 2 }"}, "high_pj is 2, below low_pj, 3"),
        ({"sram": "[{ bytes = 8, bits = 8, pj = 1 }, { bytes = 8, bits = 8, pj = 1 }]"}, "each size once"),
        ({"sram": "{ bytes = 8, bits = 8, pj = 1 }"}, "must be a list of tables"),
        ({"fp32": None, "sram": None, "dram": None}, "has no energy"),
    ],
)
def test_files_that_are_refused(changes, error, tmp_path):
    with pytest.raises(ValueError, match=error):
        read_energy_table(mine(tmp_path, **changes))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("ERT: [", "not valid YAML"),
        ("", "is no energy reference table"),
        ("ERT: {version: 0.4}", "is no energy reference table"),
        ("ERT_summary: {version: 0.4}", "is ERT_summary, not the energy reference table itself"),
        ("ERT: {tables: [{name: a, actions: [{name: b, energy: much}]}]}", "the energy of a b is 'much'"),
        ("ERT: {tables: [{name: a, actions: [{name: b, energy: -1}]}]}", "the energy of a b is -1"),
        ("ERT: {tables: [{name: a, actions: [{name: b, energy: .inf}]}]}", "the energy of a b is inf"),
    ],
)
def test_erts_that_are_refused(text, error, tmp_path):
    (tmp_path / "ERT.yaml").write_text(text)
    with pytest.raises(ValueError, match=error):
        read_ert(tmp_path / "ERT.yaml")


def test_an_action_with_several_energies_and_a_component_of_two_names(tmp_path):
    with pytest.raises(ValueError, match=r"2 energies for 'top.glb read', which differ by arguments.*address_delta=1"):
        read_energy_table(mine(tmp_path, "0.3", sram='[{ bytes = 8, bits = 64, pj = "top.glb read" }]'))
    ERT = "ERT: {tables: [{name: 'a[1..2].m', actions: []}, {name: 'a.m[1..2]', actions: [{name: x, energy: 1}]}]}"
    (tmp_path / "two.yaml").write_text(ERT.replace("actions: []", "actions: [{name: x, energy: 2}]"))
    with pytest.raises(ValueError, match=r"'a.m' is several components of the ERT: a\[1..2\].m, a.m\[1..2\]"):
        read_energy_table(mine(tmp_path, ert='"two.yaml"', fp32='{ mac_pj = "a.m x" }'))


def test_a_study_takes_the_table_and_says_which(tmp_path):
    record = Record("design", 1, 32, 90, (Evaluation(80, 0.9),), {}, {})
    write_workloads(tmp_path / "workloads.json", [work()])
    table = str(mine(tmp_path))
    rules = outcome_rules(["design"], "design", energy_table=table)
    quiet = {"target": 0.9, "baseline": "design", "out": tmp_path, "console": Console(quiet=True)}
    conclude([record], [Variant("measured", {"design": IterationTime("design", 2.0)})], **rules, **quiet)
    (row,) = read_results(tmp_path / "results.json")["variants"][0]["designs"]
    assert row["energy"]["joules"] == pytest.approx(energy_of(work(), read_energy_table(table)).joules)
    assert "the table mine: our run" in row["energy"]["source"]
    times = Variant("measured", {"design": IterationTime("design", 2.0, joules=1.0)})
    with pytest.raises(ValueError, match="the energy table mine prices nothing"):
        conclude([record], [times], **rules, **quiet)
    with pytest.raises(ValueError, match="unknown energy table '7nm'"):
        outcome_rules(["design"], "design", energy_table="7nm")
