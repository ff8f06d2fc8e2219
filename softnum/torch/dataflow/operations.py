"""What operations do: the sizes of products, which move numbers, and what others compute for an element."""

from __future__ import annotations

import math

from softnum.torch.functions import FUNCTIONS
from softnum.torch.ranks import STEPPED

__all__ = ["CONSTANT", "EVALUATED", "FILLING", "FLOPS", "MOVING", "PRODUCTS", "needs_of", "plain", "product_sizes"]

#: functions that are three matrix products
PRODUCTS = ("conv2d", "linear", "matmul")
#: operations of PyTorch that move numbers
MOVING = {
    "_reshape_alias", "_to_copy", "_unsafe_view", "cat", "clone", "constant_pad_nd", "copy", "copy_", "embedding",
    "flip", "gather", "index", "index_select", "pixel_shuffle", "pixel_unshuffle", "repeat", "roll",
    "select_backward", "select_scatter", "slice_backward", "slice_scatter", "stack", "unfold_backward",
}  # fmt: skip
#: those that make tensors of constants
CONSTANT = {
    "arange", "empty", "empty_like", "empty_strided", "eye", "full", "full_like", "lift_fresh", "lift_fresh_copy",
    "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "scalar_tensor",
    "zeros", "zeros_like",
}  # fmt: skip
#: those that make a tensor one of constants
FILLING = {"fill_", "zero_"}
_NAMES = {
    "threshold": "relu", "bernoulli": "dropout", "embedding_dense": "embedding", "fused_rms_norm": "rms_norm",
}  # fmt: skip
#: what is computed for an element, forwards and backwards, of functions of several steps: those that `softnum.train`
#: has for each element of a row, without those for a row alone
FLOPS = {
    "batch_norm": (7, 7), "dropout": (2, 2), "group_norm": (7, 11), "layer_norm": (7, 11), "log_softmax": (5, 4),
    "rms_norm": (4, 8), "softmax": (5, 4),
}  # fmt: skip
#: the same of functions that do otherwise where nothing is trained
EVALUATED = {"batch_norm": (4, 4)}


def product_sizes(name: str, shapes: list[tuple], facts: dict) -> tuple:
    """How many products a pass of a function has, and (M, N, K) of its three passes."""
    first, second, *_ = shapes
    if name in STEPPED:
        (steps, batch, n), k = first, second[-1]
        return steps - 1 + facts["given"], (batch, n, k), (batch, k, n), (k, n, batch)
    if name == "conv2d":
        groups, place = facts["groups"], math.prod(second[2:])
        filters, channels = second[0] // groups, second[1]
        results = first[0] * math.prod(FUNCTIONS[name].shape(shapes, facts)[2:])
        data = first[0] * math.prod(first[2:]), channels, filters * place
        return groups, (results, filters, channels * place), data, (channels * place, filters, results)
    if name == "linear":
        m, k, n = math.prod(first[:-1]), first[-1], second[0]
        return 1, (m, n, k), (m, k, n), (k, n, m)
    (*batch, m, k), n = first, second[-1]
    return math.prod(batch), (m, n, k), (m, k, n), (k, n, m)


def needs_of(name: str, needs: list[bool]) -> tuple[bool, bool]:
    """Whether the two backward passes of a function are computed."""
    if name in STEPPED:  # whose states but the first depend on all that needs a gradient
        return any(needs), needs[-1]
    return needs[0], needs[1]


def plain(name: str) -> str:
    """An operation's name without what says that it is PyTorch's own, or of which pass.

    >>> plain("_log_softmax_backward_data"), plain("nll_loss_forward"), plain("add_")
    ('log_softmax', 'nll_loss', 'add')
    """
    name = name.strip("_").removeprefix("native_")
    for end in ("_data", "_backward", "_forward"):
        name = name.removesuffix(end)
    return _NAMES.get(name, name)
