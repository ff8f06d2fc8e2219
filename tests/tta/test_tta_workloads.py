"""Workloads of trained networks: products that are the designs', values that are the tape's, bytes counted by hand."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.train import Settings, case_workloads, design_gemms, load_design, make_network, uniform_design, workload
from softnum.train.engine.blocks import BlockOperand
from softnum.train.inspect.dataflow import Flow, _arrays, _key
from softnum.train.inspect.dry_run import stand_in
from softnum.train.inspect.workloads import trace
from softnum.train.nets import NETWORKS, default_data
from softnum.train.studies.study import Case
from softnum.tta import Workload, read_workloads, write_workloads
from tests.support.cases import cases

DESIGNS = ("a-float32", "c-wang-fp8", "g-q44-stochastic", "i-mxfp8")
#: whose embeddings no block format is for
WORDS = {"gpt", "ncf", "recurrent-lm", "seq2seq", "transformer", "transformer-lm"}
PAIRS = [(name, design) for name in NETWORKS for design in DESIGNS if design != "i-mxfp8" or name not in WORDS]


def of(name, design, batch=8, **settings):
    return workload(name, load_design(design) if isinstance(design, str) else design, batch, **settings)


def tensors(work, kind, layer=None):
    return [t for t in work.tensors if t.tensor_class == kind and layer in (None, t.layer)]


@cases(("name", "design"), PAIRS)
def test_the_products_are_those_that_the_design_computes(name, design):
    work, chosen = of(name, design), load_design(design)
    network = make_network(name, data=default_data(name))
    want, got = Counter(), Counter()
    for row in design_gemms(chosen, network, 8):
        facts = (tuple(row["formats"]), row["bits"], tuple(row.get("sparsity", ())))
        want[row["layer"], row["pass"], row["M"], row["N"], row["K"], *facts] += row.get("count", 1)
    for gemm in work.gemms:
        got[gemm.layer, gemm.phase, *gemm.shape, gemm.formats, gemm.bits, gemm.sparsity] += gemm.count
    assert got == want
    for operation in work.operations:
        if operation.gemm is not None:
            m, n, k = operation.gemm.shape
            assert (operation.kind, operation.flops) == ("gemm", 2 * m * n * k * operation.gemm.count)
            assert operation.stage == operation.gemm.phase


@pytest.mark.parametrize(("name", "design"), [("lenet5", "c-wang-fp8"), ("lstm", "i-mxfp8"), ("resnet", "a-float32"),
                                              ("transformer", "c-wang-fp8"), ("wgan", "a-float32"),
                                              ("detector", "c-wang-fp8"), ("ncf", "a-float32")])  # fmt: skip
def test_a_dry_run_makes_what_a_real_one_makes(name, design):
    settings, chosen = Settings(network=name, batch=8), load_design(design)
    dry, real = (facts(trace(settings, chosen, dry=dry)) for dry in (True, False))
    assert dry == real


def facts(flow: Flow):
    """All that a workload is made of."""
    numbers = {value: number for number, value in enumerate(flow.values)}
    groups = [
        (g.layer, g.stage, flow.kind(g), g.product, g.flops, {numbers[v]: n for v, n in g.reads.items()}, g.formats)
        for g in flow.groups
    ]
    values = [(v.layer, v.name, v.elements, v.bits, v.format, v.maker, v.owner and v.owner[2]) for v in flow.values]
    return groups, values


@pytest.mark.parametrize(("name", "design"), [("lenet5", "c-wang-fp8"), ("lstm", "a-float32"), ("resnet", "c-wang-fp8"),
                                              ("transformer", "a-float32"), ("mlp", "i-mxfp8")])  # fmt: skip
def test_what_the_backward_pass_reads_is_what_the_tape_holds(name, design, monkeypatch):
    """Each feature map that outlives the forward pass is an array of the tape, a rounding of one, or its mask."""
    held = {}

    def saw(self, loss, original=Flow.saw):
        original(self, loss)
        for node in loss._order():
            for part in (node.value, *(node.saved if isinstance(node.saved, tuple) else ())):
                part = part.values if isinstance(part, BlockOperand) else part
                for array in _arrays((part,)):
                    held.update(dict.fromkeys(self._known.get(_key(array), (None, ()))[1]))

    monkeypatch.setattr(Flow, "saw", saw)
    flow = trace(Settings(network=name, batch=8), load_design(design), dry=False)
    first = next(number for number, group in enumerate(flow.groups) if group.stage != "forward")
    last = next(number for number, group in enumerate(flow.groups) if group.stage == "update")
    checked = 0
    for value in flow.values:
        made = value.maker is None or value.maker < first
        if not made or value.owner or value.copy_of is not None or not any(first <= r < last for r in value.readers):
            continue
        source = value
        while source is not None and source not in held:
            source = source.source
        places = {(v.layer, v.elements) for v in held}
        assert source is not None or (value.format == "bit" and (value.layer, value.elements) in places), value
        checked += 1
    assert checked >= 4


def test_bytes_by_hand():
    """An MLP of 64-128-10 at batch 32 in e5m2 and e6m9: every byte of its forward pass."""
    work = of("mlp", "c-wang-fp8", 32)
    first, relu, second, loss = work.operations[:4]
    # x (32 x 64, e6m9), w (64 x 128, e5m2), bias (128, e6m9) -> 32 x 128 in e6m9
    assert (first.bytes_read, first.bytes_written) == (32 * 64 * 2 + 64 * 128 + 128 * 2, 32 * 128 * 2)
    # max(x, 0) -> the same format for the last layer, whose activations are e6m9
    assert (relu.kind, relu.flops) == ("relu", 32 * 128)
    assert (relu.bytes_read, relu.bytes_written) == (32 * 128 * 2, 32 * 128 * 2)
    assert (second.bytes_read, second.bytes_written) == (32 * 128 * 2 + 128 * 10 * 2 + 10 * 2, 32 * 10 * 2)
    assert (loss.layer, loss.bytes_read, loss.bytes_written) == ("loss", 32 * 10 * 2, 32 * 10 * 8)
    update = next(o for o in work.operations if o.layer == "fc1" and o.stage == "update")
    count = 64 * 128 + 128
    assert (update.kind, update.bytes_read) == ("sgd", 3 * 2 * count)  # weights, gradients, momentum
    assert update.bytes_written == 2 * 2 * count + 64 * 128  # and the working copy
    assert update.flops == 6 * count  # three multiply-adds
    parts = [{"forward": 0, "update": 2}.get(operation.stage, 1) for operation in work.operations]
    assert parts == sorted(parts)


def test_tensors_by_hand():
    work = of("mlp", "c-wang-fp8", 32)
    fc1 = {(t.tensor_class, t.name): t for t in work.tensors if t.layer == "fc1"}
    assert (fc1["weights", "weight"].bits, fc1["weights", "bias"].bits) == (8, 16)
    assert fc1["optimiser_state", "weight master"].bytes == 64 * 128 * 2
    assert ("optimiser_state", "bias master") not in fc1  # which products start from as it is
    assert fc1["optimiser_state", "weight velocity"].bytes == 64 * 128 * 2
    assert fc1["weight_gradients", "weight"].bytes == 64 * 128 * 2
    relu = next(n for n, o in enumerate(work.operations) if o.kind == "relu" and o.stage == "backward_data")
    assert fc1["feature_maps", "relu"].live == (1, relu)  # an operand of the last layer, and where it was above 0
    assert work.parameters == 64 * 128 + 128 + 128 * 10 + 10


def test_a_relu_keeps_a_bit():
    """Of a ReLU's result in e6m9 the next product takes e5m2, from which it does not follow where it was above 0."""
    work = of("resnet", "c-wang-fp8", 8)
    relu = next(n for n, o in enumerate(work.operations) if o.layer == "stage1.1.conv1.bn" and "relu" in o.kind)
    maps = {t.name: t for t in tensors(work, "feature_maps", "stage1.1.conv1.bn")}
    elements = 8 * 16 * 8 * 8
    assert (maps["mask"].elements, maps["mask"].bits, maps["mask"].bytes) == (elements, 1, elements // 8)
    assert (maps["relu"].bits, maps["relu"].elements, maps["relu"].live[0]) == (8, elements, relu)
    assert maps["mask"].live[1] > maps["relu"].live[1]


def test_in_one_format_nothing_is_kept_twice():
    """Where everything is binary32, no master copy is, nor any mask: the next product's operand says where x > 0."""
    work = of("mlp", "a-float32", 32)
    assert {t.name for t in tensors(work, "optimiser_state")} == {"weight velocity", "bias velocity"}
    assert not [t for t in work.tensors if t.name == "mask"]
    pooled = [t.layer for t in of("resnet", "a-float32").tensors if t.name == "mask"]
    assert pooled == ["stage3.1.conv2.bn"]  # whose average is all that the last layer takes
    assert {t.format for t in work.tensors} == {"binary32", "binary64"}  # the loss is in binary64


@cases("name", list(NETWORKS))
def test_parameters_and_their_gradients(name):
    work = of(name, "c-wang-fp8")
    network = make_network(name, data=default_data(name))
    from softnum.train.runs.loop import Run

    of_shape = stand_in(default_data(name), 40, network.inputs if network.kind == "text" else None)
    run = Run(Settings(network=name, batch=8), load_design("c-wang-fp8"), 1, data=of_shape)
    sizes = Counter()
    for parameter in run.network.parameters:
        sizes[parameter.layer.name] += parameter.value.size
    held = Counter()
    for tensor in tensors(work, "weights"):
        held[tensor.layer] += tensor.elements
    assert held == sizes and work.parameters == sum(sizes.values())
    updates = 5 + 1 if name == "wgan" else 1
    gradients = {t.layer for t in tensors(work, "weight_gradients")}
    assert gradients == set(sizes) and len(tensors(work, "weight_gradients")) <= updates * len(run.network.parameters)
    assert network.layer_names


def test_blocks_have_a_copy_for_each_direction():
    work = of("mlp", "i-mxfp8", 32)
    assert {t.bits for t in work.tensors if "mxfp8" in t.format} == {8.25}
    copies = [t for t in work.tensors if t.layer == "fc2" and "weight" in t.name and t.format == "mxfp8_e4m3"]
    assert [t.tensor_class for t in copies] == ["weights", "workspace"]  # along K forwards, along N for the error
    inputs = [t for t in work.tensors if t.layer == "fc1" and t.name == "input"]
    assert [t.live[0] for t in inputs] == [0, 0] and len({t.live[1] for t in inputs}) == 2


def test_optimisers_have_their_states():
    adam = of("mlp", "a-float32", 32, optimiser="adam")
    names = {t.name for t in tensors(adam, "optimiser_state", "fc1")}
    assert names == {f"{what} {state}" for what in ("weight", "bias") for state in ("momentum", "second_moment")}
    assert {o.kind for o in adam.operations if o.stage == "update"} == {"adam"}


def test_normalisation_and_pooling_are_named():
    work = of("resnet", "a-float32", 8)
    kinds = {o.kind for o in work.operations if o.stage == "forward"}
    assert {"gemm", "batch_norm+relu", "batch_norm", "add+relu+divide", "softmax_cross_entropy"} & kinds
    assert {t.name for t in tensors(work, "optimiser_state", "bn1")} >= {"mean", "variance"}
    lenet = of("lenet5", "a-float32", 8)
    assert "relu+max_pool2d" in {o.kind for o in lenet.operations} or "max_pool2d" in "".join(
        o.kind for o in lenet.operations
    )
    places = [t for t in lenet.tensors if t.name == "place"]
    assert {t.bits for t in places} == {2}  # which of four
    unfolded = [t for t in lenet.tensors if t.name == "unfolded" and t.layer == "conv1" and t.stage == "forward"]
    gemm = next(g for g in lenet.gemms if g.layer == "conv1" and g.phase == "forward")
    assert [t.elements for t in unfolded] == [gemm.m * gemm.k]


def test_lanes_hold_sums(tmp_path):
    (tmp_path / "lanes.toml").write_text(
        '[roles]\ndefault = "e6m9"\n[units]\nforward = { accumulator = "binary32", lanes = 4 }\n'
    )
    work = of("mlp", load_design(tmp_path / "lanes.toml"), 8)
    lanes = [t for t in work.tensors if t.name == "lanes"]
    assert [(t.layer, t.elements, t.bits) for t in lanes] == [("fc1", 8 * 128 * 4, 32), ("fc2", 8 * 10 * 4, 32)]
    number = next(n for n, o in enumerate(work.operations) if o.layer == "fc2")
    assert lanes[1].live == (number, number)


def test_what_grows_with_the_batch():
    small, large = of("resnet", "c-wang-fp8", 8), of("resnet", "c-wang-fp8", 24)
    for a, b in zip(small.tensors, large.tensors, strict=True):
        assert (a.layer, a.name, a.tensor_class) == (b.layer, b.name, b.tensor_class)
        assert a.per_sample == (a.elements != b.elements)
        if a.tensor_class in ("weights", "weight_gradients", "optimiser_state"):
            assert not a.per_sample
    assert 2.9 < large.flops / small.flops <= 3


def test_gradients_that_are_put_together_are_not_added():
    """The gates of an LSTM share no element of what was read: no sum of their errors is in the carrier's format."""
    work = of("lstm", "c-wang-fp8", 8)
    assert {t.format for t in work.tensors if t.tensor_class == "gradient_maps"} == {"e6m9", "e5m2"}
    assert not any("binary32" in o.formats for o in work.operations)


def test_designs_of_the_users_own(tmp_path):
    (tmp_path / "half.tile").write_text("function (X) -> (Y) { Y = X * 0.5; }\n")
    (tmp_path / "own.toml").write_text('operators = { relu = "half.tile" }\n[roles]\ndefault = "bfloat16"\n')
    work = of("mlp", load_design(tmp_path / "own.toml"), 8)
    assert [o.kind for o in work.operations if "operator" in o.kind] == ["operator half.tile"] * 2
    (tmp_path / "sparse.toml").write_text(
        '[roles]\ndefault = "e6m9"\nweights = { format = "e5m2", sparsity = { pattern = "2:4" } }\n'
        'weight_gradients = { format = "e6m9", sparsity = { top_k = 0.5, feedback = "e6m9" } }\n'
    )
    sparse = of("mlp", load_design(tmp_path / "sparse.toml"), 8)
    assert "weight residual" in {t.name for t in tensors(sparse, "optimiser_state", "fc1")}
    assert {g.sparsity for g in sparse.gemms} == {("dense", "2:4"), ()}
    posit = of("mlp", "h-posit8", 8)
    assert {t.bits for t in posit.tensors if t.format == "posit8"} == {8}
    formats = {name for o in posit.operations for name in o.formats} | {t.format for t in posit.tensors}
    assert not [name for name in formats if ":" in name]  # one name for a format, in products and elsewhere
    assert "posit8" in next(o for o in posit.operations if o.kind == "bias_sum").formats


def test_a_uniform_design_has_one_format():
    work = of("lenet5", uniform_design("bfloat16"), 8)
    assert {t.format for t in work.tensors} == {"bfloat16", "binary64", "index", "bit"}
    blocks = uniform_design("mxfp8_e4m3")
    assert str(blocks.roles["weights"].format) == "mxfp8_e4m3" and str(blocks.roles["default"].format) == "binary32"
    assert uniform_design("float32").roles["default"].format == sn.format("binary32")
    with pytest.raises(ValueError, match="e99"):
        uniform_design("e99")


def test_no_data_file_is_read(monkeypatch):
    monkeypatch.setattr("softnum.train.runs.loop.load_data", lambda *_: pytest.fail("read data"))
    for name in NETWORKS:
        assert of(name, "b-binary16").operations


def test_a_large_batch_takes_no_memory():
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work = of("vgg-small", "c-wang-fp8", 512, data="cifar10")
    assert sum(tensor.bytes for tensor in work.tensors) > 10**9
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10**6  # kB; of one operation at a time


def test_cases_have_their_labels():
    cases = [Case("a-float32", 8), Case("a-float32", 16, "a-float32@16")]
    found = case_workloads(cases, Settings(network="lenet5"))
    assert [(work.design, work.batch, work.network) for work in found] == [
        ("a-float32", 8, "lenet5"), ("a-float32@16", 16, "lenet5"),
    ]  # fmt: skip
    assert found[0] == of("lenet5", "a-float32", 8)


def test_files_hold_them_exactly(tmp_path):
    works = [of("mlp", "i-mxfp8", 8), of("lstm", "c-wang-fp8", 8)]
    write_workloads(tmp_path / "workloads.json", works)
    first = (tmp_path / "workloads.json").read_bytes()
    assert read_workloads(tmp_path / "workloads.json") == works
    write_workloads(tmp_path / "workloads.json", [of("mlp", "i-mxfp8", 8), of("lstm", "c-wang-fp8", 8)])
    assert (tmp_path / "workloads.json").read_bytes() == first


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", r"w\.json, line 1: not JSON"),
        ("[]", "at least one table"),
        ('{"workloads": [], "schema": 1}', "at least one table"),
        ('{"workloads": [1], "schema": 2}', "schema 2 is not known"),
        ('{"workload": []}', "unknown key 'workload'"),
        ('{"network": "a", "design": "b", "batch": 0, "operations": []}', "batch must be at least 1"),
    ],
)
def test_files_that_are_wrong(tmp_path, text, said):
    (tmp_path / "w.json").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_workloads(tmp_path / "w.json")
    with pytest.raises(FileNotFoundError, match="no workload file"):
        read_workloads(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("place", "key", "value", "said"),
    [
        ("operations", "formats", "e5m2", "operation 0: formats must be a list, got 'e5m2'"),
        ("operations", "formats", [5], "operation 0: formats must be names"),
        ("tensors", "per_sample", "false", "tensor 0: per_sample must be true or false, got 'false'"),
        (None, "operations", None, "operations must be a list, got None"),
        (None, "tensors", {"a": 1}, "tensors must be a list"),
    ],
)
def test_values_of_another_kind_are_refused(place, key, value, said):
    table = workload("mlp", load_design("a-float32"), 4).to_table()
    (table if place is None else table[place][0])[key] = value
    with pytest.raises(TypeError, match=re.escape(said)):
        Workload.from_table(table)


