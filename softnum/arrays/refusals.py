"""What of NumPy's is not defined for arrays of codes: the errors, which name the way out."""

from __future__ import annotations

__all__ = ["HINTS", "SUM", "numpy_name", "refusal"]

_REMAINDER = "Python's % rounds the quotient down, IEEE's remainder to nearest: softnum.remainder is IEEE's"
SUM = (
    "the order and the accumulator of a sum are yours to state: softnum.sum, softnum.dot or softnum.matmul with a unit"
)
HINTS = {
    **dict.fromkeys(("remainder", "fmod", "divmod", "floor_divide"), _REMAINDER),
    **dict.fromkeys(
        (
            "average", "convolve", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "dot", "einsum", "inner",
            "linalg.norm", "matmul", "matvec", "mean", "nanmean", "nansum", "outer", "prod", "std", "sum", "tensordot",
            "trace", "var", "vdot", "vecdot", "vecmat",
        ),
        SUM,
    ),
    **dict.fromkeys(("save", "savez", "savez_compressed"), "it would lose the format: softnum.save keeps it"),
}  # fmt: skip


def refusal(what: str, kind: str = "Array", way_out: str = "work on .codes, or on np.asarray(a) for values"):
    """The TypeError for what is not defined for an Array or a BlockArray; it names the way out."""
    hint = HINTS.get(what.removeprefix("numpy.").split(".reduce")[0], way_out)
    if what.endswith("add.reduce"):
        hint = SUM
    return TypeError(f"{what} is not defined for softnum.{kind}; {hint}")


def numpy_name(function) -> str:
    """A function of NumPy's as users know it: numpy.save, numpy.linalg.norm."""
    module = function.__module__.removeprefix("numpy").removeprefix(".")
    return f"numpy.{f'{module}.' if module else ''}{function.__name__}"
