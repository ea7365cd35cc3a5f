"""Static files: read once at start, served from memory under addresses that change with their content."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markupsafe import Markup

FOLDER: Final = Path(__file__).parents[1] / "static"
STYLE: Final = "app.css"
"""The name of the style sheet that all files of `css/` make together."""
_ICONS: Final = "icons/icons.svg"
_ICON: Final = re.compile(r'<symbol id="([\w-]+)"[^>]*>(.*?)</symbol>')
_TYPES: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".png": "image/png",
}
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file."""

    content: bytes
    media_type: str


class Assets:
    """All static files of a folder; the digest of all of them is part of their addresses.

    Attributes:
        shapes: the markup within each icon, by its name. It stands in the page: a browser that copies it from another document
            (`use`) makes and styles more than twice as many elements, a third of a page with a table.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        style = b"\n".join(content for name, content in files.items() if name.startswith("css/"))
        files = {name: content for name, content in files.items() if not name.startswith("css/") and not name.endswith(".toml")}
        if style:
            files[STYLE] = style
        digest = hashlib.sha256()
        for name, content in sorted(files.items()):
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        self.version = digest.hexdigest()[:_DIGITS]
        self._files = {name: Asset(content, _media_type(name)) for name, content in files.items()}
        self.shapes = {name: Markup(shape) for name, shape in _ICON.findall(files.get(_ICONS, b"").decode())}  # noqa: S704  our own file

    def url(self, name: str) -> str:
        """Returns the address of a file.

        Raises:
            KeyError: there is no such file.
        """
        self._files[name]
        return f"/static/{self.version}/{name}"

    def find(self, name: str) -> Asset | None:
        """Returns a file by its path in the folder."""
        return self._files.get(name)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(len(asset.content) for asset in self._files.values())


def _media_type(name: str) -> str:
    return _TYPES.get(Path(name).suffix, "application/octet-stream")
