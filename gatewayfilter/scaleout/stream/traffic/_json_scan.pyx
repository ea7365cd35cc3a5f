"""Compiled reader of simple JSON records: one pass over the bytes of each message, into columns. See json_scan."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

cdef enum:
    TEXTS = 7
    NUMBERS = 5
    URL = 0
    TIME = 0
    BYTES = 4
    UNKNOWN = -1
    VERDICTS = -2
    LONGEST = 65536
    BLOCK = 32  # fewer would be unrolled before they are tested together
    MOST_PROBES = 16
    FIRST_SLOTS = 64
    LOW = 2147483647

cdef struct Span:
    const unsigned char* begin
    Py_ssize_t size

cdef struct Number:
    double real
    long long whole
    bint is_whole

cdef struct Table:
    int* slots
    Py_ssize_t mask
    Span* spans
    unsigned int* hashes
    int count

cdef struct Record:
    Span[TEXTS] texts
    bint[TEXTS] has_text
    Number[NUMBERS] numbers
    bint[NUMBERS] has_number
    unsigned int seen
    bint has_verdict

cdef unsigned char[256] STOPS
cdef double[23] POWERS


cdef void set_up():
    cdef int code
    for code in range(256):
        STOPS[code] = code < 32 or code > 126 or code == 34 or code == 92
    for code in range(23):
        POWERS[code] = 10.0 ** code


set_up()


cdef inline bint is_name(const unsigned char* at, const char* name, Py_ssize_t size) noexcept nogil:
    return memcmp(at, name, size) == 0


cdef int field_of(const unsigned char* at, Py_ssize_t size) noexcept nogil:
    """Returns the number of a field: of texts, then of numbers; `VERDICTS` for one of those that are added."""
    if size == 3:
        return 0 if is_name(at, b"url", 3) else UNKNOWN
    if size == 4:
        if is_name(at, b"type", 4):
            return 2
        if is_name(at, b"time", 4):
            return TEXTS + TIME
        return VERDICTS if is_name(at, b"rule", 4) else UNKNOWN
    if size == 5:
        if is_name(at, b"bytes", 5):
            return TEXTS + BYTES
        return VERDICTS if is_name(at, b"error", 5) else UNKNOWN
    if size == 6:
        if is_name(at, b"source", 6):
            return 1
        if is_name(at, b"method", 6):
            return 3
        if is_name(at, b"client", 6):
            return 4
        if is_name(at, b"server", 6):
            return 5
        if is_name(at, b"status", 6):
            return TEXTS + 3
        return VERDICTS if is_name(at, b"action", 6) or is_name(at, b"reason", 6) else UNKNOWN
    if size == 8:
        if is_name(at, b"protocol", 8):
            return 6
        return VERDICTS if is_name(at, b"category", 8) else UNKNOWN
    if size == 11:
        if is_name(at, b"client_port", 11):
            return TEXTS + 1
        if is_name(at, b"server_port", 11):
            return TEXTS + 2
        return VERDICTS if is_name(at, b"source_list", 11) else UNKNOWN
    if size == 13 and is_name(at, b"rules_version", 13):
        return VERDICTS
    return UNKNOWN


cdef inline const unsigned char* blanks(const unsigned char* at, const unsigned char* end) noexcept nogil:
    while at < end and (at[0] == 32 or at[0] == 10 or at[0] == 13 or at[0] == 9):
        at += 1
    return at


cdef inline bint may_stop(const unsigned char* at) noexcept nogil:
    """Returns whether one of `STOPS` is in a block of bytes, without a table: compilers test all of them at once."""
    cdef unsigned char found = 0, code
    cdef int place
    for place in range(BLOCK):
        code = at[place]
        found |= (<unsigned char>(code - 32) > 94) | (code == 34) | (code == 92)
    return found


cdef inline const unsigned char* long_text_end(const unsigned char* at, const unsigned char* end) noexcept nogil:
    """Returns what `text_end` does, sooner for texts of several blocks."""
    while end - at >= BLOCK and not may_stop(at):
        at += BLOCK
    return text_end(at, end)


cdef inline const unsigned char* text_end(const unsigned char* at, const unsigned char* end) noexcept nogil:
    """Returns the place of the quote that ends a text of plain ASCII; `NULL` where it is not simple."""
    while at < end and not STOPS[at[0]]:
        at += 1
    if at < end and at[0] == 34:
        return at
    return NULL


cdef const unsigned char* escaped_end(const unsigned char* at, const unsigned char* end) noexcept nogil:
    """Likewise of a text that may have escapes, but none by number."""
    while at < end:
        if not STOPS[at[0]]:
            at += 1
        elif at[0] == 34:
            return at
        elif at[0] == 92 and at + 1 < end and at[1] in (34, 47, 92, 98, 102, 110, 114, 116):
            at += 2
        else:
            return NULL
    return NULL


cdef const unsigned char* number_end(const unsigned char* at, const unsigned char* end, Number* number) noexcept nogil:
    """Reads a number whose value is exact as a double; returns the place behind it, `NULL` where it is not simple."""
    cdef bint negative = at < end and at[0] == 45
    cdef long long value = 0
    cdef int digits = 0, behind = 0
    if negative:
        at += 1
    if at + 1 < end and at[0] == 48 and 48 <= at[1] <= 57:
        return NULL
    while at < end and 48 <= at[0] <= 57:
        value = 10 * value + at[0] - 48
        digits += 1
        if digits > 15:
            return NULL
        at += 1
    if not digits:
        return NULL
    if at < end and at[0] == 46:
        at += 1
        while at < end and 48 <= at[0] <= 57:
            value = 10 * value + at[0] - 48
            behind += 1
            if digits + behind > 17 or value >> 53:
                return NULL
            at += 1
        if not behind:
            return NULL
    if at < end and (at[0] == 101 or at[0] == 69):
        return NULL
    number.is_whole = behind == 0
    number.whole = -value if negative else value
    # Both are exact, so that the quotient is the nearest double (Clinger, "How to read floating point numbers accurately", 1990).
    number.real = <double>value / POWERS[behind]
    if negative:
        number.real = -number.real
    return at


cdef const unsigned char* take(
    Record* record, int field, const unsigned char* at, const unsigned char* end
) noexcept nogil:
    """Reads the value of a member; returns the place behind it, `NULL` where it is not simple."""
    cdef const unsigned char* behind
    cdef Number number
    if field >= 0:
        if record.seen >> field & 1:
            return NULL
        record.seen |= 1u << field
    elif field == VERDICTS:
        record.has_verdict = True
    if at == end:
        return NULL
    if at[0] == 34:
        at += 1
        if 0 <= field < TEXTS:
            behind = long_text_end(at, end)
            if behind == NULL:
                return NULL
            record.texts[field].begin = at
            record.texts[field].size = behind - at
            record.has_text[field] = True
        elif field < 0:
            behind = escaped_end(at, end)
            if behind == NULL:
                return NULL
        else:
            return NULL
        return behind + 1
    if at[0] == 45 or 48 <= at[0] <= 57:
        if 0 <= field < TEXTS:
            return NULL
        behind = number_end(at, end, &number)
        if behind == NULL or field < 0:
            return behind
        field -= TEXTS
        if field == TIME:
            if not -1e12 < number.real < 1e12:
                return NULL
        elif not number.is_whole or (field != BYTES and not -LOW <= number.whole <= LOW):
            return NULL
        record.numbers[field] = number
        record.has_number[field] = True
        return behind
    if end - at >= 4 and is_name(at, b"null", 4):
        return at + 4
    if field >= 0:
        return NULL
    if end - at >= 4 and is_name(at, b"true", 4):
        return at + 4
    return at + 5 if end - at >= 5 and is_name(at, b"false", 5) else NULL


cdef const unsigned char* record_end(Record* record, const unsigned char* at, const unsigned char* end) noexcept nogil:
    """Reads an object; returns the place of the brace that ends it, `NULL` where it is not simple or has no URL."""
    cdef const unsigned char* name
    cdef const unsigned char* brace
    cdef int field
    memset(record, 0, sizeof(Record))
    at = blanks(at, end)
    if at == end or at[0] != 123:
        return NULL
    while True:
        at = blanks(at + 1, end)
        if at == end or at[0] != 34:
            return NULL
        name = at + 1
        at = text_end(name, end)
        if at == NULL:
            return NULL
        field = field_of(name, at - name)
        at = blanks(at + 1, end)
        if at == end or at[0] != 58:
            return NULL
        at = take(record, field, blanks(at + 1, end), end)
        if at == NULL:
            return NULL
        at = blanks(at, end)
        if at == end:
            return NULL
        if at[0] == 44:
            continue
        if at[0] != 125 or not record.has_text[URL]:
            return NULL
        brace = at
        return brace if blanks(at + 1, end) == end else NULL


cdef bint open_table(Table* table, Py_ssize_t most) noexcept nogil:
    table.mask = FIRST_SLOTS - 1
    table.count = 0
    table.slots = <int*>calloc(FIRST_SLOTS, sizeof(int))
    table.spans = <Span*>malloc((most + 1) * sizeof(Span))
    table.hashes = <unsigned int*>malloc((most + 1) * sizeof(unsigned int))
    return table.slots != NULL and table.spans != NULL and table.hashes != NULL


cdef void close_table(Table* table) noexcept nogil:
    free(table.slots)
    free(table.spans)
    free(table.hashes)


cdef void grow(Table* table) noexcept nogil:
    """Doubles the slots: a table of few texts stays in the processor's cache. Where there is no memory, it stays as it is."""
    cdef Py_ssize_t mask = 2 * table.mask + 1, slot
    cdef int* slots = <int*>calloc(mask + 1, sizeof(int))
    cdef int number, probe
    if slots == NULL:
        return
    for number in range(table.count):
        slot = table.hashes[number] & mask
        for probe in range(MOST_PROBES):
            if not slots[slot]:
                slots[slot] = number + 1
                break
            slot = (slot + 1) & mask
    free(table.slots)
    table.slots, table.mask = slots, mask


