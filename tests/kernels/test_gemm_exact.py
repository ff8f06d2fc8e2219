"""ExactDotUnit on CUDA arrays: the bits of the CPU, whichever way sums are made."""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum.kernels.device.runtime.strides import transposed
from tests.support.equality import check_product


def exact(accumulator, operand, **options):
    return sn.ExactDotUnit(accumulator, operand=operand, **options)


# the pieces of a and of b: 0 where the definition makes the sums
UNITS = {
    "e4m3fn": (exact("e6m9", "e4m3fn"), (1, 1)),
    "stochastic": (exact("e6m9", "e4m3fn", rounding="sr", stochastic_bits=12), (1, 1)),
    "lfsr": (exact("e6m9", "e4m3fn", rounding="sr", stochastic_bits=12, random="lfsr12-d8fx3"), (1, 1)),
    "two draws": (exact("e6m9", "bfloat16", rounding="sr", stochastic_bits=12, random="philox4x32-7/2"), (0, 0)),
    "fixed point": (exact("q12.8", "q4.4", rounding="sr", stochastic_bits=5), (1, 1)),
    "fixed and float": (exact("binary16", ("q8.8", "e5m2")), (1, 2)),
    "float and fixed": (exact("binary16", ("e5m2", "q8.8"), rounding="rdn"), (2, 1)),
    "binary16": (exact("binary32", "binary16"), (2, 2)),
    "two widths": (exact("binary32", ("binary16", "e5m3")), (2, 2)),
    "e5m2, saturate": (exact("e5m2", "e5m2", overflow="saturate"), (2, 2)),
    "no -0": (exact("e4m3fnuz", "e4m3fnuz", rounding="away_from_zero"), (1, 1)),
    "lowest binade": (exact("dlfloat16", "dlfloat16", rounding="rna"), (0, 0)),
    "bfloat16": (exact("binary32", "bfloat16", rounding="rtz"), (0, 0)),
    "binary64": (exact("binary64", ("binary64", "binary32"), rounding="rup"), (0, 0)),
}


def values(fmt, shape, rng, special):
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 13, shape)
    x = sn.quantize(x, fmt, overflow="saturate")
    x[rng.random(shape) < 0.2] = 0
    if special and fmt.kind == "float":
        these = [0.0, fmt.max, -fmt.max, fmt.smallest_normal] + [np.inf, -np.inf] * fmt.infinities
        these += [-0.0] * fmt.negative_zero + [np.nan] * fmt.has_nan
        where = rng.random(shape) < 0.04
        x[where] = rng.choice([float(v) for v in these], where.sum())
    elif special:
        x[rng.random(shape) < 0.05] = float(fmt.min)
    return x if np.abs(x[np.isfinite(x)]).max(initial=0) > 2.0**127 else x.astype(np.float32)


def operands(unit, m, k, n, seed=0, special=True):
    rng = np.random.default_rng(seed)
    a, b = values(unit.operand[0], (m, k), rng, special), values(unit.operand[1], (k, n), rng, special)
    c = values(unit.c_format, (m, n), rng, special)
    if special and m > 2:
        a[0] = 0  # zeros whose sign the products decide
        negative = all(getattr(f, "negative_zero", False) for f in unit.operand)
        a[1] = -0.0 if negative else 0
        b[:, -1] = np.where(b[:, -1] < 0, 0, b[:, -1])
        c[:3, ::2] = -0.0 if getattr(unit.c_format, "negative_zero", False) else 0
    return a, b, c


def pieces(unit, k):
    from softnum.kernels.device.products.exact import pieces_of

    found = pieces_of(unit, k)
    return (0, 0) if found is None else tuple(1 + (w > 0) for w in found.widths)


@pytest.mark.parametrize("name", UNITS)
def test_units(device, name):
    unit, ways = UNITS[name]
    assert pieces(unit, 19) == ways
    key = {"key": (3, 2**33)} if unit.stochastic else {}
    a, b, c = operands(unit, 9, 19, 5)
    check_product(device, unit, a, b, c, **key)
    check_product(device, unit, a, b, **key)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (8, 16, 8), (3, 0, 2), (0, 4, 2)])
def test_sizes(device, m, k, n):
    for name in ("binary16", "e4m3fn"):
        unit = UNITS[name][0]
        a, b, c = operands(unit, m, k, n, special=False)
        check_product(device, unit, a, b, c)
        check_product(device, unit, a, b)


def test_signs_of_zero(device):
    x = np.float32([[0.0, -0.0, 1, -1]])
    y = np.float32([[0.0, -0.0, 1]])
    for rounding in ("rne", "rdn"):
        unit = exact("binary16", "e4m3fn", rounding=rounding)
        for c in (None, np.zeros((4, 3), np.float32), np.full((4, 3), -0.0, np.float32)):
            check_product(device, unit, x.T, y, c)
            check_product(device, unit, np.repeat(x.T, 2, axis=1) * np.float32([1, -1]), np.repeat(y, 2, axis=0), c)


