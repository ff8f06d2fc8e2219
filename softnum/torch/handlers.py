"""Functions of PyTorch that compute products, computed by a mode in the arithmetic of the module that is running."""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

from softnum.torch.exact.tables import EXACT

__all__ = ["HANDLERS", "REFUSED", "attention", "conv1d", "conv2d", "embedding", "is_product", "linear", "matmul"]


def linear(mode, input, weight, bias=None, *, part: str = "", axis: int = 0):
    if weight.dim() == 1:
        return linear(mode, input, weight[None], None if bias is None else bias[None], part=part).squeeze(-1)
    inputs = [input, weight] if bias is None else [input, weight, bias]
    return mode.apply("linear", inputs, part, axis=axis)


def _product(mode, input, mat2, *, out=None):
    _refuse(mode, "mm", out=(out, None))
    if input.dim() != mat2.dim() or input.dim() not in (2, 3):
        raise ValueError(f"mm and bmm take matrices, or batches of them, got {tuple(input.shape)}, {tuple(mat2.shape)}")
    return matmul(mode, input, mat2)


def matmul(mode, input, other, *, out=None):
    _refuse(mode, "matmul", out=(out, None))
    vectors = input.dim() == 1, other.dim() == 1
    if vectors[0]:
        input = input[None]
    if vectors[1]:
        other = other[:, None]
    if other.dim() == 2:
        result = mode.apply("linear", [input, other.transpose(0, 1)])
    else:
        inputs = [input, other]
        if input.shape[:-2] != other.shape[:-2]:
            batch = torch.broadcast_shapes(input.shape[:-2], other.shape[:-2])
            inputs = [x if x.shape[:-2] == batch else x.expand(*batch, *x.shape[-2:]) for x in inputs]
        result = mode.apply("matmul", inputs)
    if vectors[0]:
        result = result.squeeze(-2)
    return result.squeeze(-1) if vectors[1] else result


def _addmm(mode, input, mat1, mat2, *, beta=1, alpha=1, out=None):
    _refuse(mode, "addmm", out=(out, None), alpha=(alpha, 1), beta=(beta, 1))
    if input.dim() == 1:
        return mode.apply("linear", [mat1, mat2.transpose(0, 1), input])
    return _sum(mode, input, matmul(mode, mat1, mat2))


def _baddbmm(mode, input, batch1, batch2, *, beta=1, alpha=1, out=None):
    _refuse(mode, "baddbmm", out=(out, None))
    product = matmul(mode, batch1, batch2)
    if mode.exact:
        product = product if alpha == 1 else mode.apply("scale", [product], constants=(float(alpha),))
        if beta not in (0, 1):
            input = mode.apply("scale", [input], constants=(float(beta),))
        return product if beta == 0 else _sum(mode, input, product)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else input * beta + product if beta != 1 else input + product


def _sum(mode, x, y):
    return EXACT[torch.add](mode, x, y) if mode.exact else x + y


def _einsum(mode, equation, *operands):
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str) or len(operands) > 2:
        raise NotImplementedError(
            f"einsum in module {mode.running()!r}: softnum.torch computes products of two operands, stated as a text, "
            f"got {len(operands)} operands; multiply two at a time"
        )
    if len(operands) < 2:
        return torch.einsum(equation, *operands)
    equation = _spelled_out(equation.replace(" ", ""), operands)
    left, arrow, result = equation.partition("->")
    a, b = left.split(",")
    if not arrow:
        result = "".join(sorted(x for x in set(a + b) if (a + b).count(x) == 1))
    alone = [x for x in a + b if x not in result and (a + b).count(x) == 1]
    if "." in equation or len(set(a)) < len(a) or len(set(b)) < len(b) or alone:
        raise NotImplementedError(
            f"einsum in module {mode.running()!r}: softnum.torch computes no product with an axis twice in one "
            f"operand, one that is summed without the other, or '...' of different shapes, got {equation!r}"
        )
    batch = [x for x in a if x in b and x in result]
    k = [x for x in a if x in b and x not in result]
    rows, columns = ([x for x in own if x not in other] for own, other in ((a, b), (b, a)))
    first, sizes = (dict(zip(axes, x.shape, strict=True)) for axes, x in zip((a, b), operands, strict=True))
    if any(first.get(axis, size) != size for axis, size in sizes.items()):
        shapes = " and ".join(str(tuple(x.shape)) for x in operands)
        raise ValueError(f"einsum {equation!r}: sizes of {shapes} differ")
    sizes |= first

    def matrices(x, axes: str, first: list[str], second: list[str]):
        shape = [sizes[axis] for axis in batch], math.prod(sizes[x] for x in first), math.prod(sizes[x] for x in second)
        return x.permute([axes.index(axis) for axis in (*batch, *first, *second)]).reshape(*shape[0], *shape[1:])

    product = matmul(mode, matrices(operands[0], a, rows, k), matrices(operands[1], b, k, columns))
    order = [*batch, *rows, *columns]
    product = product.reshape([sizes[axis] for axis in order])
    return product.permute([order.index(axis) for axis in result])


