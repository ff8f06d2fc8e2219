"""The device code itself: refused by no device compiler, free of floating point, and the same function as the CPU's."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
import softnum.kernels
from softnum.arrays.environment import environment
from softnum.kernels.check import all_kernels as check
from softnum.kernels.check import link
from softnum.kernels.device.elementwise.computations import FROM_KEY, encode_computation, quantize_computation
from softnum.kernels.device.elementwise.operations import operation_computation, short_computation
from softnum.kernels.device.products.entries import operand_library, unit_library
from softnum.kernels.device.products.exact import exact_library, pieces_library, pieces_of
from softnum.kernels.device.products.fused_text import chain_library, fast_library, fused_library
from softnum.kernels.device.runtime.source import core_text
from tests.support.cases import cases
from tests.support.compiled import compiled


def test_one_text():
    text = core_text()
    assert not re.search(r'#\s*include\s+"', text)
    assert text.count("sn_u64 sn_round_pack(") == 1
    assert "float" not in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).replace("sn_round_float", "")


def test_names_depend_on_content():
    env = environment(sn.format("e5m2"), "rne", None, 32)
    one, two, again = (
        quantize_computation.__wrapped__(sn.format(f), env, "float32", False).library(FROM_KEY, (False,), True)
        for f in ("e5m2", "e4m3fn", "e5m2")
    )
    assert one.own_text == again.own_text
    assert one.symbol(one.entries[0]) == again.symbol(again.entries[0]) != two.symbol(two.entries[0])


# ---- machine code for real chips: in processes of their own, since here Numba may run its simulator ------------------


@pytest.mark.slow
def test_links_for_real_chips():
    """The first kernel of each module; .ci/run links all."""
    done = compiled("-m", "softnum.kernels.check", "--which", "first", "--processes", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert all(line.startswith("ok: ") for line in lines)
    device = Path(check.__file__).with_name("device")
    for path in device.glob("*.py"):
        if "def examples" in path.read_text():
            assert sum(line.startswith(f"ok: {path.stem}: ") for line in lines) == 1, path


def test_every_module_with_kernels_has_examples():
    """But for those whose kernels are made of what another module's are."""
    parts = {"elementwise", "layouts", "operator_text", "sums"}
    for path in Path(check.__file__).with_name("device").glob("*.py"):
        if path.stem not in parts and re.search(r"^ +@cuda\.jit\n", path.read_text(), re.MULTILINE):
            assert "def examples" in path.read_text(), path


def test_turns():
    """Five kernels of a module see all chips; fast ones are always linked for the first."""
    assert {chip for i in range(5) for chip in check._chips(i, False, "turns")} == set(check.CHIPS)
    assert all(check.TURNS[0] in check._chips(i, True, "turns") for i in range(9))
    assert check._chips(1, False, "first") == () and check._chips(7, False, "all") == check.CHIPS


@pytest.fixture(scope="module")
def linked():
    done = compiled("linked.py", cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["contracted in C", "contracted in Python"])
def test_contraction_is_found(linked, name):
    code = linked[name]
    assert (code["contracted"], code["floats"], code["calls"]) == (1, 1, 0)
    assert code["problems"] == ["multiplications contracted with an addition: 1 (round by softnum's functions)"]
    assert "1 contracted" in code["text"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "floats"), [("named in C", 2), ("one rounding in C", 1)])
def test_named_roundings_are_none(linked, name, floats):
    code = linked[name]
    assert (code["contracted"], code["unnamed"], code["floats"], code["faults"]) == (0, [], floats, [])


@pytest.mark.slow
def test_what_is_seen(linked):
    assert linked["a call"]["problems"][0] == "calls of functions that were not inlined: 1"
    assert linked["a product alone"]["problems"] == []
    assert linked["a product alone"]["faults"] == ["operations whose rounding is not named: mul.f32"]
    assert any("not correctly rounded: ex2.approx" in text for text in linked["exp"]["problems"])
    assert linked["an array"]["stack"] == 256
    assert linked["an array"]["faults"] == ["256 bytes of local memory and 0 spilled, in a kernel that is to be fast"]
    assert linked["shared"]["shared"] == 512
    assert all(linked[name]["registers"] > 4 for name in ("shared", "exp"))
    assert "absent" in linked["unresolved"] and "the linker refuses the kernel" in linked["unresolved"]


@pytest.mark.slow
def test_elementary_functions_stay_apart(linked):
    """Inlined into each other, gelu alone were 700 kB, and these four took the linker minutes and gigabytes."""
    text, calls, size = linked["functions"]
    assert calls and all(f"{name}(" in text for name in ("gelu", "pow", "tanh", "exp"))
    assert 100_000 < size < 700_000  # with all functions in it, each once


@pytest.mark.slow
def test_check_device_code(linked):
    assert linked["unit"] and linked["format"] and linked["preset"]
    for chip, problems, has_registers in (*linked["unit"], *linked["format"], *linked["preset"]):
        assert (chip, problems, has_registers) == ("sm_75", [], True)
    for chip in ("h100", "sm_30"):
        assert f"'{chip}' is no chip that the installed compilers know: sm_75, sm_80, " in linked[chip]


