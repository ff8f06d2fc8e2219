"""How commands take a network's own parameters and its data."""

import difflib
import inspect
import tomllib
from dataclasses import dataclass
from typing import Annotated

import typer

__all__ = [
    "NETWORK_HELP", "PARAMETERS", "Data", "DataFolder", "HeldOut", "NetworkOptions", "Samples", "moved_option",
]  # fmt: skip

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
    "Folder of the data set's files; for image-folder the one that contains train and test; for text and de-en the "
    "file.  [default: SOFTNUM_DATA, else where Debian's packages, or Python's aeon, put them]"
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
HeldOut = Annotated[int | None, typer.Option(help="How many of the first held-out samples to evaluate on.")]
DataFolder = Annotated[str | None, typer.Option("--data-dir", help=_FOLDER)]


#: What each parameter of a network is, but for its sizes, as ``--set`` takes it; its type and default are the class's.
PARAMETERS = {
    "balance": "factor of the load-balancing loss of experts [0.01]",
    "biases": "of linear layers",
    "bidirectional": "the encoder reads in two directions",
    "block": "basic or bottleneck",
    "capacity": "capacity factor of experts: its tokens over a balanced share [1.25]",
    "cell": "lstm, gru or rnn",
    "critic_clip": "largest size of a weight of the critic",
    "critic_updates": "of the critic, for each of the generator",
    "depth": "layers of a resnet (8, 14, 20, ...; of bottlenecks 11, 20, 29, ...), blocks of a transformer",
    "discount": "of the reward of a step later",
    "dropout": "share of elements that are dropped",
    "entropy": "of the reward of entropy",
    "experts": "of a mixture in each block, in place of one feedforward",
    "expert_combine": "the collective over whose wire experts' results are sent back [expert_dispatch]",
    "expert_dispatch": "of experts on several ranks, the collective over whose wire tokens are sent [none]",
    "experts_chosen": "experts that a token is routed to [1]",
    "feedforward": "relu, relu2 or swiglu",
    "group_size": "channels of a group, with norm=group [8]",
    "heads": "of the attention",
    "kv_heads": "heads of keys and values [as many as heads]",
    "norm": "normalisation: of a resnet batch or group, else layer or rms",
    "positions": "learned or rotary",
    "rotary_base": "of rotary positions [10000]",
    "steps": "of a sample; of the actor-critic actions between updates",
    "tied_embeddings": "the last layer shares its embedding's weights",
    "value_weight": "of the error of values",
    "vocabulary": "tokens: 256 are bytes, more are learned from the text (BPE)",
}
_SET = (
    "A parameter of the network, as NAME=VALUE, like heads=2; may be given again. actor-critic: steps, discount, "
    "value_weight, entropy. gpt, transformer-lm: depth, heads, kv_heads, dropout, steps, norm, feedforward, positions, "
    "rotary_base, tied_embeddings. gpt also: vocabulary, biases, experts, experts_chosen, capacity, balance, "
    "expert_dispatch, expert_combine. lstm, "
    "speech-lstm: steps. recurrent-lm: cell, dropout, steps. resnet: depth, block, norm, group_size. seq2seq: cell, "
    "bidirectional, dropout, steps. transformer: depth, heads, dropout. wgan: critic_updates, critic_clip. "
    "FILE.py:FUNCTION: the function's arguments."
)
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class NetworkOptions:
    """Options of a command: arguments of networks' classes, of which each has some."""

    sizes: Annotated[str | None, typer.Option(help=_SIZES)] = None
    network_parameters: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help=_SET)] = None

    def of(self, network: str) -> dict:
        """Those that are given, as the class of a network takes them; the others stay the network's own.

        Raises
        ------
        ValueError
            If sizes are no integers, the network has no such parameter, or a value is none of its type.
        """
        from softnum.train.nets import NETWORKS
        from softnum.train.runs.own import is_own

        own = is_own(network)
        if own and self.sizes is not None:
            raise ValueError(
                f"--sizes is for the networks that ship with softnum; pass arguments of the function of {network} with "
                "--set NAME=VALUE"
            )
        options = {} if self.sizes is None else {"sizes": _sizes(network, self.sizes)}
        if network not in NETWORKS and not own and not self.network_parameters:
            return options  # make_network says which there are
        known = {} if own or network not in NETWORKS else _parameters(NETWORKS[network])
        for text in self.network_parameters or ():
            name, equals, value = (part.strip() for part in text.partition("="))
            if not (name and equals and value):
                raise ValueError(f"--set {text!r} is not NAME=VALUE, like --set heads=2")
            if name in options:
                raise ValueError(f"--set {name} is given twice: {options[name]!r} and {value!r}; leave one of them out")
            options[name] = _literal(value) if own else _checked(network, known, name, value)
        return options


def _sizes(network: str, text: str):
    if network == "gpt" and "," not in text:
        return text  # a size by its name
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        raise ValueError(f"--sizes must be integers and commas, like 64,128,10, got {text!r}") from None


def _parameters(network) -> dict[str, tuple[str, object]]:
    """Of a network's class: the type and the default of each parameter that ``--set`` takes."""
    found = inspect.signature(network).parameters
    return {
        name: (str(found[name].annotation).partition(" ")[0], found[name].default)
        for name in found
        if name in PARAMETERS
    }


def _checked(network: str, known: dict, name: str, text: str):
    """A value of a parameter of a network, of its type."""
    if name not in known:
        if name == "sizes":
            raise ValueError(f"--set sizes={text}: the sizes of {network} are set by another option: --sizes {text}")
        near = difflib.get_close_matches(name.replace("-", "_"), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        has = f"it has {', '.join(known)}" if known else "it has none but --sizes"
        raise ValueError(f"--set {name}={text}: {network} has no parameter {name!r}{hint} ({has})")
    kind, default = known[name]
    try:
        return {"int": int, "float": float, "str": str, "bool": lambda word: _BOOLEANS[word.lower()]}[kind](text)
    except (ValueError, KeyError):
        what = {"int": "an integer", "float": "a number", "bool": "true or false"}[kind]
        shown = "" if default is None else f"; its default is {str(default).lower()}"
        raise ValueError(
            f"--set {name}={text}: {name} of {network} ({PARAMETERS[name]}) must be {what}{shown}"
        ) from None


def _literal(text: str):
    """A value of a function's argument: true or false, a number, a list in brackets, or a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def moved_option(flag: str) -> str | None:
    """What stands for an option that a network's parameter was, if a flag was one.

    >>> moved_option("--kv-heads"), moved_option("--no-tied-embeddings"), moved_option("--nothing")
    ('--set kv_heads=VALUE', '--set tied_embeddings=false', None)
    """
    name = flag.lstrip("-").replace("-", "_")
    if name in PARAMETERS:
        return f"--set {name}={'true' if name in ('biases', 'bidirectional', 'tied_embeddings') else 'VALUE'}"
    name = name.removeprefix("no_")
    return f"--set {name}=false" if name in ("biases", "tied_embeddings") else None
