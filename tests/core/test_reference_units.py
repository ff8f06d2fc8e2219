"""The reference's random words and units: published answers, and sums worked by hand."""

import random
from fractions import Fraction

import pytest

from softnum import reference as ref
from softnum.formats.modes import Flags

NONE = 0
F = Fraction


# -- random words ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "key, counter, want",
    [  # known answers published with Random123
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(key, counter, want):
    assert ref.philox4x32_10(key, counter) == want


def test_elementwise_words():
    seed, stream = 0x1122334455667788, 0x99AABBCCDDEEFF00
    key = ref.philox4x32_10((0x55667788, 0x11223344), (0xDDEEFF00, 0x99AABBCC, 0, 0))[:2]
    block = ref.philox4x32_10(key, (5, 0, 0, 0))
    assert tuple(ref.random_word_elementwise(seed, stream, i) for i in range(20, 24)) == block
    assert ref.random_word_elementwise(seed, stream, (1 << 35) + 6) == ref.philox4x32_10(key, (1, 2, 0, 0))[2]


def test_matmul_words():
    keys = [ref.philox4x32_10((7, 0), (3, 0, domain, 0))[:2] for domain in (1, 2)]
    first, second = (ref.philox4x32_10(key, (2, 30, 20, 10))[1] for key in keys)
    at = {"seed": 7, "stream": 3, "batch": 10, "m": 20, "n": 30, "k": 9}
    assert ref.random_words_matmul(**at, stochastic_bits=32, two_roundings=False)[1] == first
    assert ref.random_words_matmul(**at, stochastic_bits=12, two_roundings=False)[1] == first & 0xFFF
    assert ref.random_words_matmul(**at, stochastic_bits=16, two_roundings=True) == (first & 0xFFFF, first >> 16)
    assert ref.random_words_matmul(**at, stochastic_bits=12, two_roundings=True) == (first & 0xFFF, first >> 16 & 0xFFF)
    assert ref.random_words_matmul(**at, stochastic_bits=17, two_roundings=True) == (first & 0x1FFFF, second & 0x1FFFF)


# -- units -------------------------------------------------------------------------------------------------------------
E5M2_ONE = 0x3C


def test_mad_dot_by_hand():
    # 1.25 * 1.25 = 1.5625: rounded to e5m2 it is 1.5; unrounded, 1.5625 + 1.5625 = 3.125 -> 3.0, or 1.5 + 1.5 = 3.0;
    # a third: fused 3 + 1.5625 -> round(4.5625) = 5.0 (quantum 1); rounded products 3 + 1.5 = 4.5 -> tie -> 4.0
    a = [0x3D] * 3
    fused = ref.mad_dot(a, a, operand="e5m2", accumulator="e5m2")
    rounded = ref.mad_dot(a, a, operand="e5m2", product="e5m2", accumulator="e5m2")
    assert [ref.to_fraction(code, "e5m2") for code, _ in (fused, rounded)] == [5, 4]
    assert fused[1] == rounded[1] == Flags.INEXACT
    # C comes first: 8 + 1 is a tie that stays 8 in e5m2, four times
    eight = ref.encode(8, "e5m2")[0]
    ones = [E5M2_ONE] * 4
    assert ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2", c=eight)[0] == eight
    # in chunks of 3 then 1: 1 + 1 + 1 = 3, 8 + 3 = 11 -> 12 (10 is odd), 12 + 1 = 13 -> 12 (14 is odd)
    chunked = ref.mad_dot(ones, ones, operand="e5m2", accumulator="e5m2", c=eight, chunk=3)
    assert ref.to_fraction(chunked[0], "e5m2") == 12
    wide = ref.mad_dot(
        ones,
        ones,
        operand="e5m2",
        accumulator="e5m2",
        c=ref.encode(8, "bfloat16")[0],
        chunk=3,
        outer_accumulator="bfloat16",
    )
    assert (ref.to_fraction(wide[0], "bfloat16"), wide[1]) == (12, NONE)


def test_mad_dot_of_nothing_and_mixed_operands():
    assert ref.mad_dot([], [], operand="e5m2", accumulator="e6m9") == (0, NONE)
    assert ref.mad_dot([], [], operand="e5m2", accumulator="e6m9", c=0x1234, chunk=4) == (0x1234, NONE)
    half = ref.encode(0.5, "q2.6")[0]
    code, flags = ref.mad_dot([half], [E5M2_ONE], operand=("q2.6", "e5m2"), accumulator="q8.8")
    assert (ref.to_fraction(code, "q8.8"), flags) == (F(1, 2), NONE)
    minus_zero = ref.mad_dot([0x80], [E5M2_ONE], operand="e5m2", accumulator="e5m2")
    assert minus_zero == (0, NONE)  # +0 + -0
    assert ref.mad_dot([0x80], [E5M2_ONE], operand="e5m2", accumulator="e5m2", c=0x80) == (0x80, NONE)


@pytest.mark.parametrize("product, product_rounding", [(None, None), ("e5m2", None), ("e5m2", "nearest_even")])
@pytest.mark.parametrize("r", [8, 16, 20])
def test_stochastic_mad_dot_is_a_loop_over_the_operations(product, product_rounding, r):
    rng = random.Random(f"{product} {product_rounding} {r}")
    a, b = ([rng.randrange(0x20, 0x48) | rng.randrange(2) << 7 for _ in range(11)] for _ in range(2))
    both = product is not None and product_rounding is None
    parts = []
    for first in range(0, 11, 4):
        total = 0
        for k in range(first, min(first + 4, 11)):
            for_product, for_sum = ref.random_words_matmul(9, 5, 1, 2, 3, k, r, both)
            sr = {"rounding": "stochastic", "stochastic_bits": r}
            if product is None:
                total, _ = ref.fma(
                    a[k], b[k], total, ("e5m2", "e5m2", "e6m9"), out_fmt="e6m9", random_bits=for_sum, **sr
                )
            else:
                how = sr | {"random_bits": for_product} if both else {}
                term, _ = ref.multiply(a[k], b[k], "e5m2", **how)
                total, _ = ref.add(total, term, ("e6m9", "e5m2"), out_fmt="e6m9", random_bits=for_sum, **sr)
        parts.append(total)
    total = 0
    for j, part in enumerate(parts):
        word = ref.random_words_matmul(9, 5, 1, 2, 3, 11 + j, r, both)[1]
        total, _ = ref.add(total, part, "e6m9", rounding="stochastic", stochastic_bits=r, random_bits=word)
    unit = {"operand": "e5m2", "product": product, "accumulator": "e6m9", "chunk": 4}
    unit |= {"rounding": "stochastic", "product_rounding": product_rounding, "stochastic_bits": r}
    assert ref.mad_dot(a, b, **unit, key=(9, 5), batch=1, m=2, n=3)[0] == total
    words = [ref.random_words_matmul(9, 5, 1, 2, 3, k, r, both) for k in range(14)]
    assert ref.mad_dot(a, b, **unit, random_bits=words)[0] == total
    assert ref.mad_dot(a, b, **unit, key=9)[0] == ref.mad_dot(a, b, **unit, key=(9, 0))[0]


def test_mad_dot_refusals():
    unit = {"operand": "e5m2", "accumulator": "e5m2"}
    with pytest.raises(ValueError, match="equally long operands, got 1 and 2"):
        ref.mad_dot([0], [0, 0], **unit)
    with pytest.raises(ValueError, match="lanes must be at least 1, got 0"):
        ref.mad_dot([0], [0], **unit, lanes=0)
    with pytest.raises(ValueError, match="chunk must be at least 1, got 0"):
        ref.mad_dot([0], [0], **unit, chunk=0)
    with pytest.raises(ValueError, match="give chunk="):
        ref.mad_dot([0], [0], **unit, outer_accumulator="e6m9")
    with pytest.raises(ValueError, match="needs random_bits"):
        ref.mad_dot([0], [0], **unit, rounding="stochastic")
    with pytest.raises(ValueError, match="which e8m0fnu lacks"):
        ref.mad_dot([0], [0], operand="e5m2", accumulator="e8m0fnu")
