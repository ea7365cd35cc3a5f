# cython: language_level=3
"""Compiled twin of matches.Automaton: the same hits in the same order, by an automaton that knows word boundaries.

Text and phrases are UTF-8 with a separator byte at each edge of a run of letters of an alphabet; a closed end of a phrase has one
too. So the automaton of `ahocorasick_rs` reports a fifth of what it finds in the bare text, and nothing of it inside a word that
does not count there. One blank between two runs is written as one separator, which nothing else is: most of a text is words and
blanks. Time: linear in the text and its matches, but for sorting them.
"""

from cpython.array cimport array, clone
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport qsort

from array import array as new_array

from ahocorasick_rs import BytesAhoCorasick, Implementation

from gatewayfilter.classify.lexicon import match_filter as reference
from gatewayfilter.classify.lexicon import proximity as near

cdef extern from "Python.h":
    Py_UCS4* PyUnicode_AsUCS4(object text, Py_UCS4* room, Py_ssize_t size, int with_null) except NULL

cdef array _BYTES = new_array("B")
cdef array _INTS = new_array("i")
cdef array _CODES = new_array("I")
cdef int LEFT = reference.LEFT
cdef int RIGHT = reference.RIGHT
cdef int OPEN = reference.OPEN
cdef int EXCEPTION = reference.EXCEPTION
cdef int SIDE = reference.SIDE
cdef int WORD = reference.WORD
cdef int CONTEXT = reference.CONTEXT
cdef int MOST = near.MOST
cdef Py_ssize_t MAX_GAP = near.MAX_GAP
cdef Py_ssize_t MAX_GAP_HAN = near.MAX_GAP_HAN
cdef str SENTENCE_ENDS = near.SENTENCE_ENDS
cdef enum:
    ASCII = 128
    SEPARATOR = 0xff  # a byte that UTF-8 never has
    BLANK = 32
    REPLACEMENT = 0xfffd
    # What a phrase means, packed: which ends are open (as `LEFT` and `RIGHT`), its role, its category's number.
    ENDS = 3
    ROLE = 7
    ROLE_AT = 2
    CATEGORY_AT = 5
    # A side of a pair, packed: which ends are open, which side, the pair's number.
    SIDE_AT = 2
    PAIR_AT = 3

cdef bint[ASCII] _ENDS_SENTENCE
for _place in range(ASCII):
    _ENDS_SENTENCE[_place] = chr(_place) in SENTENCE_ENDS


cdef inline bint _is_alphabetic(Py_UCS4 character) noexcept:
    if character < ASCII:
        return 97 <= character <= 122 or 48 <= character <= 57 or 65 <= character <= 90
    if 0x0e00 <= character <= 0x0eff or 0x2e80 <= character <= 0xa4cf or character > 0xf8ff:
        return False
    return character.isalnum()


cdef struct _Match:
    int start
    int end
    int number


