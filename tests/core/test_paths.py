"""One suite for every path: the same bits whatever the instruction set, the threads, and the arrays' place in memory.

What is compared with is the portable path on plain contiguous arrays, in one thread. Through the public functions
alone, so that a fast path is covered as soon as it is taken.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import softnum as sn
from softnum.formats.names import format as format_of
from softnum.ops import CODE_OPERATIONS
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits, edge_codes

ISAS = _core.available_isas()
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257, 1000, 4097]
FORMATS = ["e4m3fn", "e5m2", "e2m1fn", "q4.4", "binary16", "bfloat16", "q8.8", "tf32", "binary32", "q16.16", "binary64"]
MODES = ["nearest_even", "up", "to_odd", "stochastic", "stochastic_floor"]


@pytest.fixture(params=ISAS)
def path(request):
    """Each instruction set in turn."""
    before = _core.current_isa()
    _core.use_isa(request.param)
    yield request.param
    _core.use_isa(before)


def portable(function):
    before = _core.current_isa()
    _core.use_isa("portable")
    try:
        return function()
    finally:
        _core.use_isa(before)


def drawn(fmt, n: int, seed: int) -> np.ndarray:
    """n codes: edges and random ones in turn."""
    fmt = format_of(fmt)
    rng = np.random.Generator(np.random.Philox(seed))
    codes = rng.integers(0, 1 << 63, n, dtype=np.uint64) * 2 + rng.integers(0, 2, n, dtype=np.uint64)
    codes >>= np.uint64(64 - fmt.bits)
    edges = edge_codes(fmt).astype(np.uint64)
    return np.where(rng.random(n) < 0.5, codes, edges[rng.integers(0, len(edges), n)]).astype(fmt.storage_dtype)


def values(n: int, dtype, seed: int) -> np.ndarray:
    """Numbers of every size: small, subnormal, huge, ties, zeros, infinities."""
    rng = np.random.Generator(np.random.Philox(seed))
    exponents = rng.integers(-150, 124, n) * (rng.random(n) < 0.4)
    x = np.ldexp(rng.integers(-512, 513, n) / 64.0, exponents).astype(dtype)
    x[rng.random(n) < 0.02] = np.inf
    x[rng.random(n) < 0.02] = -0.0
    return x


# -- where an array lies -----------------------------------------------------------------------------------------------
def layouts(x: np.ndarray) -> dict[str, np.ndarray]:
    """Views with the values of a one-dimensional x, in x's order."""
    size = x.itemsize

    def unaligned(n):
        buffer = np.zeros(x.nbytes + 64, np.uint8)
        view = buffer[n : n + x.nbytes].view(x.dtype)
        view[...] = x
        return view

    spread = np.zeros(3 * len(x), x.dtype)
    spread[::3] = x
    inner = np.zeros((len(x), 2), x.dtype)
    inner[:, 1] = x
    out = {
        "contiguous": x.copy(), "strided": spread[::3], "column": inner[:, 1], "reversed": x[::-1].copy()[::-1],
        "shifted": unaligned(size), "read-only": x.copy(),
    }  # fmt: skip
    if size > 1:
        out["unaligned"] = unaligned(1)
        out["big-endian"] = x.astype(x.dtype.newbyteorder(">"))
        out["unaligned and strided"] = np.zeros(2 * x.nbytes + 1, np.uint8)[1:].view(x.dtype)[::2]
        out["unaligned and strided"][...] = x
    out["read-only"].flags.writeable = False
    return out


def plain_bits(a) -> bytes:
    a = np.asarray(a)
    return np.ascontiguousarray(a, a.dtype.newbyteorder("=")).tobytes()


def same(got, want, *context) -> None:
    """Compare arrays, or pairs of arrays, bit for bit."""
    if isinstance(want, tuple):
        for mine, theirs in zip(got, want, strict=True):
            same(mine, theirs, *context)
        return
    assert got.shape == want.shape and got.dtype == want.dtype, (got.dtype, want.dtype, got.shape, want.shape, *context)
    assert plain_bits(got) == plain_bits(want), context


