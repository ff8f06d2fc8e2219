"""Quantizers of training recipes by what they promise; their references' results are in test_recipe_vectors.py."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import softnum as sn
from softnum.train import recipes
from softnum.train.recipes import products
from tests.support.cases import cases
from tests.support.train_cases import spread

RNG = np.random.Generator(np.random.Philox(11))
X = (RNG.standard_normal((33, 150)) * np.exp2(RNG.integers(-9, 9, (33, 1)))).astype(np.float32)

QUANTIZERS = {
    "tensor": recipes.TensorScaling("e4m3fn"),
    "tensor, powers": recipes.TensorScaling("e5m2", power_of_two=True),
    "rows": recipes.BlockScaling("e4m3fn", (1, None)),
    "columns": recipes.BlockScaling("e4m3fn", (None, 1), power_of_two=False),
    "1 x 128": recipes.BlockScaling("e4m3fn", (1, 128)),
    "128 x 128": recipes.BlockScaling("e4m3fn", (128, 128), power_of_two=False),
    "mx": recipes.MXScaling("e4m3fn"),
    "mx, 32 x 32": recipes.MXScaling("e5m2", (32, 32)),
    "mxfp4": recipes.MXFP4Scaling(),
    "nvfp4": recipes.NVFP4Scaling(),
    "nvfp4, 16 x 16": recipes.NVFP4Scaling((16, 16)),
    "nvfp4, rows": recipes.NVFP4Scaling(rows=True),
    "nvfp4, four over six": recipes.NVFP4Scaling(four_over_six="squared", scale_max=256),
}


@cases("name", QUANTIZERS)
def test_values_are_near(name):
    quantizer = QUANTIZERS[name]
    scaled = quantizer(X)
    assert np.array_equal(scaled.elements, sn.quantize(scaled.elements, quantizer.format))
    tiles = recipes.spread(recipes.tile_magnitudes(X, scaled.block), X.shape, scaled.block)
    step = float(quantizer.format.epsilon)  # of an element; scales and binary32's roundings add little to it
    error = np.abs(scaled.values().astype(np.float64) - X)
    assert (
        error <= (np.abs(X) + tiles * 2.0**-9 * step) * step * 1.2 + tiles * 2.0**-12 + (step > 0.2) * tiles * 0.2
    ).all()


@cases("name", ["1 x 128", "128 x 128", "mx", "mx, 32 x 32", "mxfp4"])
def test_a_tile_depends_on_its_own_numbers_alone(name):
    quantizer = QUANTIZERS[name]
    whole = quantizer(X)
    rows, columns = (min(size, part) for size, part in zip(X.shape, whole.block, strict=True))
    part = quantizer(X[:rows, :columns])
    assert np.array_equal(part.elements, whole.elements[:rows, :columns])
    assert part.scales[0, 0] == whole.scales[0, 0]


@cases("name", QUANTIZERS)
def test_powers_of_two_scale_along(name):
    scaled, larger = (QUANTIZERS[name](numbers) for numbers in (X, X * 32))
    assert np.array_equal(scaled.elements, larger.elements)
    assert np.array_equal(scaled.values() * 32, larger.values())


def test_scales_of_edge_magnitudes():
    amax = np.float32([0, np.inf, np.nan, 1e-45, 448])
    for reference, want in (
        ("cuda", [1, 1, 1, recipes.scales.LARGEST, 1]),
        ("pytorch", [1, 0, np.nan, recipes.scales.LARGEST, 1]),
    ):
        scale, inverse = recipes.scale_of_largest(amax, 448, reference=reference)
        assert np.array_equal(scale, np.float32(want), equal_nan=True)
        with np.errstate(divide="ignore"):
            assert np.array_equal(inverse, np.float32(1) / scale, equal_nan=True)


def test_delayed_scaling_uses_the_scale_of_the_steps_before():
    scaling = recipes.DelayedScaling("e4m3fn", history=3, margin=1)
    state = scaling.start()
    for largest, scale in ((7, 1), (14, 32), (1.75, 16), (1.75, 16), (1.75, 16), (1.75, 128)):
        scaled = scaling(np.float32([[largest, -1]]), state)
        assert scaled.scales[0, 0] == np.float32(1) / np.float32(scale)
        assert scaled.elements[0, 0] == min(448, largest * scale)  # cut off, never an infinity
        scaling.update(state)


def test_the_transform_is_orthogonal_and_exact_before_it_is_rounded():
    x = X[:4, :32]
    matrix = recipes.hadamard_matrix()
    assert np.array_equal(matrix @ matrix.T, 16 * np.eye(16))
    got = recipes.hadamard_transform(x)
    row = [
        sum(Fraction(float(v)) * int(m) for v, m in zip(x[1, 16:], matrix[:, j], strict=True)) / 4 for j in range(16)
    ]
    assert got[1, 16:].tolist() == [float(np.float32(float(v))) for v in row]
    assert np.allclose(got @ np.kron(np.eye(2), matrix).T / 4, x, rtol=1e-5, atol=1e-5 * np.abs(x).max())


def test_products_are_those_of_the_values_where_nothing_rounds():
    x, w = (RNG.integers(-4, 5, shape).astype(np.float32) for shape in ((5, 256), (7, 256)))
    unit = sn.MadUnit("binary32", operand="e4m3fn")
    want = x.astype(np.float64) @ w.T
    for a in (recipes.BlockScaling("e4m3fn", (1, 128)), recipes.BlockScaling("e4m3fn", (128, 128))):
        for b in (recipes.BlockScaling("e4m3fn", (128, 128)), recipes.BlockScaling("e4m3fn", (1, None))):
            assert np.array_equal(recipes.scaled_product(a(x), b(w), unit), want)


def test_a_row_of_a_product_is_the_same_alone():
    a, b = recipes.TensorScaling("e4m3fn")(X), recipes.TensorScaling("e5m2")(X[:7] * np.float32(1.37))
    unit = sn.MadUnit("binary32", operand=("e4m3fn", "e5m2"))
    whole = recipes.scaled_product(a, b, unit)
    sums = sn.matmul(a.elements, b.elements.T, unit)
    assert np.array_equal(whole, sums * (a.scales * b.scales))  # as of tiles, however many rows there are
    for row in range(len(X)):
        assert np.array_equal(
            recipes.scaled_product(a._replace(elements=a.elements[row : row + 1]), b, unit), whole[[row]]
        )


def test_products_in_a_tensor_core_are_promoted_block_by_block():
    x, w = np.ones((1, 256), np.float32), np.full((1, 256), 2.0**-9, np.float32)
    x[0, 0], w[0, 0] = 448, 448
    unit = sn.unit("nvidia_h100_e4m3")  # 14 bits: what follows the first product is lost, in its block
    operand = (
        recipes.Scaled(x, np.ones((1, 2), np.float32), (1, 128)),
        recipes.Scaled(w, np.ones((1, 2), np.float32), (1, 128)),
    )
    assert recipes.scaled_product(*operand, unit).item() == 448 * 448 + 128 * 2.0**-9 != sn.matmul(x, w.T, unit).item()


ELEMENTS = {
    "nvfp4": (recipes.NVFP4Scaling(), recipes.NVFP4Scaling(), "e2m1fn"),
    "mx": (recipes.MXScaling("e4m3fn"), recipes.MXScaling("e4m3fn"), "e4m3fn"),
    "tiles": (recipes.BlockScaling("e4m3fn", (1, 32)), recipes.BlockScaling("e5m2", (64, 64)), ("e4m3fn", "e5m2")),
    "tiles of 7": (recipes.BlockScaling("e4m3fn", (5, 7)), recipes.BlockScaling("e4m3fn", (3, 7)), "e4m3fn"),
    "any scale": (recipes.BlockScaling("e4m3fn", (1, 32), False), recipes.BlockScaling("e4m3fn", (1, 32)), "e4m3fn"),
    "wide": (recipes.BlockScaling("bfloat16", (1, 32)), recipes.BlockScaling("bfloat16", (1, 32)), "bfloat16"),
}
AT_ONCE = {("nvfp4", "mad"), ("nvfp4", "exact"), ("mx", "mad"), ("tiles", "mad"), ("tiles of 7", "mad")}
AS_BLOCKS = {("mx", "exact"), ("tiles of 7", "exact")}


@pytest.mark.parametrize("kind", ["mad", "exact"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_blocks_multiplied_at_once_have_the_bits_of_one_after_another(name, kind, monkeypatch):
    first, second, operand = ELEMENTS[name]
    unit = (sn.MadUnit if kind == "mad" else sn.ExactDotUnit)("binary32", operand=operand)
    x, w = (spread(np.random.default_rng(seed), (rows, 144)) for seed, rows in ((5, 33), (6, 49)))
    x[:, 32:64] = w[3, :16] = 0
    x[1, 70:90] *= np.float32(-1)
    a, b, by_blocks, done = first(x), second(w), products._by_blocks, []
    monkeypatch.setattr(products, "_by_blocks", lambda *parts: done.append(1) or by_blocks(*parts))
    far = a.scales.copy()
    far[..., -1] *= np.float32(2.0**60)
    cases = [a, a._replace(scales=far)]
    if operand != "e2m1fn":
        cases.append(a._replace(elements=np.where(np.arange(144) == 5, np.float32(np.nan), a.elements)))
    for case in cases:
        done.clear()
        got = recipes.scaled_product(case, b, unit)
        if case is a or kind == "mad":
            assert (not done) == (case is a and (name, kind) in AT_ONCE | AS_BLOCKS)
        with monkeypatch.context() as patch:
            patch.setattr(products, "_with_scales", lambda *parts: None)
            patch.setattr(products, "_as_blocks", lambda *parts: None)
            want = recipes.scaled_product(case, b, unit)
        assert np.array_equal(got.view(np.uint32), want.view(np.uint32))
    with pytest.raises(ValueError, match=r"b\[.*\] = .* is no value of"):
        recipes.scaled_product(a, b._replace(elements=b.elements * np.float32(1.001)), unit)


def test_scales_near_the_ends_of_binary32_have_the_bits_of_one_block_after_another(monkeypatch):
    rng, unit, taken = np.random.default_rng(8), sn.ExactDotUnit("binary32", operand="e4m3fn"), []
    as_blocks = products._as_blocks
    for first in range(-126, 110, 4):
        a, b = (
            recipes.Scaled(
                np.asarray(sn.quantize(rng.standard_normal((rows, 96)) * 8, "e4m3fn")).astype(np.float32),
                np.exp2(rng.integers(low, low + 12, (rows, 3))).astype(np.float32),
                (1, 32),
            )
            for rows, low in ((3, first), (4, int(rng.integers(-126 - min(first, 0), 100 - max(first, 0)))))
        )
        got = as_blocks(a, b, 32, unit, 1)
        taken.append(got is not None)
        if taken[-1]:
            with monkeypatch.context() as patch:
                patch.setattr(products, "_as_blocks", lambda *parts: None)
                want = recipes.scaled_product(a, b, unit)
            assert np.array_equal(got.view(np.uint32), want.view(np.uint32))
    assert 10 < sum(taken) < len(taken)


def test_random_bits_differ_from_block_to_block():
    x, w = np.full((1, 64), 2.0**-3, np.float32), np.full((1, 64), 2.0**-9, np.float32)
    x[0, ::32] = w[0, ::32] = 1
    unit = sn.MadUnit("e6m9", operand="e4m3fn", rounding="stochastic", stochastic_bits=12)
    sums = []
    for scales in ([1, 0], [0, 1]):
        a = recipes.Scaled(x, np.float32([scales]), (1, 32))
        b = recipes.Scaled(w, np.ones((1, 2), np.float32), (1, 32))
        found = {recipes.scaled_product(a, b, unit, key=seed).item() for seed in range(20)}
        assert len(found) > 1
        sums.append([recipes.scaled_product(a, b, unit, key=seed).item() for seed in range(20)])
    assert sums[0] != sums[1]


@cases(
    "make, message",
    [
        (lambda: recipes.TensorScaling("e4m3fn", reference="tf"), "one of 'cuda', 'pytorch', 'jax', got 'tf'"),
        (lambda: recipes.BlockScaling(block=(0, 128)), "two positive integers, or None for all"),
        (lambda: recipes.DelayedScaling(history=0), "a positive number of steps, got 0"),
        (lambda: recipes.DelayedScaling(algorithm="mean"), "'max' or 'most_recent', got 'mean'"),
        (lambda: recipes.NVFP4Scaling(scale_max=300), "448 or 256, got 300"),
        (lambda: recipes.NVFP4Scaling(four_over_six="mean"), "'absolute' or 'squared', got 'mean'"),
        (lambda: recipes.NVFP4Scaling(four_over_six="absolute", rounding="stochastic"), "to nearest even"),
        (lambda: recipes.hadamard_matrix(12), "a power of two, got 12"),
        (lambda: recipes.hadamard_transform(np.ones((1, 24))), "divides 24 columns, got 16"),
        (lambda: recipes.hadamard_transform(np.ones((1, 24)), size=12), "power of two"),
        (lambda: recipes.TensorScaling()(np.ones(3)), r"takes a matrix, got shape \(3,\)"),
        (lambda: recipes.TensorScaling()([[0.1]]), r"0\.1\) of this float64 array is no such number; round it first"),
        (lambda: recipes.TensorScaling()([[2**24 + 1]]), "of this int64 array is no such number"),
        (lambda: recipes.TensorScaling()([[2**62 + 1]]), "of this int64 array is no such number"),
        (
            lambda: recipes.scaled_product(
                recipes.BlockScaling(block=(1, 8))(np.ones((1, 24))),
                recipes.BlockScaling(block=(1, 12))(np.ones((1, 24))),
                sn.MadUnit("binary32", operand="e4m3fn"),
            ),
            "blocks of 12 and 8 along K do not fit",
        ),
        (
            lambda: recipes.scaled_product(
                recipes.BlockScaling()(np.ones((1, 24))), recipes.BlockScaling()(np.ones((1, 24))),
                sn.ExactDotUnit("binary64", operand="e4m3fn"),
            ),
            "scaled in binary32, which binary64 does not fit",
        ),
        (
            lambda: recipes.scaled_product(
                recipes.BlockScaling()(np.ones((1, 24))), recipes.BlockScaling()(np.ones((24, 1))),
                sn.MadUnit("binary32", operand="e4m3fn"),
            ),
            "K as their columns, got 24 and 1",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_no_number():
    with pytest.raises(TypeError, match="takes an array of numbers"):
        recipes.TensorScaling()([["a"]])


@cases("dtype", ["float64", "float16", "int8", "uint16", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_numbers_of_other_types_are_taken_as_they_are(dtype):
    x = np.array([[1, 3, 7], [0, 4, 6]], dtype)
    want, got = (recipes.BlockScaling(block=(1, 3))(numbers) for numbers in (x.astype(np.float32), x))
    assert np.array_equal(got.elements, want.elements) and np.array_equal(got.scales, want.scales)
