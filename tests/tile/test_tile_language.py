"""The language: what is a program, and what an error says, with its line, its column and a caret."""

import pickle
import sys

import numpy as np
import pytest

import softnum as sn
from softnum.tile.lower import lower
from softnum.tile.parser import KEYWORDS, parse
from softnum.tile.syntax import Source
from tests.support.cases import cases

F = "function"
HEAD = "function (A[M, K], B[K, N], X) -> (Y) {\n"

#: statements, line (of the statements, from 1), column, what the message says
ERRORS = [
    ("Y = A + ;", 1, 9, "unexpected ';'; expected"),
    ("Y = A $ 2;", 1, 7, "'$' is not a character of the language"),
    ("Y = X", 2, 1, "unexpected '}'"),
    ("Y[i] = A[i, 0];", 1, 8, "unexpected 'A'; expected '*' or '+' or '<' or '=' or '>'"),
    ("if = X;", 1, 4, "unexpected '='; expected '('"),
    ("switch = 1;", 1, 8, "unexpected"),
    ("like = X; Y = X;", 1, 1, "'like' is a reserved word; choose another name"),
    ("Y = Z;", 1, 5, "'Z' is no tensor or size here; there are A, B, X"),
    ("Total = X;\nY = Totl;", 2, 5, "did you mean 'Total'?"),
    ("X = 2 * X; Y = X;", 1, 1, "'X' is an input and cannot be assigned"),
    ("M = X; Y = X;", 1, 1, "'M' is a size and cannot be assigned"),
    ("exp = X; Y = X;", 1, 1, "'exp' is a function; choose another name"),
    ("Y = tahn(X);", 1, 5, "there is no function 'tahn'; did you mean 'tan' or 'tanh'?"),
    ("Y = zzzz(X);", 1, 5, "there is no function 'zzzz'; there are abs, acos"),
    ("Y = pow(X);", 1, 5, "pow takes 2 operands, got 1"),
    ("Y = tanh(X, X);", 1, 5, "tanh takes 1 operand, got 2"),
    ("Y = A[0, 1];", 1, 5, "A[...] stands in a contraction only"),
    ("Y = X ? 1 : 2;", 1, 5, "a condition is needed here: compare it"),
    ("Y = (X > 0) + 1;", 1, 8, "this is a condition, not a number; write condition ? 1 : 0"),
    ("Y = !X ? 1 : 0;", 1, 6, "a condition is needed here"),
    ("Y = X > 0;", 0, 36, "'Y' is a condition, not a number"),
    ("Y = X > 0 ? X > 1 : 2;", 1, 5, "one side is a number, the other a condition"),
    ("Y = 1 < 2 ? X : 0;", 1, 7, "both sides are constants: the comparison needs a tensor"),
    ("if (X * X > 1) { Y = 1; } else { Y = 2; }", 1, 7, "would round to no tensor's format; assign it"),
    ("switch (X * X) { default: Y = 1; }", 1, 11, "switch takes a tensor by name"),
    ("switch (X) { case 2 .. 1: Y = 1; default: Y = 2; }", 1, 19, "no value lies in 2 .. 1"),
    ("if (X > 0) { S = X; }\nY = S;", 2, 5, "'S' has a value in some branches only"),
    ("switch (X) { case 1: S = X; }\nY = S;", 2, 5, "'S' has a value in some branches only"),
    ("if (X > 0) { S = X; } else { S = X > 1; }\nY = S;", 1, 1, "'S' is a number in one branch and a condition"),
    (
        "if (X > 0) { Y[i: M] = +(A[i, k]); } else { Y = X; }",
        1,
        14,
        "cannot be used element-wise in a branch; move it out",
    ),
    ("I = floor(X);\nif (X > 0) { Y = gather(A, I); }", 2, 18, "not elements in a branch; move it out"),
    ("Y = gather(A, floor(X));", 1, 15, "gather takes tensors by name; assign this to one first"),
    ("Y[i: M] = +(exp(gather(A[i, k], X)));", 1, 17, "gather takes whole tensors, not elements"),
    ("Y[i, j: M] = +(A[i, j]);", 1, 1, "Y has 2 indices and 1 sizes; write Y[i, j: M, N]"),
    ("Y[i] = +(A[i, j]);", 1, 1, "Y has 1 indices and 0 sizes"),
    ("Y[i: M] = +(A[i]);", 1, 13, "A has 2 dimensions, got 1 indices"),
    ("Y[i: M] = +(A);", 1, 13, "A has 2 dimensions, got 0 indices"),
    ("Y[i: Q] = +(A[i, k]);", 1, 6, "'Q' is not a size; there are M, K, N"),
    ("Y[i: 2.5] = +(A[i, k]);", 1, 6, "2.5 is not a whole number, as sizes and indices must be"),
    ("Y[i: M] = +(A[i, X]);", 1, 18, "'X' is a tensor: an index is made of index variables"),
    ("Y[i: M] = +(A[i, k * i]);", 1, 20, "a product of index variables is not an index"),
    ("Y[i: M] = +(A[i, k / 2]);", 1, 20, "a quotient of one is not an index"),
    ("Y[i: M] = +(A[i, exp(k)]);", 1, 18, "an index is a sum of index variables"),
    ("Y[i: M] = +(A[i, k] > 0);", 1, 21, "this is a condition, not a number"),
    ("Y[i: M] = +(A[i, k] ? 1 : 0);", 1, 13, "a condition is needed here: compare it, as in A[i] > 0"),
    ("Y[i: M] = +([1, 2]);", 1, 13, "a list of numbers is a tensor"),
    ("C = X > 0;\nY[i: M] = +(C[i]);", 2, 13, "'C' is a condition, not a number; write C ? 1 : 0"),
    ("Y[i: size(A, -1)] = +(A[i, k]);", 1, 6, "a size is made of whole numbers"),
    ("Y[i: size(A, 0.5)] = +(A[i, k]);", 1, 14, "0.5 is not a whole number"),
    ('format Z: "q4.4"; Y = X;', 1, 8, "'Z' is declared with a format but never assigned"),
    ('format Y: "q4.4"; format Y: "e5m2"; Y = X;', 1, 26, "'Y' has the format 'q4.4' already"),
    ('format Y: "e99m99"; Y = X;', 1, 11, "exponent_bits must lie in 1..15, got 99"),
    ("Y = X * 1e5001;", 1, 9, "a number has up to 1000 digits, and an exponent up to 5000"),
    ("Y = X * 1e-99999999;", 1, 9, "a number has up to 1000 digits"),
    ("Y = X * 0." + "3" * 1000 + ";", 1, 9, "a number has up to 1000 digits"),
    ("switch (X) { case 1e400 .. 2: Y = 1; default: Y = 0; }", 1, 19, "no value lies in 1e400 or more .. 2"),
    ("Z = X;", 0, 36, "'Y' is no tensor or size here; there are A, B, X, Z"),
]


