"""CUDA arrays of other libraries: their protocols, streams and memory; stand-ins for the libraries in the simulator."""

import ctypes
import gc
import pickle
import re
import sys
from inspect import isclass
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import softnum as sn
from softnum import kernels
from softnum.runtime import gateway as backend
from tests.support.cases import cases


@pytest.fixture
def arrays(device):
    from softnum.kernels.device.runtime import arrays

    return arrays


class Stream:
    """A stream in name."""

    def __init__(self, number):
        self.number = number


class Interface:
    """An array of a library that knows the CUDA array interface; its memory is the host's."""

    def __init__(self, array, *, stream=None, read_only=False, **more):
        self.array, self.stream = array, stream
        self.more = {"data": (array.ctypes.data, read_only), **more}

    @property
    def __cuda_array_interface__(self):
        a = self.array
        plain = {"shape": a.shape, "typestr": a.dtype.str, "strides": a.strides, "version": 3}
        return {**plain, **({} if self.stream is None else {"stream": self.stream}), **self.more}


class Capsules:
    """An array of a library that knows DLPack."""

    def __init__(self, array, kind=2, index=0, error=None, old=False):
        self.array, self.device, self.error, self.old = array, (kind, index), error, old
        self.asked = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, **more):
        from softnum.kernels.device.runtime import dlpack

        if self.old and more:
            raise TypeError("unexpected keyword")
        self.asked.append(stream)
        if self.error:
            raise self.error
        a = self.array
        memory = dlpack.Memory(a.ctypes.data, a.shape, a.strides, a.dtype, self.device, not a.flags.writeable)
        return dlpack.capsule_of(memory, a, more.get("max_version"))


@pytest.fixture
def gpu(device, monkeypatch):
    """The simulator with memory that others allocated, and streams that are told apart; a list of what is ordered."""
    from softnum.kernels.device.runtime import _cuda

    if not _cuda.SIMULATOR:
        pytest.skip("stands in for a GPU")
    fake = type(device.to_device(np.zeros(1)))

    def adopt(memory, owner, what):
        flat = [(n - 1) * s for n, s in zip(memory.shape, memory.strides, strict=True)]
        if 0 in memory.shape:
            return fake(np.empty(memory.shape, memory.dtype))
        low, high = (sum(s for s in flat if (s < 0) == below) for below in (True, False))
        size = high - low + memory.dtype.itemsize
        buffer = (ctypes.c_ubyte * size).from_address(memory.address + low)
        buffer.owner = owner
        return fake(np.ndarray(memory.shape, memory.dtype, buffer, -low, memory.strides))

    seen = []
    monkeypatch.setattr(_cuda, "adopt", adopt)
    monkeypatch.setattr(_cuda, "stream_of_number", lambda n: 0 if n in (0, 1) else Stream(n))
    monkeypatch.setattr(_cuda, "number_of", lambda s: s.number if s else 1)
    monkeypatch.setattr(_cuda, "wait", lambda s, other: seen.append((_cuda.number_of(s), _cuda.number_of(other))))
    monkeypatch.setattr(_cuda, "synchronize", lambda s: seen.append(("synchronize", _cuda.number_of(s))))
    monkeypatch.setattr(_cuda, "count_launch", lambda: seen.append(("kernel", _cuda.number_of(_cuda.stream()))))
    return seen


@pytest.fixture
def library(monkeypatch):
    """A library that takes arrays by DLPack: its arrays, made of NumPy's."""
    made = ModuleType("somelib")

    class Array(Interface):
        __module__ = "somelib.core"

    class Handed:
        """What NumPy asks for: memory of the host, as the simulator's is."""

        def __init__(self, exported):
            self.exported = exported

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **options):
            return self.exported.__dlpack__(stream=7, max_version=options.get("max_version"))

    made.Array, made.from_dlpack = Array, lambda x: Array(np.from_dlpack(Handed(x)))
    monkeypatch.setitem(sys.modules, "somelib", made)
    return made


X = np.float32([[1.1, -0.0, 300], [2.0**-20, np.inf, -1.3]])
Y = sn.quantize(X, "e5m2")


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), want.view(f"u{want.itemsize}"))


def test_is_device_array(device):
    d = device.to_device(X)
    yes = [d, Interface(X), Capsules(X), Capsules(X, 13), sn.Array(X.view(np.uint32), "binary32")]
    yes[-1].codes = d
    assert all(backend.is_device_array(x) for x in yes)
    no = [X, X[0, 0], 1.0, [1.0], None, "x", Capsules(X, 1), Capsules(X, 3), sn.array(X, "e5m2")]
    assert not any(backend.is_device_array(x) for x in [*no, SimpleNamespace(codes=d)])


