"""Loops over operations on elements, written out as text and compiled by Numba.

One text serves an operator's steps (`softnum.tile.elementwise` states the domain and makes the operations): each is a
few instructions without a branch, so that LLVM makes vectors of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from softnum.kernels.host.cache import cache_of
from softnum.kernels.host.rounding import bits_of_float32, bits_of_float64, body_of, inlined, quotient_of, root_of
from softnum.kernels.host.scalars import Scalar

__all__ = ["loop_of", "text_of"]

_COMPARED = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip
_TYPES = {"float32": types.float32, "float64": types.float64, "bool": types.boolean}


def _smaller(bits_of):
    """The smaller of two numbers, -0 below +0 (IEEE 754-2019, 9.6: minimum, of numbers)."""
    return inlined(lambda a, b: a if a < b or (a == b and bits_of(a) < 0) else b)


def _larger(bits_of):
    return inlined(lambda a, b: b if a < b or (a == b and bits_of(a) < 0) else a)


_EXTREMES = {
    (name, carrier): make(bits_of)
    for name, make in (("minimum", _smaller), ("maximum", _larger))
    for carrier, bits_of in (("float32", bits_of_float32), ("float64", bits_of_float64))
}


def _body(operation):
    """What computes a rounded operation; None outside the domain of the short bodies."""
    fmt, mode, overflow = operation.rounding
    scalar = Scalar(fmt, mode, overflow, 32, operation.carrier)
    of = {"divide": quotient_of, "sqrt": root_of}.get(operation.function)
    return body_of(scalar, operation.function) if of is None else of(scalar)


def text_of(operations, names, inputs, outputs) -> tuple[str, dict[str, object]]:
    """(the text of a loop, what it calls by name).

    operations: `softnum.tile.elementwise.Operation`s; names, inputs: of what it reads, and for each (kind, whether it
    is one number for all elements); outputs: names of what it writes.
    """
    called, number = {"uintp": np.uintp, "float32": np.float32, "float64": np.float64}, {}
    arguments = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(len(outputs))]
    head, body = [f"def loop({', '.join(['n', 'k', *arguments[0], *arguments[1]])}):", "    bad = False"], []
    kinds = {}
    for i, (name, (kind, one)) in enumerate(zip(names, inputs, strict=True)):
        number[name], kinds[name] = f"v{len(number)}", kind
        lines = [f"{number[name]} = x{i}[{0 if one else 'i'}]"]
        lines += [] if kind == "bool" else [f"bad |= {number[name]} != {number[name]}"]
        if one:
            head += [f"    {line}" for line in lines]
        else:
            body += lines
    for operation in operations:

        def operand(x, carrier=operation.carrier):
            if isinstance(x, int):
                return f"{carrier}(k[{x}])"
            return number[x] if kinds[x] in (carrier, "bool") else f"{carrier}({number[x]})"

        target = number[operation.target] = f"v{len(number)}"
        kinds[operation.target] = operation.kind
        parts = [operand(x) for x in operation.operands]
        guard = " & ".join(number[c] if value else f"(not {number[c]})" for c, value in operation.guard)
        function = operation.function
        if function in _COMPARED:
            value = f"{parts[0]} {_COMPARED[function]} {parts[1]}"
        elif function in ("and", "or"):
            value = f"{parts[0]} {'&' if function == 'and' else '|'} {parts[1]}"
        elif function == "not":
            value = f"not {parts[0]}"
        elif function == "select":
            value = f"{parts[1]} if {parts[0]} else {parts[2]}"
        elif function == "copy":
            value = parts[0]
        elif function in ("negate", "absolute"):
            value = f"-{parts[0]}" if function == "negate" else f"abs({parts[0]})"
        else:
            value = f"f{len(called)}({', '.join(parts)})"
            extreme = _EXTREMES.get((function, operation.carrier))
            called[f"f{len(called)}"] = operation if extreme is None else extreme
        same = operation.kind in ("bool", operation.carrier)
        body.append(f"{target} = {value if same else f'{operation.kind}({value})'}")
        if operation.rounding is not None:
            wrong = f"{target} != {target}"
            if function in ("divide", "sqrt"):  # of an infinite operand x, x - x is NaN
                wrong = " | ".join([f"({wrong})", *(f"({x} - {x} != 0)" for x in parts)])
                wrong += f" | ({parts[1]} == 0)" if function == "divide" else ""
            body.append(f"bad |= ({wrong}){' & ' + guard if guard else ''}")
    for i, name in enumerate(outputs):
        guard = next((o.guard for o in operations if o.target == name), ())
        held = " & ".join(number[c] if value else f"(not {number[c]})" for c, value in guard)
        zero = "False" if kinds[name] == "bool" else f"{kinds[name]}(0)"
        body.append(f"y{i}[i] = {number[name]}" + (f" if {held} else {zero}" if held else ""))
    lines = [*head, "    for i in range(uintp(n)):", *(f"        {line}" for line in body), "    return bad"]
    return "\n".join(lines) + "\n", called


def loop_of(operations, names, inputs, outputs):
    """The compiled loop (n, constants, *inputs, *outputs) -> whether a NaN occurred; None outside the domain.

    Parameters as of `text_of`; arrays are flat and contiguous, of n elements or one.
    """
    text, called = text_of(operations, names, inputs, outputs)
    bodies = {}
    for name, what in called.items():
        bodies[name] = _body(what) if hasattr(what, "rounding") else what
        if bodies[name] is None:
            return None
    space = {**bodies, "__name__": __name__}
    exec(compile(text, "<softnum loop>", "exec"), space)
    kinds = {operation.target: operation.kind for operation in operations}
    given = [types.Array(_TYPES[kind], 1, "C", readonly=True) for kind, _ in inputs]
    made = [types.Array(_TYPES[kinds[name]], 1, "C") for name in outputs]
    loop = njit(nogil=True, error_model="numpy")(space["loop"])
    # the text calls bodies by numbers: what they are is told by the operations
    told = tuple((o.function, o.carrier, o.rounding and Scalar(*o.rounding, 32, o.carrier)) for o in operations)
    loop._cache = cache_of(text, *told)
    constants = types.Array(types.float64, 1, "C", readonly=True)
    loop.compile((types.intp, constants, *given, *made))
    loop.disable_compile()
    return loop
