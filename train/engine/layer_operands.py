"""Operands of a layer's products: rounded, pruned, in blocks, with scales, or in another way in each pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softnum.formats.names import format
from softnum.train.designs.design import (
    BLOCK_ROLES,
    COMPENSATION,
    PASS_ROLES,
    SAVED,
    LayerDesign,
    RoleRounding,
    scaled_by,
)  # fmt: skip
from softnum.train.designs.scales import is_shared, of_tensor
from softnum.train.engine.blocks import BlockOperand, PassOperand, ScaledOperand
from softnum.train.engine.layer_rounding import LayerRounding
from softnum.train.recipes import DelayedScaling, Scaled

__all__ = ["LayerOperands", "carried_roundings", "rounded_rows"]


class _Trusted(NamedTuple):
    """An operand of the forward pass, the numbers that it multiplies, and what makes gradients of these ones of x's."""

    operand: ScaledOperand
    numbers: Callable
    back: Callable


class LayerOperands(LayerRounding):
    """Numbers of one layer in one run as operands of matrix products, and as states in blocks."""

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


def carried_roundings(layer: LayerDesign):
    """Those of all roles but operands in blocks, which travel as codes, and of the memory of sparse gradients."""
    operands = (*BLOCK_ROLES, SAVED, *PASS_ROLES.values())
    yield from (rounding for role, rounding in layer.roles.items() if not (rounding.block and role in operands))
    sparsity = layer.roles["weight_gradients"].sparsity
    if sparsity is not None and sparsity.feedback is not None:
        yield sparsity.feedback
