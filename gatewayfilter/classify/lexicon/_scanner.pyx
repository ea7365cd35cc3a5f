# cython: language_level=3
"""Compiled twin of matches.Automaton: the same hits in the same order, by two tries that are walked where phrases may begin.

Most phrases begin and end at the edge of a word. One whose left end is closed is looked for at the beginnings of words alone, and
there only where a phrase begins with this word and what follows it, as far as small tables of such beginnings can tell: three of
four words begin no phrase, though most have some letters in common with one. Inside words only those with an open left end are
looked for, in a trie of their own. Nothing that does not count at its ends is reported, and what is found comes in the order in
which it is settled. Time: linear in the text and its matches for words that people write; in the text times the length of the
longest phrase at worst.
"""

from cpython.array cimport array, clone
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from array import array as new_array
from collections import Counter

from gatewayfilter.classify.lexicon import match_filter as reference
from gatewayfilter.classify.lexicon import proximity as near

cdef extern from "Python.h":
    Py_UCS4* PyUnicode_AsUCS4(object text, Py_UCS4* room, Py_ssize_t size, int with_null) except NULL

cdef array _BYTES = new_array("B")
cdef array _INTS = new_array("i")
cdef array _CODES = new_array("I")
cdef array _SHORTS = new_array("H")
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
    PLANE = 0x10000
    BEYOND = 0x110000
    REPLACEMENT = 0xfffd
    # A cell: its parent's cell and one more, 0 for an empty one; the base of its children, with bits that say that a phrase ends
    # here, and that a letter after it makes it another word; where a single phrase goes on, the place of its tail in place of the
    # base. Eight of them are a line of a cache.
    PARENT = 0
    BASE = 1
    CELL = 2
    ENDS_HERE = 1
    CLOSED = 2
    TAIL = 4
    BASE_AT = 3
    MOST_OF_TAIL = 0xffff  # characters
    TAILS = 0x80000000  # a base that is the place of a tail, while cells are made
    WIDE = 2  # levels that are laid out before all others: their nodes have many children
    # How phrases begin, as bits by the highest bits of hashes (FNV-1a): 7 of 100 are set with 55,000 phrases.
    SEED = 0x811c9dc5
    PRIME = 0x01000193
    WORD_BITS = 17
    LEAD_BITS = 19
    LEAD = 3  # characters that a lead has behind its word
    LONGEST = 63  # letters of a beginning that are told apart by a bit each
    TRIES = 64  # places that are tried for the children of a node before they come to the end
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

cdef uint8_t[PLANE] _LETTERS
cdef uint32_t _letter
for _letter in range(PLANE):
    _LETTERS[_letter] = _is_alphabetic(<Py_UCS4>_letter)


cdef bint _is_alphabetic(Py_UCS4 character) noexcept:
    if character < ASCII:
        return 97 <= character <= 122 or 48 <= character <= 57 or 65 <= character <= 90
    if 0x0e00 <= character <= 0x0eff or 0x2e80 <= character <= 0xa4cf or character > 0xf8ff:
        return False
    return character.isalnum()


cdef inline bint _is_letter(uint32_t character) noexcept:
    """Tells the same from a table."""
    return character < PLANE and _LETTERS[character]


cdef inline uint32_t _mixed(uint32_t mixed, uint32_t character) noexcept:
    """Returns a hash with one character more (FNV-1a over characters)."""
    return (mixed ^ character) * <uint32_t>PRIME


cdef struct Beginnings:
    # How phrases begin, as bits: words that are a phrase or nearly so, words with what follows, beginnings of words that are one.
    uint8_t words[0x4000]
    uint8_t openings[0x4000]
    uint8_t leads[0x10000]
    uint64_t opening_lengths  # a bit each, the last for all that are longer


cdef inline bint _is_noted(const uint8_t* table, uint32_t mixed, int bits) noexcept:
    return table[mixed >> (32 - bits + 3)] >> (mixed >> (32 - bits) & 7) & 1


cdef inline void _note(uint8_t* table, uint32_t mixed, int bits) noexcept:
    table[mixed >> (32 - bits + 3)] |= <uint8_t>(1 << (mixed >> (32 - bits) & 7))