@pytest.mark.parametrize("kind", [Interface, Capsules], ids=["interface", "dlpack"])
@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x.T, lambda x: x[:, ::-1], lambda x: x[:1], lambda x: x[:0], lambda x: x[::-1, 1:]],
    ids=["C", "F", "negative", "row", "empty", "part"],
)  # fmt: skip
def test_layouts(gpu, arrays, kind, view):
    from softnum.kernels.device.runtime.strides import contiguous

    x = view(X.copy())
    before = x.copy()
    array = arrays.imported(kind(x), "x").array
    got = contiguous(array)
    same(got.copy_to_host(), np.ascontiguousarray(x))
    assert (got is array) == x.flags.c_contiguous
    same(x, before)


def test_packing_any_strides(device):
    from softnum.kernels.device.runtime.strides import contiguous, flat, transposed

    x = np.arange(2 * 3 * 4 * 5, dtype=np.uint16).reshape(2, 3, 4, 5)
    d = device.to_device(x)
    for axes in [(3, 1, 0, 2), (0, 2, 3, 1), (1, 0, 2, 3)]:
        same(contiguous(transposed(d, axes)).copy_to_host(), np.ascontiguousarray(x.transpose(axes)))
    part = d[1, :, 1:, ::2]
    same(contiguous(part).copy_to_host(), np.ascontiguousarray(x[1, :, 1:, ::2]))
    memory, first, strides = flat(part)
    assert (first, strides) == (0, (20, 5, 2)) and memory.ndim == 1
    point = device.to_device(np.float64(3.5))
    assert contiguous(point) is point


def test_same_library_out(gpu, library):
    x = library.Array(X.copy(), stream=5)
    y = sn.quantize(x, "e5m2")
    assert type(y) is library.Array
    same(np.array(y.array), Y)
    assert ("kernel", 5) in gpu and (7, 5) in gpu  # the taker's stream waits for ours


def test_memory_lives_as_long_as_its_taker(gpu, library):
    from softnum.kernels.device.runtime import dlpack

    count = len(dlpack._alive)
    y = sn.quantize(library.Array(X.copy()), "e5m2")
    gc.collect()
    assert len(dlpack._alive) == count + 1
    same(np.array(y.array), Y)
    del y
    gc.collect()
    assert len(dlpack._alive) == count


def test_capsule_that_nobody_takes(arrays, device):
    from softnum.kernels.device.runtime import dlpack

    count = len(dlpack._alive)
    for version in (None, (1, 0), (0, 8)):
        capsule = arrays.Exported(device.to_device(X)).__dlpack__(stream=-1, max_version=version)
        assert len(dlpack._alive) == count + 1
        assert ("versioned" in repr(capsule)) == (version == (1, 0))
        del capsule
        assert len(dlpack._alive) == count
    with pytest.raises(BufferError, match="without a copy"):
        arrays.Exported(device.to_device(X)).__dlpack__(copy=True)
    with pytest.raises(BufferError, match="where they lie"):
        arrays.Exported(device.to_device(X)).__dlpack__(dl_device=(10, 0))


def test_capsules(gpu):
    from softnum.kernels.device.runtime import dlpack

    for old in (False, True):
        x, count = Capsules(X.copy(), old=old), len(dlpack._alive)
        y = sn.quantize(x, "e5m2")
        same(y.copy_to_host(), Y)  # a library that takes nothing: Numba's array
        gc.collect()
        assert len(dlpack._alive) == count and x.asked[-1] == 1
    assert ("synchronize", 1) in gpu  # its stream is not known: its memory is given back when the work is done


def test_types_by_dlpack(gpu, arrays):
    from softnum.kernels.device.runtime import dlpack

    for dtype in ("u1", "u2", "u4", "u8", "i4", "i8", "f2", "f4", "f8", "?"):
        x = np.ones((2, 3), dtype)
        same(arrays.imported(Capsules(x), "x").array.copy_to_host(), x)
    x = Capsules(np.ones(2, np.uint16))
    capsule_of = dlpack.capsule_of

    def bfloat(memory, owner, max_version=None):
        return capsule_of(memory._replace(dtype=SimpleNamespace(itemsize=2, kind="bf")), owner, max_version)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dlpack._KINDS, "bf", 4)
        patch.setattr(dlpack, "capsule_of", bfloat)
        count = len(dlpack._alive)
        with pytest.raises(TypeError, match=r"quantize: x is an array of bfloat16 \(16 bits\)"):
            sn.quantize(x, "e5m2")
        gc.collect()
        assert len(dlpack._alive) == count


