"""Compiled twin of plain_urls._read: one pass over the bytes of each URL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy, memset

cdef enum:
    IN_PATH = 1
    IN_QUERY = 2
    IN_HOST = 4
    SPELLED = 1
    SLASH = 2
    OTHER_KEY = 4
    LONGEST_URL = 65536
    LONGEST_HOST = 255
    DULL_PATH = 8
    DULL_QUERY = 16

cdef unsigned char[256] KINDS
cdef signed char[256] HEX
cdef unsigned int[64] SINES
cdef unsigned char[16] TURNS


cdef void set_up():
    import math
    cdef int code
    memset(KINDS, 0, 256)
    for code in range(256):
        HEX[code] = -1
    for code in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!$%&()*+,./:;=@~_|[]-":
        KINDS[code] |= IN_PATH | IN_QUERY
    KINDS[39] |= IN_PATH  # an apostrophe
    for code in b"?{}^\\`":
        KINDS[code] |= IN_QUERY
    for code in range(256):
        if KINDS[code] & IN_PATH and code not in (37, 46, 47, 59):
            KINDS[code] |= DULL_PATH
        if KINDS[code] & IN_QUERY and code != 37:
            KINDS[code] |= DULL_QUERY
    for code in b"abcdefghijklmnopqrstuvwxyz0123456789._-":
        KINDS[code] |= IN_HOST
    for code in range(10):
        HEX[48 + code] = code
    for code in range(6):
        HEX[65 + code] = HEX[97 + code] = 10 + code
    for code in range(64):
        SINES[code] = <unsigned int>int(abs(math.sin(code + 1)) * 4294967296)
    for code, turn in enumerate((7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21)):
        TURNS[code] = turn


set_up()


cdef inline unsigned int turned(unsigned int value, int by) noexcept nogil:
    return value << by | value >> (32 - by)


cdef void md5_block(unsigned int* state, const unsigned char* block) noexcept nogil:
    """Takes in 64 bytes (RFC 1321); little-endian machines alone, as the tables."""
    cdef unsigned int[16] words
    cdef unsigned int a = state[0], b = state[1], c = state[2], d = state[3], f
    cdef int step
    memcpy(words, block, 64)
    for step in range(0, 16):
        f = a + (d ^ (b & (c ^ d))) + SINES[step] + words[step]
        a, d, c, b = d, c, b, b + turned(f, TURNS[step & 3])
    for step in range(16, 32):
        f = a + (c ^ (d & (b ^ c))) + SINES[step] + words[(5 * step + 1) & 15]
        a, d, c, b = d, c, b, b + turned(f, TURNS[4 + (step & 3)])
    for step in range(32, 48):
        f = a + (b ^ c ^ d) + SINES[step] + words[(3 * step + 5) & 15]
        a, d, c, b = d, c, b, b + turned(f, TURNS[8 + (step & 3)])
    for step in range(48, 64):
        f = a + (c ^ (b | ~d)) + SINES[step] + words[(7 * step) & 15]
        a, d, c, b = d, c, b, b + turned(f, TURNS[12 + (step & 3)])
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d


cdef void md5(const unsigned char* text, Py_ssize_t length, unsigned char* digest) noexcept nogil:
    cdef unsigned int[4] state
    cdef unsigned char[128] tail
    cdef Py_ssize_t whole = length - length % 64, left = length % 64, at, size
    cdef unsigned long long bits = <unsigned long long>length * 8
    state[0], state[1], state[2], state[3] = 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476
    for at in range(0, whole, 64):
        md5_block(state, text + at)
    size = 64 if left < 56 else 128
    memset(tail, 0, 128)
    memcpy(tail, text + whole, left)
    tail[left] = 0x80
    memcpy(tail + size - 8, &bits, 8)
    md5_block(state, tail)
    if size == 128:
        md5_block(state, tail + 64)
    memcpy(digest, state, 16)


cdef int flags_of(const unsigned char* url, Py_ssize_t path, Py_ssize_t end) noexcept nogil:
    """Returns the flags of a URL whose path begins at `path`, -1 where it is not plain."""
    cdef Py_ssize_t at = path
    cdef int flags = 0, high, low, value, kind = IN_PATH
    cdef unsigned char code, last = 0
    cdef const unsigned char* here = url + at
    while at < end:
        here = url + at
        if kind == IN_PATH:
            while here < url + end and KINDS[here[0]] & DULL_PATH:
                here += 1
            if here > url + at:
                at, last = here - url, here[-1]
                continue
        else:
            while here < url + end and KINDS[here[0]] & DULL_QUERY:
                here += 1
            at = here - url
            if at == end:
                break
        code = url[at]
        if not KINDS[code] & kind:
            if kind == IN_PATH and code == 63:
                if last == 46:
                    flags |= SPELLED
                if last == 47 and at - path > 1:
                    flags |= SLASH
                if at + 1 == end:
                    flags |= OTHER_KEY
                kind = IN_QUERY
                at += 1
                continue
            return -1
        if code == 37:
            high = HEX[url[at + 1]] if at + 1 < end else -1
            low = HEX[url[at + 2]] if at + 2 < end else -1
            if high >= 0 and low >= 0:
                value = 16 * high + low
                if kind == IN_PATH and value == 46:
                    return -1
                if url[at + 1] > 70 or url[at + 2] > 70 or is_unreserved(value):
                    flags |= SPELLED | OTHER_KEY
                elif kind == IN_PATH and value < 128:
                    flags |= SPELLED
        elif kind == IN_PATH:
            if code == 46 and last == 47 and (at + 1 == end or url[at + 1] == 46 or url[at + 1] == 47 or url[at + 1] == 63):
                return -1  # a dot segment, or what begins like one
            if code == 47 and at > path and (last == 47 or last == 46):
                flags |= SPELLED
            if code == 59:
                flags |= SPELLED
            last = code
            at += 1
            continue
        if kind == IN_PATH:
            last = code
        at += 1
    if kind == IN_PATH:
        if last == 46:
            flags |= SPELLED
        if last == 47 and end - path > 1:
            flags |= SLASH
    return flags


cdef inline bint is_unreserved(int value) noexcept nogil:
    return 48 <= value <= 57 or 65 <= value <= 90 or 97 <= value <= 122 or value in (45, 46, 95, 126)


cdef inline void lower(unsigned char* out, const unsigned char* text, Py_ssize_t size) noexcept nogil:
    """Copies text in lower case, without a table: compilers make it sixteen bytes at a time."""
    cdef Py_ssize_t at
    cdef unsigned char code
    for at in range(size):
        code = text[at]
        out[at] = code | (<unsigned char>(<unsigned char>(code - 65) < 26) << 5)


def read(const unsigned char[::1] data not None, const int[::1] offsets not None, *, bint hashed):
    """Returns heads, flags, digests, URLs in lower case, and names: see plain_urls.PlainUrls."""
    cdef Py_ssize_t count = offsets.shape[0] - 1, row, begin, end, scheme, path, at, size = data.shape[0], out = 0
    cdef int flags
    if count < 0:
        raise ValueError("no offsets")
    for row in range(count):  # checked once, so that what follows may read by pointers
        if not 0 <= offsets[row] <= offsets[row + 1] <= size:
            raise ValueError("offsets out of range")
    heads = bytearray(4 * count)
    marks = bytearray(count)
    digests = bytearray(16 * count if hashed else 0)
    lowered = PyBytes_FromStringAndSize(NULL, offsets[count] - offsets[0] + count)  # written as a whole below
    names = {}
    if not count:
        return bytes(heads), bytes(marks), bytes(digests), lowered, []
    cdef int[::1] head_of = memoryview(heads).cast("i")
    cdef unsigned char[::1] mark_of = marks
    cdef unsigned char[::1] digest_of = digests
    cdef const unsigned char* text = &data[0] if size else NULL
    cdef unsigned char* low = <unsigned char*>PyBytes_AS_STRING(lowered)
    for row in range(count):
        begin, end = offsets[row], offsets[row + 1]
        lower(low + out, text + begin, end - begin)
        out += end - begin
        low[out] = 10
        out += 1
        head_of[row] = -1
        if end - begin > LONGEST_URL:
            continue
        scheme = scheme_of(text, begin, end)
        if not scheme:
            continue
        path = begin + scheme
        while path < end and KINDS[text[path]] & IN_HOST:
            path += 1
        if not 0 < path - begin - scheme <= LONGEST_HOST or path == end or text[path] != 47:
            continue
        flags = flags_of(text, path, end)
        if flags < 0:
            continue
        name = text[begin:path]
        found = names.get(name)
        if found is None:
            found = names[name] = len(names)
        head_of[row] = found
        mark_of[row] = flags
        if hashed and not flags & OTHER_KEY:
            md5(text + begin + scheme, end - begin - scheme, &digest_of[16 * row])
    return bytes(heads), bytes(marks), bytes(digests), lowered, list(names)


cdef Py_ssize_t scheme_of(const unsigned char* text, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Returns the length of `http://` or `https://`, 0 for another beginning."""
    cdef const unsigned char* at = text + begin
    if end - begin < 8 or at[0] != 104 or at[1] != 116 or at[2] != 116 or at[3] != 112:
        return 0
    if at[4] == 58 and at[5] == 47 and at[6] == 47:
        return 7
    return 8 if at[4] == 115 and at[5] == 58 and at[6] == 47 and at[7] == 47 else 0
