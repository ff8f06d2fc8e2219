"""What the host does for CUDA arrays, on a stand-in for CUDA's driver: everything but what kernels compute.

Run by test_driver.py in a process of its own, which has the stand-in (driver.c) for its driver.
"""

import ctypes
import gc
import os
import re
import struct
import warnings

import numpy as np
from cuda.core._utils.cuda_utils import CUDAError
from numba.cuda.cudadrv.driver import CudaAPIError

import softnum as sn
from softnum import kernels
from softnum.kernels.check.link import missing_library
from softnum.kernels.device.runtime import _cuda, arrays, dlpack, launches, strides
from softnum.kernels.device.runtime._cuda import config, cuda

_driver = ctypes.CDLL("libcuda.so.1")
_driver.standin_log.restype = ctypes.c_void_p
_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]


def log() -> list[str]:
    """What the driver was asked for since the last call."""
    address = _driver.standin_log()
    lines = ctypes.string_at(address).decode().splitlines()
    _free(address)
    assert not [line for line in lines if line.startswith("refused")], lines
    return lines


def refused(work, why: str) -> None:
    """The driver refuses it."""
    log()
    try:
        work()
    except (CUDAError, CudaAPIError):
        address = _driver.standin_log()
        lines = ctypes.string_at(address).decode()
        _free(address)
        assert re.search(f"refused: .*{why}", lines), lines
    else:
        raise AssertionError(f"not refused: {why}")


def streams(lines: list[str]) -> set[int]:
    """Those that launches and copies were given to."""
    found = (re.match(r"(?:launch|copy) .*? on (-?\d+)", line) for line in lines)
    return {int(m[1]) for m in found if m}


def count(lines: list[str], start: str) -> int:
    return sum(line.startswith(start) for line in lines)


# ---- functions -------------------------------------------------------------------------------------------------------

_rng = np.random.default_rng(0)
X = sn.quantize(_rng.standard_normal((6, 8)).astype(np.float32), "e5m2")
IMAGES, FILTERS, DY = (
    sn.quantize(_rng.standard_normal(shape).astype(np.float32), "e5m2")
    for shape in ((2, 3, 5, 4), (4, 3, 2, 2), (2, 4, 4, 3))
)
CODES = sn.encode(X, "e5m2")
UNIT = sn.MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="stochastic", stochastic_bits=12)
PLAIN = sn.MadUnit("e6m9", operand="e5m2")
TABLES = sn.CustomFormat.from_table([i / 4 for i in range(-8, 8)], name="quarters")
_IN_TABLES = sn.MadUnit(TABLES, operand=TABLES, product=TABLES)
_T = np.ascontiguousarray(X.T)
_SR = {"rounding": "sr", "key": 1, "stochastic_bits": 8}

# name -> (the call with its arrays put where `d` puts them, copies to the host that it needs)
CALLS = {
    "quantize": (lambda d: sn.quantize(d(X), "e4m3fn"), 0),
    "quantize, a copy": (lambda d: sn.quantize(d(X)[::2, ::-1], "e4m3fn", **_SR), 0),
    "encode": (lambda d: sn.encode(d(X), "e4m3fn", **_SR), 0),
    "encode, in part": (lambda d: sn.encode(d(X), "e2m1fn"), 1),  # whether a NaN had no code
    "decode": (lambda d: sn.decode(d(CODES), "e5m2"), 0),
    "add": (lambda d: sn.add(d(CODES), d(CODES), "e5m2"), 0),
    "fma": (lambda d: sn.fma(d(CODES), d(CODES), d(CODES), "e5m2", return_flags=True, **_SR), 0),
    "matmul": (lambda d: sn.matmul(d(X), d(_T), UNIT, key=3), 1),  # largest values, and whether all are the format's
    "matmul, exact": (lambda d: sn.matmul(d(X), d(_T), sn.ExactDotUnit("e6m9", operand="e5m2")), 2),
    "matmul, tables": (lambda d: sn.matmul(d(X[:, :4] * 0), d(_T[:4] * 0), _IN_TABLES), 3),
    "dot": (lambda d: sn.dot(d(X[0]), d(X[0]), UNIT, key=3), 1),
    "sum": (lambda d: sn.sum(d(X), PLAIN, axis=1), 2),
    "conv2d": (lambda d: sn.conv2d(d(IMAGES), d(FILTERS), UNIT, key=4), 1),
    "conv2d_backward_data": (lambda d: sn.mac.products.conv2d_backward_data(d(DY), d(FILTERS), UNIT, (5, 4), key=4), 1),
    "conv2d_backward_weight": (
        lambda d: sn.mac.products.conv2d_backward_weight(d(IMAGES), d(DY), UNIT, (2, 2), key=4),
        1,
    ),
    "Array": (lambda d: sn.Array(d(CODES), "e5m2").copy().codes, 0),
    "Array * Array": (lambda d: (sn.Array(d(CODES), "e5m2") * sn.Array(d(CODES), "e5m2")).codes, 0),
}


