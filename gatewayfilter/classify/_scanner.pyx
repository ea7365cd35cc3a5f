# cython: language_level=3
"""Compiled twin of the automaton and matches.settle: the same hits in the same order.

Most phrases can only begin where a word does, so that a trie walked from there looks at fewer places than an automaton that
reads each character, and what stands inside words never becomes a match. A phrase is in the trie as far as others share its
beginning; the rest is compared. Time: the text, times the longest phrase at worst.
"""

from cpython.array cimport array, clone
from libc.stdint cimport uint8_t, uint32_t

from array import array as new_array

from gatewayfilter.classify import matches as reference
from gatewayfilter.classify import near

cdef extern from "Python.h":
    Py_UCS4* PyUnicode_AsUCS4(object text, Py_UCS4* room, Py_ssize_t size, int with_null) except NULL

cdef array _GATES = new_array("B")
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
    FIRST_PLANE = 0x10000
    CODE = 0x1fffff  # the bits of a label that are its character
    INSIDE = 0x200000  # it leads to a phrase that also counts behind a letter
    PHRASE = 0x400000  # a phrase ends here
    TAIL = 0x800000  # only one phrase goes on from here
    ANYWHERE = 1  # a phrase begins so
    BEHIND = 2  # a phrase begins so that also counts behind a letter
    # What a phrase means, packed: which ends are open (as `LEFT` and `RIGHT`), its role, its category's number.
    ENDS = 3
    ROLE = 7
    ROLE_AT = 2
    CATEGORY_AT = 5
    # A side of a pair, packed: which ends are open, which side, the pair's number.
    SIDE_AT = 2
    PAIR_AT = 3


cdef inline bint _is_alphabetic(Py_UCS4 character) noexcept:
    if character < ASCII:
        return 97 <= character <= 122 or 48 <= character <= 57 or 65 <= character <= 90
    if 0x0e00 <= character <= 0x0eff or 0x2e80 <= character <= 0xa4cf or character > 0xf8ff:
        return False
    return character.isalnum()


