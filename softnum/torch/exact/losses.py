"""Losses of classes and of differences."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from softnum.torch.exact.elementwise import add, divide, multiply, subtract
from softnum.torch.exact.operands import refused
from softnum.torch.exact.rows import log_softmax, mean_along, sum_along

__all__ = ["binary_with_logits", "cross_entropy", "nll_loss", "of_difference"]


def _reduced(mode, name: str, losses, reduction: str):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{name}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    return losses if reduction == "none" else (mean_along if reduction == "mean" else sum_along)(mode, losses)


def cross_entropy(mode, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                  reduction="mean", label_smoothing=0.0):  # fmt: skip
    if size_average is not None or reduce is not None:
        refused(mode, "cross_entropy", "with reduction")
    axis = min(1, input.dim() - 1)
    if target.is_floating_point() or label_smoothing:
        return _soft_cross_entropy(mode, input, target, weight, ignore_index, reduction, label_smoothing)
    if weight is None and reduction in ("mean", "sum"):
        how = ignore_index, int(reduction == "mean")
        return mode.apply("cross_entropy", [_rows_of_classes(input), target.reshape(-1)], options=how)
    logs = log_softmax(mode, input, axis)
    return nll_loss(mode, logs, target, weight, ignore_index=ignore_index, reduction=reduction)


def _rows_of_classes(x):
    """Numbers of classes, which lie along the first axis after the batch's, as a matrix of a row for each place."""
    return x[None] if x.dim() == 1 else x if x.dim() == 2 else x.movedim(1, -1).reshape(-1, x.shape[1])


def _soft_cross_entropy(mode, input, target, weight, ignore_index, reduction, smoothing):
    """Of probabilities of classes, or of labels: (1 - smoothing) * target + smoothing / classes, in binary64."""
    if weight is not None:
        refused(mode, "cross_entropy", "without weights where labels are smoothed, or are probabilities")
    if not 0 <= smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing must lie in 0..1, got {smoothing}")
    if target.requires_grad:
        refused(mode, "cross_entropy", "of targets that need no gradient")
    axis = min(1, input.dim() - 1)
    soft, stays = target.detach(), None
    if not target.is_floating_point():
        stays = target != ignore_index
        soft = F.one_hot(torch.where(stays, target, 0), input.shape[axis]).movedim(-1, axis)
    soft = soft.double() * (1 - smoothing) + smoothing / input.shape[axis]
    if reduction in ("mean", "sum"):
        logits, soft = _rows_of_classes(input), _rows_of_classes(soft)
        if stays is not None and not stays.all():
            rows = stays.reshape(-1).nonzero()[:, 0]
            logits, soft = mode.moved(torch.index_select, logits, 0, rows), soft[rows]
        return mode.apply("cross_entropy", [logits, soft], options=(ignore_index, int(reduction == "mean")))
    losses = mode.moved(
        torch.neg, sum_along(mode, multiply(mode, log_softmax(mode, input, axis), soft.to(input.dtype)), axis)
    )
    losses = losses if stays is None else mode.moved(torch.where, stays, losses, 0.0)
    return _reduced(mode, "cross_entropy", losses, reduction)


def nll_loss(mode, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    if size_average is not None or reduce is not None:
        refused(mode, "nll_loss", "with reduction")
    axis, stays = min(1, input.dim() - 1), target != ignore_index
    known = torch.where(stays, target, 0)
    losses = mode.moved(torch.neg, mode.moved(torch.gather, input, axis, known.unsqueeze(axis)).squeeze(axis))
    losses = mode.moved(torch.where, stays, losses, 0.0)
    if weight is not None:
        weight = torch.where(stays, weight[known], 0.0)
        losses = multiply(mode, losses, weight)
    if reduction != "mean":
        return _reduced(mode, "nll_loss", losses, reduction)
    return divide(mode, sum_along(mode, losses), stays.sum() if weight is None else sum_along(mode, weight))


def of_difference(name: str, of: Callable) -> Callable:
    def handler(mode, input, target, size_average=None, reduce=None, reduction="mean", weight=None):
        if size_average is not None or reduce is not None or weight is not None:
            refused(mode, name, "with reduction and without weight")
        return _reduced(mode, name, of(mode, subtract(mode, input, target)), reduction)

    return handler


def binary_with_logits(mode, input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                       pos_weight=None):  # fmt: skip
    if weight is not None or pos_weight is not None or size_average is not None or reduce is not None:
        refused(mode, "binary_cross_entropy_with_logits", "with reduction and without weights")
    above = subtract(mode, mode.moved(torch.clamp, input, min=0.0), multiply(mode, input, target))
    below = mode.moved(torch.neg, mode.moved(torch.abs, input))
    losses = add(mode, above, mode.apply("log1p", [mode.apply("exp", [below])]))
    return _reduced(mode, "binary_cross_entropy_with_logits", losses, reduction)