@cases(("body", "line", "column", "message"), ERRORS, ids=[e[0][:40] for e in ERRORS])
def test_errors_show_their_place(body, line, column, message):
    text = HEAD + body + "\n}"
    with pytest.raises(sn.tile.TileError) as error:
        sn.operator(text, name="my.tile")
    shown = str(error.value).split("\n")
    assert shown[0].startswith(f"my.tile, line {line + 1}, column {column}: "), shown[0]
    assert message in shown[0]
    assert shown[1] == "    " + text.splitlines()[line]
    assert shown[2].index("^") == 4 + column - 1
    assert set(shown[2]) in ({" ", "^"}, {"^"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: unexpected end of the text; expected 'function'"),
        ("function (A) -> (C) {\n  C = A;", "line 2, column 9: unexpected end of the text; expected"),
        ("function (A, A) -> (C) { C = A; }", "two inputs are named 'A'"),
        ("function (A[M + 1]) -> (C) { C = A; }", "a size of an input is a name of its own or a whole number"),
        ("function (A[A]) -> (C) { C = A; }", "a size of an input is a name of its own or a whole number"),
        ("function (if) -> (C) { C = 1; }", "'if' is a reserved word; choose another name"),
        ("function (A) -> (A) { B = A; }", "'A' is an input; assign an output"),
        ("function (A) -> (C, C) { C = A; }", "'C' is an output already"),
        ("function (A) -> (C) { Y = A; }", "'C' is no tensor here; there are A, Y"),
        ('function (A) -> (C) { C = A; format C: "mxfp8_e4m3"; }', "mxfp8_e4m3"),
    ],
)
def test_errors_of_the_whole(text, message):
    with pytest.raises(sn.tile.TileError) as error:
        sn.operator(text)
    assert message in str(error.value)


def test_an_error_is_a_value_error_and_underlines_all_of_a_word():
    with pytest.raises(ValueError) as error:
        sn.operator("function (X) -> (Y) {\n\tY = tahn(X); }")
    assert str(error.value) == (
        "tile, line 2, column 6: there is no function 'tahn'; did you mean 'tan' or 'tanh'?\n"
        "     Y = tahn(X); }\n"
        "         ^^^^"
    )


