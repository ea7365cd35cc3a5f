"""Compiled twin of frozen.made: attributes are set where a frozen class only lets its constructor, one call each."""

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t items)
    int PyObject_GenericSetAttr(object of, object name, object value) except -1


def made(type kind not None, tuple names not None, rows):
    """Returns a value of a frozen class for each row, its attributes in this order; see frozen.made."""
    cdef list values = []
    cdef tuple row
    cdef Py_ssize_t index, count = len(names)
    for row in rows:
        if row is None or len(row) != count:
            raise ValueError("a row has another number of attributes")
        value = PyType_GenericAlloc(<PyTypeObject*>kind, 0)  # as `object.__new__`, without a search for it
        for index in range(count):
            PyObject_GenericSetAttr(value, names[index], row[index])
        values.append(value)
    return tuple(values)