cdef inline Py_ssize_t _end_of_word(
    const Beginnings* known, const uint32_t* codes, Py_ssize_t length, Py_ssize_t at, bint* begins
) noexcept:
    """Returns where the word ends that begins there, and tells whether a phrase may begin with it."""
    cdef uint32_t mixed = SEED
    cdef Py_ssize_t end = at, place
    begins[0] = False
    while end < length and _is_letter(codes[end]):
        mixed = _mixed(mixed, codes[end])
        end += 1
        if known.opening_lengths >> min(end - at, LONGEST) & 1 and _is_noted(known.openings, mixed, WORD_BITS):
            begins[0] = True
    if _is_noted(known.words, mixed, WORD_BITS):
        begins[0] = True
    elif end + LEAD <= length:
        for place in range(end, end + LEAD):
            mixed = _mixed(mixed, codes[place])
        if _is_noted(known.leads, mixed, LEAD_BITS):
            begins[0] = True
    return end


cdef class Finder:
    """The phrases of a lexicon. Immutable; safe to share between threads.

    Args:
        texts: the phrases, bare; none empty, none twice.
        patterns: what they mean, by the same numbers.
    """

    # What the phrases mean: of each, the first of its meanings and the first of its sides; those end where the next one's begin.
    cdef uint32_t[::1] _first_meanings, _first_sides
    cdef uint32_t[::1] _packed, _sides
    cdef list _meanings, _places
    cdef Py_ssize_t _categories
    # Two tries, of all phrases (node 0) and of those that may begin inside a word (node 1), as a double array: the node that
    # a character leads to is the cell at the sum of its parent's base and the character's code, if that cell names its parent.
    # Where one phrase is left, the codes of the rest of it lie together as a tail, after their number.
    cdef uint32_t[::1] _cells, _endings  # the second: the phrase that ends at a cell, or with its tail
    cdef uint16_t[::1] _tails
    cdef uint16_t[::1] _codes  # of each character, 0 for one that no phrase holds
    cdef uint8_t[::1] _kind  # of each phrase
    cdef Beginnings _beginnings
    cdef Py_ssize_t _longest, _most_codes
    cdef bint _any_inside

    def __init__(self, list texts not None, patterns):
        self._kind = new_array("B", patterns.kinds)
        self._places = patterns.places
        self._pack(patterns.meanings, patterns.sides, len(texts))
        self._plant(texts)

    cdef int _pack(self, list meanings, dict sides, Py_ssize_t count) except -1:
        """Packs what the phrases mean."""
        cdef Py_ssize_t number, meaning = 0, side = 0
        cdef tuple item
        cdef dict categories = {}
        if len(meanings) != count or self._kind.shape[0] != count:
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

    cdef int _plant(self, list texts) except -1:
        """Makes the tries."""
        cdef Py_ssize_t number, entry
        cdef uint32_t opened
        cdef uint8_t[::1] closed
        cdef list phrases = [], inside = []
        cdef str text
        closed = clone(_BYTES, len(texts), True)
        self._longest = max(map(len, texts), default=0)
        for number, text in enumerate(texts):
            opened = 0
            for entry in range(self._first_meanings[number], self._first_meanings[number + 1]):
                opened |= self._packed[entry] & ENDS
            for entry in range(self._first_sides[number], self._first_sides[number + 1]):
                opened |= self._sides[entry] & ENDS
            closed[number] = self._kind[number] & RIGHT and not opened & <uint32_t>RIGHT
            self._note_beginning(text, closed[number])
            phrases.append((text, number))
            if self._kind[number] & LEFT and opened & <uint32_t>LEFT:
                inside.append((text, number))
        phrases.sort()
        inside.sort()
        self._any_inside = bool(inside)
        self._grow(phrases + inside, len(phrases), closed)
        return 0

    cdef int _note_beginning(self, str text, bint closed) except -1:
        """Notes the word with which a phrase begins."""
        cdef Py_ssize_t end = 0, place
        cdef uint32_t mixed = SEED
        while end < len(text) and _is_letter(ord(text[end])):
            mixed = _mixed(mixed, ord(text[end]))
            end += 1
        if end == len(text) and not closed:
            _note(self._beginnings.openings, mixed, WORD_BITS)
            self._beginnings.opening_lengths |= <uint64_t>1 << min(end, LONGEST)
        elif len(text) < end + LEAD:
            _note(self._beginnings.words, mixed, WORD_BITS)
        else:
            for place in range(end, end + LEAD):
                mixed = _mixed(mixed, ord(text[place]))
            _note(self._beginnings.leads, mixed, LEAD_BITS)
        return 0

    cdef int _grow(self, list phrases, Py_ssize_t first_inside, uint8_t[::1] closed) except -1:
        """Makes the tries from phrases with their numbers; those of each trie are sorted.

        The first levels come first, then branch by branch, so that the cells of a phrase lie beside each other.
        """
        cdef list level = [(0, first_inside, 0, 0), (first_inside, len(phrases), 0, 1)], below, groups
        cdef Py_ssize_t depth
        self._number_characters(phrases)
        cells = _Cells(self._most_codes)
        for depth in range(WIDE):
            below = []
            for branch in level:
                below += self._branch(cells, phrases, branch)
            level = below
        level.reverse()
        while level:
            below = self._branch(cells, phrases, level.pop())
            below.reverse()
            level += below
        self._cells, self._endings = cells.packed(closed)
        self._tails = cells.tails
        return 0

    cdef list _branch(self, _Cells cells, list phrases, tuple branch):
        """Lays out the children of a node; returns them. Each is a range of phrases, its depth and its cell."""
        cdef Py_ssize_t low, high, depth, cell, begin, child
        cdef list groups = []
        cdef uint16_t code
        low, high, depth, cell = branch
        if depth and low + 1 == high and depth < len(<str>phrases[low][0]) <= depth + MOST_OF_TAIL:
            cells.end_with(cell, phrases[low][1], [self._code_of(character) for character in (<str>phrases[low][0])[depth:]])
            return groups
        while low < high and len(<str>phrases[low][0]) == depth:
            cells.end(cell, phrases[low][1])
            low += 1
        while low < high:
            begin = low
            code = self._code_of((<str>phrases[low][0])[depth])
            while low < high and self._code_of((<str>phrases[low][0])[depth]) == code:
                low += 1
            groups.append((code, begin, low))
        if not groups:
            return groups
        groups.sort()
        begin = cells.place(cell, [group[0] for group in groups])
        return [(low, high, depth + 1, begin + child) for child, low, high in groups]

    cdef int _number_characters(self, list phrases) except -1:
        """Gives each character of the phrases a code, frequent ones the smallest."""
        cdef str text
        counted = Counter()
        for text, _ in phrases:
            counted.update(text)
        self._codes = clone(_SHORTS, BEYOND, True)
        for code, (character, _) in enumerate(counted.most_common(0xffff), 1):
            self._codes[ord(character)] = code
        self._most_codes = min(len(counted), 0xffff)
        return 0

    cdef uint16_t _code_of(self, Py_UCS4 character) except? 0:
        return self._codes[<Py_ssize_t>character]

    def scan(self, str text not None):
        """Returns what counts of a text; see matches.settle."""
        cdef uint32_t[::1] codes
        if not text or not self._longest:
            return {}
        codes = _codes_of(text)
        settled = _Settled(self, text, codes)
        self._walk(codes, settled)
        return settled.all_hits()

    cdef int _walk(self, uint32_t[::1] codes, _Settled settled) except -1:
        """Walks a trie from where phrases may begin, and settles what ends on the way, the longest first."""
        cdef uint32_t[::1] cells = self._cells, endings = self._endings
        cdef uint16_t[::1] codes_of = self._codes, tails = self._tails
        cdef int[::1] numbers = clone(_INTS, self._longest, False), ends = clone(_INTS, self._longest, False)
        cdef Py_ssize_t length = codes.shape[0], at = -1, word_end = 0, place, count, parent, cell, tail, end
        cdef uint32_t bases[2]
        cdef uint32_t base
        cdef uint16_t code
        cdef const uint32_t* first = &codes[0]
        cdef bint begins
        bases[0], bases[1] = cells[BASE] >> BASE_AT, cells[CELL + BASE] >> BASE_AT
        while True:
            at += 1
            if at < word_end and not self._any_inside:
                at = word_end
            if at >= length:
                return 0
            parent = at < word_end
            if not parent and _is_letter(codes[at]):
                word_end = _end_of_word(&self._beginnings, first, length, at, &begins)
                if not begins:
                    continue
            code = codes_of[codes[at]]
            if not code:
                continue
            cell = <Py_ssize_t>bases[parent] + code
            count = 0
            place = at + 1
            while cells[CELL * cell + PARENT] == <uint32_t>parent + 1:
                base = cells[CELL * cell + BASE]
                if base & TAIL:
                    tail = base >> BASE_AT
                    end = place + tails[tail]
                    if end > length:
                        break
                    while place < end:
                        tail += 1
                        if codes_of[codes[place]] != tails[tail]:
                            break
                        place += 1
                    if place == end and not (base & CLOSED and place < length and _is_letter(codes[place])):
                        numbers[count] = <int>endings[cell]
                        ends[count] = <int>place
                        count += 1
                    break
                if base & ENDS_HERE and not (base & CLOSED and place < length and _is_letter(codes[place])):
                    numbers[count] = <int>endings[cell]
                    ends[count] = <int>place
                    count += 1
                if place == length:
                    break
                code = codes_of[codes[place]]
                if not code:
                    break
                place += 1
                parent = cell
                cell = <Py_ssize_t>(base >> BASE_AT) + code
            while count:
                count -= 1
                settled.take(numbers[count], <int>at, ends[count])


