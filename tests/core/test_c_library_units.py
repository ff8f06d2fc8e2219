"""Units of the C library (csrc/softnum.h): products of matrices have the package's bits."""

from __future__ import annotations

import numpy as np
import pytest

import softnum as sn
from softnum.formats.modes import ROUNDING_MODES
from tests.support import c_library
from tests.support.c_library import NONE, Failed, Library, codes_of, same


@pytest.fixture(scope="module")
def lib() -> Library:
    return c_library.library()


MODES = ["nearest_even", "toward_zero", "stochastic", "to_odd", "up", "stochastic_floor"]
MADS = [
    {"accumulator": "e6m3", "operand": "e5m2"},
    {"accumulator": "e6m9", "operand": "e4m3fn", "product": "e5m4", "chunk": 5, "outer_accumulator": "binary32"},
    {"accumulator": "binary32", "operand": ("bfloat16", "e5m2"), "lanes": 4, "reduction": "tree"},
    {"accumulator": "q8.8", "operand": "q4.4"},
    {"accumulator": "binary16", "operand": "binary16", "compensated": "kahan", "flush_inputs": True},
    {"accumulator": "binary64", "operand": "binary32", "product": "binary64"},
    {"accumulator": "e4m3fn", "operand": "e2m1fn", "lanes": 3, "reduction": "pairwise", "flush_results": "after"},
    {"accumulator": "e15m40", "operand": "e11m20"},
    {"accumulator": "q16.16", "operand": ("uq8.8", "e4m3"), "overflow": "wrap"},
]  # fmt: skip
EXACT = [("binary32", "e4m3fn"), ("q8.8", ("e5m2", "q4.4")), ("e5m2", "binary16"), ("binary64", "binary64")]
REDUCTIONS = ["sequential", "tree", "pairwise"]


def c_unit(lib, unit):
    """The C library's of a unit of Python's."""
    if isinstance(unit, sn.MadUnit):
        rounding = dict(rounding=unit.rounding, overflow=unit.overflow, flush_inputs=bool(unit.flush_inputs),
                        flush_results=unit.flush_results, stochastic_bits=unit.stochastic_bits)  # fmt: skip
        facts = dict(result=unit.outer_accumulator, product=unit.product, lanes=unit.lanes, chunk=unit.chunk or 0,
                     reduction=REDUCTIONS.index(unit.reduction),
                     compensated=int(unit.compensated is not None))  # fmt: skip
        if unit.product_rounding:
            facts["product_rounding"] = ROUNDING_MODES[unit.product_rounding]
        return lib.unit(0, *unit.operand, unit.accumulator, rounding, **facts)
    if isinstance(unit, sn.ExactDotUnit):
        rounding = dict(rounding=unit.rounding, overflow=unit.overflow, stochastic_bits=unit.stochastic_bits)
        return lib.unit(1, *unit.operand, unit.accumulator, rounding)
    names = ("terms", "fraction_bits", "min_exponent", "zero_exponent", "truncate_fraction")
    facts = {name: NONE if getattr(unit, name) is None else getattr(unit, name) for name in names}
    rounding = {"rounding": unit.output_rounding, "overflow": unit.overflow}
    return lib.unit(2, *unit.operand, unit.accumulator, rounding, result=unit.output, **facts)


def check_unit(lib, unit, rng, key=(3, 4)):
    handle = c_unit(lib, unit)
    for m, k, n, with_c in ((3, 17, 5, True), (1, 1, 1, False), (20, 33, 19, False), (4, 0, 3, True)):
        a, b = codes_of(unit.operand[0], m * k + 8, rng)[8:], codes_of(unit.operand[1], k * n + 8, rng)[8:]
        a, b = a[: m * k].reshape(m, k), b[: k * n].reshape(k, n)
        c_format = getattr(unit, "c_format", unit.result)
        c = codes_of(c_format, m * n + 8, rng)[8:][: m * n].reshape(m, n).copy() if with_c else None
        given = {"key": key} if unit.stochastic else {}
        arrays = sn.Array(a, unit.operand[0]), sn.Array(b, unit.operand[1])
        try:
            want = sn.matmul(*arrays, unit, None if c is None else sn.Array(c, c_format), **given)
        except ValueError as error:
            assert "no code" in str(error), error
            with pytest.raises(Failed, match="no code"):
                lib.product(handle, a, b, c, unit.result, key)
            continue
        got = lib.product(handle, a, b, c, unit.result, key)
        if isinstance(want, sn.Array):
            want = want.codes
        else:
            want = sn.encode(want, unit.result)
            if k == 0:  # C as it is, whose NaNs the package's values do not keep apart
                got = sn.encode(sn.decode(got, unit.result), unit.result)
        same(got, want, f"{unit} {m} x {k} x {n}")
    lib.c.softnum_unit_free(handle)


