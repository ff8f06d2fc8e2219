"""The losses of the first twenty iterations beside PyTorch's: the same weights, the same batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import twins
from softnum.train import SGD, Numerics, Tensor, load_design, make_network
from softnum.train.datasets.sets import batches, load_data
from softnum.train.engine.tensor import softmax_cross_entropy

__all__ = ["LIMITS", "NETWORKS", "Comparison", "compare", "main"]

#: what every role and unit computes in -> the largest difference of a loss
LIMITS = {"binary32": 1e-4, "binary64": 1e-10}
NETWORKS = {"mlp": 0.1, "lenet5": 0.05, "lstm": 0.1, "transformer": 0.05}  # learning rates
ITERATIONS, BATCH = 20, 32


@dataclass(frozen=True)
class Comparison:
    """Losses of a network by softnum and by PyTorch, an iteration each."""

    network: str
    format: str
    losses: list[float]
    theirs: list[float]

    @property
    def difference(self) -> float:
        """The largest of a loss."""
        return float(np.abs(np.subtract(self.losses, self.theirs)).max())


def _design(fmt: str):
    """The design of one format throughout."""
    units = "\n".join(f'{key} = {{ accumulator = "{fmt}" }}' for key in ("forward", "backward_data", "backward_weight"))
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{fmt}.toml"
        file.write_text(f'[roles]\ndefault = "{fmt}"\n[units]\n{units}\n')
        return load_design(file)


def compare(name: str, fmt: str, seed: int = 1) -> Comparison:
    """Train a network on the digits, in one format throughout and by PyTorch."""
    import torch

    torch.set_num_threads(1)
    data, rate = load_data("digits"), float(np.float32(NETWORKS[name]))
    network = make_network(name, data="digits")
    numerics = Numerics(_design(fmt), network.layer_names, seed=seed)
    network.initialise(numerics)
    rows = batches(len(data.train_y), BATCH, seed, 1)[:ITERATIONS]
    dtype = torch.float32 if fmt == "binary32" else torch.float64
    theirs = twins.losses(network, data, rows, dtype=dtype, rate=rate)
    optimiser = SGD(network.parameters, learning_rate=rate, momentum=0.9, weight_decay=1e-4)
    losses = []
    for iteration, row in enumerate(rows, start=1):
        numerics.begin(iteration)
        outputs = network.forward(Tensor(data.train_x[row], numerics.backend), training=True)
        loss = softmax_cross_entropy(outputs, data.train_y[row])
        loss.backward()
        optimiser.step()
        losses.append(loss.value)
    return Comparison(name, fmt, losses, theirs)


def main() -> None:
    """Print the largest differences, and their limits."""
    import torch

    table = Table(
        "network", "arithmetic", "first loss", "last loss", "largest difference", "limit",
        title=f"{ITERATIONS} iterations of batch {BATCH} on the digits, softnum and PyTorch {torch.__version__}",
    )  # fmt: skip
    for name in NETWORKS:
        for fmt, limit in LIMITS.items():
            found = compare(name, fmt)
            first, *_, last = found.losses
            table.add_row(name, fmt, f"{first:.4f}", f"{last:.4f}", f"{found.difference:.1e}", f"{limit:.0e}")
    Console(width=120).print(table)
