"""A design bound to the layers of a PyTorch model: which roundings and units each has, and with which random bits.

Random bits. A rounding in the arithmetic of a layer has the key ``(seed, stream)`` of `softnum.quantize`, with

    seed   = the first 8 bytes of BLAKE2b of the text "run seed/layer/forward/call"
    stream = evaluation * 2**63 + step * 2**16 + site

where step counts updates, forward the forward passes of this step (of an evaluation: since the last update), and call
the calls of the layer in this forward pass, all from 0, and

    site = backward * 2**15 + place * 2**9 + count

where backward is 1 in a call's backward pass, place the position in `softnum.torch.numerics.PLACES` of the role or the
product, and count counts the roundings there, from 0; after each 512 it begins again, with the seed of a text that ends
in "/1", "/2", and so on. So a rounding's bits do not depend on what other layers do, on
which gradients are needed, nor on when it is computed: a forward pass that is computed again in the backward pass has
the same bits.
Run seed, step, forward passes, evaluation and the loss scale are a tensor, the *state*, which every operation takes.

On several ranks, a rank's part of the batch has the random words that the whole batch has there: those of a rounding
and of a product are numbered by samples, from the first rank's on (``softnum.torch.ranks``). What concerns weights
alone has the same bits on every rank. A rank's part of their gradients has its own: after "call" in the text above
stands "/rank n", where n > 0. Scales that follow from the largest magnitude of a tensor are those of the whole batch's.
So the state of such a forward pass has entries more: the rank, its first sample, how many samples it has (0 where what
is computed is no part of a batch), how many the whole batch has (0: not known), how many indices the axes before that
of the batch have, and the number of the processes that share the batch (``softnum.torch.ranks.Sharing``).
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import hashlib
import math
import re
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from softnum.arrays.environment import PartKey
from softnum.formats.blocks import format
from softnum.runtime._core import PlainEnvironment
from softnum.torch.devices import device_of
from softnum.torch.sharing import Sharing
from softnum.train.designs.design import (
    BLOCK_ROLES,
    COMPENSATION,
    NO_MASTER,
    PASS_ROLES,
    PASSES,
    ROLES,
    SAVED,
    UPDATE,
    Design,
    LayerDesign,
    RoleRounding,
)
from softnum.train.designs.loss_scaling import LossScaling
from softnum.train.designs.reader import load_design
from softnum.train.designs.scales import OwnScaling, block_of, of_all
from softnum.train.engine.blocks import BlockOperand, PassOperand, ScaledOperand
from softnum.train.engine.devices import make_backend
from softnum.train.engine.numerics import LayerNumerics, check_seed, fits_binary32
from softnum.train.engine.watch import Event, watch
from softnum.train.recipes import Delayed, DelayedScaling

__all__ = ["Arithmetic", "Call", "arithmetic_of", "bits_of", "new_state"]

#: entries of a state
SEED, STEP, FORWARDS, EVALUATIONS, EVALUATING, LOSS_SCALE = range(6)
#: and of one of a forward pass on several ranks
RANK, FIRST, ROWS, WHOLE, SHARING, OUTER = range(6, 12)
_ALONE = [0] * 6  # of one process
_OPERANDS = (*BLOCK_ROLES, *PASS_ROLES.values())
#: where a layer's roundings are numbered: roles, operands whose K runs along columns, products, and the rest
PLACES = (
    *ROLES, *PASS_ROLES.values(), *(f"{role}, columns" for role in _OPERANDS), *PASSES, "start", "dropout", UPDATE,
    COMPENSATION, SAVED,
)  # fmt: skip
#: roles that no forward or backward pass rounds to
UPDATE_ROLES = ("master", "momentum", "second_moment", *(role for role in ROLES if role.startswith("update.")))
_PLACE = {place: index << 9 for index, place in enumerate(PLACES)}
#: places of what concerns weights alone
_WEIGHTS = {f"{role}{axis}" for role in ("weights", "forward.weights", "backward_data.weights")
            for axis in ("", ", columns")} | {"start"}  # fmt: skip
#: and of what sums over the batch
_SUMMED = {
    "backward_weight", "weight_gradients",
    *(role for role in PASS_ROLES.values() if role.startswith("backward_weight.")),
    *(place for place in PLACES if place.endswith(", columns") and place not in _WEIGHTS),
}  # fmt: skip
_KNOWN: dict[str, Arithmetic] = {}


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


def _loss_scale(bits: int) -> float:
    """The number that a state holds."""
    return struct.unpack("<d", struct.pack("<q", bits))[0]


class Arithmetic:
    """A design as the layers of a PyTorch model have it.

    Parameters
    ----------
    design : Design, str or pathlib.Path
        As `softnum.train.load_design` reads it.
    first, last : str, optional
        The layer that takes the model's input, whose ``activations`` are the role ``input``; the layer whose result is
        the model's, rounded to the role ``output``.
    known_as : dict, optional
        Module path -> the name by which the design knows it, where that is another.
    program_order : bool
        Number roundings as `softnum.train` does, in the order in which they are computed, which must be that of one
        forward and one backward pass for each update: the bits of a run are then those of a run of the same network
        there.

    Attributes
    ----------
    handle : str
        What operations know it by; equal arithmetic has an equal handle.
    sites : Sites or None
        Of an arithmetic in program order, the numbers given so far.
    states : dict
        (layer, role, use) -> what delayed scaling keeps of an operand; empty of other designs.

    Examples
    --------
    >>> Arithmetic("c-wang-fp8").layer("conv1").roles["weights"].format.name
    'e5m2'
    """

    def __init__(
        self, design: Design | str | Path, *, first: str | None = None, last: str | None = None,
        known_as: dict[str, str] | None = None, program_order: bool = False,
    ) -> None:  # fmt: skip
        self.sites = Sites() if program_order else None
        self.design = design if isinstance(design, Design) else load_design(design)
        self.first, self.last, self.known_as = first, last, dict(known_as or {})
        content = dataclasses.replace(self.design, path=Path(self.design.name))  # wherever its file lies
        facts = content, self.first, self.last, sorted(self.known_as.items())
        self.handle = f"{self.design.name}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"
        tables = [self.design.roles, *(roles for _, roles, *_ in self.design.layers)]
        roundings = [rounding for table in tables for rounding in table.values() if rounding != NO_MASTER]
        self.delays = any(isinstance(rounding.scale, DelayedScaling) for rounding in roundings)
        self.states: dict[tuple[str, str, str], Delayed] = {}  # of delayed scaling: layer, role, use
        if program_order or self.delays:  # whose numbers, or scales, are those of one run alone
            self.handle += f"-{id(self):x}"
        self.listener: Callable[[Event], None] | None = None  # of all calls (`softnum.torch.statistics`)
        self._layers: dict[tuple[str, bool], LayerDesign] = {}
        self._stochastic: dict[tuple[str, bool], bool] = {}
        self._scaled: dict[str, bool] = {}
        self._backends: dict[tuple, object] = {}
        self._plain_gradients: dict[str, bool] = {}  # of which modules gradients are rounded to binary32 alone
        _KNOWN.setdefault(self.handle, self)

    @property
    def rounds_gradients(self) -> bool:
        """Whether gradients of parameters differ from what a backward pass delivers: scaled, rounded, or counted."""
        if self.sites is not None:
            return True
        plain, tables = format("binary32"), [self.design.roles, *(roles for _, roles, *_ in self.design.layers)]
        roundings = [table[role] for table in tables for role in ("default", "weight_gradients") if role in table]
        return self.design.loss != LossScaling() or any(rounding.format != plain for rounding in roundings)

    @property
    def adds_gradients(self) -> bool:
        """Whether gradients that meet are added otherwise than in binary32 to nearest even, or counted."""
        plain, tables = RoleRounding(format("binary32")), [self.design.roles, *(r for _, r, *_ in self.design.layers)]
        roundings = [table[role] for table in tables for role in ("default", "elementwise") if role in table]
        return self.sites is not None or any(rounding != plain for rounding in roundings)

    @property
    def rounds_output(self) -> bool:
        """Whether rounding the result of the last layer's product to the role ``output`` changes it, or is counted."""
        if self.last is None:
            return False
        layer = self.layer(self.last)
        return self.sites is not None or layer.roles["output"].format != layer.units["forward"].result

    def counts_calls(self, path: str) -> bool:
        """Whether it matters which call of a layer one is: it takes random bits, or has delayed scales.

        >>> Arithmetic("c-wang-fp8").counts_calls("conv1"), Arithmetic("g-q44-stochastic").counts_calls("conv1")
        (False, True)
        """
        return self.delays or self.takes_bits(path)

    def takes_bits(self, path: str, *, elementwise: bool = False) -> bool:
        """Whether a layer's forward or backward pass rounds stochastically; elementwise: what is no product alone."""
        if (path, elementwise) not in self._stochastic:
            layers = [self.layer(path, looked_up=looked_up) for looked_up in (False, True)]
            self._stochastic[path, elementwise] = any(
                any(
                    rounding.stochastic for role, rounding in layer.roles.items()
                    if (role in ("elementwise", "statistics") if elementwise else role not in UPDATE_ROLES)
                )
                or (not elementwise and any(unit.stochastic for unit in layer.units.values()))
                for layer in layers
            )  # fmt: skip
        return self._stochastic[path, elementwise]

    def scales_all(self, path: str) -> bool:
        """Whether scales of a layer's operands follow from all of a tensor.

        >>> Arithmetic("c-wang-fp8").scales_all("conv1"), Arithmetic("te-float8-current-scaling").scales_all("conv1")
        (False, True)
        """
        if path not in self._scaled:
            roles = self.layer(path).roles
            self._scaled[path] = any(of_all(roles[role]) for role in (*_OPERANDS, SAVED) if role in roles)
        return self._scaled[path]

    def tiles(self, path: str, name: str) -> list[int]:
        """How many neighbours across samples a function's operands share scales with: rows of what a linear one or a
        convolution takes, or elements of matrices as they are saved.

        >>> Arithmetic("c-wang-fp8").tiles("conv1", "conv2d")
        []
        """
        roles = self.layer(path).roles
        if name == "matmul":
            saved = roles.get(SAVED)
            return [saved.format.block_size or 0] if saved is not None and saved.block else []
        scales = (roles[role].scale for role in _OPERANDS if role in roles and role not in _WEIGHTS)
        rows = (block_of(scale)[0] for scale in scales if scale is not None)
        return [count for count in rows if count not in (None, 1)]

    def layer(self, path: str, *, looked_up: bool = False) -> LayerDesign:
        """The roundings and units of a layer (`softnum.train.Design.layer`).

        Parameters
        ----------
        path : str
            The module's, as ``named_modules`` has it.
        looked_up : bool
            Whether its weights are rows that are looked up.
        """
        asked = path, looked_up
        if asked not in self._layers:
            name = self.known_as.get(path, path)
            layer = self.design.layer(name, first=path == self.first, looked_up=looked_up)
            _check_sparsity(path, layer)
            self._layers[asked] = layer
        return self._layers[asked]

    def finish(self, sharing: int = 0) -> None:
        """End a step: delayed scales of the next one follow from what was multiplied so far, on all ranks.

        sharing: the number of the processes that share batches, as states have it; 0: there is one.
        """
        if self.states and sharing:
            places = sorted(self.states)
            noted = [float(self.states[place].history[0]) for place in places]
            where = "the operands of delayed scaling"
            for place, most in zip(places, Sharing.of(sharing).largest(noted, str(places), where), strict=True):
                self.states[place].history[0] = most
        for (layer, role, _), state in self.states.items():
            self.layer(layer).roles[role].scale.update(state)

    def watched(self, listener: Callable[[Event], None]) -> Arithmetic:
        """The same arithmetic, whose calls alone tell a listener what they compute."""
        twin = copy.copy(self)
        twin.handle, twin.listener = f"{self.handle}-{id(twin):x}", listener
        _KNOWN[twin.handle] = twin
        return twin

    def check_layers(self, paths: list[str]) -> None:
        """Raise ValueError if a ``[layers]`` pattern of the design, or a name stated for it, matches none of a model's.

        >>> Arithmetic("c-wang-fp8").check_layers(["conv1", "fc"])
        """
        for path in (*self.known_as, self.first, self.last):
            if path is not None and path not in paths:
                raise ValueError(f"the model has no module {path!r} (it has {', '.join(paths)})")
        try:
            self.design.check_layers([self.known_as.get(path, path) for path in paths])
        except ValueError as error:
            raise ValueError(
                f"{error}; where a module has another name than the design's, state it: "
                'known_as={"path.of.module": "name"}'
            ) from error

    def call(
        self, layer: str, state: torch.Tensor, call: int | str, *, looked_up: bool = False, device: str = "cpu"
    ) -> Call:  # fmt: skip
        """The arithmetic of one call of a layer, whose arrays lie on a device ("cpu", "cuda")."""
        kind = Call if self.sites is None else _CallInOrder
        made = kind(self, layer, self.layer(layer, looked_up=looked_up), state, call, device)
        if self.listener is not None:
            watch(made, made.told(self.listener))
        return made

    def unscaled(self, gradient, path: str, state: torch.Tensor):
        """`Call.parameter_gradient` of binary32 numbers where that is a division by a power of two; None elsewhere.

        That is rounded once, as the quotient in binary64 is that a design rounds to binary32.
        """
        if path not in self._plain_gradients:
            rounding = self.layer(path).roles["weight_gradients"]
            self._plain_gradients[path] = rounding == RoleRounding(format("binary32"))
        plain = self._plain_gradients[path] and self.sites is None and self.listener is None
        plain = plain and isinstance(gradient, np.ndarray) and gradient.dtype == np.float32
        scale = _loss_scale(state[LOSS_SCALE].item())
        if not plain or not 1 <= scale <= 2.0**126 or math.frexp(scale)[0] != 0.5:
            return None
        with PlainEnvironment():
            return gradient / np.float32(scale)

    def device_of(self, x: torch.Tensor, layer: str, state: torch.Tensor, *, looked_up: bool = False) -> str:
        """Where a call of a layer that takes a tensor is computed: where it lies, if kernels are there.

        Of several ranks, whose rows have random bits of their own, on the CPU.

        >>> Arithmetic("c-wang-fp8").device_of(torch.zeros(2), "conv1", new_state(7))
        'cpu'
        """
        alone = len(state) <= RANK or not self.layer(layer, looked_up=looked_up).random
        return device_of(x) if alone else "cpu"

    def backend(self, design: LayerDesign, device: str = "cpu"):
        """What computes with the arrays of a layer on a device: on a carrier that holds all its numbers."""
        key = id(design), torch.get_num_threads(), device  # of designs that `layer` keeps
        if key not in self._backends:
            carrier = np.float32 if fits_binary32([design]) else np.float64
            self._backends[key] = make_backend(device, carrier, threads=key[1])
        return self._backends[key]

    def host_copies(self) -> dict[str, int]:
        """How many arrays each method of backends of a GPU copied to the host because no kernel computes it."""
        counts: Counter[str] = Counter()
        for backend in self._backends.values():
            counts.update(getattr(backend, "host_copies", {}))
        return dict(counts)

    def __reduce__(self):
        return _restored, (self.design, self.first, self.last, self.known_as, self.sites is not None, self.states)


