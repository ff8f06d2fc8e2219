"""Networks that are timed and not trained: lists of layers, lowered to the workload of one training iteration.

``architecture("resnet50")`` is one of the catalogue; `paradnn` generates thousands; a network of your own is an
`Architecture` of these layers.
"""

from softnum.tta.architectures.attention_layers import Attention, HeadNorm, LatentKeys, RmsNorm, Rotary, Slice
from softnum.tta.architectures.catalogue import architecture, architecture_names
from softnum.tta.architectures.communication_layers import AllToAll, Gather, Scatter, SumBackward, SumForward
from softnum.tta.architectures.decoders import Decoder, Latent, Share
from softnum.tta.architectures.expert_layers import Combine, Dispatch, ExpertDense, Gate, Router
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
from softnum.tta.architectures.sequence_layers import Embedding, LayerNorm, Position, Recurrent

__all__ = [
    "Activation",
    "Add",
    "AllToAll",
    "Architecture",
    "Attention",
    "BatchNorm",
    "Combine",
    "Concatenate",
    "Conv2d",
    "Decoder",
    "Dense",
    "Dispatch",
    "Embedding",
    "ExpertDense",
    "Flatten",
    "Gate",
    "Gather",
    "GlobalPool",
    "HeadNorm",
    "Input",
    "LatentKeys",
    "Latent",
    "Layer",
    "LayerNorm",
    "Loss",
    "OPTIMISERS",
    "PRECISIONS",
    "Pool",
    "Position",
    "Precision",
    "Recurrent",
    "RmsNorm",
    "Rotary",
    "Router",
    "SWEEPS",
    "Scatter",
    "Share",
    "Slice",
    "StoredFormat",
    "SumBackward",
    "SumForward",
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
