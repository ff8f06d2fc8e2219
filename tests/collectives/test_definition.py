"""Collectives on arrays against `softnum.reference.collectives`, which plays ranks that send messages, bit for bit."""

from __future__ import annotations

import numpy as np

import softnum as sn
from softnum.collectives import collective as module
from tests.support.cases import cases
from tests.support.collective_definition import defined

_BF16 = sn.MadUnit("bfloat16", operand="bfloat16")
_SR = sn.MadUnit("bfloat16", operand="bfloat16", rounding="stochastic", stochastic_bits=9)
_WIDE = sn.MadUnit("binary32", operand="bfloat16")
_FP8 = sn.BlockFormat("e4m3fn", "binary32", 4)
#: name, ranks, parameters
_STATED = [
    ("ring", 5, {"unit": _BF16}),
    ("ring", 4, {"unit": "bfloat16", "direction": -1, "start": 2, "order": (2, 0, 3, 1), "channels": 2}),
    ("ring", 3, {"unit": _WIDE, "chunk": 3, "align": 2}),
    ("gloo", 4, {"unit": "binary16", "average": "reciprocal_before"}),
    ("ring", 3, {"unit": _SR, "wire": "e5m2", "wire_rounding": "stochastic", "stochastic_bits": 7, "own": "kept"}),
    ("ring", 3, {"unit": _WIDE, "format": "bfloat16", "wire": _FP8, "scale_rule": "max", "own": "kept"}),
    ("ring", 3, {"unit": "binary32", "wire": "mxfp8_e5m2", "wire_rounding": "stochastic", "chunk": 5}),
    ("ring", 2, {"unit": "binary64", "average": "before"}),
    ("tree", 6, {"unit": _BF16}),
    ("tree", 8, {"unit": _SR, "node": 2, "wire": "e6m3", "wire_rounding": "sr", "chunk": 4}),
    ("double_tree", 7, {"unit": _BF16, "average": "after"}),
    ("double_tree", 8, {"unit": _WIDE, "wire": _FP8, "own": "kept", "channels": 4}),
    ("halving_doubling", 8, {"unit": _BF16}),
    ("halving_doubling", 6, {"unit": _SR, "distance": "near", "wire": "e5m2", "own": "kept"}),
    ("halving_doubling", 4, {"unit": _WIDE, "format": "bfloat16", "wire": _FP8, "wire_rounding": "stochastic"}),
    ("doubling", 6, {"unit": _BF16, "wire": "e5m2"}),
    ("doubling", 6, {"unit": _SR, "wire": "e5m2", "own": "kept", "wire_rounding": "stochastic"}),
    ("doubling", 4, {"unit": _WIDE, "distance": "far", "own": "kept", "wire": _FP8}),
    ("in_network", 5, {"unit": sn.ExactDotUnit("bfloat16", operand="bfloat16")}),
    ("in_network", 4, {"unit": sn.FusedDotUnit(4, 8, "binary32", operand="bfloat16"), "format": "bfloat16"}),
    ("in_network", 3, {"unit": sn.MadUnit("bfloat16", operand="bfloat16", lanes=2), "wire": "e5m2"}),
    ("one_shot", 4, {"unit": _WIDE, "format": "bfloat16", "start": 1}),
    ("one_shot", 3, {"unit": _SR, "start": "own", "average": "reciprocal_after"}),
    ("one_shot", 3, {"unit": "bfloat16", "own": "kept", "wire": _FP8}),
    ("two_shot", 4, {"unit": _WIDE, "wire": _FP8, "start": "own", "chunk": 2}),
    ("two_shot", 3, {"unit": _SR, "own": "kept", "wire": "e5m2", "wire_rounding": "stochastic"}),
    ("two_shot", 3, {"unit": sn.ExactDotUnit("e6m5", operand="e6m5", rounding="stochastic", stochastic_bits=5)}),
]  # fmt: skip


