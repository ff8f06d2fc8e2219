"""Steps of training on a GPU against the same steps on the CPU. The images are noise: only their sizes matter here."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from benchmarks import torch_training
from softnum.train import Settings, load_design
from softnum.train.datasets.pixels import Pixels
from softnum.train.datasets.sets import DataSet, data_facts
from softnum.train.runs.loop import Run

__all__ = ["CASES", "SMALL", "Case", "steps", "timed", "torch_timed"]


class Case(NamedTuple):
    """A network in batches of images of a known data set's shape."""

    name: str
    network: str
    options: dict
    data: str
    batch: int


CASES = (
    Case("MLP 784-256-10", "mlp", {"sizes": (784, 256, 10)}, "fashion-mnist", 128),
    Case("ResNet-20", "resnet", {"depth": 20, "sizes": (16, 32, 64)}, "cifar10", 128),
)
SMALL = (Case("MLP 64-2-10", "mlp", {"sizes": (64, 2, 10)}, "digits", 2),)
DESIGNS = ("a-float32", "c-wang-fp8")
EXACT = "all operations in binary32"
LARGE = torch_training.Case("GPT of 85 M, 2,048 tokens", "gpt", {"layers": 12, "width": 768, "heads": 12}, 1, batch=32)


def _noise(case: Case, batches: int) -> DataSet:
    facts, count = data_facts(case.data), case.batch * batches
    rng = np.random.default_rng(5)
    x = Pixels(rng.integers(0, 256, (count, int(np.prod(facts.image))), dtype=np.uint8))
    y = rng.integers(0, facts.classes, count)
    return DataSet(case.data, x, y, Pixels(x.codes[: case.batch]), y[: case.batch])


def steps(case: Case, design: str, device: str, count: int) -> tuple[float, list[dict]]:
    """(seconds of a step after the first, which compiles; the rows of a record)"""
    settings = Settings(case.network, case.options, case.data, batch=case.batch)
    threads = os.cpu_count() or 1
    run = Run(settings, load_design(design), 1, threads, device, data=_noise(case, count + 1))
    rows, taken = [], []
    for iteration, part in islice(run.plan(1), count + 1):
        start = time.perf_counter()
        rows.append(run.train(iteration, part))
        run.numerics.backend.finish()
        taken.append(time.perf_counter() - start)
    return min(taken[1:]), rows


def timed(case: Case, count: int) -> Iterator[tuple[str, float, float, int, int]]:
    """(design, seconds of a step on the CPU, on the GPU, rows of the records, those that differ)"""
    for design in DESIGNS:
        cpu, wanted = steps(case, design, "cpu", count)
        gpu, got = steps(case, design, "cuda", count)
        yield design, cpu, gpu, len(wanted), sum(x != y for x, y in zip(wanted, got, strict=True))


def torch_timed(count: int) -> Iterator[tuple[str, float, float, float, int, int]]:
    """Of PyTorch's models: (name, seconds of a step on the CPU, on the GPU, of PyTorch's float32 there, losses, wrong).

    Losses are compared where softnum computes all of a step: PyTorch's own operations have other bits on a GPU.
    """
    import torch

    def taken(work, repeats: int) -> tuple[float, list[float]]:
        seconds, losses = [], [work()]  # which compiles
        for _ in range(repeats):
            torch.cuda.synchronize()
            start = time.perf_counter()
            losses.append(work())
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        return min(seconds), losses

    for case in (*torch_training.CASES, LARGE):
        theirs, _ = taken(torch_training.steps(case, device="cuda"), 5 * count)
        choices = [(text, design, {}) for text, design, _ in torch_training.DESIGNS]
        if case is torch_training.CASES[0]:
            choices.append((EXACT, "a-float32", {"elementwise": "exact", "alike": True}))
        for text, design, how in choices[:2] if case is LARGE else choices:
            times = 1 if case is LARGE else count
            cpu, wanted = taken(torch_training.steps(case, design, **how), times)
            gpu, got = taken(torch_training.steps(case, design, device="cuda", **how), times)
            compared = len(wanted) if how else 0
            wrong = sum(x != y for x, y in zip(wanted, got, strict=True)) if how else 0
            yield f"{case.name}, {text}", cpu, gpu, theirs, compared, wrong
