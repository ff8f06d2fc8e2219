"""Sums along an axis as a tree, each rounded: of neighbours in pairs, then of the sums in pairs, many levels a launch.

A thread adds up the rows of one column that belong to one sum some levels higher. It takes them in their order and
keeps one sum of each level that waits for its neighbour: so the tree is that of a launch for each level, and so is the
random word of each sum, which belongs to its place among those of its level.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from softnum.kernels.device.elementwise.computations import FROM_KEY, NO_WORDS, Computation
from softnum.kernels.device.runtime import _cuda
from softnum.kernels.device.runtime._cuda import cuda, ffi
from softnum.kernels.device.runtime.copies import run
from softnum.kernels.device.runtime.movement import DeviceArray, empty
from softnum.kernels.device.runtime.source import Entry, Library

__all__ = ["MOST_LEVELS", "examples", "total"]

MOST_LEVELS = 8  # of a launch: 256 rows a thread
_KINDS = 2  # of what is met: bits of it

_SUM = """
/* the sum of two, number `place` of its level */
SN_FN sn_u64 _sum(sn_u64 in0, sn_u64 in1, sn_u64 place, sn_u32 key0, sn_u32 key1, sn_u32 *status) {{
    sn_u64 words[4] = {{0, 0, 0, 0}}, out = 0;
    sn_u32 met = 0;
    {flags}
    if ({random}) sn_four_words(place >> 2, key0, key1, words);
    const sn_u32 word = (sn_u32)words[place & 3];
    (void)word, (void)key0, (void)key1;
    {body}
    for (sn_i32 i = 0; i < {kinds}; i++)
        if (met >> i & 1) status[i] = 1;
    return out;
}}
"""

_TOTAL = f"""
const sn_u32 keys[{2 * MOST_LEVELS}] = {{{", ".join(f"key{i}" for i in range(2 * MOST_LEVELS))}}};
const sn_i64 group = i / width, column = i - group * width, first = group << levels;
const sn_i32 count = (sn_i32)(rows - first < (sn_i64)1 << levels ? rows - first : (sn_i64)1 << levels);
sn_u64 waiting[{MOST_LEVELS} + 1], sum = 0;
for (sn_i32 j = 0; j < count; j++) {{
    sn_i64 row = first + j;
    sn_i32 level = 0;
    sum = x[row * width + column];
    for (; level < levels && (row & 1); level++) {{
        row >>= 1;
        sum = _sum(waiting[level], sum, (sn_u64)(row * width + column), keys[2 * level], keys[2 * level + 1], status);
    }}
    waiting[level] = sum;
}}
if (count >> levels) return sum;
sn_i32 some = 0; /* whether there is a sum of the last rows at this level */
for (sn_i32 level = 0; level < levels; level++) {{
    if (!(count >> level & 1)) continue;
    const sn_u64 place = (sn_u64)(((first + count) >> level >> 1) * width + column);
    sum = some ? _sum(waiting[level], sum, place, keys[2 * level], keys[2 * level + 1], status) : waiting[level];
    some = 1;
}}
return sum;
"""


@dataclass(frozen=True)
class Adder:
    """A rounded sum of two: what a computation without tables makes of two carriers."""

    computation: Computation
    words: int

    def library(self) -> Library:
        """The entry ``total``: the sum of number i, from rows of so many columns."""
        kind = self.computation.inputs[0]
        body = self.computation.body.strip()
        flags = "sn_u32 flags = 0;" if "flags" in body else ""
        text = _SUM.format(random=int(self.words == FROM_KEY), body=body, flags=flags, kinds=_KINDS)
        keys = tuple(("uint32", f"key{i}") for i in range(2 * MOST_LEVELS))
        arguments = ((f"{kind}*", "x"), ("int64", "i"), ("int64", "rows"), ("int64", "width"), ("int32", "levels"))
        arguments += (("uint32*", "status"),)
        entry = Entry("total", "uint64", (*arguments, *keys), _TOTAL)
        header = f"{self.computation.header} softnum/device/fours.h".strip()
        return Library(self.computation.constants + text, (entry,), header)


@lru_cache(maxsize=128)
def total_kernel(adder: Adder):
    """The kernel ``(x, sums, rows, width, levels, status, keys, count)``.

    status: 1 at the number of each bit of what was met; keys: a tuple of two numbers for each of `MOST_LEVELS`.
    """
    total_of = _cuda.bind(adder.library()).total

    @cuda.jit
    def kernel(x, sums, rows, width, levels, status, keys, count):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            sums[i] = total_of(ffi.from_buffer(x), i, rows, width, levels, ffi.from_buffer(status), *keys)

    return kernel


def total(x: DeviceArray, computation: Computation, words) -> tuple[DeviceArray, int]:
    """The sum of an array along its first axis.

    Parameters
    ----------
    x : DeviceArray (n, ...)
        Of one row at least.
    computation : Computation
        Of two addends of x's type, to that type; it has no tables.
    words : sequence of Words
        The random words of each level, of which there are ceil(log2(n)): all `NO_WORDS`, or all of keys.

    Returns
    -------
    sums : DeviceArray (1, ...)
    met : int
        As of `softnum.kernels.device.elementwise.run`.
    """
    status = _cuda.filled(_KINDS, np.uint32, 0) if computation.may_fail else _no_status(_cuda.device_index())
    rows, rest, width = len(x), x.shape[1:], prod(x.shape[1:])
    kernel = total_kernel(Adder(computation, words[0].kind if words else NO_WORDS))
    while rows > 1:
        launches = -(-len(words) // MOST_LEVELS)
        levels = -(-len(words) // launches)
        keys = [np.uint32(part) for word in words[:levels] for part in word.key]
        keys += [np.uint32(0)] * (2 * MOST_LEVELS - len(keys))
        above = -(-rows >> levels)
        sums = empty((above, *rest), x.dtype)
        arguments = np.int64(rows), np.int64(width), np.int32(levels), status, tuple(keys), np.int64(sums.size)
        run(kernel, sums.size, _cuda.bits(x.flat), _cuda.bits(sums.flat), *arguments)
        x, rows, words = sums, above, words[levels:]
    met = _cuda.to_host(status) if computation.may_fail else ()
    return x, sum(1 << i for i, found in enumerate(met) if found)


@lru_cache(maxsize=8)
def _no_status(device: int):
    """What computations that cannot fail are given; nothing writes to it."""
    return _cuda.filled(_KINDS, np.uint32, 0)


def examples():
    """Kernels for the link check: (name, kernel, types of its arguments)."""
    from numba import types

    computation = Computation(("uint32", "uint32"), "uint32", "out = in0 + in1 + word;")
    flat = types.Array(types.uint32, 1, "C")
    keys = types.UniTuple(types.uint32, 2 * MOST_LEVELS)
    for words in (NO_WORDS, FROM_KEY):
        kernel = total_kernel(Adder(computation, words))
        sizes = (types.int64, types.int64, types.int32, flat, keys, types.int64)
        yield f"total {'with' if words else 'without'} random words", kernel, (flat, flat, *sizes)
