"""Kernels as machine code for a chip, without a GPU, and what is to be seen in it.

NVVM, NVRTC and nvJitLink are called as numba-cuda calls them for a launch (``pip install 'softnum[cuda]'``); no driver
is needed. The linker says how many registers a kernel takes; its PTX shows calls, floating-point operations and their
roundings. A multiplication and an addition that the compiler made one operation are found by linking twice: with
``-fma=0`` it may not.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from softnum.kernels.device.runtime import _cuda

__all__ = ["CHIPS", "DeviceCode", "Loop", "examine", "instructions", "link", "missing_library"]

CHIPS = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")

_CHIP = re.compile(r"sm_(\d+)(\d)([af]?)")
_OPERATION = re.compile(r"^\s*(?:@!?%p\d+\s+)?([a-z][a-z0-9_.]*)", re.MULTILINE)
_FLOAT = re.compile(r"\.(?:f16|f16x2|bf16|bf16x2|f32|f32x2|f64)\b")
_MOVES = ("ld.", "st.", "mov.", "selp.", "setp.", "atom.", "red.", "shfl.", "abs.", "neg.", "min.", "max.", "testp.",
          "copysign.", "slct.", "set.")  # fmt: skip
_MAY_FUSE = re.compile(r"(?:add|sub|mul)(?:\.sat)?\.(?:f16|f16x2|bf16|bf16x2|f32|f32x2|f64)$")

# with -fma=0 the compiler names the rounding of what it could have contracted
_ROUNDS_ANYWAY = re.compile(r"\b(add|sub|mul)\.rn\.(f16|f16x2|bf16|bf16x2|f32|f32x2|f64)\b")


@dataclass(frozen=True)
class Loop:
    """An innermost loop of machine code.

    Parameters
    ----------
    instructions : int
        From its first to its last, one turn.
    counts : dict
        Instructions by their names without suffixes: ``{"FFMA": 128, "LDS": 8, ...}``.
    """

    instructions: int
    counts: dict


@dataclass(frozen=True)
class DeviceCode:
    """What one kernel is on one chip.

    Parameters
    ----------
    kernel, chip : str
    registers : int
        Of a thread.
    stack, spills : int
        Bytes of local memory that a thread's arrays take, and bytes that it moves to and from there for want of
        registers.
    shared : int
        Bytes of static shared memory of a block.
    size : int
        Bytes of the linked file.
    calls : int
        Calls that are left after linking: functions that were not inlined, or that are not there.
    contracted : int
        Multiplications that the compiler made one operation with an addition, which rounds once and not twice.
    unnamed : tuple of str
        Additions and multiplications whose rounding the code does not name, by PTX name: those that may be contracted.
    approximate : tuple of str
        Operations that are not correctly rounded, or that flush subnormals.
    floats : int
        All floating-point operations; kernels of the definition have none.
    loops : tuple of Loop, or None
        The innermost loops, longest first; None where no disassembler is installed (``nvidia-cuda-nvdisasm``), or
        nobody asked.
    """

    kernel: str
    chip: str
    registers: int
    stack: int
    spills: int
    shared: int
    size: int
    calls: int
    contracted: int
    unnamed: tuple[str, ...]
    approximate: tuple[str, ...]
    floats: int
    loops: tuple[Loop, ...] | None

    @property
    def problems(self) -> tuple[str, ...]:
        """What makes the kernel's bits another thing than the CPU's, or unsure; empty if there is nothing."""
        found = []
        if self.calls:
            found.append(f"calls of functions that were not inlined: {self.calls}")
        if self.contracted:
            found.append(
                f"multiplications contracted with an addition: {self.contracted} (round by softnum's functions)"
            )
        if self.approximate:
            found.append(f"operations that are not correctly rounded: {', '.join(sorted(set(self.approximate)))}")
        return tuple(found)

    def __str__(self) -> str:
        loop = f", inner loop {self.loops[0].instructions} instructions" if self.loops else ""
        return (
            f"{self.kernel} for {self.chip}: {self.registers} registers, {self.stack} bytes of local memory, "
            f"{self.spills} spilled, {self.shared} bytes shared, {self.calls} calls, {self.contracted} contracted, "
            f"{self.floats} floating-point operations{loop}"
        )


def missing_library() -> str | None:
    """What is missing for linking and how to get it; None if nothing is."""
    if _cuda.SIMULATOR:
        return "the simulator (NUMBA_ENABLE_CUDASIM) compiles nothing: unset it, in a new process"
    from cuda import pathfinder

    for library in ("nvvm", "nvrtc", "nvJitLink"):
        try:
            pathfinder.load_nvidia_dynamic_lib(library)
        except pathfinder.DynamicLibNotFoundError:
            return f"{library} is not installed: pip install 'softnum[cuda]'"
    return None


def _capability(chip: str) -> tuple:
    from numba.cuda.cudadrv.nvrtc import get_supported_ccs

    known = get_supported_ccs()
    match = _CHIP.fullmatch(chip)
    if not match or (int(match[1]), int(match[2])) not in known:
        names = ", ".join(f"sm_{major}{minor}" for major, minor in known)
        raise ValueError(f"{chip!r} is no chip that the installed compilers know: {names}")
    return (int(match[1]), int(match[2])) + ((match[3],) if match[3] else ())


@contextmanager
def _in_place_of_a_gpu(capability):
    """Numba asks the GPU for its capability when a kernel calls a device function written in Python."""
    from numba.cuda import dispatcher

    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    try:
        yield
    finally:
        dispatcher.get_current_device = before


def _parts(kernel, arguments, chip: str) -> list[bytes]:
    """The kernel and the C functions that it calls, as the compilers hand them to the linker."""
    from numba import types
    from numba.core.errors import NumbaError

    capability = _capability(chip)
    options = {name: kernel.targetoptions.get(name) for name in ("fastmath", "launch_bounds")}
    with _in_place_of_a_gpu(capability):
        try:
            parts, _ = _cuda.cuda.compile_all(
                kernel.py_func, types.void(*arguments), cc=capability, device=False, abi="numba", output="ltoir",
                **options,
            )  # fmt: skip
        except NumbaError as error:  # of a function of the user's
            raise TypeError(f"Numba cannot compile it for the device: {error}") from None
    return [part if isinstance(part, bytes) else part.code for part in parts]


def _linked(parts: list[bytes], *options: str) -> tuple[bytes, str]:
    """(machine code, or PTX with "-ptx"; what the linker says)"""
    from cuda.bindings import nvjitlink

    handle = nvjitlink.create(len(options) + 1, ["-lto", *options])
    try:
        try:
            for i, part in enumerate(parts):
                nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, part, len(part), f"part{i}")
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError as error:
            log = bytearray(nvjitlink.get_error_log_size(handle))
            nvjitlink.get_error_log(handle, log)
            raise ValueError(f"the linker refuses the kernel: {error}\n{log.decode().rstrip(chr(0))}") from None
        log = bytearray(nvjitlink.get_info_log_size(handle))
        if log:
            nvjitlink.get_info_log(handle, log)
        if "-ptx" in options:
            result = bytearray(nvjitlink.get_linked_ptx_size(handle))
            nvjitlink.get_linked_ptx(handle, result)
        else:
            result = bytearray(nvjitlink.get_linked_cubin_size(handle))
            nvjitlink.get_linked_cubin(handle, result)
        return bytes(result), log.decode().rstrip("\0")
    finally:
        nvjitlink.destroy(handle)


def _ptx(parts, chip: str, *options: str) -> str:
    return _linked(parts, f"-arch={chip}", "-ptx", *options)[0].decode().rstrip("\0")


def link(kernel, arguments, chip: str) -> tuple[bytes, str]:
    """One kernel's machine code and its PTX.

    Parameters
    ----------
    kernel : a ``cuda.jit`` kernel, not yet launched
    arguments : tuple of Numba types
    chip : str
        For example "sm_90".

    Returns
    -------
    (bytes, str)
    """
    parts = _parts(kernel, arguments, chip)
    return _linked(parts, f"-arch={chip}")[0], _ptx(parts, chip)


def _float_operations(ptx: str) -> list[str]:
    """The floating-point operations in PTX, without what moves, compares or selects."""
    names = _OPERATION.findall(ptx)
    return [name for name in names if _FLOAT.search(name) and not name.startswith(_MOVES)]


def _is_approximate(name: str) -> bool:
    return ".approx" in name or ".full" in name or ".ftz" in name


def _count(pattern: str, text: str) -> int:
    return max((int(n) for n in re.findall(pattern, text)), default=0)


def examine(name: str, kernel, arguments, chip: str, loops: bool = True) -> DeviceCode:
    """Link one kernel for one chip and say what it became.

    Parameters
    ----------
    name : str
    kernel, arguments, chip
        As in `link`.
    loops : bool
        Whether to look for loops, which takes as long as all the rest.

    Returns
    -------
    DeviceCode
    """
    parts = _parts(kernel, arguments, chip)
    machine, log = _linked(parts, f"-arch={chip}", "-verbose")
    ptx = _ptx(parts, chip)
    floats = _float_operations(ptx)
    unnamed = tuple(operation for operation in floats if _MAY_FUSE.fullmatch(operation))
    text = instructions(machine) if loops else None
    return DeviceCode(
        kernel=name,
        chip=chip,
        registers=_count(r"Used (\d+) registers", log),
        stack=_count(r"(\d+) bytes stack frame", log),
        spills=sum(_count(rf"(\d+) bytes spill {what}", log) for what in ("stores", "loads")),
        shared=_count(r"(\d+) bytes smem", log),
        size=len(machine),
        calls=sum(operation.split(".")[0] == "call" for operation in _OPERATION.findall(ptx)),
        contracted=_contracted(parts, chip, ptx, unnamed, machine),
        unnamed=unnamed,
        approximate=tuple(filter(_is_approximate, floats)),
        floats=len(floats),
        loops=None if text is None else _loops(text),
    )


def _fused(operations: list[str]) -> int:
    return sum(operation.startswith("fma.") for operation in operations)


def _contracted(parts, chip: str, ptx: str, unnamed, machine: bytes) -> int:
    """How many multiplications were contracted: none if it is the same code where contraction is forbidden."""
    floats = _float_operations(ptx)
    if not unnamed and not _fused(floats):
        return 0
    apart = _ptx(parts, chip, "-fma=0")
    if _ROUNDS_ANYWAY.sub(r"\1.\2", ptx) != _ROUNDS_ANYWAY.sub(r"\1.\2", apart):
        return max(1, _fused(floats) - _fused(_float_operations(apart)))
    if not unnamed:
        return 0
    # the assembler may yet contract what is left without a name
    forbidden = _linked(parts, f"-arch={chip}", "-fma=0")[0]
    return len(unnamed) if _code(forbidden) != _code(machine) else 0


def _code(elf: bytes) -> list[bytes]:
    """The sections of instructions of an ELF file of 64 bits."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(elf[at : at + size], "little")

    table, size, count = number(40, 8), number(58, 2), number(60, 2)
    headers = [table + i * size for i in range(count)]
    executable = [h for h in headers if number(h + 4, 4) == 1 and number(h + 8, 8) & 4]  # SHT_PROGBITS, SHF_EXECINSTR
    return [elf[number(h + 24, 8) :][: number(h + 32, 8)] for h in executable]


