"""User C is tried in a child process before it is loaded here: it may crash, hang, or answer differently each time.

Every function of the library is called on the same operands twice, the second time from the last operand to the first,
with other garbage in the results' place. What passes is remembered beside the library, which is then not tried again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path

import numpy as np

from softnum.runtime.atomic import atomic_file

__all__ = ["Call", "sample_codes", "sample_floats", "try_out"]

SAMPLES = 10**6
_BLOCK = 4096
_START = 60.0  # seconds that a busy machine may take to start the child, which are not the function's
_CHILD = Path(__file__).with_name("trial_child.py")


@dataclass(frozen=True)
class Call:
    """A function to try: ``void symbol(int64_t n, const T0 *, const T1 *, ..., R *results)`` of the library.

    ``operands()`` are arrays of one length, of the types T; ``result`` is R's dtype; ``what`` and ``where`` are the
    user's name for it and the line it stands in (file:line). Errors show the last ``shown`` operands; None: all.
    """

    symbol: str
    operands: Callable[[], Sequence[np.ndarray]]
    result: object
    what: str
    where: str = ""
    shown: int | None = None


def sample_codes(*bits: int, samples: int = SAMPLES) -> list[np.ndarray]:
    """Operands that are codes of so many bits: all combinations up to 16 bits together, else a fixed sample of 10**6.

    >>> from softnum.formats.custom.trial import sample_codes
    >>> [a.tolist() for a in sample_codes(1, 2)]
    [[0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3]]
    """
    kinds = [np.min_scalar_type((1 << n) - 1) for n in bits]
    if sum(bits) <= 16:
        grid = np.indices([1 << n for n in bits]).reshape(len(bits), -1)
        return [np.ascontiguousarray(g, kind) for g, kind in zip(grid, kinds, strict=True)]
    edges = [sorted({c % (1 << n) for e in range(n + 1) for c in ((1 << e) - 1, 1 << e, -(1 << e))}) for n in bits]
    few = [sorted({*e[:: max(1, len(e) // 40)], e[-1]}) for e in edges]
    corners = np.array(list(product(*few)), np.uint64)
    generator = np.random.Generator(np.random.PCG64(20180625))
    drawn = [generator.integers(0, 1 << n, samples - len(corners), np.uint64, endpoint=False) for n in bits]
    return [np.concatenate([c, d]).astype(k) for c, d, k in zip(corners.T, drawn, kinds, strict=True)]


def sample_floats(dtype, samples: int = SAMPLES) -> np.ndarray:
    """10**6 values of float32 or float64: every sign, exponent and leading bits of the fraction, NaNs and infinities.

    >>> from softnum.formats.custom.trial import sample_floats
    >>> sample_floats("float32").size
    1000000
    """
    dtype = np.dtype(dtype)
    bits = 8 * dtype.itemsize
    leading = np.arange(1 << 16, dtype=np.uint64) << np.uint64(bits - 16)
    generator = np.random.Generator(np.random.PCG64(754))
    near = leading + generator.integers(0, 3, leading.size, np.uint64) - np.uint64(1)
    drawn = generator.integers(0, 1 << bits, samples - 2 * leading.size, np.uint64, endpoint=False)
    return np.concatenate([leading, near, drawn]).astype(f"u{dtype.itemsize}").view(dtype)


def try_out(library, calls: Sequence[Call], *, what: str = "C source", timeout: float = 10.0) -> None:
    """Call functions of a library in a child process, twice; ValueError where they do not do the same twice.

    Parameters
    ----------
    library : str or path
        What `softnum.formats.custom.compiler.compile_c` returns. A library that has passed is not tried again.
    calls : sequence of Call
    what : str
        What errors begin with.
    timeout : float
        Seconds that 4096 calls may take, or one of them when a crash is looked into.

    Raises
    ------
    ValueError
        If a function crashes, hangs, or answers differently the second time: the message names it, the line it stands
        in and the operands.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.formats.custom import compiler
    >>> from softnum.formats.custom import trial
    >>> text = compiler.preprocess(
    ...     "#pragma GCC visibility push(default)\\n"
    ...     "void half(long n, const unsigned char *a, unsigned char *out) { while (n--) out[n] = 128 / a[n]; }"
    ... )
    >>> half = trial.Call("half", lambda: trial.sample_codes(8), np.uint8, "half", "mine.c:1")
    >>> trial.try_out(compiler.compile_c(text), [half])
    Traceback (most recent call last):
        ...
    ValueError: C source: half (mine.c:1) crashes (SIGFPE) on 0x00
    """
    library = Path(library)
    passed = library.with_suffix(".passed")
    key = sha256(json.dumps([[c.symbol, np.dtype(c.result).str, c.what] for c in calls]).encode()).hexdigest()
    if key in _passed(passed):
        return
    with tempfile.TemporaryDirectory() as folder:
        task = _task(Path(folder), library, calls)
        ended, at, told = _run(task, timeout)
        if ended is not None:
            call = calls[at[0]]
            operands = _operands(task, at[0], call)
            where = _one_by_one(task, at, timeout) if ended != "ends the process" else None
            raise ValueError(f"{what}: {_named(call)} {ended}{_on(operands, where, at[1])}")
        for i, index, first, second in json.loads(told):
            operands = _operands(task, i, calls[i])
            raise ValueError(
                f"{what}: {_named(calls[i])} is not deterministic{_on(operands, index, 0)}: it returned {first}, then "
                f"{second}; a result must depend on the operands only"
            )
    with atomic_file(passed) as file:
        file.write("\n".join([*_passed(passed), key]).encode())


def _passed(path: Path) -> list[str]:
    """What a library has passed: keys of calls; none where the file is absent or damaged, which only means a trial."""
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return []


def _operands(task: dict, i: int, call: Call) -> list[np.ndarray]:
    paths = task["calls"][i]["operands"]
    shown = paths[len(paths) - (call.shown or len(paths)) :]
    return [np.load(path, mmap_mode="r", allow_pickle=False) for path in shown]


def _named(call: Call) -> str:
    return f"{call.what} ({call.where})" if call.where else call.what


def _on(operands, index, block) -> str:
    if index is None:
        return f" on operands {block} to {block + _BLOCK - 1} of the trial"
    digits = [(2 * a.dtype.itemsize, a[index]) for a in operands]
    return " on " + ", ".join(f"0x{int(x):0{n}x}" if x.dtype.kind == "u" else f"{x.item()!r}" for n, x in digits)


def _task(folder: Path, library: Path, calls) -> dict:
    described = []
    for i, call in enumerate(calls):
        arrays = [np.ascontiguousarray(a) for a in call.operands()]
        paths = []
        for j, array in enumerate(arrays):
            paths.append(str(folder / f"{i}-{j}.npy"))
            np.save(paths[-1], array)
        described.append({"symbol": call.symbol, "operands": paths, "result": np.dtype(call.result).str})
    progress = folder / "progress"
    progress.write_bytes(bytes(24))
    return {"library": str(library), "calls": described, "progress": str(progress), "block": _BLOCK}


def _run(task: dict, timeout: float):
    """(how the child ended early or None, (call, first operand of the block), what it printed)"""
    progress = np.memmap(task["progress"], np.int64, "r+", shape=(3,))
    progress[:] = -1  # until the first call
    command = [sys.executable, "-P", str(_CHILD)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as complaint:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=complaint)
        try:
            child.stdin.write(json.dumps(task).encode())
            child.stdin.close()
            hung = not _ended(child, progress, timeout)
        finally:
            child.kill()
            child.wait()
        at = (max(int(progress[0]), 0), max(int(progress[1]), 0))
        out.seek(0)
        told = out.read().decode()
        if hung:
            return f"does not come back within {timeout:g} s", at, told
        if child.returncode < 0:
            return f"crashes ({_signal(-child.returncode)})", at, told
        if not told.endswith("]"):  # exit() in user code, or the child itself could not run
            complaint.seek(0)
            said = complaint.read().decode(errors="replace").strip()
            if "Traceback" in said:
                raise RuntimeError(f"the trial of {task['library']} failed:\n{said}")
            return "ends the process", at, told
        return None, at, told


def _ended(child, progress, timeout: float) -> bool:
    """Whether the child ends; False if it stays at one block for so long."""
    seen, since = None, time.monotonic()
    while True:
        try:
            child.wait(0.02)
        except subprocess.TimeoutExpired:
            now = tuple(progress)
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > (timeout if now[0] >= 0 else max(timeout, _START)):
                return False
        else:
            return True


def _one_by_one(task: dict, at, timeout: float) -> int | None:
    """The operand of a block that a function crashes or hangs on; None if it does not do so alone."""
    call, first = at
    again = {**task, "calls": [task["calls"][call]], "block": 1, "range": [first, first + _BLOCK]}
    ended, (_, index), _ = _run(again, timeout)
    return index if ended is not None else None


def _signal(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
