"""Networks that are timed and not trained: lists of layers, lowered to the workload of one training iteration.

``architecture("resnet50")`` is one of the catalogue; `paradnn` generates thousands; a network of your own is an
`Architecture` of these layers.
"""

from softnum.tta.architectures.catalogue import architecture, architecture_names
from softnum.tta.architectures.image_layers import BatchNorm, Conv2d, GlobalPool, Pool, Upsample
from softnum.tta.architectures.layers import Activation, Add, Concatenate, Dense, Flatten, Input, Layer, Loss
from softnum.tta.architectures.lowering import OPTIMISERS, Architecture, lower
from softnum.tta.architectures.paradnn import (
    SWEEPS,
    Sweep,
    bottleneck,
    fully_connected,
    memory_floor,
    models,
    recurrent,
    residual,
    sweep,
)
from softnum.tta.architectures.precision import PRECISIONS, Precision, StoredFormat
from softnum.tta.architectures.sequence_layers import Attention, Embedding, LayerNorm, Position, Recurrent

__all__ = [
    "OPTIMISERS",
    "PRECISIONS",
    "SWEEPS",
    "Activation",
    "Add",
    "Architecture",
    "Attention",
    "BatchNorm",
    "Concatenate",
    "Conv2d",
    "Dense",
    "Embedding",
    "Flatten",
    "GlobalPool",
    "Input",
    "Layer",
    "LayerNorm",
    "Loss",
    "Pool",
    "Position",
    "Precision",
    "Recurrent",
    "StoredFormat",
    "Sweep",
    "Upsample",
    "architecture",
    "architecture_names",
    "bottleneck",
    "fully_connected",
    "lower",
    "memory_floor",
    "models",
    "recurrent",
    "residual",
    "sweep",
]