def stated(fmt) -> dict:
    return {} if format_of(fmt).has_nan else {"invalid": 0}


# -- values and codes --------------------------------------------------------------------------------------------------
def conversions(fmt, dtype, mode):
    """quantize, encode, decode as functions of one array."""
    options = {"rounding": mode, "key": (3, 4), "stochastic_bits": 11} if "stochastic" in mode else {"rounding": mode}
    options |= stated(fmt)
    yield "quantize", lambda x: sn.quantize(x, fmt, **options)
    yield "encode", lambda x: sn.encode(x, fmt, **options)


def carriers(fmt):
    return [d for d in (np.float32, np.float64) if d == np.float64 or fmt not in ("binary64", "q16.16")]


@cases("mode", MODES)
@cases("fmt", FORMATS)
def test_values_at_every_length(fmt, mode, path):
    """Lengths on both sides of every vector width; a key's words go by the element, not by the length."""
    for dtype in carriers(fmt):
        x = values(LENGTHS[-1], dtype, 1)
        for name, function in conversions(fmt, dtype, mode):
            want = portable(lambda f=function, x=x: f(x))
            for n in LENGTHS:
                same(function(x[:n].copy()), want[:n], name, fmt, mode, n)


@cases("mode", ["nearest_even", "stochastic"])
@cases("fmt", FORMATS)
def test_values_in_every_layout(fmt, mode, path):
    for dtype in carriers(fmt):
        x = values(331, dtype, 2)
        for name, function in conversions(fmt, dtype, mode):
            want = portable(lambda f=function, x=x: f(x))
            for layout, view in layouts(x).items():
                same(function(view), want, name, fmt, layout)
            square = x[:324].reshape(18, 18)
            want = portable(lambda f=function, s=square: f(s))
            same(function(np.asfortranarray(square)), want, name, "Fortran order")
            if mode == "nearest_even":
                same(function(square.T), want.T, name, "transposed")
                same(function(np.broadcast_to(x[:7], (5, 7))), np.broadcast_to(function(x[:7]), (5, 7)), name)
            assert function(x[3]).shape == () and plain_bits(function(x[:1])[0]) == plain_bits(function(x[0]))
            assert function(x[:0].reshape(0, 4)).shape == (0, 4)


@cases("fmt", FORMATS)
def test_codes_decoded(fmt, path):
    for dtype in carriers(fmt):
        codes = drawn(fmt, LENGTHS[-1], 3)
        want = portable(lambda c=codes, d=dtype: sn.decode(c, fmt, d))
        for n in LENGTHS:
            same(sn.decode(codes[:n].copy(), fmt, dtype), want[:n], fmt, n)
        for layout, view in layouts(codes[:331]).items():
            same(sn.decode(view, fmt, dtype), want[:331], fmt, layout)
        assert sn.decode(codes[5], fmt, dtype).shape == ()


@pytest.mark.parametrize("fmt", ["e4m3fn", "q4.4", "bfloat16", "tf32"])
def test_quantize_over_its_own_memory(fmt, path):
    """out= before, behind, upon and beside the source, and reversed."""
    for dtype in (np.float32, np.float64):
        x = values(700, dtype, 4)
        want = portable(lambda x=x: sn.quantize(x, fmt, **stated(fmt)))
        for shift in (0, 1, 3, 8, 16, 64, 255):
            for first, second in ((0, shift), (shift, 0)):
                buffer = np.zeros(len(x) + shift, dtype)
                buffer[first : first + len(x)] = x
                source, out = buffer[first : first + len(x)], buffer[second : second + len(x)]
                assert sn.quantize(source, fmt, out=out, **stated(fmt)) is out
                same(out.copy(), want, fmt, dtype, first, second)
        buffer = x.copy()
        sn.quantize(buffer, fmt, out=buffer[::-1], **stated(fmt))
        same(buffer[::-1].copy(), want, fmt, "reversed")
        wide = np.zeros(2 * len(x), dtype)
        sn.quantize(x, fmt, out=wide[1::2], **stated(fmt))
        same(wide[1::2].copy(), want, fmt, "strided out")
        assert not wide[::2].any()


