"""Elementwise kernels: a thread computes four neighbouring elements, those of one Philox counter, by one C function.

What is read and written lies in C order, so that a thread moves four elements at once where they are aligned; arrays of
other strides, and those that are broadcast, are packed first (`strides.contiguous`), single elements are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softnum import _core
from softnum.environment import seed_and_stream
from softnum.kernels.device import _cuda
from softnum.kernels.device._cuda import cuda, ffi
from softnum.kernels.device.source import TYPES, Entry, Library
from softnum.kernels.device.strides import broadcast, contiguous, put

__all__ = [
    "FROM_ARRAY", "FROM_KEY", "NO_WORDS", "Computation", "Words", "elementwise_kernel", "kernel_types", "run", "words_of",
]  # fmt: skip

_GROUP = 4  # elements of a thread: those of one Philox counter

NO_WORDS, FROM_KEY, FROM_ARRAY = range(3)


@dataclass(frozen=True)
class Computation:
    """What becomes of one element, as C text.

    Parameters
    ----------
    inputs : tuple of str
        One to three element types: "uint8" ... "uint64". Floats go by their bits.
    output : str
        The result's element type.
    body : str
        Statements that read in0, in1, in2 (sn_u64) and random (sn_u32), and set out (sn_u64); they may OR into flags and
        status (sn_u32). Names that begin with an underscore are of `constants`.
    constants, header : str
        As in `Library`.
    with_flags : bool
        Whether `flags` are delivered, as an array of uint8.
    may_fail : bool
        Whether `status` is delivered, OR-ed over all elements.
    rolled : bool
        Whether the body is so long that it stands in a loop.
    tables : int
        How many arrays the body looks up, as pointers to sn_u64 or smaller: `table0`, `table1`.
    """

    inputs: tuple[str, ...]
    output: str
    body: str
    constants: str = ""
    header: str = "softnum/fours.h"
    with_flags: bool = False
    may_fail: bool = False
    rolled: bool = False
    tables: tuple[str, ...] = ()

    def library(self, words: int, single: tuple[bool, ...], wide: bool) -> Library:
        """The entry ``run``: single: of which inputs there is one element; wide: whether the others are aligned."""
        pointers = _pointers(self)
        lines = ["sn_u32 status = 0;"]
        for i, kind in enumerate(self.inputs):
            lines.append(f"sn_u64 v{i}[4];")
            if single[i]:
                lines.append(f"v{i}[0] = v{i}[1] = v{i}[2] = v{i}[3] = x{i}[0];")
            else:
                lines.append(f"sn_load_four{kind[4:]}(x{i} + at, count, {int(wide)}, v{i});")
        lines.append("sn_u64 words[4] = {0, 0, 0, 0}, result[4], raised[4];")
        if words == FROM_KEY:
            lines.append("sn_four_words((sn_u64)at >> 2, key0, key1, words);")
        elif words == FROM_ARRAY:
            lines.append(f"sn_load_four32(random + at, count, {int(wide)}, words);")
        if self.rolled:
            lines += ["#if defined(__CUDACC_RTC__)", "#pragma unroll 1", "#endif"]
        lines.append("for (sn_i32 i = 0; i < 4; i++) {")
        lines.append("    sn_u64 out = 0;\n    sn_u32 flags = 0, met = 0;\n    const sn_u32 word = (sn_u32)words[i];")
        lines += [f"    const sn_u64 in{i} = v{i}[i];" for i in range(len(self.inputs))]
        lines.append("    (void)word, (void)met, (void)flags;")
        lines += [f"    {line}" for line in self.body.strip().splitlines()]
        lines.append("    result[i] = out;\n    raised[i] = flags;\n    if (i < count) status |= met;\n}")
        lines.append(f"sn_store_four{self.output[4:]}(to + at, count, {int(wide)}, result);")
        lines.append(f"sn_store_four8(flags_to + at, count, {int(wide)}, raised);" if self.with_flags else "(void)raised;")
        lines += [f"(void){name};" for _, name in (*pointers, ("", "key0"), ("", "key1"))]
        lines.append("return status;")
        arguments = (*pointers, ("int64", "at"), ("int32", "count"), ("uint32", "key0"), ("uint32", "key1"))
        header = f'#include "{self.header}"\n'
        return Library(self.constants, (Entry("run", "uint32", arguments, "\n".join(lines)),), self.header)
