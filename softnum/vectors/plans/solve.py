"""Operands that meet conditions on the result, made for them: a sum's or product's bits are chosen from its end.

Every number is a significand times a power of two. The place h of the lowest bit that is 1 decides: half a last place
of the result (a tie), above it (exact). Operands are chosen so that the exact result ends there; the result's exponent
is chosen for overflow and subnormals; for cancellation the addend is the other term's negative, moved by few codes.
What is proposed is proved by `softnum.vectors.plans.conditions.meets`.

Source: the problem is that of Aharoni et al., "FPgen: a test generation framework for datapath floating-point
verification" (HLDVT 2003).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softnum.formats.dispatch import of_format
from softnum.vectors.plans.fpu import FUSED
from softnum.vectors.plans.rules import negated_codes
from softnum.vectors.plans.spec import VectorSpec
from softnum.vectors.plans.strata import raw_words

__all__ = ["PROPOSALS", "proposed"]

#: vectors proposed at a time
PROPOSALS = 1 << 15
_DOMAIN = 6  # of keys; strata.py has those below
_U, _I = np.uint64, np.int64


@of_format
def _is_solved(fmt) -> bool:
    """Whether operands and results of a format are made from their bits."""
    return fmt.lowest_binade == "subnormal"


@_is_solved.fixed
def _is_fixed(fmt) -> bool:
    return True


@_is_solved.custom
def _is_tapered(fmt) -> bool:
    return False


class _Words:
    """Random words of a block, taken in turn: 2**15 at a time."""

    def __init__(self, seed: int, block: int) -> None:
        self.seed, self.block, self.taken = seed, block, 0

    def next(self) -> np.ndarray:
        """So many words more."""
        self.taken += 1
        return raw_words(self.seed, _DOMAIN, self.block << 6 | self.taken, PROPOSALS)

    def between(self, low, high) -> np.ndarray:
        """Integers from low to high, both included; low where high lies below."""
        size = np.maximum(np.asarray(high, _I) - np.asarray(low, _I) + 1, 1)
        return np.asarray(low, _I) + (self.next() >> _U(11)).astype(_I) % size

    def often(self, of: int) -> np.ndarray:
        """Once in so many times."""
        return self.between(0, of - 1) == 0


class _Solver:
    """The operands of one block."""

    def __init__(self, spec: VectorSpec, words: _Words) -> None:
        self.spec, self.words, self.out = spec, words, spec.out_fmt
        self.kinds = {name.partition(":")[0] for name in spec.space.only}
        self.op = {"from_integer": "convert", **dict.fromkeys(FUSED, "fma")}.get(spec.op, spec.op)

    # -- parts of numbers ----------------------------------------------------------------------------------------------
    def reach(self, fmt) -> tuple[int, int]:
        """The exponents that operands may have."""
        low, high = fmt.emin - (0 if self.spec.space.no_subnormal else fmt.mantissa_bits), fmt.emax
        if self.spec.space.exponents is not None:
            low, high = max(low, self.spec.space.exponents[0]), min(high, self.spec.space.exponents[1])
        return low, high

    def exponent(self, fmt, low=None, high=None) -> np.ndarray:
        """Exponents of operands, those about 1 more often; or from low to high."""
        first, last = self.reach(fmt)
        if low is not None:
            return np.clip(self.words.between(low, high), first, last)
        near = self.words.between(max(first, min(-fmt.precision, last)), min(last, max(fmt.precision, first)))
        return np.where(self.words.often(4), self.words.between(first, last), near)

    def significand(self, fmt) -> np.ndarray:
        """Of all the bits of the precision, the first of them 1."""
        return self.words.next() >> _U(64 - fmt.precision) | _U(1 << fmt.mantissa_bits)

    def ended(self, significand, place, fmt, odd=True) -> np.ndarray:
        """Significands whose lowest bit that is 1 stands at a place (odd), or that have none below it."""
        place = np.clip(place, 0, fmt.precision - 1).astype(_U)
        kept = significand >> place << place
        return kept | _U(1) << place if odd else kept | _U(1 << fmt.mantissa_bits)

    def code(self, fmt, exponent, significand, negative=None) -> np.ndarray:
        """Codes of signs (drawn, if not given), exponents and significands; below the normals bits are cut off."""
        field = np.asarray(exponent, _I) - fmt.emin
        below = np.clip(-field, 0, fmt.precision).astype(_U)
        fraction = significand & _U((1 << fmt.mantissa_bits) - 1)
        top = fmt.emin + fmt.bias  # the lowest field of normals
        normal = (np.maximum(field, 0) + top).astype(_U) << _U(fmt.mantissa_bits) | fraction
        code = np.where(field < 0, significand >> below, normal)
        if not fmt.signed:
            return code
        negative = self.words.often(2) if negative is None else negative
        return code | negative.astype(_U) << _U(fmt.bits - 1)

    # -- the result's exponent, and where it ends ----------------------------------------------------------------------
    def target(self) -> np.ndarray | None:
        """The exponent that the result is to have; None: any."""
        out = self.out
        if not out.exponent_bits:
            return None
        if "overflow" in self.kinds:
            near = self.words.between(out.emax - 1, out.emax + 2)
            return np.where(self.words.often(3), self.words.between(out.emax, 2 * out.emax), near)
        if self.kinds & {"underflow", "subnormal-result"}:
            return self.words.between(out.emin - out.precision - 1, out.emin - 1)
        return None

    def end(self, exponent) -> np.ndarray:
        """The place of the lowest 1 of a result of this exponent: half a last place, or above."""
        out = self.out
        half = np.maximum(exponent, out.emin) - out.precision if out.exponent_bits else np.full(
            PROPOSALS, -out.fraction_bits - 1)  # fmt: skip
        if self.op == "round_to_integral":
            half = np.full(PROPOSALS, -1)
        if "exact" in self.kinds:
            return half + self.words.between(1, max(1, (out.precision or out.bits) // 2))
        return half

    @property
    def ends(self) -> bool:
        """Whether it matters where the result ends."""
        return bool(self.kinds & {"ties", "exact"})

    # -- operations ----------------------------------------------------------------------------------------------------
    def one(self) -> list[np.ndarray]:
        """Of one operand that is converted or rounded to an integer."""
        fmt, target = self.spec.formats[0], self.target()
        if not fmt.exponent_bits:
            return [self.integer(fmt)]
        e = self.exponent(fmt)
        if target is not None:
            e = np.clip(target, *self.reach(fmt))
        elif self.ends and (self.op == "round_to_integral" or not self.out.exponent_bits):
            shift = 0 if self.out.exponent_bits else self.out.fraction_bits
            e = self.exponent(fmt, -2 - shift, fmt.precision)
        elif self.ends and self.out.precision >= fmt.precision:  # ends between subnormals alone
            e = self.exponent(fmt, self.out.emin - self.out.precision - 1, self.out.emin)
        s = self.significand(fmt)
        if self.ends:
            s = self.ended(s, self.end(e) - e + fmt.mantissa_bits, fmt)
        return [self.code(fmt, e, s)]

    def integer(self, fmt) -> np.ndarray:
        """Integers, or fixed point, of every length."""
        bits = fmt.bits - fmt.signed
        length = self.words.between(1, bits)
        s = self.words.next() >> _U(64 - bits) | _U(1 << (bits - 1))
        s = s >> (bits - length).astype(_U)
        if self.ends:
            e = length - 1 - fmt.fraction_bits
            place = np.clip(self.end(e) + fmt.fraction_bits, 0, bits - 1).astype(_U)
            s = s >> place << place | _U(1) << place
        negative = self.words.often(2) & bool(fmt.signed)
        mask = _U((1 << fmt.bits) - 1)
        return np.where(negative, _U(0) - s, s) & mask

    def sum(self) -> list[np.ndarray]:
        """a + b: b's lowest 1 is where the sum ends."""
        (fa, fb), out = self.spec.formats, self.out
        if "cancellation" in self.kinds:
            return self.cancelled()
        target = self.target()
        ea = self.exponent(fa) if target is None else np.clip(target, *self.reach(fa))
        h = self.end(ea)
        most = np.minimum(ea, h + fb.mantissa_bits)
        eb = self.words.between(h, most) if self.ends else ea - self.words.between(0, out.precision + 2)
        eb = np.clip(eb, *self.reach(fb))
        sa, sb = self.significand(fa), self.significand(fb)
        if self.ends:
            sa = self.ended(sa, h + 1 - ea + fa.mantissa_bits, fa, odd=False)
            sb = self.ended(sb, h - eb + fb.mantissa_bits, fb)
        negative = self.words.often(2)
        other = negative ^ (self.spec.op == "subtract")
        apart = self.words.often(2) & (not self.kinds & {"overflow"})  # what overflows is of one sign
        a, b = self.code(fa, ea, sa, negative), self.code(fb, eb, sb, other ^ apart)
        if fa == fb:
            swapped = self.words.often(2)
            a, b = np.where(swapped, b, a), np.where(swapped, a, b)
        return [a, b]

    def factors(self, formats, exponent, end, ends=None) -> tuple[Any, ...]:
        """(a, b) whose product has about this exponent and, where it ends at all, its lowest 1 at `end`."""
        fa, fb = formats
        (low, high), (first, last) = self.reach(fa), self.reach(fb)
        ea = self.words.between(np.maximum(low, exponent - last), np.minimum(high, exponent - first))
        ea = np.clip(ea, low, high)
        eb = np.clip(exponent - ea, first, last)
        sa, sb = self.significand(fa), self.significand(fb)
        if self.ends if ends is None else ends:
            zeros = end - ea - eb + fa.mantissa_bits + fb.mantissa_bits
            of_a = self.words.between(np.maximum(0, zeros - fb.mantissa_bits), np.minimum(fa.mantissa_bits, zeros))
            sa, sb = self.ended(sa, of_a, fa), self.ended(sb, zeros - of_a, fb)
        return self.code(fa, ea, sa), self.code(fb, eb, sb)

    def product_exponent(self) -> np.ndarray:
        """Of a product about 1, or as the result's is to be."""
        target = self.target()
        if target is not None:
            return target
        f = self.spec.formats
        ends = [a + b for a, b in zip(self.reach(f[0]), self.reach(f[1]), strict=True)]
        low, high = max(ends[0], self.out.emin - self.out.precision - 1), min(ends[1], self.out.emax)
        middle = np.clip(self.words.between(-self.out.precision, self.out.precision), low, max(low, high))
        return np.where(self.words.often(4), self.words.between(low, high), middle)

    def product(self) -> list[np.ndarray]:
        """a * b."""
        e = self.product_exponent()
        return list(self.factors(self.spec.formats, e, self.end(e + self.words.often(2))))

    def fused(self) -> list[np.ndarray]:
        """a * b + c: the product ends where the sum does, in c's last places or with c beside it."""
        if "cancellation" in self.kinds:
            return self.cancelled()
        fc = self.spec.formats[2]
        e = self.product_exponent()
        first = self.words.often(2)  # c is the larger term
        h = self.end(e + self.words.often(2) * ~first)
        below = h + self.words.between(0, self.out.precision - 1)
        a, b = self.factors(self.spec.formats[:2], np.where(first, below, e) if self.ends else e, h)
        ec = np.where(first, e, e - self.words.between(0, self.out.precision))
        ec = np.clip(ec, *self.reach(fc))
        sc = self.significand(fc)
        if self.ends:
            sc = self.ended(sc, h + 1 - ec + fc.mantissa_bits, fc, odd=False)
        return [a, b, self.code(fc, ec, sc)]

    def cancelled(self) -> list[np.ndarray]:
        """A sum whose second term is the negative of the first, moved by a number of codes of few bits."""
        from softnum.vectors.plans.strata import _computed

        f, places = self.spec.formats, self.spec.space.places
        if self.op == "fma":
            e = self.product_exponent()
            lost = places + self.words.between(0, 2)
            a, b = self.factors(f[:2], e, e - lost - self.out.precision + ("exact" in self.kinds), self.ends)
            first = _computed("multiply", [a, b], f[:2], f[2])
            operands = [a, b]
            product, addend = FUSED.get(self.spec.op, (False, False))
            same = product ^ addend
        else:
            a = self.code(f[0], self.exponent(f[0]), self.significand(f[0]))
            first = a if f[0] == f[1] else _computed("convert", [a], f[:1], f[1]).astype(_U)
            operands, same = [a], self.spec.op == "subtract"
        last = f[-1]
        bits = self.words.between(0, max(last.mantissa_bits - places + 1, 1))
        if self.ends and self.op == "fma":  # where the product ends decides how long the rest must be
            bits = np.clip(last.mantissa_bits - lost + 1, 0, last.mantissa_bits)
        delta = self.words.next() & ((_U(1) << bits.astype(_U)) - _U(1))
        if self.ends and self.op == "fma":
            delta |= (_U(1) << bits.astype(_U)) >> _U(1)
        delta = delta.astype(_I)
        delta = np.where(self.words.often(2), delta, -delta).astype(_U)
        code = first.astype(_U)
        code = code if same else negated_codes(code, last)
        moved = code + delta & _U((1 << last.bits) - 1)
        return [*operands, moved]

    def quotient(self) -> list[np.ndarray]:
        """a / b: a is the product of b and of a quotient of few bits."""
        (fa, fb), out = self.spec.formats, self.out
        target = self.target()
        if not self.ends:
            e = self.exponent(fa) if target is None else target
            eb = self.exponent(fb)
            ea = np.clip(e + eb + self.words.often(2), *self.reach(fa))
            return [self.code(fa, ea, self.significand(fa)), self.code(fb, eb, self.significand(fb))]
        tie = "ties" in self.kinds
        most = min(out.precision + tie, fa.precision)
        nq = self.words.between(1, most)
        if target is not None and not tie:
            nq = np.clip(nq, 1, np.maximum(target - out.emin + out.precision, 1))
        nb = self.words.between(1, np.minimum(fb.precision, np.maximum(fa.precision - nq, 1)))
        q = self.words.next() >> (64 - nq).astype(_U) | _U(1) << (nq - 1).astype(_U) | _U(1)
        d = self.words.next() >> (64 - nb).astype(_U) | _U(1) << (nb - 1).astype(_U) | _U(1)
        normal = nq == out.precision + tie
        eq = self.exponent(out) if target is None else target
        eq = np.where(normal | (not tie), eq, out.emin - out.precision + nq - 1)
        n = q * d  # of at most 2**53
        length = np.frexp(n.astype(np.float64))[1].astype(_I)
        eb = self.words.between(*self.reach(fb))
        eb = np.where(self.words.often(4), eb, self.words.between(-fb.precision, fb.precision))
        ea = eq + eb + length - nq - nb + 1
        sa = n << np.maximum(fa.precision - length, 0).astype(_U)
        sb = d << (fb.precision - nb).astype(_U)
        return [self.code(fa, ea, sa), self.code(fb, eb, sb)]

    def root(self) -> list[np.ndarray]:
        """sqrt(a): a is the square of a root of few bits."""
        fa, out = self.spec.formats[0], self.out
        target = self.target()
        if not self.ends:
            e = self.exponent(fa) if target is None else 2 * target + self.words.often(2)
            return [self.code(fa, np.clip(e, *self.reach(fa)), self.significand(fa), np.zeros(PROPOSALS, bool))]
        tie = "ties" in self.kinds
        most = min(out.precision + tie, (fa.precision + 1) // 2)
        n = np.full(PROPOSALS, most) if tie else self.words.between(1, most)
        r = self.words.next() >> (64 - n).astype(_U) | _U(1) << (n - 1).astype(_U) | _U(1)
        square = r * r
        length = np.frexp(square.astype(np.float64))[1].astype(_I)
        low, high = self.reach(fa)
        e = 2 * self.words.between(-(-low // 2), (high - 1) // 2) + length - 2 * n + 1
        s = square << np.maximum(fa.precision - length, 0).astype(_U)
        return [self.code(fa, e, s, np.zeros(PROPOSALS, bool))]

    def operands(self) -> list[np.ndarray] | None:
        """By the operation; None of those that are not solved."""
        methods = {
            "add": self.sum, "subtract": self.sum, "multiply": self.product, "fma": self.fused, "divide": self.quotient,
            "sqrt": self.root, "convert": self.one, "round_to_integral": self.one, "to_integer": self.one,
        }  # fmt: skip
        floats = self.op == "convert" or all(f.exponent_bits for f in self.spec.formats)
        rounded = self.out.exponent_bits or self.op in ("convert", "to_integer")
        if self.op not in methods or not floats or not rounded:
            return None
        if not all(map(_is_solved, (*self.spec.formats, self.out))):
            return None
        return methods[self.op]()


def proposed(spec: VectorSpec, seed: int, block: int) -> tuple[np.ndarray, ...] | None:
    """Operands of `PROPOSALS` vectors that likely meet the conditions; None where the operation is not solved.

    >>> from softnum.vectors import Space, VectorSpec
    >>> from softnum.vectors.plans.conditions import meets
    >>> spec = VectorSpec.make("multiply", "binary64", space=Space.make(only="ties"))
    >>> found = meets(spec, spec.evaluate(proposed(spec, 0, 0)))
    >>> found.mean() > 0.3
    np.True_
    """
    operands = _Solver(spec, _Words(seed, block)).operands()
    if operands is None:
        return None
    return tuple(x.astype(f.storage_dtype) for x, f in zip(operands, spec.formats, strict=True))
