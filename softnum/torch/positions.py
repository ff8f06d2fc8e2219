"""Rotary positions, which PyTorch has no function for."""

from __future__ import annotations

import torch
from torch.overrides import handle_torch_function, has_torch_function_unary

from softnum.train.layers.positions import turns

__all__ = ["rotary"]


def rotary(input: torch.Tensor, heads: int = 1, base: float = 10000.0) -> torch.Tensor:
    """Rotate neighbouring pairs of each head's features by angles that depend on their step.

    For the features a, b with the numbers 2 i and 2 i + 1 of the d of a head, in step p, with c and s the cosine and
    the sine of p * base ** (-2 i / d)::

        a' = a * c - b * s
        b' = b * c + a * s

    In a design's arithmetic it is one function, as ``softnum.train.layers.positions.rotary`` states it; otherwise these
    are PyTorch's products and sums. The angles' functions are correctly rounded to binary64 either way.

    Parameters
    ----------
    input : torch.Tensor (samples, steps, heads * d)
    heads : int
    base : float

    Returns
    -------
    torch.Tensor
        Of the input's shape.

    Raises
    ------
    ValueError
        If the input has other axes, or a head has an odd number of features.

    References
    ----------
    J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021, equation 34.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> x = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    >>> with st.arithmetic("f-q44-nearest"):
    ...     y = st.rotary(x)
    >>> st.rotary(x)[0, 1], y[0, 1]
    (tensor([0.5403, 0.8415]), tensor([0.5625, 0.8125]))
    """
    if has_torch_function_unary(input):
        return handle_torch_function(rotary, (input,), input, heads, base)
    if input.dim() != 3 or input.shape[-1] % (2 * heads):
        raise ValueError(
            f"rotary takes (samples, steps, features) with an even number of features for each of {heads} heads, got "
            f"{tuple(input.shape)}"
        )
    tables = turns(input.shape[1], input.shape[2] // heads // 2, float(base))
    cosines, sines = (torch.tensor(table, dtype=input.dtype, device=input.device)[:, None] for table in tables)
    one, other = input.unflatten(-1, (heads, -1, 2)).unbind(-1)
    return torch.stack((one * cosines - other * sines, other * cosines + one * sines), -1).flatten(-3)
