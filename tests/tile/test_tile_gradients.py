"""Derived gradients: finite differences of every rule, branch and aggregation; gradients that the source states."""

import numpy as np
import pytest

import softnum as sn
from softnum.tile import functions, gradients
from softnum.tile.functions import FUNCTIONS, WHOLE
from tests.support.cases import cases
from tests.support.tile_checks import WIDE, assert_gradients, in_wide, small

RNG = np.random.default_rng(3)
#: where functions are defined and smooth
DOMAINS = {
    "acos": (-0.8, 0.8), "asin": (-0.8, 0.8), "log": (0.3, 3), "log10": (0.3, 3), "log1p": (-0.5, 2), "log2": (0.3, 3),
    "pow": (0.4, 2), "rsqrt": (0.3, 3), "sqrt": (0.3, 3), "reciprocal": (0.5, 2), "tan": (-1, 1), "hypot": (0.5, 2),
    "cbrt": (0.3, 3), "tanpi": (-0.4, 0.4), "asinpi": (-0.8, 0.8), "acospi": (-0.8, 0.8), "acosh": (1.2, 3),
    "atanh": (-0.8, 0.8), "log2p1": (-0.5, 2), "log10p1": (-0.5, 2), "exp10": (-1, 1), "exp10m1": (-1, 1),
    "powr": (0.4, 2), "pown": (0.4, 2), "compound": (-0.5, 2), "rootn": (0.3, 3), "atan2": (0.5, 2),
    "atan2pi": (0.5, 2),
}  # fmt: skip
FLAT = ("ceil", "floor", "round", "trunc")


def normal(*shape):
    return RNG.normal(0, 1, shape)


@cases("name", [n for n in FUNCTIONS if n not in (*WHOLE, *FLAT)])
def test_rules_of_functions(name):
    function = FUNCTIONS[name]
    names = "ABC"[: function.operands]
    low, high = DOMAINS.get(name, (-2, 2))
    inputs = [RNG.uniform(low, high, 40) for _ in names]
    without = [number for number, rule in enumerate(function.rules) if rule is None]
    for number in without:  # integers
        inputs[number] = RNG.integers(1, 6, 40).astype(np.float64)
    text = f"function ({', '.join(names)}) -> (Y) {{ Y = {name}({', '.join(names)}); }}"
    assert_gradients(sn.operator(text), inputs, without)
    inside = ", ".join(f"{n}[i]" for n in names)
    sizes = ", ".join(f"{n}[N]" for n in names)
    assert_gradients(sn.operator(f"function ({sizes}) -> (Y) {{ Y[] = +({name}({inside})); }}"), inputs, without)


def test_every_function_has_its_rules():
    for name, function in FUNCTIONS.items():
        assert len(functions.rules_of(function.operation)) == function.operands, name
    for name in FLAT:
        assert_gradients(sn.operator(f"function (X) -> (Y) {{ Y = {name}(3 * X); }}"), [normal(5)], without=[0])


ELEMENTWISE = [
    ("function (X, Z) -> (Y) { Y = (X + Z) * (X - Z) / (Z * Z + 2) - -X; }", 2),
    ("function (X, Z) -> (Y) { Y = fma(X, Z, X * X) * 2 + 3; }", 2),
    ("function (X, Z) -> (Y) { Y = X > Z ? X * Z : (Z > 0 ? exp(X) : X * X * X); }", 2),
    ("function (X, Z) -> (Y) { if (X > 0) { S = X * Z; T = S * S; } else { S = Z; T = sin(X); } Y = S * T + S; }", 2),
    ("function (X) -> (Y) { S = X; if (X > 0) { S = X * X; if (X > 1) { S = S * X; } } Y = S * S; }", 1),
    ("function (X) -> (Y) { if (X > 0) { P = X * X; } if (X > 0) { Y = 1; } else { Y = X; } Y = 2 * Y; }", 1),
    ("function (X) -> (Y) { Small = abs(X) < 1; if (Small) { P = X * X; } S = X; if (Small) { S = P + S * P; } "
     "Y = S; }", 1),
    ("""function (X) -> (Y) { switch (X) { case .. -1: Y = X * X; case -1 .. 0.5: { T = sin(X); Y = T * T; }
        case 0.5 ..: Y = log(X); default: Y = X; } }""", 1),
    ("function (X, Z) -> (Y, W) { Y = X * Z; W = Y * Y + X; }", 2),
    ("function (X) -> (Y) { Y = X; Y = Y * Y; Y = Y + X; }", 1),
    ("function (X) -> (Y) { Y = pow(abs(X) + 1, 2.5) + min(X, 0.25) * max(X, -0.5); }", 1),
    ("function (X) -> (Y) { T = [0.5, -1, 2, 0.25]; I = min(floor(abs(X) * 2), 2); J = I + 1; L = gather(T, I); "
     "H = gather(T, J); Y = L + (abs(X) * 2 - I) * (H - L); }", 1),
]  # fmt: skip


