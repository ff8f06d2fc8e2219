"""Processes that share a batch, and the largest magnitudes of what each has a part of."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

__all__ = ["Sharing"]


class Sharing:
    """Processes that share a batch, which all ask for the same largest magnitudes, in the same order.

    Parameters
    ----------
    groups : tuple of torch.distributed.ProcessGroup
        One, or one for each axis of a mesh of processes; none: it is not known which processes these are.

    Examples
    --------
    >>> Sharing.of(Sharing.number(())).groups
    ()
    """

    _known: list[Sharing] = []  # as states name them, from 1 on

    def __init__(self, groups: tuple) -> None:
        self.groups = groups

    @classmethod
    def number(cls, groups: tuple) -> int:
        """The number by which states name some processes."""
        for number, known in enumerate(cls._known, start=1):
            if len(known.groups) == len(groups) and all(x is y for x, y in zip(known.groups, groups, strict=True)):
                return number
        cls._known.append(cls(groups))
        return len(cls._known)

    @classmethod
    def of(cls, number: int) -> Sharing:
        """The processes of a number."""
        return cls._known[number - 1]

    def largest(self, magnitudes: list[float], asked: str, where: str) -> list[float]:
        """The largest of what the processes have, number by number; a NaN if one has a NaN.

        Parameters
        ----------
        magnitudes : list of float
            Not negative.
        asked : str
            What this is: the same text on all processes.
        where : str
            The same in an error's words.

        Raises
        ------
        RuntimeError
            If it is not known which processes these are, or they do not all ask for the same.
        """
        if not self.groups:
            raise RuntimeError(
                f"{where}: scales of whole tensors follow from the parts of all ranks, and there is no process group "
                "in which they ask each other; call torch.distributed.init_process_group before, or compute in one "
                "process: softnum.torch.set_rank(model, None); workers that one process computes in turn "
                "(backward_by_workers) cannot ask: state scales of rows or blocks, or delayed ones"
            )
        text = int.from_bytes(hashlib.blake2b(asked.encode(), digest_size=7).digest(), "little")
        numbers = np.abs(np.array(magnitudes, np.float64)).view(np.int64)  # in their order, NaN last
        last, first, most = self._reduced(np.int64([text, -text, numbers[0]]))
        if (last, first) != (text, -text):
            raise RuntimeError(
                f"{where}: the ranks ask for different things, this one for the largest magnitude of that; all must "
                "make the same forward and backward passes of the same converted model, with the same seed, in the "
                "same order (docs/torch.md, Several ranks)"
            )
        rest = self._reduced(numbers[1:]) if len(numbers) > 1 else []
        return np.array([most, *rest], np.int64).view(np.float64).tolist()

    def _reduced(self, numbers: np.ndarray) -> list[int]:
        """The largest of what the processes have, number by number."""
        found = torch.from_numpy(numbers.copy())
        for group in self.groups:
            found = found.to(_device_of(group))
            torch.distributed.all_reduce(found, torch.distributed.ReduceOp.MAX, group=group)
        return found.tolist()


def _device_of(group) -> torch.device:
    """Where a group's tensors lie: on the CPU, unless its processes have a backend for another device alone."""
    kinds = [part.partition(":")[0] for part in torch.distributed.get_backend_config(group).split(",")]
    if "cpu" in kinds:
        return torch.device("cpu")
    return torch.device(kinds[0], torch.accelerator.current_device_index())
