"""Formats from Python functions: what they give, and what is wrong with them."""

import pickle

import numba
import numpy as np
import pytest
from posit8 import posit8

import softnum as sn
from tests.support.cases import cases


def value(code):
    return (code & 7) * 0.5 if code < 8 else -((code & 7) * 0.5)


def nearest(x):
    steps = min(int(abs(x) * 2 + 0.5), 7)
    return steps + 8 if x < 0 and steps else steps


def strange_sum(a, b):
    return (a * 3 + b) % 16


def negated(a):
    return a ^ 8


def imports(code):
    import math

    return math.sqrt(code)


def make(**changes):
    options = {"as_float": value, "convert": nearest, "ops": {"add": strange_sum, "negate": negated}, "name": "half"}
    return sn.CustomFormat(4, **{**options, **changes})


@pytest.fixture(scope="module")
def half():
    return make()


CODES = np.arange(16, dtype=np.uint8)


def test_the_functions_are_what_it_does(half):
    assert half.bits == 4 and half.storage_dtype == np.uint8 and half.kind == "custom" and half.negative_zero
    assert half.values == tuple(value(c) for c in range(16))
    x = np.random.default_rng(0).normal(size=500) * 3
    assert sn.encode(x, half).tolist() == [nearest(t) for t in x.tolist()]
    assert sn.quantize(x.astype(np.float32), half).tolist() == [value(nearest(t)) for t in x.astype("f4").tolist()]
    assert np.array_equal(sn.add(CODES[:, None], CODES, half), (CODES[:, None] * 3 + CODES) % 16)
    assert np.array_equal(sn.negate(CODES, half), CODES ^ 8)
    assert sn.multiply(CODES[:, None], CODES, half).tolist() == [
        [nearest(value(a) * value(b)) for b in range(16)] for a in range(16)
    ]
    a = sn.array([1.5, -1.0], half)
    assert (a + a).codes.tolist() == [(3 * 3 + 3) % 16, (10 * 3 + 10) % 16]
    assert repr(half) == "<CustomFormat half: 4 bits, Python: as_float, convert, add, negate>"
    assert {n for n, kind in half.primitives.items() if kind == "user"} == {"as_float", "convert", "add", "negate"}


def test_operations_by_the_names_of_c(half):
    names = {"sub": "subtract", "mul": "multiply", "div": "divide", "min": "minimum", "max": "maximum"}
    short, long = (make(ops=dict.fromkeys(n, strange_sum) | {neg: negated}) for n, neg in
                   ((names, "neg"), (names.values(), "negate")))  # fmt: skip
    assert short == long and short.primitives == long.primitives and pickle.loads(pickle.dumps(short)) == long
    assert sn.divide(CODES, 3, short).tolist() == [strange_sum(c, 3) for c in CODES.tolist()]


def test_without_convert_values_round_to_their_neighbours():
    plain = make(convert=None, ops={})
    x = np.random.default_rng(1).uniform(-3.4, 3.4, 300)
    for rounding, want in (("up", np.ceil), ("down", np.floor), ("toward_zero", np.trunc), ("nearest_even", np.round)):
        assert np.array_equal(sn.quantize(x, plain, rounding=rounding), want(2 * x) / 2)
    assert sn.encode([-0.1, 0.1, 9.0, -9.0], plain).tolist() == [8, 0, 7, 15]  # -0 has a code of its own
    assert plain.primitives["convert"] == "derived"


def test_identity(half):
    assert pickle.loads(pickle.dumps(half)) == half == make() and hash(half) == hash(make())
    assert half != make(ops={"add": strange_sum}) and half != posit8
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        pickle.dumps(make(as_float=lambda c: c * 1.0))


def test_codes_of_up_to_62_bits():
    wide = sn.CustomFormat(
        62, as_float=lambda c: float(c >> 10), convert=lambda x: int(abs(x)) << 10, name="wide",
        ops={"add": lambda a, b: (a + b) & ((1 << 62) - 1)},
    )  # fmt: skip
    codes = np.array([1 << 61, (1 << 62) - 1, 5], np.uint64)
    assert sn.add(codes, codes, wide).tolist() == [(2 * c) % 2**62 for c in codes.tolist()]
    assert sn.encode([3.0, 2.0**51], wide).tolist() == [3 << 10, 1 << 61]
    assert sn.multiply(sn.encode([3.0], wide), sn.encode([5.0], wide), wide).tolist() == [15 << 10]


def raises(a):
    if a == 5:
        raise RuntimeError("five is not mine")
    return a


