"""The networks that have a name."""

from __future__ import annotations

import difflib
from functools import cache, partial

from softnum.tta.architectures import diffusion, images, recommendation, sequences
from softnum.tta.architectures.large_models import decoders
from softnum.tta.architectures.lowering import Architecture

__all__ = ["architecture", "architecture_names"]

_BUILDERS = {
    "alexnet": images.alexnet,
    "vgg16": images.vgg16,
    "resnet50": images.resnet50,
    "inception-v3": images.inception_v3,
    "mask-rcnn-backbone": images.mask_rcnn_backbone,
    "minigo": images.minigo,
    "gnmt": sequences.gnmt,
    "deepspeech2": sequences.deepspeech2,
    "transformer-base": partial(sequences.transformer, "base"),
    "transformer-big": partial(sequences.transformer, "big"),
    "bert-base": sequences.bert_base,
    "dlrm-v2": recommendation.dlrm_v2,
}
#: Those whose samples may have another length.
_SEQUENCES = {"flux1-dev": diffusion.flux, **{name: decoder.architecture for name, decoder in decoders().items()}}


def architecture_names() -> tuple[str, ...]:
    """Names of the networks that are timed and not trained.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> architecture_names()[:3]
    ('alexnet', 'vgg16', 'resnet50')
    """
    return (*_BUILDERS, *_SEQUENCES)


@cache
def architecture(name: str, sequence: int | None = None) -> Architecture:
    """A network for timing only, not for training, by name.

    Parameters
    ----------
    name : str
        One of `architecture_names`.
    sequence : int, optional
        Tokens per sample of a language model, or patches per image of flux1-dev; default: as in the source.

    Returns
    -------
    Architecture

    Raises
    ------
    ValueError
        If there is no such network, or `sequence` is given for one whose samples have a fixed length.

    Examples
    --------
    >>> net = architecture("resnet50")
    >>> net.parameters, round(net.macs / 1e9, 2)
    (25557032, 4.09)
    >>> architecture("llama3-8b", sequence=2048).parameters
    8030261248
    """
    if name in _SEQUENCES:
        return _SEQUENCES[name](sequence)
    names = architecture_names()
    if name not in _BUILDERS:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise ValueError(f"unknown architecture {name!r}{hint} Known: {', '.join(names)}")
    if sequence is not None:
        raise ValueError(f"samples of {name} have one length; a sequence is of {', '.join(_SEQUENCES)}")
    return _BUILDERS[name]()
