# cython: language_level=3
"""Compiled twins of views.normal_view and views.changed_lines: the same text, in one pass each."""

from cpython.array cimport array, clone
from cpython.unicode cimport PyUnicode_FromKindAndData
from libc.stdint cimport uint16_t, uint32_t

from array import array as new_array

cdef array _CODES = new_array("I")
cdef enum:
    BLANK = 32
    LINE = 10
cdef uint32_t UNKNOWN = 0
cdef uint32_t IN_CONTEXT = 0xffffffff
cdef uint32_t SEVERAL = 0x80000000


cdef class Folder:
    """What each character becomes in the normal view, learned as characters come.

    Args:
        alone: character → what it becomes whatever stands beside it; `None` when that matters, and at each half of a pair.
        size: characters from here on are not looked at: a text that has one is left to Python.
    """

    cdef object _alone
    cdef uint32_t[::1] _folded  # code + 1, `SEVERAL` + index of a text, `IN_CONTEXT` or `UNKNOWN`
    cdef list _several

    def __init__(self, alone, Py_ssize_t size):
        self._alone = alone
        self._folded = clone(_CODES, size, True)
        self._several = []

    cdef uint32_t _learn(self, Py_UCS4 character) except? 0:
        cdef str made = self._alone(chr(character))
        cdef uint32_t folded
        if made is None:
            folded = IN_CONTEXT
        elif len(made) == 1:
            folded = <uint32_t>ord(made) + 1
        else:
            folded = SEVERAL + <uint32_t>len(self._several)
            self._several.append(made)
        self._folded[<Py_ssize_t>character] = folded
        return folded

    def fold(self, str text not None):
        """Returns the normal view of a text, `None` where Python must make it."""
        cdef Py_ssize_t size = self._folded.shape[0], length = len(text), room = length, read = 0, written = 0, need
        cdef uint32_t[::1] folded = self._folded, out, more
        cdef uint32_t made, waiting = 0  # the blank or the end of a line that comes before the next character
        cdef Py_UCS4 character, part
        if not length:
            return text
        out = clone(_CODES, room, False)
        for character in text:
            if character >= size:
                return None
            made = folded[<Py_ssize_t>character]
            if made == UNKNOWN:
                made = self._learn(character)
            read += 1
            if made < SEVERAL:
                made -= 1
                if made == BLANK:
                    if not waiting:
                        waiting = BLANK
                    continue
                if made == LINE:
                    waiting = LINE
                    continue
                if waiting:
                    if written:
                        out[written] = waiting
                        written += 1
                    waiting = 0
                out[written] = made
                written += 1
                continue
            if made == IN_CONTEXT:
                return None
            several = <str>self._several[made - SEVERAL]
            # All that comes after it fits too, if none of it becomes several.
            need = written + 1 + len(several) + length - read
            if need > room:
                room = 2 * need
                more = clone(_CODES, room, False)
                more[:written] = out[:written]
                out = more
            for part in <str>several:
                if part == BLANK:
                    if not waiting:
                        waiting = BLANK
                    continue
                if part == LINE:
                    waiting = LINE
                    continue
                if waiting:
                    if written:
                        out[written] = waiting
                        written += 1
                    waiting = 0
                out[written] = part
                written += 1
        return PyUnicode_FromKindAndData(4, &out[0], written) if written else ""


# Kinds of characters (views.py makes the table).
cdef enum:
    LETTER = 1
    DIGIT = 2
    LEET = 4
    ALIKE = 8
    HIDDEN = 16
    HAN = 32
    MARK = 64
    SEPARATOR = 128
    HAN_MARK = 256
    SPELLING = LETTER + DIGIT
    MOST_MARKS = 3
    LEAST_SPELLED = 4


