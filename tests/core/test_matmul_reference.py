"""matmul against `reference.mad_dot`, every unit; and the random words of a key given one by one."""

import numpy as np

import softnum as sn
from softnum import reference as ref
from tests.support.cases import cases
from tests.support.core_oracles import show
from tests.support.matmul_units import ALL, STOCHASTIC, as_codes, carrier, extreme, key_of, middling, reference


def compare(got, want, u, a, b, c=None):
    got = as_codes(got, u.outer)
    if not np.array_equal(got, want):
        m, n = (int(i) for i in np.argwhere(got != want)[0])
        raise AssertionError(
            f"{u}: [{m}, {n}] got {show(got[m, n], u.outer)}, want {show(want[m, n], u.outer)}; a = {a[m].tolist()}, "
            f"b = {b[:, n].tolist()}, c = {None if c is None else np.broadcast_to(c, got.shape)[m, n]}"
        )


def defined(u, fmt):
    """Whether every value of an operand may go in: a result that is NaN must have a code."""
    return all(f is None or f.has_nan for f in (u.product, u.accumulator, u.outer_accumulator)) or (
        not fmt.has_nan and not fmt.infinities
    )


@cases("u", ALL, ids=str)
def test_matmul_equals_the_reference(u, isa):
    rng = np.random.default_rng(1)
    a, b = middling(u.operand[0], rng, (3, 11)), middling(u.operand[1], rng, (11, 4))
    key = (77, 5) if u.stochastic else None
    compare(sn.matmul(a, b, u, key=key), reference(a, b, u, key=key), u, a, b)
    c = sn.quantize(rng.normal(0, 4, 4) if u.outer.signed else rng.random(4), u.outer, overflow="saturate")
    compare(sn.matmul(a, b, u, c, key=key), reference(a, b, u, c, key=key), u, a, b, c)
    if isa != "portable":
        return
    finite = not all(defined(u, f) for f in u.operand)
    a, b = (extreme(f, rng, s, finite) for f, s in zip(u.operand, ((4, 5), (5, 5)), strict=True))
    compare(sn.matmul(a, b, u, key=key), reference(a, b, u, key=key), u, a, b)


@cases("u", [u for u in ALL if u.stochastic], ids=str)
def test_random_bits_equal_the_key(u, isa):
    rng = np.random.default_rng(2)
    lead, m, k, n = 2, 3, 9, 5
    a, b = middling(u.operand[0], rng, (lead, m, k)), middling(u.operand[1], rng, (k, n))
    product = u.product is not None and u.product_mode.startswith("stochastic")
    both = product and u.rounding.startswith("stochastic")
    words = np.array(
        [
            ref.random_words_matmul(77, 5, *index, u.stochastic_bits, both)
            for index in np.ndindex(lead, m, n, u.steps(k))
        ],
        np.uint32,
    ).reshape(lead, m, n, u.steps(k), 2)
    by_key = sn.matmul(a, b, u, key=(77, 5))
    assert np.array_equal(by_key, sn.matmul(a, b, u, random_bits=words))
    noisy = words | np.uint32(0xFFFFFFFF << u.stochastic_bits & 0xFFFFFFFF)  # only the low r bits count
    assert np.array_equal(by_key, sn.matmul(a, b, u, random_bits=noisy))
    compare(by_key[1], reference(a[1], b, u, key=(77, 5), batch=1), u, a[1], b)
    other = np.random.default_rng(3).integers(0, 1 << 32, words.shape, dtype=np.uint32)
    compare(sn.matmul(a, b, u, random_bits=other)[0], reference(a[0], b, u, random_bits=other[0]), u, a[0], b)


def test_a_sum_of_nothing():
    for u in (ALL[0], STOCHASTIC[0], *(v for v in ALL if v.chunk)):
        a, b = np.zeros((2, 0), carrier(u.operand[0])), np.zeros((0, 3), carrier(u.operand[1]))
        zero = sn.matmul(a, b, u, **key_of(u))
        assert zero.shape == (2, 3) and not zero.any() and not np.signbit(zero).any()
        c = np.array([0.5, 0.0, 1.0])
        assert np.array_equal(sn.matmul(a, b, u, c, **key_of(u)), np.broadcast_to(c, (2, 3)))
        minus = np.array([-0.0])
        if u.outer.negative_zero:
            assert np.signbit(sn.matmul(a, b, u, minus, **key_of(u))).all()
    assert sn.matmul(np.zeros((0, 4)), np.zeros((4, 3)), ALL[0]).shape == (0, 3)
    assert sn.matmul(np.zeros((2, 4)), np.zeros((4, 0)), ALL[0]).shape == (2, 0)
    assert sn.matmul(np.zeros((0, 2, 4)), np.zeros((4, 3)), ALL[0]).shape == (0, 2, 3)


def test_the_order_of_summation_is_k_then_chunks():
    """Worked by hand: e6m3 holds 16 but not 17; 16 + 1 falls back, 1 + ... first gets further."""
    u = sn.MadUnit("e6m3", operand="e5m2")
    ones = np.ones((1, 5), np.float32)
    first = np.array([[16, 1, 1, 1, 1]], np.float32)
    last = first[:, ::-1].copy()
    assert sn.matmul(first, ones.T, u) == 16 and sn.matmul(last, ones.T, u) == 20
    assert sn.matmul(first, ones.T, sn.MadUnit("e6m3", operand="e5m2", chunk=1)) == 16
    assert sn.matmul(first, ones.T, sn.MadUnit("e6m3", operand="e5m2", chunk=3)) == 18  # (16) + (1 + 1)
    assert sn.matmul(first, ones.T, u, np.float32([16])) == 32  # c = 16 first: 32 stays
    assert sn.matmul(last, ones.T, u, np.float32([16])) == 32  # 16 + 1 four times: 16; + 16
    assert sn.dot(first[0], ones[0], u) == 16
