"""Look-ups and compiled loops give what the steps give one by one: bits, and errors."""

import threading
from unittest.mock import patch

import numpy as np
import pytest

import softnum as sn
from softnum.tile import elementwise, tables
from tests.support.tile_programs import Draw

FORMATS = ["e5m2", "e4m3fn", "e4m3fnuz", "e6m9", "bfloat16", "binary32", "q4.4", "q8.8", "e2m3fn"]


@pytest.fixture
def at_once(monkeypatch):
    """Loops are compiled when they are first asked for."""
    pytest.importorskip("numba")
    monkeypatch.setattr(elementwise, "ENOUGH", 0)


def one_by_one(op, *inputs, **options):
    """The outcome of an operator whose steps are carried out one by one."""
    with patch.dict(op.__dict__, {"_tables": None}):
        return outcome(op, *inputs, **options)


def outcome(op, *inputs, **options):
    """The codes of the outputs, or the error."""
    try:
        found = op(*inputs, **options)
    except ValueError as error:
        return str(error)
    return [x.codes.tolist() for x in (found if isinstance(found, tuple) else (found,))]


def compiled(op):
    """How many loops of an operator are compiled."""
    return sum(bool(loop and loop._loop) for loop in op._tables.loops._kept.values())


def codes_of(fmt, rng, size):
    """Codes of all kinds."""
    fmt = sn.format(fmt)
    return sn.Array(rng.integers(0, 2**fmt.bits, size).astype(fmt.storage_dtype), fmt)


SEEDS = [seed if seed < 4 else pytest.param(seed, marks=pytest.mark.slow) for seed in range(120)]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed, at_once):
    rng = np.random.default_rng(seed)
    draw = Draw(seed)
    body, _, names = draw.block(["X", "Z"], 2, 5)
    result, _ = draw.expression(names, 2)
    op = sn.operator(f"function (X, Z) -> (Y) {{ {body} Y = {result}; }}")
    x, z = (sn.format(str(rng.choice(FORMATS))) for _ in range(2))
    tensors = sorted({step.base for step in op._program.steps} - {"condition"})
    fmt = {"*": str(rng.choice(FORMATS))} | {t: str(rng.choice(FORMATS)) for t in tensors if rng.random() < 0.3}
    fmt = {name: f for name, f in fmt.items() if name not in "XZ"}
    options = {"fmt": fmt}
    if rng.random() < 0.3:
        options["rounding"] = str(rng.choice(["up", "toward_zero", "nearest_away"]))
    for size in ((7,), (3, 5)):
        finite = [sn.array(rng.integers(-8, 9, size) / 4, f) for f in (x, z)]
        for inputs in (finite, [codes_of(f, rng, size) for f in (x, z)]):
            assert outcome(op, *inputs, **options) == one_by_one(op, *inputs, **options), (op.source, fmt, inputs)


def test_one_by_one_is(at_once):
    op, x = sn.operator("function (X, Z) -> (Y) { T = X * X; Y = T * Z; }"), sn.array([1.0, 2.0], "e5m2")
    assert one_by_one(op, x, x) == outcome(sn.operator(op.source), x, x) == [[60, 72]]
    assert "_tables" not in op.__dict__ and not compiled(op)
    assert outcome(op, x, x) == [[60, 72]] and compiled(op) and op._tables._kept


@pytest.mark.slow
def test_random_programs_are_looked_up_and_looped(at_once):
    """So that the test above tests something."""
    looked_up = looped = 0
    for seed in range(40):
        draw = Draw(seed)
        body, _, names = draw.block(["X", "Z"], 2, 5)
        result, _ = draw.expression(names, 2)
        op = sn.operator(f"function (X, Z) -> (Y) {{ {body} Y = {result}; }}")
        x = sn.array(np.ones(5), "e5m2")
        outcome(op, x, x)
        looked_up += bool(op._tables._kept)
        looped += bool(compiled(op))
    assert looked_up > 25 and looped > 8


