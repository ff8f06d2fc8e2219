"""Wrong designs of an operation: what results they would give.

A `Model` is an operation with what a design might do otherwise: another mode, flushing, bits that are dropped before
the rounding, a second rounding. Two faults are one model with both changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softnum.formats.modes import Flags
from softnum.mac.products.engines import definition_of
from softnum.runtime import _core
from softnum.vectors.checks.deliveries import (
    NotApplicable,
    delivered_nans,
    delivered_zeros,
    held_bits,
    made_nans,
    replaced,
    signed,
    with_fraction,
)
from softnum.vectors.checks.exact_models import rounded_through
from softnum.vectors.checks.finer import (
    aligning_unit,
    call,
    first_options,
    free_of,
    grid_of,
    lost_in_shift,
    shifted_wrongly,
)
from softnum.vectors.plans.codes import is_nan
from softnum.vectors.plans.spec import VectorSpec

__all__ = ["Model", "NotApplicable", "changed_words"]

_OVERFLOW = int(Flags.OVERFLOW)
_OWN = int(Flags.INVALID | Flags.DIVIDE_BY_ZERO)  # what the operation raises, not its rounding


@dataclass(frozen=True)
class Model:
    """An operation as a design might compute it.

    Parameters
    ----------
    spec : VectorSpec
        What is right.
    rounding, overflow, tininess : str, optional
        Other than the spec's.
    order : tuple of int, optional
        Which operand stands in each place.
    operands : tuple of (int, str, int or tuple), optional
        What becomes of operands (`softnum.vectors.checks.deliveries.replaced`).
    flush_inputs : bool
    flush_results : {None, "before", "after"}
    flush_sign : bool
        Whether a zero that stands for a tiny result keeps the sign.
    nan : str, optional
        The NaN profile, other than the spec's; or ``nan_code``, the code that stands for every NaN, ``nan_operand``,
        the rule by which an operand's does; ``nan_made``, the code, and its sign, of those that the operation makes.
    random : {None, "zeros", "ones", "half", "reversed", "complemented"}
        What becomes of the random bits.
    keep : (int, str), optional
        Bits kept after the last place, the others dropped unseen: "all", always; "free", before a shift into the
        subnormals, which keeps them; "subnormal", in that shift alone; "unshifted", in that shift, where what lay
        below before it counts (``finer.lost_in_shift``); "align", of the smaller addend; "point" and "point all", as
        "free" and "all", of a quotient or product before it is normalised.
    subnormal_shift : (str, bool), optional
        What is wrong with the shift into the subnormals (`softnum.vectors.checks.finer.shifted_wrongly`).
    via : int or format, optional
        A format, or a precision so many bits above the result's with exponents of no bound, to round to first.
    unfused : bool
        Whether an fma rounds its product.
    overflow_to : {None, "infinity", "max"}
        What is delivered where a result overflows, whatever rule and mode say.
    overflow_fraction : (str, bool), optional
        What is too large keeps a fraction of its own (`softnum.vectors.checks.deliveries.with_fraction`).
    zero : (str, str), optional
        Which zeros have which sign (`softnum.vectors.checks.deliveries.delivered_zeros`).
    sign : str, optional
        The sign of results (`softnum.vectors.checks.deliveries.signed`).
    stuck : (int, int), optional
        Bits of the result that never change, and what they are.
    slowly : bool
        Whether to compute in Python integers what does not fit into 64 bits.
    known : dict, optional
        What is computed is kept here, for other models of the same operands; they must not be changed.

    Examples
    --------
    >>> import numpy as np
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.checks.models import Model
    >>> a, b = np.array([[0x3D], [0x3D]], np.uint8)  # 1.25 * 1.25 = 1.5625, between 1.5 and 1.75
    >>> Model(VectorSpec.make("multiply", "e5m2"), rounding="up").evaluate((a, b))
    (array([63], dtype=uint8), array([1], dtype=uint8))
    """

    spec: VectorSpec
    rounding: str | None = None
    overflow: str | None = None
    tininess: str | None = None
    order: tuple[Any, ...] | None = None
    operands: tuple[Any, ...] | None = None
    flush_inputs: bool = False
    flush_results: str | None = None
    flush_sign: bool = True
    nan: str | None = None
    nan_code: int | None = None
    nan_operand: str | None = None
    nan_made: tuple[Any, ...] | None = None
    random: str | None = None
    keep: tuple[Any, ...] | None = None
    subnormal_shift: tuple[Any, ...] | None = None
    via: object = None
    unfused: bool = False
    overflow_to: str | None = None
    overflow_fraction: tuple[Any, ...] | None = None
    zero: tuple[Any, ...] | None = None
    sign: str | None = None
    stuck: tuple[Any, ...] | None = None
    slowly: bool = False
    known: dict[str, Any] | None = field(default=None, compare=False, repr=False)

    def evaluate(
        self, operands: Sequence[np.ndarray], random_bits: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The design's results and flags.

        Raises
        ------
        NotApplicable
            If the model says nothing of the spec.
        """
        spec, formats = self.spec, self.spec.formats
        on_bits = (
            self.keep, self.via, self.subnormal_shift, self.nan_code, self.nan_operand, self.nan_made, self.overflow_to,
            self.overflow_fraction, self.zero, self.sign, self.operands, self.stuck, not self.flush_sign or None,
        )  # fmt: skip
        if any(part is not None for part in on_bits) and any(f.leads for f in (*formats, spec.out_fmt)):
            raise NotApplicable("codes of two words")
        if self.order is not None:
            if any(f != formats[0] for f in formats):
                raise NotApplicable("operands of different formats")
            operands = tuple(operands[i] for i in self.order)
        if self.operands is not None:
            operands = replaced(operands, formats, self.operands)
        words = None if random_bits is None else changed_words(random_bits, self.random, spec.stochastic_bits)
        options = self._options(words)
        result, flags = self._plain(operands, options)
        if (self.flush_inputs or self.flush_results) and all(f.kind == "fixed" for f in (*formats, spec.out_fmt)):
            raise NotApplicable("fixed point")
        if self.flush_results and not self.flush_sign:
            kept, _ = call(spec.op, operands, formats, spec.out_fmt, options | {"flush_results": None})
            result = np.where(spec.out_fmt.is_zero(result) & (kept != result), result.dtype.type(0), result)
        if self.unfused:
            if spec.op != "fma":
                raise NotApplicable("no fma")
            product, first = call("multiply", operands[:2], formats[:2], spec.out_fmt, options)
            pair = (spec.out_fmt, formats[2])
            result, flags = call("add", (product, operands[2]), pair, spec.out_fmt, options)
            flags = flags | first
        if self.keep is not None or self.via is not None:
            if self.keep is not None and self.keep[1] == "align":
                other, other_flags = self._aligned(operands, options), flags
            elif self.keep is not None and self.keep[1].startswith("point"):
                other, other_flags = self._before_normalising(operands, options)
            elif self.keep is not None and self.keep[1] == "unshifted":
                other, other_flags = lost_in_shift(spec, operands, options, self.keep[0])
            else:
                other, other_flags = self._through(operands, options)
            fmt = spec.out_fmt
            plain = is_nan(result, fmt) | fmt.is_infinite(result) | (fmt.is_zero(result) & (flags & 1 == 0))
            result = np.where(plain, result, other)
            flags = np.where(plain, flags, other_flags | flags & _OWN)
        if self.subnormal_shift is not None:
            result = shifted_wrongly(spec, operands, options, result, *self.subnormal_shift)
        return self._delivered(result, flags, operands, options)

    def _plain(self, operands, options) -> tuple[np.ndarray, np.ndarray]:
        """The operation under these options; of many models it is the same."""
        spec = self.spec
        made = lambda: call(spec.op, operands, spec.formats, spec.out_fmt, options)  # noqa: E731
        if self.known is None or self.order or self.operands or "random_bits" in options:
            return made()
        key = (id(operands[0]), *options.values())
        if key not in self.known:
            self.known[key] = (operands, made())  # the operands stay, and with them what id says
        return self.known[key][1]

    # -- parts ---------------------------------------------------------------------------------------------------------
    def _options(self, words) -> dict[str, Any]:
        spec = self.spec
        mode = self.rounding or spec.rounding
        options = dict(
            rounding=mode, overflow=self.overflow or spec.overflow, tininess=self.tininess or spec.tininess,
            flush_inputs=self.flush_inputs or spec.flush_inputs, nan=self.nan or spec.nan, invalid=0,
            flush_results=self.flush_results or spec.flush_results, exact=spec.exact, minmax=spec.minmax,
        )  # fmt: skip
        if mode.startswith("stochastic"):
            if words is None:
                raise NotApplicable("no random bits")
            options.update(random_bits=words, stochastic_bits=spec.stochastic_bits)
        return options

    def _through(self, operands, options) -> tuple[np.ndarray, np.ndarray]:
        """The result of a first rounding, or cut, that is rounded again."""
        spec, out = self.spec, self.spec.out_fmt
        mode = options["rounding"]
        if mode.startswith("stochastic") and self.via is not None:
            raise NotApplicable("stochastic")
        try:
            if self.via is not None:
                wide, first = self.via if not isinstance(self.via, int) else free_of(spec, self.via), mode
            else:
                bits, where = self.keep
                if where != "all" and out.kind == "fixed":
                    raise NotApplicable("fixed point")
                first = "toward_zero" if out.kind == "float" else "down"
                wide = free_of(spec, bits) if where == "free" else grid_of(out, bits)
        except NotApplicable:
            by_format = self.via is not None and not isinstance(self.via, int)
            if not self.slowly or by_format or out.kind == "fixed" or self.flush_inputs or not out.has_zero:
                raise
            words = options.get("random_bits")
            return rounded_through(spec, operands, words, mode, options, self.keep, self.via)
        cut, _ = call(spec.op, operands, spec.formats, wide, first_options(options, wide, first))
        last = {k: v for k, v in options.items() if k != "flush_inputs"}
        result, flags = call("convert", (cut,), (wide,), out, last)
        if self.keep is not None and self.keep[1] == "subnormal":
            right, right_flags = call(spec.op, operands, spec.formats, out, options)
            tiny, _ = call(spec.op, operands, spec.formats, out, options | {"rounding": "toward_zero"})
            below = out.magnitudes(tiny) < 1 << out.mantissa_bits
            result, flags = np.where(below, result, right), np.where(below, flags, right_flags)
        return result, flags

    def _before_normalising(self, operands, options) -> tuple[np.ndarray, np.ndarray]:
        """A quotient of significands lies above 1/2, a product below 4: where it is below 1, or not below 2, a cut at a
        fixed place keeps a bit fewer, or one more."""
        spec, (bits, where) = self.spec, self.keep
        if spec.op not in ("multiply", "divide") or any(f.kind != "float" or f.precision > 26 for f in spec.formats):
            raise NotApplicable("no quotient or product")
        x, y = (_significands(c, f) for c, f in zip(operands, spec.formats, strict=True))
        moved, other = (x < y, bits - 1) if spec.op == "divide" else (x * y >= 0.5, bits + 1)
        (plain, plain_flags), (result, flags) = (
            replace(self, keep=(n, "all" if where.endswith("all") else "free"))._through(operands, options)
            for n in (bits, other)
        )
        return np.where(moved, result, plain), np.where(moved, flags, plain_flags)

    def _aligned(self, operands, options) -> np.ndarray:
        """A sum whose smaller term is cut off where the larger one's bits, and so many more, end."""
        spec, out = self.spec, self.spec.out_fmt
        unit, order = aligning_unit(spec, self.keep[0], options["rounding"], options["overflow"])
        a, b, c = (np.ascontiguousarray(x, np.uint64) for x in order(operands, spec.formats))
        result = np.empty(len(a), np.uint64)
        with _core.PlainEnvironment():
            definition_of(unit).run_each(a[:, None], b[:, None], c, result, None)
        return result.astype(out.storage_dtype)

    def _delivered(self, result, flags, operands, options) -> tuple[np.ndarray, np.ndarray]:
        spec, fmt = self.spec, self.spec.out_fmt
        code = result.dtype.type
        if self.overflow_to is not None:
            special = _special(fmt, self.overflow_to)
            sign = result & code(1 << (fmt.bits - 1)) if fmt.signed else code(0)
            alone = special == fmt.nan_code
            result = np.where(flags & _OVERFLOW != 0, code(special) if alone else sign | code(special), result)
        if self.overflow_fraction is not None:
            result = self._own_fraction(result, flags, operands, options)
        right = result
        if self.nan_code is not None:
            result = np.where(is_nan(result, fmt), code(self.nan_code), result)
        if self.nan_operand is not None:
            result = delivered_nans(result, right, operands, spec.formats, fmt, self.nan_operand)
        if self.nan_made is not None:
            result = made_nans(result, right, operands, spec.formats, fmt, *self.nan_made)
        if self.zero is not None:
            if self.zero[0] == "kept":
                right, _ = self._plain(operands, options | {"rounding": spec.rounding})
            result = delivered_zeros(result, right, flags, spec.op, operands, spec.formats, fmt, *self.zero)
        if self.sign is not None:
            result = signed(result, operands, spec.formats, fmt, self.sign)
        if self.stuck is not None:
            result = held_bits(result, self.stuck)
        return result, flags

    def _own_fraction(self, result, flags, operands, options) -> np.ndarray:
        spec, fmt = self.spec, self.spec.out_fmt
        if fmt.kind != "float" or not fmt.signed or not fmt.mantissa_bits or options["rounding"].startswith("sto"):
            raise NotApplicable("format or mode")
        wide = free_of(spec, 0)
        plain = {k: v for k, v in options.items() if k != "flush_results"} | {
            "overflow": "infinity",
            "nan": "canonical",
        }
        free, _ = call(spec.op, operands, spec.formats, wide, plain)
        where = (flags & _OVERFLOW != 0) & ~wide.is_infinite(free) & ~wide.is_nan(free)
        return with_fraction(result, free, wide, fmt, where, *self.overflow_fraction)

    def changed(self, **changes: Any) -> Model:
        """This model with these changes too."""
        return replace(self, **changes)


