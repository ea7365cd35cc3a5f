"""Compiled twins of `hpack.Decoder` and `hpack.Encoder` (RFC 7541), with the same limits, errors and results.

Input is read and output is written through typed memoryviews whose indices are checked. An encoder of hpack adds every field to
its table; this one leaves out the values that do not come again (`_PASSING`), and packs a string where that makes it shorter.
"""

from hpack.exceptions import HPACKDecodingError, InvalidTableIndex, InvalidTableSizeError, OversizedHeaderListError
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.huffman_table import HUFFMAN_TABLE
from hpack.struct import NeverIndexedHeaderTuple
from hpack.table import HeaderTable

from gatewayfilter.proxy.mitm.http.header_table import MOST_BYTES, told_sizes

cdef enum:
    STATES = 256
    NIBBLES = 16
    COMPLETE = 1
    EMIT = 2
    FAIL = 4
    MOST_OCTETS = 5
    ENTRY_BYTES = 32
    MOST_PREFIX = 12
    DEFAULT_SIZE = 4096

cdef unsigned short[STATES * NIBBLES] NEXT
cdef unsigned char[STATES * NIBBLES] FLAGS
cdef unsigned char[STATES * NIBBLES] OUTPUT
cdef unsigned int[256] CODES
cdef unsigned char[256] LENGTHS

cdef tuple STATIC = HeaderTable.STATIC_TABLE
cdef Py_ssize_t STATIC_LENGTH = len(STATIC)
cdef dict STATIC_FIELDS = {}
cdef dict STATIC_NAMES = {}
cdef frozenset _PASSING = frozenset({
    b":path", b"age", b"content-length", b"date", b"etag", b"if-modified-since", b"if-none-match", b"last-modified", b"location",
    b"set-cookie", b"x-request-id",
})


cdef int set_up() except -1:
    cdef Py_ssize_t index
    if len(HUFFMAN_TABLE) != STATES * NIBBLES or len(REQUEST_CODES) < 256:
        raise ImportError("hpack's tables have another form")
    for index in range(STATES * NIBBLES):
        state, flags, output = HUFFMAN_TABLE[index]
        if not 0 <= state < STATES:
            raise ImportError("hpack's tables have another form")
        NEXT[index], FLAGS[index], OUTPUT[index] = state, flags, output
    for index in range(256):
        CODES[index], LENGTHS[index] = REQUEST_CODES[index], REQUEST_CODES_LENGTH[index]
        if not 1 <= LENGTHS[index] <= 30:
            raise ImportError("hpack's tables have another form")
    for index in range(STATIC_LENGTH):
        STATIC_FIELDS.setdefault(STATIC[index], index + 1)
        STATIC_NAMES.setdefault(STATIC[index][0], index + 1)
    return 0


set_up()


cdef Py_ssize_t find_varint(const unsigned char[::1] data, Py_ssize_t* at, int bits) except -1:
    """Reads an integer of a prefix of so many bits, and moves `at` behind it."""
    cdef Py_ssize_t size = data.shape[0]
    cdef Py_ssize_t most = (1 << bits) - 1
    cdef Py_ssize_t number, octet
    cdef int shift = 0, read = 0
    if at[0] >= size:
        raise HPACKDecodingError("Unable to decode HPACK integer representation")
    number = data[at[0]] & most
    at[0] += 1
    if number < most:
        return number
    while True:
        if at[0] >= size:
            raise HPACKDecodingError("Unable to decode HPACK integer representation")
        octet = data[at[0]]
        at[0] += 1
        read += 1
        number += (octet & 127) << shift
        if octet < 128:
            return number
        shift += 7
        if read >= MOST_OCTETS:
            raise HPACKDecodingError("Variable integer representation is too long")


