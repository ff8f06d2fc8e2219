"""Traces of CustomMadUnit: what they end with is what dot computes, and each step is what the definition does."""

from fractions import Fraction as F

import numpy as np
import pytest

import softnum as sn
from softnum import kernels

numba = pytest.importorskip("numba")

e5m2, e6m9 = kernels.scalar("e5m2"), kernels.scalar("e6m9")
sr = kernels.scalar("e6m9", rounding="stochastic", stochastic_bits=12)
codes = kernels.scalar("e5m2", carrier="codes")
eighths = sn.CustomFormat.from_table([0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, float("nan")], name="eighths")
own = kernels.scalar(eighths)


def rounded_mad(acc, a, b):
    return e6m9.add(acc, e5m2.multiply(a, b))


def exact_product(a, b):
    return a * b


def stochastic(acc, a, b, word):
    return sr.fma(a, b, acc, word)


def product_of_codes(a, b):
    return codes.multiply(a, b)


def product_of_the_users(a, b):
    return own.multiply(a, b)


UNITS = [
    (rounded_mad, {"operand": "e5m2", "accumulator": "e6m9"}),
    (exact_product, {"operand": "e5m2", "accumulator": "e6m9", "rounding": "toward_zero"}),
    (stochastic, {"operand": "e5m2", "accumulator": "e6m9"}),
    (product_of_codes, {"operand": "e5m2", "carrier": "codes"}),
    (product_of_the_users, {"operand": eighths}),
]


IN_TREES = {"chunk": 5, "lanes": 2, "reduction": "tree"}
ORDERS = [
    *((*unit, order) for unit in UNITS for order in ({}, IN_TREES)),
    *((*unit, {"lanes": 3}) for unit in UNITS[::2]),
    *(pytest.param(*unit, {"lanes": 3}, marks=pytest.mark.slow) for unit in UNITS[1::2]),
]


@pytest.mark.parametrize(
    ("function", "options", "order"), ORDERS, ids=lambda x: getattr(x, "__name__", None) or "-".join(map(str, x))
)
def test_the_result_is_that_of_dot(function, options, order):
    unit = sn.CustomMadUnit(function, **options, **order)
    rng = np.random.default_rng(1)
    x, y = (sn.quantize(rng.standard_normal(11).astype(np.float32), unit.operand[0]) for _ in "xy")
    key = {"key": (7, 3)} if unit.stochastic else {}
    for c in (None, np.float32(-1)):
        trace = unit.trace(x, y, c, **key)
        assert trace.result.tobytes() == sn.dot(x, y, unit, c, **key).tobytes()
        assert [s.where["k"] for s in trace.steps if s.name in ("step", "product")].count(10) == 1
    assert unit.trace([], [], np.float32(-1), **key).result == -1
    if unit.carrier == "codes":
        coded = [sn.array(v, unit.operand[0]) for v in (x, y)]
        assert unit.trace(*coded, **key).to_dicts() == unit.trace(x, y, **key).to_dicts()


def test_steps_by_hand():
    unit = sn.CustomMadUnit(exact_product, operand="e5m2", accumulator="e5m2", lanes=2)
    trace = unit.trace([1.25, 8, 3], [1.25, 1, 0.5], 0.25)
    assert [(s.name, s.formula, s.where, s.exact, s.value) for s in trace.steps] == [
        ("product", "exact_product(a, b)", {"k": 0, "lane": 0}, F(25, 16), None),
        ("sum", "acc + p", {"k": 0, "lane": 0}, F(25, 16), F(3, 2)),
        ("product", "exact_product(a, b)", {"k": 2, "lane": 0}, F(3, 2), None),
        ("sum", "acc + p", {"k": 2, "lane": 0}, F(3), F(3)),
        ("product", "exact_product(a, b)", {"k": 1, "lane": 1}, F(8), None),
        ("sum", "acc + p", {"k": 1, "lane": 1}, F(8), F(8)),
        ("lanes", "c + l0", {}, F(13, 4), F(3)),
        ("lanes", "c..l0 + l1", {}, F(11), F(12)),
    ]
    assert trace.steps[1].lost == F(1, 4) and trace.steps[7].terms == (("c..l0", F(3)), ("l1", F(8)))
    assert trace.value == 12 and "exact_product(a, b)" in str(trace) and trace.flags == sn.Flags.INEXACT
    whole = sn.CustomMadUnit(rounded_mad, operand="e5m2", accumulator="e6m9").trace([1.5], [2.0], 1.0).steps
    assert [(s.name, s.formula, s.terms, s.exact, s.code) for s in whole] == [
        ("step", "rounded_mad(acc, a, b)", (("acc", F(1)), ("a", F(3, 2)), ("b", F(2))), F(4), 0x4200)
    ]
    random = sn.CustomMadUnit(stochastic, operand="e5m2", accumulator="e6m9")
    words = np.arange(4, dtype=np.uint32).reshape(2, 2)
    assert [s.random for s in random.trace([1.0, 1.0], [1.0, 1.0], random_bits=words).steps] == [1, 3]


def test_functions_in_c_and_what_has_no_result():
    unit = sn.CustomMadUnit.from_c("uint8_t both(uint8_t a, uint8_t b) { return a & b; }", "both", operand="uq8.0")
    assert [s.code for s in unit.trace([12.0, 3.0], [10.0, 7.0]).steps] == [8, 8, 3, 11]
    unit = sn.CustomMadUnit(exact_product, operand="e5m2", accumulator="q8.8")
    with pytest.raises(ValueError, match=r"step 1 \(sum, \{'k': 0\}\) is inf, and q8.8 has no code for it"):
        unit.trace([np.inf], [1.0])
    unit = sn.CustomMadUnit(lambda acc, a, b: a * b, operand="e5m2")
    with pytest.raises(
        ValueError, match=r"<lambda>\(0.0, 1.25, 1.25\) at k = 0 \(.*_trace.py:\d+\) is 1.5625, which is no"
    ):
        unit.trace([1.25], [1.25])
    with pytest.raises(ValueError, match="trace: the unit rounds stochastically; give key="):
        sn.CustomMadUnit(stochastic, operand="e5m2", accumulator="e6m9").trace([1.0], [1.0])