cdef int number_of(Table* table, Span span) noexcept nogil:
    """Numbers a text. One that would take many probes gets another number each time, so that no input makes this slow."""
    cdef unsigned long long mixed = <unsigned long long>span.size, word
    cdef Py_ssize_t at = 0, slot
    cdef unsigned int hashed
    cdef int probe, found
    while at < span.size:
        word = 0
        memcpy(&word, span.begin + at, min(<Py_ssize_t>8, span.size - at))
        mixed = (mixed ^ word) * <unsigned long long>0x9E3779B97F4A7C15
        mixed ^= mixed >> 29
        at += 8
    hashed = <unsigned int>(mixed >> 7)
    slot = hashed & table.mask
    for probe in range(MOST_PROBES):
        found = table.slots[slot]
        if not found:
            table.slots[slot] = table.count + 1
            break
        found -= 1
        if (
            table.hashes[found] == hashed
            and table.spans[found].size == span.size
            and memcmp(table.spans[found].begin, span.begin, span.size) == 0
        ):
            return found
        slot = (slot + 1) & table.mask
    table.spans[table.count] = span
    table.hashes[table.count] = hashed
    table.count += 1
    if 2 * <Py_ssize_t>table.count > table.mask:
        grow(table)
    return table.count - 1


cdef list values_of(Table* table):
    cdef int at
    return [PyBytes_FromStringAndSize(<const char*>table.spans[at].begin, table.spans[at].size) for at in range(table.count)]


