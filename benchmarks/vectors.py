"""Test vectors made and checked, through files and in memory, against SoftFloat called from Python."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import softfloatpy

from benchmarks.measure import Row, against, one_thread
from softnum.vectors import VectorSpec, check, plan, write
from softnum.vectors.plans.generator import DEFAULT_COUNT

PEERS = {
    "binary16": (softfloatpy.Float16.from_bytes, softfloatpy.f16_mul_add, 2),
    "binary32": (softfloatpy.Float32.from_bytes, softfloatpy.f32_mul_add, 4),
}


def rows(n: int = DEFAULT_COUNT, few: int = 20_000) -> Iterator[Row]:
    """fma with flags: every vector is computed once to make it and once to check it; one thread, the peer's too.

    The peer's operands are ready in memory; drawing them counts on our side alone. Both works take some milliseconds,
    so that on a busy machine both find a quiet moment.
    """
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        for fmt in PEERS:
            spec = VectorSpec.make("fma", fmt)
            planned = plan(spec, count=n, seed=1)
            blocks = list(plan(spec, count=few, seed=1).blocks())
            theirs = _softfloat(fmt, [np.concatenate(c) for c in zip(*(b.operands for b in blocks), strict=True)])
            path = Path(folder) / "vectors.txt"

            def through_files():
                write(planned, path)  # noqa: B023
                assert check(path).ok  # noqa: B023

            def in_memory():
                for block in planned.blocks():  # noqa: B023
                    again = spec.evaluate(block.operands)  # noqa: B023
                    assert np.array_equal(again.result, block.result) and np.array_equal(again.flags, block.flags)

            works = (("through a file", through_files, 7, -1.0), ("in memory", in_memory, 60, -10.0))
            for name, work, repeats, limit in works:
                mine, peer = against(work, theirs, repeats)
                what, ratio = f"fma {fmt}, made and checked {name}", peer / few / (mine / n)
                yield Row(what, n / mine * 1e-6, "M/s", ratio, "x softfloatpy", limit)
            yield Row(f"peer: softfloatpy fma {fmt}, made and checked in memory", few / peer * 1e-6, "M/s")


def _softfloat(fmt: str, operands):
    """The same work with SoftFloat: the operation to make each vector, the operation to check it and the comparison."""
    number, fma, size = PEERS[fmt]
    columns = [[number(v.to_bytes(size, "big")) for v in column.tolist()] for column in operands]
    triples = list(zip(*columns, strict=True))

    def work():
        made = [fma(*triple) for triple in triples]
        assert all(a.to_bytes() == fma(*t).to_bytes() for a, t in zip(made, triples, strict=True))

    return work
