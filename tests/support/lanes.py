"""The functions in lanes, their tables, and the script that makes them."""

import importlib.util
import re
import sys
from pathlib import Path

HERE = Path(__file__).parents[2] / "csrc/elementwise/functions"


def _load():
    spec = importlib.util.spec_from_file_location("approximations", HERE / "approximations.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["approximations"] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


approximations = _load()
_KERNELS = (HERE.parents[1] / "dispatch/kernels.h").read_text(encoding="utf-8")
FUNCTIONS, FUNCTIONS_OF_TWO = (
    re.findall(r"X\((\w+)\)", re.search(rf"{name}\(X\)(.*?)\n\n", _KERNELS, re.DOTALL).group(1))
    for name in ("SN_FUNCTIONS_IN_LANES", "SN_FUNCTIONS_OF_TWO_IN_LANES")
)
_CONSTANTS = (HERE / "constants.h").read_text(encoding="utf-8")


def stated(table: str) -> list[float]:
    """A table of constants.h."""
    found = re.search(rf"sn_{table}\[\] = {{([^}}]*)}}", _CONSTANTS)
    return [float.fromhex(number.strip()) for number in found.group(1).split(",")]
