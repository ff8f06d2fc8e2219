"""ParaDnn's networks, generated from hyper-parameters, and sweeps of their time over thousands of them.

Y. Wang, G.-Y. Wei and D. Brooks, "Benchmarking TPU, GPU, and CPU Platforms for Deep Learning", arXiv 1907.10701, 2019,
and "A Systematic Methodology for Analysis of Deep Learning Hardware and Software Platforms", MLSys 2020. Ranges are
those of the authors' repository (github.com/Emma926/paradnn): of fully connected networks those of the data that it
publishes (scripts/plotting/Demo.ipynb), of convolutional and recurrent ones those of its scripts (paradnn/run), which
list them in part; vocabularies and recurrent batches follow the paper's table.

What is timed here is the analytic roofline of one iteration (`softnum.tta.roofline`): an upper bound of the
speed of a device that does not merge operations. Real devices are what the paper measured.
"""

from __future__ import annotations

import csv
import difflib
import io
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from softnum.runtime.atomic import write_atomic
from softnum.tta.architectures.image_layers import GlobalPool, Pool
from softnum.tta.architectures.images import _normalised, residual_groups
from softnum.tta.architectures.layers import Activation, Dense, Layer, Loss
from softnum.tta.architectures.lowering import OPTIMISERS, Architecture, lower
from softnum.tta.architectures.precision import Precision
from softnum.tta.architectures.sequence_layers import Embedding, Recurrent
from softnum.tta.estimates.device_files import Device
from softnum.tta.estimates.device_files import device as device_of
from softnum.tta.estimates.rooflines import roofline
from softnum.tta.quantities import positive_int

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike

__all__ = [
    "SWEEPS",
    "Sweep",
    "bottleneck",
    "fully_connected",
    "memory_floor",
    "models",
    "recurrent",
    "residual",
    "sweep",
]

