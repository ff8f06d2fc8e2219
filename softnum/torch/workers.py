"""Data-parallel training of PyTorch models: gradients of workers summed by a collective, simulated or in processes.

`backward_by_workers` computes one worker after the other in one process; `use_collective` lets
``DistributedDataParallel`` sum by the same collective in real processes. With the same collective, buckets and parts of
the batch both have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from softnum.arrays.conversion import quantize
from softnum.torch.models import mode_of, set_rank
from softnum.train.update.workers import Gradients, buckets_of, check_bucket_bytes, collective_of

__all__ = ["CollectiveHook", "backward_by_workers", "use_collective"]

_BUCKETS = 1 << 16  # of a step, at most: their keys are numbered so


def _numbers(x: torch.Tensor) -> np.ndarray:
    """A tensor on the host as float32 or float64."""
    return x.detach().cpu().to(torch.float64 if x.dtype == torch.float64 else torch.float32).numpy()


def _key(key, step: int, bucket: int):
    return None if key is None else (key, step * _BUCKETS + bucket)


def _of_names(buckets: Sequence[Sequence[str]], names: list[str]) -> list[list[int]]:
    """Buckets of parameters' names as ones of their numbers."""
    given = [name for bucket in buckets for name in bucket]
    odd = sorted(set(given) ^ set(names))
    if odd or len(given) != len(names):
        raise ValueError(
            f"buckets hold each parameter that has a gradient once, got {len(given)} names of {len(names)}"
            + (f", {odd[0]!r} among those that do not match" if odd else "")
        )
    return [[names.index(name) for name in bucket] for bucket in buckets]


def backward_by_workers(
    model: nn.Module,
    losses: Sequence[Callable[[], torch.Tensor]],
    collective,
    *,
    buckets: Sequence[Sequence[str]] | None = None,
    key: int | None = None,
    step: int = 1,
    rows: int | None = None,
    bucket_bytes: int | None = None,
) -> list[torch.Tensor]:
    """Compute the gradients of several workers one after another in this process, and store their averages as the
    parameters' gradients.

    Parameters
    ----------
    model : torch.nn.Module
        Converted (`softnum.torch.convert`) or not. Of a converted one, worker w computes as rank w does
        (`softnum.torch.set_rank`). Each worker finds the buffers as they were before; they are worker 0's after.
    losses : sequence of callables
        One for each worker: passes its part of the batch forwards, and returns its loss (scaled, where losses are).
    collective : str or Collective
        As ``softnum train --collective`` takes it: "reciprocal_before" if it states no average.
    buckets : list of lists of parameters' names, optional
        What is summed together, in this order: those of a real run (`CollectiveHook`). Default: parameters in reverse
        order, the first bucket of 1 MiB, others of 25 (``softnum.train.update.workers.buckets_of``).
    bucket_bytes : int, optional
        In place of ``buckets``: with so many bytes each bucket ends, as with ``bucket_cap_mb`` of
        ``DistributedDataParallel``.
    key : int, optional
        The seed of a stochastic collective; bucket b of step s has the stream ``s * 2**16 + b``.
    step : int
        The number of the step, for the key.
    rows : int, optional
        Samples of each worker's part; where a model rounds stochastically, as `set_rank` needs it.

    Returns
    -------
    list of torch.Tensor
        The losses.

    Raises
    ------
    ValueError
        If the collective is for another number of ranks, a parameter is in no bucket or in two, or both buckets and
        their bytes are given.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> model, x = torch.nn.Linear(3, 1), torch.arange(12.0).reshape(4, 3)
    >>> parts = [lambda part=part: model(part).mean() for part in x.chunk(2)]
    >>> losses = st.backward_by_workers(model, parts, "ring(unit='bfloat16')")
    >>> model.weight.grad, len(losses)
    (tensor([[4.5000, 5.5000, 6.5000]]), 2)
    """
    c = collective_of(collective, len(losses))
    check_bucket_bytes(bucket_bytes)
    if buckets is not None and bucket_bytes is not None:
        raise ValueError(f"bucket_bytes = {bucket_bytes} and buckets: the bytes say where buckets end; leave one out")
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    names, shapes = [name for name, _ in named], [tuple(parameter.shape) for _, parameter in named]
    if buckets is None:
        numbered = buckets_of([parameter.numel() for _, parameter in named], c.format.bits / 8, bucket_bytes)
    else:
        numbered = _of_names(buckets, names)
    gradients, converted = Gradients(c, shapes, numbered), hasattr(model, "softnum_state")
    before = {name: x.clone() for name, x in model.named_buffers()}
    found: list[torch.Tensor] = []
    try:
        for worker, loss_of in enumerate(losses):
            _put_back(model, before)
            if converted:
                placed = {} if rows is None else {"rows": rows, "whole": rows * len(losses)}
                set_rank(model, worker, **placed)
            model.zero_grad()
            loss = loss_of()
            loss.backward()
            found.append(loss.detach())
            for index, (_, parameter) in enumerate(named):
                gradients.put(worker, index, None if parameter.grad is None else _numbers(parameter.grad))
            if worker == 0:
                after = {name: x.clone() for name, x in model.named_buffers()}
    finally:
        if converted:
            set_rank(model, None)
            mode_of(model).sharing = 0  # delayed scales have noted what all workers multiplied
    _put_back(model, after)
    averages = gradients.reduced([_key(key, step, bucket) for bucket in range(len(numbered))])
    for (_, parameter), average in zip(named, averages, strict=True):
        parameter.grad = torch.from_numpy(average.copy()).to(parameter)
    return found


