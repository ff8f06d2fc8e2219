"""sn.Array in xarray, Dask and pandas: carried as it is, or refused or warned of by name."""

import pickle

import numpy as np
import pytest

import softnum as sn

A = sn.array([[1.0, 2.5], [3.0, 0.125]], "e4m3fn")


def carried(x, want):
    assert isinstance(x, sn.Array) and x.format == A.format and np.array_equal(x.codes, want.codes)


def test_xarray_carries_arrays():
    xr = pytest.importorskip("xarray")
    da = xr.DataArray(A, dims=("x", "y"), coords={"x": [0, 1]})
    assert "e4m3fn" in repr(da) and "e4m3fn" in repr(xr.Dataset({"a": da})) and "e4m3fn" in da._repr_html_()
    assert da.dtype == A.format and da.nbytes == 4
    for got, want in (
        (da, A),
        (da * 2, A * 2),
        (da + da.isel(x=0), A + A[0]),
        (da.T, A.T),
        (np.sqrt(da), np.sqrt(A)),
        (da.isel(x=0), A[0]),
        (da.sel(x=1), A[1]),
        (da.max("x"), A.max(0)),
        (da.median("y"), np.median(A, 1)),
        (xr.concat([da, da], "x"), np.concatenate([A, A])),
        (da.sortby("x", ascending=False), A[::-1]),
        (da.copy(deep=True), A),
        (pickle.loads(pickle.dumps(da)), A),
        (da.astype("e4m3fn"), A),
        (da.clip(0, 1), A.clip(0, 1)),
    ):
        carried(got.data, want)
    with sn.unit_of_sums(sn.exact):
        carried(da.sum().data, np.sum(A))
        carried(da.mean("x").data, A.mean(0))
    assert da.equals(da.copy()) and (da > 1).data.tolist() == [[False, True], [True, False]]
    for call, message in (
        (lambda: da.sum(), "softnum.unit_of_sums"),
        (lambda: da.where(da > 1), "e4m3fn"),
        (lambda: da.std(), "softnum.sqrt"),
        (lambda: da.shift(x=1), "e4m3fn"),
        (lambda: da + 0.3, "0.3 is not exact in e4m3fn"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()
    with pytest.warns(sn.arrays.FormatLostWarning, match="e4m3fn"):
        assert da.values.dtype == np.float64


def test_dask_refuses_arrays_by_their_format():
    dask = pytest.importorskip("dask.array")
    for call in (lambda: dask.from_array(A, chunks=1), lambda: dask.asarray(A)):
        with pytest.raises(TypeError, match="e4m3fn"):
            call()
    with pytest.raises(TypeError, match="Array and dask.array.core.Array cannot be combined"):
        A + dask.ones((2, 2))
    codes = dask.from_array(A.codes, chunks=1)  # which it carries
    doubled = codes.map_blocks(lambda c: (2 * sn.Array(c, "e4m3fn")).codes, dtype=np.uint8)
    assert np.array_equal(doubled.compute(), (2 * A).codes)


def test_pandas_makes_float64_and_warns():
    pd = pytest.importorskip("pandas")
    for make in (lambda: pd.Series(A[0]), lambda: pd.DataFrame(A), lambda: pd.DataFrame({"a": A[0]})):
        with pytest.warns(sn.arrays.FormatLostWarning, match="e4m3fn") as caught:
            make()
        assert {w.filename for w in caught} == {__file__}


def test_the_namespace_of_the_array_api():
    xp = A.__array_namespace__()
    assert A.__array_namespace__(api_version=xp.__array_api_version__) is xp
    with pytest.raises(ValueError, match="not 1999.12"):
        A.__array_namespace__(api_version="1999.12")
    e4m3fn = A.format
    for got, want in (
        (xp.asarray([1.0, 0.5], dtype=e4m3fn), [1.0, 0.5]),
        (xp.full(2, 3, dtype="e4m3fn"), [3.0, 3.0]),
        (xp.zeros(2), [0.0, 0.0]),
        (xp.ones(1, dtype=e4m3fn), [1.0]),
        (xp.empty((1,), dtype=e4m3fn), [0.0]),
        (xp.eye(2, dtype=e4m3fn), [[1.0, 0.0], [0.0, 1.0]]),
        (xp.arange(3, dtype=e4m3fn), [0.0, 1.0, 2.0]),
        (xp.linspace(0, 1, 3), [0.0, 0.5, 1.0]),
        (xp.permute_dims(A, (1, 0)), A.T.tolist()),
        (xp.concat([A, A])[2], A[0].tolist()),
        (A.mT, A.T.tolist()),
        (A.real, A.tolist()),
        (A.imag, [[0.0, 0.0]] * 2),
    ):
        assert isinstance(got, sn.Array) and got.tolist() == want
    assert xp.asarray([1, 2]).dtype == np.int64 and xp.asarray([True]).dtype == bool and xp.asarray(A) is A
    assert xp.arange(3).dtype == np.int64 and xp.asarray(1.5).dtype == xp.float64 == sn.format("binary64")
    assert (
        xp.isdtype(e4m3fn, "real floating")
        and xp.isdtype(e4m3fn, ("bool", "numeric"))
        and not xp.isdtype(e4m3fn, "integral")
    )
    assert xp.isdtype(np.dtype(bool), "bool") and xp.isdtype(e4m3fn, e4m3fn) and not xp.isdtype(e4m3fn, xp.float32)
    assert xp.result_type(A, 1.5, e4m3fn) == np.result_type(A, A) == e4m3fn
    assert xp.can_cast(e4m3fn, xp.float32) and not xp.can_cast(xp.float64, A)
    facts = xp.finfo(e4m3fn)
    assert (facts.bits, facts.eps, facts.max, facts.dtype) == (8, 0.125, 448.0, e4m3fn)
    third = xp.linspace(0, 1, 3, dtype=e4m3fn, endpoint=False)  # each value rounded once
    assert third.tolist() == [0.0, 0.34375, 0.6875] and xp.linspace(0, 4, 3, dtype=np.int64).tolist() == [0, 2, 4]
    assert xp.astype(A, xp.float32).format == xp.float32 and xp.astype(A, bool).all()
    assert xp.astype(A, np.int8).tolist() == [[1, 2], [3, 0]] and xp.astype(np.array([0.3]), e4m3fn).tolist() == [
        0.3125
    ]
    assert xp.astype(np.array([1.5]), np.int8).tolist() == [1] and xp.astype(A, np.complex64).dtype == np.complex64
    assert xp.astype(A, e4m3fn, copy=False) is A
    assert xp.zeros_like(A).dtype == xp.full_like(np.zeros(2, bool), 1, dtype=e4m3fn).dtype == e4m3fn
    assert xp.ones_like(np.zeros(2, np.int8)).dtype == np.int8 and xp.empty_like(A, dtype=bool).dtype == bool
    assert isinstance(xp.meshgrid(A[0], A[1]), list) and isinstance(xp.broadcast_arrays(A, A[0]), list)
    assert xp.iinfo(np.int8).max == xp.iinfo(np.zeros(2, np.int8)).max == 127 and xp.finfo(np.complex64).bits == 32
    ties = sn.array([1.0, 0.5, 1.0, -1.0], "e4m3fn")
    for x in (ties, np.asarray(ties, np.float64)):
        assert xp.argsort(x).tolist() == [3, 1, 0, 2] and xp.argsort(x, descending=True).tolist() == [0, 2, 1, 3]
        assert xp.sort(x).tolist() == [-1.0, 0.5, 1.0, 1.0] and xp.sort(x, descending=True).tolist() == [
            1.0,
            1.0,
            0.5,
            -1.0,
        ]
        assert xp.clip(x, 0, max=0.5).tolist() == [0.5, 0.5, 0.5, 0.0]
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == info.dtypes()["float64"] == xp.float64 and "cpu" in info.devices()
    assert A.device == "cpu" and A.to_device("cpu") is A
    for error, message, call in (
        (ValueError, "0.3 is not exact in e4m3fn", lambda: xp.asarray([0.3], dtype=e4m3fn)),
        (TypeError, "e4m3fn, e5m2 have no common type", lambda: xp.result_type(A, sn.format("e5m2"))),
        (ValueError, "asarray: the Array is one of e4m3fn", lambda: xp.asarray(A, dtype=xp.float32)),
        (ValueError, "needs a copy", lambda: xp.asarray([1.5], copy=False)),
        (TypeError, "finfo needs", lambda: xp.finfo(np.int8)),
        (ValueError, "lies on the host", lambda: xp.zeros(1, device="cuda")),
        (ValueError, "are on 'cpu'", lambda: A.to_device("cuda")),
    ):
        with pytest.raises(error, match=message):
            call()
    with pytest.raises(AttributeError):
        _ = xp.__no_such_name__