def _check_sparsity(path: str, layer: LayerDesign) -> None:
    """Raise NotImplementedError if gradients or updates are to be sparse; that operands are pruned is computed."""
    weights, gradients = (layer.roles[role].sparsity for role in ("weights", "weight_gradients"))
    if gradients is not None or (weights is not None and (weights.masked or weights.decay)):
        what = "weight_gradients" if gradients is not None else "weights, whose gradients it masks or decays,"
        raise NotImplementedError(
            f"layer {path!r}: softnum.torch prunes operands alone, and the role {what} is sparse; leave that out, or "
            "train with softnum.train"
        )


def _restored(design, first, last, known_as, program_order, states) -> Arithmetic:
    found = Arithmetic(design, first=first, last=last, known_as=known_as, program_order=program_order)
    found.states.update(states)
    return found


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


def arithmetic_of(handle: str) -> Arithmetic:
    """The arithmetic that operations know by a handle; a shipped design's name stands for that design.

    >>> arithmetic_of("c-wang-fp8").design.name
    'c-wang-fp8'
    """
    found = _KNOWN.get(handle)
    if found is None:
        if not re.fullmatch(r"[\w.+-]+-[0-9a-f]{16}(-[0-9a-f]+)*", handle):
            found = _KNOWN[handle] = Arithmetic(handle)
            return found
        raise ValueError(
            f"no arithmetic {handle!r} is known to this process; make the one that the program was exported with, "
            "from the same design file, before it runs"
        )
    return found


class Call(LayerNumerics):
    """The arithmetic of one call of a layer: `LayerNumerics` with random bits of its own.

    Parameters
    ----------
    arithmetic : Arithmetic
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
        self, arithmetic: Arithmetic, name: str, design: LayerDesign, state: torch.Tensor, call: int | str,
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
        self.loss_scale = _loss_scale(self._state[LOSS_SCALE])
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
        shared = place in _WEIGHTS and not (place == "start" and self.starts_from_rows)
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
        return bool(alone) and place not in _WEIGHTS

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
        if self._place is _ALONE or not of_all(rounding) or (place in _WEIGHTS and self._batch != "stacked"):
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
        if self._place[2] and self._batch == "stacked" and self.design.units[key].stochastic:
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


class _CallInOrder(Call):
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
