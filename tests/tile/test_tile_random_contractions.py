"""Contractions drawn at random: against all valuations by brute force, exactly; their gradients as adjoints."""

import re

import numpy as np

import softnum as sn
from tests.support.cases import cases
from tests.support.tile_checks import form

#: sums of small whole numbers are exact on it, in any order
EXACT = {"fmt": "binary64", "unit": sn.MadUnit("binary64", operand="binary64")}
REACH = 13  # beyond which no variable of these contractions has a valuation


def draw(seed):
    """(the statement, shapes of A, B and C, index functions of each, constraint and its bound, variables).

    Of the contractions that a seed leads to the first whose variables are all bounded.
    """
    rng = np.random.default_rng(seed)
    while True:
        drawn = drawn_from(rng)
        statement, shapes, *_ = drawn
        op = sn.operator(f"function (A, B) -> (C) {{ {statement}; }}")
        try:
            op(np.ones(shapes["A"]), np.ones(shapes["B"]), **EXACT)
        except sn.tile.TileError as error:
            assert "nothing bounds the index variable" in str(error)
        else:
            return drawn


def drawn_from(rng):
    names = ["i", "j", "k"][: int(rng.integers(1, 4))]
    tensors = {}
    for tensor, least in (("A", 1), ("B", 1), ("C", 0)):
        rank = int(rng.integers(least, 3))
        tensors[tensor] = [form(rng, names) for _ in range(rank)]
    tensors["B"] += [(n, lambda v, n=n: v[n]) for n in names if rng.random() < 0.6]
    shapes = {tensor: tuple(int(n) for n in rng.integers(1, 5, len(forms))) for tensor, forms in tensors.items()}
    limit = form(rng, names) if rng.random() < 0.4 else None
    bound = int(rng.integers(1, 5))
    listed = {tensor: ", ".join(text for text, _ in forms) for tensor, forms in tensors.items()}
    sizes = ", ".join(map(str, shapes["C"]))
    place = f"{listed['C']}: {sizes}" if sizes else ""
    statement = f"C[{place}] = +(A[{listed['A']}] * B[{listed['B']}])" + (f", {limit[0]} < {bound}" if limit else "")
    return statement, shapes, tensors, limit, bound, names


def valuations(statement, shapes, tensors, limit, bound, names):
    """The places in A, B and C of all valuations: for each tensor a tuple of arrays, one for each dimension."""
    names = [name for name in names if re.search(rf"\b{name}\b", statement)]
    grid = np.meshgrid(*[np.arange(-REACH, REACH + 1)] * len(names), indexing="ij")
    v = {name: values.ravel() for name, values in zip(names, grid, strict=True)}
    inside = np.ones((2 * REACH + 1) ** len(names), bool)
    places = {t: [np.broadcast_to(index(v), inside.shape) for _, index in forms] for t, forms in tensors.items()}
    for t, indices in places.items():
        for index, size in zip(indices, shapes[t], strict=True):
            inside &= (index >= 0) & (index < size)
    if limit is not None:
        inside &= (limit[1](v) >= 0) & (limit[1](v) < bound)
    return {t: tuple(index[inside] for index in indices) for t, indices in places.items()}


def summed(shape, places, values):
    """Zeros of a shape, to which values are added at places."""
    if shape == ():
        return values.sum()
    total = np.zeros(shape)
    np.add.at(total, places, values)
    return total


@cases("seed", range(150))
def test_all_valuations_count(seed):
    """C is the sum over them, and <dC, C> = <A, dA> = <B, dB>, in whole numbers without a rounding."""
    statement, shapes, *rest = draw(seed)
    op = sn.operator(f"function (A, B) -> (C) {{ {statement}; }}")
    rng = np.random.default_rng(seed + 1000)
    a, b, dc = (rng.integers(-4, 5, shapes[t]).astype(np.float64) for t in "ABC")
    c = op(a, b, **EXACT)
    at = valuations(statement, shapes, *rest)
    terms = {t: x[at[t]] for t, x in (("A", a), ("B", b), ("C", dc))}
    assert np.array_equal(c, summed(c.shape, at["C"], terms["A"] * terms["B"])), statement
    da, db = op.backward([a, b], [c], [dc], **EXACT)
    assert np.array_equal(da, summed(a.shape, at["A"], terms["C"] * terms["B"])), op.gradient.source
    assert np.array_equal(db, summed(b.shape, at["B"], terms["C"] * terms["A"])), op.gradient.source
    assert (dc * c).sum() == (a * da).sum() == (b * db).sum()
