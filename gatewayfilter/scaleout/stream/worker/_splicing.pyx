"""Compiled twin of splicing._splice: one copy of each message."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy

cdef enum:
    DIGITS = 16

cdef const char* HEX = b"0123456789abcdef"


cdef bytes joined(bytes value, Py_ssize_t brace, bytes fragment):
    """Returns the first bytes of a message with a fragment behind."""
    if value is None or fragment is None or not 0 <= brace <= PyBytes_GET_SIZE(value):
        raise ValueError("no place in a message")
    cdef Py_ssize_t more = PyBytes_GET_SIZE(fragment)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, brace + more)
    memcpy(PyBytes_AS_STRING(made), PyBytes_AS_STRING(value), brace)
    memcpy(PyBytes_AS_STRING(made) + brace, PyBytes_AS_STRING(fragment), more)
    return made


cdef bytes key_of(bytes prefix, unsigned long long offset):
    if prefix is None:
        raise ValueError("no prefix")
    cdef Py_ssize_t size = PyBytes_GET_SIZE(prefix)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, size + DIGITS)
    cdef char* out = PyBytes_AS_STRING(made)
    cdef int at
    memcpy(out, PyBytes_AS_STRING(prefix), size)
    for at in range(DIGITS):
        out[size + at] = HEX[offset >> (4 * (DIGITS - 1 - at)) & 15]
    return made


def splice(values, list braces not None, fragments, prefixes, list offsets not None):
    """Returns letters of messages with fragments in place of their last brace: see splicing.splice."""
    return [
        {"key": key_of(prefix, offset), "value": joined(value, brace, fragment)}
        for value, brace, fragment, prefix, offset in zip(values, braces, fragments, prefixes, offsets, strict=True)
    ]
