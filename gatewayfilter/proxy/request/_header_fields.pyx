"""Compiled twins of the loops over header fields: of header_fields.py, and of the reading of lines in http1_heads.py.

Memory is read by `at` and `find` alone, which compare every index with the end.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

cdef extern from "string.h":
    const void* memchr(const void* text, int code, size_t size) nogil

cdef enum:
    LF = 10
    CR = 13
    COLON = 58
    LONGEST_NAME = 64
    LONGEST_REPEATED = 256
    MOST_NAMES = 512

cdef dict NAMES = {}
"""Names as they are asked for, in lower case: constants of the code, nearly always."""


cdef inline unsigned char at(const unsigned char* text, Py_ssize_t size, Py_ssize_t index) noexcept nogil:
    """The byte at an index, 0 outside."""
    return text[index] if 0 <= index < size else 0


cdef inline Py_ssize_t find(const unsigned char* text, Py_ssize_t size, Py_ssize_t begin, unsigned char code) noexcept nogil:
    """Returns where a byte comes from `begin` on, `size` where it does not."""
    cdef const unsigned char* found
    if not 0 <= begin < size:
        return size
    found = <const unsigned char*>memchr(text + begin, code, <size_t>(size - begin))
    return size if found == NULL else found - text


cdef inline bint is_blank(unsigned char code) noexcept nogil:
    """Tells whether `bytes.strip` removes it."""
    return code == 32 or 9 <= code <= 13


cdef inline unsigned char lower(unsigned char code) noexcept nogil:
    return code + 32 if 65 <= code <= 90 else code


cdef inline bytes as_bytes(object text):
    """Returns what it is given, if that has memory to be read."""
    if not isinstance(text, bytes):
        raise TypeError("a header field is of bytes")
    return <bytes>text


cdef bint is_same(bytes name, bytes wanted):
    """Tells whether a name is the wanted one, which is in lower case."""
    cdef const unsigned char* one = <const unsigned char*>PyBytes_AS_STRING(name)
    cdef const unsigned char* other = <const unsigned char*>PyBytes_AS_STRING(wanted)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(name), index
    if size != PyBytes_GET_SIZE(wanted):
        return False
    for index in range(size):
        if lower(at(one, size, index)) != at(other, size, index):
            return False
    return True


cdef bytes in_lower_case(object name):
    cdef object found = NAMES.get(name)
    if found is None:
        found = (name.encode("utf-8", "surrogateescape") if isinstance(name, str) else bytes(name)).lower()
        if len(NAMES) >= MOST_NAMES:
            NAMES.clear()
        NAMES[name] = found
    return found


def values_of(fields, name):
    """Returns the values of the fields with a name."""
    cdef bytes wanted = in_lower_case(name)
    cdef list found = []
    for key, value in fields:
        if is_same(as_bytes(key), wanted):
            found.append(as_bytes(value).decode("utf-8", "surrogateescape"))
    return found


def value_of(fields, name, default):
    """Returns the values of the fields with a name, joined, or the default."""
    cdef list found = values_of(fields, name)
    if not found:
        return default
    return found[0] if len(found) == 1 else ", ".join(found)


def has_name(fields, name):
    """Returns whether there is a field with a name."""
    cdef bytes wanted = in_lower_case(name)
    for key, _ in fields:
        if is_same(as_bytes(key), wanted):
            return True
    return False


def holds_breaks(fields):
    """Returns whether a value has a CR, LF or NUL in it."""
    cdef const unsigned char* text
    cdef Py_ssize_t size
    cdef bytes checked
    for _, value in fields:
        checked = as_bytes(value)
        text = <const unsigned char*>PyBytes_AS_STRING(checked)
        size = PyBytes_GET_SIZE(checked)
        if find(text, size, 0, CR) < size or find(text, size, 0, LF) < size or find(text, size, 0, 0) < size:
            return True
    return False


def read_roles(fields, dict roles not None, role_of):
    """Returns the fields with a role, each Host, and whether the others may come from any browser.

    Args:
        fields: of a request.
        roles: by names as they are usually spelt.
        role_of: returns that of any other name: its lower-case form, `b""` where any browser may send it, `b"?"` for others.
    """
    cdef dict headers = {}
    cdef list hosts = []
    cdef bint common = True
    cdef bytes role
    cdef str text
    for name, value in fields:
        found = roles.get(name)
        role = as_bytes(role_of(name) if found is None else found)
        if PyBytes_GET_SIZE(role) == 0:
            continue
        if role == b"?":
            common = False
            continue
        text = as_bytes(value).decode("latin-1")
        if role not in headers:
            headers[role] = text
        elif role == b"connection":
            headers[role] = f"{headers[role]}, {text}"
        if role == b"host":
            hosts.append(text)
    return headers, hosts, common


def read_lines(
    bytes head not None, Py_ssize_t begin, Py_ssize_t end, dict repeated not None, Py_ssize_t most, kind_of, repeating, unbound
):
    """Reads header fields, each behind a CRLF.

    Args:
        head: has them.
        begin, end: from the first CRLF to behind the last line.
        repeated: lines that were read before, at most `most` of them.
        kind_of: what a name is: `None` for none, `b""` for a plain one, its lower-case form where it matters.
        repeating: names whose lines are kept.
        unbound: schemes of a login that holds for its request alone.
    """
    cdef const unsigned char* text = <const unsigned char*>PyBytes_AS_STRING(head)
    cdef Py_ssize_t size = min(end, PyBytes_GET_SIZE(head)), place = begin, start, stop, colon, first, last
    cdef list fields = []
    cdef dict framing = {}
    cdef bytes line, name, value
    cdef object known, kind
    if begin < 0:
        return None
    while place < size:
        if at(text, size, place) != CR or at(text, size, place + 1) != LF:
            return None
        start = place + 2
        stop = find(text, size, start, LF)
        if stop < size:
            stop -= 1
            if stop < start or at(text, size, stop) != CR:
                return None
        place = stop
        line = head[start:stop]
        known = repeated.get(line)
        if known is not None:
            fields.append(known)
            continue
        colon = find(text, stop, start, COLON)
        if colon >= stop or colon - start > LONGEST_NAME:
            return None
        name = head[start:colon]
        kind = kind_of(name)
        if kind is None:
            return None
        first, last = colon + 1, stop
        while first < last and is_blank(at(text, size, first)):
            first += 1
        while last > first and is_blank(at(text, size, last - 1)):
            last -= 1
        value = head[first:last]
        known = (name, value)
        fields.append(known)
        if kind:
            if kind == b"authorization":
                if value.partition(b" ")[0].lower() not in unbound:
                    return None
                continue
            if kind in framing:
                return None
            framing[kind] = value
        elif stop - start <= LONGEST_REPEATED and name.lower() in repeating:
            if len(repeated) >= most:
                repeated.clear()
            repeated[line] = known
    value = framing.pop(b"connection", b"keep-alive")
    return (tuple(fields), framing) if is_same(value, b"keep-alive") else None