cdef class _Cells:
    """The cells of the double array while it is made.

    Args:
        codes: the greatest code of a character.
    """

    cdef object _parents, _bases, _endings
    cdef object tails
    cdef Py_ssize_t _codes, _free, _end  # below the one are no free cells, from the other on only such
    cdef Py_ssize_t _roomy  # where places for several children are tried first

    def __init__(self, Py_ssize_t codes):
        # No base is less than 0, and none is so near the end that a code leads beyond it.
        self._codes = codes
        self._parents, self._bases, self._endings = new_array("I"), new_array("I"), new_array("I")
        self.tails = new_array("H", [0])
        self._free = self._end = self._roomy = codes + 2
        self._extend(2 * codes + 4)
        self._parents[0] = self._parents[1] = 0xffffffff  # the roots

    cdef int _extend(self, Py_ssize_t size) except -1:
        for cells in (self._parents, self._bases, self._endings):
            if len(cells) < size:
                cells.extend([0] * (size - len(cells)))
        return 0

    cdef int end(self, Py_ssize_t cell, uint32_t number) except -1:
        """Notes the phrase that ends at a cell."""
        self._endings[cell] = number + 1
        return 0

    cdef int end_with(self, Py_ssize_t cell, uint32_t number, list codes) except -1:
        """Notes the only phrase that goes on from a cell, by the codes of its other characters."""
        self._endings[cell] = number + 1
        self._bases[cell] = TAILS + len(self.tails)
        self.tails.append(len(codes))
        self.tails.extend(codes)
        return 0

    cdef Py_ssize_t place(self, Py_ssize_t cell, list codes) except -1:
        """Returns the base of a cell whose children have these codes, the smallest first; their cells are taken."""
        cdef Py_ssize_t base = self._find(codes) - <Py_ssize_t>codes[0], code
        self._end = max(self._end, base + <Py_ssize_t>codes[len(codes) - 1] + 1)
        self._extend(max(self._end, base + 1) + self._codes + 1)
        for code in codes:
            self._parents[base + code] = cell + 1
        self._bases[cell] = base
        return base

    cdef Py_ssize_t _find(self, list codes) except -1:
        """Returns where the first of these children may be. Holes that were too small for some are left to single ones."""
        cdef uint32_t[::1] parents = self._parents
        cdef Py_ssize_t at, tried = 0, first = codes[0]
        while self._free < self._end and parents[self._free]:
            self._free += 1
        if len(codes) == 1:
            return self._free
        for at in range(max(self._free, self._roomy), self._end):
            if not parents[at]:
                if self._is_free(parents, at - first, codes):
                    return at
                tried += 1
                if tried == TRIES:
                    self._roomy = at
                    break
        return self._end

    cdef bint _is_free(self, uint32_t[::1] parents, Py_ssize_t base, list codes) except -1:
        cdef Py_ssize_t code
        for code in codes:
            if parents[base + code]:
                return False
        return True

    cdef tuple packed(self, uint8_t[::1] closed):
        """Returns all cells, and the phrases that end at them."""
        cdef Py_ssize_t cell
        cdef uint32_t[::1] packed = clone(_CODES, CELL * len(self._parents), True), numbers = clone(_CODES, len(self._parents), True)
        cdef uint32_t[::1] parents = self._parents, bases = self._bases, endings = self._endings
        for cell in range(parents.shape[0]):
            packed[CELL * cell + PARENT] = parents[cell]
            packed[CELL * cell + BASE] = (bases[cell] & ~<uint32_t>TAILS) << BASE_AT
            if endings[cell]:
                numbers[cell] = endings[cell] - 1
                packed[CELL * cell + BASE] |= TAIL if bases[cell] & <uint32_t>TAILS else ENDS_HERE
                packed[CELL * cell + BASE] |= CLOSED if closed[numbers[cell]] else 0
        return packed, numbers