def test_batches_strides_and_words(device):
    unit, _ = UNITS["stochastic"]
    rng = np.random.default_rng(4)
    a, b = values(unit.operand[0], (2, 3, 4, 9), rng, False), values(unit.operand[1], (2, 1, 9, 5), rng, False)
    check_product(device, unit, a, b, values(unit.c_format, (4, 5), rng, False), key=9)
    words = rng.integers(0, 2**32, (2, 3, 4, 5, 1, 2), dtype=np.uint32)
    check_product(device, unit, a, b, random_bits=words)
    unit, _ = UNITS["binary16"]
    x, y = (sn.quantize(rng.standard_normal(s).astype(np.float32), "binary16") for s in ((9, 4), (5, 9)))
    got = sn.matmul(*(transposed(device.to_device(z), (1, 0)) for z in (x, y)), unit).copy_to_host()
    assert np.array_equal(got, sn.matmul(x.T, y.T, unit))


def test_value_table(device):
    held = [-3.0, -0.5, 0.0, 1 / 3, 1.0, 4.0, 2.0**-30, 6.0]
    table = sn.CustomFormat.from_table(held, name="uneven")
    unit = exact("binary32", (table, "e4m3fn"))
    rng = np.random.default_rng(2)
    a = rng.choice(held, (4, 7))
    check_product(device, unit, a, values(unit.operand[1], (7, 3), rng, True))
    a[2, 5] = 2.0
    with pytest.raises(ValueError, match=r"a\[2, 5\] = .*2\.0.* is no value of"):
        sn.matmul(device.to_device(a), device.to_device(np.zeros((7, 3), np.float32)), unit)


def test_no_code(device):
    unit = exact("q12.8", "e5m2")
    a = device.to_device(np.float32([[np.nan]]))
    with pytest.raises(ValueError, match=r"q12\.8 has no code"):
        sn.matmul(a, a, unit)


def test_pieces_leave_room():
    """No sum can leave 62 bits: the largest of K, of the widths that they allow."""
    from softnum.kernels.device.products.exact import pieces_of

    for unit, _ in UNITS.values():
        for k in (1, 4096, 2**21 - 1, 2**21, 2**31):
            found = pieces_of(unit, k)
            if found is None:
                continue
            sizes = [
                w or top - last for w, (last, top) in zip(found.widths, (fmt.span for fmt in unit.operand), strict=True)
            ]
            highs = [
                (top - last) - w
                for w, (last, top) in zip(found.widths, (fmt.span for fmt in unit.operand), strict=True)
            ]
            most = [max(2**low, 2**high if w else 0) for low, high, w in zip(sizes, highs, found.widths, strict=True)]
            assert max(most) <= 2**30
            assert k * most[0] * most[1] * (1 + (found.sums == 3)) <= 2**62
    assert pieces(UNITS["binary16"][0], 2**21 - 1) == (2, 2)
    assert pieces(UNITS["binary16"][0], 2**21) == (0, 0)


@pytest.mark.parametrize("name", ["e4m3fn", "fixed and float", "binary16"])
def test_pieces_alone(name):
    """The text of the sums against Python's fractions, of the largest values too."""
    from softnum.kernels.device.products.exact import pieces_library, pieces_of
    from softnum.kernels.device.runtime import _cuda

    if not _cuda.SIMULATOR:
        pytest.skip("the simulator's way to the text; on a GPU test_units runs it")
    unit, _ = UNITS[name]
    k, side = 200, 4
    cut = pieces_of(unit, k)
    f = _cuda.bind(pieces_library(unit.operand, cut, side))
    rng = np.random.default_rng(1)
    taken, tiles = [], []
    for fmt, what in zip(unit.operand, "ab", strict=True):
        x = values(fmt, (k, side), rng, False).astype(np.float64)
        x[:, 3] = float(fmt.max)
        codes = sn.encode(x, fmt)
        taken.append(x)
        for part in ("low", "high"):
            tile = np.zeros((k, side), np.int32)
            if part == "low" or cut.widths["ab".index(what)]:
                tile[:] = np.vectorize(getattr(f, f"{part}_{what}"), otypes=[np.int32])(codes)
            tiles.append(tile)
    sums = np.zeros((cut.sums, side, side), np.int64)
    f.steps(*(tile.ctypes.data for tile in tiles), 0, 0, k, sums.ctypes.data)
    for i in range(side):
        for j in range(side):
            want = sum(Fraction(x) * Fraction(y) for x, y in zip(taken[0][:, i], taken[1][:, j], strict=True))
            got = sum(int(s) * Fraction(2) ** g for s, g in zip(sums[:, i, j], cut.grid, strict=True))
            assert got == want, (i, j)