def test_streams(gpu):
    unit = sn.MadUnit("e6m9", operand="e5m2")
    a, b = Interface(Y[:, :2].copy(), stream=5), Interface(Y[:, :2].copy(), stream=6)
    a.array[~np.isfinite(a.array)] = 1
    b.array[~np.isfinite(b.array)] = 1
    got = sn.matmul(a, b, unit)
    same(got.copy_to_host(), sn.matmul(a.array, b.array, unit))
    assert got.stream.number == 5
    assert gpu[0] == (5, 6) and gpu[-1] == (6, 5)  # ours after theirs, and theirs after ours
    assert {n for what, n in gpu if what == "kernel"} == {5}
    gpu.clear()
    with sn.kernels.stream(9):
        sn.quantize(a, "e5m2")
    assert gpu[0] == (9, 5) and gpu[-1] == (5, 9) and ("kernel", 9) in gpu
    gpu.clear()
    sn.quantize(Interface(X), "e5m2")  # none stated
    assert gpu == [("kernel", 1)]
    sn.quantize(Interface(X, stream=2), "e5m2")
    assert gpu[1:] == [("kernel", 2)]
    with pytest.raises(ValueError, match="stream 0 is not allowed"):
        sn.quantize(Interface(X, stream=0), "e5m2")


def test_results_keep_their_stream(gpu):
    """Numba forgets the stream of what it reshapes."""
    unit = sn.MadUnit("e6m9", operand="e5m2")
    x = Interface(np.float32([1, 2, 3]), stream=5)
    twice = sn.operator("function (X) -> (Y) { Y = X + X; }")
    for got in (sn.dot(x, x, unit), sn.sum(x, unit, 0), twice(x, fmt="e5m2")):
        assert got.stream.number == 5


def test_streams_are_ordered_after_errors_too(gpu):
    a, b = Interface(X, stream=5), Interface(X.T.copy(), stream=6)
    with pytest.raises(ValueError, match="is no value of e5m2"):
        sn.matmul(a, b, sn.MadUnit("e6m9", operand="e5m2"))
    assert gpu[-1] == (6, 5)


def test_stream_objects(arrays, device):
    class New:
        def __cuda_stream__(self):
            return 0, 77

    for stream, number in (
        (0, 1), (1, 1), (2, 2), (12345, 12345), (New(), 77), (SimpleNamespace(cuda_stream=5), 5),
        (SimpleNamespace(ptr=0), 1), (SimpleNamespace(handle=9), 9),
    ):  # fmt: skip
        assert arrays.stream_number(stream) == number
    for bad in ("x", None, True, 1.5):
        with pytest.raises(TypeError, match="stream must be a stream of Numba"):
            arrays.stream_number(bad)
    with pytest.raises(ValueError, match="stream=-1"), sn.kernels.stream(-1):
        pass
    with sn.kernels.stream(device.stream()):
        same(sn.quantize(device.to_device(X), "e5m2").copy_to_host(), Y)


def test_out(gpu, library):
    x, out = library.Array(X.copy(), stream=5), library.Array(np.full_like(X, np.nan), stream=5)
    assert sn.quantize(x, "e5m2", out=out) is out
    same(out.array, Y)
    assert sn.quantize(x, "e5m2", out=x) is x
    same(x.array, Y)
    for sealed in (Interface(X.copy(), read_only=True), Capsules(X.copy())):
        if isinstance(sealed, Capsules):
            sealed.array.flags.writeable = False
        with pytest.raises(TypeError, match="quantize: out is read-only"):
            sn.quantize(Interface(X), "e5m2", out=sealed)
        same(sn.quantize(sealed, "e5m2").copy_to_host(), Y)


def test_out_of_one_place(device):
    from softnum.kernels.device.runtime.strides import broadcast, strided

    x = device.to_device(np.float32([1.1, 2.2]))
    memory = device.to_device(np.zeros(6, np.float32))
    for out in (broadcast(device.to_device(np.float32([0])), (2,)), strided(memory, (2,), (2,))):
        with pytest.raises(ValueError, match="quantize: out has several elements in one place"):
            sn.quantize(x, "e5m2", out=out)
    square = device.to_device(np.ones((3, 3), np.float32))
    with pytest.raises(ValueError, match="out has several elements in one place"):
        sn.quantize(square, "e5m2", out=strided(memory, (3, 3), (4, 4)))  # windows
    sn.quantize(device.to_device(np.ones((2, 3), np.float32)), "e5m2", out=strided(memory, (2, 3), (4, 8)))
    same(memory.copy_to_host(), np.ones(6, np.float32))


