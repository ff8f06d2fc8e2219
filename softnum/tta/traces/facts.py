"""What a Chakra trace says that softnum asks for: the operations of an iteration, and the time that it took."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

from softnum.tta.traces.trace import Trace, TraceNode
from softnum.tta.workloads.iteration import IterationTime
from softnum.tta.workloads.operations import Operation, Workload

__all__ = ["trace_time", "workload_of_trace"]


def workload_of_trace(trace: Trace, batch: int | None = None) -> Workload:
    """The computing of a trace as a workload.

    Traces that softnum wrote give back their operations as they were. Of others every COMP node is an operation of
    ``num_ops`` FLOPs that moves ``tensor_size`` bytes; its pass is not in the trace, and all count as forward. Tensors
    are in no trace: memory and exchanges cannot be told from it.

    Parameters
    ----------
    trace : Trace
        Of one rank.
    batch : int, optional
        Samples of the iteration, where the trace does not say.

    Returns
    -------
    Workload

    Raises
    ------
    ValueError
        If a node has no such attributes, they contradict each other, or nobody says the batch; the message names file
        and node.

    Examples
    --------
    >>> from softnum.tta.traces import data_parallel_traces
    >>> from softnum.train import load_design, workload
    >>> work = workload("mlp", load_design("a-float32"), 32)
    >>> found = workload_of_trace(data_parallel_traces(work, 2).of(0))
    >>> sorted(map(str, found.operations)) == sorted(map(str, work.operations)), found.flops == work.flops
    (True, True)
    """
    source = trace.source or "the trace"
    said = {
        name: found.value
        for name in ("network", "design", "batch")
        if (found := trace.attributes.get(f"softnum.{name}")) is not None
    }
    if batch is not None and said.get("batch", batch) != batch:
        raise ValueError(f"{source}: is of batch {said['batch']}, not {batch}; leave the batch out")
    if batch is None and "batch" not in said:
        raise ValueError(f"{source}: does not state the number of samples of its iteration; give the batch")
    operations: list[Operation] = []
    for node in trace.nodes:
        if node.type == "COMP_NODE":
            operations += _operations(node, f"{source}: node {node.id} {node.name!r}")
    if not operations:
        raise ValueError(f"{source}: computes nothing: no COMP node")
    return Workload(
        str(said.get("network", "trace")), str(said.get("design", "trace")), said.get("batch", batch), tuple(operations)
    )


def _operations(node: TraceNode, where: str) -> list[Operation]:
    facts = {name: node.get(name) for name in ("num_ops", "tensor_size")}
    for name, value in facts.items():
        if not isinstance(value, int):
            raise ValueError(f"{where} has no whole number {name}, so that its work is not known")
    rows = node.get("softnum.operations")
    if rows is None:
        return [Operation(node.name, "forward", "traced", facts["num_ops"], facts["tensor_size"], 0)]
    found = []
    for at, row in enumerate(rows):
        try:
            table = json.loads(row)
        except (TypeError, ValueError):
            raise ValueError(f"{where}: softnum.operations {at} is no JSON: {str(row)[:60]!r}") from None
        found.append(Operation.from_table(table, f"{where}: softnum.operations {at}"))
    sums = {"num_ops": sum(each.flops for each in found), "tensor_size": sum(each.bytes for each in found)}
    for name, value in sums.items():
        if value != facts[name]:
            raise ValueError(f"{where}: {name} is {facts[name]} where its operations add up to {value}; one is wrong")
    return found


def trace_time(traces: Sequence[Trace], design: str) -> IterationTime:
    """The time that traces of a real run tell: from the first node's start to the last one's end, of the slowest rank.

    Parameters
    ----------
    traces : sequence of Trace
        Of the ranks of one iteration.
    design : str

    Returns
    -------
    IterationTime
        Measured.

    Raises
    ------
    ValueError
        If nodes have no starts and durations: then only a simulator can tell.

    Examples
    --------
    >>> from softnum.tta.traces import Trace, TraceNode
    >>> nodes = (TraceNode(0, "a", "COMP_NODE", start=10, duration=5), TraceNode(1, "b", "COMP_NODE", (0,), start=20,
    ...          duration=10))
    >>> trace_time([Trace(nodes)], "base").seconds
    2e-05
    """
    spans = []
    for rank, trace in enumerate(traces):
        source = trace.source or f"rank {rank}"
        timed = [node for node in trace.nodes if node.duration]
        if not timed:
            raise ValueError(f"{source}: no node has a duration; simulate the trace: softnum traces run")
        if len(timed) > 1 and not any(node.start for node in timed):
            raise ValueError(
                f"{source}: nodes have durations but no start times, so overlap is not known; simulate the trace: "
                "softnum traces run"
            )
        spans.append(max(node.start + node.duration for node in timed) - min(node.start for node in timed))
    if not spans:
        raise ValueError("no trace is given")
    slowest = max(range(len(spans)), key=lambda rank: (spans[rank], -rank))
    detail = {
        "iterations": f"one iteration of {len(spans)} ranks",
        "column": "from the first 'start_time_micros' to the last end, of the slowest rank",
        "ranks": len(spans),
        "slowest_rank": slowest,
    }
    name = traces[slowest].source or "traces"
    seconds = float(Fraction(spans[slowest], 10**6))
    return IterationTime(design, seconds, source=f"Chakra trace {name}", detail=detail, kind="measured")
