"""Cases of tree construction in the format of html5lib-tests (`.dat`), and the visible text that their expected trees hold."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_NODE = re.compile(r"\| ( *)(.*)")
UNSEEN = frozenset({"script", "style", "template", "noscript", "iframe", "noembed", "noframes"})
"""Elements whose text nodes no reader sees."""


class TreeCase(NamedTuple):
    """A document and the text of its body: as browsers see it, white space dropped."""

    name: str
    html: str
    text: str


def cases_of(file: Path) -> Iterator[TreeCase]:
    """Yields the cases of a file but those of fragments."""
    for number, case in enumerate(("\n" + file.read_bytes().decode("utf-8", "surrogatepass")).split("\n#data\n")[1:]):
        html, _, rest = case.partition("\n#errors\n") if not case.startswith("#errors") else ("", "", case)
        if "#document-fragment" in rest:
            continue
        yield TreeCase(f"{file.stem}:{number}", html, visible_text(rest.partition("#document\n")[2]))


def visible_text(tree: str) -> str:
    """Returns the text of the body of an expected tree, without white space."""
    path: list[str] = []
    found: list[str] = []
    shown = False
    depth = 0
    for line in tree.split("\n"):
        node = _NODE.match(line)
        if node is None:
            found += [line] if shown else []  # the text goes on
            continue
        depth, what = len(node[1]) // 2, node[2]
        del path[depth:]
        shown = False
        if what.startswith("<") and not what.startswith("<!"):
            path.append(what.strip("<>"))
        else:
            path.append("")
            if what.startswith('"') and "body" in path[:2] and not UNSEEN.intersection(path):
                shown = True
                found.append(what[1:])
    return "".join("".join(found).replace('"', "").split())
