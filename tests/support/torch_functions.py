"""Functions of PyTorch that softnum.torch computes exactly, for the tests of that: each of a tensor (4, 6, 6)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.support.torch_models import inputs

__all__ = ["MEANS"]

INDEX = torch.tensor([3, 0, 3, -1, 2])
LABELS = torch.arange(24) % 6
PLACES = inputs(1, 4, 5, 2, seed=12) * 0.7
LABELS[::5] = -100
TARGETS = torch.linspace(0.1, 1.0, 144).view(24, 6) / 3


def at(x, values) -> torch.Tensor:
    """Values where x lies."""
    return values.to(x.device) if isinstance(values, torch.Tensor) else torch.tensor(values, device=x.device)


def in_place(x):
    y = x * 1
    y += x
    y *= x
    y /= 2
    y -= 1
    y[:, 0] = x[:, 1] * 3
    return y


#: name -> function
MEANS = {
    "numbers on both sides": lambda x: (2 - x) / 3 + 1 / (x.abs() + 1) + x.add(x, alpha=0.5) - torch.rsub(x, 2),
    "broadcasting": lambda x: (x[:, :1] * x + x[0]) / (x[:1, :1, :1].abs() + 1),
    "powers": lambda x: x**2 + x.pow(3) + (x.abs() + 1) ** 0.5 + (x.abs() + 1) ** -0.5 + 2 ** (x / 4) + x.square(),
    "powers of tensors": lambda x: (x.abs() + 0.5) ** (x / 3),
    "logarithms": lambda x: torch.log(x.abs() + 1) + torch.log2(x.abs() + 1) + x.abs().log1p(),
    "roots": lambda x: (x.abs() + 1).sqrt() + torch.rsqrt(x.abs() + 1) + (x.abs() + 1).reciprocal(),
    "waves": lambda x: x.sin() * x.cos() + torch.atan(x),
    "GELU": lambda x: F.gelu(x) + nn.GELU(approximate="tanh")(x),
    "activations": lambda x: F.leaky_relu(x, 0.1) + F.elu(x) + F.selu(x) + F.celu(x, 2.0) + F.hardswish(x),
    "more activations": lambda x: F.relu6(x) + F.hardsigmoid(x) + F.mish(x) + F.softplus(x) + F.softplus(x, 2.0),
    "still more": lambda x: F.softsign(x) + F.logsigmoid(x) + F.tanhshrink(x) + F.prelu(x, at(x, [0.2])),
    "glu": lambda x: F.glu(x, -1),
    "sums": lambda x: x.sum(1) + x.sum((0, 2))[:1] + x.sum() + x.sum(-1, keepdim=True)[:, 0],
    "means": lambda x: x.mean((0, 2)) + x.mean() + x.mean(1, keepdim=True)[0, 0],
    "variance": lambda x: x.var(-1) + x.std(1, unbiased=False) + torch.var_mean(x, (0,), correction=0)[1][:4],
    "norms": lambda x: F.normalize(x, dim=-1) + x.norm() + x.norm(dim=1, keepdim=True) + F.normalize(x, 1.0),
    "log-softmax": lambda x: x.log_softmax(1) + F.log_softmax(x, -1) + torch.log_softmax(x, 0),
    "log-sum-exp": lambda x: x.logsumexp(1) + torch.logsumexp(x, (1,)),
    "layer norm without weights": lambda x: F.layer_norm(x, (6, 6)) + F.rms_norm(x, (6,)),
    "batch norm of sequences": lambda x: F.batch_norm(
        x, at(x, torch.zeros(6)), at(x, torch.ones(6)), at(x, torch.arange(6.0)), at(x, torch.ones(6)), training=True
    ),
    "instance norm": lambda x: F.instance_norm(x.view(2, 2, 6, 6)),
    "pooling with edges": lambda x: F.avg_pool2d(x[None], 3, 1, 1) + F.max_pool2d(x[None], 3, 1, 1),
    "pooling to sizes": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "expanding": lambda x: x[:, None].expand(-1, 3, -1, 6) * x[:, :3, None] + x[:1].repeat(4, 1, 1)[:, None, :1],
    "repeating": lambda x: x.repeat_interleave(2, 0).repeat(1, 2, 1) + x[0].broadcast_to(8, 6, 6).repeat(1, 2, 1),
    "choosing": lambda x: x[at(x, INDEX) % 4] + x[[0, 1, 2, 0, 0]] + x.index_select(0, at(x, INDEX) % 4)
    + x[at(x, INDEX)],
    "choosing places": lambda x: x[:, at(x, INDEX), at(x, INDEX)]
    + x.gather(1, at(x, torch.zeros(4, 5, 6, dtype=torch.long)))[..., 0],
    "windows": lambda x: x.unfold(1, 3, 1).sum(-1) + x.tile(2)[:, 1:5, 2:8] * 2.0,
    "edges": lambda x: F.pad(x, (1, 2), mode="reflect") + F.pad(x, (2, 1)) + F.pad(x, (3, 0), value=1.0),
    "interpolation": lambda x: F.interpolate(x[None], scale_factor=2)
    + F.interpolate(x[None], (12, 12), mode="bilinear")
    + F.interpolate(x[None, :, :5], size=12, mode="nearest-exact"),
    "interpolation between corners": lambda x: F.interpolate(x, 11, mode="linear", align_corners=True)
    + F.interpolate(x[None], (9, 11), mode="bilinear", align_corners=True)[0, :, :6]
    + F.interpolate(x[None, :, :, :5], scale_factor=(1.5, 2.3), mode="bilinear")[0, :, :6],
    "masks": lambda x: x[x > 0].sum() + torch.where(x > 0, x, 0.5 * x).masked_fill(x > 1, 3.0) * (x > -1),
    "in place": lambda x: (x * 1).add_(x).mul_(x).div_(2.0).sub_(1).clamp_(-2, 2),
    "in place by signs": lambda x: in_place(x),
    "ReLU in place": lambda x: F.relu(x * 2, inplace=True) + F.silu(x * 2, inplace=True) + F.elu(x * 2, inplace=True),
    "integers": lambda x: x * at(x, torch.arange(6)) + at(x, torch.arange(6)) / x.abs().clamp(min=0.5),
    "cross entropy": lambda x: F.cross_entropy(x.view(24, 6), at(x, LABELS)) + F.cross_entropy(
        x.view(24, 6), at(x, LABELS), reduction="sum"
    ),
    "cross entropy with weights": lambda x: F.cross_entropy(
        x.view(24, 6), at(x, LABELS), weight=at(x, torch.arange(6.0)) + 1
    ),
    "cross entropy of images": lambda x: F.cross_entropy(
        x.view(2, 6, 12), at(x, LABELS)[:24].view(2, 12), reduction="none"
    ),
    "cross entropy with smoothed labels": lambda x: F.cross_entropy(x.view(24, 6), at(x, LABELS), label_smoothing=0.1)
    + F.cross_entropy(x.view(24, 6), at(x, LABELS) % 6, reduction="sum", label_smoothing=1.0),
    "cross entropy of smoothed images": lambda x: F.cross_entropy(
        x.view(2, 6, 12), at(x, LABELS)[:24].view(2, 12), reduction="none", label_smoothing=0.2
    ) + F.cross_entropy(x.view(2, 6, 12), at(x, LABELS)[:24].view(2, 12), label_smoothing=0.2),
    "cross entropy of probabilities": lambda x: F.cross_entropy(x.view(24, 6), at(x, TARGETS)) + F.cross_entropy(
        x.view(2, 6, 12), at(x, TARGETS).view(2, 6, 12), reduction="sum", label_smoothing=0.3
    ) + F.cross_entropy(x[0, 0], at(x, TARGETS)[0]),
    "other losses": lambda x: F.mse_loss(x, x.detach() / 2) + F.l1_loss(x, x.detach() * 2, reduction="sum"),
    "binary cross entropy": lambda x: F.binary_cross_entropy_with_logits(x, (x > 0).float()),
    "attention with numbers added": lambda x: F.scaled_dot_product_attention(
        *(x[None],) * 3, attn_mask=(x - x.amax()).masked_fill(at(x, torch.eye(6, dtype=torch.bool)), -torch.inf)
    ),
    "attention with empty rows": lambda x: F.scaled_dot_product_attention(
        *(x[None],) * 3, attn_mask=at(x, [[True, False] * 3, [False] * 6] * 3)
    ),
    "softmax in float32": lambda x: x.softmax(-1, dtype=torch.float32) + F.softmin(x, 0),
    "running sums": lambda x: x.cumsum(1) + torch.cumsum(x, -1) + x[0, 0].cumsum(0) + x.cumsum(0, dtype=torch.float32),
    "products": lambda x: x.prod(1) + x.prod(-1, keepdim=True)[..., 0] + x[0, 0].prod() + x.cumprod(2)[:, 0],
    "products with zeros": lambda x: torch.where(x > 1, 0.0, x).cumprod(1) + (x * (x < 0)).prod(2, keepdim=True),
    "names of NumPy": lambda x: x.mean(axis=1, keepdims=True) + torch.sum(x, axis=0),
    "average pooling of edges": lambda x: F.avg_pool2d(x[None], 3, 1, 1, count_include_pad=False)
    + F.avg_pool2d(F.avg_pool2d(x[None], 3, 2, 1, ceil_mode=True), 1).sum()
    + F.avg_pool2d(x[:, :2, :2], 3, 1, 1, count_include_pad=False).sum()
    + F.avg_pool2d(x, 3, 2, ceil_mode=True).sum() + F.avg_pool2d(x, (3, 2), (2, 3), 1, True, False).mean(),
    "average pooling along one axis, and three": lambda x: F.avg_pool1d(x, 3, 2, 1)
    + F.avg_pool1d(x, 4, 3, ceil_mode=True)[..., :1]
    + F.avg_pool3d(x[None], (2, 3, 2), (1, 2, 2), (1, 0, 0))[0, 0, :1, :3],
    "pooling to any sizes": lambda x: F.adaptive_avg_pool2d(x, (4, 5)) + F.adaptive_avg_pool1d(x, 4)[..., None][:, :4]
    + F.adaptive_avg_pool3d(x[None], (3, 4, 5))[0, :1] + F.adaptive_avg_pool1d(x, 3).sum(),
    "maxima of windows": lambda x: F.max_pool2d(x, 2, 2, dilation=2) + F.max_pool2d(x, 3, 2, ceil_mode=True)[:, :2, :2]
    + F.max_pool1d(x, 3, 2, 1)[:, :2, :2] + F.max_pool3d(x[None], 2)[0, :1, :2, :2]
    + F.max_pool2d(x, 3, 1, return_indices=True)[0][:, :2, :2],
    "columns of images": lambda x: F.fold(
        F.unfold(x[None] * 2, 3, padding=1, stride=2), (6, 6), 3, padding=1, stride=2
    ),
    "cubic interpolation": lambda x: F.interpolate(x[None], (9, 11), mode="bicubic")[0, :, :6, :6]
    + F.interpolate(x[None], scale_factor=1.5, mode="bicubic", align_corners=True)[0, :, :6, :6]
    + F.interpolate(x[None, None], (5, 7, 8), mode="trilinear")[0, 0, :4, :6, :6],
    "sampling at places": lambda x: F.grid_sample(
        x[None], at(x, PLACES) + x[:, :5, :2] / 50, align_corners=False
    )[0, :, :, :1]
    + F.grid_sample(
        x[None], at(x, PLACES) + x[:, :5, 2:4] / 60, padding_mode="border", align_corners=True
    )[0, :, :, :1]
    + F.grid_sample(x[None], at(x, PLACES), "nearest", align_corners=False)[0, :, :, 1:2],
    "orders of norms": lambda x: x.norm(torch.inf, 1) + x.norm(3, 1) + torch.linalg.vector_norm(x, 0.5, 1)
    + torch.linalg.norm(x) + torch.linalg.vector_norm(x, -torch.inf, dim=1) + x.norm(0),
    "distances": lambda x: torch.cdist(x, x.flip(0) + 1) + torch.cdist(x, x * 2 + 1, p=1.0)
    + F.pairwise_distance(x, x / 2).sum(),
    "angles": lambda x: F.cosine_similarity(x, x.roll(1, 0), -1) + torch.cosine_similarity(x, x[:1].exp())[:, :1],
    "weights with a norm": lambda x: torch._weight_norm(x, x[:1, :1].abs() + 1, 2)
    + torch._weight_norm(x, x[:, :1, :1], 0),
    "response to neighbouring channels": lambda x: F.local_response_norm(x, 3)
    + F.local_response_norm(x[None], 2, 0.1)[0],
    "shrinking": lambda x: F.softshrink(x, 0.3) + F.hardshrink(x) + F.rrelu(x) + torch.logaddexp(x, 1 - x),
    "outer products": lambda x: torch.outer(x[0, 0], x[1, 1]) + x[0, 0].outer(x[2, 0]),
    "whole quotients": lambda x: x * (x / 0.3).detach().div(0.5, rounding_mode="floor") + x * (x.detach() * 7 // 2),
    "complex products": lambda x: torch.view_as_real(
        torch.view_as_complex(x.view(4, 6, 3, 2)) * torch.view_as_complex(x.view(4, 6, 3, 2).flip(0).contiguous() + 1)
    ).reshape(4, 6, 6),
    "written to places": lambda x: at(x, torch.zeros(4, 6, 6)).scatter_(
        1, at(x, [[[3], [1]]]).expand(4, 2, 6), x[:, :2] * 2
    ),
    "in place of what needs no gradient": lambda x: at(x, torch.ones(4, 6, 6)).mul_(x).mul_(x)
    * at(x, torch.full((4, 6, 6), 2.0)).div_(x.abs() + 1)
    + at(x, torch.zeros(4, 36)).index_add_(0, at(x, [2, 0, 2]), x.flatten(1)[:3]).view(4, 6, 6),
    "losses of distances": lambda x: F.smooth_l1_loss(x, x.detach() * 2, beta=0.5) + F.huber_loss(x, x.detach() * 3)
    + F.smooth_l1_loss(x, -x.detach(), beta=0.0) + F.huber_loss(x, 2 - x.detach(), delta=0.7, reduction="sum"),
    "losses of probabilities": lambda x: F.binary_cross_entropy(x.sigmoid(), x.detach().sigmoid() / 2)
    + F.kl_div(x.log_softmax(-1), x.detach().softmax(1), reduction="batchmean")
    + F.kl_div(x.log_softmax(-1), x.detach().log_softmax(1), log_target=True, reduction="sum")
    + F.binary_cross_entropy(x.sigmoid(), (x > 0).float(), weight=x.detach().abs(), reduction="sum")
    + F.binary_cross_entropy_with_logits(x, (x > 1).float(), x.detach().abs(), pos_weight=at(x, torch.arange(6.0)) + 1),
    "losses of pairs": lambda x: F.cosine_embedding_loss(x[0], x[1], at(x, [1, -1, 1, -1, 1, -1]))
    + F.margin_ranking_loss(x[0], x[1], (x[2] > 0) * 2.0 - 1, 0.3) + F.triplet_margin_loss(x[0], x[1], x[2], swap=True),
    "connectionist losses": lambda x: F.ctc_loss(
        x.view(12, 3, 4).log_softmax(-1), at(x, [[1, 2, 2], [3, 1, 0], [1, 0, 0]]), (12, 9, 5), (3, 2, 1)
    ) + F.ctc_loss(
        x.view(12, 3, 4).log_softmax(-1), at(x, [3, 3, 1]), (2, 9, 3), (2, 0, 1), 0, "sum", zero_infinity=True
    ) + F.ctc_loss(x.view(36, 4).log_softmax(-1), at(x, [1, 1]), (36,), (2,), 3),
    "weighted losses": lambda x: F.mse_loss(x, x.detach() / 2, weight=x.detach().abs() + 1)
    + F.huber_loss(x, 2 * x.detach(), weight=x.detach().abs()),
    "three operands": lambda x: torch.addcmul(x, x, x, value=0.5) + torch.addcdiv(x, x, x.abs() + 1)
    + torch.lerp(x, 2 * x, 0.3),
}  # fmt: skip
