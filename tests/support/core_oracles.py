"""What the tests of the core share: expected results of whole sets of operand pairs, edge codes, readable failures.

Every expected result comes from `softnum.reference`. For speed it is asked once per distinct exact result: operand
tuples whose exact result is the same finite number other than zero share their rounding.
"""

from __future__ import annotations

import random
from fractions import Fraction
from functools import lru_cache

import numpy as np

import softnum as sn
from softnum import reference as ref
from softnum.arrays.codecs import scalar
from softnum.arrays.environment import environment as environment_of
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES
from softnum.formats.names import format as format_of
from softnum.formats.scalar import FixedFormat
from softnum.runtime import _core

MODES = list(ROUNDING_MODES)
STOCHASTIC = [mode for mode in MODES if mode.startswith("stochastic")]
DETERMINISTIC = [mode for mode in MODES if mode not in STOCHASTIC]
OPERATIONS = {
    "add": (sn.add, ref.add),
    "subtract": (sn.subtract, ref.subtract),
    "multiply": (sn.multiply, ref.multiply),
    "fma": (sn.fma, ref.fma),
}


def overflow_rules(fmt) -> list[str]:
    """The overflow rules that apply to a format."""
    foreign = {"infinity" if fmt.kind == "fixed" else "wrap"}
    if not (fmt.p3109 and fmt.infinities):
        foreign.add("p3109_v3_2_1")
    return [rule for rule in OVERFLOW_RULES if rule not in foreign]


def show(code: int, fmt) -> str:
    """A code in hex with what it means."""
    value = ref.decode(int(code), fmt)
    if value.kind == "finite":
        magnitude = abs(value.fraction)
        scale = magnitude.numerator.bit_length() - magnitude.denominator.bit_length() if magnitude else 0
        wide = abs(scale) > 1000  # beyond binary64
        shown = f"{float(magnitude / Fraction(2) ** scale * wide or magnitude):g}" + f" * 2**{scale}" * wide
        return f"{int(code):#x} ({'-' if value.sign else '+'}{shown})"
    return f"{int(code):#x} ({'-' if value.sign else '+'}{value.kind})"


class Groups:
    """Operand tuples, grouped by their exact result."""

    def __init__(self, operation: str, codes: tuple[np.ndarray, ...], formats: tuple) -> None:
        self.operation, self.codes, self.formats = operation, codes, formats
        decoded = [
            {c: ref.decode(c, fmt) for c in set(column.tolist())} for column, fmt in zip(codes, formats, strict=True)
        ]
        index: dict = {}
        self.members = np.empty(len(codes[0]), np.int64)
        self.representatives: list[tuple[int, ...]] = []
        for i, operands in enumerate(zip(*(column.tolist() for column in codes), strict=True)):
            key = self._key([table[c] for table, c in zip(decoded, operands, strict=True)])
            at = index.setdefault(key, len(index))
            if at == len(self.representatives):
                self.representatives.append(operands)
            self.members[i] = at

    def _key(self, x):
        if all(v.kind == "finite" for v in x):
            if self.operation == "multiply":
                top, bottom = x[0].numerator * x[1].numerator, x[0].denominator * x[1].denominator
                negative = x[0].sign ^ x[1].sign
            else:
                term = x[0] if len(x) == 2 else x[1]
                left, ld, ls = x[0].numerator, x[0].denominator, x[0].sign
                if len(x) == 3:
                    left, ld, ls = left * term.numerator, ld * term.denominator, ls ^ term.sign
                right, rd, rs = x[-1].numerator, x[-1].denominator, x[-1].sign ^ (self.operation == "subtract")
                top = (-left if ls else left) * rd + (-right if rs else right) * ld
                negative, top, bottom = top < 0, abs(top), ld * rd
            if top:  # denominators are powers of two
                zeros = min((top & -top).bit_length(), (bottom & -bottom).bit_length()) - 1
                return negative, top >> zeros, bottom >> zeros
        return tuple((v.kind, v.sign, v.signaling, v.numerator == 0) for v in x)

    def expected(self, out_fmt, **environment) -> tuple[np.ndarray, np.ndarray]:
        """(codes, flags) of every tuple, from the reference."""
        function = OPERATIONS[self.operation][1]
        results = [
            function(*operands, self.formats, out_fmt=out_fmt, **environment) for operands in self.representatives
        ]
        codes = np.array([code for code, _ in results], np.uint64)[self.members]
        return codes, np.array([int(flags) for _, flags in results], np.uint8)[self.members]

    def check(self, out_fmt, **environment) -> None:
        """Compare the library with the reference, codes and flags."""
        function = OPERATIONS[self.operation][0]
        invalid = 0 if out_fmt.has_zero else out_fmt.min  # the value of code 0
        got, flags = function(
            *self.codes, self.formats, out_fmt=out_fmt, return_flags=True, invalid=invalid, **environment
        )
        want, want_flags = self.expected(out_fmt, **environment)
        bad = (got.astype(np.uint64) != want) | (flags != want_flags)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            operands = ", ".join(show(c[i], f) for c, f in zip(self.codes, self.formats, strict=True))
            raise AssertionError(
                f"{self.operation}({operands}) {'x'.join(map(str, self.formats))} -> {out_fmt}, {environment}: "
                f"got {show(got[i], out_fmt)} flags {flags[i]}, want {show(want[i], out_fmt)} flags {want_flags[i]}; "
                f"{np.count_nonzero(bad)} of {bad.size} differ"
            )