@cases(("text", "inputs"), ELEMENTWISE, ids=[e[0][:60] for e in ELEMENTWISE])
def test_elementwise_code(text, inputs):
    assert_gradients(sn.operator(text), [normal(6, 7) for _ in range(inputs)])


BROADCAST = [
    ("function (X, Z) -> (Y) { Y = X * Z + Z; }", [(3, 4), (4,)]),
    ("function (X, Z) -> (Y) { Y = X * Z; }", [(3, 1), (4,)]),
    ("function (X, Z) -> (Y) { Y = X > 0 ? Z * X : Z; }", [(3, 4), ()]),
    ("function (X, Z) -> (Y) { if (X > 0) { Y = Z; } else { Y = Z * Z; } Y = Y + X * Z; }", [(3, 4), (1, 4)]),
    (
        "function (X, Z) -> (Y) { if (Z > 0) { T = sin(Z); S = X * T; } else { T = Z; S = Z * Z; } Y = S * T; }",
        [(3, 4), (4,)],
    ),
    (
        "function (X, Z, W) -> (Y) { if (Z > 0) { T = W * W; S = X * T; } else { S = W; } Y = S * X + Z; }",
        [(3, 4), (4,), ()],
    ),
    ("function (X[M, N], Z[N]) -> (Y) { S = Z * Z; Y = X * S + exp(Z); }", [(3, 4), (4,)]),
    ("function (X[M, N], Z[]) -> (Y) { Y = X * Z; Y = Y * 2; }", [(3, 4), ()]),
    ("function (X, Z) -> (Y) { T = Z * 2; S = T * T; Y = X * S + T; }", [(2, 3, 4), (3, 1)]),
]


@pytest.mark.parametrize(("text", "shapes"), BROADCAST, ids=[b[0] for b in BROADCAST])
def test_broadcast_operands_get_sums(text, shapes):
    op = sn.operator(text)
    assert_gradients(op, [normal(*s) for s in shapes])
    assert_gradients(op, [normal(2, 3, 4) if "M, N" not in text else normal(*s) for s in shapes])


