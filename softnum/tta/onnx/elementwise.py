"""Operators of ONNX on elements: their FLOPs for each element of the result, by the counts of named networks.

A function (exp, tanh, a root) is one operation, as is a comparison of floating-point numbers; operations on integers
and on truth values are none, and a choice (Where) is a copy. An operand that is broadcast has a gradient that is summed
over its copies: an addition for each element of the result.
"""

from __future__ import annotations

from softnum.tta.architectures.layers import FUNCTIONS, Work
from softnum.tta.onnx.values import Op, Rows, Value

__all__ = ["ELEMENTWISE", "FLAT"]

#: Of one operand: FLOPs forwards and backwards, and what the backward pass needs. 0 backwards: there is no gradient.
_UNARY = {
    "Relu": FUNCTIONS["relu"], "Sigmoid": FUNCTIONS["sigmoid"], "Tanh": FUNCTIONS["tanh"], "Gelu": FUNCTIONS["gelu"],
    "LeakyRelu": (2, 2, "output"),  # a comparison and a product
    "ThresholdedRelu": (1, 1, "output"),
    "Elu": (4, 4, "output"),  # compare, exp, subtract, scale
    "Celu": (5, 4, "output"),  # and divide
    "Selu": (5, 4, "output"),  # and scale once more
    "HardSigmoid": (4, 2, "output"),  # scale, add, two comparisons
    "HardSwish": (5, 4, "input"),  # times x
    "Swish": (2, 5, "input"),  # a function times x
    "Mish": (3, 8, "input"),  # two functions, times x
    "Softplus": (1, 2, "input"),
    "Softsign": (3, 4, "output"),  # absolute value, add, divide
    "Exp": (1, 1, "output"), "Log": (1, 1, "input"), "Sqrt": (1, 2, "output"), "Reciprocal": (1, 3, "output"),
    "Abs": (1, 1, "input"), "Neg": (1, 1, ""), "Erf": (1, 4, "input"),
    "Sin": (1, 2, "input"), "Cos": (1, 2, "input"), "Sinh": (1, 2, "input"), "Cosh": (1, 2, "input"),
    "Tan": (1, 3, "output"), "Atan": (1, 3, "input"), "Asin": (1, 4, "input"), "Acos": (1, 4, "input"),
    "Floor": (1, 0, ""), "Ceil": (1, 0, ""), "Round": (1, 0, ""), "Sign": (1, 0, ""), "IsNaN": (1, 0, ""),
    "IsInf": (1, 0, ""), "Not": (0, 0, ""), "BitwiseNot": (0, 0, ""),
}  # fmt: skip

#: Of two operands: FLOPs forwards, backwards for each of both, and what each gradient needs: inputs by number, the
#: output as "y".
_BINARY = {
    "Add": (1, (0, 0), ("", "")),
    "Sub": (1, (0, 1), ("", "")),
    "Mul": (1, (1, 1), ("1", "0")),
    "Div": (1, (1, 3), ("1", "1y")),  # g / b; -(g / b) y
    "Pow": (1, (3, 3), ("01", "0y")),  # b x^(b - 1) g; log(x) y g
    "PRelu": (2, (2, 2), ("01", "0")),
}  # fmt: skip
_WITHOUT_GRADIENT = (
    "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "BitShift", "BitwiseAnd",
    "BitwiseOr", "BitwiseXor", "Mod",
)  # fmt: skip


def _unary(op: Op) -> Rows:
    forward, backward, saved = _UNARY[op.kind]
    x, y = op.x, op.y
    rows = Rows(work=[_forward(op, forward)])
    if x.needs and backward:
        keeps = {"input": [x], "output": [y], "": []}[saved]
        read = (*(value.moved() for value in keeps), ("errors", y.size))
        rows.work.append(Work(_stage(x), op.kind.lower(), backward * y.size, read, (x.gradient(),)))
        rows.saves = keeps
    return rows


def _result(y: Value):
    return y.moved("activations")


def _stage(*values: Value) -> str:
    """Of the row that has the gradients of these."""
    return "backward_weight" if all(value.parameter for value in values) else "backward_data"


def _binary(op: Op) -> Rows:
    forward, backward, saved = _BINARY[op.kind]
    a, b, y = op.x, op.need(1), op.y
    rows = Rows(work=[_forward(op, forward)])
    for value, flops, keeps in zip((a, b), backward, saved, strict=True):
        if not value.needs:
            continue
        kept = [{"0": a, "1": b, "y": y}[what] for what in keeps]
        spread = y.size if value.size < y.size else 0
        rows.saves += [each for each in kept if each not in rows.saves]
        if flops or spread:
            read = (*(each.moved() for each in kept), ("errors", y.size))
            rows.work.append(Work(_stage(value), op.kind.lower(), flops * y.size + spread, read, (value.gradient(),)))
    rows.passes = op.kind == "Add"
    return rows


def _forward(op: Op, flops: int) -> Work:
    """A row of the operands' numbers, each read once, and the results'."""
    found = [value for value in op.inputs if value is not None]
    n = flops * op.y.size if any(value.floating for value in found) else 0
    return Work("forward", op.kind.lower(), n, tuple(value.moved() for value in found), (_result(op.y),))


def _compared(op: Op) -> Rows:
    return Rows(work=[_forward(op, 1)])


def _several(op: Op) -> Rows:
    """Of any number of operands: a sum, an average, the largest or smallest."""
    found = [value for value in op.inputs if value is not None]
    y = op.y
    rows = Rows(work=[_forward(op, len(found) - (op.kind != "Mean"))])
    trained = [value for value in found if value.needs]
    flops = {"Sum": 0, "Mean": 1}.get(op.kind, 1)
    for value in trained:
        spread = y.size if value.size < y.size else 0
        if flops or spread:
            read = (*((value.moved(),) if op.kind in ("Max", "Min") else ()), ("errors", y.size))
            rows.work.append(Work(_stage(value), op.kind.lower(), flops * y.size + spread, read, (value.gradient(),)))
    rows.saves = trained if op.kind in ("Max", "Min") else []
    rows.passes = op.kind == "Sum"
    return rows


def _clip(op: Op) -> Rows:
    x, y = op.x, op.y
    limits = sum(value is not None for value in op.inputs[1:3]) + ("min" in op.attributes) + ("max" in op.attributes)
    rows = Rows(work=[Work("forward", "clip", limits * y.size * x.floating, (x.moved(),), (_result(y),))])
    if x.needs:
        rows.work.append(Work(_stage(x), "clip", y.size, (x.moved(), ("errors", y.size)), (x.gradient(),)))
        rows.saves = [x]
    return rows


def _where(op: Op) -> Rows:
    chosen, a, b, y = op.x, op.need(1), op.need(2), op.y
    rows = Rows(work=[_forward(op, 0)])
    for value in (a, b):
        if value.needs:
            spread = y.size if value.size < y.size else 0
            read = (chosen.moved(), ("errors", y.size))
            rows.work.append(Work(_stage(value), "where", spread, read, (value.gradient(),)))
            rows.saves = [chosen]
    return rows


ELEMENTWISE = {
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys(_WITHOUT_GRADIENT, _compared),
    **dict.fromkeys(("Sum", "Mean", "Max", "Min"), _several),
    "Clip": _clip,
    "Where": _where,
}
#: Those through which no gradient passes.
FLAT = {kind for kind, (_, backward, _) in _UNARY.items() if not backward} | set(_WITHOUT_GRADIENT)
