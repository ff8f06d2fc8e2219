"""softnum.kernels.scalar in compiled code equals the definition, operand by operand, bit for bit."""

import doctest
import importlib

import numpy as np
import pytest

import softnum as sn
from softnum import kernels
from softnum.kernels.device.products.scalar_functions import scalar_library
from softnum.kernels.host.scalars import OPERANDS, handle_of
from softnum.runtime import _core

numba = pytest.importorskip("numba")

#: float formats with and without infinities, NaN, -0 and subnormals, down to binary32's edge; fixed point
FORMATS = [("e4m3fn", {}), ("e6m9", {}), ("bfloat16", {}), ("binary32", {}), ("q4.8", {})]
MORE = [
    ("e5m2fnuz", {}), ("e2m1fn", {"overflow": "saturate"}),
    ("e5m2", {}), ("e4m3fn", {"overflow": "saturate"}), ("e2m1fn", {}), ("e6m9", {"overflow": "saturate"}),
    ("binary16", {}), ("tf32", {}), ("e8m21", {}), ("e8m20", {}), ("dlfloat16", {}), ("binary8p3sf", {}),
    ("q12.12", {}), ("uq4.4", {}), ("q4.8", {"overflow": "wrap"}), ("e4m3", {"rounding": "toward_zero"}),
    ("binary64", {}), ("e6m9", {"overflow": "saturate_finite"}),
    ("binary8p4ue", {"overflow": "p3109_v3_2_1"}), ("binary8p4ue", {"overflow": "p3109_v3_2_1", "rounding": "to_odd"}),
    ("e6m9", {"carrier": "float64"}), ("q20.20", {}),
    ("e11m40", {}), ("e10m40", {}), ("q4.8", {"carrier": "float64"}),
]  # fmt: skip
NAMES = ("round", "add", "subtract", "multiply", "divide", "fma", "sqrt")


def edges(fmt, dtype) -> np.ndarray:
    """Numbers of the carrier around a format's own, its midpoints and the carrier's limits, of both signs."""
    rng = np.random.Generator(np.random.Philox(7))
    last, few = np.uint64(2**fmt.bits - 1), np.arange(8, dtype=np.uint64)
    codes = np.unique(np.concatenate([few, last - few, rng.integers(0, last, 24, np.uint64)]))
    values = sn.decode(codes.astype(fmt.storage_dtype), fmt)
    values = values[np.isfinite(values)]
    top = float(fmt.max)
    limits = [
        0.0,
        1.0,
        1.5,
        3.0,
        top,
        top / 2,
        np.inf,
        np.nan,
        np.finfo(dtype).tiny,
        np.finfo(dtype).smallest_subnormal,
    ]
    limits += [np.finfo(dtype).max, np.finfo(dtype).max / 2, 2.0**-70, 2.0**60]
    middles = [(x + y) / 2 for x, y in zip(np.sort(values)[:-1], np.sort(values)[1:], strict=True)]
    with np.errstate(over="ignore"):
        exact = np.concatenate([values, limits, middles]).astype(dtype)
        near = np.concatenate([exact, np.nextafter(exact, dtype(np.inf)), np.nextafter(exact, dtype(-np.inf))])
    return np.unique(np.concatenate([near, -near]))


def operands(fmt, dtype, count, n=60_000):
    """Columns of operands: edges crossed at random, random numbers of nearby exponents, and any bit patterns."""
    rng = np.random.Generator(np.random.Philox(11))
    special = edges(fmt, dtype)
    near = (rng.standard_normal((n, count)) * 2.0 ** rng.integers(-8, 8, (n, count))).astype(dtype)
    width = np.uint32 if dtype is np.float32 else np.uint64
    any_ = rng.integers(0, np.iinfo(width).max, (n, count), width, endpoint=True).view(dtype)
    crossed = rng.choice(special, (2 * n, count))
    mixed = np.where(rng.integers(0, 2, (n, count)) == 1, rng.choice(special, (n, count)), near)
    with np.errstate(invalid="ignore"):
        return np.ascontiguousarray(np.concatenate([crossed, near, any_, mixed]).T)


def defined(scalar, name, columns, words=None):
    """The definition's results, as bits of the carrier; a NaN where the format has no code."""
    width, carrier = {
        "float32": (np.uint32, sn.format("binary32")), "float64": (np.uint64, sn.format("binary64")),
    }[scalar.carrier]  # fmt: skip
    n = len(columns[0])
    words = np.zeros(n, np.uint32) if words is None else words
    codes, flags = _core.define(OPERANDS[name][0], handle_of(scalar, name), [c.view(width) for c in columns], words)
    bits, _ = sn.convert(codes.astype(scalar.format.storage_dtype), scalar.format, carrier, return_flags=True)
    return np.where(flags & _core.NO_CODE, width(carrier.nan_code), bits.astype(width))


def loop(scalar):
    """All operations over arrays, as compiled code."""

    @numba.njit(error_model="numpy")
    def run(a, b, c, out):
        for i in range(len(a)):
            out[0, i] = scalar.round(a[i])
            out[1, i] = scalar.add(a[i], b[i])
            out[2, i] = scalar.subtract(a[i], b[i])
            out[3, i] = scalar.multiply(a[i], b[i])
            out[4, i] = scalar.divide(a[i], b[i])
            out[5, i] = scalar.fma(a[i], b[i], c[i])
            out[6, i] = scalar.sqrt(a[i])

    return run


