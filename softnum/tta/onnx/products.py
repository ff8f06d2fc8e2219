"""Matrix products of ONNX: MatMul, Gemm, Conv, ConvTranspose, Einsum, Attention, RNN, LSTM, GRU.

FLOPs are 2 M N K of each product. A batch that only one operand has is part of M or N; one that both have is so many
products. A trained operand is the right one, as in the networks that have a name. Backwards each operand that needs a
gradient is one product as large as the forward one; of a convolution the padding is multiplied too, as libraries'
counts have it.
"""

from __future__ import annotations

from math import prod

from softnum.tta.architectures.attention_layers import Attention as AttentionLayer
from softnum.tta.architectures.layers import Product, Work, bias_gradient
from softnum.tta.architectures.sequence_layers import CELLS, Recurrent, state_products
from softnum.tta.onnx.values import Op, Rows, Value

__all__ = ["PRODUCTS"]


def _both(op: Op, left: Value, right: Value, count: int, m: int, n: int, k: int, needed: int = 0) -> Rows:
    """`count` products (M, K) @ (K, N) and those of their gradients."""
    y = op.y.size
    if left.parameter and not right.parameter:
        left, right, m, n = right, left, n, m
    rows = Rows([Product("forward", m, n, k, left.size, right.size, y, count, macs=needed)])
    if left.needs:
        row = (
            ("backward_weight", k, m, n, right.size, y) if left.parameter else ("backward_data", m, k, n, y, right.size)
        )
        rows.products.append(Product(*row, left.size, count, macs=needed))
        rows.saves.append(right)
    if right.needs:
        rows.products.append(Product("backward_weight", k, n, m, left.size, y, right.size, count, macs=needed))
        rows.saves.append(left)
    return rows


def _matmul(op: Op) -> Rows:
    left, right = op.x, op.need(1)
    a = left.shape if len(left.shape) > 1 else (1, *left.shape)
    b = right.shape if len(right.shape) > 1 else (*right.shape, 1)
    m, k, n = a[-2], a[-1], b[-1]
    rank = max(len(a), len(b)) - 2
    outer = list(zip(_padded(a[:-2], rank), _padded(b[:-2], rank), strict=True))
    shared = prod(x for x, z in outer if x == z)
    return _both(
        op, left, right, shared, m * prod(x for x, z in outer if x != z), n * prod(z for x, z in outer if x != z), k
    )


