"""binary16, binary32 and binary64 against Berkeley SoftFloat, flags included: edge tables crossed, then random."""

import random

import numpy as np
import softfloatpy

import softnum as sn
from softnum.formats.names import format as format_of
from tests.support.cases import cases
from tests.support.core_oracles import edge_codes, random_codes, show
from tests.support.softfloat import MODES, OPERATIONS, TININESS, TYPES, answer, softfloat_state


def theirs(operation, columns, fmt, mode, tininess):
    """(codes, flags) as SoftFloat computes them."""
    kind, prefix = TYPES[fmt.name]
    function = getattr(softfloatpy, f"{prefix}_{OPERATIONS[operation]}")
    size = fmt.bits // 8
    numbers = [{c: kind.from_bytes(int(c).to_bytes(size, "big")) for c in set(column.tolist())} for column in columns]
    codes, flags = [], []
    with softfloat_state(mode, tininess):
        for operands in zip(*(column.tolist() for column in columns), strict=True):
            code, raised = answer(function, *(table[c] for table, c in zip(numbers, operands, strict=True)))
            codes.append(code)
            flags.append(raised)
    return np.array(codes, fmt.storage_dtype), np.array(flags, np.uint8)


def compare(operation, columns, fmt, mode, tininess):
    want, want_flags = theirs(operation, columns, fmt, mode, tininess)
    got, flags = getattr(sn.ops, operation)(*columns, fmt, rounding=mode, tininess=tininess, return_flags=True)
    bad = np.flatnonzero((got != want) | (flags != want_flags))
    if bad.size:
        i = int(bad[0])
        raise AssertionError(
            f"{operation}({', '.join(show(c[i], fmt) for c in columns)}) {fmt} {mode} tininess {tininess}: "
            f"got {show(got[i], fmt)} flags {flags[i]}, SoftFloat {show(want[i], fmt)} flags {want_flags[i]}; "
            f"{bad.size} differ"
        )


def cross(*tables):
    return [column.ravel() for column in np.meshgrid(*tables, indexing="ij")]


@cases("tininess", TININESS)
@cases("mode", MODES)
@cases("name", TYPES)
def test_edges_crossed(name, mode, tininess):
    fmt = format_of(name)
    edges = edge_codes(fmt)[:: 3 if tininess == "before" else 2]
    for operation in ("add", "subtract", "multiply", "divide", "remainder"):
        compare(operation, cross(edges, edges), fmt, mode, tininess)
    compare("sqrt", [edge_codes(fmt)], fmt, mode, tininess)
    few = edge_codes(fmt)[3::13]
    compare("fma", cross(few, few, few), fmt, mode, tininess)


@cases("mode", MODES)
@cases("name", TYPES)
def test_random(name, mode):
    fmt = format_of(name)
    rng = random.Random(f"{name} {mode}")
    tininess = rng.choice(list(TININESS))
    a, b, c = (random_codes(fmt, rng, 6000) for _ in range(3))
    close = a ^ (np.array([rng.randrange(4) | rng.randrange(2) << (fmt.bits - 1) for _ in a], np.uint64)).astype(
        a.dtype
    )
    compare("sqrt", (a,), fmt, mode, tininess)
    for operation in ("divide", "remainder"):
        compare(operation, (a, b), fmt, mode, tininess)
    for operation in ("add", "subtract", "multiply"):
        compare(operation, (a, b), fmt, mode, tininess)
        compare(operation, (a, close), fmt, mode, tininess)  # cancellation
    compare("fma", (a, b, c), fmt, mode, tininess)
    product = sn.multiply(a, b, fmt, rounding="toward_zero")
    compare("fma", (a, b, product ^ product.dtype.type(1 << (fmt.bits - 1))), fmt, mode, tininess)  # its rounding error
    near = np.array([rng.randrange(4) | 1 << (fmt.bits - 1) for _ in a], np.uint64).astype(a.dtype)
    compare("fma", (a, b, product ^ near), fmt, mode, tininess)


CONVERSIONS = [(a, b) for a in TYPES for b in TYPES if a != b]


@cases("mode", MODES)
@cases("source, target", CONVERSIONS)
def test_conversions(source, target, mode):
    rng = random.Random(f"{source} {target} {mode}")
    codes = np.concatenate([edge_codes(format_of(source)), random_codes(format_of(source), rng, 4000)])
    kind, prefix = TYPES[source]
    convert = getattr(softfloatpy, f"{prefix}_to_{TYPES[target][1]}")
    got, flags = sn.convert(codes, source, target, rounding=mode, return_flags=True)
    size = format_of(source).bits // 8
    with softfloat_state(mode):
        for c, mine, raised in zip(codes.tolist(), got.tolist(), flags.tolist(), strict=True):
            want = answer(convert, kind.from_bytes(c.to_bytes(size, "big")))
            assert (mine, raised) == want, (source, target, mode, hex(c))


def test_the_comparison_catches_a_planted_fault():
    """fma as two roundings differs from SoftFloat's on the edge table."""
    fmt = format_of("binary16")
    few = edge_codes(fmt)[3::13]
    columns = cross(few, few, few)
    want, _ = theirs("fma", columns, fmt, "nearest_even", "after")
    twice = sn.add(sn.multiply(columns[0], columns[1], fmt), columns[2], fmt)
    assert np.count_nonzero(twice != want) > 100
    assert np.array_equal(sn.fma(*columns, fmt), want)
