"""A function of the user's that fails for some operands fails where these are met, by any path, and nowhere else."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum import kernels
from softnum.kernels.host.cache import fingerprint

numba = pytest.importorskip("numba")

HERE = Path(__file__).name
CODES = np.arange(16, dtype=np.uint8)


def value(code):
    return code * 0.5


def nearest(x):
    if x < 0:
        raise RuntimeError("no negative numbers")
    return min(int(min(x, 100.0) * 2 + 0.5), 15)


def plain_sum(a, b):
    return a + b


def quotient(a, b):
    return 2 * a // b % 16


def small_product(a, b):
    if a == 3 and b == 5:
        raise ValueError("three by five")
    return a * b // 2


@pytest.fixture(scope="module")
def fmt():
    """Sums and products that leave the format have no result, nor has 3 by 5, a quotient by 0 and what is negative."""
    operations = {"add": plain_sum, "divide": quotient, "mul": small_product}
    return sn.CustomFormat(4, as_float=value, convert=nearest, ops=operations, name="half")


def line_of(function) -> str:
    return rf"{HERE}:{function.__code__.co_firstlineno}\)"


@pytest.mark.parametrize("n", [1, 3, 1000])
def test_operations_by_table_and_one_by_one(fmt, n):
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 16, (2, n), np.uint8)
    b[b == 0] = 1
    assert sn.divide(a, b, fmt).tolist() == [quotient(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    assert sn.add(a, 15 - a, fmt).tolist() == [15] * n
    a[-1], b[-1] = 7, 0
    with pytest.raises(ValueError, match=rf"half: divide .*{line_of(quotient)} of 0x7, 0x0 raises ZeroDivisionError"):
        sn.divide(a, b, fmt)
    with pytest.raises(ValueError, match=rf"half: add .*{line_of(plain_sum)} of 0x7, 0xf returns 22, and codes lie in"):
        sn.add(a[-1:], np.uint8([15] * n), fmt)


def test_a_table_is_whole_or_says_what_it_lacks(fmt):
    with pytest.raises(ValueError, match=rf"divide .*{line_of(quotient)} of 0x0, 0x0 raises ZeroDivisionError"):
        fmt.table("divide")


def test_derived_operations_meet_what_convert_refuses(fmt):
    for n in (1, 1000):
        a = np.full(n, 9, np.uint8)
        assert sn.subtract(a, a - 2, fmt).tolist() == [2] * n
        with pytest.raises(ValueError, match=rf"convert .*{line_of(nearest)} of -0.5 raises RuntimeError: no negative"):
            sn.subtract(a, np.append(a[1:], np.uint8(10)), fmt)


def by_loop(a, b):
    """acc = acc + a * b of codes, in Python; None where a step has no result."""
    out = np.empty((a.shape[0], b.shape[1]), object)
    for i, j in np.ndindex(out.shape):
        acc = 0
        for x, y in zip(a[i].tolist(), b[:, j].tolist(), strict=True):
            p = small_product(x, y) if (x, y) != (3, 5) else 16
            acc = acc + p if acc is not None and p < 16 and acc + p < 16 else None
        out[i, j] = acc
    return out


def test_matrix_products(fmt):
    unit = sn.MadUnit(fmt, operand=fmt, product=fmt)
    own = sn.CustomMadUnit(lambda a, b: small_product(a, b), operand=fmt)
    rng = np.random.default_rng(4)
    met = kept = 0
    for shape in ((1, 1, 1), (3, 2, 4), (9, 3, 40)):
        a, b = rng.integers(0, 5, shape[:2], np.uint8), rng.integers(0, 6, shape[1:], np.uint8)
        want = by_loop(a, b)
        for i, j in np.ndindex(want.shape):
            x, y = sn.Array(a[i : i + 1], fmt), sn.Array(b[:, j : j + 1], fmt)
            for u in (unit, own):
                if want[i, j] is None:
                    with pytest.raises(ValueError, match=rf"({line_of(plain_sum)}|{line_of(small_product)}|at k = )"):
                        sn.matmul(x, y, u)
                    met += 1
                else:
                    assert sn.matmul(x, y, u)[0, 0] == value(want[i, j])
                    kept += 1
    assert met > 10 and kept > 100
    good = sn.Array(np.ones((70, 15), np.uint8) * 2, fmt), sn.Array(np.eye(15, 80, dtype=np.uint8) * 2, fmt)
    for u in (unit, own):
        assert np.array_equal(sn.matmul(*good, u)[:, :15], np.ones((70, 15)))
    bad = sn.Array(np.full((70, 15), 3, np.uint8), fmt), sn.Array(np.eye(15, 80, dtype=np.uint8) * 5, fmt)
    with pytest.raises(ValueError, match=rf"multiply .*{line_of(small_product)} of 0x3, 0x5 raises .*three by five"):
        sn.matmul(*bad, unit)
    with pytest.raises(ValueError, match=r"<lambda>\(3, 5\) at k = 0 of output \(0, 0\) .* three by five"):
        sn.matmul(*bad, own)


def test_sums_in_a_compiled_unit_name_the_formats_function(fmt):
    add = kernels.scalar(fmt)

    def step(acc, a, b):
        return add.add(acc, a)

    for function in (lambda a, b: a, step):
        unit = sn.CustomMadUnit(function, operand=fmt)
        ones = sn.Array(np.ones((1, 15), np.uint8), fmt)
        assert sn.matmul(ones, sn.Array(ones.codes.T, fmt), unit) == 7.5
        many = sn.Array(np.ones((1, 16), np.uint8), fmt)
        with pytest.raises(ValueError, match=rf"add .*{line_of(plain_sum)} of 0xf, 0x1 returns 16, and codes lie in"):
            sn.matmul(many, sn.Array(many.codes.T, fmt), unit)


def test_a_value_too_near_a_midpoint_is_refused_where_it_is_met():
    root = math.nextafter(2.0 ** (1 / 3), 2.0) if (2.0 ** (1 / 3)) ** 3 < 2 else 2.0 ** (1 / 3)
    near = sn.CustomFormat.from_table([0.0, 2.0, root, math.nextafter(root, 0.0)], name="near")
    assert sn.ops.cbrt([0] * 100, near, rounding="up").tolist() == [0] * 100
    with pytest.raises(
        ValueError, match="cbrt: a result is closer to the midpoint of two values of .* than binary64 can resolve"
    ):
        sn.ops.cbrt([0] * 100 + [1], near, rounding="up")


def test_what_int_cannot_take_is_what_python_says():
    kept = sn.CustomFormat(4, as_float=value, convert=lambda x: int(x) & 15, name="kept")
    x = [1.0, 3e30, 2.0**53 + 2, -1e300, 2.0**53]
    assert sn.encode(x, kept).tolist() == [int(v) & 15 for v in x]
    for bad in (np.nan, np.inf, -np.inf):
        for n in (1, 1000):
            with pytest.raises(ValueError, match=rf"kept: convert \(.*{HERE}:\d+\) of {bad} raises \w+Error: cannot"):
                sn.encode([1.0] * n + [bad], kept)
    clamped = sn.CustomFormat(4, as_float=value, convert=lambda x: min(int(abs(x)), 15), name="clamped")
    assert sn.encode([1e300, -(2.0**64), 3.5], clamped).tolist() == [15, 15, 3]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"convert": lambda x: np.uint8(int(min(x, 1e9))) if x > 0 else 0},
         "convert .*: in a trial, of 256.0, compiled code makes 0x0, and Python raises OverflowError"),
        ({"convert": lambda x: max(min(int(x * 2.0**40), 7), 0) if x == x else 0},
         r"convert .* compiled code makes 0x0, and Python makes 0x7\. In Numba integers are signed"),
        ({"ops": {"neg": lambda a: (a << 62) // 3 % 16}}, "negate .* of 0x2, compiled code makes 0x., and Python"),
        ({"as_float": lambda c: math.log(float(c))}, "as_float .* of 0x0, compiled code makes -inf, and Python raises"),
    ],
)  # fmt: skip
def test_compiled_code_that_is_another_function_is_refused(changes, said):
    with pytest.raises(ValueError, match=rf"CustomFormat mine: {said}"):
        sn.CustomFormat(4, **({"as_float": value, "convert": lambda x: 0, "name": "mine"} | changes))


def test_functions_may_call_others_and_read_what_is_outside():
    factor = 2

    def helper(code):
        return code * factor

    fmt = sn.CustomFormat(3, as_float=lambda code: float(helper(code)), convert=numba.njit(lambda x: 1), name="helped")
    assert fmt.values == tuple(range(0, 16, 2)) and sn.encode([5.0], fmt).tolist() == [1]


def test_numbas_options_make_another_function():
    def f(a, b):
        return a * b

    made = [f, numba.njit(f), numba.njit(f, fastmath=True), numba.njit(f, error_model="numpy")]
    assert len({fingerprint(x) for x in made}) == 4 and fingerprint(numba.njit(f)) == fingerprint(made[1])


@pytest.mark.slow
def test_the_next_process_finds_what_was_compiled(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import sys\n"
        "import numpy as np, numba, softnum as sn\n"
        "factor = float(sys.argv[1])\n"
        "compiled = []\n"
        "class Watch(numba.core.event.Listener):\n"
        "    def on_start(self, event): compiled.append(event.data['dispatcher'].py_func.__name__)\n"
        "    def on_end(self, event): pass\n"
        "numba.core.event.register('numba:compile', Watch())\n"
        "def value(code):\n"
        "    return code * factor\n"
        "def nearest(x):\n"
        "    if x < 0: raise ValueError('negative')\n"
        "    return min(int(min(x, 99.0) / factor), 15)\n"
        "fmt = sn.CustomFormat(4, as_float=value, convert=nearest)\n"
        "try: sn.encode([-1.0], fmt)\n"
        "except ValueError as error: print(str(error)[-27:])\n"
        "print(sn.quantize([7.0], fmt)[0], 'nearest' in compiled)\n"
    )
    environment = {**os.environ, "SOFTNUM_CACHE": str(tmp_path / "cache")}

    def run(argument):
        command = [sys.executable, "mine.py", argument]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said, *found = done.stdout.splitlines()
        assert said == "raises ValueError: negative"[-27:]
        return found, len(list((tmp_path / "cache" / "numba").iterdir()))

    assert run("0.5") == (["7.0 True"], 2)
    assert run("0.5") == (["7.0 False"], 2)
    assert run("2") == (["6.0 True"], 4)
