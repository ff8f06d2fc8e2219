"""Reference networks, by name."""

from __future__ import annotations

import difflib

from softnum.train.nets.lstm import LSTM
from softnum.train.nets.mlp import MLP

__all__ = ["LSTM", "MLP", "NETWORKS", "make_network"]

NETWORKS = {"lstm": LSTM, "mlp": MLP}


def make_network(name: str, **options):
    """Return a reference network.

    Parameters
    ----------
    name : str
        One of `NETWORKS`.
    **options
        The network's own parameters: ``sizes``; of "lstm" also ``steps``.

    Raises
    ------
    ValueError
        If there is no network of that name.

    Examples
    --------
    >>> from softnum.train import make_network
    >>> make_network("mlp", sizes=(64, 32, 10)).layer_names
    ['fc1', 'fc2']
    """
    if name not in NETWORKS:
        near = difflib.get_close_matches(str(name), NETWORKS, n=1, cutoff=0.3)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"no network is called {name!r}{hint} (networks: {', '.join(NETWORKS)})")
    return NETWORKS[name](**options)
