"""What ranks put in, read by parts; and whether one process has room for it."""

from __future__ import annotations

import numpy as np

from softnum.arrays.container import Array
from softnum.mac.products.operands import checked_operand

__all__ = ["LIMIT", "Rows", "check_memory"]

LIMIT = 8 << 30  # bytes of arrays and results


def check_memory(c, caller: str, elements: int, arrays: int) -> None:
    """ValueError if so many arrays of so many elements are more than `LIMIT` bytes."""
    size = elements * arrays * c.arithmetic.dtype.itemsize
    if size > LIMIT:
        most = LIMIT // (arrays * c.arithmetic.dtype.itemsize)
        raise ValueError(
            f"{caller}: {c.ranks} ranks with {elements} elements each need {size / 2**30:.1f} GiB for arrays and "
            f"results, and the limit is {LIMIT >> 30} GiB; give at most {most} elements at a time (buckets), or fewer "
            "ranks"
        )


class Rows:
    """The arrays of all ranks as rows; parts of them are checked and read as values of the collective's format.

    Parameters
    ----------
    arrays : sequence of arrays, or one with the ranks as its first axis
    c : Collective
    caller : str
    parts : bool
        Whether the first axis must consist of equal parts, one for each rank.
    """

    def __init__(self, arrays, c, caller: str, parts: bool = False) -> None:
        self.c, self.caller = c, caller
        if isinstance(arrays, (str, np.generic)) or not hasattr(arrays, "__iter__"):
            raise TypeError(
                f"{caller}: give an array of each rank, in a list or one array (ranks, ...), got {arrays!r}"
            )
        if isinstance(arrays, np.ndarray):
            self.whole = arrays.reshape(len(arrays), -1) if arrays.ndim else arrays
            count, self.shape = (len(arrays) if arrays.ndim else 0), arrays.shape[1:]
        else:
            given = [x if isinstance(x, Array) else np.asarray(x) for x in arrays]
            shapes = {x.shape for x in given}
            if len(shapes) > 1:
                odd = next(r for r, x in enumerate(given) if x.shape != given[0].shape)
                raise ValueError(
                    f"{caller}: the arrays of all ranks have one shape, got {given[0].shape} of rank 0 and "
                    f"{given[odd].shape} of rank {odd}"
                )
            self.whole, count, self.shape = None, len(given), (given[0].shape if given else ())
            self.rows = [x.reshape(-1) for x in given]
        if count != c.ranks:
            raise ValueError(f"{caller}: the collective has {c.ranks} ranks, got {count} arrays; one for each rank")
        if parts and (not self.shape or self.shape[0] % c.ranks):
            raise ValueError(
                f"{caller}: the first axis is divided among {c.ranks} ranks, and arrays of shape {self.shape} do not "
                "have equal parts; pad them with zeros"
            )
        self.size = int(np.prod(self.shape, dtype=np.int64))

    def part(self, start: int, stop: int) -> np.ndarray:
        """Elements start to stop of all ranks, a row each."""
        c, dtype = self.c, self.c.arithmetic.dtype
        if self.whole is not None:
            return self._checked(self.whole[:, start:stop], "arrays").astype(dtype)
        out = np.empty((c.ranks, stop - start), dtype)
        for rank, row in enumerate(self.rows):
            out[rank] = self._checked(row[start:stop], f"the array of rank {rank}")
        return out

    def _checked(self, x, what: str) -> np.ndarray:
        if isinstance(x, np.ndarray) and x.dtype not in (np.float32, np.float64):
            raise TypeError(f"{self.caller}: {what} must be float32, float64 or softnum.Array, got {x.dtype}")
        return checked_operand(x, self.c.format, what, self.caller)
