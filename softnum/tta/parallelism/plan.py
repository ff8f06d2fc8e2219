"""A training step of a network that is shared among devices: what each of them computes, sends and holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from softnum.tta.architectures.catalogue import architecture
from softnum.tta.architectures.decoders import Decoder, Share
from softnum.tta.architectures.large_models import decoders
from softnum.tta.architectures.layers import Input
from softnum.tta.architectures.lowering import Architecture
from softnum.tta.architectures.precision import Precision
from softnum.tta.parallelism.blocks import Block, Item, make_block
from softnum.tta.parallelism.communication import Communication
from softnum.tta.parallelism.schedules import Slot, schedule
from softnum.tta.parallelism.ways import Parallelism, divisors
from softnum.tta.workloads.operations import StoredTensor

__all__ = ["Stage", "StepPlan", "plan_step"]


@dataclass(frozen=True)
class Stage:
    """A part of the pipeline on one device.

    Parameters
    ----------
    number : int
        In the order in which a micro-batch passes them, from 0.
    rank, chunk : int
        The device's place in the pipeline, and which of its stages this is.
    parts : tuple of (str, Block)
        Blocks, with what the names of their layers begin with.
    before, after : int
        Bytes of the message from the stage before and to the stage after; 0 at the ends.
    formats : (str, str)
        Of the numbers in messages forwards and backwards.

    Examples
    --------
    >>> plan = plan_step("gpt2", Parallelism(pipeline=2, batch=2))
    >>> [(stage.number, len(stage.parts), stage.forward[-1].kind) for stage in plan.stages]
    [(0, 7, 'send_receive'), (1, 7, 'softmax')]
    """

    number: int
    rank: int
    chunk: int
    parts: tuple[tuple[str, Block], ...] = field(repr=False)
    before: int = 0
    after: int = 0
    formats: tuple[str, str] = ("", "")

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks with the names that their layers have in the network."""
        return tuple(block.called(prefix) for prefix, block in self.parts)

    @cached_property
    def forward(self) -> tuple[Item, ...]:
        """One micro-batch on one device, in order; last the message to the next stage."""
        items = [item for block in self.blocks for item in block.forward]
        if self.after:
            items.append(self._message("forward", self.after, self.formats[0]))
        return tuple(items)

    @cached_property
    def backward(self) -> tuple[Item, ...]:
        """The same; last the message to the stage before."""
        items = [item for block in reversed(self.blocks) for item in block.backward]
        if self.before:
            items.append(self._message("backward_data", self.before, self.formats[1]))
        return tuple(items)

    @cached_property
    def update(self) -> tuple[Item, ...]:
        """Once a step: the exchange of gradients, last layer first, the optimiser, the exchange of weights."""
        items = [item for block in reversed(self.blocks) for item in block.update]
        place = {"backward_weight": 0, "update": 1}
        order = {id(item): place[item.stage] + isinstance(item, Communication) * place[item.stage] for item in items}
        return tuple(sorted(items, key=lambda item: order[id(item)]))

    @cached_property
    def tensors(self) -> tuple[StoredTensor, ...]:
        """Of one micro-batch."""
        return tuple(tensor for block in self.blocks for tensor in block.tensors)

    def _message(self, way: str, size: int, name: str) -> Communication:
        return Communication(f"stage{self.number}", way, "send_receive", "pipeline", size, name)