@lru_cache(maxsize=32)
def all_pairs(operation: str, fmt, second=None) -> Groups:
    """Every pair of codes of one format, or of two."""
    second = fmt if second is None else second
    a, b = np.meshgrid(np.arange(1 << fmt.bits), np.arange(1 << second.bits), indexing="ij")
    columns = a.ravel().astype(fmt.storage_dtype), b.ravel().astype(second.storage_dtype)
    return Groups(operation, columns, (fmt, second))


def edge_codes(fmt, rng: random.Random | None = None, extra: int = 0) -> np.ndarray:
    """Codes at the edges of a format: exponent classes crossed with patterns of the significand; and `extra` random."""
    top = (1 << fmt.bits) - 1
    if isinstance(fmt, FixedFormat):
        middle = 1 << (fmt.bits - 1)
        one = 1 << min(fmt.fraction_bits, fmt.bits - 1)
        codes = {
            0,
            1,
            2,
            3,
            top,
            top - 1,
            top - 2,
            middle,
            middle - 1,
            middle + 1,
            middle ^ (middle >> 1),
            one,
            one >> 1,
        }
        codes |= {one + 1, one - 1, (one >> 1) + 1, -one & top, (one >> 2) * 3, -(one >> 1) & top, top // 3, top // 5}
    else:
        m, fields = fmt.mantissa_bits, (1 << fmt.exponent_bits) - 1
        ones = (1 << m) - 1
        exponents = {0, 1, 2, fields, fields - 1, fields - 2}
        exponents |= {fmt.bias + d for d in (-m - 2, -m - 1, -m, -1, 0, 1, m - 1, m, m + 1)}
        exponents |= {fmt.bias // 2, fmt.bias + fmt.bias // 2}
        patterns = {0, 1, ones, ones - 1, 1 << max(m - 1, 0), (1 << max(m - 1, 0)) + 1, ones // 3, (1 << (m // 2)) - 1}
        magnitudes = {e << m | (p & ones) for e in exponents if 0 <= e <= fields for p in patterns}
        codes = magnitudes | ({c | 1 << (fmt.bits - 1) for c in magnitudes} if fmt.signed else set())
    if rng is not None:
        codes |= {rng.randrange(top + 1) for _ in range(extra)}
    return np.array(sorted(c & top for c in codes), np.uint64).astype(fmt.storage_dtype)


def random_codes(fmt, rng: random.Random, count: int) -> np.ndarray:
    """Codes drawn from the edges, from neighbours of the edges, and from all codes."""
    edges = edge_codes(fmt).tolist()
    top = (1 << fmt.bits) - 1
    draw = [
        rng.choice((rng.choice(edges), rng.randrange(top + 1), rng.choice(edges) ^ rng.randrange(8) & top))
        for _ in range(count)
    ]
    return np.array([c & top for c in draw], np.uint64).astype(fmt.storage_dtype)


def code_of(x: Fraction | float, fmt, **environment) -> int:
    """The reference's code of a value."""
    return ref.encode(x, fmt, **environment)[0]


def by_definition(name, codes, formats, out_fmt, words=0, **environment) -> tuple[np.ndarray, np.ndarray]:
    """(codes, flags) of an operation on 1-d arrays of codes through the scalar functions of the core alone."""
    environment = {"rounding": "nearest_even", "overflow": None, "stochastic_bits": 32, **environment}
    env = environment_of(out_fmt, **environment)
    handle = _core.intern_context(name, tuple(formats), out_fmt, env)
    got, flags = _core.define(name, handle, list(codes), np.broadcast_to(np.uint32(words), len(codes[0])))
    return got.astype(out_fmt.storage_dtype), flags & np.uint8(_core.NO_CODE - 1)


def encode_by_definition(x: np.ndarray, fmt, words=0, **environment) -> np.ndarray:
    """Codes of float32 or float64 values through the scalar functions of the core alone."""
    source = format_of("binary32" if x.dtype == np.float32 else "binary64")
    bits = np.ascontiguousarray(x).view(source.storage_dtype).ravel()
    words = np.broadcast_to(np.uint32(words), x.shape).ravel()
    return by_definition("convert", (bits,), (source,), fmt, words, **environment)[0].reshape(x.shape)


def decode_by_definition(codes: np.ndarray, fmt, dtype) -> np.ndarray:
    """Values of codes through the scalar functions of the core."""
    return scalar.decode_by_definition(np.ascontiguousarray(codes), fmt, np.dtype(dtype))


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two float arrays agree in every bit, NaNs and signs of zero included."""
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()


def assert_same_bits(got: np.ndarray, want: np.ndarray, *context) -> None:
    """Compare float arrays bit for bit; the message names the first difference."""
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape, got.dtype, want.dtype, context)
    if same_bits(got, want):
        return
    integers = np.dtype(f"u{got.dtype.itemsize}")
    x, y = np.ascontiguousarray(got).view(integers).ravel(), np.ascontiguousarray(want).view(integers).ravel()
    i = int(np.flatnonzero(x != y)[0])
    raise AssertionError(
        f"{np.count_nonzero(x != y)} of {x.size} differ, first at {i}: got {got.ravel()[i]!r} ({x[i]:#x}), "
        f"want {want.ravel()[i]!r} ({y[i]:#x}); {context}"
    )


def on_every_isa():
    """Each instruction set that this machine runs, in turn."""
    before = _core.current_isa()
    for name in _core.available_isas():
        _core.use_isa(name)
        yield name
    _core.use_isa(before)
