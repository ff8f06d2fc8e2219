"""What PyTorch's functions are computed by, and which of them compute nothing."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from softnum.torch.exact import elementwise, layers, losses, moving, rows
from softnum.torch.functions import UNARY
from softnum.torch.positions import rotary

__all__ = ["BY_NAME", "EXACT", "KEEPING", "MOVING", "OPERATIONS"]

_T = torch.Tensor
_OF_ONE = {name: elementwise.of_one(name) for name in UNARY if name not in ("gelu", "relu", "silu", "softplus")}
_OF_ONE |= {f"arc{name[1:]}": _OF_ONE[name] for name in ("acos", "asin", "atan")}
_OF_TWO = {
    "add": elementwise.add, "sub": elementwise.subtract, "subtract": elementwise.subtract, "mul": elementwise.multiply,
    "multiply": elementwise.multiply, "div": elementwise.divide, "divide": elementwise.divide,
    "true_divide": elementwise.divide, "floor_divide": elementwise.floor_divide, "hypot": elementwise.hypot,
}  # fmt: skip
_OF_MORE = {
    "pow": elementwise.power, "square": elementwise.square, "addcmul": elementwise.addcmul,
    "addcdiv": elementwise.addcdiv, "lerp": elementwise.lerp, "outer": elementwise.outer,
    "logaddexp": elementwise.logaddexp,
}  # fmt: skip
_REDUCED = {
    "sum": rows.sum_along, "cumsum": rows.cumsum, "cumprod": rows.cumprod, "prod": rows.product,
    "mean": rows.mean_along, "var": rows.var, "std": rows.std, "var_mean": rows.moments, "std_mean": rows.std_mean,
    "norm": rows.torch_norm, "logsumexp": rows.logsumexp, "softmax": rows.of_tensor(rows.softmax),
    "log_softmax": rows.of_tensor(rows.log_softmax),
}  # fmt: skip
_ROWS = {
    **{name: rows.numpy_names(handler) for name, handler in _REDUCED.items()},
    "rms_norm": layers.rms_norm, "rsub": elementwise.swapped(elementwise.subtract),
    "cosine_similarity": rows.cosine_similarity, "pairwise_distance": rows.pairwise_distance,
    "_weight_norm": rows.weight_norm, "adaptive_avg_pool1d": layers.adaptive_avg_pool(1),
    "avg_pool1d": layers.avg_pool(1), "max_pool1d": layers.max_pool(1),
    "max_pool1d_with_indices": layers.max_pool(1, indices=True), "max_pool3d": layers.max_pool(3),
    "rrelu": elementwise.rrelu,
}  # fmt: skip
_MOVED = {
    "expand": moving.expand, "repeat": moving.repeat, "repeat_interleave": moving.repeat_interleave,
    "__getitem__": moving.getitem, "expand_as": lambda mode, x, other: moving.expand(mode, x, *other.shape),
    "broadcast_to": moving.expand,
    **{name: moving.choosing(name) for name in ("gather", "index_select", "take", "take_along_dim", "tile", "unfold")},
    "meshgrid": moving.meshgrid, "index_add": moving.index_add, "scatter_add": moving.scatter_add,
}  # fmt: skip
_ACTIVATIONS = {
    "rrelu": elementwise.rrelu, "softshrink": elementwise.softshrink, "celu": elementwise.celu,
    "elu": elementwise.elu, "gelu": elementwise.gelu, "glu": elementwise.glu,
    "hardsigmoid": elementwise.hardsigmoid, "hardswish": elementwise.hardswish, "leaky_relu": elementwise.leaky_relu,
    "logsigmoid": elementwise.logsigmoid, "mish": elementwise.mish, "prelu": elementwise.prelu,
    "relu": elementwise.relu, "selu": elementwise.selu, "sigmoid": _OF_ONE["sigmoid"], "silu": elementwise.silu,
    "softplus": elementwise.softplus, "softsign": elementwise.softsign, "tanh": _OF_ONE["tanh"],
    "tanhshrink": elementwise.tanhshrink,
}  # fmt: skip
_LAYERS = {
    **{f"adaptive_avg_pool{rank}d": layers.adaptive_avg_pool(rank) for rank in (1, 2, 3)},
    **{f"avg_pool{rank}d": layers.avg_pool(rank) for rank in (1, 2, 3)},
    **{f"{name}max_pool{rank}d": layers.max_pool(rank) for rank in (1, 2, 3) for name in ("", "_")},
    **{f"max_pool{rank}d_with_indices": layers.max_pool(rank, indices=True) for rank in (1, 2, 3)},
    "batch_norm": layers.batch_norm, "local_response_norm": layers.local_response_norm,
    "group_norm": layers.group_norm, "instance_norm": layers.instance_norm, "layer_norm": layers.layer_norm,
    "log_softmax": rows.log_softmax, "cosine_similarity": rows.cosine_similarity,
    "normalize": rows.normalize, "rms_norm": layers.rms_norm, "softmax": rows.softmax, "softmin": rows.softmin,
    "dropout": layers.dropout_of(None), **{f"dropout{rank}d": layers.dropout_of(rank) for rank in (1, 2, 3)},
    "pad": moving.pad, "interpolate": moving.interpolate, "unfold": moving.unfold, "fold": moving.fold,
    "grid_sample": moving.grid_sample,
    "pairwise_distance": rows.pairwise_distance, "binary_cross_entropy": losses.binary,
    "ctc_loss": losses.connectionist,
    "cosine_embedding_loss": losses.cosine_embedding, "huber_loss": losses.huber, "kl_div": losses.divergence,
    "margin_ranking_loss": losses.margin_ranking, "smooth_l1_loss": losses.smooth_l1,
    "triplet_margin_loss": losses.triplet_margin, "binary_cross_entropy_with_logits": losses.binary_with_logits,
    "cross_entropy": losses.cross_entropy, "nll_loss": losses.nll_loss,
    "l1_loss": losses.of_difference("l1_loss", lambda mode, x: mode.moved(torch.abs, x)),
    "mse_loss": losses.of_difference("mse_loss", elementwise.square),
}  # fmt: skip
_SIGNS = {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply, "truediv": elementwise.divide,
    "pow": elementwise.power, "floordiv": elementwise.floor_divide,
}  # fmt: skip


def _named(handlers: dict[str, Callable], *places) -> dict[Callable, Callable]:
    """The functions of those names in some modules -> what computes them."""
    return {getattr(at, name): handler for name, handler in handlers.items() for at in places if hasattr(at, name)}


def _assigning(handlers: dict[str, Callable], name: str = "{}_", **how) -> dict[str, Callable]:
    return {name.format(key): elementwise.replacing(handler, **how) for key, handler in handlers.items()}


#: function of PyTorch -> what computes it in the design's arithmetic
EXACT: dict[Callable, Callable] = {
    **_named(_OF_ONE | _OF_TWO | _OF_MORE | _ROWS | _MOVED, torch, _T),
    **_named(_OF_ONE, torch.special),
    **_named(_assigning(_OF_ONE | _OF_MORE), torch, _T),
    **_named(_assigning(_OF_TWO, in_place=True), _T),
    **_named(_assigning({name: _MOVED[name] for name in ("index_add", "scatter_add")}), _T),
    **_named({f"__{name}__": handler for name, handler in _SIGNS.items()}, _T),
    **_named(
        {f"__r{name}__": elementwise.swapped(handler) for name, handler in _SIGNS.items()}
        | {"__rdiv__": elementwise.swapped(elementwise.divide)},
        _T,
    ),
    **_named(_assigning({key: of for key, of in _SIGNS.items() if key != "pow"}, "__i{}__", in_place=True), _T),
    **_named(_assigning({"pow": elementwise.power}, "__i{}__"), _T),
    **_named(_ACTIVATIONS | _LAYERS, F),
    **_named(
        {
            "relu": elementwise.relu,
            "dropout": layers.dropout_of(None),
            "prelu": elementwise.prelu,
            "max_pool2d": layers.max_pool(2),
            "cdist": rows.distances,
        },
        torch,
        _T,
    ),
    **_named(
        {
            "vector_norm": rows.numpy_names(rows.norm),
            "norm": rows.numpy_names(rows.linalg_norm),
        },
        torch.linalg,
    ),
}
EXACT[rotary] = layers.turned
#: operations of other libraries, by their names
BY_NAME: dict[str, Callable] = {"torchvision.roi_align": moving.roi_align, "torchvision.nms": moving.suppressed}
_MOVING = """
__and__ __array__ __bool__ __contains__ __deepcopy__ __eq__ __float__ __format__ __ge__ __get__ __gt__ __hash__
__index__ __int__ __invert__ __le__ __len__ __lt__ __ne__ __neg__ __or__ __reduce_ex__ __repr__ __set__ __setitem__
__xor__ abs abs_ absolute adaptive_max_pool2d all allclose amax amin aminmax any arange argmax argmin argsort
as_strided atleast_1d atleast_2d atleast_3d backward bernoulli bernoulli_ bfloat16 bincount block_diag bool
boolean_dispatch broadcast_tensors bucketize byte can_cast cat ceil ceil_ channel_shuffle chunk clamp clamp_ clamp_max
clamp_max_ clamp_min clamp_min_ clip clip_ clone column_stack complex concat concatenate contiguous copy_ copysign
count_nonzero cpu cuda cummax cummin data_ptr detach detach_ device diag diag_embed diagonal dim dim_order double
dsplit dstack element_size empty_like eq equal exponential_ fill_ flatten flip fliplr flipud float floor floor_ fn
full_like ge get_device gt half hardshrink hardtanh hardtanh_ _has_compatible_shallow_copy_type has_names histc hsplit
hstack index_copy index_copy_ index_fill index_fill_ int is_complex is_contiguous is_cuda is_floating_point
is_inference is_neg is_nonzero is_same_size is_shared _is_view _is_zerotensor isclose isfinite isin isinf isnan
isneginf isposinf item kaiming_uniform_ kthvalue le logical_and logical_not logical_or logical_xor long lt masked_fill
masked_fill_ masked_scatter masked_scatter_ masked_select max maximum median min minimum moveaxis movedim msort
multinomial nan_to_num nan_to_num_ narrow narrow_copy ndimension ne neg neg_ negative nelement new_empty new_full
new_ones new_tensor new_zeros nonzero normal_ numel numpy one_hot ones_like _pack_padded_sequence pack_padded_sequence
pack_sequence _pad_packed_sequence pad_sequence permute pixel_shuffle pixel_unshuffle positive rand_like register_hook
relu_ relu6 relu6_ requires_grad_ reshape reshape_as resolve_conj resolve_neg result_type retain_grad roll rot90 round
round_ scatter scatter_ searchsorted select select_scatter sgn sign sign_ signbit size slice_scatter sort split
split_with_sizes squeeze squeeze_ stack storage_offset stride swapaxes swapdims t t_ tensor_split threshold threshold_
to tolist topk transpose transpose_ tril tril_ triu triu_ trunc trunc_ type type_as unbind unflatten uniform_ unique
unique_consecutive unsafe_chunk unsafe_split unsqueeze unsqueeze_ untyped_storage vdsplit _version view view_as
view_as_complex view_as_real vsplit vstack where zero_ zeros_like
"""
#: those of the functions below that keep the arithmetic of the result that they move
KEEPING = (
    "boolean_dispatch", "contiguous", "flatten", "fn", "max_pool1d", "max_pool2d", "movedim", "moveaxis", "permute",
    "relu", "reshape", "squeeze", "swapaxes", "t", "transpose", "unflatten", "unsqueeze", "view", "_max_pool1d",
    "_max_pool2d",
)  # fmt: skip
#: names of functions that move, choose, compare or draw numbers, or tell what they are: exact in PyTorch
MOVING = frozenset(_MOVING.split())
#: those of PyTorch's operations (``torch.ops.aten``), of which compiled models are made, that do so too
OPERATIONS = MOVING | {
    "_reshape_alias", "_to_copy", "_unsafe_view", "alias", "as_strided_scatter", "clone", "constant_pad_nd", "copy",
    "diagonal_scatter", "empty", "empty_strided", "expand", "fill", "full", "gather", "index", "index_put",
    "index_select", "lift_fresh", "lift_fresh_copy", "new_empty_strided", "ones", "repeat", "scalar_tensor", "scatter",
    "slice", "split_with_sizes_copy", "take", "zeros",
}  # fmt: skip