@dataclass(frozen=True)
class StepPlan:
    """A step of a network on several devices.

    Parameters
    ----------
    network, design : str
    parallelism : Parallelism
    stages : tuple of Stage
        In the order in which a micro-batch passes them.
    sequence : int
        Words of a sample; 0 of a network that has none.
    model_flops : int
        Of a step, of all devices: three times the forward products' FLOPs, without what is computed again.
    parameters : int

    Examples
    --------
    >>> plan = plan_step("llama3-8b", Parallelism(data=2, tensor=4, batch=8, sequence=2048), "bfloat16")
    >>> plan.devices, len(plan.stages), plan.order(0)[:2]
    (8, 1, (Slot(kind='forward', micro_batch=0, stage=0), Slot(kind='backward', micro_batch=0, stage=0)))
    """

    network: str
    design: str
    parallelism: Parallelism
    stages: tuple[Stage, ...] = field(repr=False)
    sequence: int
    model_flops: int
    parameters: int

    @property
    def devices(self) -> int:
        """How many there are."""
        return self.parallelism.devices

    @property
    def micro_batches(self) -> int:
        """That each device computes."""
        return self.parallelism.micro_batches

    def of(self, rank: int) -> tuple[Stage, ...]:
        """A pipeline's device's stages."""
        return tuple(stage for stage in self.stages if stage.rank == rank)

    def order(self, rank: int) -> tuple[Slot, ...]:
        """What a pipeline's device runs, in order."""
        return schedule(self.parallelism, rank)

    def groups(self, group: str) -> tuple[tuple[int, ...], ...]:
        """The devices of every group of a kind."""
        return self.parallelism.groups(group)

    def coordinates(self, rank: int) -> dict[str, int]:
        """A device's place in each way."""
        return self.parallelism.coordinates(rank)


