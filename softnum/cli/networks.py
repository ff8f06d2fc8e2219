"""How commands take a network's own parameters and its data."""

import dataclasses
import inspect
from dataclasses import dataclass
from typing import Annotated

import typer

__all__ = ["NETWORK_HELP", "Data", "DataFolder", "HeldOut", "NetworkOptions", "Samples"]

_SIZES = (
    "Layer sizes. mlp: 64,128,10. Inputs of a step, hidden, outputs: lstm 8,32,10, speech-lstm 12,32,9. Channels of "
    "the convolutions, then of the hidden linear layer: lenet5 6,16,120,84, vgg-small 32,64,128,128. Channels: "
    "cifar10-cnn 32,32,64, resnet 16,32,64, detector 16,32,32,32,32. Features of a step, of a block's hidden layer: "
    "transformer, transformer-lm 32,64; of gpt too, or its parameters in all: 30k, 100k, 300k, 1m, 3m or 10m. Features "
    "of a byte (of a word), hidden size: recurrent-lm, seq2seq 32,64. "
    "Features of the factors' and of the perceptron's embeddings, its layers: ncf 8,16,16,8. Numbers of noise, hidden "
    "sizes: wgan 16,128. Numbers of an observation, hidden sizes, actions: actor-critic 4,128,2."
)
_FOLDER = (
    "Folder of the data set's files, of image-folder the one with train and test in it; of text and de-en, the file.  "
    "[default: SOFTNUM_DATA, else where Debian's "
    "packages, or Python's aeon, put them]"
)
_DEPTH = (
    "Layers of the resnet: 8, 14, 20, ... of basic blocks, 11, 20, 29, ... of bottlenecks; blocks of a transformer.  "
    "[default: resnet 8, of bottlenecks 11; gpt its size's; transformers 2]"
)

_STEPS = (
    "Steps of a sample: lstm 8, speech-lstm 29, seq2seq 12, language models 32, gpt 64; actions between updates "
    "of an actor-critic: 8."
)
_DATA = (
    "Data set: digits, fashion-mnist, mnist, cifar10, image-folder (images of your own, a folder for each class), "
    "fashion-scenes, japanese-vowels, movielens, text (a file of your own), text-gcide, text-jargon (Debian's), de-en "
    "or cartpole.  [default: digits, or what the network takes instead]"
)

NETWORK_HELP = (
    "Reference network: mlp, lstm, speech-lstm, lenet5, cifar10-cnn, vgg-small, resnet, transformer, recurrent-lm, "
    "transformer-lm, gpt, seq2seq, detector, ncf, wgan or actor-critic; or FILE.py:FUNCTION, a PyTorch model of your "
    "own, which a softnum.torch.Training describes."
)
Data = Annotated[str | None, typer.Option(help=_DATA)]
Samples = Annotated[int | None, typer.Option(help="How many of the first samples to train on.  [default: all]")]
HeldOut = Annotated[int | None, typer.Option(help="How many of the first held-out samples to be measured on.")]
DataFolder = Annotated[str | None, typer.Option("--data-dir", help=_FOLDER)]