@torch.no_grad()
def _put_back(model: nn.Module, buffers: dict) -> None:
    for name, x in model.named_buffers():
        x.copy_(buffers[name])


class CollectiveHook:
    """The communication hook that sums the gradients of ``DistributedDataParallel``; `use_collective` makes and
    registers it.

    Attributes
    ----------
    buckets : list of lists of lists of str
        Of each step so far, the names of the parameters of each bucket, in their order: what
        `backward_by_workers` takes as ``buckets``. PyTorch forms them anew after the first step.
    """

    def __init__(self, names: dict[int, str], collective, key, group) -> None:
        self.names, self.key, self.group = names, key, group
        self.collective = collective_of(collective, group.size())
        self.buckets: list[list[list[str]]] = []

    def averaged(self, bucket) -> torch.Tensor:
        """The averages of a bucket's gradients over all ranks: every rank is sent all, and computes what it would have.

        bucket : torch.distributed.GradBucket
        """
        if bucket.index() == 0:
            self.buckets.append([])
        self.buckets[-1].append([self.names[id(parameter)] for parameter in bucket.parameters()])
        c, own = self.collective, bucket.buffer()
        own = own.contiguous()
        rows = [torch.empty_like(own) for _ in range(c.ranks)]
        self.group.allgather([rows], [own]).wait()
        put = [quantize(_numbers(row), c.format).astype(c.arithmetic.dtype) for row in rows]
        key = _key(self.key, len(self.buckets), bucket.index()) if c.stochastic else None
        result = c.all_reduce(put, key=key)[self.group.rank()]
        return torch.from_numpy(result.copy()).to(own)


def use_collective(ddp, collective, *, key: int | None = None, group=None) -> CollectiveHook:
    """Let a model in ``DistributedDataParallel`` average its gradients by a collective from now on, in real processes.

    Every rank sends its gradients to all, as they are, and each computes what the collective delivers: the bits are the
    collective's, the traffic is not.

    Parameters
    ----------
    ddp : torch.nn.parallel.DistributedDataParallel
    collective, key
        As in `backward_by_workers`.
    group : torch.distributed.ProcessGroup, optional
        Default: that of the model.

    Returns
    -------
    CollectiveHook
        Its ``buckets`` are what the run had.

    Raises
    ------
    ValueError
        If the collective is none of so many ranks, or leaves them with different gradients.

    Examples
    --------
    >>> import softnum.torch as st
    >>> def train(ddp):  # a model in DistributedDataParallel
    ...     return st.use_collective(ddp, "double_tree(unit='bfloat16')")
    """
    names = {id(parameter): name for name, parameter in ddp.module.named_parameters()}
    state = CollectiveHook(names, collective, key, ddp.process_group if group is None else group)
    ddp.register_comm_hook(state, _hook)
    return state


def _hook(state, bucket):  # PyTorch reads the annotations of a hook, and refuses those that are texts
    future = torch.futures.Future()
    future.set_result(state.averaged(bucket))
    return future
