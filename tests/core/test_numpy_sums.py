"""NumPy's names of sums on sn.Array, under a stated unit: those of softnum.sum and softnum.matmul."""

import asyncio
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn

UNITS = {
    "exact": sn.ExactDotUnit("binary32", operand="e5m2"), "chain": sn.MadUnit("e5m6", operand="e5m2"),
    "lanes": sn.MadUnit("binary16", operand="e5m2", chunk=3),
    "fused": sn.FusedDotUnit(4, 12, "binary32", operand="e5m2"),
}  # fmt: skip


def some(*shape, fmt="e5m2", seed=1):
    rng = np.random.Generator(np.random.Philox(seed))
    return sn.array(rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape), fmt)


def values(x):
    return np.asarray(x, np.float64)


@pytest.mark.parametrize("name", UNITS)
def test_sums_and_products_are_those_of_the_unit(name):
    unit = UNITS[name]
    a, b, v = some(2, 3, 5), some(2, 5, 4, seed=2), some(5, seed=3)
    matmul = lambda x, y: values(sn.matmul(x, y, unit))  # noqa: E731
    with sn.unit_of_sums(unit):
        for axis in (None, 0, -1, (0, 2)):
            for got in (np.sum(a, axis), a.sum(axis), np.add.reduce(a, axis=axis)):
                assert isinstance(got, sn.Array) and got.format == unit.result
                assert np.array_equal(values(got), sn.sum(a, unit, axis))
        assert np.sum(a, axis=1, keepdims=True).shape == (2, 1, 5)
        for got, want in (
            (a @ b, matmul(a, b)),
            (np.matmul(a, b), matmul(a, b)),
            (a @ v, matmul(a, v[:, None])[..., 0]),
            (v @ b, matmul(v[None], b)[:, 0]),
            (v @ v, matmul(v[None], v[:, None])[0, 0]),
            (a @ values(b), matmul(a, b)),
            (values(a) @ b, matmul(a, b)),
            (np.dot(a[0], b[0]), matmul(a[0], b[0])),
            (a[0].dot(v), matmul(a[0], v[:, None])[:, 0]),
            (np.dot(a, b), np.stack([np.stack([matmul(x, y) for y in b], 1) for x in a])),
            (np.inner(a[0], a[1]), matmul(a[0], a[1].T)),
            (np.vdot(a, a), matmul(a.reshape(1, -1), a.reshape(-1, 1))[0, 0]),
            (np.vecdot(a, v), matmul(a, v[:, None])[..., 0]),
            (np.vecdot(a, a, axis=1), matmul(a.swapaxes(1, 2)[..., None, :], a.swapaxes(1, 2)[..., None])[..., 0, 0]),
            (np.tensordot(a, b, ((0, 2), (0, 1))), matmul(a.transpose(1, 0, 2).reshape(3, 10), b.reshape(10, 4))),
            (np.tensordot(v, v, 0), matmul(v[:, None], v[None])),
            (np.trace(a[0]), sn.sum(np.diagonal(a[0]), unit)),
            (np.linalg.matmul(a, b), matmul(a, b)),
            (np.linalg.vecdot(a, v), matmul(a, v[:, None])[..., 0]),
            (np.matvec(a, v), matmul(a, v[:, None])[..., 0]),
            (np.vecmat(v, b), matmul(v[None], b)[:, 0]),
            (np.cumsum(v), [sn.sum(v[: k + 1], unit) for k in range(5)]),
            (np.cumsum(a), [sn.sum(a.ravel()[: k + 1], unit) for k in range(30)]),
            (a.cumsum(1)[:, 1], values(np.sum(a[:, :2], 1))),
            (np.add.accumulate(v), values(np.cumsum(v))),
            (np.cumulative_sum(v, include_initial=True), [0.0, *values(np.cumsum(v))]),
            (np.linalg.tensordot(v, v, axes=1), matmul(v[None], v[:, None])[0, 0]),
        ):
            assert isinstance(got, sn.Array) and got.format == unit.result
            assert np.array_equal(values(got), want)


