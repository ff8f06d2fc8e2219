"""Operators on elements, forwards and backwards, against their steps one by one: a softnum operation for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

import softnum as sn
from benchmarks.measure import Row, against
from softnum.tile import elementwise

_EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "tile"
_LIMIT = 0.3  # of the time of the steps


def rows(elements: int = 100_000) -> Iterator[Row]:
    """The three approximations of tanh in e6m9, and a layer's ReLU and residual sum in binary32."""
    rng = np.random.Generator(np.random.Philox(9))
    x = rng.standard_normal(elements, dtype=np.float32)
    mixed = sn.operator("function (X, Z) -> (Y) { S = X + 0.5 * Z; Y = S > 0 ? S : 0.01 * S; }", name="leaky sum")
    cases = [(sn.operator(_EXAMPLES / f"{name}_tanh.tile"), "e6m9") for name in ("plan", "table", "rational")]
    for op, fmt in (*cases, (mixed, "binary32")):
        given = [sn.quantize(part, fmt) for part in (x, x[::-1])[: len(op.inputs)]]
        result = op(*given, fmt=fmt)
        works = {
            "forwards": lambda: op(*given, fmt=fmt),  # noqa: B023
            "backwards": lambda: op.backward(given, [result], given[:1], fmt=fmt),  # noqa: B023
        }
        for way, work in works.items():

            def steps(work=work, operators=(op, op.gradient)):
                with patch.dict(operators[0].__dict__, _tables=None), patch.dict(operators[1].__dict__, _tables=None):
                    work()

            with patch.object(elementwise, "ENOUGH", 0):
                fast, slow = against(work, steps, 7)
            yield Row(
                f"{op.name}, {fmt}, {way}", fast / elements * 1e9, "ns", fast / slow, "of the steps' time", _LIMIT
            )  # fmt: skip
