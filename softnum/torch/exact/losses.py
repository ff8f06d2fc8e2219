"""Losses of classes and of differences."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from softnum.torch.exact.elementwise import add, divide, multiply, square, subtract
from softnum.torch.exact.moving import choosing
from softnum.torch.exact.operands import refused
from softnum.torch.exact.rows import cosine_similarity, log_softmax, mean_along, pairwise_distance, sum_along

__all__ = [
    "binary", "binary_with_logits", "connectionist", "cosine_embedding", "cross_entropy", "divergence", "huber",
    "margin_ranking", "nll_loss", "of_difference", "smooth_l1", "triplet_margin",
]  # fmt: skip


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


def _weighted(mode, name: str, losses, weight, reduction: str, size_average=None, reduce=None):
    if size_average is not None or reduce is not None:
        refused(mode, name, "with reduction")
    return _reduced(mode, name, losses if weight is None else multiply(mode, losses, weight), reduction)


def of_difference(name: str, of: Callable) -> Callable:
    """A loss of the difference of input and target; with weights, the mean is divided by their sum."""

    def handler(mode, input, target, size_average=None, reduce=None, reduction="mean", weight=None):
        if weight is not None and reduction == "mean":
            total = _weighted(mode, name, of(mode, subtract(mode, input, target)), weight, "sum", size_average, reduce)
            return divide(mode, total, sum_along(mode, weight.expand_as(input)))
        losses = of(mode, subtract(mode, input, target))
        return _weighted(mode, name, losses, weight, reduction, size_average, reduce)

    return handler


def _near_and_far(mode, distance, limit: float, near, far):
    """One loss where a distance is below a limit, and another elsewhere."""
    return mode.moved(torch.where, distance.detach() < limit, near, far)


def smooth_l1(mode, input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    distance = mode.moved(torch.abs, subtract(mode, input, target))
    losses = distance
    if beta:
        near = divide(mode, multiply(mode, square(mode, distance), 0.5), beta)
        losses = _near_and_far(mode, distance, beta, near, subtract(mode, distance, 0.5 * beta))
    return _weighted(mode, "smooth_l1_loss", losses, None, reduction, size_average, reduce)


def huber(mode, input, target, reduction="mean", delta=1.0, weight=None):
    distance = mode.moved(torch.abs, subtract(mode, input, target))
    near = multiply(mode, square(mode, distance), 0.5)
    far = multiply(mode, subtract(mode, distance, 0.5 * delta), delta)
    losses = _near_and_far(mode, distance, delta, near, far)
    return _weighted(mode, "huber_loss", losses, weight, reduction)


def binary(mode, input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(target * log(input) + (1 - target) * log(1 - input)), of logarithms of -100 at least."""
    rest = subtract(mode, torch.ones_like(input), input)
    logs = [mode.moved(torch.clamp, mode.apply("log", [x]), min=-100.0) for x in (input, rest)]
    others = subtract(mode, torch.ones_like(target), target)
    total = add(mode, multiply(mode, target, logs[0]), multiply(mode, others, logs[1]))
    losses = mode.moved(torch.neg, total)
    return _weighted(mode, "binary_cross_entropy", losses, weight, reduction, size_average, reduce)


def binary_with_logits(mode, input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                       pos_weight=None):  # fmt: skip
    below = mode.moved(torch.neg, mode.moved(torch.abs, input))
    soft = mode.apply("log1p", [mode.apply("exp", [below])])
    if pos_weight is None:
        above = subtract(mode, mode.moved(torch.clamp, input, min=0.0), multiply(mode, input, target))
        losses = add(mode, above, soft)
    else:  # (1 - t) x + (1 + (p - 1) t) (log1p(exp(-|x|)) + max(-x, 0))
        share = add(mode, multiply(mode, target, subtract(mode, pos_weight, 1.0)), 1.0)
        soft = add(mode, soft, mode.moved(torch.clamp, mode.moved(torch.neg, input), min=0.0))
        rest = multiply(mode, subtract(mode, torch.ones_like(target), target), input)
        losses = add(mode, rest, multiply(mode, share, soft))
    return _weighted(mode, "binary_cross_entropy_with_logits", losses, weight, reduction, size_average, reduce)