# ---- instructions --------------------------------------------------------------------------------------------------

_LINE = re.compile(
    r"^\s*(?P<label>\.L_x_\d+):|^\s*(?:/\*[0-9a-f]+\*/)?\s*(?:@!?U?P[0-9T]+\s+)?"
    r"(?P<name>[A-Z][A-Z0-9_]*)(?P<rest>[^;]*);",
    re.MULTILINE,
)
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")


def _disassembler() -> str | None:
    """nvdisasm of the package nvidia-cuda-nvdisasm, or of a toolkit."""
    try:
        import nvidia

        for folder in nvidia.__path__:
            for path in Path(folder).glob("*/bin/nvdisasm*"):
                return str(path)
    except ImportError:
        pass
    return shutil.which("nvdisasm") or shutil.which("nvdisasm", path="/usr/local/cuda/bin")


def instructions(machine: bytes) -> list[tuple[str | None, str, str]] | None:
    """Machine code as (label or None, instruction's name, the rest), in order; None without a disassembler."""
    program = _disassembler()
    if program is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(machine)
        file.flush()
        done = subprocess.run([program, "-c", file.name], capture_output=True, text=True)
    if done.returncode:
        return None  # an older one, which does not know the chip
    return [(m["label"], m["name"] or "", m["rest"] or "") for m in _LINE.finditer(done.stdout)]


def _loops(text) -> tuple[Loop, ...]:
    """The innermost loops: from a label to the last jump back to it, with no other such jump inside."""
    labels = {label: i for i, (label, _, _) in enumerate(text) if label}
    spans = {}
    for i, (_, name, rest) in enumerate(text):
        target = _TARGET.search(rest) if name == "BRA" else None
        if target and labels.get(target[1], i) < i - 2:  # a jump to itself ends every program
            spans[labels[target[1]]] = i
    inner = [
        (start, end)
        for start, end in spans.items()
        if not any((s, e) != (start, end) and start <= s and e <= end for s, e in spans.items())
    ]
    found = [Counter(name for _, name, _ in text[start : end + 1] if name) for start, end in inner]
    loops = [Loop(sum(counts.values()), dict(counts.most_common())) for counts in found]
    return tuple(sorted(loops, key=lambda loop: -loop.instructions))