CONTRACTIONS = [
    ("function (A[M, L], B[L, N]) -> (C) { C[i, j: M, N] = +(A[i, k] * B[k, j]); }", [(3, 4), (4, 2)]),
    ("function (A[M, M]) -> (C) { C[i, j: M, M] = +(A[i, k] * A[k, j]); }", [(3, 3)]),
    ("function (A[M]) -> (C) { C[] = +(A[i] * A[i]); }", [(5,)]),
    ("function (I[M, N]) -> (O) { O[n: N] = +(I[m, n]); }", [(3, 4)]),
    ("function (I[M, N]) -> (O) { O[n: N] = >(I[m, n]); }", [(3, 4)]),
    ("function (I[M, N]) -> (O) { O[n: N] = <(I[m, n]); }", [(3, 4)]),
    ("function (I[M, N]) -> (O) { O[n: N] = *(I[m, n]); }", [(3, 4)]),
    ("function (I[M, N, K]) -> (O) { O[n: N] = *(I[m, n, k]); }", [(2, 3, 4)]),
    ("function (I[M, N]) -> (O) { O[] = *(I[m, n]); }", [(2, 3)]),
    ("function (I[M, N]) -> (O) { O[n, m: N, M] = =(I[m, n]); }", [(3, 4)]),
    ("function (I[N]) -> (O) { O[2 * n + 1: 2 * N] = =(I[n]); }", [(4,)]),
    ("function (I[N]) -> (O) { O[i, j: N, 3] = =(I[i]); }", [(4,)]),
    ("function (I[M, N]) -> (O) { O[m, n: M, N / 2] = >(I[m, 2 * n + j]), j < 2; }", [(3, 5)]),
    ("function (I[M, N]) -> (O) { O[m, n: M, N - 2] = >(I[m, n + j]), j < 3; }", [(3, 6)]),
    ("function (I[N]) -> (O) { O[n: N] = +(I[k]), n - k < N; }", [(5,)]),
    ("function (I[N]) -> (O) { O[n: N] = +(I[k]), n - k < 2; }", [(5,)]),
    ("function (A[M], B[N]) -> (C) { C[i, j: M, N] = +(A[i] * B[j]); }", [(3,), (4,)]),
    ("function (A[M, N], B[N]) -> (C) { C[i: M] = +(A[i, j] + B[j]); }", [(3, 4), (4,)]),
    ("function (A[M, N], B[K]) -> (C) { C[i: M] = +(A[i, i + k] - B[k]); }", [(3, 5), (2,)]),
    ("function (A[M, N], B[N]) -> (C) { C[i: M] = +(exp(A[i, j] * B[j]) / (B[j] * B[j] + 1)); }", [(3, 4), (4,)]),
    ("function (A[M, N], B[N]) -> (C) { C[i: M] = +(A[i, j] > B[j] ? A[i, j] * B[j] : -B[j]); }", [(3, 4), (4,)]),
    ("function (A[M, N], S) -> (C) { C[i: M] = +(A[i, j] * S); }", [(3, 4), ()]),
    ("function (A[M, N], B[N]) -> (C) { C[i, j: M, N] = =(A[i, j] * B[j] + 1); }", [(3, 4), (4,)]),
    ("function (I[N, C, W], K[F, C, D]) -> (O) { O[n, f, x: N, F, W] = +(I[n, c, x + k - 1] * K[f, c, k]); }",
     [(2, 2, 5), (3, 2, 3)]),
    ("function (I[N, X, C], K[KX, C, F]) -> (O) { O[n, x, f: N, (X - KX) / 2 + 1, F] = "
     "+(I[n, 2 * x + k, c] * K[k, c, f]); }", [(2, 6, 2), (3, 2, 3)]),
    ("function (I[N, G, C, X], K[G, F, C, KX]) -> (O) { O[n, g, f, x: N, G, F, X - 2 * KX + 2] = "
     "+(I[n, g, c, x + 2 * k] * K[g, f, c, k]); }", [(2, 2, 2, 5), (2, 3, 2, 2)]),
    ("function (I[N], K[D]) -> (O) { O[2 * x + k: 2 * N + D - 2] = +(I[x] * K[k]); }", [(4,), (3,)]),
    ("function (T[R, N], I[M], X[M]) -> (O) { E = gather(T, I); O[m, n: M, N] = =(E[m, n] * X[m]); }",
     [(4, 2), (5,), (5,)]),
]  # fmt: skip


@cases(("text", "shapes"), CONTRACTIONS, ids=[c[0][9:70] for c in CONTRACTIONS])
def test_contractions(text, shapes):
    inputs = [normal(*s) for s in shapes]
    if "gather" in text:
        inputs[1] = np.float64([3, 0, 3, 1, 3])
        # places do not move: their differences are left out
        op = sn.operator(text)
        outputs = in_wide(op, *inputs)
        found = op.backward(inputs, outputs, [np.ones_like(outputs[0])], **WIDE)
        assert found[1] is None
        want = np.zeros((4, 2))
        np.add.at(want, [3, 0, 3, 1, 3], np.repeat(inputs[2][:, None], 2, axis=1))
        np.testing.assert_allclose(found[0], want, rtol=1e-12)
        return
    assert_gradients(sn.operator(text), inputs)


