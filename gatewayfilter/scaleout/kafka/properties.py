"""Files of properties for librdkafka: lines `NAME=VALUE`, as for encryption and log-in."""

from pathlib import Path

from gatewayfilter.errors import ConfigError


def read_properties(file: Path) -> dict[str, str]:
    """Returns the properties in a file; blank lines and comments are passed over.

    Raises:
        ConfigError: it cannot be read, or a line has no name. The message has no value: it may be a password.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        name, mark, value = line.partition("=")
        if line.strip() and not line.lstrip().startswith("#"):
            if not mark or not name.strip():
                raise ConfigError(f"{file}, line {number}: NAME=VALUE is expected")
            found[name.strip()] = value.strip()
    return found
