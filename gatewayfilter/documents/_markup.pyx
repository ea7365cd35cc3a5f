"""Compiled twin of tags.py, html_text.py and references.py: one pass over the markup gives texts and references at once.

What each step means stands there; here stand the differences. Memory is read by `at`, `find` and `count` alone, which check
every index against the end of the page, and written by `put` alone, which checks the room. All steps are linear.
What is rare (character references, names beyond ASCII, attributes that may hide) is left to the Python of the twin.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DATA, PyUnicode_FromKindAndData, PyUnicode_KIND
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from gatewayfilter.documents import html_text, references, tags
from gatewayfilter.documents.text_density import Block
from gatewayfilter.documents.html_text import HtmlText, hides
from gatewayfilter.documents.references import PageImage, PageLink, References
from gatewayfilter.documents.tags import text_of, unescaped

cdef extern from *:
    """
    /* Sets of characters, a bit each: white space of markup (\\t \\n \\f \\r and space), of a text in ASCII; the former with / = > */
    #define GAPS UINT64_C(0x0000000100003600)
    #define SPACES UINT64_C(0x00000001f0003e00)
    #define NAME_ENDS UINT64_C(0x6000800100003600)
    """
    const uint64_t GAPS, SPACES, NAME_ENDS

cdef extern from *:
    """
    #ifdef COUNT_STEPS  /* a build of the tests, which hold that no page takes more than its length */
    static unsigned long long steps_taken = 0;
    #define STEPS(count) (steps_taken += (count))
    #else
    #define steps_taken 0ULL
    #define STEPS(count) ((void)0)
    #endif
    """
    const uint64_t steps_taken
    void STEPS(size_t count) noexcept nogil

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    bint Py_UNICODE_ISSPACE(uint32_t character) nogil
    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t items)

ctypedef fused Char:  # the three widths in which Python keeps a string
    uint8_t
    uint16_t
    uint32_t

cdef struct Span:
    size_t start
    size_t stop

cdef struct Piece:  # of a text: a part of the page, set off by white space or not
    size_t start
    size_t stop
    bint apart

cdef struct Pieces:
    Piece* rows
    size_t count
    size_t room

cdef enum:  # the attributes that mean something
    NAME
    PROPERTY
    CONTENT
    ALT
    VALUE
    TYPE
    HREF
    REL
    SRC
    ATTRIBUTES

cdef enum:  # the tags that mean something; others have numbers from OTHER on, or 0 where they are not known
    A = 1
    TITLE
    TEMPLATE
    META
    IMG
    AREA
    INPUT
    LINK
    BASE
    HTML
    BODY
    P
    OTHER

cdef enum:  # what is known of a tag
    INLINE = 1
    VOID = 2
    ENDS_PARAGRAPH = 4
    RAW = 8
    TEXT = 16
    NO_SCRIPT = 32

cdef enum:
    SLOTS = 512  # four times as many as there are tags; a power of two
    CHUNK = 32

cdef struct Tag:
    uint64_t key
    int number
    int flags

cdef Tag[SLOTS] known_tags
cdef uint64_t[ATTRIBUTES] attribute_keys
cdef size_t max_html = tags.MAX_HTML, max_tags = tags.MAX_TAGS, max_attributes = tags.MAX_ATTRIBUTES
cdef Py_ssize_t max_links = references.MAX_LINKS, max_images = references.MAX_IMAGES, max_text = references.MAX_TEXT
cdef frozenset titles = html_text.TITLES, descriptions = html_text.DESCRIPTIONS, keywords = html_text.KEYWORDS
cdef frozenset label_types = html_text.LABEL_TYPES


# Memory ----------------------------------------------------------------------------------------------------------------------

cdef inline uint32_t at(const Char* text, size_t index, size_t end) noexcept nogil:
    """The character at an index, 0 at the end and beyond."""
    STEPS(1)
    return text[index] if index < end else 0


cdef inline size_t find(const Char* text, size_t index, size_t end, uint32_t wanted) noexcept nogil:
    """The first index from one on where a character stands, `end` where there is none."""
    cdef size_t step
    cdef Char found
    while index < end and end - index >= CHUNK:
        found = 0
        for step in range(CHUNK):  # without a way out, so that the compiler makes vectors of it
            found |= <Char>(text[index + step] == <Char>wanted)
        if found:
            break
        index += CHUNK
        STEPS(1)
    while index < end and text[index] != wanted:
        index += 1
        STEPS(1)
    return index if index < end else end


cdef inline size_t count(const Char* text, size_t end, uint32_t wanted) noexcept nogil:
    """How often a character stands before the end."""
    cdef size_t index = 0, step, total = 0
    cdef Char in_chunk
    while end - index >= CHUNK:
        in_chunk = 0
        for step in range(CHUNK):
            in_chunk += <Char>(text[index + step] == <Char>wanted)
        total += in_chunk
        index += CHUNK
    while index < end:
        total += text[index] == wanted
        index += 1
    return total


cdef inline size_t find_sign(const Char* text, size_t index, size_t end) noexcept nogil:
    """An index from one on up to which no double d, no n two after another and no z before an e stands."""
    cdef size_t step
    cdef Char found
    while index < end and end - index >= CHUNK + 2:
        found = 0
        for step in range(CHUNK):
            found |= (
                <Char>((text[index + step] | 0x20) == c"d") & <Char>((text[index + step + 1] | 0x20) == c"d")
                | <Char>((text[index + step] | 0x20) == c"n") & <Char>((text[index + step + 2] | 0x20) == c"n")
                | <Char>((text[index + step] | 0x20) == c"z") & <Char>((text[index + step + 1] | 0x20) == c"e")
            )
        if found:
            break
        index += CHUNK
        STEPS(1)
    return index


cdef inline size_t put(Char* text, size_t index, size_t room, uint32_t character) noexcept nogil:
    """Writes a character where there is room; returns the index after it."""
    if index < room:
        text[index] = <Char>character
        return index + 1
    return index


cdef int add(Pieces* pieces, size_t start, size_t stop, bint apart) except -1:
    cdef size_t room
    cdef Piece* rows
    if pieces.count >= pieces.room:
        room = 2 * pieces.room + 16
        rows = <Piece*>PyMem_Realloc(pieces.rows, room * sizeof(Piece))
        if rows == NULL:
            raise MemoryError
        pieces.rows, pieces.room = rows, room
    pieces.rows[pieces.count] = Piece(start, stop, apart)
    pieces.count += 1
    return 0


# Characters ------------------------------------------------------------------------------------------------------------------

cdef inline bint is_gap(uint32_t c) noexcept nogil:
    """White space of the markup."""
    return c <= 0x20 and (GAPS >> c) & 1


cdef inline bint ends_name(uint32_t c) noexcept nogil:
    """What ends the name of an attribute: white space, `/`, `=`, `>`."""
    return c <= 0x3e and (NAME_ENDS >> c) & 1


cdef inline bint is_space(uint32_t c) noexcept nogil:
    """White space of a text, as `str.split` knows it."""
    if c < 0x80:
        return c <= 0x20 and (SPACES >> c) & 1
    return Py_UNICODE_ISSPACE(c)


cdef inline bint is_letter(uint32_t c) noexcept nogil:
    return c"a" <= (c | 0x20) <= c"z"


cdef inline uint32_t lower(uint32_t c) noexcept nogil:
    return c | 0x20 if c"A" <= c <= c"Z" else c


cdef inline uint64_t packed(const Char* text, size_t start, size_t stop) noexcept nogil:
    """The characters of a name of up to eight in lower case; 0 for a longer one, and where one is NUL or not ASCII."""
    cdef uint64_t key = 0
    cdef uint32_t c
    cdef size_t index
    if stop - start > 8:
        return 0
    for index in range(start, stop):
        c = lower(at(text, index, stop))
        if c == 0 or c >= 0x80:
            return 0
        key = key << 8 | c
    return key


cdef inline bint says(const Char* text, size_t start, size_t stop, const char* word, size_t length) noexcept nogil:
    """Tells whether a lower-case word stands at an index, in any case."""
    cdef size_t index
    if start > stop or stop - start < length:
        return False
    for index in range(length):
        if lower(at(text, start + index, stop)) != <uint8_t>word[index]:
            return False
    return True


cdef inline bint stands(const Char* text, size_t start, size_t stop, const char* word, size_t length) noexcept nogil:
    """Tells whether a word stands at an index exactly so."""
    cdef size_t index
    if start > stop or stop - start < length:
        return False
    for index in range(length):
        if at(text, start + index, stop) != <uint8_t>word[index]:
            return False
    return True


cdef inline Tag* slot_of(uint64_t key) noexcept nogil:
    """The place of a tag, or the empty one where it would stand."""
    cdef uint64_t place = (key * 0x9e3779b97f4a7c15ULL) >> 55  # 9 bits
    while known_tags[place & (SLOTS - 1)].key != key and known_tags[place & (SLOTS - 1)].key != 0:
        place += 1
    return &known_tags[place & (SLOTS - 1)]


# Markup ----------------------------------------------------------------------------------------------------------------------

cdef inline size_t read_attributes(const Char* text, size_t index, size_t end, Span* values) noexcept nogil:
    """Goes over attributes to the `>` that ends them, or to the end; notes the first value of each known one, if asked."""
    cdef size_t name, name_stop, value, value_stop, after, limit = index + max_attributes
    cdef uint32_t c
    cdef uint64_t key
    cdef int number
    cdef uint32_t seen = 0
    while index < end:
        c = at(text, index, end)
        if c == c">":
            return index
        if is_gap(c) or c == c"/":
            index += 1
            continue
        name = index
        index += 1
        while index < end:
            c = at(text, index, end)
            if ends_name(c):
                break
            index += 1
        name_stop = value = value_stop = after = index
        while is_gap(at(text, after, end)):
            after += 1
        if at(text, after, end) == c"=":
            index = after + 1
            while is_gap(at(text, index, end)):
                index += 1
            c = at(text, index, end)
            value = index
            if c == c'"' or c == c"'":
                value = index + 1
                value_stop = find(text, value, end, c)
                index = value_stop + 1 if value_stop < end else end
            else:
                while index < end:
                    c = at(text, index, end)
                    if is_gap(c) or c == c">":
                        break
                    index += 1
                value_stop = index
        if values != NULL and name < limit:
            key = packed(text, name, min(name_stop, limit))
            if key:
                for number in range(ATTRIBUTES):
                    if key == attribute_keys[number]:
                        if not seen & (1 << number):
                            seen |= 1 << number
                            values[number].start = min(value, limit)
                            values[number].stop = min(value_stop, limit)
                        break
    return end


cdef inline size_t comment_end(const Char* text, size_t index, size_t end) noexcept nogil:
    if at(text, index, end) == c">":  # "<!-->" and "<!--->" are whole comments
        return index + 1
    if at(text, index, end) == c"-" and at(text, index + 1, end) == c">":
        return index + 2
    while True:
        index = find(text, index, end, c"-")
        if index >= end:
            return end
        if at(text, index + 1, end) == c"-":  # "-->", or "--!>", which browsers take for it
            if at(text, index + 2, end) == c">":
                return index + 3
            if at(text, index + 2, end) == c"!" and at(text, index + 3, end) == c">":
                return index + 4
        index += 1


cdef inline size_t raw_end(const Char* text, size_t index, size_t end, const Char* name, size_t length) noexcept nogil:
    """Where the end tag of an element without markup begins. Its name stands in the page too: `name` to `name + length`."""
    cdef size_t step
    cdef uint32_t c
    while True:
        index = find(text, index, end, c"<")
        if index >= end:
            return end
        if at(text, index + 1, end) == c"/":
            step = 0
            while step < length and lower(at(text, index + 2 + step, end)) == lower(at(name, step, length)):
                step += 1
            if step == length:
                c = at(text, index + 2 + length, end)
                if is_gap(c) or c == c"/" or c == c">":
                    return index
        index += 1


cdef inline size_t text_end(const Char* text, size_t index, size_t end) noexcept nogil:
    """Where the next tag begins."""
    cdef uint32_t c
    while True:
        index = find(text, index, end, c"<")
        if index >= end:
            return end
        c = at(text, index + 1, end)
        if is_letter(c) or c == c"/" or c == c"!" or c == c"?":
            return index
        index += 1


cdef inline size_t skipped_back(const Char* text, size_t start, size_t index) noexcept nogil:
    """The index after the last of up to nine characters before one that may be white space."""
    cdef size_t least = index - 9 if index - start > 9 else start
    cdef uint32_t c
    while index > least:
        c = at(text, index - 1, index)
        if 0x20 < c < 0x80:
            break
        index -= 1
    return index


cdef inline size_t skipped(const Char* text, size_t index, size_t stop) noexcept nogil:
    """The index of the first of up to ten characters that is no white space."""
    cdef size_t most = index + 9 if stop - index > 9 else stop
    cdef uint32_t c
    while index < most:
        c = at(text, index, stop)
        if 0x20 < c < 0x80:
            break
        index += 1
    return index


cdef enum Hiding:
    NO
    ASK  # html_text.hides knows
    YES


cdef inline bint stands_before(const Char* text, size_t start, size_t index, const char* word, size_t length) noexcept nogil:
    return index - start >= length and says(text, index - length, index, word, length)


cdef inline Hiding told_by_colon(const Char* text, size_t start, size_t index, const char* word, size_t length) noexcept nogil:
    """Tells whether `word : ` stands before an index, where its value begins."""
    cdef size_t colon = skipped_back(text, start, index), place
    cdef uint32_t c
    if colon == start or at(text, colon - 1, index) != c":":
        return NO
    place = skipped_back(text, start, colon - 1)
    c = lower(at(text, place - 1, index)) if place > start else 0
    if c != c"y" and c != c"n":  # "display", "visibility", or the end of what html_text.py takes away
        return NO
    if place < colon - 1 or index - colon > 1 or (index > colon and not is_space(at(text, colon, index))):
        return ASK
    return YES if stands_before(text, start, place, word, length) else ASK


cdef inline Hiding by_hidden(const Char* text, size_t start, size_t index, size_t stop) noexcept nogil:
    """Tells what a "hidden" at an index does. It is NO only where html_text.py takes nothing away that joins something else."""
    cdef uint32_t before = at(text, index - 1, stop) if index > start else 0, after = at(text, index + 6, stop), c
    cdef bint stands_alone
    if before == c"-" and stands_before(text, start, index, b"aria-", 5):
        c = at(text, index - 6, stop) if index - start > 5 else 0
        return NO if (is_gap(c) or c == c'"' or c == c"'") and (after == c"=" or after == c'"' or after == c"'") else ASK
    if before == c"-" or before == c"_" or is_letter(before) or c"0" <= before <= c"9":
        return ASK if stands_before(text, start, index, b"hidden", 6) else NO
    c = at(text, index - 2, stop) if index - start >= 2 else 0
    if before == c":" or (before == c" " and c == c":"):
        return told_by_colon(text, start, index, b"visibility", 10)
    stands_alone = is_gap(before) and 0x20 < c < 0x80 and c != c":" and c != c"=" and lower(c) != c"n"
    if (before == c'"' or before == c"'") and c == c"=":  # the first word of a value, unless it is type="hidden"
        c = at(text, index - 3, stop) if index - start >= 3 else 0
        stands_alone = 0x20 < c < 0x80 and lower(c) != c"e"
    if stands_alone and after == c"-":
        return NO
    if stands_alone and (is_gap(after) or after == c"=" or after == c'"' or after == c"'" or index + 6 == stop):
        return YES
    return ASK


cdef inline Hiding hiding(const Char* text, size_t start, size_t stop) noexcept nogil:
    """Tells whether attributes hide: the same as html_text.hides, unless it is ASK."""
    cdef size_t index = start, place, chunk_stop
    cdef uint32_t c
    cdef Hiding found
    while index < stop:
        index = find_sign(text, index, stop)
        chunk_stop = min(index + CHUNK, stop)
        while index < chunk_stop:
            c = at(text, index, stop) | 0x20
            found = NO
            if c == c"d":
                if index - start >= 2 and says(text, index - 2, stop, b"hidden", 6):
                    found = by_hidden(text, start, index - 2, stop)
            elif c == c"n":
                if says(text, index, stop, b"none", 4):
                    found = told_by_colon(text, start, index, b"display", 7)
            elif c == c"z":
                if index - start >= 7 and says(text, index - 7, stop, b"font-size", 9):
                    place = skipped(text, index + 2, stop)
                    if at(text, place, stop) == c":":
                        place = skipped(text, place + 1, stop)
                        c = at(text, place + 1, stop)
                        if at(text, place, stop) == c"0" and c != c"." and not c"0" <= c <= c"9":
                            found = ASK
            if found != NO:
                return found
            index += 1
    return NO


# The page --------------------------------------------------------------------------------------------------------------------

cdef class Page:
    """What was read so far; the twins of html_text.py and references.py explain the fields."""

    cdef str html
    cdef bint wants_texts, wants_references
    # Texts.
    cdef str title, hidden_name
    cdef list descriptions, keywords, blocks, labels, hidden
    cdef Pieces block
    cdef bint has_pieces, in_link, in_title, is_hidden
    cdef size_t link_chars
    cdef int hidden_number
    cdef Py_ssize_t hidden_depth
    # References.
    cdef str base, reference, rel, kind
    cdef list links, images
    cdef Pieces link
    cdef bint is_open
    # Where texts are folded.
    cdef void* scratch
    cdef size_t scratch_size

    def __cinit__(self):
        self.block = Pieces(NULL, 0, 0)
        self.link = Pieces(NULL, 0, 0)
        self.scratch = NULL

    def __dealloc__(self):
        PyMem_Free(self.block.rows)
        PyMem_Free(self.link.rows)
        PyMem_Free(self.scratch)

    def __init__(self, str html, bint wants_texts, bint wants_references):
        self.html = html
        self.wants_texts, self.wants_references = wants_texts, wants_references
        self.title = self.hidden_name = self.base = self.reference = self.rel = self.kind = ""
        self.descriptions, self.keywords, self.blocks, self.labels, self.hidden = [], [], [], [], []
        self.links, self.images = [], []

    cdef int make_room(self, size_t size) except -1:
        if size > self.scratch_size:
            PyMem_Free(self.scratch)
            self.scratch_size = 0
            self.scratch = PyMem_Malloc(2 * size)
            if self.scratch == NULL:
                raise MemoryError
            self.scratch_size = 2 * size
        return 0


cdef inline size_t short_reference(const Char* text, size_t index, size_t stop, uint32_t* character) noexcept nogil:
    """The length of a frequent character reference and what it means; 0 for one that Python's `html` is asked about."""
    if stands(text, index, stop, b"&amp;", 5):
        character[0] = c"&"
        return 5
    if stands(text, index, stop, b"&nbsp;", 6):
        character[0] = 0x20  # folded, as any white space
        return 6
    if stands(text, index, stop, b"&quot;", 6):
        character[0] = c'"'
        return 6
    if stands(text, index, stop, b"&#39;", 5):
        character[0] = c"'"
        return 5
    if stands(text, index, stop, b"&#039;", 6):
        character[0] = c"'"
        return 6
    return 0


