"""A step of training of five networks against PyTorch's in float32, on one thread: what rounding everything costs.

Where steps are short, a step's time is in what a call costs, of both; the times are the processor's, without those of
others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from time import process_time

from benchmarks import twins
from benchmarks.measure import Row, against, one_thread
from softnum.train.datasets.sets import batches, load_data

__all__ = ["DESIGNS", "NETWORKS", "rows", "softnum_steps", "torch_steps"]

#: network -> its options; digits are its data
NETWORKS: dict[str, dict] = {
    "mlp": {},
    "lenet5": {},
    "resnet": {"sizes": (8, 16, 32)},
    "transformer": {},
    "lstm": {},
}
#: design -> how many steps of PyTorch a step may take
DESIGNS: dict[str, float | None] = {"a-float32": 3.0, "c-wang-fp8": 5.0, "i-mxfp8": None}
_BATCHES = (32, 128)


def rows() -> Iterator[Row]:
    """Digits in batches of 32 and 128, SGD with momentum and weight decay, the same weights at the start."""
    try:
        import torch
    except ImportError as error:
        yield Row(f"training: left out, {str(error).partition(':')[0]}", 0.0, "")
        return
    torch.set_num_threads(1)
    with one_thread():
        for (network, options), batch in itertools.product(NETWORKS.items(), _BATCHES):
            theirs = torch_steps(network, options, batch)
            for design, limit in DESIGNS.items():
                mine, peer = against(softnum_steps(network, options, batch, design), theirs, 31, process_time)
                name = f"training step, {network}, batch {batch}, {design}"
                yield Row(name, mine * 1e3, "ms", mine / peer, "PyTorch float32", limit)
            yield Row(f"PyTorch, {network}, batch {batch}, float32", peer * 1e3, "ms")


def softnum_steps(network: str, options: dict, batch: int, design: str) -> Callable[[], object]:
    """A function that trains softnum's network one step further."""
    from softnum.train import Settings, load_design
    from softnum.train.runs.loop import Run

    work = Run(Settings(network, options, "digits", batch=batch), load_design(design), 1)
    plan = itertools.chain.from_iterable(work.plan(epoch) for epoch in itertools.count(1))
    return lambda: work.train(*next(plan))


def torch_steps(network: str, options: dict, batch: int) -> Callable[[], object]:
    """A function that trains PyTorch's network one step further."""
    import torch

    from softnum.train import Numerics, load_design, make_network

    made, data = make_network(network, data="digits", **options), load_data("digits")
    made.initialise(Numerics(load_design("a-float32"), made.layer_names, seed=1))
    images, labels = torch.tensor(data.train_x, dtype=torch.float32), torch.tensor(data.train_y)
    values = twins.parameters_of(made)
    optimiser = torch.optim.SGD(values, lr=0.1, momentum=0.9, weight_decay=1e-4)
    epochs = (batches(len(labels), batch, 1, epoch) for epoch in itertools.count(1))
    plan = (torch.from_numpy(part) for epoch in epochs for part in epoch)

    def step() -> float:
        part = next(plan)
        loss = torch.nn.functional.cross_entropy(twins.forward(made, values, images[part]), labels[part])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    return step
