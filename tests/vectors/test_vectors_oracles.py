"""What generate writes equals Berkeley SoftFloat and softnum.reference."""

from itertools import product

import numpy as np
import pytest
import softfloatpy

from softnum import reference
from softnum.formats import FloatFormat
from softnum.vectors import VectorSpec, generate, plan
from tests.support.cases import cases
from tests.support.softfloat import MODES, OPERATIONS, TININESS, TYPES, answer, softfloat_state


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "fma"])
@pytest.mark.parametrize("fmt", ["binary16", "binary32"])
def test_results_and_flags_equal_softfloat(fmt, op, rounding):
    kind, prefix = TYPES[fmt]
    theirs = getattr(softfloatpy, f"{prefix}_{OPERATIONS[op]}")
    size = 2 if fmt == "binary16" else 4
    seen = 0
    for tininess in TININESS:
        with softfloat_state(rounding, tininess):
            for block in generate(op, fmt, rounding=rounding, tininess=tininess, count=6000, seed=11):
                for *operands, result, flags in zip(*(c.tolist() for c in block.columns), strict=True):
                    want = answer(theirs, *(kind.from_bytes(v.to_bytes(size, "big")) for v in operands))
                    assert (result, flags) == want, ([hex(v) for v in operands], tininess)
                    seen += 1
    assert seen == 12000


CASES = [
    ("multiply", "e4m3fn", {}),
    ("multiply", ("e5m2", "q4.4"), dict(out_fmt="binary16", rounding="up")),
    ("multiply", "e4m3fnuz", dict(rounding="to_odd", overflow="saturate")),
    ("fma", "e6m9", dict(rounding="sr", stochastic_bits=7)),
    ("fma", "binary64", dict(rounding="toward_zero")),
    ("fma", ("e5m2", "e5m2", "e6m9"), dict(out_fmt="e6m9")),
    ("fma", "q8.8", dict(rounding="nearest_away")),
    ("fma", "q4.4", dict(overflow="wrap", rounding="stochastic_floor", stochastic_bits=4)),
    ("add", "bfloat16", dict(rounding="sr", stochastic_bits=32)),
    ("subtract", "dlfloat16", dict(rounding="down", tininess="before")),
    ("subtract", "uq3.9", {}),
    ("convert", "binary32", dict(out_fmt="e5m2", rounding="sr", stochastic_bits=9)),
    ("convert", "binary16", dict(out_fmt="q4.4")),
    ("convert", "q8.8", dict(out_fmt="e3m4", rounding="nearest_zero")),
    ("multiply", "e2m1fn", dict(rounding="sr", stochastic_bits=6)),
    ("multiply", "e8m0fnu", {}),
    ("multiply", FloatFormat(7, 13, bias=40), {}),
]


@cases("op, fmt, options", CASES, ids=lambda v: str(v) if not isinstance(v, dict) else None)
def test_results_and_flags_equal_the_reference(op, fmt, options):
    spec = VectorSpec.make(op, fmt, **options)
    env = dict(rounding=spec.rounding, overflow=spec.overflow, tininess=spec.tininess)
    seen = 0
    for block in plan(spec, count=1500, seed=3).blocks():
        rows = zip(*(c.tolist() for c in block.columns), strict=True)
        for row in rows:
            operands, result, flags = row[: len(spec.formats)], row[-2], row[-1]
            if spec.stochastic_bits is not None:
                env |= dict(stochastic_bits=spec.stochastic_bits, random_bits=row[-3])
            if op == "convert":
                want = reference.convert(operands[0], spec.formats[0], spec.out_fmt, **env)
            else:
                want = getattr(reference, op)(*operands, spec.formats, out_fmt=spec.out_fmt, **env)
            assert (result, flags) == want, [hex(v) for v in row]
            seen += 1
    assert seen >= 1024


def test_exhaustive_pairs_are_all_pairs_in_order():
    (block,) = generate("multiply", "e5m2")
    pairs = list(zip(*(c.tolist() for c in block.operands), strict=True))
    assert pairs == list(product(range(256), repeat=2))


def test_exhaustive_over_random_bits_too():
    (block,) = generate("multiply", "e2m1fn", rounding="sr", stochastic_bits=4)
    rows = zip(*(c.tolist() for c in (*block.operands, block.random_bits)), strict=True)
    assert list(rows) == list(product(range(16), repeat=3))


def test_stochastic_vectors_round_both_ways():
    spec = VectorSpec.make("multiply", "e5m2", rounding="sr", stochastic_bits=8)
    planned = plan(spec, count=3 * 65536)
    assert planned.method == "exhaustive operands"
    results = np.concatenate([b.result for b in planned.blocks()]).reshape(3, -1)
    assert len(results[0]) == 65536
    differ = np.count_nonzero((results != results[0]).any(axis=0))
    assert differ > 1000  # the same operands, other random bits


@pytest.mark.parametrize(
    "op, fmt",
    [("multiply", "binary16"), ("fma", "binary32"), ("fma", "e5m2"), ("add", "binary64"), ("fma", "bfloat16")],
)
def test_every_flag_and_class_of_result_occurs(op, fmt):
    seen_flags, seen_results = set(), []
    for block in generate(op, fmt, count=40000):
        seen_flags |= set(np.unique(block.flags).tolist())
        seen_results.append(block.result)
    kinds = {reference.decode(int(c), fmt).kind for c in np.unique(np.concatenate(seen_results))}
    assert kinds == {"finite", "inf", "nan"}
    # none, inexact, overflow, invalid; sums do not underflow inexactly
    assert {0, 1, 5, 16} <= seen_flags
    assert (3 in seen_flags) == (op != "add")