@pytest.mark.parametrize(
    "given, out",
    [
        (np.s_[:8], np.s_[:8]), (np.s_[:8], np.s_[1:9]), (np.s_[1:9], np.s_[:8]), (np.s_[:16:2], np.s_[:8]),
        (np.s_[7::-1], np.s_[:8]), (np.s_[:8], np.s_[1:17:2]),
    ],
    ids=["itself", "after", "before", "wider", "reversed", "strided"],
)  # fmt: skip
def test_out_that_overlaps_what_is_read(device, given, out):
    memory = np.random.default_rng(4).standard_normal(20).astype(np.float32)
    want = sn.quantize(memory[given], "e5m2")
    d = device.to_device(memory)
    target = d[out]
    assert sn.quantize(d[given], "e5m2", out=target) is target
    expected = memory.copy()
    expected[out] = want
    same(d.copy_to_host(), expected)


def test_products_into_what_is_read(device):
    unit = sn.MadUnit("e6m9", operand="e5m2")
    x = sn.quantize(np.random.default_rng(4).standard_normal((9, 9)), "e5m2").astype(np.float32)  # several blocks
    want = sn.matmul(x, x, unit, x)
    d = device.to_device(x)
    assert sn.matmul(d, d, unit, d, out=d) is d
    same(d.copy_to_host(), want)
    wide = device.to_device(np.full((9, 18), np.nan, np.float32))
    part = wide[:, 1::2]
    d = device.to_device(x)
    assert sn.matmul(d, d, unit, d, out=part) is part
    same(np.ascontiguousarray(wide.copy_to_host()[:, 1::2]), want)
    assert np.isnan(wide.copy_to_host()[:, ::2]).all()
    before = np.full((1, 1), 7, np.float32)  # what fails leaves it as it was
    kept, infinite = device.to_device(before), device.to_device(np.float32([[np.inf]]))
    with pytest.raises(ValueError, match=r"q8\.8 has no code"):
        sn.matmul(infinite, infinite, sn.MadUnit("q8.8", operand="e5m2"), out=kept)
    same(kept.copy_to_host(), before)


def test_c_broadcasts(device):
    unit = sn.MadUnit("e6m9", operand="e5m2")
    rng = np.random.default_rng(6)
    a, b = (sn.quantize(rng.standard_normal(s).astype(np.float32), "e5m2") for s in ((2, 3, 4), (4, 5)))
    for shape in ((5,), (1, 5), (3, 1), (2, 1, 1), (3, 5), (), (2, 3, 5)):
        c = sn.quantize(rng.standard_normal(shape).astype(np.float32), "e6m9")
        got = sn.matmul(device.to_device(a), device.to_device(b), unit, device.to_device(c))
        same(got.copy_to_host(), sn.matmul(a, b, unit, c))
    with pytest.raises(ValueError, match=r"c of shape \(4,\) does not broadcast to \(2, 3, 5\)"):
        sn.matmul(device.to_device(a), device.to_device(b), unit, device.to_device(np.zeros(4, np.float32)))
    with pytest.raises(ValueError, match=r"c\[2\] = .*1\.1.* is no value of e6m9"):
        sn.matmul(device.to_device(a), device.to_device(b), unit, device.to_device(np.float32([1, 1, 1.1, 1, 1])))


def test_refused(gpu, monkeypatch):
    from softnum.kernels.device.runtime import _cuda

    unit = sn.MadUnit("e6m9", operand="e5m2")
    d = Interface(Y)
    for host in (Y, sn.array(Y, "e5m2")):
        with pytest.raises(TypeError, match="matmul: b lies on the host and a on the device; copy one of them"):
            sn.matmul(d, host, unit)
        with pytest.raises(TypeError, match="matmul: a lies on the host and b on the device"):
            sn.matmul(host, d, unit)
    with pytest.raises(ValueError, match="quantize: x: masked arrays"):
        sn.quantize(Interface(X, mask=X), "e5m2")
    with pytest.raises(TypeError, match=r"quantize: x is an array of complex64"):
        sn.quantize(Interface(X.astype(np.complex64)), "e5m2")
    with pytest.raises(TypeError, match=r"quantize: x is an array of >f4"):
        sn.quantize(Interface(X.astype(">f4")), "e5m2")
    with pytest.raises(ValueError, match=r"strides \(13, 4\) \(bytes\) are no multiples"):
        sn.quantize(Interface(X, strides=(13, 4)), "e5m2")
    with pytest.raises(TypeError, match="does not hand the array on: requires grad"):
        sn.quantize(Capsules(X, error=BufferError("requires grad")), "e5m2")
    with pytest.raises(ValueError, match=r"x lies on GPU 1, and GPU 0 is the current one"):
        sn.quantize(Capsules(X, index=1), "e5m2")
    monkeypatch.setattr(_cuda, "device_of", lambda address: 3)
    with pytest.raises(ValueError, match=r"x lies on GPU 3, and GPU 0 is the current one"):
        sn.quantize(Interface(X), "e5m2")


