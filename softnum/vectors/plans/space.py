"""Which operands and results vectors are of: what is left out, and what is wanted, as a file's header says it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from softnum.formats.base import AnyFormat

__all__ = ["CONDITIONS", "CodeSet", "Space", "admitted_codes"]

#: what `only` may name -> what it says of the exact result, or of the one that is delivered
CONDITIONS: dict[str, str] = {
    "ties": "the exact result lies half way between two neighbours",
    "overflow": "the result raises overflow",
    "underflow": "the result raises underflow",
    "subnormal-result": "the result is a subnormal number",
    "cancellation": "the exact sum's exponent lies N or more below its larger term's (cancellation:N; 2), or it is 0",
    "exact": "operands and result are finite numbers, and nothing is rounded",
}
_CANCELLATION = re.compile(r"cancellation:(\d{1,4})")
_EXCLUDED = ("nan", "inf", "subnormal")
_ALL_CODES = 16  # bits up to which every code is looked at


class CodeSet(NamedTuple):
    """Codes in order, as runs: the first code of each, and how many codes come before it; the last entry ends them."""

    starts: np.ndarray
    before: np.ndarray

    @property
    def count(self) -> int:
        """How many codes there are."""
        return int(self.before[-1])

    def codes(self, numbers: np.ndarray) -> np.ndarray:
        """The codes with these numbers, 0 to count - 1, uint64."""
        run = np.searchsorted(self.before, numbers, "right") - 1
        return self.starts[run] + (numbers - self.before[run])

    def has(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are among them."""
        codes = codes.astype(np.uint64)
        if not len(self.starts):
            return np.zeros(codes.shape, bool)
        run = np.searchsorted(self.starts, codes, "right").astype(np.int64) - 1
        run_or_0 = np.maximum(run, 0)
        length = self.before[run_or_0 + 1] - self.before[run_or_0]
        return (run >= 0) & (codes - self.starts[run_or_0] < length)


