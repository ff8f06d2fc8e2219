"""The functions in lanes, their tables, and the script that makes them."""

import importlib.util
import re
import sys
from pathlib import Path

HERE = Path(__file__).parents[2] / "csrc/elementwise/functions"


def _load(name: str):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


approximations = _load("approximations")
wide_approximations = _load("wide_approximations")
_KERNELS = (HERE.parents[1] / "dispatch/kernels.h").read_text(encoding="utf-8")


def _listed(name: str) -> list[str]:
    return re.findall(r"X\((\w+)\)", re.search(rf"define {name}\(X\)(.*?)\n\n", _KERNELS, re.DOTALL).group(1))


FUNCTIONS, FUNCTIONS_OF_TWO = _listed("SN_FUNCTIONS_IN_LANES"), _listed("SN_FUNCTIONS_OF_TWO_IN_LANES")
_CONSTANTS = (HERE / "constants.h").read_text(encoding="utf-8")


def stated(table: str) -> list[float]:
    """A table of constants.h."""
    found = re.search(rf"sn_{table}\[\] = {{([^}}]*)}}", _CONSTANTS)
    return [float.fromhex(number.strip()) for number in found.group(1).split(",")]