cdef class Squasher:
    """The squashed view, by lines.

    Args:
        kinds: code → bits of what it is; codes beyond are nothing.
        letters: code → the Latin letter that it looks like, itself for none.
        unleeted: the same for digits and signs.
    """

    cdef uint16_t[::1] _kinds
    cdef uint16_t[::1] _letters
    cdef uint16_t[::1] _unleeted

    def __init__(self, kinds, letters, unleeted):
        self._kinds = kinds
        self._letters = letters
        self._unleeted = unleeted

    def changed_lines(self, str text not None):
        """Returns the lines that squashing changes, squashed; see views.changed_lines."""
        return self._squashed(text, False)

    def squashed_view(self, str text not None):
        """Returns all lines, squashed; see views.squashed_view."""
        return self._squashed(text, True)

    cdef str _squashed(self, str text, bint all_lines):
        cdef Py_ssize_t size = self._kinds.shape[0], place = 0, start = 0
        cdef uint16_t[::1] kinds = self._kinds
        cdef Py_UCS4 character
        cdef int kind, marks = -1, han_marks = -1, word = 0, run = 0, singles = 0, gap = 0, token = 0
        cdef int steady = -1  # a kind of which one more changes nothing: letters from the third of a word on, ideographs in a row
        cdef bint told = False
        cdef list lines = []
        for character in text:
            kind = kinds[<Py_ssize_t>character] if character < size else 0
            if kind == steady:  # nearly always
                place += 1
                continue
            if kind == LETTER:
                steady = LETTER if token else -1
                if 0 < marks <= MOST_MARKS or word & ALIKE or run & LEET:
                    told = True
                marks = 0
                han_marks = -1
                word |= LETTER
                run |= LETTER
            else:
                steady = HAN if kind == HAN else -1
                if character == LINE:
                    if told or singles >= LEAST_SPELLED:
                        self._squash(text, start, place, lines, all_lines)
                    elif all_lines:
                        lines.append(text[start:place])
                    place += 1
                    start = place
                    told = False
                    marks = han_marks = -1
                    word = run = singles = gap = token = 0
                    continue
                if kind & HIDDEN or (kind & HAN and 0 < han_marks <= MOST_MARKS) or (kind & ALIKE and word & LETTER):
                    told = True
                marks = marks + 1 if kind & MARK and marks >= 0 else -1
                han_marks = 0 if kind & HAN else han_marks + 1 if kind & HAN_MARK and han_marks >= 0 else -1
                word = word | ALIKE if kind & ALIKE else 0
                run = run | kind if kind & DIGIT else 0
                if run & LETTER and run & LEET:
                    told = True
            if kind & SPELLING:
                if token:
                    if singles >= LEAST_SPELLED and token == 1:
                        singles -= 1  # what looked like the next single character begins a word
                        if singles >= LEAST_SPELLED:
                            told = True
                    singles = 0
                else:
                    singles = singles + 1 if singles and 0 < gap <= MOST_MARKS else 1
                token += 1
                gap = 0
            else:
                if singles >= LEAST_SPELLED:
                    told = True
                token = 0
                gap += 1
                if not kind & SEPARATOR:
                    singles = 0
            place += 1
        if told or singles >= LEAST_SPELLED:
            self._squash(text, start, place, lines, all_lines)
        elif all_lines:
            if not start:
                return text
            lines.append(text[start:place])
        return "\n".join(lines)

    cdef int _squash(self, str text, Py_ssize_t start, Py_ssize_t end, list lines, bint always) except -1:
        """Adds a line, squashed, if that changes it or always."""
        cdef Py_ssize_t length = end - start, read = 0, place
        cdef uint32_t[::1] line = clone(_CODES, length, False)
        cdef Py_UCS4 character
        cdef str squashed
        for place in range(start, end):
            character = text[place]
            if not self._kind(character) & HIDDEN:
                line[read] = character
                read += 1
        length = read
        self._translate(line, length, LETTER | ALIKE, LETTER, ALIKE, self._letters)
        length = self._without_marks(line, length, HAN, HAN_MARK)
        length = self._without_marks(line, length, LETTER, MARK)
        length = self._joined(line, length)
        self._translate(line, length, SPELLING, LETTER, DIGIT, self._unleeted)
        squashed = PyUnicode_FromKindAndData(4, &line[0], length) if length else ""
        if always or squashed != text[start:end]:
            lines.append(squashed)
        return 0

    cdef inline int _kind(self, uint32_t code) except -1:
        return self._kinds[code] if code < self._kinds.shape[0] else 0

    cdef int _translate(self, uint32_t[::1] line, Py_ssize_t length, int run, int one, int other, uint16_t[::1] table) except -1:
        """Translates the runs of characters that hold both kinds."""
        cdef Py_ssize_t place = 0, start
        cdef int found
        while place < length:
            start = place
            found = 0
            while place < length and self._kind(line[place]) & run:
                found |= self._kind(line[place])
                place += 1
            if found & one and found & other:
                for start in range(start, place):
                    line[start] = table[line[start]]
            place += 1
        return 0

    cdef Py_ssize_t _without_marks(self, uint32_t[::1] line, Py_ssize_t length, int between, int mark) except -1:
        """Takes away up to three marks in a row between characters of a kind. Returns the new length."""
        cdef Py_ssize_t read, written = 0
        cdef int marks = -1, kind
        for read in range(length):
            kind = self._kind(line[read])
            if kind & between:
                if 0 < marks <= MOST_MARKS:
                    written -= marks
                marks = 0
            else:
                marks = marks + 1 if kind & mark and marks >= 0 else -1
            line[written] = line[read]
            written += 1
        return written

    cdef Py_ssize_t _joined(self, uint32_t[::1] line, Py_ssize_t length) except -1:
        """Joins words that are spelled out. Returns the new length."""
        cdef Py_ssize_t read = 0, written = 0, end
        cdef int spelled
        while read < length:
            if not self._kind(line[read]) & SPELLING:
                line[written] = line[read]
                written += 1
                read += 1
                continue
            spelled = 0
            end = self._end_of_spelled(line, length, read, &spelled)
            while read < end:
                if spelled < LEAST_SPELLED or self._kind(line[read]) & SPELLING:
                    line[written] = line[read]
                    written += 1
                read += 1
        return written

    cdef Py_ssize_t _end_of_spelled(self, uint32_t[::1] line, Py_ssize_t length, Py_ssize_t start, int* spelled) except -1:
        """Returns where the single characters that follow each other from the start of a word end, and how many they are.

        A longer word, of which nothing is single, ends where it ends.
        """
        cdef Py_ssize_t place = start, end = start
        cdef int gap = 1
        while 0 < gap <= MOST_MARKS and place < length and self._kind(line[place]) & SPELLING:
            if place + 1 < length and self._kind(line[place + 1]) & SPELLING:
                if not spelled[0]:
                    while end < length and self._kind(line[end]) & SPELLING:
                        end += 1
                break
            spelled[0] += 1
            place += 1
            end = place
            gap = 0
            while place < length and gap <= MOST_MARKS and self._kind(line[place]) & SEPARATOR:
                gap += 1
                place += 1
        return end
