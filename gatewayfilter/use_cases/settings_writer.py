"""Writes settings into a TOML file of the operator's: comments, order and everything else in it stay as they are."""

import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from gatewayfilter.errors import ConfigError


def write_settings(file: Path, values: Mapping[str, object]) -> None:
    """Sets values in a settings file, which is made (mode 0600) when it is not there. The old one stays until the new is whole.

    Args:
        file: a TOML file; of a link, what it points to.
        values: dotted key (`proxy.listen`) → text, number, truth value or list of texts.

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


def with_settings(text: str, values: Mapping[str, object], name: str = "the file") -> str:
    """Returns the text of a TOML file with these values set (`write_settings`)."""
    import tomlkit  # noqa: PLC0415  for changes alone
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        wanted = tomllib.loads(text)
        document: Any = tomlkit.parse(text)
    except (tomllib.TOMLDecodeError, TOMLKitError) as error:
        raise ConfigError(f"{name} is not valid TOML: {error}") from error
    try:
        for key, value in values.items():
            *sections, setting = key.split(".")
            read, written = wanted, document
            for section in sections:
                read = read.setdefault(section, {})
                written = written.setdefault(section, tomlkit.table())
            if read.get(setting) != value:
                read[setting] = written[setting] = value
        changed = tomlkit.dumps(document)
        if "\r\n" in text:
            changed = changed.replace("\r\n", "\n").replace("\n", "\r\n")
    except (AttributeError, TypeError, TOMLKitError):
        changed = ""
    if _read(changed) != wanted:
        lines_to_write = "; ".join(f"{key} = {tomlkit.item(value).as_string()}" for key, value in values.items())
        raise ConfigError(f"cannot change {name} without touching more than these settings; set them by hand: {lines_to_write}")
    return changed


def _read(text: str) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


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