cdef class Finder:
    """The phrases of a lexicon. Immutable; safe to share between threads.

    Args:
        texts: the phrases, bare; none empty, none twice.
        patterns: what they mean, by the same numbers.
    """

    cdef bytes _kinds
    cdef object _find
    # What the phrases mean: of each, the first of its meanings and the first of its sides; those end where the next one's begin.
    cdef uint32_t[::1] _first_meanings, _first_sides
    cdef uint32_t[::1] _packed, _sides
    cdef list _meanings, _places
    cdef Py_ssize_t _categories

    def __init__(self, list texts not None, patterns):
        self._kinds = patterns.kinds
        self._places = patterns.places
        self._pack(patterns.meanings, patterns.sides, len(texts))
        if not texts:
            return
        encoded = [self._encoded(text, number) for number, text in enumerate(texts)]
        self._find = BytesAhoCorasick(encoded, implementation=Implementation.ContiguousNFA).find_matches_as_indexes

    cdef int _pack(self, list meanings, dict sides, Py_ssize_t count) except -1:
        """Packs what the phrases mean."""
        cdef Py_ssize_t number, meaning = 0, side = 0
        cdef tuple item
        cdef dict categories = {}
        if len(meanings) != count or len(self._kinds) != count:
            raise ValueError("each phrase must have a kind and its meanings")
        self._first_meanings = clone(_CODES, count + 1, True)
        self._first_sides = clone(_CODES, count + 1, True)
        self._packed = clone(_CODES, sum(map(len, meanings)), True)
        self._sides = clone(_CODES, sum(map(len, sides.values())), True)
        self._meanings = []
        for number in range(count):
            for item in meanings[number]:
                self._packed[meaning] = (
                    <uint32_t>(item[0] & ENDS) | <uint32_t>(item[1] & ROLE) << ROLE_AT
                    | <uint32_t>categories.setdefault(item[2], len(categories)) << CATEGORY_AT
                )
                self._meanings.append(item[3])
                meaning += 1
            for item in sides.get(number, ()):
                if not 0 <= item[1] < len(self._places):
                    raise ValueError(f"there is no pair {item[1]}")
                self._sides[side] = <uint32_t>(item[0] & ENDS) | <uint32_t>(item[2] & 1) << SIDE_AT | <uint32_t>item[1] << PAIR_AT
                side += 1
            self._first_meanings[number + 1] = <uint32_t>meaning
            self._first_sides[number + 1] = <uint32_t>side
        self._categories = len(categories)
        return 0

    cdef bytes _encoded(self, str text, Py_ssize_t number):
        """Returns a phrase as the automaton looks for it: an end that some meaning opens has no separator."""
        cdef uint32_t[::1] codes = _codes_of(text)
        cdef uint8_t[::1] data = clone(_BYTES, _room(text), False)
        cdef int[::1] before = clone(_INTS, _room(text) + 1, False)
        cdef Py_ssize_t first = 0, last = _separate(codes, data, before), entry
        cdef uint32_t opened = 0
        for entry in range(self._first_meanings[number], self._first_meanings[number + 1]):
            opened |= self._packed[entry] & ENDS
        for entry in range(self._first_sides[number], self._first_sides[number + 1]):
            opened |= self._sides[entry] & ENDS
        if opened & <uint32_t>LEFT and data[first] == SEPARATOR:
            first += 1
        if opened & <uint32_t>RIGHT and data[last - 1] == SEPARATOR:
            last -= 1
        return bytes(data[first:last])

    def scan(self, str text not None):
        """Returns what counts of a text; see matches.settle."""
        cdef Py_ssize_t size
        cdef uint32_t[::1] codes
        cdef uint8_t[::1] data
        cdef int[::1] before
        cdef list found
        cdef _Match* placed
        if not text or self._find is None:
            return {}
        codes = _codes_of(text)
        data = clone(_BYTES, _room(text), False)
        before = clone(_INTS, _room(text) + 1, False)
        size = _separate(codes, data, before)
        found = self._find(PyBytes_FromStringAndSize(<char*>&data[0], size), True)
        if not found:
            return {}
        placed = <_Match*>PyMem_Malloc(len(found) * sizeof(_Match))
        if placed is NULL:
            raise MemoryError
        try:
            _write_places(found, data, before, size, len(self._kinds), placed)
            return self._settle(text, codes, placed, len(found))
        finally:
            PyMem_Free(placed)

    cdef dict _settle(self, str text, uint32_t[::1] codes, const _Match* placed, Py_ssize_t count):
        """Returns what counts of matches that come first and longest first."""
        cdef Py_ssize_t length = codes.shape[0], at, entry, pair
        cdef dict hits = {}
        cdef uint32_t[::1] packed = self._packed, sides = self._sides
        cdef uint32_t[::1] first_meanings = self._first_meanings, first_sides = self._first_sides
        cdef int[::1] reach = clone(_INTS, self._categories, True)  # of each category, where its words end
        cdef const uint8_t[::1] kinds = self._kinds
        cdef int start, end, number, kind, touches, role, category, covered_to = 0
        cdef uint32_t item
        cdef bint covered
        cdef object meaning
        cdef _Beside beside = None
        for at in range(count):
            start, end, number = placed[at].start, placed[at].end, placed[at].number
            kind = kinds[number]
            touches = 0
            if kind & OPEN:  # at a closed end stands a separator: the automaton does not report what touches a letter there
                if kind & LEFT and start > 0 and _is_alphabetic(codes[start - 1]):
                    touches = LEFT
                if kind & RIGHT and end < length and _is_alphabetic(codes[end]):
                    touches |= RIGHT
            if kind & EXCEPTION and not touches and end > covered_to:
                covered_to = end
            covered = end <= covered_to
            for entry in range(first_meanings[number], first_meanings[number + 1]):
                item = packed[entry]
                role = item >> ROLE_AT & ROLE
                if touches & ~<int>(item & ENDS) or (covered and role != CONTEXT):
                    continue
                if role == WORD:
                    category = <int>(item >> CATEGORY_AT)
                    if end <= reach[category]:
                        continue
                    reach[category] = end
                meaning = self._meanings[entry]
                if meaning not in hits:
                    hits[meaning] = (start, end)
            if kind & SIDE and not covered:
                if beside is None:
                    beside = _Beside(text, codes, len(self._places))
                for entry in range(first_sides[number], first_sides[number + 1]):
                    item = sides[entry]
                    if not touches & ~<int>(item & ENDS):
                        beside.add(item >> PAIR_AT, item >> SIDE_AT & 1, start, end)
        if beside is not None:
            for pair in beside.order:
                hits.update(zip(self._places[pair], (<dict>beside.said[pair]).values()))
        return hits