cdef object row_of(object kind, tuple values):
    """A named tuple. `fill_tables` makes sure that its kind is laid out as a tuple is."""
    cdef object row = PyType_GenericAlloc(<PyTypeObject*>kind, len(values))
    cdef Py_ssize_t index
    for index in range(len(values)):
        value = values[index]
        Py_INCREF(value)
        PyTuple_SET_ITEM(row, index, value)
    return row


cdef str escaped_text(Page page, const Pieces* pieces):
    """The same as `folded` where there are character references."""
    cdef size_t index
    cdef list parts = []
    for index in range(pieces.count):
        STEPS(1 + pieces.rows[index].stop - pieces.rows[index].start)
        part = page.html[pieces.rows[index].start:pieces.rows[index].stop]
        parts.append(f" {part} " if pieces.rows[index].apart else part)
    return text_of("".join(parts))


cdef str folded(Page page, const Char* text, const Pieces* pieces):
    """The text of some pieces as a reader sees it: white space folded, character references replaced."""
    cdef size_t index, place, stop, length, size = 0, room
    cdef uint32_t c
    cdef bint is_apart = False  # white space is due before the next character
    cdef Char* out
    for index in range(pieces.count):
        size += pieces.rows[index].stop - pieces.rows[index].start + 1
    page.make_room((size + 1) * sizeof(Char))
    out, room, size = <Char*>page.scratch, page.scratch_size // sizeof(Char), 0
    for index in range(pieces.count):
        is_apart |= pieces.rows[index].apart
        place, stop = pieces.rows[index].start, pieces.rows[index].stop
        while place < stop:
            c = at(text, place, stop)
            if is_space(c):
                is_apart = True
                place += 1
                continue
            length = 1
            if c == c"&":
                length = short_reference(text, place, stop, &c)
                if not length:
                    return escaped_text(page, pieces)
            place += length
            if c == c" ":
                is_apart = True
                continue
            if is_apart and size:
                size = put(out, size, room, c" ")
            is_apart = False
            size = put(out, size, room, c)
        is_apart |= pieces.rows[index].apart
    return PyUnicode_FromKindAndData(sizeof(Char), out, size) if size else ""


