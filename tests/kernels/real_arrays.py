"""Numba's own arrays and streams, not the simulator's, over memory of the host: what can be checked without a GPU.

Run by test_device_arrays.py in a process of its own.
"""

import gc
import warnings
from types import SimpleNamespace

import numpy as np

from softnum.kernels.device import _cuda, arrays, dlpack, strides
from softnum.kernels.device._cuda import config, cuda

FLOAT = np.dtype(np.float32)


def adopted(x, shape, steps, start=0):
    memory = dlpack.Memory(x.ctypes.data + start, shape, steps, x.dtype, (dlpack.CUDA, 0), False)
    return _cuda.adopt(memory, x, "x")


def main():
    from numba.cuda.cudadrv import driver

    assert not _cuda.SIMULATOR
    cuda.current_context = lambda: None  # which would need a driver
    cuda.get_current_device = lambda: SimpleNamespace(id=0)
    _cuda.device_of = lambda address: 0
    base = np.arange(4 * 6 * 8, dtype=FLOAT)
    where = base.ctypes.data

    x = adopted(base, (4, 6, 8), (192, 32, 4))
    assert _cuda.is_contiguous(x) and _cuda.address_of(x) == where and x._numba_type_.layout == "C"
    assert x.reshape((24, 8)).shape == (24, 8) and _cuda.bits(x).dtype == np.uint32
    turned = strides.transposed(x, (2, 0, 1))
    assert (turned.shape, turned.strides, turned._numba_type_.layout) == ((8, 4, 6), (4, 192, 32), "A")
    assert strides.is_dense(turned)
    memory, first, steps = strides.flat(turned)
    assert (memory.shape, first, steps, _cuda.address_of(memory)) == ((192,), 0, (1, 48, 8), where)
    back = adopted(base, (6, 8), (-32, -4), 47 * 4)
    memory, first, steps = strides.flat(back)
    assert (memory.shape, first, steps, _cuda.address_of(memory)) == ((48,), 47, (-8, -1), where)
    spread = strides.broadcast(adopted(base, (8,), (4,)), (5, 8))
    assert spread.strides == (0, 4) and strides.flat(spread)[0].shape == (8,)
    point = adopted(base, (), ())
    assert point.reshape(1).shape == (1,) and point.reshape(()).shape == () == strides.strided(x, (), ()).shape
    halves = adopted(base, (4,), (4,)), adopted(base, (4,), (4,), 16)
    assert strides.overlap(x, turned) and strides.overlap(x, halves[1]) and not strides.overlap(*halves)

    stream = driver.Stream(driver.binding.CUstream(12345), external=True)
    assert _cuda.number_of(stream) == 12345 == arrays.stream_number(stream)
    assert _cuda.number_of(0) == 1 == arrays.stream_number(driver.Stream(driver.binding.CUstream(0)))
    assert arrays._stream_of(x.bind(stream)) == 12345 and arrays._stream_of(x) == 1
    assert int(driver._to_core_stream(stream).handle) == 12345

    # small arrays are no reason to warn
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _cuda._configured(cuda.jit(lambda x: None), 1, 32, 0, 0).griddim == (1, 1, 1)
    assert config.CUDA_LOW_OCCUPANCY_WARNINGS == 1

    class Producer:
        def __init__(self, exported):
            self.exported = exported

        def __dlpack_device__(self):
            return self.exported.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.exported.__dlpack__(**{**options, "stream": -1})

    class Interface:
        __cuda_array_interface__ = {
            "shape": (4, 6), "typestr": "<f4", "data": (where, False), "version": 3, "strides": (192, 32), "stream": 1,
        }  # fmt: skip

    taken = arrays.imported(Producer(arrays.Exported(x)), "x").array
    assert (taken.shape, taken.strides, _cuda.address_of(taken)) == (x.shape, x.strides, where)
    taken = arrays.imported(Interface(), "x").array
    assert (taken.shape, taken.strides, _cuda.address_of(taken)) == ((4, 6), (192, 32), where)
    del taken
    gc.collect()
    assert not dlpack._alive
    print("real arrays: ok")


if __name__ == "__main__":
    main()
