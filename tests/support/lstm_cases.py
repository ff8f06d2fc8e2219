"""A small LSTM."""

import numpy as np

from softnum.train import Numerics, Tensor, load_design, make_network
from softnum.train.engine import tensor as engine
from tests.support.train_cases import BINARY64


def design(tmp_path, text, name="mine"):
    file = tmp_path / f"{name}.toml"
    file.write_text(text)
    return load_design(file)


def small(tmp_path, text=BINARY64, batch=5):
    """A small LSTM with its numerics, samples and labels."""
    net = make_network("lstm", sizes=(3, 4, 3), steps=3)
    numerics = Numerics(design(tmp_path, text), net.layer_names, seed=3)
    net.initialise(numerics)
    rng = np.random.default_rng(0)
    return net, numerics, rng.standard_normal((batch, 9)), rng.integers(0, 3, batch)


def loss_of(net, numerics, x, labels):
    return lambda: engine.softmax_cross_entropy(net.forward(Tensor(x, numerics.backend)), labels)