def test_how_long_a_tensor_lives_is_checked():
    table = of("mlp", "a-float32", 8).to_table()
    for live, said in (
        ([1, 0], "first and the last"),
        ([0, 99], "there are 13"),
        ([0], "must be"),
        (["0", 1], "integer"),
    ):
        wrong = {**table, "tensors": [{**table["tensors"][0], "live": live}]}
        with pytest.raises(ValueError, match=said):
            Workload.from_table(wrong)


@pytest.mark.parametrize(
    "name", ["cifar10", "de-en", "digits", "fashion-scenes", "japanese-vowels", "movielens", "text"]
)
def test_the_stand_in_has_the_shape_of_the_data(name):
    data = stand_in(name, 12)
    assert len(data.train_y) >= 12 and np.isfinite(np.asarray(data.train_x[:2], float)).all()
    assert replace(data, name="other").name == "other" and Path(name).name == name


def test_sequences_of_a_text_are_as_long_as_the_network_says():
    options = {"sizes": (4, 6), "depth": 1, "steps": 5}
    work = workload("transformer-lm", load_design("a-float32"), 8, network_options=options)
    shapes = [op.gemm.shape for op in work.operations if op.gemm is not None and op.stage == "forward"]
    assert shapes[0] == (40, 12, 4) and shapes[-1] == (40, 256, 4)
