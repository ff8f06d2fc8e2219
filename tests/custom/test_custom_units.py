"""CustomMadUnit of Python functions: compiled, in Python steps, and as the built-in unit of the same arithmetic."""

import numpy as np
import pytest

import softnum as sn
from softnum import kernels
from softnum.mac.products.custom.steps import DefinitionCustom, try_out
from softnum.mac.products.engines import definition_of

numba = pytest.importorskip("numba")

e5m2, e6m9, q6 = kernels.scalar("e5m2"), kernels.scalar("e6m9"), kernels.scalar("q4.8")
sr = kernels.scalar("e6m9", rounding="stochastic", stochastic_bits=12)
codes = kernels.scalar("e5m2", carrier="codes")


def rounded_mad(acc, a, b):
    return e6m9.add(acc, e5m2.multiply(a, b))


def fused(acc, a, b):
    return e6m9.fma(a, b, acc)


def product(a, b):
    return e5m2.multiply(a, b)


def exact_product(a, b):
    return a * b


def stochastic(acc, a, b, word):
    return sr.fma(a, b, acc, word)


def on_codes(acc, a, b):
    return codes.add(acc, codes.multiply(a, b))


def product_of_codes(a, b):
    return codes.multiply(a, b)


def fused_codes(acc, a, b):
    return codes.fma(a, b, acc)


#: (function, its unit's arguments, the MadUnit of the same arithmetic)
SAME = {
    "two roundings": (rounded_mad, {"accumulator": "e6m9"}, sn.MadUnit("e6m9", operand="e5m2", product="e5m2")),
    "fma": (fused, {"accumulator": "e6m9"}, sn.MadUnit("e6m9", operand="e5m2")),
    "product": (product, {"accumulator": "e6m9"}, sn.MadUnit("e6m9", operand="e5m2", product="e5m2")),
    "exact product": (exact_product, {"accumulator": "e6m9"}, sn.MadUnit("e6m9", operand="e5m2")),
    "codes": (on_codes, {"carrier": "codes"}, sn.MadUnit("e5m2", operand="e5m2", product="e5m2")),
    "product of codes": (product_of_codes, {"carrier": "codes"}, sn.MadUnit("e5m2", operand="e5m2", product="e5m2")),
    "fma of codes": (fused_codes, {"carrier": "codes"}, sn.MadUnit("e5m2", operand="e5m2")),
    "saturating": (
        exact_product, {"accumulator": "e6m9", "overflow": "saturate", "rounding": "toward_zero"},
        sn.MadUnit("e6m9", operand="e5m2", overflow="saturate", rounding="toward_zero"),
    ),
}  # fmt: skip
ORDERS = [
    {},
    {"lanes": 3},
    {"chunk": 5},
    {"chunk": 7, "lanes": 4, "reduction": "tree"},
    {"lanes": 5, "reduction": "pairwise"},
]


def matrices(shape, seed=1, specials=False):
    """Operands in e5m2 and a start in e5m2 (which e6m9 has too)."""
    m, k, n = shape
    rng = np.random.Generator(np.random.Philox(seed))
    a, b, c = (sn.quantize(rng.standard_normal(s, dtype=np.float32) * 4, "e5m2") for s in ((m, k), (k, n), (m, n)))
    if specials:
        a[0, 0], a[1, -1], b[-1, 0], c[0, 1] = np.inf, np.nan, -np.inf, 0.0
        a[2], b[:, 3] = 57344, 57344
    return a, b, c


def same(x, y):
    assert np.array_equal(x.view(np.uint32), y.view(np.uint32)), np.argwhere(x.view(np.uint32) != y.view(np.uint32))[:3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "order"),
    [
        *(("product", order) for order in ORDERS),
        *((name, ORDERS[i % 2]) for i, name in enumerate(("two roundings", "codes", "saturating"))),
        *(pytest.param(name, order, marks=pytest.mark.slow) for name in SAME for order in ORDERS),
    ],
)
def test_is_the_built_in_unit_of_the_same_arithmetic(name, order):
    function, options, built_in = SAME[name]
    fields = {f: getattr(built_in, f) for f in ("product", "overflow", "rounding", "product_rounding")}
    reference = sn.MadUnit(built_in.accumulator, operand="e5m2", **fields, **order)
    unit = sn.CustomMadUnit(function, operand="e5m2", **options, **order)
    for shape in ((5, 23, 6), (3, 1, 130), (1, 0, 2)):
        a, b, c = matrices(shape, specials=shape[0] == 5)
        same(sn.matmul(a, b, unit), sn.matmul(a, b, reference))
        same(sn.matmul(a, b, unit, c), sn.matmul(a, b, reference, c))


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("function", [rounded_mad, product])
def test_is_its_definition_in_python(function, order):
    unit = sn.CustomMadUnit(function, operand="e5m2", accumulator="e6m9", **order)
    a, b, c = matrices((4, 12, 5), seed=3)
    out = np.empty((4, 5), np.uint64)
    coded = [sn.encode(x, f).astype(np.uint64) for x, f in ((a, "e5m2"), (b, "e5m2"), (c, "e6m9"))]
    definition_of(unit).run(*coded, out, None, (0, 0, 0, 0), 0, 0, 4, 0, 5)
    same(sn.matmul(a, b, unit, c), sn.decode(out.astype(np.uint16), "e6m9", np.float32))


