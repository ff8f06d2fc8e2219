"""Steps that devices share: groups, schedules, exchanges by hand; shares that add up to the whole; systems; errors."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import Operation, Workload, lower, memory_of, parallel_time
from softnum.tta.architectures import Decoder
from softnum.tta.architectures.large_models import decoders
from softnum.tta.parallelism import (
    EFFICIENCY,
    Communication,
    Parallelism,
    check_memory,
    checkpoints,
    makespan,
    operation_seconds,
    plan_step,
    read_system,
    schedule,
    step_memory,
    step_time,
    system,
)
from softnum.tta.parallelism.calibration import halves, measured_steps, prediction_errors, recipe
from softnum.tta.quantities import bit_rate
from softnum.tta.workloads import Exchange
from tests.support.cases import cases

GPT = Decoder("gpt", layers=4, hidden=64, heads=8, kv_heads=4, vocabulary=512, context=64)
EXPERTS = Decoder(
    "experts", layers=4, hidden=64, heads=8, vocabulary=512, context=64, experts=8, chosen=2, expert_inner=64
)
H100 = system("dgx-h100")


def operations(plan, kind="gemm"):
    return [op for stage in plan.stages for op in (*stage.forward, *stage.backward) if isinstance(op, Operation)]


def sent(plan, group, where="forward"):
    rows = [item for stage in plan.stages for item in getattr(stage, where) if isinstance(item, Communication)]
    return [(item.kind, item.bytes) for item in rows if item.group == group]


def test_groups_by_hand():
    ways = Parallelism(data=2, tensor=2, pipeline=2, context=2, expert=4)
    assert ways.devices == 16
    assert ways.coordinates(13) == {"tensor": 1, "context": 0, "data": 1, "pipeline": 1}
    assert ways.groups("tensor")[:2] == ((0, 1), (2, 3))
    assert ways.groups("context")[:2] == ((0, 2), (1, 3))
    assert ways.groups("data")[:2] == ((0, 2, 4, 6), (1, 3, 5, 7))  # they hold the same weights
    assert ways.groups("expert")[:2] == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert ways.groups("expert_data")[:2] == ((0, 4), (1, 5))
    assert ways.groups("pipeline")[:2] == ((0, 8), (1, 9))
    for group in ("tensor", "context", "data", "expert", "expert_data", "pipeline"):
        members = [rank for each in ways.groups(group) for rank in each]
        assert sorted(members) == list(range(16)), group


@cases("row", [("gpipe", 1, 3.0), ("1f1b", 1, 3.0), ("interleaved", 2, 1.5), ("zero-bubble", 1, 1.0)])
def test_bubbles_are_the_published_ones(row):
    """(p - 1)(f + b) of GPipe and 1F1B, of chunks a share; (p - 1)(f + b - w) of ZB-H1, whose b is without w."""
    name, chunks, each = row
    took = {"forward": 1, "backward": 2, "backward_data": 1, "backward_weight": 1}
    for stages, count in ((2, 4), (4, 8), (8, 32)):
        ways = Parallelism(pipeline=stages, batch=count, schedule=name, chunks=chunks)
        end, busy, _ = makespan(ways, lambda kind, stage: took[kind] / chunks)
        assert busy == [3 * count] * stages
        assert end - busy[0] == pytest.approx((stages - 1) * each)
        for rank in range(stages):
            order = schedule(ways, rank)
            assert len(order) == len(set(order)) == count * chunks * (3 if name == "zero-bubble" else 2)
            kept = {slot[1:] for slot in order if slot.kind == "forward"}
            assert kept == {slot[1:] for slot in order if slot.kind in ("backward", "backward_data")}


def test_micro_batches_on_their_way():
    one = [
        sum(s.kind == "forward" for s in schedule(Parallelism(pipeline=4, batch=8), rank)[: 4 - rank])
        for rank in range(4)
    ]
    assert one == [4, 3, 2, 1]
    memory = {
        name: step_memory(plan_step(GPT, Parallelism(pipeline=4, batch=8, schedule=name))) for name in ("gpipe", "1f1b")
    }
    held = {name: [row["feature_maps"] for row in found.ranks] for name, found in memory.items()}
    middle = sum(block.held for _, block in plan_step(GPT, Parallelism(pipeline=4, batch=8)).stages[1].parts)
    assert held["gpipe"][1] == 8 * middle
    assert held["1f1b"][1] == 3 * middle


@cases(
    "ways",
    [
        Parallelism(), Parallelism(tensor=4), Parallelism(tensor=4, sequence_parallel=False), Parallelism(context=4),
        Parallelism(pipeline=4, batch=4), Parallelism(data=2, tensor=2, pipeline=2, context=2, batch=8),
    ],
)  # fmt: skip
def test_shares_add_up_to_the_whole(ways):
    whole = lower(GPT.architecture(64), ways.micro_batch, "bfloat16", "adam")
    plan = plan_step(GPT, ways)
    products = sum(op.flops for op in operations(plan) if op.kind == "gemm")
    pairs = 64 * 65 // 2
    split = pairs / (64 // ways.context * 65 // 2) / ways.context  # context's shares of a causal mask are rounded down
    attention = [op for op in whole.operations if op.layer.endswith("attention") and op.kind == "gemm"]
    rest = sum(op.flops for op in whole.operations if op.gemm) - sum(op.flops for op in attention)
    assert products * ways.tensor * ways.context == pytest.approx(rest + sum(op.flops for op in attention) / split)
    weights = sum(t.elements for stage in plan.stages for t in stage.tensors if t.tensor_class == "weights")
    norms = sum(t.elements for s in plan.stages for t in s.tensors if t.tensor_class == "weights" and "norm" in t.layer)
    assert (weights - norms) * ways.tensor + norms == whole.parameters
    assert plan.model_flops == 6 * GPT.architecture(64).macs * ways.batch


def test_exchanges_of_tensor_parallelism_by_hand():
    h, s = 64 * 2, 64  # bytes of a word's features, words
    plan = plan_step(GPT, Parallelism(tensor=4))
    block = plan.stages[0].parts[1][1]
    rows = [(item.kind, item.bytes) for item in block.forward if isinstance(item, Communication)]
    assert rows == [("all_gather", s * h), ("reduce_scatter", s * h)] * 2
    back = [(item.kind, item.bytes) for item in block.backward if isinstance(item, Communication)]
    assert back == [("all_gather", s * h), ("all_gather", s * h), ("reduce_scatter", s * h)] * 2
    plain = plan_step(GPT, Parallelism(tensor=4, sequence_parallel=False)).stages[0].parts[1][1]
    assert [item.kind for item in plain.forward if isinstance(item, Communication)] == ["all_reduce"] * 2
    assert [item.kind for item in plain.backward if isinstance(item, Communication)] == ["all_reduce"] * 2
    context = plan_step(GPT, Parallelism(context=4))
    assert sent(context, "context")[0] == ("all_gather", s * 2 * 4 * 8 * 2)  # keys and values of four heads of eight


def test_exchanges_of_experts_by_hand():
    plan = plan_step(EXPERTS, Parallelism(data=4, expert=4, batch=4))
    block = plan.stages[0].parts[1][1]
    rows = [(item.kind, item.group, item.bytes) for item in block.forward if isinstance(item, Communication)]
    assert rows == [("all_to_all", "expert", 2 * 64 * 64 * 2)] * 2  # each word twice, there and back
    own = {t.layer: t.elements for t in block.tensors if t.tensor_class == "weights"}
    assert own["experts.up"] == 2 * 64 * 2 * 64  # two of eight
    update = {item.layer: item.group for item in block.update if isinstance(item, Communication)}
    assert update["qkv"] == "data"
    assert "experts.up" not in update  # nobody else holds these experts
    assert sent(plan_step(EXPERTS, Parallelism(data=4, expert=2, batch=4)), "expert_data", "update")


def test_zero_shares_what_it_says():
    whole = step_memory(plan_step(GPT, Parallelism(data=8, batch=8))).ranks[0]
    for level, shared in ((1, ["optimiser_state"]), (2, ["weight_gradients"]), (3, ["weights"])):
        found = step_memory(plan_step(GPT, Parallelism(data=8, batch=8, zero=level))).ranks[0]
        for name in shared:
            assert found[name] == pytest.approx(whole[name] / 8, rel=0.01)
    assert whole["weights"] == 2 * GPT.architecture().parameters
    kinds = {
        n: [kind for kind, _ in sent(plan_step(GPT, Parallelism(data=8, batch=8, zero=n)), "data", "update")]
        for n in range(4)
    }
    assert set(kinds[0]) == {"all_reduce"}
    assert set(kinds[1]) == {"reduce_scatter", "all_gather"}
    assert kinds[3] == []
    assert len(sent(plan_step(GPT, Parallelism(data=8, batch=8, zero=3)), "data", "backward")) == 2 * len(kinds[0])


def test_recomputation():
    none, full = (plan_step(GPT, Parallelism(recompute=kind)) for kind in ("none", "full"))
    block = full.stages[0].parts[1][1]
    assert block.held == 64 * 64 * 2  # what the layer takes, in bfloat16
    assert len(block.backward) == len(none.stages[0].parts[1][1].backward) + len(block.forward)
    kept, scores = (plan_step(GPT, Parallelism(recompute=kind, fused=False)) for kind in ("selective", "none"))
    assert scores.stages[0].parts[1][1].held - kept.stages[0].parts[1][1].held == 8 * 64 * 64 * 2
    other = plan_step(GPT, Parallelism(recompute="alternate")).stages[0].parts[1][1]
    words = 64 * 64 * 2
    # what the layer takes; queries, keys and values; attention's result and statistics; both halves of the gate
    assert other.held == words + 2 * words + words + 2 * 8 * 64 * 2 + 2 * 4 * words
    first = len(other.backward) - len(none.stages[0].parts[1][1].backward)
    again = [item.layer for item in other.backward[:first]]
    assert again == ["norm1", "rotary", "project", "add1", "norm2", "gate", "down", "add2"]
    times = {plan: step_time(plan, H100).compute for plan in (none, full)}
    assert times[full] > 1.2 * times[none]


def test_data_parallel_steps_are_those_of_parallel_time():
    """On one tier of links, with a roofline that is reached: the same seconds, hidden and exposed."""
    shares = dict.fromkeys(EFFICIENCY, 1.0)
    where = replace(H100, efficiency=shares, launch=0.0, tiers=(replace(H100.tiers[0], bandwidth=1e9, latency=1e-6),))
    for overlap in (True, False):
        plan = plan_step(GPT, Parallelism(data=4, batch=8, micro_batch=2, overlap=overlap))
        work = lower(GPT.architecture(64), 2, "bfloat16", "adam")
        times: dict = {}
        for op in work.operations:
            row = times.setdefault(op.layer, {})
            row[op.stage] = row.get(op.stage, 0.0) + operation_seconds(op, where)
        expected = parallel_time(work, times, 4, bit_rate("8 Gb/s"), Exchange(latency=1e-6, overlap=overlap))
        found = step_time(plan, where)
        assert found.seconds == pytest.approx(float(expected.seconds), rel=1e-9)
        assert found.exposed["data"] == pytest.approx(float(expected.exposed), rel=1e-9)
        assert expected.exposed


def test_memory_of_one_device_is_that_of_its_workload():
    memory = step_memory(plan_step(GPT, Parallelism(micro_batch=2))).ranks[0]
    whole = memory_of(lower(GPT.architecture(64), 2, "bfloat16", "adam"))
    for name in ("weights", "weight_gradients", "optimiser_state"):
        assert memory[name] == whole.allocated[name]
    words = 64 * 2 * 512 * 2  # the layer of words gives its own gradient map and the loss's
    assert memory["feature_maps"] == pytest.approx(whole.allocated["feature_maps"], abs=words)


def test_links_by_hand():
    tensor = Communication("fc", "forward", "all_reduce", "tensor", 8 * 10**9, "bfloat16")
    ideal = replace(H100, efficiency={**H100.efficiency, "link": 1.0})
    lone = 2 * 7 / 8 * 8e9 / 450e9 + 2 * 7 * 2e-6
    assert ideal.seconds(tensor, 8, 1) == pytest.approx(lone)
    # 16 devices of two nodes: the ring's 8 links between the nodes together have 400 GB/s
    assert ideal.seconds(tensor, 16, 1) == pytest.approx(2 * 15 / 16 * 8e9 / 400e9 + 2 * (7 * 2e-6 + 5e-6))
    # the same number of devices, one a node: one link
    assert ideal.seconds(tensor, 16, 8) == pytest.approx(2 * 15 / 16 * 8e9 / 50e9 + 2 * 15 * 5e-6)
    experts = replace(tensor, kind="all_to_all")
    assert ideal.seconds(experts, 16, 1) == pytest.approx(8e9 * 8 / 16 / 50e9 + 5e-6)
    # two copies of a word: half of the time both go to one of the two nodes, and one is sent
    assert ideal.seconds(replace(experts, copies=2), 16, 1) == pytest.approx(8e9 * 3 / 4 * 8 / 16 / 50e9 + 5e-6)
    message = replace(tensor, kind="send_receive")
    assert ideal.seconds(message, 4, 1) == pytest.approx(8e9 / 450e9 + 2e-6)
    assert ideal.seconds(message, 4, 8) == pytest.approx(8e9 / 50e9 + 5e-6)
    assert ideal.seconds(tensor, 1, 1) == 0


def test_checkpoints_by_hand():
    found = checkpoints(devices=100, mtbf=1e6, write=50, restart=0)
    assert found.young == pytest.approx((2 * 50 * 1e4) ** 0.5)
    best = min(range(500, 2000), key=lambda t: (2.718281828459045 ** ((t + 50) / 1e4) - 1) / t)
    assert found.daly == pytest.approx(best, rel=0.002)  # which loses least by the exact formula
    with pytest.raises(ValueError, match="no work is done"):
        checkpoints(devices=10**6, mtbf=1e6, write=500, restart=600)


@pytest.mark.parametrize(
    ("ways", "message"),
    [
        ({"batch": 3, "data": 2}, "2 ways of data parallelism and micro-batches of 1 do not divide a batch of 3"),
        ({"schedule": "interleaved"}, "several chunks"),
        ({"chunks": 2}, "one chunk"),
        ({"schedule": "interleaved", "chunks": 2, "pipeline": 2, "batch": 3}, "a multiple of 2 micro-batches, got 3"),
        ({"expert": 3, "data": 4}, "3 ways of expert parallelism do not divide the 4 devices"),
        ({"zero": 4}, "zero must be one of 0, 1, 2, 3, got 4"),
        ({"recompute": "all"}, "recompute must be one of none, selective, alternate, full"),
        ({"tensor": 0}, "tensor must be"),
        ({"data": 2 * 10**6 + 3, "expert": 2}, "take one of 1, 2000003$"),
        ({"data": 10**9 + 7, "expert": 2}, "shared by at most 16777216 devices"),
        ({"batch": 10**9}, "1000000000 micro-batches in 1 stages are more than 4194304 passes"),
        ({"sequence": 10**12}, "sequence must be at most"),
    ],
)
def test_ways_that_do_not_divide(ways, message):
    with pytest.raises(ValueError, match=message):
        Parallelism(**ways)


@pytest.mark.parametrize(
    ("network", "ways", "message"),
    [
        (GPT, {"tensor": 3}, "tensor=3 does not divide 8 heads of gpt; take one of 1, 2, 4, 8"),
        (GPT, {"pipeline": 8, "batch": 8}, "gpt has 4 layers, fewer than the 8 stages"),
        (GPT, {"context": 3}, "context=3 does not divide 64 tokens"),
        (GPT, {"data": 2, "expert": 2}, "gpt has no experts to distribute"),
        (EXPERTS, {"data": 16, "expert": 16}, "expert=16 does not divide 8 experts"),
        (EXPERTS, {"tensor": 2, "sequence_parallel": False}, "sequence parallelism cannot be left out"),
        ("resnet50", {"tensor": 2}, "resnet50 is no decoder, and shared by samples"),
        ("resnet50", {"recompute": "full"}, "recompute must be none"),
        ("gpt2", {"sequence": 2048}, "1024 rows for 2048 steps"),
    ],
)
def test_networks_that_cannot_be_shared_so(network, ways, message):
    with pytest.raises(ValueError, match=message):
        plan_step(network, Parallelism(**ways))


def test_a_model_that_does_not_fit_says_what_would():
    plan = plan_step("llama3-8b", Parallelism(data=8), "bfloat16")
    message = (
        r"takes 169.4 GB on device 0.*, and a device has 80.0 GB; it would with zero=2, or with tensor=4, or with pipe"
    )
    with pytest.raises(ValueError, match=message):
        check_memory(step_memory(plan), 80 * 10**9, "llama3-8b", "bfloat16")
    check_memory(step_memory(plan), 192 * 10**9, "llama3-8b", "bfloat16")


def test_feature_maps_of_tensor_and_sequence_parallelism_are_the_paper_s():
    """V. Korthikanti et al., table 2: s b h / t (34 + 5 a s / h) bytes a layer, without dropout as in a whole layer;
    2 s b h / t where all of a layer is computed again and words are shared."""
    s, h, a, t = 64, 64, 8, 4
    gpt = Decoder("gpt", layers=1, hidden=h, heads=a, vocabulary=512, context=s, norm="layer", activation="gelu")
    block = plan_step(gpt, Parallelism(tensor=t, fused=False)).stages[0].parts[1][1]
    assert block.held == s * h * (34 - 2) // t + 2 * a * s * s // t
    kept = plan_step(gpt, Parallelism(tensor=t, fused=False, recompute="selective")).stages[0].parts[1][1]
    assert kept.held == s * h * (34 - 2) // t
    assert plan_step(gpt, Parallelism(tensor=t, recompute="full")).stages[0].parts[1][1].held == 2 * s * h // t
    plain = plan_step(gpt, Parallelism(tensor=t, fused=False, sequence_parallel=False)).stages[0].parts[1][1]
    assert plain.held == s * h * (10 - 2 + 24 // t) + 2 * a * s * s // t


FILE = """
[systems.mine]
tiers = [
    { name = "board", devices = 4, bandwidth = "100 GB/s" },
    { name = "wire", devices = 16, bandwidth = "10 GB/s", latency = "5 us" },
]
mtbf = "1000 h"
storage = "1 GB/s"
restart = "5 min"
source = "a guess"

