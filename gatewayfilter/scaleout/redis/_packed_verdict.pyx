"""Compiled twin of packed_verdict.unpack: one pass over the bytes, values without their constructors."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memchr, memcpy

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t items)
    int PyObject_GenericSetAttr(object of, object name, object value) except -1

cdef enum:
    HEAD = 36
    NUMBER = 8
    PLACE = 4


cdef unsigned long long bits_at(const unsigned char* at, int size) noexcept:
    cdef unsigned long long bits = 0
    cdef int place
    for place in range(size):
        bits |= <unsigned long long>at[place] << (8 * place)
    return bits


cdef double number_at(const unsigned char* at) noexcept:
    cdef unsigned long long bits = bits_at(at, NUMBER)
    cdef double number
    memcpy(&number, &bits, NUMBER)
    return number


cdef object made(type kind, tuple names, tuple row):
    cdef object value = PyType_GenericAlloc(<PyTypeObject*>kind, 0)
    cdef Py_ssize_t index
    for index in range(len(names)):
        PyObject_GenericSetAttr(value, names[index], row[index])
    return value


cdef list texts_of(const char* text, Py_ssize_t size):
    """Returns the texts between NULs."""
    cdef list texts = []
    cdef const char* end
    while True:
        end = <const char*>memchr(text, 0, size)
        if end == NULL:
            texts.append(PyUnicode_DecodeUTF8(text, size, NULL))
            return texts
        texts.append(PyUnicode_DecodeUTF8(text, end - text, NULL))
        size -= end - text + 1
        text = end + 1


def unpack(bytes value not None, Py_ssize_t start, int fixed, type evidence_kind not None, tuple evidence_row not None):
    """Returns what stands in the columns of a packed verdict; see packed_verdict._columns."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(value), at, scores, hits, index
    cdef const unsigned char* data = <const unsigned char*>PyBytes_AS_STRING(value)
    if start < 0 or size - start < HEAD:
        raise ValueError("a packed verdict ends in its head")
    if len(evidence_row) != 5:
        raise ValueError("evidence has five attributes")
    data += start
    size -= start
    scores, hits = data[0], <Py_ssize_t>bits_at(data + 1, 2)
    cdef Py_ssize_t digest = data[3]
    at = HEAD + digest
    cdef Py_ssize_t text_at = at + NUMBER * (scores + hits) + PLACE * hits
    if text_at > size:
        raise ValueError("a packed verdict ends in its numbers")
    cdef list texts = texts_of(<const char*>data + text_at, size - text_at)
    if len(texts) != fixed + scores + 3 * hits:
        raise ValueError("another number of texts")
    cdef dict by_category = {}
    for index in range(scores):
        by_category[texts[fixed + index]] = number_at(data + at + NUMBER * index)
    cdef const unsigned char* weights = data + at + NUMBER * scores
    cdef const unsigned char* places = weights + NUMBER * hits
    cdef list evidence = []
    cdef Py_ssize_t words_at = fixed + scores
    for index in range(hits):
        row = (
            texts[words_at + index],
            texts[words_at + hits + index],
            number_at(weights + NUMBER * index),
            texts[words_at + 2 * hits + index],
            <int><unsigned int>bits_at(places + PLACE * index, PLACE),
        )
        evidence.append(made(evidence_kind, evidence_row, row))
    return (
        number_at(data + 4),
        number_at(data + 12),
        number_at(data + 20),
        number_at(data + 28),
        value[start + HEAD : start + at],
        texts[:fixed],
        by_category,
        tuple(evidence),
    )
