"""A step of training against PyTorch's in float32, on one thread; and the most memory that a process of each takes.

Steps last longer than a turn on a busy processor, so their times are the processor's, without those of others.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import NamedTuple

from benchmarks import twins
from benchmarks.measure import Row, against, one_thread
from softnum.train.datasets.sets import batches, load_data

__all__ = ["rows"]

BATCH, STEPS = 128, 20  # samples of a step; steps of a process whose memory is measured


class Case(NamedTuple):
    """A network, under designs with limits, in steps of PyTorch."""

    name: str
    network: str
    options: dict
    limits: dict[str, float]


CASES = (
    Case("MLP 784-256-10", "mlp", {"sizes": (784, 256, 10)}, {"a-float32": 3.0, "c-wang-fp8": 12.0}),
    Case("LeNet-5", "lenet5", {}, {"a-float32": 6.0, "c-wang-fp8": 20.0}),
)
_MEMORY = 2.0  # PyTorch's


def rows() -> Iterator[Row]:
    """Fashion-MNIST in batches of 128, SGD with momentum and weight decay; both take the bytes of the images."""
    try:
        import torch

        load_data("fashion-mnist")
    except (ImportError, ValueError) as error:
        yield Row(f"training: left out, {str(error).partition(':')[0]}", 0.0, "")
        return
    torch.set_num_threads(1)
    with one_thread():
        for case in CASES:
            theirs = torch_steps(case)
            for design, limit in case.limits.items():
                name = f"training step, {case.name}, batch {BATCH}, {design}"
                mine, peer = against(softnum_steps(case, design), theirs, clock=process_time)
                yield Row(name, mine * 1e3, "ms", mine / peer, "PyTorch float32", limit)
            yield Row(f"PyTorch, {case.name}, float32", peer * 1e3, "ms")
        for case in CASES if Path("/proc/self/status").exists() else ():
            peer = _peak("torch", case)
            for design in case.limits:
                mine = _peak(design, case)
                name = f"training, {case.name}, {design}: peak memory beyond that of imports"
                yield Row(name, mine / 2**20, "MiB", mine / peer, "PyTorch float32", _MEMORY)


def softnum_steps(case: Case, design: str) -> Callable[[], object]:
    """A function that trains softnum's network one step further."""
    from softnum.train import Settings, load_design
    from softnum.train.runs.loop import Run

    settings = Settings(case.network, case.options, "fashion-mnist", batch=BATCH)
    work = Run(settings, load_design(design), 1)
    plan = itertools.chain.from_iterable(work.plan(epoch) for epoch in itertools.count(1))
    return lambda: work.train(*next(plan))


def torch_steps(case: Case) -> Callable[[], object]:
    """A function that trains PyTorch's network one step further."""
    import torch

    from softnum.train import Numerics, load_design, make_network

    network, data = make_network(case.network, data="fashion-mnist", **case.options), load_data("fashion-mnist")
    network.initialise(Numerics(load_design("a-float32"), network.layer_names, seed=1))
    images, labels = (torch.from_numpy(part.copy()) for part in (data.train_x.codes, data.train_y))
    values = twins.parameters_of(network)
    optimiser = torch.optim.SGD(values, lr=0.1, momentum=0.9, weight_decay=1e-4)
    epochs = (batches(len(labels), BATCH, 1, epoch) for epoch in itertools.count(1))
    plan = (torch.from_numpy(part) for epoch in epochs for part in epoch)

    def step() -> float:
        part = next(plan)
        outputs = twins.forward(network, values, images[part] * (1 / 256))
        loss = torch.nn.functional.cross_entropy(outputs, labels[part])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    return step


def _peak(who: str, case: Case) -> int:
    """Bytes that a process reached in its steps beyond what it held after its imports: of a design, or of "torch"."""
    command = [sys.executable, "-m", "benchmarks.training", who, str(CASES.index(case))]
    environment = {**os.environ, "SOFTNUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(run.stdout)


def _held() -> int:
    """The most bytes of memory that this process has held; resource.getrusage would count its parent's too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _report_peak(who: str, case: Case) -> None:
    if who == "torch":
        import torch

        torch.set_num_threads(1)
    else:
        import softnum.train  # noqa: F401
    before = _held()
    step = torch_steps(case) if who == "torch" else softnum_steps(case, who)
    for _ in range(STEPS):
        step()
    print(_held() - before)


if __name__ == "__main__":
    _report_peak(sys.argv[1], CASES[int(sys.argv[2])])
