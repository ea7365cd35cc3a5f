"""The name by which this program can be called again: hints print a command line that works where it is read."""

import re
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Final

NAME: Final = "gatewayfilter"
_COMMAND = re.compile(r"(?<![\w/.-])(sudo )?gatewayfilter(?= [a-z-])")


@cache
def program_path() -> str:
    """Returns the file of the running program, absolute; `gatewayfilter` where it was not started by such a file."""
    called = Path(sys.argv[0] or NAME)
    if called.name != NAME:
        called = Path(sys.executable).with_name(NAME)
    return str(called.absolute()) if called.is_file() else NAME


@cache
def program_name() -> str:
    """Returns `gatewayfilter` where the search path finds this program, else its file, relative to the current folder."""
    path = program_path()
    found = shutil.which(NAME)
    if path == NAME or (found is not None and Path(found).resolve() == Path(path).resolve()):
        return NAME
    try:
        near = str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):
        near = path
    return shlex.quote(near if "/" in near else f"./{near}")


def as_callable(text: str) -> str:
    """Returns a hint with each `gatewayfilter COMMAND` in it as it has to be typed here; after `sudo`, with the whole path."""
    return _COMMAND.sub(lambda found: f"sudo {shlex.quote(program_path())}" if found[1] else program_name(), text)