def check_calls() -> None:
    """Types and shapes of the CPU's results; work and results on the caller's stream; no more copies than are told."""
    for name, (call, copies) in CALLS.items():
        want = call(lambda x: x)
        for made in range(3):  # the first compiles, and leaves constants on the device
            s = cuda.stream() if made == 2 else 0
            given = []
            got = call(lambda x: given.append(cuda.to_device(x, stream=s)) or given[-1])  # noqa: B023
            lines = log()
            for one, other in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
                assert isinstance(one, type(given[0])), name
                assert (one.shape, one.dtype) == (np.shape(other), other.dtype), (name, one.shape, one.dtype)
                assert _cuda.number_of(one.stream) == _cuda.number_of(s), name
            found = count(lines, "launch"), count(lines, "copy to host"), len(streams(lines))
            assert found[0] and found[1] <= copies and found[2] == 1, (name, found)
        assert count(lines, "synchronize") == found[1] and not count(lines, "load"), (name, lines)


def check_streams() -> None:
    """Work is ordered after the streams of all arrays, and they after it; the host does not wait."""
    a, b = cuda.stream(), cuda.stream()
    x, y = cuda.to_device(CODES, stream=a), cuda.to_device(CODES, stream=b)
    number = streams(log())
    sn.add(x, y, "e5m2")
    shown = [line for line in log() if not line.startswith("allocate")]
    first, second = sorted(number)
    assert [re.sub(r" (e\d+|\(.*)", "", line) for line in shown] == [
        f"record on {second}", f"wait for on {first}", "launch", f"record on {first}", f"wait for on {second}"
    ], shown  # fmt: skip
    with kernels.stream(b):
        z = sn.add(x, x, "e5m2")
    lines = log()
    assert streams(lines) == {second} and _cuda.number_of(z.stream) == _cuda.number_of(b)
    assert (count(lines, "record"), count(lines, "wait for"), count(lines, "synchronize")) == (2, 2, 0)
    assert _cuda.number_of(a) == int(a.handle) == arrays.stream_number(a) != arrays.stream_number(b)
    assert arrays.stream_number(int(a.handle)) == int(a.handle) and _cuda.number_of(0) == 1
    for number in (0, 1, 2):
        with kernels.stream(number):
            assert sn.add(cuda.to_device(CODES), cuda.to_device(CODES), "e5m2").shape == CODES.shape
        assert streams(log()) >= {-2 if number == 2 else 0}


# ---- memory ----------------------------------------------------------------------------------------------------------


def adopted(x, shape, steps, start=0):
    memory = dlpack.Memory(_cuda.address_of(x) + start, shape, steps, x.dtype, (dlpack.CUDA, 0), False)
    return _cuda.adopt(memory, x, "x")


class Producer:
    """An array of a library that speaks DLPack alone."""

    def __init__(self, x):
        self.exported = arrays.Exported(x)

    def __dlpack_device__(self):
        return self.exported.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.exported.__dlpack__(**options)


def check_memory() -> None:
    """Views, strides and protocols over the same memory, which the host cannot read."""
    base = cuda.to_device(np.arange(4 * 6 * 8, dtype=np.float32))
    where = _cuda.address_of(base)
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
    assert sn.quantize(back, "e5m2").shape == (6, 8)
    spread = strides.broadcast(adopted(base, (8,), (4,)), (5, 8))
    assert spread.strides == (0, 4) and strides.flat(spread)[0].shape == (8,)
    point = adopted(base, (), ())
    assert point.reshape(1).shape == (1,) and point.reshape(()).shape == () == strides.strided(x, (), ()).shape
    assert sn.quantize(point, "e5m2").shape == ()
    halves = adopted(base, (4,), (4,)), adopted(base, (4,), (4,), 16)
    assert strides.overlap(x, turned) and strides.overlap(x, halves[1]) and not strides.overlap(*halves)

    class Interface:
        __cuda_array_interface__ = {
            "shape": (4, 6), "typestr": "<f4", "data": (where, False), "version": 3, "strides": (192, 32), "stream": 1,
        }  # fmt: skip

    for given, shape in ((Producer(x), (4, 6, 8)), (Interface(), (4, 6))):
        taken = arrays.imported(given, "x").array
        assert (taken.shape, taken.strides, _cuda.address_of(taken)) == (shape, (192, 32, 4)[: len(shape)], where)
        assert isinstance(sn.quantize(given, "e5m2"), type(x))
    assert streams(log()) == {0}
    empty = cuda.device_array((0, 3), np.float32)
    assert sn.quantize(empty, "e5m2").shape == (0, 3) and sn.matmul(x[0], x[0][:, :0].reshape((8, 0)), PLAIN).shape
    del taken, given
    gc.collect()
    assert not dlpack._alive


