"""Reference networks, by name."""

from __future__ import annotations

import difflib
import inspect
from pathlib import Path

from softnum.train.datasets.sets import KINDS, data_facts, data_of_kind
from softnum.train.nets.actor_critic import ActorCritic
from softnum.train.nets.cifar10_cnn import CIFAR10CNN
from softnum.train.nets.detector import Detector
from softnum.train.nets.gpt import GPT
from softnum.train.nets.lenet5 import LeNet5
from softnum.train.nets.lstm import LSTM
from softnum.train.nets.mlp import MLP
from softnum.train.nets.ncf import NCF
from softnum.train.nets.recurrent_lm import RecurrentLM
from softnum.train.nets.resnet import ResNet
from softnum.train.nets.seq2seq import Seq2Seq
from softnum.train.nets.speech_lstm import SpeechLSTM
from softnum.train.nets.transformer import Transformer
from softnum.train.nets.transformer_lm import TransformerLM
from softnum.train.nets.vgg_small import VGGSmall
from softnum.train.nets.wgan import WGAN

__all__ = [
    "CIFAR10CNN", "GPT", "LSTM", "MLP", "NCF", "NETWORKS", "WGAN", "ActorCritic", "Detector", "LeNet5", "RecurrentLM",
    "ResNet", "Seq2Seq", "SpeechLSTM", "Transformer", "TransformerLM", "VGGSmall", "default_data", "make_network",
]  # fmt: skip

NETWORKS = {
    network.name: network
    for network in (
        ActorCritic,
        CIFAR10CNN,
        Detector,
        GPT,
        LeNet5,
        LSTM,
        MLP,
        NCF,
        RecurrentLM,
        ResNet,
        Seq2Seq,
        SpeechLSTM,
        Transformer,
        TransformerLM,
        VGGSmall,
        WGAN,
    )
}


def default_data(name: str) -> str:
    """The data set that a network of some name takes where none is stated: digits, or the first of its kind.

    >>> default_data("mlp"), default_data("actor-critic")
    ('digits', 'cartpole')
    """
    fitting = data_of_kind(NETWORKS[name].kind) if name in NETWORKS else ["digits"]
    return "digits" if "digits" in fitting else fitting[0]


def make_network(name: str, *, data: str | None = None, data_folder: str | Path | None = None, **options):
    """Return a reference network.

    Parameters
    ----------
    name : str
        One of `NETWORKS`.
    data : str, optional
        The data set that it is for, which determines options that are not given: image size, features, classes.
    data_folder : path-like, optional
        The folder of user-supplied images, which determine their size (`load_data`).
    **options
        The network's own parameters: the arguments of its class.

    Raises
    ------
    ValueError
        If there is no network or data set of that name, the network takes data of another kind, or has no such
        parameter; or the folder of user-supplied images does not exist.

    Examples
    --------
    >>> from softnum.train import make_network
    >>> make_network("mlp", sizes=(64, 32, 10)).layer_names
    ['fc1', 'fc2']
    >>> make_network("lenet5", data="digits").image
    (1, 8, 8)
    """
    if name not in NETWORKS:
        near = difflib.get_close_matches(str(name), NETWORKS, n=1, cutoff=0.3)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        if str(name).endswith(".py"):
            hint = f"; of a file, name the function too: {name}:make"
        raise ValueError(f"no network is called {name!r}{hint} (networks: {', '.join(NETWORKS)})")
    network = NETWORKS[name]
    if data is not None:
        facts = data_facts(data, data_folder)
        if network.kind != facts.kind:
            fitting = ", ".join(data_of_kind(network.kind))
            raise ValueError(f"{name} takes {KINDS[network.kind]}, which {data!r} is not (data sets for it: {fitting})")
        options = network.options_of(facts) | options
    known = list(inspect.signature(network).parameters)
    for key in options:
        if key not in known:
            raise ValueError(f"{name} has no parameter {key!r} (it has {', '.join(known)})")
    return network(**options)
