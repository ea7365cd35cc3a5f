"""Compiled twins of hot Python: which there are, whether they are in use, and why not.

Each is optional. `load` gives the compiled module, or `None`, and then its caller takes the Python that does the same
(docs/decisions/0009-compiled-readers.md). `GATEWAYFILTER_PURE=1` in the environment forces Python for all of them.
"""

import importlib
import os
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

MODULES = (
    "gatewayfilter._urls",
    "gatewayfilter.documents._density",
    "gatewayfilter.documents.html._markup",
    "gatewayfilter.classify._score",
    "gatewayfilter.classify.lexicon._scanner",
    "gatewayfilter.classify.models._terms",
    "gatewayfilter.classify.normalize._views",
    "gatewayfilter.engine.adblock._rule_tests",
    "gatewayfilter.engine.adblock.index._near_rules",
    "gatewayfilter.engine.adblock.syntax._plain_lines",
    "gatewayfilter.engine.batches._plain_urls",
    "gatewayfilter.model.values._frozen",
    "gatewayfilter.proxy.mitm.fastpath.http2._hpack",
    "gatewayfilter.proxy.request._header_fields",
    "gatewayfilter.scaleout.redis._packed_verdict",
    "gatewayfilter.scaleout.stream.traffic._json_scan",
    "gatewayfilter.scaleout.stream.worker._splicing",
)
"""All compiled modules, by the names of their `.pyx`."""


def load(name: str) -> ModuleType | None:
    """Returns a compiled module, `None` where Python does its work: on request, not built, out of date, not loadable."""
    return None if why_not(name) else importlib.import_module(name)


def why_not(name: str) -> str:
    """Returns why a compiled module is not in use, `""` when it is. Its import is tried."""
    if is_forbidden():
        return "GATEWAYFILTER_PURE is set"
    try:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            return "not built"
        if _is_stale(Path(spec.origin)):
            return "older than its source"
        importlib.import_module(name)
    except Exception as error:  # noqa: BLE001  one built of another version may fail in any way: Python does its work
        return f"not loadable: {error}"
    return ""


def is_forbidden() -> bool:
    """Returns whether the environment asks for Python alone."""
    return os.environ.get("GATEWAYFILTER_PURE", "") not in {"", "0"}


def in_use() -> dict[str, str]:
    """Returns name → why it is not in use (`""` when it is) of all compiled modules."""
    return {name: why_not(name) for name in MODULES}


def _is_stale(built: Path) -> bool:
    """Returns whether a checkout's source is newer than what was built of it, as after a pull without `make`."""
    source = built.with_name(built.name.partition(".")[0] + ".pyx")
    return source.exists() and source.stat().st_mtime > built.stat().st_mtime
