"""Compiled twins of text_model.plain_distinct_terms and plain_sums: terms found a character at a time and told apart by hash tables.

Terms come in the order of their windows, not sorted: whoever adds up whole numbers of them gets the same sums.
"""

from libc.stdint cimport int8_t, int64_t, uint8_t, uint32_t

import numpy as np

cdef extern from "Python.h":
    bint Py_UNICODE_ISALNUM(Py_UCS4 character)


cdef enum:
    PAIR = 0x9E3779B1
    FINISH = 0x85EBCA6B
    TRIPLE = 77
    POLYNOMIAL = 0xEDB88320  # of CRC-32, reflected

cdef uint32_t[256] CRC


cdef void fill_crc() noexcept:
    cdef uint32_t byte, value
    cdef int bit
    for byte in range(256):
        value = byte
        for bit in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
        CRC[byte] = value


fill_crc()


cdef inline uint32_t crc_byte(uint32_t crc, uint32_t byte) noexcept nogil:
    return CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)


cdef inline uint32_t crc_character(Py_UCS4 character) noexcept nogil:
    """Returns the CRC-32 of a character in UTF-8."""
    cdef uint32_t crc = 0xFFFFFFFFu, code = <uint32_t>character
    if code < 0x80:
        crc = crc_byte(crc, code)
    elif code < 0x800:
        crc = crc_byte(crc_byte(crc, 0xC0 | code >> 6), 0x80 | code & 0x3F)
    elif code < 0x10000:
        crc = crc_byte(crc_byte(crc_byte(crc, 0xE0 | code >> 12), 0x80 | code >> 6 & 0x3F), 0x80 | code & 0x3F)
    else:
        crc = crc_byte(crc_byte(crc, 0xF0 | code >> 18), 0x80 | code >> 12 & 0x3F)
        crc = crc_byte(crc_byte(crc, 0x80 | code >> 6 & 0x3F), 0x80 | code & 0x3F)
    return crc ^ 0xFFFFFFFFu


cdef inline bint is_letter(Py_UCS4 character) noexcept nogil:
    return c'a' <= character <= c'z' or character == c"'"


cdef inline bint is_digit(Py_UCS4 character) noexcept nogil:
    return c'0' <= character <= c'9'


cdef Py_ssize_t read_codes(str text, uint32_t[::1] codes):
    """Writes the CRC-32 of each word of a text; returns how many there are."""
    cdef Py_ssize_t at = 0, length = len(text), count = 0
    cdef Py_UCS4 character
    cdef uint32_t crc
    while at < length:
        character = text[at]
        if is_letter(character) or is_digit(character):
            crc = 0xFFFFFFFFu
            if is_digit(character):
                while at < length and is_digit(text[at]):
                    crc = crc_byte(crc, <uint32_t>text[at])
                    at += 1
            else:
                while at < length and is_letter(text[at]):
                    crc = crc_byte(crc, <uint32_t>text[at])
                    at += 1
            codes[count] = crc ^ 0xFFFFFFFFu
            count += 1
            continue
        if Py_UNICODE_ISALNUM(character):
            codes[count] = crc_character(character)
            count += 1
        at += 1
    return count


cdef inline bint is_new(uint32_t[::1] table, uint32_t mask, uint32_t key):
    """Puts a key other than 0 into a table with room; returns whether it was not there."""
    cdef uint32_t slot = (key * FINISH >> 7) & mask
    while table[slot]:
        if table[slot] == key:
            return False
        slot = (slot + 1) & mask
    table[slot] = key
    return True


def distinct_terms(str text, Py_ssize_t window, int bits):
    """Returns the terms of a squashed text, each once a window.

    Args:
        text: of which each character may be a word.
        window: words of a window.
        bits: of a place, at most 20.

    Returns:
        words: how many the text has.
        count: of windows.
        windows, places: int64[k] each.
        is_first: bool[k], whether the place is in no earlier row.
    """
    if window < 1 or not 1 <= bits <= 20:
        raise ValueError("no such windows or places")
    cdef uint32_t[::1] codes = np.empty(len(text), np.uint32)
    cdef Py_ssize_t words = read_codes(text, codes), index, found = 0, count = words // window, rest = words % window
    if 2 * rest > window or (2 * rest == window and count & 1):  # as Python rounds
        count += 1
    count = max(count, 1)
    if count > 4000:  # a window shares a key of 32 bits with a place
        raise ValueError("too many windows")
    cdef Py_ssize_t size = 16
    while size < 6 * words:
        size *= 2
    all_windows, all_places, firsts = np.empty(3 * words, np.int64), np.empty(3 * words, np.int64), np.empty(3 * words, np.bool_)
    cdef int64_t[::1] windows = all_windows, places = all_places
    cdef unsigned char[::1] is_first = firsts.view(np.uint8)
    cdef uint32_t[::1] by_window = np.zeros(size, np.uint32), by_place = np.zeros(size, np.uint32)
    cdef uint32_t mask = <uint32_t>(size - 1), place, mixed, at
    cdef uint32_t[3] terms
    cdef int kind, kinds
    for index in range(words):
        at = <uint32_t>(index * count // words)
        kinds = <int>min(3, words - index)
        terms[0] = codes[index]
        if kinds > 1:
            terms[1] = codes[index] * <uint32_t>PAIR ^ codes[index + 1]
        if kinds > 2:
            terms[2] = terms[1] * <uint32_t>PAIR + codes[index + 2] + <uint32_t>TRIPLE
        for kind in range(kinds):
            mixed = terms[kind] * <uint32_t>FINISH
            place = (mixed ^ (mixed >> 15)) * <uint32_t>PAIR >> (32 - bits)
            if is_new(by_window, mask, (at << 20 | place) + 1):
                windows[found], places[found] = at, place
                is_first[found] = is_new(by_place, mask, place + 1)
                found += 1
    return words, count, all_windows[:found], all_places[:found], firsts[:found]


def sums(
    const int64_t[::1] windows, const int64_t[::1] places, const uint8_t[::1] is_first, Py_ssize_t count,
    const uint8_t[::1] rarity, const int8_t[:, ::1] weights, Py_ssize_t row
):
    """Adds up rarity and weights of terms.

    Args:
        windows, places, is_first: of the terms, as `distinct_terms` gives them.
        count: of windows.
        rarity: by place.
        weights: by row and place.
        row: of the weights, beside the first.

    Returns:
        float64[3, count + 1]: squares of the rarities, weights of the first row and of the other, of each window and of all
        terms together, each place once.
    """
    if places.shape[0] != windows.shape[0] or is_first.shape[0] != windows.shape[0] or count < 1:
        raise ValueError("the terms are damaged")
    if not 0 <= row < weights.shape[0] or rarity.shape[0] != weights.shape[1]:
        raise ValueError("no such weights")
    found = np.zeros((3, count + 1), np.int64)
    cdef int64_t[:, ::1] added = found
    cdef Py_ssize_t index, window, place
    cdef int64_t square, common, own
    for index in range(windows.shape[0]):
        window, place = windows[index], places[index]
        if not 0 <= window < count or not 0 <= place < rarity.shape[0]:
            raise ValueError("the terms are damaged")
        square, common, own = <int64_t>rarity[place] * rarity[place], weights[0, place], weights[row, place]
        added[0, window] += square
        added[1, window] += common
        added[2, window] += own
        if is_first[index]:
            added[0, count] += square
            added[1, count] += common
            added[2, count] += own
    return found.astype(np.float64)