cdef uint32_t[::1] _codes_of(str text):
    """Returns the characters of a text that has some."""
    cdef uint32_t[::1] codes = clone(_CODES, len(text), False)
    PyUnicode_AsUCS4(text, <Py_UCS4*>&codes[0], len(text), 0)
    return codes


cdef inline Py_ssize_t _room(str text):
    """Returns how many bytes a separated text may take: four a character, one an edge."""
    return len(text) * (2 if text.isascii() else 5) + 1


cdef int _write_places(list found, uint8_t[::1] data, int[::1] before, Py_ssize_t size, Py_ssize_t count, _Match* placed) except -1:
    """Writes the matches in characters, first and longest first.

    Args:
        found: number, start and end of each in bytes; separators at the ends stand for no character of the phrase.
        data: the separated text.
        before: of each byte, how many characters begin before it.
        size: bytes of the text.
        count: how many phrases there are.
        placed: room for all of them.
    """
    cdef Py_ssize_t number, start, end, at = 0
    cdef tuple match
    for match in found:
        number, start, end = match
        if not 0 <= start < end <= size or not 0 <= number < count:
            raise ValueError("the automaton reports a match that cannot be")
        if data[start] == SEPARATOR:
            start += 1
        if data[end - 1] == SEPARATOR:
            end -= 1
        placed[at].start = before[start]
        placed[at].end = before[end]
        placed[at].number = <int>number
        at += 1
    qsort(placed, at, sizeof(_Match), &_compare)
    return 0


cdef int _compare(const void* one, const void* other) noexcept nogil:
    cdef const _Match* left = <const _Match*>one
    cdef const _Match* right = <const _Match*>other
    if left.start != right.start:
        return -1 if left.start < right.start else 1
    return -1 if left.end > right.end else 1 if left.end < right.end else 0


