# cython: freelist=8
"""Compiled twin of near_rules.py: the same steps, with dictionaries that are read without a call where they have the key."""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.ref cimport PyObject
from cpython.set cimport PySet_Contains
from cpython.unicode cimport PyUnicode_GET_LENGTH

from gatewayfilter.compiled import load
from gatewayfilter.engine.adblock.index.covering_names import host_names, is_same_site
from gatewayfilter.engine.adblock.index.name_table import HEAD
from gatewayfilter.urls import host_suffixes, suffix_rules

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)

cdef enum:
    FIRST_PARTY = 1
    THIRD_PARTY = 4096  # 1 << PARTY_SHIFT
    CANCELLED = 134217728  # as in rule_table.py

cdef Py_ssize_t head = HEAD
cdef object any_suffixes = host_suffixes.__wrapped__  # each pair is new once: its names need not be kept
cdef object urls = load("gatewayfilter._urls")
cdef object plain_suffixes = None if urls is None else urls.suffixes
cdef object plain_names = None if urls is None else urls.names
cdef object plain_same_site = None if urls is None else urls.same_site
cdef dict suffix_table = None
cdef int deepest = 0


cdef int read_suffixes() except -1:
    global suffix_table, deepest
    if suffix_table is None:
        suffix_table, deepest = suffix_rules()
    return 0