def test_a_mean_is_the_sum_divided_once():
    a = some(4, 7)
    unit = UNITS["chain"]
    with sn.unit_of_sums(unit):
        got, sums = np.mean(a, axis=0), values(np.sum(a, axis=0))
        want = sn.array([Fraction(s) / 4 for s in sums], unit.result)
        assert np.array_equal(got.codes, want.codes) and a.mean().format == unit.result
        assert a.mean((0, 1)).item() == sn.array(Fraction(a.sum().item()) / 28, unit.result).item()
        with pytest.raises(ValueError, match="mean: an empty Array, of shape"):
            a[:0].mean()
        gaps = np.where(values(a) < 0, float("nan"), a)
        kept = np.where(values(a) < 0, 0, a)
        assert np.array_equal(np.nansum(gaps, 1).codes, np.sum(kept, 1).codes)
        want = [Fraction(x) / int(n) for x, n in zip(values(np.sum(kept, 1)), np.isfinite(gaps).sum(1), strict=True)]
        assert np.array_equal(np.nanmean(gaps, 1).codes, sn.array(want, unit.result).codes)
        assert np.isnan(np.nanmean(gaps[gaps != gaps]))
        assert np.sum(a[:0]).item() == 0.0 and np.cumsum(a[:0, 0]).shape == (0,)


def test_exact_is_one_rounding_to_the_operands_format():
    a = sn.array([16.0, 1.0, 1.0, 1.0], "e5m2")  # one after the other, each 1 would be lost
    with sn.unit_of_sums(sn.exact):
        assert np.sum(a).item() == 20.0 and np.sum(a).format == a.format and (a @ a).item() == 256.0
        assert np.sum(a.astype("e4m3fn")).format == sn.format("e4m3fn")
        with pytest.raises(ValueError, match=r"the formats differ \(e5m2, e4m3fn\); softnum.ExactDotUnit"):
            a @ a.astype("e4m3fn")
    assert repr(sn.exact) == "softnum.exact" and pickle.loads(pickle.dumps(sn.exact)) is sn.exact


def test_without_a_unit_the_way_out_is_named():
    a = some(3, 3)
    for call in (lambda: a @ a, lambda: a.sum(), lambda: np.mean(a), lambda: np.add.reduce(a), lambda: np.cumsum(a),
                 lambda: np.vecdot(a, a), lambda: values(a) @ a, lambda: np.add.accumulate(a)):  # fmt: skip
        with pytest.raises(TypeError, match=r"is not defined for softnum.Array; .*softnum.unit_of_sums\(unit\)"):
            call()


def test_what_is_no_unit_of_sums():
    for unit, error, message in (
        (sn.MadUnit("e5m6", operand="e5m2", rounding="stochastic"), ValueError, "stochastically, .* key="),
        (sn.unit("nvfp4"), TypeError, "is for BlockArrays"), ("nvidia", ValueError, "unknown unit"),
        (3, TypeError, "unit"),
    ):  # fmt: skip
        with pytest.raises(error, match=message), sn.unit_of_sums(unit):
            pass
    with sn.unit_of_sums("nvidia_h100_fp16"):
        assert np.sum(sn.array([1.0, 2.0], "binary16")).item() == 3.0
    with sn.unit_of_sums(UNITS["chain"]):
        for error, message, call in (
            (ValueError, "x is an Array of q4.4, but the unit adds values of", lambda: np.sum(sn.array([1.0], "q4.4"))),
            (ValueError, "is not a matrix", lambda: some(2) @ sn.array(1.0, "e5m2")),
            (ValueError, "vecdot: 2 and 3 elements", lambda: np.vecdot(some(2), some(3))),
            (ValueError, "tensordot: the axes that are summed over have", lambda: np.tensordot(some(2), some(3), 1)),
            (TypeError, "numpy.sum with dtype is not defined", lambda: np.sum(some(2), dtype=np.float32)),
            (TypeError, "numpy.matmul with out is not defined",
             lambda: np.matmul(np.ones((2, 2)), np.ones((2, 2)), out=some(2, 2))),
        ):  # fmt: skip
            with pytest.raises(error, match=message):
                call()


def test_the_unit_is_stated_for_a_thread_and_a_task_alone():
    a = sn.array([16.0, 1.0, 1.0, 1.0], "e5m2")

    def summed():
        try:
            return np.sum(a).item()
        except TypeError:
            return None

    with sn.unit_of_sums(sn.exact):
        with sn.unit_of_sums(sn.MadUnit("e5m2", operand="e5m2")):
            assert summed() == 16.0
        assert summed() == 20.0
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(summed).result() is None
        assert summed() == 20.0
        with pytest.raises(KeyError), sn.unit_of_sums(UNITS["chain"]):
            raise KeyError
        assert summed() == 20.0
    assert summed() is None

    async def task(unit):
        with sn.unit_of_sums(unit):
            await asyncio.sleep(0)
            return summed()

    async def both():
        return await asyncio.gather(task(sn.exact), task(sn.MadUnit("e5m2", operand="e5m2")))

    assert asyncio.run(both()) == [20.0, 16.0]


def test_sums_need_no_more_imports_until_they_are_asked_for():
    import subprocess
    import sys

    code = "import sys, softnum as sn; sn.array([1.0], 'e5m2') + 1; print('softnum.mac.products' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
