"""The arithmetic of one layer: its products, in the units of the passes, and what becomes of their gradients."""

from __future__ import annotations

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.conversion import quantize
from softnum.mac.family import family_of
from softnum.train.designs.convolutions import Convolution, algorithm_of
from softnum.train.designs.design import OPERAND_ROLES, UPDATE
from softnum.train.engine.binary64 import host
from softnum.train.engine.blocks import BlockOperand, PassOperand, ScaledOperand, as_matrices, pixels
from softnum.train.engine.layer_operands import LayerOperands

__all__ = ["LayerNumerics"]


class LayerNumerics(LayerOperands):
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

    def update_product(self, a, b):
        """a @ b of values of the role ``update.step``, in the unit ``update``; rounded to that role."""
        site, unit = self._key(UPDATE), self.design.update_unit
        product = self.numerics.backend.matmul(a, b, unit, None, site if unit.stochastic else None)
        return self.round("update.step", product, of=unit.result)

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
