"""Compiled twin of splicing._splice: one pass over the bytes of each message, and one copy."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memchr, memcmp, memcpy

cdef enum:
    QUOTE = 34
    BACKSLASH = 92


cdef bint has_name(const char* at, Py_ssize_t left) noexcept nogil:
    """Returns whether the text behind a quote is the name of a verdict's field, with a quote behind it."""
    if left < 5:
        return False
    if at[0] == b"a":
        return left >= 7 and memcmp(at, b"action\"", 7) == 0
    if at[0] == b"r":
        return (
            (left >= 7 and memcmp(at, b"reason\"", 7) == 0)
            or memcmp(at, b"rule\"", 5) == 0
            or (left >= 14 and memcmp(at, b"rules_version\"", 14) == 0)
        )
    if at[0] == b"s":
        return left >= 12 and memcmp(at, b"source_list\"", 12) == 0
    if at[0] == b"c":
        return left >= 9 and memcmp(at, b"category\"", 9) == 0
    if at[0] == b"e":
        return left >= 6 and memcmp(at, b"error\"", 6) == 0
    return False


cdef bint mentions(const char* text, Py_ssize_t size) noexcept nogil:
    """Returns whether a message has a name of a verdict's field, an escape by number, or a byte order mark."""
    cdef const char* end = text + size
    cdef const char* at = text
    while at < end:
        at = <const char*>memchr(at, QUOTE, end - at)
        if at == NULL:
            break
        at += 1
        if has_name(at, end - at):
            return True
    at = text
    while at < end:
        at = <const char*>memchr(at, BACKSLASH, end - at)
        if at == NULL:
            break
        at += 1
        if at < end and at[0] == b"u":
            return True
    at = text
    while at < end:
        at = <const char*>memchr(at, 0xEF, end - at)
        if at == NULL:
            break
        if end - at >= 3 and memcmp(at, b"\xef\xbb\xbf", 3) == 0:
            return True
        at += 1
    return False


cdef inline bint is_blank(char code) noexcept nogil:
    return code == 32 or 9 <= code <= 13


def splice(values, list rows not None, list numbers not None, list fragments not None):
    """Returns messages with fragments in place of their last brace; `None` where that cannot be done: see splicing.splice."""
    cdef bytes value, fragment, made
    cdef Py_ssize_t size, more
    cdef char* out
    for value in values:
        if value is None or mentions(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value)):
            return None
    found = []
    for row in rows:
        value, fragment = values[row], fragments[numbers[row]]
        if value is None or fragment is None:
            return None
        size, more = PyBytes_GET_SIZE(value), PyBytes_GET_SIZE(fragment)
        while size and is_blank(PyBytes_AS_STRING(value)[size - 1]):
            size -= 1
        if size:
            size -= 1
        made = PyBytes_FromStringAndSize(NULL, size + more)
        out = PyBytes_AS_STRING(made)
        memcpy(out, PyBytes_AS_STRING(value), size)
        memcpy(out + size, PyBytes_AS_STRING(fragment), more)
        found.append(made)
    return found
