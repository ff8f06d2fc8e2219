"""Functions from enclosures in binary64: the bits of the C core, within the bound that is claimed."""

import numpy as np
import pytest

import softnum as sn
from softnum.runtime import _core
from softnum.train.designs import RoleRounding
from softnum.train.engine import enclosures
from softnum.train.engine.backend import NumpyBackend
from softnum.train.engine.enclosures import BOUND, enclose, encloses
from tests.support.cases import cases
from tests.support.core_oracles import on_every_isa

RELATIVE = ("exp", "sigmoid", "silu", "tanh")  # whose bound is relative
NAMES = (*RELATIVE, "erf", "gelu")
EDGES = np.float32(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 80.0, 80.00001, -80.0, -87.5, 88.8, -103.9, -104.1, 700.0, 1e-45, -1e-45,
     2.0**-126, 2.0**-25, 2.0**-24, 2.0**-12, -(2.0**-13), 0.17328679, 0.1732868, -0.34657359, 0.34657362, 1.0397208,
     9.010913, 9.01092, 17.328679, 1.0, -1.0, 4.2, -4.2, 4.2000003, -4.2000003, 6.0, 6.0000005, -6.0, -6.0000005, 3e38,
     -3e38, -5.0, -1e-40]
)  # fmt: skip


def numbers(count, largest=100.0):
    """Numbers of many sizes, of both signs."""
    rng = np.random.Generator(np.random.Philox(11))
    x = np.exp2(rng.uniform(-30.0, np.log2(largest), count)) * rng.choice([-1.0, 1.0], count)
    return np.concatenate([EDGES, x.astype(np.float32)])


def of_the_core(name, x, role):
    """What the C core makes of them."""
    options = {"rounding": role.rounding, "overflow": role.overflow}
    codes = getattr(sn, name)(sn.encode(x, role.format), role.format, **options)
    return sn.decode(codes, role.format, np.float32)


@cases("name", NAMES)
@cases("mode", ["nearest_even", "toward_zero", "up", "down", "nearest_away", "to_odd"])
def test_bits_are_those_of_the_core(name, mode):
    x, role = numbers(3000), RoleRounding(sn.format("binary32"), mode)
    assert encloses(name, role)
    got, want = NumpyBackend().operate(name, (x,), role, None), of_the_core(name, x, role)
    assert got.dtype == np.float32 and np.array_equal(got.view(np.uint32), want.view(np.uint32))


@cases("name", NAMES)
@cases("fmt", ["tf32", "e8m15", "e5m18", "q8.16", "q3.20", "q1.20"])
@cases("overflow", [None, "saturate"])
def test_bits_are_those_of_the_core_in_other_formats(name, fmt, overflow):
    role, backend = RoleRounding(sn.format(fmt), overflow=overflow), NumpyBackend()
    x = backend.quantize(np.nan_to_num(numbers(1500), nan=0.5), role, None)
    got, want = backend.operate(name, (x,), role, None), of_the_core(name, x, role)
    assert encloses(name, role) and np.array_equal(got.view(np.uint32), want.view(np.uint32))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_bits_of_many_numbers(name):
    """More than a million numbers, among them every number of a binade that the functions bend in."""
    x = np.concatenate([numbers(400_000), np.arange(0x3E800000, 0x3F000000, 8, dtype=np.uint32).view(np.float32)])
    role = RoleRounding(sn.format("binary32"))
    got, want = NumpyBackend().operate(name, (x,), role, None), of_the_core(name, x, role)
    assert np.array_equal(got.view(np.uint32), want.view(np.uint32))


@cases("mode", ["nearest_even", "toward_zero", "up"])
def test_cubes_are_those_of_the_core(mode):
    x, role = numbers(3000), RoleRounding(sn.format("binary32"), mode)
    got = NumpyBackend().operate("pow", (x, np.float32([3.0])), role, None)
    codes = sn.pow(sn.encode(x, "binary32"), sn.encode(np.float32(3.0), "binary32"), "binary32", rounding=mode)
    assert np.array_equal(got.view(np.uint32), codes)


@pytest.mark.parametrize("name", ("erf", "gelu"))
def test_ends_hold_the_exact_results(name):
    """Against the C core in binary64, at numbers of all sizes and close together where the series ends."""
    x = np.concatenate([numbers(4000, largest=7.0).astype(np.float64), np.linspace(-6.1, 6.1, 5001)])
    x = x[(x == x) & (np.abs(x) > 1e-40) & (np.abs(x) < 100.0)]
    *ends, far = enclosures._normal_ends(name, x)
    low, high = np.minimum(*ends), np.maximum(*ends)
    want = sn.decode(getattr(sn, name)(sn.encode(x, "binary64"), "binary64"), "binary64")
    low, high, want, x = low[~far], high[~far], want[~far], x[~far]
    assert np.all((low <= want) & (want <= high)) and far.sum() < 1000
    inside = np.abs(x) <= 4.0
    middle, radius = (low + high)[inside] / 2, (high - low)[inside] / 2
    assert np.abs(middle - want[inside]).max() > 0 and np.all(np.abs(middle - want[inside]) <= radius / 2)


