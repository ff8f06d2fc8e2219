"""What the playground's labs of sums are compared with: the named units that its core has, and its distributions."""

from __future__ import annotations

import importlib.util

import numpy as np

import softnum as sn
from tests.support.c_library import ROOT

__all__ = ["DISTRIBUTIONS", "UNITS", "build", "drawn"]

_SPEC = importlib.util.spec_from_file_location("playground_build", ROOT / "docs" / "playground" / "build.py")
build = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(build)

UNITS = {name: unit for name, unit in build.named_units().items() if build.spec_of(unit) is not None}
DISTRIBUTIONS = ("uniform", "bell", "positive", "wide", "outliers")


def drawn(name: str, seed: int, stream: int, n: int) -> np.ndarray:
    """The distributions as their documentation states them, of the words of softnum.Stream."""
    w = sn.Stream((seed, stream)).words(12 * n).reshape(n, 12).astype(np.float64)
    uniform = (w[:, 0] - 2.0**31) * 2.0**-31
    bell = (w.sum(axis=1) - 6 * 2.0**32) * 2.0**-32
    if name == "wide":
        return np.where(uniform < 0, -1, 1) * (1 + w[:, 1] * 2.0**-32) * np.exp2(w[:, 2] % 16 - 8)
    outliers = np.where(w[:, 1] % 64 != 0, bell, 32 * bell)
    return {"uniform": uniform, "bell": bell, "positive": w[:, 0] * 2.0**-32, "outliers": outliers}[name]