cdef str cleaned(Page page, const Char* text, Span span):
    """A value as a reader sees it."""
    cdef Piece row = Piece(span.start, span.stop, False)
    cdef Pieces pieces = Pieces(&row, 1, 1)
    return folded(page, text, &pieces) if span.start < span.stop else ""


cdef str stripped(Page page, const Char* text, Span span):
    """A value without white space around it."""
    cdef size_t start = span.start, stop = span.stop, reference = find(text, start, stop, c"&"), size = 0, room
    cdef Char* out
    if reference < stop:
        page.make_room((stop - start) * sizeof(Char))
        out, room = <Char*>page.scratch, page.scratch_size // sizeof(Char)
        while start < stop:
            size = put(out, size, room, at(text, start, stop))
            if start == reference:
                if not stands(text, start, stop, b"&amp;", 5):
                    return unescaped(page.html[span.start:span.stop]).strip()
                start += 4
                reference = find(text, start + 1, stop, c"&")
            start += 1
        return PyUnicode_FromKindAndData(sizeof(Char), out, size).strip()
    while start < stop and is_space(at(text, start, stop)):
        start += 1
    while start < stop and is_space(at(text, stop - 1, stop)):
        stop -= 1
    return page.html[start:stop] if start < stop else ""


cdef str lowered(Page page, const Char* text, Span span):
    """A value in lower case."""
    if span.start >= span.stop:
        return ""
    if find(text, span.start, span.stop, c"&") < span.stop:
        return unescaped(page.html[span.start:span.stop]).lower()
    return page.html[span.start:span.stop].lower()


