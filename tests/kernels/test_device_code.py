"""The device code itself: refused by no device compiler, free of floating point, and the same function as the CPU's."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig

import numpy as np
import pytest

import softnum as sn
from softnum.environment import environment
from softnum.kernels import check
from softnum.kernels.device.entries import operand_library, quantize_library, unit_library
from softnum.kernels.device.source import core_text


def test_one_text():
    text = core_text()
    assert not re.search(r'#\s*include\s+"', text)
    assert text.count("sn_u64 sn_round_pack(") == 1
    assert "float" not in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).replace("sn_round_float", "")


def test_names_depend_on_content():
    env = environment(sn.format("e5m2"), "rne", None, 32)
    one, two = (quantize_library(sn.format(f), env, "float32") for f in ("e5m2", "e4m3fn"))
    again = quantize_library.__wrapped__(sn.format("e5m2"), env, "float32")
    assert one.own_text == again.own_text
    assert one.symbol(one.entries[0]) == again.symbol(again.entries[0]) != two.symbol(two.entries[0])


def test_device_compiler(capsys):
    code = check.main()
    printed = capsys.readouterr()
    if code == 2:
        pytest.skip(printed.err.strip())
    assert code == 0, printed.err
    assert printed.out.count("ok: core for sm_") == len(check.ARCHITECTURES)
    assert printed.out.count("\n") == len(check.ARCHITECTURES) + len(check.libraries())


def test_device_compiler_refuses(monkeypatch, capsys):
    try:
        check._nvrtc()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    with pytest.raises(ValueError, match="undefined"):
        check.compile_device('extern "C" __device__ int f() { return undefined_name; }', "sm_80")
    ptx, _ = check.compile_device('extern "C" __device__ float f(float x, float y) { return x * y + y; }', "sm_80")
    assert any(name.startswith("fma.") for name in check.float_instructions(ptx))
    monkeypatch.setattr(check, "core_text", lambda: 'extern "C" __device__ float f(float x) { return x * x; }')
    monkeypatch.setattr(check, "libraries", dict)
    assert check.main(("sm_80",)) == 1
    assert "mul.f32" in capsys.readouterr().err


def test_no_compiler(monkeypatch, capsys):
    def missing():
        raise FileNotFoundError("NVRTC is not installed: pip install nvidia-cuda-nvrtc")

    monkeypatch.setattr(check, "_nvrtc", missing)
    assert check.main() == 2
    assert "pip install nvidia-cuda-nvrtc" in capsys.readouterr().err


def test_links_for_real_chips():
    """Machine code for five chips, in a process of its own: here Numba may run its simulator."""
    environ = {**os.environ, "NUMBA_ENABLE_CUDASIM": "0"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "softnum.kernels.link"], env=environ, capture_output=True, text=True
    )
    if done.returncode == 2:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok: ") == 5 * len(check.ARCHITECTURES)


# ---- the text as C and C++ of this machine ---------------------------------------------------------------------------


def libraries():
    for fmt, rounding, carrier in (
        ("e5m2", "sr", "float32"),
        ("q4.4", "rne", "float32"),
        ("binary32", "rto", "float64"),
    ):
        fmt = sn.format(fmt)
        yield f"quantize {fmt}", quantize_library(fmt, environment(fmt, rounding, None, 12), carrier)
        yield f"operand {fmt}", operand_library(fmt, carrier)
    for unit in (
        sn.MadUnit("e6m9", operand="e5m2", chunk=4, rounding="sr", stochastic_bits=20, product="e5m2"),
        sn.MadUnit("e6m9", operand=("e5m2", "e4m3fn"), chunk=4, rounding="sr", stochastic_bits=9, product="binary16"),
        sn.MadUnit("q8.8", operand="e5m2"),
        sn.MadUnit("e6m9", operand="e5m2", chunk=4, compensated="kahan"),
        sn.MadUnit("e6m9", operand="e5m2", product="e5m2", compensated="kahan"),
    ):
        yield f"unit {unit}", unit_library(unit, "float32")


@pytest.mark.parametrize("standard", ["c11", "c++17"])
@pytest.mark.parametrize("library", [pytest.param(x, id=name) for name, x in libraries()])
def test_common_subset(library, standard):
    """The text is C11 and C++17, without warnings."""
    plus = standard.startswith("c++")
    compiler = shutil.which("c++" if plus else (sysconfig.get_config_var("CC") or "cc").split()[0])
    if compiler is None or sys.platform == "win32":
        pytest.skip("needs a compiler for this machine")
    subprocess.run(
        [compiler, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only",
         "-x", "c++" if plus else "c", "-"],
        input=library.source, text=True, check=True,
    )  # fmt: skip


def test_planted_fault():
    """The simulator computes with the text: a fault in it shows in its results."""
    from dataclasses import replace

    from softnum.kernels.device import _cuda

    if not _cuda.SIMULATOR:
        pytest.skip("the simulator's way")
    library = unit_library(sn.MadUnit("e6m9", operand="e5m2"), "float32")
    entries = tuple(
        replace(entry, body=entry.body.replace("return code;", "return code ^ 1;")) for entry in library.entries
    )
    one = int(sn.encode(1.0, "e5m2")), int(sn.encode(1.0, "e6m9"))
    lost = np.zeros(3, np.uint64)
    right, wrong = (
        _cuda.bind(x).step(0, one[0], one[0], 0, 0, lost.ctypes.data)
        for x in (library, replace(library, entries=entries))
    )
    assert (int(right), int(wrong)) == (one[1], one[1] ^ 1)
