"""Design files: what they say, and every way in which they can be wrong."""

import json

import numpy as np
import pytest

import softnum as sn
from softnum.train import DEFAULT_STUDY, design_gemms, design_names, load_design, make_network
from softnum.train.designs import PASSES, ROLES, contains
from softnum.train.designs.objects import load_object
from softnum.train.designs.unit_specs import describe_unit

LAYERS = ["fc1", "fc2"]


def write(tmp_path, text, name="mine.toml"):
    file = tmp_path / name
    file.write_text(text)
    return file


RECIPES = [
    "deepseek-v3", "quartet-mxfp4", "te-delayed-scaling", "te-float8-block-scaling", "te-float8-current-scaling",
    "te-mxfp8-block-scaling", "te-nvfp4-block-scaling", "torchao-rowwise", "torchao-rowwise-with-gw-hp",
    "torchao-tensorwise",
]  # fmt: skip


def test_the_default_study_runs_every_shipped_design_but_those_with_scales():
    weights = {name: load_design(name).layer("fc1").roles["weights"] for name in design_names()}
    assert [name for name in weights if weights[name].block] == ["i-mxfp8", "j-mxfp4"]
    assert [name for name in weights if weights[name].scale is not None] == RECIPES
    plain = [name for name in weights if not weights[name].by_products]
    assert sorted(case.design for case in DEFAULT_STUDY) == plain


def test_recipes_saturate_and_say_where_they_are_from():
    for name in RECIPES:
        design = load_design(name)
        text = design.path.read_text()
        assert text.startswith("# ") and ("Not known: " in text or "rowwise" in name or "block-scaling" in name)
        for role in ("input", "weights", "activations", "errors"):
            rounding = design.layer("fc1", first=True).roles[role]
            assert rounding.overflow == "saturate" and rounding.scale is not None
            assert 'overflow = "saturate"' in text or str(rounding.format) == "e2m1fn"
        for last in ("fc", "fc2", "critic.fc", "block1.attention", "attention"):
            roles = design.layer(last).roles
            assert {str(roles[role].format) for role in ("weights", "activations", "errors")} == {"bfloat16"}


@pytest.mark.parametrize("name", design_names())
def test_shipped_designs_name_themselves_and_resolve(name):
    design = load_design(name)
    assert design.name == name and design.description
    design.check_layers(LAYERS)
    assert json.loads(json.dumps(design.describe(LAYERS)))["hardware"]["array"] == [32, 32]


def test_shipped_designs_stand_on_the_same_hardware():
    assert len({json.dumps(load_design(name).hardware) for name in design_names()}) == 1


def test_long_and_chunked_differ_in_nothing_but_the_chunk():
    d, e = (load_design(name).describe(LAYERS) for name in ("d-e6m3-long", "e-e6m3-chunk"))
    for layer in LAYERS:
        for key in PASSES:
            assert d["layers"][layer]["units"][key].pop("chunk") is None
            assert e["layers"][layer]["units"][key].pop("chunk") == 16
    for design in (d, e):
        del design["name"], design["description"]
    assert d == e


def test_nearest_and_stochastic_fixed_point_differ_in_nothing_but_the_rounding():
    f, g = (json.dumps(load_design(n).describe(LAYERS)["layers"]) for n in ("f-q44-nearest", "g-q44-stochastic"))
    f, g = json.loads(f), json.loads(g)
    for design, rounding in ((f, "nearest_even"), (g, "stochastic")):
        for layer in design.values():
            for facts in [*layer["roles"].values(), *layer["units"].values()]:
                assert facts.pop("rounding") == rounding
                facts.pop("stochastic_bits", None)
    assert f == g


