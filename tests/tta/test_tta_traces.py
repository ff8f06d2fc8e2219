"""Chakra traces: what is written is read back, byte for byte the same, and what cannot run is refused."""

import gzip
import json
from dataclasses import replace
from fractions import Fraction

import pytest
from typer.testing import CliRunner

from softnum.cli import build_app
from softnum.train import load_design, workload
from softnum.tta import parallel_time, read_workloads
from softnum.tta.traces import (
    Trace,
    TraceAttribute,
    TraceIO,
    TraceNode,
    check_ranks,
    data_parallel_traces,
    load_chakra_schema,
    read_trace,
    trace_time,
    workload_of_trace,
    write_trace,
    write_traces,
)
from softnum.tta.traces.trace import check_graph
from softnum.tta.workloads import Exchange
from tests.support.chakra import schema_file

TIMES = {"fc1": (3e-3, 0, 3e-3, 1e-3), "fc2": (1e-3, 1.5e-3, 1e-3)}


@pytest.fixture(scope="module")
def proto(tmp_path_factory):
    return schema_file(tmp_path_factory.mktemp("schema"))


@pytest.fixture(scope="module")
def work():
    return workload("mlp", load_design("c-wang-fp8"), 32)


def node(number, *deps, **facts):
    return TraceNode(number, f"n{number}", facts.pop("type", "COMP_NODE"), deps, **facts)


def test_layout(proto, tmp_path):
    # GlobalMetadata {1: "0.0.4"}, Node {1: 1, 2: "a", 3: 4, 7: 300}: lengths, then wire format by hand
    write_trace(tmp_path / "a.0.et", Trace((TraceNode(1, "a", "COMP_NODE", duration=300),), "0.0.4"), proto)
    assert (
        tmp_path / "a.0.et"
    ).read_bytes() == b"\x07\x0a\x05" + b"0.0.4" + b"\x0a\x08\x01\x12\x01a\x18\x04\x38\xac\x02"


def test_round_trip(proto, work, tmp_path):
    job = data_parallel_traces(work, 3, times=TIMES, units={("fc1", "forward"): '{"kind":"mad"}'}, memory=True)
    paths = write_traces(tmp_path / "job", job, proto)
    first = [path.read_bytes() for path in paths]
    read = read_trace(paths[0], proto)
    assert replace(read, source="") == job.of(0)
    assert read.nodes[1].get("softnum.units") == ('{"kind":"mad"}',)
    assert [path.read_bytes() for path in write_traces(tmp_path / "job", job, proto)] == first  # over the old one
    packed = write_traces(tmp_path / "packed", job, proto, compress=True)
    assert gzip.decompress(packed[2].read_bytes()) == first[2] == first[0]
    assert read_trace(packed[2], proto).nodes == read.nodes
    full = replace(
        read.nodes[0], inputs=TraceIO("[1]", "[[2]]", '["f"]'), ctrl_deps=(1,), start=7,
        attributes={"x": TraceAttribute("double_val", 0.5, "doc"), "none": TraceAttribute("string_list", ())},
    )  # fmt: skip
    other = Trace((full, node(1)), "1.0.0", {"a": TraceAttribute("int64_list", (-1, 2**62))})
    write_trace(tmp_path / "b.et.gz", other, proto)
    assert replace(read_trace(tmp_path / "b.et.gz", proto), source="") == other


def test_workload_comes_back(proto, work, tmp_path):
    paths = write_traces(tmp_path, data_parallel_traces(work, 2), proto)
    trace = read_trace(paths[0], proto)
    found = workload_of_trace(trace)
    assert sorted(map(repr, found.operations)) == sorted(map(repr, work.operations))
    assert (found.network, found.design, found.batch) == ("mlp", "c-wang-fp8", 32)
    with pytest.raises(ValueError, match=r"is of batch 32, not 8"):
        workload_of_trace(trace, 8)
    wrong = replace(trace.nodes[0], attributes={**trace.nodes[0].attributes, "num_ops": TraceAttribute("int64_val", 1)})
    with pytest.raises(ValueError, match=r"node 0 'fc1 forward': num_ops is 1 where its operations add up to 528384"):
        workload_of_trace(replace(trace, nodes=(wrong, *trace.nodes[1:])))
    foreign = {name: TraceAttribute("int64_val", value) for name, value in (("num_ops", 64), ("tensor_size", 8))}
    assert workload_of_trace(Trace((node(0, attributes=foreign),)), 4).flops == 64
    with pytest.raises(ValueError, match="give the batch"):
        workload_of_trace(Trace((node(0, attributes=foreign),)))
    with pytest.raises(ValueError, match="node 0 'n0' has no whole number num_ops"):
        workload_of_trace(Trace((node(0),)), 4)


