"""What devices send each other in a step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from softnum.tta.workloads.operations import STAGES

__all__ = ["KINDS", "Communication"]

KINDS = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "send_receive")


@dataclass(frozen=True)
class Communication:
    """An exchange among the devices of a group.

    Parameters
    ----------
    layer : str
        Where in the network.
    stage : str
        "forward", "backward_data", "backward_weight" or "update".
    kind : str
        "all_reduce", "reduce_scatter", "all_gather", "all_to_all" or "send_receive".
    group : str
        Which devices: one of `softnum.tta.parallelism.GROUPS`.
    bytes : int
        Of the whole vector: before a reduce-scatter, after an all-gather; of an all-to-all all that one device has for
        the others and itself; of a message the message.
    format : str
        In which its numbers are sent.
    copies : int
        Of an all-to-all, how often each word is in it: once for each expert that it goes to.

    Raises
    ------
    ValueError
        If the stage or the kind is unknown.

    Examples
    --------
    >>> Communication("up", "forward", "all_gather", "tensor", 8000, "bfloat16").sent(8)
    Fraction(7000, 1)
    """

    layer: str
    stage: str
    kind: str
    group: str
    bytes: int
    format: str
    copies: int = 1

    def __post_init__(self) -> None:
        for what, known in (("stage", STAGES), ("kind", KINDS)):
            if getattr(self, what) not in known:
                raise ValueError(f"{what} must be one of {', '.join(known)}, got {getattr(self, what)!r}")

    def sent(self, devices: int) -> Fraction:
        """Bytes that a device sends, in a ring (an all-to-all: directly) of so many."""
        if self.kind == "send_receive":
            return Fraction(self.bytes)
        return Fraction((2 if self.kind == "all_reduce" else 1) * self.bytes * (devices - 1), devices)

    def to_table(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "layer": self.layer, "stage": self.stage, "kind": self.kind, "group": self.group, "bytes": self.bytes,
            "format": self.format, "copies": self.copies,
        }  # fmt: skip
