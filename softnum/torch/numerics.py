"""A design bound to the layers of a PyTorch model: which roundings and units each has."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from softnum.formats.blocks import format
from softnum.runtime._core import PlainEnvironment
from softnum.torch.calls import (
    LOSS_SCALE,
    OPERANDS,
    RANK,
    UPDATE_ROLES,
    WEIGHTS,
    Call,
    CallInOrder,
    Sites,
    loss_scale_of,
)  # fmt: skip
from softnum.torch.devices import device_of
from softnum.torch.sharing import Sharing
from softnum.train.designs.design import (
    NO_MASTER,
    SAVED,
    Design,
    LayerDesign,
    RoleRounding,
)
from softnum.train.designs.loss_scaling import LossScaling
from softnum.train.designs.reader import load_design
from softnum.train.designs.scales import block_of, of_all
from softnum.train.engine.devices import make_backend
from softnum.train.engine.numerics import fits_binary32
from softnum.train.engine.watch import Event, watch
from softnum.train.recipes import Delayed, DelayedScaling

__all__ = ["Arithmetic", "arithmetic_of"]

_KNOWN: dict[str, Arithmetic] = {}


class Arithmetic:
    """A design bound to the layers of a PyTorch model.

    Parameters
    ----------
    design : Design, str or pathlib.Path
        As `softnum.train.load_design` reads it.
    first, last : str, optional
        The layer that takes the model's input, whose ``activations`` are the role ``input``; the layer whose result is
        the model's, rounded to the role ``output``.
    known_as : dict, optional
        Module path -> its name in the design, if that differs.
    program_order : bool
        Number roundings as `softnum.train` does, in the order in which they are computed, which must be that of one
        forward and one backward pass for each update: the bits of a run are then those of a run of the same network
        there.

    Attributes
    ----------
    handle : str
        The identifier that operations use for it; equal arithmetic has an equal handle.
    sites : Sites or None
        For arithmetic in program order: the numbers given so far.
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
        return self.sites is not None or layer.roles["output"].format != layer.delivered

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
            self._scaled[path] = any(of_all(roles[role]) for role in (*OPERANDS, SAVED) if role in roles)
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
        scales = (roles[role].scale for role in OPERANDS if role in roles and role not in WEIGHTS)
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
        kind = Call if self.sites is None else CallInOrder
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
        scale = loss_scale_of(state[LOSS_SCALE].item())
        if not plain or not 1 <= scale <= 2.0**126 or math.frexp(scale)[0] != 0.5:
            return None
        with PlainEnvironment():
            return gradient / np.float32(scale)

    def device_of(self, x: torch.Tensor, layer: str, state: torch.Tensor, *, looked_up: bool = False) -> str:
        """Where a call of a layer that takes a tensor is computed: where it lies, if kernels are there.

        Of several ranks, whose rows have random bits of their own, on the CPU.

        >>> from softnum.torch.calls import new_state
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
