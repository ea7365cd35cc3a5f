"""Compiled twin of the inner parts of urls.py: URLs that are canonical as they are written, and the names that cover a host.

Memory is read by `at` alone, which compares every index with the end. What is rare is left to the Python of the twin.
"""

from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_GET_LENGTH, PyUnicode_Substring

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    object PyType_GenericAlloc(type kind, Py_ssize_t items)

cdef enum:
    IN_PATH = 1
    IN_QUERY = 2
    IN_HOST = 4
    DIGIT = 8
    LONGEST_URL = 65536
    LONGEST_HOST = 253
    HYPHEN = 45
    ZERO = 48
    DOT = 46
    SLASH = 47
    QUESTION_MARK = 63
    HASH = 35
    COLON = 58
    LONGEST_SCHEME = 8
    IS_WILDCARD = 2
    IS_EXCEPTION = 4

cdef unsigned char[256] KINDS


cdef void set_up():
    cdef int code
    for code in range(256):
        KINDS[code] = 0
    for code in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!$%&()*+,./:;=@~_|[]-":
        KINDS[code] |= IN_PATH | IN_QUERY
    KINDS[39] |= IN_PATH  # an apostrophe
    KINDS[QUESTION_MARK] |= IN_QUERY
    for code in b"abcdefghijklmnopqrstuvwxyz0123456789_-":
        KINDS[code] |= IN_HOST
    for code in b"0123456789":
        KINDS[code] |= DIGIT


set_up()


cdef inline unsigned char at(const unsigned char* text, Py_ssize_t size, Py_ssize_t index) noexcept nogil:
    """The character at an index, 0 outside."""
    return text[index] if 0 <= index < size else 0


cdef Py_ssize_t host_end(const unsigned char* text, Py_ssize_t size, Py_ssize_t begin) noexcept nogil:
    """Returns where the host ends, -1 where it may not be canonical: an empty label, one of IDNA, a number for a last one."""
    cdef Py_ssize_t index = begin, label = begin
    cdef unsigned char code
    while True:
        code = at(text, size, index)
        if KINDS[code] & IN_HOST:
            if code == HYPHEN and index == label + 3 and at(text, size, label) == 120 and at(text, size, label + 1) == 110:
                return -1
            index += 1
            continue
        if index == label:
            return -1
        if code != DOT:
            break
        index += 1
        label = index
    if index - begin > LONGEST_HOST or (KINDS[at(text, size, label)] & DIGIT and not is_address(text, size, begin, index)):
        return -1
    return index


