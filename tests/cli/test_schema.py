"""``softnum schema``: the schemas accept what the readers accept, and refuse the keys that these refuse."""

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.cli.schema import SCHEMAS, make_schema
from softnum.train import load_design
from softnum.train.studies.study_file import read_study
from softnum.train.studies.study_tables import TEMPLATE
from softnum.tta.estimates.device_files import devices
from softnum.tta.estimates.merit import read_rates
from softnum.tta.parallelism.system import systems
from softnum.tta.workloads.energy_files import read_energy_table
from tests.support.toml_writing import write_toml

jsonschema = pytest.importorskip("jsonschema", reason="schemas are tried by jsonschema (extra report)")

ROOT = Path(__file__).resolve().parents[2]
TTA = ROOT / "softnum" / "tta"
CHECKERS = {kind: jsonschema.Draft7Validator(make_schema(kind)) for kind in SCHEMAS}
TABLES = {
    path: tomllib.loads(path.read_text(encoding="utf-8"))
    for folder in ("train", "examples", "benchmarks", "docs")
    for path in sorted((ROOT / folder).rglob("*.toml"))
}
DESIGNS = [path for path, table in TABLES.items() if "roles" in table]
STUDIES = [path for path, table in TABLES.items() if "networks" in table]

#: every branch of a design's schema
WIDE = """
name = "wide"
description = "d"
[roles]
default = "binary32"
input = { format = "e4m3fn", overflow = "saturate", scale = { per = [1, 128], power_of_two = true } }
weights = { format = "e4m3fn", scale = { rule = "delayed", margin = 1 }, sparsity = { pattern = "2:4", decay = 0.1 } }
activations = { format = { element = "e4m3fn", scale = "e8m0", block_size = 32 }, rounding = "nearest_even" }
errors = { format = "e2m1fn", scale = { rule = "nvfp4", rows = true } , hadamard = { size = 16 } }
weight_gradients = { format = "binary32", sparsity = { top_k = 0.5, feedback = "binary32" } }
master = "none"
update.decay = { format = "bfloat16", rounding = "stochastic", stochastic_bits = 8, random = "philox4x32-7" }
forward.weights = { format = "e5m2" }
[units.forward]
kind = "fused"
accumulator = "binary32"
terms = 8
fraction_bits = 24
chunk = 64
outer_accumulator = "binary32"
outer_rounding = "nearest_even"
[units.backward_data]
preset = "nvidia_h100_e4m3"
output = "binary32"
[units.backward_weight]
kind = "split"
ranks = 4
collective = "ring(unit='bfloat16')"
inner = { accumulator = "binary32", operand = ["e4m3fn", "e5m2"] }
[units.update]
accumulator = "binary32"
product = "binary32"
[convolution]
algorithm = "fft"
size = 16
twiddle = "bfloat16"
transform = { accumulator = "binary32" }
output = { accumulator = "binary32" }
otherwise = "direct"
[elementwise]
engine = "torch"
[layers."fc.*".units]
forward = { kind = "block_dot", accumulator = "binary32", inner = { kind = "mad", accumulator = "e6m9" } }
backward_data = { accumulator = "binary32", inner = "nvidia_v100_fp16" }
[layers."conv.*".convolution]
algorithm = "winograd"
tile = 4
[layers.x.roles]
activations = "bfloat16"
[loss]
scale = "dynamic"
initial = 1024.0
interval = 10
[hardware]
array = [8, 8]
cores = [1, 2]
bandwidth = "16 GB/s"
clock = "1 GHz"
sram_bytes = { ifmap = 1024, filter = 1024, ofmap = 1024 }
[hardware.unit]
source = "s"
library = "l"
area_um2 = 10.5
reference = "binary16"
reference_area_um2 = 20
latency_cycles = 3
"""
STUDY = """
[study]
name = "two"
designs = ["a-float32"]
seeds = [1, 2]
batches = [16, 32]
epochs = 2
target = 0.9
metric = "accuracy"
reached = "consecutive:2"
confidence = 0.9
rent = ["2.48"]
tune_rates = [0.5, 1]
tune_seeds = 2
[[networks]]
name = "mlp"
options = { sizes = [64, 32, 10] }
learning_rate = 0.1
hardware = { clock = "2 GHz" }
[settings]
optimiser = "sgd"
samples = 100
[hardware]
array = [32, 32]
sram_bytes = { ifmap = 1048576 }
[timings]
simulator = "scalesim"
dataflow = "ws"
simulate = true
variant = "all"
[report]
html = false
"""
DEVICE = """
[sources]
s = "a sheet"
[devices.mine]
title = "Mine"
peaks = { fp16 = "125 TFLOP/s", fp32 = "10 TFLOP/s" }
vector = "10 TFLOP/s"
bandwidth = "900 GB/s"
memory = "16 GB"
interconnect = "300 GB/s"
watts = 300
source = "s"
more = "s"
note = "n"
price = { dollars = 100, date = "2020-01", source = "s" }
rent = { dollars = 1.5, date = "2020-01", source = "s", instance = "i" }
"""
SYSTEM = """
[systems.mine]
title = "t"
source = "s"
efficiency = { bf16 = 0.5, exposed = 0 }
mtbf = "50000 h"
storage = "100 GB/s"
restart = "10 min"
launch = "5 us"
tiers = [{ name = "a", devices = 4, bandwidth = "100 GB/s", latency = "2 us" }]
[systems.mine.device]
peaks = { bf16 = "125 TFLOP/s" }
bandwidth = "900 GB/s"
source = "s"
"""
ENERGY = """
citation = "c"
process = "p"
rest = "45nm"
fp32 = { add_pj = 0.9, multiply_pj = 3.7 }
e5m2 = { mac_pj = 0.1 }
sram = [{ bytes = 1024, bits = 64, pj = 1, write_pj = 2 }, { bytes = 2048, bits = 64, low_pj = 1, high_pj = 2 }]
dram = { bits = 64, low_pj = 1300, high_pj = 2600 }
"""
RATES = "[unit.P1]\nold = 74752\nnew = { hours = 0.5, nodes = 94000 }\n"
#: kind -> files that have all that a file may have, and what reads one
WHOLE = {
    "design": (WIDE, load_design),
    "study": (STUDY, read_study),
    "devices": (DEVICE, devices),
    "systems": (SYSTEM, systems),
    "energy": (ENERGY, read_energy_table),
    "rates": (RATES, read_rates),
}


