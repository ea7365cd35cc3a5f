"""Compiled twin of density.main_run and split: the same sums in the same order."""


cdef enum:
    MAX_WEIGHTS = 33  # eight standard deviations


cdef double plain_weight(str text, double ideograph_weight):
    """What a character of the text says, in letters."""
    cdef Py_UCS4 character
    if text.isascii():
        return 1.0
    for character in text:
        if 0x3400 <= character <= 0x9fff or 0xac00 <= character <= 0xd7a3 or 0x3040 <= character <= 0x30ff:
            return ideograph_weight
    return 1.0


def main_run(list blocks, weights, double threshold, double least, double max_density, double link_weight, double ideograph_weight):
    """Returns the run of blocks (start, end) that is the main text, `(0, 0)` for none.

    Args:
        blocks: (text, characters in links) each.
        weights: of the smoothing, an odd number of at most `MAX_WEIGHTS`.
    """
    cdef double[MAX_WEIGHTS] factors, window
    cdef Py_ssize_t width = len(weights), reach = width // 2, count = len(blocks), index, offset, start = 0, best_start = 0, best_end = 0
    cdef double weight, plain, linked, value, total = 0.0, best = least
    cdef str text
    if width > MAX_WEIGHTS:
        raise ValueError("too many weights")
    for offset in range(width):
        factors[offset], window[offset] = weights[offset], 0.0
    for index in range(-reach, count):  # of the block in the middle of the window
        for offset in range(width - 1):
            window[offset] = window[offset + 1]
        window[width - 1] = 0.0
        if index + reach < count:
            text, link_chars = blocks[index + reach]
            weight = plain_weight(text, ideograph_weight)
            linked = link_chars
            plain = (len(text) - linked) * weight
            window[width - 1] = min(plain, max_density) - linked * weight * link_weight
        if index < 0:
            continue
        value = 0.0
        for offset in range(width):
            value += factors[offset] * window[offset]
        total += value - threshold
        if total <= 0.0:
            total, start = 0.0, index + 1
        elif total > best:
            best, best_start, best_end = total, start, index + 1
    return best_start, best_end


def split(blocks, Py_ssize_t start, Py_ssize_t end, double link_heavy):
    """Returns the texts of the blocks in a run that are not mostly links, and of the others."""
    cdef list main = [], rest = []
    cdef Py_ssize_t index = 0
    cdef str text
    for text, link_chars in blocks:
        if start <= index < end and not link_chars > len(text) * link_heavy:
            main.append(text)
        else:
            rest.append(text)
        index += 1
    return main, rest
