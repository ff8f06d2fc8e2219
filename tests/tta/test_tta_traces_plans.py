"""Traces of steps that are shared in several ways take as long as schedules say, and their ranks can talk."""

from fractions import Fraction

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.tta import Operation
from softnum.tta.parallelism import Parallelism, makespan, plan_step, system
from softnum.tta.simulators import AstraSystem
from softnum.tta.traces import check_ranks, plan_traces, read_trace
from tests.support.chakra import schema_file

WAYS = {
    "1f1b": {"pipeline": 4, "data": 2, "batch": 12},
    "gpipe": {"pipeline": 3, "batch": 4, "schedule": "gpipe"},
    "interleaved": {"pipeline": 2, "batch": 4, "schedule": "interleaved", "chunks": 2},
    "zero-bubble": {"pipeline": 4, "batch": 6, "schedule": "zero-bubble"},
    "tensor": {"pipeline": 2, "tensor": 2, "data": 2, "batch": 4, "zero": 1, "overlap": False},
    "context": {"context": 2, "data": 2, "batch": 2, "zero": 2},
    "weights": {"data": 4, "batch": 8, "zero": 3, "recompute": "full"},
}


def planned(name):
    return plan_step("gpt2", Parallelism(sequence=64, **WAYS[name]))


def cost(operation):
    return Fraction(300 if operation.gemm is not None else 20, 10**6)


def run(job):
    """Seconds until all ranks are done, where what is sent takes no time and a rank computes one node after another."""
    ends, sent, called, free = {}, {}, {}, [Fraction(0)] * job.ranks
    waiting = [(rank, node) for rank in range(job.ranks) for node in job.of(rank).nodes]
    groups = {**job.groups, "": tuple(range(job.ranks))}
    count: dict = {}
    while waiting:
        left = []
        for rank, node in waiting:
            key = (rank, node.id)
            if any((rank, other) not in ends for other in node.data_deps):
                left.append((rank, node))
                continue
            start = max([Fraction(0), *(ends[rank, other] for other in node.data_deps)])
            tag = node.get("comm_tag")
            if node.type == "COMP_NODE":
                ends[key] = free[rank] = max(start, free[rank]) + Fraction(node.duration, 10**6)
            elif node.type == "COMM_SEND_NODE":
                ends[key] = sent[rank, node.get("comm_dst"), tag] = start
            elif node.type == "COMM_RECV_NODE":
                if (node.get("comm_src"), rank, tag) in sent:
                    ends[key] = max(start, sent[node.get("comm_src"), rank, tag])
                else:
                    left.append((rank, node))
            else:
                group = node.get("pg_name", "")
                if (key, "n") not in called:
                    count[rank, group] = called[key, "n"] = count.get((rank, group), 0) + 1
                here = called.setdefault((group, called[key, "n"]), {})
                here[rank] = start
                if len(here) == len(groups[group]):
                    ends[key] = max(here.values())
                else:
                    left.append((rank, node))
        assert len(left) < len(waiting) or any((key, "n") in called for key in [(r, n.id) for r, n in left])
        waiting = left
    return max(ends.values())


@pytest.mark.parametrize("name, joined", [*((name, True) for name in WAYS), ("1f1b", False)])
def test_steps_take_as_long_as_their_schedule(name, joined):
    plan = planned(name)
    job = plan_traces(plan, cost, joined=joined)
    check_ranks([job.of(rank) for rank in range(job.ranks)], job.groups)

    def seconds(kind, number):
        stage = plan.stages[number]
        items = stage.forward if kind == "forward" else stage.backward
        parts = {"backward_data": ("forward", "backward_data"), "backward_weight": ("backward_weight",)}.get(kind)
        return sum(cost(i) for i in items if isinstance(i, Operation) and (parts is None or i.stage in parts))

    _, busy, free = makespan(plan.parallelism, seconds)
    update = [
        sum(cost(i) for stage in plan.of(rank) for i in stage.update if isinstance(i, Operation))
        for rank in range(plan.parallelism.pipeline)
    ]
    for found, parts in ((run(job), free), (job.compute, busy)):
        whole = max(part + last for part, last in zip(parts, update, strict=True))
        assert found * 10**6 == round(whole * 10**6)  # makespan adds in binary64


