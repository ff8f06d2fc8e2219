"""Contractions by compiled loops: the bits and the messages of the definition, which lays the terms out."""

import numpy as np
import pytest

import softnum as sn
from softnum.tile import contract, loops
from tests.support.tile_checks import form, small

pytest.importorskip("numba")

MAD = sn.MadUnit("e6m9", operand="e5m2")
PRODUCT = sn.MadUnit("e6m9", operand="e5m2", product="e5m2", chunk=3)
WIDER = sn.MadUnit("binary16", operand=("e5m2", "e4m3"), chunk=2, outer_accumulator="binary32")
FIXED = sn.MadUnit("q8.8", operand="q4.4", overflow="saturate")


def bits(x):
    return x.codes if isinstance(x, sn.Array) else x


def both(monkeypatch, call):
    """(by the definition, by loops where they are there for it, whether they were)"""
    made = []

    def spy(*arguments):
        made.append(found := loops.by_loops(*arguments))
        return found

    found = []
    for least in (1 << 62, 0):
        monkeypatch.setattr(loops, "LEAST", least)
        monkeypatch.setattr(contract, "by_loops", spy)
        try:
            found.append(call())
        except sn.tile.TileError as error:
            found.append(str(error))
    monkeypatch.undo()
    return *found, bool(made) and made[-1] is not None


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, str):
        assert one == other
        return
    one, other = bits(one), bits(other)
    assert one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def operator_of(statement):
    return sn.operator(f"function (A, B) -> (C) {{ {statement}; }}")


#: statement, the shapes of A and B, format, unit
CASES = [
    ("C[n, y, x: 3, 5, 70] = >(A[n, 2 * y + j - 1, 2 * x + i - 1]), j < 3, i < 3", (3, 9, 139), "e5m2", None),
    ("C[2 * y + 1, 3 * x - y: 21, 160] = =(A[y, x])", (9, 50), "e5m2", None),
    ("C[m: 150] = *(A[m + j - 1, k]), j < 3", (150, 2), "e5m2", None),
    ("C[n, m: 140, 3] = +(A[k, m]), n - k < 140", (140, 3), "e5m2", MAD),
    ("C[m, n: 6, 130] = +(A[m + 1 - k, n - 3] * B[k, n]), k < 4", (6, 130, 4, 130), "e5m2", MAD),
    ("C[2 * y + k - 1: 200] = +(A[y] * B[k, y])", (100, 5, 100), "e5m2", PRODUCT),
    ("C[2 * y + k - 1, m: 40, 5] = +(A[2 * y + k - 1, m] == B[y, m] ? A[y, m - k] : 0), k < 3", (40, 5, 20, 5), "e5m2",
     PRODUCT),
    ("C[n, y, x: 3, 5, 70] = <(A[n, 2 * y + j - 1, 2 * x + i - 1]), j < 3, i < 3", (3, 9, 139), "binary8p3se", None),
    ("C[m: 150] = >(A[m, k])", (150, 7), "e4m3fnuz", None),
    ("C[3 * x - 2 * j + 1: 160] = >(A[x, j])", (60, 9), "q4.4", None),
    ("C[y, x: 9, 150] = =(A[8 - y, 149 - x])", (9, 150), "e5m2", None),
    ("C[] = +(A[i, j] * B[i, j])", (7, 9, 7, 9), "e5m2", WIDER),
    ("C[m, n: 70, 2] = +(A[m - n, 2 * k])", (70, 9), "q4.4", FIXED),
]  # fmt: skip


def drawn(rng, shape, fmt):
    """Any code, NaNs, infinities and zeros of both signs among them."""
    fmt = sn.format(fmt)
    codes = rng.integers(0, 1 << min(fmt.bits, 63), shape, dtype=np.uint64).astype(fmt.storage_dtype)
    return sn.Array(np.where(rng.random(shape) < 0.3, sn.encode(0.0, fmt), codes).astype(fmt.storage_dtype), fmt)


def some(cases, quick):
    """The first few, and the others among the slow tests: each compiles loops of its own."""
    return [*cases[:quick], *(pytest.param(*case, marks=pytest.mark.slow) for case in cases[quick:])]


@pytest.mark.parametrize(("statement", "shape", "fmt", "unit"), some(CASES, 7))
def test_loops_give_the_bits_of_the_definition(statement, shape, fmt, unit, monkeypatch):
    op, rng = operator_of(statement), np.random.default_rng(4)
    rank = statement.split("A[")[1].split("]")[0].count(",") + 1
    formats = unit.operand if unit else (sn.format(fmt),) * 2
    for as_array in (True, False):
        for of_all_codes in (True, False):
            shapes = shape[:rank], shape[rank:] or (1,)
            if of_all_codes:
                a, b = (drawn(rng, s, f) for s, f in zip(shapes, formats, strict=True))
            else:
                a, b = (sn.array(small(s, 5), f, overflow="saturate") for s, f in zip(shapes, formats, strict=True))
            if not as_array:
                a, b = (np.asarray(x, np.float32) for x in (a, b))
            given = {"A": formats[0], "B": formats[1], "*": fmt}
            one, other, used = both(monkeypatch, lambda: op(a, b, fmt=given, unit=unit))  # noqa: B023
            assert_same(one, other)
            assert used or isinstance(one, str)