def check_memory_that_is_used_again() -> None:
    """What only launches on the default stream have seen is given to new arrays; all else is not."""
    device, stream = launches._device(), cuda.stream()

    def again(work) -> bool:
        x = _cuda.empty((7, 999), np.float32)
        where = work(x) or _cuda.address_of(x)
        del x
        gc.collect()
        y = _cuda.empty((999, 7), np.int32)  # of its size
        assert (where in device.owned) == (_cuda.address_of(y) == where)
        return _cuda.address_of(y) == where

    def on_another_stream(x) -> None:
        kernel = cuda.jit(lambda x: None)
        with _cuda.running_on(stream):
            _cuda.launch(kernel, 1, 32, x)

    def made_there(_) -> int:
        with _cuda.running_on(stream):
            return _cuda.address_of(_cuda.empty((7, 999), np.float32))

    works = {
        "nothing": (lambda x: None, True),
        "launch": (lambda x: _cuda.launch(cuda.jit(lambda x: None), 1, 32, x.reshape(-1)[5:100].view(np.int32)), True),
        "to the host": (lambda x: _cuda.to_host(x) is None or None, True),
        "views": (lambda x: _cuda.bits(x.reshape((999, 7))).reshape(6993)[3:9].bind(0) and None, True),
        "interface": (lambda x: x.__cuda_array_interface__ and None, False),
        "DLPack": (lambda x: Producer(x[2:]).__dlpack__() and None, False),
        "a view of any strides": (lambda x: strides.transposed(x, (1, 0)) and None, False),
        "a launch of Numba's": (lambda x: cuda.jit(lambda x: None)[1, 32](x), False),
        "a copy by Numba": (lambda x: x.copy_to_host() is None or None, False),
        "a launch on another stream": (on_another_stream, False),
        "another stream's": (made_there, False),
    }
    for name, (work, may) in works.items():
        again(lambda x: None)
        assert again(work) == may, name
    refused(lambda: _cuda.empty(2**40, np.uint8), "in use")
    assert not device.free  # that CUDA has more
    device.most_free, told = 0, device.most_free
    x = _cuda.empty(999, np.float64)
    del x
    assert device.free and _cuda.empty(9999, np.float64).size and list(device.free) == [81920]
    device.most_free = told
    log()


def check_views() -> None:
    """Shapes, types and strides as NumPy's of views of the same memory, and Numba's own where softnum makes none."""
    x = np.zeros((4, 6, 8), np.float32)
    y = _cuda.to_device(x)
    for view in (
        lambda a: a.reshape(192), lambda a: a.reshape(-1), lambda a: a.reshape((2, -1, 3)), lambda a: a.reshape(8, 24),
        lambda a: a.reshape(-1)[5:9], lambda a: a.reshape(-1)[-9:-4], lambda a: a.reshape(-1)[200:], lambda a: a[1],
        lambda a: a.view(np.uint32), lambda a: a.view(np.uint8), lambda a: a.view(np.complex128), lambda a: a[1:3, ::2],
        lambda a: a.reshape(-1)[3:4].reshape(()), lambda a: a[:0].reshape(0, 3), lambda a: a.reshape(-1)[::2],
    ):  # fmt: skip
        want, got = view(x), view(y)
        assert (got.shape, got.dtype, got.size, got.ndim) == (want.shape, want.dtype, want.size, want.ndim)
        assert got.size == 0 or got.strides == want.strides
        start = want.__array_interface__["data"][0] - x.__array_interface__["data"][0]
        assert got.size == 0 or _cuda.address_of(got) == _cuda.address_of(y) + start
        assert _cuda.to_host(got).shape == want.shape
    for wrong in (lambda: y.reshape(7, -1), lambda: y.reshape(5), lambda: y.reshape(1)[3:].view(np.float64)):
        try:
            wrong()
        except (ValueError, NotImplementedError):
            continue
        raise AssertionError
    log()


# ---- launches --------------------------------------------------------------------------------------------------------