def test_the_simulator_takes_no_gpu(arrays, device):
    from softnum.kernels.device.runtime import _cuda

    if not _cuda.SIMULATOR:
        pytest.skip("of the simulator")
    for x in (Interface(X), Capsules(X)):
        with pytest.raises(TypeError, match="quantize: x lies on a GPU, but Numba runs its simulator"):
            sn.quantize(x, "e5m2")


def test_all_work_goes_by_the_stream():
    """No kernel, copy or allocation but by _cuda.py, which knows the stream."""
    folder = Path(kernels.__file__).parent / "device"
    direct = re.compile(
        r"\.copy_to_host\(|\.copy_to_device\(|(?<!_)cuda\.(to_device|device_array|as_cuda_array|synchronize)\(|"
        r"\bkernel\w*(\([^()]*\))?\[[^\]]*\]\("
    )
    assert direct.search("kernel(8, True)[1, 2](x)")
    assert direct.search("x = cuda.to_device(y)")
    assert not direct.search("_cuda.to_device(y)")
    found = [
        (path.name, line)
        for path in folder.glob("*.py")
        if path.name != "_cuda.py"
        for line in path.read_text().splitlines()
        if direct.search(line) and "host first" not in line
    ]
    assert not found


# ---- Array -----------------------------------------------------------------------------------------------------------


def test_array_of_device_codes(device):
    codes = np.uint8([[60, 65, 0], [1, 2, 255]])
    d = device.to_device(codes)
    a = sn.Array(d, "e5m2")
    assert a.codes is d and (a.shape, a.ndim, a.size, a.nbytes, a.itemsize) == ((2, 3), 2, 6, 6, 1)
    assert repr(a) == "Array(codes of shape (2, 3) on a GPU, e5m2)"
    host = a.copy_to_host()
    same(host.codes, codes)
    assert host.format == a.format and host.copy_to_host().codes is not host.codes
    again = a.copy()
    assert again.codes is not d
    same(again.copy_to_host().codes, codes)
    part = device.to_device(np.arange(24, dtype=np.uint16).reshape(4, 6))[::2, 1::2]
    same(sn.Array(part, "binary16").copy_to_host().codes, np.arange(24, dtype=np.uint16).reshape(4, 6)[::2, 1::2])
    same(sn.Array(part, "binary16").copy().copy_to_host().codes, sn.Array(part, "binary16").copy_to_host().codes)
    empty = sn.Array(device.to_device(np.zeros((0, 3), np.uint8)), "e2m1fn")
    assert empty.copy_to_host().shape == (0, 3) == empty.copy().shape


def test_arrays_of_two_places_do_not_mix(device):
    unit = sn.MadUnit("e6m9", operand="e5m2")
    codes = np.uint8([60, 65, 0, 7])
    a, b = sn.Array(device.to_device(codes), "e5m2"), sn.Array(codes.copy(), "e5m2")
    with pytest.raises(TypeError, match="a result on a GPU cannot be written into an Array on the host; copy"):
        np.add(a, a, out=b)
    with pytest.raises(TypeError, match="a lies on the host and out on the device"):
        np.add(b, b, out=a)
    with pytest.raises(
        TypeError, match="an Array on the host cannot be assigned to one on a GPU; copy its encodings there first"
    ):
        a[:2] = b[:2]
    for work in (
        lambda: sn.add(a.codes, [1, 2, 3, 4], "e5m2"),
        lambda: sn.add(a.codes, (1, 2, 3, 4), "e5m2"),
        lambda: sn.ops.scalb(a, range(4)),
        lambda: sn.matmul(device.to_device(np.ones((2, 2), np.float32)), np.float32(1), unit),
    ):
        with pytest.raises(TypeError, match="lies on the host"):
            work()
    a[1:] = a[:-1]
    a[0] = 1.0
    same(a.copy_to_host().codes, np.uint8([60, 60, 65, 0]))


def test_single_elements(device):
    """Arrays of no dimensions, beside numbers and each other."""
    from softnum.kernels.device.runtime.strides import strided

    for dims in ((), (1,), (1, 1)):
        point = sn.Array(strided(device.to_device(np.uint8([65])), dims, dims), "e5m2")
        host = point.copy_to_host()
        assert host.shape == dims
        for work in (
            lambda x: x + 1, lambda x: 2 * x, lambda x: x + x, lambda x: sn.ops.scalb(x, 3),
            lambda x: x.astype("e4m3fn"),
            lambda x: sn.add(x, x, rounding="sr", random_bits=7), lambda x: sn.fma(x, x, x),
        ):  # fmt: skip
            same(work(point).copy_to_host().codes, work(host).codes)


def test_the_other_byte_order(device):
    for x, work in (
        (np.ones(3, ">u2"), lambda x: sn.negate(x, "binary16")), (np.ones(3, ">f4"), lambda x: sn.quantize(x, "e5m2")),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=f"is an array of {x.dtype}.* in this machine's byte order"):
            work(device.to_device(x))


