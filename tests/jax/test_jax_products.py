"""softnum.jax: the bits of NumPy's functions in jit, vmap and grad."""

import numpy as np
import pytest

pytest.importorskip("jax", reason="softnum.jax needs the extra jax: make test-jax")
import jax
import jax.numpy as jnp

import softnum as sn
import softnum.jax as sj
from softnum.jax.plans import _engine
from tests.support.cases import cases

CHUNKED = sn.MadUnit("e6m9", operand="e5m2", chunk=4)
STOCHASTIC = sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic")
RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def same(found, want):
    found, want = np.asarray(found), np.asarray(want)
    return found.dtype == want.dtype and found.shape == want.shape and found.tobytes() == want.tobytes()


def e5m2(x):
    return sn.quantize(np.asarray(x), "e5m2")


# -- roundings ---------------------------------------------------------------------------------------------------------


@cases("fmt", ["e4m3fn", "e5m2", "q4.4", "e8m7", "binary32"])
def test_quantize(fmt):
    x = np.float32([0, -0.0, 1e-9, 0.3, -7.7, 500, 1e6, -3e38])
    x = x if fmt == "q4.4" else np.append(x, np.float32([np.inf, np.nan]))
    assert same(jax.jit(lambda x: sj.quantize(x, fmt))(x), sn.quantize(x, fmt))
    assert same(sj.quantize(x.reshape(2, -1)[:, :0], fmt), x.reshape(2, -1)[:, :0])
    how = {"rounding": "stochastic", "overflow": "saturate", "stochastic_bits": 7}
    stochastic = jax.jit(lambda x, key: sj.quantize(x, fmt, key=key, **how))
    assert same(stochastic(x, sj.key(7, 1 << 40)), sn.quantize(x, fmt, key=(7, 1 << 40), **how))


def test_quantize_in_float64_and_narrow_dtypes():
    with jax.enable_x64(True):
        x = np.float64([0.3, 1e-300, 1 + 2**-40])
        assert same(sj.quantize(x, "e11m20"), sn.quantize(x, "e11m20"))
    x = jnp.bfloat16([0.3, 1000])
    assert sj.quantize(x, "e4m3fn", overflow="saturate").tolist() == [0.3125, 448]
    with pytest.raises(ValueError, match="float16 does not hold every value of e8m7; convert it"):
        sj.quantize(jnp.float16([1]), "e8m7")
    with pytest.raises(ValueError, match="is of float64, which JAX rounds to float32"):
        sj.quantize(np.float64([1]), "e5m2")


def test_keys_are_streams():
    stream = sn.Stream(7, 5)
    assert sj.key(stream).tolist() == [7, 0, 5, 0]
    children = jax.jit(jax.vmap(lambda i: sj.spawn(sj.key(7, 5), i)))(jnp.arange(4))
    assert children.tolist() == [sj.key(child).tolist() for child in stream.spawn(4)]
    x = normal(4, 9)
    one = jax.vmap(lambda x, key: sj.quantize(x, "e5m2", rounding="stochastic", key=key))(x, children)
    each = [sn.quantize(r, "e5m2", rounding="stochastic", key=k) for r, k in zip(x, stream.spawn(4), strict=True)]
    assert same(one, np.stack(each))


def test_gradients_go_straight_through_or_are_masked():
    x = jnp.float32([0.3, 1000, -1000, jnp.nan])
    assert jax.grad(lambda x: 3 * sj.quantize(x, "e4m3fn").sum())(x).tolist() == [3] * 4
    assert jax.grad(lambda x: sj.quantize(x, "e4m3fn", gradient="masked").sum())(x).tolist() == [1, 0, 0, 0]


# -- products ----------------------------------------------------------------------------------------------------------

UNITS = {
    "FastGemm": CHUNKED,
    "FastFused": sn.unit("nvidia_v100_fp16"),
    "FastGrouped": sn.unit("nvidia_rtx_ada_e4m3") if "nvidia_rtx_ada_e4m3" in sn.units() else sn.unit("amd_cdna3_fp8"),
    "FastExact": sn.ExactDotUnit("binary32", operand="e5m2"),
    "definition": sn.MadUnit("q24.0", operand="q8.0", overflow="wrap"),
    "stochastic": STOCHASTIC,
    "both stochastic": sn.MadUnit(
        "e6m9", operand="e5m2", product="e6m4", product_rounding="stochastic", rounding="stochastic"
    ),
}


