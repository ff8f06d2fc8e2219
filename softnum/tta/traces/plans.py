"""A step that is shared among devices in several ways, as Chakra traces: a trace for every rank.

What a rank computes and sends follows from its stage of the pipeline, in the order of the schedule:

- exchanges between the parts of a layer, of words and of experts hold up what comes after them;
- weights that ZeRO 3 shares are gathered one block ahead of the computing; their gradients leave meanwhile, and what
  of a bucket is left of one micro-batch goes with the next;
- a message to another stage leaves when it is there, and the pass of that stage waits for it;
- gradients leave while the last micro-batch's backward pass goes on (or after it, without overlap), and the optimiser
  waits for all of them; weights that ZeRO 1 and 2 share are gathered after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from softnum.tta.parallelism import Communication, Stage, StepPlan
from softnum.tta.quantities import positive_int
from softnum.tta.traces.ranks import Rank, RankTraces, Units, check_count, check_rounding
from softnum.tta.traces.trace import Trace, TraceAttribute
from softnum.tta.workloads.operations import Operation

__all__ = ["plan_traces"]

_WEIGHTS = ("data", "expert_data")  # groups that share samples: what they exchange are weights and their gradients
_PARTS = {"backward_data": ("forward", "backward_data"), "backward_weight": ("backward_weight",)}


def plan_traces(
    plan: StepPlan,
    seconds: Callable[[Operation], float] | None = None,
    *,
    bucket: int = 1,
    units: Units | None = None,
    joined: bool = False,
) -> RankTraces:
    """What every device of a step does.

    Parameters
    ----------
    plan : StepPlan
        As `plan_step` makes it.
    seconds : callable, optional
        What an operation takes, such as ``lambda operation: operation_seconds(operation, where)``. Default: durations
        are not stated.
    bucket : int
        Bytes: gradients of layers wait for those of the next until so many are together, and are then one message.
    units : Mapping of (str, str) to str, optional
        By layer and stage, the unit of its products as JSON.
    joined : bool
        Whether all that is computed between two exchanges is one node.

    Returns
    -------
    RankTraces

    Raises
    ------
    ValueError
        If there is one device alone, or durations are too short for microseconds.

    Examples
    --------
    >>> from softnum.tta.parallelism import Parallelism, plan_step
    >>> job = plan_traces(plan_step("gpt2", Parallelism(data=2, tensor=2, sequence=512)), joined=True)
    >>> job.ranks, job.groups["2"], [node.name for node in job.of(0).nodes[:2]]
    (4, (2, 3), ['embedding forward', 'embedding.sum reduce_scatter'])
    """
    positive_int(bucket, "bucket")
    check_count(plan.devices)
    groups = _Groups(plan)
    facts = {
        "network": plan.network, "design": plan.design, "batch": plan.parallelism.batch, "ranks": plan.devices,
        "parallelism": _ways(plan),
    }  # fmt: skip
    costs: dict[Operation, Fraction] = {}

    def cost(operation: Operation) -> Fraction:
        if seconds is None:
            return Fraction(0)
        if operation not in costs:
            costs[operation] = Fraction(seconds(operation))
        return costs[operation]

    devices, first = [], {}
    for stage in range(plan.parallelism.pipeline):
        device = _Device(plan, stage, groups, Rank(units or {}, joined=joined), cost, bucket)
        device.run()
        check_rounding(plan.network, device.rank)
        devices.append((device, device.rank.trace(facts)))
    traces, of_rank = [], []
    for number in range(plan.devices):
        device, trace = devices[number // groups.stride]
        like = device.like(number)
        if like not in first:
            first[like] = len(traces)
            traces.append(device.of(number, trace))
        of_rank.append(first[like])
    busiest = max(device.rank.told for device, _ in devices)
    kinds = {kind for device, _ in devices for kind in device.kinds.values()}
    used = {own[kind] for own in groups.own for kind in kinds if kind in own}
    members = {name: ranks for name, ranks in groups.members.items() if name in used}
    return RankTraces(tuple(traces), tuple(of_rank), members, Fraction(busiest, 10**6))


def _ways(plan: StepPlan) -> str:
    ways = plan.parallelism
    names = ("data", "tensor", "context", "expert", "pipeline")
    text = ", ".join(f"{name} {getattr(ways, name)}" for name in names if getattr(ways, name) > 1)
    return f"{text}; {ways.schedule}, ZeRO {ways.zero}"


class _Groups:
    """Groups of ranks by name, and where the stages of a pipeline are."""

    def __init__(self, plan: StepPlan) -> None:
        self.members: dict[str, tuple[int, ...]] = {}
        self.own: list[dict[str, str]] = [{} for _ in range(plan.devices)]
        self.size: dict[str, int] = {}
        self.stride = plan.devices // plan.parallelism.pipeline
        names: dict[tuple[int, ...], str] = {tuple(range(plan.devices)): ""}
        for kind in ("tensor", "context", "data", "expert", "expert_data"):
            for ranks in plan.groups(kind):
                self.size[kind] = len(ranks)
                if len(ranks) > 1:
                    if ranks not in names:
                        names[ranks] = str(len(names))
                        self.members[names[ranks]] = ranks
                    name = names[ranks]
                    for rank in ranks:
                        self.own[rank][kind] = name

    def at(self, rank: int, stage: Stage) -> int:
        """The rank that has a stage of the same micro-batches."""
        return rank % self.stride + stage.rank * self.stride


class _Device:
    """The step of the first device of a pipeline's stage; others differ in their groups and neighbours alone."""

    def __init__(self, plan: StepPlan, stage: int, groups: _Groups, rank: Rank, cost, bucket: int) -> None:
        self.plan, self.groups, self.rank, self.cost, self.bucket = plan, groups, rank, cost, bucket
        self.ways, self.pipeline, self.number = plan.parallelism, stage, stage * groups.stride
        self.sums: list[int] = []  # exchanges of gradients under way
        self.ahead: int | None = None  # the node after which weights of the next block are gathered
        self.after: list[int] = []  # what the next part waits for
        self.held: list[Communication] = []  # what waits until it fills a bucket
        self.kinds: dict[int, str] = {}  # of collectives: node -> kind of group
        self.neighbours: dict[int, Stage] = {}  # of messages: node -> stage of the other rank

    def like(self, number: int) -> tuple[Any, ...]:
        """What the trace of one of the stage's devices depends on."""
        own = self.groups.own[number]
        return (
            self.pipeline,
            *(own[kind] for kind in sorted(set(self.kinds.values()))),
            number if self.neighbours else 0,
        )

    def of(self, number: int, trace: Trace) -> Trace:
        """The trace of one of the stage's devices."""
        nodes = list(trace.nodes)
        for at, kind in self.kinds.items():
            attributes = {name: value for name, value in nodes[at].attributes.items() if name != "pg_name"}
            group = self.groups.own[number][kind]
            named = {"pg_name": TraceAttribute("string_val", group)} if group else {}
            nodes[at] = replace(nodes[at], attributes={**attributes, **named})
        for at, stage in self.neighbours.items():
            other = self.groups.at(number, stage)
            name = "comm_dst" if nodes[at].type == "COMM_SEND_NODE" else "comm_src"
            attributes = {**nodes[at].attributes, name: TraceAttribute("int64_val", other)}
            nodes[at] = replace(nodes[at], name=f"{nodes[at].name.rpartition(' ')[0]} {other}", attributes=attributes)
        return replace(trace, nodes=tuple(nodes))

    def run(self) -> None:
        """All of it: the schedule's passes, the exchange of gradients, the update."""
        slots = self.plan.order(self.pipeline)
        last = {slot.stage: n for n, slot in enumerate(slots) if slot.kind.startswith("backward")}
        for n, slot in enumerate(slots):
            stage = self.plan.stages[slot.stage]
            self._receive(slot, stage)
            leaving = self._leaving(stage) if self.ways.overlap and last.get(slot.stage) == n else {}
            items = stage.forward if slot.kind == "forward" else stage.backward
            if slot.kind in _PARTS:
                items = [item for item in items if item.stage in _PARTS[slot.kind]]
            self._pass(items, slot, stage, leaving)
        stages = self.plan.of(self.pipeline)
        if not self.ways.overlap:
            for stage in stages:
                for rows in self._leaving(stage).values():
                    self._hold(rows)
        self._leave()
        for stage in stages:
            for item in stage.update:
                if isinstance(item, Operation):
                    self.after += self.sums
                    self.sums = []
                    self._compute(item)
        for stage in stages:
            self._hold([item for item in stage.update if isinstance(item, Communication) and item.stage == "update"])
        self._leave()
        self.rank.flush()

    def _pass(self, items, slot, stage: Stage, leaving: dict[str, list[Communication]]) -> None:
        ends: dict[str, int] = {}  # of each layer with gradients, what it or a part of it computes last
        for place, item in enumerate(items):
            if isinstance(item, Operation):
                ends.update((name, place) for name in _owners(item.layer) if name in leaving)
        done: dict[int, list[str]] = {}
        for name, place in ends.items():
            done.setdefault(place, []).append(name)
        gathered: list[Communication] = []
        for place, item in enumerate(items):
            if isinstance(item, Communication) and item.group in _WEIGHTS and item.kind == "all_gather":
                gathered.append(item)
                continue
            if gathered:
                self._gather(gathered)
                gathered = []
            if isinstance(item, Operation):
                self._compute(item)
                for name in done.get(place, ()):
                    self._hold(leaving.pop(name))
            elif item.kind == "send_receive":
                self._send(item, slot, stage)
            elif item.group in _WEIGHTS:
                self._hold([item])
            elif self.groups.size[item.group] > 1:
                self.after.append(self._collective([item], (self.rank.flush(), *self.after)))
        for rows in leaving.values():  # of layers that compute nothing here
            self._hold(rows)

    def _compute(self, operation: Operation) -> None:
        self.rank.compute(operation.layer, operation.stage, (operation,), self.cost(operation), self.after)
        self.after = []

    def _gather(self, items: list[Communication]) -> None:
        """Weights of the next block, one block ahead of the computing; in one message where buckets are asked for."""
        now = self.rank.flush()
        by_group: dict[tuple[Any, ...], list[Communication]] = {}
        for n, item in enumerate(items):
            by_group.setdefault(item.group if self.bucket > 1 else n, []).append(item)
        self.after += [self._collective(rows, (self.ahead,)) for rows in by_group.values()]
        self.ahead = now

    def _leaving(self, stage: Stage) -> dict[str, list[Communication]]:
        """The exchanges of a stage's gradients, by layer."""
        found: dict[str, list[Communication]] = {}
        for item in stage.update:
            if isinstance(item, Communication) and item.stage == "backward_weight":
                found.setdefault(item.layer, []).append(item)
        return found

    def _hold(self, rows: list[Communication]) -> None:
        for item in rows:
            if self.held and (self.held[0].group, self.held[0].kind) != (item.group, item.kind):
                self._leave()
            self.held.append(item)
            if sum(each.bytes for each in self.held) >= self.bucket:
                self._leave()

    def _leave(self) -> None:
        if self.held:
            self.sums.append(self._collective(self.held, (self.rank.flush(),)))
            self.held = []

    def _collective(self, items: list[Communication], after) -> int:
        first, whole = items[0], sum(item.bytes for item in items)
        ranks = self.groups.size[first.group]
        size = -(-whole // ranks) if first.kind == "all_gather" else whole
        adds = {"algorithm": "ring"} if first.kind in ("all_reduce", "reduce_scatter") else {}
        order = {**adds, "ranks": ranks, "wire": first.format}
        layers = [item.layer for item in items]
        node = self.rank.collective(
            layers, first.kind, size, whole, self.groups.own[self.number][first.group], order, after
        )
        self.kinds[node] = first.group
        return node

    def _send(self, item: Communication, slot, stage: Stage) -> None:
        forward = slot.kind == "forward"
        other = self.plan.stages[stage.number + (1 if forward else -1)]
        tag = self._tag(slot.micro_batch, stage.number if forward else other.number, forward)
        self._message(other, item, tag, True, (self.rank.flush(),))

    def _receive(self, slot, stage: Stage) -> None:
        forward = slot.kind == "forward"
        if slot.kind == "backward_weight" or stage.number == (0 if forward else len(self.plan.stages) - 1):
            return
        other = self.plan.stages[stage.number + (-1 if forward else 1)]
        item = (other.forward if forward else other.backward)[-1]
        tag = self._tag(slot.micro_batch, other.number if forward else stage.number, forward)
        self.rank.flush()
        self.after.append(self._message(other, item, tag, False, ()))

    def _message(self, other: Stage, item: Communication, tag: int, sends: bool, after) -> int:
        node = self.rank.message(self.groups.at(self.number, other), item.bytes, tag, item.format, sends, after)
        self.neighbours[node] = other
        return node

    def _tag(self, micro_batch: int, boundary: int, forward: bool) -> int:
        """Of a message: its micro-batch, the stage that it leaves forwards or enters backwards, its way."""
        return 2 * (micro_batch * len(self.plan.stages) + boundary) + forward


def _owners(layer: str) -> Iterator[str]:
    """The names that a layer's weights may be under: its own, and those that it is a part of."""
    parts = layer.split(".")
    return (".".join(parts[:size]) for size in range(len(parts), 0, -1))
