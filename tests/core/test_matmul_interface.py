"""What matmul and dot take, give and refuse; and what MadUnit refuses."""

import pickle

import numpy as np
import pytest

import softnum as sn
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits

UNIT = sn.MadUnit("e6m9", operand="e5m2")
NOISY = sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic", stochastic_bits=12)
A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4) % 5


def test_small_integers_are_exact():
    assert np.array_equal(sn.matmul(A, B, UNIT), A @ B)
    assert sn.dot(A[1], B[:, 1], UNIT) == A[1] @ B[:, 1]
    assert sn.dot(A[1], B[:, 1], UNIT, 2.0) == A[1] @ B[:, 1] + 2


def test_leading_dimensions_broadcast_and_number_the_batch():
    rng = np.random.default_rng(0)
    a = sn.quantize(rng.normal(size=(2, 1, 4, 5)).astype(np.float32), "e5m2")
    b = sn.quantize(rng.normal(size=(3, 5, 6)).astype(np.float32), "e5m2")
    got = sn.matmul(a, b, NOISY, key=1)
    assert got.shape == (2, 3, 4, 6) and got.dtype == np.float32
    words = np.zeros((2, 3, 4, 6, 5, 2), np.uint32)
    flat_a = np.broadcast_to(a, (2, 3, 4, 5)).reshape(6, 4, 5)
    flat = sn.matmul(flat_a, np.broadcast_to(b, (2, 3, 5, 6)).reshape(6, 5, 6), NOISY, key=1)
    assert_same_bits(got.reshape(6, 4, 6), flat)
    assert not np.array_equal(got[0, 0], sn.matmul(a[1, 0], b[0], NOISY, key=1))
    assert np.array_equal(sn.matmul(a, b, NOISY, random_bits=words)[1, 2],
                          sn.matmul(a[1, 0], b[2], NOISY, random_bits=words[1, 2]))  # fmt: skip
    c = sn.quantize(rng.normal(size=(3, 1, 6)), "e6m9")
    assert_same_bits(sn.matmul(a, b, UNIT, c)[1, 2], sn.matmul(a[1, 0], b[2], UNIT, c[2]))


