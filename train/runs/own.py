"""Models of a user's own, in place of a reference network: a function in a Python file says how one is trained.

Where a network is named, ``"mine.py:make"`` stands for what the function ``make`` returns: a
`softnum.torch.Training`, of which this package asks for ``make_run``, ``workload`` and ``describe`` alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import random
import sys
import sysconfig
from pathlib import Path

import numpy as np

from softnum.train.designs.objects import checksum, file_of, load_object

__all__ = ["generators", "is_own", "load_own", "own_name", "source_of"]

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
    """The function and its file as plain data for a record: names and SHA-256 of the file, and of those beside it that
    it imports."""
    source, _, name = network.rpartition(":")
    own = source.endswith(".py")
    facts = {"source": f"{Path(source).name}:{name}" if own else network, "sha256": checksum(network, Path())}
    imported = _IMPORTED.get(str(Path(source).resolve())) if own else None
    return facts | ({"imports": imported} if imported else {})


#: of each network that was loaded: module beside its file -> SHA-256
_IMPORTED: dict[str, dict[str, str]] = {}


@contextlib.contextmanager
def _beside(network: str):
    """Let a file import what lies beside it, as a script does: its own, whatever others have the same names."""
    file = file_of(network, Path())
    if file is None:
        yield
        return
    folder = file.parent.resolve()
    names = {part.stem for part in folder.glob("*.py")} | {part.parent.name for part in folder.glob("*/__init__.py")}
    installed = tuple(sysconfig.get_path(key) for key in ("stdlib", "purelib", "platlib"))
    others = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in names and not str(getattr(module, "__file__", None) or "").startswith(installed)
    }
    for name in others:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    before = set(sys.modules)
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        found = {}
        for name in set(sys.modules) - before:
            own = getattr(sys.modules[name], "__file__", None)
            if name.partition(".")[0] in names and own is not None and Path(own).resolve().is_relative_to(folder):
                found[name] = hashlib.sha256(Path(own).read_bytes()).hexdigest()
                del sys.modules[name]
        sys.modules.update(others)
        if found:  # else the file was run before
            _IMPORTED[str(file.resolve())] = dict(sorted(found.items()))


@contextlib.contextmanager
def generators(seed: int):
    """The generators of Python, NumPy and, where it is loaded, PyTorch as a seed makes them; afterwards as before.

    >>> with generators(1):
    ...     first = random.random()
    >>> with generators(1):
    ...     first == random.random()
    True
    """
    torch = sys.modules.get("torch")
    states = random.getstate(), np.random.get_state(), torch and torch.random.get_rng_state()  # noqa: NPY002
    on_gpus = torch.cuda.get_rng_state_all() if torch is not None and torch.cuda.is_initialized() else None
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if torch is not None:
            torch.random.set_rng_state(states[2])
        if on_gpus is not None:
            torch.cuda.set_rng_state_all(on_gpus)


def load_own(network: str, options: dict):
    """What the user's function returns: how a model is trained. Random numbers that it draws are always the same.

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
    if importlib.util.find_spec("torch") is None:
        raise ValueError(f"{network} is a model of PyTorch's, which is not installed: pip install 'softnum[torch]'")
    with _beside(network):
        make = load_object(network, Path())
    if not callable(make):
        raise ValueError(
            f"{network} is {type(make).__name__}; expected a function that returns a softnum.torch.Training"
        )
    try:
        inspect.signature(make).bind(**options)
    except TypeError as error:
        has = ", ".join(inspect.signature(make).parameters) or "none"
        raise ValueError(f"{network}: {error} (its arguments: {has})") from None
    with generators(0):  # so that what it draws, like a split of data, is the same in each run
        training = make(**options)
    if not all(callable(getattr(training, method, None)) for method in _METHODS):
        raise ValueError(
            f"{network} returned {type(training).__name__}; it must return a softnum.torch.Training, which states how "
            "the model is trained"
        )
    return training
