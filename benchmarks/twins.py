"""Reference networks once more, of PyTorch's functions: an independent implementation to compare with."""

from __future__ import annotations

import numpy as np

__all__ = ["forward", "losses", "parameters_of", "rotated"]


def parameters_of(network, dtype=None) -> list:
    """A network's parameters as PyTorch's tensors, in their order; dtype: float32 or float64, default: as they are."""
    import torch

    return [torch.tensor(p.value, dtype=dtype, requires_grad=True) for p in network.parameters]


def forward(network, values, x):
    """The outputs of a network with these parameters for a batch x.

    Parameters
    ----------
    network : Network
        mlp, lenet5, resnet (in training), lstm, transformer, recurrent-lm, transformer-lm, detector or ncf.
    values : list of torch.Tensor
        As of `parameters_of`.
    x : torch.Tensor
    """
    return _FORWARD[network.name](network, iter(values), x)


def losses(network, data, rows, *, dtype, rate: float, momentum: float = 0.9, decay: float = 1e-4) -> list[float]:
    """The losses of training by SGD on batches: rows of numbers of the data's samples."""
    import torch

    values = parameters_of(network, dtype)
    momentum, decay = float(np.float32(momentum)), float(np.float32(decay))
    optimiser = torch.optim.SGD(values, lr=rate, momentum=momentum, weight_decay=decay)
    found = []
    for batch in rows:
        optimiser.zero_grad()
        x, labels = torch.tensor(data.train_x[batch], dtype=dtype), torch.tensor(data.train_y[batch])
        loss = torch.nn.functional.cross_entropy(forward(network, values, x), labels)
        loss.backward()
        optimiser.step()
        found.append(loss.item())
    return found


def _linear(values, x):
    weight, bias = next(values), next(values)
    return x @ weight + bias


def _norm(values, x):
    from torch.nn import functional

    return functional.layer_norm(x, x.shape[-1:], next(values), next(values))


def _mlp(network, values, x):
    for _ in network.layers[:-1]:
        x = _linear(values, x).relu()
    return _linear(values, x)


def _lenet5(network, values, x):
    from torch.nn import functional

    x = x.reshape(-1, *network.image)
    for layer in network.layers[:3]:
        x = functional.conv2d(x, next(values), next(values), padding=layer.geometry["padding"]).relu()
        x = functional.max_pool2d(x, 2) if layer.name != "conv3" else x
    return _linear(values, _linear(values, x.flatten(1)).relu())


def _convolved(values, conv, x):
    """A convolution without a bias and the batch normalisation that follows it."""
    from torch.nn import functional

    x = functional.conv2d(x, next(values), stride=conv.geometry["stride"], padding=conv.geometry["padding"])
    return functional.batch_norm(x, None, None, next(values), next(values), training=True)


def _resnet(network, values, x):
    x = _convolved(values, network.first[0], x.reshape(-1, *network.image)).relu()
    for block in network.blocks:
        y = x
        for place, (conv, _) in enumerate(block.convolutions, start=1):
            y = _convolved(values, conv, y)
            y = y.relu() if place < len(block.convolutions) else y
        x = (y + (x if block.shortcut is None else _convolved(values, block.shortcut[0], x))).relu()
    return _linear(values, x.mean(dim=(2, 3)))


def _cell(kind: str, read, own) -> list:
    """The hidden states of all steps of a recurrent layer; read: x @ W + b of each sample and step."""
    import torch

    h, c, states = read.new_zeros(len(read), own[0].shape[0]), 0.0, []
    for step in range(read.shape[1]):
        z = read[:, step]
        if kind == "lstm":
            i, f, g, o = (z + h @ own[0]).chunk(4, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * torch.tanh(c)
        elif kind == "gru":
            r, k = (z[:, : 2 * h.shape[1]] + h @ own[0]).sigmoid().chunk(2, dim=1)
            h = k * h + (1 - k) * torch.tanh(z[:, 2 * h.shape[1] :] + (r * h) @ own[1])
        else:
            h = torch.tanh(z + h @ own[0])
        states.append(h)
    return states


def _lstm(network, values, x):
    read = _linear(values, x.reshape(len(x), network.steps, -1))
    return _linear(values, _cell("lstm", read, [next(values)])[-1])


def _recurrent_lm(network, values, x):
    import torch

    read = _linear(values, next(values)[x])
    kind = network.options["cell"]
    states = _cell(kind, read, [next(values) for _ in range(2 if kind == "gru" else 1)])
    return _linear(values, torch.stack(states, dim=1)).flatten(0, 1)


def _rows_norm(network, values, x):
    from torch.nn import functional

    if network.options.get("norm", "layer") == "layer":
        return _norm(values, x)
    return functional.rms_norm(x, x.shape[-1:], next(values), eps=1e-5)


def rotated(x, base: float):
    """Heads (..., steps, size) turned by their steps, pairs of features being complex numbers."""
    import torch

    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    rates = base ** (-torch.arange(pairs.shape[-1], dtype=torch.float64) / pairs.shape[-1])
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * rates
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles).to(pairs.dtype)).reshape(x.shape)


def _blocks(network, values, x, *, causal: bool):
    from torch.nn import functional

    heads = network.options["heads"]
    kv_heads, base = network.options.get("kv_heads", heads), network.options.get("rotary_base")
    for _ in network.blocks:
        joint = _linear(values, _rows_norm(network, values, x))
        size = x.shape[-1] // heads
        q, k, v = (
            part.reshape(*x.shape[:2], -1, size).transpose(1, 2)
            for part in joint.split([heads * size, kv_heads * size, kv_heads * size], dim=-1)
        )
        if base is not None:
            q, k = rotated(q, base), rotated(k, base)
        result = functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=kv_heads != heads)
        x = x + _linear(values, result.transpose(1, 2).reshape(x.shape))
        y = _rows_norm(network, values, x)
        if network.options.get("feedforward") == "swiglu":
            hidden = functional.silu(_linear(values, y)) * _linear(values, y)
        else:
            hidden = _linear(values, y).relu()
        x = x + _linear(values, hidden)
    return _rows_norm(network, values, x)


def _transformer(network, values, x):
    x = x.reshape(-1, *network.image).transpose(1, 2).reshape(len(x), network.steps, -1)
    x = _linear(values, x) + next(values)
    return _linear(values, _blocks(network, values, x, causal=False).mean(dim=1))


def _transformer_lm(network, values, x):
    embedding = next(values)
    x = embedding[x]
    if network.options.get("positions") != "rotary":
        x = x + next(values)
    x = _blocks(network, values, x, causal=True)
    weight = embedding.T if network.options.get("tied_embeddings") else next(values)
    return (x @ weight + next(values)).flatten(0, 1)


def _detector(network, values, x):
    from torch.nn import functional

    x = x.reshape(-1, *network.image)
    for conv, _ in network.stages:
        x = _convolved(values, conv, x).relu()
    return functional.conv2d(x, *values).permute(0, 2, 3, 1).reshape(-1, network.outputs)


def _ncf(network, values, x):
    import torch

    user, item = x.T
    factors = next(values)[user] * next(values)[item]
    x = torch.cat([next(values)[user], next(values)[item]], 1)
    for _ in network.hidden:
        x = _linear(values, x).relu()
    return _linear(values, torch.cat([factors, x], 1))


_FORWARD = {
    "detector": _detector,
    "lenet5": _lenet5,
    "lstm": _lstm,
    "mlp": _mlp,
    "ncf": _ncf,
    "recurrent-lm": _recurrent_lm,
    "resnet": _resnet,
    "transformer": _transformer,
    "transformer-lm": _transformer_lm,
}