def changed_words(words: np.ndarray, how: Any, r: Any) -> np.ndarray:
    """Random words as a design takes them (`Model`)."""
    if how is None:
        return words
    top = np.uint32((1 << r) - 1)
    if how == "reversed":
        bits = [(words >> np.uint32(i) & np.uint32(1)) << np.uint32(r - 1 - i) for i in range(r)]
        return np.bitwise_or.reduce(bits).astype(np.uint32)
    if how == "complemented":
        return words ^ top
    constant = {"zeros": 0, "ones": int(top), "half": 1 << (r - 1)}[how]
    return np.full_like(words, constant)


def _significands(codes: np.ndarray, fmt) -> np.ndarray:
    """Of finite numbers, from 1/2 up to 1."""
    m = fmt.mantissa_bits
    size = fmt.sign_and_size(codes)[1].astype(np.uint64)
    lead = (size >> np.uint64(m) != 0).astype(np.uint64) << np.uint64(m)
    return np.frexp((size & np.uint64((1 << m) - 1) | lead).astype(np.float64))[0]


def _special(fmt, what: str) -> int:
    if fmt.kind != "float":
        raise NotApplicable("fixed point")
    if what == "max":
        return fmt.max_code
    code = fmt.inf_code if fmt.infinities else fmt.nan_code
    if code is None:
        raise NotApplicable("no infinity")
    return code