cdef bint is_address(const unsigned char* text, Py_ssize_t size, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Tells whether a host is an IPv4 address as it is written canonically: four numbers to 255 without zeros before them."""
    cdef Py_ssize_t index = begin, label
    cdef int part, number
    for part in range(4):
        number, label = 0, index
        while index < end and KINDS[at(text, size, index)] & DIGIT and index - label < 3:
            number = 10 * number + at(text, size, index) - ZERO
            index += 1
        if index == label or number > 255 or (index - label > 1 and at(text, size, label) == ZERO):
            return False
        if part < 3:
            if at(text, size, index) != DOT:
                return False
            index += 1
    return index == end


cdef Py_ssize_t port_end(const unsigned char* text, Py_ssize_t size, Py_ssize_t begin) noexcept nogil:
    """Returns where a port ends, -1 where it is not canonical: a number from 1 to 65535 without zeros before it."""
    cdef Py_ssize_t index = begin
    cdef int number = 0
    while KINDS[at(text, size, index)] & DIGIT and index - begin < 5:
        number = 10 * number + at(text, size, index) - ZERO
        index += 1
    return -1 if number > 65535 or number == 0 or at(text, size, begin) == ZERO else index


cdef Py_ssize_t path_end(const unsigned char* text, Py_ssize_t size, Py_ssize_t begin) noexcept nogil:
    """Returns where the path ends; -1 where path or query may not be canonical."""
    cdef Py_ssize_t index = begin, end
    cdef unsigned char code, last = 0
    while index < size:
        code = at(text, size, index)
        if code == QUESTION_MARK:
            break
        if not KINDS[code] & IN_PATH or (code == DOT and last == SLASH):
            return -1
        if code == 37 and at(text, size, index + 1) == 50 and at(text, size, index + 2) | 32 == 101:  # %2e is a dot
            return -1
        last = code
        index += 1
    end = index
    index += 1
    while index < size:
        if not KINDS[at(text, size, index)] & IN_QUERY:
            return -1
        index += 1
    return end


cdef Py_ssize_t scheme_end(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Returns where the host begins behind `http://` or `https://`, -1 where neither stands there."""
    cdef Py_ssize_t end = 4
    if at(text, size, 0) != 104 or at(text, size, 1) != 116 or at(text, size, 2) != 116 or at(text, size, 3) != 112:
        return -1
    if at(text, size, end) == 115:
        end += 1
    if at(text, size, end) != 58 or at(text, size, end + 1) != SLASH or at(text, size, end + 2) != SLASH:
        return -1
    return end + 3


def plain_url(type kind not None, given not None):
    """Returns a URL of a class where its text is canonical, but for a default port; `None` where that is not certain."""
    if type(given) is not str or not PyUnicode_IS_ASCII(given):
        return None
    cdef str text = given
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(text), begin, host, root, path
    cdef bint has_port = False
    if size > LONGEST_URL:
        return None
    cdef const unsigned char* read = <const unsigned char*>PyUnicode_1BYTE_DATA(text)
    begin = scheme_end(read, size)
    if begin < 0:
        return None
    host = host_end(read, size, begin)
    if host < 0:
        return None
    root = host
    if at(read, size, host) == 58:  # a colon
        root = port_end(read, size, host + 1)
        if root < 0:
            return None
        has_port = not text.startswith(":443/" if begin == 8 else ":80/", host)
    if at(read, size, root) != SLASH:
        return None
    path = path_end(read, size, root)
    if path < 0:
        return None
    url = PyType_GenericAlloc(kind, 0)  # as `object.__new__`, without a search for it
    url.scheme = "https" if begin == 8 else "http"
    url.host = url.netloc = PyUnicode_Substring(text, begin, host)
    url.port = PyUnicode_Substring(text, host + 1, root) if has_port else ""
    if has_port:
        url.netloc = PyUnicode_Substring(text, begin, root)
    url.path = PyUnicode_Substring(text, root, path)
    url.query = PyUnicode_Substring(text, path, size)
    url.text = text if root == host or has_port else PyUnicode_Substring(text, 0, host) + PyUnicode_Substring(text, root, size)
    url._key = None
    url._digest = None
    return url


cdef Py_ssize_t fragment_at(const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Returns where a fragment begins, the end where there is none."""
    cdef Py_ssize_t index = 0
    while index < size and at(text, size, index) != HASH:
        index += 1
    return index


def plain_link(type kind not None, base not None, given not None):
    """Returns the URL of a class that a reference means on a page, where it leads to a canonical one; `None` where that is not certain.

    Args:
        kind: the class.
        base: the page's, of that class.
        given: the reference: an absolute URL, a path, or one without a colon that goes on from the page's folder.
    """
    if type(given) is not str or not PyUnicode_IS_ASCII(given):
        return None
    cdef str text = given, netloc, base_path
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(text), index, end, path
    cdef const unsigned char* read = <const unsigned char*>PyUnicode_1BYTE_DATA(text)
    end = fragment_at(read, size)
    if end == 0 or end > LONGEST_URL:
        return None
    text = PyUnicode_Substring(text, 0, end)
    if scheme_end(read, end) > 0:
        return plain_url(kind, text)
    if at(read, end, 0) == SLASH:
        if at(read, end, 1) == SLASH:
            return plain_url(kind, f"{base.scheme}:{text}")
    else:
        if at(read, end, 0) == QUESTION_MARK:
            return None
        for index in range(end):
            if at(read, end, index) == COLON:
                return None
        base_path = base.path
        text = base_path[: base_path.rfind("/") + 1] + text
        if not PyUnicode_IS_ASCII(text):
            return None
    netloc = base.netloc
    size = PyUnicode_GET_LENGTH(text)
    if size + PyUnicode_GET_LENGTH(netloc) > LONGEST_URL - LONGEST_SCHEME:
        return None
    path = path_end(<const unsigned char*>PyUnicode_1BYTE_DATA(text), size, 0)
    if path < 0:
        return None
    url = PyType_GenericAlloc(kind, 0)
    url.scheme = base.scheme
    url.host = base.host
    url.port = base.port
    url.netloc = netloc
    url.path = PyUnicode_Substring(text, 0, path)
    url.query = PyUnicode_Substring(text, path, size)
    url.text = f"{base.scheme}://{netloc}{text}"
    url._key = None
    url._digest = None
    return url


cdef Py_ssize_t label_before(const unsigned char* text, Py_ssize_t size, Py_ssize_t end) noexcept nogil:
    """Returns where the label begins that ends at an index."""
    while end > 0 and at(text, size, end - 1) != DOT:
        end -= 1
    return end


def suffixes(str host not None):
    """Returns a host and its parent domains, the longest first."""
    cdef list found = [host]
    cdef Py_ssize_t index, size = PyUnicode_GET_LENGTH(host)
    if not PyUnicode_IS_ASCII(host):
        index = host.find(".") + 1
        while index:
            found.append(host[index:])
            index = host.find(".", index) + 1
        return tuple(found)
    cdef const unsigned char* read = <const unsigned char*>PyUnicode_1BYTE_DATA(host)
    for index in range(size):
        if at(read, size, index) == DOT:
            found.append(PyUnicode_Substring(host, index + 1, size))
    return tuple(found)


cdef Py_ssize_t registrable_at(str host, const unsigned char* read, dict rules, int deepest) except -1:
    """Returns where the registrable domain begins in a host."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(host), begin = size + 1
    cdef int count = 0, length = 1, kind
    while begin > 0 and count < deepest:
        begin = label_before(read, size, begin - 1)
        count += 1
        found = rules.get(PyUnicode_Substring(host, begin, size))
        if found is not None:
            kind = found
            length = count - 1 if kind & IS_EXCEPTION else count + 1 if kind & IS_WILDCARD else count
    begin = size + 1
    for count in range(length + 1):
        if begin > 0:
            begin = label_before(read, size, begin - 1)
    return begin


cdef const unsigned char* characters(str host) except NULL:
    if not PyUnicode_IS_ASCII(host):
        raise ValueError("a canonical host is in ASCII")
    return <const unsigned char*>PyUnicode_1BYTE_DATA(host)


def registrable(str host not None, dict rules not None, int deepest):
    """Returns the registrable domain of a host that is no IP literal; arguments as in `_suffix_length`."""
    return PyUnicode_Substring(host, registrable_at(host, characters(host), rules, deepest), PyUnicode_GET_LENGTH(host))


def same_site(str host not None, str other not None, dict rules not None, int deepest):
    """Returns whether two hosts that are no IP literals have the same registrable domain."""
    cdef const unsigned char* one = characters(host)
    cdef const unsigned char* two = characters(other)
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(host), length = PyUnicode_GET_LENGTH(other), common = 0, site
    cdef bint dotted = False
    while common < size and common < length and at(one, size, size - 1 - common) == at(two, length, length - 1 - common):
        dotted = dotted or at(one, size, size - 1 - common) == DOT
        common += 1
    if not dotted and common < size and common < length:
        return False
    site = size - registrable_at(host, one, rules, deepest)
    return site <= common and site == length - registrable_at(other, two, rules, deepest)


def names(str host not None, dict rules not None, int deepest):
    """Returns what `host_names` does for a host that is no IP literal."""
    cdef tuple plain = suffixes(host)
    cdef list found = list(plain)
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(host), begin = registrable_at(host, characters(host), rules, deepest), length
    cdef str name
    while begin < size and at(characters(host), size, begin) != DOT:
        begin += 1
    begin += 1  # of the public suffix
    if begin >= size:
        return plain
    for name in plain:
        length = PyUnicode_GET_LENGTH(name) - (size - begin)
        if length > 1:
            found.append(PyUnicode_Substring(name, 0, length) + "*")
    return tuple(found)
