# cython: language_level=3, boundscheck=False, wraparound=False
"""Lines of digits of fixed width with literal text between them, from and to bytes in memory; and words of all columns."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

import numpy as np

cdef uint8_t PAIRS[512]  # the two digits of each byte
cdef uint8_t VALUES[256]  # of a digit, in either case; 255: no digit
cdef uint8_t OCTETS[2048]  # the eight binary digits of each byte


cdef void _fill_tables() noexcept:
    cdef const char *digits = b"0123456789ABCDEF"
    cdef const char *lower = b"abcdef"
    cdef int i, j
    for i in range(256):
        PAIRS[2 * i] = digits[i >> 4]
        PAIRS[2 * i + 1] = digits[i & 15]
        VALUES[i] = 255
        for j in range(8):
            OCTETS[8 * i + j] = 48 + (i >> (7 - j) & 1)
    for i in range(16):
        VALUES[<uint8_t>digits[i]] = i
    for i in range(6):
        VALUES[<uint8_t>lower[i]] = 10 + i


_fill_tables()

cdef struct Part:
    uint8_t *data  # n rows of `octets` bytes, the least significant first
    ptrdiff_t octets, digits
    const uint8_t *literal  # what stands in front of the digits; behind the last part's follows one more
    ptrdiff_t length


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
    bad[0] |= seen & 128
    return text


cdef inline uint8_t *_write_bits(uint8_t *text, const uint8_t *entry, ptrdiff_t digits) noexcept nogil:
    cdef ptrdiff_t i = digits >> 3, first = digits & 7
    if first:
        memcpy(text, OCTETS + 8 * entry[i] + 8 - first, first)
        text += first
    while i:
        i -= 1
        memcpy(text, OCTETS + 8 * entry[i], 8)
        text += 8
    return text


cdef inline const uint8_t *_read_bits(
    const uint8_t *text, uint8_t *entry, ptrdiff_t digits, uint8_t *bad
) noexcept nogil:
    cdef ptrdiff_t i = digits
    cdef uint8_t bit, seen = 0
    while i:
        i -= 1
        bit = text[0] ^ 48
        seen |= bit
        entry[i >> 3] = <uint8_t>(entry[i >> 3] | (bit & 1) << (i & 7))
        text += 1
    bad[0] |= seen & 254
    return text


cdef Part *_parts(list arrays, digits, list literals) except NULL:
    cdef Part *parts = <Part *>malloc((len(arrays) + 1) * sizeof(Part))
    cdef uint8_t[:, ::1] rows
    cdef const uint8_t[::1] literal
    if parts == NULL:
        raise MemoryError("no memory for the columns of a text")
    for i, array in enumerate(arrays):
        rows = array
        parts[i].data = &rows[0, 0]
        parts[i].octets = rows.shape[1]
        parts[i].digits = digits[i]
    for i, text in enumerate(literals):
        literal = text
        parts[i].literal = &literal[0] if len(text) else NULL
        parts[i].length = len(text)
    return parts


cdef inline uint8_t *_put(uint8_t *text, const Part *part) noexcept nogil:
    if part.length == 1:
        text[0] = part.literal[0]
    elif part.length:
        memcpy(text, part.literal, part.length)
    return text + part.length


cdef inline const uint8_t *_take(const uint8_t *text, const Part *part, uint8_t *bad) noexcept nogil:
    if part.length == 1:
        bad[0] |= text[0] ^ part.literal[0]
    elif part.length and memcmp(text, part.literal, part.length):
        bad[0] = 1
    return text + part.length


def format_rows(list parts, digits, list literals, Py_ssize_t n, bint binary=False):
    """The lines, as bytes: each part is an array of n rows of bytes, the least significant first.

    `literals` has one entry more than `parts`: what stands in front of each, and what ends the line.
    """
    cdef Py_ssize_t width = sum(digits) + sum(map(len, literals)), count = len(parts), row, k
    text = bytearray(n * width)
    if n == 0:
        return bytes(text)
    arrays = [np.require(rows, np.uint8, "CW") for rows in parts]
    cdef Part *part = _parts(arrays, digits, literals)
    cdef uint8_t[::1] out = text
    cdef uint8_t *p = &out[0]
    cdef const uint8_t *entry
    with nogil:
        for row in range(n):
            for k in range(count):
                p = _put(p, part + k)
                entry = part[k].data + row * part[k].octets
                p = _write_bits(p, entry, part[k].digits) if binary else _write(p, entry, part[k].digits)
            p = _put(p, part + count)
    free(part)
    return bytes(text)


def parse_rows(const uint8_t[::1] text, digits, octets, list literals, bint binary=False):
    """Arrays of n rows of so many bytes, one for each column; None where a digit or a literal is not as it should be."""
    cdef Py_ssize_t width = sum(digits) + sum(map(len, literals)), count = len(digits), row, k
    cdef Py_ssize_t n = text.shape[0] // width
    arrays = [np.zeros((n, size), np.uint8) for size in octets]
    if n == 0:
        return arrays
    cdef Part *part = _parts(arrays, digits, literals)
    cdef const uint8_t *p = &text[0]
    cdef uint8_t *entry
    cdef uint8_t bad = 0
    with nogil:
        for row in range(n):
            for k in range(count):
                p = _take(p, part + k, &bad)
                entry = part[k].data + row * part[k].octets
                p = _read_bits(p, entry, part[k].digits, &bad) if binary else _read(p, entry, part[k].digits, &bad)
            p = _take(p, part + count, &bad)
            if bad:
                break
    free(part)
    return None if bad else arrays


def join_words(list parts, widths, Py_ssize_t n):
    """One word a row, as an array of bytes: the first part's `widths[0]` bits the most significant."""
    cdef Py_ssize_t count = len(parts), octets = (sum(widths) + 7) // 8, row, k, left
    words = np.zeros((n, octets), np.uint8)
    if n == 0:
        return words
    arrays = [np.require(rows, np.uint8, "CW") for rows in parts]
    cdef Part *part = _parts(arrays, widths, [])
    cdef uint8_t[:, ::1] out = words
    cdef uint8_t *to
    cdef const uint8_t *entry
    cdef unsigned int held, fill
    with nogil:
        for row in range(n):
            to = &out[row, 0]
            held = 0
            fill = 0
            for k in range(count - 1, -1, -1):
                entry = part[k].data + row * part[k].octets
                left = part[k].digits
                while left > 0:
                    held |= <unsigned int>entry[0] << fill
                    fill += 8 if left > 8 else <unsigned int>left
                    left -= 8
                    entry += 1
                    if fill >= 8:
                        to[0] = <uint8_t>held
                        to += 1
                        held >>= 8
                        fill -= 8
            if fill:
                to[0] = <uint8_t>held
    free(part)
    return words


