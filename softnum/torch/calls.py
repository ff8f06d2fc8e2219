"""The arithmetic of one call of a layer of a PyTorch model, and the state by which its random bits are numbered.

Random bits. A rounding in the arithmetic of a layer has the key ``(seed, stream)`` of `softnum.quantize`, with

    seed   = the first 8 bytes of BLAKE2b of the text "run seed/layer/forward/call"
    stream = evaluation * 2**63 + step * 2**16 + site

where step counts updates, forward the forward passes of this step (of an evaluation: since the last update), and call
the calls of the layer in this forward pass, all from 0, and

    site = backward * 2**15 + place * 2**9 + count

where backward is 1 in a call's backward pass, place the position in `softnum.torch.calls.PLACES` of the role or the
product, and count counts the roundings there, from 0; after each 512 it begins again, with the seed of a text that ends
in "/1", "/2", and so on. So a rounding's bits do not depend on what other layers do, on which gradients are needed, nor
on when it is computed: a forward pass that is computed again in the backward pass has the same bits.
Run seed, step, forward passes, evaluation and the loss scale are a tensor, the *state*, which every operation takes.

On several ranks, a rank's part of the batch has the random words that the whole batch has there: those of a rounding
and of a product are numbered by samples, from the first rank's on (``softnum.torch.ranks``). What concerns weights
alone has the same bits on every rank. A rank's part of their gradients has its own: after "call" in the text above
stands "/rank n", where n > 0. Scales that follow from the largest magnitude of a tensor are those of the whole batch's.
So the state of such a forward pass has entries more: the rank, its first sample, how many samples it has (0 where what
is computed is no part of a batch), how many the whole batch has (0: not known), the number of the processes that share
the batch (``softnum.torch.sharing.Sharing``), and how many indices the axes before that of the batch have.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Callable

import numpy as np
import torch

from softnum.arrays.environment import PartKey
from softnum.mac.family import family_of
from softnum.torch.sharing import Sharing
from softnum.train.designs.design import (
    BLOCK_ROLES,
    COMPENSATION,
    PASS_ROLES,
    PASSES,
    ROLES,
    SAVED,
    UPDATE,
    LayerDesign,
    RoleRounding,
)
from softnum.train.designs.scales import OwnScaling, of_all
from softnum.train.engine.blocks import BlockOperand, PassOperand, ScaledOperand
from softnum.train.engine.devices import make_backend
from softnum.train.engine.numerics import LayerNumerics, check_seed
from softnum.train.engine.watch import Event
from softnum.train.recipes import Delayed

__all__ = [
    "EVALUATING", "EVALUATIONS", "FIRST", "FORWARDS", "LOSS_SCALE", "OPERANDS", "OUTER", "PLACES", "RANK", "ROWS",
    "SEED", "STEP", "UPDATE_ROLES", "WEIGHTS", "Call", "CallInOrder", "Sites", "bits_of", "loss_scale_of", "new_state",
]  # fmt: skip

#: entries of a state
SEED, STEP, FORWARDS, EVALUATIONS, EVALUATING, LOSS_SCALE = range(6)
#: and of one of a forward pass on several ranks
RANK, FIRST, ROWS, WHOLE, SHARING, OUTER = range(6, 12)
_ALONE = [0] * 6  # of one process
OPERANDS = (*BLOCK_ROLES, *PASS_ROLES.values())
#: where a layer's roundings are numbered: roles, operands whose K runs along columns, products, and the rest
PLACES = (
    *ROLES, *PASS_ROLES.values(), *(f"{role}, columns" for role in OPERANDS), *PASSES, "start", "dropout", UPDATE,
    COMPENSATION, SAVED,
)  # fmt: skip
#: roles that no forward or backward pass rounds to
UPDATE_ROLES = ("master", "momentum", "second_moment", *(role for role in ROLES if role.startswith("update.")))
_PLACE = {place: index << 9 for index, place in enumerate(PLACES)}
#: places of what concerns weights alone
WEIGHTS = {f"{role}{axis}" for role in ("weights", "forward.weights", "backward_data.weights")
            for axis in ("", ", columns")} | {"start"}  # fmt: skip
#: and of what sums over the batch
_SUMMED = {
    "backward_weight", "weight_gradients",
    *(role for role in PASS_ROLES.values() if role.startswith("backward_weight.")),
    *(place for place in PLACES if place.endswith(", columns") and place not in WEIGHTS),
}  # fmt: skip


def new_state(seed: int, loss_scale: float = 1.0) -> torch.Tensor:
    """The state at the start of a run: seed, step, forward passes, evaluations, whether evaluating, loss scale.

    >>> new_state(7).tolist()[:5]
    [7, 0, 0, 0, 0]
    """
    check_seed(seed)
    return torch.tensor([_signed(seed), 0, 0, 0, 0, bits_of(loss_scale)], dtype=torch.int64, device="cpu")


def _signed(x: int) -> int:
    return x - (1 << 64) if x >> 63 else x


def bits_of(x: float) -> int:
    """The bits of a binary64 number, as states hold it."""
    return struct.unpack("<q", struct.pack("<d", x))[0]


def loss_scale_of(bits: int) -> float:
    """The number that a state holds."""
    return struct.unpack("<d", struct.pack("<q", bits))[0]


class Sites:
    """The numbers of rounding sites in program order, from 0 in each step."""

    def __init__(self) -> None:
        self.next = 0
        self._step = None

    def begin(self, step: int, evaluating: bool) -> None:
        """Number from 0 again; ValueError in a step that has begun."""
        if not evaluating and self._step == step:
            raise ValueError(
                "in program order each update takes one forward pass, and this is the second one; count the update "
                "(softnum.torch.next_step(model), or an Optimizer's step), or convert without program_order"
            )
        self.next = 0
        self._step = self._step if evaluating else step


class Call(LayerNumerics):
    """The arithmetic of one call of a layer: `LayerNumerics` with random bits of its own.

    Parameters
    ----------
    arithmetic : softnum.torch.Arithmetic
    name : str
        The layer.
    design : LayerDesign
    state : torch.Tensor
        `new_state`.
    call : int or str
        Which call of the layer in this forward pass, or what else it is for.
    device : str
        Where its arrays lie: one of ``softnum.train.engine.devices.DEVICES``.
    """

    def __init__(
        self, arithmetic, name: str, design: LayerDesign, state: torch.Tensor, call: int | str,
        device: str = "cpu",
    ) -> None:  # fmt: skip
        self._bind(name, design, name == arithmetic.first)
        self.backend = arithmetic.backend(design, device)
        self.device = device
        self.place, self.stage, self.known_as = None, "forward", arithmetic.known_as.get(name, name)
        self._call, self._seeds, self._counts, self._states = call, {}, {}, arithmetic.states
        numbers = state.tolist()
        self._state, self._place = numbers[:RANK], numbers[RANK:] or _ALONE
        self._batch, self.starts_from_rows, self._within, self._given = "", False, False, False
        self.seed = self._state[SEED] % 2**64
        self.iteration = self._state[STEP] + (not self._state[EVALUATING])  # counted from 1; an evaluation follows one
        self.loss_scale = loss_scale_of(self._state[LOSS_SCALE])
        self.last, self.looked_up = None, frozenset()  # what Muon leaves to AdamW: the caller chose that already
        self.known = False  # whether the forward pass is computed again
        self.chained = False  # whether results of products enter other operations, so that they are needed again

    @property
    def numerics(self) -> Call:
        """Itself, which numbers its own sites; as an attribute it would wait for the garbage collector."""
        return self

    def _key(self, place: str, before: int = 1, summed: bool | None = None) -> tuple[int, int] | None:
        """The key of the next rounding of a role, a product, or the start of an accumulator.

        None where no rounding of the layer takes random bits, in one process.

        before: how many indices an axis has that lies before the others; summed: as of `_is_summed`, where it is known.
        """
        self.place = self.name, place
        if not self.design.random and place != "dropout" and self._place is _ALONE:
            return None
        count = self._counts[place] = self._counts.get(place, -1) + 1
        more, count = divmod(count, 1 << 9)
        backward = self.stage == "backward"
        stream = self._state[EVALUATING] << 63 | self._state[STEP] << 16 | backward << 15 | _PLACE[place] | count
        if self._place is _ALONE:
            return self._seed_of(0, more), stream
        rank, first, rows, whole, _, outer = self._place
        summed = self._is_summed(place) if summed is None else summed
        shared = place in WEIGHTS and not (place == "start" and self.starts_from_rows)
        if rows and self._batch and not (summed or self._given) and (self._batch == "stacked" or not shared):
            return PartKey(self._seed_of(0, more), stream, first, rows, self._batch == "stacked", outer * before, whole)
        return self._seed_of(rank if summed else 0, more), stream

    def _is_summed(self, place: str) -> bool:
        """Whether what is rounded in a place is one rank's part of a sum over the batch."""
        if self._batch == "stacked" and self._place[2]:
            return False
        if place in _SUMMED:
            return True
        alone = self._batch == "looked up" or (self._batch and not self._place[2] and self.stage == "backward")
        return bool(alone) and place not in WEIGHTS

    def _keys_of_levels(self, role: str, count: int, axes: str) -> list:
        """The key of each level of a tree: of a sample's own numbers, whose sums have the axis of pairs first.

        Or of all samples, where what follows is numbered as after the levels of the whole batch.
        """
        rows, whole = self._place[ROWS - RANK], self._place[WHOLE - RANK]
        if not rows:
            return super()._keys_of_levels(role, count, axes)
        if axes != "last" and not self._within:
            end = self._counts.get(role, -1) + (count // rows * whole - 1).bit_length()
            keys = [self._key(role, summed=True) for _ in range((count - 1).bit_length())]
            self._counts[role] = end
            return keys
        keys = []
        while count > 1:
            keys.append(self._key(role, count // 2))
            count -= count // 2
        return keys

    def _round(self, place: str, rounding: RoleRounding, x, of):
        """`LayerNumerics._round`; of a normalisation, arrays of one axis concern parameters, and of others numbers."""
        self._given = x.ndim < (2 if self._batch == "normalised" else 1)
        rounded = super()._round(place, rounding, x, of)
        self._given = False
        return rounded

    def _seed_of(self, rank: int, more: int) -> int:
        if (rank, more) not in self._seeds:
            seed, _, forwards, evaluations, evaluating, _ = self._state
            text = f"{seed % 2**64}/{self.name}/{evaluations if evaluating else forwards}/{self._call}"
            text += (f"/{more}" if more else "") + (f"/rank {rank}" if rank else "")
            self._seeds[rank, more] = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        return self._seeds[rank, more]

    def _block_key(self, role: str, axis: int) -> tuple[int, int]:
        """The key of rounding a role to blocks, or by its scale, along an axis."""
        return self._key(f"{role}, columns" if axis == -2 else role)

    def _of_whole(self, place: str, rounding: RoleRounding, x, axis: int | None) -> tuple[float, ...]:
        """The largest magnitude of the whole batch's operand, where a rank has a part of it, and scales follow from it.

        Every rank takes part.
        """
        if self._place is _ALONE or not of_all(rounding) or (place in WEIGHTS and self._batch != "stacked"):
            return ()
        where = f"layer {self.name!r}, role {place!r}"
        if isinstance(rounding.scale, OwnScaling):
            raise NotImplementedError(
                f"{where}: a quantizer of the user's own has one scale for the tensor, and knows of no ranks; let its "
                "tiles be rows, or state a scale of softnum's"
            )
        text = f"{self._seed_of(0, 0)}/{self._state}/{self.stage}/{place}/{axis}/{sum(self._counts.values())}"
        most = self.backend.magnitude(x, rounding, axis)
        return tuple(Sharing.of(self._place[SHARING - RANK]).largest([most], text, where))

    def delayed(self, layer: str, role: str, use: str) -> Delayed:
        """The state of an operand's delayed scaling; what is noted in it counts in training alone."""
        place = layer, role, use or f"product {self._call}"
        if place not in self._states:
            self._states[place] = self.design.roles[role].scale.start()
        state = self._states[place]
        return Delayed(state.history.copy(), state.scale) if self._state[EVALUATING] else state

    def told(self, listener: Callable[[Event], None]) -> Callable[[Event], None]:
        """A listener to this call, which hears nothing of a forward pass that is computed again."""
        return lambda event: None if self.known else listener(event)

    def begin(self, batch: str) -> None:
        """State what the arrays of this call are, on several ranks.

        batch: "rows" of the batch, and weights; "stacked", each of them a part of the batch; "windows", too, and sums
        along the first axis are of a sample's own; "normalised", rows of the batch, and parameters of one axis; "looked
        up", rows of weights.
        """
        self._batch, self._within = "stacked" if batch == "windows" else batch, batch == "windows"

    def begin_backward(self) -> None:
        """Number roundings as those of the backward pass."""
        self._counts, self.known, self.stage = {}, False, "backward"

    def end(self) -> None:
        """Count the sites of this pass, where those of all calls are numbered together."""

    def matmul(self, key: str, a, b, c=None):
        """`LayerNumerics.matmul`; None of a forward product whose result is known, and not needed again."""
        if self.known and not self.chained:
            return None
        unit = self.design.units[key]
        if self._place is not _ALONE and unit.stochastic and family_of(unit).whole is not None:
            raise NotImplementedError(
                f"layer {self.name!r}: a unit of kind 'split' that rounds stochastically does not number its words by "
                "samples on several ranks; round to nearest in this layer"
            )
        if self._place[2] and self._batch == "stacked" and unit.stochastic:
            parts = (x.of(key) if isinstance(x, PassOperand) else x for x in (a, b))
            if any(isinstance(x, ScaledOperand) for x in parts):
                raise NotImplementedError(
                    f"layer {self.name!r}: products of matrices with scales, in a unit that rounds stochastically, are "
                    "not numbered by samples on several ranks; round to nearest in this layer"
                )
        return super().matmul(key, a, b, c)

    def convolve(self, key: str, a, b, c=None, **geometry):
        """`LayerNumerics.convolve`; None of a forward product whose result is known."""
        groups = self._place[2] and geometry["groups"] > 1
        if groups and any(isinstance(x, (BlockOperand, PassOperand)) for x in (a, b)):
            raise NotImplementedError(
                f"layer {self.name!r}: groups of a convolution with blocks or scales are matrices under each other, "
                "whose rows are not numbered by samples on several ranks; round to nearest in this layer"
            )
        return None if self.known else super().convolve(key, a, b, c, **geometry)

    def operator_options(self, operator, parameters: list[bool]) -> dict:
        """`LayerNumerics.operator_options` of one process."""
        options = super().operator_options(operator, parameters)
        if isinstance(options.get("key"), PartKey):
            raise NotImplementedError(
                f"layer {self.name!r}: an operator of the user's own draws random bits by itself, and knows of no "
                "ranks; let it round to nearest"
            )
        return options

    def constant(self, x: float, rank: int):
        """`LayerNumerics.constant`, the same on every rank."""
        batch, self._batch = self._batch, ""
        rounded = super().constant(x, rank)
        self._batch = batch
        return rounded

    def delivered(self, operation: str, *operands):
        """`LayerNumerics.delivered`; None where the results of the forward pass are known, and not needed again."""
        if not self.known or self.chained:
            return super().delivered(operation, *operands)
        self._key("elementwise")
        return None

    def working_copy(self, weight, groups=None):
        """`LayerNumerics.working_copy` of a parameter that need not be a number of ``master``."""
        values, weight.kept = self.operand("weights", weight.value, groups, use=weight.name)
        return values

    def round_start(self, x, *, of=None):
        """`LayerNumerics.round_start` of any numbers."""
        return super().round_start(x)

    def round_sum(self, x, y):
        """`LayerNumerics.round_sum` of any numbers."""
        if x.dtype == self.backend.dtype:
            return super().round_sum(x, y)
        wide = _wide_backend(self.device, self.backend.threads)
        total = wide.axpy(1.0, y, x, self.start_rounding, self._key("start"))
        return self.backend.quantize(total, _nearest(self.start_rounding.format), None)  # as carriers

    def weight_gradient(self, product, *, of=None):
        """The product as it is: what becomes of a parameter's gradient is `parameter_gradient`.

        But of a chain of products, whose gradients are added one by one, it is rounded here.
        """
        return super().weight_gradient(product, of=of) if self.chained else product

    def parameter_gradient(self, gradient):
        """The gradient of a parameter, without the loss scale (binary64), rounded to ``weight_gradients``."""
        return self.round("weight_gradients", self.backend.divide(gradient, self.loss_scale))


@functools.lru_cache(maxsize=16)
def _wide_backend(device: str, threads: int):
    """What computes in binary64 on a device."""
    return make_backend(device, np.float64, threads=threads)


@functools.lru_cache(maxsize=256)
def _nearest(fmt) -> RoleRounding:
    """Rounding to a format to nearest even, the same object each time: backends keep what they know of roles."""
    return RoleRounding(fmt)


class CallInOrder(Call):
    """One call of a layer, whose roundings have the keys that `softnum.train.Numerics` gives them.

    Of a forward pass, the call is the number of its first site.
    """

    def __init__(self, arithmetic, name, design, state, call, device="cpu") -> None:
        super().__init__(arithmetic, name, design, state, call, device)
        self._sites = arithmetic.sites
        self._site = call if isinstance(call, int) else self._sites.next

    def _key(self, place: str) -> tuple[int, int]:
        """The key of the next rounding."""
        self.place = self.name, place
        site, self._site = self._site, self._site + 1
        return self._state[SEED] % 2**64, self._state[EVALUATING] << 63 | self.iteration << 16 | site

    def _block_key(self, role: str, axis: int) -> tuple[int, int]:
        """The key of rounding a role to blocks, or by its scale, along an axis."""
        return self._key(role)

    def begin_backward(self) -> None:
        """Go on where all calls are."""
        super().begin_backward()
        self._site = self._sites.next

    def end(self) -> None:
        """The next call goes on from here."""
        self._sites.next = self._site
