"""The backend of a GPU, method by method: the bits of NumPy's, from kernels, whatever memory held before."""

import inspect

import numpy as np
import pytest

import softnum as sn
from softnum.mac.products.unfold import shape_of
from softnum.train.designs import RoleRounding
from softnum.train.designs.scales import Hadamard, OwnScaling
from softnum.train.designs.sparsity import Sparsity
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.binary64 import Binary64, host
from softnum.train.recipes import (
    BlockScaling,
    DelayedScaling,
    MXFP4Scaling,
    MXScaling,
    NVFP4Scaling,
    QuestScaling,
    Scaled,
    TensorScaling,
    TsengScaling,
)  # fmt: skip
from tests.support.cases import cases

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, 1e-45, -1e-45, 3e38, 2.0, -2.0, 0.5]


def public(cls):
    return {name: f for name, f in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


@pytest.fixture(autouse=True)
def poisoned(device, monkeypatch):
    """Memory that is not initialised holds NaN's bits."""
    from softnum.kernels.device.runtime import _cuda

    def empty(shape, dtype):
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return _cuda.to_device(np.full(size, 255, np.uint8).view(dtype).reshape(shape))

    monkeypatch.setattr(_cuda, "empty", empty)


@pytest.fixture(params=[np.float32, np.float64])
def backends(request, device):
    from softnum.train.engine.cuda_backend import CudaBackend

    return NumpyBackend(request.param), CudaBackend(request.param)


def numbers(dtype, *shape):
    """Numbers of which some are special and some equal in size; bits of NaNs differ."""
    rng = np.random.default_rng(sum(shape))
    x = rng.integers(-4, 5, shape).astype(dtype) / dtype(4)
    special = np.array(SPECIAL, np.float32).astype(dtype)
    places = rng.permutation(x.size)[: min(len(SPECIAL), x.size // 2)]
    x.reshape(-1)[places] = special[: len(places)]
    return x


def finite(dtype, *shape):
    return np.nan_to_num(numbers(dtype, *shape), posinf=3.0, neginf=-3.0)


def as_arrays(result):
    parts = result if isinstance(result, (tuple, list)) else [result]
    return [host(part) if hasattr(part, "shape") else np.asarray(part) for part in parts]


def same(backends, call):
    """A call gives the same arrays on both backends: shapes, types, bits. It is given a backend and what puts arrays
    where it keeps them."""
    from softnum.kernels.device.runtime.movement import upload

    numpy, cuda = backends
    wants = as_arrays(call(numpy, lambda x: x))
    results = as_arrays(call(cuda, upload))
    assert len(wants) == len(results)
    for want, got in zip(wants, results, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(
            *(np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(-1, x.itemsize) for x in (got, want))
        )


def averaged(b, up, t):
    return b.from_windows([up(numbers(t, 2, 3, 2, 3))] * 6, (2, 3, 4, 9), (2, 3), (2, 3))


WINDOWS = [((2, 2), (2, 2)), ((3, 2), (1, 2)), ((1, 1), (2, 1))]


def pooled(backend, up, t, window, stride):
    images = up(numbers(t, 2, 3, 5, 4))
    parts = backend.windows(images, window, stride)
    best, chosen = backend.largest(parts)
    apart = stride[0] >= window[0] and stride[1] >= window[1]
    spread = backend.from_windows([best] * (window[0] * window[1] if apart else 1), (2, 3, 5, 4), window, stride)
    return [parts, best, chosen, backend.where_equal(chosen, 0, best), spread]


#: method -> calls that try it; each is given the backend, what puts an array there, and the carrier
CALLS = {
    "add": [lambda b, up, t: b.add(up(numbers(t, 7, 9)), up(numbers(t, 7, 9)[::-1].copy()))],
    "all_finite": [
        lambda b, up, t: b.all_finite(up(numbers(t, 40))), lambda b, up, t: b.all_finite(up(finite(t, 40))),
        lambda b, up, t: b.all_finite(up(finite(t, 0))),
    ],
    "argmax": [lambda b, up, t: b.argmax(up(numbers(t, 6, 5)))],
    "array": [lambda b, up, t: b.array(numbers(t, 3, 2))],
    "choose": [
        *(lambda b, up, t, x=x: b.choose(numbers(t, 1, 5) > 0, up(numbers(t, 4, 5)), x) for x in (-np.inf, 0.0, -0.0)),
        lambda b, up, t: b.choose(up(numbers(t, 4, 5) > 0), up(numbers(t, 4, 5)), up(numbers(t, 4, 1))),
    ],
    "clamp": [lambda b, up, t: b.clamp(up(numbers(t, 50)), 0.3)],
    "concatenate": [
        lambda b, up, t: b.concatenate([up(numbers(t, 2, n, 3)) for n in (1, 0, 4)], 1),
        lambda b, up, t: b.concatenate([up(numbers(t, 2, 3)), numbers(t, 2, 1)], -1),
    ],
    "divide": [lambda b, up, t, d=d: b.divide(up(numbers(t, 40)), d) for d in (1.0, 3.0, 1024.0)],
    "double": [lambda b, up, t: b.double(up(numbers(t, 40)))],
    "expand": [
        lambda b, up, t, of=of, to=to: b.expand(up(numbers(t, *of)), to)
        for of, to in (((3, 1), (2, 3, 4)), ((4,), (4,)), ((1,), (0, 2)))
    ],
    "from_windows": [lambda b, up, t, w=w: pooled(b, up, t, *w) for w in WINDOWS] + [averaged],
    "join": [
        lambda b, up, t: b.join(up(numbers(t, 3, 4)), up(numbers(t, 2, 4))),
        lambda b, up, t: b.join(up(numbers(t, 3, 4)), up(numbers(t, 0, 4))),
    ],
    "kept": [lambda b, up, t, rate=rate: b.kept((3, 7), rate, (2**63 + 5, 2**63 + 77)) for rate in (0.0, 0.3, 0.99)],
    "kept_of_groups": [
        lambda b, up, t, axis=axis: [b.kept_of_groups(up(numbers(t, 6, 9)), 2, 4, axis)] for axis in (0, 1, -1)
    ],
    "kept_of_tensor": [
        lambda b, up, t, n=n: [kept := b.kept_of_tensor(up(numbers(t, 7, 11)), n), ~kept] for n in (1, 10, 40, 76, 77)
    ],
    "largest": [
        lambda b, up, t: b.largest(up(numbers(t, 5, 4, 3))),
        lambda b, up, t: b.largest([up(numbers(t, 4)), up(finite(t, 4))]),
    ],
    "negate": [lambda b, up, t: b.negate(up(numbers(t, 30)))],
    "neighbours": [lambda b, up, t, n=n: b.neighbours(up(numbers(t, n, 3))) for n in (1, 4, 7)],
    "ones": [lambda b, up, t: b.ones((3, 2)), lambda b, up, t: b.ones(())],
    "part": [lambda b, up, t: b.part(up(numbers(t, 6, 5)), slice(1, 4), slice(None, None))],
    "permute": [lambda b, up, t, a=axes: b.permute(up(numbers(t, 2, 3, 4)), a) for axes in [(2, 0, 1), (0, 1, 2)]],
    "pixels": [lambda b, up, t: b.pixels(up(numbers(t, 2, 3, 4, 5)))],
    "place": [lambda b, up, t: b.place(up(numbers(t, 3, 2)), (5, 4), slice(1, 4), slice(2, None))],
    "sign": [lambda b, up, t: b.sign(up(numbers(t, 60)))],
    "positive_part": [lambda b, up, t: b.positive_part(up(numbers(t, 60)))],
    "prune": [lambda b, up, t: b.prune(up(numbers(t, 9)), up(numbers(t, 9) > 0), Sparsity(top_k=0.5))],
    "put": [lambda b, up, t: b.put(up(numbers(t, 5, 3)), np.array([3, 0]), up(numbers(t, 2, 3)))],
    "put_rows": [lambda b, up, t: b.put_rows(up(numbers(t, 2, 3)), np.array([3, 0]), 5)],
    "reshape": [lambda b, up, t, to=to: b.reshape(up(numbers(t, 6, 4)), to) for to in ((-1,), (3, 8), (2, -1, 2))],
    "split": [
        lambda b, up, t: b.split(up(numbers(t, 6, 4)), [1, 2, 3], 0),
        lambda b, up, t: b.split(up(numbers(t, 2, 3, 4)), [3, 1], 2),
    ],
    "steps": [lambda b, up, t: b.steps(up(numbers(t, 3, 8)), 4)],
    "take": [
        lambda b, up, t: b.take(up(numbers(t, 5, 3)), np.array([[4, 0], [0, 2]])),
        lambda b, up, t: b.take(up(numbers(t, 5, 3)), np.zeros(0, np.int64)),
    ],
    "transpose": [lambda b, up, t: b.transpose(up(numbers(t, 5, 3)))],
    "where_positive": [lambda b, up, t: b.where_positive(up(numbers(t, 40)), up(numbers(t, 40)[::-1].copy()))],
    "zeros": [lambda b, up, t: b.zeros((2, 3)), lambda b, up, t: b.zeros((0, 3))],
}  # fmt: skip
CALLS["where_equal"] = CALLS["windows"] = CALLS["from_windows"]

#: methods that round to roles or compute in units, tried below; that wait, or are of blocks; that are one for all
_ELSEWHERE = {"axpy", "compute", "constant", "convolve", "matmul", "operate", "patches", "quantize", "sources"}
_ELSEWHERE |= {"block_ones", "check_room", "finish", "quantize_blocks", "quantize_flat", "total", "unchanged"}
_ELSEWHERE |= {"run_operator", "run_operator_backward"}
_ELSEWHERE |= {"magnitude", "matmul_scaled", "numbers", "quantize_scaled", "returned", "trusted"}


def test_the_methods_are_those_of_numpys_backend(device):
    from softnum.train.engine.cuda_backend import CudaBackend

    mine, theirs = public(CudaBackend), public(NumpyBackend)
    assert mine.keys() == theirs.keys() == CALLS.keys() | _ELSEWHERE | public(Binary64).keys()
    for name in theirs:
        assert inspect.signature(mine[name]) == inspect.signature(theirs[name]), name
        assert inspect.getdoc(mine[name]), name


#: those that put nothing but +0 between numbers: a format of all of them stays known
MOVES = {
    "choose", "concatenate", "expand", "from_windows", "join", "largest", "neighbours", "part", "permute", "pixels",
    "place", "positive_part", "prune", "put", "put_rows", "reshape", "split", "steps", "take", "transpose",
    "where_equal", "where_positive", "windows",
}  # fmt: skip


@cases("name", CALLS)
def test_a_format_stays_known_as_long_as_it_is_right(name, device):
    """Of one without -0 and with one NaN: to round to it would change other bits."""
    from softnum.kernels.device.runtime.movement import arrays_in, upload
    from softnum.train.engine.cuda_backend import CudaBackend

    role = RoleRounding(sn.format("e4m3fnuz"))
    backend, found = CudaBackend(np.float32), []

    def rounded(x):
        return backend.quantize(upload(x), role, None) if x.dtype == np.float32 else upload(x)

    for call in CALLS[name]:
        result = call(backend, rounded, np.float32)
        for x in arrays_in(result if isinstance(result, (tuple, list)) else [result]):
            found.append(x.format)
            if x.format is not None and x.dtype == np.float32:
                want = NumpyBackend().quantize(x.host(), role, None)
                np.testing.assert_array_equal(x.host().view(np.uint32), want.view(np.uint32))
    assert role.format in found or name not in MOVES


def test_what_lies_in_order_is_not_copied_and_not_written_to(device):
    from softnum.kernels import launches
    from softnum.kernels.device.runtime.movement import moved, upload
    from softnum.train.engine.cuda_backend import CudaBackend

    backend, values = CudaBackend(np.float32), numbers(np.float32, 5, 3)
    x, before = upload(values), launches()
    parts = [*backend.split(x, [2, 3], 0), backend.neighbours(x)[2], backend.part(x, slice(1, 4), slice(None)),
             backend.permute(upload(values.reshape(5, 1, 3)), (1, 0, 2)), moved(x, lambda a: a[2, 1:2])]  # fmt: skip
    assert launches() == before + 1  # the pairs of neighbours
    wants = [values[:2], values[2:], values[4:], values[1:4], values[None], values[2, 1:2]]
    for part, want in zip(parts, wants, strict=True):
        np.testing.assert_array_equal(part.host(), want)
    backend.put(parts[0], np.array([0]), upload(np.full((1, 3), 9, np.float32)))
    backend.put(x, np.array([0]), upload(np.full((1, 3), 9, np.float32)))
    np.testing.assert_array_equal(x.host(), values)
    assert moved(x, lambda a: a[::2]).host().tobytes() == values[::2].tobytes()


def test_a_step_of_an_update_is_a_launch(device):
    from softnum.kernels import launches
    from softnum.kernels.device.runtime.movement import upload
    from softnum.train.engine.cuda_backend import CudaBackend

    backend, x = CudaBackend(np.float32), upload(np.ones(3, np.float32))
    role = RoleRounding(sn.format("e6m9"), rounding="stochastic")
    for alpha in (0.5, 0.0, -0.0):
        backend.axpy(alpha, x, x, role, (1, 2)).host()
        before = launches()
        y = backend.axpy(alpha, x, x, role, (1, 2))
        assert launches() == before and y.numba is not None
        assert launches() == before + 1  # the number is there already
        zero = upload(np.float32([-0.0]))
        assert np.signbit(backend.axpy(alpha, zero, zero, role, (1, 2)).host()) == [not np.signbit(alpha)]
        assert y.format == role.format
    wide = upload(np.ones(3))
    before = launches()
    assert backend.quantize(wide, role, (1, 2)).numba.dtype == np.float32
    assert launches() == before + 1


def chained(b, up, order):
    """Six operations on arrays of one size and a channel's numbers, in the order in which their results are read."""
    t, role = b.dtype.type, RoleRounding(sn.format("e6m9"), rounding="stochastic", stochastic_bits=12)
    plain = RoleRounding(sn.format("e5m2"))
    x, y, channels, column = (
        up(sn.quantize(finite(t, *shape), "e5m2")) for shape in ((3, 2, 5, 3), (3, 2, 15), (2, 1, 1), (3, 1, 1, 1))
    )
    found = [b.operate("subtract", (x, channels), role, (7, 1))]
    found.append(b.operate("multiply", (found[0], found[0]), role, (7, 2)))
    found.append(b.where_positive(x, found[1]))
    found.append(b.axpy(-0.3, b.reshape(found[2], (3, 2, 15)), y, role, (7, 3)))
    found.append(b.quantize(b.divide(found[3], 3.0), plain, None))
    found.append(b.operate("add", (b.reshape(found[4], (3, 2, 5, 3)), column), plain, None))
    return [host(found[i]) for i in order]


@pytest.mark.parametrize("order", [(5, 4, 3, 2, 1, 0), (2, 5, 0), (5,), (0, 1, 2, 3, 4, 5), (3, 4)])
def test_what_waits_has_the_same_bits_whenever_it_is_read(order, backends):
    from softnum.kernels import launches

    before = launches()
    same(backends, lambda b, up: chained(b, up, order))
    if order[0] == 5 and backends[0].dtype == np.float32:  # in binary64, sums to e6m9 are by the definition
        assert launches() == before + 1


def test_what_waits_is_computed_when_there_is_much_of_it(backends):
    """More operations than a launch takes; parts that are not aligned; nothing; and what nobody reads any more."""
    from softnum.kernels import launches
    from softnum.kernels.device.elementwise.deferred import MOST_STEPS

    def long(b, up):
        x, made = b.part(up(np.arange(63, dtype=b.dtype).reshape(9, 7)), slice(1, 8), slice(None)), []
        for i in range(2 * MOST_STEPS + 3):
            x = b.negate(x) if i % 3 else b.add(x, x)
            made = [*made[-2:], x]
        return made

    before = launches()
    same(backends, long)
    assert launches() <= before + 6
    same(backends, lambda b, up: b.negate(b.add(up(numbers(b.dtype.type, 0, 3)), up(numbers(b.dtype.type, 1, 3)))))


def test_an_end_is_waited_for(backends):
    from softnum.kernels import launches
    from softnum.kernels.device.runtime.movement import upload

    backend = backends[1]
    x = backend.negate(upload(numbers(backend.dtype.type, 5)))
    before = launches()
    backend.finish()
    assert launches() == before + 1 and x.numba is not None and launches() == before + 1


def test_what_is_of_a_format_is_not_rounded_again(device):
    from softnum.kernels import launches
    from softnum.kernels.device.runtime.movement import upload
    from softnum.train.engine.cuda_backend import CudaBackend

    backend, narrow, wide = CudaBackend(np.float32), RoleRounding(sn.format("e4m3")), RoleRounding(sn.format("e5m2"))
    x = upload(numbers(np.float32, 20))
    for y in (backend.quantize(x, narrow, None), backend.operate("add", [x, x], narrow, None)):
        before = launches()
        assert backend.quantize(y, narrow, None) is y and launches() == before
        for role in (wide, RoleRounding(narrow.format, overflow="saturate")):  # the latter has no infinities
            assert backend.quantize(y, role, None) is not y
    product = backend.matmul(upload(np.ones((1, 1), np.float32)), upload(np.ones((1, 1), np.float32)),
                             sn.MadUnit("e4m3", operand="e4m3"), None, None)  # fmt: skip
    assert backend.quantize(product, narrow, None) is product
    none = RoleRounding(sn.format("e8m0fnu"))  # moving may put +0 beside its values
    assert backend.quantize(x, none, None).format is None


@pytest.mark.parametrize("name", CALLS)
def test_moves_and_choices(name, backends):
    for call in CALLS[name]:
        same(backends, lambda b, up, call=call: call(b, up, b.dtype.type))


@pytest.mark.parametrize("name", sorted({"part", "permute", "reshape", "steps", "choose", "concatenate", "take"}))
def test_what_the_host_has_stays_there_while_it_is_moved(name, device):
    from softnum.kernels import launches
    from softnum.train.engine.cuda_backend import CudaBackend

    before = launches()
    for call in CALLS[name]:
        result = call(CudaBackend(np.float32), lambda x: x, np.float32)
        assert all(isinstance(part, np.ndarray) for part in (result if isinstance(result, list) else [result]))
    assert launches() == before


@pytest.mark.parametrize(
    "geometry", [(1, 0, 1, 1), (2, 1, 1, 2), ((2, 1), (0, 2), (1, 2), 1)], ids=["plain", "groups", "uneven"]
)
def test_images_unfolded(geometry, backends):
    stride, padding, dilation, groups = geometry
    shape = shape_of("conv2d", 2, 4, 2, (5, 6), (3, 2), stride, padding, dilation, groups)
    same(backends, lambda b, up: b.patches(up(numbers(b.dtype.type, 2, 4, 5, 6)), shape))
    same(backends, lambda b, up: b.sources(up(numbers(b.dtype.type, 2, 2, *shape.result)), shape))


ROLES = [
    RoleRounding(sn.format("binary32")),
    RoleRounding(sn.format("e5m2")),
    RoleRounding(sn.format("e6m9"), rounding="stochastic", stochastic_bits=12),
    RoleRounding(sn.format("q4.4"), overflow="saturate"),
]


@pytest.mark.parametrize("role", ROLES, ids=lambda role: str(role.format))
def test_roundings_and_operations(role, backends):
    rounded = sn.quantize(finite(np.float64, 12), role.format)

    def operands(b, up):
        return up(rounded.astype(b.dtype).reshape(4, 3)), up(rounded[:3].astype(b.dtype))

    same(backends, lambda b, up: b.quantize(finite(np.float64, 3, 7), role, (7, 2**40)))
    same(backends, lambda b, up: b.quantize(up(finite(np.float32, 3, 7)), role, (7, 2**40)))
    same(backends, lambda b, up: b.operate("add", operands(b, up), role, (7, 5)))
    same(backends, lambda b, up: b.operate("sqrt", [up(np.abs(rounded).astype(b.dtype))], role, (7, 5)))
    same(backends, lambda b, up: b.compute("multiply", (b.constant(0.1), operands(b, up)[0]), role, (7, 5)))
    same(backends, lambda b, up: b.axpy(-0.3, *operands(b, up), role, (7, 6)))
    same(backends, lambda b, up: b.axpy(-0.3, up(b.constant(0.5)), up(np.array(2.0, b.dtype)), role, (7, 6)))


@pytest.mark.parametrize("role", ROLES, ids=lambda role: str(role.format))
@pytest.mark.parametrize("rows", [1, 2, 3, 11, 300])
def test_totals(role, rows, backends):
    """Of 300 rows, of which one waits at three levels, a launch adds up some levels and another the rest."""
    from softnum.kernels import launches

    keys = [(7, 2**40 + level) for level in range((rows - 1).bit_length())]
    for shape in ((rows, 2, 3), (rows,), (rows, 0)):
        x = sn.quantize(np.random.default_rng(rows).standard_normal(shape), role.format).astype(backends[0].dtype)
        before = launches()
        same(backends, lambda b, up, x=x: b.total(up(x), role, keys))
        assert launches() <= before + 2


def test_a_total_has_no_code(backends):
    role, x = ROLES[3], np.array([[1.0], [np.nan], [2.0]])
    for backend in backends:
        with pytest.raises(ValueError, match=r"q4\.4"):
            backend.total(backend.array(x), role, [None, None])


@pytest.mark.parametrize(
    "unit",
    [sn.MadUnit("e6m9", operand="e5m2"), sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=9)],
    ids=["nearest", "stochastic"],
)
def test_products_and_convolutions(unit, backends):
    key = (3, 9) if unit.stochastic else None

    def some(up, t, *shape):
        return up(sn.quantize(finite(np.float64, *shape), "e5m2").astype(t))

    start = lambda b, up: up(np.array([0.5, -1.0], b.dtype))  # noqa: E731
    same(backends, lambda b, up: b.matmul(some(up, b.dtype, 3, 5), some(up, b.dtype, 5, 2), unit, start(b, up), key))
    same(backends, lambda b, up: b.matmul(some(up, b.dtype, 2, 3, 5), some(up, b.dtype, 2, 5, 2), unit, None, key))
    geometry = {"stride": 2, "padding": 1, "groups": 1}
    x, w, dy = (2, 2, 4, 4), (2, 2, 3, 3), (2, 2, 2, 2)
    for name, a, b_, more in (
        ("forward", x, w, {}),
        ("backward_data", dy, w, {"size": (4, 4)}),
        ("backward_weight", x, dy, {"kernel": (3, 3)}),
    ):
        same(
            backends,
            lambda b, up, name=name, a=a, b_=b_, more=more: b.convolve(
                name, some(up, b.dtype, *a), some(up, b.dtype, *b_), unit, None, key, geometry | more
            ),
        )


def test_operators_of_the_users_own(backends):
    pytest.importorskip("lark")
    square = sn.operator("function (X) -> (Y) { Y = X * X; }")
    options = {"fmt": "e6m9", "rounding": "stochastic", "key": (3, 4)}

    def calls(b, up):
        x, error = (up(sn.quantize(finite(b.dtype.type, 3, n), "e6m9")) for n in (5, 5))
        y = b.run_operator(square, (x,), options)
        return [y, *b.run_operator_backward(square, (x,), (y,), (error,), options)]

    same(backends, calls)
    assert not backends[1].host_copies


def test_blocks(backends):
    """Rounded, turned and multiplied on the device, with sums of columns."""
    name = "mxfp8_e4m3"
    role, unit = RoleRounding(sn.format(name)), sn.BlockDotUnit("binary32", operand=name)

    def work(b, up):
        x, y = (b.quantize_blocks(up(finite(b.dtype.type, *shape)), role, 1, None) for shape in ((2, 40), (3, 40)))
        sums = b.matmul(b.block_ones((1, 40), role.format), y.swapaxes(0, 1), unit, None, None)
        return [b.matmul(x, y.swapaxes(-2, -1), unit, up(np.full(3, 0.5, b.dtype)), None), sums]

    same(backends, work)
    assert not backends[1].host_copies


@pytest.mark.parametrize("name", ["mxint8", "mxfp4", "nvfp4"])
def test_blocks_of_a_state(name, backends):
    """Along all elements, as values; of a format of single numbers as any other rounding."""
    if name == "nvfp4" and backends[0].dtype == np.float32:
        pytest.skip("its values have 30 bits")
    flat = RoleRounding(sn.format(name), "stochastic", stochastic_bits=8)
    for role in (flat, RoleRounding(sn.format("e5m2"))):
        same(backends, lambda b, up, role=role: b.quantize_flat(up(finite(b.dtype.type, 7, 11)), role, (1, 2)))
    assert not backends[1].host_copies
    values = backends[0].quantize_flat(finite(backends[0].dtype.type, 7, 11), RoleRounding(flat.format), None)
    want = sn.quantize(finite(backends[0].dtype.type, 7, 11).reshape(-1), name)
    assert np.array_equal(values.reshape(-1), want)


def test_blocks_without_a_kernel(backends):
    """Blocks whose sums round stochastically are multiplied on the host, and counted."""
    name = "mxfp8_e4m3"
    inner = sn.MadUnit("e6m9", operand="e4m3fn", rounding="sr")
    role, unit = RoleRounding(sn.format(name)), sn.BlockDotUnit("binary32", operand=name, inner=inner)

    def work(b, up):
        x, y = (b.quantize_blocks(up(finite(b.dtype.type, *shape)), role, 1, None) for shape in ((2, 40), (3, 40)))
        return b.matmul(x, y.swapaxes(-2, -1), unit, None, (1, 2))

    same(backends, work)
    assert backends[1].host_copies == {"matmul": 2}


def test_a_unit_without_a_kernel(backends):
    unit = BY_UNITS["promoted"]
    x, y = (sn.quantize(finite(backends[0].dtype.type, *shape), "e4m3fn") for shape in ((2, 19), (19, 3)))
    same(backends, lambda b, up: b.matmul(up(x), up(y), unit, None, None))
    assert backends[1].host_copies == {"matmul": 2}


def parts_of(scaled):
    """A Scaled as arrays."""
    return [scaled.elements, scaled.scales, *(() if scaled.tensor is None else (scaled.tensor[0],))]


def put(up, scaled):
    """A Scaled with its arrays where a backend keeps them."""
    tensor = None if scaled.tensor is None else (up(scaled.tensor[0]), scaled.tensor[1])
    return Scaled(up(scaled.elements), up(scaled.scales), scaled.block, tensor)


def wild(dtype, special, *shape):
    """Numbers of many magnitudes, one of them special."""
    rng = np.random.default_rng(sum(shape))
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, shape)).astype(dtype)
    if x.size:
        x.reshape(-1)[0], x.reshape(-1)[-1] = special, -0.0
    return x


ROUNDED = {"rounding": "stochastic", "stochastic_bits": 9}
#: quantizers whose elements kernels make
SCALES = {
    "tiles": BlockScaling("e4m3fn", (1, 8)),
    "squares": BlockScaling("e5m2", (4, 4), False),
    "rows": BlockScaling("e4m3fn", (1, None), False, 1e-12, "pytorch"),
    "tensor": TensorScaling("e4m3fn"),
    "tensor, fixed": TensorScaling("q4.4"),
    "mx": MXScaling("e4m3fn", (1, 3)),
    "mxfp4": MXFP4Scaling((2, 4)),
    "nvfp4": NVFP4Scaling(reference="jax"),
    "nvfp4 rows": NVFP4Scaling(rows=True),
    "nvfp4 stochastic": NVFP4Scaling((4, 4), **ROUNDED),
    "quest": QuestScaling((1, 8), "nearest_zero"),
    "tseng": TsengScaling((1, 8), **ROUNDED),
}
#: those that the host does
OF_THE_HOST = {
    "four over six": NVFP4Scaling(four_over_six="absolute"),
    "one's own": OwnScaling("mine", SCALES["tiles"], sn.format("e4m3fn")),
}


def role_of(scale, **options):
    rounding = getattr(scale, "rounding", "nearest_even")
    return RoleRounding(
        sn.format(scale.format), rounding, None, getattr(scale, "stochastic_bits", 32), scale=scale, **options
    )


@pytest.mark.slow
@cases("name", [*SCALES, *OF_THE_HOST])
def test_scales(name, device):
    """Edges, no numbers, stacks, what is no number; K along either axis, mixed by a transform or not."""
    from softnum.train.engine.cuda_backend import CudaBackend

    scale, of_host = (SCALES | OF_THE_HOST)[name], 0
    both = NumpyBackend(np.float32), CudaBackend(np.float32)
    for shape, special, hadamard in (
        ((5, 19), np.inf, None),
        ((1, 1), 3.0, None),
        ((0, 5), 0.0, None),
        ((3, 0), 0.0, Hadamard(4, 5)),
        ((2, 5, 7), 7.0, None),
        ((8, 8), np.nan, None),
        ((9, 10), 1.0, Hadamard(4, 5, "bfloat16")),
    ):
        if (not np.isfinite(special) and name == "tensor, fixed") or (scale.block == (None, None) and 0 in shape[:1]):
            continue
        role = role_of(scale, hadamard=hadamard)
        for axis in (None,) if scale.block == (None, None) else (-1, -2):
            same(both, lambda b, up, a=(shape, special), r=role, k=axis: parts_of(
                b.quantize_scaled(up(wild(np.float32, a[1], *a[0])), r, k, (7, 5))
            ))  # fmt: skip
            of_host += name in OF_THE_HOST
    assert both[1].host_copies.total() == of_host


def test_scales_of_binary64_are_of_its_numbers_in_binary32(device):
    from softnum.train.engine.cuda_backend import CudaBackend

    both = NumpyBackend(np.float64), CudaBackend(np.float64)
    role = role_of(SCALES["tiles"])
    same(both, lambda b, up: parts_of(b.quantize_scaled(up(wild(np.float64, 0.1, 5, 9)), role, -1, None)))


def test_a_number_without_a_code_is_an_error_as_on_the_host(backends):
    role = role_of(SCALES["tensor, fixed"])
    for backend in backends:
        with pytest.raises(ValueError, match=r"q4\.4"):
            backend.quantize_scaled(backend.array(np.array([[1.0, np.nan]])), role, None, None)


def test_delayed_scales_keep_a_state(device):
    from softnum.train.engine.cuda_backend import CudaBackend

    scale = DelayedScaling("e4m3fn", history=3)
    role, states = RoleRounding(sn.format("e4m3fn"), scale=scale), [scale.start(), scale.start()]
    both = NumpyBackend(), CudaBackend()
    for special in (3.0, np.inf, 5e4):
        x = wild(np.float32, special, 3, 4, 5)
        state = dict(zip(map(id, both), states, strict=True))
        same(both, lambda b, up, x=x, of=state: parts_of(b.quantize_scaled(up(x), role, None, None, of[id(b)])))
        for each in states:
            scale.update(each)
    assert states[0].history.tobytes() == states[1].history.tobytes() and states[0].scale == states[1].scale


BY_UNITS = {
    "steps": sn.MadUnit("binary32", operand="e4m3fn"),
    "chunks": sn.MadUnit("e6m9", operand="e4m3fn", chunk=4),
    "promoted": sn.ChunkedDotUnit(sn.unit("nvidia_h100_e4m3"), 12),
    "promoted otherwise": sn.ChunkedDotUnit(sn.unit("nvidia_h100_e4m3"), 4, rounding="toward_zero"),
    "exact": sn.ExactDotUnit("binary32", operand="e4m3fn"),
    "stochastic": sn.MadUnit("e6m9", operand="e4m3fn", rounding="stochastic", stochastic_bits=9),
}
LENGTHS = {
    "rows": BlockScaling("e4m3fn", (1, None)), "tiles": BlockScaling("e4m3fn", (1, 8), False),
    "squares": BlockScaling("e4m3fn", (8, 8)), "long": BlockScaling("e4m3fn", (2, 16), False),
}  # fmt: skip
PAIRS = [("rows", "rows"), ("tiles", "squares"), ("squares", "tiles"), ("long", "squares"), ("rows", "long")]
SIZES = [((), (), 2, 3, 19), ((2,), (2,), 2, 2, 16), ((), (2,), 2, 1, 9), ((), (), 1, 2, 0), ((), (), 0, 2, 5)]


@pytest.mark.slow
@cases("name", BY_UNITS)
def test_scaled_products(name, device, monkeypatch):
    """Of few blocks at a time, too; with and without a factor of the rows, of the tensor, and what is added."""
    from softnum.train.engine import cuda_scales
    from softnum.train.engine.cuda_backend import CudaBackend

    unit, both = BY_UNITS[name], (NumpyBackend(), CudaBackend())
    for i, (sizes, pair) in enumerate((sizes, pair) for sizes in SIZES for pair in PAIRS):
        if name not in ("steps", "stochastic") and i % 2:  # half of them: each size, and each pair
            continue
        monkeypatch.setattr(cuda_scales, "_MOST", (1, 2**20)[i % 2])
        *leads, m, n, k = sizes
        operands = []
        for lead, rows, quantizer in zip(leads, (m, n), pair, strict=True):
            role = RoleRounding(sn.format("e4m3fn"), scale=LENGTHS[quantizer])
            x = wild(np.float32, (1.0, np.inf)[i % 3 == 0], *lead, rows, k)
            x = both[0].quantize_scaled(x, role, -1, None)
            amax = wild(np.float32, 3.0, *((rows, 1) if i % 2 else (1, 1)))
            operands.append(x._replace(tensor=(np.abs(amax), 448.0)) if i % 3 and not lead else x)
        c = wild(np.float32, 0.5, n) if i % 2 else None
        key = (3, 2**40) if unit.stochastic else None
        same(both, lambda b, up, x=operands, c=c, k=key: b.matmul_scaled(
            put(up, x[0]), put(up, x[1]), unit, None if c is None else up(c), k
        ))  # fmt: skip
    assert bool(both[1].host_copies) == (name == "promoted otherwise")


def test_what_is_known_to_be_rounded_is_not_read_again(device):
    """Operands that the backend rounded itself; others are read, and refused where a value is none of the format."""
    from softnum.kernels import launches
    from softnum.kernels.device.runtime.movement import upload
    from softnum.train.engine.cuda_backend import CudaBackend

    backend, unit, role = CudaBackend(), sn.unit("nvidia_h100_e4m3"), RoleRounding(sn.format("e4m3fn"))
    a, b = (backend.quantize(upload(wild(np.float32, 1.0, *shape)), role, None) for shape in ((3, 40), (40, 2)))
    counts, results = [], []
    for known in (True, True, False):
        if not known:
            a.format = b.format = None
        a.flat, b.flat  # noqa: B018  computed before they are counted
        before = launches()
        results.append(backend.matmul(a, b, unit, None, None).host().tobytes())
        counts.append(launches() - before)
    assert results[0] == results[1] == results[2]
    assert counts[1] + 2 == counts[2]
    with pytest.raises(ValueError, match=r"is no value of e4m3fn"):
        backend.matmul(upload(np.full((1, 40), 1.1, np.float32)), b, unit, None, None)


def test_few_launches_of_scaled_products(device):
    """Sums of all blocks are one launch, and what scales and adds them is another."""
    from softnum.kernels import launches
    from softnum.kernels.device.runtime.movement import upload
    from softnum.train.engine.cuda_backend import CudaBackend

    backend, role = CudaBackend(), RoleRounding(sn.format("e4m3fn"), scale=LENGTHS["tiles"])
    x = upload(wild(np.float32, 1.0, 3, 64))
    backend.quantize_scaled(x, role, -1, None)
    before = launches()
    made = backend.quantize_scaled(x, role, -1, None)
    assert made.elements.numba is not None and launches() == before + 3  # zeros, magnitudes, elements
    unit = sn.MadUnit("e6m9", operand="e4m3fn")
    backend.matmul_scaled(made, made, unit, None, None)
    before = launches()
    backend.matmul_scaled(made, made, unit, None, None)
    assert launches() <= before + 8


def test_numbers_of_scales_and_gradients_that_are_trusted(backends):
    rng = np.random.default_rng(0)
    for name, shape in (("nvfp4", (3, 20)), ("squares", (2, 5, 7)), ("nvfp4 rows", (2, 3, 18)), ("tensor", (3, 4))):
        axis = None if name == "tensor" else -1
        x = backends[0].quantize_scaled(wild(np.float32, np.nan, *shape), role_of(SCALES[name]), axis, None)
        same(backends, lambda b, up, x=x: b.numbers(put(up, x)))
    x, gradient = (rng.standard_normal((5, 12)).astype(backends[0].dtype) * 4 for _ in range(2))
    for axis in (-1, -2):
        for hadamard in (None, Hadamard(4, 9)):
            scale = QuestScaling((1, 4))
            masks = [b.trusted(b.array(x), scale, hadamard, axis) for b in backends]
            mask = dict(zip(map(id, backends), masks, strict=True))
            assert 0 < host(masks[0]).mean() < 1
            same(backends, lambda b, up, a=(scale, hadamard, axis): b.trusted(up(x), *a))
            same(backends, lambda b, up, a=(scale, hadamard, axis): b.trusted(up(wild(np.float32, np.nan, 3, 9)), *a))
            same(backends, lambda b, up, a=(hadamard, axis), of=mask: b.returned(up(gradient), of[id(b)], *a))
    assert not backends[1].host_copies


def test_an_array_on_the_device_is_never_the_hosts_by_accident(device):
    from softnum.kernels.device.runtime.movement import rows_put, rows_taken, upload

    x = upload(np.float32([[1, 2]]))
    assert (x.shape, x.ndim, x.size, len(x), repr(x)) == ((1, 2), 2, 2, 1, "DeviceArray(float32, (1, 2))")
    with pytest.raises(TypeError, match="copy it to the host first"):
        np.asarray(x)
    with pytest.raises(TypeError):
        x + x
    with pytest.raises(TypeError, match="takes a mask"):
        _ = ~x
    with pytest.raises(IndexError):
        rows_taken(x, np.array([1]))
    with pytest.raises(IndexError):
        rows_put(x, np.array([-2]), x)


@cases("source", ["lfsr32", "philox4x32-7/4", "philox4x32-3@transformer_engine"])
def test_sources_of_random_bits(backends, source):
    """Numbers are rounded by the bits of a role's source on both backends; what is computed and rounded at once has the
    default's alone, and says so."""
    from softnum.kernels.device.runtime.movement import upload

    def role(fmt, scale=None):
        return RoleRounding(sn.format(fmt), "stochastic", None, 8, source, scale=scale)

    narrow, blocks, key = role("e5m2"), role("mxfp8_e4m3"), (1, 65536)
    scaled = role("e2m1fn", NVFP4Scaling(rounding="stochastic", stochastic_bits=8))
    dtype = backends[0].dtype.type
    x = finite(dtype, 16, 48) * dtype(1.1)

    def codes(found):
        return [found.codes, found.scales]

    same(backends, lambda b, up: b.quantize(up(x), narrow, key))
    same(backends, lambda b, up: codes(b.quantize_blocks(up(x), blocks, -1, key)))
    same(backends, lambda b, up: b.quantize_flat(up(x), blocks, key))
    for rounding in (
        lambda b, x: b.operate("add", (x, x), narrow, key),
        lambda b, x: b.axpy(0.1, x, x, narrow, key),
        lambda b, x: b.total(x, narrow, [key] * 4),
        lambda b, x: b.quantize_scaled(x, scaled, -1, key),
    ):
        with pytest.raises(ValueError, match=f"random='{source}' is not supported here"):
            rounding(backends[1], upload(x))
