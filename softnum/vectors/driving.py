"""What drives a design in a cocotb test: planned vectors on its inputs, with pauses that a seed draws."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from softnum.vectors.files.dialects import open_reader
from softnum.vectors.files.headers import spec_of_file
from softnum.vectors.files.text import VectorFileError
from softnum.vectors.model import known, word_of
from softnum.vectors.plans.generator import Plan
from softnum.vectors.plans.mixed import MixedSpec
from softnum.vectors.plans.spec import Block, Spec

if TYPE_CHECKING:
    from softnum.formats.annotations import PathLike

__all__ = ["PlannedFile", "bits", "combinational", "drive", "joined", "one_by_one", "pause", "planned_file"]


class PlannedFile:
    """The vectors of a file, as `drive` takes them: ``spec`` by its header, and ``blocks()``."""

    def __init__(self, path: PathLike, count: int | None = None) -> None:
        self.path, self.count = path, count
        with open(path, "rb") as file:
            header = open_reader(file, str(path)).header
        self.spec: Spec = spec_of_file(header, str(path))
        if isinstance(self.spec, MixedSpec):
            raise VectorFileError(str(path), 0, "its vectors are mixed, and a cocotb test is of one operation")

    def blocks(self) -> Iterator[Block]:
        """The vectors, some thousands at a time."""
        left = self.count
        with open(self.path, "rb") as file:
            for rows in open_reader(file, str(self.path)).rows(self.spec):
                n = len(rows.block) if left is None else min(left, len(rows.block))
                yield self.spec.block_of([column[:n] for column in rows.block.columns])
                left = None if left is None else left - n
                if left == 0:
                    return


def planned_file(path: PathLike, count: int | None = None) -> PlannedFile:
    """The vectors of a file that ``softnum vectors generate`` wrote, the first `count` of them or all.

    Raises
    ------
    VectorFileError
        If its header does not say what they are of.

    Examples
    --------
    >>> import os, tempfile
    >>> from softnum.vectors import VectorSpec, plan, write
    >>> path = os.path.join(tempfile.mkdtemp(), "v.txt")
    >>> write(plan(VectorSpec.make("multiply", "e4m3fn"), count=10), path)
    10
    >>> sum(map(len, planned_file(path).blocks())), sum(map(len, planned_file(path, 3).blocks()))
    (10, 3)
    """
    return PlannedFile(path, count)


class _One:
    """A single vector, as `drive` takes it."""

    def __init__(self, spec: Spec, block: Block) -> None:
        self.spec, self.block = spec, block

    def blocks(self) -> Iterator[Block]:
        yield self.block


def one_by_one(planned: Plan | PlannedFile) -> Iterator[_One]:
    """Planned vectors, each as a plan of its own: the items of a sequence.

    >>> from softnum.vectors import VectorSpec, plan
    >>> [len(block) for one in one_by_one(plan(VectorSpec.make("sqrt", "e2m1fn"), count=3)) for block in one.blocks()]
    [1, 1, 1]
    """
    for block, i in _places(planned):
        yield _One(planned.spec, planned.spec.block_of([column[i : i + 1] for column in block.columns]))


class _Part:
    """Bits of a port, with a ``value`` that can be read, and written beside that of other bits."""

    written: dict[
        str, Any
    ] = {}  # by the port's path: what was written last, for a port reads late what was written to it

    def __init__(self, handle, high: int, low: int) -> None:
        self.handle, self.high, self.low = handle, high, low

    @property
    def value(self):
        return self.handle.value[self.high : self.low] if self.high > self.low else self.handle.value[self.low]

    @value.setter
    def value(self, word: int) -> None:
        mask = (1 << (self.high - self.low + 1)) - 1
        before = self.written.get(self.handle._path, 0)
        self.written[self.handle._path] = before & ~(mask << self.low) | int(word) << self.low
        self.handle.value = self.written[self.handle._path]


def bits(handle: Any, high: int, low: int) -> Any:
    """Bits of a port as a handle of their own; those of an input that nobody writes are 0."""
    return _Part(handle, high, low)


class _Joined:
    def __init__(self, handles) -> None:
        self.handles = handles

    @property
    def value(self):
        found = [known(handle.value) for handle in self.handles]
        if None not in found:
            return sum(bit << place for place, bit in enumerate(reversed(found)))
        return _Unknown()


class _Unknown:
    is_resolvable = False

    def __str__(self) -> str:
        return "x"


def joined(*handles: Any) -> Any:
    """One value of several signals of one bit, the most significant first: flags that are ports of their own."""
    return _Joined(handles)


def pause(clock: Any, signal: Any, percent: int, seed: int = 0) -> Any:
    """Set a ready or a clock enable to 1, and to 0 in so many percent of the clocks, drawn by a seed; a cocotb task."""
    import cocotb
    from cocotb.triggers import RisingEdge

    async def pausing():
        drawn = random.Random(seed)
        while True:
            signal.value = int(drawn.random() * 100 >= percent)
            await RisingEdge(clock)

    return cocotb.start_soon(pausing())


async def combinational(
    board: Any,
    planned: Plan | PlannedFile,
    operands: Sequence[Any],
    result: Any,
    flags: Any = None,
    *,
    random_bits: Any = None,
) -> None:
    """Give planned vectors to a design without a clock, one a nanosecond, and its results to a scoreboard."""
    from cocotb.triggers import Timer

    handles = [*operands, *([] if random_bits is None else [random_bits])]
    for block, i in _places(planned):
        words = _put(handles, planned.spec, block, i)
        await Timer(1, unit="ns")
        board.send(*words[: len(operands)], random_bits=words[-1] if random_bits is not None else None)
        board.receive(result.value, None if flags is None else flags.value)


def _places(planned) -> Iterator[tuple[Block, int]]:
    for block in planned.blocks():
        for i in range(len(block)):
            yield block, i


def _put(handles, spec: Spec, block: Block, i: int) -> list[int]:
    """Write the operands of a vector; the words."""
    columns = [c for c in spec.columns if c.name not in ("result", "flags")]
    words = [word_of(array[i], c.bits) for array, c in zip(block.columns, columns, strict=False)]
    for handle, word in zip(handles, words, strict=True):
        handle.value = word
    return words


async def drive(
    clock: Any,
    planned: Plan | PlannedFile,
    operands: Sequence[Any],
    *,
    random_bits: Any = None,
    valid: Any = None,
    ready: Any = None,
    enable: Any = None,
    stalls: int = 0,
    seed: int = 0,
    outstanding: tuple[int, Any] | None = None,
    timeout: int | None = None,
) -> None:
    """Put planned vectors on a design's inputs, one a clock, changing after rising edges.

    Parameters
    ----------
    clock : handle
    planned : Plan or PlannedFile
        Of `softnum.vectors.plan`, or `planned_file`.
    operands : sequence of handles
        In the order of ``spec.operand_columns``.
    random_bits : handle, optional
        Of a stochastic rounding.
    valid : handle, or list of handles, optional
        Set to 1 while there are vectors, then to 0. A list: one for each operand (and random bits, the last), each of
        which is taken by itself.
    ready : handle, or list of handles, optional
        A vector stays until an edge at which this is 1.
    enable : handle, optional
        A clock enable, which `pause` drives: a vector stays until an edge at which this is 1.
    stalls : int
        Percent of the clocks in which a vector that could be offered is not; drawn by `seed`. Needs `valid`.
    seed : int
    outstanding : (int, Scoreboard), optional
        How many vectors may be on their way at most, by the results that the scoreboard has got.
    timeout : int, optional
        After so many clocks in which nothing was taken TimeoutError is raised; by default it is waited for ever.
    """
    from cocotb.triggers import RisingEdge

    edge, spec, drawn = RisingEdge(clock), planned.spec, random.Random(seed)
    handles = [*operands, *([] if random_bits is None else [random_bits])]
    columns = [c for c in spec.columns if c.name not in ("result", "flags")]
    if len(handles) != len(columns):
        raise ValueError(f"{spec.op} has {' '.join(c.name for c in columns)} to drive, got {len(handles)} handles")
    one_by_one = isinstance(valid, (list, tuple))
    valids = list(valid) if one_by_one else [valid]
    readies = [ready] * len(valids) if not isinstance(ready, (list, tuple)) else list(ready)
    if len(readies) != len(valids) or (one_by_one and len(valids) != len(handles)):
        raise ValueError(f"lists of valid and ready have one for each of the {len(handles)} operands")
    groups = [[handle] for handle in handles] if one_by_one else [handles]
    sent = waited = 0
    for block, i in _places(planned):
        words = [word_of(array[i], c.bits) for array, c in zip(block.columns, columns, strict=False)]
        parts = [[word] for word in words] if one_by_one else [words]
        pending, raised = dict.fromkeys(range(len(valids))), set()
        while pending:
            held = outstanding is not None and not raised and sent - outstanding[1].received >= outstanding[0]
            for k in pending:
                if held or k in raised or (valids[k] is not None and drawn.random() * 100 < stalls):
                    continue
                for handle, word in zip(groups[k], parts[k], strict=True):
                    handle.value = word
                if valids[k] is not None:
                    valids[k].value = 1
                raised.add(k)
            await edge
            waited += 1
            for k in list(pending):
                takes = all(known(signal.value) == 1 for signal in (readies[k], enable) if signal is not None)
                if k in raised and takes:
                    del pending[k]
                    waited = 0
                    if valids[k] is not None:
                        valids[k].value = 0
            if timeout is not None and waited >= timeout:
                raise TimeoutError(f"vector {sent + 1} was not taken in {timeout} clocks"
                                   + (", for results of those before did not come" if held else ""))  # fmt: skip
        sent += 1
