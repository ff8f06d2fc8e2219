"""Products whose K is divided among ranks; experts' tokens, which only move."""

from __future__ import annotations

import numpy as np
import pytest

import softnum as sn
from softnum.collectives.orders import chunks_of
from tests.support.cases import cases

_BF16 = sn.MadUnit("bfloat16", operand="bfloat16")
_E4M3 = sn.MadUnit("bfloat16", operand="e4m3fn")
_WIDE = sn.MadUnit("binary32", operand="bfloat16")
_SR = sn.MadUnit("bfloat16", operand="bfloat16", rounding="stochastic")


def _operands(k: int, fmt: str = "bfloat16", n: int = 6):
    rng = np.random.Generator(np.random.Philox(3))
    return (sn.quantize(rng.standard_normal(shape), fmt).astype(np.float32) for shape in ((5, k), (k, n)))


def test_it_is_the_all_reduce_of_what_ranks_multiply():
    a, b = _operands(24)
    parts = [sn.quantize(sn.matmul(a[:, r : r + 6], b[r : r + 6], _WIDE), "bfloat16") for r in range(0, 24, 6)]
    for text in ("ring(unit='bfloat16')", "halving_doubling(unit='bfloat16', own='kept', wire='e5m2')"):
        c = sn.collective(text, 4)
        for mine, other in zip(sn.collectives.split_matmul(a, b, _WIDE, c), c.all_reduce(parts), strict=True):
            assert np.array_equal(mine, other)
    lead = sn.collectives.split_matmul(np.stack([a, a[::-1]]), b, _WIDE, "tree(ranks=4, unit='bfloat16')")[0]
    c = sn.collective("tree", 4, unit="bfloat16")
    assert np.array_equal(lead[0], c.all_reduce(parts)[0]) and np.array_equal(lead[1], lead[0][::-1])


@cases("ranks", [2, 3, 8])
def test_a_chain_of_ranks_is_a_unit_of_chunks(ranks):
    """One-shot sums from rank 0 on are ChunkedDotUnit's; an element of a ring's chunk has K turned by the chunk."""
    k, each = 48, 48 // ranks
    a, b = _operands(k, "e4m3fn", n=7)
    unit = sn.ChunkedDotUnit(_E4M3, each, "bfloat16")
    for name in ("one_shot", *(("ring", "tree") if ranks == 2 else ())):
        c = sn.collective(name, ranks, unit="bfloat16")
        assert np.array_equal(sn.collectives.split_matmul(a, b, _E4M3, c)[0], sn.matmul(a, b, unit)), name
    ring = sn.collective("ring", ranks, unit="bfloat16")
    found = sn.collectives.split_matmul(a, b, _E4M3, ring)[0].reshape(-1)
    chunks = chunks_of(ring, found.size)
    assert len(chunks.starts) in (ranks, ranks - 1)  # the last one may be empty
    for start, stop, label in zip(chunks.starts, chunks.stops, chunks.labels, strict=True):
        turned = np.roll(np.arange(k), -((label + 1) % ranks) * each)
        assert np.array_equal(found[start:stop], sn.matmul(a[:, turned], b[turned], unit).reshape(-1)[start:stop])
    assert ranks == 2 or not np.array_equal(found.reshape(5, 7), sn.matmul(a, b, unit))  # the order matters


@cases("ranks", [2, 4, 8])
def test_partners_at_doubling_distances_are_lanes_added_as_a_tree(ranks):
    """Rank r has products r, r + ranks, ..., as lane r."""
    a, b = _operands(48, "e4m3fn")
    lanes = sn.MadUnit("bfloat16", operand="e4m3fn", lanes=ranks, reduction="tree")
    order = np.arange(48).reshape(-1, ranks).T.reshape(-1)
    c = sn.collective("doubling", ranks, unit="bfloat16")
    assert np.array_equal(sn.collectives.split_matmul(a[:, order], b[order], _E4M3, c)[0], sn.matmul(a, b, lanes))


def test_random_words_of_ranks_are_their_own():
    a, b = _operands(32)
    c = sn.collective("one_shot", 2, unit=_SR)
    stream = sn.Stream(7)
    parts = [
        sn.matmul(a[:, r * 16 : r * 16 + 16], b[r * 16 : r * 16 + 16], _SR, key=stream.spawn(3)[2].spawn(2)[r])
        for r in range(2)
    ]
    assert np.array_equal(sn.collectives.split_matmul(a, b, _SR, c, key=7)[0], c.all_reduce(parts, key=7)[0])
    with pytest.raises(ValueError, match="key"):
        sn.collectives.split_matmul(a, b, _SR, "ring(ranks=2, unit='bfloat16')")


def test_experts_tokens_arrive_as_they_are():
    """Dispatch, experts and the way back: a wire that holds the tokens' format changes no bit."""
    rng = np.random.Generator(np.random.Philox(4))
    tokens = sn.quantize(rng.standard_normal((4, 4 * 3, 8)), "bfloat16").astype(np.float32)  # rank, seats, features
    weights = sn.quantize(rng.standard_normal((4, 8, 8)), "bfloat16").astype(np.float32)  # an expert on each rank
    expert = lambda x, w: sn.quantize(sn.matmul(x, w, _WIDE), "bfloat16").astype(np.float32)  # noqa: E731
    alone = [np.concatenate([expert(x[3 * e : 3 * e + 3], weights[e]) for e in range(4)]) for x in tokens]
    for wire, exact in (("bfloat16", True), ("binary32", True), ("e4m3fn", False)):
        c = sn.collective("ring", 4, unit="bfloat16", wire=wire)
        there = c.all_to_all(tokens)
        back = c.all_to_all([expert(x, w) for x, w in zip(there, weights, strict=True)])
        assert all(np.array_equal(x, y) for x, y in zip(back, alone, strict=True)) == exact


@cases(
    "given, says",
    [
        ({"collective": "ring(ranks=5)"}, "K = 24 has no equal parts for 5 ranks"),
        ({"collective": "ring"}, "state ranks="),
        ({"unit": "MadUnit('binary32', operand='e4m3fn')"}, "e4m3fn"),
        ({"b": np.ones((23, 2), np.float32)}, r"got shapes \(5, 24\) and \(23, 2\)"),
        ({"unit": sn.BlockDotUnit("binary32", operand="mxfp8_e4m3")}, "multiplies blocks, which are not divided here"),
        ({"unit": sn.MadUnit("bfloat16", operand="bfloat16"), "collective": 3}, "is a text, got 3"),
    ],
)
def test_what_cannot_be_divided(given, says):
    a, b = _operands(24)
    stated = {"a": a, "b": b, "unit": _BF16, "collective": "ring(ranks=4, unit='bfloat16')"} | given
    with pytest.raises((ValueError, TypeError), match=says):
        sn.collectives.split_matmul(**stated)