cdef class _Settled:
    """What counts of the matches of a text, which come first and longest first."""

    cdef Finder _finder
    cdef str _text
    cdef uint32_t[::1] _codes
    cdef dict _hits
    cdef int[::1] _reach  # of each category, where its words end
    cdef int _covered_to
    cdef _Beside _beside

    def __init__(self, Finder finder, str text, uint32_t[::1] codes):
        self._finder = finder
        self._text = text
        self._codes = codes
        self._hits = {}
        self._reach = clone(_INTS, finder._categories, True)

    cdef int take(self, int number, int start, int end) except -1:
        """Takes the next match."""
        cdef Finder finder = self._finder
        cdef int kind = finder._kind[number], touches = 0, role, category
        cdef uint32_t item
        cdef Py_ssize_t entry
        cdef bint covered
        cdef object meaning
        if kind & OPEN:  # at a closed end no match touches a letter
            if kind & LEFT and start > 0 and _is_letter(self._codes[start - 1]):
                touches = LEFT
            if kind & RIGHT and end < self._codes.shape[0] and _is_letter(self._codes[end]):
                touches |= RIGHT
        if kind & EXCEPTION and not touches and end > self._covered_to:
            self._covered_to = end
        covered = end <= self._covered_to
        for entry in range(finder._first_meanings[number], finder._first_meanings[number + 1]):
            item = finder._packed[entry]
            role = item >> ROLE_AT & ROLE
            if touches & ~<int>(item & ENDS) or (covered and role != CONTEXT):
                continue
            if role == WORD:
                category = <int>(item >> CATEGORY_AT)
                if end <= self._reach[category]:
                    continue
                self._reach[category] = end
            meaning = finder._meanings[entry]
            if meaning not in self._hits:
                self._hits[meaning] = (start, end)
        if kind & SIDE and not covered:
            if self._beside is None:
                self._beside = _Beside(self._text, self._codes, len(finder._places))
            for entry in range(finder._first_sides[number], finder._first_sides[number + 1]):
                item = finder._sides[entry]
                if not touches & ~<int>(item & ENDS):
                    self._beside.add(item >> PAIR_AT, item >> SIDE_AT & 1, start, end)
        return 0

    cdef dict all_hits(self):
        """Returns what counts, pairs too."""
        cdef Py_ssize_t pair, number
        cdef list meanings
        cdef dict said
        if self._beside is not None:
            for pair in self._beside.order:
                said = self._beside.said[pair]
                if said is not None:
                    meanings = self._finder._places[pair]
                    for number, place in enumerate(said.values()):
                        self._hits[meanings[number]] = place
        return self._hits


cdef uint32_t[::1] _codes_of(str text):
    """Returns the characters of a text that has some. Halves of surrogate pairs become U+FFFD: no phrase holds one."""
    cdef uint32_t[::1] codes = clone(_CODES, len(text), False)
    cdef Py_ssize_t at
    PyUnicode_AsUCS4(text, <Py_UCS4*>&codes[0], len(text), 0)
    if not text.isascii():
        for at in range(codes.shape[0]):
            if 0xd800 <= codes[at] <= 0xdfff:
                codes[at] = REPLACEMENT
    return codes


cdef class _Beside:
    """The phrases of pairs as they come by their starts: near.places for all pairs at once."""

    cdef str text
    cdef uint32_t[::1] codes
    cdef int[::1] last  # of each pair and side, start and end of what waits for the other side; -1 for nothing
    cdef list said  # of each pair, its places by what they say; None before the first
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
            if beside < 0 and self.last[own] < 0:
                self.order.append(pair)
        elif len(said) == MOST:
            return 0
        if beside < 0 or beside_end > start or not self._is_close(beside_end, start):
            self.last[own] = start
            self.last[own + 1] = end
            return 0
        if said is None:
            said = self.said[pair] = {}
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
