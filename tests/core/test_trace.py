"""unit.trace: its result is dot's under every MadUnit, its steps add up, and its table says what they say."""

from fractions import Fraction as F

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.facts import fits
from softnum.formats.modes import Flags
from softnum.inspect.trace import Step, Trace
from softnum.mac.family import register
from softnum.mac.mad import Unit
from tests.support.cases import cases
from tests.support.core_oracles import show
from tests.support.mad_units import NEW
from tests.support.matmul_units import ALL, TERNARY, as_codes, extreme, middling, unit


def traced(u, a, b, c=None):
    """The trace, compared with dot; None if a result has no code, of which both complain."""
    key = (77, 5) if u.stochastic else None
    try:
        want = sn.dot(a, b, u, c, key=key)
    except ValueError as error:
        assert "no code" in str(error)
        with pytest.raises(ValueError, match="has no code for it"):
            u.trace(a, b, c, key=key)
        return None
    t = u.trace(a, b, c, key=key)
    code = int(np.reshape(as_codes(want, u.result), ())[()])
    assert t.code == code, (u, show(t.code, u.result), show(code, u.result), a.tolist(), b.tolist(), c)
    assert type(t.result) is type(want)
    if isinstance(want, sn.Array):
        assert t.result.codes == want.codes and t.result.codes.shape == () and t.result.format == u.result
    else:
        assert np.array_equal(t.result, want, equal_nan=True) and np.signbit(t.result) == np.signbit(want)
    return t


def check_steps(t):
    """What each rounding keeps and loses makes its exact value, and its decision makes its result of them."""
    flags = Flags(0)
    for step in t.steps:
        flags |= step.flags
        if step.code is None:
            assert step.decision == "" and step.kept is None and step.guard_round_sticky is None
            continue
        if isinstance(step.exact, str) and step.exact != "-0":
            assert step.decision == "special" and step.lost is None
            continue
        exact = F(0) if step.exact == "-0" else step.exact
        sign = -1 if exact < 0 else 1
        assert step.kept + sign * step.lost * step.quantum == exact and 0 <= step.lost < 1
        assert (step.kept / step.quantum).denominator == 1
        guard, second, sticky = step.guard_round_sticky
        assert (step.lost >= F(1, 2)) == guard and (step.lost - F(guard, 2) >= F(1, 4)) == second
        assert (step.lost not in (0, F(1, 4), F(1, 2), F(3, 4))) == sticky
        value = F(0) if step.value == "-0" else step.value
        if step.decision in ("exact", "down"):
            assert value == step.kept and (step.decision == "exact") == (step.lost == 0)
        elif step.decision == "up":
            assert value == step.kept + sign * step.quantum and step.lost > 0
        else:
            assert step.decision in ("overflow", "wrap")
            assert step.format.p3109 if step.format.kind == "float" and not step.flags else True
            assert step.flags & Flags.OVERFLOW or not step.format.signed or getattr(step.format, "p3109", False)
        if not getattr(step.format, "p3109", False):
            assert bool(step.flags & Flags.INEXACT) == (
                step.lost > 0 or (step.decision == "overflow" and step.format.kind == "float")
            ) or (not step.format.signed)
    assert flags == t.flags


@cases("u", [*ALL, *NEW], ids=repr)
def test_the_result_is_that_of_dot(u):
    rng = np.random.default_rng(21)
    for make in (middling, extreme):
        a, b = make(u.operand[0], rng, 9), make(u.operand[1], rng, 9)
        t = traced(u, a, b)
        if t is not None:
            check_steps(t)
            assert len(t.to_dicts()) == len(t.steps) and len(str(t).splitlines()) == len(t.steps) + 3
    if fits(u.result, np.float64):
        c = sn.quantize(1.5, u.result, overflow="saturate")[()]
        traced(u, middling(u.operand[0], rng, 5), middling(u.operand[1], rng, 5), c)


