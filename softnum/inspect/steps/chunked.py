"""The steps of units that sum chunks in another unit, for `softnum.inspect.trace`."""

from __future__ import annotations

import dataclasses

from softnum.inspect.steps.step import rounding_step, steps_of
from softnum.mac.chunked import ChunkedDotUnit
from softnum.mac.family import register
from softnum.reference.operations import exact_sum
from softnum.reference.rounding import environment_of
from softnum.reference.values import decode

__all__ = []


def _steps(unit: ChunkedDotUnit, a, b, c, words):
    env = environment_of(unit.accumulator, unit.rounding, unit.overflow)
    steps, code = [], 0 if c is None else c
    for chunk, first in enumerate(range(0, len(a), unit.chunk)):
        part = slice(first, first + unit.chunk)
        inner, result = steps_of(unit.inner, a[part], b[part], None, None)
        for step in inner:
            where = {"chunk": chunk, **step.where}
            if "k" in where:
                where["k"] += first
            steps.append(dataclasses.replace(step, where=where))
        outer, sums = decode(code, unit.accumulator), decode(result, unit.inner.result)
        total = exact_sum(outer, sums, env)
        terms = (("outer", outer), ("sum", sums))
        steps.append(
            rounding_step("outer sum", "outer + sum", total, unit.accumulator, env, where={"chunk": chunk}, terms=terms)
        )
        code = steps[-1].code
    return steps, code


register(ChunkedDotUnit, steps=_steps)
