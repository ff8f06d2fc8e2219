"""Operations on values without codes between: the bits of the same operation on codes, whichever way computes them."""

from __future__ import annotations

import numpy as np
import pytest

import softnum as sn
from softnum.arrays.environment import environment
from softnum.formats.names import format as format_of
from softnum.ops.values import carried, carry
from softnum.runtime import _core
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits, on_every_isa
from tests.support.format_lists import FORMATS

OPERANDS = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "fma": 3, "sqrt": 1}
MODES = ("nearest_even", "nearest_away", "toward_zero", "up", "down", "to_odd", "stochastic", "stochastic_floor")
OF_8_BITS = ("e5m2", "e4m3fn", "e4m3fnuz", "e3m4", "e4m3", "q4.4", "uq4.4", "binary8p3se", "binary8p4sf", "e8m0fnu")
KEY, BITS = (3, 2**40 + 7), 12
SPECIAL = np.uint32(
    [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 1, 0x807FFFFF, 0x00800000, 0x7F7FFFFF,
     0xFF7FFFFF, 0x3F800000, 0xBF800001, 0x34000000]
)  # fmt: skip


def values_of(fmt, count: int, seed: int) -> np.ndarray:
    """Values of a format as float32: of random codes, and those near 1, so that sums cancel and round."""
    rng = np.random.Generator(np.random.Philox(seed))
    near = (rng.normal(size=count) * np.exp2(rng.integers(-12, 12, count))).astype(np.float32)
    if fmt == format_of("binary32"):
        codes = rng.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32)
        codes[::16] = rng.choice(SPECIAL, len(codes[::16]))
    else:
        codes = rng.integers(0, 2**fmt.bits, count, dtype=np.uint64).astype(fmt.storage_dtype)
    decoded = sn.decode(codes, fmt, np.float32)
    near = sn.quantize(near, fmt, overflow="saturate") if fmt.has_zero and fmt.signed else decoded
    return np.where(rng.random(count) < 0.5, decoded, near)


def by_codes(name, operands, formats, out, mode, key=KEY):
    """The definition's way: codes in, codes out; None where a result has no code."""
    codes = [sn.encode(x, fmt) for x, fmt in zip(operands, formats, strict=True)]
    random = {"key": key, "stochastic_bits": BITS} if mode.startswith("stochastic") else {}
    try:
        result = getattr(sn.ops, name)(*codes, formats, out_fmt=out, rounding=mode, **random)
    except ValueError:
        return None
    return sn.decode(result, out, np.float32)


def check(name, formats, out, mode, operands) -> bool:
    """Compare on every instruction set; whether values are computed at all."""
    operation = carried(name, formats, out, mode, None, BITS)
    if operation is None:
        return False
    want = by_codes(name, operands, formats, out, mode)
    for isa in on_every_isa():
        got = carry(operation, operands, KEY)
        assert (got is None) == (want is None), (name, mode, isa)
        if got is not None:
            assert_same_bits(got, want, name, str(formats[0]), str(out), mode, isa)
    return True


@cases("name", OPERANDS)
@cases("mode", MODES)
def test_formats_of_every_kind(name, mode):
    """Operands of a format, results of the same and of binary32; operands of binary32, results of the format."""
    own, computed = format_of("binary32"), 0
    for number, fmt in enumerate(FORMATS):
        for taken, out in ((fmt, fmt), (fmt, own), (own, fmt)):
            operands = tuple(values_of(taken, 400, 97 * number + k) for k in range(OPERANDS[name]))
            computed += check(name, (taken,) * OPERANDS[name], out, mode, operands)
    assert computed > 25


@cases("name", ["add", "subtract", "multiply", "divide"])
@cases("mode", ["nearest_even", "down", "to_odd"])
def test_all_pairs_of_8_bits(name, mode):
    computed = 0
    for fmt in map(format_of, OF_8_BITS):
        every = sn.decode(np.arange(2**fmt.bits).astype(fmt.storage_dtype), fmt, np.float32)
        numbers = every[np.isfinite(every)] if name == "divide" else every
        operands = tuple(np.ascontiguousarray(x.ravel()) for x in np.meshgrid(numbers, numbers))
        if name == "divide" and not fmt.has_nan:
            operands = tuple(x[operands[1] != 0] for x in operands)
        computed += check(name, (fmt, fmt), fmt, mode, operands)
    assert computed >= 4


