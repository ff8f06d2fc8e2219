"""Elementwise programs drawn at random, with branches within branches: against each element carried through alone."""

import numpy as np

import softnum as sn
from tests.support.cases import cases
from tests.support.tile_checks import WIDE, in_wide
from tests.support.tile_programs import Draw, Dual


@cases("seed", range(80))
def test_programs(seed):
    draw = Draw(seed)
    body, run, names = draw.block(["X", "Z"], 2, 5)
    result, f = draw.expression(names, 2)
    op = sn.operator(f"function (X, Z) -> (Y) {{ {body} Y = {result}; }}")
    rng = np.random.default_rng(seed + 500)
    x, z = (rng.integers(-12, 13, 24) / 8 for _ in range(2))
    (y,) = in_wide(op, x, z)
    found = op.backward([x, z], [y], [np.ones_like(y)], **WIDE) if y.shape else (None, None)
    for i in range(x.size):
        env = {"X": Dual(x[i], 1.0, 0.0), "Z": Dual(z[i], 0.0, 1.0)}
        run(env)
        want = f(env)
        assert np.broadcast_to(y, x.shape)[i] == want.value, (op.source, x[i], z[i])
        for gradient, slope in zip(found, want.d, strict=True):
            got = 0.0 if gradient is None else gradient[i]
            assert abs(got - slope) <= 1e-9 * max(1, abs(slope)), (op.source, op.gradient.source, x[i], z[i])
    if any(gradient is not None for gradient in found):
        given = (x, z, y, np.ones_like(y))
        again = in_wide(sn.operator(op.gradient.source), *given)
        for one, other in zip(in_wide(op.gradient, *given), again, strict=True):
            assert np.array_equal(one, other)


def test_programs_have_branches_and_gradients():
    """So that the test above tests something."""
    sources = [Draw(seed).block(["X", "Z"], 2, 5)[0] for seed in range(120)]
    assert sum("if" in s for s in sources) > 60 and sum("switch" in s for s in sources) > 60