def test_whole_networks():
    """Two layers with a bias and an activation, a softmax and a loss, in one program."""
    op = sn.operator("""function (X[B, I], V[I, H], C[H], W[H, O], T[B, O]) -> (L) {
        P[b, h: B, H] = +(X[b, i] * V[i, h]);
        A = tanh(P + C);
        Z[b, o: B, O] = +(A[b, h] * W[h, o]);
        M[b, o: B, 1] = >(Z[b, k]), o < 1;
        E = exp(Z - M);
        S[b, o: B, 1] = +(E[b, k]), o < 1;
        G = T * (log(S) - (Z - M));
        L[] = +(G[b, o]);
        L = L / B;
    }""")
    inputs = [normal(4, 3), normal(3, 5), normal(5), normal(5, 2), np.abs(normal(4, 2))]
    assert_gradients(op, inputs)


# -- the checks are checked --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("rule", ["g * (1.001 - y * y)", "g * (1 - 0.999 * (y * y))", "g"])
def test_a_wrong_rule_is_found(rule, monkeypatch):
    from softnum.tile.parser import parse_expression

    monkeypatch.setattr(gradients, "rules_of", lambda _: (parse_expression(rule),))
    with pytest.raises(AssertionError):
        assert_gradients(sn.operator("function (X) -> (Y) { Y = tanh(X); }"), [normal(30)])


def test_a_missing_constraint_is_found(monkeypatch):
    """Of a sum of two accesses each gradient keeps the other's bounds."""
    op = sn.operator(CONTRACTIONS[18][0])
    contract_for = gradients._Gradient._contract_for

    def without(self, step, access, expression):
        from dataclasses import replace

        return contract_for(self, replace(step, body=access), access, expression)

    monkeypatch.setattr(gradients._Gradient, "_contract_for", without)
    with pytest.raises((AssertionError, ValueError)):
        assert_gradients(op, [normal(*s) for s in CONTRACTIONS[18][1]])


# -- the gradient as a program -----------------------------------------------------------------------------------------
SOURCES = [e[0] for e in (*ELEMENTWISE, *BROADCAST, *CONTRACTIONS)]


@cases("text", SOURCES, ids=[s[9:60] for s in SOURCES])
def test_the_text_of_a_gradient_is_that_gradient(text):
    """Parsed again it gives the same bits, under one format for all."""
    op = sn.operator(text)
    again = sn.operator(op.gradient.source)
    assert again.outputs == op.gradient.outputs
    assert [name for name, _ in again.inputs] == [name for name, _ in op.gradient.inputs]
    rng = np.random.default_rng(5)
    table = {e[0]: e[1] for e in (*BROADCAST, *CONTRACTIONS)}
    shapes = table.get(text) or [(3, 4)] * len(op.inputs)
    inputs = [rng.normal(0, 1, s) for s in shapes]
    if "gather(T, I)" in text and "T[R" in text:
        inputs[1] = np.float64([3, 0, 3, 1, 3])
    outputs = in_wide(op, *inputs)
    given = [*inputs, *outputs, *(np.ones(y.shape) for y in outputs)]
    for one, other in zip(in_wide(op.gradient, *given), in_wide(again, *given), strict=True):
        assert np.array_equal(one, other)


def test_declared_formats_are_in_the_text():
    op = sn.operator('function (X) -> (Y) { format P: "e6m3"; P = X * X + X; Y = P * X; }')
    assert 'format P_1, P: "e6m3";' in op.gradient.source
    x = sn.array(small((20,), 1), "e5m2")
    again = sn.operator(op.gradient.source)(x, op(x), x)
    assert np.array_equal(again.codes, op.backward([x], [op(x)], [x])[0].codes)


