"""ChunkedDotUnit: sums of chunks in any unit, added in an accumulator of their own."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from softnum.arrays.environment import environment
from softnum.formats.modes import rounding_name
from softnum.formats.names import format
from softnum.mac.family import family_of
from softnum.mac.mad import Unit, check_sum_formats

__all__ = ["ChunkedDotUnit"]


@dataclass(frozen=True, repr=False)
class ChunkedDotUnit(Unit):
    """Chunks of `chunk` products are summed by an inner unit, each from +0, and added in order: ``outer = R(outer +
    sum)``, from +0 or C.

    This models the "promotion" of a tensor core's sums to binary32 (DeepSeek-V3: every 128 products). `MadUnit` has its
    own ``chunk=``, whose sums may round stochastically.

    Parameters
    ----------
    inner : Unit
        The unit that sums the products of a chunk; not one of block formats, and deterministic. The last chunk may be
        shorter.
    chunk : int
        Products per chunk.
    accumulator : format or str
        The format of the outer sum, of C and of the result.
    rounding : str
        The mode of the outer sum, not a stochastic one.
    overflow : str, optional
        The overflow rule of the outer sum; None: the format's default.

    Raises
    ------
    ValueError
        If a name is unknown, a number is out of range, or parameters contradict each other.

    References
    ----------
    DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv 2412.19437, section 3.3.2.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> core = sn.unit("nvidia_h100_e4m3")  # sums of 32 products, aligned to 13 fraction bits
    >>> promoted = sn.ChunkedDotUnit(core, 128)
    >>> a, b = np.ones((1, 4096), np.float32), np.full((4096, 1), 2.0**-9, np.float32)
    >>> a[0, 0], b[0, 0] = 256, 1
    >>> sn.matmul(a, b, core).item(), sn.matmul(a, b, promoted).item()
    (256.0, 263.75)
    """

    inner: Unit
    chunk: int
    accumulator: object = "binary32"
    rounding: str = "nearest_even"
    overflow: str | None = None

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        if not isinstance(self.inner, Unit):
            raise TypeError(f"ChunkedDotUnit: inner must be a unit, got {self.inner!r}")
        if family_of(self.inner).of_blocks or self.inner.on_codes:
            what = (
                "block formats have blocks"
                if family_of(self.inner).of_blocks
                else "custom formats have MadUnit's chunk"
            )
            raise ValueError(f"ChunkedDotUnit: inner must compute in floats or fixed point, got {self.inner}: {what}")
        if family_of(self.inner).whole is not None:
            raise ValueError(f"ChunkedDotUnit: inner={self.inner.expression} multiplies whole matrices alone")
        if self.inner.stochastic:
            raise ValueError(
                f"ChunkedDotUnit: inner takes random bits ({self.inner}), which chunks would take again; of a MadUnit "
                "state chunk= itself"
            )
        if isinstance(self.chunk, bool) or not isinstance(self.chunk, Integral) or not 1 <= self.chunk < 2**32:
            raise ValueError(f"ChunkedDotUnit: chunk must be a positive integer below 2**32, got {self.chunk!r}")
        put("chunk", int(self.chunk))
        put("accumulator", format(self.accumulator))
        check_sum_formats(self, "accumulator")
        check_sum_formats(self.inner, "result")
        put("rounding", rounding_name(self.rounding))
        if self.rounding.startswith("stochastic"):
            raise ValueError(f"ChunkedDotUnit: rounding={self.rounding!r} is stochastic; take another mode")
        environment(self.accumulator, self.rounding, self.overflow, 32)  # checks the rule

    @property
    def operand(self) -> tuple[Any, ...]:
        """The formats of a and b: those of `inner`."""
        return self.inner.operand

    @property
    def rounded_to(self) -> tuple[Any, ...]:
        """The format of the outer sum, and those of `inner`."""
        return (self.accumulator, *self.inner.rounded_to)

    @property
    def roundings(self) -> tuple[str | None, ...]:
        """The additions of chunks, and the kinds of roundings of `inner`."""
        return ("outer sum", *(None if name is None else f"inner {name}" for name in self.inner.roundings))

    def __str__(self) -> str:
        overflow = f", overflow {self.overflow}" if self.overflow else ""
        return (
            f"outer = round(outer + sum), chunks of {self.chunk} in {self.accumulator} ({self.rounding})"
            f"{overflow}; sum: {self.inner}"
        )
