"""Elementwise operations that wait until a result is read, and are then one launch with what they are computed from.

An operation on arrays makes a `Step` of a graph. Where elements are asked for, a kernel computes the step with all
those before it that still wait and have as many elements, in registers, and writes what may be read again. So a chain
of operations is one launch, by the definitions that single operations have (`Computation`), each with its own rounding
and random words; nobody states a chain.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from re import compile as pattern

import numpy as np

from softnum.kernels.device.elementwise.computations import Computation
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda
from softnum.kernels.device.runtime.source import Entry, Library

__all__ = ["MOST_STEPS", "Chain", "Pending", "Step", "can_wait", "compute_all", "example", "examples", "placement"]

MOST_STEPS, MOST_LOADS = 12, 16  # of a chain
_GROUP = 4  # elements of a thread: those of one Philox counter
#: what the elements of an operand are
_NUMBER, _SINGLE, _WHOLE, _SPREAD, _TILED = "number", "single", "whole", "spread", "tiled"
#: the numbers that say where the element of a result is
_NUMBERS = {_SPREAD: ("inner", "count"), _TILED: ("rows", "columns", "height", "width")}
_OWN = pattern(r"\b_(?=[a-z])")


@dataclass(frozen=True)
class Chain:
    """What a kernel computes of an element, one operation after the other.

    Parameters
    ----------
    loads : tuple of (str, str)
        Of each operand its type and what its elements are: "number", "single", "whole" (an element for each result),
        "spread" (element ``i // inner % count`` for result i) or "tiled" (that of result i's tile: tiles.h).
    steps : tuple of (Computation, bool, tuple of int)
        The computation, whether it takes random words, and its operands: first the loads, then the steps, by number.
    stores : tuple of int
        The steps whose results are written.
    wide : bool
        Whether all that is whole is aligned to four elements.
    """

    loads: tuple[tuple[str, str], ...]
    steps: tuple[tuple[Computation, bool, tuple[int, ...]], ...]
    stores: tuple[int, ...]
    wide: bool

    def library(self) -> Library:
        """The entry ``run``, of four elements or fewer."""
        texts = list(dict.fromkeys(computation.constants for computation, _, _ in self.steps))
        names = {text: f"_of{i}_" for i, text in enumerate(texts)}
        headers = dict.fromkeys(name for computation, _, _ in self.steps for name in computation.header.split())
        arguments, lines, w = [], [], int(self.wide)
        for i, (kind, what) in enumerate(self.loads):
            arguments.append(f"x{i}")
            lines.append(f"sn_u64 v{i}[4];")
            element = f"((const sn_u{kind[4:]} *)(sn_u64)x{i})"
            if what == _WHOLE:
                lines.append(f"sn_load_four{kind[4:]}({element} + at, count, {w}, v{i});")
            elif what == _SPREAD:
                arguments += [f"{name}{i}" for name in _NUMBERS[what]]
                place = f"(at + (j < count ? j : 0)) / inner{i} % count{i}"
                lines.append(f"for (sn_i32 j = 0; j < 4; j++) v{i}[j] = {element}[{place}];")
            elif what == _TILED:
                numbers = [f"{name}{i}" for name in _NUMBERS[what]]
                arguments += numbers
                headers["softnum/device/tiles.h"] = None
                lines.append(f"sn_load_four_of_tiles{kind[4:]}({element}, at, count, {', '.join(numbers)}, v{i});")
            else:
                one = f"{element}[0]" if what == _SINGLE else f"(sn_u64)x{i}"
                lines.append(f"v{i}[0] = v{i}[1] = v{i}[2] = v{i}[3] = {one};")
        first = len(self.loads)
        for i, (_, random, _) in enumerate(self.steps, first):
            lines.append(f"sn_u64 v{i}[4];")
            if random:
                arguments += [f"low{i}", f"high{i}"]
                lines.append(f"sn_u64 words{i}[4];")
                lines.append(f"sn_four_words((sn_u64)at >> 2, (sn_u32)low{i}, (sn_u32)high{i}, words{i});")
        lines.append("#if defined(__CUDACC_RTC__)\n#pragma unroll\n#endif")
        lines.append("for (sn_i32 j = 0; j < 4; j++) {")
        for i, (computation, random, operands) in enumerate(self.steps, first):
            lines.append("{")
            lines += [f"const sn_u64 in{k} = v{operand}[j];" for k, operand in enumerate(operands)]
            lines.append(f"const sn_u32 word = {f'(sn_u32)words{i}[j]' if random else '0'};")
            lines.append("sn_u64 out = 0;\n(void)word;")
            lines.append(_OWN.sub(names[computation.constants], computation.body.strip()))
            lines.append(f"v{i}[j] = out;\n}}")
        lines.append("}")
        for step in self.stores:
            bits = self.steps[step][0].output[4:]
            arguments.append(f"to{step}")
            lines.append(f"sn_store_four{bits}((sn_u{bits} *)(sn_u64)to{step} + at, count, {w}, v{first + step});")
        kinds = (*(("int64", name) for name in arguments), ("int64", "at"), ("int32", "count"))
        constants = "".join(_OWN.sub(names[text], text) for text in texts)
        header = " ".join([*headers, "softnum/device/fours.h"])
        return Library(constants, (Entry("run", "void", kinds, "\n".join(lines)),), header)


@lru_cache(maxsize=512)
def chain_kernel(chain: Chain):
    """The kernel ``(numbers, size)``: addresses and numbers, as the chain's entry takes them, in a tuple of int64."""
    group = _cuda.bind(chain.library()).run

    @cuda.jit
    def kernel(numbers, size):
        at = np.int64(cuda.grid(1)) * np.int64(_GROUP)
        if at < size:
            group(*numbers, at, np.int32(min(np.int64(_GROUP), size - at)))

    return kernel


def can_wait(computation: Computation) -> bool:
    """Whether a computation may be part of a chain: it cannot fail, looks nothing up, and is short."""
    return not (computation.may_fail or computation.rolled or computation.tables or computation.with_flags)


def placement(shape, within) -> tuple[int, int] | None:
    """(inner, count) by which element ``i // inner % count`` of an array, in C order, is that of element i of the array
    broadcast to another shape; None if there are none."""
    shape = (1,) * (len(within) - len(shape)) + tuple(shape)
    kept = [k for k, (n, m) in enumerate(zip(shape, within, strict=True)) if n == m and m > 1]
    if not kept:
        return 1, 1
    run = range(kept[0], kept[-1] + 1)
    if any(shape[k] != within[k] for k in run):
        return None
    return prod(within[kept[-1] + 1 :]), prod(shape)


class Step:
    """An operation on arrays that has not been computed.

    Parameters
    ----------
    computation : Computation
        One that `can_wait`.
    operands : sequence of (what, value, numbers)
        Of "number" the bits; else a `Pending` or an array on the device, of one dimension. Numbers: where the element
        of a result is, as a tuple; () but of what is "spread" or "tiled".
    dtype, size
        Of the result.
    key : (int, int), optional
        Of the random words.
    """

    __slots__ = ("computation", "dtype", "flat", "key", "operands", "pending", "size", "stream", "users")

    def __init__(self, computation: Computation, operands, dtype, size: int, key=None) -> None:
        self.computation, self.dtype, self.size, self.key = computation, np.dtype(dtype), size, key
        self.flat, self.users, self.stream = None, 0, _cuda.chosen_stream()
        self.pending: weakref.ref = lambda: None
        self.operands = [self._operand(*each) for each in operands]
        if len(_waiting(self)) > MOST_STEPS or len(_loads(_waiting(self))) > MOST_LOADS:
            self.operands = [(w, compute(x) if isinstance(x, Step) else x, n) for w, x, n in self.operands]
        for _, value, _ in self.operands:
            if isinstance(value, Step):
                value.users += 1

    def _operand(self, what: str, value, numbers: tuple):
        if isinstance(value, Pending):
            step = value.step
            if step.flat is None and what == _WHOLE and step.size == self.size and step.stream is self.stream:
                value = step
            else:
                value = compute(step)
        return what, value, numbers


class Pending:
    """The elements of a step, which are computed when `flat` is asked for; arrays that share them share this."""

    __slots__ = ("__weakref__", "step")

    def __init__(self, step: Step) -> None:
        self.step = step
        step.pending = weakref.ref(self)
        _all.add(self)

    @property
    def dtype(self) -> np.dtype:
        """The elements' type."""
        return self.step.dtype

    @property
    def flat(self):
        """The elements, as Numba's array of one dimension."""
        return compute(self.step)


_all: weakref.WeakSet[Pending] = weakref.WeakSet()  # those that nobody has read


def compute_all() -> None:
    """Compute what anything may ask for."""
    for pending in list(_all):
        compute(pending.step)


def _waiting(step: Step) -> list[Step]:
    """The steps that have to be computed for one, in an order in which that can be done."""
    found: dict[int, Step] = {}

    def visit(each):
        if each.flat is None and id(each) not in found:
            for _, value, _ in each.operands:
                if isinstance(value, Step):
                    visit(value)
            found[id(each)] = each

    visit(step)
    return list(found.values())


def _loads(steps) -> dict[tuple, tuple]:
    """What is read from memory, or given as a number, each once."""
    loads = {}
    for step in steps:
        for kind, operand in zip(step.computation.inputs, step.operands, strict=True):
            what, value, numbers = operand
            value = value.flat if isinstance(value, Step) else value
            if value is not None:
                loads.setdefault((kind, what, value if what == _NUMBER else id(value), numbers), operand)
    return loads


def _signed(x: int) -> int:
    return x - 2**64 if x >= 2**63 else x


def compute(step: Step):
    """The elements of a step: with it those of all steps that it needs and that something else may ask for.

    Kernels run on the stream that was chosen when the step was made.
    """
    if step.flat is None:
        with _cuda.running_on(step.stream):
            _compute(step)
    return step.flat


def _compute(step: Step) -> None:
    steps = _waiting(step)
    loads = _loads(steps)
    number = {key: i for i, key in enumerate(loads)}
    uses: dict[int, int] = {}
    place = {id(each): len(loads) + i for i, each in enumerate(steps)}
    made = []
    for each in steps:
        operands = []
        for kind, (what, value, numbers) in zip(each.computation.inputs, each.operands, strict=True):
            if isinstance(value, Step) and value.flat is None:
                operands.append(place[id(value)])
                uses[id(value)] = uses.get(id(value), 0) + 1
            else:
                value = value.flat if isinstance(value, Step) else value
                operands.append(number[kind, what, value if what == _NUMBER else id(value), numbers])
        made.append((each.computation, each.key is not None, tuple(operands)))
    kept = [
        i for i, each in enumerate(steps)
        if each is step or each.pending() is not None or each.users > uses.get(id(each), 0)
    ]  # fmt: skip
    results = {i: _cuda.empty((step.size,), steps[i].dtype) for i in kept}
    if step.size:
        _launch(loads, steps, tuple(made), results)
    for i, flat in results.items():
        steps[i].flat, steps[i].operands = flat, []
        pending = steps[i].pending()
        if pending is not None:
            _all.discard(pending)


def _launch(loads, steps, made, results) -> None:
    given, wholes = [], list(results.values())
    for (_, what, *_), (_, value, numbers) in loads.items():
        if what == _NUMBER:
            given.append(_signed(value))
            continue
        value = value.flat if isinstance(value, Step) else value
        given.append(_cuda.address_of(value))
        given += numbers
        wholes += [value] if what == _WHOLE else []
    for each in steps:
        given += [int(part) for part in each.key or ()]
    given += map(_cuda.address_of, results.values())
    wide = all(_cuda.address_of(x) % min(_GROUP * x.dtype.itemsize, 16) == 0 for x in wholes)
    chain = Chain(tuple(key[:2] for key in loads), made, tuple(results), wide)
    size = results[max(results)].size
    groups = -(-size // _GROUP)
    threads = min(_cuda.THREADS, groups)
    _cuda.launch(chain_kernel(chain), -(-groups // threads), threads, tuple(given), np.int64(size))


def example(name: str, steps, loads) -> tuple:
    """A chain's kernel for the link check: (name, kernel, types of its arguments, whether it promises no local memory).

    steps, loads: as of `Chain`, which stores the last.
    """
    from numba import types

    chain = Chain(loads, steps, (len(steps) - 1,), True)
    arguments = len(chain.library().entries[0].arguments) - 2
    return name, chain_kernel(chain), (types.UniTuple(types.int64, arguments), types.int64), True


def examples():
    """A chain for the link check: with random words, and each kind of operand."""
    one = Computation(("uint32", "uint32"), "uint32", "out = in0 ^ in1 ^ word;")
    steps = ((one, True, (0, 1)), (one, False, (3, 2)), (one, True, (4, 4)))
    yield example("chain of 3 steps", steps, (("uint32", _WHOLE), ("uint32", _SPREAD), ("uint32", _NUMBER)))
    yield example("chain of tiles", ((one, False, (0, 1)),), (("uint32", _WHOLE), ("uint32", _TILED)))