def test_matmul_gradients_are_matmuls():
    """Bit for bit those of a built-in layer: errors @ weights.T and activations.T @ errors."""
    forward = sn.MadUnit("e6m9", operand="e5m2")
    data, weight = sn.MadUnit("e6m9", operand="e5m2", chunk=4), sn.MadUnit("e6m3", operand="e5m2")
    op = sn.operator("function (A[M, L], B[L, N]) -> (C) { C[i, j: M, N] = +(A[i, k] * B[k, j]); }")
    a, b, dc = small((6, 5), 1), small((5, 4), 2), small((6, 4), 3)
    c = op(a, b, fmt="e5m2", unit=forward)
    units = {"*": forward, "dA": data, "dB": weight}
    found = op.backward([a, b], [c], [dc], fmt="e5m2", unit=units)
    assert np.array_equal(found[0], sn.matmul(dc, b.T, data))
    assert np.array_equal(found[1], sn.matmul(a.T, dc, weight))


def test_formats_of_gradients():
    op = sn.operator("function (X) -> (Y) { S = X * X; Y = S * 3; }")
    x = sn.array(small((50,), 1), "e5m2")
    y = op(x)
    dy = sn.array(small((50,), 2), "e4m3")

    def want(ds, dx):
        inner = sn.multiply(sn.array(3.0, ds), dy, out_fmt=ds)
        parts = [sn.multiply(*pair, out_fmt=dx) for pair in ((inner, x), (x, inner))]
        return sn.add(*parts)

    fmt = {"*": "e5m2", "dY": "e4m3"}
    assert np.array_equal(op.backward([x], [y], [dy], fmt=fmt)[0].codes, want("e5m2", "e5m2").codes)
    found = op.backward([x], [y], [dy], fmt=fmt | {"d*": "e6m9"})[0]
    assert np.array_equal(found.codes, want("e6m9", "e6m9").codes)
    found = op.backward([x], [y], [dy], fmt=fmt | {"d*": "e6m9", "dX": "e3m2fn"})[0]
    assert np.array_equal(found.codes, want("e6m9", "e3m2fn").codes)


def test_recomputed_steps_are_the_forward_bits():
    """With the forward's key; the steps of the gradient take other words."""
    op = sn.operator("function (X) -> (Y) { S = X * X; Y = S * S; }")
    x = sn.array(small((400,), 1), "e6m9")
    options = {"rounding": "stochastic", "stochastic_bits": 8, "key": (3, 4), "fmt": {"*": "e6m9", "S": "e4m3"}}
    both = sn.operator("function (X) -> (S, Y) { S = X * X; Y = S * S; }")
    s, y = both(x, **options)
    assert np.array_equal(op(x, **options).codes, y.codes)
    again = sn.operator("function (X, Y, dY) -> (S) { S = X * X; }")(x, y, y, **options)
    assert np.array_equal(again.codes, s.codes)
    one, other = (op.backward([x], [y], [y], **options | {"key": k})[0] for k in ((3, 4), (3, 5)))
    assert not np.array_equal(one.codes, other.codes)
    assert np.array_equal(one.codes, op.backward([x], [y], [y], **options)[0].codes)


# -- stated gradients --------------------------------------------------------------------------------------------------
def test_a_stated_gradient_goes_first():
    op = sn.operator("function (X) -> (Y) { S = X * X; Y = S > 1 ? 1 : S; gradient { T = dY * S; dX = T + Y; } }")
    x = sn.array([0.5, 3.0], "e5m2")
    y, dy = op(x), sn.array([2.0, 4.0], "e5m2")
    assert op.backward([x], [y], [dy])[0].tolist() == [0.25 * 2 + 0.25, 32]  # S = 9 is 8 in e5m2, and 33 is 32
    assert "dX = dX_1 + Y" not in op.gradient.source and "T = dY * S" in op.gradient.source