# Texts -----------------------------------------------------------------------------------------------------------------------

cdef int end_block(Page page, const Char* text) except -1:
    cdef str block
    cdef Py_ssize_t link_chars
    if not page.has_pieces:
        return 0
    block = folded(page, text, &page.block)
    if block:
        if page.in_title and not page.title:
            page.title = block
        elif page.is_hidden:
            page.hidden.append(block)
        else:
            link_chars = min(<Py_ssize_t>page.link_chars, len(block))
            page.blocks.append(row_of(Block, (block, link_chars)))
    page.has_pieces = False
    page.block.count = 0
    page.link_chars = 0
    return 0


cdef int hide(Page page, const Char* text, int number, str name) except -1:
    end_block(page, text)
    page.is_hidden, page.hidden_depth, page.hidden_number, page.hidden_name = True, 1, number, name
    return 0


cdef int follow_hidden(Page page, const Char* text, int number, int flags, bint closing, Span name) except -1:
    cdef bint same = number == page.hidden_number
    if same and not number:
        same = page.html[name.start:name.stop].lower() == page.hidden_name
    if same:
        page.hidden_depth += -1 if closing else 1
    if (
        page.hidden_depth <= 0
        or (page.hidden_number == P and flags & ENDS_PARAGRAPH)
        or (closing and (number == BODY or number == HTML))
    ):
        end_block(page, text)
        page.is_hidden = False
    return 0


