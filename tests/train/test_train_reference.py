"""Iterations of training, rounding by rounding and product by product, against softnum.reference."""

import numpy as np
import pytest

import softnum as sn
from softnum import reference
from softnum.train import Numerics, Settings, load_design, run
from softnum.train.engine.arithmetic import FUNCTIONS
from softnum.train.engine.backend import NumpyBackend

SAMPLES = 12
OPERATIONS = ("add", "divide", "fma", "multiply", "sqrt")


class Reached(Exception):
    """Ends a run early."""


@pytest.mark.parametrize(
    ("name", "iteration", "optimiser"),
    [
        ("c-wang-fp8", 2, "sgd"),
        ("c-wang-fp8", 3, "adamw"),
        ("b-binary16", 2, "lamb"),
        ("c-wang-fp8", 2, "lars"),
        ("d-e6m3-long", 2, "sgd"),
        ("e-e6m3-chunk", 2, "sgd"),
        ("f-q44-nearest", 1, "sgd"),
        ("g-q44-stochastic", 1, "sgd"),
        ("g-q44-stochastic", 20, "sgd"),  # by then outputs saturate at -8
    ],
)
def test_an_iteration_equals_the_reference(name, iteration, optimiser, tmp_path, monkeypatch):
    matmul, quantize, begin, compute = sn.matmul, NumpyBackend.quantize, Numerics.begin, NumpyBackend.compute
    now, checked = [0], {"quantize": 0, "matmul": 0, "saturated": 0} | dict.fromkeys(OPERATIONS, 0)
    rng = np.random.default_rng(0)

    def watched_begin(self, number, *, evaluation=False):
        now[0] = 0 if evaluation else number
        if number > iteration:
            raise Reached
        begin(self, number, evaluation=evaluation)

    def watched_quantize(self, x, role, key):
        y, fmt = quantize(self, x, role, key), role.format
        if now[0] == iteration and y is not x:
            for i in rng.choice(y.size, min(SAMPLES, y.size), replace=False).tolist():
                bits = {}
                if role.stochastic:
                    word = reference.random_word_elementwise(*key, i) & ((1 << role.stochastic_bits) - 1)
                    bits = {"stochastic_bits": role.stochastic_bits, "random_bits": word}
                options = {"rounding": role.rounding, "overflow": role.overflow, **bits}
                code, _ = reference.encode(float(x.flat[i]), fmt, **options)
                assert reference.to_fraction(code, fmt) == float(y.flat[i]), (x.flat[i], fmt, key, i)
                checked["quantize"] += 1
        return y

    def watched_compute(self, operation, operands, role, key):
        y = compute(self, operation, operands, role, key)
        if now[0] == iteration and operation in OPERATIONS:
            options = {"rounding": role.rounding, "overflow": role.overflow, "stochastic_bits": role.stochastic_bits}
            flat = [np.asarray(part, np.float32).ravel() for part in np.broadcast_arrays(*operands)]
            for i in rng.choice(y.size, min(SAMPLES, y.size), replace=False).tolist():
                bits = {}
                if role.stochastic:
                    bits["random_bits"] = reference.random_word_elementwise(*key, i) & ((1 << role.stochastic_bits) - 1)
                codes = [int(part[i].view(np.uint32)) for part in flat]
                formats = (sn.format("binary32"),) * len(codes)
                code, _ = getattr(reference, operation)(*codes, formats, out_fmt=role.format, **options, **bits)
                assert code == sn.encode(y.flat[i], role.format), (operation, codes, role, key, i)
                checked[operation] += 1
        return y

    def watched_matmul(a, b, unit, c=None, *, key, threads):
        y = matmul(a, b, unit, c, key=key, threads=threads)
        if now[0] == iteration:
            codes = [sn.encode(a, unit.operand[0]), sn.encode(b, unit.operand[1])]
            start = None if c is None else sn.encode(np.broadcast_to(c, y.shape), unit.outer)
            least = np.argwhere(y == y.min())[:2]  # an element that saturates, where there is one
            chosen = rng.integers(0, y.shape, (SAMPLES, 2))
            for m, n in np.concatenate([least, chosen]).tolist():
                code, flags = reference.mad_dot(
                    codes[0][m].tolist(), codes[1][:, n].tolist(), operand=unit.operand, accumulator=unit.accumulator,
                    rounding=unit.rounding, stochastic_bits=unit.stochastic_bits, chunk=unit.chunk,
                    c=None if start is None else int(start[m, n]), key=key, m=m, n=n,
                )  # fmt: skip
                assert reference.to_fraction(code, unit.outer) == float(y[m, n]), (unit, key, m, n)
                checked["matmul"] += 1
                checked["saturated"] += bool(flags & sn.Flags.OVERFLOW)
        return y

    monkeypatch.setitem(FUNCTIONS, "matmul", watched_matmul)
    monkeypatch.setattr(NumpyBackend, "quantize", watched_quantize)
    monkeypatch.setattr(Numerics, "begin", watched_begin)
    monkeypatch.setattr(NumpyBackend, "compute", watched_compute)
    batch = 256 if "e6m3" in name else 32
    with pytest.raises(Reached):
        run(load_design(name), Settings(batch=batch, optimiser=optimiser), seed=1, out=tmp_path)
    assert checked["matmul"] >= 7 * (SAMPLES + 1)
    assert checked["quantize"] > 30
    assert checked["fma"] >= 80
    assert optimiser in ("sgd", "lars") or min(checked[operation] for operation in OPERATIONS) > 30
    assert checked["saturated"] > 0 or iteration < 20
