"""The device code itself: refused by no device compiler, free of floating point, and the same function as the CPU's."""

import ctypes
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
from softnum.kernels.entries import operand_library, quantize_library, unit_library
from softnum.kernels.source import core_text


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


# ---- the entries as C against their scalar twins ---------------------------------------------------------------------

TYPES = {"uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64}
SEED = 20


def build(library, folder, text=None):
    """The library's C text as a shared object of this machine; its functions by entry name."""
    compiler = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) or shutil.which("cc")
    if compiler is None or sys.platform == "win32":
        pytest.skip("needs a C compiler for this machine")
    source, target = folder / "device.c", folder / "device.so"
    source.write_text(text or library.source)
    subprocess.run(
        [compiler, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-shared", "-fPIC",
         str(source), "-o", str(target)],
        check=True,
    )  # fmt: skip
    shared = ctypes.CDLL(str(target))
    functions = {}
    for entry in library.entries:
        function = getattr(shared, library.symbol(entry))
        function.restype = TYPES[entry.result]
        function.argtypes = [TYPES[kind] for kind, _ in entry.arguments]
        functions[entry.name] = function
    return functions


def arguments(entry, rng, code_bits):
    """Seeded arguments: words in full, codes within their format, counters small."""
    limits = {"acc": code_bits, "sum": code_bits, "chunk": code_bits, "code": code_bits, "a": 8, "b": 8}
    limits |= {"n": 32, "m": 32, "batch": 32, "block": 40}
    return [
        int(rng.integers(0, 2 ** limits.get(name, int(kind[4:])), dtype=np.uint64)) for kind, name in entry.arguments
    ]


def disagreements(library, functions, code_bits=64, count=300):
    rng = np.random.default_rng(SEED)
    found = []
    for entry in library.entries:
        for _ in range(count):
            given = arguments(entry, rng, code_bits)
            want, got = entry.simulated(*given), functions[entry.name](*given)
            if want != got:
                found.append((entry.name, [hex(v) for v in given], hex(got), hex(want)))
    return found


def libraries():
    for fmt, rounding, carrier in (
        ("e5m2", "sr", "float32"),
        ("q4.4", "rne", "float32"),
        ("binary32", "rto", "float64"),
    ):
        fmt = sn.format(fmt)
        yield f"quantize {fmt}", quantize_library(fmt, environment(fmt, rounding, None, 12), carrier), 64
        yield f"operand {fmt}", operand_library(fmt, carrier), 64
    for unit in (
        sn.MadUnit("e6m9", operand="e5m2", chunk=4, rounding="sr", stochastic_bits=20, product="e5m2"),
        sn.MadUnit("e6m9", operand=("e5m2", "e4m3fn"), chunk=4, rounding="sr", stochastic_bits=9, product="binary16"),
        sn.MadUnit("q8.8", operand="e5m2"),
    ):
        yield f"unit {unit}", unit_library(unit, "float32"), 16


@pytest.mark.parametrize(("library", "code_bits"), [pytest.param(x, bits, id=name) for name, x, bits in libraries()])
def test_entries_as_c(library, code_bits, tmp_path):
    assert not (found := disagreements(library, build(library, tmp_path), code_bits)), found[:5]


def test_planted_fault(tmp_path):
    library = unit_library(sn.MadUnit("e6m9", operand="e5m2"), "float32")
    text = library.source.replace(
        "(void)first;\n    (void)flags;\n    return code;", "(void)first;\n    (void)flags;\n    return code ^ 1;"
    )
    assert text != library.source
    found = disagreements(library, build(library, tmp_path, text), 16, 20)
    assert {name for name, *_ in found} == {"step"}