def test_unaligned_elements(gpu):
    memory = np.zeros(9, np.uint8)
    x = np.frombuffer(memory.data, np.float32, 2, 1)
    with pytest.raises(ValueError, match="is no multiple of an element of float32: copy it"):
        sn.quantize(Interface(x), "e5m2")


def test_codes_are_checked_on_the_device(device):
    codes = np.uint8([[7, 15], [0, 3]])
    sn.Array(device.to_device(codes), "e2m1fn")
    codes[1, 0] = 16
    with pytest.raises(ValueError, match="codes: 16 is no code of e2m1fn, which has 4 bits"):
        sn.Array(device.to_device(codes), "e2m1fn")
    with pytest.raises(TypeError, match="codes of e2m1fn on a GPU must be an array of uint8, got int64"):
        sn.Array(device.to_device(codes.astype(np.int64)), "e2m1fn")
    with pytest.raises(TypeError, match="Array: give the format of the encodings; only arrays with a float"):
        sn.Array(device.to_device(codes))


def test_products_of_arrays(device):
    unit = sn.MadUnit("e6m9", operand="e5m2")
    a, b = np.uint8([[60, 65, 0], [1, 2, 188]]), np.uint8([[60, 1], [66, 130], [67, 67]])
    c = sn.encode(np.float32([[1, 2], [3, 4]]), "e6m9")
    want = sn.matmul(sn.Array(a, "e5m2"), sn.Array(b, "e5m2"), unit, sn.Array(c, "e6m9"))
    arrays = [sn.Array(device.to_device(x), f) for x, f in ((a, "e5m2"), (b, "e5m2"), (c, "e6m9"))]
    same(sn.matmul(*arrays[:2], unit, arrays[2]).copy_to_host(), want)
    with pytest.raises(ValueError, match="a is an Array of e6m9, but the unit's operand is e5m2"):
        sn.matmul(arrays[2], arrays[2], unit)
    with pytest.raises(TypeError, match="matmul: b lies on the host and a on the device"):
        sn.matmul(arrays[0], sn.Array(b, "e5m2"), unit)


def test_nothing_is_copied_to_the_host_unasked(device, monkeypatch):
    a = sn.Array(device.to_device(np.uint8([60, 65])), "e5m2")

    def copied(*_, **__):
        raise AssertionError("copied to the host")

    monkeypatch.setattr(type(a.codes), "copy_to_host", copied)
    monkeypatch.setattr(type(a.codes), "__array__", copied, raising=False)
    for work in (
        lambda: np.asarray(a), lambda: 1.0 in a, lambda: float(a[0]), lambda: np.concatenate([a, a]),
        lambda: np.where([1, 0], a, a), a.tolist, lambda: float(a[:1]), a.max, lambda: np.sort(a), lambda: a.item(0),
        a.to_numpy, lambda: pickle.dumps(a),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"lie on a GPU; copy them to the host first: a.copy_to_host\(\)"):
            work()
    with pytest.raises(TypeError, match="a result on a GPU cannot be written into an array on the host; copy"):
        np.less(a, a, out=np.zeros(2, bool))
    assert repr(list(a)) == repr([a[0], a[-1]]) == repr([a[:1].reshape(()), a[1:].reshape(())])
    with pytest.raises(IndexError, match=r"index 2 is out of range for an axis of 2 elements \(-2 to 1\)"):
        a[2]
    with pytest.raises(IndexError, match="index -4 is out of range for an axis of 2 elements"):
        a.reshape(1, 2)[:, -4]
    for index in ((0, 0), (..., ...), (0, ..., 0)):
        with pytest.raises(IndexError, match="too many indices for an Array of 1 dimensions"):
            a[index]
    d = device.to_device(np.float32([1, 2]))
    unit = sn.MadUnit("e6m9", operand="e5m2")
    for name, work in (
        ("Array.take", lambda: a.take([0])), ("Array.repeat", lambda: a.repeat(2)),
        ("pack", lambda: sn.arrays.pack(a)), ("probe", lambda: sn.probe("add", a, a)),
        ("trace", lambda: unit.trace(d, d)),
        ("save", lambda: sn.save("unwritten.npz", a)), ("from_integer", lambda: sn.ops.from_integer(a.codes, "e5m2")),
        ("ulp", lambda: sn.ops.ulp(a)), ("ulp", lambda: sn.ops.ulp(a.codes, "e5m2")),
        ("ulp_error", lambda: sn.ops.ulp_error(a, a)),
        ("ulp_error", lambda: sn.ops.ulp_error(sn.array([1, 2], "e5m2"), a)), ("jam", lambda: sn.ops.jam(d, "e5m2")),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=rf"{name} takes no CUDA arrays; copy them to the host first \(\.copy_to_h"):
            work()
    with pytest.raises(TypeError, match="nothing takes no CUDA arrays"):
        backend.on_device("nothing", a)