# -- operations --------------------------------------------------------------------------------------------------------
# of the elementary functions, which have no path of their own, some
EVALUATED = _core.ELEMENTARY - {"exp", "gelu", "pow"}
ALL_OPERATIONS = [
    *(name for name in CODE_OPERATIONS if name not in EVALUATED),
    "scalb",
    "compare",
    "total_order",
    "classify",
]


def calls(name: str, fmt: str, mode: str):
    """(how many operands, functions of them): with and without flags."""
    operands = {"compare": 2, "total_order": 2, "scalb": 1, "classify": 1}.get(name) or CODE_OPERATIONS[name][1]
    options = {"rounding": mode} | stated(fmt)
    if "stochastic" in mode:
        options |= {"key": 9, "stochastic_bits": 7}
    function = getattr(sn.ops, name)
    if name in ("total_order", "classify"):
        return operands, [lambda *c: function(*c, fmt)]
    if name == "compare":
        return operands, [lambda *c: function(*c, fmt), lambda *c: function(*c, fmt, return_flags=True)]
    if name == "scalb":
        return operands, [lambda a: function(a, np.int64(-3), fmt, return_flags=True, **options)]
    if name == "convert":
        target = "e5m2" if fmt != "e5m2" else "e4m3fn"
        options.pop("invalid", None)
        return operands, [
            lambda a, more=more: sn.convert(a, fmt, target, **options, **more) for more in ({}, {"return_flags": True})
        ]
    return operands, [
        lambda *c: function(*c, fmt, **options), lambda *c: function(*c, fmt, return_flags=True, **options),
    ]  # fmt: skip


@cases("name", ALL_OPERATIONS)
@cases("fmt", FORMATS)
def test_operations_at_every_length(fmt, name, path):
    modes = MODES if name in ("add", "multiply", "fma", "convert") else MODES[::3]
    for mode in modes:
        operands, functions = calls(name, fmt, mode)
        codes = [drawn(fmt, LENGTHS[-1], 5 + i) for i in range(operands)]
        for function in functions:
            want = portable(lambda f=function, c=codes: f(*c))
            for n in LENGTHS if mode == MODES[0] else LENGTHS[::6]:
                short = tuple(w[:n] for w in want) if isinstance(want, tuple) else want[:n]
                same(function(*(c[:n].copy() for c in codes)), short, name, fmt, mode, n)


@cases("name", ALL_OPERATIONS)
@cases("fmt", FORMATS)
def test_operations_in_every_layout(fmt, name, path):
    for mode in ("nearest_even", "stochastic"):
        operands, functions = calls(name, fmt, mode)
        codes = [drawn(fmt, 331, 15 + i) for i in range(operands)]
        every = [list(layouts(c).items()) for c in codes]
        for function in functions:
            want = portable(lambda f=function, c=codes: f(*c))
            for i in range(len(every[0])):  # each operand in another layout
                views = [each[(i + 2 * j) % len(each)] for j, each in enumerate(every)]
                same(function(*(v for _, v in views)), want, name, fmt, mode, [layout for layout, _ in views])


@cases("name", [n for n in ALL_OPERATIONS if calls(n, "e4m3fn", "up")[0] > 1])
@cases("fmt", FORMATS)
def test_operations_that_broadcast(fmt, name, path):
    operands, functions = calls(name, fmt, "up")
    codes = [drawn(fmt, 35, 25 + i) for i in range(operands)]
    a = [codes[0].reshape(5, 1, 7), codes[1][:5].reshape(1, 5, 1)] + [c[:7] for c in codes[2:]]
    for function in functions:
        full = [np.broadcast_to(x, (5, 5, 7)).copy() for x in a]
        want = portable(lambda f=function, c=full: f(*c))
        same(function(*a), want, name, fmt)
        same(function(*full[:1], *a[1:]), want, name, fmt)
        scalar = [x.ravel()[0] for x in a]
        one = function(*scalar)
        first = want if not isinstance(want, tuple) else want[0]
        assert plain_bits(one[0] if isinstance(one, tuple) else one) == plain_bits(first.ravel()[0])


