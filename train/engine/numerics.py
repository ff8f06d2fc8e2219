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

import dataclasses
from collections.abc import Callable, Set
from typing import NamedTuple

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.conversion import quantize
from softnum.formats.facts import is_exact_in
from softnum.formats.names import format
from softnum.mac.family import family_of
from softnum.runtime.plain import check_plain
from softnum.train.designs.convolutions import Convolution, algorithm_of
from softnum.train.designs.design import (
    BLOCK_ROLES,
    COMPENSATION,
    OPERAND_ROLES,
    PASS_ROLES,
    SAVED,
    UPDATE,
    Design,
    LayerDesign,
    RoleRounding,
    scaled_by,
)  # fmt: skip
from softnum.train.designs.scales import is_shared, of_tensor
from softnum.train.engine.backend import role_key
from softnum.train.engine.binary64 import host
from softnum.train.engine.blocks import BlockOperand, PassOperand, ScaledOperand, as_matrices, pixels
from softnum.train.engine.devices import make_backend
from softnum.train.recipes import Delayed, DelayedScaling, Scaled

__all__ = ["STAGES", "LayerNumerics", "Numerics", "check_seed", "fits_binary32", "rounded_rows"]

#: what an iteration does, in this order for each of its losses
STAGES = ("forward", "backward", "update")

_SITE_BITS = 16
_ITERATION_BITS = 47


