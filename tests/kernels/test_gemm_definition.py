"""Products by the definition on the device: lanes, reductions, compensation, operands by value tables."""

import numpy as np
import pytest

import softnum as sn
from softnum.kernels.device.products import gemm
from softnum.kernels.device.products.mad.definition import DefinitionEngine
from softnum.mac.mad import MAX_LANES
from tests.support.equality import check_product

LANES = {
    "lanes": {"lanes": 3},
    "more lanes than products": {"lanes": 16, "reduction": "tree"},
    "tree": {"lanes": 5, "reduction": "tree", "chunk": 7},
    "pairwise": {"lanes": 7, "reduction": "pairwise"},
    "pairwise, product": {"lanes": 6, "reduction": "pairwise", "product": "e5m2", "chunk": 6},
    "kahan": {"compensated": "kahan", "chunk": 6, "outer_accumulator": "e8m5"},
    "kahan, lanes": {"compensated": "kahan", "lanes": 3, "product": "e5m2", "rounding": "rtz"},
    "kahan, stochastic product": {"compensated": "kahan", "product": "e5m2", "product_rounding": "sr", "chunk": 5},
    "stochastic, tree": {"lanes": 6, "reduction": "tree", "rounding": "sr", "stochastic_bits": 9, "chunk": 8},
    "two stochastic": {"lanes": 5, "product": "e5m2", "rounding": "sr", "stochastic_bits": 20, "reduction": "tree"},
    "lfsr": {"rounding": "sr", "stochastic_bits": 9, "random": "lfsr16x5"},
    "lfsr, lanes": {"lanes": 3, "product": "e5m2", "rounding": "sr", "stochastic_bits": 8, "random": "lfsr16"},
    "two draws": {"lanes": 3, "product": "e5m2", "rounding": "sr", "stochastic_bits": 8, "random": "philox4x32-7/2"},
}  # fmt: skip


@pytest.fixture
def by_definition(monkeypatch):
    """Every MadUnit is computed by the definition, even where there is a fast path."""
    monkeypatch.setattr(gemm, "engine_of", lambda unit, words: DefinitionEngine(unit))


