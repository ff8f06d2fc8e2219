"""More than 2**31 elements: every index is of 64 bits."""

from pathlib import Path

import numpy as np
import pytest

import softnum as sn

N = 2**31 + 5
ROOM = 12 << 20  # KB


def _available() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), 0)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_available() < ROOM, reason="12 GB of free memory are needed"),
]


@pytest.fixture(scope="module")
def codes():
    """The pattern 0, 1, ..., 250 again and again: 251 divides no power of two."""
    return np.resize(np.arange(251, dtype=np.uint8), N)


def right(got, table) -> bool:
    """Whether each element is its code's entry, told in pieces that begin on both sides of 2**31."""
    step = 251 << 16
    want = np.resize(table, step)
    return all((got[i : i + step] == want[: len(got) - i]).all() for i in range(0, N, step))


def test_operations_on_codes(codes):
    small = np.arange(251, dtype=np.uint8)
    assert right(sn.multiply(codes, codes, "binary8p3se"), sn.multiply(small, small, "binary8p3se"))
    result, flags = sn.add(codes, np.uint8(0x41), "binary8p3se", return_flags=True)
    want, raised = sn.add(small, np.uint8(0x41), "binary8p3se", return_flags=True)
    assert right(result, want) and right(flags, raised)


def test_decoding_packing_and_places(codes):
    values = sn.decode(codes[::2], "binary8p3se", np.float32)  # half of them: 2**30 and 4 bytes each
    assert np.array_equal(values[-3:], sn.decode(codes[::2][-3:].copy(), "binary8p3se", np.float32), equal_nan=True)
    del values
    packed = sn.arrays.pack(codes & np.uint8(15), "e2m1fn")
    assert packed.nbytes == (N + 1) // 2
    back = sn.arrays.unpack(packed, "e2m1fn", N)
    assert right(back, np.arange(251, dtype=np.uint8) & 15)


def test_random_words_beyond_32_bits():
    """Element i takes word i mod 4 of counter i div 4: the last elements as if they stood alone, behind so many."""
    from softnum.arrays import lanes

    words = lanes.words_of_key((3, 4), N)
    assert np.array_equal(words[-5:], lanes.words_of_key((3, 4), 5 + N % 5, N - 5 - N % 5)[-5:])
    assert np.array_equal(words[2**31 - 4 : 2**31 + 4], lanes.words_of_key((3, 4), 8, 2**31 - 4))
