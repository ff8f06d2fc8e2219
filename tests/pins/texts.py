"""Pinned: files of vectors of every operation, unit and dialect, and the kernels' source and machine code."""

from __future__ import annotations

import hashlib
import pkgutil
import re
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from softnum import vectors
from tests.pins.inputs import MODE_FAMILIES, digest
from tests.pins.products import units

__all__ = ["device_code", "vector_files"]

_FORMATS = ("e5m2", "e4m3fn", "binary16", "bfloat16", "binary32", "binary64", "e2m1fn", "q4.4", "binary8p3se")
_OPERATIONS = (
    "add",
    "multiply",
    "divide",
    "fma",
    "sqrt",
    "remainder",
    "minimum",
    "exp",
    "pow",
)


def _lines(spec, dialect: str, count: int) -> str:
    """The digest of a file, or of the error; npz: of its arrays."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.bin"
        try:
            vectors.write(vectors.plan(spec, count=count, seed=9), path, dialect=dialect)
        except (ValueError, TypeError) as error:
            return f"{type(error).__name__}: {str(error).replace(folder, '')[:160]}"
        if dialect == "npz":
            import numpy as np

            with np.load(path) as file:
                return digest(*((name, file[name]) for name in sorted(file.files) if file[name].dtype.kind in "uif"))
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def vector_files() -> Iterator[tuple[str, str]]:
    """(case, digest of the file)."""
    for fmt in _FORMATS:
        for op in _OPERATIONS:
            for mode in MODE_FAMILIES:
                try:
                    spec = vectors.VectorSpec.make(op, fmt, rounding=mode)
                except (ValueError, TypeError) as error:
                    yield f"{op} {fmt} {mode}", f"{type(error).__name__}: {str(error)[:160]}"
                    continue
                yield f"{op} {fmt} {mode}", _lines(spec, "softnum", 900)
    for dialect in vectors.DIALECTS:
        for op, fmt in (("add", "binary16"), ("fma", "binary32"), ("sqrt", "e5m2"), ("multiply", "e4m3fn")):
            yield f"{dialect} {op} {fmt}", _lines(vectors.VectorSpec.make(op, fmt), dialect, 700)
    for name, unit in units().items():
        if name == "custom":  # vectors are of units that round as a format does
            continue
        for op in vectors.UNIT_OPERATIONS:
            for with_c in (False, True):
                case = f"{op} {name}{' c' if with_c else ''}"
                try:
                    spec = vectors.UnitSpec.make(op, unit, with_c=with_c)
                except (ValueError, TypeError) as error:
                    yield case, f"{type(error).__name__}: {str(error)[:100]}"
                    continue
                yield case, _lines(spec, "softnum" if op != "gemm" else "jsonl", 40)


_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_SPACE = re.compile(r"\s+")


def _modules(package: str) -> list:
    found = import_module(package)
    return [found] + [import_module(info.name) for info in pkgutil.walk_packages(found.__path__, package + ".")
                      if not info.name.endswith("__main__")]  # fmt: skip


def device_code() -> Iterator[tuple[str, str]]:
    """(kernel and number, digests of the C text that it is compiled from, and of its machine code and resources).

    Numba must not be in its simulator (NUMBA_ENABLE_CUDASIM=0). The text counts without comments and spaces, the
    machine code without symbols, so that files may move.
    """
    import _numba_cuda_redirector  # noqa: F401  where PYTHONPATH has numba-cuda, its .pth file is not read
    from numba import cuda

    texts: list[str] = []
    make = cuda.CUSource

    def recorded(text, *args, **kwargs):
        if isinstance(text, str):  # Numba's own are streams
            texts.append(_SPACE.sub(" ", _COMMENT.sub(" ", text)))
        return make(text, *args, **kwargs)

    cuda.CUSource = recorded
    modules = _modules("softnum.kernels")
    link = next(m for m in modules if hasattr(m, "DeviceCode") and hasattr(m, "_linked"))
    chips = ("sm_90", "sm_100", "sm_75", "sm_120", "sm_80")
    found = []
    for module in modules:
        if not hasattr(module, "examples") or hasattr(module, "faults"):
            continue
        for i, (label, kernel, types, *_told) in enumerate(module.examples()):
            chip = chips[i % len(chips)]
            machine, log = link._linked(link._parts(kernel, types, chip), f"-arch={chip}", "-verbose")
            numbers = re.findall(r"Used \d+ registers|\d+ bytes (?:stack frame|spill stores|spill loads|smem)", log)
            code = hashlib.sha256(b"".join(link._code(machine))).hexdigest()[:16]
            found.append((f"{label} {chip}", f"{code} {', '.join(numbers)}"))
    cuda.CUSource = make
    names: dict[str, int] = {}
    for label, text in sorted(found):
        names[label] = names.get(label, 0) + 1
        yield f"{label} ({names[label]})", text
    for number, text in enumerate(sorted({hashlib.sha256(t.encode()).hexdigest()[:16] for t in texts})):
        yield f"source {number}", text
