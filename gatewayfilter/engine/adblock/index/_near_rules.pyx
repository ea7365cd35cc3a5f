"""Compiled twin of near_rules.py: the same steps, with dictionaries that are read without a call where they have the key."""

from cpython.dict cimport PyDict_GetItemWithError
from cpython.ref cimport PyObject

from gatewayfilter.engine.adblock.index.covering_names import host_names
from gatewayfilter.engine.adblock.index.name_table import HEAD
from gatewayfilter.urls import host_suffixes

cdef Py_ssize_t head = HEAD
suffixes = host_suffixes.__wrapped__  # each pair is new once: its names need not be kept


cdef inline object value_of(object table, object key):
    """Returns the value of a key; a table that computes missing ones is asked for it."""
    cdef PyObject* found = PyDict_GetItemWithError(table, key)
    return table[key] if found is NULL else <object>found


cdef inline object value_or_none(object table, object key):
    cdef PyObject* found = PyDict_GetItemWithError(table, key)
    return None if found is NULL else <object>found


def near_rules(hosts, host_rules, pages, page_rules, everywhere, str host not None, str source not None, unsigned int reach):
    """Returns the candidate rules between two hosts, those without a test first; arguments as in `find_near_rules`."""
    cdef list certain = [], tested = []
    cdef tuple names = <tuple?>host_names(source) if source else ()
    cdef str name
    for name in <tuple?>suffixes(host):
        key = value_or_none(value_of(hosts, name[:head]), name)
        if key is not None:
            add_near(value_of(host_rules, key), host, source, names, reach, certain, tested)
    if pages:
        for name in names:
            key = value_or_none(pages, name)
            if key is not None:
                add_near(value_of(page_rules, key), host, source, names, reach, certain, tested)
    add_near(everywhere, host, source, names, reach, certain, tested)
    if tested:
        certain.extend(tested)
    return tuple(certain)


cdef int add_near(posted, str host, str source, tuple names, unsigned int reach, list certain, list tested) except -1:
    """Adds the rules of a key that may apply to those without a remaining test, or to those with one."""
    cdef unsigned int mask = posted.mask
    cdef dict fitting
    if not mask & reach:
        return 0
    for found in <tuple?>posted.always:
        add_rule(<tuple?>found, host, source, reach, certain, tested)
    by_page = posted.by_page
    if not by_page:
        return 0
    fitting = None
    for name in names:
        paged = value_or_none(by_page, name)
        if paged is not None:
            if fitting is None:
                fitting = {}
            for found in <list?>paged:
                fitting[found[0][1]] = found
    if fitting is not None:
        for found in fitting.values():
            add_rule(<tuple?>found, host, source, reach, certain, tested)
    return 0


cdef int add_rule(tuple found, str host, str source, unsigned int reach, list certain, list tested) except -1:
    cdef tuple near = <tuple?>found[0]
    cdef unsigned int mask = near[0]
    if not mask & reach:
        return 0
    rule = found[1]
    if rule is None:
        (certain if near[2] is None else tested).append(near)
        return 0
    left = rule.between(host, source)
    if left is True:
        certain.append(near)
    elif left is not False:
        tested.append((near[0], near[1], left))
    return 0