def test_flags_are_the_references():
    for u in NEW[::3]:
        if any(f.kind == "table" for f in u.operand) or u.stochastic:
            continue
        rng = np.random.default_rng(22)
        a, b = middling(u.operand[0], rng, 9), middling(u.operand[1], rng, 9)
        codes = (sn.encode(x, f).tolist() for x, f in zip((a, b), u.operand, strict=True))
        _, flags = ref.mad_dot(
            *codes, operand=u.operand, accumulator=u.accumulator, product=u.product, rounding=u.rounding,
            product_rounding=u.product_rounding, overflow=u.overflow, chunk=u.chunk, lanes=u.lanes,
            reduction=u.reduction, compensated=u.compensated, outer_accumulator=u.outer_accumulator,
        )  # fmt: skip
        assert u.trace(a, b).flags == flags


def test_a_trace_by_hand():
    """e5m2: 1.25 * 1.25 = 1.5625, a quarter of a quantum above 1.5; 1.5 + 8 = 9.5, three quarters above 8."""
    t = unit("e5m2", "e5m2", lanes=2, chunk=2, product="e5m2").trace([1.25, 8], [1.25, 1])
    names = [(s.name, s.formula, s.where) for s in t.steps]
    assert names == [
        ("exact product", "a * b", {"chunk": 0, "k": 0, "lane": 0}),
        ("product", "a * b", {"chunk": 0, "k": 0, "lane": 0}),
        ("sum", "acc + p", {"chunk": 0, "k": 0, "lane": 0}),
        ("exact product", "a * b", {"chunk": 0, "k": 1, "lane": 1}),
        ("product", "a * b", {"chunk": 0, "k": 1, "lane": 1}),
        ("sum", "acc + p", {"chunk": 0, "k": 1, "lane": 1}),
        ("lanes", "l0 + l1", {"chunk": 0}),
        ("chunks", "acc + sum", {"chunk": 0}),
    ]
    product, lanes = t.steps[1], t.steps[6]
    assert product.terms == (("a", F(5, 4)), ("b", F(5, 4)))
    assert (product.exact, product.kept, product.quantum, product.lost) == (F(25, 16), F(3, 2), F(1, 4), F(1, 4))
    assert (product.decision, product.value, product.code, product.flags) == ("down", F(3, 2), 0x3E, Flags.INEXACT)
    assert product.guard_round_sticky == (0, 1, 0)
    assert (lanes.exact, lanes.kept, lanes.quantum, lanes.lost) == (F(19, 2), 8, 2, F(3, 4))
    assert (lanes.decision, lanes.value, lanes.guard_round_sticky) == ("up", 10, (1, 1, 0))
    assert t.result == 10 and t.code == 0x49 and t.flags == Flags.INEXACT and t.value == 10
    record = t.to_dicts()[6]
    assert record["name"] == "lanes" and record["chunk"] == 0 and record["terms"] == {"l0": F(3, 2), "l1": F(8)}
    assert (record["guard"], record["round"], record["sticky"], record["format"]) == (1, 1, 0, "e5m2")


def test_the_table():
    lines = str(unit("e5m2", "e5m2").trace([57344, 2.0**-16], [57344, -(2.0**-16)])).splitlines()
    assert lines[0] == "acc = round(acc + a * b): e5m2 x e5m2 -> e5m2, one rounding (nearest_even)"
    assert [" ".join(line.split()) for line in lines[1:-1]] == [
        "# k step computes exact kept lost GRS rounds result code flags",
        "0 0 exact product a * b 3288334336",
        "1 0 sum acc + a * b 3288334336 3221225472 0.125 001 overflow inf 0x7c inexact|overflow",
        "2 1 exact product a * b -1*2^-32",
        "3 1 sum acc + a * b inf special inf 0x7c",
    ]
    assert lines[-1] == "result: inf = 0x7c in e5m2; flags: inexact|overflow"
    assert all(line.index("0x7c") == lines[1].index("code") for line in (lines[3], lines[5]))


def test_zeros_and_sums_of_nothing():
    u = unit("e5m2", "e5m2")
    assert u.trace([], []).steps == () and u.trace([], []).code == 0 and u.trace([], [], -0.0).code == 0x80
    t = u.trace([-(2.0**-16)], [2.0**-16])
    assert t.value == "-0" and np.signbit(t.result) and t.steps[1].decision == "down"
    assert t.flags == Flags.INEXACT | Flags.UNDERFLOW and t.steps[1].kept == 0 and t.steps[1].lost == F(1, 1 << 16)
    assert u.trace([0.0], [-1.0]).steps[0].exact == "-0"