class LayerNumerics:
    """The arithmetic of one layer in one run.

    Parameters
    ----------
    numerics : Numerics
        The run's numerics, which number the rounding sites.
    name : str
        The layer.
    design : LayerDesign
        Its roundings and units.
    first : bool
        Whether it takes the network's input.
    """

    def __init__(self, numerics: Numerics, name: str, design: LayerDesign, first: bool) -> None:
        self.numerics = numerics
        self._bind(name, design, first)

    def _bind(self, name: str, design: LayerDesign, first: bool) -> None:
        self.name, self.design, self.first = name, design, first
        self.known_as = name  # by the design
        self.operand_role = "input" if first else "activations"
        self.start_rounding = design.start_roundings[first]
        self.convolved: dict[str, str] = {}  # by what, in each pass

    def round(self, role: str, x, *, of=None):
        """x rounded as the design says for a role, as carriers.

        of= is a format that all of x are values of: rounding to that same format changes nothing and is left out.
        """
        return self._round(role, self.design.roles[role], x, of)

    def same(self, role: str, x, of: str = "elementwise"):
        """Values of a role rounded to another, as by `round`; nothing is done where the two have one format."""
        return self.round(role, x, of=self.format(of))

    def axpy(self, role: str, alpha: float, x, y):
        """y + alpha * x of carriers, rounded once as the design says for a role."""
        return self.numerics.backend.axpy(alpha, x, y, self.design.roles[role], self._key(role))

    def compute(self, operation: str, role: str, *operands):
        """One of softnum's operations on carriers, the exact result rounded once as the design says for a role.

        An operand that is a Python number is rounded to the host type.
        """
        backend = self.numerics.backend
        operands = tuple(backend.constant(x) if isinstance(x, float) else x for x in operands)
        key, rounding = self._key(role), self.design.roles[role]
        try:
            return backend.compute(operation, operands, rounding, key)
        except ValueError as error:  # 0 / 0, where the format has no NaN
            raise ValueError(
                f"{error} (layer {self.name!r}, role {role!r}); give the role a format with finer or larger numbers, "
                "or one with NaN"
            ) from error

    def working_copy(self, weight, groups=None):
        """The weights as products take them (`operand`), from a parameter's master copy and pruned by it.

        groups: as of `operand`. Which are kept stays with the parameter, as its ``kept``.
        """
        values, weight.kept = self.operand("weights", weight.value, groups, of=self.format("master"), use=weight.name)
        return values

    def operand(self, role: str, x, groups=None, *, of=None, use: str = ""):
        """x as an operand of matrix products: rounded to a role, and pruned where the role is sparse.

        Parameters
        ----------
        role : str
        x : array
        groups : (tuple of int, int), optional
            A shape of x, and the axis of it that is the reduction dimension: along it lie the groups of a pattern.
        of : Format, optional
            As of `round`.
        use : str
            Which of the layer's uses of the role this is: each has a state of delayed scaling.

        Returns
        -------
        values : array, BlockOperand, ScaledOperand or PassOperand
            Of a role that has a block format, or a scale of less than the tensor, the pruned x itself, which each
            product rounds along its own K; of one that a pass rounds in its own way, or from a saved copy, too.
        kept : bool array or None
            Which of x are kept, by their sizes before the rounding; None of a role that is not sparse.

        Raises
        ------
        ValueError
            If the role has a pattern, and the operation no reduction dimension for it.
        """
        rounding = self.design.roles[role]
        if role in self.design.whole:
            return self._round(role, rounding, x, of), None
        passes = any(name in self.design.roles for (_, one), name in PASS_ROLES.items() if one == role)
        saved = SAVED in self.design.roles and role in ("activations", "input")
        values = x if passes or saved or rounding.by_products else self.round(role, x, of=of)
        kept = None if rounding.sparsity is None else self.largest(role, x, groups)
        values = self.select(role, values, kept)
        first = self._trusted(role, values, use)
        if not (passes or saved or first):
            return self._rounded(role, values, use), kept
        made: dict[tuple[str, bool], object] = {}

        def of_pass(key: str):
            if first is not None and key == "forward":
                return first.operand
            which = name, copied = self.design.name(key, role), saved and key == "backward_weight"
            if which not in made:
                own = self.design.roles[name]
                numbers, held = (values, of) if first is None else (first.numbers(), None)
                if copied:
                    numbers, held = self.saved(numbers), self.format(SAVED)
                numbers = numbers if own.by_products else self._round(name, own, numbers, held)
                made[which] = self._rounded(name, numbers, use)
            return made[which]

        return PassOperand(values, of_pass, self.turned, None if first is None else first.back), kept

    def _trusted(self, role: str, x, use: str) -> _Trusted | None:
        """What the forward pass makes of x, if the backward passes take that, and gradients pass back where trusted."""
        name = self.design.name("forward", role)
        rounding, axis = self.design.roles[name], -2 if role == "weights" else -1
        if not rounding.trust:
            return None
        operand, backend, transform = self._scaled(name, x, use), self.numerics.backend, self._drawn(rounding)
        operand.along(axis)  # rounded here, in the forward pass, whoever needs it
        mask = backend.trusted(x, rounding.scale, transform, axis)

        def numbers():
            found = backend.numbers(operand.along(axis))
            return self.turned(found) if axis == -2 else found

        return _Trusted(operand, numbers, lambda gradient: backend.returned(gradient, mask, transform, axis))

    def returned(self, operand, gradient):
        """The gradient of an operand's numbers from that of what the forward pass multiplies: where it is trusted."""
        back = operand.back if isinstance(operand, PassOperand) else None
        return gradient if back is None else back(gradient)

    def refuse_trust(self, what: str, *operands) -> None:
        """Raise ValueError if gradients of operands pass back only where they are trusted; what: whose cannot."""
        if any(isinstance(operand, PassOperand) and operand.back is not None for operand in operands):
            raise ValueError(
                f'layer {self.name!r}: {what} have straight-through gradients, and a role states backward = "trust"; '
                f'state other roles for this layer: [layers."{self.name}".roles]'
            )

    def _drawn(self, rounding: RoleRounding):
        """A rounding's Hadamard transform, with the signs of this layer in this iteration if they are random."""
        text = f"{self.numerics.seed}/{self.known_as}/{self.numerics.iteration}"
        return None if rounding.hadamard is None else rounding.hadamard.drawn(text)

    def saved(self, x):
        """x as it is kept for the gradient of weights: in the role ``saved_activations``, blocks along x in C order."""
        rounding, backend = self.design.roles[SAVED], self.numerics.backend
        if not rounding.block:
            return self.round(SAVED, x)
        key, flat = self._key(SAVED), backend.reshape(x, (-1,))
        blocks = self._in_blocks_of(SAVED, flat, -1, key)
        return backend.reshape(backend.numbers(blocks), x.shape)

    def _rounded(self, role: str, values, use: str):
        """Pruned numbers as an operand: rounded if the role has single numbers, else to be rounded by products."""
        rounding = self.design.roles[role]
        if rounding.block:
            return BlockOperand(values, lambda numbers, axis: self._in_blocks(role, numbers, axis))
        return values if rounding.scale is None else self._scaled(role, values, use)

    def _scaled(self, role: str, x, use: str, *, mixed: bool = True) -> ScaledOperand:
        """Numbers that a role's scale rounds; mixed: whether its Hadamard transform, if it has one, comes before."""
        rounding = self.design.roles[role]
        transform = self._drawn(rounding) if mixed else None
        rounding = dataclasses.replace(rounding, hadamard=transform)
        if of_tensor(rounding.scale) and transform is None:
            delayed = isinstance(rounding.scale, DelayedScaling)
            state = self.numerics.delayed(self.name, role, use) if delayed else None
            key, largest = self._key(role), () if delayed else self._of_whole(role, rounding, x, None)
            whole = self.numerics.backend.quantize_scaled(x, rounding, None, key, state, *largest)
            return self._of_elements(whole.elements, whole.scales)

        def rounded(numbers, axis: int, made: Scaled | None) -> Scaled:
            if made is None or transform is not None or not is_shared(rounding.scale):
                key, largest = self._block_key(role, axis), self._of_whole(role, rounding, numbers, axis)
                return self.numerics.backend.quantize_scaled(numbers, rounding, axis, key, None, *largest)
            return made._replace(elements=self.turned(made.elements), scales=self.turned(made.scales))

        return ScaledOperand(x, rounded)

    def _of_elements(self, elements, scale) -> ScaledOperand:
        """Elements as an operand of one scale."""

        def along(elements, axis: int, made: Scaled | None) -> Scaled:
            return Scaled(elements if axis == -1 else self.turned(elements), scale, (None, None))

        return ScaledOperand(elements, along)

    def _with_scale(self, operand) -> ScaledOperand:
        """An operand as one that has scales: numbers without have the scale 1."""
        if isinstance(operand, ScaledOperand):
            return operand
        return self._of_elements(operand, np.ones((1, 1), np.float32))

    def _in_blocks(self, role: str, x, axis: int):
        return self._in_blocks_of(role, x, axis, self._block_key(role, axis))

    def _in_blocks_of(self, role: str, x, axis: int, key):
        rounding, quantize = self.design.roles[role], self.numerics.backend.quantize_blocks
        return self._with_scales(role, quantize, x, rounding, axis, key, *self._of_whole(role, rounding, x, axis))

    def _with_scales(self, role: str, quantize: Callable, *arguments):
        try:
            return quantize(*arguments)
        except ValueError as error:  # an infinity or a NaN, where scales have no NaN
            raise ValueError(f"{error} (layer {self.name!r}, role {role!r}); give the role scales with NaN") from error

    def _of_whole(self, place: str, rounding: RoleRounding, x, axis: int | None) -> tuple[float, ...]:
        """The largest magnitude of what an operand is a part of (`NumpyBackend.magnitude`); none if it is the whole."""
        return ()

    def _block_key(self, role: str, axis: int) -> tuple[int, int]:
        """The key of rounding a role to blocks, or by its scale, along an axis."""
        return self._key(role)

    def store(self, role: str, x, *, of=None):
        """x rounded to a role that stores a state: as of `round`, in a block format in blocks along x in C order."""
        rounding = self.design.roles[role]
        if not rounding.block:
            return self.round(role, x, of=of)
        key = self._key(role)
        return self._with_scales(role, self.numerics.backend.quantize_flat, x, rounding, key)

    @property
    def compensated(self) -> bool:
        """Whether updates of the layer's parameters keep a compensation."""
        return COMPENSATION in self.design.roles

    def update_product(self, a, b):
        """a @ b of values of the role ``update.step``, in the unit ``update``; rounded to that role."""
        site, unit = self._key(UPDATE), self.design.update_unit
        product = self.numerics.backend.matmul(a, b, unit, None, site if unit.stochastic else None)
        return self.round("update.step", product, of=unit.result)

    def turned(self, operand):
        """An operand with its last two axes exchanged."""
        if isinstance(operand, (BlockOperand, PassOperand)):
            return operand.turned()
        backend, rank = self.numerics.backend, operand.ndim
        if rank == 2:
            return backend.transpose(operand)
        return backend.permute(operand, (*range(rank - 2), rank - 1, rank - 2))

    def refuse_blocks(self, what: str) -> None:
        """Raise ValueError if operands have a block format, a scale or another rounding in a pass; what: why not."""
        if SAVED in self.design.roles:
            raise ValueError(
                f"layer {self.name!r}: {what}, and keeps them as they are, not in the role {SAVED!r}; state "
                f'{SAVED} = "none" for this layer: [layers."{self.name}".roles]'
            )
        stated = (name for name in PASS_ROLES.values() if name in self.design.roles)
        for role in (*BLOCK_ROLES, *stated):
            rounding = self.design.roles[role]
            if (rounding.by_products or role not in BLOCK_ROLES) and (role != "input" or self.first):
                raise ValueError(
                    f"layer {self.name!r}: {what}, and role {role!r} has {scaled_by(rounding)}; state "
                    f'formats of single numbers for this layer: [layers."{self.name}".roles] with weights, '
                    f"{self.operand_role} and errors, and units that take these"
                )

    def errors(self, gradient, groups=None, *, use: str = ""):
        """The gradient of a result as an operand of the backward products; groups, use: as of `operand`."""
        return self.operand("errors", gradient, groups, use=use)[0]

    def largest(self, role: str, x, groups=None):
        """Which elements of x the sparsity of a role keeps in this iteration; groups: as of `operand`."""
        sparsity = self.design.roles[role].sparsity
        if sparsity.pattern and groups is None:
            raise ValueError(
                f"layer {self.name!r}, role {role!r}: the groups of {sparsity} lie along the reduction dimension of a "
                "matrix product, and this layer has no such product; state the role for it alone, under "
                f'[layers."{self.name}".roles], without a pattern'
            )
        return sparsity.kept(self.numerics.backend, x, self.numerics.iteration, *(groups or (None, None)))

    def select(self, role: str, x, kept):
        """x where it is kept, else +0; x itself if kept is None."""
        if kept is None or x is None:
            return x
        self.numerics.place = (self.name, role)
        return self.numerics.backend.prune(x, kept, self.design.roles[role].sparsity)

    def round_start(self, x, *, of=None):
        """A bias, or another product, rounded to what the forward unit starts from, in the mode of ``weights``."""
        return self._round("start", self.start_rounding, x, of)

    def round_start_of(self, by: Convolution | None, x, *, of=None):
        """`round_start` of a convolution that is computed by an algorithm; None: directly."""
        if by is None:
            return self.round_start(x, of=of)
        return self._round("start", self.design.start_of_convolution(self.first), x, of)

    def round_sum(self, x, y):
        """x + y of carriers, two biases: as `round_start` of the exact sum, rounded once."""
        return self.numerics.backend.axpy(1.0, y, x, self.start_rounding, self._key("start"))

    def enter(self, x):
        """x as an operand of element-by-element arithmetic: rounded to the role ``elementwise``."""
        return self.round("elementwise", x)

    def constant(self, x: float, rank: int):
        """A number that the user states as an operand of element-by-element arithmetic, in an array of such a rank."""
        return self.enter(np.full((1,) * rank, x))

    def one(self, like):
        """1 in the role ``elementwise``, so often as an array has elements."""
        return self.enter(self.numerics.backend.ones(like.shape))

    def elementwise(self, operation: str, *operands):
        """One of softnum's operations on values of the role ``elementwise``, rounded once to that role."""
        return self.operate("elementwise", operation, *operands)

    def delivered(self, operation: str, *operands):
        """`elementwise` of a result that no gradient takes."""
        return self.elementwise(operation, *operands)

    def operate(self, role: str, operation: str, *operands):
        """One of softnum's operations on values of a role, rounded once to that role."""
        return self.numerics.backend.operate(operation, operands, self.design.roles[role], self._key(role))

    def total(self, role: str, x, *, last: bool = False):
        """The sum of values of a role along the first axis, as a tree: neighbours in pairs, then the sums in pairs.

        An odd last one waits, unrounded; each sum is rounded to the role. last=True: along the last axis, which has one
        element then.

        >>> import numpy as np
        >>> from softnum.train import Numerics, load_design
        >>> layer = Numerics(load_design("d-e6m3-long"), ["fc1", "fc2"], seed=1).layer("fc1")
        >>> layer.total("elementwise", np.ones(64, np.float32))  # one after another, they would stop at 16
        array(64., dtype=float32)
        """
        if last:
            return self._total(role, x, x.shape[-1], "last", (*x.shape[:-1], 1))
        return self._total(role, x, len(x), "rows", x.shape[1:])

    def total_of_channels(self, role: str, x):
        """`total` of each channel of images (N, C, H, W), in the order of image, row and column: an array (C,)."""
        return self._total(role, x, len(x) * x.shape[2] * x.shape[3], "pixels", (x.shape[1],))

    def _total(self, role: str, x, count: int, axes: str, shape):
        keys, backend = self._keys_of_levels(role, count, axes), self.numerics.backend
        return backend.reshape(backend.total(x, self.design.roles[role], keys, axes), shape)

    def _keys_of_levels(self, role: str, count: int, axes: str) -> list:
        """The key of each level of the tree of count numbers along some axes."""
        return [self._key(role) for _ in range((count - 1).bit_length())]

    def last_first(self, x):
        """An array with its last axis before all others."""
        return self.numerics.backend.permute(x, (x.ndim - 1, *range(x.ndim - 1)))

    def quotient(self, role: str, x, count: int):
        """x / count in binary64, rounded to a role."""
        return self.round(role, self.numerics.backend.divide(x, float(count)))

    def kept(self, shape, rate: float):
        """Which elements of an array a dropout keeps, each with probability 1 - rate."""
        return self.numerics.backend.kept(shape, rate, self._key("dropout"))

    def operator_options(self, operator, parameters: list[bool]) -> dict:
        """What a user's operator is called with, forwards and backwards: formats, units, and its roundings' key.

        parameters: for each input, whether it is a parameter.
        """
        role, units, key = self.design.roles["elementwise"], self.design.units, self._key("elementwise")
        formats, sums = {"*": role.format}, {"*": units["forward"], "d*": units["backward_data"]}
        for (name, _), parameter in zip(operator.inputs, parameters, strict=True):
            if parameter:
                sums[f"d{name}"] = units["backward_weight"]
            if not operator.is_elementwise:
                formats[name] = self.format("weights" if parameter else self.operand_role)
        if not operator.is_elementwise:
            formats |= {f"d{name}": self.format("errors") for name in operator.outputs}
        options = {"fmt": formats, "unit": sums, "rounding": role.rounding, "stochastic_bits": role.stochastic_bits}
        if role.overflow is not None:
            options["overflow"] = role.overflow
        if role.stochastic or any(unit.stochastic for unit in sums.values()):
            options["key"] = role_key(role, key)
        return options

    def format(self, role: str):
        """The format of a role."""
        return self.design.roles[role].format

    def _round(self, place: str, rounding: RoleRounding, x, of):
        if rounding.by_products:
            raise TypeError(f"layer {self.name!r}: role {place!r} has {scaled_by(rounding)}; use `operand`")
        key, backend = self._key(place), self.numerics.backend
        known = of is not None and of == rounding.format
        return backend.unchanged(x, rounding) if known else backend.quantize(x, rounding, key)

    def _key(self, place: str) -> tuple[int, int]:
        """The key of the next rounding site, which is one of a role, a pass, or the start of an accumulator."""
        self.numerics.place = (self.name, place)
        return self.numerics.next_key()

    def wire_key(self, rounding: RoleRounding, place: str):
        """The key of rounding what is sent over a wire; a site is counted only where that is stochastic."""
        self.numerics.place = (self.name, place)
        return self._key(place) if rounding.stochastic else None

    def matmul(self, key: str, a, b, c=None):
        """a @ b, operands (`operand`), in the unit of a pass; c is the accumulator's initial value.

        Block operands, and those with scales of less than the tensor, are rounded here, along K: a first, then b. Where
        one has a scale the other has the scale 1 if it has none, and c is added to their product in binary32. Where one
        has a block format and the other has none, its numbers, each element times its scale, are the unit's operands.

        Raises
        ------
        ValueError
            If such a number is none of the unit's operand format.
        """
        a = a.of(key) if isinstance(a, PassOperand) else a
        b = b.of(key) if isinstance(b, PassOperand) else b
        if isinstance(a, BlockOperand) or isinstance(b, BlockOperand):
            if isinstance(a, ScaledOperand) or isinstance(b, ScaledOperand):
                a, b = self._with_scale(a).along(-1), self._with_scale(b).along(-2)
                site, unit = self._key(key), self.design.units[key]
                return self.numerics.backend.matmul_scaled(a, b, unit, c, site if unit.stochastic else None)
            a = a.along(-1) if isinstance(a, BlockOperand) else a
            b = b.along(-2) if isinstance(b, BlockOperand) else b
        site, unit = self._key(key), self.design.units[key]
        if isinstance(a, BlockArray) is not isinstance(b, BlockArray):
            a, b = self._as_numbers(key, a, b)
        try:
            return self.numerics.backend.matmul(a, b, unit, c, site if unit.stochastic else None)
        except ValueError as error:
            if family_of(unit).whole is None:
                raise
            raise ValueError(f"layer {self.name!r}: {key}: {error}") from error  # ranks that cannot share K

    def _as_numbers(self, key: str, *operands) -> list:
        """Operands of a pass, one of them in blocks, as the numbers that its unit multiplies."""
        roles, found = OPERAND_ROLES[key], []
        for role, x, fmt in zip(roles, operands, self.design.units[key].operand, strict=True):
            if isinstance(x, BlockArray):
                numbers = self.numerics.backend.numbers(x)
                values = host(numbers)
                lost = values[(quantize(values, fmt) != values) & ~np.isnan(values)]
                if lost.size:
                    role = self.operand_role if role == "activations" else role
                    raise ValueError(
                        f"layer {self.name!r}: {key} multiplies numbers of role {role!r} ({x.format}) as ones of "
                        f"{fmt}, and {float(lost[0])!r} is none; give the unit an operand with its exponents"
                    )
                x = numbers
            found.append(x)
        return found

    def convolve(self, key: str, a, b, c=None, **geometry):
        """The product of a pass of a convolution in the pass's unit; c is the accumulator's initial value.

        Operands with blocks or scales, and those of a unit that makes whole matrix products alone, are unfolded, one
        matrix a group, and multiplied as matrices: their blocks run along the K that `softnum.conv2d` and its gradients
        state.

        Raises
        ------
        ValueError
            As `algorithm`.
        """
        by = self.algorithm(key, a, b, geometry)
        a, b = (x.of(key) if isinstance(x, PassOperand) else x for x in (a, b))
        if isinstance(a, ScaledOperand) or isinstance(b, ScaledOperand):
            a, b = self._with_scale(a), self._with_scale(b)
        whole = family_of(self.design.units[key]).whole is not None
        if whole or isinstance(a, BlockOperand) or isinstance(b, BlockOperand):
            a, b = (
                x if isinstance(x, BlockOperand) else BlockOperand(x, lambda numbers, axis: numbers) for x in (a, b)
            )
            backend, groups = self.numerics.backend, geometry["groups"]
            first, second, shaped = as_matrices(key, a, b, backend, geometry)
            return shaped(self.matmul(key, first, second, None if c is None else backend.reshape(c, (groups, 1, -1))))
        site, unit = self._key(key), self.design.units[key]
        words = site if unit.stochastic else None
        if by is None:
            return self.numerics.backend.convolve(key, a, b, unit, c, words, geometry)
        return self.numerics.backend.convolve(key, a, b, unit, c, words, geometry, by)

    def algorithm(self, key: str, a, b, geometry: dict) -> Convolution | None:
        """What computes a pass of a convolution of operands, if it is not computed directly.

        Raises
        ------
        ValueError
            If the design's algorithm does not have it, and the design does not say what else.
        """
        shapes = tuple(a.shape), tuple(b.shape)
        by, self.convolved[key] = algorithm_of(self.design, self.known_as, key, *shapes, geometry, first=self.first)
        return by

    def pixels(self, error, groups: int):
        """Errors of images as an operand of matrices: a row for each pixel; of block operands, a matrix a group."""
        backend = self.numerics.backend
        error = error.of("backward_weight") if isinstance(error, PassOperand) else error
        return pixels(error, backend, groups) if isinstance(error, BlockOperand) else backend.pixels(error)

    def column_sums(self, error):
        """ones @ error in the unit ``backward_weight``; error: an operand (..., rows, columns).

        Of a role with a Hadamard transform the errors are rounded once more here, without it.
        """
        backend, rows, role = self.numerics.backend, error.shape[-2], self.design.name("backward_weight", "errors")
        if self.design.roles[role].hadamard is not None:
            error = error.of("backward_weight") if isinstance(error, PassOperand) else error
            error = self._scaled(role, error.values, "", mixed=False)
        unit = self.design.units["backward_weight"]
        if family_of(unit).of_blocks:
            ones = backend.block_ones((1, rows), unit.operand[0])
        else:
            ones = backend.ones((1, rows))
        return self.matmul("backward_weight", ones, error)

    def weight_gradient(self, product, *, of=None):
        """A scaled gradient with the loss scale divided out (binary64), rounded to ``weight_gradients``.

        of= is the format that all of it are values of; default: what the unit ``backward_weight`` delivers.
        """
        scale = self.numerics.loss_scale
        of = (of or self.design.units["backward_weight"].result) if scale == 1.0 else None
        return self.round("weight_gradients", self.numerics.backend.divide(product, scale), of=of)

    def pruned_weights_gradient(self, parameter):
        """The gradient of a parameter whose working copy was pruned, as the sparsity of ``weights`` says."""
        sparsity, gradient, kept = self.design.roles["weights"].sparsity, parameter.gradient, parameter.kept
        if sparsity.masked:
            gradient = self.select("weights", gradient, kept)
        if sparsity.decay:
            pruned = self.select("weights", parameter.value, ~kept)
            gradient = self.axpy("weight_gradients", float(np.float32(sparsity.decay)), pruned, gradient)
        return gradient

    def remember(self, gradient, residual):
        """gradient + residual, what was left out of gradients before, rounded as the memory is."""
        feedback = self.design.roles["weight_gradients"].sparsity.feedback
        return self.numerics.backend.axpy(1.0, gradient, residual, feedback, self._key("weight_gradients"))