cdef class Finder:
    """The phrases of a lexicon. Immutable; safe to share between threads.

    Args:
        texts: the phrases, bare; none empty, none twice.
        patterns: what they mean, by the same numbers.
    """

    cdef bytes _kinds
    cdef Py_ssize_t _longest
    # The trie, breadth first, so that the nodes below one stand side by side and those at the top close together: of each node, the
    # character that leads to it with bits, and the first node below it; those end where the next node's begin. Node 0 is the root.
    cdef uint32_t[::1] _nodes
    cdef int[::1] _values  # of each node, the number of its phrase, or where in `_tails` its tail is
    cdef uint32_t[::1] _tails  # of each tail, the number of its phrase, its length, its characters
    cdef int[::1] _begun  # of each character of the first plane, the node that it leads to from the root, 0 for none
    cdef int[::1] _pairs  # the same for two ASCII characters; -1 where the first one has to be looked at
    cdef uint8_t[::1] _gates  # of two ASCII characters, `ANYWHERE` and `BEHIND`
    # What the phrases mean: of each, the first of its meanings and the first of its sides; those end where the next one's begin.
    cdef uint32_t[::1] _first_meanings, _first_sides
    cdef uint32_t[::1] _packed, _sides
    cdef list _meanings, _places
    cdef Py_ssize_t _categories

    def __init__(self, list texts not None, patterns):
        cdef Py_ssize_t count = len(texts), nodes = 1, rest = 0, place, depth, node, next_node = 1, first, last, run
        cdef uint32_t shared = 0, following
        cdef Py_UCS4 character
        cdef str text
        cdef list ordered = sorted(texts)
        cdef dict numbers = {text: number for number, text in enumerate(texts)}
        self._kinds = patterns.kinds
        self._places = patterns.places
        self._pack(patterns.meanings, patterns.sides, count)
        self._longest = max(map(len, texts), default=0)
        # Each phrase needs as many nodes as it shares with a neighbour in the order, and one more; the rest of it is its tail.
        cdef uint32_t[::1] depths = clone(_CODES, count, False)
        cdef uint32_t[::1] open_before = clone(_CODES, count + 1, True)
        for place in range(count):
            text = ordered[place]
            following = _shared(text, ordered[place + 1]) if place + 1 < count else 0
            depths[place] = min(max(shared, following) + 1, <uint32_t>len(text))
            nodes += max(depths[place], shared) - shared
            if depths[place] < len(text):
                rest += 2 + len(text) - depths[place]
            shared = following
            kind = self._kinds[numbers[text]]
            open_before[place + 1] = open_before[place] + (not kind & LEFT or kind & OPEN != 0)
        self._nodes = clone(_CODES, 2 * (nodes + 1), True)
        self._values = clone(_INTS, nodes, True)
        self._tails = clone(_CODES, rest, True)
        # Of each node, the phrases that begin with it, in the order, and how many characters it stands for.
        cdef uint32_t[::1] firsts = clone(_CODES, nodes, True)
        cdef uint32_t[::1] lasts = clone(_CODES, nodes, True)
        cdef uint32_t[::1] depth_of = clone(_CODES, nodes, True)
        lasts[0] = <uint32_t>count
        rest = 0
        for node in range(nodes):
            self._nodes[2 * node + 1] = <uint32_t>next_node
            first, last, depth = firsts[node], lasts[node], depth_of[node]
            if open_before[last] > open_before[first]:
                self._nodes[2 * node] |= INSIDE
            if node and depths[first] == depth:
                text = ordered[first]
                if len(text) == depth:
                    self._nodes[2 * node] |= PHRASE
                    self._values[node] = numbers[text]
                else:
                    self._nodes[2 * node] |= TAIL
                    self._values[node] = <int>rest
                    self._tails[rest] = numbers[text]
                    self._tails[rest + 1] = <uint32_t>(len(text) - depth)
                    rest += 2
                    for place in range(depth, len(text)):
                        self._tails[rest] = <uint32_t>text[place]
                        rest += 1
                first += 1
            while first < last:
                text = ordered[first]
                character = text[depth]
                run = first + 1
                while run < last and (<str>ordered[run])[depth] == character:
                    run += 1
                self._nodes[2 * next_node] = <uint32_t>character
                firsts[next_node] = <uint32_t>first
                lasts[next_node] = <uint32_t>run
                depth_of[next_node] = <uint32_t>(depth + 1)
                next_node += 1
                first = run
        self._nodes[2 * nodes + 1] = <uint32_t>next_node
        self._begun = clone(_INTS, FIRST_PLANE, True)
        self._pairs = clone(_INTS, ASCII * ASCII, True)
        self._gates = clone(_GATES, ASCII * ASCII, True)
        for node in range(self._nodes[1], self._nodes[3] if nodes > 1 else 0):
            character = self._nodes[2 * node] & CODE
            if character < FIRST_PLANE:
                self._begun[<Py_ssize_t>character] = <int>node
            if character < ASCII:
                if self._nodes[2 * node] & (PHRASE | TAIL):
                    for place in range(ASCII):
                        self._gate(<Py_ssize_t>character * ASCII + place, -1, self._nodes[2 * node])
                    continue
                for place in range(self._nodes[2 * node + 1], self._nodes[2 * node + 3]):
                    if self._nodes[2 * place] & CODE < ASCII:
                        self._gate(
                            <Py_ssize_t>character * ASCII + (self._nodes[2 * place] & CODE), <int>place, self._nodes[2 * place]
                        )

    cdef int _gate(self, Py_ssize_t pair, int node, uint32_t label) except -1:
        self._pairs[pair] = node
        self._gates[pair] = ANYWHERE | BEHIND if label & INSIDE else ANYWHERE
        return 0

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

    cdef inline Py_ssize_t _next(self, Py_ssize_t node, uint32_t character) except -2:
        """Returns the node that a character leads to, -1 for none."""
        cdef Py_ssize_t first = self._nodes[2 * node + 1], last = self._nodes[2 * node + 3], middle
        cdef uint32_t label
        while last - first > 8:
            middle = (first + last) >> 1
            if self._nodes[2 * middle] & CODE <= character:
                first = middle
            else:
                last = middle
        while first < last:
            label = self._nodes[2 * first] & CODE
            if label == character:
                return first
            if label > character:
                return -1
            first += 1
        return -1

    def scan(self, str text not None):
        """Returns what counts of a text; see matches.settle."""
        cdef Py_ssize_t length = len(text), place, end, found, last = length - 1, pair, node, entry
        cdef dict hits = {}
        cdef uint32_t[::1] codes, nodes = self._nodes, packed = self._packed, sides = self._sides
        cdef int[::1] numbers, ends, reach
        cdef const uint8_t[::1] kinds
        cdef uint8_t[::1] gates = self._gates
        cdef int number, kind, touches, role, category, covered_to = 0
        cdef uint32_t label, item
        cdef bint inside = False, behind, covered
        cdef Py_UCS4 character
        cdef object meaning
        cdef _Beside beside = None
        if not length or not len(self._kinds):
            return hits
        kinds = self._kinds
        codes = clone(_CODES, length, False)
        PyUnicode_AsUCS4(text, <Py_UCS4*>&codes[0], length, 0)
        numbers = clone(_INTS, self._longest + 1, False)
        ends = clone(_INTS, self._longest + 1, False)
        reach = clone(_INTS, self._categories, True)  # of each category, where its words end
        for place in range(length):
            behind = inside
            character = codes[place]
            inside = _is_alphabetic(character)
            node = -1
            if character < ASCII and place < last and codes[place + 1] < ASCII:
                pair = <Py_ssize_t>character * ASCII + codes[place + 1]
                if not gates[pair] & (BEHIND if behind else ANYWHERE):
                    continue
                node = self._pairs[pair]
                end = place + 2
            if node < 0:
                end = place + 1
                node = self._begun[<Py_ssize_t>character] if character < FIRST_PLANE else self._next(0, character)
                if node <= 0:
                    continue
            found = 0
            while True:
                label = nodes[2 * node]
                if behind and not label & INSIDE:
                    break
                if label & PHRASE:
                    numbers[found] = self._values[node]
                    ends[found] = <int>end
                    found += 1
                elif label & TAIL:
                    pair = self._values[node]
                    end = self._end_of(codes, end, pair)
                    if end >= 0:
                        numbers[found] = self._tails[pair]
                        ends[found] = <int>end
                        found += 1
                    break
                if end == length:
                    break
                node = self._next(node, codes[end])
                if node < 0:
                    break
                end += 1
            while found > 0:  # the longest first
                found -= 1
                number = numbers[found]
                end = ends[found]
                kind = kinds[number]
                touches = 0
                if kind & LEFT and behind:
                    if not kind & OPEN:
                        continue
                    touches = LEFT
                if kind & RIGHT and end < length and _is_alphabetic(codes[end]):
                    if not kind & OPEN:
                        continue
                    touches |= RIGHT
                if kind & EXCEPTION and not touches and end > covered_to:
                    covered_to = <int>end
                covered = end <= covered_to
                for entry in range(self._first_meanings[number], self._first_meanings[number + 1]):
                    item = packed[entry]
                    role = item >> ROLE_AT & ROLE
                    if touches & ~<int>(item & ENDS) or (covered and role != CONTEXT):
                        continue
                    if role == WORD:
                        category = <int>(item >> CATEGORY_AT)
                        if end <= reach[category]:
                            continue
                        reach[category] = <int>end
                    meaning = self._meanings[entry]
                    if meaning not in hits:
                        hits[meaning] = (place, end)
                if kind & SIDE and not covered:
                    if beside is None:
                        beside = _Beside(text, len(self._places))
                    for entry in range(self._first_sides[number], self._first_sides[number + 1]):
                        item = sides[entry]
                        if not touches & ~<int>(item & ENDS):
                            beside.add(item >> PAIR_AT, item >> SIDE_AT & 1, <int>place, <int>end)
        if beside is not None:
            for pair in beside.order:
                hits.update(zip(self._places[pair], (<dict>beside.said[pair]).values()))
        return hits

    cdef Py_ssize_t _end_of(self, uint32_t[::1] codes, Py_ssize_t place, Py_ssize_t tail) except -2:
        """Returns where a tail ends that stands at a place, -1 where something else does."""
        cdef Py_ssize_t end = place + self._tails[tail + 1]
        if end > codes.shape[0]:
            return -1
        tail += 2
        for place in range(place, end):
            if codes[place] != self._tails[tail]:
                return -1
            tail += 1
        return end


cdef uint32_t _shared(str one, str other) except? 0:
    """Returns how many characters two texts begin with alike."""
    cdef Py_ssize_t place, least = min(len(one), len(other))
    for place in range(least):
        if one[place] != other[place]:
            return <uint32_t>place
    return <uint32_t>least


cdef class _Beside:
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
        if self.text[left - 1] >= 0x2e80 and self.text[right] >= 0x2e80:
            most = MAX_GAP_HAN
        if right - left > most:
            return False
        for place in range(left, right):
            if self.text[place] in SENTENCE_ENDS:
                return False
        return True