TEXT = "function (A, B, C) -> (Y, Z) {{ {} }}"
STEPS = {
    "sums": "Y = A + B; Z = A - B * C;",
    "fused": "Y = fma(A, B, C); Z = Y - 1 / 3;",
    "quotients": "Y = A / B; Z = sqrt(A) / 3;",
    "signs": "Y = abs(A - B); Z = -min(A, B);",
    "extremes": "Y = max(A, B); Z = min(max(A, -B), 0);",
    "choices": "Y = A < B && !(A == C) || B > 0.3 ? A : 2; if (A >= B) { Z = A - B; } else { Z = C; }",
}


@pytest.mark.parametrize("steps", STEPS)
def test_operations_on_numbers_of_all_kinds(steps, at_once):
    """Values at both ends, subnormal ones, zeros of both signs and infinities: none of them is a NaN."""
    op, rng = sn.operator(TEXT.format(STEPS[steps])), np.random.default_rng(3)
    for fmt in ("e5m2", "binary32"):
        given = [codes_of(fmt, rng, 4000) for _ in "ABC"]
        if steps == "quotients":
            given = [sn.absolute(x) for x in given]
        keep = np.all([np.isfinite(np.asarray(x)) & (np.asarray(x) != 0) for x in given], axis=0)
        if steps in ("signs", "extremes", "choices"):
            keep = ~np.any([np.isnan(np.asarray(x)) for x in given], axis=0)
        given = [x[keep] for x in given]
        assert outcome(op, *given) == one_by_one(op, *given)
        assert compiled(op), fmt
        op._tables.loops._kept.clear()


@pytest.mark.parametrize("fmt", ["e5m2", "q4.4"])
def test_operands_and_results_in_formats_of_their_own(fmt, at_once):
    rng = np.random.default_rng(5)
    op = sn.operator(TEXT.format("Y = A * B + C; Z = A > 0 ? B : C;"))
    given = [sn.array(rng.normal(0, 1, 500), f) for f in ("e4m3", "e6m9", "q4.12")]
    formats = {"*": fmt, "Y": "binary32"}
    assert outcome(op, *given, fmt=formats) == one_by_one(op, *given, fmt=formats)


def test_loops_on_the_disk_are_told_apart(at_once):
    """Their texts are the same."""
    a, b = sn.array([1.0, -3.0], "e6m9"), sn.array([0.5, 2.0], "e6m9")
    for name in ("min", "max"):
        op = sn.operator(f"function (A, B) -> (Y) {{ Y = {name}(A, B); }}")
        assert outcome(op, a, b) == one_by_one(op, a, b) and compiled(op)


def test_nans_and_results_without_a_code_leave_it_to_the_steps(at_once):
    op = sn.operator("function (A, B) -> (Y) { Y = A - B; }")
    x = sn.array([1.0, np.inf, np.nan, 2.0], "e5m2")
    negative = sn.Array(np.array([0x3C, 0xFF, 0x7D, 0x40], np.uint8), "e5m2")
    for a, b in ((x, x), (negative, x), (x, negative)):
        assert outcome(op, a, b) == one_by_one(op, a, b)
    assert compiled(op)
    quotient = sn.operator("function (A, B) -> (Y) { Y = A / B; }")
    a, b = sn.array([1.0, 2.0], "q4.4"), sn.array([1.0, 0.0], "q4.4")
    message = outcome(quotient, a, b)
    assert "line 1, column 32: Y: divide: the result is NaN or infinite" in message
    assert message == one_by_one(quotient, a, b)
    assert outcome(quotient, a, a) == [[16, 16]] and compiled(quotient)
    branch = sn.operator("function (A, B) -> (Y) { Y = B == 0 ? A : A / B; }")  # what is not taken is not looked at
    assert outcome(branch, a, b) == [[16, 32]]