class _Trusted(NamedTuple):
    """An operand of the forward pass, the numbers that it multiplies, and what makes gradients of these ones of x's."""

    operand: ScaledOperand
    numbers: Callable
    back: Callable


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


_CARRIERS = {np.dtype(f"float{bits}"): RoleRounding(format(f"binary{bits}")) for bits in (32, 64)}


def rounded_rows(backend, x, rounding: RoleRounding, key=None):
    """Rows rounded each by itself, on the backend's carrier; the blocks of a block format begin with each row.

    Parameters
    ----------
    backend : NumpyBackend
    x : array (rows, features)
    rounding : RoleRounding
    key : optional
        Of a stochastic rounding.

    Examples
    --------
    >>> from softnum.train.engine.backend import NumpyBackend
    >>> rounded_rows(NumpyBackend(), np.float32([[1.1, 3.3]]), RoleRounding(format("e5m2")))
    array([[1. , 3.5]], dtype=float32)
    """
    if not rounding.block:
        return backend.quantize(x, rounding, key)
    values = backend.numbers(backend.quantize_blocks(x, rounding, -1, key))
    return backend.quantize(values, _CARRIERS[np.dtype(backend.dtype)], None)


def fits_binary32(layers) -> bool:
    """Whether binary32 holds all numbers of layers' roles and units.

    >>> from softnum.train import load_design
    >>> fits_binary32([load_design("c-wang-fp8").layer("conv1")])
    True
    """
    formats = {}
    for layer in layers:
        for rounding in _roundings(layer):
            formats[id(rounding.format)] = rounding.format
        for unit in layer.units.values():
            formats.update({id(fmt): fmt for fmt in (unit.c_format, unit.result)})
        if layer.convolution is not None and layer.convolution.output is not None:
            output = layer.convolution.output
            formats.update({id(fmt): fmt for fmt in (output.c_format, output.result)})
    return all(is_exact_in(fmt, "float32") for fmt in formats.values())


def _roundings(layer: LayerDesign):
    """Those of all roles but operands in blocks, which travel as codes, and of the memory of sparse gradients."""
    operands = (*BLOCK_ROLES, SAVED, *PASS_ROLES.values())
    yield from (rounding for role, rounding in layer.roles.items() if not (rounding.block and role in operands))
    sparsity = layer.roles["weight_gradients"].sparsity
    if sparsity is not None and sparsity.feedback is not None:
        yield sparsity.feedback
