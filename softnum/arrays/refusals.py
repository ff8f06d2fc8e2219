"""What of NumPy's is not defined for arrays of codes, and what loses their format: errors and a warning that name the
way out."""

from __future__ import annotations

import sys
import warnings

__all__ = ["HINTS", "SUM", "FormatLostWarning", "numpy_name", "refusal", "warn_of_lost_format"]

# packages that turn what they are given into arrays: the warning is for whoever called them
_WRAPPERS = frozenset({"dask", "matplotlib", "numpy", "pandas", "scipy", "sklearn", "xarray"})

_REMAINDER = "Python's % rounds the quotient down, IEEE's remainder to nearest: softnum.remainder is IEEE's"
SUM = (
    "the order and the accumulator of a sum are yours to state: softnum.sum, softnum.dot or softnum.matmul with a unit"
    ", or NumPy's names within `with softnum.unit_of_sums(unit):`, where softnum.exact is the exact sum, rounded once"
)
_PRODUCT = "one after the other, each product rounded: functools.reduce(softnum.multiply, a)"
_MOMENT = "its steps are yours to round: softnum.subtract, softnum.dot with a unit, softnum.divide, softnum.sqrt"
_VALUES = "work on .codes, or on np.asarray(a, np.float64) for values"
HINTS = {
    **dict.fromkeys(("remainder", "fmod", "divmod", "floor_divide"), _REMAINDER),
    **dict.fromkeys(
        (
            "average", "convolve", "correlate", "cumsum", "cumulative_sum", "dot", "einsum", "inner", "linalg.matmul",
            "linalg.tensordot", "linalg.trace", "linalg.vecdot", "matmul", "matvec", "mean", "nanmean", "nansum", "sum",
            "tensordot", "trace", "vdot", "vecdot", "vecmat",
        ),
        SUM,
    ),
    **dict.fromkeys(("cumprod", "cumulative_prod", "multiply.accumulate", "multiply.reduce", "prod"), _PRODUCT),
    **dict.fromkeys(("linalg.norm", "linalg.vector_norm", "nanstd", "nanvar", "std", "var"), _MOMENT),
    **dict.fromkeys(
        ("save", "savez", "savez_compressed"),
        "it would lose the format: softnum.save keeps it, of one Array or of a dict of named ones",
    ),
}  # fmt: skip


class FormatLostWarning(UserWarning):
    """An Array became an array of float64 without being asked to: its values are there, its format is lost.

    NumPy's functions that know nothing of Arrays do so, and packages on top of it (pandas, `numpy.ma`,
    `numpy.vectorize`). It is shown once for each place. ``np.asarray(a, np.float64)`` says that it is meant; this makes
    it an error:

    >>> import warnings, softnum as sn
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", sn.arrays.FormatLostWarning)
    """


def warn_of_lost_format(fmt, depth: int = 2) -> None:
    """`FormatLostWarning` at the place that asked for the array; none where that is softnum itself.

    depth: how many calls lie between this one and NumPy's.
    """
    asker = frame = sys._getframe(depth)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _WRAPPERS:
        frame = frame.f_back
    frame = asker if frame is None else frame
    module = frame.f_globals.get("__name__", "")
    if module.partition(".")[0] == "softnum":
        return
    warnings.warn_explicit(
        f"an Array of {fmt} becomes an array of float64, and its format is lost; np.asarray(a, np.float64) says that "
        "this is meant, a.codes are its codes",
        FormatLostWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module,
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def refusal(what: str, kind: str = "Array", way_out: str = _VALUES):
    """The TypeError for what is not defined for an Array or a BlockArray; it names the way out."""
    hint = HINTS.get(what.removeprefix("numpy.").partition(" with ")[0], way_out)
    if what in ("numpy.add.reduce", "numpy.add.accumulate"):
        hint = SUM
    return TypeError(f"{what} is not defined for softnum.{kind}; {hint}")


def numpy_name(function) -> str:
    """A function of NumPy's as users know it: numpy.save, numpy.linalg.norm."""
    module = function.__module__.removeprefix("numpy").removeprefix(".")
    return f"numpy.{f'{module}.' if module else ''}{function.__name__}"