@pytest.mark.parametrize(
    ("fmt", "sign"),
    some(
        [
            (fmt, sign)
            for sign in "><"
            for fmt in ("binary32", "e8m0fnu", "powers", "uq4.4", "binary64", "tf32", "q8.24", "binary8p1uf")
        ],
        4,
    ),
)
def test_extremes_of_every_kind_of_format(fmt, sign, monkeypatch):
    if fmt == "powers":
        fmt = sn.CustomFormat.from_table([-0.5, 0.0, 0.5, 1.0, 2.0, float("nan"), -3.0, 4.0], name="powers")
    rng, op = np.random.default_rng(3), operator_of(f"C[m: 80] = {sign}(A[m, k])")
    codes = drawn(rng, (80, 5), fmt)
    numbers = sn.array(rng.choice([0.5, 1, 2, 4], (80, 5)), fmt, overflow="saturate")
    for a in (codes, numbers, np.asarray(numbers)):
        one, other, used = both(monkeypatch, lambda: op(a, np.zeros(1), fmt={"*": fmt, "B": "e5m2"}))  # noqa: B023
        assert_same(one, other)
        assert used


def test_zeros_and_nans_of_both_signs(monkeypatch):
    monkeypatch.setattr(loops, "LEAST", 0)
    values = [[-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0], [np.nan, 1], [-np.inf, np.nan], [-np.inf, np.inf]]
    a = np.array(values, np.float32)
    for sign, want in ((">", [0.0, 0.0, -0.0, np.nan, np.nan, np.inf]), ("<", [-0.0] * 3 + [np.nan, np.nan, -np.inf])):
        for given in (a, sn.array(a, "e5m2")):
            found = np.asarray(operator_of(f"C[m: {len(given)}] = {sign}(A[m, k])")(given, given, fmt="e5m2"))
            expected = np.float32(want)
            assert np.array_equal(found, expected, equal_nan=True)
            assert np.array_equal(np.signbit(found), np.signbit(expected))


# -- what loops leave to the definition --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("statement", "options", "message"),
    [
        ("C[x: 9] = >(A[2 * x + j]), j < 2", {}, r"C\[3\] would be the extreme of nothing"),
        ("C[x: 9] = =(A[x - j]), j < 2", {}, r"C\[1\] would be assigned 2 times"),
        ("C[] = *(A[x])", {"fmt": "q2.2", "overflow": "wrap"}, None),
        ("C[x: 6] = >(A[x])", {"fmt": {"*": "e5m2", "C": "e6m9"}}, "an extreme is one of its terms"),
        ("C[] = +(A[x])", {"unit": sn.MadUnit("e2m1fn", operand="e2m1fn", overflow="infinity"), "fmt": "e2m1fn"}, None),
        ("C[] = +(A[x])", {"unit": sn.MadUnit("e2m1fn", operand="e2m1fn")}, "is no value of e2m1fn"),
        ("C[] = +(A[x] * A[x])", {"unit": sn.MadUnit("e6m9", operand="e2m1fn")}, r"A\[0\] = .* is no value of e2m1fn"),
        ("C[x: 6] = *(A[x])", {"rounding": "stochastic"}, "stochastic rounding needs key"),
        ("C[x: 6] = =(A[x])", {"rounding": "stochastic", "fmt": {"*": "e5m2", "C": "e2m1fn"}}, "stochastic rounding"),
    ],
)
def test_errors_are_those_of_the_definition(statement, options, message, monkeypatch):
    a = np.array([1.25, 1.5, -1.5, 1.25, 0.5, 1.0])
    if options.get("fmt") == "e2m1fn":
        a = np.full(6, 6.0)
    op = operator_of(statement)
    one, other, _ = both(monkeypatch, lambda: op(a, np.ones(1), **{"fmt": "e5m2"} | options))
    assert_same(one, other)
    if message is not None:
        assert isinstance(one, str)
        with pytest.raises(sn.tile.TileError, match=message):
            op(a, np.ones(1), **{"fmt": "e5m2"} | options)


def test_products_that_have_no_code_fail_wherever_the_sum_has_one(monkeypatch):
    unit, a = sn.MadUnit("e6m9", operand="e5m2", product="e2m1fn"), np.array([1, np.nan, 2])
    one, other, _ = both(monkeypatch, lambda: operator_of("C[] = +(A[x] * A[x])")(a, a, fmt="e5m2", unit=unit))
    assert one == other and "e2m1fn has no code for it" in one


@pytest.mark.parametrize(
    "statement",
    [
        "C[i: 5] = =(A[i]), i < 99999999999999999999",
        "C[i: 5] = >(A[i]), i + 9 < 99999999999999999999",
        "C[i: 5] = >(A[i]), 576460752303423488 * i < 576460752303423489, i < 2",
        "C[i: 5] = +(A[i]), 576460752303423488 * i < 576460752303423489",
        "C[i: 5] = =(A[2 * i - 4611686018427387000, j]), j < 2",
    ],
)
def test_large_numbers_in_indices(statement, monkeypatch):
    a = np.arange(1.0, 6.0)
    if "j" in statement:
        a = a[:, None]
    one, other, _ = both(monkeypatch, lambda: operator_of(statement)(a, a, fmt="e5m2", unit=MAD))
    assert_same(one, other)


