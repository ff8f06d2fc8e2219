"""The child process of `softnum.formats.custom.trial`: it needs NumPy and the library, and nothing of softnum.

The task comes as JSON on the standard input; where it is stands in a file that the parent sees, as (call, first operand
of the block, pass). What differs between both passes is printed as a list of [call, operand, first, second].
"""

import ctypes
import json
import os
import sys

import numpy as np


def run(library, call, number, progress, block, limits):
    """One function, forwards and backwards; [(call, operand, first, second)] of the first difference."""
    operands = [np.load(path, allow_pickle=False) for path in call["operands"]]
    first, stop = limits or (0, len(operands[0]))
    stop = min(stop, len(operands[0]))
    function = getattr(library, call["symbol"])
    function.restype, function.argtypes = None, [ctypes.c_int64, *[ctypes.c_void_p] * (len(operands) + 1)]
    kind = np.dtype(call["result"])
    starts = range(first, stop, block)
    answers = []
    for turn, order in enumerate((starts, reversed(starts))):
        step = -1 if turn else 1
        results = np.full(stop * kind.itemsize, 0xA5 ^ 0xFF * turn, np.uint8).view(kind)
        for start in order:
            progress[:] = number, start, turn
            end = min(start + block, stop)
            taken = [np.ascontiguousarray(a[start:end][::step]) for a in operands]
            given = np.ascontiguousarray(results[start:end])
            function(end - start, *(a.ctypes.data for a in taken), given.ctypes.data)
            results[start:end] = given[::step]
        answers.append(results)
    patterns = [a.view(f"u{kind.itemsize}")[first:] for a in answers]
    differ = np.flatnonzero(patterns[0] != patterns[1])
    return [(number, first + int(i), *(repr(a[first + i].item()) for a in answers)) for i in differ[:1]]


def main() -> None:
    """Run the task of the standard input."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):  # no such limit here
        pass
    task = json.load(sys.stdin)
    progress = np.memmap(task["progress"], np.int64, "r+", shape=(3,))
    told = os.dup(1)
    os.dup2(2, 1)  # what user code prints is not the answer
    library = ctypes.CDLL(task["library"])
    differences = []
    for i, call in enumerate(task["calls"]):
        differences += run(library, call, i, progress, task["block"], task.get("range"))
    os.write(told, json.dumps(differences).encode())


if __name__ == "__main__":
    main()
