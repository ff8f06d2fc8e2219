"""What every rank of a job does in one iteration, as Chakra traces: computing, and adding up with the others.

A part of the workload, what a layer does in one stage, is a COMP node. Each waits for the one before, as a device runs
one after another. Durations are whole microseconds in Chakra: the end of every part is rounded, not its length, so that
all of them together are at most half a microsecond from what was given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from softnum.tta.quantities import positive_int
from softnum.tta.traces.trace import Trace, TraceAttribute, TraceNode
from softnum.tta.workloads.exchange import Exchange, gradient_bytes
from softnum.tta.workloads.layer_times import LayerTimes, gradients_made, layer_seconds, parts_in_order
from softnum.tta.workloads.operations import Operation, Workload

__all__ = ["CHAKRA_VERSION", "RankTraces", "data_parallel_traces"]

#: what ASTRA-sim's own examples state; the schema of Chakra 1.0.0 is the same
CHAKRA_VERSION = "0.0.4"

_RING = Exchange()
_MOST = 2**20
_COLLECTIVES = {"all_reduce": 0, "all_gather": 2, "all_to_all": 6, "reduce_scatter": 7}
Units = Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class RankTraces:
    """The traces of a job.

    Parameters
    ----------
    traces : tuple of Trace
        Those that differ.
    of_rank : tuple of int
        For each rank, which of them is its own.
    groups : dict of str to tuple of int
        The ranks of each group that is not all of them, by the name that nodes have in ``pg_name``.
    compute : Fraction
        Seconds that the busiest rank computes, as its trace has them.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> work = workload("mlp", load_design("c-wang-fp8"), 32)
    >>> job = data_parallel_traces(work, 4)
    >>> job.ranks, len(job.traces), [(node.name, node.type) for node in job.of(3).nodes[-4:]]
    (4, 1, [('fc1 backward_weight', 'COMP_NODE'), ('fc1 all_reduce', 'COMM_COLL_NODE'), \
('fc1 update', 'COMP_NODE'), ('fc2 update', 'COMP_NODE')])
    """

    traces: tuple[Trace, ...] = field(repr=False)
    of_rank: tuple[int, ...] = field(repr=False)
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)
    compute: Fraction = Fraction(0)

    @property
    def ranks(self) -> int:
        """How many there are."""
        return len(self.of_rank)

    def of(self, rank: int) -> Trace:
        """The trace of a rank."""
        return self.traces[self.of_rank[rank]]


class Rank:
    """The nodes of one rank, in the order in which it is to begin them.

    Parameters
    ----------
    units : Mapping of (str, str) to str
        By layer and stage, the unit that computes its products, as JSON.
    memory : bool
        Whether what a part reads and writes are nodes of their own.
    joined : bool
        Whether parts between two communications are one node.
    """

    def __init__(self, units: Units, memory: bool = False, joined: bool = False) -> None:
        self.nodes: list[TraceNode] = []
        self.units, self.memory, self.joined = units, memory, joined
        self.last: int | None = None  # computing
        self.clock, self.told = Fraction(0), 0
        self._parts: list[tuple[str, str, tuple[Operation, ...]]] = []  # not written yet
        self._after: tuple[int, ...] = ()

    def _add(self, name, type, after, attributes, duration=0) -> int:
        number = len(self.nodes)
        needed = tuple(sorted({other for other in after if other is not None}))
        cpu = {"is_cpu_op": TraceAttribute("bool_val", False)}
        self.nodes.append(TraceNode(number, name, type, needed, (), 0, duration, attributes={**cpu, **attributes}))
        return number

    def compute(
        self,
        layer: str,
        stage: str,
        operations: Iterable[Operation],
        seconds: Fraction = Fraction(0),
        after: Iterable[int] = (),
    ) -> None:
        """A part of the workload, after the part before it and the nodes `after`."""
        if after:
            self.flush()
            self._after = tuple(after)
        self.clock += seconds
        self._parts.append((layer, stage, tuple(operations)))
        if not self.joined:
            self.flush()

    def flush(self) -> int | None:
        """Write the parts that are not written yet, as one node; the last node that computes."""
        if not self._parts:
            return self.last
        end = round(self.clock * 10**6)
        duration, self.told = end - self.told, end
        operations = [operation for _, _, own in self._parts for operation in own]
        read, written = (sum(getattr(each, what) for each in operations) for what in ("bytes_read", "bytes_written"))
        attributes = {
            "num_ops": TraceAttribute("int64_val", sum(operation.flops for operation in operations)),
            "tensor_size": TraceAttribute("int64_val", read + written),
        }
        units = dict.fromkeys(
            unit
            for layer, stage, own in self._parts
            if any(operation.gemm is not None for operation in own) and (unit := self.units.get((layer, stage)))
        )
        (layer, stage, _), (end_layer, end_stage, _) = self._parts[0], self._parts[-1]
        name = f"{layer} {stage}"
        if self.joined:
            attributes["softnum.parts"] = TraceAttribute("int64_val", len(self._parts))
            name += f" to {end_layer} {end_stage}" if len(self._parts) > 1 else ""
        else:
            rows = tuple(_json(operation.to_table()) for operation in operations)
            attributes |= {
                "softnum.layer": TraceAttribute("string_val", layer),
                "softnum.stage": TraceAttribute("string_val", stage),
                "softnum.operations": TraceAttribute("string_list", rows),
            }
        if units:
            attributes["softnum.units"] = TraceAttribute("string_list", tuple(units))
        after = (self.last, *self._after)
        if self.memory and read:
            size = {"tensor_size": TraceAttribute("int64_val", read)}
            after = (self._add(f"{name} load", "MEM_LOAD_NODE", after, size),)
        self.last = self._add(name, "COMP_NODE", after, attributes, duration)
        if self.memory and written:
            size = {"tensor_size": TraceAttribute("int64_val", written)}
            self.last = self._add(f"{name} store", "MEM_STORE_NODE", (self.last,), size)
        self._parts, self._after = [], ()
        return self.last

    def collective(
        self,
        layers: Sequence[str],
        kind: str,
        size: int,
        whole: int,
        group: str,
        order: Mapping[str, Any],
        after: Iterable[int],
    ) -> int:
        """A collective among the ranks of a group, "" for all; it holds nobody up who does not name it.

        `size` is what the simulators of Chakra's traces take: what a rank has at the beginning; `whole` the vector.
        """
        name = layers[0] if len(layers) == 1 else f"{layers[0]} to {layers[-1]}"
        attributes = {
            "comm_type": TraceAttribute("int64_val", _COLLECTIVES[kind]),
            "comm_size": TraceAttribute("int64_val", size),
            **({"pg_name": TraceAttribute("string_val", group)} if group else {}),
            "softnum.layers": TraceAttribute("string_list", tuple(layers)),
            "softnum.bytes": TraceAttribute("int64_val", whole),
            "softnum.order": TraceAttribute("string_val", _json(order)),
        }
        return self._add(f"{name} {kind}", "COMM_COLL_NODE", after, attributes)

    def message(self, other: int, size: int, tag: int, wire: str, sends: bool, after: Iterable[int]) -> int:
        """A message to another rank, or what waits for the one that it sends."""
        attributes = {
            "comm_dst" if sends else "comm_src": TraceAttribute("int64_val", other),
            "comm_size": TraceAttribute("int64_val", size),
            "comm_tag": TraceAttribute("int64_val", tag),
            "softnum.format": TraceAttribute("string_val", wire),
        }
        name, type = ("send to", "COMM_SEND_NODE") if sends else ("receive from", "COMM_RECV_NODE")
        return self._add(f"{name} {other}", type, after, attributes)

    def trace(self, facts: Mapping[str, object]) -> Trace:
        """All of it, with the facts as attributes of the trace."""
        attributes = {
            f"softnum.{name}": TraceAttribute("int64_val" if isinstance(value, int) else "string_val", value)
            for name, value in {**facts, "nodes": len(self.nodes)}.items()
        }
        return Trace(tuple(self.nodes), CHAKRA_VERSION, attributes)


def check_count(ranks: int) -> None:
    """Raise ValueError unless there are enough ranks to send something, and not more than files can be made for."""
    if not 2 <= positive_int(ranks, "ranks") <= _MOST:
        raise ValueError(
            f"ranks must be from 2 to {_MOST}, got {ranks}: one exchanges nothing, and each has a file of its own"
        )


def _json(table: Mapping[str, Any]) -> str:
    return json.dumps(table, ensure_ascii=False, separators=(",", ":"))


def data_parallel_traces(
    workload: Workload,
    ranks: int,
    *,
    times: LayerTimes | None = None,
    exchange: Exchange = _RING,
    bucket: int = 1,
    units: Units | None = None,
    order: Mapping[str, object] | None = None,
    memory: bool = False,
    joined: bool = False,
) -> RankTraces:
    """What data-parallel workers do: each computes the workload's whole batch, and gradients are added up.

    The order is that of `parallel_time`: a layer's gradients are exchanged when the part that makes the last of them is
    done, and the update follows the last exchange. All ranks have one trace.

    Parameters
    ----------
    workload : Workload
    ranks : int
        At least 2.
    times : Mapping, optional
        Layer -> seconds by stage, as of `parallel_time`. Default: durations are not stated, and whoever runs the traces
        has to tell them from operations and bytes.
    exchange : Exchange
        Its format, its overlap. The latency, and the way in which a collective is carried out, are the simulator's.
    bucket : int
        Bytes: gradients of layers wait for those of the next until so many are together, and are then one message.
    units : Mapping of (str, str) to str, optional
        By layer and stage, the unit of its products as JSON; it stands in the nodes as ``softnum.units``.
    order : Mapping, optional
        More about how gradients are added up than the ring and the format on the wire, such as the adder's unit and
        where a chunk begins; it stands in the nodes as ``softnum.order``, JSON.
    memory : bool
        Whether reads and writes of the parts are MEM_LOAD and MEM_STORE nodes. ASTRA-sim takes those for accesses of
        memory elsewhere.
    joined : bool
        Whether all parts between two exchanges are one node, without its operations: for thousands of ranks, of which
        ASTRA-sim keeps every node in memory.

    Returns
    -------
    RankTraces

    Raises
    ------
    ValueError
        If a number is out of its range, the exchange goes through servers, durations are too short for microseconds, or
        as `parallel_time`.

    Examples
    --------
    >>> from softnum.train import load_design, workload
    >>> work = workload("mlp", load_design("a-float32"), 32)
    >>> job = data_parallel_traces(work, 2, times={"fc1": (3e-3, 0, 3e-3), "fc2": (1e-3, 1e-3, 1e-3)})
    >>> [(node.name, node.duration, node.data_deps) for node in job.of(0).nodes[:3]], float(job.compute)
    ([('fc1 forward', 3000, ()), ('fc2 forward', 1000, (0,)), ('loss forward', 0, (1,))], 0.009)
    """
    check_count(ranks)
    positive_int(bucket, "bucket")
    if exchange.method != "ring":
        raise ValueError(
            f"an exchange by the method {exchange.method!r} is no collective of Chakra; traces have all-reduces"
        )
    if exchange.compression is not None:
        raise ValueError(f"{exchange.compress} is not one all-reduce of each layer, which traces have; state a format")
    seconds = {} if times is None else layer_seconds(workload, times)
    sizes = gradient_bytes(workload, exchange.compress)
    made = gradients_made(workload, sizes)
    own: dict[tuple[str, str], list[Operation]] = {}
    for operation in workload.operations:
        own.setdefault((operation.layer, operation.stage), []).append(operation)
    rank, sums = Rank(units or {}, memory, joined), []
    waiting = sorted((place, layer) for layer, place in made.items())
    told = {"algorithm": "ring", "ranks": ranks, "wire": exchange.compress or _stored(workload), **(order or {})}
    parts = parts_in_order(workload)
    held: list[str] = []

    def send(least: int) -> None:
        if held and (size := sum(sizes[name] for name in held)) >= least:
            sums.append(rank.collective(held, "all_reduce", size, size, "", told, (rank.flush(),)))
            held.clear()

    for place, layer, stage in [*(part for part in parts if part[2] != "update"), (len(workload.operations), "", "")]:
        while waiting and (waiting[0][0] < place if exchange.overlap else not stage):
            held.append(waiting.pop(0)[1])
            send(bucket if waiting else 1)
        if stage:
            rank.compute(layer, stage, own[layer, stage], seconds.get(layer, {}).get(stage, Fraction(0)))
    for _, layer, stage in parts:
        if stage == "update":
            spent = seconds.get(layer, {}).get(stage, Fraction(0))
            rank.compute(layer, stage, own[layer, stage], spent, sums)
            sums = []
    rank.flush()
    check_rounding(workload.network, rank)
    facts = {
        "network": workload.network, "design": workload.design, "batch": workload.batch, "ranks": ranks,
        "parallelism": "data",
    }  # fmt: skip
    return RankTraces((rank.trace(facts),), (0,) * ranks, {}, Fraction(rank.told, 10**6))


def _stored(workload: Workload) -> str:
    """In which formats gradients are stored."""
    found = (tensor.format for tensor in workload.tensors if tensor.tensor_class == "weight_gradients")
    return ", ".join(dict.fromkeys(found))


def check_rounding(network: str, rank: Rank) -> None:
    """Raise ValueError where whole microseconds say something else than what was given: off by more than 1 %."""
    if rank.clock and abs(Fraction(rank.told, 10**6) - rank.clock) * 100 > rank.clock:
        raise ValueError(
            f"{network!r} computes {float(rank.clock * 10**6):.3g} µs, and Chakra's durations are whole µs: a larger "
            "batch, or leave the times out, so that a simulator tells them from operations and bytes (roofline)"
        )
