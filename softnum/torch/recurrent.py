"""Recurrent functions of PyTorch: their products in a design's arithmetic, step by step."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from softnum.torch.exact import EXACT
from softnum.torch.handlers import linear

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


def _lstm_step(op: _Operations, read, state, kept):
    h, c = state
    i, f, g, o = op.add(read, kept(h)).chunk(4, -1)
    c = op.add(op.multiply(op.sigmoid(f), c), op.multiply(op.sigmoid(i), op.tanh(g)))
    return op.multiply(op.sigmoid(o), op.tanh(c)), c


def _gru_step(op: _Operations, read, state, kept):
    (h,) = state
    (r, z, n), (own_r, own_z, own_n) = read.chunk(3, -1), kept(h).chunk(3, -1)
    r, z = op.sigmoid(op.add(r, own_r)), op.sigmoid(op.add(z, own_z))
    n = op.tanh(op.add(n, op.multiply(r, own_n)))
    return (op.add(op.multiply(op.subtract(torch.ones_like(z), z), n), op.multiply(z, h)),)


def _rnn_step(function: str) -> Callable:
    def step(op: _Operations, read, state, kept):
        (h,) = state
        return (getattr(op, function)(op.add(read, kept(h))),)

    return step


def _recurrent(name: str, step: Callable, states: int) -> Callable:
    def run(mode, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first=None):
        if isinstance(has_biases, (tuple, list)):  # packed sequences come with one argument more before these
            raise NotImplementedError(
                f"{name} in module {mode.running()!r}: softnum.torch computes no packed sequences; pad them"
            )
        hx = hx if isinstance(hx, (tuple, list)) else (hx,)
        each = 4 if has_biases else 2
        directions = 2 if bidirectional else 1
        if len(params) != each * num_layers * directions:
            raise NotImplementedError(f"{name} in module {mode.running()!r}: softnum.torch computes no projections")
        x, op = input.transpose(0, 1) if batch_first else input, _Operations(mode)
        last: list[list] = [[] for _ in range(states)]
        for layer in range(num_layers):
            found = []
            for direction in range(directions):
                place = layer * directions + direction
                w_ih, w_hh, *biases = params[each * place : each * (place + 1)]
                b_ih, b_hh = biases or (None, None)
                part = f"l{layer}" + ("_reverse" if direction else "")
                reads = linear(mode, x, w_ih, b_ih, part=f"ih_{part}")

                def kept(h, w=w_hh, b=b_hh, part=part):
                    return linear(mode, h, w, b, part=f"hh_{part}")

                state, steps = tuple(part[place] for part in hx), []
                for read in reads.flip(0) if direction else reads:
                    state = step(op, read, state, kept)
                    steps.append(state[0])
                found.append(torch.stack(steps[::-1] if direction else steps))
                for kind, value in zip(last, state, strict=True):
                    kind.append(value)
            x = torch.cat(found, -1)
            if dropout and train and layer + 1 < num_layers:
                x = EXACT[F.dropout](mode, x, dropout) if mode.exact else F.dropout(x, dropout)
        return x.transpose(0, 1) if batch_first else x, *(torch.stack(kind) for kind in last)

    return run


def _cell(step: Callable, states: int) -> Callable:
    def run(mode, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        read = linear(mode, input, w_ih, b_ih, part="ih")
        hx = hx if isinstance(hx, (tuple, list)) else (hx,)
        state = step(_Operations(mode), read, hx, lambda h: linear(mode, h, w_hh, b_hh, part="hh"))
        return state if states > 1 else state[0]

    return run


_RNN_TANH, _RNN_RELU = _rnn_step("tanh"), _rnn_step("relu")
#: function of PyTorch -> what computes it
RECURRENT: dict[Callable, Callable] = {
    torch.lstm: _recurrent("lstm", _lstm_step, 2),
    torch.gru: _recurrent("gru", _gru_step, 1),
    torch.rnn_tanh: _recurrent("rnn_tanh", _RNN_TANH, 1),
    torch.rnn_relu: _recurrent("rnn_relu", _RNN_RELU, 1),
    torch.lstm_cell: _cell(_lstm_step, 2),
    torch.gru_cell: _cell(_gru_step, 1),
    torch.rnn_tanh_cell: _cell(_RNN_TANH, 1),
    torch.rnn_relu_cell: _cell(_RNN_RELU, 1),
}
