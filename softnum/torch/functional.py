"""Single functions in a design's arithmetic, for code of the user's own."""

from __future__ import annotations

import torch

from softnum.torch import handlers
from softnum.torch.modes import arithmetic as Mode

__all__ = ["conv1d", "conv2d", "embedding", "linear", "matmul", "scaled_dot_product_attention"]


def _following(arithmetic: Mode, *tensors: torch.Tensor | None) -> Mode:
    """A mode that rounds the gradients of those of its operands that are parameters."""
    if not isinstance(arithmetic, Mode):
        raise TypeError(f"arithmetic must be an object such as softnum.torch.arithmetic('i-mxfp8'), got {arithmetic!r}")
    arithmetic.follow_all(tensors)
    return arithmetic


def linear(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, *, arithmetic: Mode
) -> torch.Tensor:  # fmt: skip
    """input @ weight.T + bias, as ``torch.nn.functional.linear`` takes them, in a design's arithmetic.

    The bias is the initial value of the forward unit's accumulator; the result is what the accumulator holds.
    Backwards, the gradient of the result, rounded to ``errors``, is multiplied by the weights in the unit
    ``backward_data`` and by the input in ``backward_weight``, both rounded again from the numbers that were passed in:
    a gradient goes straight through every rounding, through saturation too. That of an ``nn.Parameter``, all its uses
    added, is rounded to ``weight_gradients``.

    Parameters
    ----------
    input : torch.Tensor (..., inputs)
    weight : torch.Tensor (outputs, inputs)
    bias : torch.Tensor (outputs,), optional
    arithmetic : softnum.torch.arithmetic
        An object, as ``softnum.torch.arithmetic("i-mxfp8")`` makes it.

    Returns
    -------
    torch.Tensor (..., outputs)
        Of the input's dtype, to which it is rounded once, to nearest even.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> st.linear(torch.tensor([[1.0, 0.3]]), torch.ones(1, 2), arithmetic=st.arithmetic("i-mxfp8"))
    tensor([[1.3125]])
    """
    return handlers.linear(_following(arithmetic, input, weight, bias), input, weight, bias)


def matmul(input: torch.Tensor, other: torch.Tensor, *, arithmetic: Mode) -> torch.Tensor:
    """input @ other, as ``torch.matmul`` takes them, in a design's arithmetic.

    Of matrices, and batches of them that broadcast, ``other`` takes the place of weights; all else is as of `linear`.

    Parameters
    ----------
    input, other : torch.Tensor (..., M, K), (..., K, N)
    arithmetic : softnum.torch.arithmetic

    Returns
    -------
    torch.Tensor (..., M, N)

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> st.matmul(torch.tensor([[0.3]]), torch.tensor([[3.0]]), arithmetic=st.arithmetic("i-mxfp8"))
    tensor([[0.9375]])
    """
    return handlers.matmul(_following(arithmetic, input, other), input, other)


def conv1d(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride=1, padding=0, dilation=1,
    groups: int = 1, *, arithmetic: Mode,
) -> torch.Tensor:  # fmt: skip
    """``torch.nn.functional.conv1d`` in a design's arithmetic: `conv2d` of images one pixel high.

    >>> import torch, softnum.torch as st
    >>> st.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 3), padding=1, arithmetic=st.arithmetic("i-mxfp8"))
    tensor([[[2., 3., 3., 2.]]])
    """
    return handlers.conv1d(
        _following(arithmetic, input, weight, bias), input, weight, bias, stride, padding, dilation, groups
    )


def conv2d(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride=1, padding=0, dilation=1,
    groups: int = 1, *, arithmetic: Mode,
) -> torch.Tensor:  # fmt: skip
    """``torch.nn.functional.conv2d`` in a design's arithmetic.

    The order of additions is that of `softnum.conv2d` and its gradients; padded zeros are operands. Everything else is
    as in `linear`.

    Parameters
    ----------
    input : torch.Tensor (images, channels, height, width)
    weight : torch.Tensor (filters, channels / groups, kernel height, kernel width)
    bias : torch.Tensor (filters,), optional
    stride, padding, dilation : int or (int, int)
        A padding may be "same" or "valid" too.
    groups : int
    arithmetic : softnum.torch.arithmetic

    Returns
    -------
    torch.Tensor (images, filters, rows, columns)

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> st.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3), arithmetic=st.arithmetic("i-mxfp8"))
    tensor([[[[9.]]]])
    """
    return handlers.conv2d(
        _following(arithmetic, input, weight, bias), input, weight, bias, stride, padding, dilation, groups
    )


def embedding(rows: torch.Tensor, weight: torch.Tensor, padding_idx: int | None = None, *, arithmetic: Mode):
    """Rows of a table, as ``torch.nn.functional.embedding`` takes them, in a design's arithmetic.

    The rows are those of the weights rounded to ``weights``; the gradient of a row that was taken n times is the
    product of n ones with its n gradients in the unit ``backward_weight``.

    >>> import torch, softnum.torch as st
    >>> st.embedding(torch.tensor([1]), torch.tensor([[1.0], [2.0]]), arithmetic=st.arithmetic("i-mxfp8"))
    tensor([[2.]])
    """
    return handlers.embedding(_following(arithmetic, weight), rows, weight, padding_idx)


def scaled_dot_product_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False, *,
    arithmetic: Mode,
) -> torch.Tensor:  # fmt: skip
    """``torch.nn.functional.scaled_dot_product_attention`` in a design's arithmetic.

    Its two products are those of `matmul`, (query @ key^T) * scale and softmax(...) @ value; scale, mask, softmax and
    dropout between them are PyTorch's own.

    >>> import torch, softnum.torch as st
    >>> x = torch.ones(1, 1, 2, 4)
    >>> st.scaled_dot_product_attention(x, x, x, is_causal=True, arithmetic=st.arithmetic("i-mxfp8"))[0, 0, 1]
    tensor([1., 1., 1., 1.])
    """
    return handlers.attention(
        _following(arithmetic, query, key, value), query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
    )
