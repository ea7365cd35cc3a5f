"""Compiled twin of tags.py, open_elements.py, html_text.py and references.py: one pass over the markup gives texts and references at once.

What each step means stands there; here stand the differences. Memory is read by `at`, `find` and `count` alone, which check
every index against the end of the page, and written by `put` alone, which checks the room. All steps are linear.
What is rare (names beyond ASCII, styles that may hide) is left to the Python of the twin.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DATA, PyUnicode_FromKindAndData, PyUnicode_KIND
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from gatewayfilter.documents.html import frequent_tags, open_elements, references, rendering, tags
from gatewayfilter.documents.text_density import Block
from gatewayfilter.documents.html.html_text import HtmlText
from gatewayfilter.documents.html.references import PageImage, PageLink, References
from gatewayfilter.documents.html.rendering import special, style_effect, undoes
from html.entities import html5

from gatewayfilter.documents.html.character_references import unescape

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

cdef struct Look:  # what attributes of any tag were seen
    Span style
    Span hidden
    bint has_style
    bint has_hidden
    bint has_popover
    bint is_closed  # by "/>"

cdef struct Element:
    uint64_t name
    uint32_t bits
    int space

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
    PLACEHOLDER
    ATTRIBUTES

cdef enum:  # the tags that mean something; others have numbers from OTHER on, or 0 where they are not known
    A = 1
    TITLE
    META
    IMG
    AREA
    LINK
    BASE
    HTML
    BODY
    P
    BR
    INPUT
    SELECT
    OPTION
    OPTGROUP
    DIALOG
    DETAILS
    SUMMARY
    IFRAME
    TEXTAREA
    PLAINTEXT
    SCRIPT
    STYLE
    FONT
    SVG
    OTHER

cdef enum:  # what is known of a tag
    PARTING = 1
    VOID = 2
    RAW = 8
    TEXT = 16
    NO_SCRIPT = 32
    NEVER_RENDERED = 64
    NEVER_RENDERED_SVG = 128
    SPECIAL_TAG = 256
    UNUSUAL_FOREIGN = 2048
    DOCUMENT = 1024  # may have one within
    WITHIN = 512  # of text in a "noscript" too

cdef enum:
    HTML_SPACE
    SVG_SPACE
    MATH_SPACE

cdef enum:
    SLOTS = 1024  # some five times as many as there are tags; a power of two
    CHUNK = 32

cdef struct Tag:
    uint64_t key
    int number
    int flags
    uint32_t bits, closes, stops, end_stops

cdef enum:
    NAMES = 8192  # of character references, some four times as many as there are; a power of two
    NAME_LETTERS = 32768
    UNENDED = 512  # the same of those that need no ";"
    MAX_NAME = 32
    MAX_UNENDED = 6
    LOW_NUMBERS = 0xa0
    NONE = 0x7fffffff  # instead of a character

cdef struct Named:
    uint32_t offset
    uint32_t length
    uint32_t first
    uint32_t second

cdef struct Unended:
    uint64_t key
    uint32_t character

cdef Named[NAMES] named
cdef uint8_t[NAME_LETTERS] name_letters
cdef Unended[UNENDED] unended
cdef uint32_t[LOW_NUMBERS] low_numbers
cdef Tag[SLOTS] known_tags
cdef uint64_t[ATTRIBUTES] attribute_keys
cdef size_t max_html = tags.MAX_HTML, max_tags = tags.MAX_TAGS, max_attributes = tags.MAX_ATTRIBUTES
cdef Py_ssize_t max_links = references.MAX_LINKS, max_images = references.MAX_IMAGES, max_text = references.MAX_TEXT
cdef frozenset titles = frequent_tags.TITLES, descriptions = frequent_tags.DESCRIPTIONS, keywords = frequent_tags.KEYWORDS
cdef object nothing = rendering.NOTHING
cdef frozenset unlabelled = rendering.UNLABELLED
cdef dict tag_names = {}, bare_specials = {}
cdef size_t max_search = open_elements.MAX_SEARCH
cdef size_t max_styles = rendering.MAX_STYLES, max_special = rendering.MAX_SPECIAL
cdef Py_ssize_t max_documents = rendering.MAX_DOCUMENTS
cdef uint32_t IS_P = open_elements.P, IS_HEADING = open_elements.HEADING, IS_LINK = open_elements.LINK
cdef uint32_t IS_FORMATTING = open_elements.FORMATTING, IS_SPECIAL = open_elements.SPECIAL
cdef uint32_t BUTTON_SCOPE = open_elements.BUTTON_SCOPE, NEVER = open_elements.NEVER, P_CLOSER = open_elements.P_CLOSER
cdef uint32_t FOREIGN_ROOT = open_elements.FOREIGN_ROOT, BREAKOUT = open_elements.BREAKOUT
cdef uint32_t SVG_TEXT = open_elements.SVG_TEXT, MATH_TEXT = open_elements.MATH_TEXT
cdef uint32_t IS_NOBR = open_elements.NOBR, IS_FORM = open_elements.FORM, HAS_ROWS = open_elements.ROWS
cdef uint32_t TABLE_PART = open_elements.TABLE_PART, IS_TABLE = open_elements.TABLE, IMPLIED = open_elements.IMPLIED
cdef uint32_t ANY = open_elements.ANY, END_SPECIAL = open_elements.SPECIAL
cdef int HIDING = rendering.HIDING, HIDES = rendering.HIDES, INVISIBLE = rendering.INVISIBLE, VISIBLE = rendering.VISIBLE, DISPLAYED = rendering.DISPLAYED


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
    cdef size_t index = 0, step, chunk, total = 0
    cdef Char[CHUNK] in_lanes  # of which no sum overflows: the compiler makes vectors of the inner loop
    while end - index >= CHUNK:
        for step in range(CHUNK):
            in_lanes[step] = 0
        for chunk in range(min((end - index) // CHUNK, <size_t>255)):
            for step in range(CHUNK):
                in_lanes[step] += <Char>(text[index + step] == <Char>wanted)
            index += CHUNK
        for step in range(CHUNK):
            total += in_lanes[step]
    while index < end:
        total += text[index] == wanted
        index += 1
    return total


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


cdef inline bint is_blank(uint32_t c) noexcept nogil:
    """White space of CSS, which a no-break space is not."""
    return c == c" " or c == c"\t" or c == c"\n" or c == c"\r" or c == c"\f"


cdef inline bint is_letter_or_digit(uint32_t c) noexcept nogil:
    return c"a" <= (c | 0x20) <= c"z" or c"0" <= c <= c"9"


cdef inline bint is_letter(uint32_t c) noexcept nogil:
    return c"a" <= (c | 0x20) <= c"z"


cdef inline uint32_t lower(uint32_t c) noexcept nogil:
    return c | 0x20 if c"A" <= c <= c"Z" else c


cdef inline bint says(const Char* text, size_t start, size_t stop, const char* word, size_t length) noexcept nogil:
    """Tells whether a lower-case word stands at an index, in any case."""
    cdef size_t index
    if start > stop or stop - start < length:
        return False
    for index in range(length):
        if lower(at(text, start + index, stop)) != <uint8_t>word[index]:
            return False
    return True


LONG_NAMES = ("blockquote", "figcaption", "plaintext", "foreignobject", "annotation-xml", "placeholder")


cdef inline uint64_t packed_long(const Char* text, size_t start, size_t stop) noexcept nogil:
    """The place of a name among `LONG_NAMES`, from 1 on: no character that a name begins with is so small."""
    cdef size_t length = stop - start
    if length == 10:
        return 1 if says(text, start, stop, b"blockquote", 10) else 2 if says(text, start, stop, b"figcaption", 10) else 0
    if length == 9:
        return 3 if says(text, start, stop, b"plaintext", 9) else 0
    if length == 11:
        return 6 if says(text, start, stop, b"placeholder", 11) else 0
    if length == 13:
        return 4 if says(text, start, stop, b"foreignobject", 13) else 0
    return 5 if length == 14 and says(text, start, stop, b"annotation-xml", 14) else 0


cdef inline uint64_t packed(const Char* text, size_t start, size_t stop) noexcept nogil:
    """A number for a known name, its characters in lower case if it has up to eight; 0 for a longer one, or not in ASCII."""
    cdef uint64_t key = 0
    cdef uint32_t c
    cdef size_t index
    if stop - start > 8:
        return packed_long(text, start, stop)
    for index in range(start, stop):
        c = lower(at(text, index, stop))
        if c == 0 or c >= 0x80:
            return 0
        key = key << 8 | c
    return key


cdef inline bint stands(const Char* text, size_t start, size_t stop, const char* word, size_t length) noexcept nogil:
    """Tells whether a word stands at an index exactly so."""
    cdef size_t index
    if start > stop or stop - start < length:
        return False
    for index in range(length):
        if at(text, start + index, stop) != <uint8_t>word[index]:
            return False
    return True


cdef inline uint64_t mixed(uint64_t sum, uint32_t character) noexcept nogil:
    """A checksum of a name that stands in no table."""
    return (sum ^ character) * 0x9e3779b97f4a7c15ULL ^ sum >> 29


cdef inline uint32_t unended_place(uint64_t key) noexcept nogil:
    """The place of a name that needs no `;`, or the empty one where it would stand."""
    cdef uint32_t place = <uint32_t>((key * 0x9e3779b97f4a7c15ULL) >> 55)  # 9 bits
    while unended[place].key != key and unended[place].key != 0:
        place = (place + 1) & (UNENDED - 1)
    return place


cdef inline Tag* slot_of(uint64_t key) noexcept nogil:
    """The place of a tag, or the empty one where it would stand."""
    cdef uint64_t place = (key * 0x9e3779b97f4a7c15ULL) >> 54  # 10 bits
    while known_tags[place & (SLOTS - 1)].key != key and known_tags[place & (SLOTS - 1)].key != 0:
        place += 1
    return &known_tags[place & (SLOTS - 1)]


# Markup ----------------------------------------------------------------------------------------------------------------------

cdef inline size_t read_attributes(const Char* text, size_t index, size_t end, Span* values, Look* look) noexcept nogil:
    """Goes over attributes to the `>` that ends them, or to the end; notes the first value of each known one, if asked."""
    cdef size_t name, name_stop, value, value_stop, after, limit = index + max_attributes
    cdef uint32_t c
    cdef uint64_t key
    cdef int number
    cdef uint32_t seen = 0
    look.has_style = look.has_hidden = look.has_popover = look.is_closed = False
    while index < end:
        c = at(text, index, end)
        if c == c">":
            return index
        look.is_closed = c == c"/"
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
        if name < limit:
            after = min(name_stop, limit)
            if after - name == 5 and not look.has_style and says(text, name, after, b"style", 5):
                look.has_style, look.style = True, Span(min(value, limit), min(value_stop, limit))
            elif after - name == 6 and not look.has_hidden and says(text, name, after, b"hidden", 6):
                look.has_hidden, look.hidden = True, Span(min(value, limit), min(value_stop, limit))
            elif after - name == 7 and says(text, name, after, b"popover", 7):
                look.has_popover = True
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
        if is_letter(c) or (c == c"/" and index + 2 < end) or c == c"!" or c == c"?":
            return index
        index += 1


cdef inline size_t after_spaces(const Char* text, size_t index, size_t stop) noexcept nogil:
    while index < stop and is_space(at(text, index, stop)):
        index += 1
    return index


cdef inline bint may_matter(const Char* text, size_t index, size_t stop) noexcept nogil:
    """Tells whether rendering.style_effect has to be asked about a style: whatever matches its expression, and more."""
    cdef size_t place
    cdef uint32_t c
    while index < stop:
        c = lower(at(text, index, stop))
        if c == c"\\" or c == c"&":
            return True
        elif c == c"/":
            if at(text, index + 1, stop) == c"*":
                return True
        elif c == c"-":
            place = index + 1
            while place < stop and place < index + 5 and c"0" <= at(text, place, stop) <= c"9":
                place += 1
            if place == index + 5:
                return True
        elif c == c"n":
            if says(text, index, stop, b"none", 4):
                return True
        elif c == c"v":
            if says(text, index, stop, b"visib", 5):
                return True
        elif c == c"o":
            if says(text, index, stop, b"opacity", 7):
                return True
        elif c == c"h":
            if says(text, index, stop, b"hidden", 6):
                return True
            if says(text, index, stop, b"height", 6):
                place = after_spaces(text, index + 6, stop)
                if at(text, place, stop) == c":" and at(text, after_spaces(text, place + 1, stop), stop) == c"0":
                    return True
        elif c == c"c":
            if says(text, index, stop, b"clip", 4):
                return True
        elif c == c"s":
            if says(text, index, stop, b"scale", 5):
                return True
        elif c == c"t":
            if says(text, index, stop, b"transparent", 11):
                return True
        elif c == c"b":
            if says(text, index, stop, b"block", 5):
                return True
        elif c == c"f":
            if says(text, index, stop, b"flex", 4):
                return True
            if says(text, index, stop, b"font-size", 9):  # 0 or 1 at most, or less than that
                place = after_spaces(text, index + 9, stop)
                if at(text, place, stop) == c":":
                    place = after_spaces(text, place + 1, stop)
                    c = at(text, place, stop)
                    if c == c"0" or c == c"." or (c == c"1" and not c"0" <= at(text, place + 1, stop) <= c"9"):
                        return True
        elif c == c"g":
            if says(text, index, stop, b"grid", 4):
                return True
        elif c == c"i":
            if says(text, index, stop, b"inline", 6):
                return True
        index += 1
    return False


cdef inline bint holds(const Char* text, size_t index, size_t stop, const char* word, size_t length) noexcept nogil:
    """Tells whether a lower-case word stands somewhere between two places, in any case."""
    while index < stop:
        if lower(at(text, index, stop)) == <uint8_t>word[0] and says(text, index, stop, word, length):
            return True
        index += 1
    return False


cdef inline size_t script_end(const Char* text, size_t index, size_t end) noexcept nogil:
    """Where the end tag of a script begins: after a comment and a start tag within it, not before another one has come."""
    cdef uint32_t c
    cdef bint is_escaped = False, is_twice = False, is_end
    while index < end:
        c = at(text, index, end)
        if c == c"-" and is_escaped:
            if at(text, index + 1, end) == c"-" and at(text, index + 2, end) == c">":
                is_escaped = is_twice = False
                index += 2
        elif c == c"<":
            is_end = at(text, index + 1, end) == c"/"
            if says(text, index + (2 if is_end else 1), end, b"script", 6):
                c = at(text, index + (8 if is_end else 7), end)
                if is_gap(c) or c == c"/" or c == c">":
                    if not is_end:
                        is_twice = is_escaped
                    elif not is_twice:
                        return index
                    else:
                        is_twice = False
            elif not is_escaped and stands(text, index, end, b"<!--", 4):
                is_escaped = True
                index += 1
        elif not is_escaped:
            index = find(text, index + 1, end, c"<")
            continue
        index += 1
    return end


# The page --------------------------------------------------------------------------------------------------------------------

cdef class Page:
    """What was read so far; the twins of html_text.py and references.py explain the fields."""

    cdef str html
    cdef bint wants_texts, wants_references
    # Texts.
    cdef str title
    cdef list descriptions, keywords, blocks, labels, hidden, documents
    cdef object found  # of the tag that is read: rendering.Special or None
    cdef dict styles  # what was found out about them
    cdef Pieces block, hidden_block
    cdef bint has_pieces, has_hidden_pieces, in_link, is_within, follows, is_unusual, is_labelled, is_cut
    cdef size_t link_chars, style_size
    cdef int hidden_number, hidden_by, options
    cdef size_t asked
    # Open elements.
    cdef Element* elements
    cdef size_t open_count, open_room, paragraphs  # of which the last counts those that are open
    cdef Py_ssize_t hidden_place, shown_place
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
        self.hidden_block = Pieces(NULL, 0, 0)
        self.link = Pieces(NULL, 0, 0)
        self.elements = NULL
        self.scratch = NULL

    def __dealloc__(self):
        PyMem_Free(self.block.rows)
        PyMem_Free(self.hidden_block.rows)
        PyMem_Free(self.link.rows)
        PyMem_Free(self.elements)
        PyMem_Free(self.scratch)

    def __init__(self, str html, bint wants_texts, bint wants_references):
        self.html = html
        self.wants_texts, self.wants_references = wants_texts, wants_references
        self.title = self.base = self.reference = self.rel = self.kind = ""
        self.descriptions, self.keywords, self.blocks, self.labels, self.hidden, self.documents = [], [], [], [], [], []
        self.styles = {}
        self.hidden_place = self.shown_place = -1
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
    """The length of a frequent character reference and what it means; 0 for any other."""
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


cdef size_t reference_at(const Char* text, size_t index, size_t stop, uint32_t* found) noexcept nogil:
    """The length of the character reference that an `&` begins and its one or two characters; that of the `&` alone for none."""
    cdef size_t place = index + 1, length, step, best = 0
    cdef uint64_t key = 0
    cdef uint32_t c = at(text, place, stop), number = 0
    cdef Named* name
    found[0], found[1] = c"&", NONE
    if c == c"#":
        return number_at(text, index, stop, found)
    while place <= index + MAX_NAME and is_letter_or_digit(at(text, place, stop)):
        key = mixed(key, at(text, place, stop))
        place += 1
    length = place - index - 1
    if at(text, place, stop) == c";":
        name = &named[key >> 51]
        while name.length:
            if name.length == length:
                step = 0
                while step < length and name_letters[name.offset + step] == at(text, index + 1 + step, stop):
                    step += 1
                if step == length:
                    found[0], found[1] = name.first, name.second
                    return length + 2
            name = &named[(name - &named[0] + 1) & (NAMES - 1)]
    key = 0
    for step in range(min(length, MAX_UNENDED)):
        key = key << 8 | at(text, index + 1 + step, stop)
        number = unended_place(key)
        if unended[number].key:
            found[0], best = unended[number].character, step + 1
    return best + 1


cdef size_t number_at(const Char* text, size_t index, size_t stop, uint32_t* found) noexcept nogil:
    cdef size_t place = index + 2, first
    cdef uint32_t c = at(text, place, stop), number = 0
    cdef bint is_hex = c == c"x" or c == c"X"
    place += is_hex
    first = place
    while place < stop:
        c = at(text, place, stop)
        if c"0" <= c <= c"9":
            c -= c"0"
        elif is_hex and c"a" <= (c | 0x20) <= c"f":
            c = (c | 0x20) - c"a" + 10
        else:
            break
        if number < 0x110000:
            number = number * (16 if is_hex else 10) + c
        place += 1
    if place == first:
        return 1
    if number < LOW_NUMBERS:
        found[0] = low_numbers[number]
    elif number >= 0x110000 or 0xd800 <= number < 0xe000:
        found[0] = 0xfffd
    elif 0xfdd0 <= number < 0xfdf0 or 0xfffe <= number < 0x10000:
        found[0] = NONE
    else:
        found[0] = number
    return place - index + (at(text, place, stop) == c";")


cdef str folded_wide(Page page, const Char* text, const Pieces* pieces):
    """The same as `folded` where there are rare character references."""
    cdef size_t index, place, stop, step, size = 0, room
    cdef uint32_t[2] found
    cdef bint is_apart = False
    cdef uint32_t* out
    for index in range(pieces.count):
        size += pieces.rows[index].stop - pieces.rows[index].start + 1
    page.make_room((size + 1) * sizeof(uint32_t))
    out, room, size = <uint32_t*>page.scratch, page.scratch_size // sizeof(uint32_t), 0
    for index in range(pieces.count):
        is_apart |= pieces.rows[index].apart
        place, stop = pieces.rows[index].start, pieces.rows[index].stop
        while place < stop:
            found[0], found[1] = at(text, place, stop), NONE
            place += reference_at(text, place, stop, found) if found[0] == c"&" else 1
            for step in range(2):
                if found[step] == NONE:
                    continue
                if is_space(found[step]):
                    is_apart = True
                    continue
                if is_apart and size:
                    size = put(out, size, room, c" ")
                is_apart = False
                size = put(out, size, room, found[step])
        is_apart |= pieces.rows[index].apart
    return PyUnicode_FromKindAndData(sizeof(uint32_t), out, size) if size else ""


cdef str decoded(Page page, const Char* text, size_t start, size_t stop):
    """A value with the characters that its references name."""
    cdef size_t step, size = 0, room
    cdef uint32_t[2] found
    cdef uint32_t* out
    page.make_room((stop - start + 1) * sizeof(uint32_t))
    out, room = <uint32_t*>page.scratch, page.scratch_size // sizeof(uint32_t)
    while start < stop:
        found[0], found[1] = at(text, start, stop), NONE
        start += reference_at(text, start, stop, found) if found[0] == c"&" else 1
        for step in range(2):
            if found[step] != NONE:
                size = put(out, size, room, found[step])
    return PyUnicode_FromKindAndData(sizeof(uint32_t), out, size)


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
                    return folded_wide(page, text, pieces)
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
    cdef size_t start = span.start, stop = span.stop
    if find(text, start, stop, c"&") < stop:
        return decoded(page, text, start, stop).strip()
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
        return decoded(page, text, span.start, span.stop).lower()
    return page.html[span.start:span.stop].lower()


# Open elements ---------------------------------------------------------------------------------------------------------------

cdef inline bint allows_cdata(Page page) noexcept:
    return page.open_count > 0 and page.elements[page.open_count - 1].space != HTML_SPACE


cdef inline bint is_foreign(Page page) noexcept:
    cdef Element* top
    if page.open_count == 0:
        return False
    top = &page.elements[page.open_count - 1]
    return top.space != HTML_SPACE and not top.bits & (SVG_TEXT if top.space == SVG_SPACE else MATH_TEXT)


cdef inline size_t least_of(Page page) noexcept:
    return page.open_count - max_search if page.open_count > max_search else 0


cdef inline void cut_elements(Page page, size_t place) noexcept:
    while page.open_count > place:
        page.open_count -= 1
        page.paragraphs -= page.elements[page.open_count].bits & IS_P != 0
    if page.hidden_place >= <Py_ssize_t>place:
        page.hidden_place = -1
    if page.shown_place >= <Py_ssize_t>place:
        page.shown_place = -1


cdef void take_out(Page page, size_t place) noexcept:
    cdef size_t index
    page.paragraphs -= page.elements[place].bits & IS_P != 0
    for index in range(place + 1, page.open_count):
        page.elements[index - 1] = page.elements[index]
    page.open_count -= 1
    if page.hidden_place >= <Py_ssize_t>place:
        page.hidden_place = -1 if page.hidden_place == <Py_ssize_t>place else page.hidden_place - 1
    if page.shown_place >= <Py_ssize_t>place:
        page.shown_place = -1 if page.shown_place == <Py_ssize_t>place else page.shown_place - 1


cdef int push(Page page, uint64_t name, uint32_t bits, int space) except -1:
    cdef size_t room
    cdef Element* rows
    if page.open_count >= page.open_room:
        room = 2 * page.open_room + 64
        rows = <Element*>PyMem_Realloc(page.elements, room * sizeof(Element))
        if rows == NULL:
            raise MemoryError
        page.elements, page.open_room = rows, room
    page.elements[page.open_count] = Element(name, bits, space)
    page.open_count += 1
    page.paragraphs += bits & IS_P != 0
    return 1


cdef void close_elements(Page page, uint32_t closes, uint32_t stops) noexcept:
    cdef size_t place = page.open_count, least = least_of(page), found = 0
    cdef bint is_found = False, special = False
    cdef Element* element
    while place > least:
        place -= 1
        element = &page.elements[place]
        if element.bits & closes and element.space == HTML_SPACE:
            found, is_found = place, True
        elif element.bits & stops:
            break
        elif not is_found:
            special |= element.bits & IS_SPECIAL != 0
    if is_found and special and closes & (IS_LINK | IS_NOBR):
        take_out(page, found)
    elif is_found:
        cut_elements(page, found)


cdef Py_ssize_t open_table(Page page) noexcept:
    cdef size_t place = page.open_count, least = least_of(page)
    while place > least:
        place -= 1
        if not page.elements[place].bits & HAS_ROWS:
            break
        if page.elements[place].bits & IS_TABLE:
            return place
    return -1


cdef bint fosters(Page page) noexcept:
    if page.open_count == 0 or not page.elements[page.open_count - 1].bits & HAS_ROWS:
        return False
    return 0 <= open_table(page) <= page.hidden_place


cdef bint has_form(Page page) noexcept:
    cdef size_t place
    for place in range(least_of(page), page.open_count):
        if page.elements[place].bits & IS_FORM:
            return True
    return False


cdef void end_form(Page page, size_t place) noexcept:
    cdef Py_ssize_t hidden, shown
    while page.elements[page.open_count - 1].bits & IMPLIED and page.open_count > place + 1:
        cut_elements(page, page.open_count - 1)
    if page.open_count == place + 1:
        cut_elements(page, place)
        return
    hidden, shown = page.hidden_place, page.shown_place
    take_out(page, place)
    page.hidden_place = hidden - (hidden > <Py_ssize_t>place)
    page.shown_place = shown - (shown > <Py_ssize_t>place)


cdef int start_element(Page page, const Tag* tag, uint64_t name, bint foreign, bint is_closed) except -1:
    """Takes a start tag; tells whether its element is open now."""
    cdef int space
    if foreign:
        space = page.elements[page.open_count - 1].space if page.open_count else HTML_SPACE
        return 0 if is_closed else push(page, name, tag.bits, space)
    while is_foreign(page):
        cut_elements(page, page.open_count - 1)
    if tag.bits & IS_FORM and has_form(page):
        return 0
    if tag.bits & IS_TABLE and tag.bits & HAS_ROWS and open_table(page) >= 0:
        cut_elements(page, open_table(page))
    if tag.closes:
        close_elements(page, tag.closes, tag.stops)
    if tag.bits & P_CLOSER and page.paragraphs:
        close_elements(page, IS_P, BUTTON_SCOPE)
    if tag.bits & NEVER or (is_closed and tag.bits & FOREIGN_ROOT):
        return 0
    space = HTML_SPACE
    if tag.bits & FOREIGN_ROOT:
        space = SVG_SPACE if tag.number == SVG else MATH_SPACE
    return push(page, name, tag.bits, space)


cdef void end_element(Page page, const Tag* tag, uint64_t name) noexcept:
    cdef size_t place = page.open_count, least = least_of(page)
    cdef uint32_t heading = tag.bits & IS_HEADING
    cdef bint special = False
    cdef Element* element
    if place and page.elements[place - 1].space != HTML_SPACE:
        if tag.number == BR or tag.number == P:
            while is_foreign(page):
                cut_elements(page, page.open_count - 1)
        else:
            while place > least and page.elements[place - 1].space != HTML_SPACE:
                place -= 1
                if page.elements[place].name == name:
                    cut_elements(page, place)
                    return
    if tag.bits & NEVER:
        return
    place, least = page.open_count, least_of(page)
    while place > least:
        place -= 1
        element = &page.elements[place]
        if element.space == HTML_SPACE and (element.name == name or element.bits & heading):
            if tag.bits & IS_FORM:
                end_form(page, place)
            elif special and tag.bits & IS_FORMATTING:
                take_out(page, place)
            else:
                cut_elements(page, place)
            return
        if element.bits & tag.end_stops:
            return
        special |= element.bits & IS_SPECIAL != 0


# Texts -----------------------------------------------------------------------------------------------------------------------

cdef int end_block(Page page, const Char* text) except -1:
    cdef str block
    cdef Py_ssize_t link_chars
    if not page.has_pieces:
        return 0
    block = folded(page, text, &page.block)
    if block:
        link_chars = min(<Py_ssize_t>page.link_chars, len(block))
        page.blocks.append(row_of(Block, (block, link_chars)))
    page.has_pieces = False
    page.block.count = 0
    page.link_chars = 0
    return 0


cdef int end_hidden(Page page, const Char* text) except -1:
    cdef str block
    if not page.has_hidden_pieces:
        return 0
    block = folded(page, text, &page.hidden_block)
    if block:
        page.hidden.append(block)
    page.has_hidden_pieces = False
    page.hidden_block.count = 0
    return 0


cdef int read_text(Page page, const Char* text, size_t start, size_t stop) except -1:
    """Takes the text after a tag, unless it is white space at the beginning of a block."""
    cdef size_t place = start
    cdef bint is_hidden = page.is_within or (page.follows and page.shown_place < 0)
    if is_hidden and not page.is_within and fosters(page):
        while place < stop and is_space(at(text, place, stop)):
            place += 1
        is_hidden = place >= stop
        place = start
    if not (page.has_hidden_pieces if is_hidden else page.has_pieces):
        while place < stop and is_space(at(text, place, stop)):
            place += 1
    if place >= stop:
        return 0
    if is_hidden:
        add(&page.hidden_block, start, stop, False)
        page.has_hidden_pieces = True
    else:
        add(&page.block, start, stop, False)
        page.has_pieces = True
        if page.in_link:
            page.link_chars += stop - start
    return 0


cdef int style_of(Page page, const Char* text, Span span) except -1:
    cdef size_t place, stop
    cdef str style
    if span.stop - span.start <= 14 and says(text, span.start, span.stop, b"display:", 8):  # the most frequent ones
        place = span.start + 8
        while place < span.stop and is_blank(at(text, place, span.stop)):
            place += 1
        stop = span.stop - (at(text, span.stop - 1, span.stop) == c";")
        if stop - place == 4 and says(text, place, stop, b"none", 4):
            return HIDES
    if not may_matter(text, span.start, span.stop):
        return 0
    style = page.html[span.start:span.stop]
    known = page.styles.get(style)
    if known is None:
        page.style_size += span.stop - span.start
        if page.style_size > max_styles:
            return 0
        known = style_effect(style)
        STEPS(span.stop - span.start)
        page.styles[style] = known
    return known


cdef int effect_of(Page page, const Char* text, const Look* look) except -1:
    cdef int found = style_of(page, text, look.style) if look.has_style else 0
    if look.has_popover and not found & DISPLAYED:
        found |= HIDES
    if look.has_hidden and not found & DISPLAYED:
        if look.hidden.start >= look.hidden.stop or page.html[look.hidden.start:look.hidden.stop].lower() != "until-found":
            found |= HIDES
    return found


cdef object special_of(Page page, const Char* text, const Tag* tag, Span attributes):
    cdef size_t start = attributes.start, stop = attributes.stop
    if tag.number == OPTION or tag.number == OPTGROUP:
        if not holds(text, start, stop, b"label", 5) and not holds(text, start, stop, b"selected", 8):
            return bare_specials[tag.number]
    elif start >= stop:
        return bare_specials[tag.number]
    elif tag.flags & DOCUMENT and not (
        holds(text, start, stop, b"srcdoc", 6) or holds(text, start, stop, b"data", 4) or holds(text, start, stop, b"&#", 2)
    ):
        return nothing
    elif tag.number == TEXTAREA and not holds(text, start, stop, b"placeholder", 11):
        return nothing
    STEPS(attributes.stop - attributes.start)
    return special(tag_names[tag.number], page.html[attributes.start:attributes.stop])


cdef int looks(Page page, const Char* text, const Tag* tag, Span attributes, const Span* values, const Look* look) except -1:
    """What a tag does to its content, and, in `page.found`, what else there is to it."""
    cdef int effect = 0
    cdef bint hides = False
    if (look.has_style or look.has_hidden or look.has_popover) and tag.number != HTML and tag.number != BODY:
        effect = effect_of(page, text, look)
    if tag.flags & SPECIAL_TAG and attributes.start < attributes.stop:
        page.asked += 1
        if page.asked > max_special:
            attributes = Span(0, 0)
    if tag.number == INPUT:
        if not effect & HIDING and page.html[values[TYPE].start:values[TYPE].stop].lower() not in unlabelled:
            page.is_labelled = attributes.start < attributes.stop
    elif tag.flags & SPECIAL_TAG:
        what = special_of(page, text, tag, attributes)
        page.found = what
        hides = what[0]
    if (
        hides
        and tag.number != SELECT
        and tag.number != OPTION
        and tag.number != OPTGROUP
        and not (effect & DISPLAYED and tag.number == DIALOG)
    ):
        effect |= HIDES
    elif tag.flags & NEVER_RENDERED and not tag.flags & SPECIAL_TAG and not effect & DISPLAYED:
        effect |= HIDES
    elif tag.number == OPTION and page.options and not effect & HIDES:
        if page.options > 1 and hides:
            effect |= HIDES
        page.options = 2
    elif tag.number == SELECT:
        page.options = hides
    return effect


cdef int hide(Page page, const Tag* tag, int effect) except -1:
    page.hidden_place, page.shown_place = page.open_count - 1, -1
    page.follows, page.hidden_number, page.hidden_by = True, tag.number, effect & HIDING
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


cdef int read_shown(
    Page page, const Char* text, const Tag* tag, Span attributes, const Span* values
) except -1:
    """Takes the tag of an element that is shown."""
    cdef str label
    cdef int number
    if tag.flags & PARTING:
        end_block(page, text)
    if tag.number == A:
        page.in_link = True
    elif tag.number == META:
        if holds(text, attributes.start, attributes.stop, b"refresh", 7) and holds(
            text, attributes.start, attributes.stop, b"data:", 5
        ) and len(page.documents) < max_documents:
            page.documents.extend(special("meta", page.html[attributes.start:attributes.stop]).documents)
        read_meta(page, text, values)
    elif tag.number == IMG and attributes.start < attributes.stop:
        label = cleaned(page, text, values[ALT])
        if label:
            page.labels.append(label)
        if says(text, values[SRC].start, values[SRC].stop, b"data:image/svg", 14) and len(page.documents) < max_documents:
            page.found = special("img", page.html[attributes.start:attributes.stop])
    if page.is_labelled:  # an "input"
        for number in (ALT, VALUE, PLACEHOLDER):
            label = cleaned(page, text, values[number])
            if label:
                page.labels.append(label)
    if page.found is not None and page.found is not nothing:
        page.labels.extend(page.found.labels)
        page.documents.extend(page.found.documents)
        if page.found.shadow or page.found.documents:
            page.is_unusual = True
    return 0


cdef int read_end_tag(Page page, const Char* text, const Tag* tag) except -1:
    if tag.flags & PARTING:
        end_block(page, text)
    if tag.number == A:
        page.in_link = False
    elif tag.number == SELECT:
        page.options = 0
    return 0


cdef int after_tag(Page page, const Char* text, const Tag* tag, bint was_hidden) except -1:
    if not was_hidden and page.hidden_place >= 0 and page.shown_place < 0:
        end_block(page, text)
    if tag.flags & PARTING:
        end_hidden(page, text)
    return 0


cdef int read_end(Page page, const Char* text, const Tag* tag, uint64_t name) except -1:
    """Takes an end tag."""
    cdef bint was_hidden = page.shown_place < 0
    cdef size_t root = page.hidden_place
    end_element(page, tag, name)
    if not page.wants_texts:
        return 0
    if not page.follows:
        return read_end_tag(page, text, tag)
    if page.hidden_place < 0:
        end_hidden(page, text)
        page.follows = False
        if was_hidden and page.open_count >= root:
            return 0
    after_tag(page, text, tag, was_hidden)
    if page.shown_place >= 0 or page.hidden_place < 0:
        read_end_tag(page, text, tag)
    return 0


cdef bint shows_again(Page page, const Tag* tag, const Look* look, int effect) except -1:
    if page.hidden_number == DETAILS:
        return tag.number == SUMMARY and <Py_ssize_t>page.open_count == page.hidden_place + 2
    if page.hidden_by == INVISIBLE:
        return effect == VISIBLE
    if page.hidden_by & HIDES or effect & HIDING or not look.has_style:
        return False
    page.style_size += look.style.stop - look.style.start
    return page.style_size <= max_styles and undoes(page.html[look.style.start:look.style.stop], page.hidden_by)


cdef int read_start(
    Page page, const Char* text, const Tag* tag, uint64_t name, bint foreign, Span attributes, const Span* values, const Look* look
) except -1:
    """Takes a start tag."""
    cdef int effect = 0
    cdef bint was_hidden = page.shown_place < 0, is_open, followed = page.follows, fostered
    if page.wants_texts:
        page.found = None
        page.is_labelled = False
        if foreign:
            page.is_unusual |= tag.flags & UNUSUAL_FOREIGN != 0
            if followed:
                effect = HIDES if tag.flags & NEVER_RENDERED_SVG else effect_of(page, text, look)
            else:
                effect = effect_of(page, text, look)
                if tag.flags & NEVER_RENDERED_SVG:
                    effect = HIDES
        else:
            effect = looks(page, text, tag, attributes, values, look)
    fostered = followed and was_hidden and fosters(page) and not tag.bits & TABLE_PART
    is_open = start_element(page, tag, name, foreign, look.is_closed)
    if not page.wants_texts:
        return 0
    if followed:
        if page.hidden_place < 0:
            end_hidden(page, text)
            page.follows = False
        elif was_hidden and is_open and page.shown_place < 0 and (
            not effect & HIDING if fostered else shows_again(page, tag, look, effect)
        ):
            end_hidden(page, text)
            page.shown_place = page.open_count - 1
            return read_shown(page, text, tag, attributes, values)
        after_tag(page, text, tag, was_hidden)
        if page.hidden_place >= 0 and page.shown_place < 0:
            return 0
    if effect & HIDING and is_open and not (not followed and not foreign and tag.flags & VOID):
        return hide(page, tag, effect)
    if not foreign:
        return read_shown(page, text, tag, attributes, values)
    if tag.number == A and not followed:
        page.in_link = True
    elif tag.flags & PARTING:
        end_block(page, text)
    return 0


cdef int read_kind(Page page, const Char* text, const Tag* tag, const Look* look, size_t start, size_t stop) except -1:
    """Takes the content of an element without markup."""
    cdef bint is_hidden = page.follows and page.shown_place < 0
    cdef Span content = Span(start, stop)
    cdef str block
    if tag.flags & RAW:
        if (tag.number == SCRIPT or tag.number == STYLE) and not is_hidden and effect_of(page, text, look) & DISPLAYED:
            page.is_unusual = True
            end_block(page, text)
            read_text(page, text, start, stop)
            end_block(page, text)
        return 0
    if tag.number == TITLE:
        block = cleaned(page, text, content)
        if block and not page.title and not is_hidden:
            page.title = block
        elif block:
            page.hidden.append(block)
    elif tag.number == TEXTAREA and not is_hidden and effect_of(page, text, look) & HIDING:
        block = cleaned(page, text, content)
        if block:
            page.hidden.append(block)
    else:
        if tag.number != TEXTAREA:
            page.is_unusual = True
        read_text(page, text, start, stop)
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

cdef int read_beyond(Page page, const Char* text, size_t index, size_t end) except -1:
    """Takes the text behind the last tag that is read as one block. Twin of tags.text_beyond."""
    cdef size_t start = index, length
    while index < end:
        index = find(text, index, end, c"<")
        add(&page.block, start, index, True)
        length = 6 if says(text, index, end, b"<script", 7) else 5 if says(text, index, end, b"<style", 6) else 0
        start = at(text, index + 1 + length, end)
        if length and (is_gap(start) or start == c"/" or start == c">"):
            index = raw_end(text, index + 1 + length, end, text + index + 1, length)
        elif stands(text, index, end, b"<!--", 4):
            index = comment_end(text, index + 4, end)
        else:
            index = min(find(text, index + 1, end, c">") + 1, end)
        start = index
    page.has_pieces = True
    page.link_chars = 0
    return end_block(page, text)


cdef int read_page(Page page, const Char* text, size_t length) except -1:
    cdef size_t end = min(length, max_html), page_end, index, next_index, seen = 0
    cdef uint32_t c
    cdef uint64_t element
    cdef bint closing, is_text, is_ascii, foreign, has_left
    cdef const Tag* tag
    cdef Span name, attributes
    cdef Look look
    cdef Span[ATTRIBUTES] values
    cdef int number
    cdef str other
    cdef Py_UCS4 letter
    for number in range(ATTRIBUTES):
        values[number] = Span(0, 0)
    if end > max_tags and count(text, end, c"<") > max_tags:
        next_index = find(text, 0, end, c"<")
        for seen in range(max_tags - 1):
            next_index = find(text, next_index + 1, end, c"<")
        end = next_index
        page.is_cut = True
    index = text_end(text, 0, end)
    if page.wants_texts:
        add(&page.block, 0, index, False)
        page.has_pieces = True
    page_end = end  # while within a "noscript", `end` is where that ends
    while index < page_end:
        has_left = page.is_within and index >= end
        if has_left:
            end, page.is_within = page_end, False
        is_text = False
        tag = NULL
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
            element = tag.number
            is_ascii = True
            if not element:
                for next_index in range(name.start, name.stop):
                    c = at(text, next_index, name.stop)
                    is_ascii &= c < 0x80
                    element = mixed(element, lower(c))
                if not is_ascii:  # a few characters beyond ASCII have lower-case letters within
                    other = page.html[name.start:name.stop].lower()
                    tag = slot_of(key_of(other))
                    element = 0
                    for letter in other:
                        element = mixed(element, letter)
                element = tag.number if tag.number else element | <uint64_t>1 << 63
            attributes.start = name.stop
            if not closing and is_ascii and (0 < tag.number <= BASE or tag.number == INPUT):
                for number in range(ATTRIBUTES):
                    values[number] = Span(0, 0)
                attributes.stop = read_attributes(text, name.stop, end, values, &look)
            else:
                attributes.stop = read_attributes(text, name.stop, end, NULL, &look)
            index = min(attributes.stop + 1, end)
            foreign = not page.is_within and is_foreign(page)
            if foreign and not closing:
                if tag.bits & BREAKOUT:
                    foreign = False
                elif tag.number == FONT:
                    foreign = not open_elements.breaks_out("font", 0, page.html[attributes.start:attributes.stop])
                is_text = False
            elif not closing and is_ascii and name.stop < end:
                is_text = tag.flags & (WITHIN if page.is_within else RAW | TEXT | NO_SCRIPT)
            if page.is_within:
                if tag.flags & PARTING and page.wants_texts:
                    end_hidden(page, text)
            elif tag.flags & NO_SCRIPT and (is_text or (closing and has_left)):
                pass
            elif closing:
                read_end(page, text, tag, element)
            else:
                read_start(page, text, tag, element, foreign, attributes, values, &look)
            if page.wants_references and is_ascii and (tag.number == A or (not closing and IMG <= tag.number <= BASE)):
                read_reference(page, text, tag.number, closing, attributes, values)
            if is_text and tag.flags & NO_SCRIPT:
                is_text = False
                page.is_within = True
                end = raw_end(text, index, page_end, text + name.start, name.stop - name.start)
        elif c == c"!" and at(text, index + 2, end) == c"-" and at(text, index + 3, end) == c"-":
            index = comment_end(text, index + 4, end)
        elif c == c"!" and not page.is_within and allows_cdata(page) and stands(text, index, end, b"<![CDATA[", 9):
            index += 9
            page.is_unusual = True
            next_index = index
            while True:
                next_index = find(text, next_index, end, c"]")
                if next_index >= end or stands(text, next_index, end, b"]]>", 3):
                    break
                next_index += 1
            if page.wants_texts and index < next_index:
                read_text(page, text, index, next_index)
            if page.is_open and page.link.count < <size_t>max_text:
                add(&page.link, index, next_index, index >= next_index)
            index = min(next_index + 3, end)
        elif c == c"!" or c == c"?" or c == c"/":
            index = min(find(text, index + 2, end, c">") + 1, end)
        else:
            index += 1
        if not is_text:
            next_index = text_end(text, index, end)
            if page.wants_texts and index < next_index:
                read_text(page, text, index, next_index)
        else:
            if tag.number == PLAINTEXT:
                next_index = end
            elif tag.number == SCRIPT and not page.is_within:
                next_index = script_end(text, index, end)
            else:
                next_index = raw_end(text, index, end, text + name.start, name.stop - name.start)
            if page.wants_texts and not page.is_within:
                read_kind(page, text, tag, &look, index, next_index)
            elif page.wants_texts and not tag.flags & RAW and index < next_index:
                read_text(page, text, index, next_index)
        if page.is_open and page.link.count < <size_t>max_text:
            if is_text and tag.flags & RAW:
                add(&page.link, index, index, True)
            else:
                add(&page.link, index, next_index, index >= next_index)
        index = next_index
    if page.wants_texts:
        end_block(page, text)
        end_hidden(page, text)
        if page.is_cut:
            page.is_unusual = True
            read_beyond(page, text, page_end, min(length, max_html))
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
    said = None
    if texts:
        said = HtmlText(
            page.title, page.descriptions, page.keywords, page.blocks, page.labels, page.hidden, page.documents, page.is_unusual
        )
    return said, References(page.base, tuple(page.links), tuple(page.images)) if references else None


cdef size_t next_field(const Char* text, size_t index, size_t end) noexcept nogil:
    """The first index from one on where a tag of an input or a text area begins, `end` where there is none."""
    cdef uint32_t letter
    while True:
        index = find(text, index, end, c"<")
        if index >= end:
            return end
        index += 1
        letter = lower(at(text, index, end))
        if letter == c"i" and says(text, index, end, b"input", 5) or letter == c"t" and says(text, index, end, b"textarea", 8):
            return index - 1


def field(str html not None, size_t start):
    """Returns where from an index on a tag of an input or a text area may begin, -1 where none does; read up to `MAX_HTML`."""
    cdef const void* data = PyUnicode_DATA(html)
    cdef size_t end = min(<size_t>len(html), max_html), found
    cdef int kind = PyUnicode_KIND(html)
    if kind == 1:
        found = next_field(<const uint8_t*>data, start, end)
    elif kind == 2:
        found = next_field(<const uint16_t*>data, start, end)
    else:
        found = next_field(<const uint32_t*>data, start, end)
    return <Py_ssize_t>found if found < end else -1


def steps():
    """Returns how many steps all readings have taken together; 0 save in a build with `COUNT_STEPS`."""
    return steps_taken


# Tables ----------------------------------------------------------------------------------------------------------------------

cdef uint64_t key_of(str name) except? 0:
    """The same as `packed` of a string."""
    cdef uint64_t key = 0
    cdef size_t number
    if not name.isascii() or "\0" in name:
        return 0
    if len(name) > 8:
        return LONG_NAMES.index(name) + 1 if name in LONG_NAMES else 0
    for letter in name.lower():
        key = key << 8 | <uint64_t>ord(letter)
    return key


cdef int fill_tables() except -1:
    cdef Tag* tag
    cdef int number = OTHER
    meaningful = ("a", "title", "meta", "img", "area", "link", "base", "html", "body", "p", "br", "input", "select", "option", "optgroup")
    meaningful += ("dialog", "details", "summary", "iframe", "textarea", "plaintext", "script", "style", "font", "svg")
    sets = ((PARTING, frequent_tags.PARTING_TAGS), (VOID, tags.VOID_TAGS), (RAW, tags.RAW_TAGS), (TEXT, tags.TEXT_TAGS))
    sets += ((NO_SCRIPT, (tags.NO_SCRIPT,)), (NEVER_RENDERED, rendering.NEVER_RENDERED), (SPECIAL_TAG, rendering.SPECIAL))
    sets += ((UNUSUAL_FOREIGN, rendering.UNUSUAL_FOREIGN),)
    sets += ((DOCUMENT, ("iframe", "frame", "object", "embed")),)
    sets += ((NEVER_RENDERED_SVG, rendering.NEVER_RENDERED_SVG), (WITHIN, (*tags.RAW_TAGS, *tags.TEXT_TAGS[:-1])))
    others = set(open_elements.RULES).union(*(names for _, names in sets)) - set(meaningful)
    if len(meaningful) != OTHER - A or 3 * (len(meaningful) + len(others)) > SLOTS:
        raise ImportError("the tables do not fit the tags")
    for number in range(SLOTS):
        known_tags[number].bits, known_tags[number].end_stops = open_elements.UNKNOWN.bits, open_elements.UNKNOWN.end_stops
    number = OTHER
    for kind in (Block, PageLink, PageImage):
        if kind.__base__ is not tuple or kind.__basicsize__ != tuple.__basicsize__ or kind.__itemsize__ != tuple.__itemsize__:
            raise ImportError(f"{kind.__name__} is no mere tuple")
    for place, name in enumerate((*meaningful, *sorted(others))):
        tag = slot_of(key_of(name))
        if not key_of(name) or tag.key:
            raise ImportError(f"the tag {name} cannot be told")
        tag.key, tag.number = key_of(name), A + place
        tag.flags = sum(flag for flag, names in sets if name in names)
        rule = open_elements.RULES.get(name, open_elements.UNKNOWN)
        tag.bits, tag.closes, tag.stops, tag.end_stops = rule.bits, rule.closes, rule.stops, rule.end_stops
        tag_names[tag.number] = name
        if name in rendering.SPECIAL:
            bare_specials[tag.number] = special(name, "")
    for place, name in enumerate(("name", "property", "content", "alt", "value", "type", "href", "rel", "src", "placeholder")):
        attribute_keys[place] = key_of(name)
    return 0


cdef int fill_references() except -1:
    cdef uint64_t key
    cdef size_t offset = 0, place, total = 0
    for number in range(LOW_NUMBERS):
        text = unescape(f"&#{number};")
        low_numbers[number] = ord(text) if text else NONE
    for name, text in html5.items():
        total += 1
        if not name.isascii() or not name.rstrip(";").isalnum() or len(text) > 2 or offset + len(name) > NAME_LETTERS or 3 * total > NAMES:
            raise ImportError("the tables do not fit the character references")
        key = 0
        if name[-1] != ";":
            for letter in name:
                key = key << 8 | <uint64_t>ord(letter)
            if len(name) > MAX_UNENDED or len(text) > 1:
                raise ImportError(f"the reference {name} does not fit")
            unended[unended_place(key)] = Unended(key, ord(text))
            continue
        for place, letter in enumerate(name[:-1]):
            key = mixed(key, ord(letter))
            name_letters[offset + place] = ord(letter)
        place = key >> 51
        while named[place].length:
            place = (place + 1) & (NAMES - 1)
        named[place] = Named(offset, len(name) - 1, ord(text[0]), ord(text[1]) if len(text) > 1 else NONE)
        offset += len(name) - 1
    return 0


fill_tables()
fill_references()
