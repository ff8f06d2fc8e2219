"""Operators of ONNX that are neither products nor of single elements: normalisations, pooling, sums, and what moves.

Counts are those of named networks (the table of `softnum.tta.architectures.layers`). Reshape, Flatten, Squeeze,
Unsqueeze, Identity, a cast between floating-point types, and Dropout outside of training are views: formats are the
design's, and nothing moves. Transpose, Concat, Split, Slice, Expand, Pad, Gather and others copy: bytes and no FLOPs.
"""

from __future__ import annotations

from math import prod

from softnum.tta.architectures.layers import Work
from softnum.tta.onnx.values import Op, Rows, Value

__all__ = ["LAYERS", "MOVED", "VIEWS", "WITHOUT_GRADIENT"]

#: FLOPs for each element: forwards; backwards of data; backwards where only gain and bias have a gradient.
_NORMS = {"mean": (7, 9, 5), "root": (4, 8, 3)}

VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
MOVED = (
    "Transpose", "Concat", "Split", "Slice", "Expand", "Tile", "Pad", "DepthToSpace", "SpaceToDepth", "Trilu",
    "ReverseSequence", "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "CenterCropPad",
)  # fmt: skip
WITHOUT_GRADIENT = ("ArgMax", "ArgMin", "OneHot", "Range", "EyeLike", "ConstantOfShape", "Shape", "Size")


def _norm(op: Op) -> Rows:
    x = op.x
    trained = [value for value in op.inputs[1:3] if value is not None]
    kind, of = {
        "BatchNormalization": ("batch_norm", "mean"), "InstanceNormalization": ("instance_norm", "mean"),
        "GroupNormalization": ("group_norm", "mean"), "LayerNormalization": ("layer_norm", "mean"),
        "MeanVarianceNormalization": ("layer_norm", "mean"), "RMSNormalization": ("rms_norm", "root"),
    }[op.kind]  # fmt: skip
    forward, data, gains = _NORMS[of]
    read = (x.moved(), *(("master", value.size) for value in trained))
    rows = Rows(work=[Work("forward", kind, forward * x.size, read, (op.y.moved("activations"),))])
    needing = [value for value in (x, *trained) if value.needs]
    if needing:
        gain = tuple(("master", value.size) for value in trained[:1])
        moved = (x.moved(), ("errors", x.size), *gain)
        written = tuple(value.gradient() for value in needing)
        flops, stage = (data, "backward_data") if x.needs else (gains, "backward_weight")
        rows.work.append(Work(stage, kind, flops * x.size, moved if x.needs else moved[:2], written))
        rows.saves = [x]
    return rows


def _softmax(op: Op) -> Rows:
    x, y = op.x, op.y
    rows = Rows(work=[Work("forward", "softmax", 5 * x.size, (x.moved(),), (y.moved("activations"),))])
    if x.needs:
        moved = (y.moved("activations"), ("errors", y.size))
        rows.work.append(Work("backward_data", "softmax", 4 * x.size, moved, (x.gradient(),)))
        rows.saves = [y]
    return rows


def _loss(op: Op) -> Rows:
    scores, labels = op.x, op.need(1)
    if op.input(2) is not None:
        op.fail("has weights of classes, which are not counted")
    n = scores.size
    moved = (scores.moved(), labels.moved())
    rows = Rows(work=[Work("forward", "softmax", 5 * n, moved, (("activations", n), ("activations", op.y.size)))])
    if scores.needs:
        rows.kept = {"probabilities": n}
        moved = (("activations", n), labels.moved())
        rows.work.append(Work("backward_data", "softmax", n, moved, (scores.gradient(),)))
    return rows


def _pool(op: Op) -> Rows:
    x, y = op.x, op.y
    largest = op.kind in ("MaxPool", "GlobalMaxPool")
    if op.kind.startswith("Global"):
        window = prod(x.shape[2:])
    else:
        window = prod(op.attribute("kernel_shape", ())) or op.fail("states no kernel_shape")
    rows = Rows(work=[Work("forward", "pooling", y.size * window, (x.moved(),), (y.moved("activations"),))])
    if x.needs:
        read = (x.moved(), y.moved("activations"), ("errors", y.size)) if largest else (("errors", y.size),)
        rows.work.append(Work("backward_data", "pooling", y.size if largest else x.size, read, (x.gradient(),)))
        rows.saves = [x] if largest else []
    return rows


#: FLOPs forwards, as multiples of the elements that enter, that are left out and that leave; backwards of an element
#: that leaves and of one that enters; what is saved.
_REDUCTIONS = {
    "ReduceSum": ((1, -1), (0, 0), ""),
    "ReduceMean": ((1, 0), (1, 0), ""),  # and a quotient a result
    "ReduceMax": ((1, -1), (1, 0), "xy"),
    "ReduceMin": ((1, -1), (1, 0), "xy"),
    "ReduceProd": ((1, -1), (0, 2), "xy"),
    "ReduceL1": ((2, -1), (0, 1), "x"),
    "ReduceL2": ((2, 0), (1, 1), "xy"),  # squares, sums, a root a result
    "ReduceSumSquare": ((2, -1), (0, 2), "x"),
    "ReduceLogSum": ((1, 0), (1, 0), "x"),
    "ReduceLogSumExp": ((4, 0), (0, 3), "xy"),  # maximum, difference, exp, sum; a logarithm a result, less a sum
    "ArgMax": ((1, -1), (0, 0), ""),
    "ArgMin": ((1, -1), (0, 0), ""),
}