@pytest.mark.parametrize(
    ("fmt", "overflow", "said"),
    [
        ("e5m2", "wrap", "for fixed point; e5m2 is a float"),
        ("q4.4", "infinity", "is for formats with infinities; q4.4 has none"),
        ("e5m2", "?", "unknown"),
    ],
)
def test_roundings_that_a_format_does_not_have_are_the_steps_errors(fmt, overflow, said, at_once):
    op, x = sn.operator("function (A, B) -> (Y) { Y = A * B; }"), sn.array([1.0, 2.0], fmt)
    for _ in range(2):
        message = outcome(op, x, x, overflow=overflow)
        assert message == one_by_one(op, x, x, overflow=overflow)
        assert message.startswith("tile, line 1, column 32: Y: ") and said in message


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_tensors_without_elements(shape, at_once):
    op = sn.operator("function (X, Z) -> (Y, T) { T = X < 0 ? -X : sqrt(X); U = T + Z; Y = U * U - Z; }")
    x = sn.array(np.zeros(shape), "e5m2")
    unit = sn.MadUnit("e5m2", operand="e5m2")
    for z in (x, sn.array(1.0, "e5m2")):
        for _ in range(2):
            y, t = op(x, z)
            assert (y.shape, t.shape, y.format, t.format) == (shape, shape, x.format, x.format)
            assert [g.shape for g in op.backward([x, z], [y, t], [y, t], unit=unit)] == [x.shape, z.shape]
    four = sn.array([4.0], "e5m2")
    assert [a.tolist() for a in op(four, four)] == [[28], [2]]  # and it knows the elements that come later


def test_of_several_steps_that_fail_the_first_says_so(at_once):
    x = sn.array([3.0], "uq4.4")
    for text, column in (("T = X - 4; Y = -1 * X;", 44), ("T = abs(-1) * X; Y = -1 * T;", 30)):
        op = sn.operator(f"function (X) -> (T, Y) {{ {text} }}")
        assert f"column {column}" in outcome(op, x) and outcome(op, x) == one_by_one(op, x)


def test_broadcasting_and_results_that_steps_take_up(at_once):
    op = sn.operator(
        "function (X[M, N], B[N], S) -> (Y) { T = (X + B) * S; U = T > 0 ? T : S * T; V = U / (1 + U * U); "
        "Y[i, j: M, N] = =(V[i, N - 1 - j]); }"
    )
    rng = np.random.default_rng(1)
    for shape in ((4, 5), (1, 1), (3, 1), (0, 4)):
        x, b = (sn.array(rng.normal(0, 1, s), "e6m9") for s in (shape, shape[1:]))
        for s in (sn.array(0.5, "e6m9"), sn.array([0.25], "e6m9")):
            assert outcome(op, x, b, s) == one_by_one(op, x, b, s)


def test_the_gradient_is_looped(at_once):
    op = sn.operator("function (X) -> (Y) { if (X > 0) { Y = X / (1 + X); } else { Y = 0.5 * X; } }")
    x = sn.array(np.random.default_rng(2).normal(0, 2, 300), "e6m9")
    y = op(x)
    assert outcome(op.gradient, x, y, y) == one_by_one(op.gradient, x, y, y)
    assert compiled(op.gradient) and not compiled(op)  # of one tensor alone: looked up


def test_stochastic_steps_are_carried_out_one_by_one(at_once):
    op, x = sn.operator("function (X, Z) -> (Y) { T = X * X; Y = T + Z; }"), sn.array([0.3, 0.7], "e5m2")
    for rounding in ("stochastic", {"T": "stochastic"}, {"Y": "stochastic"}):
        options = {"rounding": rounding, "key": 4}
        assert outcome(op, x, x, **options) == one_by_one(op, x, x, **options)