def test_a_compiled_unit_that_is_wrong_by_one_code_is_refused():
    unit = sn.CustomMadUnit(fused, operand="e5m2", accumulator="e6m9")

    def run(a, b, c, out, *rest):
        DefinitionCustom(unit, unit.operand).run(a, b, c, out, *rest)
        out[-1, -1] ^= 1

    with pytest.raises(ValueError, match=r"fused \(.*_units.py:\d+\) is not the same compiled and in Python"):
        try_out(unit, run)


def test_does_not_depend_on_threads_tiles_or_layout():
    unit = sn.CustomMadUnit(rounded_mad, operand="e5m2", accumulator="e6m9", chunk=16)
    a, b, c = matrices((70, 40, 300))
    whole = sn.matmul(a, b, unit, c, threads=1)
    same(whole, sn.matmul(a, b, unit, c, threads=3))
    same(whole, sn.matmul(np.asfortranarray(a), np.ascontiguousarray(b.T).T, unit, c))
    parts = [
        sn.matmul(a[i : i + 1], b[:, j : j + 150], unit, c[i : i + 1, j : j + 150]) for i in (0, 69) for j in (0, 150)
    ]
    same(whole[[0, 69]], np.block([parts[:2], parts[2:]]))
    same(sn.matmul(np.stack([a, -a]), b, unit)[1], sn.matmul(-a, b, unit))


def test_random_words_are_those_of_a_mad_unit_of_one_rounding():
    unit = sn.CustomMadUnit(stochastic, operand="e5m2", accumulator="e6m9")
    built_in = sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=12)
    a, b, c = matrices((9, 21, 140))
    assert unit.stochastic
    for options in ({"key": 7}, {"key": (1, 2), "threads": 3}):
        same(sn.matmul(a, b, unit, c, **options), sn.matmul(a, b, built_in, c, **options))
    words = np.random.default_rng(1).integers(0, 2**32, (2, 3, 21, 2), np.uint32)
    a, b = a[:2], b[:, :3].copy()
    same(sn.matmul(a, b, unit, random_bits=words), sn.matmul(a, b, built_in, random_bits=words))
    x, w = a.reshape(1, 1, 2, 21), b.T.reshape(3, 1, 1, 21).copy()
    same(sn.conv2d(x, w, unit, key=5, workspace=100), sn.conv2d(x, w, built_in, key=5))
    with pytest.raises(ValueError, match="give key="):
        sn.matmul(a, b, unit)


def test_convolutions_dots_and_sums():
    unit = sn.CustomMadUnit(product, operand="e5m2", accumulator="e6m9", lanes=2)
    built_in = sn.MadUnit("e6m9", operand="e5m2", product="e5m2", lanes=2)
    rng = np.random.default_rng(4)
    x, w = (sn.quantize(rng.standard_normal(s), "e5m2").astype(np.float32) for s in ((2, 3, 6, 6), (4, 3, 3, 3)))
    dy = sn.conv2d(x, w, unit, padding=1)
    same(dy, sn.conv2d(x, w, built_in, padding=1))
    dy = sn.quantize(dy, "e5m2")
    same(
        sn.mac.products.conv2d_backward_weight(x, dy, unit, (3, 3), padding=1),
        sn.mac.products.conv2d_backward_weight(x, dy, built_in, (3, 3), padding=1),
    )
    assert sn.dot(x[0, 0, 0], w[0, 0].ravel()[:6], unit) == sn.dot(x[0, 0, 0], w[0, 0].ravel()[:6], built_in)
    same(sn.sum(x, unit, axis=(1, 3)), sn.sum(x, built_in, axis=(1, 3)))
    coded = sn.CustomMadUnit(on_codes, operand="e5m2", carrier="codes", chunk=4)
    same(sn.conv2d(x, w, coded), sn.conv2d(x, w, sn.MadUnit("e5m2", operand="e5m2", product="e5m2", chunk=4)))
    with pytest.raises(TypeError, match="no adder"):
        sn.sum(x, sn.CustomMadUnit(fused, operand="e5m2", accumulator="e6m9"))


