"""The installed mitmproxy is the one that proxy/ was written for, and nothing in it is replaced but what the tables say."""

import ast
import hashlib
import importlib
import inspect
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import mitmproxy.version
import pytest

from gatewayfilter.proxy.mitm.install import REPLACEMENTS, install
from gatewayfilter.proxy.mitm.upstream import NeededFor, Replacement, set_on
from gatewayfilter.proxy.mitm.upstream_digests import RELIED_ON, VERSION
from gatewayfilter.proxy.pages.block_page import BlockPages
from tests.case_tables import all_cases


@cache
def tree(module: str) -> tuple[str, ast.AST]:
    text = inspect.getsource(importlib.import_module(module))
    return text, ast.parse(text)


def digest(module: str, name: str) -> str:
    """Returns the digest of a function's or class's source, from its file: the class may have ours by now."""
    text, node = tree(module)
    for part in name.split("."):
        node = next(one for one in ast.iter_child_nodes(node) if getattr(one, "name", "") == part)
    return hashlib.sha256((ast.get_source_segment(text, node) or "").encode()).hexdigest()[:16]


def test_version() -> None:
    assert mitmproxy.version.VERSION == VERSION, (
        "proxy/ replaces parts of mitmproxy: mend what the other tests of this module name, "
        "run scripts/bench/bench_proxy.py, then change VERSION"
    )


@all_cases("row", REPLACEMENTS)
def test_what_is_replaced_is_as_it_was(row: Replacement) -> None:
    module, _, name = row.upstream.partition(":")
    assert digest(module, name) == row.digest, f"read {row.upstream} and {row.replacement} again"


@all_cases(
    ("by", "how", "module", "name", "expected"),
    [(row.by, row.how, row.module, name, expected) for row in RELIED_ON for name, expected in row.digests.items()],
)
def test_what_is_relied_on_is_as_it_was(by: str, how: str, module: str, name: str, expected: str) -> None:
    assert digest(module, name) == expected, f"read {module}:{name} again: {by} {how}"


def standing() -> list[object]:
    found = [getattr(row.target, row.attribute, None) for row in REPLACEMENTS]
    return [one.func if isinstance(one, partial) else one for one in found]


def test_installing_is_idempotent_and_speed_can_be_left_out() -> None:
    install(BlockPages(), fast_path=False)
    without = standing()
    install(BlockPages(), fast_path=True)
    install(BlockPages(), fast_path=True)
    assert standing() == [row.replacement for row in REPLACEMENTS]
    install(BlockPages(), fast_path=False)
    assert standing() == without
    for row, found in zip(REPLACEMENTS, without, strict=True):
        assert (found is row.replacement) == (row.needed_for is NeededFor.CORRECTNESS), row.attribute


CENSUS = """
import asyncio, inspect, sys
from pathlib import Path
import mitmproxy.tools.main
import mitmproxy.addons.proxyserver

LIBRARIES = {"mitmproxy", "h2", "h11", "hpack", "OpenSSL", "asyncio"}
PLACES = {}
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] in LIBRARIES:
        PLACES[name] = module
        for value in list(vars(module).values()):
            if inspect.isclass(value) and value.__module__ == name:
                PLACES[f"{name}.{value.__qualname__}"] = value

def census():
    return {
        (where, name): value
        for where, place in PLACES.items()
        for name, value in vars(place).items()
        if inspect.isroutine(value) or inspect.isclass(value) or isinstance(value, (property, classmethod, staticmethod))
    }

before = census()

from gatewayfilter.config import ProxySettings, Settings
from gatewayfilter.proxy.master import LeanMaster
from tests.proxy.proxy_fakes import Gateway

async def run(fast_path):
    proxy = ProxySettings(listen="127.0.0.1:0", fast_path=fast_path)
    settings = Settings(data_dir=Path(sys.argv[1]), proxy=proxy)
    master = LeanMaster(settings, Gateway().addon(proxy, settings))
    await master.start()
    reader, writer = await asyncio.open_connection(*master.address)
    writer.write(b"GET http://blocked.example/ HTTP/1.1\\r\\nHost: blocked.example\\r\\n\\r\\n")
    assert (await reader.readuntil(b"\\r\\n\\r\\n")).startswith(b"HTTP/1.1 403")
    writer.close()
    await master.stop(0.1)

for fast_path in (True, False):
    asyncio.run(run(fast_path))
    after = census()
    changed = {key for key in before.keys() | after.keys() if before.get(key) is not after.get(key)}
    print(sorted(f"{where}.{name}" for where, name in changed))
"""


def qualified(row: Replacement) -> str:
    """Returns `module.Class.attribute` or `module.attribute`."""
    target = row.target
    place = f"{target.__module__}.{target.__qualname__}" if inspect.isclass(target) else getattr(target, "__name__", "")
    return f"{place}.{row.attribute}"


def test_nothing_else_is_replaced(tmp_path: Path) -> None:
    """A process that served a request differs from mitmproxy as it is by the table alone."""
    found = subprocess.run([sys.executable, "-c", CENSUS, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 0, found.stderr
    fast, slow = map(ast.literal_eval, found.stdout.splitlines())
    assert fast == sorted(map(qualified, REPLACEMENTS))
    assert slow == sorted(qualified(row) for row in REPLACEMENTS if row.needed_for is NeededFor.CORRECTNESS)


def test_only_what_is_in_the_table_is_set_on_instances() -> None:
    with pytest.raises(LookupError):
        set_on(object(), "handler", None)