def finish(nodes, cost):
    """Seconds until all nodes are done: one computes at a time and one is sent at a time, the lowest number first."""
    ends, free = {}, {"COMP_NODE": Fraction(0), "COMM_COLL_NODE": Fraction(0)}
    for each in nodes:
        start = max([free[each.type], *(ends[other] for other in each.data_deps)])
        ends[each.id] = free[each.type] = start + cost(each)
    return max(ends.values())


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("compress, joined", [(None, False), ("e5m2", False), (None, True)])
def test_traces_take_as_long_as_the_model_says(work, overlap, compress, joined):
    exchange = Exchange(Fraction(1, 10**5), compress=compress, overlap=overlap)
    rate = 10**7
    job = data_parallel_traces(work, 4, times=TIMES, exchange=exchange, joined=joined)

    def cost(each):
        if each.type == "COMP_NODE":
            return Fraction(each.duration, 10**6)
        load, wait = exchange.cost(4, 8 * each.get("comm_size"), 0)
        return load / rate + wait

    model = parallel_time(work, {k: [Fraction(str(x)) for x in v] for k, v in TIMES.items()}, 4, rate, exchange)
    assert finish(job.of(3).nodes, cost) == model.seconds
    assert job.compute == model.compute


def test_buckets_and_rounding(work):
    job = data_parallel_traces(work, 2, times=TIMES, bucket=10**6)
    sums = [each for each in job.of(0).nodes if each.type == "COMM_COLL_NODE"]
    assert [(each.name, each.get("comm_size")) for each in sums] == [("fc2 to fc1 all_reduce", 2580 + 16640)]
    thirds = {layer: (Fraction(1000004, 3 * 10**9),) * 3 for layer in ("fc1", "fc2")}
    assert abs(data_parallel_traces(work, 2, times=thirds).compute - Fraction(6 * 1000004, 3 * 10**9)) <= Fraction(
        1, 2 * 10**6
    )
    with pytest.raises(ValueError, match=r"'mlp' computes 6 µs.*whole µs|computes 5.4"):
        data_parallel_traces(work, 2, times={"fc1": (1.4e-6, 0, 4e-6)})
    for ranks in (1, 10**9):
        with pytest.raises(ValueError, match=f"ranks must be from 2 to 1048576, got {ranks}"):
            data_parallel_traces(work, ranks)
    with pytest.raises(ValueError, match="'server' is no collective"):
        data_parallel_traces(work, 2, exchange=Exchange(method="server"))


@pytest.mark.parametrize(
    "nodes, message",
    [
        ([node(0), node(0)], "my.et: node 0 'n0' has the number of 'n0'"),
        ([node(0, 7)], "my.et: node 0 'n0' has a data dependency on node 7, which is not"),
        ([node(0, ctrl_deps=(7,))], "a control dependency on node 7"),
        ([node(0, 0)], "nodes 0 'n0' -> 0 'n0' wait for each other"),
        ([node(0), node(1, 0, 3), node(2, 1), node(3, 2)], "nodes 1 'n1' -> 3 'n3' -> 2 'n2' -> 1 'n1' wait"),
        ([node(9), *(node(i, (i + 1) % 9) for i in range(9))], r"0 'n0' -> 1 'n1' .* -> \.\.\. -> "),
    ],
)
def test_graphs_that_cannot_run(nodes, message):
    with pytest.raises(ValueError, match=message):
        check_graph(nodes, "my.et")


