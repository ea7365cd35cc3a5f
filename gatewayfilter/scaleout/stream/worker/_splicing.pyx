"""Compiled twin of splicing._splice and splicing._pack: one copy of each message."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memchr, memcpy

cdef enum:
    DIGITS = 16

cdef const char* HEX = b"0123456789abcdef"
cdef char[512] PAIRS  # the digits of each byte


cdef void set_up():
    cdef int code
    for code in range(256):
        PAIRS[2 * code], PAIRS[2 * code + 1] = HEX[code >> 4], HEX[code & 15]


set_up()


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


def keys(list prefixes not None, list offsets not None):
    """Returns keys of one length, one behind the other: see splicing.keys."""
    cdef Py_ssize_t count = len(prefixes), size, row
    cdef bytes prefix, made
    cdef unsigned long long offset
    cdef char* out
    cdef int at
    if len(offsets) != count:
        raise ValueError("rows differ")
    size = len(prefixes[0]) if count else 0
    made = PyBytes_FromStringAndSize(NULL, count * (size + DIGITS))
    out = PyBytes_AS_STRING(made)
    for row in range(count):
        prefix, offset = prefixes[row], offsets[row]
        if prefix is None or PyBytes_GET_SIZE(prefix) != size:
            raise ValueError("prefixes differ in length")
        memcpy(out, PyBytes_AS_STRING(prefix), size)
        out += size
        for at in range(DIGITS // 2):
            memcpy(out + 2 * at, &PAIRS[2 * (offset >> (DIGITS * 4 - 8 - 8 * at) & 255)], 2)
        out += DIGITS
    return made


def splice(values, list braces not None, fragments, prefixes, list offsets not None):
    """Returns letters of messages with fragments in place of their last brace: see splicing.splice."""
    return [
        {"key": key_of(prefix, offset), "value": joined(value, brace, fragment)}
        for value, brace, fragment, prefix, offset in zip(values, braces, fragments, prefixes, offsets, strict=True)
    ]


cdef void copy_line(char* out, const char* text, Py_ssize_t size) noexcept:
    """Copies JSON; line ends, which are blanks there, become spaces."""
    cdef char* found
    cdef char end
    memcpy(out, text, size)
    for end in b"\n\r":
        found = <char*>memchr(out, end, size)
        while found != NULL:
            found[0] = c" "
            found = <char*>memchr(found, end, size - (found - out))


def pack(
    list values not None,
    list braces not None,
    list fragments not None,
    list prefixes not None,
    list offsets not None,
    Py_ssize_t most,
    Py_ssize_t most_bytes,
):
    """Returns letters of several messages each, with fragments in place of their last braces, as lines: see splicing.pack."""
    cdef Py_ssize_t count = len(values), first = 0, end, at, size, more, brace
    cdef bytes value, fragment, made
    cdef char* out
    cdef list letters = []
    if len(braces) != count or len(fragments) != count or len(prefixes) != count or len(offsets) != count:
        raise ValueError("rows differ")
    while first < count:
        end, size = first, 0
        while end < count and end - first < max(most, 1):
            value, fragment, brace = values[end], fragments[end], braces[end]
            if value is None or fragment is None or not 0 <= brace <= PyBytes_GET_SIZE(value):
                raise ValueError("no place in a message")
            more = brace + PyBytes_GET_SIZE(fragment) + (end > first)
            if end > first and size + more > most_bytes:
                break
            size += more
            end += 1
        made = PyBytes_FromStringAndSize(NULL, size)
        out = PyBytes_AS_STRING(made)
        for at in range(first, end):
            value, fragment, brace = values[at], fragments[at], braces[at]
            if at > first:
                out[0] = c"\n"
                out += 1
            copy_line(out, PyBytes_AS_STRING(value), brace)
            out += brace
            memcpy(out, PyBytes_AS_STRING(fragment), PyBytes_GET_SIZE(fragment))
            out += PyBytes_GET_SIZE(fragment)
        letters.append({"key": key_of(prefixes[first], offsets[first]), "value": made})
        first = end
    return letters
