"""The ways of plain arrays, which skip what a call knows from the last one: same bits, same errors, and quick."""

import threading

import numpy as np
import pytest

import softnum as sn
from benchmarks import calls

FORMATS = ("e5m2", "e4m3fn", "e2m1fn", "e8m0fnu", "dlfloat16", "e6m9", "binary32", "binary64", "q4.4", "uq12.8")
SPECIALS = (0.0, -0.0, 1.0, -1.5, 2.0**-149, -(2.0**-20), 3e38, np.inf, -np.inf, np.nan)


def told(work, *arguments, **options):
    """What a call gives, as bytes with type and shape, or the error that it raises."""
    try:
        result = work(*arguments, **options)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return result.dtype, result.shape, result.tobytes()


@pytest.fixture
def rng():
    return np.random.Generator(np.random.Philox(7))


def samples(rng, dtype, shape):
    x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)).astype(dtype)
    x.reshape(-1)[: len(SPECIALS)] = np.array(SPECIALS).astype(dtype)[: x.size]
    return x


@pytest.mark.parametrize("rounding", ["nearest_even", "up", "stochastic"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_conversions_of_plain_arrays(fmt, rounding, rng):
    options = {"rounding": rounding, "key": (3, 1)}
    for dtype in (np.float32, np.float64):
        for shape in ((), (0,), (1,), (5, 7), (300,)):
            for x in (samples(rng, dtype, shape), np.abs(rng.standard_normal(shape)).astype(dtype)):
                for convert in (sn.quantize, sn.encode):
                    general = told(convert, x, fmt, threads=1, **options)
                    for _ in range(2):  # the first may be what the second is known by
                        assert told(convert, x, fmt, **options) == general
        codes = np.arange(2 ** min(sn.format(fmt).bits + 1, 10)).astype(sn.format(fmt).storage_dtype)
        for part in (codes, codes[:4].reshape(2, 2), codes[:0]):
            general = told(sn.decode, part, fmt, dtype, threads=1)
            assert [told(sn.decode, part, fmt, dtype) for _ in range(2)] == [general, general]


@pytest.mark.parametrize("name", ["add", "divide", "sqrt", "fma", "exp", "minimum", "negate"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_operations_on_plain_arrays(fmt, name, rng):
    operation, operands = sn.ops.OPERATIONS[name]
    known = sn.format(fmt)
    for shape in ((), (1,), (4,), (3, 5), (300,)):
        if name == "exp" and len(shape) > 1:
            continue
        codes = [rng.integers(0, 2**known.bits - 1, shape, known.storage_dtype, endpoint=True) for _ in range(operands)]
        if fmt == "e2m1fn" and shape == (4,):
            codes[0] = codes[0] + np.uint8(16)  # no codes
        for options in ({}, {"rounding": "up"}, {"rounding": "stochastic", "key": 5}, {"out_fmt": "e3m4"}):
            strided = [np.stack([c, c], -1)[..., 0] for c in codes]  # are no plain arrays
            general = told(operation, *strided, fmt, **options)
            for _ in range(2):
                assert told(operation, *codes, fmt, **options) == general
    codes = [rng.integers(0, 4, (3, 5), known.storage_dtype), *[np.array(1, known.storage_dtype)] * (operands - 1)]
    general = told(operation, *[c[..., None][..., 0] for c in np.broadcast_arrays(*codes)], fmt)
    assert [told(operation, *codes, fmt) for _ in range(2)] == [general, general]


def test_arrays_keep_their_own_format():
    mine = sn.FloatFormat(5, 2, name="mine")
    for _ in range(2):
        for fmt in (sn.format("e5m2"), mine):
            a = sn.array([1.0, 2.5], fmt)
            assert (a + a).format is fmt
            assert sn.multiply(a, a, rounding="up").format is fmt
    with pytest.raises(ValueError, match="differ"):
        sn.array([1.0], "e5m2") + sn.array([1.0], "e4m3")


def test_operands_that_are_not_all_arrays():
    a, codes = sn.array([1.0, 2.5], "e5m2"), np.full(2, 60, np.uint8)
    for _ in range(2):
        assert sn.add(a, a, None, rounding="up").format is a.format  # no format is needed, and none is given
        assert sn.sqrt(a, None, out_fmt="e4m3").format is sn.format("e4m3")
        for other in (codes, [1.0, 2.0], 1):
            with pytest.raises(
                TypeError, match="Arrays and plain encodings cannot be mixed; convert all operands with softnum.array"
            ):
                sn.add(other, a)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rounding": "even"}, "unknown rounding mode"), ({"overflow": "wrap"}, "is for fixed point"),
        ({"stochastic_bits": 32.0}, "stochastic_bits must"), ({"stochastic_bits": True}, None),
        ({"rounding": "sr"}, "needs key"), ({"rounding": "sr", "key": True}, "key must"),
        ({"rounding": "sr", "key": -1}, "key must"), ({"rounding": "sr", "key": (1, 2**64)}, "key must"),
    ],
)  # fmt: skip
def test_what_was_refused_is_refused_again(options, error):
    x, codes = np.ones(4), np.full(4, 60, np.uint8)
    sn.quantize(x, "e5m2"), sn.quantize(x, "e5m2", rounding="sr", key=1), sn.add(codes, codes, "e5m2")
    for _ in range(2):
        for work in (
            lambda: sn.quantize(x, "e5m2", **options),
            lambda: sn.encode(x, "e5m2", **options),
            lambda: sn.add(codes, codes, "e5m2", **options),
        ):
            with pytest.raises(ValueError, match=error or "stochastic_bits"):
                work()


@pytest.mark.parametrize(
    "unit", ["MadUnit('e6m9', operand='e5m2', chunk=2)", "MadUnit('binary64', operand='binary32')"]
)
def test_products_of_plain_matrices(unit, rng):
    unit = eval(unit, {"MadUnit": sn.MadUnit})
    for m, k, n in ((2, 2, 2), (1, 5, 3), (7, 3, 33), (3, 1, 16)):
        a, b = (sn.quantize(rng.standard_normal(s), unit.operand[0]) for s in ((m, k), (k, n)))
        c = sn.quantize(rng.standard_normal((m, n)), unit.c_format)
        for start in (None, c):
            want, _ = sn.matmul(a, b, unit, start, return_stats=True)
            given = (a, b), (a.astype("f4"), b), (sn.array(a, unit.operand[0]), b), (a.T.copy().T, b)
            for x, y in given:
                for threads in (None, 1):
                    got = sn.matmul(x, y, unit, start, threads=threads)
                    assert got.dtype == want.dtype
                    assert got.tobytes() == want.tobytes()
        with pytest.raises(ValueError, match="is no value of"):
            sn.matmul(a + 2.0**-40, b, unit)
        with pytest.raises(ValueError, match="columns"):
            sn.matmul(a, np.vstack([b, b]), unit)


def test_many_threads_at_once(rng):
    x = samples(rng, np.float64, (64,))
    want, failed = {f: sn.quantize(x, f, threads=1).tobytes() for f in FORMATS[:2]}, []

    def work():
        for _ in range(300):
            failed.extend(f for f in FORMATS[:2] if sn.quantize(x, f).tobytes() != want[f])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_call_costs_little():
    """Against NumPy's addition of four elements, the least of many times; twice what the benchmark allows."""
    for name, (mine, numpy) in calls.times().items():
        assert mine < 2 * calls.CALLS[name][1] * numpy, name