def _inputs(c, n: int, special: bool) -> np.ndarray:
    rng = np.random.default_rng(c.ranks * 64 + n)
    x = rng.standard_normal((c.ranks, n)) * np.exp2(rng.integers(-6, 7, (c.ranks, n)))
    if special:
        x[:, :6] = 0.0
        x[:, 0] = -0.0  # of all ranks
        x[0, 1], x[1, 2], x[0, 3], x[1, 3] = -0.0, np.inf, np.inf, -np.inf
        x[c.ranks - 1, 4] = np.nan
        x[:, 5] = c.format.max
    return sn.quantize(x, c.format).astype(c.arithmetic.dtype)


def _same(got, want, what: str) -> None:
    for rank, (x, y) in enumerate(zip(got, want, strict=True)):
        equal = (x == y) & (np.signbit(x) == np.signbit(y)) | np.isnan(x) & np.isnan(y)
        assert equal.all(), f"{what}, rank {rank}: {x[~equal]} at {np.flatnonzero(~equal)}, defined {y[~equal]}"


@cases("name, ranks, given", _STATED, ids=[f"{name}{i}" for i, (name, *_) in enumerate(_STATED)])
def test_all_reduce_is_the_definition(name, ranks, given):
    c = sn.collective(name, ranks, **given)
    special = c.wire.element is c.wire
    x = _inputs(c, 13, special)
    key = (11, 3)
    _same(c.all_reduce(x, key=key), defined(c, x, key), str(c))


@cases("name, ranks, given", [_STATED[i] for i in (1, 4, 6, 9, 13, 25)])
def test_parts_that_are_computed_at_once_do_not_matter(name, ranks, given, monkeypatch):
    c = sn.collective(name, ranks, **given)
    x = _inputs(c, 137, c.wire.element is c.wire)
    whole = c.all_reduce(x, key=5)
    monkeypatch.setattr(module, "_AT_ONCE", 9 * ranks * x.itemsize)
    monkeypatch.setattr(module, "_LEAST_WIDTH", 1)
    told = []
    _same(c.all_reduce(list(x), key=5, progress=lambda *done: told.append(done)), whole, str(c))
    assert len(told) > 3 and told[-1] == (137, 137)


@cases("name, given", [("ring", {}), ("halving_doubling", {}), ("two_shot", {}), ("in_network", {})])
def test_reduce_scatter_is_a_part_of_all_reduce(name, given):
    c = sn.collective(name, 4, unit="bfloat16", **given)
    x = _inputs(c, 32, True)
    scattered = c.reduce_scatter(x.reshape(4, 8, 4))
    assert [part.shape for part in scattered] == [(2, 4)] * 4
    _same([np.concatenate(scattered).reshape(-1)], c.all_reduce(x)[:1], str(c))


@cases("name, given", [("halving_doubling", {"distance": "near"}), ("ring", {"start": 3, "order": (3, 1, 0, 2)})])
def test_reduce_scatter_leaves_parts_with_their_ranks(name, given):
    """Where chunks of an all-reduce end elsewhere, the sums of a part are those of the chunk that ends at its rank."""
    c = sn.collective(name, 4, unit="bfloat16", **given)
    x = np.repeat(_inputs(c, 9, False)[:, None], 4, axis=1)  # all parts alike: what differs is who adds in which order
    ends = {"ring": {0: 0, 2: 1, 3: 2, 1: 3}, "halving_doubling": {0: 0, 1: 2, 2: 1, 3: 3}}[name]
    reduced = c.all_reduce(x)[0]
    for rank, part in enumerate(c.reduce_scatter(x)):
        _same([part[0]], [reduced[ends[rank]]], f"{c}, part of rank {rank}")


def test_what_only_moves_is_rounded_by_the_wire():
    x = np.float32([[1.1, -0.0, 3.3, np.inf], [2.3, np.nan, 0.1, 7]])
    sent = sn.quantize(x, "e5m2")
    for own in ("sent", "kept"):
        c = sn.collective("ring", 2, unit="binary32", wire="e5m2", own=own)
        gathered, exchanged = c.all_gather(x), c.all_to_all(x)
        for rank in range(2):
            rows = sent.copy()
            if own == "kept":
                rows[rank] = x[rank]
            _same(gathered[rank], rows, own)
            parts = [rows[r, 2 * rank : 2 * rank + 2] for r in range(2)]
            _same([exchanged[rank]], [np.concatenate(parts)], own)