def check_launches() -> None:
    """Parameters, grid, stream and shared memory as Numba gives them to the driver; no allocation, no copy."""
    x = _cuda.to_device(X)
    base, stream = cuda.to_device(X), cuda.stream()
    many = (
        np.uint8(200), np.int8(-3), np.uint16(65000), np.int16(-4), np.uint32(2**32 - 1), np.int32(-5),
        np.uint64(2**64 - 1), np.int64(-(2**62)), np.bool_(True), False, 7, -(2**40), np.float32(1.5), 2.5,
    )  # fmt: skip
    os.environ["STANDIN_PARAMETERS"] = "1"
    given = (
        (x, x[:0].reshape(0, 8), x.reshape(48), _cuda.bits(x.reshape(48)[4:9]), strides.transposed(x, (1, 0)), base),
        many,
        ((2, 3, 4), x.reshape(-1), (np.int64(5),), 6),
    )
    for arguments in given:
        names = ", ".join(f"x{i}" for i in range(len(arguments)))
        kernel = cuda.jit(eval(f"lambda {names}: None"))
        for s in (0, stream):
            for grid, block, dynamic in ((3, 32, 0), ((4, 5), (8, 4, 2), 1000)):
                log()
                kernel[grid, block, s, dynamic](*arguments)
                want = log()
                with _cuda.running_on(s):
                    _cuda.launch(kernel, grid, block, *arguments, shared=dynamic)
                got = log()
                want, got = ([line for line in lines if not line.startswith("load")] for lines in (want, got))
                assert got[0].startswith("launch") and len(got) > len(arguments), got
                assert got == want, [pair for pair in zip(got, want, strict=False) if pair[0] != pair[1]]
    del os.environ["STANDIN_PARAMETERS"]
    refused(lambda: _cuda.launch(kernel, 1, 2048, *arguments), "a block of more than 1024 threads")
    _cuda.launch(kernel, 1, 32, *arguments, shared=200_000)
    refused(lambda: _cuda.launch(kernel, 1, 32, *arguments, shared=300_000), "300000 bytes of shared memory")
    try:
        _cuda.launch(kernel, 1, 32, (2, 3, 2**63), x.reshape(-1), (np.int64(5),), 6)
    except struct.error:
        pass
    else:
        raise AssertionError("an integer that its parameter has no room for")
    log()


# ---- limits ----------------------------------------------------------------------------------------------------------


def check_limits() -> None:
    """What the driver refuses, so that a call that it takes would run; and errors that come before a launch."""
    kernel = cuda.jit(lambda x: None)
    x = cuda.to_device(X)
    refused(lambda: kernel[1, 2048](x), "a block of more than 1024 threads")
    refused(lambda: kernel[(1, 65536), 32](x), "a grid that is too large")
    refused(lambda: kernel[1, 32, 0, 50000](x), "more than 49152 bytes of shared memory")
    refused(lambda: kernel[1, 32](adopted(x, (49,), (4,))), "is not all there")
    refused(lambda: cuda.device_array(2**40), "in use")
    log()
    own = _cuda.to_device(X)
    for wrong, what in (
        (lambda: sn.matmul(x, x, PLAIN), "8 columns, b has 6 rows"),
        (lambda: sn.quantize(x, "e5m2", rounding="sr"), "key"),
        (lambda: sn.matmul(x, X.T.copy(), PLAIN), "lies on the host"),
        (lambda: sn.conv2d(x, x, PLAIN), "dimensions|shape"),
        (lambda: sn.matmul(own, [[1.0]] * 8, PLAIN), "b lies on the host"),
        (lambda: sn.matmul(own, own.reshape(8, 6), PLAIN, c=1.0), "c lies on the host"),
        (lambda: sn.add(_cuda.to_device(CODES), [[3]], "e5m2"), "lies on the host"),
    ):
        try:
            wrong()
        except (TypeError, ValueError) as error:
            assert re.search(what, str(error)), error
        else:
            raise AssertionError(what)
    assert not count(log(), "launch")
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 1
    with warnings.catch_warnings():  # small arrays are no reason to warn
        warnings.simplefilter("error")
        sn.quantize(x, "e5m2")
    assert config.CUDA_LOW_OCCUPANCY_WARNINGS == 1


def main() -> None:
    if missing := missing_library():
        print(missing)
        return
    assert not _cuda.SIMULATOR and cuda.is_available()
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    checks = (
        check_calls,
        check_streams,
        check_memory,
        check_memory_that_is_used_again,
        check_views,
        check_launches,
        check_limits,
    )
    for check in checks:
        log()
        check()
    print("the host's side: ok")


if __name__ == "__main__":
    main()
