"""The language model ``gpt`` of `softnum.train` as a module of PyTorch."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from softnum.torch.positions import rotary
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.tensor import Tensor
from softnum.train.layers.attention import causal_mask
from softnum.train.layers.dispatch import over_wire
from softnum.train.layers.losses import balance
from softnum.train.layers.mixture import Mixture, choices, seats
from softnum.train.layers.transformer_blocks import Block
from softnum.train.nets import make_network

__all__ = ["GPT"]


class GPT(nn.Module):
    """The decoder of `softnum.train.nets.gpt.GPT`, built from PyTorch's functions.

    Modules have the names of that network's layers, so that a design's ``[layers]`` find them; what is no layer of its
    own (sums of branches, the product of a gate) is arithmetic of the block. Converted with elementwise="exact" and
    program_order=True, it has the bits of that network, with two exceptions. The two gradients of a tied embedding are
    added by PyTorch and then rounded once to ``weight_gradients``, where that network rounds each of them and the sum:
    of binary32 that is the same. And random bits are numbered in the order of operations, which with experts, or a tied
    embedding, is another one backwards: where a design rounds stochastically, such a model has other bits. As it is,
    not converted, it has PyTorch's.

    Parameters
    ----------
    **options
        Of that network: sizes, depth, heads, kv_heads, dropout, steps, vocabulary, norm, feedforward, positions,
        rotary_base, tied_embeddings, biases, experts, experts_chosen, capacity, balance, expert_dispatch,
        expert_combine; not wires that round stochastically.

    Attributes
    ----------
    options : dict
        All of them, as the network has them.

    Raises
    ------
    ValueError
        As of the network, or a wire rounds stochastically.

    Examples
    --------
    >>> import torch, softnum.torch as st
    >>> model = st.convert(st.GPT(sizes="30k", depth=1), "c-wang-fp8", quiet=True)
    >>> model(torch.zeros(2, 16, dtype=torch.long)).shape
    torch.Size([2, 16, 256])
    """

    def __init__(self, **options) -> None:
        super().__init__()
        network = make_network("gpt", **options)
        for block in network.blocks:
            wires = getattr(block.feedforward, "wires", None)
            if wires is not None and wires.stochastic:
                raise ValueError(
                    f"expert_dispatch: a wire rounds stochastically ({wires.to_experts}; {wires.from_experts}), and "
                    "this model's random bits have no number for it; round to nearest, or train by softnum.train"
                )
        self.options, self.depth = network.options, len(network.blocks)
        self.dropout, self.steps = network.dropout, network.steps
        words, features = network.embedding.words, network.embedding.features
        self.embedding = nn.Embedding(words, features)
        self.position = None if network.position is None else nn.Embedding(self.steps, features)
        for number, block in enumerate(network.blocks, start=1):
            self.add_module(f"block{number}", _Block(block, self.dropout))
        self.norm = _norm(self.options["norm"], features)
        self.fc = nn.Linear(features, words, self.options["biases"])
        if self.options["tied_embeddings"]:
            self.fc.weight = self.embedding.weight
        nn.init.uniform_(self.embedding.weight, -network.embedding.limit, network.embedding.limit)

    @property
    def penalties(self) -> list[torch.Tensor]:
        """The losses that keep the experts of each block equally busy, of the last pass; to be added to the loss."""
        found = (getattr(block, "mixture", None) for block in self._blocks())
        return [mixture.penalty for mixture in found if mixture is not None and mixture.penalty is not None]

    def _blocks(self) -> list[nn.Module]:
        return [self.get_submodule(f"block{number}") for number in range(1, self.depth + 1)]

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The outputs for tokens (B, steps), at most as many steps as the options say: (B, steps, vocabulary)."""
        x = self.embedding(tokens)
        if self.position is not None:
            x = x + self.position(torch.arange(tokens.shape[1], device=tokens.device).expand(len(tokens), -1))
        x = F.dropout(x, self.dropout, self.training)
        for block in self._blocks():
            x = block(x)
        return self.fc(self.norm(x))


def _norm(kind: str, features: int) -> nn.Module:
    return nn.RMSNorm(features, eps=1e-5) if kind == "rms" else nn.LayerNorm(features)


class _Gate(nn.Linear):
    def forward(self, x):
        return F.silu(super().forward(x))


class _Attention(nn.Module):
    def __init__(self, layer) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size, self.base = layer.heads, layer.kv_heads, layer.size, layer.rotary_base

    def forward(self, query, key, value):
        steps, shared = query.shape[1], self.heads // self.kv_heads
        if self.base is not None:
            query, key = rotary(query, self.heads, self.base), rotary(key, self.kv_heads, self.base)
        query = query.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        key, value = (x.unflatten(-1, (self.kv_heads, -1)).transpose(1, 2) for x in (key, value))
        # the queries of heads that share keys are the rows of one matrix
        query = query.reshape(len(query), self.kv_heads, shared * steps, -1)
        mask = torch.from_numpy(causal_mask(steps)).to(query.device).repeat(1, 1, shared, 1)
        result = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return result.reshape(len(query), self.heads, steps, -1).transpose(1, 2).flatten(2)


