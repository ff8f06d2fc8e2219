"""Which families of models run under `softnum.torch`, forwards and backwards, and how far they are from PyTorch.

    python -m benchmarks.torch_families --out families.jsonl                 # all, an hour
    python -m benchmarks.torch_families --only transformers:mamba,timm:swin  # those whose names begin so
    python -m benchmarks.torch_families --table families.jsonl               # the table of docs/torch-models.md

A model is built without weights, small where its configuration allows it, its dropouts off, and does a forward and a
backward pass of training: in PyTorch, in float32 and in float64, and under each of `DESIGNS`, whose elementwise engine
is "exact". A line of the file is a model: for each design the error, or the loss and the gradient of all parameters,
relative to those of float64. Needs torchvision, timm and transformers.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import math
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

import softnum.torch as st
from benchmarks.family_models import FAMILIES, MAKERS

__all__ = ["DESIGNS", "measured", "table"]

#: binary32 throughout; 16-bit and 8-bit floats throughout; operands in blocks, all else in binary32
DESIGNS = ("a-float32", "c-wang-fp8", "i-mxfp8")
LIMIT = 90  # seconds that a model may take under one design


def built(library: str, name: str):
    """A model, its loss and its inputs, always the same; no module drops anything."""
    torch.manual_seed(0)
    model, loss, inputs = MAKERS[library](name)
    for module in model.modules():
        for key in ("p", "drop_prob", "dropout", "attn_drop_prob", "stochastic_depth_prob"):
            if isinstance(getattr(module, key, None), float):
                setattr(module, key, 0.0)
    return model.train(), loss, inputs


def step(model: nn.Module, loss: Callable, inputs, scale: Callable = lambda loss: loss) -> tuple[float, list]:
    """The loss, and the gradients of all parameters."""
    torch.manual_seed(1)
    found = loss(model, inputs)
    scale(found).backward()
    return float(found), [None if p.grad is None else p.grad.detach().double() for p in model.parameters()]


def distance(found: list, wide: list) -> float:
    """How far gradients are from others, relative to these; infinite where another parameter has one."""
    if any((a is None) != (b is None) for a, b in zip(found, wide, strict=True)):
        return math.inf
    pairs = [(a, b) for a, b in zip(found, wide, strict=True) if a is not None]
    size = math.sqrt(sum(float(b.square().sum()) for _, b in pairs))
    return math.sqrt(sum(float((a - b).square().sum()) for a, b in pairs)) / max(size, 1e-30)


@contextlib.contextmanager
def limited(seconds: int):
    """TimeoutError where something takes longer."""

    def stop(*_):
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def measured(library: str, name: str, designs=DESIGNS) -> dict:
    """What becomes of a family under designs.

    Returns
    -------
    dict
        ``family``, ``parameters``, and of "float32" and each design ``loss`` and ``gradient``, the distances from those
        of PyTorch in float64, and ``seconds``; or ``error``. A model that PyTorch does not train so has ``broken``.
    """
    row = {"family": f"{library}:{name}"}
    try:
        with limited(LIMIT):
            model, loss, inputs = built(library, name)
            row["parameters"] = sum(p.numel() for p in model.parameters())
            plain = step(model, loss, inputs)
    except Exception as error:
        return row | {"broken": f"{type(error).__name__}: {error}"[:300]}
    try:
        with limited(LIMIT):
            model, loss, inputs = built(library, name)
            wide = tree_map_only(torch.Tensor, lambda x: x.double() if x.is_floating_point() else x, inputs)
            reference = step(model.double(), loss, wide)
    except Exception as error:  # it makes tensors of float32 itself
        row["reference"], reference = f"{type(error).__name__}: {error}"[:200], plain

    def distances(found) -> dict:
        loss = abs(found[0] - reference[0]) / max(abs(reference[0]), 1e-30)
        return {"loss": loss, "gradient": distance(found[1], reference[1])}

    row["float32"] = distances(plain)
    for design in designs:
        model, loss, inputs = built(library, name)
        start = time.perf_counter()
        try:
            with limited(LIMIT):
                kinds = nn.Linear if any(isinstance(part, nn.Linear) for part in model.modules()) else nn.Conv2d
                owners = [path for path, part in model.named_modules() if isinstance(part, kinds)]
                known = {owners[-1]: "fc"} if design == "c-wang-fp8" and owners else {}
                st.convert(model, design, known_as=known, quiet=True)
                row[design] = distances(step(model, loss, inputs, st.GradScaler(model).scale))
        except Exception as error:
            row[design] = {"error": f"{type(error).__name__}: {error}"[:400]}
        row[design]["seconds"] = round(time.perf_counter() - start, 1)
    return row


def versions() -> dict:
    return {name: importlib.metadata.version(name) for name in ("torch", "torchvision", "timm", "transformers")}


_NOTED = re.compile(r"(?:NotImplementedError: )?(?:layer '[^']*': )?(.*?)(?: in module '| has no exact|[,;]|$)")


def table(lines: list[dict]) -> Iterator[str]:
    """The lines of a table in Markdown, from those of a file."""
    yield "| family | parameters | PyTorch's float32 | " + " | ".join(DESIGNS) + " |"
    yield "| --- " * (3 + len(DESIGNS)) + "|"
    for _, row in sorted({row["family"]: row for row in lines}.items()):  # of one that ran again, the last
        if "broken" not in row:
            alone = "reference" in row  # where float64 cannot be had, float32 is what is compared with
            plain = "" if alone else _distances(row["float32"])
            cells = [_distances(row[design]) if design in row else "" for design in DESIGNS]
            yield f"| {row['family'].replace(':', ' ')} | {row['parameters']:,} | {plain} | {' | '.join(cells)} |"


def _distances(found: dict) -> str:
    if "error" in found:
        return f"error: {_NOTED.match(found['error'])[1][:60]}"
    return f"{found['loss']:.0e}, {found['gradient']:.0e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="beginnings of library:family, with commas between them")
    parser.add_argument("--designs", default=",".join(DESIGNS))
    parser.add_argument("--out", type=Path, help="a file of JSON lines, to which is added")
    parser.add_argument("--part", default="0/1", help="number/count: every count-th family alone")
    parser.add_argument("--table", type=Path, nargs="+", help="print the table of such files, and run nothing")
    options = parser.parse_args()
    if options.table:
        print(", ".join(f"{name} {version}" for name, version in versions().items()))
        print("\n".join(table([json.loads(line) for path in options.table for line in path.read_text().splitlines()])))
        return
    warnings.simplefilter("ignore")
    names = tuple(options.only.split(","))
    number, count = map(int, options.part.split("/"))
    chosen = [family for family in FAMILIES if ":".join(family).startswith(names)]
    for family in chosen[number::count]:
        row = measured(*family, options.designs.split(","))
        text = json.dumps(row)
        print(text, flush=True)
        if options.out:
            with options.out.open("a") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    main()
