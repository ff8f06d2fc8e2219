# cython: language_level=3, boundscheck=False, wraparound=False
"""Columns of hexadecimal digits, a space between them and a newline behind the last, from and to bytes in memory."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t, uint16_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

cdef uint8_t PAIRS[512]  # the two digits of each byte
cdef uint8_t VALUES[256]  # of a digit, in either case; 255: no digit


cdef void _fill_tables() noexcept:
    cdef const char *digits = b"0123456789ABCDEF"
    cdef const char *lower = b"abcdef"
    cdef int i
    for i in range(256):
        PAIRS[2 * i] = digits[i >> 4]
        PAIRS[2 * i + 1] = digits[i & 15]
        VALUES[i] = 255
    for i in range(16):
        VALUES[<uint8_t>digits[i]] = i
    for i in range(6):
        VALUES[<uint8_t>lower[i]] = 10 + i


_fill_tables()

cdef struct Part:
    uint8_t *data  # n rows of `octets` bytes, the least significant first
    ptrdiff_t octets, digits


cdef inline uint8_t *_write(uint8_t *text, const uint8_t *entry, ptrdiff_t digits) noexcept nogil:
    cdef ptrdiff_t i = digits >> 1
    if digits & 1:
        text[0] = PAIRS[2 * entry[i] + 1]
        text += 1
    while i:
        i -= 1
        memcpy(text, PAIRS + 2 * entry[i], 2)
        text += 2
    return text


cdef inline const uint8_t *_read(const uint8_t *text, uint8_t *entry, ptrdiff_t digits, uint8_t *bad) noexcept nogil:
    cdef ptrdiff_t i = digits >> 1
    cdef uint8_t high, low, seen = 0
    if digits & 1:
        low = VALUES[text[0]]
        seen |= low
        entry[i] = low & 15
        text += 1
    while i:
        i -= 1
        high = VALUES[text[0]]
        low = VALUES[text[1]]
        seen |= high | low
        entry[i] = <uint8_t>(high << 4) | (low & 15)
        text += 2
    bad[0] |= seen
    return text


cdef Part *_parts(list arrays, digits) except NULL:
    cdef Part *parts = <Part *>malloc(max(1, len(arrays)) * sizeof(Part))
    cdef uint8_t[:, ::1] rows
    if parts == NULL:
        raise MemoryError("no memory for the columns of a text")
    for i, array in enumerate(arrays):
        rows = array
        parts[i].data = &rows[0, 0]
        parts[i].octets = rows.shape[1]
        parts[i].digits = digits[i]
    return parts


def format_rows(list parts, digits, Py_ssize_t n):
    """The lines, as bytes: each part is an array of n rows of bytes, the least significant first."""
    cdef Py_ssize_t width = sum(digits) + len(digits), count = len(parts), row, k
    text = bytearray(n * width)
    if n == 0:
        return bytes(text)
    arrays = [np.require(rows, np.uint8, "CW") for rows in parts]
    cdef Part *part = _parts(arrays, digits)
    cdef uint8_t[::1] out = text
    cdef uint8_t *p = &out[0]
    with nogil:
        for row in range(n):
            for k in range(count):
                p = _write(p, part[k].data + row * part[k].octets, part[k].digits)
                p[0] = 32
                p += 1
            (p - 1)[0] = 10
    free(part)
    return bytes(text)


def parse_rows(const uint8_t[::1] text, digits, octets):
    """Arrays of n rows of so many bytes, one for each column; None where a digit, a space or a newline is missing."""
    cdef Py_ssize_t width = sum(digits) + len(digits), count = len(digits), n = text.shape[0] // width, row, k
    arrays = [np.zeros((n, size), np.uint8) for size in octets]
    if n == 0:
        return arrays
    cdef Part *part = _parts(arrays, digits)
    cdef const uint8_t *p = &text[0]
    cdef uint8_t bad = 0, wrong = 0
    with nogil:
        for row in range(n):
            for k in range(count):
                p = _read(p, part[k].data + row * part[k].octets, part[k].digits, &bad)
                wrong |= p[0] ^ <uint8_t>(32 if k < count - 1 else 10)
                p += 1
            if bad & 128 or wrong:
                break
    free(part)
    return None if bad & 128 or wrong else arrays
