"""Templates that are kept compiled in the state folder."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, UndefinedError

from gatewayfilter.web.rendering.assets import Assets
from gatewayfilter.web.rendering.pages import Pages

TEMPLATE = "components/icons.html"


def environment(folder: Path) -> Environment:
    """Returns that of a new process."""
    pages = Pages(Assets())
    pages.keep_small(folder)
    return pages._environments["en"]


def refuse(*_: object, **__: object) -> Any:
    """Stands for a system call on a full disk."""
    raise OSError(28, "No space left on device")


def test_compiled_templates_are_kept(tmp_path: Path) -> None:
    environment(tmp_path / "cache").get_template(TEMPLATE)
    assert len(list((tmp_path / "cache" / "en").iterdir())) == 1


def test_templates_are_safe_strict_and_leave_no_lines_of_their_blocks(tmp_path: Path) -> None:
    found = environment(tmp_path)
    lines = "<p>\n  {% if shown %}\n  {{ shown }}\n  {% endif %}\n</p>"
    assert found.from_string(lines).render(shown="<b>") == "<p>\n  &lt;b&gt;\n</p>"
    with pytest.raises(UndefinedError):
        found.from_string(lines).render()


@pytest.mark.parametrize("refused", ["folder", "file"])
def test_a_full_disk_does_not_keep_pages_from_being_shown(tmp_path: Path, refused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        if refused == "folder":
            patched.setattr(os, "mkdir", refuse)
        else:
            patched.setattr(tempfile, "NamedTemporaryFile", refuse)
        assert environment(tmp_path / "cache").get_template(TEMPLATE).name == TEMPLATE
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_compiled_template_that_cannot_be_read_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(tmp_path).get_template(TEMPLATE)
    found = environment(tmp_path)
    monkeypatch.setattr("builtins.open", refuse)
    cache: Any = found.bytecode_cache
    assert cache.get_bucket(found, TEMPLATE, None, "source").code is None