@dataclass(frozen=True)
class Space:
    """A restriction of vectors to a part of the operand space.

    Parameters
    ----------
    no_nan, no_inf, no_subnormal : bool
        Whether no operand is NaN (NaR of posits), infinite, subnormal.
    exponents : (int, int) or None
        The lowest and the highest exponent, floor(log2(abs(x))), of operands that are floats. Zeros, infinities and
        NaNs, which have none, are left out, too.
    only : tuple of str
        Conditions that each vector meets: keys of `CONDITIONS`, cancellation:5 for five places or more.

    Examples
    --------
    >>> from softnum.vectors import Space
    >>> Space.make(no_nan=True, exponents="-4:4", only="ties").facts()
    {'excluded': 'nan', 'exponents': '-4:4', 'only': 'ties'}
    """

    no_nan: bool = False
    no_inf: bool = False
    no_subnormal: bool = False
    exponents: tuple[int, int] | None = None
    only: tuple[str, ...] = ()

    @classmethod
    def make(
        cls,
        *,
        no_nan: bool = False,
        no_inf: bool = False,
        no_subnormal: bool = False,
        exponents: str | tuple[int, int] | None = None,
        only: str | Iterable[str] | None = None,
    ) -> Space:
        """A space of parts as text has them: exponents "-4:4", only "ties,cancellation:5".

        Raises ValueError for a range that is none, or an unknown condition.
        """
        if isinstance(exponents, str):
            parts = exponents.split(":")
            if len(parts) != 2 or not all(re.fullmatch(r"\s*[+-]?\d{1,6}\s*", part) for part in parts):
                raise ValueError(f"exponents takes LOW:HIGH, two integers, got {exponents!r}")
            exponents = tuple(map(int, parts))
        if exponents is not None:
            if len(exponents) != 2 or any(isinstance(e, bool) or not isinstance(e, Integral) for e in exponents):
                raise ValueError(f"exponents takes LOW:HIGH, two integers, got {exponents!r}")
            low, high = exponents
            if low > high:
                raise ValueError(f"exponents {low}:{high} is no range: LOW is above HIGH")
            exponents = (int(low), int(high))
        names = () if only is None else only.split(",") if isinstance(only, str) else tuple(only)
        names = tuple(dict.fromkeys(name.strip() for name in names))
        for name in names:
            if name not in CONDITIONS and not _CANCELLATION.fullmatch(name):
                raise ValueError(f"only takes {', '.join(CONDITIONS)} or cancellation:N, got {name!r}")
        return cls(bool(no_nan), bool(no_inf), bool(no_subnormal), exponents, names)

    @classmethod
    def of_header(cls, header: dict[str, str]) -> Space:
        """What a header says; ValueError where it cannot be that."""
        names = header.get("excluded", "").split()
        if odd := [name for name in names if name not in _EXCLUDED]:
            raise ValueError(f"excluded must be of {', '.join(_EXCLUDED)}, not {odd[0]!r}")
        excluded = {f"no_{name}": True for name in names}
        return cls.make(**excluded, exponents=header.get("exponents"), only=header.get("only"))

    def __bool__(self) -> bool:
        return self != Space()

    @property
    def places(self) -> int | None:
        """The least number of places that a sum loses at its front; None where sums may be any."""
        found = [int(name.partition(":")[2] or 2) for name in self.only if name.startswith("cancellation")]
        return max(found) if found else None

    def facts(self) -> dict[str, str]:
        """What a header says of it."""
        excluded = " ".join(name for name in _EXCLUDED if getattr(self, f"no_{name}"))
        out = {"excluded": excluded} if excluded else {}
        if self.exponents is not None:
            out["exponents"] = "{}:{}".format(*self.exponents)
        return out | ({"only": ",".join(self.only)} if self.only else {})

    def options(self) -> str:
        """The command-line options that state it, each preceded by a space."""
        out = "".join(f" --no-{name}" for name in _EXCLUDED if getattr(self, f"no_{name}"))
        if self.exponents is not None:
            out += " --exponents={}:{}".format(*self.exponents)
        return out + (f" --only {','.join(self.only)}" if self.only else "")

    @property
    def of_operands(self) -> Space:
        """Without the conditions on results."""
        return Space(self.no_nan, self.no_inf, self.no_subnormal, self.exponents)

    def check(self, formats: Sequence[AnyFormat], whose: str) -> None:
        """ValueError if operands of these formats have no such codes, or the space does not apply to a format."""
        for fmt in formats:
            if fmt.leads:
                raise ValueError(f"{whose}: codes of {fmt} take two words; of these no part of the space is left out")
            if self.exponents is not None and not fmt.exponent_bits:
                raise ValueError(f"{whose}: exponents are of floats, and {fmt} is none")
            known = admitted_codes(fmt, self.of_operands)
            if known is not None and not known.count:
                raise ValueError(f"{whose}: the space is empty: no code of {fmt} is admitted by{self.options()}")

    def admits(self, formats: Sequence[AnyFormat], operands: Sequence[np.ndarray]) -> np.ndarray:
        """Which vectors have operands of it alone; operands of shape (n,), or (n, elements). A format None: any."""
        out = np.ones(len(operands[0]), bool)
        if not self.of_operands:
            return out
        for fmt, codes in zip(formats, operands, strict=True):
            known = None if fmt is None else admitted_codes(fmt, self.of_operands)
            if known is not None:
                out &= known.has(codes).reshape(len(codes), -1).all(1)
        return out

    def moved(self, formats: Sequence[AnyFormat], operands: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Operands whose codes lie inside, those that did not replaced: the code's number modulo how many there are."""
        out = []
        for fmt, codes in zip(formats, operands, strict=True):
            known = None if fmt is None else admitted_codes(fmt, self.of_operands)
            if known is not None and not (inside := known.has(codes)).all():
                codes = codes.copy()
                codes[~inside] = known.codes(codes[~inside].astype(np.uint64) % np.uint64(known.count))
            out.append(codes)
        return tuple(out)


@lru_cache(maxsize=128)
def admitted_codes(fmt, space: Space) -> CodeSet | None:
    """The codes of a format that a space admits; None: all of them.

    >>> import softnum as sn
    >>> from softnum.vectors import Space
    >>> admitted_codes(sn.format("e5m2"), Space(no_nan=True, no_inf=True, no_subnormal=True)).count  # 30 * 4 * 2 + 2
    242
    """
    total = 1 << fmt.bits
    if fmt.bits <= _ALL_CODES:
        starts = np.arange(total, dtype=np.uint64)
    else:
        starts = np.array(sorted({0, *(c for c in _breaks(fmt) if 0 <= c < total)}), np.uint64)
    kept = _kept(fmt, starts.astype(fmt.storage_dtype), space)
    if kept.all():
        return None
    ends = np.append(starts[1:], np.uint64(0))  # 2**64 is 0
    ends[-1] = np.uint64(total & ((1 << 64) - 1))
    lengths = (ends - starts)[kept]  # modulo 2**64
    return CodeSet(starts[kept], np.concatenate([np.zeros(1, np.uint64), np.cumsum(lengths, dtype=np.uint64)]))


def _breaks(fmt):
    """Codes at which the class or the exponent may change."""
    top = 1 << (fmt.bits - 1)
    if not fmt.exponent_bits:
        return (0, 1, top - 1, top, top + 1, 2 * top - 1)
    m, sign = fmt.mantissa_bits, fmt.signed << (fmt.bits - 1)
    half = 1 << m >> 1
    plain = [field << m for field in range(1 << fmt.exponent_bits)] + [1 << k for k in range(m)]
    last = ((1 << fmt.exponent_bits) - 1) << m
    plain += [1, last + 1, last + half, last + half + 1, fmt.max_code, fmt.max_code + 1, fmt.max_code + 2]
    plain += [(1 << (fmt.bits - fmt.signed)) - 1]
    plain += [code for code in (fmt.inf_code, fmt.nan_code) if code is not None]
    return [code ^ s for code in plain for s in {0, sign}]


def _kept(fmt, codes: np.ndarray, space: Space) -> np.ndarray:
    kept = np.ones(len(codes), bool)
    if space.no_nan:
        kept &= ~fmt.is_nan(codes)
    infinite = fmt.is_infinite(codes)
    if space.no_inf:
        kept &= ~infinite
    if not fmt.exponent_bits:
        return kept
    subnormal = fmt.is_subnormal(codes)
    if space.no_subnormal:
        kept &= ~subnormal
    if space.exponents is not None:
        low, high = space.exponents
        size = fmt.magnitudes(codes).astype(np.float64)  # of subnormals below 2**52: exact
        place = np.frexp(np.where(subnormal, size, 1.0))[1] - 1 - fmt.mantissa_bits + fmt.emin
        exponent = np.where(subnormal, place, fmt.exponent_fields(codes).astype(np.int64) - fmt.bias)
        kept &= ~(fmt.is_nan(codes) | infinite | fmt.is_zero(codes)) & (exponent >= low) & (exponent <= high)
    return kept