def test_wang_is_as_published():
    design = load_design("c-wang-fp8")
    fc1, fc2 = design.layer("fc1", first=True), design.layer("fc2")
    assert design.loss_scale == 1000
    e5m2, e6m9 = sn.format("e5m2"), sn.format("e6m9")
    assert [fc1.roles[r].format for r in ("input", "weights", "errors")] == [e6m9, e5m2, e5m2]
    assert {fc2.roles[r].format for r in ("activations", "weights", "errors")} == {e6m9}
    for layer in (fc1, fc2):
        for role in ("update.decay", "update.momentum", "update.weight"):
            assert (layer.roles[role].format, layer.roles[role].rounding) == (e6m9, "stochastic")
        for role in ("master", "momentum", "weight_gradients", "output"):
            assert layer.roles[role].format == e6m9
        for unit in layer.units.values():
            assert (unit.accumulator, unit.product, unit.chunk, unit.rounding) == (e6m9, None, 64, "nearest_even")
    assert fc1.units["forward"].operand == (e6m9, e5m2)
    assert fc1.units["backward_weight"].operand == (e6m9, e5m2)
    assert design.layer("fc1").units["forward"].operand == (e5m2, e5m2)


def test_posit8_holds_the_standards_values():
    posit8 = load_design("h-posit8").roles["weights"].format
    values = sn.decode(np.arange(256, dtype=np.uint8), posit8)
    assert values[0] == 0 and np.isnan(values[0x80])
    # 0x40 is 1; 0x7f and 0x01 are maxpos = 2**24 and minpos = 2**-24; 0 10 00 111 has fraction 7/8
    assert [values[c] for c in (0x40, 0x7F, 0x01, 0x47, 0xC0, 0x60, 0x20)] == [
        1,
        2.0**24,
        2.0**-24,
        1.875,
        -1,
        16,
        1 / 16,
    ]
    assert np.all(np.diff(values[1:128]) > 0)
    assert np.array_equal(values[:0x80:-1], -values[1:0x80])


def test_an_operand_role_follows_the_unit_that_states_it(tmp_path):
    file = write(
        tmp_path,
        'name = "wang-fp8"\n[roles]\nactivations = { format = "e5m2", rounding = "nearest_even" }\n'
        'master = { format = "e6m9", rounding = "stochastic", stochastic_bits = 16 }\n'
        '[units]\nforward = { kind = "mad", operand = "e5m2", accumulator = "e6m9", chunk = 64 }\n'
        "[loss]\nscale = 1000\n",
    )
    layer = load_design(file).layer("fc2")
    assert layer.roles["weights"].format == sn.format("e5m2")
    assert layer.roles["errors"].format == sn.format("binary32")
    assert layer.roles["master"].stochastic_bits == 16
    assert layer.units["backward_weight"].operand == (sn.format("e5m2"), sn.format("binary32"))
    assert layer.units["backward_weight"].accumulator == sn.format("binary32")


def test_every_field_of_a_mad_unit_reaches_it_and_the_record(tmp_path):
    file = write(
        tmp_path,
        '[units]\nforward = { operand = "e5m2", accumulator = "e6m9", product = "e4m3", rounding = "toward_zero", '
        'product_rounding = "stochastic", stochastic_bits = 9, overflow = "saturate", lanes = 4, chunk = 16, '
        'reduction = "pairwise", outer_accumulator = "binary16", compensated = "kahan" }\n',
    )
    unit = load_design(file).layer("fc1").units["forward"]
    assert unit == sn.MadUnit(
        "e6m9", operand="e5m2", product="e4m3", rounding="toward_zero", product_rounding="stochastic",
        stochastic_bits=9, overflow="saturate", lanes=4, chunk=16, reduction="pairwise", outer_accumulator="binary16",
        compensated="kahan",
    )  # fmt: skip
    facts = describe_unit(unit)
    assert (facts["lanes"], facts["reduction"], facts["compensated"]) == (4, "pairwise", "kahan")


def test_layers_override_entry_by_entry_and_later_patterns_win(tmp_path):
    file = write(
        tmp_path,
        '[roles]\nweights = "e5m2"\nerrors = "e5m2"\n'
        '[layers."fc.*".roles]\nweights = { format = "e4m3" }\n'
        '[layers."fc2".roles]\nweights = { format = "bfloat16" }\n'
        '[layers."fc2".units]\nforward = { accumulator = "e6m9" }\n',
    )
    design = load_design(file)
    assert [design.layer(n).roles["weights"].format.name for n in ("fc1", "fc2", "out")] == ["e4m3", "bfloat16", "e5m2"]
    assert design.layer("fc2").roles["errors"].format.name == "e5m2"
    assert design.layer("fc2").units["forward"].accumulator.name == "e6m9"
    assert design.layer("fc1").units["forward"].accumulator.name == "binary32"