def scan(list messages not None):
    """Returns ends, marks, URLs, their places, texts and numbers: see json_scan. The messages have less than 2 GB."""
    cdef Py_ssize_t count = len(messages), row, done = 0, out = 0, most, length, total = 0
    cdef int field
    cdef Record record
    cdef bytes message
    cdef const unsigned char* brace
    cdef const unsigned char* text
    cdef char* urls
    cdef Table[TEXTS] tables
    for row in range(count):
        message = messages[row]
        if message is None:
            raise TypeError("no message")
        total += PyBytes_GET_SIZE(message)
    if total > LOW:
        raise ValueError("too many bytes")
    most = max(count, 1)
    end_bytes, mark_bytes, place_bytes = bytearray(4 * most), bytearray(most), bytearray(4 * (count + 1))
    url_bytes = PyBytes_FromStringAndSize(NULL, total)  # of which the begin is used, and no more is touched
    urls = PyBytes_AS_STRING(url_bytes)
    text_bytes, time_bytes = bytearray(4 * most * TEXTS), bytearray(8 * most)
    whole_bytes, has_bytes = bytearray(8 * most * NUMBERS), bytearray(most * NUMBERS)
    cdef int[::1] ends = memoryview(end_bytes).cast("i")
    cdef unsigned char[::1] marks = mark_bytes
    cdef int[::1] places = memoryview(place_bytes).cast("i")
    cdef int[::1] texts = memoryview(text_bytes).cast("i")
    cdef double[::1] times = memoryview(time_bytes).cast("d")
    cdef long long[::1] numbers = memoryview(whole_bytes).cast("q")
    cdef unsigned char[::1] has = has_bytes
    memset(tables, 0, sizeof(tables))
    try:
        for field in range(1, TEXTS):
            if not open_table(&tables[field], most):
                raise MemoryError
        for row in range(count):
            ends[row] = -1
            message = messages[row]
            text, length = <const unsigned char*>PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message)
            if length > LONGEST:
                continue
            brace = record_end(&record, text, text + length)
            if brace == NULL:
                continue
            ends[row] = <int>(brace - text)
            marks[row] = record.has_verdict
            length = record.texts[URL].size
            if length > total - out:
                raise AssertionError("more bytes of URLs than of messages")
            memcpy(urls + out, record.texts[URL].begin, length)
            out += length
            for field in range(1, TEXTS):
                texts[field * most + done] = number_of(&tables[field], record.texts[field]) if record.has_text[field] else -1
            times[done] = record.numbers[TIME].real
            for field in range(NUMBERS):
                numbers[field * most + done] = record.numbers[field].whole
                has[field * most + done] = record.has_number[field]
            done += 1
            places[done] = <int>out
        kept = [values_of(&tables[field]) for field in range(1, TEXTS)]
    finally:
        for field in range(1, TEXTS):
            close_table(&tables[field])
    return done, end_bytes, mark_bytes, url_bytes, place_bytes, text_bytes, kept, time_bytes, whole_bytes, has_bytes