_RECURRENT = {
    "layers": (1, 5, 9, 13),
    "embedding": (100, 500, 900),
    "length": (10, 50, 90),
    "vocabulary": (2, 8, 32, 128, 512),
    "batch": (16, 64, 256, 1024),
}
_IMAGES = {
    "blocks": tuple(range(1, 9)),
    "filters": (16, 32, 64),
    "image": (100, 200, 300),
    "classes": (500, 1000, 1500),
    "batch": (64, 128, 256, 512, 1024),
}
#: Kind -> hyper-parameter -> its values; every combination is a model.
SWEEPS: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "fc": {
        "layers": (4, 8, 16, 32, 64, 128),
        "nodes": (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
        "inputs": (2000, 8000),
        "outputs": (200, 1000),
        "batch": (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
    },
    "cnn-residual": _IMAGES,
    "cnn-bottleneck": _IMAGES,
    "rnn": _RECURRENT,
    "lstm": _RECURRENT,
    "gru": _RECURRENT,
}
#: Devices whose listed bandwidth and rate are of several cores, and whose memory is of one: each core holds all weights
#: and its share of the batch.
CORES = {"tpu-v2": 8, "tpu-v3": 8}


def fully_connected(layers: int, nodes: int, inputs: int, outputs: int) -> Architecture:
    """Hidden layers of as many nodes each, with ReLU, and a layer of outputs.

    Parameters
    ----------
    layers, nodes : int
        Hidden layers, and nodes of each.
    inputs, outputs : int
        Of the data.

    Returns
    -------
    Architecture

    Raises
    ------
    ValueError
        If one of them is not a positive integer.

    Examples
    --------
    >>> fully_connected(4, 32, 2000, 200).parameters
    73800
    """
    _check(layers=layers, nodes=nodes, inputs=inputs, outputs=outputs)
    found: list[Layer] = []
    for number in range(1, layers + 1):
        found += [Dense(f"fc{number}", nodes), Activation(f"relu{number}")]
    found += [Dense(f"fc{layers + 1}", outputs), Loss("loss")]
    return Architecture(f"fc-{layers}x{nodes}-{inputs}-{outputs}", (inputs,), tuple(found))


def residual(blocks: int, filters: int, image: int, classes: int) -> Architecture:
    """Four groups of residual blocks of two 3 x 3 convolutions; filters double from group to group.

    Every group's first block has a projection. The average is over all that is left of the image, where ParaDnn's is
    over 7 x 7 pixels.

    Parameters
    ----------
    blocks : int
        Of each group.
    filters : int
        Of the first group.
    image : int
        Height and width.
    classes : int

    Returns
    -------
    Architecture

    Raises
    ------
    ValueError
        If one of them is not a positive integer.

    Examples
    --------
    >>> residual(2, 64, 224, 1000).parameters  # ResNet-18, and a projection of 4,224 in the first group
    11693736
    """
    return _convolutional(False, blocks, filters, image, classes)


def bottleneck(blocks: int, filters: int, image: int, classes: int) -> Architecture:
    """Four groups of bottlenecks of a 1 x 1, a 3 x 3 and a 1 x 1 convolution with four times the filters.

    Parameters are those of `residual`.

    Examples
    --------
    >>> bottleneck(1, 16, 200, 1000).shapes["pool"]
    (512,)
    """
    return _convolutional(True, blocks, filters, image, classes)


def _convolutional(narrow: bool, blocks: int, filters: int, image: int, classes: int) -> Architecture:
    _check(blocks=blocks, filters=filters, image=image, classes=classes)
    groups, _ = residual_groups((blocks,) * 4, filters, bottleneck=narrow)
    stem = [*_normalised("conv1", filters, 7, 2, 3), Pool("pool1", 3, 2, 1)]
    tail = [GlobalPool("pool"), Dense("fc", classes), Loss("loss")]
    name = f"cnn-{'bottleneck' if narrow else 'residual'}-{blocks}x{filters}-{image}-{classes}"
    return Architecture(name, (3, image, image), (*stem, *groups, *tail))


def recurrent(kind: str, layers: int, embedding: int, length: int, vocabulary: int) -> Architecture:
    """A language model: an embedding, recurrent layers of its size, and a layer of words at each step.

    Parameters
    ----------
    kind : str
        "rnn", "lstm" or "gru".
    layers, embedding : int
    length : int
        Steps of a sample.
    vocabulary : int
        Words.

    Returns
    -------
    Architecture

    Raises
    ------
    ValueError
        If the kind is not known, or a number is not a positive integer.

    Examples
    --------
    >>> recurrent("lstm", 1, 100, 10, 32).parameters
    86832
    """
    _check(layers=layers, embedding=embedding, length=length, vocabulary=vocabulary)
    cells = [Recurrent(f"{kind}{number}", embedding, kind) for number in range(1, layers + 1)]
    found = (Embedding("embedding", vocabulary, embedding), *cells, Dense("words", vocabulary), Loss("loss"))
    return Architecture(f"{kind}-{layers}x{embedding}-{length}-{vocabulary}", (length,), found)


def _check(**sizes: int) -> None:
    for name, value in sizes.items():
        positive_int(value, name)


def _build(kind: str, sizes: Mapping[str, int]) -> Architecture:
    if kind == "fc":
        return fully_connected(**sizes)
    if kind.startswith("cnn-"):
        return _convolutional(kind == "cnn-bottleneck", **sizes)
    return recurrent(kind, **sizes)


def models(
    kind: str, ranges: Mapping[str, Sequence[int]] | None = None
) -> Iterator[tuple[dict[str, int], Architecture]]:
    """Every model of a sweep, the batch changing fastest.

    Parameters
    ----------
    kind : str
        A key of ``SWEEPS``.
    ranges : Mapping, optional
        Values of some hyper-parameters, in place of the sweep's.

    Yields
    ------
    (dict of str to int, Architecture)
        The hyper-parameters, ``batch`` the last of them; the network, which models that differ in batch alone share.

    Raises
    ------
    ValueError
        If the kind or a hyper-parameter is not known, or a value is not a positive integer.

    Examples
    --------
    >>> sizes, net = next(models("fc"))
    >>> sizes, net.name
    ({'layers': 4, 'nodes': 32, 'inputs': 2000, 'outputs': 200, 'batch': 64}, 'fc-4x32-2000-200')
    """
    if kind not in SWEEPS:
        near = difflib.get_close_matches(kind, SWEEPS, n=1)
        raise ValueError(
            f"unknown sweep {kind!r}{f'; did you mean {near[0]!r}?' if near else '.'} Known: {', '.join(SWEEPS)}"
        )
    chosen = dict(SWEEPS[kind])
    for name, values in (ranges or {}).items():
        if name not in chosen:
            near = difflib.get_close_matches(name, chosen, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ValueError(f"sweep {kind} has no hyper-parameter {name!r}{hint} It has {', '.join(chosen)}")
        if not values:
            raise ValueError(f"sweep {kind}: {name} has no value")
        chosen[name] = tuple(positive_int(value, f"sweep {kind}: {name}") for value in values)
    batches = chosen.pop("batch")
    for values in itertools.product(*chosen.values()):
        sizes = dict(zip(chosen, values, strict=True))
        network = _build(kind, sizes)
        for batch in batches:
            yield {**sizes, "batch": batch}, network


def memory_floor(
    architecture: Architecture, batch: int, precision: Precision, optimiser: str = "rmsprop", cores: int = 1
) -> int:
    """The least bytes that one core needs to train a network: weights as the optimiser keeps them, its state, and its
    share of the feature maps. Gradients, working copies and workspace come on top.

    Parameters
    ----------
    architecture : Architecture
    batch : int
        Samples of an iteration, on all cores together.
    precision : Precision
    optimiser : str
    cores : int

    Returns
    -------
    int

    Examples
    --------
    >>> memory_floor(fully_connected(4, 32, 2000, 200), 64, Precision.named("float32"), "sgd")
    891168
    """
    kept = [precision.master, *(getattr(precision, role) for _, role in OPTIMISERS[optimiser][1])]
    state = sum(fmt.size(architecture.parameters) for fmt in kept)
    samples = -(-batch // cores)
    saved = sum(prod(architecture.shapes[name]) if name else prod(architecture.input) for name in architecture.saved)
    extra = sum(sum(layer.extra(architecture.shapes_into(layer)).values()) for layer in architecture.layers)
    return state + precision.activations.size((saved + extra) * samples)


@dataclass(frozen=True)
class Sweep:
    """Times of every model of a sweep on one device.

    Parameters
    ----------
    kind : str
    device : str
    precision, optimiser : str
    peak : float
        FLOP/s of the device's matrix products.
    bandwidth : float
        Bytes per second.
    hyperparameters : tuple of str
    rows : list of dict
        A row for each model: the hyper-parameters; ``parameters``, ``flops``, ``bytes``, ``intensity`` (FLOPs per
        byte), ``seconds`` of an iteration, ``samples_per_second``, ``flops_per_second``, ``utilisation`` (share of
        `peak`), ``compute_bound`` (share of the time), ``memory`` (`memory_floor`) and ``fits`` (whether the device has
        that much).
    measured : dict, optional
        Where measured times are laid over it (``softnum.tta.architectures.sweep_overlay``): their errors in all.

    Examples
    --------
    >>> found = sweep("rnn", "v100", ranges={"layers": [1], "embedding": [100]})
    >>> len(found.rows), len(found.fitting), found.peak
    (60, 60, 125000000000000.0)
    """

    kind: str
    device: str
    precision: str
    optimiser: str
    peak: float
    bandwidth: float
    hyperparameters: tuple[str, ...]
    rows: list[dict[str, Any]] = field(repr=False)
    measured: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def fitting(self) -> list[dict[str, Any]]:
        """Rows of the models that fit the device."""
        return [row for row in self.rows if row["fits"]]

    def to_table(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        return {
            "schema": 1, "kind": self.kind, "device": self.device, "precision": self.precision,
            "optimiser": self.optimiser, "estimated": "analytic roofline", "peak_flops": self.peak,
            "bandwidth": self.bandwidth, "hyperparameters": list(self.hyperparameters),
            **({} if self.measured is None else {"measured": self.measured}), "models": self.rows,
        }  # fmt: skip

    def write(self, stem: PathLike) -> list[Any]:
        """Write ``<stem>.json`` and ``<stem>.csv``; return their paths."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        paths = [stem.with_name(f"{stem.name}.json"), stem.with_name(f"{stem.name}.csv")]
        write_atomic(paths[0], json.dumps(self.to_table(), indent=1) + "\n")
        write_atomic(paths[1], text.getvalue())
        return paths


def precision_for(device: Device) -> str:
    """The precision that the paper trained with on such a device: 16 bits where it has them.

    >>> precision_for(device_of("tpu-v2")), precision_for(device_of("v100"))
    ('bfloat16', 'mixed-float16')
    """
    if "bf16" in device.peaks:
        return "bfloat16"
    return "mixed-float16" if "fp16" in device.peaks else "float32"


def sweep(
    kind: str,
    device: Device | str,
    precision: Precision | str | None = None,
    *,
    optimiser: str = "rmsprop",
    ranges: Mapping[str, Sequence[int]] | None = None,
    efficiency: float = 1.0,
    cores: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """The roofline of an iteration of every model of a sweep.

    Parameters
    ----------
    kind : str
        "fc", "cnn-residual", "cnn-bottleneck", "rnn", "lstm" or "gru".
    device : Device or str
    precision : Precision or str, optional
        Default: bfloat16 where the device has a rate of it, else float16 with float32 weights, else float32.
    optimiser : str
        ParaDnn's scripts train with "rmsprop".
    ranges : Mapping, optional
        As of `models`.
    efficiency : float
        As of `roofline`.
    cores : int, optional
        That share the batch and hold all weights each, for ``memory``. Default: 8 of a TPU board, else 1.
    progress : callable, optional
        Called with the models done and their number.

    Returns
    -------
    Sweep

    Raises
    ------
    ValueError
        If a name is not known or a number out of range.

    Examples
    --------
    >>> found = sweep("fc", "tpu-v2", ranges={"layers": [4], "inputs": [2000], "outputs": [200], "batch": [16384]})
    >>> [(row["nodes"], round(row["utilisation"], 2)) for row in found.rows][::4]
    [(32, 0.29), (512, 0.81), (8192, 0.96)]
    """
    device = device_of(device) if isinstance(device, str) else device
    precision = precision_for(device) if precision is None else precision
    precision = Precision.named(precision) if isinstance(precision, str) else precision
    cores = CORES.get(device.name, 1) if cores is None else positive_int(cores, "cores")
    todo = list(models(kind, ranges))
    peak = device.peak((precision.activations.name, precision.weights.name)).flops
    rows = []
    for number, (sizes, network) in enumerate(todo, start=1):
        batch = sizes["batch"]
        work = lower(network, batch, precision, optimiser, fold=True)
        roof = roofline(work, device, efficiency)
        seconds, flops, moved = roof.seconds, work.flops, work.bytes
        memory = memory_floor(network, batch, precision, optimiser, cores)
        rows.append(
            {
                **sizes,
                "parameters": network.parameters,
                "flops": flops,
                "bytes": moved,
                "intensity": flops / moved,
                "seconds": seconds,
                "samples_per_second": batch / seconds,
                "flops_per_second": flops / seconds,
                "utilisation": flops / seconds / peak,
                "compute_bound": roof.compute_bound,
                "memory": memory,
                "fits": memory <= device.memory,
            }
        )
        if progress is not None:
            progress(number, len(todo))
    names = tuple(SWEEPS[kind])
    return Sweep(kind, device.name, precision.name, optimiser, float(peak), float(device.bandwidth), names, rows)