def complaint(kind, table):
    error = jsonschema.exceptions.best_match(CHECKERS[kind].iter_errors(table))
    return None if error is None else f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"


@pytest.mark.parametrize("kind", SCHEMAS)
def test_each_is_a_schema_of_draft_7(kind):
    jsonschema.Draft7Validator.check_schema(make_schema(kind))


def test_the_command(tmp_path):
    def softnum(*arguments):
        return CliRunner().invoke(build_app(), ["schema", *map(str, arguments)], catch_exceptions=False)

    assert [line.split()[0] for line in softnum().output.splitlines()] == list(SCHEMAS)
    assert json.loads(softnum("rates").output) == make_schema("rates")
    result = softnum("--out", tmp_path / "new")
    assert result.output.count("Written: ") == len(SCHEMAS)
    assert json.loads((tmp_path / "new" / "design.schema.json").read_text(encoding="utf-8")) == make_schema("design")
    assert softnum("rates", "--out", tmp_path / "one").exit_code == 0
    assert [file.name for file in (tmp_path / "one").iterdir()] == ["rates.schema.json"]
    result = softnum("desing", "--out", tmp_path / "none")
    assert result.exit_code == 2 and "no kind of file is called 'desing' (kinds: design," in result.output
    assert not (tmp_path / "none").exists()


def test_what_ships_fits():
    assert len(DESIGNS) > 30 and len(STUDIES) > 8
    found = {str(path): complaint("design", TABLES[path]) for path in DESIGNS}
    found |= {str(path): complaint("study", TABLES[path]) for path in STUDIES}
    shipped = {"devices": "devices.toml", "systems": "systems.toml"}
    found |= {kind: complaint(kind, tomllib.loads((TTA / name).read_text("utf-8"))) for kind, name in shipped.items()}
    found["the template"] = complaint("study", tomllib.loads(TEMPLATE.format(name="two")))
    assert {path: error for path, error in found.items() if error} == {}


def places(table, at=()):
    """Where tables are in a file, and where values are."""
    yield at, table
    children = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    for key, value in children:
        yield from places(value, (*at, key))


def changed(table, at, change):
    copy = json.loads(json.dumps(table))
    parent = copy
    for key in at[:-1]:
        parent = parent[key]
    change(parent, at[-1])
    return copy


def mutants(table):
    """The file with a key too many in each table, with each key left out, and with each value of another type."""
    for at, value in places(table):
        if isinstance(value, dict):
            yield (*at, "zz"), "more", changed(table, (*at, "zz"), lambda parent, key: parent.update({key: 1}))
        if at and isinstance(at[-1], str):
            yield at, "less", changed(table, at, lambda parent, key: parent.pop(key))
            other = 17 if isinstance(value, (dict, list)) else {"zz": 1}
            yield at, "other", changed(table, at, lambda parent, key, other=other: parent.update({key: other}))


#: what a reader misses for the values of other keys: figures of an area, ranks of a collective, who rounds at random
_OF_VALUES = {
    "design": {"library", "area_um2", "reference", "ranks", "rounding"},
    "study": {"tune_rates"},
}


@pytest.mark.parametrize("kind", WHOLE)
def test_schema_and_reader_agree(kind, tmp_path):
    """A mutant whose keys the reader refuses is refused by the schema, and what the schema refuses, the reader does."""
    text, read = WHOLE[kind]
    table = tomllib.loads(text)
    file = tmp_path / "wide.toml"

    def refuses(mutant) -> str:
        file.write_text(write_toml(mutant), encoding="utf-8")
        try:
            read(file)
        except (ValueError, OSError) as error:
            return str(error)
        return ""

    assert refuses(table) == "" and complaint(kind, table) is None
    count, lax, strict = 0, [], []
    for at, how, mutant in mutants(table):
        count += 1
        by_reader, by_schema = refuses(mutant), complaint(kind, mutant)
        if by_reader and not by_schema and how != "other" and at[-1] not in _OF_VALUES.get(kind, ()):
            lax.append((at, how, by_reader))
        if by_schema and not by_reader:
            strict.append((at, how, by_schema))
    assert count > 8 and not lax + strict, "\n".join(map(str, lax + strict))