@cases("name", UNITS)
def test_matmul(name):
    unit, key = UNITS[name], (3, 1 << 33) if UNITS[name].stochastic else None
    a, b, c = (
        sn.quantize(4 * normal(*shape), fmt)
        for shape, fmt in zip(((2, 5, 7), (2, 7, 6), (2, 5, 6)), (*unit.operand, unit.c_format), strict=True)
    )
    compiled = jax.jit(lambda a, b, c=None: sj.matmul(a, b, unit, c, key=key))
    assert same(compiled(a, b), sn.matmul(a, b, unit, key=key))
    assert same(compiled(a, b, c), sn.matmul(a, b, unit, c, key=key))
    assert same(compiled(a, b[0]), sn.matmul(a, b[0], unit, key=key))
    assert hasattr(_engine(unit), "native")


@cases(
    "shape",
    [((2, 0, 7), (7, 3)), ((4, 0), (0, 3)), ((0,), (0,)), ((3, 7), (7,)), ((7,), (7, 3)), ((2, 1, 4, 7), (3, 7, 2))],
)
def test_shapes(shape):
    a, b = (e5m2(normal(*s)) for s in shape)
    found = sj.matmul(a, b, CHUNKED)
    assert found.shape == jnp.matmul(a, b).shape
    if min(a.ndim, b.ndim) > 1:
        assert same(found, sn.matmul(a, b, CHUNKED))


def test_many_threads_have_the_same_bits():
    a, b = e5m2(normal(130, 70)), e5m2(normal(70, 150))
    for unit in (CHUNKED, STOCHASTIC):
        key = 5 if unit.stochastic else None
        assert same(sj.matmul(a, b, unit, key=key), sn.matmul(a, b, unit, key=key))


def test_vmap_is_a_call_for_each():
    a, b = e5m2(normal(3, 4, 5)), e5m2(normal(5, 2))
    keys = jnp.stack([sj.key(i) for i in range(3)])
    found = jax.vmap(lambda a, key: sj.matmul(a, b, STOCHASTIC, key=key))(a, keys)
    assert same(found, np.stack([sn.matmul(x, b, STOCHASTIC, key=i) for i, x in enumerate(a)]))
    assert same(jax.vmap(lambda a: sj.matmul(a, b, CHUNKED))(a), sn.matmul(a, b, CHUNKED))


def test_gradients_of_a_unit():
    a, b, g = e5m2(normal(4, 6)), e5m2(normal(6, 3)), normal(4, 3)
    data, weight = sn.MadUnit("e6m3", operand="e4m3"), sn.unit("amd_cdna3_fp8")
    how = sj.arithmetic(CHUNKED, backward_data=data, backward_weight=weight)
    result, back = jax.vjp(lambda a, b, c: sj.matmul(a, b, how, c), a, b, np.zeros((4, 3), np.float32))
    of_a, of_b, of_c = jax.jit(back)(g)
    assert same(result, sn.matmul(a, b, CHUNKED))
    x, y = (sn.quantize(v, f) for v, f in zip((g, b.T), data.operand, strict=True))
    assert same(of_a, sn.matmul(x, y, data))
    x, y = (sn.quantize(v, f) for v, f in zip((a.T, g), weight.operand, strict=True))
    assert same(of_b, sn.matmul(x, y, weight))
    assert same(of_c, g)


def test_a_design_rounds_its_operands():
    a, b, g = normal(2, 4, 6), normal(6, 3), normal(2, 4, 3)
    result, back = jax.vjp(lambda a, b: sj.matmul(a, b, "e-e6m3-chunk"), a, b)
    formats = [str(sj.arithmetic("c-wang-fp8", layer).forward.left.format) for layer in ("fc1", "fc2")]
    assert formats == ["e5m2", "e6m9"]
    plain = sj.arithmetic("e-e6m3-chunk")
    of = {
        part: [
            sn.quantize(x.reshape(-1, x.shape[-1]), r.format)
            for x, r in zip(operands, (p.left, p.right), strict=True)
        ]
        for part, p, operands in (
            ("forward", plain.forward, (a, b)), ("data", plain.backward_data, (g, b)),
            ("weight", plain.backward_weight, (a, g)),
        )
    }  # fmt: skip
    assert same(result, sn.matmul(*of["forward"], plain.forward.unit).reshape(2, 4, 3))
    of_a, of_b = back(g)
    x, y = of["data"]
    assert same(of_a, sn.matmul(x, y.T, plain.backward_data.unit).reshape(2, 4, 6))
    x, y = of["weight"]
    assert same(of_b, sn.matmul(x.T, y, plain.backward_weight.unit))
    assert sj.matmul(jnp.bfloat16([[0.3]]), jnp.bfloat16([[3]]), "e-e6m3-chunk").dtype == jnp.bfloat16