def test_layouts_and_types_of_operands():
    want = sn.matmul(A, B, UNIT)
    big_endian = A.astype(">f4")
    unaligned = np.zeros(A.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(A.shape)
    unaligned[...] = A
    for a in (np.asfortranarray(A), A.astype(np.float64), big_endian, unaligned, np.repeat(A, 2, axis=1)[:, ::2]):
        for b in (B, np.asfortranarray(B), B.astype(np.float64), np.repeat(B, 3, axis=0)[::3], B[::-1][::-1]):
            assert_same_bits(sn.matmul(a, b, UNIT), want)
    assert_same_bits(sn.matmul(sn.array(A, "e5m2"), sn.array(B, "e5m2"), UNIT), want)
    assert_same_bits(sn.matmul(sn.array(A, "e5m2"), B, UNIT), want)


def test_nan_operands_of_the_carrier_format():
    # no look at the operands tells of them: any bits of a NaN make the results of its row or column the canonical NaN
    bits = np.array([0x7FC00001, 0xFFABCDEF, 0x7F800001], np.uint32)
    for unit in (sn.MadUnit("binary32", operand="binary32"), sn.MadUnit("e6m9", operand="binary32")):
        a, b = np.ones((4, 5), np.float32), np.ones((5, 6), np.float32)
        a[:3, 2] = bits.view(np.float32)
        for got in (sn.matmul(a, b, unit), sn.matmul(a[None], b[None], unit)[0], sn.matmul(b.T, a.T, unit).T):
            assert (np.ascontiguousarray(got[:3]).view(np.uint32) == 0x7FC00000).all() and (got[3] == 5).all()
    tensor_core = sn.unit("nvidia_h100_e4m3")
    a, b = np.ones((5, 70), np.float32), np.ones((70, 40), np.float32)
    a[1, 69], b[3, 7] = np.nan, np.nan
    got = sn.matmul(a, b, tensor_core)
    lost = np.isnan(got)
    assert lost[1].all() and lost[:, 7].all() and (got[~lost] == 70).all()
    c = np.zeros((5, 40), np.float32)
    c[0, 0] = np.nan
    assert np.isnan(sn.matmul(np.ones_like(a), np.ones_like(b), tensor_core, c)).sum() == 1


def test_out():
    want = sn.matmul(A, B, UNIT)
    out = np.zeros((2, 4), np.float32)
    assert sn.matmul(A, B, UNIT, out=out) is out
    assert_same_bits(out, want)
    wide = np.zeros((2, 8), np.float32)
    sn.matmul(A, B, UNIT, out=wide[:, ::2])
    assert_same_bits(wide[:, ::2].copy(), want)
    square = np.eye(3, dtype=np.float32) * 2
    assert_same_bits(sn.matmul(square, square, UNIT, out=square), np.eye(3, dtype=np.float32) * 4)
    slow = sn.MadUnit("e6m9", operand="e5m2", rounding="up")
    assert_same_bits(sn.matmul(A, B, slow, out=out), want)
    with pytest.raises(ValueError, match=r"out must be an array of shape \(2, 4\) and type float32"):
        sn.matmul(A, B, UNIT, out=np.zeros((2, 4)))


def test_result_types():
    assert sn.matmul(A, B, UNIT).dtype == np.float32
    assert sn.matmul(A, B, sn.MadUnit("binary64", operand="e5m2")).dtype == np.float64
    assert sn.matmul(A, B, sn.MadUnit("q16.30", operand="e3m2fn")).dtype == np.float64
    wide = sn.matmul(A, B, sn.MadUnit("e15m48", operand="e5m2"))
    assert isinstance(wide, sn.Array) and np.array_equal(np.asarray(wide), A @ B)
    ones = sn.array(np.ones((2, 3)), "q8.56")
    exact = sn.matmul(ones, sn.Array(ones.codes.T, "q8.56"), sn.MadUnit("q8.56", operand="q8.56"))
    assert isinstance(exact, sn.Array) and (exact.codes == 3 << 56).all()
    c = sn.array(np.full((2, 2), 0.5), "q8.56")
    more = sn.matmul(ones, sn.Array(ones.codes.T, "q8.56"), sn.MadUnit("q8.56", operand="q8.56"), c)
    assert (more.codes == 7 << 55).all()


@cases(
    "error, message, call",
    [
        (ValueError, r"a\[0, 1\] = .*1\.1.* is no value of e5m2 \(nearest: .*1\.0.*softnum\.quantize\(a, 'e5m2'\)",
         lambda: sn.matmul(np.float32([[1, 1.1, 2]]), B, UNIT)),
        (ValueError, r"b\[1, 0\] = .*100000", lambda: sn.matmul(A[:, :2], np.float32([[1], [1e5]]), UNIT)),
        (ValueError, "a has a value that q4.4 does not.*NaN",
         lambda: sn.matmul(A * np.nan, B, sn.MadUnit("q4.4", operand="q4.4"))),
        (ValueError, "c.* is no value of e6m9", lambda: sn.matmul(A, B, UNIT, np.float32([1 + 2**-12]))),
        (ValueError, r"a has K = 3 columns, b has 2 rows", lambda: sn.matmul(A, B[:2], UNIT)),
        (ValueError, "for vectors use dot", lambda: sn.matmul(A[0], B, UNIT)),
        (ValueError, "dot takes two vectors", lambda: sn.dot(A, B, UNIT)),
        (ValueError, "rounds stochastically; give key=", lambda: sn.matmul(A, B, NOISY)),
        (ValueError, r"key must be a seed or \(seed, stream\).*got -1", lambda: sn.matmul(A, B, NOISY, key=-1)),
        (ValueError, r"key must be a seed or \(seed, stream\)", lambda: sn.matmul(A, B, NOISY, key=(1, 2, 3))),
        (ValueError, r"random_bits must be uint32 of shape \(2, 4, 3, 2\), got uint32 of shape \(2, 4, 3\)",
         lambda: sn.matmul(A, B, NOISY, random_bits=np.zeros((2, 4, 3), np.uint32))),
        (ValueError, "threads must be a positive integer, got 0", lambda: sn.matmul(A, B, UNIT, threads=0)),
        (ValueError, "threads must be a positive integer, got 1.5", lambda: sn.matmul(A, B, UNIT, threads=1.5)),
        (ValueError, r"c of shape \(3,\) does not broadcast to \(2, 4\)",
         lambda: sn.matmul(A, B, UNIT, np.float32([1, 2, 3]))),
        (ValueError, "a is an Array of e4m3fn, but the unit's operand is e5m2",
         lambda: sn.matmul(sn.array(A, "e4m3fn"), B, UNIT)),
        (TypeError, "a must be a float32 or float64 array or a softnum.Array, got int64",
         lambda: sn.matmul(A.astype(int), B, UNIT)),
        (ValueError, "broadcast", lambda: sn.matmul(np.zeros((2, 2, 3)), np.zeros((3, 3, 2)), UNIT)),
        (ValueError, "NaN or infinite, and q4.4 has no code",
         lambda: sn.matmul(np.float32([[np.inf]]), np.float32([[1]]), sn.MadUnit("q4.4", operand="e5m2"))),
    ],
)  # fmt: skip
def test_refusals_of_matmul(error, message, call):
    with pytest.raises(error, match=message):
        call()


@cases(
    "message, arguments, options",
    [
        ("state operand=", ("e6m9",), {}),
        ("operand is one format or a pair, got 3", ("e6m9",), {"operand": ("e5m2",) * 3}),
        ("unknown format 'e5m2x'; did you mean e5m2", ("e6m9",), {"operand": "e5m2x"}),
        ("accumulator=e8m0fnu has no zero", ("e8m0fnu",), {"operand": "e5m2"}),
        ("product=e8m0fnu has no zero", ("e6m9",), {"operand": "e5m2", "product": "e8m0fnu"}),
        ("accumulator=ones has no zero", (sn.CustomFormat.from_table([1, -1], name="ones"),), {"operand": "e5m2"}),
        ("'stochastic' is not defined for the value table bit", (sn.CustomFormat.from_table([0, 1], name="bit"),),
         {"operand": "e5m2", "rounding": "sr"}),
        ("compensated='kahan' is not defined where .* of bit", (sn.CustomFormat.from_table([0, 1], name="bit"),),
         {"operand": "e5m2", "compensated": "kahan"}),
        ("unknown rounding mode 'even'; did you mean 'nearest_even'",
         ("e6m9",), {"operand": "e5m2", "rounding": "even"}),
        ("product_rounding needs product=", ("e6m9",), {"operand": "e5m2", "product_rounding": "up"}),
        ("stochastic_bits must be an integer from 1 to 32, got 0",
         ("e6m9",), {"operand": "e5m2", "stochastic_bits": 0}),
        ("stochastic_bits must be an integer from 1 to 32, got 33",
         ("e6m9",), {"operand": "e5m2", "stochastic_bits": 33}),
        ("lanes must be an integer from 1 to 1024, got 1025", ("e6m9",), {"operand": "e5m2", "lanes": 1025}),
        ("reduction must be one of sequential, tree", ("e6m9",), {"operand": "e5m2", "reduction": "trees"}),
        ("chunk must be a positive integer below 2\\*\\*62, got 0", ("e6m9",), {"operand": "e5m2", "chunk": 0}),
        ("chunk must be a positive integer below 2\\*\\*62, got 2.5", ("e6m9",), {"operand": "e5m2", "chunk": 2.5}),
        ("outer_accumulator needs chunk=", ("e6m9",), {"operand": "e5m2", "outer_accumulator": "e6m9"}),
        ("unknown overflow rule 'clip'", ("e6m9",), {"operand": "e5m2", "overflow": "clip"}),
        ("overflow='wrap' is for fixed point", ("e6m9",), {"operand": "e5m2", "overflow": "wrap"}),
        ("overflow='infinity' is for formats with infinities", ("q4.4",), {"operand": "q4.4", "overflow": "infinity"}),
    ],
)  # fmt: skip
def test_refusals_of_units(message, arguments, options):
    with pytest.raises(ValueError, match=message):
        sn.MadUnit(*arguments, **options)


def test_units_are_values():
    again = sn.MadUnit("e6m9", operand=("e5m2", "e5m2"), rounding="rne")
    assert again == UNIT and hash(again) == hash(UNIT) and again != NOISY
    assert pickle.loads(pickle.dumps(NOISY)) == NOISY
    with pytest.raises(AttributeError):
        UNIT.chunk = 3
    assert UNIT.steps(10) == 10 and sn.MadUnit("e6m9", operand="e5m2", chunk=4).steps(10) == 13
    assert sn.MadUnit("e6m9", operand="e5m2", chunk=4).steps(0) == 0


def test_the_words_depend_on_the_key_alone():
    rng = np.random.default_rng(0)
    a = sn.quantize(rng.normal(size=(8, 40)).astype(np.float32), "e5m2")
    first, again = sn.matmul(a, a.T, NOISY, key=7), sn.matmul(a, a.T, NOISY, key=(7, 0))
    assert_same_bits(first, again)
    for key in (8, (7, 1), 7 + 2**32, (7, 2**32)):
        assert not np.array_equal(first, sn.matmul(a, a.T, NOISY, key=key)), key
    assert_same_bits(first[2:3, 4:5], sn.matmul(a, a.T, NOISY, key=7)[2:3, 4:5])
    assert_same_bits(first[:3, :5], sn.matmul(a[:3], a.T[:, :5], NOISY, key=7))  # indices count, not sizes
    assert_same_bits(first[:, :5], sn.matmul(a, a.T[:, :5], NOISY, key=7))