def test_ranks_differ_in_groups_and_neighbours():
    job = plan_traces(planned("tensor"), cost, joined=True)
    assert job.ranks == 8 and len(job.traces) == 8
    names = {ranks: name for name, ranks in job.groups.items()}
    assert set(names) == {(0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (1, 3), (4, 6), (5, 7)}
    for rank, (tensor, data, other) in {0: ((0, 1), (0, 2), 4), 3: ((2, 3), (1, 3), 7), 6: ((6, 7), (4, 6), 2)}.items():
        nodes = job.of(rank).nodes
        groups = {node.get("pg_name") for node in nodes if node.type == "COMM_COLL_NODE"}
        assert groups == {names[tensor], names[data]}
        ends = {
            node.get("comm_dst", node.get("comm_src")) for node in nodes if node.type.startswith(("COMM_S", "COMM_R"))
        }
        assert ends == {other} and any(node.name == f"send to {other}" for node in nodes)


def test_sizes_and_order_of_exchanges():
    plan = planned("weights")
    nodes = plan_traces(plan, cost).of(0).nodes
    gathers = [node for node in nodes if node.get("comm_type") == 2]
    scatters = [node for node in nodes if node.get("comm_type") == 7]
    assert len(gathers) == 2 * len(scatters) and all(
        4 * node.get("comm_size") == node.get("softnum.bytes") for node in gathers
    )
    assert "algorithm" not in gathers[0].get("softnum.order")
    assert scatters[0].get("softnum.order") == '{"algorithm":"ring","ranks":4,"wire":"bfloat16"}'
    assert gathers[0].data_deps == () and len(gathers[-1].data_deps) == 1  # one block ahead of the computing
    few = plan_traces(plan, cost, bucket=10**12).of(0).nodes
    merged = [node for node in few if node.get("comm_type") == 7]
    assert [node.get("comm_size") for node in merged] == [sum(node.get("comm_size") for node in scatters)]
    first = next(node for node in few if node.get("comm_type") == 2 and len(node.get("softnum.layers")) > 3)
    assert (
        first.get("comm_size")
        == sum(
            node.get("comm_size") for node in gathers if node.get("softnum.layers")[0] in first.get("softnum.layers")
        )
        // 4
    )  # twice in each of two micro-batches


def test_systems_by_name():
    dimensions = AstraSystem.of(system("dgx-h100"), 32).dimensions
    assert [(each.topology, each.ranks, each.latency) for each in dimensions] == [
        ("Switch", 8, Fraction(1, 10**6)), ("Switch", 4, Fraction(5, 2 * 10**6)),
    ]  # fmt: skip
    for ranks, message in [(12, "12 ranks do not fill units of 8 "), (10**6, "has at most 16384 devices, fewer than")]:
        with pytest.raises(ValueError, match=message):
            AstraSystem.of(system("dgx-h100"), ranks)
    with pytest.raises(ValueError, match="ranks must be from 2 to 1048576, got 1"):
        plan_traces(plan_step("gpt2", Parallelism()))


def test_commands(tmp_path):
    proto = schema_file(tmp_path)

    def write(*more):
        words = ["traces", "write", "gpt2", "--system", "dgx-h100", "--precision", "bfloat16", "--sequence", "512"]
        return CliRunner().invoke(build_app(), [*words, "--proto", str(proto), "--out", str(tmp_path / "job"), *more])

    done = write("--ranks", "8", "--tensor", "2", "--pipeline", "2", "--batch", "2", "--joined")
    assert done.exit_code == 0 and "8 ranks (data 2, tensor 2, pipeline 2; 1f1b, ZeRO 0)" in done.output, done.output
    assert "npus_count: [ 8 ]" in (tmp_path / "job" / "network.yml").read_text()
    assert read_trace(tmp_path / "job" / "rank.7.et", proto).count("COMM_RECV_NODE") == 2
    for words, text in [
        (["--ranks", "9", "--tensor", "2"], "--ranks 9 is no multiple of 2 x 1 x 1 ways"),
        (["--ranks", "8", "--device", "v100"], "--device has no effect with --system"),
        (["--ranks", "8", "--tensor", "5"], "no multiple of 5 x 1 x 1"),
        (
            ["--ranks", "8", "--dimensions", "2,4"],
            "--dimensions describes links; add their --bandwidth, or leave it out",
        ),
    ]:
        done = write(*words)
        assert done.exit_code == 2 and text in done.output.replace("\n", " "), done.output
    words = ["traces", "write", "mlp", "--ranks", "2", "--tensor", "2", "--out", str(tmp_path / "job")]
    done = CliRunner().invoke(build_app(), words)
    assert done.exit_code == 2 and "--tensor is for a step on a system; add --system" in done.output
