"""softnum.jax.intercept: rules by the scopes of modules and by operation; and how handlers are built."""

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("jax", reason="softnum.jax needs the extra jax: make test-jax")
import jax
import jax.numpy as jnp

import softnum as sn
import softnum.jax as sj
from softnum.jax import build
from tests.support.cases import cases

UNIT = sn.MadUnit("e6m3", operand="e5m2")
RNG = np.random.default_rng(5)
X, W, V = (RNG.normal(size=shape).astype(np.float32) for shape in ((5, 4), (4, 3), (3, 3)))
ALL = [sj.Rule(".*", "e-e6m3-chunk")]
MODULES = sorted(info.name for info in pkgutil.walk_packages(sj.__path__, "softnum.jax."))


def test_rules_by_module():
    def model(x, w, v):
        with jax.named_scope("fc1"):
            x = jax.nn.relu(x @ w)
        with jax.named_scope("fc2"), jax.named_scope("inner"):
            return jnp.einsum("bi,io->bo", x, v)

    def by_hand(x, w, v, first, second):
        y = jax.nn.relu(sj.matmul(x, w, first) if first else x @ w)
        return sj.matmul(y, v, second) if second else y @ v

    wang, long = "e-e6m3-chunk", "d-e6m3-long"
    for rules, first, second in (
        ([sj.Rule("fc1", wang), sj.Rule(".*", long)], wang, long),
        ([sj.Rule("fc1", None), sj.Rule("fc2/inner", wang)], None, wang),
        ([sj.Rule("fc2", wang)], None, None),
        ([sj.Rule(".*", wang, op_names="conv_general_dilated")], None, None),
    ):
        found = sj.intercept(model, rules)
        assert np.array_equal(jax.jit(found)(X, W, V), by_hand(X, W, V, first, second))
        one, other = (jax.jit(jax.grad(lambda *a, f=f: f(*a).sum(), (0, 1, 2)))(X, W, V)
                      for f in (found, lambda *a, u=(first, second): by_hand(*a, *u)))  # fmt: skip
        assert all(map(np.array_equal, one, other))


def test_any_axes_and_weights_on_the_left():
    a, b = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32), RNG.normal(size=(5, 2, 6, 4)).astype(np.float32)
    axes = ((2, 3), (3, 0)), ((0,), (1,))  # ghki, igjk -> ghj
    found = sj.intercept(lambda a, b: jax.lax.dot_general(a, b, axes), ALL)(a, b)
    left = a.reshape(2, 3, 20)
    right = b.transpose(1, 3, 0, 2).reshape(2, 20, 6)
    assert np.array_equal(found, sj.matmul(left, right, "e-e6m3-chunk"))
    rule = [sj.Rule(".*", "e-e6m3-chunk", weights="left")]
    found = sj.intercept(lambda w, x: jax.lax.dot_general(w, x, (((0,), (1,)), ((), ()))), rule)(W, X)
    assert np.array_equal(found, sj.matmul(X, W, "e-e6m3-chunk").T)


def test_programs_within():
    def model(x, w, v, product):
        y = jax.checkpoint(lambda x: jax.jit(lambda x: jnp.tanh(product(x, w)))(x))(x)
        y, sums = jax.lax.scan(lambda c, s: (product(c, v) * s, c.sum()), y, jnp.float32([1, 2]))
        y = jax.lax.cond(y.sum() > 1e9, lambda y: y, lambda y: product(y, v), y)
        y = jax.vmap(lambda r: product(r[None], v)[0])(y)
        return y, sums

    def loop(x, v, product):
        return jax.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, product(c[1], v)), (0, x))[1]

    plain, wang = jnp.matmul, lambda a, b: sj.matmul(a, b, "e-e6m3-chunk")
    found = sj.intercept(lambda *a: model(*a, plain), ALL)
    for one, other in zip(jax.jit(found)(X, W, V), model(X, W, V, wang), strict=True):
        assert np.array_equal(one, other)
    one, other = (jax.grad(lambda w, f=f: f(X, w, V)[0].sum())(W) for f in (found, lambda *a: model(*a, wang)))
    assert np.array_equal(one, other)
    assert np.array_equal(sj.intercept(lambda v: loop(V, v, plain), ALL)(V), loop(V, V, wang))
    assert np.array_equal(sj.intercept(lambda *a: model(*a, plain), [])(X, W, V)[0], model(X, W, V, plain)[0])