cdef int read_meta(Page page, const Char* text, const Span* values) except -1:
    cdef Span span = values[NAME] if values[NAME].start < values[NAME].stop else values[PROPERTY]
    cdef str name, content
    if not 8 <= span.stop - span.start <= 19:  # "keywords", "twitter:description"
        return 0
    name = page.html[span.start:span.stop].lower()
    if name in descriptions or (name in titles and not page.title):
        content = cleaned(page, text, values[CONTENT])
        if content:
            page.descriptions.append(content)
    elif name in keywords:
        content = cleaned(page, text, values[CONTENT])
        if content:
            page.keywords.append(content)
    return 0


cdef int read_label(Page page, const Char* text, const Span* values) except -1:
    cdef str label
    cdef int number
    if values[TYPE].start < values[TYPE].stop and page.html[values[TYPE].start:values[TYPE].stop].lower() not in label_types:
        return 0
    for number in (ALT, VALUE):
        label = cleaned(page, text, values[number])
        if label:
            page.labels.append(label)
    return 0


cdef bint does_hide(Page page, const Char* text, Span attributes) except -1:
    cdef Hiding found = hiding(text, attributes.start, attributes.stop)
    if found != ASK:
        return found == YES
    STEPS(attributes.stop - attributes.start)
    return hides(page.html[attributes.start:attributes.stop])