PUBLIC = {
    name: getattr(package, name)
    for package in (sn, sn.arrays, sn.formats, sn.mac.products, sn.ops)
    for name in package.__all__
}


@cases("name", [name for name, thing in PUBLIC.items() if callable(thing) and not isclass(thing)])
def test_what_takes_codes_gives_none_to_the_host(name, device):
    """Every function: a result of CUDA arrays is one, or there is an error."""
    codes = np.uint8([1, 60, 65])
    a, numbers, unit = sn.Array(codes, "e5m2"), np.float32([1, 2, -3]), sn.MadUnit("e6m9", operand="e5m2")
    calls = [
        (a,), (a, a), (a, a, a), (a, [1, 2, 3]), (codes, "e5m2"), (codes, codes, "e5m2"), (codes, "e5m2", "e4m3fn"),
        (numbers, "e5m2"), (numbers, unit), (numbers, numbers, unit),
    ]  # fmt: skip

    def put(x):
        if isinstance(x, sn.Array):
            return sn.Array(device.to_device(x.codes), x.format)
        return device.to_device(x) if isinstance(x, np.ndarray) else x

    for arguments in calls:
        try:
            PUBLIC[name](*arguments)
        except (TypeError, ValueError):  # no arguments of its
            continue
        try:
            result = PUBLIC[name](*map(put, arguments))
        except (TypeError, ValueError) as error:
            assert re.search("CUDA|GPU|on the device", str(error)), error
        else:
            assert all(map(backend.is_device_array, result if isinstance(result, tuple) else [result]))


MOVES = [
    ("reshape", (2, -1)), ("reshape", ((-1,),)), ("ravel", ()), ("flatten", ()), ("transpose", ()), ("squeeze", ()),
    ("transpose", (1, 0, 2)), ("transpose", ((2, 1, 0),)), ("swapaxes", (0, 2)), ("ravel", ("C",)),
]  # fmt: skip


@pytest.mark.parametrize("view", [np.s_[:], np.s_[:, ::2], np.s_[:, :, 1:2], np.s_[:0]])
def test_elements_are_moved_as_numpy_moves_them(device, view):
    codes = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    host, a = sn.Array(codes[view], "e5m2"), sn.Array(device.to_device(codes)[view], "e5m2")
    same(a.T.copy_to_host().codes, np.ascontiguousarray(host.T.codes))
    for name, arguments in MOVES:
        want, got = (getattr(x, name)(*arguments) for x in (host, a))
        same(got.copy_to_host().codes, np.ascontiguousarray(want.codes))


def test_views_of_arrays(device):
    codes = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    d = device.to_device(codes)
    a = sn.Array(d, "e5m2")
    a[1, 1:].T[...] = 1.0
    a.ravel()[:2] = 2.0
    a.flatten()[...] = 3.0
    a[0, 2].fill(4.0)
    a[0, 1, 1][()] = 1.0
    a[..., 3] = sn.Array(device.to_device(np.uint8([9, 8, 7])), "e5m2")
    a[0, :, 2] = a[0, ::-1, 2]
    codes[1, 1:] = 60
    codes.ravel()[:2] = 64
    codes[0, 2] = 68
    codes[0, 1, 1] = 60
    codes[..., 3] = 9, 8, 7
    codes[0, :, 2] = codes[0, ::-1, 2].copy()
    same(d.copy_to_host(), codes)
    with pytest.raises(TypeError, match=r"Array\.reshape: CUDA arrays are reshaped in C order alone"):
        a.reshape(6, 4, order="F")
    with pytest.raises(TypeError, match="an Array on a GPU is indexed by integers and slices only"):
        a[np.array([True, False])]
    with pytest.raises(ValueError, match="broadcast"):
        a[0] = a[:, 0, 0]
    with pytest.raises(ValueError, match=r"codes of shape \(2, 3, 4\) do not broadcast to \(3, 4\)"):
        a[0] = a
    with pytest.raises(ValueError, match="cannot reshape array of size 24"):
        a.reshape(5, 5)


def test_views_of_tensors(gpu, library, monkeypatch):
    """PyTorch's repeat and transpose are others than NumPy's."""
    monkeypatch.setattr(library.Array, "__torch_function__", None, raising=False)
    codes = library.Array(np.arange(24, dtype=np.uint8).reshape(2, 3, 4), stream=5)
    a = sn.Array(codes, "e5m2")
    turned = a.transpose(2, 0, 1)
    assert type(turned.codes) is library.Array and turned.codes.array.base is not None
    same(np.ascontiguousarray(turned.codes.array), np.ascontiguousarray(codes.array.transpose(2, 0, 1)))
    with pytest.raises(TypeError, match=r"Array\.repeat takes no CUDA arrays"):
        a.repeat(2)