def test_what_comes_to_few_terms_and_what_is_without_numba_is_laid_out(monkeypatch):
    """The calls of a contraction at the same sizes count together."""
    a, kinds = small((30, 40), 1), []
    monkeypatch.setattr("softnum.runtime.gateway.loops", lambda kind, *_: kinds.append(kind) or (a[:, 0], None, True))
    monkeypatch.setattr(loops, "LEAST", 3 * a.size)
    op = operator_of("C[few: 30] = >(A[few, k])")
    for want in (0, 0, 1, 2):
        op(a, a, fmt="e5m2")
        assert kinds == ["largest float"] * want
    op(a[:, 1:], a, fmt="e5m2")
    monkeypatch.setattr(loops, "find_spec", lambda name: None)
    op(a, a, fmt="e5m2")
    assert kinds == ["largest float"] * 2


def test_compiled_loops_are_kept_and_shared(monkeypatch, tmp_path):
    """On the disk, and by contractions that differ in sizes."""
    from softnum.kernels.host import contractions

    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path))
    monkeypatch.setattr(loops, "LEAST", 0)
    contractions._compiled.cache_clear()
    for number, shape in enumerate([(20, 7), (30, 9), (20, 7)]):
        if number == 2:  # as another process finds it
            contractions._compiled.cache_clear()
        operator_of("C[m: 5] = >(A[m + 2, k])")(small(shape, 1), np.ones(1), fmt="e5m2")
        assert contractions._compiled.cache_info().misses == 1
        assert len(list((tmp_path / "numba").glob("*.code"))) == 1


def test_without_a_folder_for_compiled_code_loops_work(monkeypatch, tmp_path):
    from softnum.kernels.host import contractions

    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "file" / "cache"))
    contractions._compiled.cache_clear()
    one, other, used = both(
        monkeypatch, lambda: operator_of("C[m: 9] = =(A[8 - m])")(small((9,), 1), small((1,), 1), fmt="e5m2")
    )
    assert_same(one, other)
    assert used


# -- at random ---------------------------------------------------------------------------------------------------------
UNITS = [
    ("e5m2", MAD), ("e5m2", PRODUCT), ("q4.4", FIXED), ("e5m2", sn.MadUnit("e6m3", operand="e5m2", lanes=2)),
    ("e4m3fn", sn.MadUnit("binary16", operand="e4m3fn", chunk=2, outer_accumulator="binary32")),
    ("binary32", sn.MadUnit("binary32", operand="binary32")), ("e2m1fn", sn.MadUnit("e5m2", operand="e2m1fn")),
    ("binary8p3se", sn.MadUnit("binary16", operand="binary8p3se")),
    ("e4m3fnuz", sn.ExactDotUnit("e6m9", operand="e4m3fnuz")),
]  # fmt: skip


def draw(rng):
    """(a statement of A and B, their shapes)"""
    names = ["i", "j", "k"][: int(rng.integers(1, 4))]
    kind = str(rng.choice([">", "<", "=", "*", "+", "+B", "+?"]))
    a = [form(rng, names)[0] for _ in range(int(rng.integers(1, 3)))]
    a += [n for n in names if rng.random() < 0.4]
    b = [form(rng, names)[0] for _ in range(int(rng.integers(1, 3)))]
    c = [form(rng, names)[0] if rng.random() < 0.5 else str(rng.choice(names)) for _ in range(int(rng.integers(0, 3)))]
    shapes = [tuple(int(n) for n in rng.integers(1, 6, len(forms))) for forms in (a, b, c)]
    body = f"A[{', '.join(a)}]" + (f" * B[{', '.join(b)}]" if kind == "+B" else "")
    if kind == "+?":
        body += f" == B[{', '.join(b)}] ? A[{', '.join(reversed(a))}] : 0"
    limits = [f", {form(rng, names)[0]} < {int(rng.integers(1, 6))}" for _ in range(2) if rng.random() < 0.3]
    place = f"{', '.join(c)}: {', '.join(map(str, shapes[2]))}" if c else ""
    return f"C[{place}] = {kind[0]}({body}){''.join(limits)}", shapes[:2]


@pytest.mark.parametrize(("seed",), some([(seed,) for seed in range(400)], 3))
def test_random_contractions(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    statement, shapes = draw(rng)
    fmt, unit = UNITS[seed % len(UNITS)]
    a, b = (
        drawn(rng, s, fmt) if rng.random() < 0.5 else sn.array(small(s, seed), fmt, overflow="saturate") for s in shapes
    )
    if rng.random() < 0.5:
        a, b = np.asarray(a), np.asarray(b)
    one, other, _ = both(monkeypatch, lambda: operator_of(statement)(a, b, fmt=fmt, unit=unit))
    assert_same(one, other)
