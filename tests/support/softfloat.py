"""Berkeley SoftFloat, by softfloatpy: its names of modes and operations, and its state."""

from contextlib import contextmanager

import softfloatpy

__all__ = ["MODES", "OPERATIONS", "TININESS", "softfloat_state"]

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
def softfloat_state(mode, tininess):
    softfloatpy.set_rounding_mode(MODES[mode])
    softfloatpy.set_tininess_mode(TININESS[tininess])
    try:
        yield
    finally:
        softfloatpy.set_rounding_mode(softfloatpy.RoundingMode.NEAR_EVEN)
        softfloatpy.set_tininess_mode(softfloatpy.TininessMode.AFTER_ROUNDING)
        softfloatpy.set_exception_flags(0)
