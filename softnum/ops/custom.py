"""Operations on the codes of custom formats: the user's own, and those derived from the values.

A derived operation takes the exact values, computes the exact result and rounds it to the format. The result passes
through binary64 rounded to odd: of a table of values, the rounding of that is the rounding of the exact result, or
`ValueTable.undecided` says that it may not be, and it is computed in fractions. A user's convert is given the result
rounded to odd in the float type that it takes (binary32 or binary64), which tells it all that it can know of the exact
one if it looks at two bits less than the type has: 22 or 51 leading bits.
"""

from __future__ import annotations

import operator

import numpy as np

from softnum.arrays.conversion import decode
from softnum.formats.modes import Flags, rounding_name
from softnum.formats.operation_names import USER_OPERANDS
from softnum.formats.scalar import FixedFormat
from softnum.ops.operation import apply, as_values

__all__ = ["Operator", "as_values", "table_of"]

_FRACTIONS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "fma": lambda a, b, c: a * b + c,
}  # fmt: skip
_CHOSEN = ("minimum", "maximum", "minimum_number", "maximum_number")
_STEPS = {"next_up": 1, "next_down": -1}
_TABLE_BITS = {1: 16, 2: 8}  # operands -> the widest format that is tabulated


def _derived(name: str, codes, formats, rounding: str) -> tuple[np.ndarray, np.ndarray]:
    """(the exact results of an operation on values, rounded to odd in float64, where they are not exact there)

    round_to_integral rounds in the mode given, to integers.
    """
    codes, extra = list(codes), ()
    if name == "scalb":
        extra = ((codes.pop(), FixedFormat(32, 0)),)
    taken, kinds = as_values(codes, formats)
    integral = name == "round_to_integral"
    result, flags = apply(
        name, tuple(taken), kinds, out_fmt="binary64", extra=extra, rounding=rounding if integral else "to_odd",
        return_flags=True,
    )  # fmt: skip
    z = np.ascontiguousarray(result).view(np.float64).reshape(np.shape(result))
    return z, (flags & Flags.INEXACT != 0) & (not integral)


class Operator:
    """One operation: codes of `formats` in, codes of the custom format `out` out; callable over arrays that broadcast.

    Parameters
    ----------
    name : str
        An operation of `softnum.ops` that gives codes.
    formats : tuple of formats
        The operands'. Of a format with itself, the user's own operation is taken if there is one.
    out : CustomFormat
    rounding : str
        As in `softnum.quantize`, in a mode that `out` has.
    overflow : None, "saturate" or "saturate_finite"

    Raises
    ------
    ValueError
        If the operation, the rounding or the overflow rule is not defined for the format.
    """

    def __init__(self, name: str, formats, out, rounding="nearest_even", overflow=None) -> None:
        self.name, self.formats, self.out = name, tuple(formats), out
        self.rounding, self.overflow = rounding_name(rounding), overflow
        if name not in USER_OPERANDS and name not in ("scalb", "convert"):
            known = ", ".join(sorted((*USER_OPERANDS, "scalb")))
            raise ValueError(f"{out} has no operation {name!r} (known: {known})")
        self.users_own = out.has_own(name, self.formats)
        if name in _STEPS and not self.users_own and not out.has_neighbours:
            raise ValueError(f"{name} is defined for custom formats of up to 16 bits, and {out} has {out.bits}")
        foreign = next((f for f in self.formats if f != out), None)
        if name in _CHOSEN and foreign is not None:
            raise ValueError(f"{name} of {foreign} is not defined into {out}; convert the operands to {out} first")
        if self.users_own and out.values_are_exact and (self.rounding != "nearest_even" or overflow is not None):
            raise ValueError(
                f"{name} of {out} is user-defined and states its own rounding; leave rounding={rounding!r} and "
                f"overflow={overflow!r} out"
            )
        if name == "round_to_integral" and self.rounding.startswith("stochastic"):
            raise ValueError(
                f"round_to_integral of {out} takes no random bits, so rounding={rounding!r} is not defined; round to a "
                "float format first"
            )
        if not self.users_own or not out.values_are_exact:
            out.check_modes("nearest_even" if name == "round_to_integral" else self.rounding, overflow)

    def __call__(self, *codes, partly: bool = False):
        """(codes, where a result is NaN and has no code, or None)

        partly: what else has no result, because a function of the user's fails, is marked as well, and raises nothing.
        """
        functions = self.out._functions
        if self.users_own:
            if partly and self.out.values_are_exact:
                return functions.partly(self.name, *codes)
            return self.out.own(self.name, self.formats, codes), None
        if self.name in _CHOSEN:
            return self._choose(*codes), None
        if self.name in _STEPS:
            return self.out.stepped(np.asarray(codes[0]), _STEPS[self.name]), None
        z, inexact = _derived(self.name, codes, self.formats, self.rounding)
        mode = "nearest_even" if self.name == "round_to_integral" else self.rounding
        if functions.convert_takes is not None:
            x = self.out.for_convert(z)
            return functions.partly("convert", x) if partly else (functions.convert(x), None)
        found, lost = self.out._table.rounded(z, mode, self.out.infinities_saturate(self.overflow))
        unsure = inexact & self.out._table.undecided(z, mode)
        if unsure.any():
            if partly and self.name not in _FRACTIONS:
                return found, unsure if lost is None else lost | unsure
            found[unsure] = self._exactly([np.broadcast_to(c, z.shape)[unsure] for c in codes], mode)
        return found, lost

    def _exactly(self, codes, mode: str) -> np.ndarray:
        if self.name not in _FRACTIONS:
            raise ValueError(
                f"{self.name}: a result is closer to the midpoint of two values of {self.out} than binary64 can resolve"
            )
        values = [decode(c, f, object) for c, f in zip(codes, self.formats, strict=True)]
        exact = np.empty(values[0].shape, object)
        exact[...] = [_FRACTIONS[self.name](*v) for v in zip(*(x.tolist() for x in values), strict=True)]
        return self.out._table.encode(exact, mode)

    def _choose(self, a, b) -> np.ndarray:
        """The operand that is less, or greater: its code as it is."""
        a, b = (np.asarray(x, self.out.storage_dtype) for x in np.broadcast_arrays(a, b))
        x, y = self.out.decode(a, np.float64), self.out.decode(b, np.float64)
        below = (x < y) | ((x == y) & (np.signbit(x) > np.signbit(y)))
        above = (x > y) | ((x == y) & (np.signbit(x) < np.signbit(y)))
        chosen = np.where(above if self.name.startswith("minimum") else below, b, a)
        if self.name.endswith("number"):
            return np.where(np.isnan(x), b, np.where(np.isnan(y), a, chosen))
        return np.where(np.isnan(x), a, np.where(np.isnan(y), b, chosen))


def table_of(op: Operator) -> tuple[np.ndarray, np.ndarray | None] | None:
    """All results of an operation, shape (2**bits,) * operands, and where there is none or None; None if too many."""
    widest = _TABLE_BITS.get(len(op.formats))
    if widest is None or op.name == "scalb" or any(f.bits > widest for f in op.formats):
        return None
    codes = np.meshgrid(*(np.arange(1 << f.bits).astype(f.storage_dtype) for f in op.formats), indexing="ij")
    found, lost = op(*codes, partly=True)
    found.flags.writeable = False
    return found, lost if lost is not None and lost.any() else None