def _padded(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return (1,) * (rank - len(shape)) + shape


def _gemm(op: Op) -> Rows:
    left, right, bias = op.x, op.need(1), op.input(2)
    m, k = reversed(left.shape) if op.attribute("transA", 0) else left.shape
    n = right.shape[0] if op.attribute("transB", 0) else right.shape[1]
    rows = _both(op, left, right, 1, m, n, k)
    scales = ((op.attribute("alpha", 1.0), op.y), *(((op.attribute("beta", 1.0), bias),) if bias is not None else ()))
    for factor, value in scales:
        if factor != 1:
            rows.work.append(Work("forward", "scale", value.size, (value.moved(),), (value.moved("activations"),)))
            if value.needs:
                moved = ("errors", value.size)
                rows.work.append(Work("backward_data", "scale", value.size, (moved,), (moved,)))
    return _bias(rows, op, bias)


def _bias(rows: Rows, op: Op, bias: Value | None) -> Rows:
    """With the sum that a bias's gradient is; the bias itself is what sums start from."""
    if bias is not None and bias.needs and bias.size < op.y.size:
        rows.work += bias_gradient(op.y.size // bias.size, bias.size)
    return rows


def _conv(op: Op) -> Rows:
    image, weight = op.x, op.need(1)
    groups, place = op.attribute("group", 1), prod(weight.shape[2:])
    filters, channels = weight.shape[0] // groups, weight.shape[1]
    if channels * groups != image.shape[1] or filters * groups != op.y.shape[1]:
        op.fail(f"{groups} groups of a weight {weight.shape} do not fit {image.shape} and {op.y.shape}")
    samples, y = op.y.shape[0], op.y.size
    rows, pixels = samples * prod(op.y.shape[2:]), samples * prod(image.shape[2:])
    needed = groups * rows * filters * channels * place
    found = Rows([
        Product("forward", rows, filters, channels * place, image.size, weight.size, y, groups)
    ])  # fmt: skip
    if image.needs:
        sizes = (pixels, channels, filters * place, y, weight.size, image.size, groups)
        found.products.append(Product("backward_data", *sizes, macs=needed))
        found.saves.append(weight)
    return _weighted(found, op, (channels * place, filters, rows), groups)


def _conv_transpose(op: Op) -> Rows:
    image, weight = op.x, op.need(1)
    groups, place = op.attribute("group", 1), prod(weight.shape[2:])
    channels, filters = weight.shape[0] // groups, weight.shape[1]
    if channels * groups != image.shape[1] or filters * groups != op.y.shape[1]:
        op.fail(f"{groups} groups of a weight {weight.shape} do not fit {image.shape} and {op.y.shape}")
    pixels, y = image.shape[0] * prod(image.shape[2:]), op.y.size
    found = Rows([
        Product("forward", pixels, filters * place, channels, image.size, weight.size, y, groups)
    ])  # fmt: skip
    if image.needs:
        sizes = (pixels, channels, filters * place, y, weight.size, image.size, groups)
        found.products.append(Product("backward_data", *sizes))
        found.saves.append(weight)
    return _weighted(found, op, (channels, filters * place, pixels), groups)


def _weighted(found: Rows, op: Op, shape: tuple[int, int, int], groups: int) -> Rows:
    """With the gradients of a convolution's weight and bias."""
    image, weight = op.x, op.need(1)
    if weight.needs:
        sizes = (*shape, image.size, op.y.size, weight.size, groups)
        found.products.append(Product("backward_weight", *sizes))
        found.saves.append(image)
    return _bias(found, op, op.input(2))


def _einsum(op: Op) -> Rows:
    text = op.attribute("equation", b"").decode().replace(" ", "")
    terms, arrow, result = text.partition("->")
    names = terms.split(",")
    if len(op.inputs) != 2 or len(names) != 2:
        op.fail(f"{text!r} has {len(names)} operands; the order of contractions is known of two: write several")
    sizes: dict[str, int] = {}
    parts = []
    for name, value in zip(names, op.inputs, strict=True):
        assert value is not None
        dots = len(value.shape) - len(name.replace("...", ""))
        labels = name.replace("...", "".join(chr(0x100 + dots - i) for i in range(dots)))
        if len(labels) != len(value.shape) or len(set(labels)) != len(labels):
            op.fail(
                f"{text!r}: {name!r} repeats a label or does not fit the shape {value.shape}; diagonals are no sums"
            )
        for label, size in zip(labels, value.shape, strict=True):
            if sizes.setdefault(label, size) != size:
                op.fail(f"{text!r}: {label!r} is {sizes[label]} and {size}; broadcast sizes are not counted")
        parts.append(labels)
    left, right = parts
    spread = "".join(sorted({c for c in left + right if ord(c) >= 0x100}, reverse=True))
    if arrow:
        kept = result.replace("...", spread)
    else:
        kept = spread + "".join(sorted(c for c in left + right if ord(c) < 0x100 and (left + right).count(c) == 1))
    alone = [c for c in left + right if c not in kept and not (c in left and c in right)]
    if alone:
        op.fail(f"{text!r} sums over {', '.join(alone)} of one operand; write ReduceSum before it")

    def over(labels: str, other: str, stays: bool) -> int:
        return prod(sizes[c] for c in labels if (c in other) and ((c in kept) == stays))

    own = [prod(sizes[c] for c in labels if c not in other) for labels, other in ((left, right), (right, left))]
    return _both(op, op.x, op.need(1), over(left, right, True), own[0], own[1], over(left, right, False))


def _attention(op: Op) -> Rows:
    q, k, v, mask, past = op.x, op.need(1), op.need(2), op.input(3), op.input(4)
    if op.attribute("softcap", 0.0) or (len(op.outputs) > 3 and op.outputs[3] is not None):
        op.fail("softcap and qk_matmul_output are not counted")
    four = len(q.shape) == 4
    heads = q.shape[1] if four else op.attribute("q_num_heads")
    kv = k.shape[1] if four else op.attribute("kv_num_heads")
    if not heads or not kv:
        op.fail("three-dimensional operands need q_num_heads and kv_num_heads")
    queries, keys = q.shape[-2], k.shape[-2] + (0 if past is None else past.shape[-2])
    size, value = (q.shape[-1], v.shape[-1]) if four else (q.shape[-1] // heads, v.shape[-1] // kv)
    causal = bool(op.attribute("is_causal", 0))
    if causal and queries != keys:
        op.fail(f"is_causal with {queries} queries and {keys} keys: which pairs are computed is not counted")
    layer = AttentionLayer(op.name, heads, kv, value, causal)
    shapes, batch = ((queries, heads * size), (keys, kv * (size + value))), q.shape[0]
    trains, scored = q.needs or k.needs or v.needs, q.needs or k.needs
    found = Rows(kept={"probabilities": batch * layer.extra(shapes)["probabilities"]} if trains else {})
    wanted = (True, True, scored, v.needs, q.needs, k.needs)  # backwards: of the scores, then of v, q and k
    found.products = [row for row, need in zip(layer.products(shapes, batch), wanted, strict=True) if need]
    found.work = [row for row in layer.work(shapes, batch) if scored or row.stage == "forward"]
    if mask is not None and mask.floating:
        scores = ("activations", batch * heads * queries * keys)
        found.work.append(Work("forward", "mask", scores[1], (scores, mask.moved()), (scores,)))
    for old, new in ((past, k), (op.input(5), v)):
        if old is not None:
            moved = ("activations", old.size + new.size)
            found.work.append(Work("forward", "concatenate", 0, (moved,), (moved,)))
    found.saves = [q, k, v] if trains else []
    return found


_FUNCTIONS = {"RNN": (b"Tanh",), "LSTM": (b"Sigmoid", b"Tanh", b"Tanh"), "GRU": (b"Sigmoid", b"Tanh")}


def _recurrent(op: Op) -> Rows:
    kind = op.kind.lower()
    x, weight = op.x, op.need(1)
    hidden, ways = op.need(2).shape[2], weight.shape[0]
    op.refuse("clip", "input_forget")
    if op.input(4) is not None:
        op.fail("has sequence_lens; samples of one length are counted: leave it out")
    if op.kind == "LSTM" and op.input(7) is not None:
        op.fail("has peepholes, which are not counted")
    functions = [name.title() for name in op.attribute("activations", ())]
    if functions and functions != [*_FUNCTIONS[op.kind]] * ways:
        op.fail(f"has activations {[name.decode() for name in functions]}; those that ONNX defaults to are counted")
    steps, batch = (x.shape[1], x.shape[0]) if op.attribute("layout", 0) else x.shape[:2]
    layer = Recurrent(op.name, hidden, kind, ways == 2)
    shapes = ((steps, x.shape[2]),)
    weights = CELLS[kind][1]
    if op.kind == "GRU" and op.attribute("linear_before_reset", 0):
        weights = (3,)
    times = steps if op.input(5) is not None else steps - 1  # a first state of 0 is not multiplied
    trains = x.needs or weight.needs
    rows = [row for row in layer.products(shapes, batch) if not row.part.endswith("hidden")]
    for way in ("", "reverse.")[:ways]:
        for part in weights if times else ():
            rows += state_products(batch, hidden, part * hidden, times, f"{way}hidden")
    found = Rows()
    found.products = [
        row
        for row in rows
        if row.stage == "forward" or (trains and (x.needs or row.stage != "backward_data" or row.inner))
    ]
    found.work = [row for row in layer.work(shapes, batch) if trains or row.stage == "forward"]
    if op.input(3) is None:
        found.work = [row for row in found.work if row.kind != "bias"]
    if trains:
        found.saves = [x, *(value for value in op.outputs[:1] if value is not None)]
        found.kept = {what: batch * count for what, count in layer.extra(shapes).items()}
    return found


PRODUCTS = {
    "MatMul": _matmul, "Gemm": _gemm, "Conv": _conv, "ConvTranspose": _conv_transpose, "Einsum": _einsum,
    "Attention": _attention, "RNN": _recurrent, "LSTM": _recurrent, "GRU": _recurrent,
}  # fmt: skip
