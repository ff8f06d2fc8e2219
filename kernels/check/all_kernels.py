"""Every kernel as machine code for real chips, without a GPU: ``python -m softnum.kernels.check``.

With arguments, the kernels of some units: ``python -m softnum.kernels.check nvidia_h100_fp16 my_units:mad``. An unknown
or not inlined function, a contracted multiplication, or an operation that is not correctly rounded is an error; so is,
in softnum's own kernels, a rounding that is not named, and local memory in a kernel that promises to be fast.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

from softnum.kernels.check.device_code import kernels_of
from softnum.kernels.check.link import CHIPS, DeviceCode, examine, missing_library

__all__ = ["examples", "faults", "main"]

_SMALLER = ("sm_75", "sm_80")  # whose compilers take more registers for the same: slow, not wrong
# a module's kernels are linked for these chips in turn, and those that promise to be fast for the first besides
TURNS = ("sm_90", "sm_100", "sm_75", "sm_120", "sm_80")


def modules() -> list[str]:
    """The modules that have kernels."""
    from softnum.kernels import device

    prefix = f"{device.__name__}."
    names = sorted(info.name.removeprefix(prefix) for info in pkgutil.walk_packages(device.__path__, prefix))
    return [name for name in names if hasattr(importlib.import_module(f"softnum.kernels.device.{name}"), "examples")]


def examples(name: str) -> Iterator[tuple]:
    """(name, kernel, types of its arguments, whether it promises to be fast, whether it may call functions) of each of
    a module's examples."""
    for label, kernel, types, *told in importlib.import_module(f"softnum.kernels.device.{name}").examples():
        fast, calls = (*told, False, False)[:2]
        yield f"{name}: {label}", kernel, types, fast, calls


def faults(code: DeviceCode, fast: bool, calls: bool = False) -> list[str]:
    """What is wrong with one of softnum's own kernels.

    fast: it promises not to need local memory from sm_90 on; calls: it computes elementary functions, which stay apart
    (csrc/softnum/device/functions.h).
    """
    found = list(replace(code, calls=0).problems if calls else code.problems)
    if code.unnamed:
        found.append(f"operations whose rounding is not named: {', '.join(sorted(set(code.unnamed)))}")
    if fast and code.chip not in _SMALLER and (code.stack or code.spills):
        found.append(f"{code.stack} bytes of local memory and {code.spills} spilled, in a kernel that is to be fast")
    return found


def _chips(i: int, fast: bool, which: str) -> tuple[str, ...]:
    """What example i of a module is linked for: which is "turns", "first" or "all"."""
    if which == "all":
        return CHIPS
    if which == "first":
        return TURNS[:1] if i == 0 else ()
    return tuple(dict.fromkeys((TURNS[i % len(TURNS)], *TURNS[:fast])))


def _of_module(name: str, which: str) -> list[tuple[str, list[str]]]:
    """What a module's examples are, and the faults of each."""
    found = []
    try:
        for i, (label, kernel, types, fast, calls) in enumerate(examples(name)):
            for chip in _chips(i, fast, which):
                code = examine(label, kernel, types, chip, loops=False)
                found.append((str(code), faults(code, fast, calls)))
    except Exception as error:  # of a compiler, say: the other modules are checked all the same
        found.append((f"{name}: after {len(found)} kernels", traceback.format_exception_only(error)))
    return found


def _unit(text: str):
    from softnum.mac.presets import unit

    module, colon, name = text.partition(":")
    if not colon:
        return unit(text)
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{text!r} is neither a preset's name nor module:unit: {error}") from None


def _of_units(units: list[str], chips: list[str]) -> Iterator[tuple[str, list[str]]]:
    for text in units:
        for (name, kernel, types, *_), chip in itertools.product(kernels_of(_unit(text)), chips):
            code = examine(name, kernel, types, chip)
            yield str(code), list(code.problems)


def _of_modules(which: str, processes: int) -> Iterator[tuple[str, list[str]]]:
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for found in pool.map(_of_module, modules(), itertools.repeat(which)):
            yield from found


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each kernel and chip; 0 if all is well, 1 if not, 2 if a library, unit or kernel is missing."""
    parser = argparse.ArgumentParser(prog="python -m softnum.kernels.check", description=__doc__.splitlines()[0])
    parser.add_argument("units", nargs="*", help="presets' names or module:unit; softnum's own kernels without any")
    parser.add_argument("--chip", action="append", help=f"for units: not {', '.join(CHIPS)}; may be repeated")
    parser.add_argument(
        "--which", choices=("turns", "first", "all"), default="turns",
        help="of softnum's own: each kernel for a chip in turn; each module's first, for one; each for all",
    )  # fmt: skip
    parser.add_argument("--processes", type=_at_least_one, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args(arguments)
    if missing := missing_library():
        print(missing, file=sys.stderr)
        return 2
    bad = 0
    try:
        reports = (
            _of_units(options.units, options.chip or CHIPS)
            if options.units
            else _of_modules(options.which, options.processes)
        )
        for code, wrong in reports:
            bad += bool(wrong)
            print(f"BAD: {code}: {'; '.join(wrong)}" if wrong else f"ok: {code}", flush=True)
    except (TypeError, ValueError) as error:  # what is no unit, or one without a kernel, or no chip
        print(error, file=sys.stderr)
        return 2
    return int(bad != 0)
