"""An iteration without its numbers: the network, the tape and the update run as they are, on arrays of zeros.

What an iteration consists of depends on shapes and formats alone. So the arrays of a dry run are zeros that share one
element of memory, and what would compute them only makes their shape: a batch that would take a minute in a design's
arithmetic takes milliseconds.
"""

from __future__ import annotations

import functools

import numpy as np

from softnum.mac.products.unfold import shape_of
from softnum.train.datasets.scenes import GARMENTS
from softnum.train.datasets.sentences import SPECIAL
from softnum.train.datasets.sets import DataSet, SentencePairs, Text, data_facts
from softnum.train.datasets.vocabulary import Vocabulary
from softnum.train.engine.backend import NumpyBackend, as_rows
from softnum.train.recipes import Scaled

__all__ = ["DryBackend", "stand_in"]

#: ratings: how many users and items the stand-in has, which are those of MovieLens 100K
_USERS, _ITEMS = 943, 1682


class DryBackend:
    """The methods of a `NumpyBackend`, whose float arrays hold zeros.

    Methods that move, choose or compare run on the zeros; rounding, products and other arithmetic only make the
    result's shape, but for operators of the user's own and blocks, which know it themselves.

    Parameters
    ----------
    backend : NumpyBackend
        Whose carrier and threads it has.

    Examples
    --------
    >>> dry = DryBackend(NumpyBackend(np.float32))
    >>> dry.matmul(np.ones((2, 3)), np.ones((3, 4)), None, None, None).shape, dry.dtype
    ((2, 4), dtype('float32'))
    """

    def __init__(self, backend: NumpyBackend) -> None:
        self._backend = backend
        self.dtype, self.threads = backend.dtype, backend.threads

    def __getattr__(self, name: str):
        method = getattr(self._backend, name)

        @functools.wraps(method)
        def emptied(*arguments, **options):
            result = method(*arguments, **options)
            # what a method hands on unchanged stays the same array
            return result if any(result is part for part in arguments) else _emptied(result)

        return emptied

    def _zeros(self, shape):
        return np.broadcast_to(self.dtype.type(0), shape)

    def check_room(self, elements: int, what: str, way: str) -> None:
        """Zeros that share one element need none."""

    def quantize(self, x, role, key):
        """Zeros of x's shape."""
        return self._zeros(x.shape)

    def quantize_flat(self, x, role, key):
        """Zeros of x's shape."""
        return self._zeros(x.shape)

    def matmul(self, a, b, unit, c, key):
        """Zeros of a product's shape."""
        return self._zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]))

    def quantize_scaled(self, x, role, axis, key, state=None, largest=None):
        """Zeros of x's shape, or the transposed one's, with the scale 1."""
        shape = (*x.shape[:-2], x.shape[-1], x.shape[-2]) if axis == -2 else x.shape
        return Scaled(self._zeros(shape), np.ones((1, 1), np.float32), (None, None))

    def matmul_scaled(self, a, b, unit, c, key):
        """Zeros of a product's shape."""
        return self.matmul(a.elements, b.elements.swapaxes(-2, -1), unit, c, key)

    def convolve(self, key: str, a, b, unit, c, words_key, geometry: dict, by=None):
        """Zeros of the shape of one of a convolution's three products."""
        options = [geometry.get(name, default) for name, default in _GEOMETRY.items()]
        if key == "forward":
            filters, _, *kernel = b.shape
            s = shape_of("conv2d", *a.shape[:2], filters, a.shape[2:], kernel, *options)
            return self._zeros((len(a), filters, *s.result))
        if key == "backward_data":
            return self._zeros((len(a), b.shape[1] * options[-1], *geometry["size"]))
        return self._zeros((b.shape[1], a.shape[1] // options[-1], *geometry["kernel"]))

    def operate(self, operation: str, operands, role, key):
        """Zeros of the operands' common shape."""
        return self._zeros(np.broadcast_shapes(*(np.shape(x) for x in operands)))

    def compute(self, operation: str, operands, role, key):
        """Zeros of the operands' common shape."""
        return self.operate(operation, operands, role, key)

    def total(self, x, role, keys, axes: str = "rows"):
        """Zeros of the shape of one row."""
        return self._zeros((1, *as_rows(self, x, axes).shape[1:]))

    def axpy(self, alpha: float, x, y, role, key):
        """Zeros of the operands' common shape."""
        return self.operate("fma", (x, y), role, key)


_GEOMETRY = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}


def _emptied(result):
    """Results whose float arrays are zeros that share an element."""
    if isinstance(result, np.ndarray) and result.dtype.kind == "f" and result.ndim:
        return np.broadcast_to(result.dtype.type(0), result.shape)
    if isinstance(result, (tuple, list)):
        return type(result)(_emptied(part) for part in result)
    return result


def stand_in(name: str, batch: int, steps: int | None = None, folder: str | None = None) -> DataSet:
    """Samples of a data set's shape, of which no file is read: as long as they get, and as many as asked for, or 8.

    Parameters
    ----------
    name : str
        The data set. Sentences and series have all their steps, scenes the most things; ratings are of 943 users and
        1682 items, as in MovieLens 100K. An environment is the data set's own, as it has no files.
    batch : int
        Samples.
    steps : int, optional
        Bytes of a sequence of a text. Default: 32.
    folder : str, optional
        Of images of the user's own, which says their size.

    Returns
    -------
    DataSet

    Examples
    --------
    >>> data = stand_in("cifar10", 8)
    >>> data.train_x.shape, data.train_y.tolist()
    ((8, 3072), [0, 1, 2, 3, 4, 5, 6, 7])
    """
    facts = data_facts(name, folder)
    if facts.kind == "environment":
        return facts.load(None)
    _, rows, columns = facts.image
    features, count = int(np.prod(facts.image)), max(batch, 8)
    numbers = np.arange(count)
    x, y = np.broadcast_to(np.arange(features) / features, (count, features)), numbers % facts.classes
    if facts.kind == "text":
        columns = steps or columns
        x = np.arange(count * columns).reshape(count, columns) % facts.classes
        return Text(name, x, x, x[:1], x[:1], Vocabulary())
    elif facts.kind == "sentences":
        words = len(SPECIAL) + np.arange(count * rows * columns) % (facts.classes - len(SPECIAL))
        x, y = words.reshape(count, -1), words.reshape(count, -1)[:, :columns]
    elif facts.kind == "ratings":
        x = np.stack([np.arange(_USERS), np.arange(_USERS)], axis=1)  # each user rated one item
        x = np.concatenate([x] * -(-count // _USERS) if count > _USERS else [x])
        held_out = np.array([[_USERS - 1, _ITEMS - 1]])
        return DataSet(name, x, np.ones(len(x), np.int64), held_out, np.zeros(1, np.int64))
    elif facts.kind == "scenes":
        side = columns // GARMENTS
        things = np.arange(GARMENTS)
        boxes = np.stack([things, *[things * side] * 2, *[(things + 1) * side] * 2], axis=1)
        y = np.broadcast_to(boxes, (count, *boxes.shape))
    if facts.kind == "sentences":
        return SentencePairs(name, x, y, x, y, ("",) * facts.classes, ("",) * facts.classes)
    return DataSet(name, x, y, x, y)