def test_formats_without_subnormals():
    """Between 0 and dlfloat16's smallest normal nothing lies: what is lost is a fraction of that."""
    u = unit("dlfloat16", "e5m2")
    smallest = F(u.accumulator.smallest_normal)
    t = u.trace([2.0**-16, 2.0**-16], [2.0**-15, 2.0**-16])
    assert t.steps[1].quantum == smallest and t.steps[1].kept == 0 and t.steps[1].lost == F(1, 1 << 31) / smallest


def test_random_words():
    u = unit("e6m3", "e5m2", rounding="stochastic", stochastic_bits=4, lanes=2)
    a, b = [1, 1.25, 1.75], [1.75, 1.25, 1.25]
    words = np.arange(8, dtype=np.uint32).reshape(4, 2) * 3
    t = u.trace(a, b, random_bits=words)
    assert t.result == sn.dot(a, b, u, random_bits=words.reshape(1, 1, 4, 2))
    assert [s.random for s in t.steps if s.code is not None] == [3, 9, 15, 5]
    assert "(R = 0xf)" in str(t)
    assert all(s.random is None for s in unit("e6m3", "e5m2").trace(a, b).steps)
    with pytest.raises(ValueError, match=r"random_bits must be uint32 of shape \(5, 2\), got uint32 of shape \(4, 2\)"):
        u.trace(a, b, 1, random_bits=words)
    with pytest.raises(ValueError, match="give key=seed"):
        u.trace(a, b)


def test_arrays_and_tables():
    u = unit("e15m48", "e15m48", product="e15m20")
    a, b = sn.array([1.5, 1e300], "e15m48"), sn.array([1 / 3, 1e300], "e15m48")
    t = traced(u, a, b)
    assert isinstance(t.result, sn.Array) and t.steps[0].exact == ref.to_fraction(
        int(a.codes[0]), "e15m48"
    ) * ref.to_fraction(int(b.codes[0]), "e15m48")
    c = sn.Array(np.array(a.codes[0]), "e15m48")
    assert u.trace(a, b, c).steps[2].terms[0] == ("acc", F(3, 2))
    u = unit("e5m2", TERNARY)
    assert u.trace([1, -0.5], [1, 1]).result == 0.5
    with pytest.raises(ValueError, match="is no value of ternary"):
        u.trace([0.25], [1])


@pytest.mark.parametrize(
    "message, a, b, c",
    [
        (r"trace takes two vectors, got a of shape \(1, 2\)", [[1, 2]], [1, 2], None),
        ("a has 2 elements, b has 3", [1.0, 2], [1, 2, 3], None),
        (r"a\[1\] = np.float64.1.1. is no value of e5m2", [1.0, 1.1], [1, 2], None),
        ("c is one number, got an array of shape", [1.0], [1], [1.0, 2.0]),
        (r"c\[0\] = np.float64.1.1. is no value of e6m3", [1.0], [1], 1.1),
    ],
)
def test_refusals(message, a, b, c):
    with pytest.raises(ValueError, match=message):
        unit("e6m3", "e5m2").trace(a, b, c)


def test_a_result_without_a_code():
    with pytest.raises(ValueError, match=r"step 1 \(sum, \{'k': 0\}\) is inf, and q8.8 has no code for it"):
        unit("q8.8", "e5m2").trace([np.inf], [1])


def test_units_without_a_trace_are_named():
    class Strange(Unit):
        operand = (sn.format("e5m2"),) * 2
        result = sn.format("e5m2")

    with pytest.raises(TypeError, match="no steps are known of Strange"):
        Strange().trace([1], [1])

    register(Strange, steps=lambda unit, a, b, c, words: ([Step("nothing", "a", F(0))], 0x3C))
    t = Strange().trace([1], [1])
    assert isinstance(t, Trace) and t.result == 1 and t.steps[0].name == "nothing" and t.flags == Flags(0)