cdef int read_text_tag(
    Page page, const Char* text, int number, int flags, bint closing, Span name, Span attributes, const Span* values
) except -1:
    if page.has_pieces and not flags & INLINE:
        end_block(page, text)
    if page.is_hidden:
        follow_hidden(page, text, number, flags, closing, name)
    elif (
        attributes.start < attributes.stop
        and not closing
        and not flags & VOID
        and number != HTML
        and number != BODY
        and does_hide(page, text, attributes)
    ):
        hide(page, text, number, "" if number else page.html[name.start:name.stop].lower())
    if number == A:
        page.in_link = not closing
    elif number == TITLE:
        page.in_title = not closing
    elif closing or not 0 < number < LINK:
        pass
    elif number == TEMPLATE:
        if not page.is_hidden:
            hide(page, text, number, "")
    elif number == META:
        read_meta(page, text, values)
    else:
        read_label(page, text, values)
    return 0


cdef int read_text(Page page, const Char* text, size_t start, size_t stop) except -1:
    """Takes the text after a tag, unless it is white space at the beginning of a block."""
    cdef size_t place = start
    if not page.has_pieces:
        while place < stop and is_space(at(text, place, stop)):
            place += 1
    if place < stop:
        add(&page.block, start, stop, False)
        page.has_pieces = True
        if page.in_link:
            page.link_chars += stop - start
    return 0


