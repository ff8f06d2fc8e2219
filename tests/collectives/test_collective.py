"""`softnum.collective`: its text, what it refuses, streams of random words, sizes."""

from __future__ import annotations

import numpy as np
import pytest

import softnum as sn
from softnum.collectives import arithmetic, rows
from tests.support.cases import cases

_FP8 = sn.BlockFormat("e4m3fn", "binary32", 128)


@cases(
    "name, given",
    [
        ("ring", {"unit": "bfloat16", "direction": -1, "chunk": 64, "order": [1, 0, 2, 3]}),
        ("double_tree", {"unit": sn.MadUnit("binary32", operand="bfloat16"), "format": "bfloat16", "node": 2}),
        ("two_shot", {"wire": _FP8, "own": "kept", "average": "after", "start": "own", "scale_rule": "rceil"}),
        ("in_network", {"unit": sn.FusedDotUnit(4, 8, "binary32", operand="bfloat16"), "wire": "e5m2"}),
        ("gloo", {"unit": "binary16", "wire_rounding": "sr", "wire": "e5m2", "stochastic_bits": 9}),
    ],
)
def test_text_makes_the_collective_again(name, given):
    c = sn.collective(name, 4, **given)
    assert sn.collective(str(c)) == sn.collective(repr(c)) == sn.collective(c) == c
    assert eval(repr(c).split("  #")[0], {**vars(sn), "collective": sn.collective}) == c
    assert hash(sn.collective(str(c))) == hash(c)
    if c.order is None:
        assert c.of(8).ranks == 8 and c.of(8).of(4) == c


def test_what_is_given_besides_a_collective_replaces_what_it_states():
    c = sn.collective("ring", 4, unit="binary16", wire="e5m2")
    assert sn.collective(c, unit="bfloat16", wire="bfloat16") == sn.collective("ring", 4, unit="bfloat16")
    again = sn.collective("ring(unit='binary16', chunk=3)", 4, unit="binary32", chunk=5)
    assert again == sn.collective("ring", 4, chunk=5)


def test_names_of_units_are_units():
    c = sn.collective("in_network", 4, unit="nvidia_h100_bf16")
    assert c.unit == sn.unit("nvidia_h100_bf16")
    assert sn.collective("ring", 4, unit=sn.format("e6m9")).unit == sn.MadUnit("e6m9", operand="e6m9")


@cases(
    "text, given, says",
    [
        ("rings", {"ranks": 4}, "did you mean 'ring'"),
        ("ring", {}, "state ranks="),
        ("ring", {"ranks": 1}, "from 2 to 16384, got 1"),
        ("ring", {"ranks": 16385}, "from 2 to 16384, got 16385"),
        ("ring", {"ranks": True}, "from 2 to 16384, got True"),
        ("ring(ranks=4)", {"ranks": 8}, "the text states ranks=4"),
        ("ring(ranks=4, ranks=8)", {}, "state each argument once by name; there is ranks="),
        ("ring(**{'ranks': 4})", {}, r"there is \*\*"),
        ("ring(4)", {}, "its arguments are named, as in ring"),
        ("ring(", {"ranks": 8}, "no expression of a collective"),
        ("ring(unit=__import__('os'))", {"ranks": 8}, "no expression of a collective"),
        ("5", {"ranks": 8}, "unknown algorithm '5'"),
        ("tree", {"ranks": 8, "direction": 1}, "tree has no direction= .* is for ring"),
        ("tree", {"ranks": 8, "node": 3}, "do not divide 8 ranks"),
        ("double_tree", {"ranks": 8, "channels": 3}, "3 is odd"),
        ("ring", {"ranks": 8, "chunk": 0}, "chunk must be an integer from 1"),
        ("ring", {"ranks": 8, "chunk": 5, "segments": 2}, "not both"),
        ("ring", {"ranks": 4, "order": (0, 1, 2, 2)}, "each of the 4 ranks once"),
        ("ring", {"ranks": 4, "start": 4}, "start must be an integer from 0 to 3"),
        ("ring", {"ranks": 4, "average": "mean"}, "average must be one of"),
        ("ring", {"ranks": 4, "own": "mine"}, "own must be one of"),
        ("ring", {"ranks": 4, "unit": "bfloat17"}, "neither a format .* nor a unit"),
        ("ring", {"ranks": 4, "unit": "bfloat16", "format": "binary32"}, "lacks values; state format='bfloat16'"),
        ("ring", {"ranks": 4, "wire": "nvfp4"}, "a scale of the whole array"),
        ("ring", {"ranks": 4, "scale_rule": "max"}, "for wires of a block format"),
        ("ring", {"ranks": 4, "wire": "e5m2", "wire_overflow": "wrap"}, "wrap"),
        ("ring", {"ranks": 4, "wire_rounding": "nearly"}, "rounding mode"),
        ("ring", {"ranks": 4, "unit": sn.MadUnit("e6m9", operand="e6m9", rounding="sr", random="lfsr32")}, "lfsr32"),
    ],
)
def test_what_does_not_go_together_is_an_error(text, given, says):
    with pytest.raises(ValueError, match=says):
        sn.collective(text, **given)