[systems.mine.device]
peaks = { bf16 = "100 TFLOP/s", fp32 = "10 TFLOP/s" }
bandwidth = "1 TB/s"
memory = "40 GB"
source = "a guess"
"""


def test_a_system_of_one_s_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    where = read_system(path)
    assert (where.devices, where.mtbf, where.restart, where.device.memory) == (16, 3.6e6, 300, 40 * 10**9)
    arguments = [
        "parallel",
        "gpt2",
        "--workers",
        "2,4",
        "--system",
        str(path),
        "--tensor",
        "4",
        "--precision",
        "bfloat16",
    ]
    out = tmp_path / "steps.csv"
    result = CliRunner().invoke(build_app(), [*arguments, "--zero", "1", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "failures and checkpoints" in result.output
    assert len(out.read_text().splitlines()) == 3
    result = CliRunner().invoke(build_app(), ["parallel", "gpt2", "--workers", "32", "--system", str(path)])
    assert result.exit_code == 2
    assert "32 devices (32 x 1 x 1 x 1), and mine has at most 16" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("devices = 16", "devices = 6", "6 devices, which are no multiple of the 4"),
        ('mtbf = "1000 h"', "mtbf = 1000", "mtbf must be a number with its unit"),
        ("mtbf", "efficiency = { bf16 = 1.5 }\nmtbf", "bf16 must be at most 1, got 1.5"),
        ("restart", "restarts", "restarts"),
        ("[systems.mine]", "[system]", "systems"),
        ('bandwidth = "10 GB/s"', 'bandwidth = "10 Gb/s"', "bandwidth"),
    ],
)  # fmt: skip
def test_systems_that_are_none(tmp_path, old, new, message):
    path = tmp_path / "mine.toml"
    path.write_text(FILE.replace(old, new))
    with pytest.raises((ValueError, TypeError), match=message):
        read_system(path)


def test_options_that_have_no_part():
    def fails(message, *arguments):
        result = CliRunner().invoke(build_app(), ["parallel", "gpt2", "--workers", "2", *arguments])
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())

    fails("--latency has no effect with --system", "--system", "dgx-h100", "--latency", "5 us")
    fails("batch must be at least 1, got 0", "--system", "dgx-h100", "--batch", "0")
    fails("--tensor is for a step on a system", "--bandwidth", "1 Gb/s", "--tensor", "2")
    fails("state the workers' links", "--device", "v100")
    fails("unknown system 'dgx-h10'; did you mean 'dgx-h100'?", "--system", "dgx-h10")


def test_every_shipped_model_can_be_planned():
    for name, decoder in decoders().items():
        small = replace(decoder, layers=decoder.dense + 2)
        plan = plan_step(small, Parallelism(pipeline=2, batch=2, sequence=64), "bfloat16")
        assert step_time(plan, H100).seconds > 0, name
        assert step_memory(plan).peak > 0
        assert isinstance(Workload(name, "x", 1, tuple(operations(plan))).flops, int)


def test_published_steps_are_read():
    steps = measured_steps()
    assert len(steps) == 92
    row = next(step for step in steps if step.group == "korthikanti" and step.model == "gpt3-175b")
    assert (row.seconds, row.ways.devices, row.ways.chunks, row.ways.recompute) == (18.13, 64, 3, "full")
    row = next(step for step in steps if step.model == "megatron-1008b" and step.group == "megatron")
    # equation 3 with 163 TFLOP/s: 84 days for 450 billion words in the paper's section 5.1
    assert 450e9 / (row.words * 3072) / 86400 == pytest.approx(84, abs=1.5)
    first, second = halves(steps, "models")
    assert len(first) + len(second) == 92
    assert not {(step.system, step.model) for step in first} & {(step.system, step.model) for step in second}
    first, second = halves(steps, "systems")
    assert not {step.system for step in first} & {step.system for step in second}
    assert recipe("nvfp4").at("layer1.up").operand("backward_data", "errors").name == "nvfp4"
    assert recipe("fp8").at("layer1.router").operand("forward", "weights").name == "bfloat16"
    assert recipe("fp8").activations.name == "bfloat16"


def test_some_published_steps_are_predicted():
    """Those of V. Korthikanti et al. with the paper's own way, which are cheap to plan; the page has all."""
    steps = [s for s in measured_steps() if s.group == "korthikanti" and s.ways.pipeline < 35]
    assert max(map(abs, prediction_errors(steps))) < 0.15
    counted = [
        step
        for step in measured_steps()
        if step.gib and step.ways.recompute == "alternate" and step.system != "dgx-h200"
    ]
    for step in counted:  # of TorchTitan, Llama 3 8B on 8 and on 128 devices
        assert step_memory(step.plan).peak / 2**30 == pytest.approx(step.gib, rel=0.03)
