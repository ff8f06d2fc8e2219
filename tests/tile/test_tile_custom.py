"""Operators in formats and on units of the user's own making, forward and backward."""

from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from tests.support.tile_checks import small

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OPERATORS = ("plan_tanh", "rational_tanh", "table_tanh", "hard_sigmoid", "matmul", "max_pool", "conv_relu")
SHAPES = {"matmul": [(3, 5), (5, 4)], "max_pool": [(1, 2, 4, 6)], "conv_relu": [(1, 2, 4, 4), (2, 2, 3, 3)]}


def example(name):
    return sn.operator(EXAMPLES / "tile" / f"{name}.tile")


def both_ways(op, arrays, unit, fmt):
    """The codes of the outputs and of the gradients."""
    options = {"unit": unit, "fmt": {"*": fmt}}
    y = op(*arrays, **options)
    y = sn.array(np.asarray(y), fmt)
    gradients = op.backward(arrays, [y], [y], **options)
    return [np.asarray(x) for x in (y, *gradients)]


@pytest.mark.parametrize("name", OPERATORS)
def test_the_papers_fp8_gives_the_bits_of_e5m2(name):
    """The same operators in the format made from C and in the built-in one."""
    fp8 = sn.CustomFormat.from_c(EXAMPLES / "custom" / "fp8.c", type_name="new_fp", name="fp8")
    inputs = [small(shape, n) for n, shape in enumerate(SHAPES.get(name, [(4, 25)]))]
    results = [
        both_ways(example(name), [sn.array(x, fmt) for x in inputs], sn.MadUnit(fmt, operand=fmt, product=fmt), fmt)
        for fmt in (fp8, sn.format("e5m2"))
    ]
    for own, built_in in zip(*results, strict=True):
        assert np.array_equal(own, built_in)


def test_a_table_of_values_has_operators():
    levels = sn.CustomFormat.from_table([*np.arange(-127, 128) / 16, float("nan")], name="levels")
    x = sn.array(np.linspace(-7, 7, 157), levels)
    for name in ("plan_tanh", "rational_tanh", "table_tanh"):
        y, dx = both_ways(example(name), [x], None, levels)
        assert np.abs(y - np.tanh(np.asarray(x))).max() < 0.15
        assert np.isfinite(dx).all()


def test_a_unit_of_ones_own():
    def mad(accumulator, a, b):
        return accumulator + a * b

    unit = sn.CustomMadUnit(mad, operand="e5m2", accumulator="binary32")
    a, b, dc = small((3, 5), 1), small((5, 4), 2), small((3, 4), 3)
    op = example("matmul")
    c = op(a, b, fmt="e5m2", unit=unit)
    assert np.array_equal(c, sn.matmul(a, b, unit))
    found = op.backward([a, b], [c], [dc], fmt={"*": "e5m2", "C": "binary32"}, unit=unit)
    assert np.array_equal(found[0], sn.matmul(dc, b.T, unit))
    assert np.array_equal(found[1], sn.matmul(a.T, dc, unit))
    image = small((1, 1, 5, 5), 1)
    with pytest.raises(sn.tile.TileError, match=r"line 3, column 5: S: sum: mad adds and multiplies in one"):
        example("average_pool")(image, fmt="e5m2", unit=unit)
