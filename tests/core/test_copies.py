"""Copies of arrays of any strides."""

import numpy as np

from softnum.runtime import _core
from tests.support.cases import cases


@cases("dtype", ["u1", "u2", "f4", "f8"])
def test_any_strides(dtype):
    rng = np.random.default_rng(1)
    whole = rng.integers(0, 250, (3, 7, 18, 6, 4)).astype(dtype)
    for _ in range(300):
        axes = rng.permutation(5)
        index = tuple(
            slice(*sorted(rng.integers(0, n + 1, 2)), int(rng.choice([1, 1, 2, 3])))
            for n in np.array(whole.shape)[axes]
        )
        view = whole.transpose(axes)[index]
        if rng.random() < 0.5:
            view = view[..., ::-1]
        order = rng.permutation(5)
        room = np.zeros([view.shape[i] + 1 for i in order], dtype)
        out = room.transpose(np.argsort(order))[tuple(slice(n) for n in view.shape)]
        assert _core.copy_view(view, out)
        assert np.array_equal(out, view) and np.count_nonzero(room) == np.count_nonzero(view)


def test_windows_and_broadcast_views():
    x = np.arange(3 * 10 * 10, dtype=np.float32).reshape(3, 10, 10)
    n, y, z = x.strides
    view = np.lib.stride_tricks.as_strided(x, (3, 8, 8, 3, 3), (n, y, z, y, z))
    out = np.empty((3, 3, 3, 8, 8), np.float32).transpose(0, 3, 4, 1, 2)
    assert _core.copy_view(view, out) and np.array_equal(out, view)
    out = np.empty((4, 3, 10, 10), np.float32)
    assert _core.copy_view(np.broadcast_to(x, out.shape), out) and (out == x).all()
    scalar = np.zeros((), np.float32)
    assert _core.copy_view(np.asarray(np.float32(3)), scalar) and scalar == 3


def test_what_it_does_not_take():
    x = np.zeros((2, 3), np.float32)
    assert not _core.copy_view(x, np.zeros((3, 2), np.float32))
    assert not _core.copy_view(x, np.zeros((2, 3)))
    assert not _core.copy_view(x.astype(np.complex128), x.astype(np.complex128))
    assert not _core.copy_view(np.zeros((1,) * 9, np.float32), np.zeros((1,) * 9, np.float32))
    assert not _core.copy_view(x, np.frombuffer(bytes(25), np.uint8)[1:].view(np.float32).reshape(2, 3))


@cases("dtype", ["u1", "u2", "f4", "f8"])
def test_planes_are_turned_a_tile_at_a_time(dtype):
    rng = np.random.default_rng(2)
    for shape in ((17, 33), (16, 16), (1, 40), (40, 1), (3, 5, 70), (2, 65, 18, 31)):
        x = rng.integers(0, 250, shape).astype(dtype)
        for axes in (range(x.ndim)[::-1], (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)):
            turned = x.transpose(axes)
            copy = _core.contiguous(turned)
            assert copy.flags.c_contiguous and copy.dtype == x.dtype and np.array_equal(copy, turned)
        assert _core.contiguous(x) is x
    swapped = rng.random((20, 30)).astype(">f4").T
    assert np.array_equal(_core.contiguous(swapped), swapped)