def divergence(mode, input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target * (log(target) - input), 0 where target is 0; of logarithms exp(target) * (target - input)."""
    if log_target:
        losses = multiply(mode, mode.apply("exp", [target]), subtract(mode, target, input))
    else:
        some = target > 0
        logs = mode.apply("log", [mode.moved(torch.where, some, target, 1.0)])
        losses = mode.moved(torch.where, some, multiply(mode, target, subtract(mode, logs, input)), 0.0)
    if reduction != "batchmean":
        return _weighted(mode, "kl_div", losses, None, reduction, size_average, reduce)
    return divide(mode, sum_along(mode, losses), float(len(input)))


def cosine_embedding(mode, input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    angle = cosine_similarity(mode, input1, input2, dim=-1)
    apart = mode.moved(torch.clamp, subtract(mode, angle, margin), min=0.0)
    losses = mode.moved(torch.where, target > 0, subtract(mode, torch.ones_like(angle), angle), apart)
    return _weighted(mode, "cosine_embedding_loss", losses, None, reduction, size_average, reduce)


def margin_ranking(mode, input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    ahead = multiply(mode, mode.moved(torch.neg, target), subtract(mode, input1, input2))
    losses = mode.moved(torch.clamp, add(mode, ahead, margin), min=0.0)
    return _weighted(mode, "margin_ranking_loss", losses, None, reduction, size_average, reduce)


def triplet_margin(mode, anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None,
                   reduce=None, reduction="mean"):  # fmt: skip
    near, far = (pairwise_distance(mode, anchor, x, p, eps) for x in (positive, negative))
    if swap:
        far = mode.moved(torch.minimum, far, pairwise_distance(mode, positive, negative, p, eps))
    losses = mode.moved(torch.clamp, add(mode, subtract(mode, near, far), margin), min=0.0)
    return _weighted(mode, "triplet_margin_loss", losses, None, reduction, size_average, reduce)


def _log_of_sums(mode, parts, there):
    """log(sum of exp(x)) of the parts along the last axis that are there, and whether any is; else 0."""
    top = torch.where(there, parts.detach(), -torch.inf).amax(-1, keepdim=True)
    some = there.any(-1, keepdim=True)
    top = torch.where(some, top, 0.0)
    powers = mode.apply("exp", [mode.moved(torch.where, there, subtract(mode, parts, top), 0.0)])
    total = sum_along(mode, mode.moved(torch.where, there, powers, 0.0), -1, True)
    found = add(mode, mode.apply("log", [mode.moved(torch.where, some, total, 1.0)]), top)
    return mode.moved(torch.where, some, found, 0.0)[..., 0], some[..., 0]


def connectionist(mode, log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
                  zero_infinity=False):  # fmt: skip
    """-log of the probability of all ways to read the labels, step by step, of paths that are possible alone.

    With a label's logarithm y at a step and a(s) of the paths that end at place s of the labels with blanks around
    them: a(s) = log(exp(a(s)) + exp(a(s - 1)) + exp(a(s - 2))) + y, by the largest of the three.
    """
    single = log_probs.dim() == 2
    logs = log_probs.unsqueeze(1) if single else log_probs
    steps, count, _ = logs.shape
    device = logs.device
    targets = targets.to(device)  # which PyTorch takes from the CPU, too
    lengths = [torch.as_tensor(part, device=device).reshape(-1).long() for part in (input_lengths, target_lengths)]
    longest = int(lengths[1].max()) if count else 0
    labels = torch.full((count, longest), blank, device=device)
    inside = torch.arange(longest, device=device) < lengths[1][:, None]
    if targets.dim() == 1 and not single:
        labels[inside] = targets.long()
    else:
        labels[inside] = targets.reshape(count, -1)[:, :longest].long()[inside]
    read = torch.full((count, 2 * longest + 1), blank, device=device)
    read[:, 1::2] = labels
    skips = torch.zeros_like(read, dtype=torch.bool)
    skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    chosen = choosing("gather")(mode, logs, 2, read.expand(steps, *read.shape))
    paths, there = mode.moved(torch.select, chosen, 0, 0), torch.zeros_like(skips)
    there[:, :2] = True
    for step in range(1, steps):
        parts = mode.moved(torch.stack, [mode.moved(F.pad, paths, (k, -k)) for k in range(3)], -1)
        reached = torch.stack([there, F.pad(there, (1, -1)), F.pad(there, (2, -2)) & skips], -1)
        found, some = _log_of_sums(mode, parts, reached)
        found = add(mode, found, mode.moved(torch.select, chosen, 0, step))
        running = (step < lengths[0])[:, None]
        paths, there = mode.moved(torch.where, running, found, paths), torch.where(running, some, there)
    ends = torch.stack([2 * lengths[1], (2 * lengths[1] - 1).clamp(min=0)], -1)
    reached = there.gather(1, ends) & torch.stack([lengths[1] >= 0, lengths[1] > 0], -1)
    total, some = _log_of_sums(mode, choosing("gather")(mode, paths, 1, ends), reached)
    losses = mode.moved(torch.where, some, mode.moved(torch.neg, total), 0.0 if zero_infinity else torch.inf)
    if reduction == "mean":
        losses = divide(mode, losses, lengths[1].clamp(min=1))
    return _reduced(mode, "ctc_loss", losses[0] if single and reduction == "none" else losses, reduction)
