"""Models of a user's own, in place of a reference network: a function in a Python file says how one is trained.

Where a network is named, ``"mine.py:make"`` stands for what the function ``make`` returns: a
`softnum.torch.Training`, or whatever else has its methods ``make_run``, ``workload`` and ``describe``.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from pathlib import Path

from softnum.train.designs.objects import checksum, file_of, load_object

__all__ = ["is_own", "load_own", "own_name", "source_of"]

_METHODS = ("make_run", "workload", "describe")


def is_own(network: str) -> bool:
    """Whether a network is one of the user's own.

    >>> is_own("mine.py:make"), is_own("mlp")
    (True, False)
    """
    return ":" in network


def own_name(network: str) -> str:
    """What results call a network: of one of the user's own the function's name.

    >>> own_name("models/mine.py:make"), own_name("mlp")
    ('make', 'mlp')
    """
    return network.rpartition(":")[2]


def source_of(network: str) -> dict:
    """The function and its file as plain data for a record: the file's name and its SHA-256.

    Files that it imports are not looked at. Of a module that is imported by its name there is no checksum.
    """
    source, _, name = network.rpartition(":")
    own = source.endswith(".py")
    return {"source": f"{Path(source).name}:{name}" if own else network, "sha256": checksum(network, Path())}


@contextlib.contextmanager
def _beside(network: str):
    """Let a file import what lies beside it, as a script does."""
    file = file_of(network, Path())
    folder = None if file is None else str(file.parent.resolve())
    if folder is not None:
        sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def load_own(network: str, options: dict):
    """What the user's function returns: how a model is trained.

    Parameters
    ----------
    network : str
        ``"file.py:function"``, the path relative to the working directory, or ``"module:function"``. As it is run, a
        file can import modules beside it.
    options : dict
        The function's arguments.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If there is no such function, it has no such argument, or it returns something else.
    """
    with _beside(network):
        make = load_object(network, Path())
    if not callable(make):
        raise ValueError(f"{network} is {type(make).__name__}; a function that returns a softnum.torch.Training is due")
    try:
        inspect.signature(make).bind(**options)
    except TypeError as error:
        has = ", ".join(inspect.signature(make).parameters) or "none"
        raise ValueError(f"{network}: {error} (its arguments: {has})") from None
    training = make(**options)
    if not all(callable(getattr(training, method, None)) for method in _METHODS):
        raise ValueError(
            f"{network} returned {type(training).__name__}; let it return a softnum.torch.Training, which says how the "
            "model is trained"
        )
    return training
