"""Check of what the settings point to: files that a worker would fail to read at its start, and categories that do not exist."""

import ssl
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from gatewayfilter.config import Settings
from gatewayfilter.errors import ConfigError, StartupError
from gatewayfilter.proxy.auth.upstream_auth import parent_login
from gatewayfilter.proxy.auth.user_file import Users
from gatewayfilter.proxy.pages.theme import PageTheme
from gatewayfilter.use_cases.network_facts import known_categories


def check_files(settings: Settings) -> None:
    """Opens every file that the settings name.

    Raises:
        StartupError: one cannot be read or is none of its kind; names setting and file.
    """
    proxy = settings.proxy
    if proxy.auth_file is not None:
        Users(proxy.auth_file)
    parent_login(proxy.upstream_auth_file)
    PageTheme.of(proxy)
    oidc = settings.web.oidc
    certificates = {
        "proxy.upstream_ca": proxy.upstream_ca,
        "crawl.upstream_ca": settings.crawl.upstream_ca,
        "web.oidc.ca": oidc.ca,
    }
    for name, file in certificates.items():
        if file is not None:
            _check_certificates(name, file)
    if oidc.client_secret_file is not None:
        _check_readable("web.oidc.client_secret_file", oidc.client_secret_file)
    for file in settings.learn.trusted_hosts:
        _check_readable("learn.trusted_hosts", file)


def check_categories(settings: Settings) -> None:
    """Checks the categories of `filter.disabled_categories`.

    Raises:
        ConfigError: there is none of a name; names the nearest.
    """
    for name in unknown_categories(settings):
        near = get_close_matches(name, sorted(known_categories(settings, allowing=True)), cutoff=0.6)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"setting 'filter.disabled_categories': there is no category {name!r}{hint}")


def unknown_categories(settings: Settings) -> Iterator[str]:
    """Yields the names in `filter.disabled_categories` that are no category of a list."""
    if settings.filter.disabled_categories:
        known = known_categories(settings, allowing=True)
        yield from (name for name in settings.filter.disabled_categories if name not in known)


def _check_certificates(name: str, file: Path) -> None:
    try:
        ssl.create_default_context(cafile=str(file))
    except (OSError, ssl.SSLError) as error:
        raise StartupError(f"cannot read {name} {file}: {error.strerror or error}") from error


def _check_readable(name: str, file: Path) -> None:
    try:
        with file.open("rb") as content:
            content.peek()
    except OSError as error:
        raise StartupError(f"cannot read {name} {file}: {error.strerror}") from error
