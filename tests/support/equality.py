"""What tests of kernels share: results of the device and of the host have the same bits."""

import numpy as np

import softnum as sn


def same_bits(got, want, what=""):
    """AssertionError for other types, shapes or bits, with the first places that differ."""
    assert got.dtype == want.dtype and got.shape == want.shape, what
    kind = f"u{want.itemsize}"
    wrong = np.argwhere(got.view(kind) != want.view(kind))
    assert not len(wrong), (str(what), [(tuple(i), got[tuple(i)], want[tuple(i)]) for i in wrong[:5]])


def poisoned(device, shape, dtype):
    """An array on the device to be written: NaNs of bits that no result has, so that one not written shows."""
    return device.to_device(np.full((*shape, np.dtype(dtype).itemsize), 255, np.uint8).view(dtype)[..., 0])


def check_product(device, unit, a, b, c=None, *, want=None, **options):
    """The product on the device, over poisoned memory, has the bits of the host's, or of `want`."""
    want = sn.matmul(a, b, unit, c, **options) if want is None else want
    on_device = [None if x is None else device.to_device(np.ascontiguousarray(x)) for x in (a, b, c)]
    out = poisoned(device, want.shape, want.dtype)
    sn.matmul(*on_device[:2], unit, on_device[2], out=out, **options)
    same_bits(out.copy_to_host(), want, unit)