@cases("name", ["add", "multiply", "fma", "sqrt", "minimum", "negate"])
@cases("fmt", ["e4m3fn", "binary16", "binary32", "binary64"])
def test_ufuncs_over_their_own_memory(fmt, name, path):
    """In-place operators of Array, and operands that overlap each other."""
    operands, functions = calls(name, fmt, "nearest_even")
    codes = drawn(fmt, 700, 35)
    views = [codes[i * 3 : i * 3 + 600] for i in range(operands)]
    for function in functions:
        want = portable(lambda f=function: f(*(v.copy() for v in views)))
        before = codes.copy()
        same(function(*views), want, name, fmt)
        assert np.array_equal(codes, before)


@cases("fmt", FORMATS)
def test_many_threads_at_once(fmt, path):
    """The same calls from eight threads, interleaved, give what one thread gives."""
    jobs = []
    for name in ("add", "multiply", "fma", "divide", "sqrt"):
        operands, functions = calls(name, fmt, "stochastic")
        codes = [drawn(fmt, 3000, 45 + i) for i in range(operands)]
        jobs += [lambda f=function, c=codes: f(*c) for function in functions]
    x = values(3000, np.float64, 46)
    jobs += [lambda f=function: f(x) for _, function in conversions(fmt, np.float64, "stochastic")]
    want = [portable(job) for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda job: job(), [job for _ in range(4) for job in jobs]))
    for mine, theirs in zip(got, itertools.cycle(want)):
        same(mine, theirs, fmt)


# -- matmul ------------------------------------------------------------------------------------------------------------
UNITS = [
    sn.MadUnit("e6m9", operand="e5m2"),
    sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=12),
    sn.MadUnit("e5m2", operand="e5m2", product="e5m2", rounding="up", chunk=5),
    sn.MadUnit("binary16", operand="e4m3fn"),
    sn.MadUnit("q8.16", operand="q4.4"),
    sn.MadUnit("binary32", operand="bfloat16", chunk=8),
]


@cases("unit", UNITS, ids=str)
def test_matmul_in_every_layout(unit, path):
    rng = np.random.Generator(np.random.Philox(55))
    key = {"key": (5, 6)} if unit.stochastic else {}
    dtype = np.float32
    for m, k, n in ((1, 1, 1), (3, 17, 5), (16, 33, 31), (33, 8, 65), (0, 3, 4), (4, 0, 3)):
        a, b = (
            sn.quantize(rng.normal(0, 2, shape).astype(dtype), f, overflow="saturate")
            for shape, f in (((m, k), unit.operand[0]), ((k, n), unit.operand[1]))
        )
        want = portable(lambda a=a, b=b: sn.matmul(a, b, unit, threads=1, **key))
        for threads in (1, 2, 7):
            assert_same_bits(sn.matmul(a, b, unit, threads=threads, **key), want, unit, threads)
        spread = np.zeros((2 * m, 3 * k), dtype)
        spread[::2, ::3] = a
        buffer = np.zeros(b.nbytes + 1, np.uint8)[1:].view(dtype).reshape(b.shape)
        buffer[...] = b
        others = [
            (spread[::2, ::3], np.asfortranarray(b)), (a[::-1].copy()[::-1], buffer),
            (np.asfortranarray(a), b.astype(b.dtype.newbyteorder(">"))), (a.T.copy().T, b[:, ::-1].copy()[:, ::-1]),
        ]  # fmt: skip
        for left, right in others:
            assert_same_bits(sn.matmul(left, right, unit, threads=2, **key), want, unit)
        out = np.zeros_like(want)
        assert sn.matmul(a, b, unit, out=out, **key) is out
        assert_same_bits(out, want, unit)


def test_the_comparison_catches_a_planted_fault():
    """One bit of one element."""
    x = values(100, np.float32, 1)
    want = sn.quantize(x, "bfloat16")
    got = want.copy()
    got.view(np.uint32)[17] ^= 1
    with pytest.raises(AssertionError):
        same(got, want)