@dataclass(frozen=True)
class NetworkOptions:
    """Options of a command, in the order of its help: arguments of networks' classes, of which each has some."""

    sizes: Annotated[str | None, typer.Option(help=_SIZES)] = None
    steps: Annotated[int | None, typer.Option(help=_STEPS)] = None
    depth: Annotated[int | None, typer.Option(help=_DEPTH)] = None
    block: Annotated[str | None, typer.Option(help="Blocks of the resnet: basic or bottleneck.  [default: basic]")] = (
        None
    )
    norm: Annotated[
        str | None,
        typer.Option(
            help="Normalisation: of the resnet batch or group, of transformer-lm and gpt layer or rms.  "
            "[default: batch, layer, rms]"
        ),
    ] = None
    group_size: Annotated[int | None, typer.Option(help="Channels of a group, with --norm group.  [default: 8]")] = None
    heads: Annotated[
        int | None, typer.Option(help="Heads of a transformer's attention.  [default: 2; gpt its size's]")
    ] = None
    kv_heads: Annotated[
        int | None,
        typer.Option(
            help="Heads of keys and values of transformer-lm and gpt.  [default: as many as heads; gpt its size's]"
        ),
    ] = None
    feedforward: Annotated[
        str | None,
        typer.Option(help="In blocks of transformer-lm and gpt: relu, relu2 or swiglu.  [default: relu; gpt swiglu]"),
    ] = None
    positions: Annotated[
        str | None, typer.Option(help="Of transformer-lm and gpt: learned or rotary.  [default: learned; gpt rotary]")
    ] = None
    rotary_base: Annotated[float | None, typer.Option(help="Of rotary positions.  [default: 10000]")] = None
    tied_embeddings: Annotated[
        bool | None,
        typer.Option(
            "--tied-embeddings/--no-tied-embeddings",
            help="Let the last layer of transformer-lm or gpt share its embedding's weights.  [default: no; gpt yes]",
        ),
    ] = None
    biases: Annotated[
        bool | None, typer.Option("--biases/--no-biases", help="Of gpt's linear layers.  [default: no]")
    ] = None
    vocabulary: Annotated[
        int | None,
        typer.Option(help="Tokens of gpt: 256 are bytes, more are learned from the text (BPE).  [default: 256]"),
    ] = None
    experts: Annotated[
        int | None,
        typer.Option(help="Experts of a mixture in each block of gpt, in place of one feedforward.  [default: none]"),
    ] = None
    experts_chosen: Annotated[int | None, typer.Option(help="Experts that a token is routed to.  [default: 1]")] = None
    capacity: Annotated[
        float | None,
        typer.Option(help="Capacity factor of experts: its tokens over a balanced share.  [default: 1.25]"),
    ] = None
    balance: Annotated[
        float | None, typer.Option(help="Factor of the load-balancing loss of experts.  [default: 0.01]")
    ] = None
    cell: Annotated[
        str | None, typer.Option(help="lstm, gru or rnn.  [default: of recurrent-lm lstm, of seq2seq gru]")
    ] = None
    bidirectional: Annotated[
        bool | None, typer.Option("--bidirectional", help="Let the encoder of seq2seq read in two directions.")
    ] = None
    dropout: Annotated[
        float | None,
        typer.Option(help="Share of elements that a transformer, language model or seq2seq drops.  [default: 0]"),
    ] = None
    critic_updates: Annotated[
        int | None, typer.Option(help="Of wgan's critic, for each of the generator.  [default: 5]")
    ] = None
    critic_clip: Annotated[
        float | None, typer.Option(help="Largest size of a weight of wgan's critic.  [default: 0.01]")
    ] = None
    discount: Annotated[
        float | None, typer.Option(help="Of the reward of a step later, by an actor-critic.  [default: 0.99]")
    ] = None
    value_weight: Annotated[
        float | None, typer.Option(help="Of an actor-critic's error of values.  [default: 0.5]")
    ] = None
    entropy: Annotated[float | None, typer.Option(help="Of an actor-critic's reward of entropy.  [default: 0.01]")] = (
        None
    )

    def of(self, network: str) -> dict:
        """Those that are given, as the class of a network takes them; the others stay the network's own.

        Raises
        ------
        ValueError
            If sizes are no integers, or the network has no such parameter.
        """
        from softnum.train.nets import NETWORKS
        from softnum.train.runs.own import is_own

        names = [field.name for field in dataclasses.fields(self)]
        options = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.sizes is not None and not (network == "gpt" and "," not in self.sizes):  # that is a size by its name
            try:
                options["sizes"] = [int(size) for size in self.sizes.split(",")]
            except ValueError:
                raise ValueError(f"--sizes must be integers and commas, like 64,128,10, got {self.sizes!r}") from None
        if is_own(network) and options:
            raise ValueError(
                f"{_flag(next(iter(options)))} is an option of networks of softnum's own; {network} takes what its "
                "function says"
            )
        if network in NETWORKS:  # else make_network says which there are
            known = inspect.signature(NETWORKS[network]).parameters
            for name in options:
                if name not in known:
                    has = [_flag(other) for other in known if other in names]
                    raise ValueError(f"{_flag(name)} is no option of {network}, which has {', '.join(has)}")
        return options


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