# References ------------------------------------------------------------------------------------------------------------------

cdef int end_link(Page page, const Char* text) except -1:
    if page.is_open:
        page.is_open = False
        if len(page.links) < max_links:
            words = folded(page, text, &page.link)[:max_text]
            page.links.append(row_of(PageLink, (page.reference, words, page.rel, page.kind, True)))
        page.link.count = 0
    return 0


cdef int read_image(Page page, const Char* text, const Span* values) except -1:
    cdef str source = stripped(page, text, values[SRC])
    if source and len(page.images) < max_images:
        page.images.append(row_of(PageImage, (source, cleaned(page, text, values[ALT])[:max_text])))
    if page.is_open:
        add(&page.link, values[ALT].start, values[ALT].stop, True)
    return 0


cdef int read_reference(Page page, const Char* text, int number, bint closing, Span attributes, const Span* values) except -1:
    cdef str reference
    if number == A:
        end_link(page, text)
    if closing or attributes.start >= attributes.stop:
        return 0
    if number == IMG:
        return read_image(page, text, values)
    reference = stripped(page, text, values[HREF])
    if not reference:
        return 0
    if number == BASE:
        page.base = page.base or reference
    elif number == A:
        page.reference, page.rel, page.kind = reference, lowered(page, text, values[REL]), lowered(page, text, values[TYPE])
        page.is_open = True
    elif len(page.links) < max_links:
        words = cleaned(page, text, values[ALT])[:max_text]
        link = (reference, words, lowered(page, text, values[REL]), lowered(page, text, values[TYPE]), number == AREA)
        page.links.append(row_of(PageLink, link))
    return 0


# The pass --------------------------------------------------------------------------------------------------------------------

cdef int read_tag(
    Page page, const Char* text, const Tag* tag, bint closing, Span name, Span attributes, const Span* values
) except -1:
    cdef int number = tag.number, flags = tag.flags
    cdef bint is_ascii = True
    cdef str other
    cdef size_t index
    if not number:
        for index in range(name.start, name.stop):
            is_ascii &= at(text, index, name.stop) < 0x80
        if not is_ascii:  # a few characters beyond ASCII have lower-case letters within
            other = page.html[name.start:name.stop].lower()
            tag = slot_of(key_of(other))
            number, flags = tag.number, tag.flags
    if page.wants_texts:
        read_text_tag(page, text, number, flags, closing, name, attributes, values)
    if page.wants_references and is_ascii and (number == A or (not closing and IMG <= number <= BASE and number != INPUT)):
        read_reference(page, text, number, closing, attributes, values)
    return 0


cdef int read_page(Page page, const Char* text, size_t length) except -1:
    cdef size_t end = min(length, max_html), page_end, index, next_index, seen = 0
    cdef uint32_t c
    cdef bint closing, is_text, is_within = False
    cdef Tag* tag
    cdef Span name, attributes
    cdef Span[ATTRIBUTES] values
    cdef int number
    for number in range(ATTRIBUTES):
        values[number] = Span(0, 0)
    index = find(text, 0, end, c"<")
    if page.wants_texts:
        add(&page.block, 0, index, False)
        page.has_pieces = True
    if end > max_tags and count(text, end, c"<") > max_tags:
        next_index = index
        for seen in range(max_tags - 1):
            next_index = find(text, next_index + 1, end, c"<")
        end = next_index
    page_end = end  # while within a "noscript", `end` is where that ends
    while index < page_end:
        if index >= end:
            end, is_within = page_end, False
        is_text = False
        c = at(text, index + 1, end)
        closing = c == c"/"
        if is_letter(at(text, index + 2, end) if closing else c):
            name.start = name.stop = index + 2 if closing else index + 1
            while name.stop < end:
                c = at(text, name.stop, end)
                if is_gap(c) or c == c"/" or c == c">":
                    break
                name.stop += 1
            tag = slot_of(packed(text, name.start, name.stop))
            attributes.start = name.stop
            if tag.flags & RAW and not closing and name.stop < end:
                index = read_attributes(text, name.stop, end, NULL)
                index = raw_end(text, min(index + 1, end), end, text + name.start, name.stop - name.start)
            else:
                if not closing and 0 < tag.number <= BASE:
                    for number in range(ATTRIBUTES):
                        values[number] = Span(0, 0)
                    attributes.stop = read_attributes(text, name.stop, end, values)
                else:
                    attributes.stop = read_attributes(text, name.stop, end, NULL)
                index = min(attributes.stop + 1, end)
                read_tag(page, text, tag, closing, name, attributes, values)
                if not closing and name.stop < end and at(text, attributes.stop - 1, end) != c"/":
                    is_text = tag.flags & TEXT
                    if tag.flags & NO_SCRIPT and not is_within:
                        is_within = True
                        end = raw_end(text, index, page_end, text + name.start, name.stop - name.start)
        elif c == c"!" and at(text, index + 2, end) == c"-" and at(text, index + 3, end) == c"-":
            index = comment_end(text, index + 4, end)
        elif c == c"!" or c == c"?" or c == c"/":
            index = min(find(text, index + 2, end, c">") + 1, end)
        else:
            index += 1
        if is_text:
            next_index = raw_end(text, index, end, text + name.start, name.stop - name.start)
        else:
            next_index = text_end(text, index, end)
        if page.wants_texts and index < next_index:
            read_text(page, text, index, next_index)
        if page.is_open and page.link.count < <size_t>max_text:
            add(&page.link, index, next_index, index >= next_index)
        index = next_index
    if page.wants_texts:
        if not page.blocks:
            page.is_hidden = False
        end_block(page, text)
    if page.wants_references:
        end_link(page, text)
    return 0


