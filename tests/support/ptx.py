"""The part of PTX that `softnum workloads` writes, run by NumPy: a block's threads in lockstep, every access in bounds.

Instructions are those of the PTX ISA 6.0, docs.nvidia.com/cuda/parallel-thread-execution; a branch must be taken by all
threads or by none. Lockstep is one of the orders that a GPU may take: a missing barrier is not seen.
"""

import re

import numpy as np

__all__ = ["run_kernel"]

_SPACE = 1 << 24  # addresses of one array or shared variable lie this far from those of the next


class Block:
    def __init__(self, place, side, arrays):
        x, y = np.meshgrid(np.arange(side), np.arange(side))
        self.values = {"%tid.x": x.ravel(), "%tid.y": y.ravel()}
        self.values |= {f"%ctaid.{axis}": np.full(side * side, at) for axis, at in zip("xy", place, strict=True)}
        self.arrays, self.threads = list(arrays), side * side

    def get(self, text):
        if text in self.values:
            return self.values[text]
        if text.startswith("0f"):
            return np.full(self.threads, np.array(int(text[2:], 16), np.uint32).view(np.float32))
        return np.full(self.threads, int(text), np.int64)

    def memory(self, address, where, value=None):
        """Load, or store the value, in the threads of a mask."""
        text, _, offset = address.strip("[]").partition("+")
        at = self.get(text) + int(offset or 0)
        array = self.arrays[int(at[where][0]) // _SPACE - 1]
        index = (at % _SPACE) // 4
        assert (at[where] % 4 == 0).all() and (index[where] < len(array)).all(), f"{address}: out of bounds"
        if value is not None:
            array[index[where]] = value[where]
            return None
        found = np.zeros(self.threads, array.dtype)
        found[where] = array[index[where]]
        return found

    def step(self, code, operands, where):
        """One instruction other than a branch."""
        kind = code.split(".")
        if kind[0] == "st":
            self.memory(operands[0], where, self.get(operands[1]))
        elif kind[0] == "ld" and kind[1] != "param":
            self.put(operands[0], self.memory(operands[1], where), where)
        elif kind[0] != "bar":
            self.put(operands[0], self.result(kind, [self.get(text.strip("[]")) for text in operands[1:]]), where)

    def result(self, kind, x):
        wrap = 1 << (62 if kind[-1] == "u64" else 32)  # NumPy has int64, and addresses here are small
        match kind:
            case ["mov" | "ld" | "cvta", *_]:
                return x[0]
            case ["fma", "rn", "f32"]:  # exact in binary64, then rounded once
                return np.float32(np.float64(x[0]) * x[1] + x[2])
            case ["mad", "lo", "u32"]:
                return (x[0] * x[1] + x[2]) % wrap
            case ["mul", "wide", "u32"]:
                return x[0] * x[1]
            case ["add", _]:
                return (x[0] + x[1]) % wrap
            case ["shl", _]:
                return (x[0] << x[1]) % wrap
            case ["setp", "lt", "u32"]:
                return x[0] < x[1]
            case ["and", "pred"]:
                return x[0] & x[1]
        raise ValueError(f"no such instruction here: {'.'.join(kind)}")

    def put(self, name, value, where):
        old = self.values.get(name, np.zeros_like(value))
        self.values[name] = np.where(where, value, old)


def run_kernel(text, name, arrays, grid, side=16):
    """Run a kernel of a PTX text over a grid of blocks of side x side threads.

    Parameters
    ----------
    text, name : str
        The module, and its kernel.
    arrays : sequence of float32 arrays, flat
        The kernel's arguments, in order; changed in place.
    grid : (int, int)
        Blocks along x and y.
    """
    parameters, body = re.search(rf"\.entry {name}\((.*?)\)\s*\{{(.*?)\n\}}", text, re.S).groups()
    parameters = re.findall(r"\.param \.u64 (\w+)", parameters)
    shared = re.findall(r"\.shared \.align 4 \.b8 (\w+)\[(\d+)\];", body)
    lines = [line for line in (part.split("//")[0].strip() for part in body.split("\n")) if line and line[0] != "."]
    labels = {line[:-1]: at for at, line in enumerate(lines) if line.endswith(":")}
    for place in np.ndindex(*grid):
        block = Block(place, side, [*arrays, *(np.full(int(size) // 4, np.nan, np.float32) for _, size in shared)])
        for number, variable in enumerate([*parameters, *(name for name, _ in shared)], start=1):
            block.values[variable] = np.full(side * side, number * _SPACE)
        at = 0
        while not lines[at].startswith("ret"):
            at += 1
            if lines[at - 1].endswith(":"):
                continue
            guard, code, rest = re.fullmatch(r"(?:@(%\w+) )?([\w.]+) ?(.*);", lines[at - 1]).groups()
            where = np.ones(side * side, bool) if guard is None else block.get(guard)
            if code == "bra":
                assert where.all() or not where.any(), "threads part"
                at = labels[rest] if where.all() else at
            elif where.any():
                block.step(code, re.split(r",\s*", rest), where)
