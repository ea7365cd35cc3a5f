# cython: freelist=8
"""Compiled tests of rules: the rest behind a host, and the first rules of many requests. See engine/batches/tested_rows.py."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_GET_LENGTH
from libc.string cimport memcmp

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    void* PyUnicode_DATA(object text)

cdef enum:
    NEEDS_TEST = 67108864  # as in index/rule_table.py, which imports this
    CANCELLED = 134217728


@cython.final
cdef class HostTail:
    """The test of a rule whose host is known to match: what must follow the host, and what is tested then."""

    cdef readonly str begin
    cdef readonly object then
    cdef bytes encoded

    def __init__(self, str begin not None, then):
        self.begin = begin
        self.then = then
        self.encoded = begin.encode("utf-8", "surrogatepass")  # not in ASCII: in no URL, as it is no ASCII in UTF-8 either

    cdef bint begins(self, const char* text, Py_ssize_t at, Py_ssize_t size) noexcept:
        """Returns whether a text of ASCII has it at a place."""
        cdef Py_ssize_t length = PyBytes_GET_SIZE(self.encoded)
        return 0 <= at <= size - length and memcmp(text + at, PyBytes_AS_STRING(self.encoded), length) == 0

    def __call__(self, request, str lowered not None, source):
        """Returns whether it holds for a request with this URL in lower case; any source."""
        url = request.url
        cdef str scheme = url.scheme, host = url.host
        if scheme is None or host is None:
            raise ValueError("no host")
        cdef Py_ssize_t at = PyUnicode_GET_LENGTH(scheme) + 3 + PyUnicode_GET_LENGTH(host)
        if PyUnicode_IS_ASCII(lowered):
            if not self.begins(<const char*>PyUnicode_DATA(lowered), at, PyUnicode_GET_LENGTH(lowered)):
                return False
        elif not lowered.startswith(self.begin, at):
            return False
        return self.then is None or self.then(lowered, at)


cdef class Rows:
    """Requests whose rules are looked for, as `TestedRows`."""

    cdef bytes text
    cdef list begins, ends, heads, members, requests, hits, sources
    cdef object whole

    cdef Py_ssize_t place(self, list numbers, Py_ssize_t row) except -1:
        cdef Py_ssize_t found = numbers[row]
        if not 0 <= found <= PyBytes_GET_SIZE(self.text):
            raise IndexError("a place outside of the text")
        return found

    cdef bint holds(self, object test, Py_ssize_t row) except -1:
        """Returns whether the test of a rule holds, in Python."""
        cdef str low = self.text[self.place(self.begins, row) : self.place(self.ends, row)].decode("latin-1")
        source = self.sources[self.members[row]]
        request = self.requests[row]
        if request is not None:
            try:
                return test(request, low, source)
            except AttributeError:  # a rule that needs all of the URL
                pass
        request = self.requests[row] = self.whole(row)
        return test(request, low, source)

    cdef bint tested(self, object test, Py_ssize_t row) except -1:
        """Returns whether the test of a rule holds."""
        cdef HostTail tail
        cdef Py_ssize_t begin, end, head
        if type(test) is not HostTail:
            return self.holds(test, row)
        tail = <HostTail>test
        begin, end = self.place(self.begins, row), self.place(self.ends, row)
        head = self.heads[self.members[row]]
        if end < begin or head < 0 or not tail.begins(PyBytes_AS_STRING(self.text) + begin, head, end - begin):
            return False
        return tail.then is None or self.holds(test, row)


def first_of_each(rows, list between not None, literals, tests, Py_ssize_t at):
    """Returns the number of the first rule of each request, -1 without one: see tested_rows.first_of_each."""
    cdef Rows own = Rows()
    own.text, own.begins, own.ends, own.heads = rows.text, rows.begins, rows.ends, rows.heads
    own.members, own.requests, own.hits, own.sources = rows.members, rows.requests, rows.hits, rows.sources
    own.whole = rows.whole
    if own.text is None or None in (own.begins, own.ends, own.heads, own.members, own.requests, own.hits, own.sources):
        raise ValueError("rows are missing")
    cdef Py_ssize_t row, count = len(own.members)
    cdef list found = [-1] * count, bits = [], certain = [], scans = [], near = []
    for each in between:
        bits.append(each.bits)
        certain.append(each.certain)
        scans.append(each.scans)
        near.append(each.tests)
    cdef Py_ssize_t member
    for row in range(count):
        member = own.members[row]
        rule = first_near(own, <tuple?>near[member], row)
        if rule is None:
            if not scans[member]:
                rule = certain[member]
            elif own.hits[row]:
                rule = first_hit(own, own.hits[row], bits[member], literals, tests, at, row)
        if rule is not None:
            found[row] = rule
    return found


cdef object first_near(Rows rows, tuple tests, Py_ssize_t row):
    """Returns the first rule whose test holds, `None` without one."""
    for pair in tests:
        rule, test = <tuple?>pair
        if rows.tested(test, row):
            return rule
    return None


cdef object first_hit(Rows rows, hits, unsigned long bits, literals, tests, Py_ssize_t at, Py_ssize_t row):
    """Returns the first rule that matches among those of hits of literals, `None` without one."""
    cdef unsigned long mask
    for hit in hits:
        for pair in literals[hit[at]]:
            number, rule = <tuple?>pair
            mask = number
            if mask & bits and (mask < NEEDS_TEST or (mask < CANCELLED and rows.tested(tests[rule], row))):
                return rule
    return None