def read(html, *, bint texts, bint references):
    """Reads a page in one pass. Linear in its length, bounded by `tags.MAX_HTML` and `tags.MAX_TAGS`.

    Returns:
        `HtmlText` and `References`; `None` for what was not asked for.
    """
    cdef str page_html = html if type(html) is str else str(html)
    cdef Page page = Page(page_html, texts, references)
    cdef const void* data = PyUnicode_DATA(page_html)
    cdef size_t length = len(page_html)
    cdef int kind = PyUnicode_KIND(page_html)
    if kind == 1:
        read_page(page, <const uint8_t*>data, length)
    elif kind == 2:
        read_page(page, <const uint16_t*>data, length)
    else:
        read_page(page, <const uint32_t*>data, length)
    said = HtmlText(page.title, page.descriptions, page.keywords, page.blocks, page.labels, page.hidden) if texts else None
    return said, References(page.base, tuple(page.links), tuple(page.images)) if references else None


def steps():
    """Returns how many steps all readings have taken together; 0 save in a build with `COUNT_STEPS`."""
    return steps_taken


# Tables ----------------------------------------------------------------------------------------------------------------------

cdef uint64_t key_of(str name) except? 0:
    """The same as `packed` of a string."""
    cdef uint64_t key = 0
    if len(name) > 8 or not name.isascii() or "\0" in name:
        return 0
    for letter in name.lower():
        key = key << 8 | <uint64_t>ord(letter)
    return key


cdef int fill_tables() except -1:
    cdef Tag* tag
    cdef int number = OTHER
    meaningful = ("a", "title", "template", "meta", "img", "area", "input", "link", "base", "html", "body", "p")
    sets = ((INLINE, html_text.INLINE_TAGS), (VOID, tags.VOID_TAGS), (ENDS_PARAGRAPH, html_text.ENDS_PARAGRAPH), (RAW, tags.RAW_TAGS))
    sets += ((TEXT, tags.TEXT_TAGS), (NO_SCRIPT, (tags.NO_SCRIPT,)))
    others = set().union(*(names for _, names in sets)) - set(meaningful)
    if len(meaningful) != OTHER - A or 4 * (len(meaningful) + len(others)) > SLOTS:
        raise ImportError("the tables do not fit the tags")
    for kind in (Block, PageLink, PageImage):
        if kind.__base__ is not tuple or kind.__basicsize__ != tuple.__basicsize__ or kind.__itemsize__ != tuple.__itemsize__:
            raise ImportError(f"{kind.__name__} is no mere tuple")
    for place, name in enumerate((*meaningful, *sorted(others))):
        tag = slot_of(key_of(name))
        if not key_of(name) or tag.key:
            raise ImportError(f"the tag {name} cannot be told")
        tag.key, tag.number = key_of(name), A + place
        tag.flags = sum(flag for flag, names in sets if name in names)
    for place, name in enumerate(("name", "property", "content", "alt", "value", "type", "href", "rel", "src")):
        attribute_keys[place] = key_of(name)
    return 0


fill_tables()