def test_all_triples_of_4_bits():
    for fmt in map(format_of, ("e2m1fn", "q2.2", "uq1.3")):
        every = sn.decode(np.arange(16).astype(np.uint8), fmt, np.float32)
        operands = tuple(np.ascontiguousarray(x.ravel()) for x in np.meshgrid(every, every, every))
        assert check("fma", (fmt,) * 3, fmt, "nearest_even", operands)


def test_all_roots_of_16_bits():
    for fmt in map(format_of, ("binary16", "bfloat16", "e6m9")):
        every = sn.decode(np.arange(2**16).astype(np.uint16), fmt, np.float32)
        assert check("sqrt", (fmt,), fmt, "nearest_even", (every,))


@cases("mode", ["nearest_even", "stochastic"])
def test_shapes_strides_and_blocks(mode):
    """Operands that broadcast, of any strides, longer than a block, and none."""
    fmt = format_of("e6m9")
    x = values_of(fmt, 6 * 5 * 40 * 3, 1).reshape(6, 5, 40, 3)
    shapes = [
        (x, x[0, :, :, :1]), (x[:, :, ::3], x[:1, :, ::3]), (x.transpose(3, 0, 2, 1), x[0, :, 0, 0]), (x, x[..., ::-1]),
        (np.asarray(x[0, 0, 0, 0]), x[:, 0].swapaxes(0, 2)), (x[0, 0, 0, :1], np.asarray(x[1, 1, 1, 1])),
        (x[:, :, :, 0].reshape(-1), np.full(1, 0.5, np.float32)),
    ]  # fmt: skip
    for operands in shapes:
        both = tuple(np.ascontiguousarray(part) for part in np.broadcast_arrays(*operands))
        operation = carried("add", (fmt, fmt), fmt, mode, None, BITS)
        got, want = carry(operation, operands, KEY), by_codes("add", both, (fmt, fmt), fmt, mode)
        assert_same_bits(got, want.reshape(got.shape))
        assert got.shape == np.broadcast_shapes(*(part.shape for part in operands))


def test_long_arrays_by_threads(monkeypatch):
    monkeypatch.setenv("SOFTNUM_THREADS", "3")
    fmt = format_of("e6m9")
    x = np.resize(values_of(fmt, 5000, 1), 2 * _core.GRAIN + 5)
    operation = carried("add", (fmt, fmt), fmt, "stochastic", None, BITS)
    got, whole = carry(operation, (x, x[:1]), KEY), operation((x, x[:1]), KEY)
    assert_same_bits(got, whole)
    part = slice(2 * _core.GRAIN - 7, None)
    words = np.empty(x.size, np.uint32)
    _core.elementwise_words(_core.philox_key(*KEY, 0), words, 0, x.size)
    codes = sn.encode(x, fmt)
    want = sn.add(
        codes[part], np.full_like(codes[part], codes[0]), fmt, rounding="stochastic", stochastic_bits=BITS,
        random_bits=words[part],
    )  # fmt: skip
    assert_same_bits(got[part], sn.decode(want, fmt, np.float32))


def test_what_is_left_to_codes():
    e5m2, wide = format_of("e5m2"), format_of("binary64")
    own = sn.CustomFormat.from_table(np.arange(-8.0, 8.0))
    assert carried("add", (wide, wide), wide, "nearest_even", None, 32) is None
    assert carried("add", (own, own), own, "nearest_even", None, 32) is None
    assert carried("exp", (e5m2,), e5m2, "nearest_even", None, 32) is None
    fixed = format_of("q4.4")
    assert carried("add", (fixed, fixed), fixed, "nearest_even", "wrap", 32) is None
    operation = carried("add", (e5m2, e5m2), e5m2, "stochastic", None, BITS)
    x = np.ones(4, np.float32)
    assert operation((x, x), None) is None  # words without a key
    assert operation((x, x.astype(np.float64)), KEY) is None
    assert operation((x, x[:3]), KEY) is None
    assert operation((x,), KEY) is None
    assert operation((x[:0], x[:0]), KEY) is None
    assert not _core.CarriedOperation("negate", (e5m2,), e5m2, environment(e5m2, "nearest_even", None, 32)).ok