cdef bint is_plain(str host) except -1:
    """Returns whether a host is a name in ASCII, for certain: no IP literal, whose last character is a digit or a bracket."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(host)
    if plain_names is None or size == 0 or not PyUnicode_IS_ASCII(host):
        return False
    cdef Py_UCS4 first = host[0], last = host[size - 1]
    return first != 91 and not 48 <= last <= 57


@cython.final
cdef class Pair:
    """Two hosts, with their names computed where they are needed."""

    cdef str host, source
    cdef bint plain_host, plain_source
    cdef tuple of_host, of_source

    def __cinit__(self, str host not None, str source not None):
        self.host = host
        self.source = source
        self.plain_host = is_plain(host)
        self.plain_source = is_plain(source)
        self.of_host = None
        self.of_source = None
        read_suffixes()

    cdef tuple suffixes(self):
        return <tuple?>(plain_suffixes(self.host) if self.plain_host else any_suffixes(self.host))

    cdef tuple names(self):
        """The names that cover the host of the request."""
        if self.of_host is None:
            self.of_host = <tuple?>(
                plain_names(self.host, suffix_table, deepest) if self.plain_host else host_names(self.host)
            )
        return self.of_host

    cdef tuple source_names(self):
        """The names that cover the host of the source, none where there is none."""
        if self.of_source is None:
            if self.plain_source:
                self.of_source = <tuple?>plain_names(self.source, suffix_table, deepest)
            else:
                self.of_source = <tuple?>host_names(self.source) if self.source else ()
        return self.of_source

    cdef unsigned int party(self) except 0:
        """Returns what `party_of` does."""
        if not self.source:
            return FIRST_PARTY | THIRD_PARTY
        if self.host == self.source:
            return FIRST_PARTY
        if self.plain_host and self.plain_source:
            return FIRST_PARTY if plain_same_site(self.host, self.source, suffix_table, deepest) else THIRD_PARTY
        return FIRST_PARTY if is_same_site(self.host, self.source) else THIRD_PARTY


cdef inline object value_of(object table, object key):
    """Returns the value of a key; a table that computes missing ones is asked for it."""
    cdef PyObject* found = PyDict_GetItemWithError(table, key)
    return table[key] if found is NULL else <object>found


cdef inline object value_or_none(object table, object key):
    cdef PyObject* found = PyDict_GetItemWithError(table, key)
    return None if found is NULL else <object>found


def near_rules(tuple tables not None, str host not None, str source not None, unsigned int reach):
    """Returns what `find_near_rules` does."""
    cdef list certain = [], tested = []
    gather(tables, Pair(host, source), reach, 0, certain, tested)
    if tested:
        certain.extend(tested)
    return tuple(certain)


def proximity(tuple tables not None, str host not None, str source not None, unsigned int types):
    """Returns what `find_proximity` does."""
    cdef Pair pair = Pair(host, source)
    cdef unsigned int party = pair.party(), union = 0, mask
    cdef list certain = [], tested = []
    gather(tables, pair, types * party, CANCELLED, certain, tested)
    if tested:
        certain.extend(tested)
    for near in certain:
        mask = (<tuple>near)[0]
        union |= mask
    in_url = tables[5]
    if tables[6] is not None:
        in_url = literals_between(tables[6], pair, types * party)
    return party, in_url, union, tuple(certain)


cdef int gather(tuple tables, Pair pair, unsigned int reach, unsigned int without, list certain, list tested) except -1:
    """Adds the candidate rules between two hosts, but for those with a flag in their masks."""
    cdef str name
    hosts, host_rules, pages = tables[0], tables[1], tables[2]
    for name in pair.suffixes():
        key = value_or_none(value_of(hosts, name[:head]), name)
        if key is not None:
            add_near(value_of(host_rules, key), pair, reach, without, certain, tested)
    if pages and pair.source:
        page_rules = tables[3]
        for name in pair.source_names():
            key = value_or_none(pages, name)
            if key is not None:
                add_near(value_of(page_rules, key), pair, reach, without, certain, tested)
    add_near(tables[4], pair, reach, without, certain, tested)
    return 0


cdef int add_near(posted, Pair pair, unsigned int reach, unsigned int without, list certain, list tested) except -1:
    """Adds the rules of a key that may apply to those without a remaining test, or to those with one."""
    cdef unsigned int mask = posted.mask
    cdef dict fitting
    if not mask & reach:
        return 0
    for found in <tuple?>posted.always:
        add_rule(<tuple?>found, pair, reach, without, certain, tested)
    by_page = posted.by_page
    if not by_page or not pair.source:
        return 0
    fitting = None
    for name in pair.source_names():
        paged = value_or_none(by_page, name)
        if paged is not None:
            if fitting is None:
                fitting = {}
            for found in <list?>paged:
                fitting[found[0][1]] = found
    if fitting is not None:
        for found in fitting.values():
            add_rule(<tuple?>found, pair, reach, without, certain, tested)
    return 0


cdef int add_rule(tuple found, Pair pair, unsigned int reach, unsigned int without, list certain, list tested) except -1:
    cdef tuple near = <tuple?>found[0]
    cdef unsigned int mask = near[0]
    if not mask & reach or mask & without:
        return 0
    rule = found[1]
    if rule is None:
        (certain if near[2] is None else tested).append(near)
        return 0
    left = left_between(rule, pair)
    if left is True:
        certain.append(near)
    elif left is not False:
        tested.append((near[0], near[1], left))
    return 0


cdef object left_between(object rule, Pair pair):
    """Returns what `CompiledRule.between` does."""
    bounds = rule.bounds
    if bounds is None:  # expressions for hosts
        return rule.between(pair.host, pair.source)
    in_host, suffix, strict, sources, not_sources, targets, not_targets, left = <tuple?>bounds
    cdef str host = pair.host
    if <str?>in_host and (in_host not in host or not (host.endswith(<str?>suffix) or host == suffix[1:])):
        return False
    if strict and (host == pair.source) is not (strict == 1):
        return False
    if sources is not None and (not pair.source or not meets(sources, pair.source_names())):
        return False
    if not_sources is not None and pair.source and meets(not_sources, pair.source_names()):
        return False
    if targets is not None and not meets(targets, pair.names()):
        return False
    if not_targets is not None and meets(not_targets, pair.names()):
        return False
    return left


cdef bint meets(object names, tuple hosts) except -1:
    """Returns whether one of the names that cover a host is in a set."""
    for name in hosts:
        if PySet_Contains(names, name):
            return True
    return False


cdef unsigned int literals_between(object literals, Pair pair, unsigned int bits) except? 0xFFFFFFFF:
    """Returns what `LiteralReach.between` does."""
    cdef unsigned int mask, reach = literals.unbound
    reach &= bits
    by_page = literals.by_page
    if by_page and pair.source:
        for name in pair.source_names():
            paged = value_or_none(by_page, name)
            if paged is None:
                continue
            for number, rule in <list?>paged:
                mask = number
                if mask & bits & ~reach and left_between(rule, pair) is not False:
                    reach |= mask & bits
    for number, in_host, rule in <list?>literals.others:
        mask = number
        if mask & bits & ~reach and <str?>in_host in pair.host and left_between(rule, pair) is not False:
            reach |= mask & bits
    return reach