def test_it_pays_before_it_is_compiled(monkeypatch):
    monkeypatch.setattr(elementwise, "ENOUGH", 3 * (100 + (1 << 14)))
    op, x = sn.operator("function (X, Z) -> (Y) { Y = X * Z; }"), sn.array(np.ones(100), "e5m2")
    made = []
    monkeypatch.setattr(elementwise.gateway, "elementwise_loop", lambda *facts: made.append(facts))
    for count in (0, 0, 1, 1):
        op(x, x)
        assert len(made) == count  # and there is none: it is not asked for again


# -- look-ups ----------------------------------------------------------------------------------------------------------
def test_only_codes_that_occur_are_computed():
    """Fixed point has no code for 1 / 0, and the message is that of the elements that were given."""
    op = sn.operator("function (X) -> (Y) { T = [4, 5, 6]; I = floor(X); Y = gather(T, I) / X; }")
    assert op(sn.array([1.0, 2.5], "q4.4")).tolist() == [5, 2.375]
    with pytest.raises(sn.tile.TileError, match=r"I\[2\] = 3 is no place in a table of 3"):
        op(sn.array([1.0, 2.5, 3.0], "q4.4"))
    with pytest.raises(sn.tile.TileError, match="Y: divide: the result is NaN or infinite"):
        op(sn.array([1.0, 0.0], "q4.4"))
    assert op(sn.array([2.0, 1.0], "q4.4")).tolist() == [3, 5]


def test_tables_are_of_their_formats_roundings_and_sizes():
    op = sn.operator("function (X[N]) -> (Y) { Y = X / 3 + N / 7; }")
    rng = np.random.default_rng(4)
    for size in (5, 50):
        for fmt in ("e5m2", "e6m9", "q4.4"):
            x = codes_of(fmt, rng, size)
            for options in ({}, {"rounding": "up"}, {"fmt": {"Y": "binary32"}}, {"fmt": {"Y": "e4m3"}}):
                assert outcome(op, x, **options) == one_by_one(op, x, **options)


def test_formats_of_the_users_own_are_looked_up():
    posit = sn.CustomFormat.from_table([0.0, 0.25, 0.5, 1.0, 2.0, 4.0, -1.0, -4.0])
    op, x = (
        sn.operator("function (X) -> (Y) { Y = X > 0 ? X * X : -X; }"),
        sn.Array(np.arange(8, dtype=np.uint8), posit),
    )
    assert outcome(op, x) == one_by_one(op, x)
    assert op._tables._kept


def test_few_tables_are_kept():
    op = sn.operator("function (X[N]) -> (Y) { Y = X / N; }")
    for size in range(1, 60):
        op(sn.array(np.ones(size), "e5m2"))
    assert len(op._tables._kept) == 32


def test_a_table_that_two_threads_begin_at_once(monkeypatch):
    """A second thread fills the table between the first one's look and its arrays: nothing of it is lost."""
    table, squares = tables.Table(256), lambda codes: {"y": (codes * codes % 251).astype(np.uint16)}
    zeros, begun = np.zeros, []

    def at_the_worst_time(*args):
        if not begun and args[0] == 256 and args[1] == np.uint16:
            begun.append(True)
            other = threading.Thread(target=table.look_up, args=(np.arange(50), squares))
            other.start()
            other.join()
        return zeros(*args)

    monkeypatch.setattr(tables.np, "zeros", at_the_worst_time)
    table.look_up(np.arange(100, 150), squares)
    assert begun
    for codes in (np.arange(50), np.arange(100, 150)):
        assert np.array_equal(table.look_up(codes, squares)["y"], codes * codes % 251)


def test_threads_share_tables():
    op, rng = sn.operator("function (X) -> (Y) { Y = tanh(X) * X; }"), np.random.default_rng(8)
    given = [codes_of("e6m9", rng, 20000) for _ in range(8)]
    given = [x[np.isfinite(np.asarray(x))] for x in given]
    got = [None] * 8

    def call(i):
        got[i] = op(given[i]).codes

    workers = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for x, codes in zip(given, got, strict=True):
        assert np.array_equal(codes, sn.multiply(sn.tanh(x), x).codes)