@pytest.mark.parametrize("name", RELATIVE)
def test_errors_are_within_the_bound(name):
    """Against the C core in binary64, at numbers of which a rounding error is likely: those around changes of k."""
    ties = (np.arange(-231, 231) + 0.5) * np.log(2.0)
    x = np.concatenate([ties / 2.0, np.nextafter(ties / 2.0, 0.0), numbers(2000, largest=80.0).astype(np.float64)])
    x = x[(np.abs(x) <= 80.0) & (np.abs(x) > 1e-40)]
    want = sn.decode(getattr(sn, name)(sn.encode(x, "binary64"), "binary64"), "binary64")
    error = np.abs(enclosures._FUNCTIONS[name](x) / want - 1.0).max()
    assert 2.0**-54 < error < BOUND / 4


@pytest.mark.parametrize("name", RELATIVE)
def test_a_rounding_that_the_bound_does_not_decide_is_left(name):
    """Most of them, if the format is nearly as precise as the bound; none is decided wrongly."""
    x = numbers(2000, largest=20.0).astype(np.float64)[len(EDGES) :]
    ends, left = enclose(name, x, lambda values: sn.quantize(values, "e11m44"))
    want = sn.decode(getattr(sn, name)(sn.encode(x, "binary64"), ("binary64",), out_fmt="e11m44"), "e11m44")
    assert 0.02 * len(x) < len(left) < 0.9 * len(x)
    rest = np.setdiff1d(np.arange(len(x)), left)
    assert np.array_equal(ends[rest], want[rest])


def test_a_wrong_function_is_noticed(monkeypatch):
    """A value that is off by more than the bound decides roundings wrongly: the comparison with the core sees it.

    In a mode that the core does not enclose in lanes.
    """
    right = enclosures._FUNCTIONS["sigmoid"]
    monkeypatch.setitem(enclosures._FUNCTIONS, "sigmoid", lambda x: right(x) * (1.0 + 2.0**-36))
    x, role = numbers(200_000)[len(EDGES) :], RoleRounding(sn.format("binary32"), "nearest_away")
    x = x[x < -1.0][:60_000]
    got = NumpyBackend().operate("sigmoid", (x,), role, None)
    assert not np.array_equal(got, right(x.astype(np.float64)).astype(np.float32))


@cases("name", [name for name in NAMES if name in _core.ENCLOSED])
def test_lanes_make_the_same_numbers(name):
    """What the core encloses is what is computed here, and what it leaves: on every instruction set."""
    x = numbers(20_003)
    ends, left = enclose(name, x, np.float32)
    for _ in on_every_isa():
        for part in (slice(None), slice(0, 1), slice(5, 262)):
            got, undecided = _core.enclose(name, x[part])
            rest = np.setdiff1d(np.arange(len(x)), left)
            assert np.array_equal(
                np.flatnonzero(undecided), np.intersect1d(np.arange(len(x))[part], left) - (part.start or 0)
            )
            decided = np.isin(np.arange(len(x))[part], rest)
            assert np.array_equal(got[decided].view(np.uint32), ends[part][decided].view(np.uint32))
    assert (
        _core.enclose("silu", x) is None
        and _core.enclose(name, x[::2]) is None
        and _core.enclose(name, np.float32([0.5, 1.0]))[1] is None
    )


def test_what_is_not_enclosed_goes_to_the_core():
    wide, fixed = sn.format("binary32"), sn.format("q8.16")
    assert not encloses("tanh", RoleRounding(wide, "stochastic")) and not encloses("log", RoleRounding(wide))
    assert not encloses("tanh", RoleRounding(fixed, overflow="wrap")) and encloses("tanh", RoleRounding(fixed))
    posit = sn.CustomFormat.from_table(np.arange(-8.0, 8.0))
    for fmt in (sn.format("e6m9"), sn.format("binary64"), sn.format("q4.12"), posit):
        assert not encloses("tanh", RoleRounding(fmt))


def test_shapes_and_strides_are_kept():
    x, role = numbers(62)[:92].reshape(4, 23).T, RoleRounding(sn.format("binary32"))
    got = NumpyBackend().operate("tanh", (x,), role, None)
    assert got.shape == x.shape
    assert np.array_equal(got, of_the_core("tanh", np.ascontiguousarray(x), role), equal_nan=True)
    assert NumpyBackend().operate("exp", (np.float32(1.0).reshape(()),), role, None) == np.float32(np.e)
    assert NumpyBackend().operate("exp", (np.zeros((0, 3), np.float32),), role, None).shape == (0, 3)