def test_as_softnum_torch():
    torch = pytest.importorskip("torch")
    import softnum.torch as st

    a, b, g = normal(2, 4, 6), normal(6, 3), normal(2, 4, 3)
    for design in ("d-e6m3-long", "e-e6m3-chunk", "f-q44-nearest", "a-float32"):
        x, y = (torch.tensor(v, requires_grad=True) for v in (a, b))
        there = st.matmul(x, y, arithmetic=st.arithmetic(design))
        there.backward(torch.tensor(g))
        here, back = jax.vjp(lambda a, b, design=design: sj.matmul(a, b, design), a, b)
        for found, want in zip((here, *back(g)), (there.detach(), x.grad, y.grad), strict=True):
            assert same(found, want.numpy())


def test_weight_gradients():
    gradients = {"w": normal(3, 2), "b": [normal(2)]}
    found = sj.weight_gradients(gradients, "f-q44-nearest")
    assert same(found["w"], sn.quantize(gradients["w"], "q4.4"))
    assert sj.weight_gradients(gradients, CHUNKED) is gradients
    with pytest.raises(ValueError, match="state key="):
        sj.weight_gradients(gradients, "g-q44-stochastic")


# -- what is refused ---------------------------------------------------------------------------------------------------

X = e5m2(normal(2, 3))


@cases("message, call", [
    ("no value of e5m2; round it first: softnum.jax.quantize", lambda: sj.matmul(X + 0.01, X.T, CHUNKED)),
    ("element 4 of a, in C order, is nan", lambda: sj.matmul(
        np.float32([[1, 2], [1, 2], [np.nan, 1]]), np.ones((2, 1), np.float32), sn.MadUnit("q8.4", operand="q4.4"))),
    ("element 1 of x, in C order, is nan, for which q4.4 has no code",
     lambda: sj.quantize(np.float32([1, np.nan]), "q4.4")),
    ("input has K = 3 columns, other has 2 rows", lambda: sj.matmul(X, X, CHUNKED)),
    (r"c of shape \(4,\) does not broadcast", lambda: sj.matmul(X, X.T, CHUNKED, np.zeros(4, np.float32))),
    ("rounds stochastically; state key=", lambda: sj.matmul(X, X.T, STOCHASTIC)),
    ("takes random bits; state key=", lambda: sj.quantize(X, "e5m2", rounding="stochastic")),
    ("take float64, which JAX has after", lambda: sj.matmul(X, X.T, sn.MadUnit("e9m30", operand="e5m2"))),
    ("gradient must be one of", lambda: sj.quantize(X, "e5m2", gradient="none")),
    ("unknown rounding mode", lambda: sj.quantize(X, "e5m2", rounding="nope")),
    ("a child's number is an integer in", lambda: sj.spawn(sj.key(1), -1)),
    ("no design is called", lambda: sj.matmul(X, X.T, "nonsense")),
    ("has .layers. tables, which name modules; state which layer", lambda: sj.matmul(X, X.T, "c-wang-fp8")),
    ("a design states the units of its passes", lambda: sj.arithmetic("e-e6m3-chunk", backward_data=CHUNKED)),
])  # fmt: skip
def test_values_refused(message, call):
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match=message):  # the latter while it computes
        call()


@cases("kind, message, call", [
    (TypeError, "input must be of float32, float64, float16, bfloat16, got int32",
     lambda: sj.matmul(jnp.arange(3), X.T, CHUNKED)),
    (TypeError, "takes a design or a unit, got 3", lambda: sj.matmul(X, X.T, 3)),
    (TypeError, "a key is an integer", lambda: sj.quantize(X, "e5m2", rounding="stochastic", key=jnp.zeros(3))),
    (NotImplementedError, "multiplies blocks", lambda: sj.matmul(X, X.T, sn.unit("nvfp4"))),
    (NotImplementedError, "which mxfp8_e4m3, nearest_even, is not", lambda: sj.quantize(X, "mxfp8_e4m3")),
    (NotImplementedError, "posit8", lambda: sj.quantize(X, "posit8")),
    (NotImplementedError, "role 'activations' .* has blocks", lambda: sj.matmul(X, X.T, "i-mxfp8")),
])  # fmt: skip
def test_kinds_refused(kind, message, call):
    with pytest.raises(kind, match=message):
        call()