cdef Py_ssize_t _separate(uint32_t[::1] codes, uint8_t[::1] data, int[::1] before) except -1:
    """Writes a text as UTF-8 with its separators, and for each byte how many characters begin before it.

    Halves of surrogate pairs become U+FFFD: they are no characters, and no phrase holds one.

    Args:
        codes: the text's characters.
        data: where the bytes are written, `_room` of them.
        before: where the numbers are written, one more.

    Returns:
        How many bytes were written.
    """
    cdef Py_ssize_t at = 0, place
    cdef bint inside = False, letter
    cdef uint32_t character
    for place in range(codes.shape[0]):
        character = codes[place]
        letter = _is_alphabetic(<Py_UCS4>character)
        if letter != inside:
            if letter and place > 1 and codes[place - 1] == BLANK and data[at - 2] == SEPARATOR:
                at -= 1  # one blank between two words: the separator before it is enough
            else:
                before[at] = <int>place
                data[at] = SEPARATOR
                at += 1
            inside = letter
        before[at] = <int>place
        if character < 0x80:
            data[at] = <uint8_t>character
            at += 1
            continue
        if 0xd800 <= character <= 0xdfff:  # half of a surrogate pair
            character = REPLACEMENT
        if character < 0x800:
            data[at] = <uint8_t>(0xc0 | character >> 6)
        else:
            if character < 0x10000:
                data[at] = <uint8_t>(0xe0 | character >> 12)
            else:
                data[at] = <uint8_t>(0xf0 | character >> 18)
                at += 1
                before[at] = <int>place + 1
                data[at] = <uint8_t>(0x80 | character >> 12 & 0x3f)
            at += 1
            before[at] = <int>place + 1
            data[at] = <uint8_t>(0x80 | character >> 6 & 0x3f)
        at += 1
        before[at] = <int>place + 1
        data[at] = <uint8_t>(0x80 | character & 0x3f)
        at += 1
    if inside:
        before[at] = <int>codes.shape[0]
        data[at] = SEPARATOR
        at += 1
    before[at] = <int>codes.shape[0]
    return at


cdef class _Beside:
    """The phrases of pairs as they come by their starts: near.places for all pairs at once."""

    cdef str text
    cdef uint32_t[::1] codes
    cdef int[::1] last  # of each pair and side, start and end of what waits for the other side; -1 for nothing
    cdef list said  # of each pair, its places by what they say; None before its first phrase
    cdef list order  # the pairs, by their first phrases

    def __init__(self, str text, uint32_t[::1] codes, Py_ssize_t count):
        self.text = text
        self.codes = codes
        self.last = clone(_INTS, 4 * count, False)
        self.last[:] = -1
        self.said = [None] * count
        self.order = []

    cdef int add(self, Py_ssize_t pair, Py_ssize_t side, int start, int end) except -1:
        cdef dict said = self.said[pair]
        cdef Py_ssize_t own = 4 * pair + 2 * side, others = 4 * pair + 2 * (1 - side)
        cdef int beside = self.last[others], beside_end = self.last[others + 1]
        if said is None:
            said = self.said[pair] = {}
            self.order.append(pair)
        elif len(said) == MOST:
            return 0
        if beside < 0 or beside_end > start or not self._is_close(beside_end, start):
            self.last[own] = start
            self.last[own + 1] = end
            return 0
        said.setdefault(self.text[beside:end], (beside, end))
        self.last[own] = self.last[others] = -1
        return 0

    cdef bint _is_close(self, Py_ssize_t left, Py_ssize_t right) except -1:
        cdef Py_ssize_t most = MAX_GAP, place
        if right - left > most:
            return False
        if self.codes[left - 1] >= 0x2e80 and self.codes[right] >= 0x2e80:
            most = MAX_GAP_HAN
        if right - left > most:
            return False
        for place in range(left, right):
            if _ends_sentence(self.codes[place]):
                return False
        return True


cdef inline bint _ends_sentence(uint32_t character):
    return _ENDS_SENTENCE[character] if character < ASCII else <Py_UCS4>character in SENTENCE_ENDS
