"""Pinned: public names and signatures, verbs and exit codes, schemas of files, symbols of the DPI library."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

__all__ = ["commands", "names", "schemas", "symbols"]

PACKAGES = (
    "softnum", "softnum.arrays", "softnum.collectives", "softnum.formats", "softnum.inspect", "softnum.kernels",
    "softnum.mac", "softnum.mac.products", "softnum.ops", "softnum.reference", "softnum.tile", "softnum.train",
    "softnum.tta", "softnum.tta.outcomes", "softnum.tta.parallelism", "softnum.tta.traces", "softnum.tta.workloads",
    "softnum.tta.accuracy", "softnum.tta.architectures", "softnum.tta.estimates", "softnum.tta.html",
    "softnum.tta.simulators", "softnum.tta.timings", "softnum.vectors", "softnum.vectors.cocotb", "softnum.train.nets",
    "softnum.train.tasks",
)  # fmt: skip
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# what a name of softnum's is called where it is defined may change; the name itself may not
_PLACE = re.compile(r"\bsoftnum(?:\.\w+)+\.(?=[A-Za-z_]\w*\b)")


def _signature(thing) -> str:
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return "(...)"
    return _PLACE.sub("", _ADDRESS.sub("", text))


def _described(thing) -> str:
    if inspect.isclass(thing):
        return "class" + _signature(thing)
    if callable(thing):
        return "function" + _signature(thing)
    text = _PLACE.sub("", _ADDRESS.sub("", repr(thing)))
    return f"{type(thing).__name__} {text if len(text) < 200 else f'of {len(thing)}'}"


def names() -> Iterator[tuple[str, str]]:
    """(qualified name, kind and signature) of all that is public, members of classes too."""
    for package in PACKAGES:
        module = import_module(package)
        public = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        for name in sorted(public):
            thing = getattr(module, name)
            if inspect.ismodule(thing):
                continue
            yield f"{package}.{name}", _described(thing)
            if not inspect.isclass(thing):
                continue
            for member in sorted(dir(thing)):
                if member.startswith("_") or member in dir(dict) + dir(int) + dir(Exception):
                    continue
                value = inspect.getattr_static(thing, member)
                if isinstance(value, (staticmethod, classmethod)):
                    value = value.__func__
                kind = "property" if isinstance(value, property) or not callable(value) else _described(value)
                yield f"{package}.{name}.{member}", kind
            if dataclasses.is_dataclass(thing):
                fields = ", ".join(field.name for field in dataclasses.fields(thing))
                yield f"{package}.{name} (fields)", fields


#: command -> what it is for: its exit code and output are pinned
COMMANDS = (
    "--version", "formats", "formats e5m2", "formats e4m3fn", "formats q4.4", "formats nvfp4", "formats e5m2x", "units",
    "units nvidia_h100_e4m3", "units nvidia_h100", "designs", "designs c-wang-fp8", "designs nothing",
    "vectors generate --op add --format e4m3fn --rounding rtz -o out.txt", "vectors check out.txt",
    "vectors generate --op dot --unit nvidia_v100_fp16 --length 4 --with-c --count 50 -o dot.txt",
    "vectors check dot.txt",
    "vectors generate --op nothing --format e4m3fn -o x.txt", "vectors check missing.txt", "timings missing.txt",
    "timings --formats", "estimate mlp --device v100 --batch 32", "estimate mlp --device nothing",
    "memory lenet5 --design c-wang-fp8 --batch 32,128", "memory nothing --design c-wang-fp8",
    "parallel mlp --device v100 --batch 64 --workers 2,8 --bandwidth 10Gb/s", "train mlp --design nothing",
    "train mlp --design c-wang-fp8 --epochs 1 --samples 64 --held-out 32 --out run", "train nothing --design a-float32",
    "study new study.toml", "study run missing.toml", "report missing", "tta --designs nothing", "rtl --help",
    "nothing",     "train mlp --design c-wang-fp8 --explain",
)  # fmt: skip


def commands() -> Iterator[tuple[str, str]]:
    """(verb and option, what it takes), and (command, exit code and digest of what it prints)."""
    import typer

    from softnum.cli import build_app

    program = typer.main.get_command(build_app())

    def walk(command, path):
        for parameter in command.params:
            opts = "/".join([*parameter.opts, *parameter.secondary_opts])
            default = parameter.default() if callable(parameter.default) else parameter.default
            kind = getattr(parameter, "type", None)
            facts = f"{getattr(kind, 'name', kind)} default={default!r} required={parameter.required}"
            yield f"{path} {opts}", facts
        for name, child in sorted(getattr(command, "commands", {}).items()):
            yield from walk(child, f"{path} {name}")

    yield from walk(program, "softnum")


def runs() -> Iterator[tuple[str, str]]:
    """(command, exit code and the digest of what it prints, and of its files), one after the other in one folder."""
    import os
    import sys

    from tests.pins.inputs import digest

    environment = os.environ | {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            done = subprocess.run(
                [sys.executable, "-m", "softnum", *command.split()], cwd=folder, env=environment, capture_output=True,
                encoding="utf-8", timeout=300, check=False,
            )  # fmt: skip
            printed = (done.stdout + done.stderr).replace(folder, "")
            printed = re.sub(r"\d+(\.\d+)? ?(s|ms|us|µs|seconds)\b", "TIME", printed)
            # how a usage error and a list of options are laid out is typer's, and how long training took is no pin
            quiet = command in ("nothing", "rtl --help", "--version") or command.endswith("--out run")
            said = "" if quiet else f", prints {digest(printed)}"
            yield command, f"exit code {done.returncode}{said}"


def _keys(value, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key in value:
            yield f"{path}/{key}"
            yield from _keys(value[key], f"{path}/{key}")
    elif isinstance(value, list) and value:
        yield from _keys(value[0], path + "[]")


def schemas() -> Iterator[tuple[str, str]]:
    """(file, the paths of its keys)."""
    from softnum import train, tta, vectors

    with tempfile.TemporaryDirectory() as folder:
        settings = train.Settings(network="mlp", epochs=1, samples=64, held_out=32, batch=32)
        path = train.run(train.load_design("c-wang-fp8"), settings, seed=1, out=folder, statistics=1)
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        yield "record, first row", " ".join(_keys(rows[0]))
        yield "record, rows", " ".join(sorted({" ".join(_keys(row)) for row in rows[1:]}))
        yield "record, name", path.name
        others = sorted(p.name for p in Path(folder).rglob("*") if p.is_file() and p != path)
        yield "record, files beside it", " ".join(others)
        for dialect in vectors.DIALECTS:
            spec = vectors.VectorSpec.make("add", "binary16", rounding="stochastic", stochastic_bits=8)
            file = Path(folder) / "head"
            try:
                vectors.write(vectors.plan(spec, count=1, seed=1), file, dialect=dialect)
            except ValueError as error:
                yield f"vectors, {dialect}", str(error)
                continue
            text = " ".join(sorted(_arrays(file))) if dialect == "npz" else file.read_text()
            yield f"vectors, {dialect}", text
    results = Path(__file__).resolve().parents[2] / "docs" / "two-networks" / "mlp" / "results.json"
    written = json.loads(results.read_text())
    yield "results.json", " ".join(_keys(written))
    yield "results.json, read", type(tta.read_results(results)).__name__


def _arrays(path) -> list[str]:
    import numpy as np

    with np.load(path) as file:
        return [f"{name}:{file[name].dtype}" for name in file.files]


def symbols() -> Iterator[tuple[str, str]]:
    """(symbol of the DPI library, its kind), and the package's text for simulators."""
    import hashlib

    from softnum.vectors import build_simulator_libraries

    with tempfile.TemporaryDirectory() as folder:
        for path in build_simulator_libraries(folder, compiler="cc -O0"):  # the names are the same
            if path.suffix == ".so":
                listed = subprocess.run(
                    ["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True
                )
                for line in listed.stdout.splitlines():
                    _, kind, name = line.split()
                    yield name, kind
            elif path.suffix in (".sv", ".vh"):
                yield path.name, hashlib.sha256(path.read_bytes()).hexdigest()[:16]