@cases(
    ("error", "message", "changes"),
    [
        (ValueError, r"CustomFormat half: ops has no operation 'ad' \(did you mean add", {"ops": {"ad": strange_sum}}),
        (ValueError, r"ops has no operation 'convert'", {"ops": {"convert": strange_sum}}),
        (ValueError, r"ops has no operation 'mult' \(did you mean", {"ops": {"mult": strange_sum}}),
        (ValueError, "ops has no operation 7 .known: add, .*others' names", {"ops": {7: strange_sum}}),
        (ValueError, "ops has multiply twice, as 'mul' and 'multiply'", {"ops": {"mul": max, "multiply": max}}),
        (TypeError, r"ops must be a dict .* to its function, got \['add'\]", {"ops": ["add"]}),
        (TypeError, "convert must be a function, got 3", {"convert": 3}),
        (TypeError, r"add .*test_formats_python.py:\d+. takes 1 argument, and must take 2", {"ops": {"add": negated}}),
        (TypeError, "add .* must return an integer, a code, and returns float64", {"ops": {"add": lambda a, b: a / 2}}),
        (TypeError, "as_float .* must return a number, and returns .*str", {"as_float": lambda c: "a"}),
        (TypeError, r"Numba cannot compile as_float .*test_formats_python.py:\d+(?s:.*)no_such_name",
         {"as_float": lambda c: no_such_name(c)}),  # noqa: F821
        (TypeError, r"Numba cannot compile as_float .*_python.py:\d+(?s:.*)IMPORT_NAME", {"as_float": imports}),
        (ValueError, "as_float returns NaN for every code", {"as_float": lambda c: float("nan")}),
        (ValueError, r"as_float .*_python.py:\d+. of 0x8 raises ZeroDivisionError",
         {"as_float": lambda c: 1 / (c - 8)}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(error, message, changes):
    with pytest.raises(error, match=message):
        make(**changes)


def test_codes_that_are_negative_but_for_their_type():
    fmt = make(ops={"negate": lambda a: np.uint64(2**64 - 1) if a == 5 else np.uint64(0)})
    with pytest.raises(
        ValueError, match=r"negate .* of 0x5 returns 18446744073709551615 .-1 in unsigned numbers of 64"
    ):
        fmt.apply("negate", [4, 5])
    with pytest.raises(ValueError, match=r"convert .* of 1e.300 returns a number of 997 bits, and codes lie in 0..15"):
        sn.encode([1e300], make(convert=lambda x: int(x)))


def test_results_that_are_no_codes_are_named():
    fmt = make(ops={"add": lambda a, b: a + b, "negate": raises}, convert=lambda x: int(x))
    with pytest.raises(ValueError, match=r"add .*_python.py:\d+. of 0x8, 0xa returns 18, and codes lie in 0..15"):
        fmt.apply("add", [1, 8], [2, 10])
    with pytest.raises(ValueError, match=r"add .* returns 16, and codes lie in 0..15"):
        fmt.table("add")
    with pytest.raises(ValueError, match=r"negate .*_python.py:\d+. of 0x5 raises RuntimeError: five is not mine"):
        fmt.apply("negate", [4, 5])
    with pytest.raises(ValueError, match=r"convert .* of -3.5 returns -3, and codes lie"):
        sn.encode([1.0, -3.5], fmt)


@pytest.mark.parametrize(
    ("bits", "changes", "message"),
    [
        (0, {}, "bits must be an integer from 1 to 62 .from_c: to 64., got 0"),
        (63, {}, "got 63"),
        (True, {}, "got True"),
        (17, {"convert": None}, "a format of 17 bits needs convert="),
    ],
)
def test_widths(bits, changes, message):
    with pytest.raises(ValueError, match=message):
        sn.CustomFormat(bits, **{"as_float": value, "convert": nearest, **changes})


def test_rounding_is_converts_own(half):
    for options in ({"rounding": "up"}, {"overflow": "saturate"}, {"rounding": "sr", "key": 1}):
        with pytest.raises(ValueError, match="half rounds as its convert does"):
            sn.quantize([1.0], half, **options)
    with pytest.raises(
        ValueError, match="add of half is user-defined and states its own rounding; leave rounding='up' and overflow="
    ):
        sn.add([1], [1], half, rounding="up")


def test_numba_is_asked_for(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(ImportError, match=r"CustomFormat half: .*pip install 'softnum\[custom\]'"):
        make()


@pytest.mark.parametrize("accumulator", ["q8.8", "q4.0"])
@pytest.mark.parametrize("unit", [sn.MadUnit, sn.ExactDotUnit])
def test_infinities_of_a_format_without_nan_are_no_numbers_to_a_unit(unit, accumulator):
    """An infinity among operands has no result in fixed point, on fast paths too: they take finite values alone."""
    values = (0.0, 1.0, 2.0, float("inf"), -0.5, -1.0, -2.0, 0.5)
    fmt = sn.CustomFormat(3, as_float=lambda code: values[code], name="with_infinity")
    assert fmt.infinities and not fmt.has_nan
    u = unit(accumulator, operand=fmt)
    assert sn.matmul([[2.0, 1.0]], [[2.0], [-1.0]], u) == 3
    for a, b in (([[np.inf, 1.0]], [[1.0], [2.0]]), ([[np.inf, np.inf]], [[1.0], [-2.0]])):
        with pytest.raises(ValueError, match=f"the result is NaN or infinite, and {accumulator} has no code for it"):
            sn.matmul(a, b, u)


def _endless(code):
    return _endless(code) + 1.0


def _never_stops(code):
    if code > 3000:
        return 0.0
    return _other(code) * 0.5


def _other(code):
    return _never_stops(code) + 1.0


@numba.njit
def _of_an_operand(code):  # Numba compiles it, and 200 would end the process
    return float(code) if code < 100 else _of_an_operand(code) + 1.0


@pytest.mark.parametrize("function", [_endless, _never_stops, _of_an_operand, lambda code: _of_an_operand(code)])
def test_functions_that_call_themselves_are_refused(function):
    """Without an end they would take the process along."""
    with pytest.raises(
        TypeError, match=r"as_float \(.*: \w+ \(.*test_formats_python.py:\d+\) calls itself.*write a loop"
    ):
        sn.CustomFormat(8, as_float=function)


def test_what_only_looks_like_a_call_of_itself():
    """A function of another function's name, a table of numbers, an attribute."""
    table = np.arange(256.0)

    def real(code):
        return table[code].real

    assert sn.decode([3], sn.CustomFormat(8, as_float=real)) == 3
