"""softnum.arrays.pack and softnum.arrays.unpack against one long integer: code i of a row lies at bit i * bits."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softnum as sn
from softnum.arrays import unpack
from tests.support.cases import cases

WIDTHS = range(1, 65)


def fixed(bits):
    return sn.FixedFormat(bits, 0, signed=False)


def oracle(row, bits) -> bytes:
    text = "".join(format(int(code), f"0{bits}b") for code in reversed(row))
    return int("0" + text, 2).to_bytes((len(row) * bits + 7) // 8, "little")


def random_codes(bits, shape, seed=0):
    rng = np.random.Generator(np.random.Philox(seed))
    return rng.integers(0, 2**64, shape, dtype=np.uint64) >> np.uint64(64 - bits)


@cases("bits", WIDTHS)
def test_every_width_and_length(bits):
    for n in range(18):
        codes = random_codes(bits, n, seed=n)
        for row in (codes, np.zeros_like(codes), np.full_like(codes, 2**bits - 1)):
            packed = sn.arrays.pack(row, fixed(bits))
            assert packed.dtype == np.uint8 and packed.tobytes() == oracle(row, bits)
            again = sn.arrays.unpack(packed, fixed(bits), n)
            assert again.dtype == fixed(bits).storage_dtype and again.tolist() == row.tolist()
            assert sn.arrays.unpack(packed.tobytes(), fixed(bits), n).tolist() == row.tolist()


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_all_short_rows(bits):
    for n in range(1, 4):
        rows = np.array(list(itertools.product(range(2**bits), repeat=n)))
        packed = sn.arrays.pack(rows, fixed(bits))
        assert packed.tobytes() == b"".join(oracle(row, bits) for row in rows)
        assert np.array_equal(sn.arrays.unpack(packed, fixed(bits), n), rows)


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6, 7, 8])
def test_all_pairs_of_neighbours(bits):
    codes = np.arange(2**bits)
    rows = np.stack(np.broadcast_arrays(codes[:, None], codes), -1).reshape(-1)  # each pair once, in one long row
    packed = sn.arrays.pack(rows, fixed(bits))
    assert packed.tobytes() == oracle(rows, bits) and np.array_equal(
        sn.arrays.unpack(packed, fixed(bits), rows.size), rows
    )


@given(st.integers(1, 64), st.lists(st.integers(0, 4), min_size=1, max_size=3), st.data())
def test_rows_strides_and_byte_orders(bits, shape, data):
    codes = random_codes(bits, shape, seed=data.draw(st.integers(0, 9))).astype(fixed(bits).storage_dtype)
    for given_codes in (codes, np.asfortranarray(codes), codes[..., ::-1], codes.T, codes.astype(">u8")):
        packed = sn.arrays.pack(given_codes, fixed(bits))
        n = given_codes.shape[-1]
        assert packed.shape == (*given_codes.shape[:-1], -(-n * bits // 8))
        assert packed.tobytes() == b"".join(
            oracle(given_codes[i], bits) for i in np.ndindex(given_codes.shape[:-1])
        )  # fmt: skip
        for stored in (packed, np.asfortranarray(packed), packed.astype(np.int64)):
            assert np.array_equal(sn.arrays.unpack(stored, fixed(bits), n), given_codes)


def test_known_layouts():
    nibbles = np.arange(16)
    packed = sn.arrays.pack(nibbles, "e2m1fn")
    assert np.array_equal(packed, nibbles[::2] | nibbles[1::2] << 4)  # as PyTorch's float4_e2m1fn_x2
    assert sn.arrays.pack([0x3F, 0, 0, 0x15], "e3m2fn").tolist() == [0x3F, 0x00, 0x54]
    assert sn.arrays.pack([0x1234, 0xABCD], "binary16").tolist() == [0x34, 0x12, 0xCD, 0xAB]
    a = sn.array([[1.0, -6.0, 0.5]], "e2m1fn")
    assert np.array_equal(sn.arrays.unpack(sn.arrays.pack(a), a.format, 3), a.codes) and sn.arrays.pack(a).shape == (
        1,
        2,
    )
    block = sn.arrays.pack(np.arange(32), "e2m3fn")  # an MX block ends on a byte
    assert block.shape == (24,)
    table = sn.CustomFormat.from_table([0.0, 1.0, 2.0, 4.0])
    assert sn.arrays.pack(sn.Array([3, 0, 1, 2], table)).tolist() == [0b10010011]


def test_packing_does_not_alias():
    codes = np.arange(4, dtype=np.uint8)
    packed = sn.arrays.pack(codes, "e5m2")
    assert not np.shares_memory(packed, codes) and not np.shares_memory(sn.arrays.unpack(packed, "e5m2", 4), packed)


@cases(
    ("error", "message", "call"),
    [
        (ValueError, "16 is no code of e2m1fn", lambda: sn.arrays.pack([16], "e2m1fn")),
        (ValueError, "pack: a scalar has no axis to pack along", lambda: sn.arrays.pack(3, "e2m1fn")),
        (ValueError, "plain encodings do not carry a format; give fmt=", lambda: sn.arrays.pack([3])),
        (ValueError, "leave fmt= out", lambda: sn.arrays.pack(sn.array([1.0], "e2m1fn"), "e2m1fn")),
        (TypeError, "are unsigned integers, got an array of float64", lambda: sn.arrays.pack([1.0], "e2m1fn")),
        (ValueError, r"rows of 5 encodings of e2m1fn have 3 bytes, got an array of shape \(2,\)",
         lambda: sn.arrays.unpack([1, 2], "e2m1fn", 5)),
        (ValueError, "rows of 2 encodings of e2m1fn have 1 bytes", lambda: sn.arrays.unpack([1, 2], "e2m1fn", 2)),
        (ValueError, r"got an array of shape \(\)", lambda: sn.arrays.unpack(1, "e2m1fn", 2)),
        (ValueError, "after the last of 3 encodings are not zero", lambda: sn.arrays.unpack([1, 0x10], "e2m1fn", 3)),
        (ValueError, "the number of encodings in a row, got -1", lambda: sn.arrays.unpack([1], "e2m1fn", -1)),
        (ValueError, "count must be the number of encodings in a row, got 2.0", lambda: unpack([1], "e2m1fn", 2.0)),
        (TypeError, r"needs bytes \(uint8\), got an array of int64", lambda: unpack(np.array([256]), "e2m1fn", 2)),
        (TypeError, r"needs bytes \(uint8\), got an array of float64", lambda: sn.arrays.unpack([0.5], "e2m1fn", 2)),
    ],
)  # fmt: skip
def test_refusals(error, message, call):
    with pytest.raises(error, match=message):
        call()