def _spelled_out(equation: str, operands) -> str:
    """An equation with letters in place of '...', where these are axes of the same sizes in all operands with any."""
    left, arrow, result = equation.partition("->")
    terms, free = left.split(","), [letter for letter in string.ascii_letters if letter not in equation]
    more = [
        (x.shape[len(term.partition("...")[0]) : x.dim() - len(term.partition("...")[2])] if "..." in term else ())
        for term, x in zip(terms, operands, strict=True)
    ]
    axes = max(more, key=len)
    if "..." not in left or any(own not in ((), axes) for own in more):
        return equation
    letters = "".join(free[: len(axes)])
    spelled = [term.replace("...", letters if own else "") for term, own in zip(terms, more, strict=True)]
    if not arrow:
        once = sorted(x for x in set(left) - set(".,") if left.count(x) == 1)
        arrow, result = "->", "..." + "".join(once)
    return ",".join(spelled) + arrow + result.replace("...", letters)


def _pair(x, rank: int) -> list[int]:
    return [x] * rank if isinstance(x, int) else list(x) * (rank if len(x) == 1 else 1)


def _convolution(rank: int) -> Callable:
    def conv(mode, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        single = input.dim() == rank + 1
        if single:
            input = input[None]
        stride, dilation = _pair(stride, rank), _pair(dilation, rank)
        if padding == "same":
            total = [d * (n - 1) for d, n in zip(dilation, weight.shape[2:], strict=True)]
            odd = [x for n in reversed(total) for x in (0, n % 2)]  # what PyTorch adds on the right and below
            input = F.pad(input, odd) if any(odd) else input
            padding = [n // 2 for n in total]
        padding = [0] * rank if padding == "valid" else _pair(padding, rank)
        if rank == 1:
            input, weight = input.unsqueeze(2), weight.unsqueeze(2)
            stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
        inputs = [input, weight] if bias is None else [input, weight, bias]
        result = mode.apply("conv2d", inputs, options=(groups, *stride, *padding, *dilation))
        result = result.squeeze(2) if rank == 1 else result
        return result[0] if single else result

    return conv


def _conv3d(mode, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Products of unfolded volumes with the filters, K in the order (channel, depth, row, column)."""
    single = input.dim() == 4
    x = input[None] if single else input
    stride, dilation = _pair(stride, 3), _pair(dilation, 3)
    spans = [d * (n - 1) for d, n in zip(dilation, weight.shape[2:], strict=True)]
    if padding == "same":
        x = F.pad(x, [part for n in reversed(spans) for part in (n // 2, n - n // 2)])
    elif padding != "valid":
        x = F.pad(x, [part for n in reversed(_pair(padding, 3)) for part in (n, n)])
    for axis, (span, step, d) in enumerate(zip(spans, stride, dilation, strict=True), start=2):
        x = x.unfold(axis, span + 1, step)[..., ::d]
    results = x.shape[2:5]
    rows = x.permute(0, 2, 3, 4, 1, 5, 6, 7).reshape(-1, groups, weight.shape[1:].numel())
    filters = weight.reshape(groups, -1, rows.shape[-1])
    biases = [None] * groups if bias is None else bias.reshape(groups, -1)
    parts = [linear(mode, rows[:, i], filters[i], biases[i]) for i in range(groups)]
    y = torch.cat(parts, -1).reshape(-1, *results, weight.shape[0]).permute(0, 4, 1, 2, 3)
    return y[0] if single else y


def _transposed(rank: int) -> Callable:
    def conv(mode, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        """The convolution of the input, with stride - 1 zeros between its pixels, with the filters turned round."""
        single = input.dim() == rank + 1
        x = input[None] if single else input
        stride, padding, more, dilation = (_pair(part, rank) for part in (stride, padding, output_padding, dilation))
        size = [(n - 1) * step + 1 for n, step in zip(x.shape[2:], stride, strict=True)]
        spread = x.new_zeros((*x.shape[:2], *size))
        spread[(..., *(slice(None, None, step) for step in stride))] = x
        edges = [d * (n - 1) - p for d, n, p in zip(dilation, weight.shape[2:], padding, strict=True)]
        x = F.pad(
            spread, [part for edge, m in reversed(list(zip(edges, more, strict=True))) for part in (edge, edge + m)]
        )
        turned = weight.flip(list(range(2, weight.dim()))).unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
        plain = {1: conv1d, 2: conv2d, 3: _conv3d}[rank]
        y = plain(mode, x, turned, bias, 1, 0, dilation, groups)
        return y[0] if single else y

    return conv


def embedding(mode, input, weight, padding_idx=None, max_norm=None, norm_type=2.0,
               scale_grad_by_freq=False, sparse=False):  # fmt: skip
    _refuse(
        mode, "embedding", max_norm=(max_norm, None), scale_grad_by_freq=(scale_grad_by_freq, False),
        sparse=(sparse, False),
    )  # fmt: skip
    result = mode.apply("embedding", [input, weight])
    if padding_idx is None:
        return result
    padding_idx = padding_idx % weight.shape[0]
    padded = (input == padding_idx).unsqueeze(-1)
    return torch.where(padded, result.detach(), result)


def attention(
    mode, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):  # fmt: skip
    weights, value = _weights(mode, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    return matmul(mode, weights, value)


def _weights(mode, query, key, value, attn_mask, dropout_p, is_causal, scale=None, enable_gqa=False):
    """How much each value counts in each result; and the values, of each head its own."""
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        repeats = query.shape[-3] // key.shape[-3]
        repeat = partial(EXACT[torch.repeat_interleave], mode) if mode.exact else torch.repeat_interleave
        key, value = repeat(key, repeats, -3), repeat(value, repeats, -3)
    scores = matmul(mode, query, key.transpose(-2, -1))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if mode.exact:
        return _exact_weights(mode, scores, factor, attn_mask, dropout_p, is_causal), value
    scores = scores * factor
    if is_causal:
        causal = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~causal, -math.inf)
    if attn_mask is not None:
        masked = attn_mask.dtype is torch.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if masked else scores + attn_mask
    weights = scores.softmax(-1)
    if attn_mask is not None:  # a row of which nothing is left has the result 0, as of PyTorch's own
        empty = (scores == -math.inf).all(-1, keepdim=True)
        weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    if dropout_p:
        weights = F.dropout(weights, dropout_p)
    return weights, value


def _exact_weights(mode, scores, factor: float, mask, dropout: float, causal: bool):
    scores = mode.apply("scale", [scores], constants=(factor,))
    if mask is not None and mask.dtype is not torch.bool:
        stays = mask != -math.inf
        scores = _sum(mode, scores, mask.masked_fill(~stays, 0.0))
        mask = stays
    if causal:
        steps = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        mask = steps if mask is None else mask & steps
    inputs = [scores] if mask is None else [scores, mask[(None,) * (scores.dim() - mask.dim())]]
    weights = mode.apply("softmax", inputs, options=(1, 1))  # a row of which nothing is left has the result 0
    return EXACT[F.dropout](mode, weights, dropout) if dropout else weights


def _multi_head_attention(
    mode, query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
    add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True,
    attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
    static_k=None, static_v=None, average_attn_weights=True, is_causal=False,
):  # fmt: skip
    _refuse(
        mode, "multi_head_attention_forward", bias_k=(bias_k, None), bias_v=(bias_v, None),
        add_zero_attn=(add_zero_attn, False), static_k=(static_k, None), static_v=(static_v, None),
    )  # fmt: skip
    single = query.dim() == 2
    if single:
        query, key, value = (x[:, None] for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    steps, batch, features = query.shape
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    if use_separate_proj_weight:
        weights = q_proj_weight, k_proj_weight, v_proj_weight
    elif query is key and key is value:
        q, k, v = linear(mode, query, in_proj_weight, in_proj_bias, part="in_proj", axis=1).chunk(3, -1)
        weights = None
    else:
        weights = in_proj_weight.chunk(3)
    if weights is not None:
        parts = zip((query, key, value), weights, biases, strict=True)
        q, k, v = (linear(mode, *part, part="in_proj", axis=1) for part in parts)

    def heads(x):
        return x.reshape(x.shape[0], batch, num_heads, -1).permute(1, 2, 0, 3)

    mask = attn_mask
    if mask is not None:  # here True leaves a place out
        mask = ~mask if mask.dtype is torch.bool else mask
        mask = mask.reshape(batch, num_heads, *mask.shape[-2:]) if mask.dim() == 3 else mask
    if key_padding_mask is not None:
        padding = key_padding_mask[:, None, None]
        if padding.dtype is torch.bool and (mask is None or mask.dtype is torch.bool):
            mask = ~padding if mask is None else mask & ~padding
        else:
            zero = torch.zeros((), dtype=q.dtype, device=q.device)
            add = [zero.masked_fill(~x, -math.inf) if x.dtype is torch.bool else x for x in (mask,) if x is not None]
            add.append(zero.masked_fill(padding, -math.inf) if padding.dtype is torch.bool else padding)
            mask = add[0] if len(add) == 1 else _sum(mode, *add)
    dropout = dropout_p if training else 0.0
    causal = is_causal and attn_mask is None
    weights, values = _weights(mode, heads(q), heads(k), heads(v), mask, dropout, causal)
    result = matmul(mode, weights, values).permute(2, 0, 1, 3).reshape(steps, batch, features)
    result = linear(mode, result, out_proj_weight, out_proj_bias, part="out_proj", axis=1)
    if not need_weights:
        return (result[:, 0] if single else result), None
    if average_attn_weights:
        weights = EXACT[torch.mean](mode, weights, dim=1) if mode.exact else weights.mean(1)
    return (result[:, 0], weights[0]) if single else (result, weights)


def _grouped(mode, input, mat2, offs=None, bias=None, out_dtype=None):
    """Rows of a matrix, group by group, times the matrix of the group: the experts of a mixture."""
    _refuse(mode, "grouped_mm", bias=(bias, None), out_dtype=(out_dtype, None))
    if input.dim() != 2 or mat2.dim() != 3 or offs is None:
        raise NotImplementedError(
            f"grouped_mm in module {mode.running()!r}: softnum.torch computes rows (M, K) by matrices (groups, K, N) "
            f"with offs=, got {tuple(input.shape)} and {tuple(mat2.shape)}"
        )
    ends = offs.tolist()
    parts = [
        mode.apply("linear", [input[first:end], weight.transpose(0, 1)])
        for first, end, weight in zip([0, *ends], ends, mat2, strict=False)
        if end > first
    ]
    rest = input.new_zeros((input.shape[0] - (ends[-1] if ends else 0), mat2.shape[-1]))
    return torch.cat([*parts, rest])


def _refuse(mode, name: str, **given) -> None:
    """Raise NotImplementedError if an argument is not the one value of it that softnum.torch computes."""
    for argument, (value, only) in given.items():
        if value is not only and not (isinstance(only, (int, float)) and value == only):
            raise NotImplementedError(
                f"{name} in module {mode.running()!r}: softnum.torch computes it with {argument}={only!r} alone, got "
                f"{value if not isinstance(value, torch.Tensor) else 'a tensor'!r}"
            )


conv1d, conv2d = _convolution(1), _convolution(2)

#: function of PyTorch -> what computes it here
HANDLERS: dict[Callable, Callable] = {
    F.linear: linear,
    torch.matmul: matmul,
    torch.Tensor.matmul: matmul,
    torch.Tensor.__matmul__: matmul,
    torch.Tensor.__rmatmul__: lambda mode, x, other: matmul(mode, other, x),
    torch.mm: _product,
    torch.Tensor.mm: _product,
    torch.bmm: _product,
    torch.Tensor.bmm: _product,
    torch.mv: lambda mode, input, vec: matmul(mode, input, vec),
    torch.Tensor.mv: lambda mode, input, vec: matmul(mode, input, vec),
    torch.addmm: _addmm,
    torch.Tensor.addmm: _addmm,
    torch.baddbmm: _baddbmm,
    torch.Tensor.baddbmm: _baddbmm,
    torch.einsum: _einsum,
    torch.conv1d: conv1d,
    torch.conv2d: conv2d,
    torch.conv3d: _conv3d,
    torch.conv_transpose1d: _transposed(1),
    torch.conv_transpose2d: _transposed(2),
    torch.conv_transpose3d: _transposed(3),
    F.embedding: embedding,
    torch.embedding: lambda mode, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False: embedding(
        mode, indices, weight, None if padding_idx < 0 else padding_idx, scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    ),
    F.scaled_dot_product_attention: attention,
    F.multi_head_attention_forward: _multi_head_attention,
}  # fmt: skip
HANDLERS.update({
    function: _grouped
    for function in (getattr(torch, "_grouped_mm", None), getattr(F, "grouped_mm", None))
    if function is not None
})  # fmt: skip

_REFUSED_NAMES = {
    torch: """
        addbmm addmv addmv_ addr bilinear cdist chain_matmul cholesky_inverse cholesky_solve conv_tbc
        convolution corrcoef cosine_similarity cov dot hspmm inner
        inverse matrix_exp matrix_power mkldnn_convolution smm tensordot vdot _addmm_activation _convolution _int_mm
        _scaled_mm _transformer_encoder_layer_fwd _native_multi_head_attention
    """,
    torch.Tensor: """
        addbmm addbmm_ addmm_ addmv addmv_ addr addr_ baddbmm_ cholesky_inverse cholesky_solve corrcoef cov dot inner
        inverse matrix_exp matrix_power smm sspaddmm vdot
    """,
    F: "bilinear embedding_bag linear_cross_entropy scaled_mm scaled_grouped_mm",
    torch.linalg: """
        householder_product inv inv_ex lstsq lu_solve matmul matrix_exp matrix_power multi_dot pinv solve solve_ex
        solve_triangular tensorinv tensorsolve vecdot
    """,
    torch.sparse: "addmm mm sampled_addmm",
    torch._C._nn: "slow_conv3d slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d thnn_conv2d",
}
#: parts of the names of operations, of which there are several for each product
_PRODUCT_NAMES = (
    "addmv", "attention", "bilinear", "conv", "dot", "einsum", "gru", "linear", "lstm", "matmul", "mm", "rnn"
)  # fmt: skip


def is_product(operation) -> bool:
    """Whether an operation called by its own name, as ``torch.ops.aten.mm``, computes a product of PyTorch's."""
    namespace, _, name = str(operation).partition(".")
    return namespace != "softnum" and any(part in name for part in _PRODUCT_NAMES)


#: functions that compute products, and that softnum.torch does not compute
REFUSED: frozenset[Callable] = frozenset(
    getattr(module, name) for module, names in _REFUSED_NAMES.items() for name in names.split() if hasattr(module, name)
)