def test_comments_numbers_and_layout():
    op = sn.operator("""
        /* two
           lines */ function(X)->(Y){ // to the end
        Y=X*.5+1e-1*X-2.*X   # and this too
          + 25E-2 * X; }""")
    assert op(2.0, fmt="binary64") == 2.0 * 0.5 + 0.1 * 2 - 4 + 0.5


def test_precedence_is_that_of_c():
    op = sn.operator("""function (X, Z) -> (Y) {
        Y = 1 + X * 2 - -Z / 4 > 0 && !(X < 0) || Z == 3 ? X - Z - 1 : X / Z / 2;
    }""")
    for x in (-2.0, 0.5, 3.0):
        for z in (-8.0, 3.0, 4.0):
            chosen = (1 + x * 2 + z / 4 > 0 and x >= 0) or z == 3
            assert op(x, z, fmt="binary64") == (x - z - 1 if chosen else x / z / 2)


def test_a_file_is_read(tmp_path):
    path = tmp_path / "twice.tile"
    path.write_text("function (X) -> (Y) { Y = 2 * X; }")
    for given in (path, str(path)):
        op = sn.operator(given)
        assert (op.name, op(1.5, fmt="e5m2")) == ("twice.tile", 3.0)
    assert sn.operator(path, name="other").name == "other"
    with pytest.raises(FileNotFoundError):
        sn.operator("missing.tile")
    with pytest.raises(TypeError, match="takes the text of a program, or a path, got int"):
        sn.operator(3)


def test_what_an_operator_says_of_itself():
    op = sn.operator("function (A[M, 3], B) -> (C, D) { C[i: M] = +(A[i, k]); D = B; }", name="pair")
    assert op.inputs == (("A", ("M", 3)), ("B", None))
    assert (op.outputs, op.contractions, op.is_elementwise) == (("C", "D"), ("C",), False)
    assert repr(op) == "<Operator pair: (A, B) -> (C, D)>"
    assert op == sn.operator(op.source, name="pair") and op != sn.operator(op.source)
    assert len({op, sn.operator(op.source, name="pair")}) == 1
    for again in (pickle.loads(pickle.dumps(op)), pickle.loads(pickle.dumps(op.gradient))):
        assert again in (op, op.gradient)
    assert pickle.loads(pickle.dumps(op.gradient)).gradient_of == op


@pytest.mark.parametrize("word", KEYWORDS)
def test_words_of_the_language_are_no_names(word):
    with pytest.raises(sn.tile.TileError):
        sn.operator(f"function ({word}) -> (Y) {{ Y = {word}; }}")


def test_lark_missing_is_said(monkeypatch):
    from softnum.tile import parser

    parser._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "lark", None)
    with pytest.raises(ImportError, match=r"pip install 'softnum\[custom\]'"):
        sn.operator("function (X) -> (Y) { Y = X; }")


def test_steps_are_single_roundings():
    """An expression is its operations in order, the assigned tensor's parts."""
    program, gradient, scope = lower(Source("function (X) -> (Y) { Y = X * X + 1; Y = Y / X; }", "tile"))
    assert [(s.name, s.base, s.function) for s in program.steps] == [
        ("Y_1", "Y", "multiply"), ("Y_2", "Y", "add"), ("Y", "Y", "divide"),
    ]  # fmt: skip
    assert gradient is None and scope["Y"] == "Y"


def test_the_names_of_parts_are_free_names():
    program, _, _ = lower(Source("function (Y_1) -> (Y) { Y = Y_1 * Y_1 + 1; }", "tile"))
    assert [s.name for s in program.steps] == ["Y_2", "Y"]


@pytest.mark.parametrize("text", ["(" * 4000 + "X" + ")" * 4000, "-" * 4000 + "X", " + ".join(["X"] * 4000)])
def test_what_is_nested_too_deeply(text):
    try:
        op = sn.operator(f"function (X) -> (Y) {{ Y = {text}; }}")
    except sn.tile.TileError as error:
        assert "nested too deeply; assign parts of it to tensors of their own" in str(error)
    else:  # parentheses leave no trace
        assert op(1.0, fmt="binary32") == 1


def test_gradient_is_the_last_statement():
    with pytest.raises(sn.tile.TileError, match="unexpected"):
        parse(Source("function (X) -> (Y) { gradient { dX = dY; } Y = X; }", "tile"))


def test_big_programs_parse_in_time():
    lines = "".join(f"S{i + 1} = S{i} * 0.5 + X;" for i in range(400))
    op = sn.operator(f"function (X) -> (Y) {{ S0 = X; {lines} Y = S400; }}")
    x = np.ones(3, np.float32)
    assert np.array_equal(op(x, fmt="binary32"), np.full(3, 2, np.float32))