def values(rng, fmt, shape):
    """Seeded values of a format, with a few zeros and special values."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)
    x = np.where(rng.integers(0, 12, shape) == 0, rng.choice([0.0, -0.0, 1e-9], shape), x)
    return sn.quantize(x.astype(np.float32), fmt)


@pytest.mark.parametrize("has_c", [False, True])
@pytest.mark.parametrize("name", LANES)
def test_orders(device, name, has_c):
    unit = sn.MadUnit("e6m9", operand=("e5m2", "e4m3fn"), **LANES[name])
    rng = np.random.default_rng(5)
    a, b = values(rng, unit.operand[0], (3, 13)), values(rng, unit.operand[1], (13, 4))
    c = values(rng, unit.c_format, (3, 4)) if has_c else None
    check_product(device, unit, a, b, c, key=(2**40 + 3, 7) if unit.stochastic else None)


def test_all_lanes(device):
    unit = sn.MadUnit("e6m9", operand="e5m2", lanes=MAX_LANES, reduction="pairwise", rounding="sr")
    rng = np.random.default_rng(6)
    check_product(
        device, unit, values(rng, "e5m2", (1, 3)), values(rng, "e5m2", (3, 1)), np.ones((1, 1), np.float32), key=1
    )


@pytest.mark.parametrize("lanes", [1, 3])
def test_special_values(device, by_definition, lanes):
    a = np.float32(
        [[np.inf, 1, 0, 2], [np.nan, 1, 0, 1], [57344] * 4, [-0.0, 0, -0.0, -0.0], [-0.0, -0.0, 2.0**-16, 1]]
    )
    for options in ({}, {"compensated": "kahan"}, {"product": "e5m2", "rounding": "rdn"}):
        unit = sn.MadUnit("e6m9", operand="e5m2", lanes=lanes, **options)
        check_product(device, unit, a, a.T.copy())
        check_product(device, unit, a, a.T.copy(), np.full((5, 5), -0.0, np.float32))


@pytest.mark.parametrize("unit", [
    sn.MadUnit("binary8p4ue", operand="binary8p3se", rounding="to_odd", overflow="p3109_v3_2_1"),
    sn.MadUnit("binary8p4ue", operand="binary8p3se", product="e5m2", overflow="p3109_v3_2_1", lanes=2),
    sn.ExactDotUnit("binary8p4ue", operand="binary8p3se", rounding="to_odd", overflow="p3109_v3_2_1"),
    sn.FusedDotUnit(
        4, 20, "binary32", "binary8p3se", output="binary8p4ue", output_rounding="to_odd", overflow="p3109_v3_2_1"
    ),
])  # fmt: skip
def test_the_older_draft_of_p3109(device, unit):
    rng = np.random.default_rng(9)
    codes = [rng.integers(0, 256, shape).astype(np.uint8) for shape in ((4, 5), (5, 4))]
    a, b = (sn.decode(x, "binary8p3se", np.float32) for x in codes)
    check_product(device, unit, a, b)
    check_product(device, unit, np.where(np.isfinite(a), a, 0), np.where(np.isfinite(b), -np.abs(b), 0))


def test_random_bits(device):
    unit = sn.MadUnit("e6m9", operand="e5m2", product="e5m2", rounding="sr", lanes=3, reduction="tree")
    rng = np.random.default_rng(8)
    a, b, c = values(rng, "e5m2", (2, 7)), values(rng, "e5m2", (7, 2)), values(rng, "e6m9", (2, 2))
    for start, steps in ((None, unit.steps(7)), (c, unit.steps_with_c(7))):
        words = rng.integers(0, 2**32, (2, 2, steps, 2), dtype=np.uint32)
        check_product(device, unit, a, b, start, random_bits=words)


def test_batches_and_empty(device):
    unit = sn.MadUnit("e6m9", operand="e5m2", lanes=4, rounding="sr", stochastic_bits=10)
    rng = np.random.default_rng(9)
    a, b = values(rng, "e5m2", (2, 3, 2, 5)), values(rng, "e5m2", (3, 5, 3))
    check_product(device, unit, a, b, key=3)
    c = np.full((2, 2), 2.5, np.float32)
    check_product(device, unit, np.zeros((2, 0), np.float32), np.zeros((0, 2), np.float32), c, key=3)
    check_product(device, unit, np.zeros((2, 0), np.float32), np.zeros((0, 2), np.float32), key=3)


def test_result_without_code(device):
    a = device.to_device(np.float32([[1, np.inf]]))
    with pytest.raises(ValueError, match=r"q8\.8 has no code"):
        sn.matmul(a, a.T, sn.MadUnit("q8.8", operand="e5m2", lanes=2))
    with pytest.raises(ValueError, match=r"q4\.4 has no code"):
        sn.matmul(a, a.T, sn.MadUnit("e6m9", operand="e5m2", product="q4.4", lanes=2))


# ---- operands that a table of values defines -------------------------------------------------------------------------

NF4 = sn.CustomFormat.from_table(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
     -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
     0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0],
    name="nf4",
)  # fmt: skip
WITH_NAN = sn.CustomFormat.from_table([0.0, 3.0, float("nan"), -0.5, 1e-300, 7.0, -7.0, 2.0**70], name="with_nan")
TWELVE = sn.CustomFormat.from_table([(i - 2048) / 64 + (i % 7) / 1024 for i in range(4096)], name="twelve")


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("fmt", [NF4, TWELVE, WITH_NAN], ids=str)
def test_value_tables(device, by_definition, fmt, lanes):
    unit = sn.MadUnit("binary32", operand=(fmt, "e5m2"), lanes=lanes)
    rng = np.random.default_rng(10)
    codes = rng.integers(0, 1 << fmt.bits, (3, 6)).astype(fmt.storage_dtype)
    a, b = sn.decode(codes, fmt), values(rng, "e5m2", (6, 3))
    a[0, 0] = -0.0 if fmt is WITH_NAN else a[0, 0]
    check_product(device, unit, a, b)
    small = np.where(np.isnan(a) | (a == a.astype(np.float32)), a, 7.0).astype(np.float32)
    if fmt is not TWELVE:
        check_product(device, unit, small if fmt is WITH_NAN else a.astype(np.float32), b)


def test_nothing_is_read_where_there_are_no_elements(device, monkeypatch):
    """Memory that is not initialised is no codes of an operand with K = 0."""
    poisoned = lambda shape, dtype: device.to_device(np.full(shape, 255, dtype))  # noqa: E731
    monkeypatch.setattr(gemm._cuda, "empty", poisoned)
    nothing, c = np.zeros((2, 0), np.float32), np.float32([[1, -1], [0.5, 3]])
    for unit in (
        sn.MadUnit("binary32", operand=NF4, lanes=2),
        sn.ExactDotUnit("binary32", operand=NF4),
        sn.CustomMadUnit(lambda acc, a, b: max(acc, a), operand=NF4, accumulator="binary32"),
    ):
        check_product(device, unit, nothing, nothing.T)
        check_product(device, unit, nothing, nothing.T, c)


def test_no_value_of_a_table(device):
    unit = sn.MadUnit("binary32", operand=WITH_NAN, lanes=2)
    a = np.array([[3.0, 1.0]])
    for x in (a, a.astype(np.float32)):
        with pytest.raises(ValueError, match=r"a\[0, 1\] = .*1\.0.* is no value of with_nan"):
            sn.matmul(device.to_device(x), device.to_device(x).T, unit)
    with pytest.raises(ValueError, match=r"a\[0, 0\] = .*nan.* is no value of nf4"):
        x = device.to_device(np.array([[np.nan]]))
        sn.matmul(x, x, sn.MadUnit("binary32", operand=NF4, lanes=2))
    rounded = device.to_device(np.float32([[-0.6961928009986877 / 3]]))  # a value that float32 does not hold
    thirds = sn.CustomFormat.from_table([0.0, 1.0, -0.6961928009986877 / 3, 2.0], name="thirds")
    with pytest.raises(ValueError, match="is no value of thirds"):
        sn.matmul(rounded, rounded, sn.MadUnit("binary32", operand=thirds, lanes=2))


def test_every_nan_is_the_tables(device):
    nans = np.array([0x7F800001, 0xFFFFFFFF, 0xFF800001, 0x7FC00000], np.uint32).view(np.float32)
    check_product(device, sn.MadUnit("binary32", operand=WITH_NAN, lanes=2), nans[:, None], np.float32([[3, 7]]))
