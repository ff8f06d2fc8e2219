"""Circuits evaluated word by word, in Python's integers: what judges the other ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softnum.vectors.formal.circuit import Circuit, apply

__all__ = ["evaluate"]


def evaluate(circuit: Circuit, inputs: Mapping[str, object]) -> dict[str, np.ndarray]:
    """The outputs of a circuit.

    Parameters
    ----------
    circuit : Circuit
    inputs : mapping of str to array-like of int, shape (n,)
        One for each input, numbers of its width.

    Returns
    -------
    dict of str to ndarray of int (dtype object), shape (n,)
        In the order of the outputs.

    Raises
    ------
    ValueError
        If an input is missing, unknown or does not fit its width.

    Examples
    --------
    >>> from softnum.vectors.formal import Circuit
    >>> c = Circuit()
    >>> c.output("twice", c.input("a", 4) + c.input("b", 4))
    >>> evaluate(c, {"a": [3, 15], "b": [3, 15]})
    {'twice': array([6, 14], dtype=object)}
    """
    if set(inputs) != set(circuit.inputs):
        raise ValueError(f"inputs {', '.join(inputs)} were given; the circuit's are {', '.join(circuit.inputs)}")
    given = {name: np.array([int(v) for v in np.ravel(values)], object) for name, values in inputs.items()}
    for name, values in given.items():
        width = circuit.nodes[circuit.inputs[name]].width
        if len(values) and (min(values) < 0 or max(values) >> width):
            raise ValueError(f"{name} has {width} bits: from 0 to {(1 << width) - 1}")
    count = max((len(v) for v in given.values()), default=1)
    known: list[Any] = []
    for node in circuit.nodes:
        args = node.args
        if node.op == "const":
            value = args[0]
        elif node.op == "input":
            value = given[args[0]]
        elif node.op == "extract":
            value = known[args[0]] >> args[1] & (1 << node.width) - 1
        elif node.op == "concat":
            value = known[args[0]] << circuit.nodes[args[1]].width | known[args[1]]
        elif node.op == "ite":
            condition = known[args[0]]
            value = known[args[1]] * condition + known[args[2]] * (1 - condition)
        else:
            value = apply(node.op, node.width, [known[i] for i in args], [circuit.nodes[i].width for i in args])
        known.append(value)
    return {name: np.array(np.broadcast_to(known[number], (count,))) for name, number in circuit.outputs.items()}