def compare(scalar, columns, got):
    for row, name in enumerate(NAMES):
        want = defined(scalar, name, columns[: OPERANDS[name][1]])
        bits = got[row].view(want.dtype)
        bad = np.flatnonzero(bits != want)
        assert not len(bad), (
            f"{scalar}.{name} of {[hex(c.view(want.dtype)[bad[0]]) for c in columns]} = "
            f"{[c[bad[0]] for c in columns]}: got {bits[bad[0]]:#x}, want {want[bad[0]]:#x} ({len(bad)} differ)"
        )


@pytest.mark.parametrize(
    ("name", "options"),
    [*FORMATS, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE)],
    ids=lambda x: "-".join(x.values()) if isinstance(x, dict) else x,
)
def test_compiled_equals_definition(name, options):
    scalar = kernels.scalar(name, **options)
    dtype = np.float32 if scalar.carrier == "float32" else np.float64
    columns = operands(scalar.format, dtype, 3)
    got = np.empty((len(NAMES), columns.shape[1]), dtype)
    loop(scalar)(*columns, got)
    compare(scalar, columns, got)


def test_one_wrong_bit_is_caught():
    scalar = kernels.scalar("e5m2")
    columns = operands(scalar.format, np.float32, 3, n=10)
    got = np.array([defined(scalar, name, columns[: OPERANDS[name][1]]) for name in NAMES]).view(np.float32)
    compare(scalar, columns, got)
    got.view(np.uint32)[5, 7] ^= 1
    with pytest.raises(AssertionError, match=r"fma of .* \(1 differ\)"):
        compare(scalar, columns, got)


@pytest.mark.parametrize("module", ["scalars", "cache"])
def test_docstrings_run(module):
    result = doctest.testmod(
        importlib.import_module(f"softnum.kernels.host.{module}"), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.attempted and not result.failed


@pytest.mark.parametrize("fmt", ["e4m3fn", "q3.2"])
def test_codes_by_table_and_by_the_core(fmt):
    """All pairs of codes, and integers that are none: these, and what has no code, give -1, and -1 gives -1 again."""
    scalar = kernels.scalar(fmt, carrier="codes")
    bits = scalar.format.bits

    @numba.njit
    def run(a, b, out):
        for i in range(len(a)):
            out[0, i] = scalar.add(a[i], b[i])
            out[1, i] = scalar.multiply(a[i], b[i])
            out[2, i] = scalar.divide(a[i], b[i])
            out[3, i] = scalar.fma(a[i], b[i], a[i])
            out[4, i] = scalar.sqrt(a[i])

    a, b = (np.ascontiguousarray(x.ravel()) for x in np.indices((1 << bits, 1 << bits)))
    out = np.empty((5, a.size), np.int64)
    run(a, b, out)
    zeros = np.zeros(a.size, np.uint32)
    for row, (name, given) in enumerate(
        {"add": (a, b), "multiply": (a, b), "divide": (a, b), "fma": (a, b, a), "sqrt": (a,)}.items()
    ):
        codes, flags = _core.define(name, handle_of(scalar, name), given, zeros)
        np.testing.assert_array_equal(out[row], np.where(flags & _core.NO_CODE, -1, codes.astype(np.int64)), name)
    assert scalar.add(1, 2) == out[0, 1 << bits | 2]
    bad = np.array([-1, 1 << bits, 1 << 40, 0], np.int64)
    out = np.empty((5, 4), np.int64)
    run(bad, bad[::-1].copy(), out)
    assert (out[:4] == -1).all() and (out[4, :3] == -1).all()


@pytest.mark.parametrize("rounding", ["nearest_even", "up", "toward_zero"])
def test_value_tables_round_in_the_mode_of_the_scalar(rounding):
    """All sums, in Python, in compiled code and in the text of a kernel."""
    fmt = sn.CustomFormat.from_table([0.0, 1.0, 2.0, 4.0, -1.0, -2.0, -4.0, 8.0], name="powers")
    scalar = kernels.scalar(fmt, rounding=rounding)
    a, b = (x.ravel() for x in np.indices((8, 8)))
    want = fmt.apply("add", a, b, rounding=rounding).tolist()
    run = numba.njit(lambda x, y: scalar.add(x, y))
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert [scalar.add(*pair) for pair in pairs] == want == [run(*pair) for pair in pairs]
    assert ",".join(map(str, want)) in scalar_library(scalar, ("add",)).constants


def test_random_words_in_compiled_code():
    for fmt, options in (("e6m9", {"stochastic_bits": 12}), ("q4.8", {"carrier": "float64"})):
        scalar = kernels.scalar(fmt, rounding="stochastic", **options)
        dtype = np.dtype(scalar.carrier)

        @numba.njit
        def run(x, y, words, out):
            for i in range(len(x)):
                out[0, i] = scalar.round(x[i], words[i])  # noqa: B023
                out[1, i] = scalar.add(x[i], y[i], words[i])  # noqa: B023

        rng = np.random.default_rng(3)
        x, y = rng.standard_normal((2, 5000)).astype(dtype)
        words = rng.integers(0, 2**32, 5000, np.uint32)
        out = np.empty((2, 5000), dtype)
        run(x, y, words, out)
        width = f"u{dtype.itemsize}"
        np.testing.assert_array_equal(out[0].view(width), defined(scalar, "round", [x], words))
        np.testing.assert_array_equal(out[1].view(width), defined(scalar, "add", [x, y], words))
        assert scalar.add(x[0], y[0], int(words[0])) == out[1, 0]
