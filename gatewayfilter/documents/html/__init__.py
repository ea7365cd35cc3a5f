"""HTML markup: what browsers show of it, and what it refers to. In Python, and compiled in `_markup.pyx`."""
