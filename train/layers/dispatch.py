"""Tokens that are sent to experts of other ranks and back: what the wires of two all-to-alls make of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softnum.collectives.collective import Collective
from softnum.collectives.make import collective
from softnum.train.designs.design import RoleRounding
from softnum.train.engine.numerics import rounded_rows
from softnum.train.engine.tensor import GRADIENTS, Tensor

__all__ = ["Dispatch", "exchange", "over_wire"]


@dataclass(frozen=True)
class Dispatch:
    """Expert parallelism: who has which tokens and experts, and what two all-to-alls round to.

    Of T rows of a batch, rank r of R has those i with i * R // T = r, and of E experts those e with e * R // E = r. A
    row that an expert computes is sent to its rank by ``to_experts`` and its result back by ``from_experts``; their
    gradients backwards by the wire of their direction. A wire rounds each of them once, as
    `softnum.collectives.Collective.all_to_all` does; blocks of its format begin with each row, the last one shorter.
    Where a collective says ``own="kept"``, rows of the expert's own rank are not rounded. Of a collective nothing else
    counts, neither its name nor its adder.

    Parameters
    ----------
    to_experts, from_experts : Collective or str
        As `softnum.collective` takes them. The second may be None: the first one then.
    experts : int

    Raises
    ------
    ValueError
        If a text is none of a collective, one averages, both have different ranks, or ranks do not divide the experts.

    Examples
    --------
    >>> wires = Dispatch.of("ring(ranks=2, wire='e4m3fn')", None, 4)
    >>> wires.ranks, str(wires.roundings[0].format)
    (2, 'e4m3fn')
    >>> wires.stay(np.array([0, 5, 1, 6]), 4, 6).tolist()  # a seat of each expert; row 5 is rank 1's, 6 is none
    [True, False, False, True]
    """

    to_experts: Collective
    from_experts: Collective

    @classmethod
    def of(cls, dispatch, combine, experts: int) -> Dispatch:
        """Of the texts of a network's options."""
        found = []
        for name, text in (("expert_dispatch", dispatch), ("expert_combine", dispatch if combine is None else combine)):
            try:
                c = collective(text)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name}: {error}") from error
            if c.average is not None:
                raise ValueError(f"{name}: tokens are moved, and {c} averages; leave out average=")
            found.append(c)
        first, second = found
        if first.ranks != second.ranks:
            raise ValueError(
                f"expert_dispatch has {first.ranks} ranks and expert_combine {second.ranks}; the same do both"
            )
        if experts % first.ranks:
            raise ValueError(
                f"expert_dispatch: {experts} experts are no equal parts for {first.ranks} ranks; state ranks that "
                "divide them"
            )
        return cls(first, second)

    @property
    def ranks(self) -> int:
        """How many share rows and experts."""
        return self.to_experts.ranks

    @property
    def options(self) -> dict[str, str]:
        """The options of a network that state it."""
        return {"expert_dispatch": str(self.to_experts), "expert_combine": str(self.from_experts)}

    @property
    def roundings(self) -> tuple[RoleRounding, RoleRounding]:
        """Those of the wire to experts, and of that from them."""
        return _rounding(self.to_experts), _rounding(self.from_experts)

    @property
    def stochastic(self) -> bool:
        """Whether a wire rounds stochastically."""
        return any(rounding.stochastic for rounding in self.roundings)

    def stay(self, taken, experts: int, rows: int) -> np.ndarray:
        """Which seats have rows of the expert's own rank, or none; taken: as `softnum.train.layers.mixture.seats`."""
        seats = np.arange(len(taken)) * experts // max(len(taken), 1)
        return (taken == rows) | (taken * self.ranks // max(rows, 1) == seats * self.ranks // experts)

    def kept(self, taken, experts: int, rows: int) -> tuple:
        """Of both wires, which seats' rows they leave as they are; None where they round all."""
        stay = self.stay(taken, experts, rows)
        return tuple(stay if c.own == "kept" else None for c in (self.to_experts, self.from_experts))


def _rounding(c: Collective) -> RoleRounding:
    """The rounding of a collective's wire."""
    return RoleRounding(
        c.wire, c.wire_rounding, c.wire_overflow, c.stochastic_bits, source=str(c.wire), scale_rule=c.scale_rule
    )  # fmt: skip


def over_wire(backend, x, rounding: RoleRounding, kept, key=None):
    """Rows as they arrive: each rounded as a wire rounds, but those that are kept, on the carrier.

    Parameters
    ----------
    backend : NumpyBackend
    x : array (rows, features)
    rounding : RoleRounding
    kept : bool array (rows,) or None
    key : optional
        Of a stochastic rounding, as of `softnum.quantize` of the whole array.

    Examples
    --------
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> rounding = Dispatch.of("ring(ranks=2, wire='e4m3fn')", None, 2).roundings[0]
    >>> over_wire(NumpyBackend(), np.float32([[1.1], [1.1]]), rounding, np.array([True, False]))
    array([[1.1  ],
           [1.125]], dtype=float32)
    """
    values = rounded_rows(backend, x, rounding, key)
    return values if kept is None else backend.choose(kept[:, None], x, values)


def exchange(x: Tensor, there: tuple, back: tuple, layer) -> Tensor:
    """Rows that go over a wire, and their gradients back over another; both (rounding, kept, place), `over_wire`.

    The place is what records call it, "dispatch" or "combine". A stochastic wire takes the next site of random bits in
    the layer's arithmetic; of others none is counted.

    Parameters
    ----------
    x : Tensor (rows, features)
    there, back : (RoleRounding, bool array or None, str)
    layer : LayerNumerics
    """
    value = _sent(layer, x.value, *there)
    return Tensor(value, x.backend, op="exchange", parents=(x,), saved=(back, layer), layer=x.layer)


def _sent(layer, x, rounding: RoleRounding, kept, place: str):
    return over_wire(layer.numerics.backend, x, rounding, kept, layer.wire_key(rounding, place))


def _exchange_gradient(node: Tensor, gradient) -> tuple:
    back, layer = node.saved
    return (_sent(layer, gradient, *back),)


GRADIENTS["exchange"] = _exchange_gradient
