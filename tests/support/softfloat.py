"""Berkeley SoftFloat, by softfloatpy: its names of formats, modes and operations, its state, and its answers."""

from contextlib import contextmanager

import softfloatpy

__all__ = ["MODES", "OPERATIONS", "TININESS", "TYPES", "answer", "softfloat_state"]

#: the class of numbers, the prefix of functions
TYPES = {
    "binary16": (softfloatpy.Float16, "f16"),
    "binary32": (softfloatpy.Float32, "f32"),
    "binary64": (softfloatpy.Float64, "f64"),
}
MODES = {
    "nearest_even": softfloatpy.RoundingMode.NEAR_EVEN,
    "nearest_away": softfloatpy.RoundingMode.NEAR_MAX_MAG,
    "toward_zero": softfloatpy.RoundingMode.MIN_MAG,
    "up": softfloatpy.RoundingMode.MAX,
    "down": softfloatpy.RoundingMode.MIN,
}
TININESS = {"after": softfloatpy.TininessMode.AFTER_ROUNDING, "before": softfloatpy.TininessMode.BEFORE_ROUNDING}
OPERATIONS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "fma": "mul_add",
    "divide": "div",
    "remainder": "rem",
    "sqrt": "sqrt",
}


@contextmanager
def softfloat_state(mode, tininess="after"):
    softfloatpy.set_rounding_mode(MODES[mode])
    softfloatpy.set_tininess_mode(TININESS[tininess])
    try:
        yield
    finally:
        softfloatpy.set_rounding_mode(softfloatpy.RoundingMode.NEAR_EVEN)
        softfloatpy.set_tininess_mode(softfloatpy.TininessMode.AFTER_ROUNDING)
        softfloatpy.set_exception_flags(0)


def answer(function, *operands):
    """(result, flags) of a function of softfloatpy: a code, or a truth value."""
    softfloatpy.set_exception_flags(0)
    result = function(*operands)
    flags = int(softfloatpy.get_exception_flags())
    return (result if isinstance(result, bool) else int.from_bytes(result.to_bytes(), "big")), flags