@pytest.mark.parametrize("i", range(len(MADS)))
def test_multiply_add_units(lib, i):
    rng = np.random.default_rng(i)
    for mode in MODES[:4] if i % 2 else MODES[:2] + MODES[4:]:
        if mode.startswith("stochastic") and "compensated" in MADS[i]:
            continue
        r = {"stochastic_bits": 9} if mode.startswith("stochastic") else {}
        check_unit(lib, sn.MadUnit(rounding=mode, **MADS[i], **r), rng)


def test_other_units(lib):
    rng = np.random.default_rng(8)
    for mode in MODES:
        for accumulator, operand in EXACT:
            check_unit(lib, sn.ExactDotUnit(accumulator, operand=operand, rounding=mode), rng)
    for unit in (
        sn.FusedDotUnit(4, 23, "binary32", operand="binary16"),
        sn.FusedDotUnit(16, 13, "binary32", operand="e4m3fn", output="binary16", output_rounding="nearest_even"),
        sn.FusedDotUnit(8, 24, "binary32", operand=("e5m2", "bfloat16"), min_exponent=-132, truncate_fraction=20),
        sn.FusedDotUnit(4, 25, "binary32", operand="bfloat16", overflow="always_infinity", zero_exponent=-130),
        sn.FusedDotUnit(2, 30, "e6m9", operand="e4m3", output_rounding="up", overflow="saturate"),
    ):
        check_unit(lib, unit, rng)


def test_parts_of_products(lib):
    rng = np.random.default_rng(2)
    fused = sn.MadUnit("e6m3", operand="e5m2", product="e5m4", rounding="stochastic", stochastic_bits=9)
    for unit in (fused, sn.ExactDotUnit("e5m2", operand="e5m2", rounding="stochastic")):
        handle, key = c_unit(lib, unit), (2**40, 3)
        a, b = codes_of("e5m2", 3 * 9 * 21, rng).reshape(3, 9, 21), codes_of("e5m2", 21 * 40, rng).reshape(21, 40)
        values = [sn.decode(x & 0x7B, "e5m2", np.float32) for x in (a, b)]  # finite
        a, b = a & 0x7B, b & 0x7B
        want = sn.encode(sn.matmul(*values, unit, key=key), unit.result)
        for i in range(3):
            same(lib.product(handle, a[i], b, None, unit.result, key, part=(i, 0, 0)), want[i], f"{unit} batch {i}")
            got = lib.product(
                handle, a[i][2:7], b[:, 5:30], None, unit.result, key, part=(i, 2, 5), strides=(21, 40, 0, 0)
            )
            same(got, want[i, 2:7, 5:30], f"{unit} part of {i}")


def test_traces_are_sums_of_the_first_products(lib):
    unit = sn.FusedDotUnit(4, 13, "binary32", operand="e4m3fn")
    a, b = (codes_of("e4m3fn", 30, np.random.default_rng(i)).reshape(s) & 0x77 for i, s in ((1, (1, 30)), (2, (30, 1))))
    got = lib.product(c_unit(lib, unit), a, b, None, "binary32", function="trace")
    x, y = (sn.decode(v, "e4m3fn", np.float32) for v in (a, b))
    same(got.view(np.float32), np.array([sn.matmul(x[:, :i], y[:i], unit)[0, 0] for i in range(1, 31)]), "trace")