@cases(
    "make, says",
    [
        (lambda: sn.collective(None, 2), "name of an algorithm is a text, got None"),
        (lambda: sn.collective("ring", 2, order="ab"), "order= is a sequence of ranks, got 'ab'"),
        (lambda: sn.collective("ring", 2).all_reduce(None), "give an array of each rank"),
        (lambda: sn.collective("ring", 2).all_reduce(np.float32(3)), "give an array of each rank"),
    ],
)
def test_what_is_of_another_type_is_an_error(make, says):
    with pytest.raises(TypeError, match=says):
        make()


def test_parameters_that_do_not_exist_are_named():
    with pytest.raises(TypeError, match="no parameter 'chunks'"):
        sn.collective("ring", 4, chunks=3)


def test_arrays_are_checked(monkeypatch):
    c = sn.collective("ring", 4, unit="bfloat16")
    x = np.ones((4, 6), np.float32)
    with pytest.raises(ValueError, match="4 ranks, got 3 arrays"):
        c.all_reduce(x[:3])
    with pytest.raises(ValueError, match=r"\(6,\) of rank 0 and \(5,\) of rank 2"):
        c.all_reduce([x[0], x[0], x[0][:5], x[0]])
    with pytest.raises(ValueError, match="is no value of bfloat16"):
        c.all_reduce(x + np.float32(1e-3))
    with pytest.raises(TypeError, match="got int64"):
        c.all_reduce(x.astype(int))
    with pytest.raises(ValueError, match="do not have equal parts"):
        c.reduce_scatter(x)
    with pytest.raises(ValueError, match="leaves no rank with a part"):
        sn.collective("tree", 4).reduce_scatter(x[:, :4])
    with pytest.raises(ValueError, match="6 ranks, no power of two"):
        sn.collective("halving_doubling", 6).reduce_scatter(np.ones((6, 6), np.float32))
    with pytest.raises(ValueError, match="give key=seed"):
        sn.collective("ring", 4, unit=sn.MadUnit("e6m9", operand="e6m9", rounding="sr")).all_reduce(x)
    huge = np.broadcast_to(np.float32(1), (4, 3 << 29))
    with pytest.raises(ValueError, match=r"need 30.0 GiB .* limit is 8 GiB; give at most 429496729 elements"):
        c.all_reduce(huge)
    monkeypatch.setattr(rows, "LIMIT", 4 * 6 * 5)
    assert c.all_reduce(x)[0].tolist() == [4.0] * 6  # four arrays and one result
    with pytest.raises(ValueError, match="need"):
        sn.collective("ring", 4, unit="bfloat16", own="kept").all_reduce(x)


def test_results_that_are_one_cannot_be_written_to():
    first, *others = sn.collective("ring", 3).all_reduce(np.ones((3, 2), np.float32))
    assert all(x is first for x in others) and not first.flags.writeable
    assert sn.collective("ring", 3).all_reduce([np.float32(x) for x in (1, 2, 3)])[2] == 6  # of no dimensions
    assert [x.size for x in sn.collective("ring", 3).all_reduce(np.ones((3, 0), np.float32))] == [0] * 3


def test_ranks_differ_only_where_that_is_stated():
    x = sn.quantize(np.random.default_rng(1).standard_normal((4, 40)), "bfloat16").astype(np.float32)
    for name in ("ring", "tree", "double_tree", "halving_doubling", "doubling", "one_shot", "two_shot", "in_network"):
        same = sn.collective(name, 4, unit="bfloat16", wire="e5m2").all_reduce(x)
        assert all(np.array_equal(y, same[0]) for y in same), name
        kept = sn.collective(name, 4, unit="bfloat16", wire="e5m2", own="kept").all_reduce(x)
        assert any(not np.array_equal(y, kept[0]) for y in kept) == (name != "in_network"), name


def test_no_word_is_used_twice(monkeypatch):
    """Of one kind, an element's roundings have different numbers, but where ranks do the same thing twice."""
    used = []

    def noted(self, kind, numbers):
        used.append([(kind, self.first, int(number)) for number in np.atleast_1d(numbers)])
        return np.zeros((*np.shape(numbers), self.count), np.uint32)

    monkeypatch.setattr(arithmetic.Words, "of", noted)
    unit = sn.MadUnit("bfloat16", operand="bfloat16", rounding="sr")
    x = np.ones((6, 1), np.float32)
    for name in ("ring", "tree", "double_tree", "halving_doubling", "doubling", "one_shot", "two_shot", "in_network"):
        used.clear()
        sn.collective(name, 6, unit=unit, wire="e5m2", wire_rounding="sr").all_reduce(x, key=1)
        every = [word for words in used for word in words]
        assert len(every) > 6 and len(set(every)) == len(every), name


def test_many_ranks_and_the_time_that_they_take():
    c = sn.collective("double_tree", 16384, unit="bfloat16")
    assert c.all_reduce(np.ones((16384, 3), np.float32))[0].tolist() == [16384.0] * 3  # pairs of equal sums are exact
    assert sn.collective("ring", 1024, unit="bfloat16").all_reduce(np.ones((1024, 2), np.float32))[0][0] == 256
    with pytest.raises(ValueError, match="from 0 on, got -5"):
        c.estimate(-5)
    assert sn.collective("ring", 64).estimate(10**6, seconds=0.0) > 1e-3
