"""Writes settings into a TOML file of the operator's: comments, order and everything else in it stay as they are."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from gatewayfilter.errors import ConfigError

_HEADER: Final = re.compile(r"\s*\[")
_VALUE: Final = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#\["'{][^\s#]*)"""


def write_settings(file: Path, values: Mapping[str, str]) -> None:
    """Sets values in a settings file, which is made (mode 0600) when it is not there. The old one stays until the new is whole.

    Args:
        file: a TOML file; of a link, what it points to.
        values: dotted key (`proxy.listen`) → text.

    Raises:
        ConfigError: the file cannot be read or written, is not valid TOML, or is written so that a value cannot be set without
            a change to something else; it stays as it was, and the sentence has the lines to write.
    """
    target = file.resolve()
    try:
        old = target.read_bytes().decode() if target.exists() else ""
        text = with_settings(old, values, str(file))
        if text != old:
            _replace(target, text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read the configuration {file}: it is not UTF-8") from error
    except OSError as error:
        raise ConfigError(f"cannot write the configuration {file}: {error.strerror}") from error


def with_settings(text: str, values: Mapping[str, str], name: str = "the file") -> str:
    """Returns the text of a TOML file with these values set (`write_settings`)."""
    try:
        wanted = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not valid TOML: {error}") from error
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines()
    for key, value in values.items():
        section, _, setting = key.partition(".")
        if _value_of(wanted, section, setting) == value:
            continue
        wanted = _with_value(wanted, section, setting, value)
        _set_line(lines, section, setting, _literal(value))
    changed = newline.join(lines) + newline if lines else ""
    if not _reads_as(changed, wanted):
        lines_to_write = "; ".join(f"{key} = {_literal(value)}" for key, value in values.items())
        raise ConfigError(f"cannot change {name} without touching more than these settings; set them by hand: {lines_to_write}")
    return changed if wanted != tomllib.loads(text) else text


def _literal(value: str) -> str:
    """Returns a text as a basic string of TOML: that of JSON, but for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value_of(document: Mapping[str, Any], section: str, setting: str) -> object:
    table = document.get(section)
    return table.get(setting) if isinstance(table, dict) else None


def _with_value(document: Mapping[str, Any], section: str, setting: str, value: str) -> dict[str, Any]:
    changed = deepcopy(dict(document))
    table = changed.setdefault(section, {})
    if isinstance(table, dict):  # otherwise the file is no settings file: the comparison fails
        table[setting] = value
    return changed


def _reads_as(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _set_line(lines: list[str], section: str, setting: str, literal: str) -> None:
    """Changes the line of a setting, or adds one below the header of its section, which is added when there is none."""
    header = re.compile(rf"\s*\[\s*{re.escape(section)}\s*\]\s*(#.*)?")
    dotted = rf"{re.escape(section)}\s*\.\s*{re.escape(setting)}"
    current, below = "", len(lines)
    for number, line in enumerate(lines):
        if _HEADER.match(line):
            current = section if header.fullmatch(line) else "another"
            below = number + 1 if current == section else below
            continue
        name = {"": dotted, section: re.escape(setting)}.get(current)
        if name and (found := re.fullmatch(rf"(\s*{name}\s*=\s*){_VALUE}(\s*(?:#.*)?)", line)):
            lines[number] = f"{found[1]}{literal}{found[2]}"
            return
    if any(header.fullmatch(line) for line in lines):
        lines.insert(below, f"{setting} = {literal}")
    else:
        lines += [*([""] if lines else []), f"[{section}]", f"{setting} = {literal}"]


def _replace(target: Path, text: str) -> None:
    """Puts a new file in the place of the old one, with its owner and mode."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    old = target.stat() if target.exists() else None
    with NamedTemporaryFile("wb", dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        aside = Path(file.name)
        try:
            file.write(text.encode())
            file.flush()
            os.fchmod(file.fileno(), old.st_mode & 0o777 if old else 0o600)
            if old:
                with suppress(PermissionError):  # only root can give a file away
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fsync(file.fileno())
            aside.replace(target)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
