"""Results do not depend on the caller's floating-point environment, and the caller gets it back."""

import numpy as np
import pytest

import softnum as sn
from tests.support.cases import cases
from tests.support.core_oracles import same_bits
from tests.support.fp_environments import DAZ, ENVIRONMENTS, FTZ, PLAIN, UP


def everything():
    """Results of every entry point, on values that subnormals and rounding matter to."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 4000, dtype=np.uint32)
    x = bits.view(np.float32)
    x = np.where(np.isnan(x), np.float32(1.5e-45), x)
    tiny = (bits & np.uint32(0x80FFFFFF)).view(np.float32)
    a = sn.quantize(tiny[:1200].reshape(30, 40), "bfloat16")
    b = sn.quantize((x[:1200] % np.float32(3)).reshape(40, 30), "bfloat16")
    units = [
        sn.MadUnit("binary32", operand="bfloat16"),
        sn.MadUnit("binary32", operand="binary32", chunk=5),
        sn.MadUnit("binary32", operand="binary32", product="binary32"),
        sn.MadUnit("e8m7", operand="e4m3"),
        sn.MadUnit("bfloat16", operand="bfloat16"),
        sn.MadUnit("bfloat16", operand="bfloat16", rounding="stochastic"),
        sn.MadUnit("binary64", operand="binary32"),
    ]
    small = sn.quantize(b, "e4m3", overflow="saturate")
    results = [
        sn.matmul(small if u.operand[0].bits == 8 else a, small.T if u.operand[0].bits == 8 else b, u,
                  key=1 if u.stochastic else None, threads=threads)
        for u in units for threads in (1, 3)
    ]  # fmt: skip
    for fmt in ("bfloat16", "e5m2", "binary32", "e8m3"):
        for mode in ("nearest_even", "up", "stochastic"):
            options = {"rounding": mode, "key": 3}
            results += [sn.quantize(x, fmt, **options), sn.quantize(tiny.astype(np.float64) * 1e-300, fmt, **options)]
            results += [sn.quantize(tiny, fmt, **options), sn.encode(tiny, fmt, **options)]
    for name in sn.formats.block_format_names():
        for values in (tiny[:1200], b.ravel()):
            blocks = sn.array(values.reshape(30, 40), name, rounding="stochastic", key=5)
            fmt = blocks.format
            results += [blocks.codes, blocks.scales, blocks.decode(), np.float64(blocks.tensor_scale or 0)]
            for u in (
                sn.BlockDotUnit("binary32", operand=fmt), sn.BlockDotUnit("bfloat16", operand=fmt, product="e8m9"),
                sn.BlockDotUnit("binary32", operand=fmt, inner=sn.ExactDotUnit("binary32", operand=fmt.element)),
            ):  # fmt: skip
                results += [sn.matmul(blocks, blocks.T, u, threads=threads) for threads in (1, 3)]
    results.append(sn.decode(np.arange(1 << 16, dtype=np.uint16), "bfloat16", dtype=np.float32))
    results.append(sn.fma(bits[:500], bits[500:1000], bits[1000:1500], "binary32"))
    return [np.asarray(r) for r in results]


@cases("name", ENVIRONMENTS)
def test_results_do_not_change_and_the_environment_is_restored(control, name, isa):
    want = everything()
    flags = 0x3F  # exception flags may be raised; nothing else may differ
    wanted = ENVIRONMENTS[name]
    before = control.get()
    try:
        control.set(wanted)
        if wanted & FTZ:
            assert control.probe() == 0.0  # the helper works
        got = []
        # numpy's own arithmetic in everything() would change as well: enter and leave around each call
        real = {f: getattr(sn, f) for f in ("quantize", "matmul", "encode", "decode", "fma")}
        after = []

        def inside(function):
            def call(*args, **options):
                control.set(wanted)
                try:
                    return function(*args, **options)
                finally:
                    after.append(control.get())
                    control.set(before)

            return call

        control.set(before)
        with pytest.MonkeyPatch.context() as patch:
            for f, function in real.items():
                patch.setattr(sn, f, inside(function))
            got = everything()
    finally:
        control.set(before)
    assert len(after) > 40 and all(value & ~flags == wanted & ~flags for value in after)
    for i, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        assert same_bits(mine, theirs), (name, i)


def test_the_helper_changes_arithmetic(control):
    """Without this, the test above could pass in a plain environment."""
    before = control.get()
    nearest = control.third()
    try:
        control.set(PLAIN | UP)
        up = control.third()
        control.set(PLAIN | FTZ | DAZ)
        flushed = control.probe()
    finally:
        control.set(before)
    assert flushed == 0.0 and control.probe() != 0.0
    assert up >= nearest and (up > nearest or nearest > 1 / 3)
