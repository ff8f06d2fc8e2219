"""First roundings and cuts in Python integers, for formats whose finer ones do not fit into 64 bits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from softnum.reference.rounding import Environment, deliver, environment_of, floor_log2, goes_up
from softnum.reference.values import Value
from softnum.vectors.checks.failures import exact_value
from softnum.vectors.plans.spec import VectorSpec

__all__ = ["rounded_through"]


def rounded_through(
    spec: VectorSpec,
    operands: Sequence[np.ndarray],
    words: np.ndarray,
    mode: str,
    options: dict[str, Any],
    keep: Any,
    via: Any,
) -> tuple[Any, ...]:
    """Codes and flags of results that are cut (keep) or rounded (via) before they are rounded, as `Model` says.

    >>> import numpy as np
    >>> from softnum.vectors import VectorSpec
    >>> from softnum.vectors.checks.exact_models import rounded_through
    >>> spec = VectorSpec.make("multiply", "e5m2")
    >>> a, b = np.array([[0x3D], [0x3D]], np.uint8)  # 1.25 * 1.25 = 1.5625: a quarter of the last place is lost
    >>> rounded_through(spec, (a, b), None, "up", {}, (1, "all"), None)
    (array([62], dtype=uint8), array([0], dtype=uint8))
    """
    out = spec.out_fmt
    names = ("overflow", "tininess", "flush_results")
    env = environment_of(
        out, mode, stochastic_bits=spec.stochastic_bits or 32, random_bits=0,
        **{name: options[name] for name in names if name in options},
    )  # fmt: skip
    codes, flags = np.zeros(len(operands[0]), out.storage_dtype), np.zeros(len(operands[0]), np.uint8)
    for i, row in enumerate(zip(*(c.tolist() for c in operands), strict=True)):
        exact = _exact(spec, row, env._replace(random_bits=0))
        if exact is None or exact.kind != "finite" or not exact.numerator:
            continue
        here = env if words is None else env._replace(random_bits=int(words[i]))
        code, raised = deliver(_cut(exact, out, here, keep, via), out, here)
        codes[i], flags[i] = code, int(raised)
    return codes, flags


@lru_cache(maxsize=1 << 14)
def _exact(spec: VectorSpec, codes: tuple[Any, ...], env: Environment) -> Value | None:
    return exact_value(spec, codes, env)


def _cut(x: Value, out, env: Environment, keep, via) -> Value:
    exponent = floor_log2(x.numerator, x.denominator)
    if via is not None:
        last = exponent - out.mantissa_bits - via
    else:
        bits, where = keep
        if where == "subnormal" and exponent >= out.emin:
            return x
        last = (exponent if where == "free" else max(exponent, out.emin)) - out.mantissa_bits - bits
    up, down = max(last, 0), max(-last, 0)
    integer, rest = divmod(x.numerator << down, x.denominator << up)
    if via is not None:
        integer += goes_up(x.sign, integer & 1, rest, x.denominator << up, env)
    return Value("finite", x.sign, integer << up, 1 << down)