cdef bytes unpack(const unsigned char[::1] data, Py_ssize_t start, Py_ssize_t end):
    """Returns what a Huffman code stands for."""
    if start == end:
        return b""
    cdef bytearray made = bytearray((end - start) * 8 // 5 + 1)
    cdef unsigned char[::1] output = made
    cdef Py_ssize_t index, count = 0, place
    cdef unsigned int state = 0, flags = 0, half
    cdef unsigned char octet
    for index in range(start, end):
        octet = data[index]
        for half in range(2):
            place = state * NIBBLES + (octet >> 4 if half == 0 else octet & 15)
            flags = FLAGS[place]
            if flags & FAIL:
                raise HPACKDecodingError("Invalid Huffman string")
            if flags & EMIT:
                output[count] = OUTPUT[place]
                count += 1
            state = NEXT[place]
    if not flags & COMPLETE:
        raise HPACKDecodingError("Incomplete Huffman string")
    return bytes(made[:count])


cdef bytes find_string(const unsigned char[::1] data, Py_ssize_t* at):
    """Reads a string, and moves `at` behind it."""
    cdef Py_ssize_t start = at[0]
    cdef Py_ssize_t length = find_varint(data, at, 7)
    cdef Py_ssize_t begin = at[0]
    if length > data.shape[0] - begin:
        raise HPACKDecodingError("Truncated header block")
    at[0] = begin + length
    if data[start] & 0x80:
        return unpack(data, begin, begin + length)
    return bytes(data[begin:begin + length])


cdef class Decoder:
    """Stands in for `hpack.Decoder`, for raw fields alone.

    Attributes:
        max_header_list_size: bytes of a list of fields, with 32 for each.
        max_allowed_table_size: bytes of the table that the other side may ask for.
        again: what the next call returns, or raises, without reading its block: that block was read before.
    """

    cdef public Py_ssize_t max_header_list_size
    cdef public Py_ssize_t max_allowed_table_size
    cdef public object again
    cdef list entries
    cdef Py_ssize_t used
    cdef Py_ssize_t most

    def __init__(self, Py_ssize_t max_header_list_size=65536):
        self.max_header_list_size = max_header_list_size
        self.max_allowed_table_size = self.most = DEFAULT_SIZE
        self.again = None
        self.entries = []
        self.used = 0

    @property
    def header_table_size(self):
        """Bytes of the table."""
        return self.most

    @header_table_size.setter
    def header_table_size(self, Py_ssize_t value):
        self.most = value
        self.shrink()

    cpdef load(self, Py_ssize_t most, list entries):
        """Takes over the table of another decoder, its oldest entry first."""
        self.most = most
        self.entries = []
        self.used = 0
        for name, value in entries:
            self.add((name, value))

    cdef int shrink(self) except -1:
        cdef Py_ssize_t gone = 0
        while self.used > self.most and gone < len(self.entries):
            field = self.entries[gone]
            self.used -= len(field[0]) + len(field[1]) + ENTRY_BYTES
            gone += 1
        if gone:
            del self.entries[:gone]
        return 0

    cdef int add(self, tuple field) except -1:
        cdef Py_ssize_t size = len(field[0]) + len(field[1]) + ENTRY_BYTES
        if size > self.most:
            self.entries = []
            self.used = 0
            return 0
        self.entries.append(field)
        self.used += size
        if self.used > self.most:
            self.shrink()
        return 0

    cdef tuple entry(self, Py_ssize_t index):
        cdef Py_ssize_t place
        if 1 <= index <= STATIC_LENGTH:
            return STATIC[index - 1]
        place = len(self.entries) - (index - STATIC_LENGTH)
        if index < 1 or not 0 <= place < len(self.entries):
            raise InvalidTableIndex(f"Invalid table index {index}")
        return self.entries[place]

    cpdef list decode(self, object block, bint raw=True):
        """Returns the fields of a block, as pairs of bytes. What it raises, hpack's decoder raises too."""
        cdef object kept = self.again
        if kept is not None:
            self.again = None
            if isinstance(kept, Exception):
                raise kept
            return kept
        if not raw:
            raise ValueError("only raw fields are decoded")
        return self.read(bytes(block))

    cdef list read(self, const unsigned char[::1] data):
        cdef Py_ssize_t at = 0, size = data.shape[0], total = 0, number
        cdef unsigned char first
        cdef list fields = []
        cdef tuple field
        cdef bytes name
        while at < size:
            first = data[at]
            if first & 0x80:
                field = self.entry(find_varint(data, &at, 7))
            elif first & 0xE0 == 0x20:
                if fields:
                    raise HPACKDecodingError("Table size update not at the start of the block")
                number = find_varint(data, &at, 5)
                if number > self.max_allowed_table_size:
                    raise InvalidTableSizeError("Encoder exceeded max allowable table size")
                self.most = number
                self.shrink()
                continue
            else:
                number = find_varint(data, &at, 6 if first & 0x40 else 4)
                name = self.entry(number)[0] if number else find_string(data, &at)
                field = (name, find_string(data, &at))
                if first & 0x40:
                    self.add(field)
            # What must not be put into a table is marked, for the encoder towards the other side (RFC 7541 §6.2.3).
            fields.append(NeverIndexedHeaderTuple(field[0], field[1]) if first & 0xF0 == 0x10 else field)
            total += len(<bytes>field[0]) + len(<bytes>field[1]) + ENTRY_BYTES
            if total > self.max_header_list_size:
                raise OversizedHeaderListError(f"A header list larger than {self.max_header_list_size} has been received")
        if self.most > self.max_allowed_table_size:
            raise InvalidTableSizeError("Encoder did not shrink table size to within the max")
        return fields


cdef Py_ssize_t put_varint(unsigned char[::1] output, Py_ssize_t at, int bits, int flags, Py_ssize_t number) except -1:
    """Writes an integer; returns the place behind it."""
    cdef Py_ssize_t most = (1 << bits) - 1
    if number < most:
        output[at] = <unsigned char>(flags | number)
        return at + 1
    output[at] = <unsigned char>(flags | most)
    at += 1
    number -= most
    while number >= 128:
        output[at] = <unsigned char>(number & 127 | 128)
        at += 1
        number >>= 7
    output[at] = <unsigned char>number
    return at + 1


cdef Py_ssize_t put_string(unsigned char[::1] output, Py_ssize_t at, bytes text) except -1:
    """Writes a string, packed where that is shorter; returns the place behind it."""
    cdef const unsigned char[::1] data = text
    cdef Py_ssize_t size = data.shape[0], index, bits = 0, packed
    cdef unsigned long long waiting = 0
    cdef int held = 0
    for index in range(size):
        bits += LENGTHS[data[index]]
    packed = (bits + 7) // 8
    if packed >= size:
        at = put_varint(output, at, 7, 0, size)
        for index in range(size):
            output[at + index] = data[index]
        return at + size
    at = put_varint(output, at, 7, 0x80, packed)
    for index in range(size):
        waiting = waiting << LENGTHS[data[index]] | CODES[data[index]]
        held += LENGTHS[data[index]]
        while held >= 8:
            held -= 8
            output[at] = <unsigned char>(waiting >> held & 255)
            at += 1
        waiting &= (1 << held) - 1
    if held:
        output[at] = <unsigned char>(waiting << (8 - held) | ((1 << (8 - held)) - 1))
        at += 1
    return at


cdef bytes as_bytes(object value):
    return value if type(value) is bytes else bytes(value) if isinstance(value, bytes) else str(value).encode()


cdef class Encoder:
    """Stands in for `hpack.Encoder`."""

    cdef list entries
    cdef dict fields
    cdef dict names
    cdef list changes
    cdef Py_ssize_t gone
    cdef Py_ssize_t used
    cdef Py_ssize_t most

    def __init__(self):
        self.entries, self.fields, self.names, self.changes = [], {}, {}, []
        self.gone = self.used = 0
        self.most = DEFAULT_SIZE

    @property
    def header_table_size(self):
        """Bytes of the table."""
        return self.most

    @header_table_size.setter
    def header_table_size(self, Py_ssize_t value):
        value = min(value, <Py_ssize_t>MOST_BYTES)  # the other side may allow gigabytes
        if value != self.most:
            self.changes = told_sizes(self.changes, value)
            self.most = value
            self.shrink()

    cpdef load(self, Py_ssize_t most, list entries, list changes):
        """Takes over the table of another encoder, its oldest entry first, and the changes of its size not yet told."""
        self.most = most
        for name, value in entries:
            self.add((name, value))
        self.changes = changes

    cdef int shrink(self) except -1:
        cdef Py_ssize_t count = 0
        while self.used > self.most and count < len(self.entries):
            field = self.entries[count]
            self.used -= len(field[0]) + len(field[1]) + ENTRY_BYTES
            number = self.gone + count
            if self.fields.get(field) == number:
                del self.fields[field]
            if self.names.get(field[0]) == number:
                del self.names[field[0]]
            count += 1
        if count:
            del self.entries[:count]
            self.gone += count
        return 0

    cdef int add(self, tuple field) except -1:
        cdef Py_ssize_t size = len(field[0]) + len(field[1]) + ENTRY_BYTES
        if size > self.most:
            self.gone += len(self.entries)
            self.entries, self.fields, self.names = [], {}, {}
            self.used = 0
            return 0
        self.fields[field] = self.names[field[0]] = self.gone + len(self.entries)
        self.entries.append(field)
        self.used += size
        if self.used > self.most:
            self.shrink()
        return 0

    cdef Py_ssize_t index(self, object number) except -1:
        return 0 if number is None else STATIC_LENGTH + self.gone + len(self.entries) - <Py_ssize_t>number

    def encode(self, headers, huffman=True):
        """Returns the block of some fields: pairs, whose name and value are bytes, or with a third part that is true of secrets."""
        cdef list read = []
        cdef Py_ssize_t room = MOST_PREFIX * (len(self.changes) + 1), at = 0, place, change
        cdef tuple field
        cdef bint secret, passing
        for header in headers:
            field = (as_bytes(header[0]), as_bytes(header[1]))
            secret = header[2] if len(header) > 2 else not getattr(header, "indexable", True)
            read.append((field, secret))
            room += len(field[0]) + len(field[1]) + 3 * MOST_PREFIX
        cdef bytearray made = bytearray(room)
        cdef unsigned char[::1] output = made
        for change in self.changes:
            at = put_varint(output, at, 5, 0x20, change)
        self.changes = []
        for field, secret in read:
            place = STATIC_FIELDS.get(field, 0)
            if not place and field in self.fields:
                place = self.index(self.fields[field])
            if place:
                at = put_varint(output, at, 7, 0x80, place)
                continue
            name = field[0]
            place = STATIC_NAMES.get(name, 0) or self.index(self.names.get(name))
            passing = secret or name in _PASSING
            at = put_varint(output, at, 4 if passing else 6, 0x10 if secret else 0 if passing else 0x40, place)
            if not place:
                at = put_string(output, at, name)
            at = put_string(output, at, field[1])
            if not passing:
                self.add(field)
        return bytes(made[:at])
