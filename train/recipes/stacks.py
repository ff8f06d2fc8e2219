"""Stacks of matrices under one quantizer: tiles within each matrix, factors of a tensor of them all."""

from __future__ import annotations

import numpy as np

from softnum.train.recipes.scaled import Scaled

__all__ = ["scaled_stack"]


def scaled_stack(quantizer, x, *options, **named) -> Scaled:
    """Matrices, of the last two axes, by a quantizer of tiles: BlockScaling, MXScaling, MXFP4Scaling or NVFP4Scaling.

    The quantizer sees the rows of all matrices under each other, each filled up with rows of +0 to whole tiles.

    Parameters
    ----------
    quantizer
        Whose tiles have a number of rows.
    x : array (..., rows, columns)
        As the quantizer takes it.
    options, named
        What else it takes.

    Returns
    -------
    Scaled (..., rows, columns)

    Raises
    ------
    ValueError
        If a tile has all rows, of more than one matrix.

    Examples
    --------
    >>> from softnum.train.recipes import NVFP4Scaling
    >>> x = np.float32([[[1, 2]], [[3, 24]]])
    >>> scaled = scaled_stack(NVFP4Scaling(), x)
    >>> scaled.scales.tolist(), scaled.tensor[0].tolist()
    ([[[36.0]], [[448.0]]], [[24.0]])
    """
    if x.ndim == 2:
        return quantizer(x, *options, **named)
    *stack, rows, columns = x.shape
    tall = quantizer.block[0]
    if tall is None:
        raise ValueError(f"tiles of all rows are those of one matrix, got {quantizer.block} for shape {x.shape}")
    missing = -rows % tall
    whole = np.pad(x, [(0, 0)] * len(stack) + [(0, missing), (0, 0)]) if missing else x
    made = quantizer(whole.reshape(-1, columns), *options, **named)
    tensor = made.tensor
    if tensor is not None and tensor[0].size > 1:  # of each row
        tensor = tensor[0].reshape(*stack, -1, 1)[..., :rows, :], tensor[1]
    elements = made.elements.reshape(whole.shape)[..., :rows, :]
    scales = made.scales.reshape(*stack, (rows + missing) // tall, made.scales.shape[-1])
    return made._replace(elements=elements, scales=scales, tensor=tensor)
