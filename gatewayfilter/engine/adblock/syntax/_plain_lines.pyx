"""Compiled twin of `find_plain_host` in parser.py, one pass over a line. Memory is read by `at` alone, which checks each index."""

from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_GET_LENGTH, PyUnicode_Substring

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)

cdef enum:
    LONGEST_LINE = 65536
    LONGEST_NAME = 253
    LONGEST_LABEL = 63
    LONGEST_SUFFIX = 21
    LETTER = 1
    DIGIT = 2
    UNDERSCORE = 4
    HYPHEN = 8
    DOT = 46

cdef unsigned char[256] KINDS


cdef void set_up():
    cdef int code
    for code in range(256):
        KINDS[code] = 0
    for code in b"abcdefghijklmnopqrstuvwxyz":
        KINDS[code] = LETTER
    for code in b"0123456789":
        KINDS[code] = DIGIT
    KINDS[95] = UNDERSCORE
    KINDS[45] = HYPHEN


set_up()


cdef inline unsigned char at(const unsigned char* text, Py_ssize_t size, Py_ssize_t index) noexcept nogil:
    """The character at an index, 0 outside."""
    return text[index] if 0 <= index < size else 0


cdef Py_ssize_t rule_end(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Returns where the host ends behind `||`, -1 where it is none of two or more labels."""
    cdef Py_ssize_t index = 2
    cdef int labels = 0
    cdef unsigned char kind, last
    while True:
        if not KINDS[at(text, size, index)] & (LETTER | DIGIT):
            return -1
        last = 0
        while True:
            kind = KINDS[at(text, size, index)]
            if not kind:
                break
            last = kind
            index += 1
        if not last & (LETTER | DIGIT):
            return -1
        labels += 1
        if at(text, size, index) != DOT:
            return index if labels > 1 else -1
        index += 1


cdef Py_ssize_t hosts_end(const unsigned char* text, Py_ssize_t size, Py_ssize_t begin) noexcept nogil:
    """Returns where the only name of a hosts line ends, -1 where it may not be canonical."""
    cdef Py_ssize_t index = begin, label
    cdef unsigned char kind, last, kinds
    while True:
        label = index
        if not KINDS[at(text, size, index)] & (LETTER | DIGIT | UNDERSCORE):
            return -1
        if at(text, size, index) == 120 and at(text, size, index + 1) == 110 and at(text, size, index + 2) == 45:
            if at(text, size, index + 3) == 45:  # xn--
                return -1
        last = kinds = 0
        while True:
            kind = KINDS[at(text, size, index)]
            if not kind:
                break
            last = kind
            kinds |= kind
            index += 1
        if not last & (LETTER | DIGIT | UNDERSCORE) or index - label > LONGEST_LABEL:
            return -1
        if at(text, size, index) != DOT:
            return index if label > begin and kinds == LETTER and index - label <= LONGEST_SUFFIX else -1
        index += 1


cdef bint ends_at(const unsigned char* text, Py_ssize_t size, Py_ssize_t index) noexcept nogil:
    """Returns whether only a line end follows."""
    if at(text, size, index) == 13:
        index += 1
    if at(text, size, index) == 10:
        index += 1
    return index == size


def plain_host(str line not None):
    """Returns what `find_plain_host` does."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(line), begin, end
    if not PyUnicode_IS_ASCII(line) or size > LONGEST_LINE:
        return ""
    cdef const unsigned char* text = <const unsigned char*>PyUnicode_1BYTE_DATA(line)
    cdef unsigned char first = at(text, size, 0)
    if first == 124:  # |
        if at(text, size, 1) != 124:
            return ""
        end = rule_end(text, size)
        if end < 0 or at(text, size, end) != 94 or not ends_at(text, size, end + 1):  # ^
            return ""
        return PyUnicode_Substring(line, 2, end)
    if (first != 48 and first != 49) or size >= LONGEST_NAME:
        return ""
    if line.startswith("0.0.0.0 "):
        begin = 8
    elif line.startswith("127.0.0.1 "):
        begin = 10
    else:
        return ""
    end = hosts_end(text, size, begin)
    if end < 0 or not ends_at(text, size, end):
        return ""
    host = PyUnicode_Substring(line, begin, end)
    return "" if host == "localhost.localdomain" else host