def test_a_unit_may_take_wider_operands_than_its_roles(tmp_path):
    file = write(
        tmp_path, '[roles]\ndefault = "e5m2"\n[units]\nforward = { operand = "binary16", accumulator = "binary32" }\n'
    )
    assert load_design(file).layer("fc1").units["forward"].operand[0] == sn.format("binary16")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "not valid TOML"),
        ('rolse = {}', r"top level: unknown key 'rolse'; did you mean 'roles'\?"),
        ('name = "../up"', "name: must be letters, digits"),
        ("description = 3", "description: must be a string"),
        ("roles = 3", "roles: must be a table, got 3"),
        ('[roles]\nactivation = "e5m2"', r"roles: unknown key 'activation'; did you mean 'activations'\?"),
        ('[roles]\nupdate.weigth = "e5m2"', r"unknown key 'update.weigth'; did you mean 'update.weight'\?"),
        ('[roles]\nweights = "e5m22x"', r"roles.weights.format: unknown format 'e5m22x'; did you mean"),
        ("[roles]\nweights = {}", "roles.weights: has no format"),
        ("[roles]\nweights = { format = 8 }", "roles.weights.format: must be a format's name, got 8"),
        ('[roles]\nweights = { format = "e5m2", round = "x" }', "unknown key 'round'; did you mean 'rounding'"),
        ('[roles]\nweights = { format = "e5m2", rounding = "nearst" }', "weights: unknown rounding mode 'nearst'"),
        ('[roles]\nweights = { format = "e5m2", overflow = "wrap" }', "overflow='wrap' is for fixed point"),
        ('[roles]\nweights = { format = "e5m2", stochastic_bits = 40 }', "stochastic_bits: must be .* 1..32, got 40"),
        ('[roles]\nweights = "no_such.py:x"', "roles.weights.format: no file"),
        ('[roles]\nweights = "no_such_module_:x"', "module 'no_such_module_' cannot be imported"),
        ('[roles]\nweights = "softnum:nothing"', "softnum has no object 'nothing'"),
        ('[roles]\nweights = "softnum:Flags"', "is not a format but EnumType|is not a format but EnumMeta"),
        ('[roles]\nweights = "fp.c:new_fp"', "roles.weights.format: no file .*fp.c"),
        ('[units]\nforwards = {}', r"units: unknown key 'forwards'; did you mean 'forward'\?"),
        ("[units]\nforward = 3", "units.forward: must be a table or a preset's name, got 3"),
        ('[units]\nforward = { kind = "made" }', r"units.forward: unknown kind 'made'; did you mean 'mad'\?"),
        ('[units]\nforward = { kind = "mad" }', "units.forward: has no accumulator"),
        ('[units]\nforward = { accumulater = "e6m9" }', r"unknown key 'accumulater'; did you mean 'accumulator'\?"),
        ('[units]\nforward = { accumulator = "e6m99" }', "units.forward.accumulator: .*unknown format|precision|bits"),
        ('[units]\nforward = { accumulator = "q32.32" }', "forward.accumulator: 'q32.32' has .* binary64.* 53"),
        ('[units]\nforward = { accumulator = "e6m9", outer_accumulator = "q1.60" }', "outer_acc.*'q1.60' .* 53"),
        ('[roles]\nerrors = "e15m40"', "roles.errors.format: 'e15m40' has values .* exponents -1074 to 1023"),
        ('[units]\nforward = { accumulator = "e6m9", operand = ["e5m2"] }', "operand: must be one format or a pair"),
        ('[layers."fc(".roles]\nweights = "e5m2"', "not a regular expression"),
        ('[layers."fc2"]\nrole = {}', r'layers."fc2": unknown key \'role\'; did you mean \'roles\''),
        ("[loss]\nscale = 0", "loss.scale: must be a positive number, got 0"),
        ("[loss]\nscales = 2", "loss: unknown key 'scales'; did you mean 'scale'"),
        ('[loss]\nscale = "dynamc"', r'loss.scale: must be a positive number or "dynamic", got \'dynamc\''),
        ("[loss]\ninterval = 4", 'loss.interval: is of a scale that changes; add scale = "dynamic"'),
        ('[loss]\nscale = "dynamic"\ngrowht = 2', "loss: unknown key 'growht'; did you mean 'growth'"),
        ('[loss]\nscale = "dynamic"\nbackoff = 2', r"loss.backoff: must lie in \[.*, 1\], got 2"),
        ('[loss]\nscale = "dynamic"\ngrowth = 0.5', r"loss.growth: must lie in \[1, .*\], got 0.5"),
        ('[loss]\nscale = "dynamic"\ninterval = 1.5', "loss.interval: must be a positive integer, got 1.5"),
        ('[loss]\nscale = "dynamic"\ninitial = 1e300', r"loss.initial: must lie in .*, got 1e[+]300"),
        ('[loss]\nscale = "dynamic"\nskip_overflow = true', "loss.skip_overflow: leave it out: with a dynamic scale"),
        ("[loss]\nskip_overflow = 1", "loss.skip_overflow: must be true or false, got 1"),
        ("[hardware]\narray = [32]", r"hardware.array: must be \[rows, columns\]"),
        ("[hardware]\narray = [32, 0]", "hardware.array: must be a positive integer, got 0"),
        ("[hardware]\nsram_bytes = { ifmaps = 1 }", "hardware.sram_bytes: unknown key 'ifmaps'; did you mean 'ifmap'"),
        ('[hardware]\nbandwidth = "16"', "hardware.bandwidth: must be .* with its unit like '16 GB/s', got '16'"),
        ('[hardware]\nclock = "0.0 GHz"', "hardware.clock: must be a number above zero .*, got '0.0 GHz'"),
        ("[hardware]\nclock = 1", "hardware.clock: must be a number above zero with its unit like '1 GHz'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_and_key(tmp_path, text, message):
    file = write(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        load_design(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[roles]\nweights = "binary32"\n[units]\nforward = { operand = "e5m2", accumulator = "e6m9" }',
         "layer 'fc1': units.forward takes operands e5m2, which do not hold every value of role 'weights'"),
        ('[units]\nforward = { accumulator = "e6m9", chunk = 0 }', "units.forward: .*chunk"),
        ('[units]\nforward = { accumulator = "e6m9", rounding = "nearst" }', "units.forward: .*nearst"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_named_with_file_and_layer(tmp_path, text, message):
    file = write(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        load_design(file).layer("fc1")
    assert str(file) in str(caught.value)


def test_a_pattern_that_matches_no_layer(tmp_path):
    file = write(tmp_path, '[layers."fc3".roles]\nweights = "e5m2"')
    with pytest.raises(ValueError, match=r"\"fc3\"\] matches no layer of the network; did you mean 'fc1|2'.*fc1, fc2"):
        load_design(file).check_layers(LAYERS)


def test_no_such_design(tmp_path):
    with pytest.raises(ValueError, match=r"no design is called 'a-float23'; did you mean 'a-float32'\?"):
        load_design("a-float23")
    with pytest.raises(FileNotFoundError, match="no design file .*nothing.toml"):
        load_design(tmp_path / "nothing.toml")
    with pytest.raises(FileNotFoundError, match="no design file 'x/y'"):
        load_design("x/y")


def test_objects_of_files_follow_the_files_content(tmp_path):
    file = tmp_path / "tables.py"
    source = "import softnum as sn\nmine = sn.CustomFormat.from_table({})\n"
    file.write_text(source.format([0.0, 1.0]))
    assert load_object("tables.py:mine", tmp_path).max == 1.0
    file.write_text(source.format([0.0, 2.0]))
    assert load_object("tables.py:mine", tmp_path).max == 2.0
    file.write_text("1 / 0")
    with pytest.raises(ValueError, match=r"tables.py cannot be run: ZeroDivisionError"):
        load_object("tables.py:mine", tmp_path)
    with pytest.raises(ValueError, match="not of the form"):
        load_object("tables.py", tmp_path)


def test_a_table_format_is_recorded_by_its_values(tmp_path):
    (tmp_path / "t.py").write_text("import softnum as sn\nt = sn.CustomFormat.from_table([0.0, 1.0, -1.0, 0.5])\n")
    file = write(tmp_path, '[roles]\nweights = "t.py:t"')
    facts = load_design(file).describe(["fc1"])["layers"]["fc1"]["roles"]["weights"]
    assert facts["format"] == "t.py:t" and facts["bits"] == 2 and len(facts["values_sha256"]) == 64


@pytest.mark.parametrize(
    ("outer", "inner", "answer"),
    [
        ("binary16", "e5m2", True), ("e5m2", "e4m3", False), ("binary32", "binary16", True), ("q4.4", "q4.4", True),
        ("q5.4", "q4.4", True), ("q4.3", "q4.4", False), ("q4.4", "e5m2", None), ("dlfloat16", "e5m2", None),
        ("binary16", "bfloat16", False), ("bfloat16", "binary16", False),
    ],
)  # fmt: skip
def test_containment(outer, inner, answer):
    assert contains(sn.format(outer), sn.format(inner)) is answer


def test_every_role_is_documented():
    import softnum.train.designs as module

    for role in ROLES:
        assert f"``{role}``" in module.__doc__


def test_gemms_carry_the_operands_words():
    rows = design_gemms(load_design("c-wang-fp8"), make_network("mlp"), 32)
    assert [(r["layer"], r["pass"], r["M"], r["N"], r["K"], r["bits"]) for r in rows] == [
        ("fc1", "forward", 32, 128, 64, 16),
        ("fc2", "forward", 32, 10, 128, 16),
        ("fc2", "backward_data", 32, 128, 10, 16),
        ("fc2", "backward_weight", 128, 10, 32, 16),
        ("fc1", "backward_weight", 64, 128, 32, 16),
    ]
    assert {r["formats"][0] for r in design_gemms(load_design("h-posit8"), make_network("mlp"), 32)} == {"posit8"}


HARDWARE = """
[units]
forward = "nvidia_h100_fp16"
backward_data = { kind = "preset", name = "nvidia_h100_fp16" }
backward_weight = { kind = "exact", accumulator = "binary32" }
"""


def test_units_of_hardware_and_of_other_kinds(tmp_path):
    layer = load_design(write(tmp_path, HARDWARE)).layer("fc1")
    assert layer.units["forward"] == sn.unit("nvidia_h100_fp16") == layer.units["backward_data"]
    # what a preset takes, the roles that feed it hold
    half = sn.format("binary16")
    assert [layer.roles[role].format for role in ("weights", "activations", "errors")] == [half] * 3
    assert layer.units["backward_weight"] == sn.ExactDotUnit("binary32", operand="binary16")
    text = '[units]\nforward = {kind="fused", accumulator="binary32", operand="bfloat16", terms=8, fraction_bits=24}'
    unit = load_design(write(tmp_path, text)).layer("fc1").units["forward"]
    assert unit == sn.FusedDotUnit(8, 24, "binary32", operand="bfloat16")
    facts = describe_unit(unit)
    assert (facts["kind"], facts["terms"], facts["operand"]) == ("fused", 8, ["bfloat16", "bfloat16"])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('"nvidia_h100_fp61"', r"units.forward: .*nvidia_h100_fp16"),
        ('{kind="preset"}', "units.forward: name, and output if there is one, must be texts"),
        ('{kind="preset", name="nvidia_v100_fp16", output="e5m2"}', "units.forward: .*output"),
        ('{kind="exact"}', "units.forward: has no accumulator"),
        ('{kind="exact", accumulator="binary32", lanes=4}', "lanes"),
        ('{kind="fused", accumulator="binary32"}', "units.forward: .*terms"),
    ],
)
def test_a_wrong_unit_is_named(tmp_path, entry, message):
    with pytest.raises(ValueError, match=message):
        load_design(write(tmp_path, f"[units]\nforward = {entry}")).layer("fc1")


def test_a_network_trains_on_a_tensor_core(tmp_path):
    from softnum.train import Settings, run
    from softnum.train.runs.loop import read_rows

    settings = Settings(network_options={"sizes": (64, 16, 10)}, epochs=3, batch=128)
    rows = read_rows(run(load_design(write(tmp_path, HARDWARE)), settings, seed=1, out=tmp_path))
    assert rows[-1]["accuracy"] > 0.7
    assert rows[0]["config"]["design"]["layers"]["fc1"]["units"]["forward"]["terms"] == 16