# ---- real libraries --------------------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    unit = sn.MadUnit("e6m9", operand="e5m2")
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            x = torch.randn(1000, 777, device="cuda")
            for _ in range(50):  # work that the kernels must wait for
                x = x * 1.0625 - x.mean()
            y = sn.quantize(x, "e5m2")
            z = sn.matmul(y.T[:64], y[:, :32], unit)
            again = z * 2  # work that must wait for the kernels
            copies = [t.cpu().numpy() for t in (x, y, z, again)]
            assert all(type(t) is torch.Tensor and t.is_cuda for t in (y, z))
            same(copies[1], sn.quantize(copies[0], "e5m2"))
            want = sn.matmul(copies[1].T[:64], copies[1][:, :32], unit)
            same(copies[2], want)
            same(copies[3], want * 2)
            out = torch.full_like(x, torch.nan)
            assert sn.quantize(x, "e5m2", out=out) is out
            same(out.cpu().numpy(), copies[1])
            codes = sn.encode(x, "e5m2")
            assert type(codes) is torch.Tensor and codes.dtype == torch.uint8
            a = sn.Array(codes, "e5m2")
            same(a.copy_to_host().codes, sn.encode(copies[0], "e5m2"))
    del y, z, again, out, codes, a
    gc.collect()
    torch.cuda.empty_cache()
    image = torch.randn(2, 8, 9, 9, device="cuda").to(memory_format=torch.channels_last)
    image, w = sn.quantize(image, "e5m2"), sn.quantize(torch.randn(4, 8, 3, 3, device="cuda"), "e5m2")
    got = sn.conv2d(image.to(memory_format=torch.channels_last), w, unit, padding=1)
    same(got.cpu().numpy(), sn.conv2d(image.cpu().numpy(), w.cpu().numpy(), unit, padding=1))
    with pytest.raises(TypeError, match="detach"):
        sn.quantize(x.requires_grad_(), "e5m2")
    with pytest.raises(TypeError, match="quantize: x is an array of"):
        sn.quantize(x.detach().to(torch.bfloat16), "e5m2")
    with pytest.raises(TypeError, match="matmul: b lies on the host"):
        sn.matmul(image[0, 0], image[0, 0].cpu().numpy(), unit)


@pytest.mark.gpu
def test_cupy():
    cupy = pytest.importorskip("cupy")
    unit = sn.MadUnit("e6m9", operand="e5m2")
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            x = cupy.random.standard_normal((1000, 777), dtype=np.float32)
            for _ in range(50):
                x = x * np.float32(1.0625) - x.mean()
            y = sn.quantize(x[::-1, ::2], "e5m2")
            z = sn.matmul(y.T[:64], y[:, :32], unit)
            again = z * 2
            copies = [cupy.asnumpy(t) for t in (x, y, z, again)]
            assert all(type(t) is cupy.ndarray for t in (y, z))
            same(copies[1], sn.quantize(copies[0][::-1, ::2].copy(), "e5m2"))
            want = sn.matmul(copies[1].T[:64], copies[1][:, :32], unit)
            same(copies[2], want)
            same(copies[3], want * 2)


@pytest.mark.gpu
def test_streams_of_numba():
    from numba import cuda

    x = np.random.default_rng(2).standard_normal((1000, 777)).astype(np.float32)
    s = cuda.stream()
    d = cuda.to_device(x, stream=s)
    y = sn.quantize(d, "e5m2")
    assert int(y.stream.handle) == int(s.handle)
    same(y.copy_to_host(), sn.quantize(x, "e5m2"))
    with sn.kernels.stream(cuda.stream()):
        z = sn.matmul(y, y.T, sn.MadUnit("e6m9", operand="e5m2"))
    host = sn.quantize(x, "e5m2")
    same(z.copy_to_host(), sn.matmul(host, host.T, sn.MadUnit("e6m9", operand="e5m2")))


@pytest.mark.gpu
def test_a_capsule_of_device_memory():
    """Out of softnum's own hands and back, without PyTorch or CuPy."""
    from numba import cuda

    from softnum.kernels.device.runtime import arrays, dlpack

    class Library:
        def __init__(self, exported):
            self.__dlpack__, self.device = exported.__dlpack__, exported.__dlpack_device__()

        def __dlpack_device__(self):
            return self.device

    count = len(dlpack._alive)
    x = Library(arrays.Exported(cuda.to_device(X)))
    same(sn.quantize(x, "e5m2").copy_to_host(), Y)
    del x
    gc.collect()
    assert len(dlpack._alive) == count
