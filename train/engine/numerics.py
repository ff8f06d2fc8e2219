"""A design bound to a network: which rounding and which unit each layer uses, and with which random bits.

Random bits. Every rounding of a run has a key ``(seed, stream)`` of `softnum.quantize` and `softnum.matmul`, with

    stream = evaluation * 2**63 + iteration * 2**16 + site

where iteration counts parameter updates from 1 (0: the initial values), evaluation is 1 in an evaluation after that
iteration, and site numbers the roundings of the iteration from 0 in program order: every rounding to a role, every
matrix product and every dropout counts, whether or not it is stochastic and whether or not it changes anything. So a
run's random bits follow from its seed alone, and making one role stochastic leaves the bits of the others as they were.
A role with a block format, or a scale of tiles or rows, is rounded where a product first needs its numbers along a
dimension K: that is where the rounding counts.

Delayed scaling. A role's state (`softnum.train.recipes.Delayed`) is one for each layer and parameter whose products the
role's numbers enter, and for each of the two products of an attention. All that enters these products in an iteration
has the scale of the state, and counts for its history; `Numerics.finish` ends the iteration. An evaluation has the
scale of the iteration before and leaves no trace.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from softnum.formats.facts import is_exact_in
from softnum.runtime.plain import check_plain
from softnum.train.designs.design import Design
from softnum.train.engine.devices import make_backend
from softnum.train.engine.layer_numerics import LayerNumerics
from softnum.train.engine.layer_operands import carried_roundings, rounded_rows
from softnum.train.recipes import Delayed

__all__ = ["STAGES", "LayerNumerics", "Numerics", "check_seed", "fits_binary32", "rounded_rows"]

#: what an iteration does, in this order for each of its losses
STAGES = ("forward", "backward", "update")

_SITE_BITS = 16
_ITERATION_BITS = 47


def check_seed(seed: object) -> None:
    """Raise ValueError unless a value is a seed.

    >>> check_seed(7)
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise ValueError(f"seed must be an integer in 0..2**64-1, got {seed!r}")


class Numerics:
    """A design's arithmetic over one run of one network.

    Parameters
    ----------
    design : Design
    names : list of str
        The network's layers, in the order in which the input passes them.
    seed : int
        The run's seed, 0 to 2**64 - 1.
    threads : int
        Of a product; at most, of other arithmetic. Results do not depend on it.
    device : str
        The device of arrays and computation (``softnum.train.engine.devices.DEVICES``). Results do not depend on it.
    looked_up : set of str
        The layers whose weights are rows that are looked up (`softnum.train.Design.layer`).

    Raises
    ------
    ValueError
        If a ``[layers]`` pattern of the design matches no layer, a unit cannot take its operands, or the design states
        the engine "torch".

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.train import Numerics, load_design
    >>> layer = Numerics(load_design("c-wang-fp8"), ["fc1", "fc2", "fc3"], seed=7).layer("fc2")
    >>> layer.round("weights", np.float32([0.1, 0.3]))
    array([0.09997559, 0.2998047 ], dtype=float32)
    """

    def __init__(
        self, design: Design, names: list[str], *, seed: int, threads: int = 1, device: str = "cpu",
        looked_up: Set[str] = frozenset(),
    ) -> None:  # fmt: skip
        check_seed(seed)
        if design.engine != "exact":
            raise ValueError(
                f"{design.path}: elementwise.engine is {design.engine!r}, the functions of PyTorch, and softnum.train "
                "has only softnum's; leave it out, or train a PyTorch model (softnum.torch)"
            )
        design.check_layers(names)
        layers = {
            name: design.layer(name, first=position == 0, looked_up=name in looked_up)
            for position, name in enumerate(names)
        }
        self.seed = int(seed)
        self.loss_scale, self.looked_up = design.loss_scale, frozenset(looked_up)
        carrier = np.float32 if fits_binary32(layers.values()) else np.float64
        self.backend = make_backend(device, carrier, threads=threads)
        self._layers = {
            name: LayerNumerics(self, name, layer, position == 0)
            for position, (name, layer) in enumerate(layers.items())
        }
        self.last = self._layers[names[-1]]
        self.states: dict[tuple[str, str, str], Delayed] = {}  # of delayed scaling: layer, role, use
        self.place: tuple[str, str] | None = None  # layer and role of the rounding that was numbered last
        self.stage = STAGES[0]
        self.begin(0)

    def layer(self, name: str) -> LayerNumerics:
        """The arithmetic of a layer."""
        return self._layers[name]

    def begin(self, iteration: int, *, evaluation: bool = False) -> None:
        """Number rounding sites from 0 again, for an iteration or the evaluation after it."""
        if not 0 <= iteration < 2**_ITERATION_BITS:
            raise ValueError(f"iteration must lie in 0..2**{_ITERATION_BITS}-1, got {iteration}")
        check_plain("training")
        self.iteration = iteration
        self._learns = iteration > 0 and not evaluation
        self._base = (int(evaluation) << 63) | (iteration << _SITE_BITS)
        self.work(self.seed)

    def work(self, seed: int, site: int = 0) -> int:
        """Number rounding sites of the iteration from here on, with a seed's bits; returns the number before.

        A worker's (``softnum.train.update.workers``): the run's own seed is that of worker 0.
        """
        before, self._site, self._bits_of = getattr(self, "_site", 0), site, int(seed)
        self.place, self.stage = None, STAGES[0]
        return before

    def delayed(self, layer: str, role: str, use: str) -> Delayed:
        """The state of a use's delayed scaling; what is noted in it counts in iterations alone, not in evaluations."""
        place = layer, role, use
        if place not in self.states:
            self.states[place] = self._layers[layer].design.roles[role].scale.start()
        state = self.states[place]
        return state if self._learns else Delayed(state.history.copy(), state.scale)

    def finish(self) -> None:
        """End an iteration: the scales of delayed scaling follow from what entered products so far."""
        for (layer, role, _), state in self.states.items():
            self._layers[layer].design.roles[role].scale.update(state)

    def next_key(self) -> tuple[int, int]:
        """The key of the next rounding site.

        >>> from softnum.train import Numerics, load_design
        >>> numerics = Numerics(load_design("a-float32"), ["fc1"], seed=7)
        >>> numerics.begin(1)
        >>> numerics.next_key(), numerics.next_key()
        ((7, 65536), (7, 65537))
        """
        site = self._site
        if site >= 1 << _SITE_BITS:
            raise ValueError(f"one iteration has more than {1 << _SITE_BITS} rounding sites")
        self._site = site + 1
        return self._bits_of, self._base | site


def fits_binary32(layers) -> bool:
    """Whether binary32 holds all numbers of layers' roles and units.

    >>> from softnum.train import load_design
    >>> fits_binary32([load_design("c-wang-fp8").layer("conv1")])
    True
    """
    formats = {}
    for layer in layers:
        for rounding in carried_roundings(layer):
            formats[id(rounding.format)] = rounding.format
        for unit in layer.units.values():
            formats.update({id(fmt): fmt for fmt in (unit.c_format, unit.result)})
        if layer.convolution is not None and layer.convolution.output is not None:
            output = layer.convolution.output
            formats.update({id(fmt): fmt for fmt in (output.c_format, output.result)})
    return all(is_exact_in(fmt, "float32") for fmt in formats.values())