def test_files_that_are_none(proto, work, tmp_path):
    path = write_traces(tmp_path, data_parallel_traces(work, 2), proto)[0]
    data = path.read_bytes()
    for size in (0, 1, 5, 100, 300, len(data) - 1, data.index(b"fc2 update") - 5):
        (tmp_path / "cut.et").write_bytes(data[:size])
        with pytest.raises(ValueError, match=r"cut\.et: "):
            read_trace(tmp_path / "cut.et", proto)
    schema = load_chakra_schema(proto)
    for content, message in [
        (b'{"nodes": []}', "message 0, byte 0: it says 123 bytes and 12 are left"),
        (b"\xff" * 20, "no length of a message"),
        (b"\x00", "metadata and no node"),
        (b"\x00\x02\x18\x63", "node 0 '' has the unknown type 99; the schema knows INVALID_NODE"),
        (b"\x00\x02\x0a\x05", "message 1, byte 1: no Node of the schema"),
        (b"\x00\x05\x52\x03\x0a\x01a", "node 0 '' has the attribute 'a' without a value"),
        (gzip.compress(data)[:-9], "gzip file is damaged or cut off"),
    ]:
        (tmp_path / "bad.et").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_trace(tmp_path / "bad.et", schema=schema)
    with pytest.raises(FileNotFoundError, match=r"no trace '.*none.et'"):
        read_trace(tmp_path / "none.et", proto)
    with pytest.raises(ValueError, match="node 0 'n0' cannot be written: the schema has no value 'float8_val'"):
        write_trace(tmp_path / "x", Trace((node(0, attributes={"a": TraceAttribute("float8_val", 1)}),)), proto)
    with pytest.raises(ValueError, match="node 0 'n0' has the type 'COMP'; the schema has INVALID_NODE"):
        write_trace(tmp_path / "x", Trace((node(0, type="COMP"),)), proto)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "rank.0.et").write_bytes(b"mine")
    with pytest.raises(ValueError, match="of no job that softnum wrote, so it stays"):
        write_traces(tmp_path / "other", data_parallel_traces(work, 2), proto)


def test_files_that_were_changed_and_jobs_that_are_not_whole(proto, work, tmp_path):
    """A byte of a node that is another one's, a node that is missing, and ranks or groups that are not the job's."""
    path = write_traces(tmp_path, data_parallel_traces(work, 3, times=TIMES), proto)[0]
    data = path.read_bytes()
    for old, new in ((b"fc1 forward", b"fc2 forward"), (b"num_ops", b"num_opt")):
        (tmp_path / "changed.et").write_bytes(data.replace(old, new, 1))
        with pytest.raises(ValueError, match=r"its \d+ nodes are not those that were written"):
            read_trace(tmp_path / "changed.et", proto)
    trace = read_trace(path, proto)
    assert "softnum.sha256" not in trace.attributes
    write_trace(
        tmp_path / "again.et", replace(trace, nodes=(replace(trace.nodes[0], name="new"), *trace.nodes[1:])), proto
    )
    assert read_trace(tmp_path / "again.et", proto).nodes[0].name == "new"
    (tmp_path / "groups.json").write_text('{"1": [0, 1]}')
    for ranks, more, message in (
        (2, (), "the job has 3 ranks, and 2 are there"),
        (3, ("--groups", tmp_path / "groups.json"), "the job has 0 groups, and 1 are there"),
    ):
        files = [tmp_path / f"rank.{rank}.et" for rank in range(ranks)]
        words = ["traces", "read", *files, "--together", "--proto", proto, *more]
        done = CliRunner().invoke(build_app(), [str(word) for word in words])
        assert done.exit_code == 2 and message in done.output.replace("\n", " ")


def test_schemas(proto, tmp_path, monkeypatch):
    monkeypatch.delenv("SOFTNUM_CHAKRA_PROTO", raising=False)
    with pytest.raises(FileNotFoundError, match="name the file by --proto, proto= or SOFTNUM_CHAKRA_PROTO"):
        load_chakra_schema()
    monkeypatch.setenv("SOFTNUM_CHAKRA_PROTO", str(proto))
    assert load_chakra_schema() is load_chakra_schema(proto)
    bad = tmp_path / "bad.proto"
    for text, message in [
        ("message", "protoc does not compile it: .*bad.proto"),
        (
            'syntax = "proto3"; package ChakraProtoMsg; message Node { uint64 id = 1; }',
            "no message ChakraProtoMsg.Glob",
        ),
        (proto.read_text().replace("data_deps", "parents"), "ChakraProtoMsg.Node has no field 'data_deps'"),
        (proto.read_text().replace("COMP_NODE", "COMPUTE"), "NodeType has no COMP_NODE"),
    ]:
        bad.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_chakra_schema(bad)


def message(what, number=0, **facts):
    attributes = {f"comm_{name}": TraceAttribute("int64_val", value) for name, value in facts.items()}
    return node(number, type=what, attributes=attributes)