def test_an_infinite_sum_is_a_value_under_saturation_too():
    unit = sn.CustomMadUnit(lambda acc, a, b: acc, operand="e5m2", overflow="saturate", lanes=2)
    x = np.ones((1, 3), np.float32)
    assert sn.matmul(x, x.T, unit, np.float32([[1]])) == 1
    unit = sn.CustomMadUnit(lambda acc, a, b: acc, operand="e5m2", overflow="saturate")
    assert np.isinf(sn.matmul(x, x.T, unit, np.float32([[np.inf]])))


def test_float64_and_formats_that_fit_no_carrier():
    wide = kernels.scalar("e9m30")

    def mad(acc, a, b):
        return wide.add(acc, a * b)

    unit = sn.CustomMadUnit(mad, operand="e5m2", accumulator="e9m30")
    assert unit.carrier == "float64"
    a, b, _ = matrices((3, 40, 4))
    want = sn.matmul(a, b, sn.MadUnit("e9m30", operand="e5m2"))
    assert np.array_equal(sn.matmul(a, b, unit), want)
    beyond = sn.FloatFormat(12, 40)
    own = kernels.scalar(beyond)

    def on_codes(acc, a, b):
        return own.add(acc, own.multiply(a, b))

    unit = sn.CustomMadUnit(on_codes, operand=beyond)
    assert unit.carrier == "codes"
    x = sn.array(a, beyond)
    y = sn.array(b, beyond)
    got = sn.matmul(x, y, unit)
    assert np.array_equal(got.codes, sn.matmul(x, y, sn.MadUnit(beyond, operand=beyond, product=beyond)).codes)


def test_operands_of_a_value_table():
    table = sn.CustomFormat.from_table([-1.0, -0.625, -0.25, 0.0, 0.125, 0.375, 0.75, 1.0], name="eighths")
    values = np.array(table.values, np.float32)
    rng = np.random.default_rng(1)
    a, b = values[rng.integers(0, 8, (5, 31))], sn.quantize(rng.standard_normal((31, 6), np.float32), "e4m3")
    want = sn.matmul(a, b, sn.MadUnit("e6m9", operand=(table, "e4m3")))
    same(sn.matmul(a, b, sn.CustomMadUnit(exact_product, operand=(table, "e4m3"), accumulator="e6m9")), want)
    wide = kernels.scalar("e6m9", carrier="codes")

    def by_index(acc, a, b):
        """The codes of a are indices: 4 is 0.125, 5 is 0.375 ...; those of b are e4m3's."""
        return wide.add(acc, acc) if a == 4 and b == 0x38 else acc

    unit = sn.CustomMadUnit(by_index, operand=(table, "e4m3"), accumulator="e6m9", carrier="codes")
    got = sn.matmul(np.float32([[0.125, 0.375]]), np.float32([[1], [1]]), unit, np.float32([[3]]))
    assert got.tolist() == [[6.0]]


@pytest.mark.parametrize("function", [stochastic, fused])
def test_within_a_unit_of_blocks(function):
    mode = {"rounding": "stochastic", "stochastic_bits": 12} if function is stochastic else {}
    built_in = sn.MadUnit("e6m9", operand="e4m3fn", **mode)
    a, b = (sn.array(x, "mxfp8_e4m3", axis=axis) for x, axis in zip(matrices((4, 40, 3))[:2], (-1, -2), strict=True))
    got, want = (
        sn.matmul(a, b, sn.BlockDotUnit("binary32", operand="mxfp8_e4m3", inner=unit), **({"key": 3} if mode else {}))
        for unit in (sn.CustomMadUnit(function, operand="e4m3fn", accumulator="e6m9"), built_in)
    )
    same(got, want)


def test_what_a_unit_says_of_itself():
    unit = sn.CustomMadUnit(fused, operand="e5m2", accumulator="e6m9", lanes=4, chunk=64, reduction="tree")
    assert str(unit) == (
        "acc = fused(acc, a, b): e5m2 x e5m2 -> e6m9 (nearest_even), in 4 lanes reduced as a tree: "
        "(l0 + l1) + (l2 + l3), in chunks of 64 summed in e6m9"
    )
    assert eval(unit.expression, {"CustomMadUnit": sn.CustomMadUnit, "fused": fused}) == unit
    again = sn.CustomMadUnit(on_codes, operand="e5m2", carrier="codes", name="mine")
    assert again.expression == "CustomMadUnit(mine, operand='e5m2', carrier='codes', name='mine')"
    assert unit.result == sn.format("e6m9") and not unit.stochastic and unit.steps(9) == 9
