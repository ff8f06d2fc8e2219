"""What `identify` can ask besides functions of Python: functions of shared libraries, and programs by a pipe."""

from __future__ import annotations

import ctypes
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from softnum.arrays.blocks import BlockArray
from softnum.arrays.checks import native
from softnum.arrays.conversion import decode, encode
from softnum.formats.blocks import format as any_format
from softnum.formats.dispatch import of_format
from softnum.formats.names import format
from softnum.inspect.identify.box import takes_start
from softnum.runtime.notices import about_to_run

__all__ = ["Command", "library_function", "one_by_one"]

_LINES = 64  # that are sent before their answers are read, so that no pipe fills up


def one_by_one(f: Callable) -> Callable:
    """The same box, asked for each dot product alone: where results depend on what else is multiplied.

    >>> import numpy as np
    >>> one_by_one(lambda a, b: a @ b)(np.ones((2, 3)), np.ones((3, 2))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """

    own = lambda x: x.copy() if isinstance(x, BlockArray) else np.ascontiguousarray(x)  # noqa: E731

    def alone(a, b, *c):
        out = np.empty((a.shape[0], b.shape[1]))
        for i, j in np.ndindex(out.shape):
            start = [x[i : i + 1, j : j + 1] for x in c]
            column = own(b[:, j : j + 1])  # strides, too, make libraries choose another way
            out[i, j] = np.asarray(f(own(a[i : i + 1]), column, *start)).item()
        return out

    return alone if takes_start(f) else lambda a, b: alone(a, b)


def library_function(path, symbol: str) -> Callable:
    """A function of a shared library as a box.

    Parameters
    ----------
    path : path-like
        The library; its code runs with all rights of this process.
    symbol : str
        A function ``void f(const float *a, const float *b, const float *c, float *out, int64_t m, int64_t n,
        int64_t k)`` of matrices in rows without gaps: a is m by k, b k by n, c and out m by n. out is a @ b + c; C is
        +0 where none is given.

    Returns
    -------
    callable
        For `identify`; numbers that are none of binary32 are refused.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no library, or has no such symbol.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {str(path)!r}")
    about_to_run(str(path))
    try:
        function = getattr(ctypes.CDLL(str(path.resolve())), symbol)
    except OSError as error:
        raise ValueError(f"{path} is no library that can be loaded: {error}") from None
    except AttributeError:
        raise ValueError(f"{path} has no symbol {symbol!r}") from None
    matrix = np.ctypeslib.ndpointer(np.float32, flags="C_CONTIGUOUS")
    function.argtypes = [matrix, matrix, matrix, matrix, *[ctypes.c_int64] * 3]
    function.restype = None

    def box(a, b, c=None):
        (m, k), n = a.shape, b.shape[1]
        c = np.zeros((m, n)) if c is None else c
        with np.errstate(over="ignore"):
            args = [np.ascontiguousarray(x, np.float32) for x in (a, b, c)]
        if not all(((x == y) | (np.isnan(x) & np.isnan(y))).all() for x, y in zip(args, (a, b, c), strict=True)):
            raise ValueError("a number is none of binary32")
        out = np.empty((m, n), np.float32)
        function(*args, out, m, n, k)
        return out

    return box


class Command:
    """A program as a box: a line of codes in, a line with one code out.

    For each dot product the program gets a line of 2 K + 1 codes in hexadecimal, those of a, those of b, and that of C
    (+0 where none is given); of block formats those of a's elements, of the scales of its blocks, and of the array's
    scale where there is one, then the same of b. It answers with a line of one code before the next ones are needed. Up
    to 64 lines come at once, so that it must not wait for the end of its input, and must flush. A simulator of an RTL
    design is such a program: its test bench reads standard input.

    Parameters
    ----------
    command : str or sequence of str
        The program and its arguments; it runs with all rights of this process.
    operand : format, BlockFormat, str or a pair of them
        Of the codes of a and b.
    output : format or str
        Of the code of the result.
    start : format or str, optional
        Of the code of C; None means `output`.

    Raises
    ------
    OSError
        If the program cannot be started, or ends before it has answered.
    ValueError
        If an answer is no code.
    """

    def __init__(self, command, *, operand, output, start=None) -> None:
        self.words = shlex.split(command) if isinstance(command, str) else [str(x) for x in command]
        if not self.words:
            raise ValueError("the command has no words")
        pair = operand if isinstance(operand, tuple) else (operand, operand)
        self.formats = (*map(any_format, pair), *map(format, (output if start is None else start, output)))
        about_to_run(self.words[0])
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def __call__(self, a, b, c=None) -> np.ndarray:
        """The program's results of matrices; ValueError for numbers that have no code."""
        fa, fb, fc, out = self.formats
        c = np.zeros((a.shape[0], b.shape[1])) if c is None else c
        codes = [_codes(fmt, x) for fmt, x in ((fa, a), (fb, b.T), (fc, c))]
        lines = [
            " ".join(f"{code:x}" for code in (*codes[0][i], *codes[1][j], codes[2][i][j]))
            for i, j in np.ndindex(c.shape)
        ]
        got: list[int] = []
        for first in range(0, len(lines), _LINES):
            got += self._answers(lines[first : first + _LINES])
        array = np.array(got, np.uint64).reshape(c.shape).astype(out.storage_dtype)
        return decode(array, out).astype(np.float64)

    def _answers(self, lines: list[str]) -> list[int]:
        got = []
        try:
            self.process.stdin.write("\n".join(lines) + "\n")
            self.process.stdin.flush()
            for _ in lines:
                line = self.process.stdout.readline()
                if not line:
                    raise BrokenPipeError
                got.append(self._code(line))
        except BrokenPipeError:
            raise OSError(
                f"{self.words[0]} ended (status {self.process.wait(10)}) with {len(got)} of {len(lines)} answers given"
            ) from None
        return got

    def _code(self, line: str) -> int:
        try:
            code = int(line, 16)
        except ValueError:
            code = -1
        if not 0 <= code < 1 << self.formats[3].bits:
            raise OSError(f"{self.words[0]} answers {line.strip()!r}, no code of {self.formats[3]} in hexadecimal")
        return code

    def close(self) -> None:
        """End the program's input, and the program."""
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_) -> None:
        self.close()


@of_format
def _codes(fmt, x) -> list[list[int]]:
    x = np.asarray(x, np.float64)
    codes = encode(x, fmt)
    back = decode(codes, fmt).astype(np.float64)
    if not ((back == x) | (np.isnan(back) & np.isnan(x))).all():
        raise ValueError(f"a number is none of {fmt}")
    return native(codes).tolist()


@_codes.block
def _(fmt, x) -> list[list[int]]:
    if not isinstance(x, BlockArray) or x.format != fmt:
        raise TypeError(f"the program takes BlockArrays of {fmt}, got {getattr(x, 'format', type(x).__name__)}")
    whole = [] if fmt.tensor_scale is None else encode([float(x.tensor_scale)], fmt.tensor_scale).tolist()
    return [[*codes, *scales, *whole] for codes, scales in zip(x.codes.tolist(), x.scales.tolist(), strict=True)]
