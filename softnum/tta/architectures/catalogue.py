"""The networks that have a name."""

from __future__ import annotations

import difflib
from functools import cache, partial

from softnum.tta.architectures import images, sequences
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
}


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
    return tuple(_BUILDERS)


@cache
def architecture(name: str) -> Architecture:
    """A network that is timed and not trained, by name.

    Parameters
    ----------
    name : str
        One of `architecture_names`.

    Returns
    -------
    Architecture

    Raises
    ------
    ValueError
        If there is none of the name.

    Examples
    --------
    >>> net = architecture("resnet50")
    >>> net.parameters, round(net.macs / 1e9, 2)
    (25557032, 4.09)
    """
    if name not in _BUILDERS:
        near = difflib.get_close_matches(name, _BUILDERS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise ValueError(f"unknown architecture {name!r}{hint} Known: {', '.join(_BUILDERS)}")
    return _BUILDERS[name]()
