"""Arrays of codes of floats and of fixed point: which are zero, NaN, infinite, where signs and exponents lie."""

from __future__ import annotations

import numpy as np

__all__ = ["BitStringCodes", "FixedCodes", "FloatCodes", "TwosComplementCodes", "ValueCodes"]


class FloatCodes:
    """What the codes of a `FloatFormat` say, from the most significant bit: sign, exponent field, fraction."""

    #: IEEE 754-2019 5.7.2
    class_names: tuple[str, ...] = (
        "signalingNaN", "quietNaN", "negativeInfinity", "negativeNormal", "negativeSubnormal", "negativeZero",
        "positiveZero", "positiveSubnormal", "positiveNormal", "positiveInfinity",
    )  # fmt: skip
    #: the mode in which cutting off the last bits of a number rounds
    truncation = "toward_zero"

    def sign_bits(self, codes: np.ndarray) -> np.ndarray:
        """Where the sign is minus, that of -0 and NaN included; a NaN in -0's code has none."""
        if not self.signed:
            return np.zeros(codes.shape, bool)
        set_bit = codes >> (self.bits - 1) != 0
        return set_bit & (codes != self.nan_code) if self.nan_codes == "negative_zero" else set_bit

    def sign_text(self, code: str) -> str | None:
        """`sign_bits` as a condition in C on a code; None where there is no such text."""
        sign = self.signed << (self.bits - 1)
        return f"{code} & {sign:#x}u" + f" && {code} != {sign:#x}u" * (self.nan_codes == "negative_zero")

    def order_keys(self, codes: np.ndarray) -> np.ndarray:
        """Unsigned integers that lie as the codes do in the total order, each code's its own."""
        kind = codes.dtype.type
        mask, sign = kind((1 << self.bits) - 1), kind(1 << (self.bits - 1))
        if not self.signed:  # P3109's NaN, the last code, comes first
            return (codes + kind(1)) & mask if self.p3109 else codes
        negative = codes >= sign
        if self.nan_codes == "negative_zero":  # the NaN goes before the numbers
            return np.where(negative, (kind(0) - codes) & (sign - kind(1)), codes | sign)
        return np.where(negative, mask - codes, codes | sign)

    def value_keys(self, codes: np.ndarray) -> np.ndarray:
        """uint64 that lie as the values do, one for both zeros; of no meaning for NaNs."""
        codes = codes.astype(np.uint64)
        if not self.signed:
            return codes
        top = np.uint64(1 << (self.bits - 1))
        magnitude = codes & (top - np.uint64(1))
        return np.where(codes & top != 0, top - magnitude, top + magnitude)

    def magnitudes(self, codes: np.ndarray) -> np.ndarray:
        """The codes without their sign bits."""
        return codes & codes.dtype.type((1 << (self.bits - self.signed)) - 1)

    def sign_and_size(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(where the sign bit is set, the rest of the code)"""
        sign = codes >> codes.dtype.type(self.bits - 1) != 0 if self.signed else np.zeros(codes.shape, bool)
        return sign, self.magnitudes(codes)

    def exponent_fields(self, codes: np.ndarray) -> np.ndarray:
        """The exponent fields of codes, as int64."""
        field = codes.astype(np.uint64, copy=False) >> np.uint64(self.mantissa_bits)
        return (field & np.uint64((1 << self.exponent_bits) - 1)).astype(np.int64)

    def is_nan(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are NaN."""
        if not self.has_nan:
            return np.zeros(codes.shape, bool)
        if self.nan_codes == "negative_zero":
            return codes == self.nan_code
        magnitude = self.magnitudes(codes)
        return magnitude > self.inf_code if self.nan_codes == "ieee" else magnitude == self.nan_code

    def is_zero(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are +0 or -0."""
        if not self.has_zero:
            return np.zeros(codes.shape, bool)
        zero = self.magnitudes(codes) < (1 << self.mantissa_bits if self.lowest_binade == "zero" else 1)
        return zero & ~self.is_nan(codes)

    def is_infinite(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are infinities."""
        if not self.infinities:
            return np.zeros(codes.shape, bool)
        return self.magnitudes(codes) == self.inf_code

    def is_subnormal(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are subnormal numbers."""
        if self.lowest_binade != "subnormal":
            return np.zeros(codes.shape, bool)
        magnitude = self.magnitudes(codes)
        return (magnitude > 0) & (magnitude < 1 << self.mantissa_bits)

    def class_numbers(self, codes: np.ndarray) -> np.ndarray:
        """The class of each code, as a number into ``class_names`` (int64)."""
        return self.arithmetic.classify(codes, self)

    def limit_codes(self) -> dict[str, int]:
        """The magnitude codes at the limits, by what they are."""
        normal = 1 << self.mantissa_bits
        codes = {"smallest value": int(self.has_zero)}
        if self.lowest_binade == "subnormal" and self.mantissa_bits:
            codes |= {"largest subnormal": normal - 1, "smallest normal": normal}
        elif self.lowest_binade == "zero":
            codes = {"smallest value": normal}
        return codes | {"beside the largest": self.max_code - 1, "largest value": self.max_code}

    def fields(self, code: int) -> list[tuple[str, str]]:
        """The bits of a code in fields, as (name, bits): sign, exponent and fraction, those that it has."""
        bits = f"{int(code):0{self.bits}b}"
        sign, rest = (bits[:1], bits[1:]) if self.signed else ("", bits)
        parts = ("sign", sign), ("exponent", rest[: self.exponent_bits]), ("fraction", rest[self.exponent_bits :])
        return [(name, part) for name, part in parts if part]


class TwosComplementCodes:
    """What codes say that lie as integers do, in two's complement if signed: of `FixedFormat`, posits and takums."""

    #: the mode in which cutting off the last bits of a number rounds
    truncation = "down"

    def order_keys(self, codes: np.ndarray) -> np.ndarray:
        """Unsigned integers that lie as the codes do in the order of the values."""
        codes = np.asarray(codes)
        return codes ^ codes.dtype.type(1 << (self.bits - 1)) if self.signed else codes

    def value_keys(self, codes: np.ndarray) -> np.ndarray:
        """uint64 that lie as the values do; of no meaning for NaN."""
        return self.order_keys(codes.astype(np.uint64))

    def sign_and_size(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(nowhere: two's complement has no sign apart, the codes in the order of the values)"""
        return np.zeros(codes.shape, bool), self.order_keys(codes)

    def is_infinite(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are infinities: none."""
        return np.zeros(codes.shape, bool)

    is_subnormal = is_infinite

    def is_zero(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are 0."""
        return codes == 0

    def limit_codes(self) -> dict[str, int]:
        """None: there is nothing special between the ends."""
        return {}


class BitStringCodes(TwosComplementCodes):
    """What the codes of posits and takums say: bit strings in two's complement, whose one NaN, NaR, is the sign bit."""

    #: a NaN is equal to itself and below all numbers
    nan_is_least = True
    smallest_code = 1
    class_names: tuple[str, ...] = ("NaR", "lowest", "negative", "zero", "positive", "highest")

    @property
    def nan_code(self) -> int:
        """The code of NaR: the sign bit alone."""
        return 1 << (self.bits - 1)

    @property
    def max_code(self) -> int:
        """The code of the largest value."""
        return self.nan_code - 1

    def class_numbers(self, codes: np.ndarray) -> np.ndarray:
        """The class of each code, as a number into ``class_names`` (int64)."""
        place = self.order_keys(codes).astype(np.int64) - self.nan_code  # from NaR, the least, to the highest
        ends = np.where(place == 1 - self.nan_code, 1, np.where(place == self.max_code, 5, 3 + np.sign(place)))
        return np.where(place == -self.nan_code, 0, ends)

    def is_nan(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are NaR."""
        return codes == self.nan_code

    def fields(self, code: int) -> list[tuple[str, str]]:
        """The bits of a code in fields, as (name, bits), of a negative one those of its two's complement."""
        bits = f"{int(code):0{self.bits}b}"
        magnitude = -int(code) & (2 * self.nan_code - 1) if code > self.nan_code else int(code)
        rest = f"{magnitude:0{self.bits}b}"[1:]
        parts = [("sign", bits[0])]
        for name, width in self._fields(rest):
            parts.append((name, rest[:width]))
            rest = rest[width:]
        return [(name, part) for name, part in [*parts, ("fraction", rest)] if part]

    def _fields(self, rest: str) -> list[tuple[str, int]]:
        """(name, width) of what comes after the sign and before the fraction: of a takum."""
        regime = int(rest[1:4].ljust(3, "0"), 2)
        return [("direction", 1), ("regime", 3), ("characteristic", regime if rest[0] == "1" else 7 - regime)]

    def sign_bits(self, codes: np.ndarray) -> np.ndarray:
        """Where a value is negative."""
        return np.asarray(codes) > self.nan_code

    def stepped(self, codes: np.ndarray, step: int) -> np.ndarray:
        """The next code, as two's complement: beside the ends lies NaR, and beside NaR the other end."""
        return (codes.astype(np.int64) + step & (2 * self.nan_code - 1)).astype(self.storage_dtype)


class FixedCodes(TwosComplementCodes):
    """What the codes of a `FixedFormat` say: integers, in two's complement if signed."""

    class_names: tuple[str, ...] = ("lowest", "negative", "zero", "positive", "highest")

    def class_numbers(self, codes: np.ndarray) -> np.ndarray:
        """The class of each code, as a number into ``class_names`` (int64)."""
        top = 1 << (self.bits - 1)
        lowest, highest = (top, top - 1) if self.signed else (0, 2 * top - 1)
        kind = np.where(codes == 0, 2, np.where(self.sign_bits(codes), 1, 3))
        return np.where(codes == highest, 4, np.where((codes == lowest) & (codes != 0), 0, kind))

    def sign_bits(self, codes: np.ndarray) -> np.ndarray:
        """Where the sign is minus."""
        return codes >> (self.bits - 1) != 0 if self.signed else np.zeros(codes.shape, bool)

    def sign_text(self, code: str) -> str | None:
        """`sign_bits` as a condition in C on a code; None where there is no such text."""
        return f"{code} & {self.signed << (self.bits - 1):#x}u"

    def is_nan(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are NaN: none."""
        return np.zeros(codes.shape, bool)

    def fields(self, code: int) -> list[tuple[str, str]]:
        """The bits of a code, as (name, bits): one field, with the point where it lies inside or at an end of it."""
        bits = f"{int(code):0{self.bits}b}"
        if not 0 <= self.integer_bits <= self.bits:  # the point lies outside
            return [("fraction", bits)]
        whole, rest = bits[: self.integer_bits], bits[self.integer_bits :]
        return [("fraction", f"{whole}.{rest}" if rest and whole else whole or f".{rest}")]


class ValueCodes:
    """What the codes of a user's own format say: what their values do, for nothing else is known of the bits."""

    class_names: tuple[str, ...] = ("NaN", "negativeInfinity", "negative", "zero", "positive", "positiveInfinity")
    truncation = "toward_zero"
    exponent_bits = 0
    precision = nan_code = None

    def _numbers(self, codes: np.ndarray) -> np.ndarray:
        return np.asarray(self.decode(np.asarray(codes), np.float64))

    def class_numbers(self, codes: np.ndarray) -> np.ndarray:
        """The class of each code, as a number into ``class_names`` (int64)."""
        x = self._numbers(codes)
        with np.errstate(invalid="ignore"):
            kinds = 3 + np.where(np.isinf(x), 2, 1) * np.sign(np.nan_to_num(x)).astype(np.int64)
        return np.where(np.isnan(x), 0, kinds)

    def is_nan(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are NaN."""
        return np.isnan(self._numbers(codes))

    def is_infinite(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are infinities."""
        return np.isinf(self._numbers(codes))

    def is_zero(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are zero."""
        return self._numbers(codes) == 0

    def is_subnormal(self, codes: np.ndarray) -> np.ndarray:
        """Which codes are subnormal: none."""
        return np.zeros(np.shape(codes), bool)

    def value_keys(self, codes: np.ndarray) -> np.ndarray:
        """uint64: of each value its place among the format's, of up to 16 bits; of no meaning for NaN."""
        return np.searchsorted(np.unique(self.values), self._numbers(codes)).astype(np.uint64)

    def sign_and_size(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(where the value is negative, -0 among them, uint64 that lie as the magnitudes do)"""
        x = self._numbers(codes)
        return np.signbit(x), np.abs(x).view(np.uint64)

    def limit_codes(self) -> dict[str, int]:
        """None: which values lie at the limits, the values say."""
        return {}

    def fields(self, code: int) -> list[tuple[str, str]]:
        """The bits of a code, as (name, bits)."""
        return [("code", f"{int(code):0{self.bits}b}")]
