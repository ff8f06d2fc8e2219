"""How commands take a network's own parameters and its data."""

import inspect
from typing import Annotated

import typer

__all__ = [
    "NETWORK_HELP", "Block", "Cell", "CriticClip", "CriticUpdates", "Data", "DataFolder", "Depth", "Discount",
    "Dropout", "Entropy", "Heads", "HeldOut", "Samples", "Sizes", "Steps", "ValueWeight", "network_options",
]  # fmt: skip

_SIZES = (
    "Layer sizes. mlp: 64,128,10. lstm: inputs of a step, hidden, outputs: 8,32,10. Channels of the convolutions, then "
    "of the hidden linear layer: lenet5 6,16,120,84, vgg-small 32,64,128,128. Channels: cifar10-cnn 32,32,64, resnet "
    "16,32,64. Features of a step, of a block's hidden layer: transformer, transformer-lm 32,64. Features "
    "of a byte, hidden size: recurrent-lm 32,64. Numbers of noise, hidden sizes: wgan 16,128. Numbers of an "
    "observation, hidden sizes, actions: actor-critic 4,128,2."
)
_FOLDER = (
    "Folder of the data set's files; of text, the file.  [default: SOFTNUM_DATA, else where Debian's packages put them]"
)
_DEPTH = (
    "Layers of the resnet: 8, 14, 20, ... of basic blocks, 11, 20, 29, ... of bottlenecks; blocks of a transformer.  "
    "[default: resnet 8, transformers 2]"
)

_STEPS = "Steps of a sample: lstm 8, language models 32; actions between updates of an actor-critic: 8."
_DATA = (
    "Data set: digits, fashion-mnist, mnist, cifar10, text or cartpole.  [default: digits, or what the network takes "
    "instead]"
)

NETWORK_HELP = (
    "Reference network: mlp, lstm, lenet5, cifar10-cnn, vgg-small, resnet, transformer, recurrent-lm, transformer-lm, "
    "wgan or actor-critic."
)
Sizes = Annotated[str | None, typer.Option(help=_SIZES)]
Steps = Annotated[int | None, typer.Option(help=_STEPS)]
Depth = Annotated[int | None, typer.Option(help=_DEPTH)]
Block = Annotated[str | None, typer.Option(help="Blocks of the resnet: basic or bottleneck.  [default: basic]")]
Heads = Annotated[int | None, typer.Option(help="Heads of a transformer's attention.  [default: 2]")]
Cell = Annotated[str | None, typer.Option(help="Cell of recurrent-lm: lstm, gru or rnn.  [default: lstm]")]
Dropout = Annotated[
    float | None, typer.Option(help="Share of elements that a transformer or language model drops.  [default: 0]")
]
CriticUpdates = Annotated[int | None, typer.Option(help="Of wgan, for each of the generator.  [default: 5]")]
CriticClip = Annotated[float | None, typer.Option(help="Largest size of a weight of wgan's critic.  [default: 0.01]")]
Discount = Annotated[
    float | None, typer.Option(help="Of the reward of a step later, by an actor-critic.  [default: 0.99]")
]
ValueWeight = Annotated[float | None, typer.Option(help="Of an actor-critic's error of values.  [default: 0.5]")]
Entropy = Annotated[float | None, typer.Option(help="Of an actor-critic's reward of entropy.  [default: 0.01]")]
Data = Annotated[str | None, typer.Option(help=_DATA)]
Samples = Annotated[int | None, typer.Option(help="How many of the first samples to train on.  [default: all]")]
HeldOut = Annotated[int | None, typer.Option(help="How many of the first held-out samples to be measured on.")]
DataFolder = Annotated[str | None, typer.Option("--data-dir", help=_FOLDER)]


def network_options(network: str, **given) -> dict:
    """The parameters of a network as its class takes them; what is not given (None) stays the network's own.

    Parameters
    ----------
    network : str
    **given
        Command-line options by name: ``sizes`` as text, the others as the class takes them.

    Raises
    ------
    ValueError
        If sizes are no integers, or the network has no such parameter.
    """
    from softnum.train.nets import NETWORKS

    options = {key: value for key, value in given.items() if value is not None}
    if "sizes" in options:
        sizes = options["sizes"]
        try:
            options["sizes"] = [int(size) for size in sizes.split(",")]
        except ValueError:
            raise ValueError(f"--sizes must be integers and commas, like 64,128,10, got {sizes!r}") from None
    if network in NETWORKS:  # else make_network says which there are
        known = inspect.signature(NETWORKS[network]).parameters
        for key in options:
            if key not in known:
                has = [_flag(name) for name in known if name in given]
                raise ValueError(f"{_flag(key)} is no option of {network}, which has {', '.join(has)}")
    return options


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