def test_keys_of_products():
    unit = sn.MadUnit("e6m3", operand="e5m2", rounding="stochastic")
    x, v = (sn.quantize(a, "e5m2") for a in (X[:3, :3], V))

    def model(x, v):
        y = sj.quantize(x @ v, "e5m2")
        y = sj.quantize(y @ v, "e5m2")
        return jax.lax.scan(lambda c, _: (sj.quantize(c @ v, "e5m2"), None), y, None, length=2)[0]

    key = sn.Stream(9).spawn(1, first=4)[0]
    run = jax.jit(lambda x, v, step: sj.intercept(model, [sj.Rule(".*", unit)], key=sj.spawn(sj.key(9), step))(x, v))
    y = x
    for each in (key, key.jumped(16), *key.jumped(32).spawn(2)):
        y = sn.quantize(sn.matmul(y, v, unit, key=each), "e5m2")
    assert np.array_equal(run(x, v, 4), y)
    assert not np.array_equal(run(x, v, 5), y)


@jax.custom_vjp
def _own(x):
    return x @ x


_own.defvjp(lambda x: (x @ x, x), lambda x, g: (g @ x,))


@cases("kind, message, call", [
    (NotImplementedError, "belongs to a gradient", lambda: sj.intercept(jax.grad(lambda v: (v @ v).sum()), ALL)(V)),
    (NotImplementedError, "has no arithmetic of softnum's", lambda: sj.intercept(
        lambda x: jax.lax.linalg.cholesky(x), ALL)(np.eye(3, dtype=np.float32))),
    (NotImplementedError, "custom_vjp_call in module '' has products within", lambda: sj.intercept(_own, ALL)(V)),
    (NotImplementedError, "has blocks", lambda: sj.intercept(jnp.matmul, [sj.Rule(".*", "i-mxfp8")])(V, V)),
    (ValueError, "in module ''; state key=",
     lambda: sj.intercept(jnp.matmul, [sj.Rule(".*", "g-q44-stochastic")])(V, V)),
    (ValueError, "matches no layer of the network",
     lambda: sj.intercept(jnp.matmul, [sj.Rule(".*", "c-wang-fp8")])(V, V)),
    (ValueError, "no regular expression", lambda: sj.Rule("(", None)),
    (ValueError, "op_names are of", lambda: sj.Rule("", None, op_names=("dot",))),
    (ValueError, "weights is 'right' or 'left'", lambda: sj.Rule("", None, weights="up")),
    (TypeError, "takes rules", lambda: sj.intercept(jnp.matmul, [("", None)])),
])  # fmt: skip
def test_refused(kind, message, call):
    with pytest.raises(kind, match=message):
        call()


def test_integers_are_left_to_jax():
    assert sj.intercept(jnp.matmul, ALL)(jnp.arange(3), jnp.arange(3)).item() == 5


# -- handlers ----------------------------------------------------------------------------------------------------------


def test_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "cache"))
    with pytest.raises(RuntimeError, match="the C compiler 'no-such-compiler' is not found.*\n.*apt-get install gcc"):
        build._path()


def test_a_program_of_another_process():
    sj.quantize(X, "e5m2")
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    with pytest.raises(Exception, match="does not know the arithmetic nonsense, which a program that was compiled"):
        jax.ffi.ffi_call("softnum_jax_quantize", shape)(X, sj.key(1), plan="nonsense")


@pytest.mark.slow
def test_processes_that_build_at_once(tmp_path):
    text = "import softnum.jax as sj; print(sj.quantize(0.3, 'e5m2'))"
    environment = os.environ | {"SOFTNUM_CACHE": str(tmp_path / "cache")}
    running = [
        subprocess.Popen([sys.executable, "-c", text], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [process.communicate()[0].strip() for process in running] == ["0.3125"] * 3
    assert len(list((tmp_path / "cache" / "c").glob("*.so"))) == 1


@cases("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    assert result.attempted
