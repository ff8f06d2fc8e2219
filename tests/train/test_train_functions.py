"""Functions of a backend's numbers: the bits of the definition in C."""

import numpy as np

import softnum as sn
from softnum.train.designs import RoleRounding
from softnum.train.engine.backend import NumpyBackend
from tests.support.cases import cases
from tests.support.core_oracles import by_definition

NAMES = ("exp", "sigmoid", "silu", "tanh", "erf", "gelu")
EDGES = np.float32(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 80.0, -87.5, 88.8, -103.9, -104.1, 700.0, 1e-45, -1e-45, 2.0**-126, 2.0**-25,
     2.0**-12, -(2.0**-13), 0.17328679, 1.0397208, 9.010913, 1.0, -1.0, 4.2, -4.2000003, 6.0, -6.0000005, 3e38, -3e38]
)  # fmt: skip


def numbers(count, largest=100.0):
    """Numbers of many sizes, of both signs."""
    rng = np.random.Generator(np.random.Philox(11))
    x = np.exp2(rng.uniform(-30.0, np.log2(largest), count)) * rng.choice([-1.0, 1.0], count)
    return np.concatenate([EDGES, x.astype(np.float32)])


def defined(name, operands, role):
    """What the definition makes of them."""
    codes = [np.ravel(sn.encode(x, role.format)) for x in operands]
    options = {"rounding": role.rounding, "overflow": role.overflow}
    result = by_definition(name, codes, (role.format,) * len(codes), role.format, **options)[0]
    return sn.decode(result, role.format, np.float32)


@cases("name", NAMES)
@cases("mode", ["nearest_even", "toward_zero", "up", "down", "nearest_away", "to_odd"])
def test_bits_are_those_of_the_definition(name, mode):
    x, role = numbers(800), RoleRounding(sn.format("binary32"), mode)
    got, want = NumpyBackend().operate(name, (x,), role, None), defined(name, (x,), role)
    assert got.dtype == np.float32 and np.array_equal(got.view(np.uint32), want.view(np.uint32))


@cases("name", NAMES)
@cases("fmt", ["tf32", "e8m15", "e5m18", "q8.16", "q3.20", "q1.20"])
@cases("overflow", [None, "saturate"])
def test_bits_are_those_of_the_definition_in_other_formats(name, fmt, overflow):
    role, backend = RoleRounding(sn.format(fmt), overflow=overflow), NumpyBackend()
    x = backend.quantize(np.nan_to_num(numbers(400), nan=0.5), role, None)
    got, want = backend.operate(name, (x,), role, None), defined(name, (x,), role)
    assert np.array_equal(got.view(np.uint32), want.view(np.uint32))


@cases("mode", ["nearest_even", "toward_zero", "up", "to_odd"])
@cases("fmt", ["binary32", "tf32", "q8.16"])
def test_cubes_are_those_of_the_definition(mode, fmt):
    role, backend, three = RoleRounding(sn.format(fmt), mode), NumpyBackend(), np.float32([3.0])
    x = backend.quantize(np.nan_to_num(numbers(1500), nan=0.5), role, None)
    got = backend.operate("pow", (x, three), role, None)
    want = defined("pow", (x, np.broadcast_to(three, x.shape)), role)
    assert np.array_equal(got.view(np.uint32), want.view(np.uint32))


def test_shapes_and_strides_are_kept():
    x, role = numbers(64).reshape(4, -1).T, RoleRounding(sn.format("binary32"))
    got = NumpyBackend().operate("tanh", (x,), role, None)
    want = defined("tanh", (np.ascontiguousarray(x),), role).reshape(x.shape)
    assert got.shape == x.shape and np.array_equal(got, want, equal_nan=True)
