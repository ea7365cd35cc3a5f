"""Compiled twin of the loops of score.py: the same figures, added up in the same order."""

def best(found, dict factors_of not None, dict zone_factors not None, part, near):
    """Returns each meaning where it counts most; see score.best."""
    cdef dict best = {}, factors, hits
    cdef tuple place, known
    cdef object zone, text, placed, meaning, role, factor, weight, word
    for zone, text, placed, hits in found:
        factors = factors_of[zone]
        for meaning, place in hits.items():
            role = meaning.role
            factor = factors[role]
            weight = factor if role is part else meaning.weight * factor
            known = best.get(meaning)
            if known is not None and abs(<double>weight) <= abs(<double>known[2]):
                if weight or factor <= zone_factors[known[3]]:
                    continue
            word = text[place[0] : place[1]] if role is near else meaning.phrase
            best[meaning] = (word, meaning.category, weight, zone, place[0] if placed else -1)
    return best


def counted_of(dict best not None, dict combinations not None, double chance, part, near):
    """Returns what counts for each category; see score.counted_of."""
    cdef dict counted = {}
    cdef list counting
    cdef tuple item, parts, least
    cdef object meaning, role
    cdef str name
    for meaning, item in best.items():
        name = meaning.category
        if name == "any":
            continue
        role = meaning.role
        if role is part:
            for combination, parts in combinations.get(meaning, ()):
                least = _least(best, parts)
                if least is not None:
                    whole = (str(combination), name, round(combination.weight * least[2] * chance, 3), least[3], least[4])
                    counting = counted.get(name)
                    if counting is None:
                        counting = counted[name] = []
                    counting.append((whole, abs(combination.weight), False))
            continue
        counting = counted.get(name)
        if counting is None:
            counting = counted[name] = []
        if role is near:
            pair = (item[0], name, round(<double>item[2] * chance, 3), item[3], item[4])
            counting.append((pair, meaning.weight, True))
        else:
            counting.append((item, abs(<double>meaning.weight), False))
    return counted


cdef tuple _least(dict best, tuple parts):
    """Returns the first of the parts that weigh least where each counts most, `None` where one is missing."""
    cdef tuple least = None, found
    for part in parts:
        found = best.get(part)
        if found is None:
            return None
        if least is None or <double>found[2] < <double>least[2]:
            least = found
    return least


def add_up(list counted not None, dict zone_factors not None, dict decisive_zones not None, double decisive, double weak, double head):
    """Returns the evidence of a category and what it adds up to; see score.add_up."""
    cdef list evidence = []
    cdef tuple found
    cdef double strong = 0.0, light = 0.0, against = 0.0, weight, own_weight
    cdef Py_ssize_t words = 0, signs = 0
    cdef bint told = False, headed = False, paired
    for found, own, pair in counted:
        own_weight, paired = own, pair
        evidence.append(found)
        weight = found[2]
        if weight < 0:
            against -= weight
            if own_weight >= decisive:
                signs += decisive_zones.get(found[3], 0)
            continue
        words += 1
        if own_weight < weak:
            light += weight
            continue
        strong += weight
        told = told or not paired
        headed = headed or (own_weight >= head and zone_factors[found[3]] > 1)
    return evidence, strong, light, against, words, signs, told, headed


def heaviest(evidence, str winner not None):
    """Returns evidence in the order in which it is shown; see score.heaviest."""
    cdef list keyed = []
    cdef tuple found
    cdef Py_ssize_t place = 0
    for found in evidence:
        keyed.append((found[1] != winner, -abs(found[2]), found[0], place, found))
        place += 1
    keyed.sort()
    return [found[4] for found in keyed]
