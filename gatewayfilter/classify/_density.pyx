# cython: language_level=3
"""Compiled twin of density.main_run and split: the same sums in the same order."""


cdef double _plain_weight(str text, double ideograph_weight):
    """What a character of the text says, in letters."""
    cdef Py_UCS4 character
    if text.isascii():
        return 1.0
    for character in text:
        if 0x3400 <= character <= 0x9fff or 0xac00 <= character <= 0xd7a3 or 0x3040 <= character <= 0x30ff:
            return ideograph_weight
    return 1.0


def main_run(blocks, weights, double threshold, double least, double max_density, double link_weight, double ideograph_weight):
    """Returns the run of blocks (start, end) that is the main text, `(0, 0)` for none.

    Args:
        blocks: (text, characters in links) each.
        weights: of the smoothing, an odd number.
    """
    cdef list rows = list(blocks)
    cdef Py_ssize_t count = len(rows), reach = len(weights) // 2, width = 2 * reach + 1
    cdef Py_ssize_t index, offset, start = 0, best_start = 0, best_end = 0
    cdef double weight, plain, linked, value, total = 0.0, best = least
    cdef double[::1] factors, densities
    from array import array
    factors = array("d", weights)
    densities = array("d", bytes(8 * (count + 2 * reach)))
    for index in range(count):
        text, link_chars = rows[index]
        weight = _plain_weight(text, ideograph_weight)
        linked = link_chars
        plain = (len(text) - linked) * weight
        densities[index + reach] = min(plain, max_density) - linked * weight * link_weight
    for index in range(count):
        value = 0.0
        for offset in range(width):
            value += factors[offset] * densities[index + offset]
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
