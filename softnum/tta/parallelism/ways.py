"""In which ways the work of a training step is shared among devices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt

from softnum.tta.quantities import positive_int

__all__ = ["GROUPS", "RECOMPUTE", "SCHEDULES", "Parallelism", "divisors"]

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zero-bubble")
RECOMPUTE = ("none", "selective", "alternate", "full")
#: Which devices exchange what: parts of a layer, of a sample, whole samples' gradients, stages, experts' tokens and
#: gradients.
GROUPS = ("tensor", "context", "data", "pipeline", "expert", "expert_data")
#: the most devices, words of a sample, and passes that the schedule of a pipeline has
_DEVICES, _WORDS, _PASSES = 1 << 24, 1 << 30, 1 << 22


@dataclass(frozen=True)
class Parallelism:
    """How the devices of a system share a training step.

    Devices are numbered with tensor parallelism fastest, then context, data, and the pipeline's stages slowest, so that
    those which exchange most are nearest to each other.

    Parameters
    ----------
    data, tensor, pipeline, context : int
        Degrees of data, tensor, pipeline and context parallelism: devices that share samples, the weights of a layer,
        layers, and the tokens of a sample. Their product is the number of devices.
    expert : int
        Degree of expert parallelism, among the devices of tensor, context and data parallelism; each device has
        whole experts.
    batch : int, optional
        Samples of a step, of all devices; default: one micro-batch for each data-parallel worker.
    micro_batch : int
        Samples of a micro-batch.
    sequence : int, optional
        Tokens of a sample; default: the model's context.
    schedule : str
        Of the pipeline: "gpipe" (Y. Huang et al., 2019), "1f1b" (D. Narayanan et al., PipeDream, 2019), "interleaved"
        (D. Narayanan et al., 2021), "zero-bubble" (P. Qi et al., ZB-H1, 2024).
    chunks : int
        Stages of each device, of an interleaved schedule.
    zero : int
        ZeRO's stage, what data-parallel (and context-parallel) devices share beside samples: nothing (0), the
        optimiser's state (1), gradients too (2), weights too (3); S. Rajbhandari et al., "ZeRO", 2020.
    recompute : str
        What the backward pass computes again: nothing ("none"), the scores of attention ("selective", V. Korthikanti et
        al., 2023; without effect where they are never kept), all of a layer but attention and every other product
        ("alternate", as TorchTitan's selective activation checkpointing), all of a layer ("full").
    sequence_parallel : bool
        Whether activations that tensor parallelism does not split (normalisations, residuals) are split by tokens.
    overlap : bool
        Whether communication may go on while a device computes.
    fused : bool
        Whether attention keeps its scores out of memory.

    Raises
    ------
    ValueError
        If a number is out of its range, or one does not divide another.

    Examples
    --------
    >>> ways = Parallelism(data=4, tensor=8, pipeline=4, batch=128)
    >>> ways.devices, ways.micro_batches, ways.coordinates(37)
    (128, 32, {'tensor': 5, 'context': 0, 'data': 0, 'pipeline': 1})
    >>> ways.groups("tensor")[0]
    (0, 1, 2, 3, 4, 5, 6, 7)
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    batch: int | None = None
    micro_batch: int = 1
    sequence: int | None = None
    schedule: str = "1f1b"
    chunks: int = 1
    zero: int = 0
    recompute: str = "none"
    sequence_parallel: bool = True
    overlap: bool = True
    fused: bool = True

    def __post_init__(self) -> None:
        for name in ("data", "tensor", "pipeline", "context", "expert", "micro_batch", "chunks"):
            positive_int(getattr(self, name), name)
        if self.batch is None:
            object.__setattr__(self, "batch", self.data * self.micro_batch)
        positive_int(self.batch, "batch")
        if self.sequence is not None:
            positive_int(self.sequence, "sequence")
            if self.sequence > _WORDS:
                raise ValueError(f"sequence must be at most {_WORDS} words, got {self.sequence}")
        if self.devices > _DEVICES:
            raise ValueError(f"a step is shared by at most {_DEVICES} devices, got {self.devices}; take fewer ways")
        for name, known in (("schedule", SCHEDULES), ("recompute", RECOMPUTE), ("zero", (0, 1, 2, 3))):
            if getattr(self, name) not in known or isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be one of {', '.join(map(str, known))}, got {getattr(self, name)!r}")
        if self.batch % (self.data * self.micro_batch):
            raise ValueError(
                f"{self.data} ways of data parallelism and micro-batches of {self.micro_batch} do not divide a batch "
                f"of {self.batch}; take a multiple of {self.data * self.micro_batch}"
            )
        if self.micro_batches * self.pipeline * self.chunks > _PASSES:
            raise ValueError(
                f"{self.micro_batches} micro-batches in {self.pipeline * self.chunks} stages are more than {_PASSES} "
                "passes; let a micro-batch have more samples, or take a smaller batch"
            )
        if (self.chunks > 1) != (self.schedule == "interleaved"):
            raise ValueError(
                f"the schedule {self.schedule!r} has {'several chunks' if self.chunks == 1 else 'one chunk'} a device, "
                f"got {self.chunks}; chunks above 1 are of the schedule 'interleaved'"
            )
        if self.schedule == "interleaved" and (self.pipeline == 1 or self.micro_batches % self.pipeline):
            raise ValueError(
                f"an interleaved schedule needs several stages and a multiple of {self.pipeline} micro-batches, got "
                f"{self.micro_batches}; take another batch, or the schedule 1f1b"
            )
        shared = self.tensor * self.context * self.data
        if shared % self.expert:
            raise ValueError(
                f"{self.expert} ways of expert parallelism do not divide the {shared} devices of tensor, context and "
                f"data parallelism ({self.tensor} x {self.context} x {self.data}); take one of {divisors(shared)}"
            )

    @property
    def devices(self) -> int:
        """How many there are."""
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def micro_batches(self) -> int:
        """Of a step, that each device computes."""
        return self.batch // (self.data * self.micro_batch)

    def coordinates(self, rank: int) -> dict[str, int]:
        """A device's place in each way, from 0.

        Raises
        ------
        ValueError
            If there is no such device.
        """
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < self.devices:
            raise ValueError(f"rank must be from 0 to {self.devices - 1}, got {rank!r}")
        found = {}
        for name in ("tensor", "context", "data", "pipeline"):
            rank, found[name] = divmod(rank, getattr(self, name))
        return found

    def size(self, group: str) -> int:
        """Devices of each group of a kind, one of `GROUPS`."""
        if group not in GROUPS:
            raise ValueError(f"unknown group {group!r}; groups: {', '.join(GROUPS)}")
        if group == "expert_data":
            return self.tensor * self.context * self.data // self.expert
        return {"data": self.data * self.context}.get(group) or getattr(self, group)

    def spacing(self, group: str) -> int:
        """How many numbers lie from one device of a group to the next."""
        return {
            "tensor": 1, "context": self.tensor, "data": self.tensor, "expert": 1, "expert_data": self.expert,
            "pipeline": self.tensor * self.context * self.data,
        }[group]  # fmt: skip

    def groups(self, group: str) -> tuple[tuple[int, ...], ...]:
        """The devices of every group of a kind. Those of "data" are all that hold the same weights: they share samples
        or, with context parallelism, the tokens of one."""
        return self._groups[group] if self.size(group) else ()

    @cached_property
    def _groups(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        found = {}
        for group in GROUPS:
            size, spacing = self.size(group), self.spacing(group)
            starts = [rank for rank in range(self.devices) if rank // spacing % size == 0]
            found[group] = tuple(tuple(start + spacing * n for n in range(size)) for start in starts)
        return found


def divisors(number: int) -> str:
    """The divisors of a number, the first twelve of them, as text.

    >>> divisors(24), divisors(720720)
    ('1, 2, 3, 4, 6, 8, 12, 24', '1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ...')
    """
    low = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    found = sorted({*low, *(number // n for n in low)})
    return ", ".join(map(str, found[:12])) + (", ..." if len(found) > 12 else "")