class _FeedForward(nn.Module):
    """The layers of a feedforward as modules of the block, or of an expert, itself."""

    def add(self, layer, bias: bool) -> None:
        """Make the modules of a `FeedForward`."""
        features, hidden = layer.ff1.inputs, layer.ff1.outputs
        self.kind = layer.kind
        self.gate = None if layer.gate is None else _Gate(features, hidden, bias)
        self.ff1, self.ff2 = nn.Linear(features, hidden, bias), nn.Linear(hidden, features, bias)

    def fed(self, x):
        """The feedforward of x."""
        if self.gate is not None:
            return self.ff2(self.gate(x) * self.ff1(x))
        hidden = F.relu(self.ff1(x))
        return self.ff2(hidden.square() if self.kind == "relu2" else hidden)


class _Balance(torch.autograd.Function):
    """`softnum.train.layers.losses.balance`, in binary64 whatever the arithmetic."""

    @staticmethod
    def forward(ctx, probabilities, chosen, factor: float):
        values = probabilities.detach().cpu().numpy()
        leaf = Tensor(values, NumpyBackend(values.dtype), requires_gradient=True)
        loss = balance(leaf, chosen.cpu().numpy(), factor)
        loss.backward()
        ctx.slope, ctx.dtype = leaf.gradient, probabilities.dtype
        return probabilities.new_tensor(loss.value, dtype=torch.float64)

    @staticmethod
    def backward(ctx, gradient):
        slope = torch.from_numpy(np.array(ctx.slope)) * gradient.cpu()
        return slope.to(gradient.device, ctx.dtype), None, None


class _Exchange(torch.autograd.Function):
    """`softnum.train.layers.dispatch.exchange`, the same whatever the arithmetic."""

    @staticmethod
    def forward(ctx, x, there, back):
        ctx.back = back
        return _over_wire(x, *there)

    @staticmethod
    def backward(ctx, gradient):
        return _over_wire(gradient, *ctx.back), None, None


def _over_wire(x, rounding, kept) -> torch.Tensor:
    values = x.detach().cpu().numpy()
    return torch.from_numpy(over_wire(NumpyBackend(values.dtype), values, rounding, kept)).to(x.device)


class _Expert(_FeedForward):
    def __init__(self, layer, bias: bool) -> None:
        super().__init__()
        self.add(layer, bias)

    def forward(self, x):
        return self.fed(x)


class _Block(_FeedForward):
    def __init__(self, block: Block, dropout: float) -> None:
        super().__init__()
        bias, features = block.qkv.bias, block.qkv.inputs
        self.dropout, self.columns = dropout, [b - a for a, b in zip(block.columns, block.columns[1:], strict=False)]
        norm = "rms" if type(block.norm1).__name__ == "RMSNorm" else "layer"
        self.norm1, self.norm2 = _norm(norm, features), _norm(norm, features)
        self.qkv = nn.Linear(features, block.qkv.outputs, bias)
        self.attention, self.project = _Attention(block.attention), nn.Linear(features, features, bias)
        self.mixture: Mixture | None = None
        if isinstance(block.feedforward, Mixture):
            self.mixture = block.feedforward
            self.router = nn.Linear(features, len(self.mixture.experts), bias=False)
            for number, expert in enumerate(self.mixture.experts, start=1):
                self.add_module(f"expert{number}", _Expert(expert, bias))
        else:
            self.add(block.feedforward, bias)

    def forward(self, x):
        attended = self.project(self.attention(*self.qkv(self.norm1(x)).split(self.columns, -1)))
        x = x + F.dropout(attended, self.dropout, self.training)
        y = self.norm2(x)
        y = self.fed(y) if self.mixture is None else self._mixed(y.flatten(0, -2)).reshape(y.shape)
        return x + F.dropout(y, self.dropout, self.training)

    def _mixed(self, x):
        """The mixture of rows, as `softnum.train.layers.mixture.Mixture` computes it."""
        mixture, (rows, features) = self.mixture, x.shape
        count, size = len(mixture.experts), mixture.seats(rows)
        probabilities = F.softmax(self.router(x), -1)
        chosen = choices(probabilities.detach().cpu().numpy(), mixture.chosen)
        taken, found = seats(chosen, count, size)
        wires = mixture.wires
        ways = None if wires is None else tuple(zip(wires.roundings, wires.kept(taken, count, rows), strict=True))
        taken, found = (torch.from_numpy(part).to(x.device) for part in (taken, found))
        chosen = torch.from_numpy(chosen).to(x.device)
        mixture.penalty = _Balance.apply(probabilities, chosen, mixture.factor) if mixture.factor else None
        nothing = x.new_zeros(1, features)
        seated = torch.cat([x, nothing]).index_select(0, taken)
        if ways is not None:
            seated = _Exchange.apply(seated, *ways)
        parts = [self.get_submodule(f"expert{k + 1}")(part) for k, part in enumerate(seated.split(size))]
        if ways is not None:
            parts = [_Exchange.apply(torch.cat(parts), *ways[::-1])]
        results, flat, result = torch.cat([*parts, nothing]), probabilities.flatten(), None
        numbers = torch.arange(rows, device=x.device) * count
        for k in range(mixture.chosen):
            weights = flat.index_select(0, numbers + chosen[:, k]).unsqueeze(-1).expand(rows, features)
            scaled = weights * results.index_select(0, found[:, k])
            result = scaled if result is None else result + scaled
        return result
