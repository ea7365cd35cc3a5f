"""What a worker changes in its own mitmproxy to spend less on each request; results stay the same.

Each change replaces a slow form by a fast one with equal results (tests/proxy/mitm/fastpath/test_fastpath_patches.py
compares them), in the worker's process only, for the version that pyproject.toml pins. Stock mitmdump with our addon runs
unchanged.
"""

from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from mitmproxy import http, options
from mitmproxy.proxy.context import Context


def install() -> None:
    """Changes this process's mitmproxy. Doing it twice is doing it once."""
    # Every message checks the types of its own fields against their annotations, unless Python runs with -O: 80 µs a request.
    http.MessageData.__post_init__ = _nothing  # type: ignore[method-assign, attr-defined, unused-ignore]
    # A look-up decodes and compares all fields through four calls each, twenty times a request.
    http.Headers.get_all = _get_all  # type: ignore[method-assign]
    http.Headers.get = _get  # type: ignore[method-assign, assignment]
    http.Headers.__contains__ = _contains  # type: ignore[method-assign, assignment]
    # Each request has a context of its own, made with a connection that is thrown away at once.
    Context.fork = _fork  # type: ignore[method-assign]


def frozen_options(current: options.Options, **further: object) -> SimpleNamespace:
    """Returns the options as plain attributes. mitmproxy copies a value deeply for each reading, ten times a request.

    Args:
        current: what is read.
        further: what layers of ours find there.
    """
    names: list[str] = current.keys()  # type: ignore[no-untyped-call]
    return SimpleNamespace(**{name: getattr(current, name) for name in names}, **further)


def _nothing(_self: http.MessageData) -> None:
    return None


def _fork(self: Context) -> Context:
    made = Context.__new__(Context)
    made.client, made.server, made.options = self.client, self.server, self.options
    made.layers = self.layers.copy()
    return made


@lru_cache(maxsize=512)
def _name(name: str | bytes) -> tuple[bytes, int]:
    wanted = (name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name).lower()
    return wanted, len(wanted)


def _get_all(self: http.Headers, name: str | bytes) -> list[str]:
    wanted, size = _name(name)
    return [value.decode("utf-8", "surrogateescape") for key, value in self.fields if len(key) == size and key.lower() == wanted]


def _get(self: http.Headers, name: str | bytes, default: Any = None) -> Any:
    wanted, size = _name(name)
    found = [value.decode("utf-8", "surrogateescape") for key, value in self.fields if len(key) == size and key.lower() == wanted]
    if not found:
        return default
    return found[0] if len(found) == 1 else ", ".join(found)


def _contains(self: http.Headers, name: object) -> bool:
    if not isinstance(name, str | bytes):
        return False
    wanted, size = _name(name)
    for key, _ in self.fields:  # noqa: SIM110  a generator costs more than the search
        if len(key) == size and key.lower() == wanted:
            return True
    return False