def table_of(fmt, rows: int, columns: int, seed: int) -> np.ndarray:
    x = values_of(fmt, rows * columns, seed)
    return np.where(np.isfinite(x), x, np.float32(0.5)) if seed % 2 else x


def tree(x, fmt, mode):
    """Neighbours along the first axis in pairs, level by level, on codes; None where a sum has no code."""
    while len(x) > 1:
        even = len(x) // 2 * 2
        added = by_codes("add", (x[0:even:2], x[1:even:2]), (fmt, fmt), fmt, mode)
        if added is None:
            return None
        x = np.concatenate([added, x[even:]])
    return x


@cases("fmt", ["binary32", "e6m9", "e5m2", "q4.4", "q8.14", "bfloat16", "e4m3fnuz", "e8m15"])
@cases("mode", ["nearest_even", "down"])
def test_trees(fmt, mode):
    """Of any number of rows and columns, in each order in memory, on every instruction set."""
    fmt = format_of(fmt)
    operation = carried("add", (fmt, fmt), fmt, mode, None, 32)
    shapes = [(1, 1), (2, 3), (3, 16), (5, 17), (64, 8), (255, 40), (257, 130), (4100, 5), (33, 300), (1025, 1)]
    for seed, (rows, columns) in enumerate(shapes):
        x = table_of(fmt, rows, columns, seed)
        want = tree(x.reshape(rows, columns), fmt, mode)
        for isa in on_every_isa():
            for got in (
                operation.total(x.reshape(rows, columns), "rows"),
                operation.total(np.ascontiguousarray(x.reshape(rows, columns).T), "last"),
            ):
                assert (got is None) == (want is None), (rows, columns, isa)
                if got is not None:
                    assert_same_bits(got, want, rows, columns, isa)


def test_trees_of_channels_and_of_several_axes():
    fmt = format_of("e6m9")
    operation = carried("add", (fmt, fmt), fmt, "nearest_even", None, 32)
    for shape in ((1, 1, 1, 1), (3, 5, 2, 7), (40, 8, 8, 8), (2, 33, 1, 3), (130, 17, 4, 4)):
        x = values_of(fmt, int(np.prod(shape)), 3).reshape(shape)
        pixels = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).reshape(-1, shape[1])
        want = tree(pixels, fmt, "nearest_even")
        first = tree(x.reshape(shape[0], -1), fmt, "nearest_even").reshape(1, *shape[1:])
        for _ in on_every_isa():
            assert_same_bits(operation.total(x, "pixels"), want)
            assert_same_bits(operation.total(x, "rows"), first)
            last = operation.total(np.ascontiguousarray(np.moveaxis(x, 0, -1)), "last")
            assert_same_bits(last, first)


def test_what_trees_leave_to_operations():
    fmt = format_of("e6m9")
    x = np.ones((4, 4), np.float32)
    assert carried("add", (fmt, fmt), fmt, "stochastic", None, BITS).total(x, "rows") is None
    add = carried("add", (fmt, fmt), fmt, "nearest_even", None, 32)
    assert add.total(x.T[:, ::2], "rows") is None and add.total(x[:0], "rows") is None
    assert add.total(x.astype(np.float64), "rows") is None


@pytest.mark.slow
@cases("name", OPERANDS)
def test_many_numbers(name):
    """A hundred thousand numbers a format, of those that training computes in."""
    for number, (taken, out) in enumerate(
        [("binary32", "binary32"), ("e6m9", "e6m9"), ("binary32", "e6m9"), ("e6m3", "e6m3"), ("binary16", "binary16"),
         ("binary32", "bfloat16"), ("q4.4", "q4.4"), ("e5m2", "e6m9"), ("tf32", "tf32")]
    ):  # fmt: skip
        for mode in ("nearest_even", "stochastic"):
            formats = (format_of(taken),) * OPERANDS[name]
            operands = tuple(values_of(formats[0], 100_000, 7 * number + k) for k in range(OPERANDS[name]))
            computed = check(name, formats, format_of(out), mode, operands)
            assert computed or (name in ("divide", "sqrt") and not formats[0].has_nan)