def test_a_gradient_stated_in_part_is_derived_for_the_rest():
    text = """function (A[M, L], B[L, N]) -> (C) {
        C[i, j: M, N] = +(A[i, k] * B[k, j]);
        gradient { dA[i, k: M, L] = +(B[k, j] * dC[i, j]); dA = 2 * dA; }
    }"""
    op = sn.operator(text)
    a, b = normal(3, 4), normal(4, 2)
    (c,) = in_wide(op, a, b)
    da, db = op.backward([a, b], [c], [np.ones_like(c)], **WIDE)
    np.testing.assert_allclose(da, 2 * (np.ones_like(c) @ b.T))
    np.testing.assert_allclose(db, a.T @ np.ones_like(c))


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("dX = dZ;", "'dZ' is no tensor here; there are X, Y, dY"),
        ("Y = dY;", "'Y' is an input and cannot be assigned"),
        ("dY = X;", "'dY' is an input and cannot be assigned"),
        ("dX = dY > 0;", "'dX' is a condition, not a number"),
        ("dX = tahn(dY);", "did you mean 'tan' or 'tanh'?"),
    ],
)
def test_errors_in_a_stated_gradient(statements, message):
    with pytest.raises(sn.tile.TileError, match=message.replace("?", r"\?")):
        _ = sn.operator(f"function (X) -> (Y) {{ Y = X; gradient {{ {statements} }} }}").gradient


@pytest.mark.parametrize(
    ("statements", "column", "message"),
    [
        ("dx = 0 * dY;", 41, "'dx' is no gradient of an input, and none depends on it; did you mean 'dX'?"),
        ("dX = dY; foo = dY;", 50, "'foo' is no gradient of an input, and none depends on it; those are dX"),
        ("T = dY; dX = dY; U = T + T; U = U * 2;", 58, "'U' is no gradient of an input"),
        ("if (X > 0) { dX = dY; dS = X; } else { dX = X; }", 63, "'dS' is no gradient of an input"),
        ("switch (X) { case 0 ..: Z = X; default: Z = dY; }", 65, "'Z' is no gradient of an input"),
    ],
)
def test_what_a_stated_gradient_assigns_is_of_use(statements, column, message):
    op = sn.operator(f"function (X) -> (Y) {{ Y = X; gradient {{ {statements} }} }}")
    with pytest.raises(sn.tile.TileError) as raised:
        _ = op.gradient
    assert message in str(raised.value) and f"line 1, column {column}:" in str(raised.value)
    assert str(raised.value).splitlines()[-1].strip("^") == " " * (column + 3)


def test_a_stated_gradient_may_depend_on_branches_and_conditions():
    op = sn.operator(
        """function (X) -> (Y) { Y = X; gradient {
            T = 2 * dY; C = T > 1; if (C) { dX = T; } else { dX = -T; }
        } }"""
    )
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(op.backward([x], [x], [np.array([1.0, -1.0])], **WIDE)[0], [2, 2])


def test_a_sign_in_front_is_still_an_assignment():
    op = sn.operator("function (X) -> (Y) { Y = +X; gradient { T = +dY; dX = +T; } }")
    x = np.array([1.3])
    assert op(x, fmt={"X": "binary64", "Y": "e5m2"}).tolist() == [1.25]
    (found,) = op.backward([x], [x], [np.array([3.0])], **WIDE)
    assert op.gradient.outputs == ("dX",) and found.tolist() == [3.0]


# -- shapes ------------------------------------------------------------------------------------------------------------
ROWS = "function (X[M, N]) -> (Y) { Y[i: M] = +(X[i, k]); }"
PRODUCT = "function (X, Z) -> (Y) { S = X * Z; Y = S + 1; }"


@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        (ROWS, [(2, 3), (2,), (1,)], r"gradient of tile: dY has shape \(1,\), Y has \(2,\)"),
        (ROWS, [(2, 3), (2,), (3,)], r"dY has shape \(3,\), Y has \(2,\)"),
        (ROWS, [(2, 3), (1,), (1,)], r"Y has shape \(1,\), and of these inputs it has \(2,\)"),
        (ROWS, [(2, 3), (2,), (2, 1)], r"dY has shape \(2, 1\), Y has \(2,\)"),
        (PRODUCT, [(2,), (1,), (2,), (1,)], r"dY has shape \(1,\), Y has \(2,\)"),
        (PRODUCT, [(2,), (1,), (1,), (2,)], r"Y has shape \(1,\), and of these inputs it has \(2,\)"),
        (PRODUCT, [(2,), (), (2,), ()], r"dY has shape \(\), Y has \(2,\)"),
        (PRODUCT, [(2,), (3,), (2,), (2,)], r"S: X of shape \(2,\), Z of shape \(3,\) do not broadcast to one shape"),
    ],
)
def test_outputs_and_their_gradients_have_the_shapes_of_the_forward_call(text, shapes, message):
    op = sn.operator(text)
    arrays = [np.ones(shape) for shape in shapes]
    n = len(op.inputs)
    with pytest.raises(ValueError, match=message):
        op.backward(arrays[:n], arrays[n : n + 1], arrays[n + 1 :], **WIDE)


