"""What Python's and NumPy's floats take part in gives the same bits in whatever environment a thread is, or refuses."""

import os
import struct
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum.runtime.plain import PlainEnvironment, check_plain, plain
from softnum.train import Numerics, Settings, Tensor, load_design, run
from softnum.tta.outcomes import share_interval
from softnum.tta.timings import mean_interval
from tests.support.cases import cases
from tests.support.fp_environments import ENVIRONMENTS, PRELOADED

TINY = float.fromhex("0x1p-1060")
SINGLE = np.array([7], np.uint32).view(np.float32)  # a subnormal number of binary32


def numbers() -> list:
    """Codes, texts and exact numbers of what goes through Python's floats; its operands are made outside."""
    a = sn.array(np.array([0.0, TINY]), "binary64")
    table = sn.CustomFormat.from_table([0.0, TINY, -TINY, 1.0])
    trace = sn.MadUnit("binary32", operand="binary32").trace(SINGLE, np.float32([1]))
    exact = [sn.format(name).smallest_subnormal for name in ("binary16", "binary64", "e5m2")]
    blocks = sn.array(np.float64([[TINY, 1.0]]), "mxfp8_e4m3", axis=1)
    found = [
        float(a[1]), *a.tolist(), a[1].item(), np.asarray(a), repr(a), (a + 0).codes, (a + TINY).codes, a == TINY,
        (TINY + a).codes, TINY in a, str(trace), trace.code, trace.value, trace.result, *table.values, table.has_zero,
        sn.encode(np.array([TINY, -TINY]), table), sn.decode(np.uint8([1, 2]), table), sn.array(TINY, table).item(),
        *exact, sn.format("binary64").epsilon, repr(blocks), sn.encode([TINY, Fraction(1, 3)], "binary64"),
        sn.encode(["4e-320", "0.1"], "binary64"), sn.ops.ulp(a), sn.ops.ulp_error(a, [Fraction(1, 2**1074), TINY]),
        sn.quantize(np.array([np.nan]), sn.format("q4.4"), invalid=0.125), sn.formats.block_format_names(),
        sn.format("nvfp4").max, sn.format("mxfp4_e2m1").smallest, str(sn.probe("add", a, a)),
    ]  # fmt: skip
    return [
        struct.pack("<d", x) if isinstance(x, float) else x.tobytes() if hasattr(x, "tobytes") else x for x in found
    ]


@cases("name", ENVIRONMENTS)
def test_pythons_floats_have_the_same_bits(control, name):
    want = numbers()
    before = control.get()
    try:
        control.set(ENVIRONMENTS[name])
        got = numbers()
        after = control.get()
    finally:
        control.set(before)
    assert after & ~0x3F == ENVIRONMENTS[name]
    assert [(i, x) for i, (x, y) in enumerate(zip(got, want, strict=True)) if x != y] == []


@cases("name", ENVIRONMENTS)
def test_statistics_of_studies_have_the_same_bits(control, name):
    times = [0.1, 0.7, 0.33, 0.4, 1e-3]
    told = [lambda: mean_interval(times), lambda: share_interval(7, 9)]
    want = [repr(f()) for f in told]
    before = control.get()
    try:
        control.set(ENVIRONMENTS[name])
        got = [f() for f in told]
    finally:
        control.set(before)
    assert [repr(x) for x in got] == want


@cases("name", ENVIRONMENTS)
def test_training_restores_or_refuses(control, name, tmp_path):
    """A run goes on in an environment of its own; what is trained by hand says what is wrong."""
    settings = Settings(samples=64, held_out=32, epochs=1)
    design = load_design("a-float32")
    want = run(design, settings, seed=1, out=tmp_path / "plain").read_bytes()
    numerics = Numerics(design, ("fc",), seed=1)
    before = control.get()
    try:
        control.set(ENVIRONMENTS[name])
        got = run(load_design("a-float32"), settings, seed=1, out=tmp_path / "changed").read_bytes()
        with pytest.raises(FloatingPointError, match=r"training: another library.*set_flush_denormal\(False\)"):
            numerics.begin(1)
        with pytest.raises(FloatingPointError, match="backward"):
            Tensor(np.float32([1]), numerics.backend).backward()
    finally:
        control.set(before)
    numerics.begin(1)
    assert got == want


@pytest.mark.parametrize("kind", PRELOADED)
def test_commands_under_a_preloaded_library(preloaded, kind, tmp_path):
    """A library that changes the environment before Python begins, and of all threads that begin later."""
    records = []
    for name, environment in (("plain", {}), ("changed", {"LD_PRELOAD": str(preloaded(kind))})):
        options = ("--samples", "64", "--held-out", "32", "--epochs", "1", "--threads", "2", "--out", tmp_path / name)
        subprocess.run(
            [sys.executable, "-m", "softnum", "train", "mlp", "--design", "c-wang-fp8", *options],
            env=os.environ | environment, check=True, capture_output=True,
        )  # fmt: skip
        records.append((tmp_path / name / "c-wang-fp8" / "seed-1.jsonl").read_bytes())
    assert records[0] == records[1]


@pytest.mark.parametrize("kind", PRELOADED)
def test_sources_are_compiled_with_the_right_constants(preloaded, kind, tmp_path):
    """Python rounds the decimals of a source in the thread's environment, and keeps them for later processes."""
    code = (
        "import softnum as sn, softnum.train\n"
        "from softnum.train.engine import binary64\n"
        "print(sn.__version__, [x.hex() for x in binary64._EXP_TERMS], sn.encode(['0.1', '1e-310'], 'binary64'))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONPYCACHEPREFIX": str(tmp_path / name)} | environment,
            check=True, capture_output=True, text=True,
        ).stdout
        for name, environment in (("plain", {}), ("changed", {"LD_PRELOAD": str(preloaded(kind))}))
    ]  # fmt: skip
    assert said[0] == said[1]


def test_threads_of_the_team_are_plain(control):
    from softnum.runtime import threads

    seen = []
    before = control.get()
    barrier = threading.Barrier(2)

    def work(_):
        barrier.wait(5)
        seen.append(control.get() & ~0x3F)

    threads._renew()
    try:
        control.set(ENVIRONMENTS["up"])
        threads.for_each([(0,), (1,)], work, 2)
    finally:
        control.set(before)
    assert sorted(seen) == sorted([0x1F80, ENVIRONMENTS["up"]])


def test_plain_and_check_plain(control):
    before = control.get()
    try:
        control.set(ENVIRONMENTS["ftz and daz"])
        with PlainEnvironment():
            check_plain("here")
        assert plain(control.get)() & ~0x3F == 0x1F80
        for name in ENVIRONMENTS:
            control.set(ENVIRONMENTS[name])
            with pytest.raises(FloatingPointError, match="here: another library"):
                check_plain("here")
    finally:
        control.set(before)
    check_plain("here")