def _reduce(op: Op) -> Rows:
    (entering, leaving), (per_result, per_input), saved = _REDUCTIONS[op.kind]
    x, y = op.x, op.y
    flops = (entering * x.size + leaving * y.size) * x.floating
    rows = Rows(work=[Work("forward", op.kind.lower(), flops, (x.moved(),), (y.moved("activations"),))])
    if x.needs and y.floating:
        keeps = [value for value, letter in ((x, "x"), (y, "y")) if letter in saved]
        read = (*(value.moved() for value in keeps), ("errors", y.size))
        flops = per_result * y.size + per_input * x.size
        rows.work.append(Work("backward_data", op.kind.lower(), flops, read, (x.gradient(),)))
        rows.saves = keeps
    return rows


def _sums(op: Op) -> Rows:
    """CumSum: an addition an element, forwards and backwards."""
    x, y = op.x, op.y
    rows = Rows(work=[Work("forward", "cumsum", x.size * x.floating, (x.moved(),), (y.moved("activations"),))])
    if x.needs:
        rows.work.append(Work("backward_data", "cumsum", x.size, (("errors", y.size),), (x.gradient(),)))
    return rows


def _view(op: Op) -> Rows:
    return Rows(view=True)


def _cast(op: Op) -> Rows:
    if op.x.floating and op.y.floating:
        return Rows(view=True)
    return Rows(work=[Work("forward", "cast", 0, (op.x.moved(),), (op.y.moved("activations"),))])


def _dropout(op: Op) -> Rows:
    training = op.input(2)
    if training is None or (training.known is not None and not training.known.any()):
        return Rows(view=True)
    x, y = op.x, op.y
    rows = Rows(work=[Work("forward", "dropout", y.size, (x.moved(),), (y.moved("activations"),))])
    if x.needs:
        rows.work.append(Work("backward_data", "dropout", y.size, (("errors", y.size),), (x.gradient(),)))
        rows.kept = {"mask": y.size}
    return rows


def _move(op: Op) -> Rows:
    """A copy; what is gathered is read, and no more."""
    gathers, scatters = op.kind.startswith("Gather"), op.kind.startswith("Scatter")
    results = [value for value in op.outputs if value is not None]
    n = sum(value.size for value in results)
    x, rest = op.x, [value for value in op.inputs[1:] if value is not None and value.known is None]
    fewer = gathers or op.kind in ("Slice", "Trilu")
    role, _ = x.moved()
    source = (role, min(n, x.size) if fewer and not gathers else n if gathers else x.size)
    kind = "embedding" if gathers and x.parameter else op.kind.lower()
    written = tuple(value.moved("activations") for value in results)
    rows = Rows(work=[Work("forward", kind, 0, (source, *(value.moved() for value in rest)), written)])
    several = [x, *rest] if op.kind == "Concat" else [x, op.need(2)] if scatters and op.input(2) is not None else [x]
    for value in (value for value in several if value.needs):
        # what is read twice has the sum of both gradients
        flops = n if gathers else max(0, n - value.size) if op.kind in ("Expand", "Tile") else 0
        indices = tuple(each.moved() for each in rest if not each.floating)
        size = n if op.kind not in ("Concat",) and not scatters else value.size
        written = (("weight_gradients" if value.parameter else "errors", min(size, value.size)),)
        stage = "backward_weight" if value.parameter else "backward_data"
        rows.work.append(Work(stage, kind, flops, (("errors", size), *indices), written))
        rows.saves = [each for each in rest if not each.floating]
    return rows


def _made(op: Op) -> Rows:
    """A tensor without floating-point operands, written once."""
    read = tuple(value.moved() for value in op.inputs if value is not None and value.known is None)
    return Rows(work=[Work("forward", op.kind.lower(), 0, read, (op.y.moved("activations"),))])


def _resize(op: Op) -> Rows:
    mode = op.attribute("mode", b"nearest").decode()
    if mode not in ("nearest", "linear"):
        op.fail(f"has mode {mode!r}; nearest and linear are counted")
    x, y = op.x, op.y
    scaled = sum(a != b for a, b in zip(x.shape, y.shape, strict=True))
    flops = 0 if mode == "nearest" else (2 * 2**scaled - 1) * y.size
    rows = Rows(work=[Work("forward", "upsample", flops, (x.moved(),), (y.moved("activations"),))])
    if x.needs:
        flops = y.size if mode == "nearest" else 2 * 2**scaled * y.size
        rows.work.append(Work("backward_data", "upsample", flops, (("errors", y.size),), (x.gradient(),)))
    return rows


_MADE: tuple[str, ...] = ("OneHot", "Range", "EyeLike", "ConstantOfShape", "Shape", "Size")

LAYERS = {
    **dict.fromkeys(VIEWS, _view),
    **dict.fromkeys(MOVED, _move),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys(("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"), _pool),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization"), _norm),
    **dict.fromkeys(("MeanVarianceNormalization", "RMSNormalization"), _norm),
    **dict.fromkeys(_MADE, _made),
    "Cast": _cast, "CastLike": _cast, "CumSum": _sums, "Dropout": _dropout, "Resize": _resize, "Upsample": _resize,
    "SoftmaxCrossEntropyLoss": _loss,
}  # fmt: skip


def buffers(op: Op) -> list[Value]:
    """Inputs that are kept and not trained: a normalisation's running mean and variance, factors of a size."""
    if op.kind == "BatchNormalization":
        return [value for value in op.inputs[3:5] if value is not None]
    return [value for value in op.inputs[1:] if value is not None] if op.kind in ("Resize", "Upsample", "Pad") else []