def plan_step(
    network: str | Decoder | Architecture,
    ways: Parallelism,
    precision: Precision | str = "bfloat16",
    optimiser: str = "adam",
) -> StepPlan:
    """Share a step of a network among devices.

    Tensor parallelism splits a decoder's layers as M. Shoeybi et al. (2019) do: by heads, and by the features between
    two products; by tokens what lies between (V. Korthikanti et al., 2023). Context parallelism gathers keys and values
    (A. Grattafiori et al., 2024). Layers are spread over stages evenly, the embedding and the last layer as one each
    where the whole divides, and in addition where the layers alone do.

    Parameters
    ----------
    network : str, Decoder or Architecture
        Of a network that is no decoder, samples and ZeRO's shares alone can be shared.
    ways : Parallelism
    precision : Precision or str
        As of `softnum.tta.lower`.
    optimiser : str
        "sgd", "momentum", "rmsprop" or "adam".

    Returns
    -------
    StepPlan

    Raises
    ------
    ValueError
        If the ways do not divide what they share; the message names both, and what would.

    Examples
    --------
    >>> plan = plan_step("gpt2", Parallelism(tensor=4, sequence=512), "bfloat16")
    >>> [(item.kind, item.bytes) for item in plan.stages[0].forward if item.kind.startswith(("all", "reduce"))][:2]
    [('reduce_scatter', 786432), ('all_gather', 786432)]
    """
    precision = Precision.named(precision) if isinstance(precision, str) else precision
    if isinstance(network, str):
        network = decoders()[network] if network in decoders() else architecture(network, ways.sequence)
    if isinstance(network, Architecture):
        return _plain(network, ways, precision, optimiser)
    sequence = network.context if ways.sequence is None else ways.sequence
    _check(network, ways, sequence)
    split = ways.sequence_parallel and ways.tensor > 1
    share = Share(ways.tensor, ways.context, ways.expert, split, ways.fused)
    words = sequence // ways.context
    shape = (words // (ways.tensor if split else 1), network.hidden)

    def made(kind, layers, inner=shape, **options):
        return make_block(kind, layers, inner, ways, precision, optimiser, **options)

    blocks = {kind: made(kind, network.block(kind, share)) for kind in dict.fromkeys(network.kinds)}
    first = made("first", network.first(share), (words,), part=False, recompute=False)
    last = made("last", network.last(share, own=ways.pipeline > 1), recompute=False)
    ends = [("", last)]
    for number in range(1, network.extra + 1):
        name = f"extra{number}."
        layers = [Input(f"{name}input", (words,)), *network.more(share, name, f"{name}input", "")]
        ends.append(("", made("extra", layers, recompute=False)))
    kinds = network.kinds
    sizes = _sizes(network, ways)
    formats = (precision.activations, precision.errors)
    elements = ways.micro_batch * shape[0] * shape[1]
    stages, at = [], 0
    for number, size in enumerate(sizes):
        own = [(f"layer{at + n + 1}.", blocks[kinds[at + n]]) for n in range(size)]
        at += size
        head, tail = number == 0, number == len(sizes) - 1
        own = ([("", first)] if head else []) + own + (ends if tail else [])
        messages = (0 if head else formats[1].size(elements), 0 if tail else formats[0].size(elements))
        chunk, rank = divmod(number, ways.pipeline)
        stages.append(Stage(number, rank, chunk, tuple(own), *messages, tuple(fmt.name for fmt in formats)))
    whole = network.architecture(sequence)
    flops = 6 * whole.macs * ways.batch
    return StepPlan(network.name, precision.name, ways, tuple(stages), sequence, flops, whole.parameters)


def _plain(network: Architecture, ways: Parallelism, precision: Precision, optimiser: str) -> StepPlan:
    for name in ("tensor", "context", "pipeline", "expert"):
        if getattr(ways, name) > 1:
            raise ValueError(
                f"{network.name} is no decoder, and shared by samples (and ZeRO) only: {name} must be 1, got "
                f"{getattr(ways, name)}"
            )
    if ways.recompute != "none":
        raise ValueError(f"{network.name} is not a decoder, so recomputation is not modelled; recompute must be none")
    block = make_block(network.name, network.layers, network.input, ways, precision, optimiser, part=False)
    stage = Stage(0, 0, 0, (("", block),))
    return StepPlan(
        network.name, precision.name, ways, (stage,), 0, 6 * network.macs * ways.batch, network.parameters
    )  # fmt: skip


def _sizes(network: Decoder, ways: Parallelism) -> list[int]:
    """How many layers each stage has."""
    count, layers = ways.pipeline * ways.chunks, network.layers
    if layers % count and (layers + 2) % count == 0:
        each = (layers + 2) // count
        return [each - (n == 0) - (n == count - 1) for n in range(count)]
    if layers < count:
        raise ValueError(
            f"{network.name} has {layers} layers, fewer than the {count} stages of pipeline={ways.pipeline} with "
            f"chunks={ways.chunks}; take fewer"
        )
    each, more = divmod(layers, count)
    middle = sorted(range(count), key=lambda n: (n == 0 or n == count - 1, n))[:more]
    return [each + (n in middle) for n in range(count)]


def _check(network: Decoder, ways: Parallelism, sequence: int) -> None:
    def refuse(name: str, what: str, number: int) -> None:
        ways_of = getattr(ways, name)
        if number % ways_of:
            raise ValueError(
                f"{name}={ways_of} does not divide {number} {what} of {network.name}; take one of {divisors(number)}"
            )

    refuse("tensor", "heads", network.heads)
    refuse("tensor", "features between two layers", network.inner)
    kv = network.kv_heads
    if not network.latent and kv % ways.tensor and ways.tensor % kv:
        raise ValueError(
            f"tensor={ways.tensor} and {kv} heads of keys of {network.name} do not divide one another; take a divisor "
            f"or a multiple of {kv}"
        )
    refuse("context", "tokens of a sample", sequence)
    if ways.sequence_parallel and ways.tensor > 1:
        words = sequence // ways.context
        if words % ways.tensor:
            raise ValueError(
                f"tensor={ways.tensor} does not divide the {words} tokens of a device, which sequence parallelism "
                "shares; take another sequence, or leave sequence parallelism out"
            )
    if ways.expert > 1 and not network.experts:
        raise ValueError(f"{network.name} has no experts to distribute; expert must be 1, got {ways.expert}")
    if network.experts:
        refuse("expert", "experts", network.experts)
        if ways.tensor > 1 and not ways.sequence_parallel:
            raise ValueError(
                f"experts of {network.name} are whole on a device, so that tensor={ways.tensor} has to share tokens: "
                "sequence parallelism cannot be left out"
            )