def test_a_stated_gradient_has_the_shape_of_its_input():
    text = "function (X[N], W[1]) -> (Y) {{ Y = X * W; gradient {{ {} }} }}"
    arrays = [np.array([1.0, 2.0]), np.array([3.0])], [np.array([3.0, 6.0])], [np.array([1.0, 1.0])]
    with pytest.raises(
        sn.tile.TileError, match=r"dW has shape \(2,\), W has \(1,\): a gradient has the shape of its input"
    ):
        sn.operator(text.format("dW = X * dY;")).backward(*arrays, **WIDE)
    with pytest.raises(sn.tile.TileError, match=r"dX has shape \(\), X has \(2,\)"):
        sn.operator(text.format("dX = 0;")).backward(*arrays, **WIDE)
    dx, dw = sn.operator(text.format("T = X * dY; dW = reduce_like(T, W);")).backward(*arrays, **WIDE)
    assert dx.tolist() == [3, 3] and dw.tolist() == [3]


# -- what is not derived -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("function (A[M, N]) -> (C) { C[i: M] = >(A[i, j] + A[i, 0]); }", "the gradient of a maximum is derived of"),
        ("function (A[M, N]) -> (C) { C[i: M] = <(-A[i, j]); }", "the gradient of a minimum is derived of"),
        ("function (A[M, N]) -> (C) { C[i: M] = *(A[i, j] + 1); }", "the gradient of a product is derived of"),
        ("function (A[N]) -> (C) { C[i: N / 2] = *(A[2 * i + j]), j < 2; }", "an index variable of its own"),
        ("function (A, B) -> (C) { C = reduce_like(A, B); }", "reduce_like has no derived gradient"),
        ("function (A, dA) -> (C) { C = A * dA; }", "'dA' is what the gradient of A is called; rename that tensor"),
    ],
)
def test_what_is_not_derived_is_said(text, message):
    op = sn.operator(text)
    with pytest.raises(sn.tile.TileError, match=message):
        _ = op.gradient


def test_gradients_of_gradients():
    square = sn.operator("function (X) -> (Y) { Y = X * X * X; }")
    with pytest.raises(ValueError, match=r"softnum.operator\(its source\) can be differentiated again"):
        _ = square.gradient.gradient
    again = sn.operator(square.gradient.source.replace("dY", "G").replace("dX", "D"))
    x, g = normal(5), normal(5)
    (y,) = in_wide(square, x)
    (d,) = in_wide(again, x, y, g)
    found = again.backward([x, y, g], [d], [np.ones(5)], **WIDE)
    np.testing.assert_allclose(found[0], 6 * x * g, rtol=1e-9)
    np.testing.assert_allclose(found[2], 3 * x * x, rtol=1e-9)


def test_inputs_without_gradient():
    op = sn.operator("function (X, Z) -> (Y) { Y = X > Z ? X : 1; }")
    x = np.float64([1, 2])
    dx, dz = op.backward([x, x], in_wide(op, x, x), [x], **WIDE)
    assert dz is None and dx.tolist() == [0, 0]
    flat = sn.operator("function (X) -> (Y) { Y = floor(X); }")
    assert flat.backward([x], [x], [x], **WIDE) == (None,)


def test_backward_takes_sequences():
    op = sn.operator("function (X) -> (Y) { Y = X * X; }", name="square")
    x = np.float64([1.0])
    for inputs in (x, [x, x]):
        with pytest.raises(TypeError, match=r"square.backward: inputs is a sequence of 1 \(X\)"):
            op.backward(inputs, [x], [x], **WIDE)