def test_not_in_the_simulator(monkeypatch, capsys):
    from softnum.kernels.device.runtime import _cuda

    monkeypatch.setattr(_cuda, "SIMULATOR", True)
    with pytest.raises(RuntimeError, match="NUMBA_ENABLE_CUDASIM"):
        sn.kernels.check_device_code(sn.MadUnit("e6m9", operand="e5m2"))
    assert check.main([]) == 2
    assert "NUMBA_ENABLE_CUDASIM" in capsys.readouterr().err


@pytest.mark.slow
def test_units_by_name(linked):
    code, said = linked["by name"].pop("linked:MAD")
    assert code == 0 and re.fullmatch(r"(ok: .* for sm_80: .* 0 calls, 0 contracted.*\n)+", said), said
    for wrong, (code, said) in linked["by name"].items():
        assert code == 2 and wrong in said
    (code, said), (of_none, no_unit), (of_lists, not_compiled) = linked["without a kernel"]
    assert code == 2 and "nine has 9 bits" in said
    assert of_none == 2 and re.search("must be a unit, a format or the name of a preset, got <function main", no_unit)
    assert of_lists == 2 and "Numba cannot compile it for the device" in not_compiled and "_of_a_list" in not_compiled


def test_what_is_missing_or_wrong_is_told(tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('none here')\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    for arguments, wrong in (
        ([], "CUDA arrays need numba-cuda: pip install 'softnum[cuda]' (none here)"),
        (["--processes", "0"], "argument --processes: must be at least 1, got 0"),
    ):
        environ = {**os.environ, "NUMBA_ENABLE_CUDASIM": "0", **({} if arguments else {"PYTHONPATH": path})}
        command = [sys.executable, "-P", "-m", "softnum.kernels.check", *arguments]
        done = subprocess.run(command, env=environ, capture_output=True, text=True)
        assert done.returncode == 2 and wrong in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_operations_of_ptx():
    text = "\tmul.f32 %f1, %f2, %f3;\n@!%p2 add.rn.f32 %f4, %f1, %f1;\n@%p1 bra $L1;\n\tcall.uni g;\n"
    assert link._OPERATION.findall(text) == ["mul.f32", "add.rn.f32", "bra", "call.uni"]


@pytest.mark.slow
def test_units_of_the_users(linked):
    """What docs/gpu.md shows: one that rounds by softnum's functions, and one that a GPU would contract."""
    (code, said), (wrong, found) = linked["of the page"]
    assert code == 0 and said.startswith("ok: ") and " 0 calls, 0 contracted" in said
    assert wrong == 1 and found.startswith("BAD: ")
    assert ": multiplications contracted with an addition: 1 (round by softnum's functions)" in found


# ---- the text as C and C++ of this machine ---------------------------------------------------------------------------


def libraries():
    for fmt, rounding, carrier in (
        ("e5m2", "sr", "float32"),
        ("q4.4", "rne", "float32"),
        ("binary32", "rto", "float64"),
    ):
        fmt = sn.format(fmt)
        env = environment(fmt, rounding, None, 12)
        for make in (quantize_computation, encode_computation):
            yield f"{make.__name__} {fmt}", make(fmt, env, carrier, not fmt.has_nan).library(FROM_KEY, (False,), True)
        yield f"operand {fmt}", operand_library(fmt, carrier)
    half, plain = sn.format("binary16"), environment(sn.format("binary16"), "up", None, 32)
    for name, count in (("fma", 3), ("divide", 2), ("exp", 1)):
        of = (half,) * count, half, plain, ("uint16",) * count, (False,) * count
        yield f"{name} by the definition", operation_computation(name, *of, True, True).library(0, (False,) * 3, False)
        if name != "exp":
            yield f"{name} in floats", short_computation(name, *of).library(0, (True,) + (False,) * 2, True)
    for unit in (
        sn.MadUnit("e6m9", operand="e5m2", chunk=4, rounding="sr", stochastic_bits=20, product="e5m2"),
        sn.MadUnit("e6m9", operand=("e5m2", "e4m3fn"), chunk=4, rounding="sr", stochastic_bits=9, product="binary16"),
        sn.MadUnit("q8.8", operand="e5m2"),
        sn.MadUnit("e6m9", operand="e5m2", chunk=4, compensated="kahan"),
        sn.MadUnit("e6m9", operand="e5m2", product="e5m2", compensated="kahan"),
    ):
        yield f"unit {unit}", unit_library(unit, "float32")
    for name in ("nvidia_a100_bf16", "nvidia_h100_e5m2_mma"):
        yield f"{name}, its definition", fused_library(sn.unit(name), "float32")
        yield f"{name}, in blocks", fast_library(sn.unit(name), 68)
    yield "x86_avx512_bf16", chain_library(sn.unit("x86_avx512_bf16"), "float32")
    for unit in (sn.ExactDotUnit("e6m9", operand="e4m3fn"), sn.ExactDotUnit("binary32", operand="binary16")):
        pieces = pieces_of(unit, 100)
        yield f"exact {unit}", exact_library(unit, "float32", pieces)
        yield f"pieces of {unit}", pieces_library(unit.operand, pieces, 68)


@cases("standard", ["c11", "c++17"])
@cases("library", [pytest.param(x, id=name) for name, x in libraries()])
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

    from softnum.kernels.device.runtime import _cuda

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
