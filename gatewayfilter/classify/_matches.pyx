# cython: language_level=3
"""Compiled twin of matches.settle: the same hits in the same order."""

from cpython.array cimport array, clone

from array import array as new_array

from gatewayfilter.classify import matches as reference
from gatewayfilter.classify import near

cdef array _INTS = new_array("i")
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


cdef inline bint _is_alphabetic(Py_UCS4 character):
    if 97 <= character <= 122:
        return True
    if character == 32 or not character.isalnum():
        return False
    return character < 0x0e00 or 0x0eff < character < 0x2e80 or 0xa4cf < character <= 0xf8ff


cdef bint _is_close(str text, Py_ssize_t left, Py_ssize_t right):
    cdef Py_ssize_t most = MAX_GAP, place
    if right - left > most:
        return False
    if text[left - 1] >= 0x2e80 and text[right] >= 0x2e80:
        most = MAX_GAP_HAN
    if right - left > most:
        return False
    for place in range(left, right):
        if text[place] in SENTENCE_ENDS:
            return False
    return True


cdef class _Pairs:
    """The phrases of pairs as they come by their starts: near.places for all pairs at once."""

    cdef str text
    cdef int[::1] last  # of each pair and side, start and end of what waits for the other side; -1 for nothing
    cdef list said  # of each pair, its places by what they say; None before its first phrase
    cdef list order  # the pairs, by their first phrases

    def __init__(self, str text, Py_ssize_t count):
        self.text = text
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
        if beside < 0 or beside_end > start or not _is_close(self.text, beside_end, start):
            self.last[own] = start
            self.last[own + 1] = end
            return 0
        said.setdefault(self.text[beside:end], (beside, end))
        self.last[own] = self.last[others] = -1
        return 0


def settle(str text not None, list matches not None, patterns):
    """Returns what counts of a text; see matches.settle."""
    cdef bytes kinds = patterns.kinds
    cdef list meanings = patterns.meanings
    cdef dict sides = patterns.sides
    cdef list places = patterns.places
    cdef Py_ssize_t length = len(text), count = len(matches), place, pair
    cdef dict hits = {}, reach = {}
    cdef int number, start, end, kind, touches, at, before, opened, role, kept = 0, covered_to = 0
    cdef bint covered
    cdef tuple match, item
    cdef object meaning, known
    cdef _Pairs pairs = None
    if not count:
        return hits
    cdef const unsigned char[::1] kind_of = kinds
    # Of each start, its longest match that is kept; of each match, the next shorter one with the same start.
    cdef int[::1] first = clone(_INTS, length + 1, False)
    cdef int[::1] shorter = clone(_INTS, count, False)
    cdef int[::1] ends = clone(_INTS, count, False)
    cdef int[::1] numbers = clone(_INTS, count, False)
    cdef int[::1] touching = clone(_INTS, count, False)
    first[:] = -1
    for match in matches:
        number = match[0]
        start = match[1]
        end = match[2]
        kind = kind_of[number]
        touches = 0
        if kind & LEFT and start > 0 and _is_alphabetic(text[start - 1]):
            if not kind & OPEN:
                continue
            touches = LEFT
        if kind & RIGHT and end < length and _is_alphabetic(text[end]):
            if not kind & OPEN:
                continue
            touches |= RIGHT
        numbers[kept] = number
        ends[kept] = end
        touching[kept] = touches
        # They come by their ends: what comes later is longer. Looked at nevertheless, as the library might change.
        before = -1
        at = first[start]
        while at >= 0 and ends[at] > end:
            before, at = at, shorter[at]
        shorter[kept] = at
        if before < 0:
            first[start] = kept
        else:
            shorter[before] = kept
        kept += 1
    for place in range(length):
        at = first[place]
        while at >= 0:
            number, end, touches = numbers[at], ends[at], touching[at]
            at = shorter[at]
            kind = kind_of[number]
            if kind & EXCEPTION and not touches and end > covered_to:
                covered_to = end
            covered = end <= covered_to
            for item in <tuple?>meanings[number]:
                opened = item[0]
                role = item[1]
                if touches & ~opened or (covered and role != CONTEXT):
                    continue
                if role == WORD:
                    known = reach.get(item[2])
                    if known is not None and end <= <int>known:
                        continue
                    reach[item[2]] = end
                meaning = item[3]
                if meaning not in hits:
                    hits[meaning] = (place, end)
            if kind & SIDE and not covered:
                if pairs is None:
                    pairs = _Pairs(text, len(places))
                for item in <tuple?>sides[number]:
                    opened = item[0]
                    if not touches & ~opened:
                        pairs.add(item[1], item[2], <int>place, end)
    if pairs is not None:
        for pair in pairs.order:
            hits.update(zip(places[pair], (<dict>pairs.said[pair]).values()))
    return hits
