"""What a function of the user's may not be or do: each error names the line, the operands and the way out."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum import kernels

numba = pytest.importorskip("numba")

HERE = Path(__file__).name
e6m9, q4 = kernels.scalar("e6m9"), kernels.scalar("q4.8")


def attribute(acc, a, b):
    return acc.nowhere + a * b


def float64_argument(acc, a, b):
    return e6m9.add(acc, a * 0.5)


def too_few(acc, a, b):
    return e6m9.add(acc)


def no_word(acc, a, b):
    return e6m9.add(acc, a, b)


def float64_result(acc, a, b):
    return acc + a * b * 0.5


def nothing(acc, a, b):
    pass


def undefined(acc, a, b):
    return not_there(acc, a)  # noqa: F821


def with_an_import(acc, a, b):
    import math

    return math.sqrt(a)


def float_of_codes(a, b):
    return a * 0.5


def line_of(function) -> int:
    return function.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (attribute, {}, r"cannot compile attribute .*'nowhere'.*\(.*{file}:{next}\)"),
        (float64_argument, {}, r"add takes float32 numbers in compiled code, got float64; write numpy.float32"),
        (too_few, {}, r"scalar\('e6m9'\).add takes 2 numbers, got 1 arguments \(.*{file}:{next}\)"),
        (no_word, {}, r"scalar\('e6m9'\).add takes 2 numbers, got 3 arguments"),
        (
            float64_result,
            {},
            r"float64_result \(.*{file}:{line}\) returns float64 .* not a float32; write numpy.float32",
        ),
        (nothing, {}, r"nothing \(.*{file}:{line}\) returns none"),
        (undefined, {}, "not_there"),
        (with_an_import, {}, r"cannot compile with_an_import .*{file}:{line}\): .*IMPORT_NAME"),
        (float_of_codes, {"carrier": "codes", "accumulator": "e5m2"}, "not an integer, a code"),
    ],
)
def test_what_numba_refuses(function, options, said):
    unit = sn.CustomMadUnit(function, operand="e5m2", **({"accumulator": "e6m9"} | options))
    line = line_of(function)
    with pytest.raises(TypeError, match=said.format(file=HERE, line=line, next=line + 1)):
        sn.dot(np.float32([1]), np.float32([1]), unit)


def test_operands_are_refused_before_the_function():
    unit, ones = sn.CustomMadUnit(attribute, operand="e5m2", accumulator="e6m9"), np.ones((2, 2))
    with pytest.raises(ValueError, match="a has K = 2 columns, b has 3 rows"):
        sn.matmul(ones, np.ones((3, 2)), unit)
    with pytest.raises(ValueError, match="is no value of e5m2"):
        sn.matmul(ones * 0.3, ones, unit)


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (lambda a: a, r"\(a\)"),
        (lambda a, b, c, d: a, "a, b, c, d"),
        (lambda *a: a, r"\*a"),
        (lambda a, b, *, c=1: a, "c=1"),
        (lambda word: word, "word"),
        (lambda a, b, scale=2.0: a, "scale=2.0"),  # three parameters are a whole step
        (lambda word, a, b: a, "word, a, b"),
    ],
)
def test_other_parameters(function, shown):
    with pytest.raises(TypeError, match=rf"{HERE}:{line_of(function)}.*{shown}.*a unit is mad\(a, b\)"):
        sn.CustomMadUnit(function, operand="e5m2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (
            lambda acc, a, b: acc + a * b * np.float32(0.3),
            {"accumulator": "e6m9"},
            r"at k = \d+ of output \(0, 0\) .* no value of e6m9 \(nearest: .*\); round it in the function",
        ),
        (lambda acc, a, b: np.float32(np.nan), {"accumulator": "q4.8"}, "is NaN, and q4.8 has no NaN"),
        (lambda a, b: np.float32(np.nan), {"accumulator": "q4.8"}, r"adding <lambda>\(.*q4.8 has no code"),
        (lambda a, b: 700, {"carrier": "codes"}, "is 700, which is no code of e5m2: 0 to 255"),
        (lambda acc, a, b: -1, {"carrier": "codes"}, "is -1, which is no code"),
        (lambda acc, a, b: acc // (b - b), {"carrier": "codes"}, "raises ZeroDivisionError: .*by zero"),
    ],
)
def test_results_that_are_no_value(function, options, said):
    unit = sn.CustomMadUnit(function, operand="e5m2", **options)
    with pytest.raises(ValueError, match=said) as error:
        sn.matmul(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32), unit)
    assert f"{HERE}:{line_of(function)}" in str(error.value)


def positive(a, b):
    if a < 0 or b < 0:
        raise KeyError("a sign")
    return a * b


def test_the_operands_of_the_trial_are_not_the_users():
    """What has no result there is no error, unless nothing has one; and then it says whose operands they were."""
    unit = sn.CustomMadUnit(positive, operand="e5m2", accumulator="e6m9")
    x = np.float32([[1, 2, 3]])
    assert sn.matmul(x, x.T, unit) == 14
    with pytest.raises(ValueError, match=rf"positive\(-1.0, 3.0\) at k = 2 of output \(1, 0\) .*{HERE}.* KeyError"):
        sn.matmul(np.float32([[1, 1, 1], [1, 1, -1]]), x.T, unit)
    with pytest.raises(ValueError, match=r"never \(.*\) fails on all operands of the trial .* KeyError"):
        sn.matmul(x, x.T, sn.CustomMadUnit(never, operand="e5m2"))


def never(a, b):
    if a == a:
        raise KeyError(1)
    return b


def test_what_int_makes_of_an_infinity_is_not_left_to_the_compiler():
    def whole(a, b):
        return np.float32(int(a) * int(b))

    def guarded(a, b):
        return np.float32(int(a) * int(b)) if np.isfinite(a * b) else a * b

    x = np.float32([[2.5, np.inf]])
    assert sn.matmul(x, np.abs(x.T), sn.CustomMadUnit(guarded, operand="e5m2")) == np.inf
    with pytest.raises(
        ValueError, match=r"whole \(.*not the same compiled .*inf.*raises OverflowError: cannot convert"
    ):
        sn.matmul(x, x.T, sn.CustomMadUnit(whole, operand="e5m2"))
    unit = sn.CustomMadUnit(whole, operand="e2m1fn", accumulator="e6m9")  # nothing but finite numbers
    assert sn.matmul(np.float32([[1.5]]), np.float32([[6]]), unit) == 6


def test_a_division_by_zero_of_codes_is_pythons():
    def divides(acc, a, b):
        return acc + a // (b - 77)

    unit = sn.CustomMadUnit(divides, operand="uq8.0", carrier="codes")
    a, b = np.full((1, 30), 20, np.float32), np.full((30, 3), 78, np.float32)
    assert sn.matmul(a[:, :10], b[:10], unit).tolist() == [[200.0] * 3]
    b[1, 2] = 77
    with pytest.raises(
        ValueError, match=r"divides\(20, 20, 77\) at k = 1 of output \(0, 2\) .* raises ZeroDivisionError"
    ):
        sn.matmul(a[:, :10], b[:10], unit)


def rare(acc, a, b):
    """A value but for one pair of operands, which the sample does not have."""
    return np.float32(1 / 3) if a == 57344 and b == -57344 else acc


def refuses(acc, a, b):
    if a == 57344 and b == -57344:
        raise ValueError("not these two")
    return acc


@pytest.mark.parametrize(("function", "said"), [(rare, "0.33333.* is no value of e5m2"), (refuses, "not these two")])
def test_one_bad_step_of_many_is_found_and_named(function, said):
    unit = sn.CustomMadUnit(function, operand="e5m2")
    a, b = np.ones((7, 30), np.float32), np.ones((30, 200), np.float32)
    assert sn.matmul(a, b, unit).shape == (7, 200)
    a[5, 21], b[21, 150] = 57344, -57344
    for threads in (1, 3):
        with pytest.raises(ValueError, match=rf"57344.0, -57344.0\) at k = 21 of output \(5, 150\).*{said}"):
            sn.matmul(a, b, unit, threads=threads)


def test_python_and_numba_must_agree():
    def helper(a):
        return np.float32(np.float64(0.1) * a) if a != 0 else a  # compiled: float64 * float32 is float64 too

    def wraps(acc, a, b):
        return (a << 62) // 3 % 128 if b else acc  # int64 in compiled code, a long integer in Python

    assert sn.dot(np.float32([1]), np.float32([1]), sn.CustomMadUnit(lambda a, b: helper(a), operand="e5m2")) == 0.09375
    with pytest.raises(
        ValueError, match=rf"wraps \(.*{HERE}:\d+\) is not the same compiled and in Python.*integers wrap"
    ):
        sn.dot(np.float32([1]), np.float32([1]), sn.CustomMadUnit(wraps, operand="e5m2", carrier="codes"))


def test_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    unit = sn.CustomMadUnit(lambda a, b: a, operand="e4m3")
    with pytest.raises(ImportError, match=r"<lambda>: .*pip install 'softnum\[custom\]'"):
        sn.dot(np.float32([1]), np.float32([1]), unit)
    assert kernels.scalar("e4m3").add(1, 2) == 3  # in Python


def test_parts_that_do_not_fit_together():
    def mad(a, b):
        return a * b

    def refused(said, **options):
        with pytest.raises(ValueError, match=said):
            sn.CustomMadUnit(mad, **options)

    refused("state operand=")
    refused("state accumulator=; the operands have two formats, e5m2 and e4m3", operand=("e5m2", "e4m3"))
    refused("float32 does not hold every value of e8m40", operand="e8m40", carrier="float32")
    refused("carrier must be one of float32, float64, codes, got 'float16'", operand="e5m2", carrier="float16")
    refused("lanes must be an integer from 1 to 1024, got 0", operand="e5m2", lanes=0)
    refused("reduction must be one of", operand="e5m2", reduction="other")
    refused("chunk must be a positive integer", operand="e5m2", chunk=0)
    refused("last parameter named word", operand="e5m2", rounding="stochastic")
    refused("overflow='wrap' is for fixed point", operand="e5m2", overflow="wrap")
    refused("codes are signed 64-bit integers", operand="binary64", carrier="codes")
    for thing in ("mad", max, np.multiply):
        with pytest.raises(TypeError, match="function must be a Python function"):
            sn.CustomMadUnit(thing, operand="e5m2")


def test_random_bits_of_a_scalar_count_where_it_rounds_stochastically():
    """As in softnum.quantize: where nothing is stochastic they are checked, and make no difference."""
    table = sn.CustomFormat.from_table([0.0, 1.0, 2.0, 3.0], name="table")
    for fmt in ("e5m2", "q4.8", table):
        assert kernels.scalar(fmt, stochastic_bits=8) == kernels.scalar(fmt)
        with pytest.raises(ValueError, match="stochastic_bits must be an integer from 1 to 32, got 33"):
            kernels.scalar(fmt, stochastic_bits=33)
    assert kernels.scalar("e5m2", rounding="sr", stochastic_bits=8).stochastic_bits == 8
    for mode in ("sr", "rto"):
        with pytest.raises(
            ValueError, match="is not defined for the value table table; use a nearest or a directed mode"
        ):
            kernels.scalar(table, rounding=mode)


def test_scalars_refuse_what_they_do_not_hold():
    for said, fmt, options in (
        ("float32 does not hold every value of e8m40", "e8m40", {"carrier": "float32"}),
        ("carrier must be one of", "e5m2", {"carrier": "float16"}),
        ("binary64 has 64 bits", "binary64", {"carrier": "codes"}),
        ("unknown rounding mode", "e5m2", {"rounding": "up down"}),
        ("is for fixed point", "e5m2", {"overflow": "wrap"}),
    ):
        with pytest.raises(ValueError, match=said):
            kernels.scalar(fmt, **options)
    with pytest.raises(ValueError, match=r"takes float32 numbers, and 0.1 is none"):
        e6m9.round(0.1)
    with pytest.raises(TypeError, match="missing 1 required"):
        e6m9.add(1)
    with pytest.raises(TypeError, match="takes numbers, got '1'"):
        e6m9.round("1")
    with pytest.raises(ValueError, match="q4.8 has no code for the result"):
        q4.round(np.nan)
    stochastic = kernels.scalar("e6m9", rounding="stochastic")
    with pytest.raises(TypeError, match="1 numbers and a random word, got 1 arguments"):
        stochastic.round(1.0)
    with pytest.raises(ValueError, match="below 2\\*\\*32, got -1"):
        stochastic.round(1.0, -1)
    codes = kernels.scalar("e5m2", carrier="codes")
    with pytest.raises(ValueError, match=r"takes codes of e5m2, 0 to 255, got 256"):
        codes.add(256, 0)
    with pytest.raises(TypeError, match="rounded already"):
        codes.round(1)


def test_compiled_code_is_found_by_the_next_process(tmp_path):
    """And not that of another function: what a function calls, closes over and reads counts."""
    (tmp_path / "mine.py").write_text(
        "import sys\n"
        "import numpy as np\n"
        "import softnum as sn\n"
        "from softnum import kernels\n"
        "e6m9 = kernels.scalar('e6m9')\n"
        "factor = np.float32(sys.argv[1])\n"
        "def half(x):\n"
        "    return x * factor\n"
        "def mad(acc, a, b):\n"
        "    return e6m9.fma(a, half(b), acc)\n"
        "x = np.ones((1, 8), np.float32)\n"
        "print(sn.matmul(x, x.T, sn.CustomMadUnit(mad, operand='e5m2', accumulator='e6m9'))[0, 0])\n"
    )
    environment = {**os.environ, "SOFTNUM_CACHE": str(tmp_path / "cache")}

    def run(argument):
        done = subprocess.run(
            [sys.executable, "mine.py", argument],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        kept = sorted((tmp_path / "cache" / "numba").glob("*.code"))
        return float(done.stdout), kept

    first, one = run("0.5")
    again, same = run("0.5")
    other, two = run("2")
    assert (first, again, other) == (4.0, 4.0, 16.0)
    assert one == same and len(one) == 1 and len(two) == 2
