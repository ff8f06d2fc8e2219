"""Recurrent functions of PyTorch: their products in a design's arithmetic, step by step."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
import torch.nn.functional as F

from softnum.torch.exact.tables import EXACT
from softnum.torch.functions import FUNCTIONS
from softnum.torch.gradients import final

__all__ = ["RECURRENT", "parts_of"]


def parts_of(module) -> list[str]:
    """The names of a recurrent module's layers: of the products with its input and with its state.

    >>> parts_of(torch.nn.GRU(2, 3, num_layers=2))
    ['ih_l0', 'hh_l0', 'ih_l1', 'hh_l1']
    """
    return [name.removeprefix("weight_") for name, _ in module.named_parameters(recurse=False) if "weight_" in name]


class _Operations:
    """Element by element: PyTorch's own, or the design's."""

    def __init__(self, mode) -> None:
        def of(function: Callable) -> Callable:
            exact = EXACT.get(function)
            return function if not mode.exact else lambda *operands: exact(mode, *operands)

        self.add, self.subtract, self.multiply = of(torch.add), of(torch.sub), of(torch.mul)
        self.tanh, self.sigmoid, self.relu = of(torch.tanh), of(torch.sigmoid), torch.relu


def _lstm_step(op: _Operations, read, state, product):
    h, c = state
    i, f, g, o = product(h, read).chunk(4, -1)
    c = op.add(op.multiply(op.sigmoid(f), c), op.multiply(op.sigmoid(i), op.tanh(g)))
    return op.multiply(op.sigmoid(o), op.tanh(c)), c


def _gru_step(op: _Operations, read, state, product):
    (h,) = state
    gates, n = read.tensor_split([2 * h.shape[-1]], -1)
    gates, own = product(h, gates)
    r, z = (op.sigmoid(part) for part in gates.chunk(2, -1))
    n = op.tanh(op.add(n, op.multiply(r, own)))
    return (op.add(op.multiply(op.subtract(torch.ones_like(z), z), n), op.multiply(z, h)),)


def _rnn_step(function: str) -> Callable:
    def step(op: _Operations, read, state, product):
        (h,) = state
        return (getattr(op, function)(product(h, read)),)

    return step


def _parts(mode, name: str, weights: tuple, part: str) -> tuple[list, Callable]:
    """What reads an input, and the products of a state: of one direction of a recurrent layer.

    Parameters
    ----------
    mode : softnum.torch.arithmetic
    name : str
        Of the function.
    weights : tuple of tensors
        Those of the input and of the state, and as many biases or none.
    part : str
        Of the name of the state's layer.

    Returns
    -------
    reading : list of tensors
        Weights and biases of the input's product. What is read is x @ W^T + (b_ih + b_hh).
    product : callable
        (state, what was read) -> the sum of the state's product and that, which its accumulators start from. Of a GRU,
        (state, the gates' part) -> that of the gates, and the product of its third part, which has a bias of its own.
    """
    w_ih, w_hh, *biases = weights
    if name != "gru":
        return [w_ih, *biases], lambda h, read: mode.apply("linear", [h, w_hh, read], part)
    size = 2 * w_hh.shape[-1]
    of_gates, of_own = w_hh.tensor_split([size])
    own = []
    if biases:
        gates, bias = biases[1].tensor_split([size])
        own, biases = [bias], [biases[0], torch.cat([gates, torch.zeros_like(bias)])]

    def product(h, gates):
        return mode.apply("linear", [h, of_gates, gates], part), mode.apply("linear", [h, of_own, *own], part)

    return [w_ih, *biases], product


def _steps(mode, name: str, read, state: tuple, weight, part: str) -> tuple[torch.Tensor, tuple]:
    """The hidden states of all steps of an exact function, and the states after the last one."""
    given = torch.is_grad_enabled() and any(x.requires_grad for x in state)
    weight = final(weight, mode, mode.part(part))
    found = mode.apply(name, [read, *state, weight], part, options=(int(given),))
    count = len(read)
    return found[:count], tuple(found[count - 1 :])


def _runs(read, sizes: list[int] | None, reverse: bool) -> list:
    """What was read, in the order in which it is computed: (steps, rows, ...) of each run of steps with as many rows.

    sizes: the rows of each step of packed sequences; None: they are all one run.
    """
    if sizes is None:
        return [read.flip(0) if reverse else read]
    found, start = [], 0
    for rows, steps in itertools.groupby(sizes):
        count = len(list(steps))
        found.append(read[start : start + count * rows].reshape(count, rows, -1))
        start += count * rows
    return [run.flip(0) for run in reversed(found)] if reverse else found


def _direction(mode, name: str, step: Callable, runs: list, before: tuple, weights, product: Callable, part: str):
    """The hidden states of all steps of each run, and the states of each row after its last step.

    A sequence that ends leaves the state, of whose rows it is the last; one that begins enters there.
    """
    op, state, found, ended = _Operations(mode), (), [], []
    for run in runs:
        rows, held = run.shape[1], len(state[0]) if state else 0
        if held > rows:
            ended.insert(0, [x[rows:] for x in state])
            state = tuple(x[:rows] for x in state)
        elif held < rows:
            joined = [x[held:rows] for x in before]
            state = tuple(torch.cat(pair) for pair in zip(state, joined, strict=True)) if held else tuple(joined)
        if mode.exact and name in FUNCTIONS:
            steps, state = _steps(mode, name, run, state, weights[1], part)
        else:
            steps = []
            for read in run:
                state = step(op, read, state, product)
                steps.append(state[0])
            steps = torch.stack(steps)
        found.append(steps)
    if ended:
        state = tuple(torch.cat([x, *rest]) for x, *rest in zip(state, *ended, strict=True))
    return found, state


def _recurrent(name: str, step: Callable, states: int) -> Callable:
    def run(mode, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first=None):
        sizes = None
        if isinstance(has_biases, (tuple, list)):  # packed sequences come with the rows of each step before these
            sizes, hx, params, has_biases = hx.tolist(), params, has_biases, num_layers
            num_layers, dropout, train, bidirectional = dropout, train, bidirectional, batch_first
        hx = hx if isinstance(hx, (tuple, list)) else (hx,)
        each = 4 if has_biases else 2
        directions = 2 if bidirectional else 1
        if len(params) != each * num_layers * directions:
            raise NotImplementedError(f"{name} in module {mode.running()!r}: softnum.torch computes no projections")
        turned = sizes is None and batch_first
        x = input.transpose(0, 1) if turned else input
        last: list[list] = [[] for _ in range(states)]
        for layer in range(num_layers):
            found = []
            for direction in range(directions):
                place = layer * directions + direction
                weights = params[each * place : each * (place + 1)]
                part = f"l{layer}" + ("_reverse" if direction else "")
                reading, product = _parts(mode, name, weights, f"hh_{part}")
                read = mode.apply("linear", [x, *reading], f"ih_{part}", axis=1 if sizes is None else 0)
                runs, before = _runs(read, sizes, bool(direction)), tuple(kind[place] for kind in hx)
                steps, state = _direction(mode, name, step, runs, before, weights, product, f"hh_{part}")
                steps = [run.flip(0) for run in reversed(steps)] if direction else steps
                found.append(steps[0] if sizes is None else torch.cat([run.flatten(0, 1) for run in steps]))
                for kind, value in zip(last, state, strict=True):
                    kind.append(value)
            x = torch.cat(found, -1)
            if dropout and train and layer + 1 < num_layers:
                x = EXACT[F.dropout](mode, x, dropout) if mode.exact else F.dropout(x, dropout)
        return x.transpose(0, 1) if turned else x, *(torch.stack(kind) for kind in last)

    return run


def _cell(name: str, step: Callable, states: int) -> Callable:
    def run(mode, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        hx = tuple(hx) if isinstance(hx, (tuple, list)) else (hx,)
        reading, product = _parts(mode, name, (w_ih, w_hh, *([] if b_ih is None else [b_ih, b_hh])), "hh")
        read = mode.apply("linear", [input, *reading], "ih")
        if mode.exact and name in FUNCTIONS:
            _, state = _steps(mode, name, read[None], hx, w_hh, "hh")
        else:
            state = step(_Operations(mode), read, hx, product)
        return state if states > 1 else state[0]

    return run


_RNN_TANH, _RNN_RELU = _rnn_step("tanh"), _rnn_step("relu")
#: function of PyTorch -> what computes it
RECURRENT: dict[Callable, Callable] = {
    torch.lstm: _recurrent("lstm", _lstm_step, 2),
    torch.gru: _recurrent("gru", _gru_step, 1),
    torch.rnn_tanh: _recurrent("rnn_tanh", _RNN_TANH, 1),
    torch.rnn_relu: _recurrent("rnn_relu", _RNN_RELU, 1),
    torch.lstm_cell: _cell("lstm", _lstm_step, 2),
    torch.gru_cell: _cell("gru", _gru_step, 1),
    torch.rnn_tanh_cell: _cell("rnn_tanh", _RNN_TANH, 1),
    torch.rnn_relu_cell: _cell("rnn_relu", _RNN_RELU, 1),
}