def test_ties_of_an_extreme_all_get_the_gradient():
    op = sn.operator("function (I[M, N]) -> (O) { O[m: M] = >(I[m, n]); }")
    i = sn.array([[1.0, 2.0, 2.0]], "e5m2")
    assert op.backward([i], [op(i)], [sn.array([3.0], "e5m2")])[0].tolist() == [[0, 3, 3]]


def test_branches_without_elements_and_unused_results():
    """The parts of branches that are not taken meet no operation, and what a gradient does not need is not computed."""
    op = sn.operator("function (X) -> (Y) { Y = X == 0 ? X : 1 / X; }")
    x = sn.array([2.0, 0.0, -1.0], "q4.4")
    assert op(x).tolist() == [0.5, 0, -1]
    assert op.backward([x], [op(x)], [sn.array([1.0, 1.0, 1.0], "q4.4")])[0].tolist() == [-0.25, 1, -1]
    layer = sn.operator("function (A[M, L], B[L, N], C) -> (Y) { P[i, j: M, N] = +(A[i, k] * B[k, j]); Y = P + C; }")
    steps = [layer.gradient._program.steps[n].name for n in layer.gradient._program.needed]
    assert "P" not in steps


def test_errors_in_a_gradient_show_the_step_that_it_is_of():
    op = sn.operator("function (X) -> (Y) {\n    P = X * 0.25;\n    Y = log10(P) +\n        tan(P * X);\n}")
    x = sn.array([0.5], "q2.6")
    with pytest.raises(
        sn.tile.TileError, match="line 4, column 9: dY: the constant 1 lies beyond q1.7, which ends at"
    ) as error:
        op.backward([x], [x], [sn.array([0.5], "q1.7")], fmt={"dY": "q1.7", "*": "q2.6"})
    assert str(error.value).endswith("        tan(P * X);\n            ^^^")


def test_shapes_alone_are_found_through_long_chains():
    """Of a sum the gradient takes the operands' shapes, and none of the values that led to them."""
    doubled = "".join("S = S + S; S = S + X;" for _ in range(600))
    op = sn.operator(f"function (X, Z) -> (Y) {{ S = X; {doubled} T = gather(Z, Z); Y = S + T; }}")
    x, z = np.zeros((2, 1)), np.zeros(3)
    dx, dz = op.backward([x, z], in_wide(op, x, z), [np.ones((2, 3))], **WIDE)
    assert dx.shape == (2, 1) and dx[0, 0] > 2.0**600 and dz.tolist() == [6, 0, 0]
    needed = op.gradient._program.needed
    assert not any(op.gradient._program.steps[n].base == "S" for n in needed)


def test_shapes_that_follow_from_sizes_of_other_tensors():
    op = sn.operator("""function (X, Z) -> (Y) {
        S = X * X;
        T[i: size(S, 0) - 1] = +(S[i + 1] * S[i]);
        U[i: like T] = +(T[i] * T[i]);
        Y = U + Z;
    }""")
    assert_gradients(op, [normal(5), normal(3, 1)])


def test_outputs_are_given_back_in_the_format_they_came_in():
    """Of the unit's result, or of an extreme's terms, under the options of the call itself."""
    unit = sn.MadUnit("e6m9", operand="e5m2")
    op = sn.operator("""function (A[M, L], B[L, N]) -> (C, D, E, S) {
        C[i, j: M, N] = +(A[i, k] * B[k, j]);
        D[i: M] = >(C[i, j]);
        E[i: M] = =(D[i]);
        S = D * 2;
    }""")
    a, b = small((6, 5), 1), small((5, 4), 2)
    options = {"fmt": {"*": "e5m2", "S": "e4m6"}, "unit": unit}
    outputs = op(a, b, **options)
    assert not np.array_equal(sn.quantize(outputs[0], "e5m2"), outputs[0])
    gradients = [sn.quantize(x, "e5m2") for x in outputs]
    da, db = op.backward([a, b], outputs, gradients, **options | {"fmt": options["fmt"] | {"d*": "e5m2"}})
    assert da.shape == a.shape and db.shape == b.shape
