"""Finite differences, and operators in binary64, for the tests of Tile."""

from __future__ import annotations

import numpy as np

import softnum as sn

WIDE = {"fmt": "binary64", "unit": sn.MadUnit("binary64", operand="binary64")}


def in_wide(op, *inputs, **options):
    """The operator in binary64, its outputs as a tuple."""
    results = op(*inputs, **WIDE | options)
    return results if isinstance(results, tuple) else (results,)


def differences(op, inputs, gradients, number, step=1e-6):
    """The gradient of input `number` by central differences of the sum of outputs times gradients."""
    x = inputs[number]
    found = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        sums = []
        for sign in (1, -1):
            moved = x.copy()
            moved[index] += sign * step
            given = [*inputs[:number], moved, *inputs[number + 1 :]]
            results = in_wide(op, *given)
            sums.append(sum(float((y * dy).sum()) for y, dy in zip(results, gradients, strict=True)))
        found[index] = (sums[0] - sums[1]) / (2 * step)
    return found


def assert_gradients(op, inputs, without=(), tolerance=2e-6):
    """Every derived gradient against finite differences; without: numbers of inputs that have none."""
    inputs = [np.asarray(x, np.float64) for x in inputs]
    outputs = in_wide(op, *inputs)
    rng = np.random.default_rng(7)
    gradients = [rng.normal(0, 1, y.shape) for y in outputs]
    found = op.backward(inputs, outputs, gradients, **WIDE)
    assert len(found) == len(inputs)
    for number, gradient in enumerate(found):
        if number in without:
            assert gradient is None
            continue
        want = differences(op, inputs, gradients, number)
        assert gradient.shape == want.shape
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(gradient, want, rtol=0, atol=tolerance * scale)


def small(shape, seed):
    """Values of e5m2, float32."""
    x = np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)
    return sn.quantize(x, "e5m2")


def form(rng, names, most=2):
    """A sum of one or two index variables with small factors, and a number: (text, function of a valuation)."""
    chosen = list(rng.choice(names, size=int(rng.integers(1, min(most, len(names)) + 1)), replace=False))
    factors = [int(f) for f in rng.choice([1, 1, 1, 2, -1, 3], size=len(chosen))]
    offset = int(rng.integers(-2, 3))
    text = " + ".join(f"{f} * {n}" for f, n in zip(factors, chosen, strict=True)) + f" + {offset}"
    return text.replace("+ -", "- "), lambda v: sum(f * v[n] for f, n in zip(factors, chosen, strict=True)) + offset