def split_words(words, widths, octets):
    """The parts that `join_words` joined: arrays of n rows of so many bytes."""
    cdef Py_ssize_t n = len(words), count = len(widths), row, k, left
    arrays = [np.zeros((n, size), np.uint8) for size in octets]
    if n == 0:
        return arrays
    cdef Part *part = _parts(arrays, widths, [])
    cdef const uint8_t[:, ::1] source = words
    cdef const uint8_t *take
    cdef uint8_t *entry
    cdef unsigned int held, fill, bits
    with nogil:
        for row in range(n):
            take = &source[row, 0]
            held = 0
            fill = 0
            for k in range(count - 1, -1, -1):
                entry = part[k].data + row * part[k].octets
                left = part[k].digits
                while left > 0:
                    bits = 8 if left > 8 else <unsigned int>left
                    if fill < bits:
                        held |= <unsigned int>take[0] << fill
                        take += 1
                        fill += 8
                    entry[0] = <uint8_t>(held & ((1u << bits) - 1))
                    entry += 1
                    held >>= bits
                    fill -= bits
                    left -= bits
    free(part)
    return arrays


cdef struct Field:
    int exponent_bits, fraction_bits, digits


cdef inline uint8_t *_write_float(uint8_t *text, uint64_t code, const Field *field) noexcept nogil:
    cdef uint64_t fraction = code & ((<uint64_t>1 << field.fraction_bits) - 1)
    cdef int all_ones = (1 << field.exponent_bits) - 1
    cdef int exponent = <int>(code >> field.fraction_bits) & all_ones, power, i, divisor
    if exponent == all_ones and fraction:
        text[0] = 81 if fraction >> (field.fraction_bits - 1) else 83  # Q, S
        return text + 1
    text[0] = 45 if code >> (field.exponent_bits + field.fraction_bits) & 1 else 43
    if exponent == all_ones:
        memcpy(text + 1, b"Inf", 3)
        return text + 4
    if not exponent and not fraction:
        memcpy(text + 1, b"Zero", 4)
        return text + 5
    text[1] = 49 if exponent else 48
    text[2] = 46
    text += 3
    for i in range(field.digits - 1, -1, -1):
        text[0] = PAIRS[2 * (fraction >> (4 * i) & 15) + 1]
        text += 1
    text[0] = 80  # P
    text += 1
    power = (exponent if exponent else 1) - (all_ones >> 1)
    if power < 0:
        text[0] = 45
        text += 1
        power = -power
    divisor = 1000 if power >= 1000 else 100 if power >= 100 else 10 if power >= 10 else 1
    while divisor:
        text[0] = <uint8_t>(48 + power // divisor)
        power = power % divisor
        divisor = divisor // 10
        text += 1
    return text


cdef inline const uint8_t *_read_float(
    const uint8_t *text, const uint8_t *end, uint64_t *code, const Field *field
) noexcept nogil:
    """What follows the number, or NULL if it is not written as by `_write_float`."""
    cdef uint64_t sign, fraction = 0, all_ones = (<uint64_t>1 << field.exponent_bits) - 1
    cdef int i, power = 0, least = 1 - <int>(all_ones >> 1), negative
    cdef uint8_t digit
    cdef const uint8_t *first
    if end - text < 1:
        return NULL
    if text[0] == 81:
        code[0] = all_ones << field.fraction_bits | <uint64_t>1 << (field.fraction_bits - 1)
        return text + 1
    if text[0] == 83:
        code[0] = all_ones << field.fraction_bits | 1
        return text + 1
    if end - text < 4 or (text[0] != 43 and text[0] != 45):
        return NULL
    sign = <uint64_t>(text[0] == 45) << (field.exponent_bits + field.fraction_bits)
    if memcmp(text + 1, b"Inf", 3) == 0:
        code[0] = sign | all_ones << field.fraction_bits
        return text + 4
    if end - text >= 5 and memcmp(text + 1, b"Zero", 4) == 0:
        code[0] = sign
        return text + 5
    if end - text < field.digits + 5 or text[1] >> 1 != 24 or text[2] != 46:
        return NULL
    for i in range(field.digits):
        digit = VALUES[text[3 + i]]
        if digit > 15:
            return NULL
        fraction = fraction << 4 | digit
    if fraction >> field.fraction_bits or text[3 + field.digits] != 80:
        return NULL
    first = text + 4 + field.digits
    negative = first[0] == 45
    first += negative
    i = 0
    while first + i < end and i < 5 and 48 <= first[i] <= 57:
        power = 10 * power + first[i] - 48
        i += 1
    if i == 0 or i == 5:
        return NULL
    if negative:
        power = -power
    if text[1] == 49:
        if power < least or power > <int>(all_ones >> 1):
            return NULL
        code[0] = sign | <uint64_t>(power + <int>(all_ones >> 1)) << field.fraction_bits | fraction
    else:
        if power != least or not fraction:
            return NULL
        code[0] = sign | fraction
    return first + i


cdef Field *_fields(fields) except NULL:
    cdef Field *out = <Field *>malloc(len(fields) * sizeof(Field))
    if out == NULL:
        raise MemoryError("no memory for the columns of a text")
    for i, (exponent_bits, fraction_bits) in enumerate(fields):
        out[i].exponent_bits = exponent_bits
        out[i].fraction_bits = fraction_bits
        out[i].digits = (fraction_bits + 3) // 4
    return out


def format_floats(list codes, fields, const uint8_t[::1] prefix, const uint8_t[::1] arrow, const uint8_t[::1] flags,
                  list ends, Py_ssize_t n):
    """Lines of IBM FPgen's syntax: prefix, numbers with a space between them and the arrow in front of the last, and
    the end of a line that the flags choose. `fields` has (exponent bits, fraction bits) of each number."""
    cdef Py_ssize_t count = len(codes), row, k
    cdef Py_ssize_t most = prefix.shape[0] + arrow.shape[0] + 28 * count + max(map(len, ends))
    text = bytearray(n * most)
    if n == 0:
        return b""
    cdef uint64_t[:, ::1] numbers = np.stack(codes)
    cdef Part *end = <Part *>malloc(len(ends) * sizeof(Part))
    if end == NULL:
        raise MemoryError("no memory for the ends of lines")
    cdef const uint8_t[::1] literal
    for k in range(len(ends)):
        literal = ends[k]
        end[k].literal = &literal[0]
        end[k].length = literal.shape[0]
    cdef Field *field
    try:
        field = _fields(fields)
    except MemoryError:
        free(end)
        raise
    cdef uint8_t[::1] out = text
    cdef uint8_t *start = &out[0]
    cdef uint8_t *p = start
    with nogil:
        for row in range(n):
            memcpy(p, &prefix[0], prefix.shape[0])
            p += prefix.shape[0]
            for k in range(count):
                if k == count - 1:
                    memcpy(p, &arrow[0], arrow.shape[0])
                    p += arrow.shape[0]
                elif k:
                    p[0] = 32
                    p += 1
                p = _write_float(p, numbers[k, row], field + k)
            p = _put(p, end + (flags[row] & 31))
    free(field)
    free(end)
    return bytes(memoryview(text)[: p - start])


def parse_floats(const uint8_t[::1] text, fields, const uint8_t[::1] prefix, const uint8_t[::1] arrow, bint after):
    """What `format_floats` wrote: an array of uint64 for each number and one of flags; None where a line differs.

    Underflow is v where tininess is judged `after` rounding and w elsewhere; u alone counts for both.
    """
    cdef Py_ssize_t count = len(fields), k, row = 0, size = text.shape[0]
    cdef Py_ssize_t n = bytes(text).count(b"\n")
    numbers = np.zeros((count, n), np.uint64)
    flags = np.zeros(n, np.uint8)
    if n == 0:
        return [*numbers, flags]
    cdef uint64_t[:, ::1] out = numbers
    cdef uint8_t[::1] raised = flags
    cdef Field *field = _fields(fields)
    cdef const uint8_t *p = &text[0]
    cdef const uint8_t *end = p + size
    cdef bint good = True
    cdef int seen
    with nogil:
        while good and row < n:
            if end - p <= prefix.shape[0] or memcmp(p, &prefix[0], prefix.shape[0]):
                good = False
                break
            p += prefix.shape[0]
            for k in range(count):
                if k == count - 1:
                    if end - p <= arrow.shape[0] or memcmp(p, &arrow[0], arrow.shape[0]):
                        good = False
                        break
                    p += arrow.shape[0]
                elif k:
                    if end - p < 1 or p[0] != 32:
                        good = False
                        break
                    p += 1
                p = _read_float(p, end, &out[k, row], field + k)
                if p == NULL:
                    good = False
                    break
            if not good:
                break
            seen = 0
            if p < end and p[0] == 32:
                p += 1
                while p < end and p[0] != 10:
                    if p[0] == 120:
                        seen |= 1
                    elif p[0] == 111:
                        seen |= 4
                    elif p[0] == 122:
                        seen |= 8
                    elif p[0] == 105:
                        seen |= 16
                    elif p[0] == 117:
                        seen |= 32
                    elif p[0] == 118:
                        seen |= 64
                    elif p[0] == 119:
                        seen |= 128
                    else:
                        seen = -1
                        break
                    p += 1
                if seen <= 0:
                    good = False
                    break
            if p >= end or p[0] != 10:
                good = False
                break
            p += 1
            if seen & 192:
                if seen & (64 if after else 128):
                    seen |= 2
            elif seen & 32:
                seen |= 2
            raised[row] = <uint8_t>(seen & 31)
            row += 1
        if p != end:
            good = False
    free(field)
    return [*numbers, flags] if good else None