def test_ranks_that_wait_for_each_other():
    send, receive = message("COMM_SEND_NODE", dst=1, size=8), message("COMM_RECV_NODE", src=0, size=8)
    check_ranks([Trace((send,)), Trace((receive,))])
    calls = [message("COMM_COLL_NODE", i, type=0, size=8 * i) for i in range(3)]
    check_ranks([Trace(tuple(calls))] * 3)
    grouped = replace(calls[0], attributes={**calls[0].attributes, "pg_name": TraceAttribute("string_val", "1")})
    check_ranks([Trace((grouped,)), Trace((grouped,)), Trace((node(0),))], {"1": (0, 1)})
    for traces, groups, text in [
        (((send,), (node(0),)), {}, "rank 0: node 0 'n0' sends 8 bytes to rank 1, tag 0, which receives no such"),
        (((node(0),), (receive,)), {}, "rank 1: node 0 'n0' receives 8 bytes of rank 0, tag 0, which sends no such"),
        (((send,),), {}, "names the rank 1; there are 0 to 0"),
        (((calls[0], calls[1]), (calls[0], calls[2])), {}, "rank 0 calls node 1 'n1' with 8 bytes where rank 1 calls"),
        (((calls[0], calls[1]), (calls[0],)), {}, "rank 0 calls 2 collectives, rank 1 1"),
        (((grouped,),) * 2, {}, "of the group '1', which there is not"),
        (((grouped,),) * 3, {"1": (0, 1)}, "rank 2: node 0 'n0' is of the group '1', without rank 2"),
        (((grouped,),) * 2, {"1": (0, 2)}, r"group '1' has the ranks \[0, 2\]; there are 0 to 1"),
    ]:
        with pytest.raises(ValueError, match=text):
            check_ranks([Trace(nodes) for nodes in traces], groups)


def test_times_of_traces():
    timed = Trace((node(0, start=5, duration=10), node(1, 0, start=20, duration=5), node(2, start=0)))
    slower = replace(timed, nodes=(*timed.nodes, node(3, start=30, duration=10)))
    time = trace_time([timed, slower], "base")
    assert (time.seconds, time.kind, time.detail["slowest_rank"]) == (35e-6, "measured", 1)
    for nodes, text in [
        ((node(0),), "no node has a duration"),
        ((node(0, duration=1), node(1, duration=2)), "no start times"),
    ]:
        with pytest.raises(ValueError, match=text):
            trace_time([Trace(nodes)], "base")


def test_commands(proto, tmp_path):
    def run(*words):
        return CliRunner().invoke(build_app(), ["traces", *map(str, words)])

    options = ["--proto", proto, "--out", tmp_path / "job", "--batch", 4096, "--design", "c-wang-fp8"]
    done = run("write", "mlp", "--ranks", 4, "--bandwidth", "100 Gb/s,10 Gb/s", "--dimensions", "2,2", *options)
    assert done.exit_code == 0, done.output
    assert "bandwidth: [ 11.641532182693481, 1.1641532182693481 ]" in (tmp_path / "job" / "network.yml").read_text()
    trace = read_trace(tmp_path / "job" / "rank.3.et", proto)
    unit = json.loads(trace.nodes[0].get("softnum.units")[0])
    assert (unit["accumulator"], unit["chunk"], unit["reduction"]) == ("e6m9", 64, "sequential")
    files = [tmp_path / "job" / f"rank.{rank}.et" for rank in range(4)]
    done = run("read", *files[::-1], "--together", "--proto", proto, "--out", tmp_path / "w.json")
    assert done.exit_code == 0 and "every graph can run" in done.output
    assert read_workloads(tmp_path / "w.json")[0].batch == 4096
    for words, text in [
        (["read", *files[:2], files[3], "--together", "--proto", proto], "rank 3 where rank 2 comes next"),
        (["write", "mlp", "--ranks", 8, "--bandwidth", "1 Gb/s", "--dimensions", "2,2", *options], "2 x 2 = 4 ranks"),
        (["write", "mlp", "--ranks", 4, "--latency", "1 us", *options], "--latency describes links"),
        (
            ["write", "mlp", "--ranks", 4, "--bandwidth", "1 Gb/s", "--topology", "Torus", *options],
            "one of Ring, F",
        ),
        (["run", tmp_path / "job", "--program", tmp_path / "none"], "no program"),
        (["run", tmp_path, "--program", tmp_path / "none"], "name a folder that softnum traces write has made"),
    ]:
        done = run(*words)
        assert done.exit_code == 2 and text in done.output.replace("\n", " "), done.output
